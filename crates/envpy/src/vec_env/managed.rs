//! What `corral.managers` sends and receives, without the arrays of all rows that other callers are
//! given: for a few small envs those take longer than the rows.

use envcore::{ColumnIn, DType, LeafKind, Slots};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::held::HeldState;
use super::{Maybe, VecEnv};
use crate::assemble::Assembler;
use crate::parcel;

impl VecEnv {
    /// Puts envs in flight with `actions`, which are arrays by env, in leaves of `size` bytes. Returns
    /// whether it did: nothing has moved where the arrays are not of one dtype and one shape.
    pub(super) fn put_arrays(&self, actions: &Bound<'_, PyDict>, size: usize) -> PyResult<bool> {
        let py = actions.py();
        let Some(bytes) = parcel::packed(actions.iter().map(|(_, action)| action), size) else {
            return Ok(false);
        };
        let mut slots = actions.iter().map(|(slot, _)| slot.extract()).collect::<PyResult<Vec<usize>>>()?;
        let shape = [slots.len(), size];
        let are_all =
            slots.len() == self.spec.num_slots && slots.iter().enumerate().all(|(k, &slot)| k == slot);
        let slots = if are_all { Slots::All } else { Slots::List(std::mem::take(&mut slots)) };
        let column = ColumnIn::Fixed { dtype: DType::U8, shape: &shape, bytes: (&bytes[..]).into() };
        let mut state = self.lock(py)?;
        let HeldState { envs, interrupted, .. } = &mut *state;
        self.put_columns(py, (envs, interrupted), &slots, &[column])?;
        Ok(true)
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
        let py = class.py();
        let (state, batch) = self.receive_batch(py, rows, timeout)?;
        let shape = match self.spec.observation.leaves().first().map(|leaf| &leaf.kind) {
            // A row of an array of one axis is no array but a number.
            Some(LeafKind::Fixed(tensor)) if copies || !tensor.shape.is_empty() => &tensor.shape,
            _ => return Ok(state.finish(py, batch, Assembler::receive)?.into_any()),
        };
        if !parcel::is_plain(&batch) {
            return Ok(state.finish(py, batch, Assembler::receive)?.into_any());
        }
        Ok(parcel::timesteps(class, batch, shape, copies)?.into_any())
    }
}
