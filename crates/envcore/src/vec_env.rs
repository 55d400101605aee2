//! The waist: [`VecEnv`], and what runners build it from, [`Source`] and
//! [`Chunk`].
//!
//! Everything that produces steps is a `VecEnv`; everything that consumes them
//! takes one. It speaks of slots, batches of named leaves, seeds and indices,
//! never of a concrete environment, a thread or Python.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bitflags::bitflags;

use crate::begin::Begin;
use crate::buffer::{ActReader, Batch, Buffers, ColumnIn, Extra, RowsMut, Slots};
use crate::env::Frame;
use crate::error::{Error, Failure, Result};
use crate::space::{ActionBounds, Element, Options, Space, Value};
use crate::whole;

/// What happens after an episode's last step; Gymnasium's three modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum AutoresetMode {
    /// The last step shows the final observation; the next one ignores its
    /// action and shows the new episode's first, with reward 0.
    #[default]
    NextStep,
    /// The last step shows the new episode's first observation; the final one
    /// is in [`Batch::finals`].
    SameStep,
    /// The last step shows the final observation; a finished slot must be reset
    /// before it is stepped again.
    Disabled,
}

impl fmt::Display for AutoresetMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AutoresetMode::NextStep => "next_step",
            AutoresetMode::SameStep => "same_step",
            AutoresetMode::Disabled => "disabled",
        })
    }
}

impl FromStr for AutoresetMode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled];
        all.into_iter().find(|mode| mode.to_string() == name).ok_or_else(|| {
            Error::Argument(format!("autoreset_mode is 'next_step', 'same_step' or 'disabled', not '{name}'"))
        })
    }
}

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
        /// Step and reset in a microsecond or two, and wait for nothing in it:
        /// whoever calls need not let others go on meanwhile.
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

    /// Errors unless `self` has `wanted`.
    ///
    /// # Errors
    /// [`Error::Unsupported`], saying that `env` cannot `what`.
    pub fn require(self, wanted: Caps, env: &str, what: &str) -> Result<()> {
        if self.contains(wanted) { Ok(()) } else { Err(Error::Unsupported(format!("{env} cannot {what}"))) }
    }
}

/// Something that an env knows by name: a method to call, an attribute to get.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// The method or attribute.
    pub name: String,
    /// Arguments by place.
    pub args: Vec<Value>,
    /// Arguments by name.
    pub kwargs: Options,
}

impl Call {
    /// A call without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Call { name: name.into(), ..Call::default() }
    }
}

fn no_calls(id: &str, call: &Call) -> Error {
    Error::Unsupported(format!("{id} has nothing to call by name ('{}')", call.name))
}

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
}

impl Spec {
    /// Errors where a space contradicts itself, or no memory is large enough for
    /// all slots.
    pub(crate) fn check_spaces(&self) -> Result<()> {
        let Spec { id, num_slots, .. } = self;
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
    fn save(&mut self, slot: usize) -> Result<Vec<u8>>;

    /// Takes up a state that `save` gave, of any slot, here or in another
    /// process, of the same env and config.
    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()>;

    /// All that the rest of every slot's run depends on, and what the slots
    /// share. Nothing may be in flight.
    fn save_state(&mut self) -> Result<Vec<u8>> {
        whole::save(self)
    }

    /// Takes up a state that `save_state` gave, here or in another process, in
    /// any runner, of as many slots of the same env, config and version of this
    /// crate.
    ///
    /// # Errors
    /// [`Error::State`]; every slot is as it was.
    fn load_state(&mut self, state: &[u8]) -> Result<()> {
        whole::load(self, state)
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

/// What a source is, before anyone has chosen how many slots it fills.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    /// The env's id.
    pub id: String,
    /// What one slot shows.
    pub observation: Space,
    /// What one slot takes.
    pub action: Space,
    /// Its declared infos.
    pub info: Space,
    /// What it can do.
    pub caps: Caps,
    /// The one mode it has, if it resets itself.
    pub autoreset: Option<AutoresetMode>,
    /// Its usual time limit, in steps.
    pub max_episode_steps: Option<u64>,
    /// See [`Spec::metadata`].
    pub metadata: Options,
    /// The config, as text: states are exchanged only between equal ones.
    pub config: String,
}

/// What makes chunks: an env with its config, a library, a server.
pub trait Source: Send + Sync {
    /// What it is.
    fn spec(&self) -> &SourceSpec;

    /// A chunk with one slot per seed; `first_slot` is the number of its first
    /// one, for messages.
    ///
    /// # Errors
    /// [`Error::Slots`] for envs that cannot be built, or any other.
    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>>;

    /// Into how many chunks the slots must be divided, where that is not the
    /// runner's to choose: chunk k of m of n slots begins at slot n k / m.
    fn chunks(&self) -> Option<usize> {
        None
    }

    /// A chunk of one slot, `slot`, that holds no env until a reset rebuilds
    /// it: takes the place of one whose thread never came back.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where one slot cannot be replaced alone.
    fn vacant(&self, slot: usize) -> Result<Box<dyn Chunk>> {
        let _ = slot;
        Err(Error::Unsupported(format!("{} cannot replace one slot", self.spec().id)))
    }
}

/// The actions of a chunk's slots, by the chunk's own numbers.
#[derive(Clone, Copy)]
pub struct StepArgs<'a>(pub(crate) ActReader<'a>);

impl<'a> StepArgs<'a> {
    /// A reader of the action of the chunk's slot `slot`.
    ///
    /// # Panics
    /// Where the chunk has no such slot.
    #[inline]
    pub fn row(&self, slot: usize) -> crate::ActRow<'a> {
        self.0.any(slot)
    }

    /// All elements of leaf `leaf` of the actions of `slots`, in row-major
    /// order, slots first: a kernel's way to its actions. What stands there for
    /// slots that await a reset is unspecified, and need not be in the space.
    ///
    /// # Panics
    /// Where there is no such leaf or slot, or it is not of fixed shape and `T`s.
    pub fn leaf<T: Element>(&self, leaf: usize, slots: Range<usize>) -> &'a [T] {
        self.0.leaf(leaf, slots)
    }

    /// Whether they are of these leaves, and of `slots` slots.
    #[cfg(feature = "load")]
    pub(crate) fn are_of(&self, leaves: &[crate::buffer::LeafLayout], slots: usize) -> bool {
        self.0.are_of(leaves, slots)
    }

    /// Where slot 0's actions are, leaf by leaf; null for a leaf that is not of
    /// fixed shape.
    #[cfg(feature = "load")]
    pub(crate) fn heads(&self) -> impl Iterator<Item = *const std::ffi::c_void> + '_ {
        self.0.heads()
    }

    /// The action of `slot` in leaf `leaf`, one that is not of fixed shape.
    #[cfg(feature = "load")]
    pub(crate) fn loose(&self, leaf: usize, slot: usize) -> &'a Value {
        self.0.any(slot).seek(leaf).value()
    }
}

/// A slot that a chunk is to reset, and how.
#[derive(Clone, Debug)]
pub struct ResetArgs {
    /// The slot.
    pub slot: usize,
    /// The row that gets its observation and infos.
    pub row: usize,
    /// What to begin; never [`Begin::Keep`] for a slot that has not begun.
    pub begin: Begin,
    /// Build the env anew from this seed first: the old one failed.
    pub rebuild: Option<i64>,
    /// Whether `rebuild` is the slot's seed: false where nobody gave the slot
    /// one, of a source with [`Caps::UNSEEDED`].
    pub seeded: bool,
    /// The options in force, where they must be given (again).
    pub options: Option<Arc<Options>>,
}

impl ResetArgs {
    /// The next episode of `slot`'s own stream, into row `row`.
    #[inline]
    pub fn own(slot: usize, row: usize) -> Self {
        ResetArgs { slot, row, begin: Begin::Own, rebuild: None, seeded: true, options: None }
    }
}

/// What a chunk reports beside its rows.
#[derive(Default)]
pub struct Side {
    /// Undeclared infos, by row of the batch.
    pub extras: Vec<Extra>,
    /// The chunk's own slots that failed.
    pub failures: Vec<(usize, Failure)>,
}

/// Some slots that a runner drives by one call: a list of envs of one type, a
/// kernel with its state by field, an instance of a foreign library. It plays
/// the dynamics and knows nothing of time limits, statistics or (unless
/// [`SourceSpec::autoreset`] says so) autoreset.
///
/// Slots are numbered from 0 here.
///
/// A panic does not pass the runner. Out of `step` or `reset` it is a failure of
/// each slot that the call was about (those under `skip` aside, and those whose
/// failure is reported already), and their next reset comes with
/// [`ResetArgs::rebuild`]; so is a failure or an info reported of a slot or row that
/// the call was not about. Out of `check_options`, `save`, `load`, `render`, `call`
/// and `close` it is that call's error. A chunk whose envs can be guarded one by
/// one does better to guard them itself.
///
/// After Ctrl-C at an env ([`Cause::Interrupt`](crate::Cause::Interrupt)) a call
/// begins no further slot: those fail as [`Failure::stopped`].
pub trait Chunk: Send {
    /// Plays the actions of `slots`: row i of `rows` is the i-th of them, and
    /// gets observation, reward and both flags. Where `skip` (by slot) holds, no
    /// step is due; what the chunk then does to row and state is replaced by a
    /// reset. A slot that fails is reported and not used until rebuilt.
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    );

    /// Begins an episode of each slot of `resets`, or observes the slot, and writes
    /// observation and infos to its row. No slot and no row is there twice. Slots
    /// that fail are reported and not used until rebuilt; the others begin.
    ///
    /// One call has all slots that are reset together, as far as their rows follow
    /// each other in one batch. Of a source without [`Caps::SUBSET`] these are all
    /// slots of the chunk, save in autoresets.
    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side);

    /// What `slot` showed last, where that is more than the leaves of its row:
    /// an object of a foreign language that is not of the type that a sink would
    /// make. Asked for in SAME_STEP, of a slot whose episode ended.
    fn final_observation(&mut self, slot: usize) -> Option<Value> {
        let _ = slot;
        None
    }

    /// Errors where an env of this chunk would refuse `options` at a reset; no
    /// env has seen them. One chunk of a runner is asked for all slots under the
    /// same options, so the answer must be any chunk's of this source.
    fn check_options(&mut self, options: &Options) -> Result<()> {
        let _ = options;
        Ok(())
    }

    /// The state of `slot`'s env; called with [`Caps::SAVE`] only.
    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        let _ = slot;
        Err(Error::Unsupported("this env cannot save its state".into()))
    }

    /// Takes up a state that `save` gave; called with [`Caps::SAVE`] only.
    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        let _ = (slot, state);
        Err(Error::Unsupported("this env cannot load a state".into()))
    }

    /// A picture of `slot`; called with [`Caps::RENDER`] only.
    fn render(&mut self, slot: usize) -> Result<Frame> {
        let _ = slot;
        Err(Error::Unsupported("this env draws no pictures".into()))
    }

    /// Does to `slot` what `call` says.
    ///
    /// # Errors
    /// As the env's own; the slot goes on.
    fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        let _ = slot;
        Err(no_calls("this env", call))
    }

    /// Ends every env, whatever becomes of the others; the slots that failed.
    fn close(&mut self) -> Vec<(usize, Failure)>;
}

/// How a runner is made of a source.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct VecConfig {
    /// How many slots.
    pub num_slots: usize,
    /// Slot i is built from `seed + i`; `None` for seeds from the system.
    pub seed: Option<i64>,
    /// What happens after an episode's last step; `None` for the default, or
    /// the source's only one.
    pub autoreset: Option<AutoresetMode>,
    /// Truncates episodes after so many steps; `None` for no limit.
    pub max_episode_steps: Option<u64>,
    /// Adds `episode.r`, `episode.l` and `episode.t` to the infos of rows that
    /// end an episode.
    pub episode_statistics: bool,
    /// What happens to finite actions outside their box.
    pub action_bounds: ActionBounds,
    /// How many threads step slots; `None` for as many as there are cores. In a
    /// `step` the caller is one of them.
    pub num_threads: Option<usize>,
    /// That `recv` is to be asked for so few rows at a time: every slot then
    /// runs by itself in the background. `None`: all slots step together.
    pub batch_size: Option<usize>,
    /// How long an env may take for one call: then its slot is lost and its
    /// thread given up. `None`: as long as it likes.
    pub timeout: Option<Duration>,
    /// Binds thread k to the k-th core after this one, of those allowed.
    pub thread_affinity_offset: Option<usize>,
}
