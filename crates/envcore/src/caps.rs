//! What a source can do.

use bitflags::bitflags;

use crate::error::{Error, Result};

bitflags! {
    /// What a source can do. What it cannot is an error, never an imitation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Caps: u32 {
        /// Reset when asked, more than once.
        const RESET = 1;
        /// Begin from a seed. What cannot is not reported with one.
        const SEED = 1 << 1;
        /// Begin the episode of an index.
        const INDEX = 1 << 2;
        /// Take options at a reset.
        const OPTIONS = 1 << 3;
        /// Reset or step some slots and leave others. Slots of a source without
        /// it are stepped and reset a whole chunk at a time, and fail so.
        const SUBSET = 1 << 4;
        /// Show an episode's final observation.
        const FINAL_OBS = 1 << 5;
        /// Tell truncated from terminated.
        const TRUNCATION = 1 << 6;
        /// Bear a time limit.
        const TIME_LIMIT = 1 << 7;
        /// Save and load a slot.
        const SAVE = 1 << 8;
        /// Draw a slot.
        const RENDER = 1 << 9;
        /// Call functions, get and set attributes by name.
        const CALL = 1 << 10;
        /// Its options are of the reset that has them alone, as Gymnasium's
        /// are, and not in force until changed.
        const OPTIONS_ONCE = 1 << 11;
        /// Step and reset in less than a microsecond, and wait for nothing in it. A
        /// vec env is brief where its slots are brief and few, and one thread steps
        /// them: whoever calls need not let others go on meanwhile.
        const BRIEF = 1 << 12;
        /// Reset some slots and leave others, though all of a chunk step together.
        const MASK = 1 << 13;
        /// Its slots are in other processes: any call may wait for one of those,
        /// so whoever calls lets others go on meanwhile.
        const REMOTE = 1 << 14;
        /// A slot that nobody seeded has no seed: its env begins from what
        /// randomness it finds itself. The seeds that chunks are built from then
        /// mean nothing, and no report names one.
        const UNSEEDED = 1 << 15;
        /// Tell of events: the info [`EVENTS`](crate::EVENTS).
        const EVENTS = 1 << 16;
        /// Tell which discrete choices are allowed: the info leaf
        /// [`ACTION_MASK`](crate::ACTION_MASK), in every row that shows an observation.
        const ACTION_MASK = 1 << 17;
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

    /// Those of a vec env of `num_slots` slots, where `self` are those of each.
    pub(crate) fn of_vec_env(self, num_slots: usize) -> Caps {
        /// As many as take no longer, one after the other, than it takes to hand
        /// half of them to another thread.
        const FEW: usize = 64;
        if num_slots <= FEW { self } else { self - Caps::BRIEF }
    }

    /// Errors unless `self` has `wanted`.
    ///
    /// # Errors
    /// [`Error::Unsupported`], saying that `env` cannot `what`.
    pub fn require(self, wanted: Caps, env: &str, what: &str) -> Result<()> {
        if self.contains(wanted) { Ok(()) } else { Err(Error::Unsupported(format!("{env} cannot {what}"))) }
    }
}
