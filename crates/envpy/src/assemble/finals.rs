//! The last observations of the episodes that a step ended, made into Python's objects only for
//! callers that look at them.

use std::sync::Arc;

use envcore::{Column, Extra, FINAL_OBSERVATION, PackedRows, Value};
use numpy::PyUntypedArray;
use pyo3::PyTypeInfo;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyIterator, PyTuple, PyType};

use super::{Shapes, empty_objects};
use crate::values;

/// `infos["final_obs"]` of a step in which episodes ended.
///
/// It is Gymnasium's object array: an observation in the rows whose episodes ended, None in all
/// others. The array is made when it is first read; a caller that never reads it does not pay
/// for an object per episode. `rows` and `stacked` have the same observations without objects.
/// `isinstance` says that it is a `numpy.ndarray`, as which programs know it.
#[pyclass(module = "corral._native", frozen, sequence)]
pub(crate) struct FinalObservations {
    shapes: Arc<Shapes>,
    num_rows: usize,
    ended: Vec<usize>,
    /// By leaf, the rows of `ended`.
    leaves: Vec<PackedRows>,
    /// By place in `ended`, observations in the form that their envs gave them.
    own: Vec<(usize, Value)>,
    /// The object array, once anyone has read it.
    array: PyOnceLock<Py<PyAny>>,
}

impl FinalObservations {
    /// The final observations `columns` of a batch, of the rows in which `ended` is true.
    /// `as_shown` says that no layer changes what envs show.
    pub(super) fn new(
        shapes: &Arc<Shapes>,
        ended: &[bool],
        columns: &[Column],
        extras: &mut Vec<Extra>,
        as_shown: bool,
    ) -> Self {
        let rows = envcore::where_true(ended);
        let own = extras.extract_if(.., |extra| extra.key == FINAL_OBSERVATION);
        let own = own.filter_map(|extra| Some((rows.binary_search(&extra.row).ok()?, extra.value)));
        FinalObservations {
            own: own.filter(|_| as_shown).collect(),
            leaves: columns.iter().map(|column| PackedRows::of_rows(column, &rows)).collect(),
            shapes: shapes.clone(),
            num_rows: ended.len(),
            ended: rows,
            array: PyOnceLock::new(),
        }
    }

    /// The observation number `at` of those that there are.
    fn observation<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        if let Some((_, value)) = self.own.iter().find(|(k, _)| *k == at) {
            return values::to_py(py, value);
        }
        let leaf = |(leaf, rows): (&super::LeafShape, &PackedRows)| match rows {
            PackedRows::Fixed(bytes) => {
                let n = bytes.len() / self.ended.len();
                leaf.element(py, &bytes[at * n..(at + 1) * n])
            }
            PackedRows::Values(values) => leaf.loose(py, &values[at]),
        };
        let leaves = self.shapes.leaves.iter().zip(&self.leaves).map(leaf).collect::<PyResult<Vec<_>>>()?;
        self.shapes.nest(py, &self.shapes.tree, &leaves)
    }

    pub(super) fn array<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let make = || {
            let array = empty_objects(py, self.num_rows)?;
            for (at, &row) in self.ended.iter().enumerate() {
                array.set_item(row, self.observation(py, at)?)?;
            }
            Ok(array.unbind())
        };
        self.array.get_or_try_init(py, make).map(|array| array.bind(py))
    }
}

#[pymethods]
impl FinalObservations {
    /// The rows whose episodes ended: int64, ascending.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        numpy::PyArray1::from_iter(py, self.ended.iter().map(|&row| row as i64)).into_any()
    }

    /// The observations of `rows`, stacked: `(len(rows), …)`, nested like the space. Made anew for
    /// each caller.
    #[getter]
    fn stacked<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let leaf = |(leaf, rows): (&super::LeafShape, &PackedRows)| match rows {
            PackedRows::Fixed(bytes) => leaf.elements(py, self.ended.len(), bytes),
            PackedRows::Values(values) => {
                let items = values.iter().map(|value| leaf.loose(py, value));
                Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
        };
        let leaves = self.shapes.leaves.iter().zip(&self.leaves).map(leaf).collect::<PyResult<Vec<_>>>()?;
        self.shapes.nest(py, &self.shapes.tree, &leaves)
    }

    #[getter(__class__)]
    fn class<'py>(&self, py: Python<'py>) -> Bound<'py, PyType> {
        PyUntypedArray::type_object(py)
    }

    fn __len__(&self) -> usize {
        self.num_rows
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.array(key.py())?.get_item(key)
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.array(key.py())?.set_item(key, value)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.array(py)?.try_iter()
    }

    /// The object array itself, where neither another dtype nor a copy is asked for.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.array(py)?;
        match (dtype, copy) {
            (Some(dtype), _) => array.call_method1("astype", (dtype,)),
            (None, Some(true)) => array.call_method0("copy"),
            (None, _) => Ok(array.clone()),
        }
    }

    /// All else that an array has.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        // NumPy and `copy` look for names with underscores, which would make them take this
        // object's memory for that of an array.
        if name.starts_with('_') {
            return Err(PyAttributeError::new_err(format!("FinalObservations has no attribute '{name}'")));
        }
        self.array(py)?.getattr(name)
    }

    fn __richcmp__<'py>(&self, other: &Bound<'py, PyAny>, op: CompareOp) -> PyResult<Bound<'py, PyAny>> {
        self.array(other.py())?.rich_compare(other, op)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.array(py)?.repr()?.to_string())
    }

    /// Pickled and copied as the array.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py)?.call_method0("__reduce__")
    }
}
