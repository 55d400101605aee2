//! A policy for CartPole that the tests and the example share.

use border_core::{Agent, Policy, ReplayBufferBase};
use corral_border::{Hosted, One};
use envcore::Discrete;
use envs::classic::CartPole;

/// Pushes towards the side to which the pole falls.
pub struct Balance;

impl Policy<Hosted<CartPole>> for Balance {
    fn sample(&mut self, obs: &One<[f32; 4]>) -> One<Discrete<2>> {
        let [_, _, angle, spin] = obs.0;
        One(Discrete(i64::from(angle + spin > 0.0)))
    }
}

impl<R: ReplayBufferBase> Agent<Hosted<CartPole>, R> for Balance {}
