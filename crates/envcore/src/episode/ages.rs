//! How many steps each slot's episode is old, and who reaches the time limit.
//!
//! Slots mostly step all together: then one clock ticks, and nobody's own number
//! is touched. Who reaches the limit when is known beforehand, so a step looks
//! at the slots only where one may.

use std::ops::Range;

/// More steps than anyone plays, and so few that sums of them do not overflow.
const MOST: u64 = 1 << 61;

pub(super) struct Ages {
    /// Steps of all slots together, from a number on that no age exceeds.
    clock: u64,
    /// The clock, less each slot's age.
    born: Vec<u64>,
    /// `None` for no limit.
    limit: Option<u64>,
    /// Before the clock shows this, nobody (else) reaches the limit.
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

    /// Makes it `age`.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, age: u64) {
        let age = age.min(MOST);
        self.born[slot] = self.clock - age;
        if let Some(limit) = self.limit {
            self.soonest = self.soonest.min(self.clock + limit.saturating_sub(age));
        }
    }

    /// Makes each of `slots` a step older; whether any may be at the limit now.
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

    /// Whether `slot` is at the limit.
    pub(super) fn is_at_limit(&self, slot: usize) -> bool {
        self.limit.is_some_and(|limit| self.of(slot) >= limit)
    }

    /// After a step of all: finds out who is next, those at the limit apart.
    pub(super) fn look_ahead(&mut self) {
        let Some(limit) = self.limit else { return };
        let left = (0..self.born.len()).map(|slot| limit.saturating_sub(self.of(slot)));
        let next = left.filter(|left| *left > 0).min();
        self.soonest = self.clock + next.unwrap_or(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a count per slot.
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
                for (slot, &count) in counts.iter().enumerate() {
                    prop_assert_eq!(ages.of(slot), count);
                    prop_assert_eq!(ages.is_at_limit(slot), count >= limit);
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
