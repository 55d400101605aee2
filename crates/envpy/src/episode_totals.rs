//! Returns and lengths of the episodes of a batch of envs, for adapters that tell of them.

use envcore::Error;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::errors::to_py;

/// The numbers of the envs whose episodes ended, their returns and their lengths.
type EndedInStep<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>);

/// What the episodes under way have come to.
#[pyclass(module = "corral._native")]
pub(crate) struct EpisodeTotals {
    returns: Vec<f64>,
    /// By env, how many steps there were before its episode.
    before: Vec<i64>,
    steps: i64,
    // Of the episodes that ended in a step; kept for their memory.
    ended: Vec<i64>,
    ended_returns: Vec<f64>,
    lengths: Vec<i64>,
}

#[pymethods]
impl EpisodeTotals {
    #[new]
    fn new(num_envs: usize) -> Self {
        Self {
            returns: vec![0.0; num_envs],
            before: vec![0; num_envs],
            steps: 0,
            ended: Vec::with_capacity(num_envs),
            ended_returns: Vec::with_capacity(num_envs),
            lengths: Vec::with_capacity(num_envs),
        }
    }

    /// All episodes begin anew.
    fn begin(&mut self) {
        self.returns.fill(0.0);
        self.before.fill(self.steps);
    }

    /// Counts a step of every env. Where `over`, the episode ends with it, and the next one begins.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        rewards: PyReadonlyArray1<'py, f64>,
        over: PyReadonlyArray1<'py, bool>,
    ) -> PyResult<EndedInStep<'py>> {
        let (rewards, over) = (rewards.as_slice()?, over.as_slice()?);
        if rewards.len() != self.returns.len() || over.len() != self.returns.len() {
            let message = format!(
                "{} rewards and {} flags are not those of {} envs",
                rewards.len(),
                over.len(),
                self.returns.len()
            );
            return Err(to_py(py, Error::Argument(message)));
        }
        self.steps += 1;
        for (total, reward) in self.returns.iter_mut().zip(rewards) {
            *total += reward;
        }
        self.ended.clear();
        self.ended_returns.clear();
        self.lengths.clear();
        for (env, _) in over.iter().enumerate().filter(|(_, over)| **over) {
            self.ended.push(env as i64);
            self.ended_returns.push(std::mem::take(&mut self.returns[env]));
            self.lengths.push(self.steps - std::mem::replace(&mut self.before[env], self.steps));
        }
        Ok((
            PyArray1::from_slice(py, &self.ended),
            PyArray1::from_slice(py, &self.ended_returns),
            PyArray1::from_slice(py, &self.lengths),
        ))
    }
}
