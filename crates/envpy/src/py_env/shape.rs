//! A Python env's space: its leaves, and how they hang together.

use envcore::{Bounds, DType, Leaf, LeafKind, Scalar, Space, Tensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::array;
use crate::errors::raise;
use crate::spaces::Tree;

/// One leaf, ready to be read and written.
pub(crate) struct Part {
    /// Its path, for messages.
    pub(crate) name: String,
    /// `None` for a leaf that is not of fixed shape.
    pub(crate) tensor: Option<(Tensor, array::Descr)>,
}

/// How parts hang together, with keys that Python knows.
pub(crate) enum Node {
    Leaf(usize),
    Dict(Vec<(Py<PyString>, Node)>),
    Tuple(Vec<Node>),
}

/// A space of a Python env.
pub(crate) struct Shape {
    pub(crate) space: Space,
    pub(crate) parts: Vec<Part>,
    pub(crate) node: Node,
}

impl Shape {
    /// The shape of a Gymnasium space.
    pub(crate) fn of(space: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = space.py();
        let (tree, leaves): (Bound<'_, PyTuple>, Bound<'_, PyList>) =
            py.import("corral._python_env")?.call_method1("leaves_of", (space,))?.extract()?;
        let leaves = leaves.iter().map(|leaf| read_leaf(&leaf)).collect::<PyResult<Vec<_>>>()?;
        let part = |leaf: &Leaf| -> PyResult<Part> {
            let tensor = match &leaf.kind {
                LeafKind::Fixed(tensor) => Some((tensor.clone(), array::descr(py, tensor.dtype)?)),
                _ => None,
            };
            Ok(Part { name: leaf.name.clone(), tensor })
        };
        let parts = leaves.iter().map(part).collect::<PyResult<_>>()?;
        Ok(Shape { parts, space: Space::of(leaves), node: read_node(&tree)? })
    }

    /// The tree that batches are nested by.
    pub(crate) fn tree(&self, py: Python<'_>) -> PyResult<Tree> {
        plain(py, &self.node)
    }
}

fn plain(py: Python<'_>, node: &Node) -> PyResult<Tree> {
    Ok(match node {
        Node::Leaf(leaf) => Tree::Leaf(*leaf),
        Node::Dict(branches) => {
            let named = branches.iter().map(|(key, node)| Ok((key.extract(py)?, plain(py, node)?)));
            Tree::Branches(named.collect::<PyResult<_>>()?)
        }
        Node::Tuple(nodes) => Tree::Tuple(nodes.iter().map(|node| plain(py, node)).collect::<PyResult<_>>()?),
    })
}

fn read_node(tree: &Bound<'_, PyTuple>) -> PyResult<Node> {
    let kind: String = tree.get_item(0)?.extract()?;
    let inner = tree.get_item(1)?;
    Ok(match kind.as_str() {
        "leaf" => Node::Leaf(inner.extract()?),
        "dict" => {
            let branch = |item: PyResult<Bound<'_, PyAny>>| {
                let (key, tree): (Bound<'_, PyString>, Bound<'_, PyTuple>) = item?.extract()?;
                Ok((key.unbind(), read_node(&tree)?))
            };
            Node::Dict(inner.try_iter()?.map(branch).collect::<PyResult<_>>()?)
        }
        _ => {
            let branch = |item: PyResult<Bound<'_, PyAny>>| read_node(item?.cast::<PyTuple>()?);
            Node::Tuple(inner.try_iter()?.map(branch).collect::<PyResult<_>>()?)
        }
    })
}

fn read_leaf(leaf: &Bound<'_, PyAny>) -> PyResult<Leaf> {
    let get = |key: &str| leaf.get_item(key);
    let name: String = get("name")?.extract()?;
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
            let too_large = |_| {
                let at = if name.is_empty() { String::new() } else { format!("leaf '{name}': ") };
                raise(leaf.py(), "SpaceError", format!("{at}shape {shape} is too large for any memory"))
            };
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
    Ok(Leaf::of(kind).named(name))
}
