//! Saving and loading a slot: its env's state and its life's.

use std::sync::Arc;
use std::time::Instant;

use crate::begin::Begin;
use crate::caps::Caps;
use crate::env::state;
use crate::episode::{Episodes, Life, Status};
use crate::error::{Phase, Result};
use crate::space::Options;
use crate::vec_config::AutoresetMode;
use crate::whole::{SavedPolicy, foreign, read, seal, unseal};

/// What a slot's state begins with; changes with its layout and with this
/// crate's version, which env states depend on.
const FORMAT: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " slot 3");

#[derive(serde::Serialize, serde::Deserialize)]
struct Saved {
    format: String,
    id: String,
    config: String,
    status: Status,
    steps: u64,
    /// Where statistics were asked for.
    returns: Option<f64>,
    seed: i64,
    stream: i64,
    restarts: u64,
    begun: Begin,
    next: Begin,
    episodes: u64,
    options: Options,
    env: Vec<u8>,
}

/// What a slot's state says of its life.
pub(crate) struct SavedLife {
    pub(crate) status: Status,
    pub(crate) steps: u64,
    pub(crate) seed: i64,
    pub(crate) stream: i64,
    pub(crate) restarts: u64,
    pub(crate) begun: Begin,
    pub(crate) next: Begin,
    pub(crate) episodes: u64,
    pub(crate) options: Options,
}

impl SavedLife {
    /// What these bytes say, if they are a slot's state.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let (_, bytes) = SavedPolicy::split(bytes).ok()?;
        let saved: Saved = state::from_bytes(unseal(&bytes).ok()?).ok()?;
        (saved.format == FORMAT).then_some(SavedLife {
            status: saved.status,
            steps: saved.steps,
            seed: saved.seed,
            stream: saved.stream,
            restarts: saved.restarts,
            begun: saved.begun,
            next: saved.next,
            episodes: saved.episodes,
            options: saved.options,
        })
    }
}

impl Episodes {
    /// The state of `slot`: its env's and its life's.
    pub(crate) fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.caps.require(Caps::SAVE, &self.env, "save its state")?;
        let env = match self.status(slot) {
            Status::Lost => Vec::new(),
            _ => self.chunk.save(slot).map_err(|error| self.named(slot, Phase::Save, error))?,
        };
        let life = &self.lives[slot];
        let saved = state::to_bytes(&Saved {
            format: FORMAT.into(),
            id: self.env.clone(),
            config: self.config.clone(),
            status: self.status(slot),
            steps: self.ages.of(slot),
            returns: self.rules.statistics.map(|_| self.returns[slot]),
            seed: life.seed,
            stream: life.stream,
            restarts: life.restarts,
            begun: self.begun[slot],
            next: self.next(slot),
            episodes: self.episodes[slot],
            options: (*life.options).clone(),
            env,
        })?;
        Ok(seal(saved))
    }

    /// Takes up a state that `save` gave.
    pub(crate) fn load(&mut self, slot: usize, bytes: &[u8]) -> Result<()> {
        self.caps.require(Caps::SAVE, &self.env, "load a state")?;
        let (_, bytes) = SavedPolicy::split(bytes)?;
        let saved: Saved = read(&bytes, FORMAT)?;
        if saved.id != self.env {
            return Err(foreign("env", &saved.id, &self.env));
        }
        if saved.config != self.config {
            return Err(foreign("config", &saved.config, &self.config));
        }
        if !saved.options.is_empty() {
            self.chunk.check_options(&self.env, &saved.options)?;
        }
        if saved.status != Status::Lost {
            let loaded = self.chunk.load(slot, &saved.env);
            loaded.map_err(|error| self.named(slot, Phase::Load, error))?;
        }
        self.status[slot] = saved.status;
        // Wherever it was saved: an episode that is over awaits this mode's reset.
        self.pending[slot] = saved.status == Status::Ended && self.rules.autoreset != AutoresetMode::Disabled;
        self.ages.set(slot, saved.steps);
        let unknown = if saved.steps == 0 { 0.0 } else { f64::NAN };
        self.returns[slot] = saved.returns.unwrap_or(unknown);
        self.started[slot] = Instant::now();
        self.set_next(slot, saved.next);
        (self.begun[slot], self.episodes[slot]) = (saved.begun, saved.episodes);
        self.lives[slot] = Life {
            seed: saved.seed,
            stream: saved.stream,
            seeded: true,
            restarts: saved.restarts,
            options: Arc::new(saved.options),
        };
        Ok(())
    }
}
