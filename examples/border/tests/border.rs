//! Border's own sampler and evaluator run Corral's CartPole.

use anyhow::Result;
use border_core::{
    Agent, DefaultEvaluator, Env as _, Evaluator, ExperienceBufferBase, NullReplayBuffer, ReplayBufferBase, Sampler,
    Step, StepProcessor,
};
use corral_border::{Hosted, HostedConfig, One};
use envcore::Env as _;
use envs::classic::{CartPole, CartPoleConfig};

mod policy;

use policy::Balance;

type Cart = Hosted<CartPole>;

fn limited(max_episode_steps: u64) -> HostedConfig<CartPoleConfig> {
    HostedConfig { max_episode_steps, ..HostedConfig::default() }
}

/// What a step of the sampler became.
#[derive(Clone, Debug, PartialEq)]
struct Transition {
    before: [f32; 4],
    after: [f32; 4],
    reward: f32,
    is_done: bool,
}

/// Makes transitions of steps.
#[derive(Default)]
struct Pairs {
    before: [f32; 4],
}

impl StepProcessor<Cart> for Pairs {
    type Config = ();
    type Output = Transition;

    fn build((): &()) -> Self {
        Pairs::default()
    }

    fn reset(&mut self, init_obs: One<[f32; 4]>) {
        self.before = init_obs.0;
    }

    fn process(&mut self, step: Step<Cart>) -> Transition {
        let is_done = step.is_done();
        let before = std::mem::replace(&mut self.before, step.obs.0);
        Transition { before, after: step.obs.0, reward: step.reward[0], is_done }
    }
}

/// Keeps all that the sampler pushes.
#[derive(Default)]
struct Kept(Vec<Transition>);

impl ExperienceBufferBase for Kept {
    type Item = Transition;

    fn push(&mut self, transition: Transition) -> Result<()> {
        self.0.push(transition);
        Ok(())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl ReplayBufferBase for Kept {
    type Config = ();
    type Batch = ();

    fn build((): &()) -> Self {
        Kept::default()
    }

    fn batch(&mut self, _size: usize) -> Result<()> {
        Ok(())
    }

    fn update_priority(&mut self, _ixs: &Option<Vec<usize>>, _errors: &Option<Vec<f32>>) {}
}

#[test]
fn the_sampler_sees_the_steps_that_the_env_makes_by_itself() -> Result<()> {
    const LIMIT: u64 = 30;
    let mut sampler = Sampler::new(Cart::build(&limited(LIMIT), 7)?, Pairs::default());
    let mut agent: Box<dyn Agent<Cart, Kept>> = Box::new(Balance);
    let mut kept = Kept::default();
    for _ in 0..1000 {
        sampler.sample_and_push(&mut agent, &mut kept)?;
    }

    let mut env = CartPole::build(&CartPoleConfig::default(), 7)?;
    let (mut before, mut steps) = (env.reset(None)?, 0);
    let mut expected = Vec::new();
    for _ in 0..1000 {
        let action = border_core::Policy::sample(&mut Balance, &One(before)).0;
        let (step, _) = env.step(&action)?;
        steps += 1;
        let is_done = step.is_done() || steps == LIMIT;
        expected.push(Transition { before, after: step.obs, reward: step.reward as f32, is_done });
        before = step.obs;
        if is_done {
            (before, steps) = (env.reset(None)?, 0);
        }
    }
    assert!(expected.iter().filter(|transition| transition.is_done).count() > 20);
    assert_eq!(kept.0, expected);
    Ok(())
}

#[test]
fn the_evaluator_plays_the_episodes_of_the_indices() -> Result<()> {
    const EPISODES: usize = 50;
    let mut evaluator = DefaultEvaluator::<Cart>::new(&limited(500), 3, EPISODES)?;
    let mut agent: Box<dyn Agent<Cart, NullReplayBuffer>> = Box::new(Balance);
    let (mean, _) = evaluator.evaluate(&mut agent)?;

    // Another seed: what an index plays does not depend on it.
    let mut env = CartPole::build(&CartPoleConfig::default(), 99)?;
    let mut total = 0.0;
    for ix in 0..EPISODES {
        let mut seen = env.reset_with_index(ix)?;
        for _ in 0..500 {
            let action = border_core::Policy::sample(&mut Balance, &One(seen)).0;
            let (step, _) = env.step(&action)?;
            total += step.reward;
            if step.is_done() {
                break;
            }
            seen = step.obs;
        }
    }
    assert_eq!(f64::from(mean), f64::from((total / EPISODES as f64) as f32));
    Ok(())
}

#[test]
fn an_observation_does_not_begin_an_episode_anew() -> Result<()> {
    let mut env = Cart::build(&limited(2), 0)?;
    env.reset(None)?;
    let push = One(envcore::Discrete(1));
    assert!(!env.step(&push).0.is_done());
    env.reset(Some(&vec![0]))?;
    let (step, _) = env.step(&push);
    assert_eq!((&step.is_terminated, &step.is_truncated), (&vec![0], &vec![1]));
    assert!(env.reset(Some(&vec![1, 1])).is_err());
    Ok(())
}
