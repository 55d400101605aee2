//! The slot's life: when episodes begin and end.
//!
//! [`Episodes`] wraps a chunk and is the only place that decides a reset: the
//! three autoreset modes, time limit, episode statistics, what begins next,
//! what becomes of a slot that failed. Runners call it; kernels know nothing of
//! it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::begin::Begin;
use crate::buffer::{Actions, RowKind, RowsMut};
use crate::env::{Frame, state};
use crate::error::{Error, Failure, Result, SlotError};
use crate::rng::SeedSequence;
use crate::space::{Leaf, Options, Space};
use crate::vec_env::{AutoresetMode, Caps, Chunk, ResetOf, Side, Source, SourceSpec, StepOf, VecConfig};

/// Where a slot is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Status {
    /// Never reset.
    Fresh,
    /// In an episode.
    Running,
    /// The episode is over: reset at the next step, or by the user.
    Ended,
    /// The env failed; rebuilt at the next reset.
    Lost,
}

/// What the runner made of the source's spec and the user's wishes.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) autoreset: AutoresetMode,
    /// Whether the source resets itself.
    self_resetting: bool,
    /// `u64::MAX` for none.
    limit: u64,
    /// The info leaf of `episode.r`, which `.l` and `.t` follow.
    statistics: Option<usize>,
}

impl Rules {
    /// The rules for a source under `config`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the source cannot do what is asked.
    pub(crate) fn new(source: &SourceSpec, config: &VecConfig) -> Result<Self> {
        let autoreset = match (source.autoreset, config.autoreset) {
            (Some(only), Some(asked)) if only != asked => {
                return Err(Error::Unsupported(format!(
                    "{} resets itself and has no autoreset mode but {only}",
                    source.id
                )));
            }
            (Some(only), _) => only,
            (None, asked) => asked.unwrap_or_default(),
        };
        if config.max_episode_steps == Some(0) {
            return Err(Error::Argument("max_episode_steps must be at least 1".into()));
        }
        if config.max_episode_steps.is_some() {
            source.caps.require(Caps::TIME_LIMIT, &source.id, "bear a time limit")?;
        }
        Ok(Rules {
            autoreset,
            self_resetting: source.autoreset.is_some(),
            limit: config.max_episode_steps.unwrap_or(u64::MAX),
            statistics: config.episode_statistics.then_some(source.info.leaves().len()),
        })
    }

    /// The source's infos and, where asked for, the episode statistics.
    pub(crate) fn info(&self, source: &SourceSpec) -> Space {
        let statistics = [
            Leaf::real::<f64>(&[]).named("episode.r"),
            Leaf::real::<i64>(&[]).named("episode.l"),
            Leaf::real::<f64>(&[]).named("episode.t"),
        ];
        let wanted = if self.statistics.is_some() { Space::of(statistics) } else { Space::empty() };
        source.info.clone().join(wanted)
    }

    /// Whether batches carry final observations beside the next first ones.
    pub(crate) fn keeps_finals(&self) -> bool {
        self.autoreset == AutoresetMode::SameStep && !self.self_resetting
    }
}

/// A slot's life, as far as it is not on a hot path.
#[derive(Clone, Debug)]
struct Life {
    /// The seed of the slot's own stream.
    seed: i64,
    /// Rebuilds after a failure, ever.
    restarts: u64,
    /// How the current episode began.
    begun: Begin,
    /// What the next autoreset begins.
    next: Begin,
    /// Episodes begun since the slot was last seeded.
    episodes: u64,
    /// The options in force.
    options: Arc<Options>,
    started: Instant,
}

/// A chunk and the lives of its slots.
pub(crate) struct Episodes {
    chunk: Box<dyn Chunk>,
    env: String,
    config: String,
    caps: Caps,
    first_slot: usize,
    rules: Rules,
    status: Vec<Status>,
    /// Whether the next step plays no action: the slot awaits its autoreset.
    pending: Vec<bool>,
    steps: Vec<u64>,
    returns: Vec<f64>,
    lives: Vec<Life>,
    side: Side,
}

/// What a runner passes along with a call and gets reports in.
pub(crate) struct Report<'a> {
    pub(crate) actions: &'a Actions,
    pub(crate) failures: &'a mut Vec<SlotError>,
    pub(crate) infos: &'a mut Vec<crate::Extra>,
    pub(crate) final_infos: &'a mut Vec<crate::Extra>,
    pub(crate) now: Instant,
}

impl Episodes {
    /// The slots from `first_slot` on, one per seed.
    pub(crate) fn new(source: &dyn Source, rules: &Rules, first_slot: usize, seeds: &[i64]) -> Result<Self> {
        let spec = source.spec();
        let life = |&seed: &i64| Life {
            seed,
            restarts: 0,
            begun: Begin::Own,
            next: Begin::Own,
            episodes: 0,
            options: Arc::default(),
            started: Instant::now(),
        };
        Ok(Episodes {
            chunk: source.chunk(first_slot, seeds)?,
            env: spec.id.clone(),
            config: spec.config.clone(),
            caps: spec.caps,
            first_slot,
            rules: rules.clone(),
            status: vec![Status::Fresh; seeds.len()],
            pending: vec![false; seeds.len()],
            steps: vec![0; seeds.len()],
            returns: vec![0.0; seeds.len()],
            lives: seeds.iter().map(life).collect(),
            side: Side::default(),
        })
    }

    /// Whether each slot's next step plays no action.
    pub(crate) fn pending(&self) -> &[bool] {
        &self.pending
    }

    /// Errors unless `slot` may be stepped now.
    pub(crate) fn check_step(&self, slot: usize) -> Result<()> {
        let why = match self.status[slot] {
            Status::Running => return Ok(()),
            Status::Ended if self.pending[slot] => return Ok(()),
            Status::Fresh => "has not begun: call reset before step",
            Status::Ended => "has ended its episode: reset it (autoreset is disabled)",
            Status::Lost => "failed earlier: reset it, which rebuilds its env",
        };
        Err(Error::NeedsReset(format!("{}: slot {} {why}", self.env, self.first_slot + slot)))
    }

    /// Errors unless `slot` may begin so now.
    pub(crate) fn check_reset(&self, slot: usize, begin: Begin, options: bool) -> Result<()> {
        let require = |cap, what: &str| self.caps.require(cap, &self.env, what);
        if options {
            require(Caps::OPTIONS, "take options at a reset")?;
        }
        match begin {
            Begin::Keep if matches!(self.status[slot], Status::Fresh | Status::Lost) => {
                let why = "has no observation to keep: reset it too";
                return Err(Error::NeedsReset(format!(
                    "{}: slot {} {why}",
                    self.env,
                    self.first_slot + slot
                )));
            }
            Begin::Keep => {}
            Begin::Own if self.status[slot] == Status::Fresh => {}
            Begin::Own => require(Caps::RESET, "be reset a second time")?,
            Begin::Seed(seed) => {
                require(Caps::SEED, "be seeded")?;
                check_seed(seed)?;
            }
            Begin::Index(_) => require(Caps::INDEX, "play the episode of an index")?,
        }
        Ok(())
    }

    /// Errors where an env would refuse `options` at a reset, on top of those
    /// in force for any of `slots`.
    pub(crate) fn check_options(
        &mut self,
        slots: impl Iterator<Item = usize>,
        options: &Options,
    ) -> Result<()> {
        let mut checked: Option<Arc<Options>> = None;
        for slot in slots {
            let in_force = &self.lives[slot].options;
            if checked.as_ref().is_some_and(|checked| Arc::ptr_eq(checked, in_force) || checked == in_force) {
                continue;
            }
            let mut all = (**in_force).clone();
            all.merge(options);
            self.chunk.check_options(&all)?;
            checked = Some(in_force.clone());
        }
        Ok(())
    }

    /// Errors unless `slot`'s autoreset may play `begin`.
    pub(crate) fn check_next(&self, slot: usize, begin: Begin) -> Result<()> {
        match begin {
            Begin::Keep => Err(Error::Argument("an autoreset cannot keep the episode".into())),
            Begin::Own => Ok(()),
            other => self.check_reset(slot, other, false),
        }
    }

    /// Says what `slot`'s next autoreset plays.
    pub(crate) fn set_next(&mut self, slot: usize, begin: Begin) {
        self.lives[slot].next = begin;
    }

    /// Steps `slots` into the first rows of `rows`: autoresets those that await
    /// one, plays the others' actions, ends episodes.
    pub(crate) fn step(&mut self, slots: Range<usize>, rows: &mut RowsMut<'_>, report: &mut Report<'_>) {
        let actions = StepOf { actions: report.actions, first_slot: self.first_slot };
        self.chunk.step(slots.clone(), &self.pending, actions, rows, &mut self.side);
        report.infos.append(&mut self.side.extras);
        for (slot, failure) in std::mem::take(&mut self.side.failures) {
            let action = report.actions.describe(self.first_slot + slot);
            let episode = self.lives[slot].episodes.saturating_sub(1);
            self.fail(slot, slot - slots.start, failure, (episode, Some(action)), rows, report);
        }
        for slot in slots.clone() {
            let row = slot - slots.start;
            if self.pending[slot] {
                rows.clear(row);
                self.autoreset(slot, row, RowKind::Reset, rows, report);
            } else if self.status[slot] == Status::Running {
                self.count(slot, row, rows, report);
            }
        }
    }

    /// Counts a step that was played, and ends the episode where it did.
    #[inline]
    fn count(&mut self, slot: usize, row: usize, rows: &mut RowsMut<'_>, report: &mut Report<'_>) {
        self.steps[slot] += 1;
        self.returns[slot] += rows.reward()[row];
        if self.steps[slot] >= self.rules.limit {
            rows.truncated()[row] = true;
        }
        if rows.terminated()[row] || rows.truncated()[row] {
            self.end(slot, row, rows, report);
        }
    }

    fn end(&mut self, slot: usize, row: usize, rows: &mut RowsMut<'_>, report: &mut Report<'_>) {
        let (r, l) = (self.returns[slot], self.steps[slot] as i64);
        let t = report.now.saturating_duration_since(self.lives[slot].started).as_secs_f64();
        if self.rules.self_resetting {
            self.began(slot, Begin::Own, report.now);
        } else {
            match self.rules.autoreset {
                AutoresetMode::NextStep => {
                    self.status[slot] = Status::Ended;
                    self.pending[slot] = true;
                }
                AutoresetMode::Disabled => self.status[slot] = Status::Ended,
                AutoresetMode::SameStep => {
                    rows.finish(row);
                    let row_in_batch = rows.start() + row;
                    report.final_infos.extend(report.infos.extract_if(.., |e| e.row == row_in_batch));
                    self.autoreset(slot, row, RowKind::Step, rows, report);
                }
            }
        }
        if let Some(leaf) = self.rules.statistics {
            let mut infos = rows.info(row);
            infos.seek(leaf).scalar(r);
            infos.scalar(l);
            infos.scalar(t);
        }
    }

    fn autoreset(
        &mut self,
        slot: usize,
        row: usize,
        kind: RowKind,
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        let begin = std::mem::take(&mut self.lives[slot].next);
        self.begin(slot, begin, None, (row, kind), rows, report);
    }

    /// Resets `slot` (or observes it: [`Begin::Keep`]) into row `row`.
    pub(crate) fn reset(
        &mut self,
        slot: usize,
        begin: Begin,
        options: Option<&Options>,
        rows: &mut RowsMut<'_>,
        row: usize,
        report: &mut Report<'_>,
    ) {
        rows.clear(row);
        let kind = if begin == Begin::Keep { RowKind::Kept } else { RowKind::Reset };
        if begin != Begin::Keep {
            self.lives[slot].next = Begin::Own;
        }
        self.begin(slot, begin, options, (row, kind), rows, report);
    }

    fn begin(
        &mut self,
        slot: usize,
        begin: Begin,
        options: Option<&Options>,
        (row, kind): (usize, RowKind),
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        let life = &mut self.lives[slot];
        let before = options.map(|_| life.options.clone());
        if let Some(options) = options.filter(|options| !options.is_empty()) {
            Arc::make_mut(&mut life.options).merge(options);
        }
        let rebuild = (self.status[slot] == Status::Lost).then(|| {
            life.restarts += 1;
            restart_seed(life.seed, life.restarts)
        });
        match (begin, rebuild) {
            (Begin::Seed(seed), _) | (_, Some(seed)) => (life.seed, life.episodes) = (seed, 0),
            _ => {}
        }
        let again = rebuild.is_some() || matches!(begin, Begin::Seed(_));
        let in_force = life.options.clone();
        let give = (options.is_some() || again) && !in_force.is_empty();
        if begin != Begin::Keep {
            life.begun = begin;
        }
        let reset = ResetOf { begin, rebuild, options: give.then_some(&*in_force) };
        match self.chunk.reset(slot, reset, rows, row, &mut self.side) {
            Ok(()) => {
                rows.kind()[row] = kind as u8;
                if begin != Begin::Keep {
                    self.began(slot, begin, report.now);
                }
            }
            Err(failure) => {
                if begin != Begin::Keep {
                    self.steps[slot] = 0;
                }
                // Options that it may have failed of are not in force.
                if let Some(before) = before {
                    self.lives[slot].options = before;
                }
                let episode = self.lives[slot].episodes.saturating_sub(u64::from(begin == Begin::Keep));
                self.fail(slot, row, failure, (episode, None), rows, report);
            }
        }
        report.infos.append(&mut self.side.extras);
    }

    fn began(&mut self, slot: usize, begin: Begin, now: Instant) {
        self.status[slot] = Status::Running;
        self.pending[slot] = false;
        self.steps[slot] = 0;
        self.returns[slot] = 0.0;
        let life = &mut self.lives[slot];
        life.episodes += 1;
        life.begun = begin;
        life.started = now;
    }

    /// Marks `slot` lost, its row failed, and reports it.
    fn fail(
        &mut self,
        slot: usize,
        row: usize,
        failure: Failure,
        (episode, action): (u64, Option<String>),
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        let life = &self.lives[slot];
        report.failures.push(SlotError {
            env: self.env.clone(),
            slot: self.first_slot + slot,
            begin: life.begun,
            seed: life.seed,
            episode,
            step: self.steps[slot],
            action,
            failure,
        });
        self.status[slot] = Status::Lost;
        self.pending[slot] = false;
        rows.clear(row);
        rows.kind()[row] = RowKind::Failed as u8;
        let row_in_batch = rows.start() + row;
        report.infos.retain(|extra| extra.row != row_in_batch);
    }

    /// The state of `slot`: its env's and its life's.
    pub(crate) fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.caps.require(Caps::SAVE, &self.env, "save its state")?;
        let env = match self.status[slot] {
            Status::Lost => Vec::new(),
            _ => self.chunk.save(slot)?,
        };
        let life = &self.lives[slot];
        let options = crate::Value::Map((*life.options).clone()).to_json()?;
        state::to_bytes(&Saved {
            format: FORMAT.into(),
            id: self.env.clone(),
            config: self.config.clone(),
            status: self.status[slot],
            pending: self.pending[slot],
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
            self.chunk.load(slot, &saved.env)?;
        }
        self.status[slot] = saved.status;
        self.pending[slot] = saved.pending && self.rules.autoreset == AutoresetMode::NextStep;
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

    /// A picture of `slot`.
    pub(crate) fn render(&mut self, slot: usize) -> Result<Frame> {
        self.caps.require(Caps::RENDER, &self.env, "draw a picture")?;
        if matches!(self.status[slot], Status::Fresh | Status::Lost) {
            let slot = self.first_slot + slot;
            return Err(Error::NeedsReset(format!(
                "{}: slot {slot} shows nothing before its reset",
                self.env
            )));
        }
        self.chunk.render(slot)
    }

    /// Ends every env.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.chunk.close()
    }
}

/// Errors for a negative seed.
pub(crate) fn check_seed(seed: i64) -> Result<()> {
    if seed < 0 {
        return Err(Error::Argument(format!("seed {seed} is negative: seeds are 0 or more")));
    }
    Ok(())
}

/// The seed of the `restarts`-th rebuild of a slot seeded with `seed`.
fn restart_seed(seed: i64, restarts: u64) -> i64 {
    (SeedSequence::from_seeds(&[seed as u64, restarts]).generate_u64::<1>()[0] >> 1) as i64
}

const FORMAT: &str = "corral slot 1";

#[derive(serde::Serialize, serde::Deserialize)]
struct Saved {
    format: String,
    id: String,
    config: String,
    status: Status,
    pending: bool,
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
