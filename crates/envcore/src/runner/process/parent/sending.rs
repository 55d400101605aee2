//! What the parent sends to the workers.

use std::ops::Range;

use super::{Process, unstarted};
use crate::buffer::Slots;
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::runner::messages::PackedValue;
use crate::runner::process::board::{Work, WorkEntry};
use crate::runner::process::parts::Lender;
use crate::runner::process::wire::ToWorker;
use crate::runner::process::worker_pool::WorkerPool;

impl Process {
    /// Whether each slot runs by itself.
    pub(super) fn is_apart(&self) -> bool {
        self.limits.any() || self.config.batch_size.is_some_and(|size| size < self.base.spec.num_slots)
    }

    /// Starts the dead workers of `slots` again. Returns which workers could not be
    /// started, and why.
    ///
    /// # Errors
    /// The user's wish to stop; then the dead workers stay dead.
    pub(in crate::runner::process) fn revive(
        &mut self,
        slots: impl Iterator<Item = usize>,
    ) -> Result<Vec<(usize, Error)>> {
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
        let seeded = !self.base.spec.caps.contains(Caps::UNSEEDED);
        let seed = |first: usize, launches: u64| {
            // The seeds of the worker's other slots count up from this one and have 32 bits too.
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
        lost.extend(worker_pool.send_plan(&dead, self.config.timeout)?);
        dead.retain(|worker| worker_pool.members[*worker].live.is_some());
        for &worker in &dead {
            let member = &worker_pool.members[worker];
            let first = seed(member.slots.start, member.launches - 1);
            for (k, slot) in member.slots.clone().enumerate() {
                self.rows.slot_states.rebuild(slot, first + k as i64, seeded);
            }
        }
        Ok(lost)
    }

    /// Lands failed rows of those of `slots` whose worker could not be started. All of
    /// `slots` are in flight. Returns the other slots.
    pub(in crate::runner::process) fn land_lost(&mut self, slots: Slots, lost: Vec<(usize, Error)>) -> Slots {
        if lost.is_empty() {
            return slots;
        }
        let mut rest = Vec::new();
        for slot in slots.iter(self.base.spec.num_slots) {
            let worker = self.worker_pool.of(slot);
            match lost.iter().find(|(of, _)| *of == worker) {
                Some((_, error)) => self.fail_row(slot, unstarted(slot, error)),
                None => rest.push(slot),
            }
        }
        Slots::List(rest)
    }

    /// Returns whether a step of `slots` will be written to a draft of all slots, and makes
    /// that draft where there is none.
    pub(in crate::runner::process) fn prepare(&mut self, slots: &Slots) -> Result<bool> {
        let whole = *slots == Slots::All && !self.is_apart() && !self.rows.slot_states.any_unreported();
        if whole && self.rows.whole.is_none() {
            self.draft_whole()?;
        }
        Ok(whole)
    }

    /// Posts a step of `slots`, which are marked as in flight. `whole` is what `prepare`
    /// returned. `loose` are the columns that are not of fixed shape, with a row for each
    /// of `slots`.
    pub(in crate::runner::process) fn post_steps(
        &mut self,
        slots: &Slots,
        mut loose: Vec<Vec<PackedValue>>,
        whole: bool,
    ) {
        let n = self.base.spec.num_slots;
        let has_message = !loose.is_empty();
        let mut rows = |worker_pool: &mut WorkerPool, worker: usize, rows: usize| {
            if has_message {
                worker_pool.wake_if_asleep(worker);
                let columns = loose.iter_mut().map(|column| column.drain(..rows).collect());
                worker_pool.send_message(worker, &ToWorker::Actions(columns.collect()));
            }
        };
        if whole {
            self.rows.expect_whole();
            for worker in 0..self.worker_pool.members.len() {
                let Range { start: first, end } = self.worker_pool.members[worker].slots;
                self.worker_pool.post(
                    worker,
                    WorkEntry { work: Work::StepWhole, has_message, first, count: end - first },
                );
                rows(&mut self.worker_pool, worker, end - first);
            }
            self.worker_pool.board().wake_all(0..self.worker_pool.members.len());
            return;
        }
        for (worker, run) in self.runs(slots, self.most_together()) {
            let (first, count) = (run.start, run.len());
            self.worker_pool.post(worker, WorkEntry { work: Work::Step, has_message, first, count });
            rows(&mut self.worker_pool, worker, count);
        }
        self.wake_workers_of(slots, n);
    }

    /// How many slots one entry on the board may have.
    pub(in crate::runner::process) fn most_together(&self) -> usize {
        if self.is_apart() && self.base.spec.caps.contains(Caps::SUBSET) { 1 } else { usize::MAX }
    }

    pub(in crate::runner::process) fn wake_workers_of(&mut self, slots: &Slots, n: usize) {
        let mut last = usize::MAX;
        let workers = slots.iter(n).map(|slot| self.worker_pool.of(slot));
        let workers = workers.filter(|worker| std::mem::replace(&mut last, *worker) != *worker);
        self.worker_pool.board().wake_all(workers);
    }

    /// The runs of consecutive slots of one worker in `slots`, in their order, each of at
    /// most `most` slots.
    pub(in crate::runner::process) fn runs(&self, slots: &Slots, most: usize) -> Vec<(usize, Range<usize>)> {
        let mut runs: Vec<(usize, Range<usize>)> = Vec::new();
        for slot in slots.iter(self.base.spec.num_slots) {
            let worker = self.worker_pool.of(slot);
            match runs.last_mut() {
                Some((of, run)) if *of == worker && run.end == slot && run.len() < most => run.end += 1,
                _ => runs.push((worker, slot..slot + 1)),
            }
        }
        runs
    }

    pub(super) fn draft_whole(&mut self) -> Result<()> {
        let worker_pool = &*self.worker_pool;
        let board = worker_pool.board();
        let mut lender =
            Lender { arena: &worker_pool.arena, board, counts: self.counts, whole: true, failed: None };
        let n = self.base.spec.num_slots;
        let draft = self.pool.draft(Slots::All, n, Some(&mut lender))?;
        if let Some(error) = lender.failed {
            return Err(error);
        }
        self.rows.whole = Some(draft);
        Ok(())
    }
}
