//! The bound of each env that Gymnasium has too: a plain loop over a list of one
//! env type, which writes observations, rewards, flags, infos and masks as a vec
//! env does (NEXT_STEP), and nothing more.
//!
//! `bare_envs Taxi-v4 1024`: `corral bench` lets it and Python run in turns.

mod common;

use common::{take_turns, words};
use envcore::{Caps, Discrete, Env};
use envs::classic::{Acrobot, MountainCar, MountainCarContinuous, Pendulum};
use envs::toy_text::{Blackjack, CliffWalking, FrozenLake, Taxi};

/// Batches of actions that are prepared.
const PREPARED: usize = 64;

/// Envs with what an episode needs, and a batch, allocated once.
struct BareEnvs<E: Env> {
    envs: Vec<E>,
    limit: u64,
    age: Vec<u64>,
    over: Vec<bool>,
    observation: Vec<E::Obs>,
    info: Vec<Option<E::Info>>,
    masks: Vec<bool>,
    choices: usize,
    reward: Vec<f64>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

impl<E: Env> BareEnvs<E> {
    fn new(num_envs: usize, limit: Option<u64>, choices: usize) -> envcore::Result<Self> {
        let config = E::Config::default();
        let mut envs = (0..num_envs).map(|i| E::build(&config, i as i64)).collect::<Result<Vec<_>, _>>()?;
        Ok(BareEnvs {
            observation: envs.iter_mut().map(|env| env.reset(None)).collect::<Result<_, _>>()?,
            info: envs.iter().map(Env::info).collect(),
            envs,
            limit: limit.unwrap_or(u64::MAX),
            age: vec![0; num_envs],
            over: vec![false; num_envs],
            masks: vec![false; num_envs * choices],
            choices,
            reward: vec![0.0; num_envs],
            terminated: vec![false; num_envs],
            truncated: vec![false; num_envs],
        })
    }

    /// One step of every env, or its reset after an end.
    fn step(&mut self, actions: &[E::Act]) -> envcore::Result<()> {
        for (slot, (env, action)) in self.envs.iter_mut().zip(actions).enumerate() {
            if self.over[slot] {
                self.observation[slot] = env.reset(None)?;
                self.info[slot] = env.info();
                self.reward[slot] = 0.0;
                (self.terminated[slot], self.truncated[slot]) = (false, false);
                (self.age[slot], self.over[slot]) = (0, false);
            } else {
                let (step, _) = env.step(action)?;
                self.age[slot] += 1;
                self.observation[slot] = step.obs;
                self.info[slot] = Some(step.info);
                self.reward[slot] = step.reward;
                self.terminated[slot] = step.is_terminated;
                self.truncated[slot] = step.is_truncated || self.age[slot] >= self.limit;
                self.over[slot] = self.terminated[slot] || self.truncated[slot];
            }
            if E::CAPS.contains(Caps::ACTION_MASK) {
                let mask = &mut self.masks[slot * self.choices..][..self.choices];
                mask.fill(true);
                env.action_mask(mask);
            }
        }
        std::hint::black_box(self);
        Ok(())
    }
}

/// Plays `E` as `id` is registered, with actions made of random words.
fn play<E: Env>(
    id: &str,
    num_envs: usize,
    choices: usize,
    action: fn(u64) -> E::Act,
) -> Result<(), Box<dyn std::error::Error>> {
    let limit = envs::find(id)?.max_episode_steps;
    let mut envs = BareEnvs::<E>::new(num_envs, limit, choices)?;
    let mut word = words();
    let actions: Vec<Vec<E::Act>> =
        (0..PREPARED).map(|_| (0..num_envs).map(|_| action(word())).collect()).collect();
    take_turns(|| {
        actions.iter().try_for_each(|batch| envs.step(batch))?;
        Ok(num_envs * PREPARED)
    })
}

fn choice<const N: u64>(word: u64) -> Discrete<N> {
    Discrete((word % N) as i64)
}

/// A force from -1 to 1.
fn force(word: u64) -> [f32; 1] {
    [(word % 2001) as f32 / 1000.0 - 1.0]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [id, num_envs] = &arguments[..] else { return Err("usage: bare_envs ID NUM_ENVS".into()) };
    let n = num_envs.parse()?;
    match id.as_str() {
        "Pendulum-v1" => play::<Pendulum>(id, n, 0, |word| force(word).map(|force| 2.0 * force)),
        "MountainCar-v0" => play::<MountainCar>(id, n, 3, choice),
        "MountainCarContinuous-v0" => play::<MountainCarContinuous>(id, n, 0, force),
        "Acrobot-v1" => play::<Acrobot>(id, n, 3, choice),
        "FrozenLake-v1" => play::<FrozenLake<4>>(id, n, 4, choice),
        "FrozenLake8x8-v1" => play::<FrozenLake<8>>(id, n, 4, choice),
        "CliffWalking-v1" => play::<CliffWalking<false>>(id, n, 4, choice),
        "CliffWalkingSlippery-v1" => play::<CliffWalking<true>>(id, n, 4, choice),
        "Taxi-v4" => play::<Taxi>(id, n, 6, choice),
        "Blackjack-v1" => play::<Blackjack>(id, n, 2, choice),
        other => Err(format!("{other} is none of the envs that Gymnasium has too").into()),
    }
}
