//! [`VecEnv`], the trait between everything that produces steps and everything that
//! consumes them.
//!
//! Everything that produces steps is a `VecEnv`; everything that consumes steps takes one.
//! The trait speaks of slots, batches of named leaves, seeds and indices, and never of a
//! concrete environment, a thread or Python.

use std::time::Instant;

use crate::begin::Begin;
use crate::buffer::{Batch, Buffers, ColumnIn, Slots};
use crate::call::{Call, no_calls};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::saved::{AllSections, Sections, SlotState, VecEnvState};
use crate::space::{Options, Space, Value};
use crate::vec_config::AutoresetMode;

/// What a vec env is.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The env's id.
    pub id: String,
    /// The number of slots.
    pub num_slots: usize,
    /// What one slot shows.
    pub observation: Space,
    /// What one slot takes.
    pub action: Space,
    /// The declared infos; `episode.r`, `episode.l` and `episode.t` are the
    /// episode statistics (return, length, seconds).
    pub info: Space,
    /// What happens after an episode's last step.
    pub autoreset: AutoresetMode,
    /// What the vec env can do.
    pub caps: Caps,
    /// The time limit in force, in steps.
    pub max_episode_steps: Option<u64>,
    /// Anything else that a sink may tell its user, such as `render_fps`.
    pub metadata: Options,
    /// How many agents act in one env; see [`SourceSpec::num_agents`](crate::SourceSpec::num_agents).
    pub num_agents: usize,
}

impl Spec {
    /// Errors where a space contradicts itself, or is too large for any memory with all slots.
    pub(crate) fn check_spaces(&self) -> Result<()> {
        let Spec { id, num_slots, num_agents, .. } = self;
        if *num_agents != 1 {
            let why =
                format!("{id}: {num_agents} agents act in one env; this version runs envs of one agent");
            return Err(Error::Unsupported(why));
        }
        self.observation.check_rows(&format!("{id}: observation"), *num_slots)?;
        self.action.check_rows(&format!("{id}: action"), *num_slots)?;
        self.info.check_rows(&format!("{id}: info"), *num_slots)
    }
}

/// How much a `recv` waits for, and what memory the batch uses.
#[derive(Default)]
pub struct Want<'a> {
    /// The least number of rows, if that many slots are in flight.
    pub min_rows: usize,
    /// The largest number of rows.
    pub max_rows: usize,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// The sink's memory for the batch; `None` for the runner's own.
    pub buffers: Option<&'a mut dyn Buffers>,
}

impl Want<'_> {
    /// The least and the largest number of rows, with `in_flight` slots in flight.
    ///
    /// # Errors
    /// [`Error::NothingPending`] where no slot is in flight.
    pub(crate) fn rows(&self, in_flight: usize) -> Result<(usize, usize)> {
        if in_flight == 0 {
            return Err(Error::NothingPending);
        }
        let most = self.max_rows.clamp(1, in_flight);
        Ok((self.min_rows.clamp(1, most), most))
    }

    /// All slots in flight, without a deadline.
    pub fn all() -> Self {
        Want { min_rows: usize::MAX, max_rows: usize::MAX, deadline: None, buffers: None }
    }
}

/// A batch of environments.
///
/// `send` and `send_reset` put slots in flight, and `recv` brings them back. Every method
/// errors after `close` ([`Error::Closed`]). A method that errors has changed nothing.
pub trait VecEnv: Send {
    /// What the vec env is.
    fn spec(&self) -> &Spec;

    /// Errors exactly where [`send_reset`](Self::send_reset) would, and changes nothing.
    /// Several vec envs can act as one only if all of them can be asked first.
    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()>;

    /// Errors exactly where [`send`](Self::send) would, and changes nothing.
    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()>;

    /// Puts `slots` in flight. Each slot begins as its entry of `begin` says, in row order.
    /// Each env gets `options` first.
    ///
    /// # Errors
    /// [`Error::Argument`] for slots or seeds that do not exist,
    /// [`Error::Pending`] for slots in flight, [`Error::Unsupported`].
    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()>;

    /// Sets what the next autoreset of each of `slots` plays, for that autoreset alone.
    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()>;

    /// Puts `slots` in flight with their actions: one column per leaf, with rows in the order
    /// of the slots. All actions are checked before any is stored.
    ///
    /// # Errors
    /// [`Error::Action`], [`Error::NeedsReset`], [`Error::Pending`],
    /// [`Error::Argument`].
    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()>;

    /// A batch of slots that were in flight: at least `want.min_rows`, or all, in the order in
    /// which they were sent. `None` where the deadline passes first; nothing is lost then. The
    /// batch's `failures` have the envs that failed, and their rows are marked.
    ///
    /// # Errors
    /// [`Error::NothingPending`]; [`Error::Env`] where a panic came from something other than
    /// an env (an object that is dropped). The slots that the error names are lost.
    fn recv(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>>;

    /// Calls [`send`](Self::send) and then [`recv`](Self::recv).
    fn step(
        &mut self,
        slots: &Slots,
        actions: &[ColumnIn<'_>],
        want: Want<'_>,
    ) -> Result<Option<Box<Batch>>> {
        self.send(slots, actions)?;
        self.recv(want)
    }

    /// Calls [`send_reset`](Self::send_reset) and then [`recv`](Self::recv).
    fn reset(
        &mut self,
        slots: &Slots,
        begin: &[Begin],
        options: Option<&Options>,
        want: Want<'_>,
    ) -> Result<Option<Box<Batch>>> {
        self.send_reset(slots, begin, options)?;
        self.recv(want)
    }

    /// How many slots are in flight.
    fn in_flight(&self) -> usize;

    /// The state on which the rest of `slot`'s run depends. The slot may not be in flight.
    fn save_slot(&mut self, slot: usize) -> Result<SlotState>;

    /// Restores a state that [`save_slot`](Self::save_slot) gave for any slot, in this or
    /// another process, of the same env and config.
    ///
    /// # Errors
    /// [`Error::State`]. The slot is unchanged then.
    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()>;

    /// The state on which the rest of every slot's run depends, and what the slots share.
    /// Nothing may be in flight.
    fn save_all(&mut self) -> Result<VecEnvState> {
        save_slots(self)
    }

    /// Restores what [`save_all`](Self::save_all) gave, in this or another process, in any
    /// runner with as many slots of the same env, config and version of this crate.
    ///
    /// # Errors
    /// [`Error::State`]. Every slot is unchanged then.
    fn load_all(&mut self, state: AllSections<'_>) -> Result<()> {
        load_slots(self, &state)
    }

    /// The state of [`save_slot`](Self::save_slot) as bytes.
    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.save_slot(slot)?.to_bytes()
    }

    /// Restores the state of [`load_slot`](Self::load_slot) from bytes.
    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        let damaged = match SlotState::from_bytes(state) {
            Ok(state) => return self.load_slot(slot, state.sections()),
            Err(damaged) => damaged,
        };
        // An error of the call itself takes precedence. The empty state is always refused.
        match self.load_slot(slot, SlotState::default().sections()) {
            Err(Error::State(_)) | Ok(()) => Err(damaged),
            Err(refused) => Err(refused),
        }
    }

    /// The state of [`save_all`](Self::save_all) as bytes.
    fn save_state(&mut self) -> Result<Vec<u8>> {
        self.save_all()?.to_bytes()
    }

    /// Restores the state of [`load_all`](Self::load_all) from bytes.
    fn load_state(&mut self, state: &[u8]) -> Result<()> {
        check_idle(self, "load")?;
        self.load_all(VecEnvState::from_bytes(state)?.sections())
    }

    /// A picture of each of `slots`. Nothing may be in flight.
    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>>;

    /// Makes `call` to the env of each of `slots`. Nothing may be in flight.
    ///
    /// # Errors
    /// [`Error::Slots`] where envs failed at the call. These envs can still be used.
    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        let _ = slots;
        Err(no_calls(&self.spec().id, call))
    }

    /// How many blocks of batch memory have been allocated so far. The number stays constant
    /// in a loop that keeps no batch.
    fn allocations(&self) -> u64;

    /// Ends the vec env and drops what is in flight. A second call does nothing.
    fn close(&mut self) -> Result<()>;
}

pub(crate) fn check_idle<V: VecEnv + ?Sized>(envs: &V, what: &str) -> Result<()> {
    match envs.in_flight() {
        0 => Ok(()),
        n => Err(Error::Pending(format!("cannot {what} with {n} envs in flight: recv or drain first"))),
    }
}

/// Every slot's state.
fn save_slots<V: VecEnv + ?Sized>(envs: &mut V) -> Result<VecEnvState> {
    check_idle(envs, "save")?;
    let slots = (0..envs.spec().num_slots).map(|slot| envs.save_slot(slot)).collect::<Result<_>>()?;
    Ok(VecEnvState::new(&envs.spec().id, slots))
}

/// Restores the state of every slot, or of none.
fn load_slots<V: VecEnv + ?Sized>(envs: &mut V, state: &AllSections<'_>) -> Result<()> {
    check_idle(envs, "load")?;
    let spec = envs.spec();
    state.check(&spec.id, spec.num_slots)?;
    state.shared.end()?;
    // If a state is refused halfway, every slot must get its old state again.
    let mut before = Vec::new();
    for (slot, saved) in state.slots.iter().enumerate() {
        let loaded = match envs.save_slot(slot) {
            Ok(was) => {
                before.push((slot, was));
                envs.load_slot(slot, *saved)
            }
            // The slot's worker has died, so there is no state to restore.
            Err(Error::NeedsReset(_)) => envs.load_slot(slot, *saved),
            Err(error) => Err(error),
        };
        if let Err(error) = loaded {
            for (slot, was) in &before {
                envs.load_slot(*slot, was.sections())?;
            }
            return Err(error);
        }
    }
    Ok(())
}
