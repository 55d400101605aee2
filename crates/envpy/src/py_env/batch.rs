//! A Python object that steps all slots by one call, such as a batch of envs of another
//! library, as a source of one chunk.
//!
//! `corral._python_batch.PythonBatch` says what the object must do. The object resets its
//! envs itself, in SAME_STEP. It has no seeds, indices, time limits or separate slots, and
//! fails as a whole. Its arrays are copied once, into the batch.
//!
//! Above 400 lines because the reading of one batch's reply cannot be divided.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use envcore::{
    AutoresetMode, Begin, Caps, Cause, Chunk, DType, Error, Failure, Options, Phase, ResetArgs, Result,
    RowsMut, Side, Source, SourceSpec, Space, StepArgs,
};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::env::{failure, is_exit, refused, tell};
use super::observe::{Refused, as_array, by_numpy, loose, place, tuple};
use super::shape::{KeyedNode, Shape, ShapeLeaf};
use super::{act, cast};
use crate::array;
use crate::errors::OrRaise;
use crate::interpreter::{ENDING, call_method, enter};
use crate::values;

/// A Python object that steps all its envs by one call.
pub(crate) struct BatchSource {
    spec: SourceSpec,
    common: Arc<BatchCommon>,
    num_envs: usize,
    /// Whether the source's only chunk was made.
    is_taken: AtomicBool,
}

struct BatchCommon {
    envs: Py<PyAny>,
    observation: Shape,
    action: Shape,
}

impl BatchSource {
    /// A source of `envs`.
    pub(crate) fn new(py: Python<'_>, id: &str, envs: &Bound<'_, PyAny>) -> PyResult<Self> {
        let observation = Shape::of(&envs.getattr("observation_space")?)?;
        let action = Shape::of(&envs.getattr("action_space")?)?;
        observation.space.check("observation").or_raise(py)?;
        action.space.check("action").or_raise(py)?;
        let mut caps = Caps::TRUNCATION;
        caps.set(Caps::RESET, envs.getattr("can_reset")?.is_truthy()?);
        let spec = SourceSpec {
            id: id.into(),
            observation: observation.space.clone(),
            action: action.space.clone(),
            info: Space::empty(),
            caps,
            autoreset: Some(AutoresetMode::SameStep),
            max_episode_steps: None,
            metadata: Options::new(),
            num_agents: 1,
            config: String::new(),
        };
        let num_envs = envs.getattr("num_envs")?.extract()?;
        let common = Arc::new(BatchCommon { envs: envs.clone().unbind(), observation, action });
        Ok(BatchSource { spec, common, num_envs, is_taken: AtomicBool::new(false) })
    }
}

impl Source for BatchSource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn chunks(&self) -> Option<usize> {
        Some(1)
    }

    fn chunk(&self, _first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        let (id, n) = (&self.spec.id, self.num_envs);
        if seeds.len() != n {
            return Err(Error::Unsupported(format!(
                "{id} steps all its {n} envs by one call: give num_envs={n}, num_threads=1, and neither \
                 batch_size nor timeout"
            )));
        }
        if self.is_taken.swap(true, Ordering::AcqRel) {
            return Err(Error::Unsupported(format!("{id} is a vec env already: make another for a second")));
        }
        Ok(Box::new(BatchChunk { common: self.common.clone(), num_envs: n, shown: None, is_open: true }))
    }
}

/// One leaf of the observations of all envs.
enum ShownLeaf {
    /// The envs' array, and the number of its bytes that belong to one env.
    Fixed(DType, Py<PyUntypedArray>, usize),
    /// A copy of the array's bytes, which are all valid bools.
    Bools(array::ArrayBytes, usize),
    Values(Vec<Py<PyAny>>),
}

struct BatchChunk {
    common: Arc<BatchCommon>,
    num_envs: usize,
    /// What the envs show at present; `None` before the first reset.
    shown: Option<Vec<ShownLeaf>>,
    is_open: bool,
}

impl BatchChunk {
    /// Plays all slots' actions.
    fn play(
        &mut self,
        py: Python<'_>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) -> Result<(), Refused> {
        let common = self.common.clone();
        let n = self.num_envs;
        let actions = common.gather(py, actions, n)?;
        let result = call_method(common.envs.bind(py), intern!(py, "step"), &(actions,).into_pyobject(py)?)?;
        let Some(result) = result.cast::<PyTuple>().ok().filter(|result| result.len() == 5) else {
            return Err(Refused::Misfit("step must return a tuple of 5".into()));
        };
        let shown = common.read(&result.get_item(0)?, n)?;
        let reward = numbers(&result.get_item(1)?, "rewards", DType::F64, n)?;
        let terminated = numbers(&result.get_item(2)?, "terminations", DType::Bool, n)?;
        let truncated = numbers(&result.get_item(3)?, "truncations", DType::Bool, n)?;
        for row in 0..n {
            let bytes = reward[8 * row..8 * row + 8].try_into().expect("eight bytes");
            rows.set(row, f64::from_ne_bytes(bytes), terminated[row] != 0, truncated[row] != 0);
            show(py, &shown, rows, row, row)?;
        }
        self.shown = Some(shown);
        let infos = result.get_item(4)?;
        (0..n).try_for_each(|row| tell_row(&infos, row, rows.start() + row, n, side))
    }

    /// Begins an episode in all envs. Returns the infos.
    fn begin<'py>(&mut self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Refused> {
        let common = self.common.clone();
        let begun = call_method(common.envs.bind(py), intern!(py, "reset"), &PyTuple::empty(py))?;
        let Some(pair) = begun.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2) else {
            return Err(Refused::Misfit("reset must return a tuple of 2".into()));
        };
        self.shown = Some(common.read(&pair.get_item(0)?, self.num_envs)?);
        Ok(pair.get_item(1)?)
    }

    /// Begins an episode in all envs or in none, and writes all observations.
    fn reset_all(
        &mut self,
        py: Python<'_>,
        resets: &[ResetArgs],
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) -> Result<(), Refused> {
        let begins = resets.iter().any(|reset| reset.begin != Begin::Keep);
        let infos = if begins { Some(self.begin(py)?) } else { None };
        let Some(shown) = &self.shown else {
            return Err(Refused::Misfit("they have shown nothing yet".into()));
        };
        resets.iter().try_for_each(|&ResetArgs { slot, row, .. }| {
            show(py, shown, rows, slot, row)?;
            let tell = |infos| tell_row(infos, slot, rows.start() + row, self.num_envs, side);
            infos.as_ref().map_or(Ok(()), tell)
        })
    }
}

impl BatchCommon {
    /// All slots' actions, nested like the action space.
    fn gather<'py>(&self, py: Python<'py>, actions: StepArgs<'_>, n: usize) -> PyResult<Bound<'py, PyAny>> {
        let Shape { parts, node, .. } = &self.action;
        let mut bytes = vec![Vec::new(); parts.len()];
        let mut loose = parts.iter().map(|_| PyList::empty(py)).collect::<Vec<_>>();
        for slot in 0..n {
            let mut row = actions.row(slot);
            for (leaf, part) in parts.iter().enumerate() {
                match part.tensor {
                    Some(_) => bytes[leaf].extend_from_slice(row.bytes()),
                    None => loose[leaf].append(values::to_py(py, row.value())?)?,
                }
            }
        }
        let leaf = |(leaf, part): (usize, &ShapeLeaf)| match &part.tensor {
            Some((tensor, descr)) => {
                let shape: Vec<usize> = std::iter::once(n).chain(tensor.shape.iter().copied()).collect();
                array::copy_of(py, descr, &shape, &bytes[leaf])
            }
            None => Ok(std::mem::replace(&mut loose[leaf], PyList::empty(py)).into_any()),
        };
        let leaves = parts.iter().enumerate().map(leaf).collect::<PyResult<Vec<_>>>()?;
        act::nest(py, node, &leaves)
    }

    /// The observations of all envs, leaf by leaf.
    fn read(&self, given: &Bound<'_, PyAny>, n: usize) -> Result<Vec<ShownLeaf>, Refused> {
        let mut shown = Vec::with_capacity(self.observation.parts.len());
        self.collect(&self.observation.node, given, n, &mut shown)?;
        Ok(shown)
    }

    fn collect(
        &self,
        node: &KeyedNode,
        given: &Bound<'_, PyAny>,
        n: usize,
        shown: &mut Vec<ShownLeaf>,
    ) -> Result<(), Refused> {
        match node {
            KeyedNode::Leaf(leaf) => {
                shown.push(read_leaf(&self.observation.parts[*leaf], given, n)?);
                Ok(())
            }
            KeyedNode::Dict(branches) => branches.iter().try_for_each(|(key, branch)| {
                let item = given.get_item(key).map_err(|_| {
                    Refused::Misfit(format!(
                        "the observations are a {} without the key {key}",
                        kind_of(given)
                    ))
                })?;
                self.collect(branch, &item, n, shown)
            }),
            KeyedNode::Tuple(branches) => branches.iter().enumerate().try_for_each(|(k, branch)| {
                let item = given.get_item(k).map_err(|_| {
                    let parts = branches.len();
                    Refused::Misfit(format!(
                        "the observations are no tuple of {parts}, but a {}",
                        kind_of(given)
                    ))
                })?;
                self.collect(branch, &item, n, shown)
            }),
        }
    }
}

fn kind_of(given: &Bound<'_, PyAny>) -> String {
    given.get_type().name().map_or_else(|_| "thing".into(), |name| name.to_string())
}

/// One leaf of all envs' observations, checked and cast to the leaf's dtype.
fn read_leaf(part: &ShapeLeaf, given: &Bound<'_, PyAny>, n: usize) -> Result<ShownLeaf, Refused> {
    let at = place(part);
    let Some((tensor, _)) = &part.tensor else {
        let rows = given.try_iter()?.map(|row| row.map(Bound::unbind)).collect::<PyResult<Vec<_>>>()?;
        if rows.len() != n {
            let why = format!("the observations{at} have {} rows for {n} envs", rows.len());
            return Err(Refused::Misfit(why));
        }
        return Ok(ShownLeaf::Values(rows));
    };
    let array = as_array(given).map_err(|error| {
        Refused::Misfit(format!("the observations{at} are a {} that is no array: {error}", kind_of(given)))
    })?;
    let right: Vec<usize> = std::iter::once(n).chain(tensor.shape.iter().copied()).collect();
    if array.shape() != right {
        let (shape, right) = (tuple(array.shape()), tuple(&right));
        return Err(Refused::Misfit(format!(
            "the observations{at} have shape {shape} where {right} belongs"
        )));
    }
    let array = match array::dtype_of(&array) {
        Some(dtype) if dtype == tensor.dtype => Some(array),
        Some(dtype) if cast::is_same_kind(dtype, tensor.dtype) => by_numpy(&array, tensor.dtype).ok(),
        _ => None,
    };
    let Some(array) = array else {
        let (dtype, right) = (as_array(given)?.dtype().to_string(), tensor.dtype);
        return Err(Refused::Misfit(format!(
            "the observations{at} have dtype {dtype} where {right} belongs"
        )));
    };
    if tensor.dtype == DType::Bool {
        let bools = array::bytes(&array).unwrap_or_default();
        if bools.iter().any(|byte| *byte > 1) {
            return Err(Refused::Misfit(format!("the observations{at} hold bools that are none")));
        }
        return Ok(ShownLeaf::Bools(bools, tensor.row_bytes()));
    }
    Ok(ShownLeaf::Fixed(tensor.dtype, array.unbind(), tensor.row_bytes()))
}

/// Writes env `slot`'s part of the observations to row `row`.
fn show(
    py: Python<'_>,
    shown: &[ShownLeaf],
    rows: &mut RowsMut<'_>,
    slot: usize,
    row: usize,
) -> PyResult<()> {
    let mut observation = rows.observation(row);
    for leaf in shown {
        match leaf {
            ShownLeaf::Bools(bools, size) => {
                observation.bytes(DType::Bool, &bools[slot * size..(slot + 1) * size]);
            }
            ShownLeaf::Fixed(dtype, array, size) => {
                array::put(array.bind(py), slot * size..(slot + 1) * size, *dtype, &mut observation);
            }
            ShownLeaf::Values(values) => observation.value(loose(values[slot].bind(py))?),
        }
    }
    Ok(())
}

/// The bytes of one number of `dtype` per env.
fn numbers(given: &Bound<'_, PyAny>, what: &str, dtype: DType, n: usize) -> Result<Vec<u8>, Refused> {
    let array = as_array(given)?;
    if array.shape() != [n] {
        let shape = tuple(array.shape());
        return Err(Refused::Misfit(format!("the {what} have shape {shape} where ({n},) belongs")));
    }
    let right = match array::dtype_of(&array) {
        Some(from) if from == dtype => Some(array),
        // Flags are often given as numbers.
        Some(_) if dtype == DType::Bool => {
            Some(as_array(&array.as_any().call_method1("astype", ("bool",))?)?)
        }
        Some(from) if cast::is_same_kind(from, dtype) => by_numpy(&array, dtype).ok(),
        _ => None,
    };
    match right.as_ref().and_then(array::bytes) {
        Some(bytes) => Ok(bytes.into_vec()),
        None => Err(Refused::Misfit(format!("the {what} are no array of {dtype}"))),
    }
}

/// Adds the infos of env `slot`, if the envs have any infos.
fn tell_row(
    infos: &Bound<'_, PyAny>,
    slot: usize,
    row: usize,
    n: usize,
    side: &mut Side,
) -> Result<(), Refused> {
    if infos.is_none() {
        return Ok(());
    }
    let Some(list) = infos.cast::<PyList>().ok().filter(|list| list.len() == n) else {
        return Err(Refused::Misfit(format!("the infos are no list of {n} dicts, but a {}", kind_of(infos))));
    };
    Ok(tell(&list.get_item(slot)?, row, side)?)
}

impl Chunk for BatchChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let n = self.num_envs;
        let played = if slots.len() != n || skip[slots.clone()].contains(&true) {
            let why = format!("all {n} envs are stepped by one call: send actions for all of them");
            Err(Failure::new(Phase::Step, Cause::Error, why))
        } else {
            let played =
                enter(|py| self.play(py, actions, rows, side).map_err(|why| refused(py, Phase::Step, why)));
            played.unwrap_or_else(|| Err(Failure::new(Phase::Step, Cause::Error, ENDING)))
        };
        if let Err(failure) = played {
            side.failures.extend(slots.map(|slot| (slot, failure.clone())));
        }
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        let n = self.num_envs;
        let begun = if resets.len() != n {
            let why = format!("all {n} envs are reset by one call: reset and receive all of them");
            Err(Failure::new(Phase::Reset, Cause::Error, why))
        } else {
            let begun = enter(|py| {
                self.reset_all(py, resets, rows, side).map_err(|why| refused(py, Phase::Reset, why))
            });
            begun.unwrap_or_else(|| Err(Failure::new(Phase::Reset, Cause::Error, ENDING)))
        };
        if let Err(failure) = begun {
            side.failures.extend(resets.iter().map(|reset| (reset.slot, failure.clone())));
        }
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        if !std::mem::take(&mut self.is_open) {
            return Vec::new();
        }
        let closed = enter(|py| {
            self.shown = None;
            match call_method(self.common.envs.bind(py), intern!(py, "close"), &PyTuple::empty(py)) {
                Err(error) if !is_exit(py, &error) => vec![(0, failure(py, Phase::Close, error))],
                _ => Vec::new(),
            }
        });
        closed.unwrap_or_default()
    }
}

impl Drop for BatchChunk {
    fn drop(&mut self) {
        self.close();
    }
}
