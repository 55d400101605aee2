//! The parent's side: a vec env whose slots live in worker processes.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::board::{Board, Entry, Plan, Work};
use super::member::Host;
use super::mirror::{Mirror, Sent};
use super::parts::{Counts, Lender};
use super::wire::{Answer, News, Packed, ToWorker};
use super::worker_pool::{Mute, WorkerPool};
use super::{board_span, look_for};
use crate::begin::Begin;
use crate::buffer::{Actions, Batch, BatchPool, Buffers, Draft, Extra, Layout, Lease, RowKind, Slots};
use crate::caps::Caps;
use crate::episode::{Life, Status};
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::fork::Native;
use crate::landing::Landing;
use crate::runner::front::{Front, seeds};
use crate::runner::limits::{Limit, Limits};
use crate::runner::slot_group::Notes;
use crate::runner::thread_pool::available_cores;
use crate::space::Options;
use crate::vec_config::{AutoresetMode, VecConfig};
use crate::vec_env::{Spec, Want};

/// Between two looks at whether the workers live.
const SLICE: Duration = Duration::from_millis(50);

/// The same, while messages are under way: a wait for those does not see rows.
const MOMENT: Duration = Duration::from_millis(1);

/// The same, where no wait is in vain: others' rows are always there.
const ROUND: Duration = Duration::from_millis(200);

/// Slots in worker processes.
///
/// A worker hosts a range of slots and steps them in order. What it writes lies
/// in memory that both share, and is copied once, into the batch that it comes to
/// be in: column by column after a step of all slots, else row by row. With a
/// batch size or a timeout every slot runs by itself, in order with the others
/// of its worker; else all of them together.
///
/// A worker that dies loses its slots: each one's next row says so. The next
/// reset of any of them starts it anew.
pub struct Process {
    pub(super) front: Front,
    pub(super) worker_pool: Native<WorkerPool>,
    pub(super) mirror: Mirror,
    /// What each slot is in flight for; `None` where its row has landed, or it
    /// is not in flight.
    in_flight: Vec<Option<Sent>>,
    pub(super) actions: Actions,
    /// Where workers read those of fixed shape.
    pub(super) told: Vec<Lease>,
    pool: BatchPool,
    counts: Counts,
    /// What a step of all slots is written to, once there was one.
    whole: Option<Draft>,
    /// Whose row is in it, or will be.
    in_whole: Vec<bool>,
    /// Rows of all other work, one per slot.
    staging: Draft,
    notes: Vec<Notes>,
    landing: Landing,
    /// What workers were told to change and have not said that they did: Ctrl-C
    /// may have ended the wait for that.
    owed: VecDeque<Owed>,
    /// When the workers were last looked after.
    looked: Instant,
    config: VecConfig,
    limits: Limits,
    seeds: Vec<i64>,
    about: Vec<u8>,
}

/// An order whose answer the mirrors wait for.
struct Owed {
    worker: usize,
    question: u64,
    phase: Phase,
    change: Change,
}

/// What an order changes.
pub(super) enum Change {
    /// What the next autoreset of each slot plays.
    Next(Vec<(usize, Begin)>),
    /// A slot's life, where the state tells it.
    Life(usize, Option<Box<Life>>),
}

/// Errors where a batch would hold a part of the slots of a worker that steps
/// all of its own together.
fn check_batch_size(spec: &Spec, config: &VecConfig, ranges: &[Range<usize>]) -> Result<()> {
    let Some(size) = config.batch_size.filter(|size| *size < spec.num_slots) else { return Ok(()) };
    let each = ranges[0].len();
    let even = ranges.iter().all(|range| range.len() == each);
    if spec.caps.contains(Caps::SUBSET) || (even && size.is_multiple_of(each)) {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "batch_size is {size}, and {} steps all envs of a worker together: give each of the {} workers as many \
         of the {} envs, and a multiple of that as the batch_size",
        spec.id,
        ranges.len(),
        spec.num_slots
    )))
}

/// How long a worker may be at a slot: by what the slot is in flight for.
fn limit_of(
    limits: &Limits,
    in_flight: &[Option<Sent>],
    mirror: &Mirror,
) -> impl Fn(Option<usize>) -> Option<Limit> {
    move |slot| match slot.and_then(|slot| Some((slot, in_flight.get(slot)?))) {
        None => limits.longest(),
        Some((_, Some(Sent::Reset(_)))) => limits.of(true),
        Some((slot, Some(Sent::Step))) => limits.of(mirror.lives.pending()[slot]),
        Some((_, None)) => limits.of(false),
    }
}

/// The failure of a slot whose worker could not be started again, because of
/// `error`.
fn unstarted(slot: usize, error: &Error) -> Failure {
    let lost = |failure: &Failure| Failure { phase: Phase::Build, cause: Cause::Death, ..failure.clone() };
    match error {
        Error::Slots(failures) => match failures.iter().find(|failure| failure.slot == slot) {
            Some(own) => lost(&own.failure),
            None => {
                let why = format!("its worker could not be started again: {error}");
                Failure::new(Phase::Build, Cause::Death, why)
            }
        },
        Error::Env(cause) if let Some(failure) = cause.downcast_ref::<Failure>() => lost(failure),
        other => Failure::new(Phase::Build, Cause::Death, other.to_string()),
    }
}

impl Process {
    /// Slots as `config` says, divided among `num_workers` processes (as many
    /// as there are cores without a number).
    ///
    /// # Errors
    /// [`Error::Argument`] for counts that make no sense; whatever keeps the
    /// workers or their envs from being made.
    pub fn new(host: Arc<dyn Host>, config: VecConfig, num_workers: Option<usize>) -> Result<Self> {
        let seeds = seeds(&config)?;
        let n = config.num_slots;
        crate::runner::check(&config)?;
        let workers = match num_workers {
            None => available_cores().min(n),
            Some(0) => return Err(Error::Argument("num_workers is 0: it must be at least 1".into())),
            Some(workers) => workers.min(n),
        };
        let ranges: Vec<Range<usize>> =
            (0..workers).map(|k| n * k / workers..n * (k + 1) / workers).collect();
        let mut worker_pool = WorkerPool::new(host, ranges.clone())?;
        let all: Vec<usize> = (0..workers).collect();
        let mut built = Vec::with_capacity(workers);
        worker_pool.start(
            &all,
            &config,
            |member| seeds[member.slots.start],
            |_, one| {
                built.push(one?);
                Ok(())
            },
        )?;
        for (worker, one) in built.iter().enumerate() {
            let (a, b) = (&built[0].spec, &one.spec);
            let same = a.observation == b.observation
                && a.action == b.action
                && a.info == b.info
                && a.autoreset == b.autoreset;
            if !same {
                return Err(Error::Space(format!(
                    "the envs of worker {worker} (from env {}) have other spaces than those of worker 0",
                    ranges[worker].start
                )));
            }
        }
        let caps = built.iter().fold(Caps::all(), |caps, one| caps & one.spec.caps);
        let first = built.swap_remove(0);
        let spec = Spec { num_slots: n, caps: (caps - Caps::BRIEF) | Caps::REMOTE, ..first.spec };
        check_batch_size(&spec, &config, &ranges)?;
        Process::over(worker_pool, ranges, spec, first.about, config, seeds)
    }

    /// Errors unless `slots`, which may begin as `begin` says, go together.
    pub(super) fn check_chunks(&self, slots: &Slots, begin: Option<&[Begin]>) -> Result<()> {
        let worker_pool = &self.worker_pool;
        self.front.check_chunks(slots, begin, |slot| worker_pool.members[worker_pool.of(slot)].slots.clone())
    }

    fn over(
        mut worker_pool: WorkerPool,
        ranges: Vec<Range<usize>>,
        spec: Spec,
        about: Vec<u8>,
        config: VecConfig,
        seeds: Vec<i64>,
    ) -> Result<Self> {
        let n = spec.num_slots;
        let counts = Counts::of(&spec);
        let plan =
            Plan { num_slots: n, workers: ranges, parts: counts.parts(), leaves: spec.action.leaves().len() };
        let ground = worker_pool.arena.take(plan.bytes())?;
        debug_assert_eq!(ground.span, board_span(&plan));
        let workers: Vec<usize> = (0..plan.workers.len()).collect();
        // SAFETY: the block is as large, new and therefore zeros, and lives as
        // long as the worker pool, beside the board.
        let board = unsafe { Board::new(ground.as_ptr(), plan, look_for(workers.len())) };
        let actions = Actions::new(&spec.id, &spec.action, n, config.action_bounds)?;
        let mut told = Vec::new();
        for (k, leaf) in spec.action.leaves().iter().enumerate() {
            if let Some(tensor) = leaf.as_fixed() {
                let block = worker_pool.arena.take(n * tensor.row_bytes())?;
                board.set_actions(k, block.span);
                told.push(block.lend());
            }
        }
        let mut pool = BatchPool::new(&Layout {
            observation: spec.observation.clone(),
            info: spec.info.clone(),
            finals: spec.autoreset == AutoresetMode::SameStep && spec.caps.contains(Caps::FINAL_OBS),
            capacity: n,
        })?;
        let mut lender =
            Lender { arena: &worker_pool.arena, board: &board, counts, whole: false, failed: None };
        let staging = pool.draft(Slots::All, n, Some(&mut lender))?;
        if let Some(error) = lender.failed {
            return Err(error);
        }
        (worker_pool.board, worker_pool.ground) = (Some(board), Some(ground));
        if let Some((_, error)) = worker_pool.seat(&workers, config.timeout)?.into_iter().next() {
            return Err(error);
        }
        let mirror = Mirror::new(&spec, &seeds);
        Ok(Process {
            limits: Limits::new(&config, spec.autoreset),
            front: Front::of(spec),
            worker_pool: Native::new(worker_pool),
            mirror,
            in_flight: vec![None; n],
            actions,
            told,
            pool,
            counts,
            whole: None,
            in_whole: vec![false; n],
            staging,
            notes: (0..n).map(|_| Notes::default()).collect(),
            landing: Landing::new(n),
            owed: VecDeque::new(),
            looked: Instant::now(),
            config,
            seeds,
            about,
        })
    }

    /// What the first worker told of its envs beside their spec.
    pub fn about(&self) -> &[u8] {
        &self.about
    }

    /// The process ids of the workers that run, and each one's slots.
    pub fn workers(&self) -> Vec<(u32, Range<usize>)> {
        let members = self.worker_pool.members.iter();
        members.filter_map(|m| m.live.as_ref().map(|live| (live.pid(), m.slots.clone()))).collect()
    }

    /// Whether slots run one by one.
    fn is_apart(&self) -> bool {
        self.limits.any() || self.config.batch_size.is_some_and(|size| size < self.front.spec.num_slots)
    }

    /// Starts again what died of the workers of `slots`; which could not be
    /// started, and why.
    ///
    /// # Errors
    /// The user's wish to stop: what died is as it was.
    pub(super) fn revive(&mut self, slots: impl Iterator<Item = usize>) -> Result<Vec<(usize, Error)>> {
        let worker_pool = &mut *self.worker_pool;
        let mut dead: Vec<usize> = slots
            .map(|slot| worker_pool.of(slot))
            .filter(|k| worker_pool.members[*k].live.is_none())
            .collect();
        dead.sort_unstable();
        dead.dedup();
        let mut lost = Vec::new();
        if dead.is_empty() {
            return Ok(lost);
        }
        let seeds = &self.seeds;
        let seeded = !self.front.spec.caps.contains(Caps::UNSEEDED);
        let seed = |first: usize, launches: u64| {
            // Its other slots' seeds follow on it, and are of 32 bits too.
            crate::episode::restart_seed(seeds[first], launches) >> 1
        };
        worker_pool.start(
            &dead,
            &self.config,
            |member| seed(member.slots.start, member.launches),
            |worker, built| {
                lost.extend(built.err().map(|error| (worker, error)));
                Ok(())
            },
        )?;
        dead.retain(|worker| worker_pool.members[*worker].live.is_some());
        lost.extend(worker_pool.seat(&dead, self.config.timeout)?);
        dead.retain(|worker| worker_pool.members[*worker].live.is_some());
        for &worker in &dead {
            let member = &worker_pool.members[worker];
            let first = seed(member.slots.start, member.launches - 1);
            for (k, slot) in member.slots.clone().enumerate() {
                self.mirror.rebuild(slot, first + k as i64, seeded);
            }
        }
        Ok(lost)
    }

    /// Lands those of `slots`, which are in flight, whose worker could not be
    /// started; the others.
    pub(super) fn land_lost(&mut self, slots: Slots, lost: Vec<(usize, Error)>) -> Slots {
        if lost.is_empty() {
            return slots;
        }
        let mut rest = Vec::new();
        for slot in slots.iter(self.front.spec.num_slots) {
            let worker = self.worker_pool.of(slot);
            match lost.iter().find(|(of, _)| *of == worker) {
                Some((_, error)) => self.fail_row(slot, unstarted(slot, error)),
                None => rest.push(slot),
            }
        }
        Slots::List(rest)
    }

    /// Marks `slots` as in flight for what `sent` says of each.
    pub(super) fn depart(&mut self, slots: &Slots, sent: impl Fn(usize) -> Sent) {
        self.front.depart(slots);
        self.landing.send(slots);
        for (row, slot) in slots.iter(self.front.spec.num_slots).enumerate() {
            self.in_flight[slot] = Some(sent(row));
            self.in_whole[slot] = false;
        }
    }

    /// Lands those of `slots` whose worker died earlier; the others.
    pub(super) fn land_doomed(&mut self, slots: &Slots) -> Slots {
        let n = self.front.spec.num_slots;
        if !self.mirror.any_doomed() {
            return slots.clone();
        }
        let mut rest = Vec::new();
        for slot in slots.iter(n) {
            match self.mirror.take_doom(slot) {
                Some(failure) => self.fail_row(slot, (*failure).clone()),
                None => rest.push(slot),
            }
        }
        Slots::List(rest)
    }

    /// Whether a step of `slots` will be a batch of all slots, for which there is
    /// room then.
    pub(super) fn prepare(&mut self, slots: &Slots) -> Result<bool> {
        let whole = *slots == Slots::All && !self.is_apart() && !self.mirror.any_doomed();
        if whole && self.whole.is_none() {
            self.draft_whole()?;
        }
        Ok(whole)
    }

    /// Posts a step of `slots`, which have departed: `whole` where it was
    /// prepared as one. `loose` are the columns that are not of fixed shape, with
    /// a row for each of `slots`.
    pub(super) fn post_steps(&mut self, slots: &Slots, mut loose: Vec<Vec<Packed>>, whole: bool) {
        let n = self.front.spec.num_slots;
        let mail = !loose.is_empty();
        let mut rows = |worker_pool: &mut WorkerPool, worker: usize, rows: usize| {
            if mail {
                worker_pool.ring(worker);
                let columns = loose.iter_mut().map(|column| column.drain(..rows).collect());
                worker_pool.mail(worker, &ToWorker::Actions(columns.collect()));
            }
        };
        if whole {
            self.in_whole.fill(true);
            for worker in 0..self.worker_pool.members.len() {
                let Range { start: first, end } = self.worker_pool.members[worker].slots;
                self.worker_pool
                    .post(worker, Entry { work: Work::StepWhole, mail, first, count: end - first });
                rows(&mut self.worker_pool, worker, end - first);
            }
            self.worker_pool.board().ring_all(0..self.worker_pool.members.len());
            return;
        }
        for (worker, run) in self.runs(slots, self.most_together()) {
            let (first, count) = (run.start, run.len());
            self.worker_pool.post(worker, Entry { work: Work::Step, mail, first, count });
            rows(&mut self.worker_pool, worker, count);
        }
        self.ring_for(slots, n);
    }

    /// How many slots one piece of work may be about.
    pub(super) fn most_together(&self) -> usize {
        if self.is_apart() && self.front.spec.caps.contains(Caps::SUBSET) { 1 } else { usize::MAX }
    }

    pub(super) fn ring_for(&mut self, slots: &Slots, n: usize) {
        let mut last = usize::MAX;
        let workers = slots.iter(n).map(|slot| self.worker_pool.of(slot));
        let workers = workers.filter(|worker| std::mem::replace(&mut last, *worker) != *worker);
        self.worker_pool.board().ring_all(workers);
    }

    /// Consecutive slots of one worker, of `slots` in their order; at most
    /// `most` together.
    pub(super) fn runs(&self, slots: &Slots, most: usize) -> Vec<(usize, Range<usize>)> {
        let mut runs: Vec<(usize, Range<usize>)> = Vec::new();
        for slot in slots.iter(self.front.spec.num_slots) {
            let worker = self.worker_pool.of(slot);
            match runs.last_mut() {
                Some((of, run)) if *of == worker && run.end == slot && run.len() < most => run.end += 1,
                _ => runs.push((worker, slot..slot + 1)),
            }
        }
        runs
    }

    fn draft_whole(&mut self) -> Result<()> {
        let worker_pool = &*self.worker_pool;
        let board = worker_pool.board();
        let mut lender =
            Lender { arena: &worker_pool.arena, board, counts: self.counts, whole: true, failed: None };
        let n = self.front.spec.num_slots;
        let draft = self.pool.draft(Slots::All, n, Some(&mut lender))?;
        if let Some(error) = lender.failed {
            return Err(error);
        }
        self.whole = Some(draft);
        Ok(())
    }

    /// Where `slot`'s row is.
    fn draft(&mut self, slot: usize) -> &mut Draft {
        match &mut self.whole {
            Some(whole) if self.in_whole[slot] => whole,
            _ => &mut self.staging,
        }
    }

    /// Takes every result that is there.
    pub(super) fn collect(&mut self) {
        for worker in 0..self.worker_pool.members.len() {
            self.collect_from(worker);
        }
    }

    fn collect_from(&mut self, worker: usize) {
        while let Some((entry, news)) = self.worker_pool.collect(worker) {
            if matches!(entry.work, Work::Ask | Work::Close) {
                continue;
            }
            if let Some(why) = news.as_ref().and_then(|news| self.contradiction(worker, entry, news)) {
                self.worker_pool.break_off(worker, why);
                return;
            }
            let refused = news.map(|news| self.take_news(worker, entry, news)).unwrap_or_default();
            for slot in entry.slots() {
                if self.in_flight[slot].is_none() {
                    continue;
                }
                match refused.iter().find(|(of, _)| *of == slot) {
                    Some((_, why)) => {
                        let failure = Failure::new(Phase::Step, Cause::Error, why.clone());
                        self.fail_row(slot, failure);
                    }
                    None => self.land(slot),
                }
            }
        }
    }

    /// Why `news` cannot be about the rows of `entry`.
    fn contradiction(&self, worker: usize, entry: Entry, news: &News) -> Option<String> {
        let infos = news.infos.iter().chain(&news.final_infos).map(|(row, ..)| *row);
        let columns = news.columns.iter().map(|column| column.len().saturating_sub(1));
        let row = infos.chain(columns).find(|row| *row >= entry.count);
        let first = self.worker_pool.members[worker].slots.start;
        let own = entry.first - first..entry.first - first + entry.count;
        let slot = news.failures.iter().map(|failure| failure.slot).find(|slot| !own.contains(slot));
        let what = row.map(|row| format!("row {row}")).or(slot.map(|slot| format!("its env {slot}")))?;
        Some(format!(
            "it told of {what}, and had {} rows to tell of, from its env {}",
            entry.count, own.start
        ))
    }

    /// Takes in what belongs to the rows of `entry`; the slots whose news made
    /// no sense, and why.
    fn take_news(&mut self, worker: usize, entry: Entry, news: News) -> Vec<(usize, String)> {
        let host = self.worker_pool.host.clone();
        if let Some(why) = news.refused {
            return entry.slots().map(|slot| (slot, why.clone())).collect();
        }
        let mut bad = Vec::new();
        let first = self.worker_pool.members[worker].slots.start;
        for (k, column) in news.columns.into_iter().enumerate() {
            for (row, value) in column.into_iter().enumerate() {
                let slot = entry.first + row;
                match value.open(&*host) {
                    Ok(value) => {
                        let mut columns = self.draft(slot).batch_mut().loose_mut();
                        if let Some(column) = columns.nth(k) {
                            column[slot] = value;
                        }
                    }
                    Err(error) => bad.push((slot, error.to_string())),
                }
            }
        }
        let mut infos = |list: Vec<(usize, String, Packed)>, is_final: bool| {
            for (row, key, value) in list {
                let slot = entry.first + row;
                match value.open(&*host) {
                    Ok(value) => {
                        let notes = &mut self.notes[slot];
                        let list = if is_final { &mut notes.final_infos } else { &mut notes.infos };
                        list.push(Extra { row: 0, key, value });
                    }
                    Err(error) => bad.push((slot, format!("info '{key}': {error}"))),
                }
            }
        };
        infos(news.infos, false);
        infos(news.final_infos, true);
        for failure in news.failures {
            let failure = failure.open(first, &*host);
            self.notes[failure.slot].failures.push(failure);
        }
        bad
    }

    /// Notes that `slot`'s row is there.
    fn land(&mut self, slot: usize) {
        let window = self.draft(slot).window();
        // SAFETY: the draft is here; in this process only `self` uses it.
        let said = unsafe { window.said(slot) };
        let Some(mut kind) = RowKind::of(said.kind).filter(|_| said.is_sound) else {
            let why = "its worker wrote bytes that are no truth values";
            self.fail_row(slot, Failure::new(Phase::Step, Cause::Error, why));
            return;
        };
        let ended = said.ended;
        let sent = self.in_flight[slot].take().expect("only slots in flight land");
        if kind == RowKind::Reset && self.mirror.lives.status(slot) == Status::Lost {
            kind = RowKind::Restarted;
            // SAFETY: as above.
            unsafe { window.set_kind(slot, kind as u8) }
        }
        self.mirror.land(slot, sent, kind, ended);
        self.landing.land(slot);
    }

    /// Writes the row of a slot in flight that will not come back.
    fn fail_row(&mut self, slot: usize, failure: Failure) {
        let Some(sent) = self.in_flight[slot].take() else { return };
        let action = self.actions.describe(slot);
        let error = self.mirror.lose(slot, sent, Some(action), failure);
        let window = self.draft(slot).window();
        // SAFETY: the draft is here; in this process only `self` uses it.
        unsafe { window.clear_row(slot, RowKind::Failed as u8) }
        self.notes[slot] = Notes { failures: vec![error], ..Notes::default() };
        self.landing.land(slot);
    }

    /// Ends a worker that died, or whose slot was silent for too long, and lands
    /// what it had in flight. Returns what became of it.
    pub(super) fn bury(&mut self, worker: usize, silent: Option<(usize, Limit)>) -> String {
        let mut end = self.worker_pool.stop(worker);
        self.collect_from(worker);
        let words = self.worker_pool.forget(worker);
        let slots = self.worker_pool.members[worker].slots.clone();
        // Slots that step together are silent together.
        let together = !self.front.spec.caps.contains(Caps::SUBSET) && slots.len() > 1;
        if let Some((slot, limit)) = silent {
            let who = match together {
                true => format!("envs {} to {}", slots.start, slots.end - 1),
                false => format!("env {slot}"),
            };
            end = format!("{who} gave {limit}, and {end}");
        }
        // A new worker numbers its questions anew.
        self.owed.retain(|owed| owed.worker != worker);
        let text = format!("{end}{words}");
        let failure = Failure::new(Phase::Step, Cause::Death, text.clone());
        let shared = Arc::new(failure.clone());
        for slot in slots {
            if self.in_flight[slot].is_some() {
                let cause = match silent {
                    Some((of, _)) if of == slot || together => Cause::Silence,
                    _ => Cause::Death,
                };
                self.fail_row(slot, Failure { cause, ..failure.clone() });
            } else {
                // Its last row was good; the next one is not.
                self.mirror.doom(slot, &shared);
            }
        }
        text
    }

    /// Looks for workers that died or are silent.
    ///
    /// # Errors
    /// The user's wish to stop.
    fn look_after(&mut self) -> Result<()> {
        self.looked = Instant::now();
        for worker in 0..self.worker_pool.members.len() {
            if self.worker_pool.is_dead(worker) {
                self.bury(worker, None);
                continue;
            }
            let silence = {
                let limit = limit_of(&self.limits, &self.in_flight, &self.mirror);
                self.worker_pool.silence(worker, &|slot| Some(limit(slot)?.time))
            };
            if let Some(slot) = silence {
                self.bury_silent(worker, slot);
            }
        }
        self.worker_pool.host.pulse()
    }

    /// Ends a worker that was silent for too long, at slot `at` where that is
    /// known. Returns the slot that its silence is told of, and what became of it.
    pub(super) fn bury_silent(&mut self, worker: usize, at: Option<usize>) -> (usize, String) {
        let slot = self.silent_slot(worker, at);
        let limit = limit_of(&self.limits, &self.in_flight, &self.mirror)(at.map(|_| slot));
        (slot, self.bury(worker, limit.map(|limit| (slot, limit))))
    }

    /// The slot that a worker's silence is told of: `at`, where that is known.
    fn silent_slot(&self, worker: usize, at: Option<usize>) -> usize {
        let mut slots = self.worker_pool.members[worker].slots.clone();
        let first = slots.start;
        // What a worker says of itself stands where others can write.
        at.filter(|slot| slots.contains(slot))
            .or_else(|| slots.find(|slot| self.in_flight[*slot].is_some()))
            .unwrap_or(first)
    }

    /// When the next slot will have been silent for too long.
    fn expiry(&self, now: Instant) -> Option<Instant> {
        let limit = limit_of(&self.limits, &self.in_flight, &self.mirror);
        let left = |worker: usize| match self.worker_pool.board().at_work(worker) {
            Some((time, slot)) => Some(limit(Some(slot))?.time.saturating_sub(time)),
            None => self.limits.any().then(|| self.limits.shortest()),
        };
        (0..self.worker_pool.members.len()).filter_map(left).min().and_then(|left| now.checked_add(left))
    }

    /// Waits until `least` rows have landed; whether they have by `deadline`.
    fn await_rows(&mut self, least: usize, deadline: Option<Instant>) -> Result<bool> {
        let mut in_vain = false;
        loop {
            let seen = self.worker_pool.board().done();
            self.collect();
            // Only after what is there was taken: a worker is not silent because
            // nobody has looked.
            let overdue = self.looked.elapsed() >= ROUND;
            if overdue || (in_vain && self.landing.len() < least) {
                self.look_after()?;
            }
            self.worker_pool.heed()?;
            if self.landing.len() >= least {
                return Ok(true);
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(false);
            }
            if self.worker_pool.corresponds() {
                let time = deadline.map_or(MOMENT, |deadline| MOMENT.min(deadline - now));
                self.worker_pool.exchange(time);
                in_vain = self.looked.elapsed() >= SLICE;
                continue;
            }
            let until = [Some(now + SLICE), deadline, self.expiry(now)].into_iter().flatten().min();
            let need = seen.wrapping_add((least - self.landing.len()) as u32);
            self.worker_pool.board().wait(need, until.unwrap_or(now));
            in_vain = true;
        }
    }

    /// Notes that the mirrors are to say `change` once `question` is answered.
    pub(super) fn owe(&mut self, worker: usize, question: u64, phase: Phase, change: Change) {
        self.owed.push_back(Owed { worker, question, phase, change });
    }

    /// Waits for the answers that mirrors wait for, and takes them in: before a slot
    /// is used again, mirror and worker agree.
    ///
    /// # Errors
    /// The user's wish to stop; what is owed stays so. The last order's own error
    /// is within.
    pub(super) fn settle(&mut self) -> Result<Result<()>> {
        let mut last = Ok(());
        while let Some(owed) = self.owed.pop_front() {
            last = match self.answer(owed.worker, owed.question, owed.phase) {
                Err(stop) => {
                    self.owed.push_front(owed);
                    return Err(stop);
                }
                Ok(answer) => answer.map(|_| self.apply(owed.change)),
            };
        }
        Ok(last)
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Next(begins) => {
                begins.into_iter().for_each(|(slot, begin)| self.mirror.lives.set_next(slot, begin));
            }
            Change::Life(slot, life) => self.mirror.load(slot, life.map(|life| *life)),
        }
    }

    pub(super) fn receive(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        let in_flight = self.front.in_flight();
        if in_flight == 0 {
            return Err(Error::NothingPending);
        }
        let (least, most) = want.rows(in_flight);
        if !self.await_rows(least, want.deadline)? {
            return Ok(None);
        }
        let rows = most.min(self.landing.len());
        let n = self.front.spec.num_slots;
        if let Some(whole) = &mut self.whole
            && rows == n
            && self.in_whole.iter().all(|whole| *whole)
        {
            let mut draft = self.pool.draft(Slots::All, n, want.buffers)?;
            draft.batch_mut().take_all(whole.batch_mut());
            let mut batch = self.pool.finish(draft);
            self.landing.clear();
            self.in_whole.fill(false);
            self.give_notes(&Slots::All, &mut batch);
            self.front.arrive(&Slots::All);
            return Ok(Some(batch));
        }
        let batch = self.gather(self.landing.first(rows), want.buffers)?;
        self.landing.receive(rows);
        Ok(Some(batch))
    }

    fn gather(&mut self, slots: Slots, buffers: Option<&mut dyn Buffers>) -> Result<Box<Batch>> {
        let n = self.front.spec.num_slots;
        let draft = self.pool.draft(slots.clone(), slots.len(n), buffers)?;
        let to = draft.window();
        for (row, slot) in slots.iter(n).enumerate() {
            let from = self.draft(slot).window();
            // SAFETY: the drafts are here, the second one new; in this process only
            // `self` uses them, and the first one's rows are copied as bytes.
            unsafe { from.copy_row(slot, to, row) };
            self.in_whole[slot] = false;
        }
        let mut batch = self.pool.finish(draft);
        self.give_notes(&slots, &mut batch);
        self.front.arrive(&slots);
        Ok(batch)
    }

    fn give_notes(&mut self, slots: &Slots, batch: &mut Batch) {
        let mut notes = Notes::default();
        for (row, slot) in slots.iter(self.front.spec.num_slots).enumerate() {
            notes.append_row(row, &mut self.notes[slot]);
        }
        notes.give(batch);
    }

    /// Gives up all that is in flight.
    pub(super) fn forget(&mut self) {
        self.front.forget();
        self.landing.clear();
        self.in_flight.fill(None);
        self.owed.clear();
    }

    pub(super) fn is_in_flight(&self, slot: usize) -> bool {
        self.in_flight[slot].is_some()
    }

    pub(super) fn own_allocations(&self) -> u64 {
        self.pool.allocations()
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.config.timeout
    }

    /// The answer to a question of a worker, within the time that its slots have.
    pub(super) fn hear_answer(&mut self, worker: usize, question: u64) -> Result<Answer, Mute> {
        let limit = limit_of(&self.limits, &self.in_flight, &self.mirror);
        self.worker_pool.answer(worker, question, &|slot| Some(limit(slot)?.time))
    }

    pub(super) fn options_of(&self, slot: usize, options: Option<&Options>, begin: Begin) -> Option<Options> {
        if begin == Begin::Keep { None } else { self.mirror.options_for(slot, options) }
    }
}
