//! What a Python env shows, into the row of a batch.

use envcore::{DType, Row, Tensor, Value};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple};

use super::shape::{Node, Part, Shape};
use crate::array;
use crate::values;

/// Why something cannot be written.
pub(super) enum Refused {
    /// Python's own exception on the way.
    Raised(PyErr),
    /// It is not what its space says.
    Misfit(String),
}

impl From<PyErr> for Refused {
    fn from(error: PyErr) -> Self {
        Refused::Raised(error)
    }
}

/// Writes `given`, an observation of this shape, to `row`.
pub(super) fn write(
    shape: &Shape,
    given: &Bound<'_, PyAny>,
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    write_node(&shape.node, shape, given, row, check_nan)
}

fn write_node(
    node: &Node,
    shape: &Shape,
    given: &Bound<'_, PyAny>,
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    match node {
        // Leaves are written in their order, which is the tree's.
        Node::Leaf(leaf) => write_leaf(&shape.parts[*leaf], given, row, check_nan),
        Node::Dict(branches) => {
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
        Node::Tuple(branches) => {
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

fn kind_of(given: &Bound<'_, PyAny>) -> String {
    given.get_type().name().map_or_else(|_| "thing".into(), |name| name.to_string())
}

#[inline]
fn write_leaf(
    part: &Part,
    given: &Bound<'_, PyAny>,
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    let Some((tensor, descr)) = &part.tensor else {
        row.value(loose(given)?);
        return Ok(());
    };
    if let Ok(array) = given.cast::<PyUntypedArray>()
        && array.shape() == tensor.shape
        && array.dtype().is_equiv_to(descr.bind(given.py()))
        && let Some(bytes) = array::bytes(array)
    {
        return write_bytes(part, tensor, bytes, row, check_nan);
    }
    // A label is often a plain int.
    if tensor.is_discrete_scalar()
        && tensor.dtype == DType::I64
        && given.is_exact_instance_of::<PyInt>()
        && let Ok(label) = given.extract::<i64>()
    {
        row.scalar(label);
        return Ok(());
    }
    write_cast(part, tensor, given, row, check_nan)
}

fn write_bytes(
    part: &Part,
    tensor: &Tensor,
    bytes: &[u8],
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    if check_nan && tensor.dtype.is_float() && holds_nan(tensor.dtype, bytes) {
        let at = place(part);
        return Err(Refused::Misfit(format!("the observation{at} holds NaN (check_nan=False lets it pass)")));
    }
    if tensor.dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
        return Err(Refused::Misfit(format!("the observation{} holds bools that are none", place(part))));
    }
    row.bytes(tensor.dtype, bytes);
    Ok(())
}

/// Through NumPy, which casts where that is of the same kind.
#[cold]
fn write_cast(
    part: &Part,
    tensor: &Tensor,
    given: &Bound<'_, PyAny>,
    row: &mut Row<'_>,
    check_nan: bool,
) -> Result<(), Refused> {
    let py = given.py();
    let at = place(part);
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = numpy.call_method1(intern!(py, "asarray"), (given,)).map_err(|error| {
        Refused::Misfit(format!("the observation{at} is a {} that is no array: {error}", kind_of(given)))
    })?;
    let shape: Vec<usize> = array.getattr(intern!(py, "shape"))?.extract()?;
    let dtype = array.getattr(intern!(py, "dtype"))?;
    if shape != tensor.shape {
        return Err(Refused::Misfit(format!(
            "the observation{at} has shape {} where {} belongs",
            tuple(&shape),
            tuple(&tensor.shape)
        )));
    }
    let kwargs = PyDict::new(py);
    // Plain ints have no dtype that they came with: what fits, fits.
    let casting = if given.hasattr(intern!(py, "dtype"))? { "same_kind" } else { "unsafe" };
    kwargs.set_item("casting", casting)?;
    kwargs.set_item("order", "C")?;
    kwargs.set_item("copy", false)?;
    let cast = array.call_method("astype", (tensor.dtype.name(),), Some(&kwargs)).map_err(|_| {
        Refused::Misfit(format!("the observation{at} has dtype {dtype} where {} belongs", tensor.dtype))
    })?;
    if casting == "unsafe" {
        let same = numpy
            .call_method1("array_equal", (&cast, &array, true))
            .or_else(|_| numpy.call_method1("array_equal", (&cast, &array)))?;
        let rounds = tensor.dtype.is_float();
        if !rounds && !same.is_truthy()? {
            return Err(Refused::Misfit(format!(
                "the observation{at} is {given}, which does not fit {}",
                tensor.dtype
            )));
        }
    }
    let cast = cast.cast_into::<PyUntypedArray>().map_err(PyErr::from)?;
    let Some(bytes) = array::bytes(&cast) else {
        return Err(Refused::Misfit(format!("the observation{at} is no plain array")));
    };
    write_bytes(part, tensor, bytes, row, check_nan)
}

fn holds_nan(dtype: DType, bytes: &[u8]) -> bool {
    match dtype {
        DType::F32 => bytes.chunks_exact(4).any(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]]).is_nan()),
        DType::F64 => {
            bytes.chunks_exact(8).any(|b| f64::from_ne_bytes(b.try_into().expect("eight bytes")).is_nan())
        }
        _ => bytes.chunks_exact(2).any(|b| envcore::f16::from_ne_bytes([b[0], b[1]]).is_nan()),
    }
}

fn place(part: &Part) -> String {
    if part.name.is_empty() { String::new() } else { format!(", leaf '{}',", part.name) }
}

fn tuple(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        many => format!("({})", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// A leaf without a fixed shape: text as text, all else as the object that it is.
fn loose(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    match given.cast::<PyString>() {
        Ok(text) => Ok(Value::Text(text.extract()?)),
        Err(_) => Ok(values::opaque(given)),
    }
}
