//! The serial runner, which does all work on the caller's thread, in order.
//!
//! `send` checks and stores actions; `recv` does the work. Slots come back in the
//! order in which they were sent. Every other runner gives the same bytes as this one.

#![allow(unsafe_code)]

use super::base::{JobQueue, RunnerBase, check_resets, reset_jobs};
use super::slot_group::SlotGroup;
use crate::begin::Begin;
use crate::buffer::{Actions, Batch, BatchPool, ColumnIn, Draft, Slots};
use crate::call::Call;
use crate::episode::Episodes;
use crate::error::{Error, Result};
use crate::fork::ProcessLocal;
use crate::frame::Frame;
use crate::saved::{Sections, SlotState};
use crate::source::Source;
use crate::space::{Options, Value};
use crate::vec_config::VecConfig;
use crate::vec_env::{Spec, VecEnv, Want};

/// Steps every slot on the caller's thread.
pub struct Serial {
    base: RunnerBase,
    group: ProcessLocal<SlotGroup>,
    queue: JobQueue,
    pool: BatchPool,
    actions: Actions,
}

impl Serial {
    /// A vec env of `config.num_slots` slots of `source`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a count or seed that makes no sense,
    /// [`Error::Slots`] for envs that cannot be built, [`Error::Unsupported`].
    pub fn new(source: &dyn Source, config: VecConfig) -> Result<Self> {
        let (base, rules, seeds) = RunnerBase::new(source, &config)?;
        let spec = &base.spec;
        let actions = Actions::new(&spec.id, &spec.action, spec.num_slots, config.action_bounds)?;
        Ok(Serial {
            group: ProcessLocal::new(SlotGroup::new(Episodes::new(source, &rules, 0, &seeds)?, 0)),
            queue: JobQueue::default(),
            pool: base.pool(&rules)?,
            actions,
            base,
        })
    }
}

impl Serial {
    /// Does all work of the group and writes the rows to `draft`.
    ///
    /// # Errors
    /// Where the work was broken off; see [`VecEnv::recv`].
    fn work(&mut self, draft: Draft) -> Result<Box<Batch>> {
        let group = &mut *self.group;
        let now = group.episodes.now();
        // SAFETY: the draft is new and lives until the work is done, and nobody else uses it.
        unsafe { group.work(&self.actions, draft.window(), false, false, now) };
        let batch = self.pool.finish(draft);
        std::mem::take(&mut group.notes).give(batch)
    }
}

impl VecEnv for Serial {
    fn spec(&self) -> &Spec {
        &self.base.spec
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.base.check_together(slots, Some(begin))?;
        let each = slots.iter(self.base.spec.num_slots).zip(begin.iter().copied());
        check_resets(&mut self.group.episodes, each, options, &mut self.base.tried)
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.base.check_together(slots, None)?;
        let episodes = &self.group.episodes;
        match slots {
            Slots::All => episodes.lives().check_steps()?,
            Slots::List(list) => list.iter().try_for_each(|&slot| episodes.lives().check_step(slot))?,
        }
        self.actions.store(slots, actions, episodes.lives().pending())
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        self.base.tried.forget();
        self.queue.resets(reset_jobs(slots, begin, options, self.base.spec.num_slots));
        self.base.depart(slots);
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.base.check_slots(slots)?;
        self.base.check_one_each(slots, begin)?;
        let episodes = &mut self.group.episodes;
        let each = || slots.iter(self.base.spec.num_slots).zip(begin);
        each().try_for_each(|(slot, &begin)| episodes.lives().check_next(slot, begin))?;
        each().for_each(|(slot, &begin)| episodes.set_next(slot, begin));
        Ok(())
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_send(slots, actions)?;
        self.queue.steps(slots, self.base.spec.num_slots);
        self.base.depart(slots);
        Ok(())
    }

    fn recv(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        self.base.check_open()?;
        let (_, rows) = want.rows(self.base.in_flight())?;
        let slots = self.queue.next(rows, self.base.spec.num_slots);
        let draft = self.pool.draft(slots, rows, want.buffers)?;
        self.queue.take(rows, |run| self.group.runs.push(run));
        self.base.arrive(draft.slots());
        self.work(draft).map(Some)
    }

    fn in_flight(&self) -> usize {
        self.base.in_flight()
    }

    fn save_slot(&mut self, slot: usize) -> Result<SlotState> {
        self.base.check_slots(&Slots::List(vec![slot]))?;
        self.group.episodes.save(slot)
    }

    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        self.base.check_slots(&Slots::List(vec![slot]))?;
        self.group.episodes.load(slot, state)
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        self.base.check_slots(slots)?;
        slots.iter(self.base.spec.num_slots).map(|slot| self.group.episodes.render(slot)).collect()
    }

    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        self.base.check_slots(slots)?;
        slots.iter(self.base.spec.num_slots).map(|slot| self.group.episodes.call(slot, call)).collect()
    }

    fn allocations(&self) -> u64 {
        self.pool.allocations()
    }

    fn close(&mut self) -> Result<()> {
        if !self.base.close() {
            return Ok(());
        }
        self.queue.clear();
        let failures = self.group.episodes.close();
        if failures.is_empty() { Ok(()) } else { Err(Error::Slots(failures)) }
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
