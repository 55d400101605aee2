//! What `corral.managers` does once for each env and step: arrays in leaves of bytes, and the
//! timesteps of a batch.
//!
//! `corral.managers.parcel` says what else such leaves hold.

use envcore::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyTuple, PyType};
use smallvec::SmallVec;

use crate::array;

/// The first byte of a leaf that holds an array. Pickles begin with a larger byte.
const ARRAY: u8 = 1;
/// The bytes before an array's own: `ARRAY`, the dtype, the number of axes, a zero, and the axes.
const HEADER: usize = 16;
/// The most axes of an array in a leaf.
const AXES: usize = 3;

/// The leaves, `(len(arrays), size)`, of arrays of one dtype and one shape; `None` of others, and of
/// arrays that do not fit.
#[pyfunction]
pub(crate) fn pack_arrays<'py>(
    arrays: &Bound<'py, PyList>,
    size: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = arrays.py();
    let mut bytes: SmallVec<[u8; 2048]> = SmallVec::with_capacity(arrays.len() * size);
    let mut first: Option<(DType, SmallVec<[usize; AXES]>)> = None;
    for (row, given) in arrays.iter().enumerate() {
        let Some(array) = given.cast::<PyUntypedArray>().ok().filter(|array| array::is_plain(array)) else {
            return Ok(None);
        };
        let Some(dtype) = array::dtype_of(array) else { return Ok(None) };
        let (dtype, shape) = first.get_or_insert_with(|| (dtype, array.shape().into()));
        let fits = array.shape() == &shape[..] && shape.len() <= AXES;
        if !fits || array::dtype_of(array) != Some(*dtype) {
            return Ok(None);
        }
        bytes.extend([ARRAY, *dtype as u8, shape.len() as u8, 0]);
        for axis in 0..AXES {
            let Ok(extent) = u32::try_from(shape.get(axis).copied().unwrap_or(0)) else { return Ok(None) };
            bytes.extend(extent.to_ne_bytes());
        }
        let Some(own) = array::bytes(array).filter(|own| HEADER + own.len() <= size) else {
            return Ok(None);
        };
        bytes.extend_from_slice(&own);
        bytes.resize((row + 1) * size, 0);
    }
    array::copy_of(py, array::known(py, DType::U8)?, &[arrays.len(), size], &bytes).map(Some)
}

/// The array in a leaf, which is the caller's own; `None` where the leaf holds none.
#[pyfunction]
pub(crate) fn unpack_array<'py>(leaf: &Bound<'py, PyUntypedArray>) -> PyResult<Option<Bound<'py, PyAny>>> {
    array_in(leaf.py(), &array::bytes(leaf).unwrap_or_default())
}

/// The array in the bytes of a leaf; `None` where the leaf holds none.
pub(crate) fn array_in<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some((&[ARRAY, dtype, axes, _], rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let Some(&dtype) = DType::ALL.get(dtype as usize).filter(|_| axes as usize <= AXES) else {
        return Ok(None);
    };
    let Some((shape, rest)) = rest.split_first_chunk::<{ HEADER - 4 }>() else { return Ok(None) };
    let shape: SmallVec<[usize; AXES]> = shape
        .chunks_exact(4)
        .take(axes as usize)
        .map(|extent| u32::from_ne_bytes(extent.try_into().expect("four bytes")) as usize)
        .collect();
    let size = shape.iter().try_fold(dtype.size(), |size, &extent| size.checked_mul(extent));
    let Some(own) = size.and_then(|size| rest.get(..size)) else { return Ok(None) };
    if dtype == DType::Bool && own.iter().any(|&byte| byte > 1) {
        return Ok(None);
    }
    array::copy_of(py, array::known(py, dtype)?, &shape, own).map(Some)
}

/// A `class_`, which is a named tuple of `(obs, reward, done, info)`, of each row of a batch of which
/// no row was truncated and no leaf of `leaves` holds a pickle; `None` of other batches.
///
/// Observations are views of `observations`, which has at least two axes, or `copies`. Rewards have the forms that
/// their leaves begin with. Infos are empty.
#[pyfunction]
pub(crate) fn timesteps<'py>(
    class_: &Bound<'py, PyType>,
    copies: bool,
    observations: &Bound<'py, PyUntypedArray>,
    leaves: &Bound<'py, PyUntypedArray>,
    rewards: &Bound<'py, PyUntypedArray>,
    terminations: &Bound<'py, PyUntypedArray>,
    truncations: &Bound<'py, PyUntypedArray>,
) -> PyResult<Option<Bound<'py, PyList>>> {
    let py = class_.py();
    let forms = array::first_bytes(leaves);
    let numbers = array::bytes(rewards).unwrap_or_default();
    let ends = array::bytes(terminations).unwrap_or_default();
    let are_cut = array::bytes(truncations).is_none_or(|cut| cut.contains(&1));
    let rows = forms.len();
    let fits = observations.ndim() >= 2
        && observations.shape()[0] == rows
        && ends.len() == rows
        && numbers.len() == 8 * rows
        && array::dtype_of(rewards) == Some(DType::F64);
    if are_cut || !fits || forms.iter().any(|&form| form > DOUBLE) {
        return Ok(None);
    }
    let made = PyList::empty(py);
    for (row, number) in numbers.chunks_exact(8).enumerate() {
        let number = f64::from_ne_bytes(number.try_into().expect("eight bytes"));
        let reward = match forms[row] {
            SINGLE => {
                array::copy_of(py, array::known(py, DType::F32)?, &[1], &(number as f32).to_ne_bytes())?
            }
            DOUBLE => array::copy_of(py, array::known(py, DType::F64)?, &[1], &number.to_ne_bytes())?,
            _ => PyFloat::new(py, number).into_any(),
        };
        let done = PyBool::new(py, ends[row] != 0).to_owned().into_any();
        let copy = if copies { array::copy_of_row(observations, row)? } else { None };
        let observation = match copy {
            Some(copy) => copy,
            None if copies => return Ok(None),
            None => observations.as_any().get_item(row)?,
        };
        let parts = [observation, reward, done, PyDict::new(py).into_any()];
        made.append(named_tuple(class_, parts)?)?;
    }
    Ok(Some(made))
}

/// A tuple of the class `class`. To call `tuple.__new__` takes three times as long.
#[allow(unsafe_code)]
fn named_tuple<'py, const N: usize>(
    class: &Bound<'py, PyType>,
    items: [Bound<'py, PyAny>; N],
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    if !class.is_subclass_of::<PyTuple>()? {
        return Err(PyTypeError::new_err(format!("{class} is no class of tuples")));
    }
    // SAFETY: the class is one of tuples (checked), so that the new object has room for `N` items, which
    // are null. Nobody else has the object, therefore its items can be set. PyTuple_SetItem takes over
    // one reference, whether it succeeds or not.
    unsafe {
        let made = ffi::PyType_GenericAlloc(class.as_type_ptr(), N as ffi::Py_ssize_t);
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        for (place, item) in items.into_iter().enumerate() {
            if ffi::PyTuple_SetItem(made.as_ptr(), place as ffi::Py_ssize_t, item.into_ptr()) < 0 {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(made)
    }
}

/// What leaves of float32 and of float64 rewards of shape (1,) begin with.
const SINGLE: u8 = 1;
const DOUBLE: u8 = 2;
