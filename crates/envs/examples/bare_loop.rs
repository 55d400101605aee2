//! The bounds that the runners are measured against: a plain loop over a list of
//! one env type, or over its kernel, which writes the same batch as a vec env
//! does, and nothing more.
//!
//! `bare_loop CartPole-v1 4096` (or `CartPole-v1-lanes`, by the kernel; or
//! `CartPole-v1-libenv` and `CartPole-v1-lanes-libenv`: what a host of libenv is
//! shown, which resets in the same step): `corral bench` lets it and Python run in
//! turns.

mod common;

use common::{take_turns, words};
use envcore::{ByField, Env, Fields, simd};
use envs::classic::lanes::Columns;
use envs::classic::{CartLanes, CartPole, CartPoleConfig};

const LIMIT: u32 = 500;
/// Batches of actions that are prepared.
const PREPARED: usize = 64;

/// A batch, allocated once.
struct Batch {
    observation: Vec<[f32; 4]>,
    reward: Vec<f64>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

/// Envs with what an episode needs: its age, and whether it is over.
struct Envs {
    envs: Vec<CartPole>,
    /// For the kernel, the envs' state.
    fields: Fields<4>,
    age: Vec<u32>,
    over: Vec<bool>,
    batch: Batch,
    shown: Shown,
}

impl Envs {
    fn new(num_envs: usize) -> envcore::Result<Self> {
        let config = CartPoleConfig::default();
        let mut envs =
            (0..num_envs).map(|i| CartPole::build(&config, i as i64)).collect::<Result<Vec<_>, _>>()?;
        let observation = envs.iter_mut().map(|env| env.reset(None)).collect::<Result<_, _>>()?;
        let mut fields = Fields::new(num_envs);
        envs.iter().enumerate().for_each(|(slot, env)| fields.set(slot, env.fields()));
        Ok(Envs {
            envs,
            fields,
            age: vec![0; num_envs],
            over: vec![false; num_envs],
            batch: Batch {
                observation,
                reward: vec![0.0; num_envs],
                terminated: vec![false; num_envs],
                truncated: vec![false; num_envs],
            },
            shown: Shown::new(num_envs),
        })
    }

    /// One step of every env, or its reset after an end (NEXT_STEP).
    fn step(&mut self, actions: &[i64]) -> envcore::Result<()> {
        let batch = &mut self.batch;
        for (slot, (env, &action)) in self.envs.iter_mut().zip(actions).enumerate() {
            if self.over[slot] {
                batch.observation[slot] = env.reset(None)?;
                batch.reward[slot] = 0.0;
                (batch.terminated[slot], batch.truncated[slot]) = (false, false);
                (self.age[slot], self.over[slot]) = (0, false);
                continue;
            }
            let (step, _) = env.step(&envcore::Discrete(action))?;
            self.age[slot] += 1;
            batch.observation[slot] = step.obs;
            batch.reward[slot] = step.reward;
            batch.terminated[slot] = step.is_terminated;
            batch.truncated[slot] = step.is_truncated || self.age[slot] >= LIMIT;
            self.over[slot] = batch.terminated[slot] || batch.truncated[slot];
        }
        std::hint::black_box(batch);
        Ok(())
    }
}

impl Envs {
    /// As `step`, by the kernel.
    fn step_lanes(&mut self, actions: &[i64]) -> envcore::Result<()> {
        let batch = &mut self.batch;
        simd::dispatch_wide(Columns::<CartLanes, 4, 4, true> {
            lanes: CartLanes { reward_of: [1.0, 1.0] },
            fields: self.fields.columns(0..actions.len()),
            actions,
            observation: batch.observation.as_flattened_mut(),
            reward: &mut batch.reward,
            terminated: &mut batch.terminated,
            truncated: &mut batch.truncated,
            left: &mut Vec::new(),
            next_flags: None,
        });
        for slot in 0..self.envs.len() {
            if self.over[slot] {
                batch.observation[slot] = self.envs[slot].reset(None)?;
                self.fields.set(slot, self.envs[slot].fields());
                batch.reward[slot] = 0.0;
                (batch.terminated[slot], batch.truncated[slot]) = (false, false);
                (self.age[slot], self.over[slot]) = (0, false);
                continue;
            }
            self.age[slot] += 1;
            batch.truncated[slot] = self.age[slot] >= LIMIT;
            self.over[slot] = batch.terminated[slot] | batch.truncated[slot];
        }
        std::hint::black_box(batch);
        Ok(())
    }
}

/// What a host of libenv is shown of CartPoles.
struct Shown {
    ob: Vec<[f32; 4]>,
    rew: Vec<f32>,
    first: Vec<u8>,
    terminated: Vec<u8>,
    truncated: Vec<u8>,
    episode_return: Vec<f32>,
    episode_length: Vec<i32>,
    final_obs: Vec<[f32; 4]>,
    /// So far in the episode.
    returns: Vec<f64>,
}

impl Shown {
    fn new(num_envs: usize) -> Self {
        Shown {
            ob: vec![[0.0; 4]; num_envs],
            rew: vec![0.0; num_envs],
            first: vec![0; num_envs],
            terminated: vec![0; num_envs],
            truncated: vec![0; num_envs],
            episode_return: vec![0.0; num_envs],
            episode_length: vec![0; num_envs],
            final_obs: vec![[0.0; 4]; num_envs],
            returns: vec![0.0; num_envs],
        }
    }
}

impl Envs {
    /// One step of every env, and its reset after an end (SAME_STEP).
    fn step_libenv(&mut self, actions: &[i64]) -> envcore::Result<()> {
        let shown = &mut self.shown;
        for (slot, (env, &action)) in self.envs.iter_mut().zip(actions).enumerate() {
            let (step, _) = env.step(&envcore::Discrete(action))?;
            self.age[slot] += 1;
            let terminated = step.is_terminated;
            let truncated = step.is_truncated || self.age[slot] >= LIMIT;
            shown.rew[slot] = step.reward as f32;
            shown.returns[slot] += step.reward;
            (shown.terminated[slot], shown.truncated[slot]) = (terminated.into(), truncated.into());
            let over = terminated || truncated;
            // What was told of an end is zeros again in the step after it.
            if std::mem::replace(&mut shown.first[slot], over.into()) != 0 {
                (shown.episode_return[slot], shown.episode_length[slot]) = (0.0, 0);
                shown.final_obs[slot] = [0.0; 4];
            }
            shown.ob[slot] = step.obs;
            if over {
                shown.final_obs[slot] = step.obs;
                shown.episode_return[slot] = std::mem::take(&mut shown.returns[slot]) as f32;
                shown.episode_length[slot] = std::mem::take(&mut self.age[slot]) as i32;
                shown.ob[slot] = env.reset(None)?;
            }
        }
        std::hint::black_box(shown);
        Ok(())
    }
}

impl Envs {
    /// As `step_libenv`, by the kernel.
    fn step_lanes_libenv(&mut self, actions: &[i64]) -> envcore::Result<()> {
        let (batch, shown) = (&mut self.batch, &mut self.shown);
        simd::dispatch_wide(Columns::<CartLanes, 4, 4, true> {
            lanes: CartLanes { reward_of: [1.0, 1.0] },
            fields: self.fields.columns(0..actions.len()),
            actions,
            observation: shown.ob.as_flattened_mut(),
            reward: &mut batch.reward,
            terminated: &mut batch.terminated,
            truncated: &mut batch.truncated,
            left: &mut Vec::new(),
            next_flags: None,
        });
        for slot in 0..self.envs.len() {
            self.age[slot] += 1;
            let (terminated, truncated) = (batch.terminated[slot], self.age[slot] >= LIMIT);
            shown.rew[slot] = batch.reward[slot] as f32;
            shown.returns[slot] += batch.reward[slot];
            (shown.terminated[slot], shown.truncated[slot]) = (terminated.into(), truncated.into());
            let over = terminated | truncated;
            if std::mem::replace(&mut shown.first[slot], over.into()) != 0 {
                (shown.episode_return[slot], shown.episode_length[slot]) = (0.0, 0);
                shown.final_obs[slot] = [0.0; 4];
            }
            if over {
                shown.final_obs[slot] = shown.ob[slot];
                shown.episode_return[slot] = std::mem::take(&mut shown.returns[slot]) as f32;
                shown.episode_length[slot] = std::mem::take(&mut self.age[slot]) as i32;
                shown.ob[slot] = self.envs[slot].reset(None)?;
                self.fields.set(slot, self.envs[slot].fields());
            }
        }
        std::hint::black_box(shown);
        Ok(())
    }
}

/// Random pushes.
fn prepared(num_envs: usize) -> Vec<Vec<i64>> {
    let mut word = words();
    (0..PREPARED).map(|_| (0..num_envs).map(|_| (word() & 1) as i64).collect()).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    type Play = fn(&mut Envs, &[i64]) -> envcore::Result<()>;
    let (step, num_envs) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["CartPole-v1", num_envs] => (Envs::step as Play, num_envs.parse()?),
        ["CartPole-v1-lanes", num_envs] => (Envs::step_lanes as Play, num_envs.parse()?),
        ["CartPole-v1-libenv", num_envs] => (Envs::step_libenv as Play, num_envs.parse()?),
        ["CartPole-v1-lanes-libenv", num_envs] => (Envs::step_lanes_libenv as Play, num_envs.parse()?),
        _ => return Err("usage: bare_loop CartPole-v1[-lanes][-libenv] NUM_ENVS".into()),
    };
    let (mut envs, actions) = (Envs::new(num_envs)?, prepared(num_envs));
    take_turns(|| {
        actions.iter().try_for_each(|batch| step(&mut envs, batch))?;
        Ok(num_envs * actions.len())
    })
}
