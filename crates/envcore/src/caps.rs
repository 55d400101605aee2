//! What a source can do.

use bitflags::bitflags;

use crate::error::{Error, Result};

bitflags! {
    /// What a source can do. Anything that a source cannot do is an error, never imitated.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Caps: u32 {
        /// Reset when asked, more than once.
        const RESET = 1;
        /// Begin from a seed. A source that cannot is not reported with a seed.
        const SEED = 1 << 1;
        /// Begin the episode of an index.
        const INDEX = 1 << 2;
        /// Take options at a reset.
        const OPTIONS = 1 << 3;
        /// Reset or step some slots and leave others. A source without this capability steps
        /// and resets whole chunks at a time, and its slots fail by the chunk.
        const SUBSET = 1 << 4;
        /// Show an episode's final observation.
        const FINAL_OBS = 1 << 5;
        /// Tell truncated from terminated.
        const TRUNCATION = 1 << 6;
        /// Accept a time limit.
        const TIME_LIMIT = 1 << 7;
        /// Save and load a slot.
        const SAVE = 1 << 8;
        /// Draw a slot.
        const RENDER = 1 << 9;
        /// Call functions, get and set attributes by name.
        const CALL = 1 << 10;
        /// Options count only for the reset that has them, as in Gymnasium, and do not stay in
        /// force until changed.
        const OPTIONS_ONCE = 1 << 11;
        /// Step and reset in less than a microsecond, and wait for nothing meanwhile. A vec env
        /// is brief where its slots are brief and few, and one thread steps them. The caller
        /// need not let other threads run meanwhile.
        const BRIEF = 1 << 12;
        /// Reset some slots and leave others, although all slots of a chunk step together.
        const MASK = 1 << 13;
        /// The slots are in other processes. Any call may wait for these, so the caller lets
        /// other threads run meanwhile.
        const REMOTE = 1 << 14;
        /// A slot that nobody seeded has no seed, and its env begins from a randomness of its
        /// own. The seeds that chunks are built from are then ignored, and no report names a
        /// seed.
        const UNSEEDED = 1 << 15;
        /// Tell of events by the info [`EVENTS`](crate::EVENTS).
        const EVENTS = 1 << 16;
        /// Tell which discrete choices are allowed, by the info leaf
        /// [`ACTION_MASK`](crate::ACTION_MASK) in every row that shows an observation.
        const ACTION_MASK = 1 << 17;
        /// Draw a slot as text, by the call [`ANSI`](crate::ANSI). Such a source can
        /// [`CALL`](Self::CALL), too.
        const ANSI = 1 << 18;
    }
}

impl Caps {
    /// What every [`Env`](crate::Env) can do in a runner.
    pub const ENV: Caps = Caps::RESET
        .union(Caps::SEED)
        .union(Caps::INDEX)
        .union(Caps::SUBSET)
        .union(Caps::FINAL_OBS)
        .union(Caps::TRUNCATION)
        .union(Caps::TIME_LIMIT);

    /// The capabilities of a vec env of `num_slots` slots, each of which has those of `self`.
    pub(crate) fn of_vec_env(self, num_slots: usize) -> Caps {
        /// This many slots take no longer one after the other than it takes to hand half of
        /// them to another thread.
        const FEW: usize = 64;
        if num_slots <= FEW { self } else { self - Caps::BRIEF }
    }

    /// Errors unless `self` has `wanted`.
    ///
    /// # Errors
    /// [`Error::Unsupported`], whose message says that `env` cannot `what`.
    pub fn require(self, wanted: Caps, env: &str, what: &str) -> Result<()> {
        if self.contains(wanted) { Ok(()) } else { Err(Error::Unsupported(format!("{env} cannot {what}"))) }
    }
}
