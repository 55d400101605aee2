//! The background runner, which steps every slot by itself on threads of its own.
//!
//! `send` hands slots to the thread pool and returns; `recv` waits for the rows of as
//! many slots as are asked for. Each slot is a group of its own, so a slow slot delays
//! no other while a thread is free. Nobody knows in advance which slots will share a
//! batch. So each slot writes its row to a place of its own, and `recv` copies each
//! row once, into the batch.
//!
//! No env runs on the caller's thread. So an env that does not return within
//! `timeout` costs its slot and its thread, never the caller: the group is left
//! to the thread, and a group without an env replaces it.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use super::base::{RunnerBase, check_resets, reset_jobs};
use super::limits::{Limit, Limits};
use super::partition::{Partition, PooledGroup, Staging};
use super::slot_group::{Job, Run, SlotGroup};
use super::thread_pool::ThreadPool;
use super::threaded::GRACE;
use crate::begin::Begin;
use crate::buffer::{Actions, Batch, BatchPool, ColumnIn, RowKind, Slots};
use crate::call::Call;
use crate::caps::Caps;
use crate::episode::{Episodes, Rules, Snapshot};
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::fork::ProcessLocal;
use crate::frame::Frame;
use crate::landing::Landing;
use crate::saved::{Sections, SlotState};
use crate::source::Source;
use crate::space::{Options, Value};
use crate::vec_config::VecConfig;
use crate::vec_env::{Spec, VecEnv, Want};

/// Steps every slot in the background.
pub struct Background {
    base: RunnerBase,
    source: Arc<dyn Source>,
    rules: Rules,
    parts: ProcessLocal<BackgroundParts>,
    threads: usize,
    limits: Limits,
    pool: BatchPool,
    actions: Arc<Actions>,
    /// Whether each slot's next step plays no action.
    skip: Vec<bool>,
    /// What each slot in flight was sent to do, where there is a time limit.
    sent: Vec<Option<Snapshot>>,
    /// The slots whose rows are written.
    landing: Landing,
    epoch: Instant,
}

struct BackgroundParts {
    /// One group per slot, which writes to a row of its own in a staging.
    partition: Partition,
    thread_pool: ThreadPool<PooledGroup>,
}

impl BackgroundParts {
    fn episodes(&mut self, slot: usize) -> &mut Episodes {
        &mut self.partition.content(slot).group.episodes
    }
}

impl Background {
    /// A vec env of `config.num_slots` slots of `source`, stepped by
    /// `config.num_threads` threads; by default as many as there are cores.
    ///
    /// # Errors
    /// As [`Serial::new`](crate::Serial::new); [`Error::Env`] where the threads
    /// cannot be started.
    pub fn new(source: Arc<dyn Source>, config: VecConfig) -> Result<Self> {
        let (mut base, rules, seeds) = RunnerBase::new(&*source, &config)?;
        if !base.spec.caps.contains(Caps::SUBSET) {
            return Err(Error::Unsupported(format!(
                "{} cannot step some envs without the others, as batch_size and timeout take: host it in \
                 worker processes (isolation=\"process\")",
                base.spec.id
            )));
        }
        base.spec.caps -= Caps::BRIEF;
        let n = base.spec.num_slots;
        let threads = super::threads(&config)?.min(n);
        let spec = &base.spec;
        let actions = Arc::new(Actions::new(&spec.id, &spec.action, n, config.action_bounds)?);
        let mut pool = base.pool(&rules)?;
        let staging = Staging::new(pool.draft(Slots::All, n, None)?);
        let epoch = Instant::now();
        let group = |(slot, seed): (usize, &i64)| {
            let group = SlotGroup::new(Episodes::new(&*source, &rules, slot, &[*seed])?, slot);
            Ok(PooledGroup::new(slot, group, actions.clone(), epoch).staged(&staging, slot))
        };
        let partition = Partition::new(seeds.iter().enumerate().map(group).collect::<Result<_>>()?);
        let mut thread_pool = ThreadPool::new(n, config.thread_affinity_offset)?;
        thread_pool.grow(threads)?;
        Ok(Background {
            parts: ProcessLocal::new(BackgroundParts { partition, thread_pool }),
            limits: Limits::new(&config, rules.autoreset),
            rules,
            threads,
            pool,
            actions,
            skip: vec![false; n],
            sent: (0..n).map(|_| None).collect(),
            landing: Landing::new(n),
            epoch,
            source,
            base,
        })
    }

    /// Hands `slot`, which the runner holds, to the thread pool.
    fn hand_out(&mut self, slot: usize, job: Job) {
        let actions = &self.actions;
        let content = self.parts.partition.content(slot);
        if !Arc::ptr_eq(&content.actions, actions) {
            content.actions = actions.clone();
        }
        let row = content.row;
        if self.limits.any() {
            let begin = if let Job::Reset(begin, _) = job { Some(begin) } else { None };
            self.sent[slot] = Some(content.group.episodes.snapshot(0, begin));
        }
        content.group.runs.push(Run { slots: slot..slot + 1, row, job });
        // SAFETY: the group is staged: it has a window and holds the draft. The row
        // belongs to this group and is read only once the group is back (`recv`).
        let group = unsafe { self.parts.partition.hand_out(slot) };
        self.parts.thread_pool.put(group);
    }

    /// Starts the threads that are missing. The system may earlier have refused to
    /// start threads that were to replace others.
    fn start_threads(&mut self) -> Result<()> {
        let grown = self.parts.thread_pool.grow(self.threads);
        if self.parts.thread_pool.size() == 0 { grown } else { Ok(()) }
    }

    /// Notes that `slot`'s row is written.
    fn land(&mut self, slot: usize) {
        self.skip[slot] = self.parts.episodes(slot).lives().pending()[0];
        self.landing.land(slot);
    }

    /// Waits until `least` rows are written. Returns whether they are by `deadline`.
    fn collect(&mut self, least: usize, deadline: Option<Instant>) -> Result<bool> {
        loop {
            for _ in 0..self.parts.thread_pool.num_done() {
                let slot = self.parts.thread_pool.receive().number;
                self.land(slot);
            }
            if self.landing.len() >= least {
                return Ok(true);
            }
            let expiry = self.expiry();
            let until = [deadline, expiry].into_iter().flatten().min();
            if self.parts.thread_pool.wait(least - self.landing.len(), until) {
                continue;
            }
            let now = Instant::now();
            if expiry.is_some_and(|expiry| expiry <= now) {
                self.give_up(now)?;
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(self.landing.len() >= least);
            }
        }
    }

    /// When the next slot will have run for too long, if no slot comes back
    /// before.
    fn expiry(&self) -> Option<Instant> {
        if !self.limits.any() {
            return None;
        }
        let partition = &self.parts.partition;
        let mut is_any = false;
        let end = |slot| {
            let since: Instant = partition.get(slot).running_since()?;
            is_any = true;
            since.checked_add(self.limit(slot)?.time)
        };
        let first = (0..partition.len()).filter_map(end).min();
        // Where no group has reached its thread yet, look again after the shortest limit.
        let later = || Instant::now().checked_add(self.limits.shortest());
        if is_any { first } else { later() }
    }

    /// How long `slot`, which is in flight, may take.
    fn limit(&self, slot: usize) -> Option<Limit> {
        let sent = self.sent[slot].as_ref();
        self.limits.of(sent.is_some_and(|sent| sent.phase == Phase::Reset))
    }

    /// Gives up every slot that has run for too long by `now`.
    fn give_up(&mut self, now: Instant) -> Result<()> {
        for slot in 0..self.base.spec.num_slots {
            let Some(limit) = self.limit(slot) else { continue };
            let since = self.parts.partition.get(slot).running_since();
            if since.is_none_or(|since| now.saturating_duration_since(since) < limit.time) {
                continue;
            }
            // Make what the replacing group needs before anything is given up.
            let actions = self.actions.copy()?;
            let staging = Staging::new(self.pool.draft(Slots::List(vec![slot]), 1, None)?);
            if self.parts.partition.get(slot).revoke_running() {
                self.replace(slot, limit, actions, &staging);
                self.parts.thread_pool.give_up_one();
                self.start_threads()?;
            }
        }
        Ok(())
    }

    /// Replaces the group of `slot`, which its thread keeps, by a group without an
    /// env, and writes the row of a slot that failed.
    fn replace(&mut self, slot: usize, limit: Limit, actions: Actions, staging: &Arc<Staging>) {
        let snapshot = self.sent[slot].take().expect("with a time limit, what was sent is noted");
        let phase = snapshot.phase;
        let action = (phase == Phase::Step).then(|| self.actions.describe(slot));
        let message = format!("{limit}; its thread was left behind, and a reset rebuilds the env");
        let failure = Failure::new(phase, Cause::Silence, message);
        let (episodes, error) =
            Episodes::vacant(&*self.source, &self.rules, slot, snapshot, (failure, action));
        // The thread that was left behind may read the old actions at any later time.
        self.actions = Arc::new(actions);
        let mut group = SlotGroup::new(episodes, slot);
        group.notes.failures.push(error);
        let group = PooledGroup::new(slot, group, self.actions.clone(), self.epoch).staged(staging, 0);
        // SAFETY: the staging is new and has one row, and the group that is to write the
        // row is not handed out yet.
        let mut row = unsafe { staging.window().rows(0, 1) };
        row.renew(0);
        row.clear(0);
        row.set_kind(0, RowKind::Failed);
        self.parts.partition.replace(group);
        self.land(slot);
    }
}

impl VecEnv for Background {
    fn spec(&self) -> &Spec {
        &self.base.spec
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.base.check_slots(slots)?;
        self.base.check_one_each(slots, begin)?;
        for (slot, &begin) in slots.iter(self.base.spec.num_slots).zip(begin) {
            let only = std::iter::once((0, begin));
            check_resets(self.parts.episodes(slot), only, options, &mut self.base.tried)?;
        }
        Ok(())
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.base.check_slots(slots)?;
        let n = self.base.spec.num_slots;
        slots.iter(n).try_for_each(|slot| self.parts.episodes(slot).lives().check_step(0))?;
        // SAFETY: the runner holds these slots, so nobody else reads their actions.
        unsafe { self.actions.store_shared(slots, actions, &self.skip) }
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        self.base.tried.forget();
        self.start_threads()?;
        self.base.depart(slots);
        self.landing.send(slots);
        for (slot, job) in reset_jobs(slots, begin, options, self.base.spec.num_slots) {
            self.hand_out(slot, job);
        }
        self.parts.thread_pool.call(begin.len());
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.base.check_slots(slots)?;
        self.base.check_one_each(slots, begin)?;
        let n = self.base.spec.num_slots;
        for (slot, &begin) in slots.iter(n).zip(begin) {
            self.parts.episodes(slot).lives().check_next(0, begin)?;
        }
        slots.iter(n).zip(begin).for_each(|(slot, &begin)| self.parts.episodes(slot).set_next(0, begin));
        Ok(())
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_send(slots, actions)?;
        self.start_threads()?;
        self.base.depart(slots);
        self.landing.send(slots);
        let n = self.base.spec.num_slots;
        slots.iter(n).for_each(|slot| self.hand_out(slot, Job::Step));
        self.parts.thread_pool.call(slots.len(n));
        Ok(())
    }

    fn recv(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        self.base.check_open()?;
        let (least, most) = want.rows(self.base.in_flight())?;
        if !self.collect(least, want.deadline)? {
            return Ok(None);
        }
        let rows = most.min(self.landing.len());
        let partition = &mut self.parts.partition;
        let (batch, notes) =
            self.landing.gather(rows, &mut self.pool, want.buffers, |slot, draft, row, told| {
                let content = partition.content(slot);
                let from = content.window.expect("every group has its place");
                // SAFETY: the runner holds the group and with it the group's row, whose draft
                // the group keeps alive; the other draft is new.
                unsafe { from.copy_row(content.row, draft.window(), row) };
                told.append_row(row, &mut content.group.notes);
            })?;
        self.base.arrive(&batch.slots);
        notes.give(batch).map(Some)
    }

    fn in_flight(&self) -> usize {
        self.base.in_flight()
    }

    fn save_slot(&mut self, slot: usize) -> Result<SlotState> {
        self.base.check_slots(&Slots::List(vec![slot]))?;
        self.parts.episodes(slot).save(0)
    }

    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        self.base.check_slots(&Slots::List(vec![slot]))?;
        let episodes = self.parts.episodes(slot);
        episodes.load(0, state)?;
        self.skip[slot] = episodes.lives().pending()[0];
        Ok(())
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        self.base.check_slots(slots)?;
        slots.iter(self.base.spec.num_slots).map(|slot| self.parts.episodes(slot).render(0)).collect()
    }

    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        self.base.check_slots(slots)?;
        slots.iter(self.base.spec.num_slots).map(|slot| self.parts.episodes(slot).call(0, call)).collect()
    }

    fn allocations(&self) -> u64 {
        self.pool.allocations()
    }

    fn close(&mut self) -> Result<()> {
        if !self.base.close() {
            return Ok(());
        }
        self.landing.clear();
        let parts = &mut *self.parts;
        let grace = Instant::now() + self.limits.longest().map_or(GRACE, |limit| limit.time.min(GRACE));
        parts.thread_pool.dismiss(grace).iter().for_each(|group| group.take_back());
        parts.partition.close().0
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
