//! Checks of whether envs take options, which change nothing.

use std::sync::Arc;

use super::Episodes;
use crate::error::Result;
use crate::space::Options;

/// The options of a reset, and the options in force on top of which they were tried.
/// One value serves all chunks of a reset, so slots with the same options in force
/// share a try.
#[derive(Default)]
pub(crate) struct Tried {
    options: Options,
    in_force: Vec<Arc<Options>>,
}

impl Tried {
    /// How many of the latest options in force are compared. Where slots have more
    /// different ones, some are tried again.
    const RECENT: usize = 16;

    /// Sets `options` as the ones to try.
    pub(crate) fn begin(&mut self, options: &Options) {
        if self.options != *options {
            *self = Tried { options: options.clone(), in_force: Vec::new() };
        }
    }

    /// Forgets all tries, because an env's answer may change with the world around it.
    pub(crate) fn forget(&mut self) {
        self.in_force.clear();
    }

    fn knows(&self, in_force: &Arc<Options>) -> bool {
        let mut recent = self.in_force.iter().rev().take(Self::RECENT);
        recent.any(|known| Arc::ptr_eq(known, in_force) || known == in_force)
    }
}

impl Episodes {
    /// Errors where an env would refuse the options of `tried` on top of the options in
    /// force for any of `slots`.
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
