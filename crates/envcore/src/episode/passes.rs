//! The passes of a step over all slots. Each pass runs over slices of one length, with
//! an element per slot, and has no branch.

use super::Status;
use crate::buffer::RowKind;
use crate::simd::Kernel;

/// In NEXT_STEP, sets `pending` for slots whose episode ends and `over` for slots that
/// were pending before.
pub(super) struct EndNextStep<'a> {
    pub(super) terminated: &'a [bool],
    pub(super) truncated: &'a [bool],
    pub(super) pending: &'a mut [bool],
    pub(super) over: &'a mut [bool],
}

impl Kernel for EndNextStep<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.over.len();
        let (pending, over) = (&mut self.pending[..n], self.over);
        let (terminated, truncated) = (&self.terminated[..n], &self.truncated[..n]);
        for row in 0..n {
            let waited = pending[row];
            over[row] = waited;
            pending[row] = !waited & (terminated[row] | truncated[row]);
        }
    }
}

/// The end of a step in NEXT_STEP in which the slots that were `pending` have begun an episode of their
/// own stream: notes the beginnings, makes these rows those of resets, and sets `pending` for slots whose
/// episode ends. Numbers of eight bytes are left to the caller: a loop over those that begin is faster.
pub(super) struct BeginNextStep<'a> {
    pub(super) pending: &'a mut [bool],
    pub(super) status: &'a mut [Status],
    pub(super) tags: &'a mut [u8],
    pub(super) kinds: &'a mut [u8],
    pub(super) terminated: &'a mut [bool],
    pub(super) truncated: &'a mut [bool],
}

impl Kernel for BeginNextStep<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.pending.len();
        let (terminated, truncated) = (&mut self.terminated[..n], &mut self.truncated[..n]);
        let pending = self.pending;
        // Each column has a loop of its own, because the compiler did not vectorise one loop over all.
        for (kind, waited) in self.kinds.iter_mut().zip(&*pending) {
            *kind = if *waited { RowKind::Reset as u8 } else { *kind };
        }
        for (tag, waited) in self.tags.iter_mut().zip(&*pending) {
            *tag = if *waited { 0 } else { *tag };
        }
        for (status, waited) in self.status.iter_mut().zip(&*pending) {
            *status = if *waited { Status::Running } else { *status };
        }
        for flags in [&mut *terminated, &mut *truncated] {
            flags.iter_mut().zip(&*pending).for_each(|(flag, waited)| *flag &= !waited);
        }
        for row in 0..n {
            pending[row] = terminated[row] | truncated[row];
        }
    }
}

/// Sets `over` for slots whose episode ends or that await an autoreset.
pub(super) struct Over<'a> {
    pub(super) pending: &'a [bool],
    pub(super) terminated: &'a [bool],
    pub(super) truncated: &'a [bool],
    pub(super) over: &'a mut [bool],
}

impl Kernel for Over<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.over.len();
        let (pending, over) = (&self.pending[..n], self.over);
        let (terminated, truncated) = (&self.terminated[..n], &self.truncated[..n]);
        for row in 0..n {
            over[row] = pending[row] | terminated[row] | truncated[row];
        }
    }
}

/// Adds the rewards of played steps to the returns.
pub(super) struct AddUp<'a> {
    pub(super) status: &'a [Status],
    pub(super) pending: &'a [bool],
    pub(super) reward: &'a [f64],
    pub(super) returns: &'a mut [f64],
}

impl Kernel for AddUp<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.returns.len();
        let (status, pending, reward) = (&self.status[..n], &self.pending[..n], &self.reward[..n]);
        for row in 0..n {
            let played = (status[row] == Status::Running) & !pending[row];
            self.returns[row] += if played { reward[row] } else { 0.0 };
        }
    }
}

/// Writes the indices of the true elements of `holds`, plus `first`, to the front of
/// `found`, which must be at least as long. Returns how many there are.
pub(crate) fn find(holds: &[bool], first: usize, found: &mut [usize]) -> usize {
    let mut count = 0;
    let (chunks, rest) = bytemuck::cast_slice::<bool, u8>(holds).as_chunks::<64>();
    for (at, chunk) in chunks.iter().enumerate() {
        let mut bits = 0;
        for (k, word) in chunk.as_chunks::<8>().0.iter().enumerate() {
            bits |= bit_per_byte(u64::from_le_bytes(*word)) << (8 * k);
        }
        if bits == 0 {
            continue;
        }
        let from = first + 64 * at;
        // The chunks so far have at most 64 each, so that there is room for 64 more.
        let room = found[count..].first_chunk_mut::<64>().expect("room for all of holds");
        count += bits.count_ones() as usize;
        // Eight places are written at a time, even where fewer elements hold. The CPU cannot predict how many
        // of 64 hold, and can predict that at most eight do. The count leaves the surplus places out.
        for eight in room.as_chunks_mut::<8>().0 {
            for index in eight {
                *index = from + bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
            }
            if bits == 0 {
                break;
            }
        }
    }
    let from = first + 64 * chunks.len();
    for (k, _) in rest.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        found[count] = from + k;
        count += 1;
    }
    count
}

/// The indices of the true elements, ascending.
#[must_use]
pub fn where_true(holds: &[bool]) -> Vec<usize> {
    let mut found = vec![0; holds.len()];
    let count = find(holds, 0, &mut found);
    found.truncate(count);
    found
}

/// Packs eight bytes that are 0 or 1 into a byte: byte j becomes bit j.
fn bit_per_byte(bytes: u64) -> u64 {
    // The terms of the factor are 2⁷ to 2⁵⁶, a factor of 2⁷ apart. One term brings byte j
    // to bit 56 + j, where no other product falls, and no products meet below.
    bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn those_that_hold_are_found_in_order(
            holds in prop_oneof![
                prop::collection::vec(any::<bool>(), 0..300),
                prop::collection::vec(prop::bool::weighted(0.05), 0..300),
                prop::collection::vec(prop::bool::weighted(0.98), 0..300),
            ],
        ) {
            let mut found = vec![0; holds.len()];
            let count = find(&holds, 5, &mut found);
            let naive: Vec<usize> = (0..holds.len()).filter(|k| holds[*k]).map(|k| k + 5).collect();
            prop_assert_eq!(&found[..count], &naive[..]);
            let from_0: Vec<usize> = naive.iter().map(|k| k - 5).collect();
            prop_assert_eq!(where_true(&holds), from_0);
        }
    }
}
