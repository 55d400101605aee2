//! A slot group: some slots' lives, and the work that they are to do.
//!
//! The runner or the thread that holds the group is the only one that uses its
//! slots.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::begin::Begin;
use crate::buffer::{Actions, Window};
use crate::episode::{Episodes, Report};
use crate::error::{Cause, Phase, SlotError};
use crate::guard::{drop_guarded, guard};
use crate::landing::Notes;
use crate::space::Options;

/// What a slot in flight was sent to do.
#[derive(Clone)]
pub(super) enum Job {
    Step,
    Reset(Begin, Option<Arc<Options>>),
}

/// A job for consecutive slots, whose rows are consecutive too.
pub(super) struct Run {
    pub(super) slots: Range<usize>,
    /// The first slot's row.
    pub(super) row: usize,
    pub(super) job: Job,
}

impl Run {
    /// Whether this run and `next` are resets with adjacent rows, which one call does.
    fn goes_with(&self, next: &Run) -> bool {
        let resets = matches!((&self.job, &next.job), (Job::Reset(..), Job::Reset(..)));
        resets && self.row + self.slots.len() == next.row
    }
}

/// The slots of a runner from number `first` on, and the work that they are to do.
pub(super) struct SlotGroup {
    pub(super) episodes: Episodes,
    /// The first slot's number in the runner.
    pub(super) first: usize,
    /// The work to do, by the runner's slot numbers.
    pub(super) runs: Vec<Run>,
    pub(super) notes: Notes,
}

impl SlotGroup {
    pub(super) fn new(episodes: Episodes, first: usize) -> Self {
        SlotGroup { episodes, first, runs: Vec::new(), notes: Notes::default() }
    }

    /// Does all work of `runs` at time `now` and writes the rows to `window`. `stale` says
    /// that the rows hold those of an earlier batch. `stopped` says that Ctrl-C came at an
    /// env of another group, so that no env begins. Returns whether Ctrl-C came. Never
    /// panics, so that a thread always hands the group back.
    ///
    /// # Safety
    /// The window's draft must live until this returns, and nobody else may use the rows
    /// named in `runs` until then.
    #[allow(unsafe_code)]
    pub(super) unsafe fn work(
        &mut self,
        actions: &Actions,
        window: Window,
        stale: bool,
        stopped: bool,
        now: Instant,
    ) -> bool {
        // `Episodes` guards each call of an env; this guard is for all other code.
        // SAFETY: the caller guarantees what this function requires.
        let worked =
            guard(Phase::Step, || unsafe { self.work_through(actions, window, stale, stopped, now) });
        worked.unwrap_or_else(|failure| {
            drop_guarded(std::mem::take(&mut self.runs));
            drop_guarded(std::mem::take(&mut self.notes));
            self.notes.broken = Some(self.episodes.give_up(&failure));
            false
        })
    }

    /// # Safety
    /// As [`work`](Self::work).
    #[allow(unsafe_code)]
    unsafe fn work_through(
        &mut self,
        actions: &Actions,
        window: Window,
        stale: bool,
        mut stopped: bool,
        now: Instant,
    ) -> bool {
        let SlotGroup { episodes, first, runs, notes } = self;
        let Notes { failures, infos, final_infos, .. } = notes;
        let mut report = Report { actions, failures, infos, final_infos, now };
        // Once an env reports Ctrl-C, the envs after it are not begun.
        let mut known = 0;
        let mut is_stopped = |failures: &[SlotError]| {
            let new = failures[std::mem::replace(&mut known, failures.len())..].iter();
            new.clone().any(|failure| failure.failure.cause == Cause::Interrupt)
        };
        for together in runs.chunk_by(Run::goes_with) {
            let (row, count) = (together[0].row, together.iter().map(|run| run.slots.len()).sum());
            // SAFETY: the caller guarantees what this function requires.
            let mut rows = unsafe { window.rows(row, count) };
            if stale {
                (0..count).for_each(|row| rows.renew(row));
            }
            for run in together {
                let local = run.slots.start - *first..run.slots.end - *first;
                let mut own = rows.range(run.row - row, local.len());
                match &run.job {
                    Job::Step if stopped => episodes.stop(local, Phase::Step, &mut own, &mut report),
                    Job::Reset(begin, _) if stopped && *begin != Begin::Keep => {
                        episodes.stop(local, Phase::Reset, &mut own, &mut report);
                    }
                    Job::Step => episodes.step(local, &mut own, &mut report),
                    Job::Reset(begin, options) => {
                        for (row, slot) in (run.row - row..).zip(local) {
                            episodes.order_reset(slot, *begin, options.as_deref(), row, &mut rows);
                        }
                    }
                }
            }
            episodes.reset(&mut rows, &mut report);
            stopped |= is_stopped(report.failures);
        }
        runs.clear();
        stopped
    }
}
