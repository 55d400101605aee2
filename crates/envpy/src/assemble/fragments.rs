//! The arrays of a fragment: one over each block, and what was packed.

use envcore::{DType, EpisodeStatistics, Extra, Fragment, PackedRows, Part, Tree};
use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{Assembler, LeafShape, Shapes, empty_objects};
use crate::array::{self, Descr};
use crate::infos;

/// The arrays over the blocks of a fragment, made once.
pub(crate) struct FragmentArrays {
    /// By leaf, `(steps + 1, num_envs, …)`; `None` for a leaf that is not of fixed shape.
    observation: Vec<Option<Py<PyAny>>>,
    /// By info leaf, values and mask; `None` for a leaf that is not kept.
    infos: Vec<Option<InfoArrays>>,
    /// Rewards, terminations, truncations and row kinds, each `(steps, num_envs)`.
    scalars: [Py<PyAny>; 4],
}

/// The values of an info leaf, if it is of fixed shape, and their mask.
type InfoArrays = (Option<Py<PyAny>>, Py<PyAny>);

/// The values of info leaves, and their masks.
type Told<'py> = Vec<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>>;

impl Assembler {
    /// The arrays over the blocks of `fragment`, a fragment of `steps` steps of `rows` slots.
    pub(crate) fn blocks(
        &self,
        py: Python<'_>,
        fragment: &Fragment,
        (steps, rows): (usize, usize),
    ) -> PyResult<FragmentArrays> {
        let whole = |part, descr: &Descr, steps: usize, inner: &[usize]| -> PyResult<Py<PyAny>> {
            let column = fragment.whole(part).expect("a leaf of fixed shape that is kept");
            let envcore::Column::Fixed(column) = column else { unreachable!("blocks have elements") };
            let shape = [&[steps, rows], inner].concat();
            Ok(array::over(py, column, descr, &shape)?.unbind())
        };
        let leaf = |part, shape: &LeafShape| match &shape.fixed {
            Some(descr) => whole(part, descr, steps + 1, &shape.shape).map(Some),
            None => Ok(None),
        };
        let observation = self.observation.leaves.iter().enumerate();
        let info = |(k, shape): (usize, &LeafShape)| {
            if !fragment.keeps(k) {
                return Ok(None);
            }
            Ok(Some((leaf(Part::Info(k), shape)?, whole(Part::InfoMask(k), &self.bool_, steps + 1, &[])?)))
        };
        Ok(FragmentArrays {
            observation: observation
                .map(|(k, shape)| leaf(Part::Observation(k), shape))
                .collect::<PyResult<_>>()?,
            infos: self.info.leaves.iter().enumerate().map(info).collect::<PyResult<_>>()?,
            scalars: [
                whole(Part::Reward, &self.float64, steps, &[])?,
                whole(Part::Terminated, &self.bool_, steps, &[])?,
                whole(Part::Truncated, &self.bool_, steps, &[])?,
                whole(Part::Kind, &array::descr(py, DType::U8)?, steps, &[])?,
            ],
        })
    }

    /// What all slots show at a step, in the form of `VectorEnv.step`, and the infos that are kept.
    pub(crate) fn shown<'py>(
        &self,
        py: Python<'py>,
        fragment: &Fragment,
        arrays: &FragmentArrays,
        step: usize,
        rows: usize,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyDict>>)> {
        let window = step * rows..(step + 1) * rows;
        let at = |part, shape: &LeafShape, whole: &Option<Py<PyAny>>| match whole {
            Some(whole) => whole.bind(py).get_item(step),
            None => {
                let values = fragment.loose(part)[window.clone()].iter();
                let items = values.map(|value| shape.loose(py, value)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, items)?.into_any())
            }
        };
        let leaves = self.observation.leaves.iter().zip(&arrays.observation).enumerate();
        let leaves = leaves.map(|(k, (shape, whole))| at(Part::Observation(k), shape, whole));
        let leaves = leaves.collect::<PyResult<Vec<_>>>()?;
        let observation = self.observation.nest(py, &self.observation.tree, &leaves)?;
        let of_window = |extra: &&Extra| window.contains(&extra.row);
        let extras = fragment.extras().iter().filter(of_window);
        let extras: Vec<_> =
            extras.map(|extra| Extra { row: extra.row - window.start, ..extra.clone() }).collect();
        if extras.is_empty() && arrays.infos.iter().all(Option::is_none) {
            return Ok((observation, None));
        }
        let told = arrays.infos.iter().zip(&self.info.leaves).enumerate().map(|(k, (kept, shape))| {
            let Some((whole, mask)) = kept else { return Ok(None) };
            Ok(Some((at(Part::Info(k), shape, whole)?, mask.bind(py).get_item(step)?)))
        });
        let infos = self.told(py, &told.collect::<PyResult<_>>()?)?;
        infos::add(&infos, &extras, rows)?;
        Ok((observation, Some(infos)))
    }

    /// All that a fragment holds, of `steps` steps: a dict.
    pub(crate) fn fragment<'py>(
        &self,
        py: Python<'py>,
        fragment: &Fragment,
        arrays: &FragmentArrays,
        (steps, rows): (usize, usize),
    ) -> PyResult<Bound<'py, PyDict>> {
        let at = |part, shape: &LeafShape, whole: &Option<Py<PyAny>>| match whole {
            Some(whole) => Ok(whole.bind(py).clone()),
            None => {
                let values = fragment.loose(part);
                let array = empty_objects(py, values.len())?;
                for (row, value) in values.iter().enumerate() {
                    array.set_item(row, shape.loose(py, value)?)?;
                }
                array.call_method1("reshape", (steps + 1, rows))
            }
        };
        let leaves = self.observation.leaves.iter().zip(&arrays.observation).enumerate();
        let leaves = leaves.map(|(k, (shape, whole))| at(Part::Observation(k), shape, whole));
        let leaves = leaves.collect::<PyResult<Vec<_>>>()?;
        let told = arrays.infos.iter().zip(&self.info.leaves).enumerate().map(|(k, (kept, shape))| {
            let Some((whole, mask)) = kept else { return Ok(None) };
            Ok(Some((at(Part::Info(k), shape, whole)?, mask.bind(py).clone())))
        });
        let infos = self.told(py, &told.collect::<PyResult<_>>()?)?;
        let undeclared = PyDict::new(py);
        infos::add(&undeclared, fragment.extras(), (steps + 1) * rows)?;
        let dict = PyDict::new(py);
        dict.set_item(
            intern!(py, "observations"),
            self.observation.nest(py, &self.observation.tree, &leaves)?,
        )?;
        for (name, array) in
            ["rewards", "terminations", "truncations", "row_kinds"].iter().zip(&arrays.scalars)
        {
            dict.set_item(name, array)?;
        }
        dict.set_item(intern!(py, "infos"), infos)?;
        dict.set_item(intern!(py, "undeclared"), undeclared)?;
        dict.set_item(intern!(py, "finals"), self.ended(py, fragment)?)?;
        if let Some(EpisodeStatistics { places, leaf, rows }) = fragment.episodes() {
            let one = |k: usize| self.packed(py, &self.info, leaf + k, &rows[k], places.len());
            let numbers = (PyArray1::from_slice(py, places), one(0)?, one(1)?, one(2)?);
            dict.set_item(intern!(py, "episodes"), numbers)?;
        }
        Ok(dict)
    }

    /// `(observations, infos)` of the episodes that ended; None for observations that are not packed.
    fn ended<'py>(&self, py: Python<'py>, fragment: &Fragment) -> PyResult<Bound<'py, PyTuple>> {
        let ended = fragment.ended();
        let count = ended.count;
        let observation = if ended.observation.is_empty() && !self.observation.leaves.is_empty() {
            py.None().into_bound(py)
        } else {
            let leaves = ended.observation.iter().enumerate();
            let leaves = leaves.map(|(k, rows)| self.packed(py, &self.observation, k, rows, count));
            self.observation.nest(py, &self.observation.tree, &leaves.collect::<PyResult<Vec<_>>>()?)?
        };
        let told = ended.infos.iter().zip(&ended.told).enumerate().map(|(k, (rows, told))| {
            if !fragment.keeps(k) {
                return Ok(None);
            }
            let mask = PyArray1::from_slice(py, told).into_any();
            Ok(Some((self.packed(py, &self.info, k, rows, count)?, mask)))
        });
        let infos = self.told(py, &told.collect::<PyResult<_>>()?)?;
        infos::add(&infos, &ended.extras, count)?;
        (observation, infos).into_pyobject(py)
    }

    /// The packed rows of a leaf as an array, `(count, …)`.
    fn packed<'py>(
        &self,
        py: Python<'py>,
        shapes: &Shapes,
        leaf: usize,
        rows: &PackedRows,
        count: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        match rows {
            PackedRows::Fixed(bytes) => shapes.leaves[leaf].elements(py, count, bytes),
            PackedRows::Values(values) => {
                let array = empty_objects(py, count)?;
                for (row, value) in values.iter().enumerate() {
                    array.set_item(row, shapes.leaves[leaf].loose(py, value)?)?;
                }
                Ok(array)
            }
        }
    }

    /// The infos that are kept, nested like their space, each with its mask.
    fn told<'py>(&self, py: Python<'py>, leaves: &Told<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        if let Tree::Dict(branches) = &self.info.tree {
            told_branches(py, branches, leaves, &dict)?;
        }
        Ok(dict)
    }
}

/// Adds the branches that are kept. Returns a mask of the rows that have any.
fn told_branches<'py>(
    py: Python<'py>,
    branches: &[(String, Tree)],
    leaves: &Told<'py>,
    dict: &Bound<'py, PyDict>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut any = None;
    for (name, branch) in branches {
        let Some((value, mask)) = told_value(py, branch, leaves)? else { continue };
        any = super::infos::either(any, &mask)?;
        dict.set_item(name, value)?;
        dict.set_item(format!("_{name}"), mask)?;
    }
    Ok(any)
}

fn told_value<'py>(
    py: Python<'py>,
    branch: &Tree,
    leaves: &Told<'py>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    Ok(match branch {
        Tree::Leaf(leaf) => leaves[*leaf].clone(),
        Tree::Dict(inner) => {
            let nested = PyDict::new(py);
            told_branches(py, inner, leaves, &nested)?.map(|mask| (nested.into_any(), mask))
        }
        Tree::Tuple(inner) => {
            let (mut items, mut any) = (Vec::with_capacity(inner.len()), None);
            for branch in inner {
                let told = told_value(py, branch, leaves)?;
                if let Some((_, mask)) = &told {
                    any = super::infos::either(any, mask)?;
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
