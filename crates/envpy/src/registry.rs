//! Making vec envs by id.

use std::path::PathBuf;

use envcore::{ActionBounds, Error, OnFailure, Recorder, Tolerant, VecConfig};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};

use crate::begin;
use crate::errors::OrRaise;
use crate::interpreter::{Visit, detach};
use crate::layers::Layers;
use crate::source::Source;
use crate::vec_env::{VecEnv, seconds};

/// Restarts of a slot in a row, unless told otherwise.
const MAX_RESTARTS: u32 = 10;

/// A vec env.
///
/// `max_episode_steps`: None for the env's own limit, -1 for none.
#[pyfunction]
#[pyo3(signature = (source, num_envs, *, seed=None, autoreset_mode=None, max_episode_steps=None, episode_statistics=false, action_bounds="env", num_threads=None, batch_size=None, timeout=None, thread_affinity_offset=None, on_failure="raise", max_restarts=None, record=None, frame_stack=None, normalize_observation=false, reward_gamma=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn make(
    py: Python<'_>,
    source: &Bound<'_, Source>,
    num_envs: &Bound<'_, PyAny>,
    seed: Option<&Bound<'_, PyAny>>,
    autoreset_mode: Option<&str>,
    max_episode_steps: Option<&Bound<'_, PyAny>>,
    episode_statistics: bool,
    action_bounds: &str,
    num_threads: Option<&Bound<'_, PyAny>>,
    batch_size: Option<&Bound<'_, PyAny>>,
    timeout: Option<&Bound<'_, PyAny>>,
    thread_affinity_offset: Option<&Bound<'_, PyAny>>,
    on_failure: &str,
    max_restarts: Option<&Bound<'_, PyAny>>,
    record: Option<PathBuf>,
    frame_stack: Option<&Bound<'_, PyAny>>,
    normalize_observation: bool,
    reward_gamma: Option<f64>,
) -> PyResult<VecEnv> {
    let source = source.get();
    let limit = match max_episode_steps {
        None => Ok(source.usual_limit()),
        Some(steps) => time_limit(steps),
    };
    let frame_stack = frame_stack.map(|n| count("frame_stack", n)).transpose().or_raise(py)?;
    let layers = Layers { frame_stack, normalize_observation, reward_gamma };
    let policy: OnFailure = on_failure.parse().or_raise(py)?;
    let max_restarts = match max_restarts {
        None => MAX_RESTARTS,
        Some(n) => {
            let n = count("max_restarts", n).or_raise(py)?;
            let too_many = |_| Error::Argument(format!("max_restarts is {n}: it must be below 2**32"));
            u32::try_from(n).map_err(too_many).or_raise(py)?
        }
    };
    let batch_size = batch_size.map(|n| count("batch_size", n)).transpose().or_raise(py)?;
    let single = |seed: &Bound<'_, PyAny>| {
        begin::number("seed", seed)?.ok_or_else(|| {
            Error::ArgumentType("seed is an int here: slot i gets seed + i; reset takes a list".into())
        })
    };
    let action_bounds = bounds(action_bounds).or_raise(py)?;
    let config = VecConfig {
        num_slots: count("num_envs", num_envs).or_raise(py)?,
        seed: seed.map(single).transpose().or_raise(py)?,
        autoreset: autoreset_mode.map(str::parse).transpose().or_raise(py)?,
        max_episode_steps: limit.or_raise(py)?,
        episode_statistics,
        action_bounds,
        num_threads: num_threads.map(|n| count("num_threads", n)).transpose().or_raise(py)?,
        batch_size,
        timeout: timeout.map(|timeout| seconds(timeout, false)).transpose().or_raise(py)?,
        thread_affinity_offset: thread_affinity_offset
            .map(|n| count("thread_affinity_offset", n))
            .transpose()
            .or_raise(py)?,
    };
    let closing = source.closing();
    let _visit = Visit::from_python(py);
    let envs = detach(py, || {
        let (mut envs, about) = source.start(config)?;
        if let Some(dir) = record {
            envs = Box::new(Recorder::new(envs, &source.config(), action_bounds, &dir)?);
        }
        let (envs, layered) = layers.over(Box::new(Tolerant::new(envs, policy, max_restarts)?))?;
        Ok((envs, layered, about))
    });
    let (envs, layered, about) = envs.or_raise(py)?;
    let face = source.face(py, about)?;
    VecEnv::new(py, envs, batch_size, face, (closing, layered))
}

/// A number of things.
fn count(what: &str, given: &Bound<'_, PyAny>) -> envcore::Result<usize> {
    let number = begin::number(what, given)?;
    number.map(|n| n as usize).ok_or_else(|| Error::ArgumentType(format!("{what} is an int, not {given:?}")))
}

fn time_limit(given: &Bound<'_, PyAny>) -> envcore::Result<Option<u64>> {
    if !given.is_instance_of::<PyBool>() && given.extract::<i64>().is_ok_and(|steps| steps == -1) {
        return Ok(None);
    }
    match begin::number("max_episode_steps", given) {
        Ok(Some(steps)) if steps > 0 => Ok(Some(steps as u64)),
        Ok(None) => Err(Error::ArgumentType(format!("max_episode_steps is an int or None, not {given:?}"))),
        _ => Err(Error::Argument(format!(
            "max_episode_steps={given}: give at least 1, None for the env's own limit, -1 for none"
        ))),
    }
}

fn bounds(name: &str) -> envcore::Result<ActionBounds> {
    match name {
        "env" => Ok(ActionBounds::Env),
        "clip" => Ok(ActionBounds::Clip),
        "error" => Ok(ActionBounds::Error),
        "unchecked" => Ok(ActionBounds::Unchecked),
        other => Err(Error::Argument(format!(
            "action_bounds is 'env', 'clip', 'error' or 'unchecked', not '{other}'"
        ))),
    }
}

/// Errors where the machine has no `bytes` bytes of memory to give.
#[pyfunction]
pub(crate) fn check_room(py: Python<'_>, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
    envcore::check_room(bytes.extract().unwrap_or(usize::MAX)).or_raise(py)
}

/// One dict per built-in env: id, about, max_episode_steps, reward_threshold,
/// render_fps, options (JSON text).
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
        Ok(dict)
    };
    PyList::new(py, envs::all().map(entry).collect::<PyResult<Vec<_>>>()?)
}
