//! The evaluation schedule.

use pyo3::prelude::*;

/// Gives each slot its next index, and every index once.
#[pyclass(module = "corral._native")]
pub(crate) struct Schedule(envcore::Schedule);

#[pymethods]
impl Schedule {
    #[new]
    fn new(indices: Vec<u64>) -> Self {
        Schedule(envcore::Schedule::new(indices))
    }

    /// The next index for `slot` to play, or None where the slot has nothing left to play.
    fn next(&mut self, slot: usize) -> Option<u64> {
        self.0.next(slot)
    }

    /// The index that `slot` plays.
    fn index(&self, slot: usize) -> Option<u64> {
        self.0.index(slot)
    }

    /// Notes the return and length of the episode that `slot` has finished.
    fn finish(&mut self, slot: usize, episode_return: f64, length: u64) {
        self.0.finish(slot, episode_return, length);
    }

    /// The slots that play an index, in order.
    fn active(&self) -> Vec<usize> {
        self.0.active()
    }

    /// How many indices have been played.
    fn finished(&self) -> usize {
        self.0.finished()
    }

    /// (return, length) in the order of the indices, once all indices are played.
    fn results(&self) -> Option<Vec<(f64, u64)>> {
        self.0.results()
    }
}
