//! The threaded runner, which steps all slots together on several threads.
//!
//! `send` checks and stores actions; `recv` does the work. Slots are divided into
//! groups of neighbours. The caller and the thread pool take one group after the
//! other, and every row is written in place. The caller does the work alone where
//! that is faster than to wake a thread; both ways are measured from call to call.
//! The bytes are those of the serial runner.
//!
//! Above 400 lines because a round, and who may touch what in it, must be read
//! together.

#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::base::{JobQueue, RunnerBase, check_resets, reset_jobs};
use super::pace::{Pace, Way};
use super::partition::{Partition, PooledGroup};
use super::slot_group::{Job, Run, SlotGroup};
use super::thread_pool::{Task, ThreadPool};
use crate::begin::Begin;
use crate::buffer::{Actions, Batch, BatchPool, ColumnIn, Draft, Slots};
use crate::call::Call;
use crate::caps::Caps;
use crate::episode::Episodes;
use crate::error::{Error, Result};
use crate::fork::ProcessLocal;
use crate::frame::Frame;
use crate::landing::Notes;
use crate::saved::{Sections, SlotState};
use crate::source::Source;
use crate::space::{Options, Value};
use crate::vec_config::VecConfig;
use crate::vec_env::{Spec, VecEnv, Want};

/// How long `close` waits for slots that are in the middle of a step.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// Steps slots on several threads, the caller's among them.
pub struct Threaded {
    base: RunnerBase,
    parts: ProcessLocal<ThreadedParts>,
    threads: usize,
    /// Whether all envs take about the same time for a step.
    even: bool,
    queue: JobQueue,
    pool: BatchPool,
    actions: Arc<Actions>,
    /// Whether each slot's next step plays no action.
    skip: Vec<bool>,
    steps: Pace,
    resets: Pace,
    /// The batch that is being made. The round is stored before any of its groups goes
    /// out, and is removed when all are back. So no thread writes to memory that is
    /// gone, however the call that began the batch ends.
    round: Option<Round>,
    /// Whether Ctrl-C came at an env of the round.
    stopped: Arc<AtomicBool>,
}

struct ThreadedParts {
    partition: Partition,
    thread_pool: ThreadPool<PooledGroup>,
}

struct Round {
    draft: Draft,
    /// The groups that have rows in the batch.
    groups: Vec<usize>,
    /// How many of the groups are out.
    out: usize,
    /// How long the caller took for the groups that were not out.
    busy: Duration,
    started: Instant,
    way: Way,
    is_step: bool,
}

/// The slots of group `group` of `groups`, which divide `n` slots among them.
fn slots_of(group: usize, n: usize, groups: usize) -> Range<usize> {
    n * group / groups..n * (group + 1) / groups
}

/// The group that has `slot`: the last group that begins at or before `slot`.
fn group_of(slot: usize, n: usize, groups: usize) -> usize {
    ((slot + 1) * groups - 1) / n
}

impl Threaded {
    /// A vec env of `config.num_slots` slots of `source` on
    /// `config.num_threads` threads, the caller's included; by default as many
    /// as there are cores.
    ///
    /// # Errors
    /// As [`Serial::new`](crate::Serial::new); [`Error::Argument`] for no
    /// threads.
    pub fn new(source: &dyn Source, config: VecConfig) -> Result<Self> {
        let (mut base, rules, seeds) = RunnerBase::new(source, &config)?;
        let brief = source.spec().caps.contains(Caps::BRIEF);
        base.spec.caps -= Caps::BRIEF;
        let n = base.spec.num_slots;
        let threads = super::threads(&config)?;
        // There are more groups than threads, so that a thread that was interrupted has less left to
        // do than the others, who do it then. Envs whose steps take long need more of them, since one
        // group may take longer than another.
        let groups = match source.chunks() {
            Some(chunks) => chunks.clamp(1, n),
            None if brief => n.min(threads * (n / 1024).clamp(1, 4)),
            None => n.min(threads * (n / 256).clamp(2, 8)),
        };
        let spec = &base.spec;
        let actions = Arc::new(Actions::new(&spec.id, &spec.action, n, config.action_bounds)?);
        let epoch = Instant::now();
        let stopped = Arc::new(AtomicBool::new(false));
        let group = |number| {
            let slots = slots_of(number, n, groups);
            let group = SlotGroup::new(
                Episodes::new(source, &rules, slots.start, &seeds[slots.clone()])?,
                slots.start,
            );
            Ok(PooledGroup::new(number, group, actions.clone(), epoch).stopped_by(&stopped))
        };
        let partition = Partition::new((0..groups).map(group).collect::<Result<_>>()?);
        let thread_pool = ThreadPool::new(partition.len(), config.thread_affinity_offset)?;
        Ok(Threaded {
            pool: base.pool(&rules)?,
            parts: ProcessLocal::new(ThreadedParts { partition, thread_pool }),
            threads,
            even: brief,
            queue: JobQueue::default(),
            actions,
            skip: vec![false; n],
            steps: Pace::default(),
            resets: Pace::default(),
            round: None,
            stopped,
            base,
        })
    }

    /// Errors while a round that was interrupted is under way, because threads hold
    /// its groups.
    fn check_no_round(&self) -> Result<()> {
        self.base.check_open()?;
        match &self.round {
            None => Ok(()),
            Some(_) => {
                Err(Error::Pending("an interrupted call is still under way: recv or drain first".into()))
            }
        }
    }

    fn check_slots(&self, slots: &Slots) -> Result<()> {
        self.check_no_round()?;
        self.base.check_slots(slots)
    }

    fn slots_of(&self, group: usize) -> Range<usize> {
        slots_of(group, self.base.spec.num_slots, self.parts.partition.len())
    }

    /// The group that has `slot`.
    fn group_of(&self, slot: usize) -> usize {
        group_of(slot, self.base.spec.num_slots, self.parts.partition.len())
    }

    /// Errors where `slots`, which may begin as `begin` says, are not whole chunks and
    /// the source needs whole chunks.
    fn check_chunks(&self, slots: &Slots, begin: Option<&[Begin]>) -> Result<()> {
        self.base.check_chunks(slots, begin, |slot| self.slots_of(self.group_of(slot)))
    }

    /// The episodes of the group that has `slot`, and the number of `slot` in the group.
    fn episodes(&mut self, slot: usize) -> (&mut Episodes, usize) {
        let group = self.group_of(slot);
        let first = self.slots_of(group).start;
        (&mut self.parts.partition.content(group).group.episodes, slot - first)
    }

    /// Begins a round: gives the work of the next `rows` rows to the groups.
    fn begin(&mut self, want: &mut Want<'_>) -> Result<()> {
        let (_, rows) = want.rows(self.base.in_flight())?;
        self.stopped.store(false, Ordering::Relaxed);
        let slots = self.queue.next(rows, self.base.spec.num_slots);
        let draft = self.pool.draft(slots, rows, want.buffers.take())?;
        let (parts, n) = (&mut *self.parts, self.base.spec.num_slots);
        let count = parts.partition.len();
        let window = draft.window();
        let (mut groups, mut is_step) = (Vec::with_capacity(count), true);
        self.queue.take(rows, |run| {
            let mut slots = run.slots;
            let mut row = run.row;
            is_step &= matches!(run.job, Job::Step);
            while !slots.is_empty() {
                let group = group_of(slots.start, n, count);
                let end = slots.end.min(slots_of(group, n, count).end);
                let content = parts.partition.content(group);
                if content.group.runs.is_empty() {
                    content.window = Some(window);
                    groups.push(group);
                }
                content.group.runs.push(Run { slots: slots.start..end, row, job: run.job.clone() });
                row += end - slots.start;
                slots.start = end;
            }
        });
        let pace = if is_step { &mut self.steps } else { &mut self.resets };
        let way = if groups.len() == 1 || self.threads == 1 { Way::Alone } else { pace.choose(rows) };
        let (started, busy) = (Instant::now(), Duration::ZERO);
        self.round = Some(Round { draft, groups, out: 0, busy, started, way, is_step });
        Ok(())
    }

    /// Does the caller's part of the round's work.
    fn work(&mut self) {
        let parts = &mut *self.parts;
        let round = self.round.as_mut().expect("a round was begun");
        let mut rest = round.groups.as_slice();
        // SAFETY of the calls below: `begin` gave each group its window, of the round's
        // draft, and rows that no other group has. The round stays in `self.round`, and so
        // the draft lives, until all of its groups are back (`recv`), or for ever where a
        // group never comes back (`close`).
        if round.way == Way::Unknown {
            // The time of one group tells whether the others are worth a thread.
            let (&first, others) = rest.split_first().expect("a round has rows");
            // SAFETY: see above.
            unsafe { parts.partition.work(first, round.started) };
            rest = others;
            let left = round.started.elapsed() * rest.len() as u32;
            round.way = if Pace::is_worth(left) { Way::Together } else { Way::Alone };
        }
        if round.way != Way::Together {
            // SAFETY: see above.
            rest.iter().for_each(|&group| unsafe { parts.partition.work(group, round.started) });
            return;
        }
        if parts.thread_pool.grow(self.threads - 1).is_err() {
            // The system refuses another thread, so fewer threads do the same work.
            self.threads = parts.thread_pool.size() + 1;
        }
        // A share of the groups is the caller's own where all take the same time. Then each thread
        // has the same groups in each round, which are in its caches.
        let own = if self.even { rest.len() / self.threads } else { 0 };
        let (own, others) = rest.split_at(own);
        for &group in others {
            round.out += 1;
            // SAFETY: see above.
            let group = unsafe { parts.partition.hand_out(group) };
            parts.thread_pool.put(group);
        }
        parts.thread_pool.call(round.out - usize::from(own.is_empty()));
        if !own.is_empty() {
            let began = Instant::now();
            // SAFETY: see above.
            own.iter().for_each(|&group| unsafe { parts.partition.work(group, began) });
            round.busy = began.elapsed();
        }
        while let Some(group) = parts.thread_pool.help() {
            group.run();
            round.out -= 1;
        }
    }

    /// The batch of a round whose groups are all back.
    fn finish(&mut self, round: Round) -> Result<Box<Batch>> {
        let mut notes = Notes::default();
        let mut busy = round.busy;
        for &group in &round.groups {
            let content = self.parts.partition.content(group);
            content.window = None;
            notes.append(&mut content.group.notes);
            busy += content.took;
            let first = content.group.first;
            let pending = content.group.episodes.lives().pending();
            self.skip[first..first + pending.len()].copy_from_slice(pending);
        }
        let pace = if round.is_step { &mut self.steps } else { &mut self.resets };
        pace.note(round.way, round.draft.batch().rows(), busy, round.started.elapsed());
        let batch = self.pool.finish(round.draft);
        self.base.arrive(&batch.slots);
        notes.give(batch)
    }
}

impl VecEnv for Threaded {
    fn spec(&self) -> &Spec {
        &self.base.spec
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_slots(slots)?;
        self.base.check_one_each(slots, begin)?;
        self.check_chunks(slots, Some(begin))?;
        let each = slots.iter(self.base.spec.num_slots).zip(begin.iter().copied());
        for group in 0..self.parts.partition.len() {
            let range = self.slots_of(group);
            let mine = each.clone().filter(|(slot, _)| range.contains(slot));
            let mine = mine.map(|(slot, begin)| (slot - range.start, begin));
            let episodes = &mut self.parts.partition.content(group).group.episodes;
            check_resets(episodes, mine, options, &mut self.base.tried)?;
        }
        Ok(())
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_slots(slots)?;
        self.check_chunks(slots, None)?;
        match slots {
            Slots::All => {
                let mut groups = 0..self.parts.partition.len();
                groups.try_for_each(|group| {
                    self.parts.partition.content(group).group.episodes.lives().check_steps()
                })?;
            }
            Slots::List(list) => list.iter().try_for_each(|&slot| {
                let (episodes, local) = self.episodes(slot);
                episodes.lives().check_step(local)
            })?,
        }
        // SAFETY: the runner holds every group, so nobody else reads an action.
        unsafe { self.actions.store_shared(slots, actions, &self.skip) }
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        self.base.tried.forget();
        self.queue.resets(reset_jobs(slots, begin, options, self.base.spec.num_slots));
        self.base.depart(slots);
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.check_slots(slots)?;
        self.base.check_one_each(slots, begin)?;
        let n = self.base.spec.num_slots;
        for (slot, &begin) in slots.iter(n).zip(begin) {
            let (episodes, local) = self.episodes(slot);
            episodes.lives().check_next(local, begin)?;
        }
        for (slot, &begin) in slots.iter(n).zip(begin) {
            let (episodes, local) = self.episodes(slot);
            episodes.set_next(local, begin);
        }
        Ok(())
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_send(slots, actions)?;
        self.queue.steps(slots, self.base.spec.num_slots);
        self.base.depart(slots);
        Ok(())
    }

    /// A call after one whose deadline passed returns the whole batch that was begun.
    fn recv(&mut self, mut want: Want<'_>) -> Result<Option<Box<Batch>>> {
        self.base.check_open()?;
        if self.base.in_flight() == 0 {
            return Err(Error::NothingPending);
        }
        if self.round.is_none() {
            self.begin(&mut want)?;
            self.work();
        }
        let thread_pool = &mut self.parts.thread_pool;
        if let Some(round) = &mut self.round
            && round.out > 0
        {
            if !thread_pool.wait(round.out, want.deadline) {
                return Ok(None);
            }
            (0..std::mem::take(&mut round.out)).for_each(|_| drop(thread_pool.receive()));
        }
        let round = self.round.take().expect("a round was begun");
        Ok(Some(self.finish(round)?))
    }

    fn in_flight(&self) -> usize {
        self.base.in_flight()
    }

    fn save_slot(&mut self, slot: usize) -> Result<SlotState> {
        self.check_slots(&Slots::List(vec![slot]))?;
        let (episodes, local) = self.episodes(slot);
        episodes.save(local)
    }

    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        self.check_slots(&Slots::List(vec![slot]))?;
        let (episodes, local) = self.episodes(slot);
        episodes.load(local, state)?;
        self.skip[slot] = episodes.lives().pending()[local];
        Ok(())
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        self.check_slots(slots)?;
        let n = self.base.spec.num_slots;
        let draw = |slot| {
            let (episodes, local) = self.episodes(slot);
            episodes.render(local)
        };
        slots.iter(n).map(draw).collect()
    }

    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        self.check_slots(slots)?;
        let n = self.base.spec.num_slots;
        let call = |slot| {
            let (episodes, local) = self.episodes(slot);
            episodes.call(local, call)
        };
        slots.iter(n).map(call).collect()
    }

    fn allocations(&self) -> u64 {
        self.pool.allocations()
    }

    fn close(&mut self) -> Result<()> {
        if !self.base.close() {
            return Ok(());
        }
        self.queue.clear();
        let parts = &mut *self.parts;
        parts.thread_pool.dismiss(Instant::now() + GRACE).iter().for_each(|group| group.take_back());
        let (closed, lost) = parts.partition.close();
        if let Some(round) = self.round.take()
            && lost
        {
            // A thread that has not come back may still write to the draft.
            std::mem::forget(round.draft);
        }
        closed
    }
}

impl Drop for Threaded {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_in_one_group_and_no_group_is_empty() {
        for n in 1..40 {
            for groups in 1..=n {
                let all: Vec<usize> = (0..groups).flat_map(|group| slots_of(group, n, groups)).collect();
                assert!(all.into_iter().eq(0..n));
                for group in 0..groups {
                    let slots = slots_of(group, n, groups);
                    assert!(!slots.is_empty());
                    assert!(slots.into_iter().all(|slot| group_of(slot, n, groups) == group));
                }
            }
        }
    }
}
