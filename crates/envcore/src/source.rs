//! The parts that runners are made from: a [`Source`] makes [`Chunk`]s, and a runner drives
//! chunks.

use std::ops::Range;
use std::sync::Arc;

use crate::begin::Begin;
use crate::buffer::{ActReader, Extra, RowsMut};
use crate::call::{Call, no_calls};
use crate::caps::Caps;
use crate::error::{Error, Failure, Result};
use crate::frame::Frame;
use crate::space::{Element, Options, Space, Value};
use crate::vec_config::AutoresetMode;

/// What a source is, before anyone has chosen how many slots it is to fill.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    /// The env's id.
    pub id: String,
    /// What one slot shows.
    pub observation: Space,
    /// What one slot takes.
    pub action: Space,
    /// The declared infos of one slot.
    pub info: Space,
    /// What the source can do.
    pub caps: Caps,
    /// The only autoreset mode, where the source resets itself.
    pub autoreset: Option<AutoresetMode>,
    /// The usual time limit in steps.
    pub max_episode_steps: Option<u64>,
    /// Anything else for users; see [`Spec::metadata`](crate::Spec::metadata).
    pub metadata: Options,
    /// The config as text. States are exchanged only between equal texts.
    pub config: String,
    /// How many agents act in one env. Runners only accept 1. With more agents a slot would
    /// stay one world with one life, and rewards and flags would have an axis of agents.
    pub num_agents: usize,
}

/// A maker of chunks: an env with its config, a library, a server.
pub trait Source: Send + Sync {
    /// What the source is.
    fn spec(&self) -> &SourceSpec;

    /// A chunk with one slot per seed. `first_slot` is the number of the chunk's first slot,
    /// for messages.
    ///
    /// # Errors
    /// [`Error::Slots`] for envs that cannot be built, or any other error.
    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>>;

    /// Into how many chunks the slots must be divided, where the runner cannot choose. Chunk k
    /// of m chunks of n slots begins at slot n k / m.
    fn chunks(&self) -> Option<usize> {
        None
    }

    /// A chunk of one slot, `slot`, that holds no env until a reset rebuilds it. It replaces a
    /// slot whose thread never came back.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where one slot cannot be replaced alone.
    fn vacant(&self, slot: usize) -> Result<Box<dyn Chunk>> {
        let _ = slot;
        Err(Error::Unsupported(format!("{} cannot replace one env", self.spec().id)))
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

    /// All elements of leaf `leaf` of the actions of `slots`, in row-major order, slots first,
    /// which a kernel reads. The elements of slots that await a reset are unspecified, and
    /// need not be in the space.
    ///
    /// # Panics
    /// Where there is no such leaf or slot, or the leaf is not of fixed shape and `T`s.
    pub fn leaf<T: Element>(&self, leaf: usize, slots: Range<usize>) -> &'a [T] {
        self.0.leaf(leaf, slots)
    }

    /// Whether the actions have these leaves and are those of `slots` slots.
    #[cfg(feature = "load")]
    pub(crate) fn are_of(&self, leaves: &[crate::buffer::LeafLayout], slots: usize) -> bool {
        self.0.are_of(leaves, slots)
    }

    /// The address of slot 0's actions in each leaf; null for a leaf that is not of fixed
    /// shape.
    #[cfg(feature = "load")]
    pub(crate) fn heads(&self) -> impl Iterator<Item = *const std::ffi::c_void> + '_ {
        self.0.heads()
    }

    /// The action of `slot` in leaf `leaf`, which is not of fixed shape.
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
    /// The row to which the slot's observation and infos are written.
    pub row: usize,
    /// How the slot begins; never [`Begin::Keep`] for a slot that has not begun.
    pub begin: Begin,
    /// The seed to rebuild the env from first, where the old env failed.
    pub rebuild: Option<i64>,
    /// Whether `rebuild` is the slot's seed. False where nobody gave the slot a seed, in a
    /// source with [`Caps::UNSEEDED`].
    pub seeded: bool,
    /// The options in force, where the env must be given them (again).
    pub options: Option<Arc<Options>>,
}

impl ResetArgs {
    /// A reset that begins the next episode of `slot`'s own stream, into row `row`.
    #[inline]
    pub fn own(slot: usize, row: usize) -> Self {
        ResetArgs { slot, row, begin: Begin::Own, rebuild: None, seeded: true, options: None }
    }
}

/// What a chunk reports beside its rows.
#[derive(Default)]
pub struct Side {
    /// Undeclared infos, with their rows of the batch.
    pub extras: Vec<Extra>,
    /// The slots that failed, by the chunk's own numbers.
    pub failures: Vec<(usize, Failure)>,
}

/// Some slots that a runner drives by one call: a list of envs of one type, a kernel with
/// its state by field, an instance of a foreign library. A chunk plays the dynamics and
/// knows nothing of time limits, statistics or (unless [`SourceSpec::autoreset`] says so)
/// autoreset.
///
/// Slots are numbered from 0 within a chunk.
///
/// A panic of a chunk does not reach beyond the runner. A panic in `step` or `reset` is a
/// failure of each slot that the call was about, except those under `skip` and those whose
/// failure is already reported. The next reset of these slots comes with
/// [`ResetArgs::rebuild`]. The same becomes of a failure or an info that is reported of a
/// slot or row that the call was not about. A panic in `check_options`, `save`, `load`,
/// `render`, `call` and `close` is an error of that call. A chunk whose envs can be guarded
/// one by one should guard them itself.
///
/// After Ctrl-C at an env ([`Cause::Interrupt`](crate::Cause::Interrupt)) a call begins no
/// further slot; the remaining slots fail as [`Failure::stopped`].
pub trait Chunk: Send {
    /// Plays the actions of `slots`. Row i of `rows` belongs to the i-th slot and gets
    /// observation, reward and both flags. A slot whose `skip` is true is not to be stepped;
    /// whatever the chunk does to its row and state is replaced by a reset. A slot that fails
    /// is reported, and is not used until it is rebuilt.
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    );

    /// Begins an episode of each slot of `resets`, or only observes the slot, and writes
    /// observation and infos to the slot's row. No slot and no row is given twice. Slots that
    /// fail are reported, and are not used until they are rebuilt; the others begin.
    ///
    /// One call has all slots that are reset together and whose rows are adjacent in one
    /// batch. For a source without [`Caps::SUBSET`] these are all slots of the chunk, except
    /// in autoresets.
    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side);

    /// Whether [`step_and_begin`](Self::step_and_begin) works.
    fn begins_in_step(&self) -> bool {
        false
    }

    /// Plays the actions of `slots` as [`step`](Self::step) does and, in the same call, begins an
    /// episode of each slot whose `over` is true, as [`reset`](Self::reset) does with
    /// [`ResetArgs::own`]. `due` are these slots, in ascending order. Their rows
    /// get observation and infos; the caller replaces reward and flags. No row has infos before.
    /// Called only where [`begins_in_step`](Self::begins_in_step).
    fn step_and_begin(
        &mut self,
        slots: Range<usize>,
        over: &[bool],
        due: &[usize],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let _ = (slots, over, due, actions, rows, side);
        unreachable!("the chunk does not begin episodes in a step");
    }

    /// What `slot` showed last, where the leaves of its row do not hold all of it: an object of
    /// a foreign language whose type differs from what a sink would make. Called in SAME_STEP
    /// for a slot whose episode ended.
    fn final_observation(&mut self, slot: usize) -> Option<Value> {
        let _ = slot;
        None
    }

    /// Errors where an env of this chunk would refuse `options` at a reset. No env has got the
    /// options then. A runner asks one chunk for all slots with the same options, so every
    /// chunk of a source must give the same answer.
    fn check_options(&mut self, options: &Options) -> Result<()> {
        let _ = options;
        Ok(())
    }

    /// The state of `slot`'s env; called only with [`Caps::SAVE`].
    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        let _ = slot;
        Err(Error::Unsupported("this env cannot save its state".into()))
    }

    /// Restores a state that `save` gave; called only with [`Caps::SAVE`].
    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        let _ = (slot, state);
        Err(Error::Unsupported("this env cannot load a state".into()))
    }

    /// A picture of `slot`; called only with [`Caps::RENDER`].
    fn render(&mut self, slot: usize) -> Result<Frame> {
        let _ = slot;
        Err(Error::Unsupported("this env draws no pictures".into()))
    }

    /// Makes `call` to the env of `slot`.
    ///
    /// # Errors
    /// The env's own errors. The slot can still be used.
    fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        let _ = slot;
        Err(no_calls("this env", call))
    }

    /// Asks the chunk to check what it takes from foreign code, at a cost
    /// ([`VecConfig::debug`](crate::VecConfig::debug)); called at most once, before any other
    /// call. Observations, rewards and infos are held to their spaces by the caller.
    fn debug(&mut self) {}

    /// Ends every env, even where some fail to end. Returns the slots that failed.
    fn close(&mut self) -> Vec<(usize, Failure)>;
}
