//! Snake-v0: eat fruit and grow, but not into a wall or into yourself.
//!
//! The rules and observations are those of Jumanji's `Snake-v1` (InstaDeep, Apache-2.0; C. Bonnet et
//! al., *Jumanji: a Diverse Suite of Scalable Reinforcement Learning Environments in JAX*, 2024),
//! which draws by JAX, where this env draws from `np.random.default_rng(seed)`.
//!
//! The board has `rows` × `columns` fields, numbered row by row from the top left. An episode starts
//! with a snake of one field, `rng.integers(rows * columns)`, and a fruit. A fruit is put on the
//! `rng.integers(n)`-th of the `n` fields that the snake leaves free, in the order of their numbers.
//!
//! Action: 0 up, 1 right, 2 down, 3 left, where the head moves. A snake that eats grows by the field
//! of the fruit; else its tail moves on, so that the head may move to where the tail was. Observation:
//! `float32`, `(rows, columns, 5)`, five planes: the whole snake, its head, its tail, the fruit, and
//! how long each field of the snake stays its own, as a part of the snake's length (the head has 1).
//! Reward: 1 for a fruit, else 0. Terminated: the head moves into a wall or the snake, and then
//! nothing else has changed; or the snake fills the board. The usual time limit is 4000 steps, as
//! in Jumanji.
//!
//! Info: `action_mask`, which moves do not end the game in a wall or the snake; all, where every one
//! does. Index ix is the episode of seed ix.

mod draw;
mod env;
mod world;

pub use env::{Snake, SnakeConfig, SnakeSeen};
