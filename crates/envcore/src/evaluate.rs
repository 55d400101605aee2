//! Evaluation: the index that each slot plays next.

use std::collections::{BTreeMap, VecDeque};

/// Gives every index to a slot once.
///
/// The schedule only keeps records. Whoever drives the envs asks for a slot's next index
/// when its episode ends, and reports the result. Results come in the order in which the
/// indices were given, whichever slots played them.
#[derive(Clone, Debug)]
pub struct Schedule {
    waiting: VecDeque<usize>,
    indices: Vec<u64>,
    /// By slot, the position in `indices` of the index that the slot plays.
    playing: BTreeMap<usize, usize>,
    results: Vec<Option<(f64, u64)>>,
}

impl Schedule {
    /// A schedule of these indices.
    pub fn new(indices: Vec<u64>) -> Self {
        Schedule {
            waiting: (0..indices.len()).collect(),
            playing: BTreeMap::new(),
            results: vec![None; indices.len()],
            indices,
        }
    }

    /// The next index for `slot` to play, or `None` where the slot has nothing left to play.
    pub fn next(&mut self, slot: usize) -> Option<u64> {
        match self.waiting.pop_front() {
            Some(position) => self.playing.insert(slot, position),
            None => self.playing.remove(&slot),
        };
        self.index(slot)
    }

    /// The index that `slot` plays.
    pub fn index(&self, slot: usize) -> Option<u64> {
        self.playing.get(&slot).map(|&position| self.indices[position])
    }

    /// Notes the return and length of the episode that `slot` has finished.
    pub fn finish(&mut self, slot: usize, episode_return: f64, length: u64) {
        if let Some(position) = self.playing.remove(&slot) {
            self.results[position] = Some((episode_return, length));
        }
    }

    /// The slots that play an index, in order.
    pub fn active(&self) -> Vec<usize> {
        self.playing.keys().copied().collect()
    }

    /// How many indices have been played.
    pub fn finished(&self) -> usize {
        self.results.iter().filter(|result| result.is_some()).count()
    }

    /// The returns and lengths in the order of the indices, once all indices are played.
    pub fn results(&self) -> Option<Vec<(f64, u64)>> {
        self.results.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_index_is_played_once_and_results_keep_the_given_order(
            indices in prop::collection::vec(0u64..1000, 0..40),
            num_slots in 1usize..9,
            lengths in prop::collection::vec(1u64..7, 40),
        ) {
            let mut schedule = Schedule::new(indices.clone());
            let mut left: Vec<u64> = vec![0; num_slots];
            let mut started = 0;
            let mut begin = |schedule: &mut Schedule, left: &mut Vec<u64>, slot: usize| {
                if schedule.next(slot).is_some() {
                    left[slot] = lengths[started];
                    started += 1;
                }
            };
            (0..num_slots).for_each(|slot| begin(&mut schedule, &mut left, slot));
            while !schedule.active().is_empty() {
                for slot in schedule.active() {
                    left[slot] -= 1;
                    if left[slot] == 0 {
                        let index = schedule.index(slot).unwrap();
                        schedule.finish(slot, index as f64, 1);
                        begin(&mut schedule, &mut left, slot);
                    }
                }
            }
            let results = schedule.results().expect("all were played");
            let expected: Vec<(f64, u64)> = indices.iter().map(|&ix| (ix as f64, 1)).collect();
            prop_assert_eq!(results, expected);
            prop_assert_eq!(schedule.finished(), indices.len());
        }
    }
}
