//! What `corral.managers` sends and receives, without the arrays of all rows that other callers are
//! given: for a few small envs those take longer than the rows.

use envcore::{Batch, Begin, ColumnIn, DType, LeafKind, Slots, where_true};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyType};

use super::held::HeldState;
use super::{Maybe, VecEnv};
use crate::assemble::Assembler;
use crate::errors::OrRaise;
use crate::parcel;

impl VecEnv {
    /// Puts envs in flight with `actions`, which are arrays by env, in leaves of `size` bytes. Returns
    /// whether it did: nothing has moved where the arrays are not of one dtype and one shape.
    ///
    /// # Errors
    /// Those of [`envcore::VecEnv::send`]: no slot is in flight.
    pub(super) fn put_arrays(
        &self,
        state: &mut HeldState,
        actions: &Bound<'_, PyDict>,
        size: usize,
    ) -> PyResult<bool> {
        let Some(bytes) = parcel::packed(actions.iter().map(|(_, action)| action), size) else {
            return Ok(false);
        };
        let slots = actions.iter().map(|(slot, _)| slot.extract()).collect::<PyResult<Vec<usize>>>()?;
        let shape = [slots.len(), size];
        let column = ColumnIn::Fixed { dtype: DType::U8, shape: &shape, bytes: (&bytes[..]).into() };
        let are_all = slots.len() == self.spec.num_slots && slots.iter().copied().eq(0..slots.len());
        let slots = if are_all { Slots::All } else { Slots::List(slots) };
        let HeldState { envs, interrupted, .. } = state;
        self.put_columns(actions.py(), (envs, interrupted), &slots, &[column])?;
        Ok(true)
    }

    /// Puts envs in flight as [`put_arrays`](Self::put_arrays) does, and waits for all that are. Returns
    /// what [`receive_timesteps`](Self::receive_timesteps) would, or the exception that it would raise;
    /// `False` where nothing has moved. With `again` and a dict as the result, the slots whose episodes
    /// ended are in flight to be reset.
    ///
    /// # Errors
    /// As `put_arrays`.
    pub(super) fn play_arrays<'py>(
        &self,
        actions: &Bound<'py, PyDict>,
        size: usize,
        class: &Bound<'py, PyType>,
        copies: bool,
        again: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = actions.py();
        let mut state = self.lock(py)?;
        if !self.put_arrays(&mut state, actions, size)? {
            return Ok(PyBool::new(py, false).to_owned().into_any());
        }
        self.finish_call(py, &mut state)
            .and_then(|batch| {
                if again && self.has_timesteps(&batch, copies) {
                    self.begin_again(py, &mut state, &batch)?;
                }
                self.timesteps_of(&state, batch, class, copies)
            })
            .or_else(|error| Ok(error.into_value(py).into_bound(py).into_any()))
    }

    /// Receives rows: a dict of timesteps by env where [`parcel::is_plain`] holds, else what `recv`
    /// gives.
    pub(super) fn receive_timesteps<'py>(
        &self,
        class: &Bound<'py, PyType>,
        copies: bool,
        rows: (usize, usize),
        timeout: Maybe<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (state, batch) = self.receive_batch(class.py(), rows, timeout)?;
        self.timesteps_of(&state, batch, class, copies)
    }

    /// Puts the slots whose episodes have ended in flight to begin their next ones.
    fn begin_again(&self, py: Python<'_>, state: &mut HeldState, batch: &Batch) -> PyResult<()> {
        let ended = where_true(batch.terminated.as_slice::<bool>());
        if ended.is_empty() {
            return Ok(());
        }
        let due: Vec<usize> = ended.into_iter().map(|row| batch.slots.at(row)).collect();
        let (begin, envs) = (vec![Begin::Own; due.len()], &mut state.envs);
        self.aside(py, || envs.send_reset(&Slots::List(due), &begin, None)).or_raise(py)
    }

    /// Whether the rows become timesteps here. A row of an array of one axis is no array but a number.
    fn has_timesteps(&self, batch: &Batch, copies: bool) -> bool {
        match self.spec.observation.leaves().first().map(|leaf| &leaf.kind) {
            Some(LeafKind::Fixed(tensor)) => (copies || !tensor.shape.is_empty()) && parcel::is_plain(batch),
            _ => false,
        }
    }

    fn timesteps_of<'py>(
        &self,
        state: &HeldState,
        batch: Box<Batch>,
        class: &Bound<'py, PyType>,
        copies: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.spec.observation.leaves().first().map(|leaf| &leaf.kind) {
            Some(LeafKind::Fixed(tensor)) if self.has_timesteps(&batch, copies) => {
                Ok(parcel::timesteps(class, batch, &tensor.shape, copies)?.into_any())
            }
            _ => Ok(state.finish(class.py(), batch, Assembler::receive)?.into_any()),
        }
    }
}
