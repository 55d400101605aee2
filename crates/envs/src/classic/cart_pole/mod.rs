//! CartPole-v1: balance a pole on a cart.
//!
//! The dynamics are those of Gymnasium 1.4's
//! `gymnasium/envs/classic_control/cartpole.py` (after Barto, Sutton and
//! Anderson, 1983), operation by operation in float64, so that from the same
//! seed the same trajectory comes out, bit for bit, wherever NumPy's sin and cos
//! are libm's.
//!
//! Observation: `float32[4]`: cart position (m), cart velocity (m/s), pole angle
//! (rad), pole angular velocity (rad/s). Action: 0 pushes left, 1 right, with
//! 10 N. Reward: 1 per step, the last one included. Terminated: |position| > 2.4
//! or |angle| > 12°. Index ix is the episode of seed ix.
//!
//! Reset options: `low` and `high`, between which the four state variables start
//! (−0.05 and 0.05).
//!
//! Versions: v1 is Gymnasium's, which has raised v0's limit of 200 steps.

mod draw;
mod env;
mod kernel;

pub use env::{CartPole, CartPoleConfig};
pub use kernel::CartLanes;
