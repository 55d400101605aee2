//! The config of a vec env.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::space::ActionBounds;

/// The most slots of a vec env: more than any machine steps, and few enough to count without
/// overflow.
pub const MAX_SLOTS: usize = 1 << 24;
/// The most threads that a runner starts.
pub const MAX_THREADS: usize = 1024;
/// The most frames that are stacked.
pub const MAX_FRAMES: usize = 1 << 16;

/// What happens after an episode's last step; Gymnasium's three modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum AutoresetMode {
    /// The last step shows the final observation. The next step ignores its action and shows
    /// the new episode's first observation, with reward 0.
    #[default]
    NextStep,
    /// The last step shows the new episode's first observation. The final observation is in
    /// [`Batch::finals`](crate::Batch::finals).
    SameStep,
    /// The last step shows the final observation. The slot must be reset before it is stepped
    /// again.
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

/// The config of a vec env that a runner makes from a source.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct VecConfig {
    /// The number of slots.
    pub num_slots: usize,
    /// Slot i is built from `seed + i`; with `None` the system gives the seeds.
    pub seed: Option<i64>,
    /// What happens after an episode's last step; `None` for the source's only mode, or else
    /// the default.
    pub autoreset: Option<AutoresetMode>,
    /// Truncates episodes after this many steps; `None` for no limit.
    pub max_episode_steps: Option<u64>,
    /// Adds `episode.r`, `episode.l` and `episode.t` to the infos of rows that
    /// end an episode.
    pub episode_statistics: bool,
    /// What happens to finite actions outside their bounds.
    pub action_bounds: ActionBounds,
    /// Whether every observation, reward and info is held to its space. A slot that shows
    /// anything else fails, as if its env had returned an error.
    pub debug: bool,
    /// In `SameStep`, the slots whose last picture of an episode is told with their last infos, as
    /// [`FINAL_FRAME`](crate::FINAL_FRAME); in ascending order.
    pub final_frames: Vec<usize>,
    /// How many threads step slots; `None` for as many as there are cores. The caller of
    /// `step` is one of these threads.
    pub num_threads: Option<usize>,
    /// How many rows a `recv` waits for. Every slot then runs by itself in the background. With
    /// `None` all slots step together.
    pub batch_size: Option<usize>,
    /// How long an env may take for one call. After this time its slot is lost and its thread
    /// given up. `None` for no limit.
    pub timeout: Option<Duration>,
    /// How long an env may take for a call that resets it; `None` for the limit of `timeout`. A
    /// step in `SameStep`, which may do both, has the longer of the two limits.
    pub reset_timeout: Option<Duration>,
    /// Binds thread k to the k-th core after this one, among those that are allowed.
    pub thread_affinity_offset: Option<usize>,
}

impl VecConfig {
    /// Whether any call of an env has a time limit.
    pub(crate) fn is_timed(&self) -> bool {
        self.timeout.is_some() || self.reset_timeout.is_some()
    }
}
