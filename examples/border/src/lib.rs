//! Corral's envs as environments of [Border](border_core).
//!
//! `Hosted<CartPole>` is a [`border_core::Env`]. Border's trait and Corral's have the same
//! methods; what differs is in the documentation of [`envcore::Env`]. Border has no time
//! limit of its own, so [`HostedConfig`] has one.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::fmt::Debug;

use anyhow::Result;
use border_core::record::{Record, RecordValue};
use border_core::{Act, Env, Info, Obs, Step};
use envcore::Value;

/// An observation, an action or an info of a Corral env, as Border's traits want it: each is
/// of one env.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct One<T>(pub T);

impl<T: Clone + Debug> Obs for One<T> {
    fn len(&self) -> usize {
        1
    }
}

impl<T: Clone + Debug> Act for One<T> {
    fn len(&self) -> usize {
        1
    }
}

impl<T> Info for One<T> {}

/// What a [`Hosted`] env is built from.
#[derive(Clone, Debug, Default)]
pub struct HostedConfig<C> {
    /// The env's own config.
    pub env: C,
    /// The number of steps after which an episode is truncated; 0 for no limit.
    pub max_episode_steps: u64,
}

/// A Corral env under Border's trait.
pub struct Hosted<E: envcore::Env> {
    env: E,
    max_episode_steps: u64,
    steps: u64,
}

impl<E> Env for Hosted<E>
where
    E: envcore::Env<Obs: Clone + Debug, Act: Debug>,
{
    type Config = HostedConfig<E::Config>;
    type Obs = One<E::Obs>;
    type Act = One<E::Act>;
    type Info = One<E::Info>;

    /// # Errors
    /// What the env's own `build` reports.
    fn build(config: &Self::Config, seed: i64) -> Result<Self> {
        let env = E::build(&config.env, seed)?;
        Ok(Hosted { env, max_episode_steps: config.max_episode_steps, steps: 0 })
    }

    /// The reward is rounded to `f32`, which is Border's type.
    ///
    /// # Panics
    /// Where the env fails: Border's `step` has no place for an error.
    fn step(&mut self, a: &Self::Act) -> (Step<Self>, Record) {
        let (step, record) = match self.env.step(&a.0) {
            Ok(stepped) => stepped,
            Err(error) => panic!("the env failed in a step: {error}"),
        };
        self.steps += 1;
        let is_late = self.max_episode_steps > 0 && self.steps >= self.max_episode_steps;
        let step = Step::new(
            One(step.obs),
            One(step.act),
            vec![step.reward as f32],
            vec![i8::from(step.is_terminated)],
            vec![i8::from(step.is_truncated || is_late)],
            One(step.info),
            None,
        );
        (step, recorded(&record))
    }

    /// # Errors
    /// What the env's own `reset` reports; it takes `None`, `[1]` and `[0]`.
    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Self::Obs> {
        let observation = self.env.reset(is_done)?;
        if envcore::wants_reset(is_done)? {
            self.steps = 0;
        }
        Ok(One(observation))
    }

    /// # Errors
    /// What the env's own `reset_with_index` reports.
    fn reset_with_index(&mut self, ix: usize) -> Result<Self::Obs> {
        let observation = self.env.reset_with_index(ix)?;
        self.steps = 0;
        Ok(One(observation))
    }
}

/// A record's numbers and texts. Border's records have no place for other values.
fn recorded(record: &envcore::Record) -> Record {
    let mut all = Record::empty();
    for (key, value) in record.iter() {
        let value = match value {
            Value::Bool(value) => RecordValue::Scalar(f32::from(u8::from(*value))),
            Value::Int(value) => RecordValue::Scalar(*value as f32),
            Value::Float(value) => RecordValue::Scalar(*value as f32),
            Value::Text(text) => RecordValue::String(text.clone()),
            _ => continue,
        };
        all.insert(key, value);
    }
    all
}
