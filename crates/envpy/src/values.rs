//! Conversion of loose values: of options to the core, and of records and ragged leaves from
//! the core.

use envcore::{Array, DType, Error, Options, Value};
use numpy::{PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::sync::Arc;

use crate::array;
use crate::errors;

/// A Python object that the core passes on and never opens.
pub(crate) struct Opaque(pub(crate) Py<PyAny>);

/// What Python sees of an object that is not Python's.
pub(crate) const FOREIGN: &str = "<an object that is not Python's>";

/// `numpy.generic` and `numpy.asarray`.
static NUMPY: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();

/// How deep lists and dicts may be nested, because a list that holds itself has no end.
const MAX_DEPTH: usize = 64;

/// A Python object as a loose value; an object that the core has no kind for is opaque.
pub(crate) fn from_py(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested_from_py(object, 0)
}

fn nested_from_py(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > MAX_DEPTH {
        let why = format!("a value is nested more than {MAX_DEPTH} deep, or holds itself");
        return Err(crate::errors::to_py(object.py(), Error::Argument(why)));
    }
    if object.is_none() {
        return Ok(Value::None);
    }
    if let Ok(v) = object.cast::<PyBool>() {
        return Ok(Value::Bool(v.is_true()));
    }
    if let Ok(v) = object.cast::<PyInt>() {
        return match v.extract() {
            Ok(v) => Ok(Value::Int(v)),
            Err(_) => Ok(Value::Object(Arc::new(Opaque(object.clone().unbind())))),
        };
    }
    if let Ok(v) = object.cast::<PyFloat>() {
        return Ok(Value::Float(v.extract()?));
    }
    if let Ok(v) = object.cast::<PyString>() {
        let text = v.extract::<String>().map_err(|_| {
            let why = format!("{v:?} holds one half of a character, which is no text");
            errors::to_py(object.py(), Error::Argument(why))
        });
        return Ok(Value::from(text?));
    }
    if let Ok(v) = object.cast::<PyDict>() {
        return Ok(Value::Map(nested_options(v, depth + 1)?));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items = object.try_iter()?.map(|item| nested_from_py(&item?, depth + 1));
        return Ok(Value::List(items.collect::<PyResult<_>>()?));
    }
    if let Ok(array) = object.cast::<PyUntypedArray>()
        && let Some(array) = array_from_py(array)
    {
        return Ok(Value::Array(array));
    }
    // The object may be a NumPy scalar.
    if object.hasattr("dtype")? && object.hasattr("item")? && !object.is_instance_of::<PyUntypedArray>() {
        let item = object.call_method0("item")?;
        if !item.is(object) {
            return nested_from_py(&item, depth + 1);
        }
    }
    Ok(Value::Object(Arc::new(Opaque(object.clone().unbind()))))
}

/// A Python object as a loose value; bytes become an array of uint8.
pub(crate) fn plain(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Value::Array(Array::from_slice(bytes.as_bytes()))),
        Err(_) => from_py(object),
    }
}

/// The value that says as much as a Python object, if the core has kinds for all of it: what keeps
/// its type, or else numbers, texts, lists and dicts in place of what is like them.
pub(crate) fn told(object: &Bound<'_, PyAny>) -> Option<Value> {
    let is_open = |value: &Value| !value.holds_objects();
    faithful(object).ok().filter(is_open).or_else(|| plain(object).ok().filter(is_open))
}

/// A Python object as an opaque value.
pub(crate) fn opaque(object: &Bound<'_, PyAny>) -> Value {
    Value::Object(Arc::new(Opaque(object.clone().unbind())))
}

/// A copy of an object that shares no changeable part with it. An object that cannot be
/// copied is returned itself.
pub(crate) fn deep_copy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static DEEPCOPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    // Most leaves are arrays, and `copy.deepcopy` is slow.
    if let Ok(array) = object.cast_exact::<PyUntypedArray>()
        && !array.dtype().has_object()
    {
        return object.call_method0(intern!(py, "copy"));
    }
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        let items = tuple.iter().map(|item| deep_copy(&item)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    if object.is_exact_instance_of::<PyFloat>() || object.is_exact_instance_of::<PyInt>() {
        return Ok(object.clone());
    }
    let deepcopy = DEEPCOPY.import(py, "copy", "deepcopy")?;
    match deepcopy.call1((object,)) {
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(object.clone()),
        copied => copied,
    }
}

/// A Python object as a loose value that converts back to exactly the same object. Only
/// objects that keep their type become one of the core's kinds.
pub(crate) fn faithful(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    faithful_to(object, 0)
}

fn faithful_to(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::None);
    }
    if let Ok(v) = object.cast_exact::<PyBool>() {
        return Ok(Value::Bool(v.is_true()));
    }
    if let Ok(v) = object.cast_exact::<PyFloat>() {
        return Ok(Value::Float(v.value()));
    }
    if let Ok(v) = object.cast_exact::<PyInt>() {
        return Ok(v.extract().map_or_else(|_| opaque(object), Value::Int));
    }
    if let Ok(v) = object.cast_exact::<PyString>()
        && let Ok(text) = v.extract::<String>()
    {
        return Ok(Value::from(text));
    }
    if depth < MAX_DEPTH
        && let Ok(list) = object.cast_exact::<PyList>()
    {
        let items = list.iter().map(|item| faithful_to(&item, depth + 1));
        return Ok(Value::List(items.collect::<PyResult<_>>()?));
    }
    if depth < MAX_DEPTH
        && let Ok(dict) = object.cast_exact::<PyDict>()
        && dict.keys().iter().all(|key| key.is_exact_instance_of::<PyString>())
    {
        let mut map = Options::new();
        for item in dict.items() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            map.set(key.extract::<String>()?, faithful_to(&value, depth + 1)?);
        }
        return Ok(Value::Map(map));
    }
    if let Some(array) = plain_array(object)? {
        return Ok(Value::Array(array));
    }
    Ok(opaque(object))
}

/// A dict with text keys as options, whose values convert back to exactly what they were.
pub(crate) fn faithful_options(dict: &Bound<'_, PyDict>) -> PyResult<Options> {
    let mut options = Options::new();
    for (key, value) in dict {
        // The values are not opened, so a dict among them stays the caller's own.
        options.set(name_of(&key)?, opaque(&value));
    }
    Ok(options)
}

fn name_of(key: &Bound<'_, PyAny>) -> PyResult<String> {
    key.extract().map_err(|_| {
        let text = format!("option names are strings, not {key:?}");
        crate::errors::to_py(key.py(), Error::ArgumentType(text))
    })
}

/// A copy of an array of numbers; a NumPy scalar becomes an array without axes.
fn plain_array(object: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    let py = object.py();
    if let Ok(array) = object.cast_exact::<PyUntypedArray>() {
        // An array without axes would come back as a scalar.
        return Ok(if array.ndim() == 0 { None } else { array_from_py(array) });
    }
    let numpy = NUMPY.get_or_try_init(py, || -> PyResult<_> {
        let numpy = py.import("numpy")?;
        Ok([numpy.getattr("generic")?.unbind(), numpy.getattr("asarray")?.unbind()])
    })?;
    if !object.is_instance(numpy[0].bind(py))? {
        return Ok(None);
    }
    // A NumPy float64 is also a Python float, and is the most frequent scalar.
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(Array::from_bytes(DType::F64, &[], float.value().to_ne_bytes().to_vec()).ok());
    }
    let array = numpy[1].bind(py).call1((object,))?;
    Ok(array.cast::<PyUntypedArray>().ok().and_then(array_from_py))
}

/// A dict with text keys as options.
pub(crate) fn options(dict: &Bound<'_, PyDict>) -> PyResult<Options> {
    nested_options(dict, 0)
}

fn nested_options(dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Options> {
    let mut options = Options::new();
    // Converting a value may run code of its own, which may change the dict.
    for item in dict.items() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        options.set(name_of(&key)?, nested_from_py(&value, depth)?);
    }
    Ok(options)
}

/// Options as a dict.
pub(crate) fn options_to_py<'py>(py: Python<'py>, options: &Options) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    options.iter().try_for_each(|(key, value)| dict.set_item(key, to_py(py, value)?))?;
    Ok(dict)
}

fn array_from_py(array: &Bound<'_, PyUntypedArray>) -> Option<Array> {
    let dtype = array::dtype_of(array)?;
    let bytes = array::bytes(array)?.into_vec();
    Array::from_bytes(dtype, array.shape(), bytes).ok()
}

/// A loose value as a Python object.
pub(crate) fn to_py<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::None => py.None().into_bound(py),
        Value::Bool(v) => PyBool::new(py, *v).to_owned().into_any(),
        Value::Int(v) => v.into_pyobject(py)?.into_any(),
        Value::Float(v) => v.into_pyobject(py)?.into_any(),
        Value::Text(v) => PyString::new(py, v).into_any(),
        Value::Array(v) => {
            let array = array_to_py(py, v.dtype(), v.shape(), v.bytes())?;
            // An array without axes stands for a scalar.
            if v.shape().is_empty() { array.get_item(PyTuple::empty(py))? } else { array }
        }
        Value::List(items) => {
            let items = items.iter().map(|item| to_py(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Map(map) => options_to_py(py, map)?.into_any(),
        Value::Object(object) => match object.downcast_ref::<Opaque>() {
            Some(Opaque(object)) => object.bind(py).clone(),
            None => PyString::new(py, FOREIGN).into_any(),
        },
    })
}

/// A new array with a copy of these bytes.
pub(crate) fn array_to_py<'py>(
    py: Python<'py>,
    dtype: DType,
    shape: &[usize],
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    array::copy_of(py, &array::descr(py, dtype)?, shape, bytes)
}

/// `uint8[height, width, 3]` from a frame.
pub(crate) fn frame_to_py<'py>(py: Python<'py>, frame: envcore::Frame) -> PyResult<Bound<'py, PyAny>> {
    let shape = [frame.height(), frame.width(), 3];
    let flat = numpy::PyArray1::from_vec(py, frame.into_pixels());
    Ok(flat.reshape(shape)?.into_any())
}
