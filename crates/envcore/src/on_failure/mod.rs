//! What becomes of slots that fail: a policy over any vec env.
//!
//! Under [`OnFailure::Raise`] failures travel in the batch and the sink raises.
//! Under the other two [`FailurePolicy`] sees that a batch comes back whole, and
//! carries on:
//!
//! | | the failing row | afterwards |
//! |---|---|---|
//! | restart, NEXT_STEP | zeros, truncated | the next step ignores its action and shows a rebuilt env's first observation |
//! | restart, SAME_STEP | truncated; a rebuilt env's first observation, the final one zeros | goes on |
//! | restart, DISABLED | zeros, truncated | must be reset, which rebuilds it |
//! | mask | zeros, truncated | zeros, actions ignored, until it is reset |
//!
//! A reset that fails is tried again at once under `restart`: with the same
//! index where it had one, else from the slot's next derived seed. A slot that
//! is restarted `max_restarts` times without ending an episode in between fails
//! for good, and its failure is raised. So is the failure of a worker process that
//! cannot be started; the next step or reset tries that again.
//!
//! Where a row's observation, or its final one, is zeros that no env has shown,
//! the batch says so: the row is [`RowKind::Failed`](crate::RowKind::Failed), or
//! its slot's failure is in [`Batch::tolerated`].

mod landing;
mod vec_env;

use std::str::FromStr;
use std::sync::Arc;

use self::vec_env::of_rows;
use crate::begin::Begin;
use crate::buffer::{Batch, BatchPool, ColumnIn, Layout, Slots, with_rows};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::landing::{Landing, Notes};
use crate::space::Options;
use crate::vec_config::AutoresetMode;
use crate::vec_env::VecEnv;

/// What becomes of slots that fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The failure is an error that carries the batch.
    #[default]
    Raise,
    /// The env is rebuilt and its episode reported truncated.
    Restart,
    /// The slot is left out until it is reset.
    Mask,
}

impl FromStr for OnFailure {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "raise" => Ok(OnFailure::Raise),
            "restart" => Ok(OnFailure::Restart),
            "mask" => Ok(OnFailure::Mask),
            other => {
                Err(Error::Argument(format!("on_failure is 'raise', 'restart' or 'mask', not '{other}'")))
            }
        }
    }
}

/// A slot, as far as the policy goes.
#[derive(Clone, Default)]
struct SlotPolicy {
    /// It failed and shows nothing until it is reset.
    lost: bool,
    /// Restarts since it last ended an episode.
    restarts: u32,
    /// The options of the reset that it is in flight for.
    options: Option<Arc<Options>>,
    /// It is being restarted within the call that its failure came in.
    retried: Option<Retried>,
}

/// What the failing row of a slot that is being restarted said.
#[derive(Clone, Copy)]
enum Retried {
    /// It was a reset: the new one replaces it.
    Reset,
    /// It was a step of SAME_STEP that ended so.
    Step,
}

/// A vec env whose failures are dealt with.
pub struct FailurePolicy {
    envs: Box<dyn VecEnv>,
    policy: OnFailure,
    max_restarts: u32,
    slots: Vec<SlotPolicy>,
    /// Whether any slot is lost, or has restarts that count.
    troubled: bool,
    pool: BatchPool,
    /// Rows by slot, for batches that must be put together; none under `Raise`.
    staging: Option<Box<Batch>>,
    /// Slots whose rows are in the staging, and theirs alone.
    landing: Landing,
    /// Slots that are to be reset within the call that their failure came in.
    again: Vec<Again>,
    /// What the slots in the staging tell.
    notes: Vec<Notes>,
    /// What is in flight was sent on in another order than it came.
    divided: bool,
}

/// A reset that restarts a slot.
struct Again {
    slot: usize,
    begin: Begin,
    options: Option<Arc<Options>>,
}

impl FailurePolicy {
    /// `envs` under `policy`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where slots that failed cannot be reset.
    pub fn new(envs: Box<dyn VecEnv>, policy: OnFailure, max_restarts: u32) -> Result<Self> {
        let spec = envs.spec();
        if policy == OnFailure::Restart {
            // Where slots go a chunk at a time, they fail so too.
            spec.caps.require(Caps::RESET, &spec.id, "restart an env that failed")?;
        }
        let mut pool = BatchPool::new(&Layout {
            observation: spec.observation.clone(),
            info: spec.info.clone(),
            // Of an env that shows no final observation, too, a failure ends an episode
            // that nobody saw the end of.
            finals: spec.autoreset == AutoresetMode::SameStep,
            capacity: spec.num_slots,
        })?;
        let n = spec.num_slots;
        let slots = vec![SlotPolicy::default(); n];
        let staging = match policy {
            OnFailure::Raise => None,
            _ => {
                let draft = pool.draft(Slots::All, slots.len(), None)?;
                Some(pool.finish(draft))
            }
        };
        Ok(FailurePolicy {
            envs,
            policy,
            max_restarts,
            slots,
            troubled: false,
            pool,
            staging,
            landing: Landing::new(n),
            again: Vec::new(),
            notes: (0..n).map(|_| Notes::default()).collect(),
            divided: false,
        })
    }

    /// Whether a step carries lost slots along, and does not refuse.
    fn carries(&self) -> bool {
        self.policy == OnFailure::Mask || self.envs.spec().autoreset != AutoresetMode::Disabled
    }

    /// Rows of a request for slots that run, and for slots that are lost.
    fn divide(&self, slots: &Slots) -> Result<(Vec<usize>, Vec<usize>)> {
        let n = self.envs.spec().num_slots;
        slots.check(n)?;
        let (live, lost): (Vec<_>, Vec<_>) =
            (0..slots.len(n)).partition(|&row| !self.slots[slots.at(row)].lost);
        Ok((live, lost))
    }

    /// Errors where these rows of `actions` cannot be sent to slots that run, while
    /// those in the rows `lost` are left out.
    fn check_live(
        &mut self,
        slots: &Slots,
        (live, lost): (&[usize], &[usize]),
        actions: &[ColumnIn<'_>],
    ) -> Result<()> {
        if live.is_empty() {
            return Ok(());
        }
        let these = of_rows(slots, live);
        let checked = with_rows(live, actions, |actions| self.envs.check_send(&these, actions));
        match (checked, lost) {
            (Err(Error::Unsupported(_)), [first, ..]) if !self.envs.spec().caps.contains(Caps::SUBSET) => {
                let (id, slot) = (&self.envs.spec().id, slots.at(*first));
                Err(Error::NeedsReset(format!(
                    "{id}: env {slot} failed earlier, and the others cannot be stepped without it: reset it"
                )))
            }
            (checked, _) => checked,
        }
    }

    fn has_lost(&self) -> bool {
        self.policy != OnFailure::Raise && self.troubled && self.slots.iter().any(|slot| slot.lost)
    }

    /// Errors where one of `slots` waits here to be received.
    fn check_not_landed(&self, slots: &Slots) -> Result<()> {
        let n = self.envs.spec().num_slots;
        let mut here = self.landing.iter().chain(self.again.iter().map(|again| again.slot));
        match here.find(|here| slots.iter(n).any(|slot| slot == *here)) {
            Some(slot) => Err(Error::Pending(format!("env {slot} is in flight: recv it first"))),
            None => Ok(()),
        }
    }
}
