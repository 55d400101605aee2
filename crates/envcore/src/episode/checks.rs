//! What may be asked of a slot now; asking changes nothing.

use std::sync::Arc;

use crate::begin::Begin;
use crate::caps::Caps;
use crate::episode::{Episodes, Status};
use crate::error::{Error, Result};
use crate::space::Options;

/// Options that a reset asks for, and what they were tried on top of: one
/// instance tries them for all slots under the same options, of all chunks.
#[derive(Default)]
pub(crate) struct Tried {
    options: Options,
    in_force: Vec<Arc<Options>>,
}

impl Tried {
    /// How many kinds of slots are looked through: where there are more, some
    /// are tried again.
    const RECENT: usize = 16;

    /// Is about `options` from now on.
    pub(crate) fn begin(&mut self, options: &Options) {
        if self.options != *options {
            *self = Tried { options: options.clone(), in_force: Vec::new() };
        }
    }

    /// Forgets all: what envs say may change with the world around them.
    pub(crate) fn forget(&mut self) {
        self.in_force.clear();
    }

    fn knows(&self, in_force: &Arc<Options>) -> bool {
        let mut recent = self.in_force.iter().rev().take(Self::RECENT);
        recent.any(|known| Arc::ptr_eq(known, in_force) || known == in_force)
    }
}

/// A slot that is asked something.
pub(crate) struct Asked<'a> {
    pub(crate) env: &'a str,
    pub(crate) caps: Caps,
    pub(crate) slot: usize,
    pub(crate) status: Status,
    /// Whether an episode that is over awaits its autoreset.
    pub(crate) pending: bool,
}

impl Asked<'_> {
    /// Errors unless it may be stepped now.
    pub(crate) fn check_step(&self) -> Result<()> {
        let why = match self.status {
            Status::Running => return Ok(()),
            Status::Ended if self.pending => return Ok(()),
            Status::Fresh => "has not begun: call reset before step",
            Status::Ended => "has ended its episode: reset it (autoreset is disabled)",
            Status::Lost if !self.caps.contains(Caps::RESET) => {
                "failed earlier, and its source cannot reset it"
            }
            Status::Lost => "failed earlier: reset it, which rebuilds its env",
        };
        Err(Error::NeedsReset(format!("{}: slot {} {why}", self.env, self.slot)))
    }

    /// Errors unless it may begin so now.
    pub(crate) fn check_reset(&self, begin: Begin, options: bool) -> Result<()> {
        let require = |cap, what: &str| self.caps.require(cap, self.env, what);
        if options {
            require(Caps::OPTIONS, "take options at a reset")?;
        }
        match begin {
            Begin::Keep if matches!(self.status, Status::Fresh | Status::Lost) => {
                let why = "has no observation to keep: reset it too";
                return Err(Error::NeedsReset(format!("{}: slot {} {why}", self.env, self.slot)));
            }
            Begin::Keep => {}
            Begin::Own if self.status == Status::Fresh => {}
            Begin::Own => require(Caps::RESET, "be reset a second time")?,
            Begin::Seed(seed) => {
                require(Caps::SEED, "be seeded")?;
                check_seed(seed)?;
            }
            Begin::Index(_) => require(Caps::INDEX, "play the episode of an index")?,
        }
        Ok(())
    }

    /// Errors unless its autoreset may play `begin`.
    pub(crate) fn check_next(&self, begin: Begin) -> Result<()> {
        match begin {
            Begin::Keep => Err(Error::Argument("an autoreset cannot keep the episode".into())),
            Begin::Own => Ok(()),
            other => self.check_reset(other, false),
        }
    }
}

impl Episodes {
    fn asked(&self, slot: usize) -> Asked<'_> {
        Asked {
            env: &self.env,
            caps: self.caps,
            slot: self.first_slot + slot,
            status: self.status(slot),
            pending: self.pending[slot],
        }
    }

    /// Errors unless `slot` may be stepped now.
    pub(crate) fn check_step(&self, slot: usize) -> Result<()> {
        self.asked(slot).check_step()
    }

    /// Errors unless every slot may be stepped now.
    pub(crate) fn check_steps(&self) -> Result<()> {
        // Whoever is pending has ended.
        let ready = |(status, pending): (&Status, &bool)| (*status == Status::Running) | *pending;
        if self.status.iter().zip(&self.pending).fold(true, |all, slot| all & ready(slot)) {
            return Ok(());
        }
        (0..self.status.len()).try_for_each(|slot| self.check_step(slot))
    }

    /// Errors unless `slot` may begin so now.
    pub(crate) fn check_reset(&self, slot: usize, begin: Begin, options: bool) -> Result<()> {
        self.asked(slot).check_reset(begin, options)
    }

    /// Errors where an env would refuse the options that `tried` is about, on top
    /// of those in force for any of `slots`.
    pub(crate) fn check_options(
        &mut self,
        slots: impl Iterator<Item = usize>,
        tried: &mut Tried,
    ) -> Result<()> {
        for slot in slots {
            let in_force = &self.lives[slot].options;
            if tried.knows(in_force) {
                continue;
            }
            let mut all = (**in_force).clone();
            all.merge(&tried.options);
            self.chunk.check_options(&self.env, &all)?;
            tried.in_force.push(in_force.clone());
        }
        Ok(())
    }

    /// Errors unless `slot`'s autoreset may play `begin`.
    pub(crate) fn check_next(&self, slot: usize, begin: Begin) -> Result<()> {
        self.asked(slot).check_next(begin)
    }
}

/// Errors for a negative seed.
pub(crate) fn check_seed(seed: i64) -> Result<()> {
    if seed < 0 {
        return Err(Error::Argument(format!("seed {seed} is negative: seeds are 0 or more")));
    }
    Ok(())
}
