//! Python envs as a source.

use std::sync::{Arc, Mutex, PoisonError};

use envcore::{
    AutoresetMode, Begin, Caps, Chunk, Error, Failure, Options, Phase, Result, SlotError, Source, SourceSpec,
    Space,
};
use pyo3::intern;
use pyo3::prelude::*;

use super::act::Actor;
use super::chunk::{Common, PyChunk};
use super::env::{PyEnv, failure};
use super::shape::Shape;
use crate::errors;
use crate::interpreter::{ENDING, enter};

/// How Python envs are hosted.
#[derive(Clone, Copy)]
pub(crate) struct Hosting {
    /// Whether a NaN in an observation is a failure of the env.
    pub(crate) check_nan: bool,
    /// Whether the user gave seeds. Without seeds the envs' first reset gets none.
    pub(crate) seeded: bool,
}

/// Python envs, one factory per slot.
pub(crate) struct PySource {
    spec: SourceSpec,
    common: Arc<Common>,
    factories: Vec<Py<PyAny>>,
    /// What the first env tells of itself, its spaces included.
    about: Py<PyAny>,
    /// The env of the first slot, which was made to learn its spaces.
    first: Mutex<Option<PyEnv>>,
    first_slot: usize,
    /// By slot, the `identity` of the last env that was built.
    built: Mutex<Vec<usize>>,
}

/// The error of an env that could not be built; `slot` is the source's own number.
fn unbuilt(id: &str, slot: usize, seed: Option<i64>, failure: Failure) -> Error {
    let begin = seed.map_or(Begin::Own, Begin::Seed);
    Error::Slots(vec![SlotError::in_build(id, slot, begin, failure)])
}

impl PySource {
    /// A source of the envs that `factories` make. The first factory is called at once. Where
    /// the source is a part of a vec env, `first_slot` is the number of the source's first
    /// slot there, for messages; failures have the source's own numbers.
    pub(crate) fn new(
        py: Python<'_>,
        id: &str,
        factories: Vec<Py<PyAny>>,
        first_slot: usize,
        how: Hosting,
    ) -> Result<Self> {
        let Some(factory) = factories.first() else {
            return Err(Error::Argument("there are no envs: give at least one".into()));
        };
        let unmade = |error| unbuilt(id, 0, None, failure(py, Phase::Build, error));
        let first = PyEnv::build(py, factory, None).map_err(unmade)?;
        let read = || -> PyResult<(Shape, Shape, Py<PyAny>)> {
            let env = first.env(py);
            let observation = Shape::of(&env.getattr("observation_space")?)?;
            let action = Shape::of(&env.getattr("action_space")?)?;
            let about = py.import("corral._python_env")?.call_method1("about", (env,))?;
            Ok((observation, action, about.unbind()))
        };
        let read = read().map_err(unmade).and_then(|(observation, action, about)| {
            observation.space.check("observation")?;
            action.space.check("action")?;
            Ok((Actor::new(py, action).map_err(unmade)?, observation, about))
        });
        let (actor, observation, about) = read.inspect_err(|_| drop(first.close(py)))?;
        let mut caps = Caps::ENV | Caps::OPTIONS | Caps::OPTIONS_ONCE | Caps::CALL;
        caps.set(Caps::INDEX, first.bare.is_some());
        caps.set(Caps::UNSEEDED, !how.seeded);
        let render_mode = about.bind(py).getattr("render_mode").map_err(Error::env)?;
        caps.set(Caps::RENDER, !render_mode.is_none());
        let spec = SourceSpec {
            id: id.into(),
            observation: observation.space.clone(),
            action: actor.space().clone(),
            info: Space::empty(),
            caps,
            autoreset: None::<AutoresetMode>,
            max_episode_steps: None,
            metadata: Options::new(),
            num_agents: 1,
            config: String::new(),
        };
        let common = Arc::new(Common { observation, actor, check_nan: how.check_nan });
        let first = Mutex::new(Some(first));
        Ok(PySource { spec, common, factories, about, first, first_slot, built: Mutex::default() })
    }

    /// What a sink shows of the envs beyond what the core knows.
    pub(crate) fn about(&self, py: Python<'_>) -> Py<PyAny> {
        self.about.clone_ref(py)
    }

    fn build(&self, py: Python<'_>, k: usize, seed: Option<i64>) -> Result<PyEnv> {
        let slot = self.first_slot + k;
        let report = |error| unbuilt(&self.spec.id, k, seed, failure(py, Phase::Build, error));
        if k == 0
            && let Some(mut first) = self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            first.reseed(seed);
            *self.built.lock().unwrap_or_else(PoisonError::into_inner) = vec![first.identity];
            return Ok(first);
        }
        let env = PyEnv::build(py, &self.factories[k], seed).map_err(report)?;
        match self.check_new(&env, slot).map_err(Ok).and_then(|()| self.check(&env, slot, py)) {
            Ok(()) => Ok(env),
            Err(error) => {
                let _ = env.close(py);
                Err(error.unwrap_or_else(report))
            }
        }
    }

    /// Errors where an env is already that of another slot.
    fn check_new(&self, env: &PyEnv, slot: usize) -> Result<()> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = built.iter().position(|identity| *identity == env.identity) {
            let (id, other) = (&self.spec.id, self.first_slot + other);
            return Err(Error::Argument(format!(
                "{id}: envs {other} and {slot} are the same object: what makes an env must make a new one \
                 at every call, and not, as `lambda: env` does, give one that there is already"
            )));
        }
        built.push(env.identity);
        Ok(())
    }

    /// Errors where an env's spaces differ from those of the first env.
    fn check(&self, env: &PyEnv, slot: usize, py: Python<'_>) -> Result<(), Result<Error, PyErr>> {
        let spaces = [
            ("observation", intern!(py, "observation_space"), &self.spec.observation),
            ("action", intern!(py, "action_space"), &self.spec.action),
        ];
        for (what, attribute, first) in spaces {
            let is_equal = || -> PyResult<bool> {
                let space = env.env(py).getattr(attribute)?;
                let right = self.about.bind(py).getattr(attribute)?;
                let helpers = py.import(intern!(py, "corral._python_env"))?;
                match helpers.call_method1("are_equal", (&space, right))?.extract()? {
                    Some(is_equal) => Ok(is_equal),
                    // The space is of a class that cannot be compared.
                    None => Ok(Shape::of(&space)?.space == *first),
                }
            };
            if !is_equal().map_err(Err)? {
                let Self { spec, first_slot, .. } = self;
                let id = &spec.id;
                return Err(Ok(Error::Space(format!(
                    "{id}: the {what} space of env {slot} differs from that of env {first_slot}: \
                     all envs must have the same"
                ))));
            }
        }
        Ok(())
    }
}

impl Drop for PySource {
    fn drop(&mut self) {
        // No chunk was made of this source, so nobody else closes the first env.
        if let Some(first) = self.first.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = enter(|py| errors::beside(py, || first.close(py)));
        }
    }
}

impl Source for PySource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        let built = enter(|py| {
            let mut envs: Vec<Option<PyEnv>> = Vec::with_capacity(seeds.len());
            let seeded = !self.spec.caps.contains(Caps::UNSEEDED);
            for (k, &seed) in seeds.iter().enumerate() {
                match self.build(py, first_slot + k, seeded.then_some(seed)) {
                    Ok(env) => envs.push(Some(env)),
                    Err(error) => {
                        envs.iter().flatten().for_each(|env| drop(env.close(py)));
                        return Err(error);
                    }
                }
            }
            let factories = (0..seeds.len()).map(|k| self.factories[first_slot + k].clone_ref(py));
            Ok(PyChunk { common: self.common.clone(), factories: factories.collect(), envs })
        });
        match built {
            Some(chunk) => Ok(Box::new(chunk?)),
            None => Err(Error::env(ENDING)),
        }
    }

    fn vacant(&self, slot: usize) -> Result<Box<dyn Chunk>> {
        let chunk = enter(|py| PyChunk {
            common: self.common.clone(),
            factories: vec![self.factories[slot].clone_ref(py)],
            envs: vec![None],
        });
        chunk.map(|chunk| Box::new(chunk) as Box<dyn Chunk>).ok_or_else(|| Error::env(ENDING))
    }
}
