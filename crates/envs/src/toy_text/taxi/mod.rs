//! Taxi-v4: fetch a passenger, and let him out where he wants to go.
//!
//! The rules are those of Gymnasium 1.4's `gymnasium/envs/toy_text/taxi.py`
//! (after T. G. Dietterich, 2000), with a draw for a draw, so that from the same
//! seed the same trajectory comes out.
//!
//! The town has 5×5 fields, some walls between neighbours in a row, and four
//! stands: red, green, yellow and blue. An episode starts with the taxi on any
//! field, the passenger at a stand, and another stand as his destination.
//!
//! Observation: ((row · 5 + column) · 5 + passenger) · 4 + destination, where the
//! passenger is at stand 0 to 3, or 4: in the taxi. Action: 0 south, 1 north,
//! 2 east, 3 west, 4 pick the passenger up, 5 let him out. A wall or the town's
//! edge holds the taxi. With `is_rainy`, a drive that is not held goes where it is
//! meant to go with probability `rainy_probability`, else to either side. With
//! `fickle_passenger`, the passenger of an episode changes his mind with
//! probability `fickle_probability`: his destination is another one after the first
//! drive that he is moved by.
//!
//! Reward: 20 for letting the passenger out at his destination, −10 for picking up
//! where he is not and for letting out where no stand is or without him, else −1.
//! Terminated: the passenger is where he wants to go. Info: `prob`, the
//! probability of the transition that was made, 1 at a reset; `action_mask`, which
//! actions change the state. Index ix is the episode of seed ix.
//!
//! Versions: v4 is Gymnasium's, which has mended v3's rain and fickle passengers.

mod draw;
mod env;
mod town;

pub use env::{Taxi, TaxiConfig};
