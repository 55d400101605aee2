//! Spaces as plain Python data, from which `corral.spaces` builds Gymnasium's,
//! and the tree that a space's leaf names make.

use envcore::{Leaf, LeafKind, Scalar, Space};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// One dict per leaf: `name`, its `path` of keys, `kind` and what that kind has.
pub(crate) fn describe<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyList>> {
    let leaves = space.leaves().iter().map(|leaf| describe_leaf(py, leaf));
    PyList::new(py, leaves.collect::<PyResult<Vec<_>>>()?)
}

fn describe_leaf<'py>(py: Python<'py>, leaf: &Leaf) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &leaf.name)?;
    dict.set_item("path", leaf.path().collect::<Vec<_>>())?;
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

/// How leaves hang together: by the keys that lead to each, or as told.
#[derive(Clone)]
pub(crate) enum Tree {
    /// The leaf of this number.
    Leaf(usize),
    /// Named branches, in order.
    Branches(Vec<(String, Tree)>),
    /// Branches by place.
    Tuple(Vec<Tree>),
}

impl Tree {
    /// The one that the leaves' paths make.
    pub(crate) fn of(space: &Space) -> Self {
        if space.is_single() {
            return Tree::Leaf(0);
        }
        let mut root = Vec::new();
        for (k, leaf) in space.leaves().iter().enumerate() {
            insert(&mut root, &leaf.path().collect::<Vec<_>>(), k);
        }
        Tree::Branches(root)
    }
}

fn insert(branches: &mut Vec<(String, Tree)>, path: &[&str], leaf: usize) {
    let [head, rest @ ..] = path else { return };
    if rest.is_empty() {
        branches.push((head.to_string(), Tree::Leaf(leaf)));
        return;
    }
    let at = branches.iter().position(|(branch, _)| branch == head).unwrap_or_else(|| {
        branches.push((head.to_string(), Tree::Branches(Vec::new())));
        branches.len() - 1
    });
    if let Tree::Branches(inner) = &mut branches[at].1 {
        insert(inner, rest, leaf);
    }
}
