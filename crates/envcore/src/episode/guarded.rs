//! A chunk behind a guard: whatever it does, no panic passes its runner.
//!
//! Of one's own a chunk may guard its envs one by one, as a list of envs does.
//! What panics past it is caught here, once for every runner: the slots that the
//! call was about have failed. The same becomes of a call whose report is about
//! slots or rows that it was not given, since nobody can tell whose it is.

use std::ops::Range;

use super::Gone;
use crate::buffer::RowsMut;
use crate::call::Call;
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::frame::Frame;
use crate::guard::{drop_guarded, guard};
use crate::source::{Chunk, ResetArgs, Side, StepArgs};
use crate::space::{Options, Value};

/// A chunk whose panics are failures.
pub(super) struct Guarded(Box<dyn Chunk>);

impl Guarded {
    pub(super) fn new(chunk: Box<dyn Chunk>) -> Self {
        Guarded(chunk)
    }

    /// As [`Chunk::step`]. The failures in `side` are of slots of `slots`, each
    /// named once, in ascending order.
    pub(super) fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let outcome = guard(Phase::Step, || self.0.step(slots.clone(), skip, actions, rows, side));
        let due = || {
            // Where none is due a step, all had a part in it.
            let idle = skip[slots.clone()].iter().all(|skipped| *skipped);
            slots.clone().filter(|slot| idle || !skip[*slot]).collect()
        };
        settle(Phase::Step, outcome, |slot| slots.contains(&slot), due, rows, side);
    }

    /// As [`Chunk::reset`]; of the failures as for [`step`](Self::step).
    pub(super) fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        let outcome = guard(Phase::Reset, || self.0.reset(resets, rows, side));
        let slots = || resets.iter().map(|reset| reset.slot);
        let mut sorted = Vec::new();
        if !side.failures.is_empty() {
            sorted.extend(slots());
            sorted.sort_unstable();
        }
        let is_of = |slot| sorted.binary_search(&slot).is_ok();
        settle(Phase::Reset, outcome, is_of, || slots().collect(), rows, side);
    }

    /// Asks the chunk what has neither rows nor report, in `phase`.
    pub(super) fn ask<R>(
        &mut self,
        phase: Phase,
        ask: impl FnOnce(&mut dyn Chunk) -> Result<R>,
    ) -> Result<R> {
        guard(phase, || ask(self.0.as_mut())).unwrap_or_else(|failure| Err(Error::env(failure)))
    }

    /// As [`Chunk::final_observation`]; `None` where it panics, for the row has an
    /// observation too.
    pub(super) fn final_observation(&mut self, slot: usize) -> Option<Value> {
        guard(Phase::Step, || self.0.final_observation(slot)).ok().flatten()
    }

    /// As [`Chunk::check_options`], for slots of `env`.
    pub(super) fn check_options(&mut self, env: &str, options: &Options) -> Result<()> {
        guard(Phase::Reset, || self.0.check_options(options)).unwrap_or_else(|failure| {
            Err(Error::env(format!("{env}: panicked as it tried the options of a reset: {failure}")))
        })
    }

    pub(super) fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.ask(Phase::Save, |chunk| chunk.save(slot))
    }

    pub(super) fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        self.ask(Phase::Load, |chunk| chunk.load(slot, state))
    }

    pub(super) fn render(&mut self, slot: usize) -> Result<Frame> {
        self.ask(Phase::Render, |chunk| chunk.render(slot))
    }

    pub(super) fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        self.ask(Phase::Call, |chunk| chunk.call(slot, call))
    }

    /// As [`Chunk::close`], of a chunk of `slots` slots.
    pub(super) fn close(&mut self, slots: usize) -> Vec<(usize, Failure)> {
        let all = |failure: Failure| (0..slots).map(|slot| (slot, failure.clone())).collect();
        match guard(Phase::Close, || self.0.close()) {
            Err(failure) => all(failure),
            Ok(failures) => match failures.iter().find(|(slot, _)| *slot >= slots) {
                Some((slot, failure)) => all(foreign_slot(Phase::Close, *slot, failure)),
                None => failures,
            },
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop_guarded(std::mem::replace(&mut self.0, Box::new(Gone)));
    }
}

/// Leaves in `side` what came of a call: where it panicked, or reported what it
/// was not about, a failure of each slot that was `due`. `is_of`: whether the
/// call was about a slot.
fn settle(
    phase: Phase,
    outcome: Result<(), Failure>,
    is_of: impl Fn(usize) -> bool,
    due: impl FnOnce() -> Vec<usize>,
    rows: &RowsMut<'_>,
    side: &mut Side,
) {
    if outcome.is_ok() && side.failures.is_empty() && side.extras.is_empty() {
        return;
    }
    let own = rows.start()..rows.start() + rows.len();
    let foreign = side.failures.iter().find(|(slot, _)| !is_of(*slot));
    let mut all = foreign.map(|(slot, failure)| foreign_slot(phase, *slot, failure));
    if let Some(extra) = side.extras.iter().find(|extra| !own.contains(&extra.row)) {
        all.get_or_insert_with(|| foreign_row(phase, &extra.key, extra.row, &own));
    }
    if all.is_some() {
        side.failures.retain(|(slot, _)| is_of(*slot));
        side.extras.retain(|extra| own.contains(&extra.row));
    }
    // What a slot's own failure says comes before what is said of all.
    if let Some(failure) = outcome.err().or(all) {
        side.failures.extend(due().into_iter().map(|slot| (slot, failure.clone())));
    }
    side.failures.sort_by_key(|(slot, _)| *slot);
    side.failures.dedup_by_key(|(slot, _)| *slot);
}

fn foreign_row(phase: Phase, key: &str, row: usize, own: &Range<usize>) -> Failure {
    let why =
        format!("the chunk told an info, '{key}', of row {row} of the batch, in a call about rows {own:?}");
    Failure::new(phase, Cause::Error, why)
}

fn foreign_slot(phase: Phase, slot: usize, failure: &Failure) -> Failure {
    let why = format!(
        "the chunk reported a failure of slot {slot} of its own, which it was not called for: {failure}"
    );
    Failure::new(phase, Cause::Error, why)
}
