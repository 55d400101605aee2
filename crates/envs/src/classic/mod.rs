//! Classic control: Gymnasium's own dynamics, bit for bit.

mod cart_pole;

pub use cart_pole::{CartPole, CartPoleConfig, Carts};

use crate::Entry;

/// The family's table.
pub const TABLE: &[Entry] = &[Entry::new::<CartPole>(
    "CartPole-v1",
    "Balance a pole on a cart that is pushed left or right; Gymnasium's own trajectories.",
)
.by_field::<CartPole, 4>()
.steps(500)
.solved_at(475.0)
.fps(50)];
