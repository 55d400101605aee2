//! Infos that an env did not declare, as Gymnasium batches them.
//!
//! Values of one key that are all alike make their array here; a mixture goes,
//! value by value, through `corral._infos`, which has the rules.

use envcore::{DType, Extra, Value};
use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};

use crate::array;
use crate::values;

static INFOS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// What the rows have under one key.
struct Group {
    key: String,
    items: Vec<(usize, Value)>,
}

/// Adds `extras`, of a batch of `rows`, to its infos.
pub(crate) fn add<'py>(
    py: Python<'py>,
    dict: &Bound<'py, PyDict>,
    extras: Vec<Extra>,
    rows: usize,
) -> PyResult<()> {
    let each = extras.into_iter().map(|extra| (extra.row, extra.key, extra.value));
    groups(each).into_iter().try_for_each(|group| add_group(py, dict, group, rows))
}

/// By key, in the order in which keys first come.
fn groups(each: impl Iterator<Item = (usize, String, Value)>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    // Rows mostly have the same keys in the same order: look behind the last one first.
    let mut next = 0;
    for (row, key, value) in each {
        let known = groups.get(next).is_some_and(|group| group.key == key).then_some(next);
        let at = known.or_else(|| groups.iter().position(|group| group.key == key));
        let at = at.unwrap_or_else(|| {
            groups.push(Group { key, items: Vec::new() });
            groups.len() - 1
        });
        groups[at].items.push((row, value));
        next = (at + 1) % groups.len();
    }
    groups
}

fn add_group<'py>(py: Python<'py>, dict: &Bound<'py, PyDict>, group: Group, rows: usize) -> PyResult<()> {
    let Group { key, items } = group;
    if !dict.contains(&key)?
        && let Some(batch) = alike(py, &items, rows)?
    {
        let mut mask = vec![false; rows];
        items.iter().for_each(|(row, _)| mask[*row] = true);
        dict.set_item(&key, batch)?;
        return dict.set_item(format!("_{key}"), PyArray1::from_vec(py, mask));
    }
    let module = INFOS.get_or_try_init(py, || PyModule::import(py, "corral._infos").map(Bound::unbind))?;
    let add = module.bind(py).getattr(intern!(py, "add_info"))?;
    for (row, value) in items {
        add.call1((dict, &key, values::to_py(py, &value)?, row, rows))?;
    }
    Ok(())
}

/// The batch of values of one kind; `None` for any others.
fn alike<'py>(py: Python<'py>, items: &[(usize, Value)], rows: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(match &items[0].1 {
        Value::Float(_) => {
            filled(items, rows, |value| if let Value::Float(v) = value { Some(*v) } else { None })
                .map(|all| PyArray1::from_vec(py, all).into_any())
        }
        Value::Int(_) => filled(items, rows, |value| if let Value::Int(v) = value { Some(*v) } else { None })
            .map(|all| PyArray1::from_vec(py, all).into_any()),
        Value::Bool(_) => {
            filled(items, rows, |value| if let Value::Bool(v) = value { Some(*v) } else { None })
                .map(|all| PyArray1::from_vec(py, all).into_any())
        }
        Value::Array(_) => stacked(py, items, rows)?,
        Value::Text(_) | Value::None => {
            if items.iter().all(|(_, value)| matches!(value, Value::Text(_) | Value::None)) {
                let array = empty_objects(py, rows)?;
                for (row, value) in items {
                    array.set_item(row, values::to_py(py, value)?)?;
                }
                Some(array)
            } else {
                None
            }
        }
        Value::Map(_) => nested(py, items, rows)?,
        _ => None,
    })
}

/// All rows' numbers, zero where there is none; `None` where `number` gives none.
fn filled<T: Copy + Default>(
    items: &[(usize, Value)],
    rows: usize,
    number: impl Fn(&Value) -> Option<T>,
) -> Option<Vec<T>> {
    let mut all = vec![T::default(); rows];
    for (row, value) in items {
        all[*row] = number(value)?;
    }
    Some(all)
}

fn stacked<'py>(
    py: Python<'py>,
    items: &[(usize, Value)],
    rows: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Value::Array(first) = &items[0].1 else { return Ok(None) };
    // To Gymnasium a bool of NumPy's is an object.
    if first.dtype() == DType::Bool && first.shape().is_empty() {
        return Ok(None);
    }
    let n = first.bytes().len();
    let mut bytes = vec![0; rows * n];
    for (row, value) in items {
        match value {
            Value::Array(array) if array.dtype() == first.dtype() && array.shape() == first.shape() => {
                bytes[row * n..(row + 1) * n].copy_from_slice(array.bytes());
            }
            _ => return Ok(None),
        }
    }
    let shape: Vec<usize> = [rows].iter().chain(first.shape()).copied().collect();
    array::copy_of(py, &array::descr(py, first.dtype())?, &shape, &bytes).map(Some)
}

fn nested<'py>(
    py: Python<'py>,
    items: &[(usize, Value)],
    rows: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut each = Vec::new();
    for (row, value) in items {
        let Value::Map(map) = value else { return Ok(None) };
        each.extend(map.iter().map(|(key, value)| (*row, key.to_string(), value.clone())));
    }
    let dict = PyDict::new(py);
    for group in groups(each.into_iter()) {
        add_group(py, &dict, group, rows)?;
    }
    Ok(Some(dict.into_any()))
}

/// An object array of `rows` times None.
pub(crate) fn empty_objects(py: Python<'_>, rows: usize) -> PyResult<Bound<'_, PyAny>> {
    py.import(intern!(py, "numpy"))?
        .call_method1(intern!(py, "full"), (rows, py.None(), intern!(py, "object")))
}
