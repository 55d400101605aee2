//! The steps of a list of envs.

use std::cell::Cell;
use std::mem::needs_drop;

use super::EnvList;
use super::telling::{InfoLeaves, tell_events, tell_mask};
use crate::buffer::{RowsMut, StepColumns};
use crate::caps::Caps;
use crate::env::{Env, Step};
use crate::error::{Failure, Phase};
use crate::guard::{drop_guarded, guard};
use crate::leaves::{FromRow, ToRow};
use crate::record::Record;
use crate::simd::{self, Kernel};
use crate::source::{Side, StepArgs};

impl<E: Env> EnvList<E> {
    /// Steps `slots`, which ascend. Row i of `rows` belongs to the slot `first` + i.
    pub(crate) fn step_slots(
        &mut self,
        mut slots: &[usize],
        first: usize,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let few = actions.0.is_single() && rows.has_few_leaves();
        let at = Cell::new(first);
        // One guard is around the whole run. After a panic, the run continues with the next slot.
        while let Some(&slot) = slots.first() {
            at.set(slot);
            let run = guard(Phase::Step, || {
                simd::dispatch(PlaySlots { list: self, slots, first, at: &at, actions, rows, side, few });
            });
            let Err(failure) = run else { break };
            side.failures.push((at.get(), failure));
            self.lose(at.get());
            slots = &slots[slots.partition_point(|slot| *slot <= at.get())..];
        }
    }

    /// Steps `slots`, and notes in `at` whose turn it is; the rest is as for
    /// [`step_slots`](Self::step_slots). `FEW` says that actions have one leaf, and observations and infos
    /// few, which lets the compiler check all rows at once.
    #[inline(always)]
    fn play<const FEW: bool>(
        &mut self,
        slots: &[usize],
        first: usize,
        at: &Cell<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let leaves = InfoLeaves { space: &self.info, own: self.info_leaves };
        let reader = actions.0;
        // Only this call uses the columns' rows, and each row is written once.
        let (mut infos, columns) = rows.with_infos();
        let StepColumns { reward, terminated, truncated, mut observation } = columns;
        let n = reward.len();
        let (terminated, truncated) = (&mut terminated[..n], &mut truncated[..n]);
        for &slot in slots {
            at.set(slot);
            let place = &mut self.envs[slot];
            let row = slot - first;
            let env = place.as_mut().expect("runners step no slot that failed");
            let act = E::Act::read(&mut reader.row::<FEW>(slot));
            let mut take = |env: &mut E, step: &Step<E>, record: &mut Record| {
                let mut shown = observation.row::<FEW>(row);
                step.obs.write(&mut shown);
                let is_complete = shown.is_complete();
                reward[row] = step.reward;
                (terminated[row], truncated[row]) = (step.is_terminated, step.is_truncated);
                if leaves.own > 0 {
                    step.info.write(&mut infos.row::<FEW>(row));
                }
                if E::CAPS.contains(Caps::EVENTS) {
                    tell_events(env, infos.start() + row, side);
                }
                if E::CAPS.contains(Caps::ACTION_MASK) {
                    tell_mask(env, leaves.space, &mut infos.row::<FEW>(row));
                }
                // A row without fault is ready here. To take out its empty record takes longer than to write
                // most rows.
                if is_complete && record.is_empty() {
                    return None;
                }
                let record = std::mem::replace(record, Record::empty());
                let told = leaves.write_record(record, infos.reborrow(), row, side);
                shown.complete().and(told).err()
            };
            let error = if needs_drop::<E::Obs>() {
                // The whole result may be an error, too, and takes more code to drop than a step that was
                // moved out of it.
                match env.step(&act) {
                    Err(error) => Some(error),
                    Ok((step, mut record)) => take(env, &step, &mut record),
                }
            } else {
                // What a step gives stays where the env put it, because boards are large to move.
                match env.step(&act) {
                    Err(error) => Some(error),
                    Ok((ref step, ref mut record)) => take(env, step, record),
                }
            };
            let Some(error) = error else { continue };
            side.failures.push((slot, Failure::error(Phase::Step, error)));
            drop_guarded(place.take());
        }
    }
}

/// The step of some slots, which is compiled for CPUs with AVX2, too, so far as the env's own functions are
/// inlined.
struct PlaySlots<'a, 'rows, E: Env> {
    list: &'a mut EnvList<E>,
    slots: &'a [usize],
    first: usize,
    at: &'a Cell<usize>,
    actions: StepArgs<'a>,
    rows: &'a mut RowsMut<'rows>,
    side: &'a mut Side,
    few: bool,
}

impl<E: Env> Kernel for PlaySlots<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let PlaySlots { list, slots, first, at, actions, rows, side, few } = self;
        if few {
            list.play::<true>(slots, first, at, actions, rows, side);
        } else {
            list.play::<false>(slots, first, at, actions, rows, side);
        }
    }
}
