//! Saving and loading a slot: its env's state and its life's.

use std::sync::Arc;
use std::time::Instant;

use crate::begin::Begin;
use crate::env::state;
use crate::episode::{Episodes, Life, Status};
use crate::error::{Error, Phase, Result};
use crate::space::Options;
use crate::vec_env::{AutoresetMode, Caps};

/// What a saved state begins with; changes with its layout.
const FORMAT: &str = "corral slot 1";

#[derive(serde::Serialize, serde::Deserialize)]
struct Saved {
    format: String,
    id: String,
    config: String,
    status: Status,
    steps: u64,
    returns: f64,
    seed: i64,
    restarts: u64,
    begun: Begin,
    next: Begin,
    episodes: u64,
    options: String,
    env: Vec<u8>,
}

fn options_from_json(text: &str) -> Result<Options> {
    use serde_json::Value as Json;
    fn value(json: &Json) -> crate::Value {
        match json {
            Json::Null => crate::Value::None,
            Json::Bool(v) => (*v).into(),
            Json::Number(n) => n.as_i64().map_or_else(|| n.as_f64().unwrap_or_default().into(), Into::into),
            Json::String(s) => s.as_str().into(),
            Json::Array(items) => items.iter().map(value).collect::<Vec<_>>().into(),
            Json::Object(map) => crate::Value::Map(options(map)),
        }
    }
    fn options(map: &serde_json::Map<String, Json>) -> Options {
        map.iter().fold(Options::new(), |all, (name, json)| all.with(name.as_str(), value(json)))
    }
    let json: Json = serde_json::from_str(text).map_err(|e| Error::State(e.to_string()))?;
    Ok(json.as_object().map(options).unwrap_or_default())
}

impl Episodes {
    /// The state of `slot`: its env's and its life's.
    pub(crate) fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.caps.require(Caps::SAVE, &self.env, "save its state")?;
        let env = match self.status[slot] {
            Status::Lost => Vec::new(),
            _ => self.chunk.save(slot).map_err(|error| self.named(slot, Phase::Save, error))?,
        };
        let life = &self.lives[slot];
        let options = crate::Value::Map((*life.options).clone()).to_json()?;
        state::to_bytes(&Saved {
            format: FORMAT.into(),
            id: self.env.clone(),
            config: self.config.clone(),
            status: self.status[slot],
            steps: self.steps[slot],
            returns: self.returns[slot],
            seed: life.seed,
            restarts: life.restarts,
            begun: life.begun,
            next: life.next,
            episodes: life.episodes,
            options: options.to_string(),
            env,
        })
    }

    /// Takes up a state that `save` gave.
    pub(crate) fn load(&mut self, slot: usize, bytes: &[u8]) -> Result<()> {
        self.caps.require(Caps::SAVE, &self.env, "load a state")?;
        let saved: Saved = state::from_bytes(bytes)?;
        let other = |what: &str, theirs: &str, ours: &str| {
            Error::State(format!("this state is of another {what}: {theirs}, not {ours}"))
        };
        if saved.format != FORMAT {
            return Err(other("format", &saved.format, FORMAT));
        }
        if saved.id != self.env {
            return Err(other("env", &saved.id, &self.env));
        }
        if saved.config != self.config {
            return Err(other("config", &saved.config, &self.config));
        }
        let options = Arc::new(options_from_json(&saved.options)?);
        if saved.status != Status::Lost {
            let loaded = self.chunk.load(slot, &saved.env);
            loaded.map_err(|error| self.named(slot, Phase::Load, error))?;
        }
        self.status[slot] = saved.status;
        // Wherever it was saved: an episode that is over awaits this mode's reset.
        self.pending[slot] = saved.status == Status::Ended && self.rules.autoreset != AutoresetMode::Disabled;
        self.steps[slot] = saved.steps;
        self.returns[slot] = saved.returns;
        self.lives[slot] = Life {
            seed: saved.seed,
            restarts: saved.restarts,
            begun: saved.begun,
            next: saved.next,
            episodes: saved.episodes,
            options,
            started: Instant::now(),
        };
        Ok(())
    }
}
