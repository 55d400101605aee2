//! What the policy does with the rows that come back. A batch without failures goes
//! out as it came. Else each row is staged until the batch can be put together, and
//! slots that failed are reset.

use super::{Again, FailurePolicy, OnFailure, Retried};
use crate::begin::Begin;
use crate::buffer::{Batch, Buffers, Extra, RowKind, Slots};
use crate::caps::Caps;
use crate::error::{Cause, Error, Phase, Result, SlotError};
use crate::space::Options;
use crate::vec_config::AutoresetMode;
use crate::vec_env::Want;

pub(super) enum Collected {
    Late,
    Plain(Box<Batch>),
    Landed,
}

/// The sink's memory for one more batch.
fn reborrow<'a>(buffers: &'a mut Option<&mut dyn Buffers>) -> Option<&'a mut dyn Buffers> {
    match buffers {
        Some(buffers) => Some(&mut **buffers),
        None => None,
    }
}

/// Whether its worker process could not be started. Another try in the same call
/// would take as long, and most likely come to the same: that is left to the next
/// call, and the user is told.
fn is_unstarted(failure: &SlotError) -> bool {
    failure.failure.phase == Phase::Build && failure.failure.cause == Cause::Death
}

impl FailurePolicy {
    fn staging(&mut self) -> &mut Batch {
        self.staging.as_mut().expect("a policy that puts batches together has it from the start")
    }

    /// Writes the row of a slot that is left out.
    fn land_masked(&mut self, slot: usize) {
        let staging = self.staging();
        staging.clear_row(slot);
        staging.kinds.as_mut_slice::<u8>()[slot] = RowKind::Failed as u8;
        self.landing.land(slot);
    }

    /// Sends resets of `slots`; lost ones that are to be kept show zeros.
    pub(super) fn resets(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        let n = self.slots.len();
        let masked = |row: &usize| begin[*row] == Begin::Keep && self.slots[slots.at(*row)].lost;
        let (masked, rows): (Vec<usize>, Vec<usize>) = (0..begin.len()).partition(masked);
        if !rows.is_empty() {
            let list: Vec<usize> = rows.iter().map(|&row| slots.at(row)).collect();
            let begin: Vec<Begin> = rows.iter().map(|&row| begin[row]).collect();
            self.envs.send_reset(&Slots::of(list.clone(), n), &begin, options)?;
            // In flight, a slot is no longer lost, unless it comes back so.
            list.iter().for_each(|&slot| self.slots[slot].lost = false);
        }
        masked.into_iter().for_each(|row| self.land_masked(slots.at(row)));
        Ok(())
    }

    /// Whether `batch` may go out as it came.
    fn is_plain(&mut self, batch: &Batch) -> bool {
        if self.policy == OnFailure::Raise {
            for failure in &batch.failures {
                self.slots[failure.slot].lost = true;
                self.troubled = true;
            }
        } else if !batch.failures.is_empty() || self.landing.len() > 0 || self.divided {
            return false;
        }
        if self.troubled {
            let n = self.slots.len();
            let (terminated, truncated) =
                (batch.terminated.as_slice::<bool>(), batch.truncated.as_slice::<bool>());
            for (row, slot) in batch.slots.iter(n).enumerate() {
                if self.slots[slot].retried.is_some() {
                    return false;
                }
                self.recover(slot, terminated[row] || truncated[row]);
            }
            self.troubled = self.slots.iter().any(|slot| slot.lost || slot.restarts > 0);
        }
        true
    }

    /// Notes that `slot` gave a row of its own.
    fn recover(&mut self, slot: usize, ended: bool) {
        let slot = &mut self.slots[slot];
        slot.lost = false;
        slot.options = None;
        if ended {
            slot.restarts = 0;
        }
    }

    /// Takes the rows of `batch` apart: those that are done land.
    fn sort(&mut self, mut batch: Box<Batch>) {
        let n = self.slots.len();
        let mut failures = std::mem::take(&mut batch.failures);
        let slots = batch.slots.clone();
        for (row, slot) in slots.iter(n).enumerate() {
            let failure = failures.iter().position(|failure| failure.slot == slot);
            match failure.map(|at| failures.swap_remove(at)) {
                None => self.land(slot, &mut batch, row),
                Some(failure) => self.fail(slot, failure, &mut batch, row),
            }
        }
    }

    /// A row that did not fail.
    fn land(&mut self, slot: usize, batch: &mut Batch, row: usize) {
        let before = self.slots[slot].retried.take();
        let staging = self.staging();
        match before {
            // What the failing row said stays; only what is seen is new.
            Some(Retried::Step) => staging.put_seen(slot, batch, row),
            _ => staging.put_row(slot, batch, row),
        }
        if before.is_some() {
            staging.kinds.as_mut_slice::<u8>()[slot] = RowKind::Restarted as u8;
        }
        let kind = batch.kind(row);
        let ended = batch.terminated.as_slice::<bool>()[row] || batch.truncated.as_slice::<bool>()[row];
        self.take_extras(slot, batch, row);
        self.recover(slot, ended && kind == RowKind::Step);
        self.landing.land(slot);
    }

    fn take_extras(&mut self, slot: usize, batch: &mut Batch, row: usize) {
        let notes = &mut self.notes[slot];
        let is_its = |extra: &mut Extra| extra.row == row;
        notes.infos.extend(batch.infos.extras.extract_if(.., is_its));
        if let Some(finals) = &mut batch.finals {
            notes.final_infos.extend(finals.infos.extras.extract_if(.., is_its));
        }
    }

    /// A row that failed.
    fn fail(&mut self, slot: usize, failure: SlotError, batch: &mut Batch, row: usize) {
        let over = batch.terminated.as_slice::<bool>()[row] || batch.truncated.as_slice::<bool>()[row];
        let was = &mut self.slots[slot];
        let again = was.retried.take();
        let (begun, in_reset) = (failure.begin, failure.failure.phase != Phase::Step);
        was.lost = true;
        if again.is_none() && in_reset && over {
            // It had ended an episode before its next one failed to begin.
            was.restarts = 0;
        }
        was.restarts += 1;
        self.troubled = true;
        let mode = self.envs.spec().autoreset;
        if again.is_none() {
            let staging = self.staging();
            staging.put_row(slot, batch, row);
            if !in_reset {
                staging.truncated.as_mut_slice::<bool>()[slot] = true;
                staging.end_unseen(slot);
            }
            self.take_extras(slot, batch, row);
        }
        let restarts = self.policy == OnFailure::Restart;
        let too_often = restarts && self.slots[slot].restarts > self.max_restarts;
        let for_good = failure.failure.cause == Cause::Interrupt || restarts && is_unstarted(&failure);
        if for_good || too_often {
            let mut failure = failure;
            if !for_good {
                failure.failure.message += &format!(
                    " (restarted {} times without ending an episode: max_restarts)",
                    self.max_restarts
                );
            }
            self.notes[slot].failures.push(failure);
            self.landing.land(slot);
            return;
        }
        self.notes[slot].tolerated.push(failure);
        if !restarts || !(in_reset || mode == AutoresetMode::SameStep) {
            self.landing.land(slot);
            return;
        }
        let begin = match begun {
            Begin::Index(index) if in_reset => Begin::Index(index),
            _ => Begin::Own,
        };
        // In SAME_STEP a step's row, whatever failed of it, stays that step's.
        let was_step = mode == AutoresetMode::SameStep && (!in_reset || over);
        self.slots[slot].retried = again.or(Some(if was_step { Retried::Step } else { Retried::Reset }));
        let options = self.slots[slot].options.clone();
        self.again.push(Again { slot, begin, options });
    }

    /// Sends the resets of slots that are to be restarted.
    ///
    /// # Errors
    /// Why some could not be sent, Ctrl-C as a rule: those wait for the next reset, as
    /// without a restart.
    fn send_again(&mut self) -> Result<()> {
        let mut again = std::mem::take(&mut self.again);
        if again.is_empty() {
            return Ok(());
        }
        if self.envs.spec().caps.contains(Caps::SUBSET) {
            let mut sent = Ok(());
            for one in again.chunks(1) {
                sent = sent.and_then(|()| self.send_these(one));
                if sent.is_err() {
                    self.leave(one);
                }
            }
            return sent;
        }
        // Slots of a chunk are reset by one call; those of one call had the same options.
        again.sort_unstable_by_key(|again| again.slot);
        match self.send_these(&again) {
            Ok(()) => Ok(()),
            Err(_) if self.envs.in_flight() > 0 => {
                // The others of their chunk may be on their way.
                self.again = again;
                Ok(())
            }
            Err(error) => {
                self.leave(&again);
                // Of their chunk some did not fail: these wait with them.
                if matches!(error, Error::Unsupported(_)) { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Sends `these` to be reset.
    fn send_these(&mut self, these: &[Again]) -> Result<()> {
        let slots = Slots::of(these.iter().map(|again| again.slot).collect(), self.slots.len());
        let begin: Vec<Begin> = these.iter().map(|again| again.begin).collect();
        let sent = self.envs.send_reset(&slots, &begin, these[0].options.as_deref());
        these.iter().for_each(|again| self.slots[again.slot].lost = sent.is_err());
        sent
    }

    /// Lands slots that cannot be restarted now: as without a restart, they wait
    /// for one.
    fn leave(&mut self, these: &[Again]) {
        for &Again { slot, .. } in these {
            self.slots[slot].retried = None;
            self.landing.land(slot);
        }
    }

    /// Receives until `least` rows have landed or a batch of as many may go out
    /// as it is; false where the deadline passes first.
    pub(super) fn collect(&mut self, least: usize, want: &mut Want<'_>) -> Result<Collected> {
        while self.landing.len() < least {
            let missing = (least - self.landing.len()).min(self.envs.in_flight());
            let most = want.max_rows.max(least) - self.landing.len();
            let buffers = reborrow(&mut want.buffers);
            let asked = Want { min_rows: missing, max_rows: most, deadline: want.deadline, buffers };
            let Some(batch) = self.envs.recv(asked)? else { return Ok(Collected::Late) };
            if batch.rows() >= least && self.is_plain(&batch) {
                return Ok(Collected::Plain(batch));
            }
            self.sort(batch);
            self.send_again()?;
        }
        Ok(Collected::Landed)
    }
}
