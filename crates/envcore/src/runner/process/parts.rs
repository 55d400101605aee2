//! A batch's buffers in shared memory, with the same numbers in parent and workers.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use super::board::Board;
use super::shm::{Arena, Mapped};
use crate::buffer::{Buffers, Lease, Part};
use crate::error::{Error, Result};
use crate::vec_env::Spec;

/// The numbers of leaves of observations and infos.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    observation: usize,
    info: usize,
}

impl Counts {
    pub(super) fn of(spec: &Spec) -> Self {
        Counts { observation: spec.observation.leaves().len(), info: spec.info.leaves().len() }
    }

    /// How many buffers a batch has at most.
    pub(super) fn parts(self) -> usize {
        5 + 2 * self.observation + 4 * self.info
    }

    pub(super) fn number(self, part: Part) -> usize {
        let Counts { observation, info } = self;
        match part {
            Part::Reward => 0,
            Part::Terminated => 1,
            Part::Truncated => 2,
            Part::Kind => 3,
            Part::Ended => 4,
            Part::Observation(k) => 5 + k,
            Part::FinalObservation(k) => 5 + observation + k,
            Part::Info(k) => 5 + 2 * observation + k,
            Part::InfoMask(k) => 5 + 2 * observation + info + k,
            Part::FinalInfo(k) => 5 + 2 * observation + 2 * info + k,
            Part::FinalInfoMask(k) => 5 + 2 * observation + 3 * info + k,
        }
    }
}

/// Lends new buffers to the parent, and notes their places on the board.
pub(super) struct Lender<'a> {
    pub(super) arena: &'a Arc<Arena>,
    pub(super) board: &'a Board,
    pub(super) counts: Counts,
    pub(super) whole: bool,
    /// Why there was no memory for a buffer.
    pub(super) failed: Option<Error>,
}

impl Buffers for Lender<'_> {
    fn lease(&mut self, part: Part, bytes: usize) -> Option<Lease> {
        match self.arena.take(bytes) {
            Ok(block) => {
                self.board.set_part(self.whole, self.counts.number(part), block.span);
                Some(block.lend())
            }
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }
}

/// Rows of the buffers in shared memory, for a worker to write.
pub(super) struct SharedRows<'a> {
    pub(super) mapped: &'a mut Mapped,
    pub(super) board: &'a Board,
    pub(super) counts: Counts,
    pub(super) whole: bool,
    pub(super) first: usize,
    pub(super) rows: usize,
}

impl SharedRows<'_> {
    /// The address of these rows of `part`, which take `bytes` bytes.
    pub(super) fn place(&mut self, part: Part, bytes: usize) -> Result<NonNull<u8>> {
        let span = self.board.part(self.whole, self.counts.number(part));
        let before = bytes / self.rows * self.first;
        let start = self.mapped.at(span, before.checked_add(bytes).ok_or(Error::Memory(bytes))?)?;
        // SAFETY: `Mapped::at` checked that so many bytes follow `start`.
        Ok(unsafe { start.add(before) })
    }
}

impl Buffers for SharedRows<'_> {
    fn lease(&mut self, part: Part, bytes: usize) -> Option<Lease> {
        // Where there is no memory, `put_in_place` reports the error after the step.
        let place = self.place(part, bytes).ok()?;
        // SAFETY: the memory is mapped for as long as the worker runs. These rows are
        // the worker's own until it says that they are done, and the lease does not
        // live longer than that. The parent zeroed the bools.
        Some(unsafe { Lease::from_host(place, bytes) })
    }
}
