//! Functions that make vec envs by id.

use envcore::{FailurePolicy, OnFailure, Recorder};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::OrRaise;
use crate::interpreter::{TimeInPython, detach};
use crate::settings::Settings;
use crate::source::Source;
use crate::vec_env::VecEnv;

/// A vec env with the options `settings`, which are given by name; see [`Settings`].
#[pyfunction]
pub(crate) fn make(
    py: Python<'_>,
    source: &Bound<'_, Source>,
    num_envs: &Bound<'_, PyAny>,
    settings: &Bound<'_, PyDict>,
) -> PyResult<VecEnv> {
    let source = source.get();
    let settings = Settings::read(settings, num_envs, source.usual_limit()).or_raise(py)?;
    let Settings { config, on_failure, max_restarts, record, layers, layout } = settings;
    let (batch_size, action_bounds, debug) = (config.batch_size, config.action_bounds, config.debug);
    let closing = source.closing();
    let _time = TimeInPython::from_python(py);
    let envs = detach(py, || {
        let (mut envs, about) = source.start(config)?;
        if let Some(dir) = record {
            let recorder = Recorder::new(envs, &source.config(), action_bounds, &dir)?;
            envs = Box::new(recorder.with_debug(debug));
        }
        if on_failure != OnFailure::Raise {
            envs = Box::new(FailurePolicy::new(envs, on_failure, max_restarts)?);
        }
        let (envs, layered) = layers.over(envs)?;
        Ok((envs, layered, about))
    });
    let (envs, layered, about) = envs.or_raise(py)?;
    let about = source.about(py, about)?;
    VecEnv::new(py, envs, batch_size, about, layout, (closing, layered))
}

/// Errors where the machine has not `bytes` bytes of memory to give.
#[pyfunction]
pub(crate) fn check_room(py: Python<'_>, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
    envcore::check_room(bytes.extract().unwrap_or(usize::MAX)).or_raise(py)
}

/// The vector registers in use, and by which formulas exact kernels compute sines.
#[pyfunction]
pub(crate) fn simd() -> (&'static str, &'static str) {
    (envcore::simd::registers(), envcore::sines::SinesForm::in_use().name())
}

/// One dict per built-in env: id, about, max_episode_steps, reward_threshold,
/// render_fps, options and option_docs (JSON texts).
#[pyfunction]
pub(crate) fn entries(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let entry = |entry: &envs::Entry| -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("id", entry.id)?;
        dict.set_item("about", entry.about)?;
        dict.set_item("max_episode_steps", entry.max_episode_steps)?;
        dict.set_item("reward_threshold", entry.reward_threshold)?;
        dict.set_item("render_fps", entry.render_fps)?;
        dict.set_item("options", entry.defaults())?;
        dict.set_item("option_docs", entry.docs_json())?;
        Ok(dict)
    };
    PyList::new(py, envs::all().map(entry).collect::<PyResult<Vec<_>>>()?)
}
