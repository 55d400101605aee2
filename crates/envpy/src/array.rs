//! NumPy arrays over the core's memory, and the bytes of NumPy arrays for the core.
//!
//! The base of an array is the lease of its memory. When the last array or view is gone, the
//! base is dropped and the memory goes back to its pool.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;

use envcore::simd::{self, LateStores};
use envcore::{DType, Fixed, Lease, Row};
use numpy::npyffi::{self, NPY_ARRAY_CARRAY, PY_ARRAY_API, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use smallvec::SmallVec;

/// The most axes of any NumPy; a NumPy before 2.0 refuses more than 32.
const MAX_AXES: usize = 64;

/// As many axes as most arrays have.
const FEW_AXES: usize = 4;

/// The base of an array: a capsule that holds the lease. A Python class would cost twice as
/// much.
fn base_of(py: Python<'_>, lease: Lease) -> PyResult<Bound<'_, PyAny>> {
    /// Drops the lease in `capsule`.
    ///
    /// # Safety
    /// Only Python may call this function, once, with a capsule that `base_of` made.
    unsafe extern "C" fn give_back(capsule: *mut ffi::PyObject) {
        // SAFETY: the capsule holds both halves of a lease, which nobody else has. Dropping
        // the lease neither panics nor touches Python.
        unsafe {
            let first = ffi::PyCapsule_GetPointer(capsule, ptr::null());
            drop(Lease::from_raw((first, ffi::PyCapsule_GetContext(capsule))));
        }
    }
    let (first, second) = lease.into_raw();
    // SAFETY: the first half is not null. Where there is no capsule, nobody else has the
    // halves. The capsule gets the second half before anyone else sees the capsule, and then
    // the destructor.
    unsafe {
        let capsule = ffi::PyCapsule_New(first, ptr::null(), None);
        let Some(capsule) = Bound::from_owned_ptr_or_opt(py, capsule) else {
            drop(Lease::from_raw((first, second)));
            return Err(PyErr::fetch(py));
        };
        ffi::PyCapsule_SetContext(capsule.as_ptr(), second);
        ffi::PyCapsule_SetDestructor(capsule.as_ptr(), Some(give_back));
        Ok(capsule)
    }
}

/// The NumPy dtype of an element type, whose elements have the same size and are no objects.
pub(crate) struct Descr {
    numpy: Py<PyArrayDescr>,
    dtype: DType,
    /// `numpy.ndarray`, which NumPy's table of functions gives more slowly.
    array_type: Py<PyType>,
}

impl Descr {
    pub(crate) fn bind<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyArrayDescr> {
        self.numpy.bind(py)
    }
}

/// The NumPy dtype of an element type.
pub(crate) fn descr(py: Python<'_>, dtype: DType) -> PyResult<Descr> {
    let numpy = PyArrayDescr::new(py, dtype.name())?;
    assert!(!numpy.has_object() && numpy.itemsize() == dtype.size());
    Ok(Descr { numpy: numpy.unbind(), dtype, array_type: PyUntypedArray::type_object(py).unbind() })
}

/// The NumPy dtype of an element type, made once.
pub(crate) fn known(py: Python<'_>, dtype: DType) -> PyResult<&'static Descr> {
    static ALL: PyOnceLock<Vec<Descr>> = PyOnceLock::new();
    let made = || DType::ALL.into_iter().map(|dtype| descr(py, dtype)).collect();
    Ok(&ALL.get_or_try_init(py, made)?[dtype as usize])
}

/// An array of `shape` over a column's memory, which the array then owns.
///
/// # Panics
/// Where `shape` has not as many elements as the column, or `descr` is that of another
/// dtype.
pub(crate) fn over<'py>(
    py: Python<'py>,
    column: Fixed,
    descr: &Descr,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let elements = shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent));
    assert!(elements == Some(column.rows() * column.elements()));
    assert!(descr.dtype == column.dtype());
    let lease = column.into_lease();
    let data = lease.as_ptr();
    let base = base_of(py, lease)?;
    // SAFETY: `data` points to an aligned block with room for `shape` of elements as large
    // as `descr`'s, which are no objects (checked). The block lives as long as `base`, which
    // becomes the array's base. Where the array cannot be made, `base` is dropped and gives
    // the block back. SetBaseObject takes over one reference, whether it succeeds or not.
    unsafe {
        let array = new_array(py, descr, shape, data.cast(), NPY_ARRAY_CARRAY)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base.into_ptr()) < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

/// A new array of `shape` with a copy of `bytes`, which are elements of `descr`.
pub(crate) fn copy_of<'py>(
    py: Python<'py>,
    descr: &Descr,
    shape: &[usize],
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let size = shape.iter().try_fold(descr.dtype.size(), |n, &extent| n.checked_mul(extent));
    assert!(size == Some(bytes.len()));
    let size = bytes.len();
    // SAFETY: without data of its caller's, the array has `size` bytes of its own, which
    // nobody else has seen.
    unsafe {
        let array = new_array(py, descr, shape, ptr::null_mut(), 0)?;
        let data = (*array.as_ptr().cast::<npyffi::PyArrayObject>()).data.cast::<u8>();
        ptr::copy_nonoverlapping(bytes.as_ptr(), data, size);
        Ok(array)
    }
}

/// A new array of `shape` and `descr` of zeros, except for `rows`, which are given by a
/// row's number and bytes. All other rows take no memory if the system lends pages of
/// zeros.
pub(crate) fn sparse<'py, 'a>(
    py: Python<'py>,
    descr: &Descr,
    shape: &[usize],
    rows: impl Iterator<Item = (usize, &'a [u8])>,
) -> PyResult<Bound<'py, PyAny>> {
    static ZEROS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let array = ZEROS.import(py, "numpy", "zeros")?.call1((PyTuple::new(py, shape)?, &descr.numpy))?;
    let array = array.cast_into::<PyUntypedArray>()?;
    let n = shape[1..].iter().product::<usize>() * descr.dtype.size();
    assert!(array.shape() == shape);
    // SAFETY: the array is new, nobody else has it, and it holds `shape[0]` adjacent rows of
    // `n` bytes.
    let data = unsafe { (*array.as_array_ptr()).data.cast::<u8>() };
    for (row, bytes) in rows {
        assert!(row < shape[0] && bytes.len() == n);
        // SAFETY: the row is within the array (checked), and `bytes` do not overlap it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.add(row * n), n) };
    }
    Ok(array.into_any())
}

/// An array of `shape` and `descr` over `data`; over memory of its own where `data` is null.
///
/// # Safety
/// `data` must be null, or memory for such an array that lives longer than the array;
/// `flags` must be true of that memory.
unsafe fn new_array<'py>(
    py: Python<'py>,
    descr: &Descr,
    shape: &[usize],
    data: *mut c_void,
    flags: c_int,
) -> PyResult<Bound<'py, PyAny>> {
    let (mut few, mut many);
    let dims: &mut [npy_intp] = if shape.len() <= FEW_AXES {
        few = [0; FEW_AXES];
        &mut few
    } else if shape.len() <= MAX_AXES {
        many = [0; MAX_AXES];
        &mut many
    } else {
        let axes = shape.len();
        return Err(PyValueError::new_err(format!("{axes} axes: NumPy has at most {MAX_AXES}")));
    };
    dims.iter_mut().zip(shape).for_each(|(dim, &n)| *dim = n as npy_intp);
    // SAFETY: `dims` holds all of `shape`, and NewFromDescr takes over one reference to the
    // descr. The caller guarantees the rest.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            descr.array_type.as_ptr().cast(),
            descr.numpy.clone_ref(py).into_ptr().cast(),
            shape.len() as c_int,
            dims.as_mut_ptr(),
            ptr::null_mut(),
            data,
            flags,
            ptr::null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, array)
    }
}

/// The element type of an array, if the core has that type.
pub(crate) fn dtype_of(array: &Bound<'_, PyUntypedArray>) -> Option<DType> {
    let descr = array.dtype();
    if descr.is_native_byteorder() == Some(false) {
        return None;
    }
    Some(match (descr.kind(), descr.itemsize()) {
        (b'b', 1) => DType::Bool,
        (b'u', 1) => DType::U8,
        (b'i', 1) => DType::I8,
        (b'u', 2) => DType::U16,
        (b'i', 2) => DType::I16,
        (b'u', 4) => DType::U32,
        (b'i', 4) => DType::I32,
        (b'u', 8) => DType::U64,
        (b'i', 8) => DType::I64,
        (b'f', 2) => DType::F16,
        (b'f', 4) => DType::F32,
        (b'f', 8) => DType::F64,
        _ => return None,
    })
}

/// A copy of an array's bytes.
pub(crate) type ArrayBytes = SmallVec<[u8; 64]>;

/// The bytes of a C-contiguous array; no bytes for an array that is not contiguous or holds
/// Python objects.
///
/// # Safety
/// While the bytes are used, the GIL must be held and no other Python code may run, because
/// such code may give the array other memory.
pub(crate) unsafe fn bytes_of<'a>(array: &'a Bound<'_, PyUntypedArray>) -> envcore::Bytes<'a> {
    match memory(array) {
        // SAFETY: there are that many bytes for as long as the array has this memory.
        Some((data, size)) => unsafe { envcore::Bytes::shared(data, size) },
        None => (&[0u8; 0]).into(),
    }
}

/// Whether the array's class is NumPy's own and not a subclass, such as a masked array.
pub(crate) fn is_plain(array: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: the object is alive, and the GIL is held.
    unsafe { npyffi::PyArray_CheckExact(array.py(), array.as_ptr()) != 0 }
}

/// Replaces the content of `copy` by a copy of the array's bytes; [`bytes_of`] says which
/// arrays have bytes.
pub(crate) fn read(array: &Bound<'_, PyUntypedArray>, copy: &mut Vec<u8>) {
    copy.clear();
    // SAFETY: the GIL is held until the bytes are copied, and no other Python code runs.
    unsafe { bytes_of(array) }.append_to(copy);
}

/// A copy of the bytes of a C-contiguous array.
///
/// `None` where the array is not contiguous or holds Python objects.
pub(crate) fn bytes(array: &Bound<'_, PyUntypedArray>) -> Option<ArrayBytes> {
    let (data, size) = memory(array)?;
    let mut copy = SmallVec::from_elem(0, size);
    // SAFETY: there are that many bytes, and the copy's memory does not overlap them.
    unsafe { ptr::copy_nonoverlapping(data, copy.as_mut_ptr(), size) }
    Some(copy)
}

/// Writes the bytes `range` of a C-contiguous array, which are numbers of `dtype`, to the
/// next leaf of `row`. Returns the bytes that were written.
///
/// # Panics
/// Where the array has fewer bytes, the leaf has another size, or the dtype is bool, because
/// any bytes are valid numbers but not valid bools.
pub(crate) fn put<'a>(
    array: &Bound<'_, PyUntypedArray>,
    range: Range<usize>,
    dtype: DType,
    row: &'a mut Row<'_>,
) -> &'a [u8] {
    let (data, size) = memory(array).expect("whoever asks has looked");
    assert!(range.start <= range.end && range.end <= size && dtype != DType::Bool);
    envcore::with_element!(dtype, T => {
        let leaf = row.fixed::<T>();
        assert!(size_of_val(leaf) == range.len(), "{} bytes for a leaf of {}", range.len(), size_of_val(leaf));
        // SAFETY: the bytes are within the array (checked), and the leaf has room for as many and
        // does not overlap them. Any bits are a valid number, and numbers are bytes without
        // gaps.
        unsafe {
            ptr::copy_nonoverlapping(data.add(range.start), leaf.as_mut_ptr().cast::<u8>(), range.len());
            std::slice::from_raw_parts(leaf.as_ptr().cast::<u8>(), range.len())
        }
    })
}

/// The bytes of an array that is too large for a CPU core's own caches.
const LARGE: usize = 2 << 20;

/// Copies `given` to the row `row` of `whole`, if both are C-contiguous arrays of NumPy's own class,
/// of one element type that the core has, `given` has as many elements as a row, and the two do not
/// overlap. Returns the stores if it did.
///
/// # Safety
/// The GIL must not be let go of, and nobody may use the row, before the value that is returned is
/// dropped.
pub(crate) unsafe fn put_row(
    whole: &Bound<'_, PyUntypedArray>,
    row: usize,
    given: &Bound<'_, PyUntypedArray>,
) -> Option<LateStores> {
    let ((to, room), (from, size)) = (memory(whole)?, memory(given)?);
    let dtype = dtype_of(whole);
    let is_alike = is_plain(given) && dtype.is_some() && dtype == dtype_of(given);
    let is_row = whole.shape().first().is_some_and(|&rows| row < rows && rows * size == room);
    if !is_alike || !is_row {
        return None;
    }
    // SAFETY: the row is within `whole` (checked).
    let to = unsafe { to.cast_mut().add(row * size) };
    // A policy may return a row of `whole`.
    if from.addr().abs_diff(to.addr()) < size {
        return None;
    }
    // SAFETY: `whole`, whose memory is written to while the GIL is held, has the row, and `given` has
    // as many bytes, which do not overlap it (checked). The elements are of one type, so that any
    // bytes of one are valid in the other. The caller guarantees what is required of the stores.
    Some(unsafe { simd::copy_for_later(from, to, size, room >= LARGE) })
}

/// The address of the elements of a C-contiguous array, and how many bytes they take.
///
/// Other code may write the elements at any time, because NumPy releases the GIL while it
/// writes, and the memory may be shared with other processes. So the reader must copy the
/// elements, make no reference to them, and only check the copy.
fn memory(array: &Bound<'_, PyUntypedArray>) -> Option<(*const u8, usize)> {
    let descr = array.dtype();
    if !array.is_c_contiguous() || descr.has_object() {
        return None;
    }
    // SAFETY: the object is an array, and the GIL is held.
    let data = unsafe { (*array.as_array_ptr()).data.cast::<u8>() };
    Some((data, array.len() * descr.itemsize()))
}
