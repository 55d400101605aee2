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

use std::ops::Range;

use envcore::rng::Streams;
use envcore::sines::{self, FAR};
use envcore::{
    ByField, Caps, Config, Env, Frame, Leaf, Options, Record, Result, RowsMut, Space, Step, StepArgs, state,
    wants_reset,
};
use serde::{Deserialize, Serialize};

use super::hills::{POSITIONS, draw};
use super::lanes::{self, BLOCK, EnvBlock, Lanes, Numbers};
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

#[inline(always)]
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
}

/// The angle whose cosine tells how steep the hill is.
#[inline(always)]
fn angle(position: f64, is_start: bool) -> f64 {
    let angle = 3.0 * position;
    if is_start { angle } else { rounded(angle) }
}

/// Position and velocity after a step, and whether the goal is reached; `cos` is the cosine of
/// [`angle`]. Sums and products of float32 are those of float64, rounded once.
#[inline(always)]
fn drive(
    goal_velocity: f64,
    [position, velocity]: [f64; 2],
    is_start: bool,
    force: f32,
    cos: f64,
) -> ([f64; 2], bool) {
    let in_state = |value: f64| if is_start { value } else { rounded(value) };
    let pull = GRAVITY * cos;
    // A force that was clipped is a Python float in Gymnasium, another is a float32.
    let within = rounded(f64::from(force * POWER as f32) - rounded(pull));
    let clipped = f64::from(MAX_FORCE.copysign(force)) * POWER - pull;
    let change = if force.abs() <= MAX_FORCE { within } else { clipped };

    let velocity = in_state(velocity + in_state(change));
    let limit = in_state(MAX_SPEED);
    // The limit is a Python float, and is compared as one.
    let is_beyond = velocity.is_nan() | (velocity.abs() > limit);
    let velocity = if is_beyond { MAX_SPEED.copysign(velocity) } else { velocity };
    let (low, high) = (in_state(POSITIONS.0), in_state(POSITIONS.1));
    let position = in_state(position + in_state(velocity)).clamp(low, high);
    let is_stopped = (position == low) & (velocity < 0.0);
    let velocity = if is_stopped { 0.0 } else { velocity };
    let goal_velocity = if is_beyond | is_stopped { goal_velocity } else { in_state(goal_velocity) };
    let reached = (position >= in_state(GOAL)) & (velocity >= goal_velocity);
    ([rounded(position), rounded(velocity)], reached)
}

/// The reward of a step.
#[inline(always)]
fn reward_of(force: f32, reached: bool) -> f64 {
    let force = f64::from(force);
    (if reached { 100.0 } else { 0.0 }) - force * force * 0.1
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
        let cos = angle(self.state[0], self.is_start).cos();
        let (state, reached) = drive(self.goal_velocity, self.state, self.is_start, a[0], cos);
        (self.state, self.is_start) = (state, false);
        let step = Step::new(*a, self.observation(), reward_of(a[0], reached), ());
        Ok((step.terminated_if(reached), Record::empty()))
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

#[derive(Clone, Copy)]
struct ContinuousLanes {
    goal_velocity: f64,
}

impl Lanes<3, 2> for ContinuousLanes {
    type Action = f32;
    /// Angles, their cosines, and 1 where the goal was reached.
    type Between = (Numbers<3>, sines::Between<BLOCK>);

    #[inline(always)]
    fn step<const FUSED: bool>(
        &self,
        block: EnvBlock<'_, f32, 3, 2>,
        (Numbers([angles, cos, reached]), between): &mut Self::Between,
    ) -> bool {
        let EnvBlock {
            fields: [position, velocity, is_start],
            actions,
            observation,
            reward,
            terminated,
            ahead,
        } = block;
        ahead.fetch::<0>();
        for i in 0..BLOCK {
            angles[i] = angle(position[i], is_start[i] != 0.0);
        }
        if !lanes::are_near(angles, FAR) {
            return false;
        }
        ahead.fetch::<1>();
        sines::cosines::<FUSED, BLOCK>(angles, cos, between);
        ahead.fetch::<2>();
        // Most blocks have no car that starts, and are half the work.
        if is_start.iter().fold(false, |any, is_start| any | (*is_start != 0.0)) {
            drive_all::<true>(self.goal_velocity, [position, velocity], is_start, actions, cos, reached);
        } else {
            drive_all::<false>(self.goal_velocity, [position, velocity], is_start, actions, cos, reached);
        }
        is_start.fill(0.0);
        ahead.fetch::<3>();
        for i in 0..BLOCK {
            reward[i] = reward_of(actions[i], reached[i] != 0.0);
        }
        lanes::show_two([position, velocity], reached, observation, terminated);
        true
    }
}

/// Moves the cars of a block. Without `MAY_START` none of them starts.
#[inline(always)]
fn drive_all<const MAY_START: bool>(
    goal_velocity: f64,
    [position, velocity]: [&mut [f64; BLOCK]; 2],
    is_start: &[f64; BLOCK],
    forces: &[f32; BLOCK],
    cos: &[f64; BLOCK],
    reached: &mut [f64; BLOCK],
) {
    for i in 0..BLOCK {
        let (car, begins) = ([position[i], velocity[i]], MAY_START && is_start[i] != 0.0);
        let (after, is_there) = drive(goal_velocity, car, begins, forces[i], cos[i]);
        [position[i], velocity[i]] = after;
        reached[i] = if is_there { 1.0 } else { 0.0 };
    }
}

impl ByField<3> for MountainCarContinuous {
    const FEWEST: usize = lanes::FEW;

    fn is_wanted(_config: &MountainCarContinuousConfig) -> bool {
        lanes::are_exact()
    }

    fn fields(&self) -> [f64; 3] {
        let [position, velocity] = self.state;
        [position, velocity, self.is_start.into()]
    }

    fn set_fields(&mut self, [position, velocity, is_start]: [f64; 3]) {
        (self.state, self.is_start) = ([position, velocity], is_start != 0.0);
    }

    fn step_fields(
        config: &MountainCarContinuousConfig,
        fields: [&mut [f64]; 3],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        left: &mut Vec<Range<usize>>,
    ) {
        let lanes = ContinuousLanes { goal_velocity: config.goal_velocity };
        lanes::step(lanes, fields, slots, actions, rows, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::lanes::tests::compare;
    use proptest::prelude::*;

    /// Starts are float64, all other states float32.
    fn state() -> impl Strategy<Value = [f64; 3]> {
        let position = prop_oneof![8 => -1.2..0.6, 1 => Just(-1.2), 1 => -1e7..1e7];
        (position, -0.08..0.08, any::<bool>()).prop_map(|(position, velocity, is_start)| {
            if is_start { [position, velocity, 1.0] } else { [rounded(position), rounded(velocity), 0.0] }
        })
    }

    proptest! {
        #[test]
        fn blocks_step_as_cars_alone(
            states in prop::collection::vec(state(), 80..90),
            forces in prop::collection::vec(prop_oneof![4 => -1.0f32..1.0, 1 => -3.0f32..3.0, 1 => Just(1.0), 1 => Just(-1.0)], 90),
        ) {
            let lanes = ContinuousLanes { goal_velocity: 0.01 };
            let left = compare(lanes, &states, &forces[..states.len()], |[position, velocity, is_start], force, library| {
                let is_start = is_start != 0.0;
                let cos = (library.cos)(angle(position, is_start));
                let (after, reached) = drive(0.01, [position, velocity], is_start, force, cos);
                ([after[0], after[1], 0.0], after.map(|v| v as f32), reward_of(force, reached), reached)
            });
            prop_assert!(!left);
        }
    }
}
