//! ConnectFour-v0: get four stones in a row before a built-in opponent does.
//!
//! The rules are those of the game of 1974 (Milton Bradley; *The Official Rules*, and J. D. Allen,
//! *The Complete Book of Connect 4*, 2010). Two players in turn drop a stone into one of the 7
//! columns of an upright board, where it falls on the stones below it, 6 at most. Who first has four
//! in a row, upright, level or on a slant, has won. A full board without one is a draw.
//!
//! Observation: `int8`, `(6, 7)`, rows from the top: 1 for a stone of the player's, −1 for one of the
//! opponent's, 0 for an empty field. Action: the column, from the left. A step is the player's stone
//! and the opponent's answer. Reward: 1 for a win, −1 for a loss, 0 for a draw and for all steps
//! before the end. A stone into a full column is illegal, and loses the game at once. Terminated: the
//! game is over. Info: `action_mask`, which columns have room.
//!
//! `first` says who begins: `"player"`, `"opponent"`, or, as usual, `"random"`: the opponent where
//! `rng.integers(2)` is 1, drawn from `np.random.default_rng(seed)`. In the other two cases nothing
//! is drawn.
//!
//! The opponent picks one of some columns, in order from the left, by `rng.integers(n)`:
//! - `opponent="random"`: of all with room;
//! - `"greedy"`: of those that win at once; if there are none, of those where the player would win
//!   at once; else of all with room;
//! - `"minimax"`: of those with the highest value. It looks `depth` stones ahead, its own among them.
//!   A column is worth `n` where its stone or what must follow wins with `n` − 1 stones left to look
//!   at, −`n` where the player wins in that way, and 0 where it sees neither. So it wins as soon and
//!   loses as late as it can. Each further stone takes it two to four times as long.
//!
//! Index ix is the episode of seed ix.

mod board;
mod draw;
mod env;
mod opponent;

pub use env::{ConnectFour, ConnectFourConfig, ConnectFourSeen, FirstMove};
pub use opponent::OpponentKind;
