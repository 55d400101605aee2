//! The state of a vec env, and the call that uses it.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use envcore::{Batch, LastShown, StepPools};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::VecEnv;
use crate::actions::GivenActions;
use crate::assemble::Assembler;
use crate::closing::Closing;
use crate::errors::{self, OrRaise, failed};
use crate::interpreter::{TimeInPython, detach, enter};

/// How long `close` waits for another thread's call to end. After that, the call closes the
/// vec env when it ends.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct HeldState {
    pub(super) envs: Box<dyn envcore::VecEnv>,
    pub(super) assembler: Assembler,
    pub(super) given: GivenActions,
    /// The memory of rollouts.
    pub(super) step_pools: StepPools,
    /// How many calls there were, those of rollouts apart.
    pub(super) calls: u64,
    /// What the last rollout's envs show, and `calls` then: they still show it where no call came
    /// in between.
    pub(super) last_shown: Option<(u64, LastShown)>,
    /// Whether the slots in flight were left so by a call that Ctrl-C ended.
    pub(super) interrupted: bool,
    pub(super) closing: Arc<Closing>,
}

impl Drop for HeldState {
    fn drop(&mut self) {
        let envs = &mut self.envs;
        // Ending threads may take a moment, so the GIL is released.
        let _ = enter(|py| errors::beside(py, || detach(py, || envs.close())));
    }
}

thread_local! {
    /// A byte whose address is a number that no other thread has.
    static HERE: u8 = const { 0 };
}

/// This thread's number.
pub(super) fn this_thread() -> usize {
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

/// The state while a call uses it.
pub(super) struct Held<'a> {
    pub(super) of: &'a VecEnv,
    /// `None` only while the state is being released.
    pub(super) state: Option<MutexGuard<'a, HeldState>>,
    pub(super) _time: TimeInPython,
}

impl Deref for Held<'_> {
    type Target = HeldState;

    fn deref(&self) -> &HeldState {
        self.state.as_ref().expect("it is held")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut HeldState {
        self.state.as_mut().expect("it is held")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.of.holder.store(0, Ordering::Relaxed);
        self.state = None;
        if self.of.closing.is_asked() {
            self.of.close_for_others();
        }
    }
}

impl HeldState {
    /// The result of `assemble` for the batch; where slots failed, an exception that carries
    /// the result.
    pub(super) fn finish<'py>(
        &self,
        py: Python<'py>,
        mut batch: Box<Batch>,
        assemble: impl FnOnce(&Assembler, Python<'py>, Box<Batch>) -> PyResult<Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let failures = std::mem::take(&mut batch.failures);
        // A signal's handler may have closed these envs and ended the program while an env's own
        // code ran; then the exit is raised.
        if self.closing.is_asked()
            && let Some(exit) = errors::exit_among(py, &failures)
        {
            return Err(exit);
        }
        let result = assemble(&self.assembler, py, batch)?;
        if failures.is_empty() {
            return Ok(result);
        }
        Err(failed(py, &failures, Some(result.into_any().unbind())))
    }
}

impl VecEnv {
    /// Closes the vec env whose state this thread holds.
    pub(super) fn close_held(&self, py: Python<'_>, mut state: Held<'_>) -> PyResult<()> {
        self.closing.begin();
        let envs = &mut state.envs;
        let closed = detach(py, || envs.close());
        self.closing.finish();
        closed.or_raise(py)
    }

    /// Closes the vec env if a close was asked for and nobody waits for the state any more.
    pub(super) fn close_for_others(&self) {
        // A close that gives up waiting either gets the state after all, or is counted out
        // before this check.
        if self.closers.load(Ordering::SeqCst) > 0 {
            return;
        }
        let Some(state) = self.try_hold() else { return };
        self.closing.begin();
        enter(|py| {
            errors::beside(py, || {
                if let Err(error) = self.close_held(py, state) {
                    error.write_unraisable(py, None);
                }
            })
        });
    }

    /// The state, once the call that uses it releases it; `None` where that takes too long.
    pub(super) fn await_state(&self, py: Python<'_>) -> PyResult<Option<Held<'_>>> {
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            if let Some(state) = self.try_hold() {
                return Ok(Some(state));
            }
            detach(py, || std::thread::sleep(Duration::from_millis(1)));
            py.check_signals()?;
        }
        Ok(None)
    }
}
