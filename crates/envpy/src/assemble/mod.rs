//! Batches in Gymnasium's form: arrays, dicts, infos with masks.

mod finals;
mod fragments;
mod gymnasium_029;
mod infos;
mod texts;

use std::sync::{Arc, Mutex, PoisonError};

use envcore::{Batch, Column, DType, Finals, Infos, LeafKind, RowKind, SlotError, Space, Tree, Value};
use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use crate::array::{self, Descr};
use crate::errors;
use crate::values;
pub(crate) use finals::FinalObservations;
pub(crate) use fragments::FragmentArrays;
pub(crate) use gymnasium_029::InfoLayout;
use texts::ShownTexts;

/// One leaf, with all that is needed to make its arrays.
struct LeafShape {
    /// The dtype; `None` for a leaf that is not of fixed shape.
    fixed: Option<Descr>,
    shape: Vec<usize>,
    /// Whether a single value is a NumPy scalar, as for `Discrete`, or an array without axes,
    /// as for `Box`.
    scalar: bool,
    is_text: bool,
    shown: Mutex<ShownTexts>,
}

/// A space's leaves and tree, with all that is needed to make arrays.
pub(crate) struct Shapes {
    leaves: Vec<LeafShape>,
    tree: Tree,
}

impl Shapes {
    pub(crate) fn of(py: Python<'_>, space: &Space) -> PyResult<Self> {
        let leaf = |leaf: &envcore::Leaf| -> PyResult<LeafShape> {
            Ok(match &leaf.kind {
                LeafKind::Fixed(t) => LeafShape {
                    fixed: Some(array::descr(py, t.dtype)?),
                    shape: t.shape.clone(),
                    scalar: t.is_discrete_scalar() && t.dtype != DType::Bool,
                    is_text: false,
                    shown: Mutex::default(),
                },
                kind => LeafShape {
                    fixed: None,
                    shape: Vec::new(),
                    scalar: true,
                    is_text: matches!(kind, LeafKind::Text { .. }),
                    shown: Mutex::default(),
                },
            })
        };
        let leaves = space.leaves().iter().map(leaf).collect::<PyResult<_>>()?;
        Ok(Shapes { leaves, tree: space.tree().clone() })
    }

    /// Arrays (or dicts of arrays) over all rows of `columns`.
    fn batched<'py>(&self, py: Python<'py>, columns: Vec<Column>) -> PyResult<Bound<'py, PyAny>> {
        if let (Tree::Leaf(0), [leaf]) = (&self.tree, &self.leaves[..]) {
            let column = columns.into_iter().next().expect("a column per leaf");
            return leaf.batched(py, column);
        }
        let arrays = self.leaves.iter().zip(columns).map(|(leaf, column)| leaf.batched(py, column));
        self.nest(py, &self.tree, &arrays.collect::<PyResult<Vec<_>>>()?)
    }

    /// The only row of `columns`, without the rows' axis.
    fn single<'py>(&self, py: Python<'py>, columns: Vec<Column>) -> PyResult<Bound<'py, PyAny>> {
        if let (Tree::Leaf(0), [leaf]) = (&self.tree, &self.leaves[..]) {
            let column = columns.into_iter().next().expect("a column per leaf");
            return leaf.single(py, column);
        }
        let values = self.leaves.iter().zip(columns).map(|(leaf, column)| leaf.single(py, column));
        self.nest(py, &self.tree, &values.collect::<PyResult<Vec<_>>>()?)
    }

    fn nest<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        leaves: &[Bound<'py, PyAny>],
    ) -> PyResult<Bound<'py, PyAny>> {
        match tree {
            Tree::Leaf(leaf) => Ok(leaves[*leaf].clone()),
            Tree::Dict(branches) => {
                let dict = PyDict::new(py);
                for (name, branch) in branches {
                    dict.set_item(name, self.nest(py, branch, leaves)?)?;
                }
                Ok(dict.into_any())
            }
            Tree::Tuple(branches) => {
                let items = branches.iter().map(|branch| self.nest(py, branch, leaves));
                Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
        }
    }
}

impl LeafShape {
    fn batched<'py>(&self, py: Python<'py>, column: Column) -> PyResult<Bound<'py, PyAny>> {
        match (column, &self.fixed) {
            (Column::Fixed(fixed), Some(descr)) => {
                let shape = self.with_rows(fixed.rows());
                array::over(py, fixed, descr, &shape)
            }
            (column, _) => {
                let values = column.as_values().unwrap_or_default();
                let shown = self.shown().again(py, values);
                if let Some(tuple) = shown {
                    return Ok(tuple.into_any());
                }
                // Making an object may run other code: nothing is borrowed meanwhile.
                let mut texts = std::mem::take(&mut *self.shown());
                let tuple = texts.show(py, values, |value| self.loose(py, value))?;
                *self.shown() = texts;
                Ok(tuple.into_any())
            }
        }
    }

    fn single<'py>(&self, py: Python<'py>, column: Column) -> PyResult<Bound<'py, PyAny>> {
        match (column, &self.fixed) {
            (Column::Fixed(fixed), Some(descr)) => {
                let value = array::over(py, fixed, descr, &self.shape)?;
                if self.scalar { value.get_item(PyTuple::empty(py)) } else { Ok(value) }
            }
            (column, _) => self.loose(py, &column.as_values().unwrap_or_default()[0]),
        }
    }

    /// The Python value of a leaf that is not of fixed shape. A text whose bytes are no UTF-8
    /// is bytes in the core and a `str` with surrogates in Python.
    fn loose<'py>(&self, py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        match value {
            Value::Array(bytes) if self.is_text => {
                let bytes = PyBytes::new(py, bytes.bytes());
                let text = PyString::from_encoded_object(&bytes, Some(c"utf-8"), Some(c"surrogateescape"))?;
                Ok(text.into_any())
            }
            value => values::to_py(py, value),
        }
    }

    fn row<'py>(&self, py: Python<'py>, column: &Column, row: usize) -> PyResult<Bound<'py, PyAny>> {
        match column {
            Column::Fixed(fixed) => {
                let n = fixed.row_bytes();
                self.element(py, &fixed.bytes()[row * n..(row + 1) * n])
            }
            Column::Values(values) => self.loose(py, &values[row]),
        }
    }

    /// A copy of the elements of one row.
    fn element<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let value = array::copy_of(py, self.descr(), &self.shape, bytes)?;
        if self.scalar { value.get_item(PyTuple::empty(py)) } else { Ok(value) }
    }

    /// A copy of the elements of `rows` rows.
    fn elements<'py>(&self, py: Python<'py>, rows: usize, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        array::copy_of(py, self.descr(), &self.with_rows(rows), bytes)
    }

    /// The shape of `rows` rows.
    fn with_rows(&self, rows: usize) -> SmallVec<[usize; 4]> {
        let mut shape = SmallVec::with_capacity(self.shape.len() + 1);
        shape.push(rows);
        shape.extend_from_slice(&self.shape);
        shape
    }

    fn descr(&self) -> &Descr {
        self.fixed.as_ref().expect("only leaves of fixed shape have elements")
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, ShownTexts> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows that failed, or whose env was rebuilt.
struct RowFailures {
    /// By row, whether it failed, and the failure if this batch brought it.
    failed: Vec<(bool, Option<SlotError>)>,
    restarted: Vec<bool>,
}

impl RowFailures {
    fn of(batch: &Batch) -> Option<Self> {
        let kinds = batch.kinds.as_slice::<u8>();
        let (failed, restarted) = (RowKind::Failed as u8, RowKind::Restarted as u8);
        // `Failed` and `Restarted` are the last row kinds.
        if batch.tolerated.is_empty() && kinds.iter().fold(0, |most, &kind| kind.max(most)) < failed {
            return None;
        }
        let failure = |(row, &kind): (usize, &u8)| {
            let slot = batch.slots.at(row);
            let news = batch.tolerated.iter().rev().find(|failure| failure.slot == slot);
            (kind == failed || news.is_some(), news.cloned())
        };
        Some(RowFailures {
            failed: kinds.iter().enumerate().map(failure).collect(),
            restarted: kinds.iter().map(|&kind| kind == restarted).collect(),
        })
    }

    /// Adds `failed` and `restarted` to the infos, each with its mask.
    fn tell(self, py: Python<'_>, infos: &Bound<'_, PyDict>) -> PyResult<()> {
        if self.failed.iter().any(|(failed, _)| *failed) {
            let array = empty_objects(py, self.failed.len())?;
            for (row, (_, failure)) in self.failed.iter().enumerate() {
                if let Some(failure) = failure {
                    array.set_item(row, errors::slot_failure(py, failure)?)?;
                }
            }
            let mask = self.failed.into_iter().map(|(failed, _)| failed).collect();
            infos.set_item(intern!(py, "failed"), array)?;
            infos.set_item(intern!(py, "_failed"), PyArray1::<bool>::from_vec(py, mask))?;
        }
        if self.restarted.contains(&true) {
            let mask = PyArray1::from_vec(py, self.restarted);
            infos.set_item(intern!(py, "_restarted"), mask.call_method0("copy")?)?;
            infos.set_item(intern!(py, "restarted"), mask)?;
        }
        Ok(())
    }
}

/// Converts this vec env's batches to Python objects.
pub(crate) struct Assembler {
    pub(crate) observation: Arc<Shapes>,
    info: Shapes,
    /// The names of the infos, each with that of its mask.
    info_keys: Vec<[Py<PyString>; 2]>,
    /// Whether observations are those that the envs show, which no layer has changed.
    as_shown: bool,
    /// Whether final observations are Python's objects from the start. Those of Python envs are, which
    /// take long anyway.
    finals_at_once: bool,
    layout: InfoLayout,
    float64: Descr,
    bool_: Descr,
}

impl Assembler {
    pub(crate) fn new(
        py: Python<'_>,
        spec: &envcore::Spec,
        as_shown: bool,
        finals_at_once: bool,
        layout: InfoLayout,
    ) -> PyResult<Self> {
        Ok(Assembler {
            info_keys: infos::keys(py, spec.info.tree()),
            observation: Arc::new(Shapes::of(py, &spec.observation)?),
            info: Shapes::of(py, &spec.info)?,
            as_shown,
            finals_at_once,
            layout,
            float64: array::descr(py, DType::F64)?,
            bool_: array::descr(py, DType::Bool)?,
        })
    }

    /// `(observations, infos)` of a batch of resets.
    pub(crate) fn reset<'py>(&self, py: Python<'py>, batch: Box<Batch>) -> PyResult<Bound<'py, PyTuple>> {
        let row_failures = RowFailures::of(&batch);
        let rows = batch.reward.rows();
        let infos = match self.layout {
            InfoLayout::Gymnasium => self.infos(py, batch.infos, rows)?,
            InfoLayout::Gymnasium029 => self.infos_029(py, &batch.infos, rows)?,
        };
        row_failures.map(|row_failures| row_failures.tell(py, &infos)).transpose()?;
        (self.observation.batched(py, batch.observation)?, infos).into_pyobject(py)
    }

    /// The tuple of `step`, with `env_id` and `row_kind` among the infos.
    pub(crate) fn receive<'py>(&self, py: Python<'py>, batch: Box<Batch>) -> PyResult<Bound<'py, PyTuple>> {
        let ids = (0..batch.rows()).map(|row| batch.slots.at(row) as i64).collect::<Vec<_>>();
        let kinds = PyArray1::from_slice(py, batch.kinds.as_slice::<u8>());
        let tuple = self.step(py, batch)?;
        let infos = tuple.get_item(4)?;
        infos.set_item(intern!(py, "env_id"), PyArray1::from_vec(py, ids))?;
        infos.set_item(intern!(py, "row_kind"), kinds)?;
        Ok(tuple)
    }

    /// `(observations, rewards, terminations, truncations, infos)`.
    pub(crate) fn step<'py>(&self, py: Python<'py>, mut batch: Box<Batch>) -> PyResult<Bound<'py, PyTuple>> {
        let rows = batch.rows();
        let row_failures = RowFailures::of(&batch);
        let infos = match self.layout {
            InfoLayout::Gymnasium => self.infos(py, std::mem::take(&mut batch.infos), rows)?,
            InfoLayout::Gymnasium029 => self.infos_029(py, &batch.infos, rows)?,
        };
        row_failures.map(|row_failures| row_failures.tell(py, &infos)).transpose()?;
        if let Some(finals) = batch.finals.take() {
            match self.layout {
                InfoLayout::Gymnasium => self.finals(py, &infos, finals)?,
                InfoLayout::Gymnasium029 => self.finals_029(py, &infos, finals, &batch.infos)?,
            }
        }
        let observations = self.observation.batched(py, batch.observation)?;
        let rewards = array::over(py, batch.reward, &self.float64, &[rows])?;
        let terminations = array::over(py, batch.terminated, &self.bool_, &[rows])?;
        let truncations = array::over(py, batch.truncated, &self.bool_, &[rows])?;
        (observations, rewards, terminations, truncations, infos).into_pyobject(py)
    }

    /// `(observation, info)` of the only slot.
    pub(crate) fn reset_single<'py>(
        &self,
        py: Python<'py>,
        batch: Box<Batch>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let info = self.single_info(py, batch.infos)?;
        (self.observation.single(py, batch.observation)?, info).into_pyobject(py)
    }

    /// `(observation, reward, terminated, truncated, info)` of the only slot.
    pub(crate) fn step_single<'py>(
        &self,
        py: Python<'py>,
        batch: Box<Batch>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let info = self.single_info(py, batch.infos)?;
        let reward = batch.reward.as_slice::<f64>()[0];
        let terminated = batch.terminated.as_slice::<bool>()[0];
        let truncated = batch.truncated.as_slice::<bool>()[0];
        let observation = self.observation.single(py, batch.observation)?;
        (observation, reward, terminated, truncated, info).into_pyobject(py)
    }

    /// Adds `final_obs`, `final_info` and their masks, where any row ended.
    fn finals(&self, py: Python<'_>, infos: &Bound<'_, PyDict>, finals: Finals) -> PyResult<()> {
        let Finals { ended, observation, infos: mut last } = finals;
        let flags = ended.as_slice::<bool>();
        if !flags.contains(&true) {
            return Ok(());
        }
        let rows = flags.len();
        let seen = self.final_observations(py, flags, &observation, &mut last)?;
        infos.set_item(intern!(py, "final_obs"), seen)?;
        infos.set_item(intern!(py, "final_info"), self.infos(py, last, rows)?)?;
        let mask = array::copy_of(py, &self.bool_, &[rows], ended.bytes())?;
        infos.set_item(intern!(py, "_final_info"), mask)?;
        infos.set_item(intern!(py, "_final_obs"), array::over(py, ended, &self.bool_, &[rows])?)
    }

    /// The final observations of the rows `ended`; those that are Python's are taken out of the
    /// infos `last`.
    fn final_observations<'py>(
        &self,
        py: Python<'py>,
        ended: &[bool],
        observation: &[Column],
        last: &mut Infos,
    ) -> PyResult<Bound<'py, PyAny>> {
        let seen =
            FinalObservations::new(&self.observation, ended, observation, &mut last.extras, self.as_shown);
        match self.finals_at_once {
            true => seen.array(py).cloned(),
            false => Ok(Bound::new(py, seen)?.into_any()),
        }
    }
}

/// An object array of `rows` elements, each of which is None.
pub(crate) fn empty_objects(py: Python<'_>, rows: usize) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.call_method1("full", (rows, py.None(), "object"))
}
