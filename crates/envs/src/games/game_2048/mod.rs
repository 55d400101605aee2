//! 2048-v0: slide the tiles of a board, so that equal ones merge.
//!
//! The rules are those of the original game (G. Cirulli, 2014, MIT:
//! `github.com/gabrielecirulli/2048`, `js/game_manager.js` and `js/grid.js`), with its order of draws:
//! where the game calls `Math.random()`, this env draws `rng.random()` from
//! `np.random.default_rng(seed)`.
//!
//! The board has 4×4 fields. An episode starts with two tiles. A new tile is a 2 where `rng.random()`
//! is below 0.9, else a 4. Its field is number `int(rng.random() * n)` of the `n` empty fields, column
//! by column from the left, each from the top.
//!
//! Action: 0 up, 1 right, 2 down, 3 left, where all tiles slide as far as they can. Two equal tiles
//! that meet become one of their sum, those first that are nearest to where they slide, and a tile
//! that has just merged does not merge again in the same move. After a move that changes the board a
//! new tile comes. A move that would change nothing is illegal: it does nothing, for a reward of 0.
//!
//! Observation: `uint8`, `(4, 4)`, rows from the top: 0 for an empty field, k for a tile of 2ᵏ.
//! Reward: the sum of the tiles that merging has made, so that a return is the game's score.
//! Terminated: no move changes the board. Reaching 2048 ends nothing. There is no time limit, and a
//! policy that plays an illegal move for ever never ends. Info: `highest`, the number on the highest
//! tile; `action_mask`, which moves change the board. Index ix is the episode of seed ix.

mod board;
mod draw;
mod env;

pub use env::{Game2048, Game2048Info};
