//! Workers that die or fall silent, and answers that are still to come.

use std::time::Instant;

use super::{MOMENT, PendingOrder, Process, ROUND, SLICE};
use crate::caps::Caps;
use crate::error::{Cause, Failure, Phase, Result};
use crate::runner::limits::Limit;
use crate::runner::remote_rows::Change;

impl Process {
    /// Ends a worker that died, or whose slot was silent for too long, and lands failed
    /// rows of its slots in flight. Returns what became of the worker.
    pub(in crate::runner::process) fn lose_worker(
        &mut self,
        worker: usize,
        silent: Option<(usize, Limit)>,
    ) -> String {
        let mut end = self.worker_pool.stop(worker);
        self.collect_from(worker);
        let words = self.worker_pool.forget(worker);
        let slots = self.worker_pool.members[worker].slots.clone();
        // Slots that step together are silent together.
        let together = !self.base.spec.caps.contains(Caps::SUBSET) && slots.len() > 1;
        if let Some((slot, limit)) = silent {
            let who = match together {
                true => format!("envs {} to {}", slots.start, slots.end - 1),
                false => format!("env {slot}"),
            };
            end = format!("{who} gave {limit}, and {end}");
        }
        // A new worker numbers its questions from the beginning.
        self.pending_orders.retain(|order| order.worker != worker);
        let text = format!("{end}{words}");
        let failure = Failure::new(Phase::Step, Cause::Death, text.clone());
        self.rows.lose(slots, &self.actions, &failure, |slot| match silent {
            Some((of, _)) if of == slot || together => Cause::Silence,
            _ => Cause::Death,
        });
        text
    }

    /// Checks for workers that died or are silent.
    ///
    /// # Errors
    /// The user's wish to stop.
    pub(super) fn look_after(&mut self) -> Result<()> {
        self.looked = Instant::now();
        for worker in 0..self.worker_pool.members.len() {
            if self.worker_pool.is_dead(worker) {
                self.lose_worker(worker, None);
                continue;
            }
            let silence = {
                let Process { rows, limits, worker_pool, .. } = self;
                worker_pool.silence(worker, &|slot| Some(rows.limit(limits, slot)?.time))
            };
            if let Some(slot) = silence {
                self.lose_silent_worker(worker, slot);
            }
        }
        self.worker_pool.host.check_interrupt()
    }

    /// Ends a worker that was silent for too long, at slot `at` where that is known.
    /// Returns the slot that the failure names, and what became of the worker.
    pub(in crate::runner::process) fn lose_silent_worker(
        &mut self,
        worker: usize,
        at: Option<usize>,
    ) -> (usize, String) {
        let slot = self.silent_slot(worker, at);
        let limit = self.rows.limit(&self.limits, at.map(|_| slot));
        (slot, self.lose_worker(worker, limit.map(|limit| (slot, limit))))
    }

    /// The slot that the failure of a silent worker names: `at`, where that is known.
    pub(super) fn silent_slot(&self, worker: usize, at: Option<usize>) -> usize {
        let mut slots = self.worker_pool.members[worker].slots.clone();
        let first = slots.start;
        // Other processes can write to the memory that has `at`, so `at` is checked.
        at.filter(|slot| slots.contains(slot))
            .or_else(|| slots.find(|slot| self.rows.is_in_flight(*slot)))
            .unwrap_or(first)
    }

    /// When the next slot will have been silent for too long.
    pub(super) fn expiry(&self, now: Instant) -> Option<Instant> {
        let left = |worker: usize| match self.worker_pool.board().at_work(worker) {
            Some((time, slot)) => Some(self.rows.limit(&self.limits, Some(slot))?.time.saturating_sub(time)),
            None => self.limits.any().then(|| self.limits.shortest()),
        };
        (0..self.worker_pool.members.len()).filter_map(left).min().and_then(|left| now.checked_add(left))
    }

    /// Waits until `least` rows have landed. Returns whether they have by `deadline`.
    pub(super) fn await_rows(&mut self, least: usize, deadline: Option<Instant>) -> Result<bool> {
        let mut in_vain = false;
        loop {
            let seen = self.worker_pool.board().done();
            self.collect();
            // The check comes after all results are collected. A worker is not silent just
            // because the parent has not collected its results.
            let overdue = self.looked.elapsed() >= ROUND;
            if overdue || (in_vain && self.rows.landed() < least) {
                self.look_after()?;
            }
            self.worker_pool.check_stopped()?;
            if self.rows.landed() >= least {
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
            let need = seen.wrapping_add((least - self.rows.landed()) as u32);
            self.worker_pool.board().wait(need, until.unwrap_or(now));
            in_vain = true;
        }
    }

    /// Notes that `change` is to be applied once `question` is answered.
    pub(in crate::runner::process) fn add_pending(
        &mut self,
        worker: usize,
        question: u64,
        phase: Phase,
        change: Change,
    ) {
        self.pending_orders.push_back(PendingOrder { worker, question, phase, change });
    }

    /// Waits for the answers that are still to come and applies their changes, so that
    /// the parent's copy and the worker agree before a slot is used again.
    ///
    /// # Errors
    /// The user's wish to stop; then the remaining answers are still to come. The error of
    /// the last order itself is in the inner result.
    pub(in crate::runner::process) fn settle(&mut self) -> Result<Result<()>> {
        let mut last = Ok(());
        while let Some(order) = self.pending_orders.pop_front() {
            last = match self.answer(order.worker, order.question, order.phase) {
                Err(stop) => {
                    self.pending_orders.push_front(order);
                    return Err(stop);
                }
                Ok(answer) => answer.map(|_| self.rows.apply(order.change)),
            };
        }
        Ok(last)
    }
}
