//! Infos in the layout that Gymnasium's vector envs gave them in version 0.29.
//!
//! The arrays have an element per row: numbers in typed arrays, anything else in object arrays with
//! None elsewhere, dicts and arrays too. The last infos of an episode are a dict in
//! `infos["final_info"]`, among them `episode`, which that version's RecordEpisodeStatistics put
//! there in the types below.

use envcore::{Column, DType, Finals, Fixed, Infos, Tree};
use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use super::{Assembler, empty_objects};
use crate::{array, values};

const EPISODE: &str = "episode";

/// How infos are laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InfoLayout {
    /// Gymnasium's, of version 1 and later.
    Gymnasium,
    /// That of Gymnasium 0.29.
    Gymnasium029,
}

impl InfoLayout {
    /// All layouts, with their names in Python.
    pub(crate) const ALL: [(&str, InfoLayout); 2] =
        [("gymnasium", InfoLayout::Gymnasium), ("gymnasium-0.29", InfoLayout::Gymnasium029)];
}

impl Assembler {
    /// The infos of a batch, but for the episode statistics.
    pub(super) fn infos_029<'py>(
        &self,
        py: Python<'py>,
        given: &Infos,
        rows: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        static ADD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let dict = PyDict::new(py);
        for (name, branch) in self.declared(given) {
            let told = match branch {
                Tree::Leaf(leaf) if self.is_number(*leaf) => self.numbers(py, given, *leaf)?,
                Tree::Dict(_) if name == EPISODE => None,
                branch => self.values(py, given, branch, rows)?,
            };
            if let Some((array, mask)) = told {
                dict.set_item(name, array)?;
                dict.set_item(format!("_{name}"), mask)?;
            }
        }
        for extra in &given.extras {
            let add = ADD.import(py, "corral._infos", "add_029")?;
            add.call1((&dict, &*extra.key, values::to_py(py, &extra.value)?, extra.row, rows))?;
        }
        Ok(dict)
    }

    /// Adds `final_observation`, `final_info` and their masks, where any row ended. The episodes'
    /// statistics are in `given`, the infos of the batch itself.
    pub(super) fn finals_029(
        &self,
        py: Python<'_>,
        infos: &Bound<'_, PyDict>,
        finals: Finals,
        given: &Infos,
    ) -> PyResult<()> {
        let Finals { ended, observation, infos: mut last } = finals;
        let flags = ended.as_slice::<bool>();
        if !flags.contains(&true) {
            return Ok(());
        }
        let seen = self.final_observations(py, flags, &observation, &mut last)?;
        let numbers = self.final_numbers(py, flags, &observation)?;
        infos.set_item(intern!(py, "final_observation"), numbers.unwrap_or(seen))?;
        let told = empty_objects(py, flags.len())?;
        for row in envcore::where_true(flags) {
            told.set_item(row, self.last_info(py, &last, given, row)?)?;
        }
        infos.set_item(intern!(py, "final_info"), told)?;
        let mask = || array::copy_of(py, &self.bool_, &[flags.len()], ended.bytes());
        infos.set_item(intern!(py, "_final_info"), mask()?)?;
        infos.set_item(intern!(py, "_final_observation"), mask()?)
    }

    /// Final observations that are plain numbers, in a typed array, as numbers of infos are.
    fn final_numbers<'py>(
        &self,
        py: Python<'py>,
        ended: &[bool],
        observation: &[Column],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (Tree::Leaf(0), [leaf], [Column::Fixed(column)]) =
            (&self.observation.tree, &self.observation.leaves[..], observation)
        else {
            return Ok(None);
        };
        if !leaf.scalar {
            return Ok(None);
        }
        let n = column.row_bytes();
        let rows = envcore::where_true(ended).into_iter();
        let given = rows.map(|row| (row, &column.bytes()[row * n..(row + 1) * n]));
        array::sparse(py, leaf.descr(), &[ended.len()], given).map(Some)
    }

    /// The last info of the episode that ended in `row`.
    fn last_info<'py>(
        &self,
        py: Python<'py>,
        last: &Infos,
        given: &Infos,
        row: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        for (name, branch) in self.declared(last) {
            if let Some(value) = self.single_value(py, branch, last, row)?
                && name != EPISODE
            {
                info.set_item(name, value)?;
            }
        }
        for extra in last.extras.iter().filter(|extra| extra.row == row) {
            info.set_item(&*extra.key, values::to_py(py, &extra.value)?)?;
        }
        for (name, branch) in self.declared(given) {
            if name == EPISODE
                && let Tree::Dict(statistics) = branch
            {
                self.statistics(py, statistics, given, row, &info)?;
            }
        }
        Ok(info)
    }

    /// Adds the statistics of the episode that ended in `row`, if there are any.
    fn statistics(
        &self,
        py: Python<'_>,
        statistics: &[(String, Tree)],
        given: &Infos,
        row: usize,
        info: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let episode = PyDict::new(py);
        for (name, branch) in statistics {
            let Tree::Leaf(leaf) = branch else { continue };
            let Column::Fixed(column) = &given.columns[*leaf] else { continue };
            if !given.masks[*leaf].as_slice::<bool>()[row] {
                continue;
            }
            let array = match column.dtype() {
                DType::I64 => PyArray1::from_slice(py, &[column.as_slice::<i64>()[row] as i32]).into_any(),
                _ => PyArray1::from_slice(py, &[column.as_slice::<f64>()[row] as f32]).into_any(),
            };
            episode.set_item(name, array)?;
        }
        if episode.is_empty() { Ok(()) } else { info.set_item(EPISODE, episode) }
    }

    /// The names that are declared, each with its branch.
    fn declared<'a>(&'a self, given: &Infos) -> impl Iterator<Item = (&'a str, &'a Tree)> {
        let branches = match &self.info.tree {
            Tree::Dict(branches) if !given.columns.is_empty() => &branches[..],
            _ => &[],
        };
        branches.iter().map(|(name, branch)| (name.as_str(), branch))
    }

    fn is_number(&self, leaf: usize) -> bool {
        let leaf = &self.info.leaves[leaf];
        leaf.fixed.is_some() && leaf.shape.is_empty()
    }

    /// The numbers of a leaf as an array of what Python's own numbers become, and their mask.
    fn numbers<'py>(&self, py: Python<'py>, given: &Infos, leaf: usize) -> PyResult<Named<'py>> {
        let (Column::Fixed(column), mask) = (&given.columns[leaf], &given.masks[leaf]) else {
            return Ok(None);
        };
        if !mask.as_slice::<bool>().contains(&true) {
            return Ok(None);
        }
        let rows = column.rows();
        let array = self.info.leaves[leaf].elements(py, rows, column.bytes())?;
        let array = match python_dtype(column) {
            Some(dtype) => array.call_method1(intern!(py, "astype"), (dtype,))?,
            None => array,
        };
        Ok(Some((array, array::copy_of(py, &self.bool_, &[rows], mask.bytes())?)))
    }

    /// An object for each row that has anything of `branch`, and their mask.
    fn values<'py>(
        &self,
        py: Python<'py>,
        given: &Infos,
        branch: &Tree,
        rows: usize,
    ) -> PyResult<Named<'py>> {
        let (array, mut mask) = (empty_objects(py, rows)?, vec![false; rows]);
        for (row, has) in mask.iter_mut().enumerate() {
            if let Some(value) = self.single_value(py, branch, given, row)? {
                array.set_item(row, value)?;
                *has = true;
            }
        }
        Ok(mask.contains(&true).then(|| (array, PyArray1::from_vec(py, mask).into_any())))
    }
}

/// The array of a name and its mask; `None` where no row has the name.
type Named<'py> = Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// The dtype of an array of Python's numbers, where the column's own is another.
fn python_dtype(column: &Fixed) -> Option<&'static str> {
    match column.dtype() {
        DType::Bool | DType::I64 | DType::U64 | DType::F64 => None,
        DType::F16 | DType::F32 => Some("float64"),
        _ => Some("int64"),
    }
}
