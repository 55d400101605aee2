//! The age of each slot's episode in steps, and which slots reach the time limit.
//!
//! Slots mostly step all together. Then a common clock ticks, and no slot's own number
//! changes. It is known in advance when the next slot may reach the limit, so a step
//! checks the slots only where one may have reached it.

use std::ops::Range;

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

    /// Whether `slot` has reached the limit.
    pub(super) fn is_at_limit(&self, slot: usize) -> bool {
        self.limit.is_some_and(|limit| self.of(slot) >= limit)
    }

    /// Finds when the next slot reaches the limit, after a step of all slots. Slots that
    /// have reached it do not count.
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
