//! What runners are made of: a [`Source`] makes [`Chunk`]s, and a runner drives
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
    /// See [`Spec::metadata`](crate::Spec::metadata).
    pub metadata: Options,
    /// The config, as text: states are exchanged only between equal ones.
    pub config: String,
    /// How many agents act in one env. Runners take 1 for now: a slot stays one
    /// world with one life, and rewards and flags will have an axis of agents.
    pub num_agents: usize,
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
