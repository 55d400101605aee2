//! NumPy arrays over the core's memory, and the core's view of NumPy arrays.
//!
//! An array handed out has the lease of its memory as its base: when the last
//! array or view is gone, so is the base, and the memory goes back to its pool.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;

use envcore::{DType, Fixed, Lease, Row};
use numpy::npyffi::{self, NPY_ARRAY_CARRAY, NpyTypes, PY_ARRAY_API, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

/// As many as any NumPy has; those before 2.0 refuse more than 32.
const MAX_AXES: usize = 64;

/// As many as most arrays have.
const FEW_AXES: usize = 4;

/// The base of an array: a capsule with the memory on loan. A class of our own
/// would cost twice as much.
fn base_of(py: Python<'_>, lease: Lease) -> PyResult<Bound<'_, PyAny>> {
    /// Gives back the lease in `capsule`.
    ///
    /// # Safety
    /// Python calls it, once, with a capsule that `base_of` made.
    unsafe extern "C" fn give_back(capsule: *mut ffi::PyObject) {
        // SAFETY: the capsule holds both halves of a lease, which nobody else
        // has. Dropping it neither panics nor touches Python.
        unsafe {
            let first = ffi::PyCapsule_GetPointer(capsule, ptr::null());
            drop(Lease::from_raw((first, ffi::PyCapsule_GetContext(capsule))));
        }
    }
    let (first, second) = lease.into_raw();
    // SAFETY: the first half is not null. Where there is no capsule, nobody has
    // the halves; it gets the second before anyone else sees it, and then the
    // destructor.
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

/// The NumPy dtype of an element type: numbers of its size, no objects.
pub(crate) struct Descr {
    numpy: Py<PyArrayDescr>,
    dtype: DType,
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
    Ok(Descr { numpy: numpy.unbind(), dtype })
}

/// An array of `shape` over a column's memory, which it owns from now on.
///
/// # Panics
/// Where `shape` has not as many elements as the column, or `descr` is another
/// dtype's.
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
    // SAFETY: `data` points to an aligned block with room for `shape` of elements as
    // large as `descr`'s, which are no objects (checked); the block lives as long as
    // `base`, which becomes the array's base. Where the array cannot be made, `base`
    // is dropped and gives the block back. SetBaseObject takes over one reference,
    // whether it succeeds or not.
    unsafe {
        let array = new_array(py, descr, shape, data.cast(), NPY_ARRAY_CARRAY)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base.into_ptr()) < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

/// A fresh array of `shape` with a copy of `bytes`, elements of `descr`.
pub(crate) fn copy_of<'py>(
    py: Python<'py>,
    descr: &Descr,
    shape: &[usize],
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let size = shape.iter().try_fold(descr.dtype.size(), |n, &extent| n.checked_mul(extent));
    assert!(size == Some(bytes.len()));
    let size = bytes.len();
    // SAFETY: without data of ours the array has `size` bytes of its own, which
    // nobody else has seen.
    unsafe {
        let array = new_array(py, descr, shape, ptr::null_mut(), 0)?;
        let data = (*array.as_ptr().cast::<npyffi::PyArrayObject>()).data.cast::<u8>();
        ptr::copy_nonoverlapping(bytes.as_ptr(), data, size);
        Ok(array)
    }
}

/// A fresh array of `shape` and `descr`, zeros but for `rows`: a row's number and
/// its bytes. Rows that are not given take no memory where the system has zeros to
/// lend.
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
    // SAFETY: the array is new and nobody else's, and holds `shape[0]` rows of `n`
    // bytes, one behind the other.
    let data = unsafe { (*array.as_array_ptr()).data.cast::<u8>() };
    for (row, bytes) in rows {
        assert!(row < shape[0] && bytes.len() == n);
        // SAFETY: as above; `bytes` are no part of it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.add(row * n), n) };
    }
    Ok(array.into_any())
}

/// An array of `shape` and `descr` over `data`, or over memory of its own where
/// that is null.
///
/// # Safety
/// `data` is null, or memory for such an array that outlives it; `flags` are
/// true of it.
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
    // SAFETY: `dims` holds all of `shape`; NewFromDescr takes over one reference
    // to the descr. The rest is the caller's duty.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            npyffi::get_type_object(py, NpyTypes::PyArray_Type),
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

/// The element type of an array, if the core has it.
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

/// Bytes of an array's, copied.
pub(crate) type ArrayBytes = SmallVec<[u8; 64]>;

/// The bytes of a C-contiguous array; none of one that is not contiguous or holds
/// Python objects.
///
/// # Safety
/// While they are used the GIL must be held and no other Python code run: that may
/// give the array other memory.
pub(crate) unsafe fn bytes_of<'a>(array: &'a Bound<'_, PyUntypedArray>) -> envcore::Bytes<'a> {
    match memory(array) {
        // SAFETY: so many bytes are there, as long as the array has this memory.
        Some((data, size)) => unsafe { envcore::Bytes::shared(data, size) },
        None => (&[0u8; 0]).into(),
    }
}

/// Whether it is of NumPy's own class: neither a subclass nor, so, masked.
pub(crate) fn is_plain(array: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: it is an object, and the GIL is held.
    unsafe { npyffi::PyArray_CheckExact(array.py(), array.as_ptr()) != 0 }
}

/// Copies the bytes of an array to `copy`, as [`bytes_of`] has them, in place of
/// what that has.
pub(crate) fn read(array: &Bound<'_, PyUntypedArray>, copy: &mut Vec<u8>) {
    copy.clear();
    // SAFETY: the GIL is held here.
    unsafe { bytes_of(array) }.append_to(copy);
}

/// A copy of the bytes of a C-contiguous array.
///
/// `None` where it is not contiguous or holds Python objects.
pub(crate) fn bytes(array: &Bound<'_, PyUntypedArray>) -> Option<ArrayBytes> {
    let (data, size) = memory(array)?;
    let mut copy = SmallVec::from_elem(0, size);
    // SAFETY: so many bytes are there, and other memory than the copy's.
    unsafe { ptr::copy_nonoverlapping(data, copy.as_mut_ptr(), size) }
    Some(copy)
}

/// Writes bytes `range` of a C-contiguous array, which are numbers of `dtype`, to
/// the next leaf of `row`; what was written.
///
/// # Panics
/// Where the array has not so many bytes, the leaf has another number, or the
/// dtype is bool: any bytes make numbers, but not bools.
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
        // SAFETY: the bytes are within the array (checked), the leaf has room for as
        // many and is other memory. Any bits make a number, and numbers are bytes
        // without gaps.
        unsafe {
            ptr::copy_nonoverlapping(data.add(range.start), leaf.as_mut_ptr().cast::<u8>(), range.len());
            std::slice::from_raw_parts(leaf.as_ptr().cast::<u8>(), range.len())
        }
    })
}

/// Where the elements of a C-contiguous array are, and how many bytes they take.
///
/// Others may write them at any time: NumPy lets go of the GIL while it writes,
/// and the memory may be shared with other processes. So whoever reads them copies
/// them, makes no reference to them, and looks at the copy.
fn memory(array: &Bound<'_, PyUntypedArray>) -> Option<(*const u8, usize)> {
    let descr = array.dtype();
    if !array.is_c_contiguous() || descr.has_object() {
        return None;
    }
    // SAFETY: it is an array, and the GIL is held.
    let data = unsafe { (*array.as_array_ptr()).data.cast::<u8>() };
    Some((data, array.len() * descr.itemsize()))
}
