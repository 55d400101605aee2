//! A guard around a chunk, which keeps the chunk's panics from its runner.
//!
//! A chunk may guard its envs one by one, as a list of envs does. A panic that the
//! chunk does not catch is caught by this guard, for every runner: the slots that the
//! call was about have failed. They also fail where a call reports on slots or rows
//! that it was not given, because nobody can tell which slot is meant.

use std::ops::Range;

use super::Unavailable;
use crate::buffer::RowsMut;
use crate::call::Call;
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::frame::Frame;
use crate::guard::{drop_guarded, guard};
use crate::source::{Chunk, ResetArgs, Side, StepArgs};
use crate::space::{Options, Value};

/// A chunk whose panics become failures.
pub(super) struct Guarded {
    chunk: Box<dyn Chunk>,
    begins_in_step: bool,
}

impl Guarded {
    pub(super) fn new(chunk: Box<dyn Chunk>) -> Self {
        let begins_in_step = guard(Phase::Build, || chunk.begins_in_step()).unwrap_or(false);
        Guarded { chunk, begins_in_step }
    }

    /// Calls [`Chunk::debug`].
    pub(super) fn debug(&mut self) {
        self.chunk.debug();
    }

    /// Calls [`Chunk::step`]. Afterwards the failures in `side` are of slots in `slots`,
    /// each slot at most once, in ascending order.
    pub(super) fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let outcome = guard(Phase::Step, || self.chunk.step(slots.clone(), skip, actions, rows, side));
        let due = || {
            // Where every slot was skipped, all of them had a part in the call.
            let idle = skip[slots.clone()].iter().all(|skipped| *skipped);
            slots.clone().filter(|slot| idle || !skip[*slot]).collect()
        };
        settle(Phase::Step, outcome, |slot| slots.contains(&slot), due, rows, side);
    }

    /// Whether the chunk begins episodes in a step.
    pub(super) fn begins_in_step(&self) -> bool {
        self.begins_in_step
    }

    /// Calls [`Chunk::step_and_begin`]. The failures are as those of [`step`](Self::step).
    pub(super) fn step_and_begin(
        &mut self,
        slots: Range<usize>,
        over: &[bool],
        due: &[usize],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let outcome =
            guard(Phase::Step, || self.chunk.step_and_begin(slots.clone(), over, due, actions, rows, side));
        settle(Phase::Step, outcome, |slot| slots.contains(&slot), || slots.clone().collect(), rows, side);
    }

    /// Calls [`Chunk::reset`]. The failures are as those of [`step`](Self::step).
    pub(super) fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        let outcome = guard(Phase::Reset, || self.chunk.reset(resets, rows, side));
        let slots = || resets.iter().map(|reset| reset.slot);
        let mut sorted = Vec::new();
        if !side.failures.is_empty() {
            sorted.extend(slots());
            sorted.sort_unstable();
        }
        let is_of = |slot| sorted.binary_search(&slot).is_ok();
        settle(Phase::Reset, outcome, is_of, || slots().collect(), rows, side);
    }

    /// Makes a call in `phase` that has neither rows nor a report.
    pub(super) fn ask<R>(
        &mut self,
        phase: Phase,
        ask: impl FnOnce(&mut dyn Chunk) -> Result<R>,
    ) -> Result<R> {
        guard(phase, || ask(self.chunk.as_mut())).unwrap_or_else(|failure| Err(Error::env(failure)))
    }

    /// Calls [`Chunk::final_observation`]. Gives `None` where the call panics, because the
    /// row has an observation anyway.
    pub(super) fn final_observation(&mut self, slot: usize) -> Option<Value> {
        guard(Phase::Step, || self.chunk.final_observation(slot)).ok().flatten()
    }

    /// Calls [`Chunk::check_options`]; `env` is the name of the env in errors.
    pub(super) fn check_options(&mut self, env: &str, options: &Options) -> Result<()> {
        guard(Phase::Reset, || self.chunk.check_options(options)).unwrap_or_else(|failure| {
            let message = format!("{env}: panicked as it tried the options of a reset: {failure}");
            Err(Error::env(Failure { message, ..failure }))
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

    /// Calls [`Chunk::close`] of a chunk of `slots` slots.
    pub(super) fn close(&mut self, slots: usize) -> Vec<(usize, Failure)> {
        let all = |failure: Failure| (0..slots).map(|slot| (slot, failure.clone())).collect();
        match guard(Phase::Close, || self.chunk.close()) {
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
        drop_guarded(std::mem::replace(&mut self.chunk, Box::new(Unavailable)));
    }
}

/// Puts a call's failures into `side`. Where the call panicked, or reported on slots or
/// rows that it was not given, each slot of `due` fails. `is_of` says whether the call
/// was about a slot.
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
    // A slot's own failure takes precedence over one of all slots.
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
