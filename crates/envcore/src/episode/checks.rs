//! What may be asked of a slot now; asking changes nothing.

use std::sync::Arc;

use crate::begin::Begin;
use crate::episode::{Episodes, Status};
use crate::error::{Error, Result};
use crate::space::Options;
use crate::vec_env::Caps;

impl Episodes {
    /// Errors unless `slot` may be stepped now.
    pub(crate) fn check_step(&self, slot: usize) -> Result<()> {
        let why = match self.status[slot] {
            Status::Running => return Ok(()),
            Status::Ended if self.pending[slot] => return Ok(()),
            Status::Fresh => "has not begun: call reset before step",
            Status::Ended => "has ended its episode: reset it (autoreset is disabled)",
            Status::Lost if !self.caps.contains(Caps::RESET) => {
                "failed earlier, and its source cannot reset it"
            }
            Status::Lost => "failed earlier: reset it, which rebuilds its env",
        };
        Err(Error::NeedsReset(format!("{}: slot {} {why}", self.env, self.first_slot + slot)))
    }

    /// Errors unless every slot may be stepped now.
    pub(crate) fn check_steps(&self) -> Result<()> {
        (0..self.status.len()).try_for_each(|slot| self.check_step(slot))
    }

    /// Errors unless `slot` may begin so now.
    pub(crate) fn check_reset(&self, slot: usize, begin: Begin, options: bool) -> Result<()> {
        let require = |cap, what: &str| self.caps.require(cap, &self.env, what);
        if options {
            require(Caps::OPTIONS, "take options at a reset")?;
        }
        match begin {
            Begin::Keep if matches!(self.status[slot], Status::Fresh | Status::Lost) => {
                let why = "has no observation to keep: reset it too";
                return Err(Error::NeedsReset(format!(
                    "{}: slot {} {why}",
                    self.env,
                    self.first_slot + slot
                )));
            }
            Begin::Keep => {}
            Begin::Own if self.status[slot] == Status::Fresh => {}
            Begin::Own => require(Caps::RESET, "be reset a second time")?,
            Begin::Seed(seed) => {
                require(Caps::SEED, "be seeded")?;
                check_seed(seed)?;
            }
            Begin::Index(_) => require(Caps::INDEX, "play the episode of an index")?,
        }
        Ok(())
    }

    /// Errors where an env would refuse `options` at a reset, on top of those
    /// in force for any of `slots`.
    pub(crate) fn check_options(
        &mut self,
        slots: impl Iterator<Item = usize>,
        options: &Options,
    ) -> Result<()> {
        let mut checked: Option<Arc<Options>> = None;
        for slot in slots {
            let in_force = &self.lives[slot].options;
            if checked.as_ref().is_some_and(|checked| Arc::ptr_eq(checked, in_force) || checked == in_force) {
                continue;
            }
            let mut all = (**in_force).clone();
            all.merge(options);
            self.chunk.check_options(&all)?;
            checked = Some(in_force.clone());
        }
        Ok(())
    }

    /// Errors unless `slot`'s autoreset may play `begin`.
    pub(crate) fn check_next(&self, slot: usize, begin: Begin) -> Result<()> {
        match begin {
            Begin::Keep => Err(Error::Argument("an autoreset cannot keep the episode".into())),
            Begin::Own => Ok(()),
            other => self.check_reset(slot, other, false),
        }
    }
}

/// Errors for a negative seed.
pub(crate) fn check_seed(seed: i64) -> Result<()> {
    if seed < 0 {
        return Err(Error::Argument(format!("seed {seed} is negative: seeds are 0 or more")));
    }
    Ok(())
}
