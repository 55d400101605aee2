//! `corral._native.Recording`: a failure's file, for `corral.replay`.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors::OrRaise;

/// A recording read from its file.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct Recording(pub(crate) envcore::Recording);

#[pymethods]
impl Recording {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| envcore::Recording::read(&path)).map(Recording).or_raise(py)
    }

    /// All of the recording but its calls, as JSON text.
    #[getter]
    fn head(&self) -> String {
        self.0.head()
    }

    #[getter]
    fn num_calls(&self) -> usize {
        self.0.num_calls()
    }

    /// The seed to build the env from.
    #[getter]
    fn seed(&self) -> Option<i64> {
        self.0.seed()
    }

    /// A call as JSON text.
    fn call(&self, call: usize) -> Option<String> {
        self.0.call(call)
    }

    fn is_reset(&self, call: usize) -> bool {
        self.0.is_reset(call)
    }

    /// Whether a failure with these texts is the one that was recorded.
    fn is_of(&self, phase: &str, cause: &str, message: &str) -> bool {
        self.0.is_of(phase, cause, message)
    }
}
