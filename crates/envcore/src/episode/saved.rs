//! Saving and loading a slot: its env's state and its life's.

use std::time::Instant;

use super::{Episodes, Life, Status};
use crate::caps::Caps;
use crate::env::state;
use crate::error::{Phase, Result};
use crate::whole::{SavedPolicy, foreign, read, seal};

/// What a slot's state begins with; changes with its layout and with this
/// crate's version, which env states depend on.
const FORMAT: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " slot 4");

#[derive(serde::Serialize, serde::Deserialize)]
struct Saved {
    format: String,
    id: String,
    config: String,
    life: Life,
    /// Of each agent, where statistics were asked for.
    returns: Vec<f64>,
    env: Vec<u8>,
}

/// What these bytes say of a slot's life, if they are a slot's state.
pub(crate) fn saved_life(bytes: &[u8]) -> Option<Life> {
    let (_, bytes) = SavedPolicy::split(bytes).ok()?;
    read(&bytes, FORMAT).ok().map(|saved: Saved| saved.life)
}

impl Episodes {
    /// The state of `slot`: its env's and its life's.
    pub(crate) fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.lives.caps.require(Caps::SAVE, &self.lives.env, "save its state")?;
        let env = match self.lives.status(slot) {
            Status::Lost => Vec::new(),
            _ => self.chunk.save(slot).map_err(|error| self.named(slot, Phase::Save, error))?,
        };
        let saved = state::to_bytes(&Saved {
            format: FORMAT.into(),
            id: self.lives.env.clone(),
            config: self.config.clone(),
            life: self.lives.of(slot),
            returns: self.rules.statistics.iter().map(|_| self.returns[slot]).collect(),
            env,
        })?;
        Ok(seal(saved))
    }

    /// Takes up a state that `save` gave.
    pub(crate) fn load(&mut self, slot: usize, bytes: &[u8]) -> Result<()> {
        self.lives.caps.require(Caps::SAVE, &self.lives.env, "load a state")?;
        let (_, bytes) = SavedPolicy::split(bytes)?;
        let Saved { id, config, life, returns, env, .. } = read(&bytes, FORMAT)?;
        if id != self.lives.env {
            return Err(foreign("env", &id, &self.lives.env));
        }
        if config != self.config {
            return Err(foreign("config", &config, &self.config));
        }
        if !life.origin.options.is_empty() {
            self.chunk.check_options(&self.lives.env, &life.origin.options)?;
        }
        if life.status != Status::Lost {
            let loaded = self.chunk.load(slot, &env);
            loaded.map_err(|error| self.named(slot, Phase::Load, error))?;
        }
        let unknown = if life.steps == 0 { 0.0 } else { f64::NAN };
        self.returns[slot] = returns.first().copied().unwrap_or(unknown);
        self.started[slot] = Instant::now();
        self.lives.set(slot, life);
        Ok(())
    }
}
