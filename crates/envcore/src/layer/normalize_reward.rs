//! Rewards scaled so that discounted returns have variance 1, by running
//! statistics.
//!
//! As in Gymnasium's `NormalizeReward`, each slot keeps a discounted return,
//! `return · gamma + reward`. After a step into a terminal state the return is that
//! step's reward alone. The variance of the returns of all slots runs over all
//! batches. A reward is divided by `sqrt(var + 1e-8)`, with statistics that already
//! include the reward's batch. Returns are `float64`; Gymnasium keeps `float32`.
//!
//! Two faults of Gymnasium's are avoided. In Gymnasium a masked reset forgets the returns of
//! slots that play on; in this layer a slot's return is forgotten when its own episode ends or
//! the slot is reset. In NEXT_STEP, Gymnasium adds the return of an ended episode to
//! that of the next; this layer does not. Rows that are not steps (resets, kept and failed
//! rows) have no reward and are not counted.
//!
//! Rewards are changed in place. The episode statistics
//! (`VecConfig::episode_statistics`) use the rewards that the env gave.

use crate::buffer::{Batch, Fixed};
use crate::error::{Error, Result};
use crate::layer::moments::{EPSILON, Moments, Statistics};
use crate::layer::{Layer, Shows, Transform, rows_of};
use crate::vec_config::AutoresetMode;
use crate::vec_env::{Spec, VecEnv};

/// Scales rewards; see the module.
pub struct NormalizeReward {
    mode: AutoresetMode,
    gamma: f64,
    returns: Vec<f64>,
    /// Scratch: the returns of the rows that are steps.
    new: Vec<f64>,
    statistics: Statistics,
}

impl NormalizeReward {
    /// Scales the rewards of `envs`. The handle is on the statistics of the return, as
    /// one leaf with one element.
    ///
    /// # Errors
    /// [`Error::Argument`] for a gamma that is not from 0 to 1.
    pub fn over(envs: Box<dyn VecEnv>, gamma: f64) -> Result<(Layer<Self>, Statistics)> {
        if !(0.0..=1.0).contains(&gamma) {
            return Err(Error::Argument(format!("the reward's gamma is {gamma}: it must be from 0 to 1")));
        }
        let statistics = Statistics::new([Some(1)].into_iter())?;
        let spec = envs.spec();
        let transform = NormalizeReward {
            mode: spec.autoreset,
            gamma,
            returns: vec![0.0; spec.num_slots],
            new: Vec::new(),
            statistics: statistics.clone(),
        };
        Ok((Layer::new(envs, transform)?, statistics))
    }
}

impl Transform for NormalizeReward {
    type Slot = f64;
    type Shared = Vec<Option<Moments>>;

    fn describe(&self) -> String {
        format!("normalize_reward, gamma={:?}", self.gamma)
    }

    fn spec(&self, spec: &Spec) -> Spec {
        spec.clone()
    }

    fn apply(&mut self, batch: &mut Batch, _fresh: &mut [Option<Fixed>], _finals: &mut [Option<Fixed>]) {
        self.new.clear();
        let rewards = batch.reward.as_slice::<f64>();
        for (row, of) in rows_of(batch, self.mode).enumerate() {
            let sum = &mut self.returns[of.slot];
            if of.stepped {
                let kept = if of.terminated { 0.0 } else { 1.0 };
                *sum = *sum * self.gamma * kept + rewards[row];
                self.new.push(*sum);
            }
            if of.over || matches!(of.shows, Shows::First | Shows::Nothing) {
                *sum = 0.0;
            }
        }
        let new = &self.new;
        let scale = self.statistics.visit(|updates, leaves| {
            let Some(Some(moments)) = leaves.first_mut() else { return 1.0 };
            if updates {
                moments.update(new.chunks_exact(1));
            }
            (moments.var[0] + EPSILON).sqrt()
        });
        // A row that is not a step has reward 0, which stays 0.
        batch.reward.as_mut_slice::<f64>().iter_mut().for_each(|reward| *reward /= scale);
    }

    fn slot(&self, slot: usize) -> f64 {
        self.returns[slot]
    }

    fn check_slot(&self, _saved: &f64) -> Result<()> {
        Ok(())
    }

    fn set_slot(&mut self, slot: usize, saved: f64) {
        self.returns[slot] = saved;
    }

    fn shared(&self) -> Self::Shared {
        self.statistics.moments()
    }

    fn check_shared(&self, saved: &Self::Shared) -> Result<()> {
        self.statistics.check(saved)
    }

    fn set_shared(&mut self, saved: Self::Shared) {
        self.statistics.put(saved);
    }
}
