//! Whether envs take options; asking changes nothing.

use std::sync::Arc;

use super::Episodes;
use crate::error::Result;
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

impl Episodes {
    /// Errors where an env would refuse the options that `tried` is about, on top
    /// of those in force for any of `slots`.
    pub(crate) fn check_options(
        &mut self,
        slots: impl Iterator<Item = usize>,
        tried: &mut Tried,
    ) -> Result<()> {
        for slot in slots {
            let in_force = self.lives.options(slot);
            if tried.knows(in_force) {
                continue;
            }
            let mut all = (**in_force).clone();
            all.merge(&tried.options);
            self.chunk.check_options(&self.lives.env, &all)?;
            tried.in_force.push(in_force.clone());
        }
        Ok(())
    }
}
