//! The state of a vec env, and the call that has it.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use envcore::Batch;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::VecEnv;
use crate::actions::GivenActions;
use crate::assemble::Assembler;
use crate::closing::Closing;
use crate::errors::{self, failed};
use crate::interpreter::{Visit, detach, enter};

pub(super) struct HeldState {
    pub(super) envs: Box<dyn envcore::VecEnv>,
    pub(super) assembler: Assembler,
    pub(super) given: GivenActions,
    /// What is in flight was left there by a call that Ctrl-C ended.
    pub(super) interrupted: bool,
    pub(super) closing: Arc<Closing>,
}

impl Drop for HeldState {
    fn drop(&mut self) {
        let envs = &mut self.envs;
        // Ending threads may take a moment: not with the GIL in hand.
        let _ = enter(|py| errors::beside(py, || detach(py, || envs.close())));
    }
}

thread_local! {
    /// Its address is a number that no other thread has.
    static HERE: u8 = const { 0 };
}

/// This thread's number.
pub(super) fn this_thread() -> usize {
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

/// The state, while a call has it.
pub(super) struct Held<'a> {
    pub(super) of: &'a VecEnv,
    /// `None` only while it is given up.
    pub(super) state: Option<MutexGuard<'a, HeldState>>,
    pub(super) _visit: Visit,
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
    /// What `assemble` makes of the batch; an exception that carries it where
    /// slots failed.
    pub(super) fn finish<'py>(
        &self,
        py: Python<'py>,
        mut batch: Box<Batch>,
        assemble: impl FnOnce(&Assembler, Python<'py>, Box<Batch>) -> PyResult<Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let failures = std::mem::take(&mut batch.failures);
        // Of a signal's handler that closed these envs and ended the program, in the
        // midst of an env's own code.
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
