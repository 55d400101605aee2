//! Layers, which change batches on their way from a runner to a sink.
//!
//! A [`Transform`] changes batches and remembers what it needs of each slot. A
//! [`Layer`] applies a transform to any vec env and is a vec env itself, so layers
//! can be stacked and work with every sink. Gymnasium's wrappers of the same purpose
//! see only whole batches and take a masked reset for a step of every slot. A layer
//! learns from the batch what each row is ([`Transform::apply`]), and saves its part
//! of a slot's state with the slot.
//!
//! A leaf whose rows keep their size and dtype is changed in place. For any other leaf
//! the layer has memory of its own and takes it before a batch is received. Where
//! there is no memory left, the batch stays in flight.

mod frame_stack;
mod masked_actions;
mod memory;
mod moments;
mod normalize_observation;
mod normalize_reward;
mod rows;

pub use frame_stack::FrameStack;
pub use masked_actions::MaskedActions;
pub use moments::{Moments, Statistics};
pub use normalize_observation::NormalizeObservation;
pub use normalize_reward::NormalizeReward;
pub use rows::{RowOf, Shows, rows_of};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, Fixed, Slots};
use crate::call::Call;
use crate::error::Result;
use crate::frame::Frame;
use crate::saved::{AllSections, Sections, SlotState, VecEnvState};
use crate::space::{Options, Value};
use crate::vec_env::{Spec, VecEnv, Want};
use memory::{FilteredBuffers, LayerPools};

/// A change of batches, and what must be remembered to make it.
pub trait Transform: Send {
    /// What is remembered of one slot.
    type Slot: Serialize + DeserializeOwned;
    /// What is remembered of all slots together.
    type Shared: Serialize + DeserializeOwned;

    /// The transform's name and settings. States are exchanged only between equal ones.
    fn describe(&self) -> String;

    /// The spec of a vec env of `spec` under this transform. A transform may change the
    /// leaves of the observation space, but not their number or names.
    fn spec(&self, spec: &Spec) -> Spec;

    /// Changes `batch`. Where a leaf's rows change size or dtype, the transform writes
    /// them to the leaf's column in `fresh`, and those of `batch.finals` to the column in
    /// `fresh_finals`; these columns then replace the batch's. All other leaves are `None`
    /// there and are changed in place. [`rows_of`] says what each row is. Rows that show
    /// nothing must come out as zeros.
    fn apply(&mut self, batch: &mut Batch, fresh: &mut [Option<Fixed>], fresh_finals: &mut [Option<Fixed>]);

    /// Errors where `slots` must not play `actions`, which are members of the action space.
    fn check_actions(&self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        let _ = (slots, actions);
        Ok(())
    }

    /// Whether [`check_actions`](Self::check_actions) can refuse an action.
    const CHECKS_ACTIONS: bool = false;

    /// What is remembered of `slot`.
    fn slot(&self, slot: usize) -> Self::Slot;

    /// Errors where [`slot`](Self::slot) of this transform cannot have given `saved`.
    fn check_slot(&self, saved: &Self::Slot) -> Result<()>;

    /// Sets what is remembered of `slot` to `saved`, which passed the check.
    fn set_slot(&mut self, slot: usize, saved: Self::Slot);

    /// What is remembered of all slots together.
    fn shared(&self) -> Self::Shared;

    /// Errors where [`shared`](Self::shared) of this transform cannot have given `saved`.
    fn check_shared(&self, saved: &Self::Shared) -> Result<()>;

    /// Sets what is remembered of all slots to `saved`, which passed the check.
    fn set_shared(&mut self, saved: Self::Shared);
}

/// A vec env whose batches a transform changes.
pub struct Layer<T> {
    envs: Box<dyn VecEnv>,
    transform: T,
    spec: Spec,
    memory: LayerPools,
}

impl<T: Transform> Layer<T> {
    /// Puts `envs` under `transform`, which was made for their spec.
    ///
    /// # Errors
    /// [`Error::Space`](crate::Error::Space) where the changed space is invalid: a shape
    /// is too large, or has too many axes.
    pub(crate) fn new(envs: Box<dyn VecEnv>, transform: T) -> Result<Self> {
        let spec = transform.spec(envs.spec());
        spec.check_spaces()?;
        let memory = LayerPools::new(envs.spec(), &spec);
        Ok(Layer { envs, transform, spec, memory })
    }

    /// Splits the layer's section from the state of a slot.
    fn take<'a>(&self, state: Sections<'a>) -> Result<(T::Slot, Sections<'a>)> {
        let (saved, below) = state.take(&self.transform.describe())?;
        self.transform.check_slot(&saved)?;
        Ok((saved, below))
    }
}

impl<T: Transform> VecEnv for Layer<T> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.envs.check_reset(slots, begin, options)
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.envs.check_send(slots, actions)?;
        self.transform.check_actions(slots, actions)
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.envs.send_reset(slots, begin, options)
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.envs.set_next(slots, begin)
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        if T::CHECKS_ACTIONS {
            self.check_send(slots, actions)?;
        }
        self.envs.send(slots, actions)
    }

    fn recv(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        self.memory.reserve()?;
        let Want { min_rows, max_rows, deadline, buffers } = want;
        let mut host = buffers.map(|host| FilteredBuffers { host, kept_back: self.memory.changed() });
        let below = match &mut host {
            Some(host) => Want { min_rows, max_rows, deadline, buffers: Some(host) },
            None => Want { min_rows, max_rows, deadline, buffers: None },
        };
        let Some(mut batch) = self.envs.recv(below)? else { return Ok(None) };
        let host = host.map(|filtered| filtered.host);
        let (mut fresh, mut fresh_finals) = self.memory.columns(&batch, host)?;
        self.transform.apply(&mut batch, &mut fresh, &mut fresh_finals);
        memory::replace(&mut batch.observation, fresh);
        if let Some(finals) = &mut batch.finals {
            memory::replace(&mut finals.observation, fresh_finals);
        }
        Ok(Some(batch))
    }

    fn in_flight(&self) -> usize {
        self.envs.in_flight()
    }

    fn save_slot(&mut self, slot: usize) -> Result<SlotState> {
        let mut state = self.envs.save_slot(slot)?;
        state.push(&self.transform.describe(), &self.transform.slot(slot))?;
        Ok(state)
    }

    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        let (own, below) = self.take(state)?;
        self.envs.load_slot(slot, below)?;
        self.transform.set_slot(slot, own);
        Ok(())
    }

    fn save_all(&mut self) -> Result<VecEnvState> {
        let mut state = self.envs.save_all()?;
        let name = self.transform.describe();
        state.push_slots(&name, |slot| self.transform.slot(slot))?;
        state.push_shared(&name, &self.transform.shared())?;
        Ok(state)
    }

    fn load_all(&mut self, mut state: AllSections<'_>) -> Result<()> {
        state.check(&self.spec.id, self.spec.num_slots)?;
        let shared;
        (shared, state.shared) = state.shared.take(&self.transform.describe())?;
        self.transform.check_shared(&shared)?;
        let mut own = Vec::with_capacity(state.slots.len());
        for slot in &mut state.slots {
            let saved;
            (saved, *slot) = self.take(*slot)?;
            own.push(saved);
        }
        self.envs.load_all(state)?;
        self.transform.set_shared(shared);
        own.into_iter().enumerate().for_each(|(slot, saved)| self.transform.set_slot(slot, saved));
        Ok(())
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        self.envs.render(slots)
    }

    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        self.envs.call(slots, call)
    }

    fn allocations(&self) -> u64 {
        self.envs.allocations() + self.memory.allocations()
    }

    fn close(&mut self) -> Result<()> {
        self.envs.close()
    }
}
