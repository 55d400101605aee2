//! `corral._native.Plugin`: a plugin, which is a library of envs.

use std::path::PathBuf;

use envcore::abi::plugin::load;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::OrRaise;

/// A plugin that was loaded.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct Plugin(pub(crate) load::Plugin);

#[pymethods]
impl Plugin {
    /// Loads the library at `path`.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        // SAFETY: the user who names a library wants its code to run.
        #[allow(unsafe_code)]
        let opened = py.detach(|| unsafe { load::Plugin::open(&path) });
        opened.map(Plugin).or_raise(py)
    }

    /// The text before the `/` of the plugin's ids.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The version of the plugin itself.
    #[getter]
    fn version(&self) -> &str {
        self.0.version()
    }

    /// The path that the plugin was loaded from.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }

    /// One dict per env, in the form of `registry.entries`.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let entry = |listed: &load::Listed| {
            let dict = PyDict::new(py);
            dict.set_item("id", &listed.id)?;
            dict.set_item("about", &listed.about)?;
            dict.set_item("max_episode_steps", listed.max_episode_steps)?;
            dict.set_item("reward_threshold", listed.reward_threshold)?;
            dict.set_item("render_fps", listed.render_fps)?;
            dict.set_item("options", &listed.options)?;
            dict.set_item("option_docs", &listed.option_docs)?;
            Ok(dict)
        };
        PyList::new(py, self.0.envs().map(entry).collect::<PyResult<Vec<_>>>()?)
    }
}
