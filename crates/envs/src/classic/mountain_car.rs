//! MountainCar-v0: drive a car out of a valley with an engine that is too weak
//! to climb the hill.
//!
//! The dynamics are those of Gymnasium 1.4's
//! `gymnasium/envs/classic_control/mountain_car.py` (after A. W. Moore's thesis,
//! 1990), operation by operation in float64, with libm's cos as there. So from
//! the same seed the same trajectory comes out, bit for bit.
//!
//! Observation: `float32[2]`: position (m), velocity (m per step). Action: 0
//! accelerates left, 1 not at all, 2 right. Reward: −1 per step, the last one
//! included. Terminated: position ≥ 0.5 at a velocity of `goal_velocity` or more.
//! Index ix is the episode of seed ix.
//!
//! Reset options: `low` and `high`, between which the position starts (−0.6 and −0.4).
//!
//! Versions: v0 is Gymnasium's, which has no other.

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Discrete, Env, Frame, Leaf, Options, Record, Result, Space, Step, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::hills::{POSITIONS, draw};
use super::start;

const MAX_SPEED: f64 = 0.07;
const GOAL: f64 = 0.5;
const FORCE: f64 = 0.001;
const GRAVITY: f64 = 0.0025;
/// Between which the position starts, unless asked otherwise.
const START: (f64, f64) = (-0.6, -0.4);

/// MountainCar's options.
#[derive(Clone, Debug, Default, PartialEq, Config)]
pub struct MountainCarConfig {
    /// The least velocity at which the goal counts as reached.
    pub goal_velocity: f64,
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct MountainCar {
    goal_velocity: f64,
    streams: Streams,
    /// Position and velocity.
    state: [f64; 2],
    /// Between which the position starts.
    start: (f64, f64),
}

impl MountainCar {
    fn observation(&self) -> [f32; 2] {
        self.state.map(|value| value as f32)
    }

    fn begin(&mut self) -> [f32; 2] {
        let (low, high) = self.start;
        self.state = [self.streams.rng().uniform(low, high), 0.0];
        self.observation()
    }
}

impl Env for MountainCar {
    type Config = MountainCarConfig;
    type Obs = [f32; 2];
    type Act = Discrete<3>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::OPTIONS).union(Caps::BRIEF);

    fn build(config: &MountainCarConfig, seed: i64) -> Result<Self> {
        let (goal_velocity, streams) = (config.goal_velocity, Streams::new(seed));
        Ok(MountainCar { goal_velocity, streams, state: [0.0; 2], start: START })
    }

    fn observation_space(_config: &MountainCarConfig) -> Result<Space> {
        let [low, high] = [[POSITIONS.0, -MAX_SPEED], [POSITIONS.1, MAX_SPEED]].map(|b| b.map(|v| v as f32));
        Ok(Leaf::real::<f32>(&[2]).bounded_by(&low, &high).into())
    }

    #[inline]
    fn step(&mut self, a: &Discrete<3>) -> Result<(Step<Self>, Record)> {
        let [position, velocity] = self.state;
        let change = (a.0 - 1) as f64 * FORCE + (3.0 * position).cos() * -GRAVITY;
        let mut velocity = (velocity + change).clamp(-MAX_SPEED, MAX_SPEED);
        let position = (position + velocity).clamp(POSITIONS.0, POSITIONS.1);
        if position == POSITIONS.0 && velocity < 0.0 {
            velocity = 0.0;
        }
        self.state = [position, velocity];
        let reached = position >= GOAL && velocity >= self.goal_velocity;
        Ok((Step::new(*a, self.observation(), -1.0, ()).terminated_if(reached), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<[f32; 2]> {
        if !wants_reset(is_done)? {
            return Ok(self.observation());
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<[f32; 2]> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn reseed(&mut self, _config: &MountainCarConfig, seed: i64) -> Result<()> {
        (self.streams, self.start) = (Streams::new(seed), START);
        Ok(())
    }

    /// `low` and `high`: between which the position starts.
    fn set_options(&mut self, options: &Options) -> Result<()> {
        self.start = start::bounds("MountainCar-v0", self.start, options)?;
        Ok(())
    }

    fn render(&mut self) -> Result<Frame> {
        draw(self.state[0], GOAL)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        *self = state::from_bytes(bytes)?;
        Ok(())
    }
}
