//! Python envs as a chunk, which are stepped one after the other while the GIL is held
//! once.

use std::ops::Range;
use std::sync::Arc;

use envcore::{
    Begin, Call, Cause, Chunk, Error, Failure, Frame, Phase, ResetArgs, Result, RowsMut, Side, StepArgs,
    Value,
};
use pyo3::prelude::*;

use super::act::Actor;
use super::env::{PyEnv, failure, is_exit, raised};
use super::shape::Shape;
use crate::interpreter::{ENDING, enter, is_ending};

/// What all slots of a source share.
pub(super) struct Common {
    pub(super) observation: Shape,
    pub(super) actor: Actor,
    pub(super) check_nan: bool,
}

pub(super) struct PyChunk {
    pub(super) common: Arc<Common>,
    /// One factory per slot, which makes the slot's env.
    pub(super) factories: Vec<Py<PyAny>>,
    /// `None` where the env failed and is not rebuilt yet.
    pub(super) envs: Vec<Option<PyEnv>>,
}

impl PyChunk {
    /// Closes and drops an env that failed.
    fn lose(&mut self, py: Python<'_>, slot: usize) {
        if let Some(env) = self.envs[slot].take() {
            // An error of this close is ignored, because the env's failure is already reported.
            let _ = env.close(py);
        }
    }

    /// Begins an episode, or shows the env's last observation again.
    fn begin(
        &mut self,
        py: Python<'_>,
        reset: &ResetArgs,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) -> Result<(), Failure> {
        let slot = reset.slot;
        if let Some(seed) = reset.rebuild {
            self.lose(py, slot);
            let built = PyEnv::build(py, &self.factories[slot], reset.seeded.then_some(seed));
            self.envs[slot] = Some(built.map_err(|error| failure(py, Phase::Build, error))?);
        }
        let env = self.envs[slot].as_mut().expect("runners rebuild a slot that failed");
        let how = (&self.common.observation, self.common.check_nan);
        env.begin(py, reset.begin, reset.options.as_deref(), how, (rows, reset.row), side)
    }

    fn with<R>(
        &mut self,
        slot: usize,
        use_it: impl FnOnce(Python<'_>, &mut PyEnv) -> Result<R>,
    ) -> Result<R> {
        enter(|py| match &mut self.envs[slot] {
            Some(env) => use_it(py, env),
            None => Err(Error::NeedsReset(format!("env {slot} is not there until its next reset"))),
        })
        .unwrap_or_else(|| Err(Error::env(ENDING)))
    }
}

impl Drop for PyChunk {
    fn drop(&mut self) {
        // The chunk was never closed if another chunk could not be built.
        self.close();
    }
}

impl Chunk for PyChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let common = self.common.clone();
        let done = enter(|py| {
            let how = (&common.observation, common.check_nan);
            let mut is_stopped = false;
            for slot in slots.clone() {
                if skip[slot] {
                    continue;
                }
                if is_stopped {
                    side.failures.push((slot, Failure::stopped(Phase::Step)));
                    continue;
                }
                if is_ending() {
                    side.failures.push((slot, Failure::new(Phase::Step, Cause::Error, ENDING)));
                    continue;
                }
                let row = slot - slots.start;
                let env = self.envs[slot].as_mut().expect("runners step no slot that failed");
                let played = env.play(py, (&common.actor, &actions, slot), how, rows, row, side);
                if let Err(failure) = played {
                    is_stopped = failure.cause == Cause::Interrupt;
                    side.failures.push((slot, failure));
                    self.lose(py, slot);
                }
            }
        });
        if done.is_none() {
            let gone = |slot| (slot, Failure::new(Phase::Step, Cause::Error, ENDING));
            side.failures.extend(slots.filter(|slot| !skip[*slot]).map(gone));
        }
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        let done = enter(|py| {
            let mut is_stopped = false;
            for reset in resets {
                let begun = if is_stopped && reset.begin != Begin::Keep {
                    Err(Failure::stopped(Phase::Reset))
                } else if is_ending() {
                    Err(Failure::new(Phase::Reset, Cause::Error, ENDING))
                } else {
                    self.begin(py, reset, rows, side)
                };
                if let Err(failure) = begun {
                    is_stopped |= failure.cause == Cause::Interrupt;
                    side.failures.push((reset.slot, failure));
                    self.lose(py, reset.slot);
                }
            }
        });
        if done.is_none() {
            let gone = |reset: &ResetArgs| (reset.slot, Failure::new(Phase::Reset, Cause::Error, ENDING));
            side.failures.extend(resets.iter().map(gone));
        }
    }

    fn final_observation(&mut self, slot: usize) -> Option<Value> {
        let env = self.envs[slot].as_ref()?;
        enter(|py| env.last_of_its_own(py, &self.common.observation)).flatten()
    }

    fn render(&mut self, slot: usize) -> Result<Frame> {
        let frame =
            self.with(slot, |py, env| env.render(py).map_err(|error| raised(py, Phase::Render, error)))?;
        frame.ok_or_else(|| {
            Error::Unsupported(
                "this env's render gives no picture: make it with render_mode=\"rgb_array\"".into(),
            )
        })
    }

    fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        self.with(slot, |py, env| env.call(py, call).map_err(|error| raised(py, Phase::Call, error)))
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        let closed = enter(|py| {
            let mut failures = Vec::new();
            for (slot, env) in self.envs.iter_mut().enumerate() {
                if let Some(env) = env.take()
                    && let Err(error) = env.close(py)
                    && !is_exit(py, &error)
                {
                    failures.push((slot, failure(py, Phase::Close, error)));
                }
            }
            failures
        });
        closed.unwrap_or_default()
    }
}
