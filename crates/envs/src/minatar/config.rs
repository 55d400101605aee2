//! The options, which all games share.

use envcore::{Config, Error, Result};

/// MinAtar's options, the same for every game.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct MinAtarConfig {
    /// The probability, 0 to 1, that a step plays the action of the step before in place of its
    /// own.
    #[option(low = 0, high = 1)]
    pub sticky_action_prob: f64,
    /// Whether the games grow harder as they go on.
    pub difficulty_ramping: bool,
    /// Whether the actions that do nothing in the game are left out; as the id says where it is
    /// none: `-v1` leaves them out, `-v0` has all six.
    pub use_minimal_action_set: Option<bool>,
}

impl Default for MinAtarConfig {
    fn default() -> Self {
        MinAtarConfig { sticky_action_prob: 0.1, difficulty_ramping: true, use_minimal_action_set: None }
    }
}

impl MinAtarConfig {
    /// Whether actions stand for the game's own moves alone.
    pub(super) fn is_minimal(&self) -> bool {
        self.use_minimal_action_set == Some(true)
    }

    /// # Errors
    /// [`Error::OptionValue`] for what is no probability.
    pub(super) fn stickiness(&self) -> Result<f64> {
        let prob = self.sticky_action_prob;
        if (0.0..=1.0).contains(&prob) {
            return Ok(prob);
        }
        Err(Error::OptionValue(format!(
            "MinAtar: sticky_action_prob is {prob}, and is a probability: 0 to 1"
        )))
    }
}
