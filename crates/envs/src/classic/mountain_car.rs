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

use std::ops::Range;

use envcore::rng::Streams;
use envcore::sines::{self, FAR};
use envcore::{
    ByField, Caps, Config, Discrete, Env, Frame, Leaf, Options, Record, Result, RowsMut, Space, Step,
    StepArgs, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::hills::{POSITIONS, draw};
use super::lanes::{self, BLOCK, EnvBlock, Lanes, Numbers};
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

/// Position and velocity after a step, and whether the goal is reached; `cos` is the cosine of three
/// times the position.
#[inline(always)]
fn drive(goal_velocity: f64, [position, velocity]: [f64; 2], action: i64, cos: f64) -> ([f64; 2], bool) {
    let push = if action == 0 { -FORCE } else { FORCE };
    let push = if action == 1 { 0.0 } else { push };
    let velocity = (velocity + (push + cos * -GRAVITY)).clamp(-MAX_SPEED, MAX_SPEED);
    let position = (position + velocity).clamp(POSITIONS.0, POSITIONS.1);
    let velocity = if (position == POSITIONS.0) & (velocity < 0.0) { 0.0 } else { velocity };
    ([position, velocity], (position >= GOAL) & (velocity >= goal_velocity))
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
        let cos = (3.0 * self.state[0]).cos();
        let (state, reached) = drive(self.goal_velocity, self.state, a.0, cos);
        self.state = state;
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

#[derive(Clone, Copy)]
struct MountainCarLanes {
    goal_velocity: f64,
}

impl Lanes<2, 2> for MountainCarLanes {
    type Action = i64;
    /// Angles, their cosines, and 1 where the goal was reached.
    type Between = (Numbers<3>, sines::Between<BLOCK>);

    #[inline(always)]
    fn step<const FUSED: bool>(
        &self,
        block: EnvBlock<'_, i64, 2, 2>,
        (Numbers([angle, cos, reached]), between): &mut Self::Between,
    ) -> bool {
        let EnvBlock { fields: [position, velocity], actions, observation, reward, terminated, ahead } =
            block;
        ahead.fetch::<0>();
        for i in 0..BLOCK {
            angle[i] = 3.0 * position[i];
        }
        if !lanes::are_near(angle, FAR) {
            return false;
        }
        ahead.fetch::<1>();
        sines::cosines::<FUSED, BLOCK>(angle, cos, between);
        ahead.fetch::<2>();
        for i in 0..BLOCK {
            let car = [position[i], velocity[i]];
            let (after, is_there) = drive(self.goal_velocity, car, actions[i], cos[i]);
            [position[i], velocity[i]] = after;
            reached[i] = if is_there { 1.0 } else { 0.0 };
        }
        ahead.fetch::<3>();
        lanes::show_two([position, velocity], reached, observation, terminated);
        reward.fill(-1.0);
        true
    }
}

impl ByField<2> for MountainCar {
    const FEWEST: usize = lanes::FEW;

    fn is_wanted(_config: &MountainCarConfig) -> bool {
        lanes::are_exact()
    }

    fn fields(&self) -> [f64; 2] {
        self.state
    }

    fn set_fields(&mut self, fields: [f64; 2]) {
        self.state = fields;
    }

    fn step_fields(
        config: &MountainCarConfig,
        fields: [&mut [f64]; 2],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        left: &mut Vec<Range<usize>>,
    ) {
        let lanes = MountainCarLanes { goal_velocity: config.goal_velocity };
        lanes::step(lanes, fields, slots, actions, rows, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::lanes::tests::compare;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_step_as_cars_alone(
            states in prop::collection::vec((prop_oneof![8 => -1.2..0.6, 1 => -1e7..1e7], -0.07..0.07), 80..90),
            pushes in prop::collection::vec(0i64..3, 90),
        ) {
            let states: Vec<[f64; 2]> = states.into_iter().map(<[f64; 2]>::from).collect();
            let lanes = MountainCarLanes { goal_velocity: 0.01 };
            let left = compare(lanes, &states, &pushes[..states.len()], |state, action, library| {
                let (state, reached) = drive(0.01, state, action, (library.cos)(3.0 * state[0]));
                (state, state.map(|v| v as f32), -1.0, reached)
            });
            prop_assert!(!left);
        }
    }
}
