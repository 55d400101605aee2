//! Toy text: small games of chance in tables, Gymnasium's own, number for number.
//!
//! Licence: the rules are those of Gymnasium (Farama Foundation, MIT), the code and the pictures are
//! Corral's own.

mod blackjack;
mod chance;
mod cliff_walking;
mod frozen_lake;
mod scenery;
mod taxi;
mod walk;

pub use blackjack::{Blackjack, BlackjackConfig};
pub use chance::Chance;
pub use cliff_walking::{CliffWalking, CliffWalkingConfig};
pub use frozen_lake::{FrozenLake, FrozenLakeConfig};
pub use taxi::{Taxi, TaxiConfig};

use crate::Entry;

/// The family's table.
pub const TABLE: &[Entry] = &[
    Entry::new::<FrozenLake<4>>(
        "FrozenLake-v1",
        "Cross a slippery lake of 4×4 fields, around its holes; Gymnasium's own trajectories.",
    )
    .by_field::<FrozenLake<4>, 3>()
    .steps(100)
    .solved_at(0.70)
    .fps(4),
    Entry::new::<FrozenLake<8>>(
        "FrozenLake8x8-v1",
        "Cross a slippery lake of 8×8 fields, around its holes; Gymnasium's own trajectories.",
    )
    .by_field::<FrozenLake<8>, 3>()
    .steps(200)
    .solved_at(0.85)
    .fps(4),
    Entry::new::<CliffWalking<false>>(
        "CliffWalking-v1",
        "Walk along a cliff from one end to the other; Gymnasium's own trajectories.",
    )
    .by_field::<CliffWalking<false>, 2>()
    .fps(4),
    Entry::new::<CliffWalking<true>>(
        "CliffWalkingSlippery-v1",
        "Walk along a slippery cliff from one end to the other; Gymnasium's own trajectories.",
    )
    .by_field::<CliffWalking<true>, 2>()
    .fps(4),
    Entry::new::<Taxi>(
        "Taxi-v4",
        "Fetch a passenger and drive to the right house; Gymnasium's own trajectories, with action masks.",
    )
    .by_field::<Taxi, 4>()
    .steps(200)
    .solved_at(8.0)
    .fps(4),
    Entry::new::<Blackjack>(
        "Blackjack-v1",
        "Beat the dealer by cards that sum to 21 or less; Gymnasium's own trajectories.",
    )
    .fps(4),
];

#[cfg(test)]
mod tests {
    use envcore::Discrete;

    use super::*;
    use crate::damaged::survives;

    #[test]
    fn a_state_that_no_episode_has_is_refused() {
        survives::<FrozenLake<4>>(&[Discrete(1)], 0);
        survives::<CliffWalking<true>>(&[Discrete(2)], 0);
        survives::<Taxi>(&[Discrete(0)], 0);
        survives::<Blackjack>(&[Discrete(1)], 0);
    }
}
