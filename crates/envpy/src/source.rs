//! `corral._native.Source`: what vec envs are made of.

use std::sync::Arc;

use envcore::{Process, Result, VecConfig, VecEnv, start};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::OrRaise;
use crate::host::PyHost;
use crate::plugin::Plugin;
use crate::py_env::{BatchSource, Face, PySource};
use crate::values;

enum Kind {
    Here(Arc<dyn envcore::Source>),
    /// In worker processes.
    There {
        host: Arc<PyHost>,
        num_workers: Option<usize>,
    },
}

/// What workers told of their envs, if there are any.
type About = Option<Vec<u8>>;

/// What a vec env is made of: a built-in env with its options, or Python envs,
/// in this process or in workers.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct Source {
    kind: Kind,
    face: Option<Face>,
}

#[pymethods]
impl Source {
    /// A built-in env.
    #[staticmethod]
    #[pyo3(signature = (id, options=None))]
    fn builtin(py: Python<'_>, id: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = options.map(values::options).transpose()?.unwrap_or_default();
        let source = envs::find(id).and_then(|entry| entry.source(&options)).or_raise(py)?;
        Ok(Source { kind: Kind::Here(source.into()), face: None })
    }

    /// An env of a plugin, which messages call `namespace/id`.
    #[staticmethod]
    #[pyo3(signature = (plugin, namespace, id, options=None))]
    fn plugin(
        py: Python<'_>,
        plugin: &Bound<'_, Plugin>,
        namespace: &str,
        id: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = options.map(values::options).transpose()?.unwrap_or_default();
        let source = plugin.get().0.source(namespace, id, &options).or_raise(py)?;
        Ok(Source { kind: Kind::Here(Arc::new(source)), face: None })
    }

    /// Python envs in this process: `factories` make one each, the first at once.
    #[staticmethod]
    #[pyo3(signature = (id, factories, *, check_nan=true))]
    fn python(py: Python<'_>, id: &str, factories: &Bound<'_, PyList>, check_nan: bool) -> PyResult<Self> {
        let factories = factories.iter().map(Bound::unbind).collect();
        let (source, face) = PySource::new(py, id, factories, 0, check_nan).or_raise(py)?;
        Ok(Source { kind: Kind::Here(Arc::new(source)), face: Some(face) })
    }

    /// Python envs that one object steps together, by one call; see
    /// `corral._python_batch.PythonBatch`.
    #[staticmethod]
    fn python_batch(py: Python<'_>, id: &str, envs: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (source, face) = BatchSource::new(py, id, envs)?;
        Ok(Source { kind: Kind::Here(Arc::new(source)), face: Some(face) })
    }

    /// Python envs in worker processes.
    ///
    /// `payload(start, stop)` gives the bytes from which a worker makes those
    /// slots' envs; `command` starts a worker, or `launcher.launch(worker,
    /// control_fd, stderr_fd)` does, whose result has `pid`, `poll()` and
    /// `kill()`.
    #[staticmethod]
    #[pyo3(signature = (payload, *, command=None, launcher=None, num_workers=None))]
    fn workers(
        payload: Py<PyAny>,
        command: Option<Vec<String>>,
        launcher: Option<Py<PyAny>>,
        num_workers: Option<usize>,
    ) -> Self {
        let host = Arc::new(PyHost::new(payload, command, launcher));
        Source { kind: Kind::There { host, num_workers }, face: None }
    }
}

impl Source {
    pub(crate) fn usual_limit(&self) -> Option<u64> {
        match &self.kind {
            Kind::Here(source) => source.spec().max_episode_steps,
            Kind::There { .. } => None,
        }
    }

    /// A text that tells its config.
    pub(crate) fn config(&self) -> String {
        match &self.kind {
            Kind::Here(source) => source.spec().config.clone(),
            Kind::There { .. } => String::new(),
        }
    }

    /// A vec env of it, and, of workers, what they tell of their envs.
    pub(crate) fn start(&self, config: VecConfig) -> Result<(Box<dyn VecEnv>, About)> {
        match &self.kind {
            Kind::Here(source) => Ok((start(source.clone(), config)?, None)),
            Kind::There { host, num_workers } => {
                let envs = Process::new(host.clone(), config, *num_workers)?;
                let about = envs.about().to_vec();
                Ok((Box::new(envs), Some(about)))
            }
        }
    }

    /// What sinks show of its envs, if the core does not know.
    pub(crate) fn face(&self, py: Python<'_>, about: About) -> PyResult<Option<Face>> {
        match (&self.face, about) {
            (Some(face), _) => Ok(Some(face.clone_ref(py))),
            (None, Some(about)) => Face::of(crate::host::unpack(py, &about)?).map(Some),
            (None, None) => Ok(None),
        }
    }
}
