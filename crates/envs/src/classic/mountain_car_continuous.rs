//! MountainCarContinuous-v0: MountainCar with an engine that takes any force.
//!
//! The dynamics are those of Gymnasium 1.4's
//! `gymnasium/envs/classic_control/continuous_mountain_car.py` (after A. W.
//! Moore's thesis, 1990), operation by operation, with libm's cos as there.
//! Gymnasium keeps the start in float64 and every later state in float32, so that
//! NumPy 2 computes an episode's first step in float64 and the others in float32.
//! So does this env, and from the same seed the same trajectory comes out, bit
//! for bit.
//!
//! Observation: `float32[2]`: position (m), velocity (m per step). Action:
//! `float32[1]`, the force, clipped to ±1. Reward: −0.1 force² per step, of the
//! force before it is clipped, and 100 for the goal. Terminated: position ≥ 0.45
//! at a velocity of `goal_velocity` or more. Index ix is the episode of seed ix.
//!
//! Reset options: `low` and `high`, between which the position starts (−0.6 and −0.4).
//!
//! Versions: v0 is Gymnasium's, which has no other.

use envcore::rng::Streams;
use envcore::{Caps, Config, Env, Frame, Leaf, Options, Record, Result, Space, Step, state, wants_reset};
use serde::{Deserialize, Serialize};

use super::hills::{POSITIONS, draw};
use super::start;

const MAX_SPEED: f64 = 0.07;
const MAX_FORCE: f32 = 1.0;
const GOAL: f64 = 0.45;
const POWER: f64 = 0.0015;
const GRAVITY: f64 = 0.0025;
/// Between which the position starts, unless asked otherwise.
const START: (f64, f64) = (-0.6, -0.4);

/// MountainCarContinuous's options.
#[derive(Clone, Debug, Default, PartialEq, Config)]
pub struct MountainCarContinuousConfig {
    /// The least velocity at which the goal counts as reached.
    pub goal_velocity: f64,
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct MountainCarContinuous {
    goal_velocity: f64,
    streams: Streams,
    /// Position and velocity.
    state: [f64; 2],
    /// Whether the state is a start, in float64.
    is_start: bool,
    /// Between which the position starts.
    start: (f64, f64),
}

fn rounded(value: f64) -> f64 {
    f64::from(value as f32)
}

impl MountainCarContinuous {
    fn observation(&self) -> [f32; 2] {
        self.state.map(|value| value as f32)
    }

    fn begin(&mut self) -> [f32; 2] {
        let (low, high) = self.start;
        self.state = [self.streams.rng().uniform(low, high), 0.0];
        self.is_start = true;
        self.observation()
    }

    /// Moves the car, and tells whether it has reached the goal. Sums and products of float32
    /// are those of float64, rounded once.
    fn drive(&mut self, force: f32) -> bool {
        let is_start = self.is_start;
        let in_state = |value: f64| if is_start { value } else { rounded(value) };
        let [position, velocity] = self.state;
        let pull = GRAVITY * in_state(3.0 * position).cos();
        // A force that was clipped is a Python float in Gymnasium, another is a float32.
        let change = if (-MAX_FORCE..=MAX_FORCE).contains(&force) {
            rounded(f64::from(force * POWER as f32) - rounded(pull))
        } else {
            f64::from(MAX_FORCE.copysign(force)) * POWER - pull
        };

        let mut velocity = in_state(velocity + in_state(change));
        let mut goal_velocity = in_state(self.goal_velocity);
        let limit = in_state(MAX_SPEED);
        if !(-limit..=limit).contains(&velocity) {
            // The limit is a Python float, and is compared as one.
            velocity = MAX_SPEED.copysign(velocity);
            goal_velocity = self.goal_velocity;
        }
        let (low, high) = (in_state(POSITIONS.0), in_state(POSITIONS.1));
        let position = in_state(position + in_state(velocity)).clamp(low, high);
        if position == low && velocity < 0.0 {
            velocity = 0.0;
            goal_velocity = self.goal_velocity;
        }
        self.state = [rounded(position), rounded(velocity)];
        self.is_start = false;
        position >= in_state(GOAL) && velocity >= goal_velocity
    }
}

impl Env for MountainCarContinuous {
    type Config = MountainCarContinuousConfig;
    type Obs = [f32; 2];
    type Act = [f32; 1];
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::OPTIONS).union(Caps::BRIEF);

    fn build(config: &MountainCarContinuousConfig, seed: i64) -> Result<Self> {
        let (goal_velocity, streams) = (config.goal_velocity, Streams::new(seed));
        Ok(MountainCarContinuous { goal_velocity, streams, state: [0.0; 2], is_start: true, start: START })
    }

    fn observation_space(_config: &MountainCarContinuousConfig) -> Result<Space> {
        let [low, high] = [[POSITIONS.0, -MAX_SPEED], [POSITIONS.1, MAX_SPEED]].map(|b| b.map(|v| v as f32));
        Ok(Leaf::real::<f32>(&[2]).bounded_by(&low, &high).into())
    }

    fn action_space(_config: &MountainCarContinuousConfig) -> Result<Space> {
        Ok(Leaf::real::<f32>(&[1]).bounded(-MAX_FORCE, MAX_FORCE).into())
    }

    #[inline]
    fn step(&mut self, a: &[f32; 1]) -> Result<(Step<Self>, Record)> {
        let reached = self.drive(a[0]);
        let force = f64::from(a[0]);
        let reward = if reached { 100.0 } else { 0.0 } - force * force * 0.1;
        Ok((Step::new(*a, self.observation(), reward, ()).terminated_if(reached), Record::empty()))
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

    fn reseed(&mut self, _config: &MountainCarContinuousConfig, seed: i64) -> Result<()> {
        (self.streams, self.start) = (Streams::new(seed), START);
        Ok(())
    }

    /// `low` and `high`: between which the position starts.
    fn set_options(&mut self, options: &Options) -> Result<()> {
        self.start = start::bounds("MountainCarContinuous-v0", self.start, options)?;
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
