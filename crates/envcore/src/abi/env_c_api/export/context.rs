//! One context: its settings, then one env.

use std::ffi::{CString, c_int};

use super::super::sys::status;
use super::actions::StickyActions;
use super::c_text;
use super::events::PendingEvents;
use super::observations::{SeenLeaf, SeenValue};
use super::properties::ConfigProperties;
use super::settings::{Setting, chosen, explain};
use crate::begin::Begin;
use crate::buffer::{Batch, Slots};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::runner;
use crate::source::SourceSpec;
use crate::space::Value;
use crate::vec_config::{AutoresetMode, VecConfig};
use crate::vec_env::{VecEnv, Want};

/// What a host holds.
pub(super) struct Context {
    table: &'static [Entry],
    settings: Vec<Setting>,
    pub(super) running: Option<Box<RunningEnv>>,
    /// What went wrong last.
    pub(super) message: CString,
    /// What a host was last given the address of.
    pub(super) given: Given,
}

/// Memory that a host may look at until its next call.
#[derive(Default)]
pub(super) struct Given {
    pub(super) text: CString,
    pub(super) seen: Option<SeenValue>,
    pub(super) event: Vec<super::super::sys::Observation>,
}

/// An env that was made.
pub(super) struct RunningEnv {
    pub(super) envs: Box<dyn VecEnv>,
    /// Of the source that the env was made of.
    pub(super) spec: SourceSpec,
    vec_config: VecConfig,
    pub(super) name: CString,
    pub(super) fps: c_int,
    pub(super) actions: StickyActions,
    pub(super) observations: Vec<SeenLeaf>,
    pub(super) events: PendingEvents,
    pub(super) config: ConfigProperties,
    pub(super) played: Played,
    by_index: bool,
    /// What is seen: nothing before the first start, and after a failure.
    last: Option<Box<Batch>>,
    is_running: bool,
}

/// What was played so far.
#[derive(Default)]
pub(super) struct Played {
    episodes: u64,
    steps: u64,
    episode_return: f64,
    episode_length: u64,
}

impl Played {
    pub(super) const NAMES: [&str; 4] = ["episodes", "steps", "episode_return", "episode_length"];

    /// The statistic of this name.
    pub(super) fn statistic(&self, name: &str) -> Option<String> {
        match name {
            "episodes" => Some(self.episodes.to_string()),
            "steps" => Some(self.steps.to_string()),
            "episode_return" => Some(self.episode_return.to_string()),
            "episode_length" => Some(self.episode_length.to_string()),
            _ => None,
        }
    }
}

impl Context {
    pub(super) fn new(table: &'static [Entry]) -> Self {
        Context {
            table,
            settings: Vec::new(),
            running: None,
            message: CString::default(),
            given: Given::default(),
        }
    }

    pub(super) fn setting(&mut self, key: String, text: String) -> Result<()> {
        if self.running.is_some() {
            return Err(Error::Argument(format!("setting '{key}' comes after init")));
        }
        self.settings.retain(|earlier| earlier.key != key);
        self.settings.push(Setting { key, text });
        Ok(())
    }

    pub(super) fn init(&mut self) -> Result<()> {
        if self.running.is_some() {
            return Err(Error::Argument("init was called before".into()));
        }
        self.running = Some(Box::new(RunningEnv::new(self.table, &self.settings)?));
        Ok(())
    }

    /// The env.
    ///
    /// # Errors
    /// [`Error::NeedsReset`] before `init`.
    pub(super) fn running(&mut self) -> Result<&mut RunningEnv> {
        self.running.as_deref_mut().ok_or_else(|| Error::NeedsReset("call init first".into()))
    }
}

impl RunningEnv {
    fn new(table: &'static [Entry], settings: &[Setting]) -> Result<Self> {
        let (chosen, by_index) = chosen(table, settings)?;
        let source = chosen.entry.source(&chosen.config).map_err(explain)?;
        let spec = source.spec().clone();
        let actions = StickyActions::of(&spec.action)?;
        let observations: Vec<SeenLeaf> =
            spec.observation.leaves().iter().map(SeenLeaf::of).collect::<Result<_>>()?;
        check_names(
            actions.discrete.iter().chain(&actions.continuous).map(|element| &element.name),
            "action",
        )?;
        check_names(observations.iter().map(|leaf| &leaf.name), "observation")?;
        let events = PendingEvents::of(&spec.info);
        let fps = match spec.metadata.get("render_fps") {
            Some(Value::Int(fps)) => c_int::try_from(*fps).unwrap_or(c_int::MAX),
            _ => 0,
        };
        let vec_config = VecConfig {
            num_slots: 1,
            seed: chosen.seed,
            autoreset: Some(AutoresetMode::Disabled),
            max_episode_steps: chosen.max_episode_steps.unwrap_or(spec.max_episode_steps),
            num_threads: chosen.num_threads,
            ..VecConfig::default()
        };
        let name = c_text(chosen.entry.id);
        let envs = runner::start(source.into(), vec_config.clone())?;
        Ok(RunningEnv {
            envs,
            spec,
            vec_config,
            name,
            fps,
            actions,
            observations,
            events,
            config: ConfigProperties::new(chosen.entry, chosen.config),
            played: Played::default(),
            by_index,
            last: None,
            is_running: false,
        })
    }

    pub(super) fn start(&mut self, episode: c_int, seed: c_int) -> Result<()> {
        (self.is_running, self.last) = (false, None);
        self.events.pending.clear();
        let negative = |what: &str, is: c_int| Error::Argument(format!("the {what} is {is}: give 0 or more"));
        let episode = u64::try_from(episode).map_err(|_| negative("episode's number", episode))?;
        if seed < 0 {
            return Err(negative("seed", seed));
        }
        let begin = if self.by_index { Begin::Index(episode) } else { Begin::Seed(seed.into()) };
        if let Some(source) = self.config.pending.take() {
            self.envs = runner::start(source.into(), self.vec_config.clone())?;
        }
        let batch = self.envs.reset(&Slots::All, &[begin], None, Want::all())?;
        self.take(batch)?;
        (self.played.episode_return, self.played.episode_length) = (0.0, 0);
        self.is_running = true;
        Ok(())
    }

    /// The status after `steps` steps, or as many as the episode has, and the sum of
    /// their rewards.
    ///
    /// # Errors
    /// As `take`, [`Error::NeedsReset`] where no episode runs, [`Error::Argument`] for
    /// less than one step, [`Error::Action`]. An error ends the episode, and leaves
    /// nothing to be seen.
    pub(super) fn advance(&mut self, steps: c_int) -> Result<(c_int, f64)> {
        if !std::mem::take(&mut self.is_running) {
            return Err(Error::NeedsReset("no episode is running: call start first".into()));
        }
        self.events.pending.clear();
        let advanced = self.play(steps);
        if advanced.is_err() {
            self.events.pending.clear();
            self.last = None;
        }
        advanced
    }

    fn play(&mut self, steps: c_int) -> Result<(c_int, f64)> {
        if steps < 1 {
            return Err(Error::Argument(format!("num_steps is {steps}: give 1 or more")));
        }
        let mut sum = 0.0;
        for _ in 0..steps {
            let RunningEnv { actions, envs, .. } = &mut *self;
            let batch = actions.play(|columns| envs.step(&Slots::All, columns, Want::all()))?;
            self.take(batch)?;
            let Some(batch) = &self.last else { break };
            let reward = batch.reward.as_slice::<f64>()[0];
            let (terminated, truncated) =
                (batch.terminated.as_slice::<bool>()[0], batch.truncated.as_slice::<bool>()[0]);
            sum += reward;
            self.played.steps += 1;
            self.played.episode_length += 1;
            self.played.episode_return += reward;
            if terminated || truncated {
                self.played.episodes += 1;
                let status = if terminated { status::TERMINATED } else { status::INTERRUPTED };
                return Ok((status, sum));
            }
        }
        self.is_running = true;
        Ok((status::RUNNING, sum))
    }

    /// Keeps what came of a call.
    ///
    /// # Errors
    /// [`Error::Slots`] where the env failed, [`Error::Unsupported`] where it shows
    /// what EnvCApi cannot.
    fn take(&mut self, batch: Option<Box<Batch>>) -> Result<()> {
        self.last = None;
        let batch = batch.ok_or(Error::NothingPending)?;
        if !batch.failures.is_empty() {
            return Err(Error::Slots(batch.failures));
        }
        for (leaf, column) in self.observations.iter().zip(&batch.observation) {
            if leaf.may_be_inexact {
                leaf.seen(column)?;
            }
        }
        self.events.note(&batch)?;
        self.last = Some(batch);
        Ok(())
    }

    /// The observation of this number.
    ///
    /// # Errors
    /// [`Error::NeedsReset`] before a start, [`Error::Argument`] for another number.
    pub(super) fn observation(&self, number: c_int) -> Result<SeenValue> {
        let batch = self.last.as_deref();
        let batch = batch.ok_or_else(|| Error::NeedsReset("nothing is seen: call start first".into()))?;
        let at = super::number(number, self.observations.len(), "observation")?;
        self.observations[at].seen(&batch.observation[at])
    }
}

/// # Errors
/// [`Error::Unsupported`] where two have one name: EnvCApi has no levels, and writes
/// them with dots.
fn check_names<'a>(names: impl Iterator<Item = &'a CString>, what: &str) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name) {
            let name = name.to_string_lossy();
            return Err(Error::Unsupported(format!(
                "EnvCApi has no levels, and would call two {what}s '{name}': give one another name"
            )));
        }
    }
    Ok(())
}
