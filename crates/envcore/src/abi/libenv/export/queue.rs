//! The option `indices`: slot i plays `indices[i]`, `indices[i + num]`, … and then its
//! own stream.

use crate::begin::Begin;
use crate::buffer::{Batch, RowKind, Slots};
use crate::error::{Phase, Result};
use crate::vec_env::VecEnv;

/// The index that each slot plays next.
pub(super) struct IndexQueue {
    indices: Vec<u64>,
    /// The position in `indices` of what each slot's next autoreset plays; beyond the last
    /// index, the slot's own stream.
    next: Vec<usize>,
}

impl IndexQueue {
    /// The queue of `num` slots whose first episodes are the first of `indices`.
    pub(super) fn new(indices: Vec<u64>, num: usize) -> Self {
        IndexQueue { indices, next: (num..2 * num).collect() }
    }

    /// Sets in `envs` what the next autoreset of `slots` plays; must be repeated after a
    /// reset, which clears it.
    pub(super) fn offer(&self, envs: &mut dyn VecEnv, slots: &[usize]) -> Result<()> {
        let index =
            |slot: &usize| self.indices.get(self.next[*slot]).map(|index| (*slot, Begin::Index(*index)));
        let (slots, begin): (Vec<usize>, Vec<Begin>) = slots.iter().filter_map(index).unzip();
        if slots.is_empty() { Ok(()) } else { envs.set_next(&Slots::List(slots), &begin) }
    }

    /// Notes which slots began another episode in a batch of all slots, and sets what they
    /// play next.
    pub(super) fn feed(&mut self, envs: &mut dyn VecEnv, batch: &Batch, begins: bool) -> Result<()> {
        let num = self.next.len();
        if self.indices.len() <= num {
            return Ok(());
        }
        if begins {
            return self.offer(envs, &Vec::from_iter(0..num));
        }
        let (terminated, truncated) =
            (batch.terminated.as_slice::<bool>(), batch.truncated.as_slice::<bool>());
        let mut begun = Vec::new();
        for slot in 0..num {
            let ended = terminated[slot] | truncated[slot];
            if !ended && matches!(batch.kind(slot), RowKind::Step | RowKind::Kept) {
                continue;
            }
            begun.push(slot);
            // Where the step itself failed, no autoreset has played its index.
            let failed = batch.tolerated.iter().chain(&batch.failures).find(|failure| failure.slot == slot);
            if ended && failed.is_none_or(|failure| failure.failure.phase != Phase::Step) {
                self.next[slot] += num;
            }
        }
        self.offer(envs, &begun)
    }
}
