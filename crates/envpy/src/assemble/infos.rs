//! The declared infos of a batch, nested like their space.

use envcore::{Column, DType, Element, Fixed, Infos, Tree, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};

use super::{Assembler, empty_objects};
use crate::{array, infos, values};

/// The names of infos, each with that of its mask.
pub(super) fn keys(py: Python<'_>, tree: &Tree) -> Vec<[Py<PyString>; 2]> {
    let key = |name: &str| PyString::intern(py, name).unbind();
    match tree {
        Tree::Dict(branches) => {
            branches.iter().map(|(name, _)| [key(name), key(&format!("_{name}"))]).collect()
        }
        _ => Vec::new(),
    }
}

impl Assembler {
    pub(super) fn infos<'py>(
        &self,
        py: Python<'py>,
        given: Infos,
        rows: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        if let Tree::Dict(branches) = &self.info.tree
            && !given.columns.is_empty()
        {
            let mut parts: Vec<Option<(Column, Fixed)>> =
                given.columns.into_iter().zip(given.masks).map(Some).collect();
            for ((name, branch), [key, mask_key]) in branches.iter().zip(&self.info_keys) {
                let Some((value, mask)) = self.info_branch(py, name, branch, &mut parts)? else { continue };
                dict.set_item(key, value)?;
                dict.set_item(mask_key, mask)?;
            }
        }
        if !given.extras.is_empty() {
            infos::add(&dict, &given.extras, rows)?;
        }
        Ok(dict)
    }

    /// Adds the branches that any row has. Returns a mask of these rows.
    fn info_branches<'py>(
        &self,
        py: Python<'py>,
        branches: &[(String, Tree)],
        parts: &mut [Option<(Column, Fixed)>],
        dict: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut any = None;
        for (name, branch) in branches {
            let Some((value, mask)) = self.info_branch(py, name, branch, parts)? else { continue };
            any = either(any, &mask)?;
            dict.set_item(name, value)?;
            dict.set_item(format!("_{name}"), mask)?;
        }
        // The level above gets a mask of its own.
        any.map(|mask| mask.call_method0("copy")).transpose()
    }

    /// What the branch of this name has, as [`info_value`](Self::info_value).
    fn info_branch<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        branch: &Tree,
        parts: &mut [Option<(Column, Fixed)>],
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let told = self.info_value(py, branch, parts)?;
        if name == "episode"
            && let (Some((value, _)), Tree::Dict(inner)) = (&told, branch)
        {
            // Gymnasium's episode statistics have one mask, beside the dict of statistics.
            for (key, _) in inner {
                value.del_item(format!("_{key}"))?;
            }
        }
        Ok(told)
    }

    /// The rows' values of `branch`, and a mask of the rows that have a value.
    fn info_value<'py>(
        &self,
        py: Python<'py>,
        branch: &Tree,
        parts: &mut [Option<(Column, Fixed)>],
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        Ok(match branch {
            Tree::Leaf(leaf) => {
                let (column, mask) = parts[*leaf].take().expect("each leaf is on one branch");
                if !mask.as_slice::<bool>().contains(&true) {
                    return Ok(None);
                }
                let value = match column {
                    Column::Fixed(_) => self.info.leaves[*leaf].batched(py, column)?,
                    Column::Values(values) => objects(py, values.iter().map(Some))?,
                };
                let rows = mask.rows();
                Some((value, array::over(py, mask, &self.bool_, &[rows])?))
            }
            Tree::Dict(inner) => {
                let nested = PyDict::new(py);
                self.info_branches(py, inner, parts, &nested)?.map(|mask| (nested.into_any(), mask))
            }
            Tree::Tuple(inner) => {
                let (mut items, mut any) = (Vec::with_capacity(inner.len()), None);
                for branch in inner {
                    let told = self.info_value(py, branch, parts)?;
                    if let Some((_, mask)) = &told {
                        any = either(any, mask)?;
                    }
                    items.push(told.map(|(value, _)| value));
                }
                match any {
                    Some(mask) => Some((PyTuple::new(py, items)?.into_any(), mask)),
                    None => None,
                }
            }
        })
    }

    pub(super) fn single_info<'py>(&self, py: Python<'py>, infos: Infos) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        if let Tree::Dict(branches) = &self.info.tree {
            self.single_branches(py, branches, &infos, 0, &dict)?;
        }
        for extra in infos.extras {
            dict.set_item(extra.key, values::to_py(py, &extra.value)?)?;
        }
        Ok(dict)
    }

    fn single_branches<'py>(
        &self,
        py: Python<'py>,
        branches: &[(String, Tree)],
        infos: &Infos,
        row: usize,
        dict: &Bound<'py, PyDict>,
    ) -> PyResult<()> {
        for (name, branch) in branches {
            if let Some(value) = self.single_value(py, branch, infos, row)? {
                dict.set_item(name, value)?;
            }
        }
        Ok(())
    }

    /// What `row` has of `branch`, as the info of a single env has it.
    pub(super) fn single_value<'py>(
        &self,
        py: Python<'py>,
        branch: &Tree,
        infos: &Infos,
        row: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match branch {
            Tree::Leaf(leaf) if !infos.masks[*leaf].as_slice::<bool>()[row] => None,
            Tree::Leaf(leaf) => {
                let shape = &self.info.leaves[*leaf];
                Some(match &infos.columns[*leaf] {
                    Column::Fixed(fixed) if shape.shape.is_empty() => plain(py, fixed, row)?,
                    column => shape.row(py, column, row)?,
                })
            }
            Tree::Dict(inner) => {
                let nested = PyDict::new(py);
                self.single_branches(py, inner, infos, row, &nested)?;
                (!nested.is_empty()).then(|| nested.into_any())
            }
            Tree::Tuple(inner) => {
                let items = inner.iter().map(|branch| self.single_value(py, branch, infos, row));
                let items = items.collect::<PyResult<Vec<_>>>()?;
                match items.iter().any(Option::is_some) {
                    true => Some(PyTuple::new(py, items)?.into_any()),
                    false => None,
                }
            }
        })
    }
}

/// The rows that are in either mask.
pub(super) fn either<'py>(
    one: Option<Bound<'py, PyAny>>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(match one {
        None => other.clone(),
        Some(one) => one.call_method1("__or__", (other,))?,
    }))
}

fn objects<'py, 'a>(
    py: Python<'py>,
    values: impl ExactSizeIterator<Item = Option<&'a Value>>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = empty_objects(py, values.len())?;
    for (row, value) in values.enumerate() {
        if let Some(value) = value {
            array.set_item(row, values::to_py(py, value)?)?;
        }
    }
    Ok(array)
}

/// The element of a row of a column, as a Python number.
fn plain<'py>(py: Python<'py>, fixed: &Fixed, row: usize) -> PyResult<Bound<'py, PyAny>> {
    Ok(envcore::with_element!(fixed.dtype(), T => match fixed.as_slice::<T>()[row].to_scalar() {
        envcore::Scalar::Int(i) if fixed.dtype() == DType::Bool => PyBool::new(py, i != 0).to_owned().into_any(),
        envcore::Scalar::Int(i) => i.into_pyobject(py)?.into_any(),
        envcore::Scalar::Real(r) => r.into_pyobject(py)?.into_any(),
    }))
}
