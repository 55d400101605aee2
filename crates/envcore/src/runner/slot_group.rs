//! A slot group: some slots' lives, and the work that is due on them.
//!
//! Whoever has the group, a runner or one of its threads, has those slots to
//! itself.

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

/// What a slot in flight awaits.
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
    /// Whether one call does the work of both: resets whose rows follow each other.
    fn goes_with(&self, next: &Run) -> bool {
        let resets = matches!((&self.job, &next.job), (Job::Reset(..), Job::Reset(..)));
        resets && self.row + self.slots.len() == next.row
    }
}

/// Slots `first..` of a runner and the work that is due on them.
pub(super) struct SlotGroup {
    pub(super) episodes: Episodes,
    /// The number of its first slot in the runner.
    pub(super) first: usize,
    /// By the runner's slot numbers.
    pub(super) runs: Vec<Run>,
    pub(super) notes: Notes,
}

impl SlotGroup {
    pub(super) fn new(episodes: Episodes, first: usize) -> Self {
        SlotGroup { episodes, first, runs: Vec::new(), notes: Notes::default() }
    }

    /// Does all that is due at `now`, into rows of `window`. `stale`: the rows
    /// hold an earlier batch's. `stopped`: Ctrl-C came at an env of another group, and
    /// no env begins. Gives whether Ctrl-C came. Never panics: whoever took the group
    /// to a thread brings it home.
    ///
    /// # Safety
    /// The window's draft must live, and its rows named in `runs` be nobody
    /// else's, until this returns.
    #[allow(unsafe_code)]
    pub(super) unsafe fn work(
        &mut self,
        actions: &Actions,
        window: Window,
        stale: bool,
        stopped: bool,
        now: Instant,
    ) -> bool {
        // Envs are guarded one call at a time (`Episodes`): this is for the rest.
        // SAFETY: the caller's duty.
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
        // After Ctrl-C came at an env, the others are not begun.
        let mut known = 0;
        let mut is_stopped = |failures: &[SlotError]| {
            let new = failures[std::mem::replace(&mut known, failures.len())..].iter();
            new.clone().any(|failure| failure.failure.cause == Cause::Interrupt)
        };
        for together in runs.chunk_by(Run::goes_with) {
            let (row, count) = (together[0].row, together.iter().map(|run| run.slots.len()).sum());
            // SAFETY: the caller's duty.
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
