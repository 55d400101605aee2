//! Conversion of a Python env's observation to the row of a batch.

use envcore::{DType, Row, Tensor, Value};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyString, PyTuple};

use super::cast;
use super::shape::{KeyedNode, Shape, ShapeLeaf};
use crate::array::{self, Descr};
use crate::values;

/// Why an observation cannot be written.
pub(super) enum Refused {
    /// Python raised an exception.
    Raised(PyErr),
    /// The observation is not in its space.
    Misfit(String),
}

impl From<PyErr> for Refused {
    fn from(error: PyErr) -> Self {
        Refused::Raised(error)
    }
}

/// Writes `given`, an observation of the space `shape`, to `row`.
pub(super) fn write(
    shape: &Shape,
    given: &Bound<'_, PyAny>,
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    write_node(&shape.node, shape, given, row, check_nan)
}

fn write_node(
    node: &KeyedNode,
    shape: &Shape,
    given: &Bound<'_, PyAny>,
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    match node {
        // Leaves are written in their order, which is the order of the tree.
        KeyedNode::Leaf(leaf) => write_leaf(&shape.parts[*leaf], given, row, check_nan),
        KeyedNode::Dict(branches) => {
            for (key, branch) in branches {
                let item = match given.cast::<PyDict>() {
                    Ok(dict) => dict.get_item(key)?,
                    Err(_) => given.get_item(key).ok(),
                };
                let Some(item) = item else {
                    return Err(Refused::Misfit(format!(
                        "the observation is a {} without the key {key}",
                        kind_of(given)
                    )));
                };
                write_node(branch, shape, &item, row, check_nan)?;
            }
            Ok(())
        }
        KeyedNode::Tuple(branches) => {
            let n = given.len().unwrap_or(0);
            if n != branches.len() {
                let (kind, wanted) = (kind_of(given), branches.len());
                return Err(Refused::Misfit(format!(
                    "the observation is a {kind} of {n} where a tuple of {wanted} belongs"
                )));
            }
            for (k, branch) in branches.iter().enumerate() {
                let item = match given.cast::<PyTuple>() {
                    Ok(tuple) => tuple.get_item(k)?,
                    Err(_) => given.get_item(k)?,
                };
                write_node(branch, shape, &item, row, check_nan)?;
            }
            Ok(())
        }
    }
}

pub(super) fn kind_of(given: &Bound<'_, PyAny>) -> String {
    given.get_type().name().map_or_else(|_| "thing".into(), |name| name.to_string())
}

/// Whether a sink would make exactly `given`, in type and value, from the row that it was
/// written to.
pub(super) fn is_plain(shape: &Shape, given: &Bound<'_, PyAny>) -> bool {
    is_plain_node(&shape.node, shape, given)
}

fn is_plain_node(node: &KeyedNode, shape: &Shape, given: &Bound<'_, PyAny>) -> bool {
    match node {
        KeyedNode::Leaf(leaf) => is_plain_leaf(&shape.parts[*leaf], given),
        KeyedNode::Dict(branches) => given.cast_exact::<PyDict>().is_ok_and(|dict| {
            dict.len() == branches.len()
                && branches.iter().all(|(key, branch)| {
                    let item = dict.get_item(key).ok().flatten();
                    item.is_some_and(|item| is_plain_node(branch, shape, &item))
                })
        }),
        KeyedNode::Tuple(branches) => given.cast_exact::<PyTuple>().is_ok_and(|tuple| {
            let mut pairs = branches.iter().zip(tuple.iter_borrowed());
            pairs.all(|(branch, item)| is_plain_node(branch, shape, &item))
        }),
    }
}

fn is_plain_leaf(part: &ShapeLeaf, given: &Bound<'_, PyAny>) -> bool {
    let Some((tensor, descr)) = &part.tensor else { return true };
    let descr = descr.bind(given.py());
    if tensor.is_discrete_scalar() && tensor.dtype != DType::Bool {
        return given.get_type().is(descr.typeobj());
    }
    given
        .cast_exact::<PyUntypedArray>()
        .is_ok_and(|array| array.shape() == tensor.shape && array.dtype().is(descr))
}

#[inline]
fn write_leaf(
    part: &ShapeLeaf,
    given: &Bound<'_, PyAny>,
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    let Some((tensor, descr)) = &part.tensor else {
        row.value(loose(given)?);
        return Ok(());
    };
    if let Ok(array) = given.cast::<PyUntypedArray>()
        && is_alike(array, tensor, descr)
    {
        return write_array(part, tensor, array, row, check_nan);
    }
    if tensor.shape.is_empty() && write_number(tensor, given, row, check_nan) {
        return Ok(());
    }
    write_cast(part, tensor, given, row, check_nan)
}

/// Whether `array` has the leaf's own shape and dtype, and is C-contiguous.
#[inline]
pub(super) fn is_alike(array: &Bound<'_, PyUntypedArray>, tensor: &Tensor, descr: &Descr) -> bool {
    array.shape() == tensor.shape
        && array.dtype().is_equiv_to(descr.bind(array.py()))
        && array.is_c_contiguous()
}

/// Writes an int as a label, or a Python float. Returns `false` for anything else.
fn write_number(tensor: &Tensor, given: &Bound<'_, PyAny>, row: &mut Row<'_>, check_nan: bool) -> bool {
    if tensor.dtype.is_float() {
        let Ok(number) = given.cast::<PyFloat>().map(|number| number.value()) else { return false };
        if check_nan && number.is_nan() {
            return false;
        }
        return cast::write(row, DType::F64, tensor.dtype, &number.to_ne_bytes())
            || (tensor.dtype == DType::F64 && {
                row.scalar(number);
                true
            });
    }
    if tensor.dtype != DType::I64 || given.is_instance_of::<PyFloat>() {
        return false;
    }
    given.extract::<i64>().map(|label| row.scalar(label)).is_ok()
}

/// Writes a contiguous array of the leaf's own shape and dtype. Other code may change its
/// elements meanwhile, so the bytes that were written are the ones that are checked.
fn write_array(
    part: &ShapeLeaf,
    tensor: &Tensor,
    array: &Bound<'_, PyUntypedArray>,
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    if tensor.dtype == DType::Bool {
        return write_bytes(part, tensor, &array::bytes(array).unwrap_or_default(), row, check_nan);
    }
    let written = array::put(array, 0..tensor.row_bytes(), tensor.dtype, row);
    if check_nan && cast::holds_nan(tensor.dtype, written) { Err(holds_nan(part)) } else { Ok(()) }
}

fn write_bytes(
    part: &ShapeLeaf,
    tensor: &Tensor,
    bytes: &[u8],
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    if check_nan && cast::holds_nan(tensor.dtype, bytes) {
        return Err(holds_nan(part));
    }
    if tensor.dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
        return Err(Refused::Misfit(format!("the observation{} holds bools that are none", place(part))));
    }
    row.bytes(tensor.dtype, bytes);
    Ok(())
}

/// Writes an observation that is no array, or an array of another shape or dtype.
fn write_cast(
    part: &ShapeLeaf,
    tensor: &Tensor,
    given: &Bound<'_, PyAny>,
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    let py = given.py();
    let at = place(part);
    let is_plain = !given.is_instance_of::<PyUntypedArray>() && !given.hasattr(intern!(py, "dtype"))?;
    let array = as_array(given).map_err(|error| {
        Refused::Misfit(format!("the observation{at} is a {} that is no array: {error}", kind_of(given)))
    })?;
    if !b"biufc".contains(&array.dtype().kind()) {
        let what = if is_plain { kind_of(given) } else { format!("array of {}", array.dtype()) };
        let (shape, dtype) = (tuple(&tensor.shape), tensor.dtype);
        return Err(Refused::Misfit(format!(
            "the observation{at} is of type {what} where an array of {dtype}, shape {shape}, belongs"
        )));
    }
    if array.shape() != tensor.shape {
        let (shape, right) = (tuple(array.shape()), tuple(&tensor.shape));
        return Err(Refused::Misfit(format!("the observation{at} has shape {shape} where {right} belongs")));
    }
    if let (Some(from), Some(bytes)) = (array::dtype_of(&array), array::bytes(&array)) {
        if from == tensor.dtype {
            return write_bytes(part, tensor, &bytes, row, check_nan);
        }
        // Python ints come without a dtype, so they are accepted by their values.
        let is_int = is_plain && from == DType::I64 && !tensor.dtype.is_float();
        if is_int && !cast::fits(&bytes, tensor.dtype) {
            let why = format!("the observation{at} is {given}, which does not fit {}", tensor.dtype);
            return Err(Refused::Misfit(why));
        }
        if is_int || cast::is_same_kind(from, tensor.dtype) {
            if check_nan && cast::holds_nan(from, &bytes) {
                return Err(holds_nan(part));
            }
            if cast::write(row, from, tensor.dtype, &bytes) {
                return Ok(());
            }
        }
    }
    let cast = by_numpy(&array, tensor.dtype).map_err(|_| {
        let (dtype, right) = (array.dtype(), tensor.dtype);
        Refused::Misfit(format!("the observation{at} has dtype {dtype} where {right} belongs"))
    })?;
    match array::bytes(&cast) {
        Some(bytes) => write_bytes(part, tensor, &bytes, row, check_nan),
        None => Err(Refused::Misfit(format!("the observation{at} is no plain array"))),
    }
}

/// A C-contiguous array of `given`.
pub(super) fn as_array<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = given.py();
    let array = match given.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => ASARRAY.import(py, "numpy", "asarray")?.call1((given,))?.cast_into()?,
    };
    if array.is_c_contiguous() {
        Ok(array)
    } else {
        Ok(array.call_method0(intern!(py, "copy"))?.cast_into()?)
    }
}

#[cold]
pub(super) fn by_numpy<'py>(
    array: &Bound<'py, PyUntypedArray>,
    dtype: DType,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let kwargs = PyDict::new(array.py());
    kwargs.set_item("casting", "same_kind")?;
    kwargs.set_item("order", "C")?;
    Ok(array.call_method("astype", (dtype.name(),), Some(&kwargs))?.cast_into()?)
}

fn holds_nan(part: &ShapeLeaf) -> Refused {
    Refused::Misfit(format!("the observation{} holds NaN (check_nan=False lets it pass)", place(part)))
}

pub(super) fn place(part: &ShapeLeaf) -> String {
    if part.name.is_empty() { String::new() } else { format!(", leaf '{}',", part.name) }
}

pub(super) fn tuple(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        many => format!("({})", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// A value of a leaf that is not of fixed shape. A text becomes a text. Any other object is
/// copied, because the env may change its own.
pub(super) fn loose(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    match given.cast::<PyString>() {
        Ok(text) => Ok(Value::from(text.extract::<String>()?)),
        Err(_) => Ok(values::opaque(&values::deep_copy(given)?)),
    }
}
