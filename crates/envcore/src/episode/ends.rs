//! The end of a step for slots whose episode ends or begins in it.

use std::ops::Range;

use super::passes::{AddUp, EndNextStep, Over};
use super::{Episodes, Report};
use crate::begin::Begin;
use crate::buffer::{Extra, FINAL_FRAME, FINAL_OBSERVATION, RowKind, RowsMut, StepColumns};
use crate::finding::find;
use crate::simd;
use crate::source::ResetArgs;
use crate::space::{Array, Value};
use crate::vec_config::AutoresetMode;

impl Episodes {
    /// Whether a slot whose episode ends needs no more than a note that it has ended.
    pub(super) fn ends_quietly(&self) -> bool {
        self.rules.autoreset == AutoresetMode::NextStep
            && self.rules.statistics.is_none()
            && !self.rules.self_resetting
    }

    /// Writes the slots whose episode ends or begins to `due`; where episodes end quietly
    /// (`quiet`), only the slots whose episode begins. Returns how many slots it wrote.
    pub(super) fn find_due(&mut self, slots: Range<usize>, quiet: bool, rows: &mut RowsMut<'_>) -> usize {
        let StepColumns { reward, terminated, truncated, .. } = rows.columns();
        let n = slots.len();
        let (terminated, truncated) = (&terminated[..n], &truncated[..n]);
        if self.rules.statistics.is_some() {
            simd::dispatch(AddUp {
                status: &self.lives.status[slots.clone()],
                pending: &self.lives.pending[slots.clone()],
                reward: &reward[..n],
                returns: &mut self.returns[slots.clone()],
            });
        }
        if quiet {
            self.end_quietly(slots.clone(), rows);
        } else {
            let (pending, over) = (&self.lives.pending[slots.clone()], &mut self.over[slots.clone()]);
            simd::dispatch(Over { terminated, truncated, pending, over });
        }
        find(&self.over[slots.clone()], slots.start, &mut self.due)
    }

    /// Notes which episodes ended, and in `over` which slots awaited their autoreset.
    pub(super) fn end_quietly(&mut self, slots: Range<usize>, rows: &mut RowsMut<'_>) {
        let StepColumns { terminated, truncated, .. } = rows.columns();
        let n = slots.len();
        let (terminated, truncated) = (&terminated[..n], &truncated[..n]);
        let (pending, over) = (&mut self.lives.pending[slots.clone()], &mut self.over[slots]);
        simd::dispatch(EndNextStep { terminated, truncated, pending, over });
    }

    pub(super) fn end(&mut self, slot: usize, row: usize, rows: &mut RowsMut<'_>, report: &mut Report<'_>) {
        if self.rules.statistics.is_some() {
            let seconds = report.now.saturating_duration_since(self.started[slot]).as_secs_f64();
            self.ended.push((slot, self.returns[slot], self.lives.ages.of(slot), seconds));
        }
        if self.rules.self_resetting {
            match self.lives.take_next(slot) {
                None => self.began(slot, Begin::Own, report.now),
                // The episode that the env began by itself is skipped.
                Some(begin) => self.order(slot, begin, None, (row, RowKind::Step), rows),
            }
            return;
        }
        match self.rules.autoreset {
            AutoresetMode::NextStep | AutoresetMode::Disabled => self.lives.ended(slot),
            AutoresetMode::SameStep => {
                // The statistics are written later.
                rows.finish(row, self.rules.statistics.unwrap_or(usize::MAX));
                let row_in_batch = rows.start() + row;
                report.final_infos.extend(report.infos.extract_if(.., |e| e.row == row_in_batch));
                if let Some(value) = self.chunk.final_observation(slot) {
                    let key = FINAL_OBSERVATION.into();
                    report.final_infos.push(Extra { row: row_in_batch, key, value });
                }
                if self.rules.final_frames.binary_search(&self.lives.number(slot)).is_ok() {
                    let value = self.last_picture(slot);
                    let key = FINAL_FRAME.into();
                    report.final_infos.push(Extra { row: row_in_batch, key, value });
                }
                self.autoreset(slot, row, RowKind::Step, rows);
            }
        }
    }

    /// What `slot` shows now, or why it draws nothing.
    fn last_picture(&mut self, slot: usize) -> Value {
        let frame = self.chunk.render(slot);
        let array = frame.and_then(|frame| Array::new(&[frame.height(), frame.width(), 3], frame.pixels()));
        match array {
            Ok(array) => Value::List(vec![Value::Array(array)]),
            Err(error) => Value::Text(error.to_string().into()),
        }
    }

    /// Writes the statistics of the episodes that ended in this step.
    pub(super) fn tell_statistics(&mut self, first: usize, rows: &mut RowsMut<'_>) {
        let Some(leaf) = self.rules.statistics else { return };
        for (slot, r, l, t) in self.ended.drain(..) {
            let mut infos = rows.info(slot - first);
            infos.seek(leaf).scalar(r);
            infos.scalar(l as i64);
            infos.scalar(t);
        }
    }

    /// Notes what `slot`'s autoreset plays, for [`reset`](Self::reset).
    #[inline]
    pub(super) fn autoreset(&mut self, slot: usize, row: usize, kind: RowKind, rows: &mut RowsMut<'_>) {
        match self.lives.take_next(slot) {
            None => {
                rows.set_kind(row, kind);
                self.resets.push(ResetArgs::own(slot, row));
            }
            Some(begin) => self.order(slot, begin, None, (row, kind), rows),
        }
    }
}
