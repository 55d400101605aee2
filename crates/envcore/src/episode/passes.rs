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
