//! What is left of a vec env that was given to a server: nothing that can be used.

use envcore::{
    Batch, Begin, Call, ColumnIn, Error, Frame, Options, Result, Sections, SlotState, Slots, Spec, Value,
    Want,
};

/// A vec env that another owner has, as its first owner sees it: closed.
pub(super) struct GivenAway(pub(super) Spec);

impl envcore::VecEnv for GivenAway {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn check_reset(&mut self, _: &Slots, _: &[Begin], _: Option<&Options>) -> Result<()> {
        Err(Error::Closed)
    }

    fn check_send(&mut self, _: &Slots, _: &[ColumnIn<'_>]) -> Result<()> {
        Err(Error::Closed)
    }

    fn send_reset(&mut self, _: &Slots, _: &[Begin], _: Option<&Options>) -> Result<()> {
        Err(Error::Closed)
    }

    fn set_next(&mut self, _: &Slots, _: &[Begin]) -> Result<()> {
        Err(Error::Closed)
    }

    fn send(&mut self, _: &Slots, _: &[ColumnIn<'_>]) -> Result<()> {
        Err(Error::Closed)
    }

    fn recv(&mut self, _: Want<'_>) -> Result<Option<Box<Batch>>> {
        Err(Error::Closed)
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn save_slot(&mut self, _: usize) -> Result<SlotState> {
        Err(Error::Closed)
    }

    fn load_slot(&mut self, _: usize, _: Sections<'_>) -> Result<()> {
        Err(Error::Closed)
    }

    fn render(&mut self, _: &Slots) -> Result<Vec<Frame>> {
        Err(Error::Closed)
    }

    fn call(&mut self, _: &Slots, _: &Call) -> Result<Vec<Value>> {
        Err(Error::Closed)
    }

    fn allocations(&self) -> u64 {
        0
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}
