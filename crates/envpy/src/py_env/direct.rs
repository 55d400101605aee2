//! A step without the Python object that hosts an env, where the step is as most are.
//!
//! An env of `corral.managers` is hosted by an object that makes a Gymnasium env of it
//! (`HostedEnv`). That object costs a third of what a small env itself costs. Its class has an
//! attribute `_corral_direct`: after a reset, the env's own `step` and the leaves of both forms of rewards.
//! Where an action is an array in its leaf, `step` is called here. Where the timestep is a tuple of an
//! array that fits, a reward of one float, a bool and an empty dict, it is written here, too. Any
//! other timestep goes through the host's `finish`.

use envcore::{ActRow, DType, Failure, Phase, RowsMut};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

use super::env::failure;
use super::observe;
use super::shape::{Shape, ShapeLeaf};
use crate::interpreter::call_with_one;
use crate::{array, parcel};

/// What the host of an env offers.
pub(super) struct Direct {
    step: Py<PyAny>,
    /// The leaves of rewards of float32 and of float64.
    forms: [Py<PyAny>; 2],
}

/// How a step went.
pub(super) enum Timestep<'py> {
    /// The row is written. This is what the host would have shown.
    Shown(Bound<'py, PyAny>),
    /// The env gave another timestep, with which `finish` goes on.
    Other(Bound<'py, PyAny>),
}

impl Direct {
    /// What `host` offers at present, if its class offers anything.
    pub(super) fn of(host: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Some(direct) = host.getattr_opt(intern!(host.py(), "_corral_direct"))? else { return Ok(None) };
        let offered: Option<(Py<PyAny>, Py<PyAny>, Py<PyAny>)> = direct.extract()?;
        Ok(offered.map(|(step, single, double)| Direct { step, forms: [single, double] }))
    }

    /// Whether hosts of the class of `env` may offer anything.
    pub(super) fn is_offered(env: &Bound<'_, PyAny>) -> PyResult<bool> {
        env.get_type().hasattr(intern!(env.py(), "_corral_direct"))
    }

    /// Plays the action in `action`; `None` where that is no array in a leaf, and nothing has happened.
    pub(super) fn play<'py>(
        &self,
        host: &Bound<'py, PyAny>,
        action: &mut ActRow<'_>,
        shape: &Shape,
        rows: &mut RowsMut<'_>,
        row: usize,
    ) -> Option<Result<Timestep<'py>, Failure>> {
        let py = host.py();
        let fail = |error: PyErr| failure(py, Phase::Step, error);
        let action = parcel::array_in(py, action.bytes()).transpose()?;
        let played = action.and_then(|action| call_with_one(self.step.bind(py), &action));
        let result = match played {
            Ok(result) => result,
            Err(error) => {
                let noted = host.setattr(intern!(py, "has_failed"), true);
                return Some(Err(fail(noted.err().unwrap_or(error))));
            }
        };
        let written = self.write(&result, shape, rows, row).map_err(fail);
        Some(written.map(|shown| shown.map_or(Timestep::Other(result), Timestep::Shown)))
    }

    /// Writes a timestep that is as most are, and returns what the host would have shown.
    fn write<'py>(
        &self,
        result: &Bound<'py, PyAny>,
        shape: &Shape,
        rows: &mut RowsMut<'_>,
        row: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = result.py();
        let [observation_leaf, parcel_leaf] = &shape.parts[..] else { return Ok(None) };
        let Some(result) = result.cast::<PyTuple>().ok().filter(|result| result.len() == 4) else {
            return Ok(None);
        };
        let given = result.get_item(0)?;
        let (Ok(observation), Ok(reward), Ok(done), Ok(info)) = (
            given.cast::<PyUntypedArray>(),
            result.get_borrowed_item(1)?.cast::<PyUntypedArray>().map(|reward| reward.to_owned()),
            result.get_borrowed_item(2)?.cast_exact::<PyBool>().map(|done| done.is_true()),
            result.get_borrowed_item(3)?.cast_exact::<PyDict>().map(|info| info.len()),
        ) else {
            return Ok(None);
        };
        let Some((number, form)) = single(&reward) else { return Ok(None) };
        let ShapeLeaf { tensor: Some((tensor, descr)), .. } = observation_leaf else { return Ok(None) };
        if info > 0 || tensor.dtype == DType::Bool || !observe::is_alike(observation, tensor, descr) {
            return Ok(None);
        }
        let form = self.forms[usize::from(form == DType::F64)].bind(py);
        let parcel_bytes = parcel_leaf.tensor.as_ref().map_or(0, |(tensor, _)| tensor.row_bytes());
        let mut into = rows.observation(row);
        array::put(observation, 0..tensor.row_bytes(), tensor.dtype, &mut into);
        array::put(form.cast()?, 0..parcel_bytes, DType::U8, &mut into);
        rows.set(row, number, done, false);
        let shown = PyDict::new(py);
        shown.set_item(intern!(py, "observation"), observation)?;
        shown.set_item(intern!(py, "parcel"), form)?;
        Ok(Some(shown.into_any()))
    }
}

/// The number in an array of one float of 32 or 64 bits, and its type.
fn single(reward: &Bound<'_, PyUntypedArray>) -> Option<(f64, DType)> {
    if reward.shape() != [1] {
        return None;
    }
    let dtype = array::dtype_of(reward)?;
    let bytes = array::bytes(reward)?;
    match dtype {
        DType::F32 => Some((f64::from(f32::from_ne_bytes(bytes[..].try_into().ok()?)), dtype)),
        DType::F64 => Some((f64::from_ne_bytes(bytes[..].try_into().ok()?), dtype)),
        _ => None,
    }
}
