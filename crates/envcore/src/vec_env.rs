//! The waist: [`VecEnv`].
//!
//! Everything that produces steps is a `VecEnv`; everything that consumes them
//! takes one. It speaks of slots, batches of named leaves, seeds and indices,
//! never of a concrete environment, a thread or Python.

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
    /// How many slots.
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
    /// What it can do.
    pub caps: Caps,
    /// The time limit in force, in steps.
    pub max_episode_steps: Option<u64>,
    /// Anything else that a sink may tell its user, such as `render_fps`.
    pub metadata: Options,
    /// How many agents act in one env: see [`SourceSpec::num_agents`](crate::SourceSpec::num_agents).
    pub num_agents: usize,
}

impl Spec {
    /// Errors where a space contradicts itself, or no memory is large enough for
    /// all slots.
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

/// How much a `recv` waits for, and where it puts it.
#[derive(Default)]
pub struct Want<'a> {
    /// The least rows, if that many are in flight.
    pub min_rows: usize,
    /// The most rows.
    pub max_rows: usize,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Memory of the sink's for the batch; else the runner's own.
    pub buffers: Option<&'a mut dyn Buffers>,
}

impl Want<'_> {
    /// The least and the most rows that it is about, of `in_flight` slots.
    ///
    /// # Errors
    /// [`Error::NothingPending`] where that is none.
    pub(crate) fn rows(&self, in_flight: usize) -> Result<(usize, usize)> {
        if in_flight == 0 {
            return Err(Error::NothingPending);
        }
        let most = self.max_rows.clamp(1, in_flight);
        Ok((self.min_rows.clamp(1, most), most))
    }

    /// Everything in flight, however long it takes.
    pub fn all() -> Self {
        Want { min_rows: usize::MAX, max_rows: usize::MAX, deadline: None, buffers: None }
    }
}

/// A batch of environments.
///
/// `send` and `send_reset` put slots in flight, `recv` brings them back. Every
/// method errors after `close` ([`Error::Closed`]). A method that errors has
/// moved nothing.
pub trait VecEnv: Send {
    /// What it is.
    fn spec(&self) -> &Spec;

    /// Errors exactly where [`send_reset`](Self::send_reset) would, and moves
    /// nothing: several vec envs act as one only if all can be asked first.
    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()>;

    /// Errors exactly where [`send`](Self::send) would, and moves nothing.
    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()>;

    /// Puts `slots` in flight to begin as `begin` says, one each, in row order;
    /// `options` go to each of them first.
    ///
    /// # Errors
    /// [`Error::Argument`] for slots or seeds that do not exist,
    /// [`Error::Pending`] for slots in flight, [`Error::Unsupported`].
    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()>;

    /// Says what the next autoreset of each of `slots` plays; once.
    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()>;

    /// Puts `slots` in flight with their actions: one column per leaf, rows in
    /// the slots' order. All are checked before any is taken.
    ///
    /// # Errors
    /// [`Error::Action`], [`Error::NeedsReset`], [`Error::Pending`],
    /// [`Error::Argument`].
    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()>;

    /// A batch of slots that were in flight: at least `want.min_rows`, or all, in
    /// the order in which they were sent; `None` when the deadline passes first,
    /// and nothing is lost. Envs that failed are in the
    /// batch's `failures`, and their rows are marked.
    ///
    /// # Errors
    /// [`Error::NothingPending`]; [`Error::Env`] where something other than an env
    /// panicked (an object that is dropped): slots that it names are lost.
    fn recv(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>>;

    /// [`send`](Self::send), then [`recv`](Self::recv).
    fn step(
        &mut self,
        slots: &Slots,
        actions: &[ColumnIn<'_>],
        want: Want<'_>,
    ) -> Result<Option<Box<Batch>>> {
        self.send(slots, actions)?;
        self.recv(want)
    }

    /// [`send_reset`](Self::send_reset), then [`recv`](Self::recv).
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

    /// All that the rest of `slot`'s run depends on. It may not be in flight.
    fn save_slot(&mut self, slot: usize) -> Result<SlotState>;

    /// Takes up a slot's state that [`save_slot`](Self::save_slot) gave, of any
    /// slot, here or in another process, of the same env and config.
    ///
    /// # Errors
    /// [`Error::State`]; the slot is as it was.
    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()>;

    /// All that the rest of every slot's run depends on, and what the slots
    /// share. Nothing may be in flight.
    fn save_all(&mut self) -> Result<VecEnvState> {
        save_slots(self)
    }

    /// Takes up what [`save_all`](Self::save_all) gave, here or in another process,
    /// in any runner, of as many slots of the same env, config and version of this
    /// crate.
    ///
    /// # Errors
    /// [`Error::State`]; every slot is as it was.
    fn load_all(&mut self, state: AllSections<'_>) -> Result<()> {
        load_slots(self, &state)
    }

    /// [`save_slot`](Self::save_slot), as bytes.
    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.save_slot(slot)?.to_bytes()
    }

    /// [`load_slot`](Self::load_slot) of bytes.
    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        let damaged = match SlotState::from_bytes(state) {
            Ok(state) => return self.load_slot(slot, state.sections()),
            Err(damaged) => damaged,
        };
        // What is wrong with the call is told first; a state of nothing is refused.
        match self.load_slot(slot, SlotState::default().sections()) {
            Err(Error::State(_)) | Ok(()) => Err(damaged),
            Err(refused) => Err(refused),
        }
    }

    /// [`save_all`](Self::save_all), as bytes.
    fn save_state(&mut self) -> Result<Vec<u8>> {
        self.save_all()?.to_bytes()
    }

    /// [`load_all`](Self::load_all) of bytes.
    fn load_state(&mut self, state: &[u8]) -> Result<()> {
        check_idle(self, "load")?;
        self.load_all(VecEnvState::from_bytes(state)?.sections())
    }

    /// A picture of each of `slots`. Nothing may be in flight.
    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>>;

    /// Does to each of `slots` what `call` says. Nothing may be in flight.
    ///
    /// # Errors
    /// [`Error::Slots`] where envs failed at it; they go on.
    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        let _ = slots;
        Err(no_calls(&self.spec().id, call))
    }

    /// How many blocks of batch memory have been allocated so far: constant
    /// while a loop keeps nothing.
    fn allocations(&self) -> u64;

    /// Ends it; again does nothing. What is in flight is dropped.
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

/// Takes up every slot's state, or none.
fn load_slots<V: VecEnv + ?Sized>(envs: &mut V, state: &AllSections<'_>) -> Result<()> {
    check_idle(envs, "load")?;
    let spec = envs.spec();
    state.check(&spec.id, spec.num_slots)?;
    state.shared.end()?;
    // A state refused halfway must leave every slot as it was.
    let mut before = Vec::new();
    for (slot, saved) in state.slots.iter().enumerate() {
        let loaded = match envs.save_slot(slot) {
            Ok(was) => {
                before.push((slot, was));
                envs.load_slot(slot, *saved)
            }
            // Its worker has died: there is nothing that it could go back to.
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
