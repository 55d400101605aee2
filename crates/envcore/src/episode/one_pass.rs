//! Steps in which the chunk plays actions and begins episodes in one call.

use std::ops::Range;

use super::lives::Lives;
use super::passes::BeginNextStep;
use super::{Episodes, Report};
use crate::buffer::{RowsMut, StepColumns};
use crate::error::{Failure, Phase};
use crate::finding::find;
use crate::simd;
use crate::source::StepArgs;

impl Episodes {
    /// Whether this step can begin episodes in the same call as it plays the others.
    pub(super) fn begins_in_step(&self) -> bool {
        self.chunk.begins_in_step() && self.ends_quietly() && self.checks.is_none() && !self.lives.has_next()
    }

    /// Steps as [`step`](Self::step) does, by one call of the chunk.
    pub(super) fn step_and_begin(
        &mut self,
        slots: Range<usize>,
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        let due = find(&self.lives.pending[slots.clone()], slots.start, &mut self.due);
        let actions = StepArgs(report.actions.reader(self.lives.number(0), self.lives.len()));
        let (pending, begin) = (&self.lives.pending, &self.due[..due]);
        self.chunk.step_and_begin(slots.clone(), pending, begin, actions, rows, &mut self.side);
        report.infos.append(&mut self.side.extras);
        let mut failures = std::mem::take(&mut self.side.failures);
        let of_resets: Vec<_> = failures.extract_if(.., |(slot, _)| self.lives.pending[*slot]).collect();
        for (slot, failure) in failures {
            self.fail_step(slot, slot - slots.start, failure, rows, report);
        }
        self.lives.age(slots.clone(), rows.truncated());
        self.note_beginnings(slots.clone(), due, rows);
        for (slot, failure) in of_resets {
            // A panic is caught without regard to what the slot did.
            let failure = Failure { phase: Phase::Reset, ..failure };
            self.fail(slot, slot - slots.start, failure, None, rows, report);
        }
    }

    /// Notes that the first `due` slots of `self.due` have begun episodes in this step, and which slots'
    /// episodes have ended. A row of a reset has no infos but those that the chunk wrote, because a new
    /// draft has none.
    fn note_beginnings(&mut self, slots: Range<usize>, due: usize, rows: &mut RowsMut<'_>) {
        let Lives { pending, status, past, ages, .. } = &mut self.lives;
        let (kinds, StepColumns { reward, terminated, truncated, .. }) = rows.with_kinds();
        let ((born, clock), episodes) = (ages.beginning(slots.clone()), &mut past.episodes[slots.clone()]);
        for slot in &self.due[..due] {
            let row = slot - slots.start;
            (reward[row], born[row]) = (0.0, clock);
            episodes[row] += 1;
        }
        let (pending, status) = (&mut pending[slots.clone()], &mut status[slots.clone()]);
        let tags = &mut past.tags[slots];
        simd::dispatch(BeginNextStep { pending, status, tags, kinds, terminated, truncated });
    }
}
