//! CliffWalking-v1 and CliffWalkingSlippery-v1: walk along a cliff, from one end
//! of it to the other.
//!
//! The rules are those of Gymnasium 1.4's
//! `gymnasium/envs/toy_text/cliffwalking.py` (example 6.6 of Sutton and Barto's
//! book), with a draw for a draw, so that from the same seed the same trajectory
//! comes out. The two ids differ in the default of `is_slippery`.
//!
//! The land has 4 rows of 12 fields. The start is the last row's first field, the
//! goal its last one, and the cliff is between them. Observation: the number of the
//! walker's field, row by row from the top left. Action: 0 up, 1 right, 2 down,
//! 3 left. On a slippery cliff a step goes that way or to either side, with
//! probability 1/3 each. The land's edge holds the walker, and who falls off the
//! cliff begins again at the start. Reward: −1 per step, −100 for a fall.
//! Terminated: at the goal. There is no time limit. Info: `prob`, the probability
//! of the step that was made, 1 at a reset. Index ix is the episode of seed ix;
//! where nothing is slippery, all episodes are alike.
//!
//! Versions: v1 is Gymnasium's, which has added slippery cliffs to v0.

mod draw;
mod env;

pub use env::{CliffWalking, CliffWalkingConfig};
