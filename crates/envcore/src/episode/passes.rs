//! The passes over all slots that a step takes: slices of one length, a slot
//! each, without a branch.

use super::Status;
use crate::simd::Kernel;

/// In NEXT_STEP: those whose episode ends await their autoreset from now on;
/// `over` gets those that have been waiting.
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

/// `over` gets those whose episode ends or that await an autoreset.
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

/// Adds up the rewards of steps that were played.
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

/// Writes the numbers of those that hold, counted from `first`, to the front of
/// `found`, which is as long at least; so many.
pub(super) fn find(holds: &[bool], first: usize, found: &mut [usize]) -> usize {
    let mut count = 0;
    let mut add = |k: usize| {
        found[count] = first + k;
        count += 1;
    };
    // Few do: eight at a time that do not are passed by.
    let (words, rest) = bytemuck::cast_slice::<bool, u8>(holds).as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let mut word = u64::from_le_bytes(*word);
        while word != 0 {
            add(8 * at + word.trailing_zeros() as usize / 8);
            word &= word - 1;
        }
    }
    let at = 8 * words.len();
    rest.iter().enumerate().filter(|(_, byte)| **byte != 0).for_each(|(k, _)| add(at + k));
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn those_that_hold_are_found_in_order(holds in prop::collection::vec(any::<bool>(), 0..70)) {
            let mut found = vec![0; holds.len()];
            let count = find(&holds, 5, &mut found);
            let naive: Vec<usize> = (0..holds.len()).filter(|k| holds[*k]).map(|k| k + 5).collect();
            prop_assert_eq!(&found[..count], &naive[..]);
        }
    }
}
