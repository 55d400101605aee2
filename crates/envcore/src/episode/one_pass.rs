//! Steps in which the chunk plays actions and begins episodes in one pass over its envs.

use std::ops::Range;

use super::lives::Lives;
use super::passes::{BeginNextStep, find};
use super::{Episodes, Report};
use crate::buffer::{RowsMut, StepColumns};
use crate::error::{Failure, Phase};
use crate::simd;
use crate::source::StepArgs;

impl Episodes {
    /// Whether this step can begin episodes in the same pass as it plays the others.
    pub(super) fn begins_in_step(&self) -> bool {
        self.chunk.begins_in_step() && self.ends_quietly() && self.checks.is_none() && !self.lives.has_next()
    }

    /// Steps as [`step`](Self::step) does, in one pass over the envs.
    pub(super) fn step_and_begin(
        &mut self,
        slots: Range<usize>,
        rows: &mut RowsMut<'_>,
        report: &mut Report<'_>,
    ) {
        let actions = StepArgs(report.actions.reader(self.lives.number(0), self.lives.len()));
        self.chunk.step_and_begin(slots.clone(), &self.lives.pending, actions, rows, &mut self.side);
        report.infos.append(&mut self.side.extras);
        let mut failures = std::mem::take(&mut self.side.failures);
        let of_resets: Vec<_> = failures.extract_if(.., |(slot, _)| self.lives.pending[*slot]).collect();
        for (slot, failure) in failures {
            self.fail_step(slot, slot - slots.start, failure, rows, report);
        }
        self.lives.age(slots.clone(), rows.truncated());
        self.note_beginnings(slots.clone(), rows);
        for (slot, failure) in of_resets {
            // A panic is caught without regard to what the slot did.
            let failure = Failure { phase: Phase::Reset, ..failure };
            self.fail(slot, slot - slots.start, failure, None, rows, report);
        }
    }

    /// Notes which episodes have begun in this step, and which have ended. A row of a reset has no infos
    /// but those that its env tells then, because a new draft has none.
    fn note_beginnings(&mut self, slots: Range<usize>, rows: &mut RowsMut<'_>) {
        let Lives { pending, status, past, ages, .. } = &mut self.lives;
        let pending = &mut pending[slots.clone()];
        let due = find(pending, 0, &mut self.due);
        let (kinds, StepColumns { reward, terminated, truncated, .. }) = rows.with_kinds();
        let ((born, clock), episodes) = (ages.beginning(slots.clone()), &mut past.episodes[slots.clone()]);
        for &row in &self.due[..due] {
            (reward[row], born[row]) = (0.0, clock);
            episodes[row] += 1;
        }
        let (status, tags) = (&mut status[slots.clone()], &mut past.tags[slots]);
        simd::dispatch(BeginNextStep { pending, status, tags, kinds, terminated, truncated });
    }
}
