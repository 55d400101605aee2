//! Plain data in the form in which processes send it: arrays, numbers, texts, and tuples of
//! these, named tuples (a graph) included.
//!
//! Pickle takes 2 to 3 µs for every array at each end. In this form an array is its dtype,
//! shape and bytes. An object that is not plain in all its parts is left to pickle, and
//! [`pack`] says so.

use envcore::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};

use crate::array;

/// How deep tuples may be nested.
const MAX_DEPTH: usize = 16;

/// The byte that says what follows.
#[repr(u8)]
enum Mark {
    None = 0,
    False = 1,
    True = 2,
    Int = 3,
    Float = 4,
    Text = 5,
    Tuple = 6,
    Graph = 7,
    Array = 8,
}

/// The class `gymnasium.spaces.GraphInstance`.
fn graph(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static GRAPH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GRAPH.import(py, "gymnasium.spaces", "GraphInstance")
}

/// Appends the bytes of an object to `bytes`; `false` where the object is not plain.
pub(crate) fn pack(object: &Bound<'_, PyAny>, bytes: &mut Vec<u8>) -> PyResult<bool> {
    pack_to(object, bytes, 0)
}

fn pack_to(object: &Bound<'_, PyAny>, bytes: &mut Vec<u8>, depth: usize) -> PyResult<bool> {
    if depth > MAX_DEPTH {
        return Ok(false);
    }
    if let Ok(array) = object.cast_exact::<PyUntypedArray>() {
        return Ok(pack_array(array, bytes));
    }
    if object.is_none() {
        bytes.push(Mark::None as u8);
    } else if let Ok(truth) = object.cast_exact::<PyBool>() {
        bytes.push(if truth.is_true() { Mark::True } else { Mark::False } as u8);
    } else if let Ok(float) = object.cast_exact::<PyFloat>() {
        bytes.push(Mark::Float as u8);
        bytes.extend(float.value().to_le_bytes());
    } else if let Ok(int) = object.cast_exact::<PyInt>() {
        let Ok(int) = int.extract::<i64>() else { return Ok(false) };
        bytes.push(Mark::Int as u8);
        bytes.extend(int.to_le_bytes());
    } else if let Ok(text) = object.cast_exact::<PyString>() {
        let Ok(text) = text.extract::<String>() else { return Ok(false) };
        bytes.push(Mark::Text as u8);
        pack_len(text.len(), bytes);
        bytes.extend(text.as_bytes());
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        let mark = if object.is_exact_instance_of::<PyTuple>() {
            Mark::Tuple
        } else if object.get_type().is(graph(object.py())?) {
            Mark::Graph
        } else {
            return Ok(false);
        };
        bytes.push(mark as u8);
        pack_len(tuple.len(), bytes);
        for item in tuple.iter_borrowed() {
            if !pack_to(&item, bytes, depth + 1)? {
                return Ok(false);
            }
        }
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn pack_len(n: usize, bytes: &mut Vec<u8>) {
    bytes.extend((n as u64).to_le_bytes());
}

fn pack_array(array: &Bound<'_, PyUntypedArray>, bytes: &mut Vec<u8>) -> bool {
    // An array without axes could come back as a scalar.
    let (Some(dtype), true) = (array::dtype_of(array), array.ndim() > 0) else { return false };
    let Some(elements) = array::bytes(array) else { return false };
    let name = dtype.name().as_bytes();
    bytes.reserve(elements.len() + 64);
    bytes.extend([Mark::Array as u8, name.len() as u8]);
    bytes.extend(name);
    pack_len(array.ndim(), bytes);
    array.shape().iter().for_each(|&n| pack_len(n, bytes));
    bytes.extend(elements);
    true
}

/// The object of which `pack` gave these bytes; `None` for any other bytes.
pub(crate) fn unpack<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut reader = PlainReader(bytes);
    let object = reader.object(py, 0)?;
    Ok(object.filter(|_| reader.0.is_empty()))
}

struct PlainReader<'a>(&'a [u8]);

impl<'a> PlainReader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<[u8; 8]> {
        self.take(8)?.try_into().ok()
    }

    fn len(&mut self) -> Option<usize> {
        self.word().and_then(|word| u64::from_le_bytes(word).try_into().ok())
    }

    fn object<'py>(&mut self, py: Python<'py>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        if depth > MAX_DEPTH {
            return Ok(None);
        }
        let Some([mark]) = self.take(1) else { return Ok(None) };
        let mark = *mark;
        Ok(if mark == Mark::None as u8 {
            Some(py.None().into_bound(py))
        } else if mark == Mark::False as u8 || mark == Mark::True as u8 {
            Some(PyBool::new(py, mark == Mark::True as u8).to_owned().into_any())
        } else if mark == Mark::Int as u8 {
            self.word().map(|word| PyInt::new(py, i64::from_le_bytes(word)).into_any())
        } else if mark == Mark::Float as u8 {
            self.word().map(|word| PyFloat::new(py, f64::from_le_bytes(word)).into_any())
        } else if mark == Mark::Text as u8 {
            let text = self.len().and_then(|n| self.take(n)).and_then(|text| std::str::from_utf8(text).ok());
            text.map(|text| PyString::new(py, text).into_any())
        } else if mark == Mark::Tuple as u8 || mark == Mark::Graph as u8 {
            let Some(items) = self.items(py, depth)? else { return Ok(None) };
            let items = PyTuple::new(py, items)?;
            if mark == Mark::Graph as u8 {
                Some(graph(py)?.call_method1(intern!(py, "_make"), (items,))?)
            } else {
                Some(items.into_any())
            }
        } else if mark == Mark::Array as u8 {
            let Some((dtype, shape, elements)) = self.array() else { return Ok(None) };
            Some(array::copy_of(py, &array::descr(py, dtype)?, &shape, elements)?)
        } else {
            None
        })
    }

    fn items<'py>(&mut self, py: Python<'py>, depth: usize) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(n) = self.len() else { return Ok(None) };
        let mut items = Vec::new();
        for _ in 0..n {
            let Some(item) = self.object(py, depth + 1)? else { return Ok(None) };
            items.push(item);
        }
        Ok(Some(items))
    }

    fn array(&mut self) -> Option<(DType, Vec<usize>, &'a [u8])> {
        let [n] = *self.take(1)? else { return None };
        let dtype = DType::from_name(std::str::from_utf8(self.take(n.into())?).ok()?)?;
        let axes = self.len()?;
        let shape = (0..axes).map(|_| self.len()).collect::<Option<Vec<_>>>()?;
        let size = shape.iter().try_fold(dtype.size(), |size, &n| size.checked_mul(n))?;
        Some((dtype, shape, self.take(size)?))
    }
}
