//! Returns and lengths of episodes, for `episode_return` and `episode_length`.
//!
//! The runner's own statistics are info leaves, which have a value and a mask for every
//! row of every batch, and again for finals. It took 12% of a step of 1,024 CartPoles to
//! fill those with zeros and carry them. A host needs only two numbers of the rows that
//! end an episode.

use crate::buffer::{Batch, RowKind};
use crate::finding::find;
use crate::simd::Kernel;

/// The sums of each slot's current and last episode.
pub(super) struct Sums {
    returns: Vec<f64>,
    lengths: Vec<i32>,
    /// The returns of episodes that ended in the last batch.
    pub(super) last_returns: Vec<f32>,
    pub(super) last_lengths: Vec<i32>,
    /// Whether the episode that ended in the last batch ended because the env failed.
    pub(super) last_failed: Vec<bool>,
    /// Whether an episode began in the last batch.
    begun: Vec<bool>,
    /// The slots where an episode began, at the front.
    found: Vec<usize>,
    count: usize,
}

impl Sums {
    pub(super) fn new(num: usize) -> Self {
        Sums {
            returns: vec![0.0; num],
            lengths: vec![0; num],
            last_returns: vec![0.0; num],
            last_lengths: vec![0; num],
            last_failed: vec![false; num],
            begun: vec![false; num],
            found: vec![0; num],
            count: 0,
        }
    }

    /// Adds a batch of all slots.
    pub(super) fn add(&mut self, batch: &Batch) {
        let add = Add {
            reward: batch.reward.as_slice(),
            terminated: batch.terminated.as_slice(),
            truncated: batch.truncated.as_slice(),
            kinds: batch.kinds.as_slice(),
            returns: &mut self.returns,
            lengths: &mut self.lengths,
            begun: &mut self.begun,
        };
        add.run();
        self.count = find(&self.begun, 0, &mut self.found);
        for &row in &self.found[..self.count] {
            self.last_returns[row] = std::mem::take(&mut self.returns[row]) as f32;
            self.last_lengths[row] = std::mem::take(&mut self.lengths[row]);
            let mut troubles = batch.tolerated.iter().chain(&batch.failures);
            self.last_failed[row] = troubles.any(|trouble| trouble.slot == row);
        }
    }

    /// The slots of the last batch in which an episode began, which include all slots in
    /// which one ended.
    pub(super) fn begun(&self) -> impl Iterator<Item = usize> + '_ {
        self.found[..self.count].iter().copied()
    }

    /// The return and length of `slot`'s episode so far.
    pub(super) fn of(&self, slot: usize) -> (f64, i32) {
        (self.returns[slot], self.lengths[slot])
    }

    pub(super) fn set(&mut self, slot: usize, (episode_return, length): (f64, i32)) {
        (self.returns[slot], self.lengths[slot]) = (episode_return, length);
    }
}

struct Add<'a> {
    reward: &'a [f64],
    terminated: &'a [bool],
    truncated: &'a [bool],
    kinds: &'a [u8],
    returns: &'a mut [f64],
    lengths: &'a mut [i32],
    begun: &'a mut [bool],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.returns.len();
        let (reward, kinds) = (&self.reward[..n], &self.kinds[..n]);
        let (terminated, truncated) = (&self.terminated[..n], &self.truncated[..n]);
        let (lengths, begun) = (&mut self.lengths[..n], &mut self.begun[..n]);
        // There is one loop for each width of element.
        for row in 0..n {
            begun[row] = terminated[row] | truncated[row] | begins(kinds[row]);
        }
        for row in 0..n {
            // Rows that play no action have reward 0.
            self.returns[row] += reward[row];
            lengths[row] = lengths[row].wrapping_add(1);
        }
    }
}

/// Writes rewards as float32, which libenv has them in.
pub(super) struct Narrow<'a> {
    pub(super) from: &'a [f64],
    pub(super) to: *mut f32,
}

impl Kernel for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (row, reward) in self.from.iter().enumerate() {
            // SAFETY: whoever makes a `Narrow` guarantees the room; the host's memory need not
            // be aligned.
            unsafe { self.to.add(row).write_unaligned(*reward as f32) }
        }
    }
}

/// Whether a row of this kind begins an episode without a step's end before it.
pub(super) fn begins(kind: u8) -> bool {
    (kind != RowKind::Step as u8) & (kind != RowKind::Kept as u8)
}
