//! Games: small classics for one player, with action masks where a choice can be illegal.
//!
//! Versions: v0 is the only one. Licence: the code and the pictures are Corral's own.

mod catch;
mod connect_four;
mod game_2048;
mod snake;

pub use catch::{Catch, CatchConfig, CatchSeen};
pub use connect_four::{ConnectFour, ConnectFourConfig, ConnectFourSeen, FirstMove, OpponentKind};
pub use game_2048::{Game2048, Game2048Info};
pub use snake::{Snake, SnakeConfig, SnakeSeen};

use std::ops::RangeInclusive;

use envcore::{Error, Result};

use crate::Entry;

/// The family's table.
pub const TABLE: &[Entry] = &[
    Entry::new::<Catch>("Catch-v0", "Catch a ball that falls down a board with a paddle; bsuite's rules.")
        .by_field::<Catch, 3>()
        .fps(5),
    Entry::new::<Snake>(
        "Snake-v0",
        "Eat fruit and grow, but not into a wall or yourself; with action masks.",
    )
    .steps(4000)
    .fps(10),
    Entry::new::<Game2048>("2048-v0", "Slide and merge the tiles of the game 2048; with action masks.")
        .fps(4),
    Entry::new::<ConnectFour>(
        "ConnectFour-v0",
        "Get four stones in a row against a random, greedy or minimax opponent; with action masks.",
    )
    .fps(2),
];

/// Errors unless the option `name` of `id` is in its range.
///
/// # Errors
/// [`Error::OptionValue`].
fn check_range(id: &str, name: &str, value: u32, range: RangeInclusive<u32>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    Err(Error::OptionValue(format!("{id}: {name} is {value}, and must be from {least} to {most}")))
}

#[cfg(test)]
mod tests {
    use envcore::Discrete;

    use super::*;
    use crate::damaged::survives;

    #[test]
    fn a_state_that_no_episode_has_is_refused() {
        survives::<Catch>(&[Discrete(2)], 0);
        survives::<Snake>(&[Discrete(1)], 0);
        survives::<Game2048>(&[Discrete(0)], 0);
        survives::<ConnectFour>(&[Discrete(3)], 0);
    }

    #[test]
    fn what_is_out_of_range_is_refused_by_name() {
        let text = check_range("E-v0", "n", 9, 2..=8).unwrap_err().to_string();
        assert!(text.contains("E-v0: n is 9, and must be from 2 to 8"), "{text}");
        check_range("E-v0", "n", 8, 2..=8).unwrap();
    }
}
