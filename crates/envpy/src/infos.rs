//! Undeclared infos of envs in Gymnasium's form: numbers in typed arrays, arrays stacked,
//! dicts nested, the rest in object arrays, each with a mask `_key`.
//!
//! Rows nearly always have values of one kind for a key, and this module puts them together.
//! Where the kinds differ, `corral._infos` adds one value at a time.

use envcore::{DType, Extra, Value};
use numpy::{PyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::array;
use crate::assemble::empty_objects;
use crate::values;

/// The values that rows have for one key.
struct Group<'a> {
    key: &'a str,
    items: Vec<(usize, &'a Value)>,
}

/// Adds `extras` to the infos of a batch of `rows`.
pub(crate) fn add(infos: &Bound<'_, PyDict>, extras: &[Extra], rows: usize) -> PyResult<()> {
    put(infos, grouped(extras.iter().map(|extra| (extra.row, &*extra.key, &extra.value))), rows)
}

fn grouped<'a>(items: impl Iterator<Item = (usize, &'a str, &'a Value)>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut next = 0;
    for (row, key, value) in items {
        // Rows usually have their keys in the same order.
        let at = match groups.get(next) {
            Some(group) if group.key == key => next,
            _ => groups.iter().position(|group| group.key == key).unwrap_or_else(|| {
                groups.push(Group { key, items: Vec::new() });
                groups.len() - 1
            }),
        };
        groups[at].items.push((row, value));
        next = if at + 1 == groups.len() { 0 } else { at + 1 };
    }
    groups
}

fn put(infos: &Bound<'_, PyDict>, groups: Vec<Group<'_>>, rows: usize) -> PyResult<()> {
    let py = infos.py();
    for Group { key, items } in groups {
        let name = PyString::new(py, key);
        let batched = if infos.contains(&name)? { None } else { batched(py, key, &items, rows)? };
        let Some(batched) = batched else {
            one_by_one(infos, &name, &items, rows)?;
            continue;
        };
        infos.set_item(&name, batched)?;
        infos.set_item(format!("_{key}"), column(py, rows, items.iter().map(|(row, _)| (*row, true))))?;
    }
    Ok(())
}

/// All rows' values of one key; `None` where the rows have values of different kinds.
fn batched<'py>(
    py: Python<'py>,
    key: &str,
    items: &[(usize, &Value)],
    rows: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    macro_rules! numbers {
        ($kind:ident) => {{
            let all = items.iter().map(|(row, value)| match value {
                Value::$kind(number) => Some((*row, *number)),
                _ => None,
            });
            all.collect::<Option<Vec<_>>>().map(|all| column(py, rows, all.into_iter()))
        }};
    }
    let Some((_, first)) = items.first() else { return Ok(None) };
    Ok(match first {
        // A wrapper inside has put this value into its infos; it stays one object per row.
        _ if key == "final_obs" => Some(objects(py, items, rows)?),
        Value::Float(_) => numbers!(Float),
        Value::Int(_) => numbers!(Int),
        Value::Bool(_) => numbers!(Bool),
        Value::Map(_) => maps(py, items, rows)?,
        _ if items.iter().any(|(_, value)| matches!(value, Value::Map(_))) => None,
        Value::Array(_) => match stacked(py, items, rows)? {
            Some(array) => Some(array),
            None => foreign(py, items, rows)?,
        },
        Value::Object(_) => foreign(py, items, rows)?,
        Value::None | Value::Text(_) | Value::List(_) => Some(objects(py, items, rows)?),
    })
}

/// An array of zeros, except for these rows.
fn column<'py, T: numpy::Element + Default + Clone>(
    py: Python<'py>,
    rows: usize,
    items: impl Iterator<Item = (usize, T)>,
) -> Bound<'py, PyAny> {
    let mut column = vec![T::default(); rows];
    items.for_each(|(row, value)| column[row] = value);
    PyArray1::from_slice(py, &column).into_any()
}

fn maps<'py>(py: Python<'py>, items: &[(usize, &Value)], rows: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut inner = Vec::new();
    for (row, value) in items {
        let Value::Map(map) = value else { return Ok(None) };
        inner.extend(map.iter().map(|(key, value)| (*row, key, value)));
    }
    let nested = PyDict::new(py);
    put(&nested, grouped(inner.into_iter()), rows)?;
    Ok(Some(nested.into_any()))
}

/// Arrays and NumPy scalars of one shape and dtype, which are copied by their bytes.
fn stacked<'py, 'a>(
    py: Python<'py>,
    items: &[(usize, &'a Value)],
    rows: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some((_, Value::Array(first))) = items.first() else { return Ok(None) };
    // Gymnasium treats a single NumPy bool as an object.
    if first.dtype() == DType::Bool && first.shape().is_empty() {
        return Ok(None);
    }
    let row = |(row, value): &(usize, &'a Value)| match value {
        Value::Array(array) if array.dtype() == first.dtype() && array.shape() == first.shape() => {
            Some((*row, array.bytes()))
        }
        _ => None,
    };
    let Some(given) = items.iter().map(row).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let shape: Vec<usize> = std::iter::once(rows).chain(first.shape().iter().copied()).collect();
    array::sparse(py, &array::descr(py, first.dtype())?, &shape, given.into_iter()).map(Some)
}

/// The values of arrays of one shape and dtype, NumPy scalars of one kind, or other objects.
fn foreign<'py>(
    py: Python<'py>,
    items: &[(usize, &Value)],
    rows: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let given = items.iter().map(|(row, value)| Ok((*row, values::to_py(py, value)?)));
    let given = given.collect::<PyResult<Vec<_>>>()?;
    let first = &given[0].1;
    let zeros = || py.import("numpy")?.getattr("zeros");
    let array = if let Ok(array) = first.cast::<PyUntypedArray>() {
        let alike = |other: &Bound<'_, PyUntypedArray>| {
            other.shape() == array.shape() && other.dtype().is(array.dtype())
        };
        if !given.iter().all(|(_, value)| value.cast::<PyUntypedArray>().is_ok_and(alike)) {
            return Ok(None);
        }
        let shape: Vec<usize> = std::iter::once(rows).chain(array.shape().iter().copied()).collect();
        zeros()?.call1((PyTuple::new(py, shape)?, array.dtype()))?
    } else if is_number(first)? {
        let kind = first.get_type();
        if !given.iter().all(|(_, value)| value.get_type().is(&kind)) {
            return Ok(None);
        }
        zeros()?.call1((rows, kind))?
    } else {
        empty_objects(py, rows)?
    };
    given.into_iter().try_for_each(|(row, value)| array.set_item(row, value))?;
    Ok(Some(array))
}

fn is_number(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    static NUMBER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    given.is_instance(NUMBER.import(given.py(), "numpy", "number")?)
}

/// An object array with the rows' values, and None in all other rows.
fn objects<'py>(py: Python<'py>, items: &[(usize, &Value)], rows: usize) -> PyResult<Bound<'py, PyAny>> {
    let array = empty_objects(py, rows)?;
    items.iter().try_for_each(|(row, value)| array.set_item(*row, values::to_py(py, value)?))?;
    Ok(array)
}

fn one_by_one(
    infos: &Bound<'_, PyDict>,
    name: &Bound<'_, PyString>,
    items: &[(usize, &Value)],
    rows: usize,
) -> PyResult<()> {
    static ADD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = infos.py();
    let add = ADD.import(py, "corral._infos", "add_info")?;
    items.iter().try_for_each(|(row, value)| {
        add.call1((infos, name, values::to_py(py, value)?, *row, rows)).map(drop)
    })
}
