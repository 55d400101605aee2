//! Saving and loading a slot: the state of its env and of its life.

use std::time::Instant;

use super::{Episodes, Life, Status};
use crate::caps::Caps;
use crate::error::{Phase, Result};
use crate::saved::{POLICY, SavedPolicy, Sections, SlotState, foreign};

/// The name of the section that has an env and its life.
const ENV: &str = "env";

#[derive(serde::Serialize, serde::Deserialize)]
struct SavedEnv {
    id: String,
    config: String,
    life: Life,
    /// The return of each agent so far, where statistics were asked for.
    returns: Vec<f64>,
    #[serde(with = "crate::bytes")]
    env: Vec<u8>,
}

/// The life that the state of a slot has, if it has one.
pub(crate) fn saved_life(state: Sections<'_>) -> Option<Life> {
    split(state).ok().map(|saved| saved.life)
}

/// The section of the env, which is the last one. A section of a failure policy before
/// it is skipped, because a vec env without a policy may load the state.
fn split(state: Sections<'_>) -> Result<SavedEnv> {
    let (_, state) = state.take_if::<SavedPolicy>(POLICY)?;
    let (saved, rest) = state.take(ENV)?;
    rest.end()?;
    Ok(saved)
}

impl Episodes {
    /// The state of `slot`: that of its env and that of its life.
    pub(crate) fn save(&mut self, slot: usize) -> Result<SlotState> {
        self.lives.caps.require(Caps::SAVE, &self.lives.env, "save its state")?;
        let env = match self.lives.status(slot) {
            Status::Lost => Vec::new(),
            _ => self.chunk.save(slot).map_err(|error| self.named(slot, Phase::Save, error))?,
        };
        let saved = SavedEnv {
            id: self.lives.env.clone(),
            config: self.config.clone(),
            life: self.lives.of(slot),
            returns: self.rules.statistics.iter().map(|_| self.returns[slot]).collect(),
            env,
        };
        let mut state = SlotState::default();
        state.push(ENV, &saved)?;
        Ok(state)
    }

    /// Restores a state that `save` gave.
    pub(crate) fn load(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        self.lives.caps.require(Caps::SAVE, &self.lives.env, "load a state")?;
        let SavedEnv { id, config, life, returns, env } = split(state)?;
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
