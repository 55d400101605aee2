//! The lives of slots: when episodes begin and end.
//!
//! [`Episodes`] wraps a chunk and is the only place that decides on resets. It has the
//! three autoreset modes, the time limit, the episode statistics, how the next episode
//! begins, and what becomes of a slot that failed. Runners call it; chunks know nothing
//! of it.

mod ages;
mod checks;
mod ends;
mod guarded;
mod lives;
mod one_pass;
mod passes;
mod rules;
mod saved;
mod space_checks;

pub(crate) use checks::Tried;
pub(crate) use lives::{Life, Lives, Status, check_seed, restart_seed};
pub(crate) use rules::Rules;
pub(crate) use saved::saved_life;

use std::ops::Range;
use std::time::Instant;

use crate::begin::Begin;
use crate::buffer::{Actions, RowKind, RowsMut};
use crate::call::Call;
use crate::caps::Caps;
use crate::error::{Error, Failure, Phase, Result, SlotError};
use crate::frame::Frame;
use crate::guard::{drop_guarded, guard};
use crate::source::{Chunk, ResetArgs, Side, Source, StepArgs};
use crate::space::{Options, Value};
use guarded::Guarded;
use space_checks::SpaceChecks;

/// A chunk and the lives of its slots.
pub(crate) struct Episodes {
    chunk: Guarded,
    config: String,
    rules: Rules,
    /// Holds rows to their spaces, where that is asked for.
    checks: Option<SpaceChecks>,
    lives: Lives,
    /// By slot, whether an episode ends or begins in this step.
    over: Vec<bool>,
    /// The slots whose episode ends or begins in this step, at the front.
    due: Vec<usize>,
    /// What the chunk's next call is to reset; empty between two calls of a runner.
    resets: Vec<ResetArgs>,
    /// Slots whose episodes ended in this step, with their statistics (return, length,
    /// seconds) where these are asked for.
    ended: Vec<(usize, f64, u64, f64)>,
    /// The returns of the current episodes so far, where statistics are asked for.
    returns: Vec<f64>,
    /// When the current episodes began, where statistics are asked for.
    started: Vec<Instant>,
    side: Side,
}

/// The life of a slot in case the slot never comes back, and what the slot was doing:
/// the phase, and the number of the episode.
pub(crate) struct Snapshot {
    life: Life,
    episode: u64,
    pub(crate) phase: Phase,
}

/// The chunk of a slot whose env cannot be rebuilt.
struct Unavailable;

impl Chunk for Unavailable {
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

/// What a runner passes to a call, and where the call puts its reports.
pub(crate) struct Report<'a> {
    pub(crate) actions: &'a Actions,
    pub(crate) failures: &'a mut Vec<SlotError>,
    pub(crate) infos: &'a mut Vec<crate::Extra>,
    pub(crate) final_infos: &'a mut Vec<crate::Extra>,
    pub(crate) now: Instant,
}

impl Episodes {
    /// Builds the slots from `first_slot` on, one per seed.
    pub(crate) fn new(source: &dyn Source, rules: &Rules, first_slot: usize, seeds: &[i64]) -> Result<Self> {
        let chunk = guard(Phase::Build, || source.chunk(first_slot, seeds)).unwrap_or_else(|failure| {
            let id = &source.spec().id;
            Err(Error::env(format!(
                "{id}: panicked as it was built, at env {first_slot} or after: {failure}"
            )))
        })?;
        Ok(Episodes::over(chunk, source, rules, first_slot, seeds))
    }

    /// A slot without an env that replaces a lost one, of which `snapshot` was taken, and
    /// the error that says what the lost slot was doing.
    pub(crate) fn vacant(
        source: &dyn Source,
        rules: &Rules,
        slot: usize,
        snapshot: Snapshot,
        (failure, action): (Failure, Option<String>),
    ) -> (Self, SlotError) {
        let vacant = guard(Phase::Build, || source.vacant(slot));
        let chunk = vacant.ok().and_then(Result::ok).unwrap_or_else(|| Box::new(Unavailable));
        let mut episodes = Episodes::over(chunk, source, rules, slot, &[0]);
        episodes.lives.set(0, snapshot.life);
        let error = SlotError { action, episode: snapshot.episode, ..episodes.lives.error(0, failure) };
        (episodes, error)
    }

    fn over(
        chunk: Box<dyn Chunk>,
        source: &dyn Source,
        rules: &Rules,
        first_slot: usize,
        seeds: &[i64],
    ) -> Self {
        let spec = source.spec();
        let n = seeds.len();
        let mut chunk = Guarded::new(chunk);
        if rules.debug {
            chunk.debug();
        }
        Episodes {
            chunk,
            checks: rules.debug.then(|| SpaceChecks::new(spec)),
            config: spec.config.clone(),
            lives: Lives::new((&spec.id, spec.caps), rules.autoreset, rules.limit, first_slot, seeds),
            rules: rules.clone(),
            over: vec![false; n],
            due: vec![0; n],
            resets: Vec::new(),
            ended: Vec::new(),
            returns: vec![0.0; n],
            started: vec![Instant::now(); n],
            side: Side::default(),
        }
    }

    /// What an error about `slot` needs if the slot never comes back from a step or, where
    /// there is a `begin`, from a reset.
    pub(crate) fn snapshot(&self, slot: usize, begin: Option<Begin>) -> Snapshot {
        let mut life = self.lives.of(slot);
        let (phase, episode) = life.lose(begin, self.rules.autoreset);
        Snapshot { life, episode, phase }
    }

    pub(crate) fn lives(&self) -> &Lives {
        &self.lives
    }

    /// Sets what `slot`'s next autoreset plays.
    pub(crate) fn set_next(&mut self, slot: usize, begin: Begin) {
        self.lives.set_next(slot, begin);
    }

    /// The current time, or any time where nothing depends on it.
    pub(crate) fn now(&self) -> Instant {
        if self.rules.statistics.is_some() { Instant::now() } else { self.started[0] }
    }

    /// Steps `slots` into the first rows of `rows`: resets the slots that await their
    /// autoreset, plays the actions of the others, and ends episodes.
    pub(crate) fn step(&mut self, slots: Range<usize>, rows: &mut RowsMut<'_>, report: &mut Report<'_>) {
        if self.begins_in_step() {
            return self.step_and_begin(slots, rows, report);
        }
        let actions = StepArgs(report.actions.reader(self.lives.number(0), self.lives.len()));
        self.chunk.step(slots.clone(), &self.lives.pending, actions, rows, &mut self.side);
        if let Some(checks) = &self.checks {
            checks.step(slots.clone(), &self.lives.pending, rows, &mut self.side);
        }
        report.infos.append(&mut self.side.extras);
        for (slot, failure) in std::mem::take(&mut self.side.failures) {
            self.fail_step(slot, slot - slots.start, failure, rows, report);
        }
        self.lives.age(slots.clone(), rows.truncated());
        let quiet = self.ends_quietly();
        let due = self.find_due(slots.clone(), quiet, rows);
        if quiet {
            let due = &self.due[..due];
            rows.begin(due.iter().map(|slot| slot - slots.start));
            if self.lives.has_next() {
                for k in 0..due.len() {
                    let slot = self.due[k];
                    self.autoreset(slot, slot - slots.start, RowKind::Reset, rows);
                }
            } else {
                self.resets.extend(due.iter().map(|&slot| ResetArgs::own(slot, slot - slots.start)));
            }
        } else {
            for k in 0..due {
                let slot = self.due[k];
                let row = slot - slots.start;
                if self.lives.pending[slot] {
                    rows.begin(std::iter::once(row));
                    self.autoreset(slot, row, RowKind::Reset, rows);
                } else {
                    self.end(slot, row, rows, report);
                }
            }
        }
        self.reset(rows, report);
        self.tell_statistics(slots.start, rows);
    }

    /// Fails `slot`, in row `row`, whose env did not play its action.
    fn fail_step(
        &mut self,
        slot: usize,
        row: usize,
        failure: Failure,
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        rows.clear(row);
        let action = report.actions.describe(self.lives.number(slot));
        self.fail(slot, row, failure, Some(action), rows, report);
    }

    /// Fails `slots`, which Ctrl-C kept from running, in the first rows of `rows`.
    pub(crate) fn stop(
        &mut self,
        slots: Range<usize>,
        phase: Phase,
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        for (row, slot) in slots.enumerate() {
            rows.clear(row);
            self.fail(slot, row, Failure::stopped(phase), None, rows, report);
        }
    }

    /// Notes that [`reset`](Self::reset) is to reset `slot` into row `row`, or only to
    /// observe it where `begin` is [`Begin::Keep`]. `options` are never empty.
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
            self.lives.take_next(slot);
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
        let in_force = match options {
            Some(options) => self.lives.options_with(slot, options),
            None => self.lives.options(slot).clone(),
        };
        let (rebuild, is_new) = self.lives.prepare(slot, begin);
        let lasts = is_new && !self.lives.caps.contains(Caps::OPTIONS_ONCE);
        let give = (options.is_some() || lasts) && !in_force.is_empty();
        rows.set_kind(row, if rebuild.is_some() { RowKind::Restarted } else { kind });
        let (seeded, options) = (self.lives.is_seeded(slot), give.then_some(in_force));
        self.resets.push(ResetArgs { slot, row, begin, rebuild, seeded, options });
    }

    /// Lets the chunk do all noted resets in one call.
    pub(crate) fn reset(&mut self, rows: &mut RowsMut<'_>, report: &mut Report<'_>) {
        if self.resets.is_empty() {
            return;
        }
        let mut resets = std::mem::take(&mut self.resets);
        self.chunk.reset(&resets, rows, &mut self.side);
        if let Some(checks) = &self.checks {
            checks.reset(&resets, rows, &mut self.side);
        }
        report.infos.append(&mut self.side.extras);
        let failures = std::mem::take(&mut self.side.failures);
        for ResetArgs { slot, row, begin, options, .. } in resets.drain(..) {
            if begin != Begin::Keep {
                self.began(slot, begin, report.now);
            }
            if let Ok(at) = failures.binary_search_by_key(&slot, |(failed, _)| *failed) {
                self.fail(slot, row, failures[at].1.clone(), None, rows, report);
            } else if let Some(options) = options {
                // Options of a reset that failed do not come into force.
                self.lives.set_options(slot, options);
            }
        }
        self.resets = resets;
    }

    #[inline]
    fn began(&mut self, slot: usize, begin: Begin, now: Instant) {
        self.lives.began(slot, begin);
        if self.rules.statistics.is_some() {
            self.returns[slot] = 0.0;
            self.started[slot] = now;
        }
    }

    /// Marks `slot` lost and its row failed, and reports the failure. Reward and flags
    /// stay: where only the autoreset after a step failed, they are those of the step.
    fn fail(
        &mut self,
        slot: usize,
        row: usize,
        failure: Failure,
        action: Option<String>,
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        report.failures.push(SlotError { action, ..self.lives.error(slot, failure) });
        self.lives.failed(slot);
        rows.clear_seen(row);
        rows.set_kind(row, RowKind::Failed);
        let row_in_batch = rows.start() + row;
        report.infos.retain(|extra| extra.row != row_in_batch);
    }

    /// A chunk's error as the user sees it, which names the slot where the env failed.
    fn named(&self, slot: usize, phase: Phase, error: Error) -> Error {
        match error {
            Error::Env(_) => Error::Slots(vec![self.lives.error(slot, Failure::error(phase, error))]),
            other => other,
        }
    }

    /// A picture of the env of `slot`.
    pub(crate) fn render(&mut self, slot: usize) -> Result<Frame> {
        self.lives.caps.require(Caps::RENDER, &self.lives.env, "draw a picture")?;
        self.lives.check_begun(slot, "shows nothing")?;
        self.chunk.render(slot).map_err(|error| self.named(slot, Phase::Render, error))
    }

    /// Makes `call` to the env of `slot`.
    pub(crate) fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        let Lives { env, caps, .. } = &self.lives;
        caps.require(Caps::CALL, env, &format!("call anything by name ('{}')", call.name))?;
        if self.lives.status(slot) == Status::Lost {
            return Err(self.lives.needs_reset(slot, "failed earlier: reset it first"));
        }
        if call.is_ansi() && caps.contains(Caps::ANSI) {
            self.lives.check_begun(slot, "shows nothing")?;
        }
        self.chunk.call(slot, call).map_err(|error| self.named(slot, Phase::Call, error))
    }

    /// Ends every env. Returns the failures of envs that failed to end.
    pub(crate) fn close(&mut self) -> Vec<SlotError> {
        let failures = self.chunk.close(self.lives.len());
        failures.into_iter().map(|(slot, failure)| self.lives.error(slot, failure)).collect()
    }

    /// Gives up all slots after a panic outside every env: an object that panics when it
    /// is dropped, or a bug of this crate. The next reset rebuilds the envs.
    pub(crate) fn give_up(&mut self, failure: &Failure) -> Error {
        drop_guarded(std::mem::take(&mut self.side));
        drop_guarded(std::mem::take(&mut self.resets));
        self.ended.clear();
        self.lives.give_up();
        let (first, last) = (self.lives.number(0), self.lives.number(self.lives.len() - 1));
        Error::env(format!(
            "{}: a panic between the envs' own calls: {failure}; envs {first} to {last} are lost: reset them",
            self.lives.env
        ))
    }
}
