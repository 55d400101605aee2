//! Spaces as plain Python data, from which `corral.spaces` builds Gymnasium's.

use envcore::{Leaf, LeafKind, Scalar, Space, Tree};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// One dict per leaf, with `name`, `kind` and the values of that kind.
pub(crate) fn describe<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyList>> {
    let leaves = space.leaves().iter().map(|leaf| describe_leaf(py, leaf));
    PyList::new(py, leaves.collect::<PyResult<Vec<_>>>()?)
}

fn describe_leaf<'py>(py: Python<'py>, leaf: &Leaf) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &leaf.name)?;
    match &leaf.kind {
        LeafKind::Fixed(tensor) => {
            let scalars = |side: &[Scalar]| -> PyResult<Py<PyList>> {
                let list = PyList::empty(py);
                for scalar in side {
                    match *scalar {
                        Scalar::Int(i) => list.append(i)?,
                        Scalar::Real(r) => list.append(r)?,
                    }
                }
                Ok(list.unbind())
            };
            dict.set_item("kind", "fixed")?;
            dict.set_item("dtype", tensor.dtype.name())?;
            dict.set_item("shape", &tensor.shape)?;
            dict.set_item("low", scalars(&tensor.bounds.low)?)?;
            dict.set_item("high", scalars(&tensor.bounds.high)?)?;
            dict.set_item("discrete", tensor.discrete)?;
        }
        LeafKind::Ragged { dtype, max_shape } => {
            dict.set_item("kind", "ragged")?;
            dict.set_item("dtype", dtype.name())?;
            dict.set_item("shape", max_shape)?;
        }
        LeafKind::Text { max_len } => {
            dict.set_item("kind", "text")?;
            dict.set_item("max_len", max_len)?;
        }
        LeafKind::Object => dict.set_item("kind", "object")?,
    }
    Ok(dict)
}

/// A tree in the form that `corral.spaces` reads: `("leaf", number)`, `("dict", [(key, tree),
/// …])` or `("tuple", [tree, …])`.
pub(crate) fn describe_tree<'py>(py: Python<'py>, tree: &Tree) -> PyResult<Bound<'py, PyTuple>> {
    match tree {
        Tree::Leaf(leaf) => ("leaf", leaf).into_pyobject(py),
        Tree::Dict(branches) => {
            let inner = branches.iter().map(|(key, branch)| Ok((key, describe_tree(py, branch)?)));
            ("dict", inner.collect::<PyResult<Vec<_>>>()?).into_pyobject(py)
        }
        Tree::Tuple(branches) => {
            let inner = branches.iter().map(|branch| describe_tree(py, branch));
            ("tuple", inner.collect::<PyResult<Vec<_>>>()?).into_pyobject(py)
        }
    }
}
