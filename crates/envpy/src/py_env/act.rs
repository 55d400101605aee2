//! Conversion of the core's columns to actions in the form in which Gymnasium gives them to
//! an env: NumPy scalars for labels, and arrays that the env may keep for the rest.

use envcore::{ActRow, Space};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::shape::{KeyedNode, Shape, ShapeLeaf};
use crate::array;
use crate::values;

/// Makes the actions of one vec env.
pub(super) struct Actor {
    shape: Shape,
    labels: Option<Labels>,
}

/// The labels of a single small `Discrete`, made once; most envs have such actions.
struct Labels {
    made: Vec<Py<PyAny>>,
    first: i64,
    /// NumPy's scalar type, for numbers that are not among the labels. Actions that nobody has
    /// checked may be any number.
    make: Py<PyAny>,
}

impl Labels {
    fn of<'py>(&self, py: Python<'py>, label: i64) -> PyResult<Bound<'py, PyAny>> {
        match self.made.get(label.wrapping_sub(self.first) as usize) {
            Some(made) => Ok(made.bind(py).clone()),
            None => self.make.bind(py).call1((label,)),
        }
    }
}

/// How many labels are made in advance at most; where there are more, none is.
const MOST: i128 = 4096;

impl Actor {
    pub(super) fn new(py: Python<'_>, shape: Shape) -> PyResult<Self> {
        let mut labels = None;
        if let (KeyedNode::Leaf(_), [ShapeLeaf { tensor: Some((tensor, descr)), .. }]) =
            (&shape.node, &shape.parts[..])
            && tensor.is_discrete_scalar()
            && tensor.dtype == envcore::DType::I64
            && let (envcore::Scalar::Int(low), envcore::Scalar::Int(high)) = tensor.bounds.at(0)
            && high - low < MOST
        {
            let make = descr.bind(py).getattr("type")?;
            let made = (low..=high).map(|label| Ok(make.call1((label as i64,))?.unbind()));
            let made = made.collect::<PyResult<_>>()?;
            labels = Some(Labels { made, first: low as i64, make: make.unbind() });
        }
        Ok(Actor { shape, labels })
    }

    pub(super) fn space(&self) -> &Space {
        &self.shape.space
    }

    /// The action in `row`.
    #[inline]
    pub(super) fn action<'py>(&self, py: Python<'py>, row: &mut ActRow<'_>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(labels) = &self.labels {
            return labels.of(py, row.scalar::<i64>());
        }
        let leaves = self.shape.parts.iter().map(|part| leaf_of(py, part, row));
        nest(py, &self.shape.node, &leaves.collect::<PyResult<SmallVec<[_; 1]>>>()?)
    }
}

/// The leaves' values, nested like `node`.
pub(super) fn nest<'py>(
    py: Python<'py>,
    node: &KeyedNode,
    leaves: &[Bound<'py, PyAny>],
) -> PyResult<Bound<'py, PyAny>> {
    match node {
        KeyedNode::Leaf(leaf) => Ok(leaves[*leaf].clone()),
        KeyedNode::Dict(branches) => {
            let dict = PyDict::new(py);
            branches.iter().try_for_each(|(key, branch)| dict.set_item(key, nest(py, branch, leaves)?))?;
            Ok(dict.into_any())
        }
        KeyedNode::Tuple(branches) => {
            let items = branches.iter().map(|branch| nest(py, branch, leaves));
            Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
    }
}

fn leaf_of<'py>(py: Python<'py>, part: &ShapeLeaf, row: &mut ActRow<'_>) -> PyResult<Bound<'py, PyAny>> {
    let Some((tensor, descr)) = &part.tensor else {
        return values::to_py(py, row.value());
    };
    let array = array::copy_of(py, descr, &tensor.shape, row.bytes())?;
    // An array without axes becomes a scalar, like an element of an array.
    if tensor.shape.is_empty() { array.get_item(PyTuple::empty(py)) } else { Ok(array) }
}
