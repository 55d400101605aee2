//! The age of each slot's episode in steps, and which slots reach the time limit.
//!
//! Slots mostly step all together. Then a common clock ticks, and no slot's own number
//! changes. It is known in advance when the next slot may reach the limit, so a step
//! checks the slots only where one may have reached it.

use std::ops::Range;

use super::Status;
use crate::simd::{self, Kernel};

/// More steps than an episode can have, and so few that sums of them do not overflow.
const MOST: u64 = 1 << 61;

pub(super) struct Ages {
    /// The count of steps of all slots, which starts at a number greater than any age.
    clock: u64,
    /// By slot, the clock less the slot's age.
    born: Vec<u64>,
    /// The time limit in steps; `None` for no limit.
    limit: Option<u64>,
    /// The clock's value before which no slot newly reaches the limit.
    soonest: u64,
}

impl Ages {
    pub(super) fn new(slots: usize, limit: u64) -> Self {
        let clock = 2 * MOST;
        let limit = Some(limit).filter(|limit| *limit < MOST);
        let soonest = limit.map_or(u64::MAX, |limit| clock + limit);
        Ages { clock, born: vec![clock; slots], limit, soonest }
    }

    /// The age of `slot`'s episode, in steps.
    #[inline]
    pub(super) fn of(&self, slot: usize) -> u64 {
        self.clock - self.born[slot]
    }

    /// Sets the age of `slot`'s episode.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, age: u64) {
        let age = age.min(MOST);
        self.born[slot] = self.clock - age;
        if let Some(limit) = self.limit {
            self.soonest = self.soonest.min(self.clock + limit.saturating_sub(age));
        }
    }

    /// The columns of `slots` for a pass that begins episodes: by slot, what stands for the age, and
    /// what stands for age 0.
    pub(super) fn beginning(&mut self, slots: Range<usize>) -> (&mut [u64], u64) {
        if let Some(limit) = self.limit {
            self.soonest = self.soonest.min(self.clock + limit);
        }
        (&mut self.born[slots], self.clock)
    }

    /// Makes each of `slots` a step older. Returns whether any of them may have reached
    /// the limit.
    #[inline]
    pub(super) fn advance(&mut self, slots: Range<usize>) -> bool {
        if slots.len() == self.born.len() {
            self.clock += 1;
            return self.clock >= self.soonest;
        }
        let mut oldest = 0;
        for slot in slots {
            self.born[slot] -= 1;
            oldest = oldest.max(self.of(slot));
        }
        let Some(limit) = self.limit else { return false };
        self.soonest = self.soonest.min(self.clock + limit.saturating_sub(oldest));
        oldest >= limit
    }

    /// Sets `truncated` for those of `slots` that played the step and have reached the limit.
    pub(super) fn truncate(
        &self,
        slots: Range<usize>,
        status: &[Status],
        pending: &[bool],
        truncated: &mut [bool],
    ) {
        let Some(limit) = self.limit else { return };
        simd::dispatch(Truncate {
            // Whoever was born by then has reached the limit.
            latest: self.clock - limit,
            born: &self.born[slots.clone()],
            status: &status[slots.clone()],
            pending: &pending[slots],
            truncated,
        });
    }

    /// Finds when the next slot reaches the limit, after a step of all slots. Slots that
    /// have reached it do not count.
    pub(super) fn look_ahead(&mut self) {
        let Some(limit) = self.limit else { return };
        let latest = self.clock - limit;
        self.soonest = simd::dispatch(NextBorn { latest, born: &self.born }).saturating_add(limit);
    }
}

struct Truncate<'a> {
    latest: u64,
    born: &'a [u64],
    status: &'a [Status],
    pending: &'a [bool],
    truncated: &'a mut [bool],
}

impl Kernel for Truncate<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.born.len();
        let (status, pending) = (&self.status[..n], &self.pending[..n]);
        let truncated = &mut self.truncated[..n];
        for row in 0..n {
            let played = (status[row] == Status::Running) & !pending[row];
            truncated[row] |= played & (self.born[row] <= self.latest);
        }
    }
}

/// The least number of `born` after `latest`; [`u64::MAX`] where there is none.
struct NextBorn<'a> {
    latest: u64,
    born: &'a [u64],
}

impl Kernel for NextBorn<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let after = |born: &u64| if *born > self.latest { *born } else { u64::MAX };
        self.born.iter().map(after).fold(u64::MAX, u64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the ages with a count per slot.
        #[test]
        fn whoever_reaches_the_limit_is_noticed_in_that_step(
            limit in 1u64..6,
            calls in prop::collection::vec((0usize..5, 0usize..5, any::<bool>()), 1..60),
        ) {
            let (mut ages, mut counts) = (Ages::new(5, limit), [0u64; 5]);
            for (a, b, whole) in calls {
                let slots = if whole { 0..5 } else { a.min(b)..a.max(b) };
                let noticed = ages.advance(slots.clone());
                counts[slots.clone()].iter_mut().for_each(|count| *count += 1);
                let late: Vec<usize> = slots.filter(|slot| counts[*slot] >= limit).collect();
                prop_assert!(noticed || late.is_empty());
                let mut truncated = [false; 5];
                let waits = [false, false, true, false, false];
                ages.truncate(0..5, &[Status::Running; 5], &waits, &mut truncated);
                for (slot, &count) in counts.iter().enumerate() {
                    prop_assert_eq!(ages.of(slot), count);
                    prop_assert_eq!(truncated[slot], count >= limit && !waits[slot]);
                }
                if noticed && whole {
                    ages.look_ahead();
                }
                for slot in late {
                    ages.set(slot, 0);
                    counts[slot] = 0;
                }
            }
        }
    }
}
