//! Returns and lengths of the episodes of a batch of envs, for adapters that tell of them.

use envcore::{Error, where_true};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::errors::to_py;

/// The rewards in float32; which envs' episodes ended; the numbers of these envs, their returns and
/// their lengths.
type CountedStep<'py> = (
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<i64>>,
);

/// What the episodes under way have come to.
#[pyclass(module = "corral._native")]
pub(crate) struct EpisodeTotals {
    returns: Vec<f64>,
    /// By env, how many steps there were before its episode.
    before: Vec<i64>,
    steps: i64,
    // The rewards of a step, whose episodes ended in it, and what these came to; kept for their
    // memory.
    rewards: Vec<f32>,
    over: Vec<bool>,
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
            rewards: vec![0.0; num_envs],
            over: vec![false; num_envs],
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

    /// Counts a step of every env; all arrays are `(num_envs,)`. Where an env terminated or was
    /// truncated, the episode ends with the step, and the next one begins. Returns the rewards in
    /// float32 and whose episodes ended, `(num_envs,)`; and of the k episodes that ended the envs'
    /// numbers, the returns and the lengths in steps, `(k,)`.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        rewards: PyReadonlyArray1<'py, f64>,
        terminations: PyReadonlyArray1<'py, bool>,
        truncations: PyReadonlyArray1<'py, bool>,
    ) -> PyResult<CountedStep<'py>> {
        let num_envs = self.returns.len();
        let (rewards, terminated, truncated) =
            (rewards.as_slice()?, terminations.as_slice()?, truncations.as_slice()?);
        if [rewards.len(), terminated.len(), truncated.len()] != [num_envs; 3] {
            let message = format!(
                "{} rewards, {} terminations and {} truncations are not those of {num_envs} envs",
                rewards.len(),
                terminated.len(),
                truncated.len(),
            );
            return Err(to_py(py, Error::Argument(message)));
        }
        for (over, (ended, cut)) in self.over.iter_mut().zip(terminated.iter().zip(truncated)) {
            *over = ended | cut;
        }
        self.steps += 1;
        for ((total, narrow), reward) in self.returns.iter_mut().zip(&mut self.rewards).zip(rewards) {
            *total += reward;
            *narrow = *reward as f32;
        }
        self.ended.clear();
        self.ended_returns.clear();
        self.lengths.clear();
        for env in where_true(&self.over) {
            self.ended.push(env as i64);
            self.ended_returns.push(std::mem::take(&mut self.returns[env]));
            self.lengths.push(self.steps - std::mem::replace(&mut self.before[env], self.steps));
        }
        Ok((
            PyArray1::from_slice(py, &self.rewards),
            PyArray1::from_slice(py, &self.over),
            PyArray1::from_slice(py, &self.ended),
            PyArray1::from_slice(py, &self.ended_returns),
            PyArray1::from_slice(py, &self.lengths),
        ))
    }
}
