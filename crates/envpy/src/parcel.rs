//! What `corral.managers` does once for each env and step: arrays in leaves of bytes, and the
//! timesteps of a batch.
//!
//! `corral.managers.parcel` says what else such leaves hold.

use envcore::{Batch, Column, DType, RowKind};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyTuple, PyType};
use smallvec::SmallVec;

use crate::array;

/// The first byte of a leaf that holds an array. Pickles begin with a larger byte.
const ARRAY: u8 = 1;
/// What a leaf begins with beside a float32 reward of shape (1,).
const SINGLE: u8 = 1;
/// What a leaf begins with beside a float64 reward of shape (1,).
const DOUBLE: u8 = 2;
/// The bytes before an array's own: `ARRAY`, the dtype, the number of axes, a zero, and the axes.
const HEADER: usize = 16;
/// The most axes of an array in a leaf.
const AXES: usize = 3;

/// The bytes of leaves of `size` bytes.
pub(crate) type Leaves = SmallVec<[u8; 2048]>;

/// The leaves of `arrays`, which are of one dtype and one shape; `None` of others, and of arrays that
/// do not fit.
pub(crate) fn packed<'py>(arrays: impl Iterator<Item = Bound<'py, PyAny>>, size: usize) -> Option<Leaves> {
    let mut bytes = Leaves::new();
    let mut first: Option<(DType, SmallVec<[usize; AXES]>)> = None;
    for (row, given) in arrays.enumerate() {
        let array = given.cast::<PyUntypedArray>().ok().filter(|array| array::is_plain(array))?;
        let given_dtype = array::dtype_of(array)?;
        let (dtype, shape) = first.get_or_insert_with(|| (given_dtype, array.shape().into()));
        if given_dtype != *dtype || array.shape() != &shape[..] || shape.len() > AXES {
            return None;
        }
        bytes.extend([ARRAY, given_dtype as u8, shape.len() as u8, 0]);
        for axis in 0..AXES {
            let extent = u32::try_from(shape.get(axis).copied().unwrap_or(0)).ok()?;
            bytes.extend_from_slice(&extent.to_ne_bytes());
        }
        let own = array::bytes(array).filter(|own| HEADER + own.len() <= size)?;
        bytes.extend_from_slice(&own);
        bytes.resize((row + 1) * size, 0);
    }
    Some(bytes)
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

/// Whether [`timesteps`] can be made of the rows of `batch`, whose leaves are an array and what
/// `corral.managers.parcel` calls a parcel: no row failed or was truncated, has infos, or has an object
/// in its parcel.
pub(crate) fn is_plain(batch: &Batch) -> bool {
    let [Column::Fixed(_), Column::Fixed(parcels)] = &batch.observation[..] else { return false };
    if parcels.row_bytes() == 0 {
        return false;
    }
    let is_whole = batch.failures.is_empty() && batch.tolerated.is_empty() && batch.infos.extras.is_empty();
    is_whole
        && !batch.truncated.bytes().contains(&1)
        && parcels.bytes().chunks_exact(parcels.row_bytes()).all(|parcel| parcel[0] <= DOUBLE)
        && batch.kinds.as_slice::<u8>().iter().all(|&kind| kind < RowKind::Failed as u8)
}

/// By env a named tuple `class` of `(obs, reward, done, info)` of each row of a batch that [`is_plain`].
/// Observations, of `shape`, are copies or views of one array.
pub(crate) fn timesteps<'py>(
    class: &Bound<'py, PyType>,
    mut batch: Box<Batch>,
    shape: &[usize],
    copies: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let py = class.py();
    let mut columns = std::mem::take(&mut batch.observation).into_iter();
    let (Some(Column::Fixed(seen)), Some(Column::Fixed(parcels))) = (columns.next(), columns.next()) else {
        unreachable!("the batch is plain");
    };
    let descr = array::known(py, seen.dtype())?;
    let row_bytes = seen.row_bytes();
    let (copied, viewed) = if copies {
        (Some(seen), None)
    } else {
        let whole: SmallVec<[usize; 4]> = [batch.rows()].into_iter().chain(shape.iter().copied()).collect();
        (None, Some(array::over(py, seen, descr, &whole)?))
    };
    let forms = parcels.bytes().chunks_exact(parcels.row_bytes()).map(|parcel| parcel[0]);
    let numbers = batch.reward.as_slice::<f64>();
    let ends = batch.terminated.as_slice::<bool>();
    let made = PyDict::new(py);
    for (row, form) in forms.enumerate() {
        let observation = match (&copied, &viewed) {
            (Some(seen), _) => {
                let bytes = &seen.bytes()[row * row_bytes..(row + 1) * row_bytes];
                array::copy_of(py, descr, shape, bytes)?
            }
            (None, Some(viewed)) => viewed.get_item(row)?,
            (None, None) => unreachable!("it is one or the other"),
        };
        let number = numbers[row];
        let reward = match form {
            SINGLE => {
                array::copy_of(py, array::known(py, DType::F32)?, &[1], &(number as f32).to_ne_bytes())?
            }
            DOUBLE => array::copy_of(py, array::known(py, DType::F64)?, &[1], &number.to_ne_bytes())?,
            _ => PyFloat::new(py, number).into_any(),
        };
        let done = PyBool::new(py, ends[row]).to_owned().into_any();
        let parts = [observation, reward, done, PyDict::new(py).into_any()];
        made.set_item(batch.slots.at(row), named_tuple(class, parts)?)?;
    }
    Ok(made)
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
    // are null. The garbage collector knows of the object and passes over null items. Nobody else has the
    // object, therefore its items can be set. PyTuple_SetItem takes over one reference, whether it
    // succeeds or not. Newer Pythons keep a tuple's hash in it, which is wrong here: `BaseEnvTimestep`,
    // the one class that comes here, has none.
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
