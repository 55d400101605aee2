//! Rows that come back one by one, and the batches that they are gathered to.
//!
//! A vec env whose slots finish at different times stages each row in a place of the
//! slot's own and keeps the slot's [`Notes`]. [`Landing`] knows in which order the slots
//! were sent and whose rows have landed; [`Landing::gather`] makes a batch of the rows
//! that landed first.

use std::collections::VecDeque;

use crate::buffer::{Batch, BatchPool, Buffers, Draft, Extra, Slots};
use crate::error::{Error, Result, SlotError};

/// What slots tell beside their rows.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) failures: Vec<SlotError>,
    /// Failures that a policy has dealt with.
    pub(crate) tolerated: Vec<SlotError>,
    pub(crate) infos: Vec<Extra>,
    pub(crate) final_infos: Vec<Extra>,
    /// The error that ended the work early. The rows are of no use then.
    pub(crate) broken: Option<Error>,
}

impl Notes {
    fn is_empty(&self) -> bool {
        self.failures.is_empty()
            && self.tolerated.is_empty()
            && self.infos.is_empty()
            && self.final_infos.is_empty()
            && self.broken.is_none()
    }

    /// Adds `more` and leaves it empty.
    pub(crate) fn append(&mut self, more: &mut Notes) {
        self.failures.append(&mut more.failures);
        self.tolerated.append(&mut more.tolerated);
        self.infos.append(&mut more.infos);
        self.final_infos.append(&mut more.final_infos);
        self.broken = self.broken.take().or(more.broken.take());
    }

    /// Adds `more`, what the slot of row `row` tells, and leaves it empty.
    pub(crate) fn append_row(&mut self, row: usize, more: &mut Notes) {
        if !more.is_empty() {
            more.infos.iter_mut().chain(&mut more.final_infos).for_each(|extra| extra.row = row);
            self.append(more);
        }
    }

    /// `batch` with all of it, in the order of the batch's rows.
    ///
    /// # Errors
    /// The error that ended the work early.
    pub(crate) fn give(self, mut batch: Box<Batch>) -> Result<Box<Batch>> {
        if self.is_empty() {
            return Ok(batch);
        }
        if let Some(error) = self.broken {
            return Err(error);
        }
        batch.failures = self.failures;
        batch.tolerated = self.tolerated;
        batch.infos.extras = self.infos;
        if let Some(finals) = &mut batch.finals {
            finals.infos.extras = self.final_infos;
        }
        batch.sort_loose();
        Ok(batch)
    }
}

/// In which order slots were sent, and whose rows have landed.
pub(crate) struct Landing {
    /// In the order in which they landed.
    landed: VecDeque<usize>,
    /// When each slot was last sent on a list, counted.
    turns: Vec<u64>,
    turn: u64,
    /// When all were last sent together.
    together: u64,
}

impl Landing {
    pub(crate) fn new(num_slots: usize) -> Self {
        Landing { landed: VecDeque::new(), turns: vec![0; num_slots], turn: 0, together: 0 }
    }

    /// Notes that `slots` are sent, in this order.
    pub(crate) fn send(&mut self, slots: &Slots) {
        self.turn += 1;
        match slots {
            Slots::All => self.together = self.turn,
            Slots::List(list) => {
                for &slot in list {
                    self.turns[slot] = self.turn;
                    self.turn += 1;
                }
            }
        }
    }

    /// Notes that the row of `slot` is there.
    pub(crate) fn land(&mut self, slot: usize) {
        self.landed.push_back(slot);
    }

    /// How many rows are there.
    pub(crate) fn len(&self) -> usize {
        self.landed.len()
    }

    /// The slots whose rows are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.landed.iter().copied()
    }

    /// The `rows` slots that landed first, in the order in which they were sent.
    fn first(&self, rows: usize) -> Slots {
        let mut list: Vec<usize> = self.iter().take(rows).collect();
        list.sort_unstable_by_key(|&slot| (self.turns[slot].max(self.together), slot));
        Slots::of(list, self.turns.len())
    }

    /// A batch of the `rows` slots that landed first, in the order in which they were
    /// sent, and what these slots tell. `put(slot, draft, row, notes)` writes the slot's
    /// row to row `row` of the draft and appends the slot's notes.
    ///
    /// # Errors
    /// [`Error::Memory`], and nothing is taken.
    pub(crate) fn gather(
        &mut self,
        rows: usize,
        pool: &mut BatchPool,
        buffers: Option<&mut dyn Buffers>,
        mut put: impl FnMut(usize, &mut Draft, usize, &mut Notes),
    ) -> Result<(Box<Batch>, Notes)> {
        let slots = self.first(rows);
        let mut draft = pool.draft(slots.clone(), rows, buffers)?;
        let mut notes = Notes::default();
        for (row, slot) in slots.iter(self.turns.len()).enumerate() {
            put(slot, &mut draft, row, &mut notes);
        }
        self.landed.drain(..rows);
        Ok((pool.finish(draft), notes))
    }

    /// Forgets all that landed.
    pub(crate) fn clear(&mut self) {
        self.landed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_received_as_they_land_and_ordered_as_they_were_sent() {
        let mut landing = Landing::new(4);
        landing.send(&Slots::List(vec![3, 1]));
        landing.send(&Slots::List(vec![0]));
        [0, 1, 3].into_iter().for_each(|slot| landing.land(slot));
        assert_eq!(landing.first(2), Slots::List(vec![1, 0]));
        assert_eq!(landing.first(3), Slots::List(vec![3, 1, 0]));
        landing.landed.drain(..2);
        assert_eq!(landing.iter().collect::<Vec<_>>(), [3]);
        landing.clear();
        landing.send(&Slots::All);
        [2, 1, 3, 0].into_iter().for_each(|slot| landing.land(slot));
        assert_eq!(landing.first(3), Slots::List(vec![1, 2, 3]));
        assert_eq!(landing.first(4), Slots::All);
        // Sent after all, a slot comes after them.
        landing.landed.drain(..4);
        landing.send(&Slots::List(vec![0]));
        [0, 1].into_iter().for_each(|slot| landing.land(slot));
        assert_eq!(landing.first(2), Slots::List(vec![1, 0]));
    }
}
