//! The options of a vec env in the form in which Python gives them: one dict, by name.
//!
//! `corral.settings.VecOptions` says what each option means. Each option has its arm in
//! [`Settings::set`], which checks the value and stores it for the code that uses it.

use std::path::PathBuf;

use envcore::{ActionBounds, Error, OnFailure, Result, VecConfig};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use crate::assemble::InfoLayout;
use crate::begin::{self, count};
use crate::layers::Layers;
use crate::vec_env::seconds;

/// The options that a vec env is made with.
pub(crate) struct Settings {
    pub(crate) config: VecConfig,
    pub(crate) on_failure: OnFailure,
    /// How often a slot is restarted in a row.
    pub(crate) max_restarts: u32,
    /// The directory for recordings of failures.
    pub(crate) record: Option<PathBuf>,
    pub(crate) layers: Layers,
    pub(crate) layout: InfoLayout,
}

impl Settings {
    /// The settings `given` for `num_envs` envs; `usual_limit` is the envs' own time limit.
    pub(crate) fn read(
        given: &Bound<'_, PyDict>,
        num_envs: &Bound<'_, PyAny>,
        usual_limit: Option<u64>,
    ) -> Result<Self> {
        let mut settings = Settings {
            config: VecConfig {
                num_slots: count("num_envs", num_envs)?,
                max_episode_steps: usual_limit,
                ..VecConfig::default()
            },
            on_failure: OnFailure::default(),
            max_restarts: 10,
            record: None,
            layers: Layers {
                masked_actions: false,
                frame_stack: None,
                normalize_observation: false,
                normalize_reward: false,
                reward_gamma: 0.99,
            },
            layout: InfoLayout::Gymnasium,
        };
        // Reading a value may run Python code, which must not change the dict meanwhile.
        for (name, value) in given.copy().map_err(Error::env)? {
            settings.set(&text("the name of an option", &name)?, &value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> Result<()> {
        let Settings { config, layers, .. } = self;
        let value_or_none = (!value.is_none()).then_some(value);
        let count_or_none = || value_or_none.map(|value| count(name, value)).transpose();
        let time_or_none = || value_or_none.map(|time| seconds(name, time, false)).transpose();
        match name {
            "seed" => config.seed = value_or_none.map(seed).transpose()?,
            "autoreset_mode" => config.autoreset = Some(text(name, value)?.parse()?),
            "max_episode_steps" => {
                if let Some(steps) = value_or_none {
                    config.max_episode_steps = time_limit(steps)?;
                }
            }
            "episode_statistics" => config.episode_statistics = flag(name, value)?,
            "action_bounds" => config.action_bounds = bounds(&text(name, value)?)?,
            "debug" => config.debug = flag(name, value)?,
            "final_frames" => {
                let slots = value_or_none.map(|slots| slots_below(name, slots, config.num_slots));
                config.final_frames = slots.transpose()?.unwrap_or_default();
            }
            "check_actions" => layers.masked_actions = masked(value)?,
            "num_threads" => config.num_threads = count_or_none()?,
            "batch_size" => config.batch_size = count_or_none()?,
            "timeout" => config.timeout = time_or_none()?,
            "reset_timeout" => config.reset_timeout = time_or_none()?,
            "thread_affinity_offset" => {
                config.thread_affinity_offset = if is_minus_one(value) { None } else { count_or_none()? };
            }
            "on_failure" => self.on_failure = text(name, value)?.parse()?,
            "max_restarts" => {
                if let Some(n) = count_or_none()? {
                    let too_many =
                        |_| Error::Argument(format!("max_restarts is {n}: it must be below 2**32"));
                    self.max_restarts = u32::try_from(n).map_err(too_many)?;
                }
            }
            "record" => self.record = value_or_none.map(|path| directory(name, path)).transpose()?,
            "info_layout" => self.layout = layout(&text(name, value)?)?,
            "frame_stack" => layers.frame_stack = count_or_none()?,
            "normalize_observation" => layers.normalize_observation = flag(name, value)?,
            "normalize_reward" => layers.normalize_reward = flag(name, value)?,
            "reward_gamma" => layers.reward_gamma = discount(name, value)?,
            other => return Err(Error::UnknownOption(format!("vec envs have no option '{other}'"))),
        }
        Ok(())
    }
}

fn seed(given: &Bound<'_, PyAny>) -> Result<i64> {
    begin::number("seed", given)?.ok_or_else(|| {
        Error::ArgumentType("seed is an int here: env i gets seed + i; reset takes a list".into())
    })
}

fn is_minus_one(given: &Bound<'_, PyAny>) -> bool {
    !given.is_instance_of::<PyBool>() && given.extract::<i64>().is_ok_and(|number| number == -1)
}

fn time_limit(given: &Bound<'_, PyAny>) -> Result<Option<u64>> {
    if is_minus_one(given) {
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

fn flag(name: &str, given: &Bound<'_, PyAny>) -> Result<bool> {
    given.extract().map_err(|_| Error::ArgumentType(format!("{name} is a bool, not {given:?}")))
}

fn text(name: &str, given: &Bound<'_, PyAny>) -> Result<String> {
    let text = given.cast::<PyString>();
    let text = text.map_err(|_| Error::ArgumentType(format!("{name} is a str, not {given:?}")))?;
    let half = |_| Error::Argument(format!("{name} is {given:?}: one half of a character is no text"));
    text.to_cow().map(String::from).map_err(half)
}

fn bounds(name: &str) -> Result<ActionBounds> {
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

fn layout(name: &str) -> Result<InfoLayout> {
    let named = InfoLayout::ALL.into_iter().find(|(known, _)| *known == name);
    named.map(|(_, layout)| layout).ok_or_else(|| {
        let names = InfoLayout::ALL.map(|(known, _)| format!("'{known}'")).join(" or ");
        Error::Argument(format!("info_layout is {names}, not '{name}'"))
    })
}

/// Whether actions are checked against the env's mask too.
fn masked(given: &Bound<'_, PyAny>) -> Result<bool> {
    match text("check_actions", given)?.as_str() {
        "space" => Ok(false),
        "masked" => Ok(true),
        other => Err(Error::Argument(format!("check_actions is 'space' or 'masked', not '{other}'"))),
    }
}

fn directory(name: &str, given: &Bound<'_, PyAny>) -> Result<PathBuf> {
    given.extract().map_err(|error: PyErr| match error.is_instance_of::<PyTypeError>(given.py()) {
        true => Error::ArgumentType(format!("{name} is a path (a str or a Path), not {given:?}")),
        false => Error::env(error),
    })
}

/// Numbers of envs, each once and in ascending order.
fn slots_below(name: &str, given: &Bound<'_, PyAny>, num_slots: usize) -> Result<Vec<usize>> {
    let wrong = || Error::ArgumentType(format!("{name} is a sequence of ints, not {given:?}"));
    let mut slots = Vec::new();
    for slot in given.try_iter().map_err(|_| wrong())? {
        let slot = count(name, &slot.map_err(|_| wrong())?)?;
        if slot >= num_slots {
            return Err(Error::Argument(format!("{name}: there is no env {slot}: there are {num_slots}")));
        }
        slots.push(slot);
    }
    slots.sort_unstable();
    slots.dedup();
    Ok(slots)
}

fn discount(name: &str, given: &Bound<'_, PyAny>) -> Result<f64> {
    let number = if begin::is_bool(given) { None } else { given.extract::<f64>().ok() };
    let gamma = number.ok_or_else(|| Error::ArgumentType(format!("{name} is a float, not {given:?}")))?;
    match (0.0..=1.0).contains(&gamma) {
        true => Ok(gamma),
        false => Err(Error::Argument(format!("{name} is {given:?}: it must be from 0 to 1"))),
    }
}
