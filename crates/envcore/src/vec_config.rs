//! What a vec env is made with.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::space::ActionBounds;

/// As many slots as a vec env has at most: more than any machine steps, and few enough
/// to count without overflow.
pub const MAX_SLOTS: usize = 1 << 24;
/// As many threads as a runner starts at most.
pub const MAX_THREADS: usize = 1024;
/// As many frames as are stacked at most.
pub const MAX_FRAMES: usize = 1 << 16;

/// What happens after an episode's last step; Gymnasium's three modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum AutoresetMode {
    /// The last step shows the final observation; the next one ignores its
    /// action and shows the new episode's first, with reward 0.
    #[default]
    NextStep,
    /// The last step shows the new episode's first observation; the final one
    /// is in [`Batch::finals`](crate::Batch::finals).
    SameStep,
    /// The last step shows the final observation; a finished slot must be reset
    /// before it is stepped again.
    Disabled,
}

impl fmt::Display for AutoresetMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AutoresetMode::NextStep => "next_step",
            AutoresetMode::SameStep => "same_step",
            AutoresetMode::Disabled => "disabled",
        })
    }
}

impl FromStr for AutoresetMode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled];
        all.into_iter().find(|mode| mode.to_string() == name).ok_or_else(|| {
            Error::Argument(format!("autoreset_mode is 'next_step', 'same_step' or 'disabled', not '{name}'"))
        })
    }
}

/// How a runner is made of a source.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct VecConfig {
    /// How many slots.
    pub num_slots: usize,
    /// Slot i is built from `seed + i`; `None` for seeds from the system.
    pub seed: Option<i64>,
    /// What happens after an episode's last step; `None` for the default, or
    /// the source's only one.
    pub autoreset: Option<AutoresetMode>,
    /// Truncates episodes after so many steps; `None` for no limit.
    pub max_episode_steps: Option<u64>,
    /// Adds `episode.r`, `episode.l` and `episode.t` to the infos of rows that
    /// end an episode.
    pub episode_statistics: bool,
    /// What happens to finite actions outside their box.
    pub action_bounds: ActionBounds,
    /// How many threads step slots; `None` for as many as there are cores. In a
    /// `step` the caller is one of them.
    pub num_threads: Option<usize>,
    /// That `recv` is to be asked for so few rows at a time: every slot then
    /// runs by itself in the background. `None`: all slots step together.
    pub batch_size: Option<usize>,
    /// How long an env may take for one call: then its slot is lost and its
    /// thread given up. `None`: as long as it likes.
    pub timeout: Option<Duration>,
    /// The same for a call that resets the env; `None`: as `timeout`. A step in
    /// `SameStep`, which may do both, may take the longer of the two.
    pub reset_timeout: Option<Duration>,
    /// Binds thread k to the k-th core after this one, of those allowed.
    pub thread_affinity_offset: Option<usize>,
}

impl VecConfig {
    /// Whether any call of an env has a time limit.
    pub(crate) fn is_timed(&self) -> bool {
        self.timeout.is_some() || self.reset_timeout.is_some()
    }
}
