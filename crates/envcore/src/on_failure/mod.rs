//! What becomes of slots that fail: a policy over any vec env.
//!
//! Under [`OnFailure::Raise`] the batch carries failures to the sink, which raises
//! them. Under the other two policies [`FailurePolicy`] makes each batch whole and
//! the vec env carries on:
//!
//! | | the failing row | afterwards |
//! |---|---|---|
//! | restart, NEXT_STEP | zeros, truncated | the next step ignores its action and shows a rebuilt env's first observation |
//! | restart, SAME_STEP | truncated; a rebuilt env's first observation; the final observation is zeros | the slot goes on |
//! | restart, DISABLED | zeros, truncated | the slot must be reset, which rebuilds its env |
//! | mask | zeros, truncated | zeros; the slot's actions are ignored until it is reset |
//!
//! Under `restart` a reset that fails is tried again at once. The new reset has the
//! index of the failed one, or else the slot's next derived seed. A slot that is
//! restarted `max_restarts` times without ending an episode in between fails for
//! good, and its failure is raised. The failure of a worker process that cannot be
//! started is raised too; the next step or reset tries to start the process again.
//!
//! A row's observation or final observation can be zeros that no env has shown. The
//! batch then says so: the row is [`RowKind::Failed`](crate::RowKind::Failed), or
//! the slot's failure is in [`Batch::tolerated`].

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

/// What the policy remembers of a slot.
#[derive(Clone, Default)]
struct SlotPolicy {
    /// Whether the slot failed and shows nothing until it is reset.
    lost: bool,
    /// How often the slot was restarted since it last ended an episode.
    restarts: u32,
    /// The options of the reset that the slot is in flight for.
    options: Option<Arc<Options>>,
    /// Set while the policy restarts the slot within the call that brought the failure.
    retried: Option<Retried>,
}

/// What the failing row of a slot that is being restarted was.
#[derive(Clone, Copy)]
enum Retried {
    /// A reset. The new reset replaces it.
    Reset,
    /// A step of SAME_STEP. The failure ended its episode.
    Step,
}

/// A vec env whose failures a policy deals with.
pub struct FailurePolicy {
    envs: Box<dyn VecEnv>,
    policy: OnFailure,
    max_restarts: u32,
    slots: Vec<SlotPolicy>,
    /// Whether any slot is lost or has been restarted since it last ended an episode.
    troubled: bool,
    pool: BatchPool,
    /// One row per slot, for batches that are put together; none under `Raise`.
    staging: Option<Box<Batch>>,
    /// Slots whose rows are in `staging` and wait to be received.
    landing: Landing,
    /// Slots that are to be reset within the call that brought their failure.
    again: Vec<Again>,
    /// The notes of each slot whose row is in `staging`.
    notes: Vec<Notes>,
    /// Whether the slots in flight were sent on in another order than they were asked for.
    divided: bool,
}

/// A reset that restarts a slot.
struct Again {
    slot: usize,
    begin: Begin,
    options: Option<Arc<Options>>,
}

impl FailurePolicy {
    /// Puts `envs` under `policy`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where slots that failed cannot be reset.
    pub fn new(envs: Box<dyn VecEnv>, policy: OnFailure, max_restarts: u32) -> Result<Self> {
        let spec = envs.spec();
        if policy == OnFailure::Restart {
            // Where slots are reset by the chunk, they fail by the chunk too.
            spec.caps.require(Caps::RESET, &spec.id, "restart an env that failed")?;
        }
        let mut pool = BatchPool::new(&Layout {
            observation: spec.observation.clone(),
            info: spec.info.clone(),
            // An env that shows no final observation gets finals from this policy, because a failure
            // ends an episode whose end nobody saw.
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

    /// Whether a step may include lost slots.
    fn carries(&self) -> bool {
        self.policy == OnFailure::Mask || self.envs.spec().autoreset != AutoresetMode::Disabled
    }

    /// The rows of a request, divided into those of slots that run and of lost slots.
    fn divide(&self, slots: &Slots) -> Result<(Vec<usize>, Vec<usize>)> {
        let n = self.envs.spec().num_slots;
        slots.check(n)?;
        let (live, lost): (Vec<_>, Vec<_>) =
            (0..slots.len(n)).partition(|&row| !self.slots[slots.at(row)].lost);
        Ok((live, lost))
    }

    /// Errors where the rows `live` of `actions` cannot be sent to their slots while the
    /// slots in the rows `lost` are left out.
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

    /// Errors where the row of one of `slots` is staged and waits to be received.
    fn check_not_landed(&self, slots: &Slots) -> Result<()> {
        let n = self.envs.spec().num_slots;
        let mut here = self.landing.iter().chain(self.again.iter().map(|again| again.slot));
        match here.find(|here| slots.iter(n).any(|slot| slot == *here)) {
            Some(slot) => Err(Error::Pending(format!("env {slot} is in flight: recv it first"))),
            None => Ok(()),
        }
    }
}
