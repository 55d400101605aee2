//! The buffers of a batch, and memory for them that is not the runner's own.

use crate::buffer::lease::Lease;

/// A buffer of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    Observation(usize),
    Reward,
    Terminated,
    Truncated,
    Kind,
    Info(usize),
    InfoMask(usize),
    FinalObservation(usize),
    FinalInfo(usize),
    FinalInfoMask(usize),
    Ended,
}

/// Memory for a batch's buffers in place of the runner's own pools. A sink whose protocol
/// fixes addresses implements this trait.
pub trait Buffers {
    /// Memory for `part` of at least `bytes` bytes, aligned for the part's dtype, or `None`
    /// for the runner's own memory.
    fn lease(&mut self, part: Part, bytes: usize) -> Option<Lease>;
}
