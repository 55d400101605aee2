//! FrozenLake-v1 and FrozenLake8x8-v1: cross a frozen lake without falling into
//! its holes.
//!
//! The rules are those of Gymnasium 1.4's
//! `gymnasium/envs/toy_text/frozen_lake.py`, with a draw for a draw, so that from
//! the same seed the same trajectory comes out.
//!
//! A map has fields of four letters: S is where an episode starts (one of them at
//! random), F is ice, H a hole, G the goal. `desc` is a map of one's own,
//! `map_name` one of Gymnasium's. Without both, the map is the one that
//! Gymnasium's `generate_random_map(size=map_size, p=map_p, seed=map_seed)` gives:
//! every field but the corners is ice with probability `map_p`, again and again
//! until a way leads to the goal. Gymnasium draws such a map from no seed, and so
//! another one in each env. Here all envs of a vec env have the same.
//!
//! Observation: the number of the walker's field, row by row from the top left.
//! Action: 0 left, 1 down, 2 right, 3 up. On slippery ice a step goes that way
//! with probability `success_rate`, else to one of the two sides. The map's edge
//! holds the walker. Reward: `reward_schedule` for goal, hole and ice (1, 0, 0).
//! Terminated: at the goal and in a hole. Info: `prob`, the probability of the step
//! that was made, 1 at a reset. Index ix is the episode of seed ix.
//!
//! Versions: v1 is Gymnasium's, which has mended v0's rewards.

mod draw;
mod env;
mod lake;

pub use env::{FrozenLake, FrozenLakeConfig};
