//! Border's evaluator over CartPole: prints the mean return of the episodes of the indices
//! from 0 on.
//!
//! `cargo run --example evaluate -- 100`

use anyhow::{Context, Result};
use border_core::{Agent, DefaultEvaluator, Evaluator, NullReplayBuffer};
use corral_border::{Hosted, HostedConfig};
use envs::classic::CartPole;

#[path = "../tests/policy.rs"]
mod policy;

fn main() -> Result<()> {
    let episodes = std::env::args().nth(1).context("give the number of episodes")?.parse()?;
    let config = HostedConfig { max_episode_steps: 500, ..HostedConfig::default() };
    let mut evaluator = DefaultEvaluator::<Hosted<CartPole>>::new(&config, 0, episodes)?;
    let mut agent: Box<dyn Agent<Hosted<CartPole>, NullReplayBuffer>> = Box::new(policy::Balance);
    let (mean, _record) = evaluator.evaluate(&mut agent)?;
    println!("{mean}");
    Ok(())
}
