//! Layers over a vec env: frame stack and normalisation.

use envcore::{FrameStack, MaskedActions, Moments, NormalizeObservation, NormalizeReward};
use pyo3::prelude::*;

use crate::errors::OrRaise;

/// The layers that the user has asked for.
pub(crate) struct Layers {
    /// Whether actions that the env's mask forbids are refused.
    pub(crate) masked_actions: bool,
    pub(crate) frame_stack: Option<usize>,
    pub(crate) normalize_observation: bool,
    pub(crate) normalize_reward: bool,
    /// The discount of the returns that rewards are scaled by.
    pub(crate) reward_gamma: f64,
}

/// The layers that a vec env has, with handles on their statistics.
#[derive(Default)]
pub(crate) struct Layered {
    pub(crate) frame_stack: Option<usize>,
    pub(crate) observation: Option<envcore::Statistics>,
    pub(crate) reward: Option<envcore::Statistics>,
}

impl Layers {
    /// Puts `envs` under these layers. Frames are normalised before they are stacked, so each
    /// frame is normalised and counted once.
    pub(crate) fn over(
        &self,
        mut envs: Box<dyn envcore::VecEnv>,
    ) -> envcore::Result<(Box<dyn envcore::VecEnv>, Layered)> {
        let mut layered = Layered { frame_stack: self.frame_stack, ..Layered::default() };
        if self.masked_actions {
            envs = Box::new(MaskedActions::over(envs)?);
        }
        if self.normalize_reward {
            let (layer, handle) = NormalizeReward::over(envs, self.reward_gamma)?;
            (envs, layered.reward) = (Box::new(layer), Some(handle));
        }
        if self.normalize_observation {
            let (layer, handle) = NormalizeObservation::over(envs)?;
            (envs, layered.observation) = (Box::new(layer), Some(handle));
        }
        if let Some(k) = self.frame_stack {
            envs = Box::new(FrameStack::over(envs, k)?);
        }
        Ok((envs, layered))
    }
}

/// The count, the means and the variances of a leaf.
type Plain = (f64, Vec<f64>, Vec<f64>);

/// Running statistics, shared with the vec env that uses them.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct Statistics(pub(crate) envcore::Statistics);

#[pymethods]
impl Statistics {
    /// Whether batches update the statistics.
    #[getter]
    fn updates(&self) -> bool {
        self.0.updates()
    }

    #[setter]
    fn set_updates(&self, value: bool) {
        self.0.set_updates(value);
    }

    /// The count, the means and the variances of each leaf; None for leaves without statistics.
    #[getter]
    fn moments(&self) -> Vec<Option<Plain>> {
        let plain = |Moments { count, mean, var }| (count, mean, var);
        self.0.moments().into_iter().map(|moments| moments.map(plain)).collect()
    }

    /// Sets values that `moments` returned, for this or other statistics.
    fn set_moments(&self, py: Python<'_>, moments: Vec<Option<Plain>>) -> PyResult<()> {
        let moments_of = |(count, mean, var)| Moments { count, mean, var };
        let moments = moments.into_iter().map(|plain| plain.map(moments_of)).collect();
        self.0.set_moments(moments).or_raise(py)
    }
}
