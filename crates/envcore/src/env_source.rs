//! The source of envs of one type.

use std::sync::Arc;

use crate::begin::Begin;
use crate::caps::Caps;
use crate::config::Config;
use crate::env::Env;
use crate::env_list::{EnvList, flatten};
use crate::error::{Error, Phase, Result, SlotError};
use crate::event::EVENTS;
use crate::guard::guard;
use crate::mask::{ACTION_MASK, mask_leaf};
use crate::source::{Chunk, Source, SourceSpec};
use crate::space::{Options, Space, Tree};

/// The capabilities that an [`Env`] may name in its `CAPS`.
pub(crate) const OPTIONAL: Caps = Caps::SAVE
    .union(Caps::RENDER)
    .union(Caps::OPTIONS)
    .union(Caps::BRIEF)
    .union(Caps::CALL)
    .union(Caps::EVENTS)
    .union(Caps::ACTION_MASK)
    .union(Caps::ANSI);

/// An [`Env`] type with a config, which can fill slots.
pub struct EnvSource<E: Env> {
    spec: SourceSpec,
    config: Arc<E::Config>,
    /// How many leaves are those of `E::Info`; those of the record follow.
    info_leaves: usize,
    /// Makes a chunk of a list of envs.
    pub(crate) chunk_of: fn(EnvList<E>) -> Box<dyn Chunk>,
}

impl<E: Env> EnvSource<E> {
    /// The source of `E` under `config`, called `id`.
    ///
    /// # Errors
    /// [`Error::Space`] where one of the env's spaces contradicts itself.
    pub fn new(id: &str, config: E::Config) -> Result<Self> {
        let info = match E::info_space(&config)? {
            space if matches!(space.tree(), Tree::Dict(_)) => space,
            unnamed => Space::dict([("info", unnamed)]),
        };
        let info_leaves = info.leaves().len();
        let mut info = info.join(E::record_space(&config)?)?;
        let action = E::action_space(&config)?;
        for (cap, name) in [(Caps::EVENTS, EVENTS), (Caps::ACTION_MASK, ACTION_MASK)] {
            if E::CAPS.contains(cap) && info.has_key(name) {
                return Err(Error::Space(format!(
                    "{id}: its info or record declares '{name}', which {cap:?} in its CAPS adds: give it another name"
                )));
            }
        }
        if E::CAPS.contains(Caps::ACTION_MASK) {
            info = info.join(mask_leaf(id, &action)?.into())?;
        }
        // The text comes by a call.
        let by_name = if E::CAPS.contains(Caps::ANSI) { Caps::CALL } else { Caps::empty() };
        let spec = SourceSpec {
            id: id.into(),
            observation: E::observation_space(&config)?,
            action,
            info,
            caps: Caps::ENV | (E::CAPS & OPTIONAL) | by_name,
            autoreset: None,
            max_episode_steps: None,
            metadata: Options::new(),
            config: config.to_json().to_string(),
            num_agents: 1,
        };
        spec.observation.check(&format!("{id}: observation"))?;
        spec.action.check(&format!("{id}: action"))?;
        spec.info.check(&format!("{id}: info"))?;
        if spec.action.leaves().is_empty() {
            return Err(Error::Space(format!("{id}: its action space has no leaves")));
        }
        Ok(EnvSource { spec, config: Arc::new(config), info_leaves, chunk_of: |list| Box::new(list) })
    }

    fn list(&self, envs: Vec<Option<E>>) -> EnvList<E> {
        EnvList::new(&self.spec, self.config.clone(), self.info_leaves, envs)
    }

    /// This source with a usual time limit in steps.
    pub fn with_max_episode_steps(mut self, steps: Option<u64>) -> Self {
        self.spec.max_episode_steps = steps;
        self
    }

    /// This source with metadata for sinks.
    pub fn with_metadata(mut self, metadata: Options) -> Self {
        self.spec.metadata = metadata;
        self
    }
}

impl<E: Env> Source for EnvSource<E> {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        let build = |(k, &seed): (usize, &i64)| {
            // A config that contradicts itself is an error of its own, not an env's failure.
            let built = guard(Phase::Build, || E::build(&self.config, seed));
            if let Ok(Err(error @ (Error::OptionValue(_) | Error::UnknownOption(_)))) = built {
                return Err(error);
            }
            flatten(Phase::Build, built).map(Some).map_err(|failure| {
                let (id, slot) = (self.spec.id.as_str(), first_slot + k);
                Error::Slots(vec![SlotError::in_build(id, slot, Begin::Seed(seed), failure)])
            })
        };
        Ok((self.chunk_of)(self.list(seeds.iter().enumerate().map(build).collect::<Result<_>>()?)))
    }

    fn vacant(&self, _slot: usize) -> Result<Box<dyn Chunk>> {
        Ok((self.chunk_of)(self.list(vec![None])))
    }
}
