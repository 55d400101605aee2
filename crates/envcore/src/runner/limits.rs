//! How long an env may take for one call.

use std::fmt;
use std::time::Duration;

use crate::vec_config::{AutoresetMode, VecConfig};

/// A time limit, and the option that set it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) time: Duration,
    option: &'static str,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer within {:?} ({})", self.time, self.option)
    }
}

/// The time limits of a vec env.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    step: Option<Limit>,
    reset: Option<Limit>,
}

impl Limits {
    /// The limits that `config` sets. In `mode` `SameStep` a step may reset the env
    /// too, so a step has the longer of both limits.
    pub(crate) fn new(config: &VecConfig, mode: AutoresetMode) -> Self {
        let limit = |time: Option<Duration>, option| time.map(|time| Limit { time, option });
        let step = limit(config.timeout, "timeout");
        let reset = limit(config.reset_timeout, "reset_timeout").or(step);
        let longer = |step: Limit| reset.filter(|reset| reset.time > step.time).unwrap_or(step);
        let step = if mode == AutoresetMode::SameStep { step.map(longer) } else { step };
        Limits { step, reset }
    }

    /// Whether there is any limit.
    pub(crate) fn any(&self) -> bool {
        self.reset.is_some()
    }

    /// The limit of a call, which resets the env or does not.
    pub(crate) fn of(&self, is_reset: bool) -> Option<Limit> {
        if is_reset { self.reset } else { self.step }
    }

    /// The limit of a call that may be of either kind.
    pub(crate) fn longest(&self) -> Option<Limit> {
        let (step, reset) = (self.step?, self.reset?);
        Some(if step.time > reset.time { step } else { reset })
    }

    /// The shortest limit; zero where there is none.
    pub(crate) fn shortest(&self) -> Duration {
        [self.step, self.reset].into_iter().flatten().map(|limit| limit.time).min().unwrap_or_default()
    }
}
