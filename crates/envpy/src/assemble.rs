//! Batches as Gymnasium has them: arrays, dicts, infos with masks.

use envcore::{
    Batch, Column, DType, Element, Extra, FINAL_OBSERVATION, Fixed, Infos, LeafKind, RowKind, SlotError,
    Space, Tree, Value,
};
use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use smallvec::SmallVec;

use crate::array::{self, Descr};
use crate::errors;
use crate::infos;
use crate::values;

/// One leaf, ready for its arrays.
struct LeafShape {
    /// `None` for a leaf that is not of fixed shape.
    fixed: Option<(Descr, DType)>,
    shape: Vec<usize>,
    /// Whether a single value is a NumPy scalar (a `Discrete`'s) rather than an
    /// array of no axes (a `Box`'s).
    scalar: bool,
}

/// A space's leaves and tree, ready for arrays.
pub(crate) struct Shapes {
    leaves: Vec<LeafShape>,
    tree: Tree,
}

impl Shapes {
    pub(crate) fn of(py: Python<'_>, space: &Space) -> PyResult<Self> {
        let leaf = |leaf: &envcore::Leaf| -> PyResult<LeafShape> {
            Ok(match &leaf.kind {
                LeafKind::Fixed(t) => LeafShape {
                    fixed: Some((array::descr(py, t.dtype)?, t.dtype)),
                    shape: t.shape.clone(),
                    scalar: t.is_discrete_scalar() && t.dtype != DType::Bool,
                },
                _ => LeafShape { fixed: None, shape: Vec::new(), scalar: true },
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

    /// A copy of one row of `columns`.
    fn row<'py>(&self, py: Python<'py>, columns: &[Column], row: usize) -> PyResult<Bound<'py, PyAny>> {
        let values = self.leaves.iter().zip(columns).map(|(leaf, column)| leaf.row(py, column, row));
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
            (Column::Fixed(fixed), Some((descr, _))) => {
                let mut shape = SmallVec::<[usize; 4]>::with_capacity(self.shape.len() + 1);
                shape.push(fixed.rows());
                shape.extend_from_slice(&self.shape);
                array::over(py, fixed, descr, &shape)
            }
            (column, _) => {
                let values = column.as_values().unwrap_or_default();
                let items = values.iter().map(|value| values::to_py(py, value));
                Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
        }
    }

    fn single<'py>(&self, py: Python<'py>, column: Column) -> PyResult<Bound<'py, PyAny>> {
        match (column, &self.fixed) {
            (Column::Fixed(fixed), Some((descr, _))) => {
                let value = array::over(py, fixed, descr, &self.shape)?;
                if self.scalar { value.get_item(PyTuple::empty(py)) } else { Ok(value) }
            }
            (column, _) => values::to_py(py, &column.as_values().unwrap_or_default()[0]),
        }
    }

    fn row<'py>(&self, py: Python<'py>, column: &Column, row: usize) -> PyResult<Bound<'py, PyAny>> {
        match column {
            Column::Fixed(fixed) => {
                let n = fixed.row_bytes();
                let bytes = &fixed.bytes()[row * n..(row + 1) * n];
                let value = values::array_to_py(py, fixed.dtype(), &self.shape, bytes)?;
                if self.scalar { value.get_item(PyTuple::empty(py)) } else { Ok(value) }
            }
            Column::Values(values) => values::to_py(py, &values[row]),
        }
    }
}

/// Rows that failed, or whose env was rebuilt.
struct Trouble {
    /// Which failed, and how, where that is this batch's news.
    failed: Vec<(bool, Option<SlotError>)>,
    restarted: Vec<bool>,
}

impl Trouble {
    fn of(batch: &Batch) -> Option<Self> {
        let kinds = batch.kinds.as_slice::<u8>();
        let (failed, restarted) = (RowKind::Failed as u8, RowKind::Restarted as u8);
        // Those two are the last of the kinds.
        if batch.tolerated.is_empty() && kinds.iter().fold(0, |most, &kind| kind.max(most)) < failed {
            return None;
        }
        let failure = |(row, &kind): (usize, &u8)| {
            let slot = batch.slots.at(row);
            let news = batch.tolerated.iter().rev().find(|failure| failure.slot == slot);
            (kind == failed || news.is_some(), news.cloned())
        };
        Some(Trouble {
            failed: kinds.iter().enumerate().map(failure).collect(),
            restarted: kinds.iter().map(|&kind| kind == restarted).collect(),
        })
    }

    /// Adds `failed` and `restarted`, each with its mask.
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

/// What turns this vec env's batches into Python's.
pub(crate) struct Assembler {
    pub(crate) observation: Shapes,
    info: Shapes,
    /// Whether observations are as the envs show them, and not what a layer made
    /// of them.
    as_shown: bool,
    float64: Descr,
    bool_: Descr,
}

impl Assembler {
    pub(crate) fn new(py: Python<'_>, spec: &envcore::Spec, as_shown: bool) -> PyResult<Self> {
        Ok(Assembler {
            observation: Shapes::of(py, &spec.observation)?,
            info: Shapes::of(py, &spec.info)?,
            as_shown,
            float64: array::descr(py, DType::F64)?,
            bool_: array::descr(py, DType::Bool)?,
        })
    }

    /// `(observations, infos)` of a batch of resets.
    pub(crate) fn reset<'py>(&self, py: Python<'py>, batch: Box<Batch>) -> PyResult<Bound<'py, PyTuple>> {
        let trouble = Trouble::of(&batch);
        let infos = self.infos(py, batch.infos, batch.reward.rows())?;
        trouble.map(|trouble| trouble.tell(py, &infos)).transpose()?;
        (self.observation.batched(py, batch.observation)?, infos).into_pyobject(py)
    }

    /// As `step`, with `env_id` and `row_kind` among the infos.
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
        let trouble = Trouble::of(&batch);
        let infos = self.infos(py, std::mem::take(&mut batch.infos), rows)?;
        trouble.map(|trouble| trouble.tell(py, &infos)).transpose()?;
        if let Some(finals) = batch.finals.take() {
            self.finals(py, &infos, finals)?;
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

    fn infos<'py>(&self, py: Python<'py>, given: Infos, rows: usize) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        if !given.columns.is_empty() {
            let mut parts: Vec<Option<(Column, Fixed)>> =
                given.columns.into_iter().zip(given.masks).map(Some).collect();
            if let Tree::Dict(branches) = &self.info.tree {
                self.info_branches(py, branches, &mut parts, &dict)?;
            }
        }
        if !given.extras.is_empty() {
            infos::add(&dict, &given.extras, rows)?;
        }
        Ok(dict)
    }

    /// Adds the branches that any row has; tells which rows those are.
    fn info_branches<'py>(
        &self,
        py: Python<'py>,
        branches: &[(String, Tree)],
        parts: &mut [Option<(Column, Fixed)>],
        dict: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut any = None;
        for (name, branch) in branches {
            let Some((value, mask)) = self.info_value(py, branch, parts)? else { continue };
            if name == "episode"
                && let Tree::Dict(inner) = branch
            {
                // Gymnasium's episode statistics carry one mask, outside.
                for (key, _) in inner {
                    value.del_item(format!("_{key}"))?;
                }
            }
            any = either(any, &mask)?;
            dict.set_item(name, value)?;
            dict.set_item(format!("_{name}"), mask)?;
        }
        // A mask of its own for the level above.
        any.map(|mask| mask.call_method0("copy")).transpose()
    }

    /// What any row has of `branch`, and which rows those are.
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

    fn single_info<'py>(&self, py: Python<'py>, infos: Infos) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        if let Tree::Dict(branches) = &self.info.tree {
            self.single_branches(py, branches, &infos, &dict)?;
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
        dict: &Bound<'py, PyDict>,
    ) -> PyResult<()> {
        for (name, branch) in branches {
            if let Some(value) = self.single_value(py, branch, infos)? {
                dict.set_item(name, value)?;
            }
        }
        Ok(())
    }

    fn single_value<'py>(
        &self,
        py: Python<'py>,
        branch: &Tree,
        infos: &Infos,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match branch {
            Tree::Leaf(leaf) if !infos.masks[*leaf].as_slice::<bool>()[0] => None,
            Tree::Leaf(leaf) => {
                let shape = &self.info.leaves[*leaf];
                Some(match &infos.columns[*leaf] {
                    Column::Fixed(fixed) if shape.shape.is_empty() => plain(py, fixed)?,
                    column => shape.row(py, column, 0)?,
                })
            }
            Tree::Dict(inner) => {
                let nested = PyDict::new(py);
                self.single_branches(py, inner, infos, &nested)?;
                (!nested.is_empty()).then(|| nested.into_any())
            }
            Tree::Tuple(inner) => {
                let items = inner.iter().map(|branch| self.single_value(py, branch, infos));
                let items = items.collect::<PyResult<Vec<_>>>()?;
                match items.iter().any(Option::is_some) {
                    true => Some(PyTuple::new(py, items)?.into_any()),
                    false => None,
                }
            }
        })
    }

    /// `final_obs`, `final_info` and their masks, where any row ended.
    fn finals(&self, py: Python<'_>, infos: &Bound<'_, PyDict>, mut finals: envcore::Finals) -> PyResult<()> {
        let ended = finals.ended.as_slice::<bool>();
        if !ended.contains(&true) {
            return Ok(());
        }
        let rows = ended.len();
        let array = empty_objects(py, rows)?;
        let is_own = |extra: &mut Extra| extra.key == FINAL_OBSERVATION;
        let own: Vec<Extra> = finals.infos.extras.extract_if(.., is_own).collect();
        for (row, _) in ended.iter().enumerate().filter(|(_, ended)| **ended) {
            let observation = match own.iter().find(|extra| self.as_shown && extra.row == row) {
                Some(extra) => values::to_py(py, &extra.value)?,
                None => self.observation.row(py, &finals.observation, row)?,
            };
            array.set_item(row, observation)?;
        }
        infos.set_item(intern!(py, "final_obs"), array)?;
        let final_info = self.infos(py, finals.infos, rows)?;
        infos.set_item(intern!(py, "final_info"), final_info)?;
        let mask = array::over(py, finals.ended, &self.bool_, &[rows])?;
        infos.set_item(intern!(py, "_final_obs"), &mask)?;
        infos.set_item(intern!(py, "_final_info"), mask.call_method0("copy")?)
    }
}

/// The rows that are in either mask.
fn either<'py>(
    one: Option<Bound<'py, PyAny>>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(match one {
        None => other.clone(),
        Some(one) => one.call_method1("__or__", (other,))?,
    }))
}

/// An object array of `rows` times None.
pub(crate) fn empty_objects(py: Python<'_>, rows: usize) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.call_method1("full", (rows, py.None(), "object"))
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

/// The only element of a column, as a Python number.
fn plain<'py>(py: Python<'py>, fixed: &Fixed) -> PyResult<Bound<'py, PyAny>> {
    Ok(envcore::with_element!(fixed.dtype(), T => match fixed.as_slice::<T>()[0].to_scalar() {
        envcore::Scalar::Int(i) if fixed.dtype() == DType::Bool => PyBool::new(py, i != 0).to_owned().into_any(),
        envcore::Scalar::Int(i) => i.into_pyobject(py)?.into_any(),
        envcore::Scalar::Real(r) => r.into_pyobject(py)?.into_any(),
    }))
}
