//! Steps in which the chunk plays actions and begins episodes in one pass over its envs.

use std::ops::Range;

use super::passes::find;
use super::{Episodes, Report};
use crate::begin::Begin;
use crate::buffer::RowsMut;
use crate::error::{Failure, Phase};
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
        let due = find(&self.lives.pending[slots.clone()], slots.start, &mut self.due);
        rows.begin(self.due[..due].iter().map(|slot| slot - slots.start));
        let actions = StepArgs(report.actions.reader(self.lives.number(0), self.lives.len()));
        self.chunk.step_and_begin(slots.clone(), &self.lives.pending, actions, rows, &mut self.side);
        report.infos.append(&mut self.side.extras);
        let mut failures = std::mem::take(&mut self.side.failures);
        let of_resets: Vec<_> = failures.extract_if(.., |(slot, _)| self.lives.pending[*slot]).collect();
        for (slot, failure) in failures {
            self.fail_step(slot, slot - slots.start, failure, rows, report);
        }
        self.lives.age(slots.clone(), rows.truncated());
        self.end_quietly(slots.clone(), rows);
        for k in 0..due {
            self.began(self.due[k], Begin::Own, report.now);
        }
        for (slot, failure) in of_resets {
            // A panic is caught without regard to what the slot did.
            let failure = Failure { phase: Phase::Reset, ..failure };
            self.fail(slot, slot - slots.start, failure, None, rows, report);
        }
    }
}
