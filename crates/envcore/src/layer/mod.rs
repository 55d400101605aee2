//! Layers: what a batch becomes on its way from a runner to a sink.
//!
//! A [`Transform`] changes batches and remembers what it must of each slot; a
//! [`Layer`] is a transform over any vec env, and a vec env itself, so that
//! layers lie on each other and every sink has them. Gymnasium's wrappers that
//! do the same see only whole batches and take a masked reset for a step of
//! every slot; a layer is told by the batch what each row is
//! ([`Transform::apply`]), and its part of a slot's state is saved with the
//! slot.
//!
//! A leaf whose rows keep size and dtype is changed where it lies; for any other
//! the layer has memory of its own, asked for before a batch is received: where
//! there is none, the batch stays in flight.

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
use memory::{LayerPools, Passing};

/// What batches become, and what must be remembered for it.
pub trait Transform: Send {
    /// What is remembered of one slot.
    type Slot: Serialize + DeserializeOwned;
    /// What is remembered of all slots together.
    type Shared: Serialize + DeserializeOwned;

    /// Its name and settings: states are exchanged only between equal ones.
    fn describe(&self) -> String;

    /// What the vec env of `spec` becomes. Only the observation space may
    /// change, leaf by leaf: their number and names stay.
    fn spec(&self, spec: &Spec) -> Spec;

    /// Changes `batch`. Where a leaf's rows change size or dtype, the rows go to
    /// its column in `fresh` (and those of `batch.finals` to the one in
    /// `fresh_finals`), which then takes the place of the batch's; the others
    /// are `None`, and changed where they are. [`rows_of`] says what each row
    /// is. Rows that show nothing must come out as zeros.
    fn apply(&mut self, batch: &mut Batch, fresh: &mut [Option<Fixed>], fresh_finals: &mut [Option<Fixed>]);

    /// Errors where `slots` must not play `actions`, which are of their space.
    fn check_actions(&self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        let _ = (slots, actions);
        Ok(())
    }

    /// Whether [`check_actions`](Self::check_actions) refuses any.
    const CHECKS_ACTIONS: bool = false;

    /// What is remembered of `slot`.
    fn slot(&self, slot: usize) -> Self::Slot;

    /// Errors where `saved` is nothing that [`slot`](Self::slot) gives here.
    fn check_slot(&self, saved: &Self::Slot) -> Result<()>;

    /// Remembers `saved`, which passed the check, of `slot`.
    fn set_slot(&mut self, slot: usize, saved: Self::Slot);

    /// What is remembered of all slots together.
    fn shared(&self) -> Self::Shared;

    /// Errors where `saved` is nothing that [`shared`](Self::shared) gives here.
    fn check_shared(&self, saved: &Self::Shared) -> Result<()>;

    /// Remembers `saved`, which passed the check.
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
    /// `envs` under `transform`, which was made for its spec.
    ///
    /// # Errors
    /// [`Error::Space`](crate::Error::Space) where the changed space does not
    /// hold together: a shape too large, too many axes.
    pub(crate) fn new(envs: Box<dyn VecEnv>, transform: T) -> Result<Self> {
        let spec = transform.spec(envs.spec());
        spec.check_spaces()?;
        let memory = LayerPools::new(envs.spec(), &spec);
        Ok(Layer { envs, transform, spec, memory })
    }

    /// Takes the layer's section off the state of a slot.
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
        let mut host = buffers.map(|host| Passing { host, kept_back: self.memory.changed() });
        let below = match &mut host {
            Some(host) => Want { min_rows, max_rows, deadline, buffers: Some(host) },
            None => Want { min_rows, max_rows, deadline, buffers: None },
        };
        let Some(mut batch) = self.envs.recv(below)? else { return Ok(None) };
        let host = host.map(|passing| passing.host);
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
