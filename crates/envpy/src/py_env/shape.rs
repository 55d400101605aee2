//! A Python env's space: its leaves, and the tree that they form.

use envcore::{Bounds, DType, Leaf, LeafKind, Scalar, Space, Tensor, Tree};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::array;
use crate::errors::raise;

/// One leaf, with all that is needed to read and write it.
pub(crate) struct ShapeLeaf {
    /// The leaf's path, for messages.
    pub(crate) name: String,
    /// `None` for a leaf that is not of fixed shape.
    pub(crate) tensor: Option<(Tensor, array::Descr)>,
}

/// The space's tree, with its keys as Python strings.
pub(crate) enum KeyedNode {
    Leaf(usize),
    Dict(Vec<(Py<PyString>, KeyedNode)>),
    Tuple(Vec<KeyedNode>),
}

/// A space of a Python env.
pub(crate) struct Shape {
    pub(crate) space: Space,
    pub(crate) parts: Vec<ShapeLeaf>,
    pub(crate) node: KeyedNode,
}

impl Shape {
    /// The shape of a Gymnasium space.
    pub(crate) fn of(space: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = space.py();
        let (tree, leaves): (Bound<'_, PyTuple>, Bound<'_, PyList>) =
            py.import("corral._python_env")?.call_method1("leaves_of", (space,))?.extract()?;
        let leaves = leaves.iter().map(|leaf| read_leaf(&leaf)).collect::<PyResult<Vec<_>>>()?;
        let space = Space::with_tree(leaves, read_tree(&tree)?);
        let part = |leaf: &Leaf| -> PyResult<ShapeLeaf> {
            let tensor = match &leaf.kind {
                LeafKind::Fixed(tensor) => Some((tensor.clone(), array::descr(py, tensor.dtype)?)),
                _ => None,
            };
            Ok(ShapeLeaf { name: leaf.name.clone(), tensor })
        };
        let parts = space.leaves().iter().map(part).collect::<PyResult<_>>()?;
        Ok(Shape { parts, node: node(py, space.tree()), space })
    }
}

fn node(py: Python<'_>, tree: &Tree) -> KeyedNode {
    match tree {
        Tree::Leaf(leaf) => KeyedNode::Leaf(*leaf),
        Tree::Dict(branches) => {
            let named =
                branches.iter().map(|(key, tree)| (PyString::intern(py, key).unbind(), node(py, tree)));
            KeyedNode::Dict(named.collect())
        }
        Tree::Tuple(branches) => KeyedNode::Tuple(branches.iter().map(|tree| node(py, tree)).collect()),
    }
}

fn read_tree(tree: &Bound<'_, PyTuple>) -> PyResult<Tree> {
    let kind: String = tree.get_item(0)?.extract()?;
    let inner = tree.get_item(1)?;
    Ok(match kind.as_str() {
        "leaf" => Tree::Leaf(inner.extract()?),
        "dict" => {
            let branch = |item: PyResult<Bound<'_, PyAny>>| {
                let (key, tree): (String, Bound<'_, PyTuple>) = item?.extract()?;
                Ok((key, read_tree(&tree)?))
            };
            Tree::Dict(inner.try_iter()?.map(branch).collect::<PyResult<_>>()?)
        }
        _ => {
            let branch = |item: PyResult<Bound<'_, PyAny>>| read_tree(item?.cast::<PyTuple>()?);
            Tree::Tuple(inner.try_iter()?.map(branch).collect::<PyResult<_>>()?)
        }
    })
}

fn read_leaf(leaf: &Bound<'_, PyAny>) -> PyResult<Leaf> {
    let get = |key: &str| leaf.get_item(key);
    let kind: String = get("kind")?.extract()?;
    let kind = match kind.as_str() {
        "fixed" => {
            let dtype: String = get("dtype")?.extract()?;
            let known = DType::from_name(&dtype);
            let dtype = known.ok_or_else(|| PyValueError::new_err(format!("no dtype '{dtype}'")))?;
            let side = |key| -> PyResult<Vec<Scalar>> {
                if dtype.is_float() {
                    Ok(get(key)?.extract::<Vec<f64>>()?.into_iter().map(Scalar::Real).collect())
                } else {
                    Ok(get(key)?.extract::<Vec<i128>>()?.into_iter().map(Scalar::Int).collect())
                }
            };
            let shape = get("shape")?;
            let too_large =
                |_| raise(leaf.py(), "SpaceError", format!("a shape {shape} is too large for any memory"));
            LeafKind::Fixed(Tensor {
                dtype,
                shape: shape.extract().map_err(too_large)?,
                bounds: Bounds { low: side("low")?, high: side("high")? },
                discrete: get("discrete")?.extract()?,
            })
        }
        "text" => LeafKind::Text { max_len: get("max_len")?.extract()? },
        _ => LeafKind::Object,
    };
    Ok(Leaf::of(kind))
}
