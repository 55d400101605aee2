//! Workers on CPUs of their own.
//!
//! Where there are no more workers than CPUs, each can have a CPU of its own. Where there are as many,
//! the parent's thread shares a CPU with one of them. Both poll, so no CPU is ever idle, and the kernel
//! may leave two workers on one CPU for a tenth of a second while the parent polls on another. One
//! worker then waits for the other at every step. A worker that finds itself so asks for another CPU.
//! Afterwards it may run where it might before.

use super::super::thread_pool::available_cores;
use super::board::Board;
use crate::os;

/// How many entries a worker does between two looks at where the others are.
const BETWEEN: u32 = 8;

/// What one worker knows of the CPUs of all.
pub(super) struct Spread {
    worker: usize,
    /// Whether there are several workers, and at least as many CPUs.
    has_room: bool,
    entries: u32,
    /// Whether another worker was on this worker's CPU at the last look.
    was_crowded: bool,
}

impl Spread {
    pub(super) fn new(worker: usize, workers: usize) -> Self {
        let has_room = (2..=available_cores()).contains(&workers);
        Spread { worker, has_room, entries: 0, was_crowded: false }
    }

    /// Moves this worker's thread off a CPU that it shares with a worker of a lower number, if it did
    /// so at the last look, too. Looks every few calls.
    pub(super) fn look(&mut self, board: &Board) {
        self.entries = self.entries.wrapping_add(1);
        if !self.has_room || !self.entries.is_multiple_of(BETWEEN) {
            return;
        }
        let here = board.note_cpu(self.worker);
        let is_crowded = (0..self.worker).any(|other| board.cpu(other) == Some(here));
        if is_crowded && self.was_crowded {
            let others = (0..board.plan.workers.len()).filter(|&other| other != self.worker);
            os::leave_cpus(&others.filter_map(|other| board.cpu(other)).collect::<Vec<_>>());
        }
        self.was_crowded = is_crowded;
    }
}
