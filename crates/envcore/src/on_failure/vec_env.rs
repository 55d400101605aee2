//! [`FailurePolicy`] as a [`VecEnv`].

use std::sync::Arc;

use super::landing::Collected;
use super::{FailurePolicy, OnFailure, SlotPolicy};
use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, Slots, with_private, with_rows};
use crate::call::Call;
use crate::caps::Caps;
use crate::error::Result;
use crate::frame::Frame;
use crate::landing::Notes;
use crate::saved::{AllSections, POLICY, SavedPolicy, Sections, SlotState, VecEnvState};
use crate::space::{Options, Value};
use crate::vec_env::{Spec, VecEnv, Want, check_idle};

/// The slots in `rows` of a request for `slots`.
pub(super) fn of_rows(slots: &Slots, rows: &[usize]) -> Slots {
    Slots::List(rows.iter().map(|&row| slots.at(row)).collect())
}

impl FailurePolicy {
    /// Adds what the policy remembers of `slot` to `state`, unless it is the default.
    fn keep(&self, slot: usize, state: &mut SlotState) -> Result<()> {
        let SlotPolicy { lost, restarts, .. } = self.slots[slot];
        match (SavedPolicy { lost, restarts }) {
            nothing if nothing == SavedPolicy::default() => Ok(()),
            saved => state.push(POLICY, &saved),
        }
    }

    /// Restores what the policy remembered of `slot`.
    fn take_up(&mut self, slot: usize, SavedPolicy { lost, restarts }: SavedPolicy) {
        self.slots[slot] = SlotPolicy { lost, restarts, ..SlotPolicy::default() };
        self.troubled |= lost || restarts > 0;
    }

    /// Sends as `send` does, where the policy itself answers for lost slots.
    fn send_divided(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        let (live, lost) = self.divide(slots)?;
        self.check_live(slots, (&live, &lost), actions)?;
        if self.policy == OnFailure::Restart {
            self.envs.check_reset(&of_rows(slots, &lost), &vec![Begin::Own; lost.len()], None)?;
        }
        // The resets come first: they may take long and be interrupted, and until
        // the actions are sent nothing else is in flight.
        let lost = of_rows(slots, &lost);
        let begin = if self.policy == OnFailure::Mask { Begin::Keep } else { Begin::Own };
        self.resets(&lost, &vec![begin; lost.len(0)], None)?;
        self.landing.send(slots);
        self.divided = true;
        if live.is_empty() {
            return Ok(());
        }
        with_rows(&live, actions, |actions| self.envs.send(&of_rows(slots, &live), actions))
    }
}

impl VecEnv for FailurePolicy {
    fn spec(&self) -> &Spec {
        self.envs.spec()
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_not_landed(slots)?;
        let n = self.slots.len();
        let apart = self.envs.spec().caps.contains(Caps::SUBSET);
        if !self.has_lost() || !apart || begin.len() != slots.len(n) {
            return self.envs.check_reset(slots, begin, options);
        }
        slots.check(n)?;
        let kept = |row: &usize| begin[*row] == Begin::Keep && self.slots[slots.at(*row)].lost;
        let rows: Vec<usize> = (0..begin.len()).filter(|row| !kept(row)).collect();
        let begin: Vec<Begin> = rows.iter().map(|&row| begin[row]).collect();
        self.envs.check_reset(&of_rows(slots, &rows), &begin, options)
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_not_landed(slots)?;
        if !self.has_lost() || !self.carries() {
            return self.envs.check_send(slots, actions);
        }
        let (live, lost) = self.divide(slots)?;
        self.check_live(slots, (&live, &lost), actions)
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        self.landing.send(slots);
        if self.has_lost() {
            self.resets(slots, begin, options)?;
        } else {
            self.envs.send_reset(slots, begin, options)?;
        }
        if self.policy == OnFailure::Restart
            && let Some(options) = options.filter(|options| !options.is_empty())
        {
            // A reset that is tried again has the same options.
            self.troubled = true;
            let options = Arc::new(options.clone());
            for (slot, begin) in slots.iter(self.slots.len()).zip(begin) {
                self.slots[slot].options = (*begin != Begin::Keep).then(|| options.clone());
            }
        }
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.check_not_landed(slots)?;
        self.envs.set_next(slots, begin)
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_not_landed(slots)?;
        if !self.has_lost() || !self.carries() {
            self.envs.send(slots, actions)?;
            self.landing.send(slots);
            return Ok(());
        }
        with_private(actions, |actions| self.send_divided(slots, actions))
    }

    fn recv(&mut self, mut want: Want<'_>) -> Result<Option<Box<Batch>>> {
        let in_flight = self.in_flight();
        if in_flight == 0 {
            return self.envs.recv(want);
        }
        let (least, most) = want.rows(in_flight)?;
        want.max_rows = most;
        match self.collect(least, &mut want)? {
            Collected::Late => return Ok(None),
            Collected::Plain(batch) => return Ok(Some(batch)),
            Collected::Landed => {}
        }
        self.divided &= self.envs.in_flight() > 0;
        let rows = most.min(self.landing.len());
        let FailurePolicy { landing, pool, staging, notes, .. } = self;
        let staging = staging.as_ref().expect("rows land in the staging alone");
        let (batch, notes) = landing.gather(rows, pool, want.buffers, |slot, draft, row, told| {
            draft.batch_mut().put_row(row, staging, slot);
            told.append_row(row, &mut notes[slot]);
        })?;
        notes.give(batch).map(Some)
    }

    fn in_flight(&self) -> usize {
        self.envs.in_flight() + self.landing.len() + self.again.len()
    }

    fn save_slot(&mut self, slot: usize) -> Result<SlotState> {
        self.check_not_landed(&Slots::List(vec![slot]))?;
        let mut state = self.envs.save_slot(slot)?;
        self.keep(slot, &mut state)?;
        Ok(state)
    }

    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        self.check_not_landed(&Slots::List(vec![slot]))?;
        let (saved, below) = state.take_if(POLICY)?;
        self.envs.load_slot(slot, below)?;
        self.take_up(slot, saved.unwrap_or_default());
        Ok(())
    }

    fn save_all(&mut self) -> Result<VecEnvState> {
        check_idle(self, "save")?;
        let mut state = self.envs.save_all()?;
        for (slot, state) in state.slots_mut().iter_mut().enumerate() {
            self.keep(slot, state)?;
        }
        Ok(state)
    }

    fn load_all(&mut self, mut state: AllSections<'_>) -> Result<()> {
        check_idle(self, "load")?;
        let mut saved = Vec::with_capacity(state.slots.len());
        for slot in &mut state.slots {
            let (own, below) = slot.take_if(POLICY)?;
            saved.push(own.unwrap_or_default());
            *slot = below;
        }
        self.envs.load_all(state)?;
        saved.into_iter().enumerate().for_each(|(slot, saved)| self.take_up(slot, saved));
        Ok(())
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        self.check_not_landed(slots)?;
        self.envs.render(slots)
    }

    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        self.envs.call(slots, call)
    }

    fn allocations(&self) -> u64 {
        self.envs.allocations() + self.pool.allocations()
    }

    fn close(&mut self) -> Result<()> {
        self.landing.clear();
        self.again.clear();
        self.notes.fill_with(Notes::default);
        self.envs.close()
    }
}
