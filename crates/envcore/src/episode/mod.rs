//! The slot's life: when episodes begin and end.
//!
//! [`Episodes`] wraps a chunk and is the only place that decides a reset: the
//! three autoreset modes, time limit, episode statistics, what begins next,
//! what becomes of a slot that failed. Runners call it; kernels know nothing of
//! it.

mod ages;
mod checks;
mod ends;
mod guarded;
mod passes;
mod rules;
mod saved;

pub(crate) use checks::{Asked, Tried, check_seed};
#[cfg(feature = "export")]
pub(crate) use passes::find;
pub(crate) use rules::Rules;
pub(crate) use saved::SavedLife;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::begin::Begin;
use crate::buffer::{Actions, RowKind, RowsMut};
use crate::call::Call;
use crate::caps::Caps;
use crate::error::{Error, Failure, Phase, Result, SlotError};
use crate::frame::Frame;
use crate::guard::{drop_guarded, guard};
use crate::rng::SeedSequence;
use crate::source::{Chunk, ResetArgs, Side, Source, StepArgs};
use crate::space::{Options, Value};
use ages::Ages;
use guarded::Guarded;

/// Where a slot is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Status {
    /// Never reset.
    Fresh,
    /// In an episode.
    Running,
    /// The episode is over: reset at the next step, or by the user.
    Ended,
    /// The env failed; rebuilt at the next reset.
    Lost,
}

/// A slot's life, as far as it is not on a hot path.
#[derive(Clone, Debug)]
struct Life {
    /// The seed that the user, or the construction, gave the slot.
    seed: i64,
    /// The seed of its current stream: another after a rebuild.
    stream: i64,
    /// Whether the env knows of these: see [`Caps::UNSEEDED`].
    seeded: bool,
    /// Rebuilds after a failure since it was last seeded.
    restarts: u64,
    /// The options in force.
    options: Arc<Options>,
}

/// A chunk and the lives of its slots.
pub(crate) struct Episodes {
    chunk: Guarded,
    env: String,
    config: String,
    caps: Caps,
    first_slot: usize,
    rules: Rules,
    /// Of a slot that is `pending`, no longer true.
    status: Vec<Status>,
    /// Whether the next step plays no action: the episode is over, and the slot
    /// awaits its autoreset.
    pending: Vec<bool>,
    /// Within a step, by slot: whether an episode ends or begins.
    over: Vec<bool>,
    /// Within a step: the numbers of those slots, at the front.
    due: Vec<usize>,
    /// What the chunk is to reset by its next call; empty between calls of ours.
    resets: Vec<ResetArgs>,
    /// Within a step: slots whose episodes ended, and their statistics (return,
    /// length, seconds), where these are asked for.
    ended: Vec<(usize, f64, u64, f64)>,
    ages: Ages,
    /// Of the current episodes so far, where statistics are asked for.
    returns: Vec<f64>,
    /// When the current episodes began, where statistics are asked for.
    started: Vec<Instant>,
    /// How the current episodes began.
    begun: Vec<Begin>,
    /// Episodes begun since the slot was last seeded.
    episodes: Vec<u64>,
    lives: Vec<Life>,
    /// What the next autoreset begins, of those that were told.
    next: BTreeMap<usize, Begin>,
    side: Side,
}

/// See [`Episodes::snapshot`].
pub(crate) struct Snapshot {
    life: Life,
    begun: Begin,
    next: Begin,
    steps: u64,
    episodes: u64,
    episode: u64,
    /// What it was doing.
    pub(crate) phase: Phase,
}

/// The chunk of a slot that cannot be had again.
struct Gone;

impl Chunk for Gone {
    fn step(&mut self, _: Range<usize>, _: &[bool], _: StepArgs<'_>, _: &mut RowsMut<'_>, _: &mut Side) {}

    fn reset(&mut self, resets: &[ResetArgs], _: &mut RowsMut<'_>, side: &mut Side) {
        let gone = |reset: &ResetArgs| (reset.slot, Failure::error(Phase::Build, gone()));
        side.failures.extend(resets.iter().map(gone));
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        Vec::new()
    }
}

fn gone() -> Error {
    Error::env("it did not come back from an earlier call, and its source cannot replace it")
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
        let seeded = !source.spec().caps.contains(Caps::UNSEEDED);
        let life = |&seed: &i64| Life { seed, stream: seed, seeded, restarts: 0, options: Arc::default() };
        let lives = seeds.iter().map(life).collect();
        let chunk = guard(Phase::Build, || source.chunk(first_slot, seeds)).unwrap_or_else(|failure| {
            let id = &source.spec().id;
            Err(Error::env(format!(
                "{id}: panicked as it was built, at slot {first_slot} or after: {failure}"
            )))
        })?;
        Ok(Episodes::over(chunk, source, rules, first_slot, lives))
    }

    /// In the place of a slot that `snapshot` was taken of and that is lost: a
    /// slot without an env, and the report of what the old one was doing.
    pub(crate) fn vacant(
        source: &dyn Source,
        rules: &Rules,
        slot: usize,
        snapshot: Snapshot,
        (failure, action): (Failure, Option<String>),
    ) -> (Self, SlotError) {
        let vacant = guard(Phase::Build, || source.vacant(slot));
        let chunk = vacant.ok().and_then(Result::ok).unwrap_or_else(|| Box::new(Gone));
        let Snapshot { life, begun, next, steps, episodes: count, episode, .. } = snapshot;
        let mut episodes = Episodes::over(chunk, source, rules, slot, vec![life]);
        episodes.set_next(0, next);
        episodes.ages.set(0, steps);
        (episodes.begun[0], episodes.episodes[0]) = (begun, count);
        let error = SlotError { action, episode, ..episodes.slot_error(0, failure) };
        episodes.status[0] = Status::Lost;
        (episodes, error)
    }

    fn over(
        chunk: Box<dyn Chunk>,
        source: &dyn Source,
        rules: &Rules,
        first_slot: usize,
        lives: Vec<Life>,
    ) -> Self {
        let spec = source.spec();
        let n = lives.len();
        Episodes {
            chunk: Guarded::new(chunk),
            env: spec.id.clone(),
            config: spec.config.clone(),
            caps: spec.caps,
            first_slot,
            rules: rules.clone(),
            status: vec![Status::Fresh; n],
            pending: vec![false; n],
            over: vec![false; n],
            due: vec![0; n],
            resets: Vec::new(),
            ended: Vec::new(),
            ages: Ages::new(n, rules.limit),
            returns: vec![0.0; n],
            started: vec![Instant::now(); n],
            begun: vec![Begin::Own; n],
            episodes: vec![0; n],
            lives,
            next: BTreeMap::new(),
            side: Side::default(),
        }
    }

    /// What a report on `slot` needs, should it never come back from a step or,
    /// where there is a `begin`, from a reset.
    pub(crate) fn snapshot(&self, slot: usize, begin: Option<Begin>) -> Snapshot {
        let mut life = self.lives[slot].clone();
        let (mut begun, mut episodes) = (self.begun[slot], self.episodes[slot]);
        let mut steps = self.ages.of(slot);
        let mut next = self.next(slot);
        let begin = begin.or_else(|| self.pending[slot].then_some(next));
        let phase = if begin.is_some() { Phase::Reset } else { Phase::Step };
        let mut episode = episodes.saturating_sub(1);
        if let Some(begin) = begin.filter(|begin| *begin != Begin::Keep) {
            if let Begin::Seed(seed) = begin {
                (life.seed, life.stream, life.seeded) = (seed, seed, true);
                (life.restarts, episodes) = (0, 0);
            }
            (begun, next, steps, episode) = (begin, Begin::Own, 0, episodes);
        }
        Snapshot { life, begun, next, steps, episodes, episode, phase }
    }

    /// Whether each slot's next step plays no action.
    pub(crate) fn pending(&self) -> &[bool] {
        &self.pending
    }

    /// What time it is, where anything depends on it.
    pub(crate) fn now(&self) -> Instant {
        if self.rules.statistics.is_some() { Instant::now() } else { self.started[0] }
    }

    /// Says what `slot`'s next autoreset plays.
    pub(crate) fn set_next(&mut self, slot: usize, begin: Begin) {
        match begin {
            Begin::Own => self.next.remove(&slot),
            begin => self.next.insert(slot, begin),
        };
    }

    fn status(&self, slot: usize) -> Status {
        if self.pending[slot] { Status::Ended } else { self.status[slot] }
    }

    /// What `slot`'s next autoreset plays.
    fn next(&self, slot: usize) -> Begin {
        self.next.get(&slot).copied().unwrap_or_default()
    }

    /// Steps `slots` into the first rows of `rows`: autoresets those that await
    /// one, plays the others' actions, ends episodes.
    pub(crate) fn step(&mut self, slots: Range<usize>, rows: &mut RowsMut<'_>, report: &mut Report<'_>) {
        let actions = StepArgs(report.actions.reader(self.first_slot, self.status.len()));
        self.chunk.step(slots.clone(), &self.pending, actions, rows, &mut self.side);
        report.infos.append(&mut self.side.extras);
        for (slot, failure) in std::mem::take(&mut self.side.failures) {
            rows.clear(slot - slots.start);
            let action = report.actions.describe(self.first_slot + slot);
            let episode = self.episodes[slot].saturating_sub(1);
            self.fail(slot, slot - slots.start, failure, (episode, Some(action)), rows, report);
        }
        self.truncate(slots.clone(), rows);
        let quiet = self.ends_quietly();
        let due = self.find_due(slots.clone(), quiet, rows);
        for k in 0..due {
            let slot = self.due[k];
            let row = slot - slots.start;
            if quiet || self.pending[slot] {
                rows.set(row, 0.0, false, false);
                rows.clear_info(row);
                self.autoreset(slot, row, RowKind::Reset, rows);
            } else {
                self.end(slot, row, rows, report);
            }
        }
        self.reset(rows, report);
        self.tell_statistics(slots.start, rows);
    }

    /// Fails `slots`, which Ctrl-C kept from their turn, in the first rows of `rows`.
    pub(crate) fn stop(
        &mut self,
        slots: Range<usize>,
        phase: Phase,
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        for (row, slot) in slots.enumerate() {
            rows.clear(row);
            let episode = self.episodes[slot].saturating_sub(1);
            self.fail(slot, row, Failure::stopped(phase), (episode, None), rows, report);
        }
    }

    /// Notes that [`reset`](Self::reset) is to reset `slot` (or to observe it:
    /// [`Begin::Keep`]) into row `row`. `options` are never empty.
    pub(crate) fn order_reset(
        &mut self,
        slot: usize,
        begin: Begin,
        options: Option<&Options>,
        row: usize,
        rows: &mut RowsMut<'_>,
    ) {
        rows.clear(row);
        let kind = if begin == Begin::Keep { RowKind::Kept } else { RowKind::Reset };
        if begin != Begin::Keep {
            self.next.remove(&slot);
        }
        self.order(slot, begin, options, (row, kind), rows);
    }

    fn order(
        &mut self,
        slot: usize,
        begin: Begin,
        options: Option<&Options>,
        (row, kind): (usize, RowKind),
        rows: &mut RowsMut<'_>,
    ) {
        let life = &mut self.lives[slot];
        let mut in_force = life.options.clone();
        if let Some(options) = options {
            if self.caps.contains(Caps::OPTIONS_ONCE) {
                in_force = Arc::default();
            }
            Arc::make_mut(&mut in_force).merge(options);
        }
        let rebuild = (self.status[slot] == Status::Lost).then(|| {
            life.restarts += 1;
            restart_seed(life.seed, life.restarts)
        });
        match (begin, rebuild) {
            (Begin::Seed(seed), _) => {
                (life.seed, life.stream, life.seeded) = (seed, seed, true);
                (life.restarts, self.episodes[slot]) = (0, 0);
            }
            (_, Some(stream)) => (life.stream, self.episodes[slot]) = (stream, 0),
            _ => {}
        }
        let again = rebuild.is_some() || matches!(begin, Begin::Seed(_));
        let lasts = again && !self.caps.contains(Caps::OPTIONS_ONCE);
        let give = (options.is_some() || lasts) && !in_force.is_empty();
        rows.set_kind(row, if rebuild.is_some() { RowKind::Restarted } else { kind });
        let (seeded, options) = (life.seeded, give.then_some(in_force));
        self.resets.push(ResetArgs { slot, row, begin, rebuild, seeded, options });
    }

    /// Has the chunk reset, by one call, what was noted.
    pub(crate) fn reset(&mut self, rows: &mut RowsMut<'_>, report: &mut Report<'_>) {
        if self.resets.is_empty() {
            return;
        }
        let mut resets = std::mem::take(&mut self.resets);
        self.chunk.reset(&resets, rows, &mut self.side);
        report.infos.append(&mut self.side.extras);
        let failures = std::mem::take(&mut self.side.failures);
        for ResetArgs { slot, row, begin, options, .. } in resets.drain(..) {
            if begin != Begin::Keep {
                self.began(slot, begin, report.now);
            }
            if let Ok(at) = failures.binary_search_by_key(&slot, |(failed, _)| *failed) {
                let episode = self.episodes[slot].saturating_sub(1);
                if begin != Begin::Keep {
                    self.episodes[slot] = episode;
                }
                self.fail(slot, row, failures[at].1.clone(), (episode, None), rows, report);
            } else if let Some(options) = options {
                // Options that an env may have failed of are not in force.
                self.lives[slot].options = options;
            }
        }
        self.resets = resets;
    }

    #[inline]
    fn began(&mut self, slot: usize, begin: Begin, now: Instant) {
        self.status[slot] = Status::Running;
        self.pending[slot] = false;
        self.ages.set(slot, 0);
        self.episodes[slot] += 1;
        self.begun[slot] = begin;
        if self.rules.statistics.is_some() {
            self.returns[slot] = 0.0;
            self.started[slot] = now;
        }
    }

    /// Marks `slot` lost, its row failed, and reports it. Reward and flags stay:
    /// where only the reset after a step failed, they are that step's.
    fn fail(
        &mut self,
        slot: usize,
        row: usize,
        failure: Failure,
        (episode, action): (u64, Option<String>),
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        report.failures.push(SlotError { episode, action, ..self.slot_error(slot, failure) });
        self.status[slot] = Status::Lost;
        self.pending[slot] = false;
        rows.clear_seen(row);
        rows.set_kind(row, RowKind::Failed);
        let row_in_batch = rows.start() + row;
        report.infos.retain(|extra| extra.row != row_in_batch);
    }

    /// The report of a failure of `slot` in its current episode.
    fn slot_error(&self, slot: usize, failure: Failure) -> SlotError {
        let life = &self.lives[slot];
        SlotError {
            env: self.env.clone(),
            slot: self.first_slot + slot,
            begin: self.begun[slot],
            seed: (life.seeded && self.caps.contains(Caps::SEED)).then_some(life.stream),
            episode: self.episodes[slot].saturating_sub(1),
            step: self.ages.of(slot),
            action: None,
            failure,
            replay: None,
        }
    }

    /// What a chunk's own error is to the user: of which slot, if its env's.
    fn named(&self, slot: usize, phase: Phase, error: Error) -> Error {
        match error {
            Error::Env(_) => Error::Slots(vec![self.slot_error(slot, Failure::error(phase, error))]),
            other => other,
        }
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
        self.chunk.render(slot).map_err(|error| self.named(slot, Phase::Render, error))
    }

    /// Does to `slot` what `call` says.
    pub(crate) fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        self.caps.require(Caps::CALL, &self.env, &format!("call anything by name ('{}')", call.name))?;
        if self.status[slot] == Status::Lost {
            let slot = self.first_slot + slot;
            return Err(Error::NeedsReset(format!(
                "{}: slot {slot} failed earlier: reset it first",
                self.env
            )));
        }
        self.chunk.call(slot, call).map_err(|error| self.named(slot, Phase::Call, error))
    }

    /// Ends every env; the failures of those that failed at it.
    pub(crate) fn close(&mut self) -> Vec<SlotError> {
        let failures = self.chunk.close(self.status.len());
        failures.into_iter().map(|(slot, failure)| self.slot_error(slot, failure)).collect()
    }

    /// Gives all slots up for a panic that was no env's: an object that panics
    /// when it is dropped, or a bug of this crate. The next reset rebuilds them.
    pub(crate) fn give_up(&mut self, failure: &Failure) -> Error {
        drop_guarded(std::mem::take(&mut self.side));
        drop_guarded(std::mem::take(&mut self.resets));
        self.ended.clear();
        self.status.fill(Status::Lost);
        self.pending.fill(false);
        let (first, last) = (self.first_slot, self.first_slot + self.status.len() - 1);
        Error::env(format!(
            "{}: a panic between the envs' own calls: {failure}; slots {first} to {last} are lost: reset them",
            self.env
        ))
    }
}

/// The seed of the `restarts`-th rebuild of a slot seeded with `seed`: of 32 bits,
/// for many envs hand theirs to `numpy.random.seed`, which takes no more.
pub(crate) fn restart_seed(seed: i64, restarts: u64) -> i64 {
    (SeedSequence::from_seeds(&[seed as u64, restarts]).generate_u64::<1>()[0] >> 32) as i64
}
