//! Pendulum-v1: swing a pendulum up and hold it upright.
//!
//! The dynamics are those of Gymnasium 1.4's
//! `gymnasium/envs/classic_control/pendulum.py`, operation by operation, in
//! float64 and, where NumPy 2 computes with the float32 action, in float32. So
//! from the same seed the same trajectory comes out, bit for bit, wherever
//! NumPy's sin and cos are libm's. Rewards agree to 1e-15 of their size: the
//! squares of the angle and of the speed are products here, and libm's `pow` there.
//!
//! Observation: `float32[3]`: cosine and sine of the angle (0 is upright,
//! positive is counter-clockwise), angular velocity (rad/s). Action:
//! `float32[1]`, the torque (N m), clipped to ±2. Reward: minus (angle² + 0.1
//! velocity² + 0.001 torque²), of the state before the step, the angle from −π to
//! π. Terminated: never. Index ix is the episode of seed ix.
//!
//! Reset options: `x_init` and `y_init`, the largest angle and the largest speed at
//! the start (π and 1).
//!
//! Versions: v1 is Gymnasium's, which has simplified v0's equations and changed
//! nothing else.

use std::f32::consts::TAU as TURN;
use std::f64::consts::{PI, TAU};
use std::hint::black_box;
use std::ops::Range;

use envcore::rng::Streams;
use envcore::sines::{self, squares::squares_f32};
use envcore::{
    ByField, Caps, Config, Env, Error, Frame, Leaf, Options, Record, Result, RowsMut, Space, Step, StepArgs,
    state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::lanes::{self, BLOCK, EnvBlock, Lanes, Numbers};
use super::start;
use crate::canvas::{BLACK, Canvas, WHITE};

const MAX_SPEED: f64 = 8.0;
const MAX_TORQUE: f32 = 2.0;
/// Seconds between steps.
const DT: f64 = 0.05;
/// The largest angle and speed at the start, unless asked otherwise.
const START: (f64, f64) = (PI, 1.0);

/// Pendulum's options.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct PendulumConfig {
    /// The acceleration of gravity in m/s².
    pub g: f64,
}

impl Default for PendulumConfig {
    fn default() -> Self {
        PendulumConfig { g: 10.0 }
    }
}

/// The environment; see the module. The rod is 1 m long and weighs 1 kg.
#[derive(Clone, Serialize, Deserialize)]
pub struct Pendulum {
    g: f64,
    streams: Streams,
    /// Angle and angular velocity.
    state: [f64; 2],
    /// The largest angle and speed at the start.
    start: (f64, f64),
    /// The last torque, for pictures.
    torque: f32,
}

#[inline(always)]
fn clipped(torque: f32) -> f32 {
    torque.clamp(-MAX_TORQUE, MAX_TORQUE)
}

/// What a step costs, by the torque's square.
#[inline(always)]
fn cost(angle: f64, speed: f64, torque_squared: f32) -> f64 {
    angle * angle + 0.1 * (speed * speed) + f64::from(0.001f32 * torque_squared)
}

/// Angle and angular velocity after a step; `sin` is the angle's sine.
#[inline(always)]
fn swing(g: f64, [theta, speed]: [f64; 2], torque: f32, sin: f64) -> [f64; 2] {
    let pull = 3.0 * g / 2.0 * sin;
    let speed = (speed + (pull + f64::from(3.0 * torque)) * DT).clamp(-MAX_SPEED, MAX_SPEED);
    [theta + speed * DT, speed]
}

impl Pendulum {
    fn observation(&self) -> [f32; 3] {
        let [theta, speed] = self.state;
        [theta.cos() as f32, theta.sin() as f32, speed as f32]
    }

    fn begin(&mut self) -> [f32; 3] {
        let (angle, speed) = self.start;
        let rng = self.streams.rng();
        self.state = [rng.uniform(-angle, angle), rng.uniform(-speed, speed)];
        self.torque = 0.0;
        self.observation()
    }
}

impl Env for Pendulum {
    type Config = PendulumConfig;
    type Obs = [f32; 3];
    type Act = [f32; 1];
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::OPTIONS).union(Caps::BRIEF);

    fn build(config: &PendulumConfig, seed: i64) -> Result<Self> {
        let streams = Streams::new(seed);
        Ok(Pendulum { g: config.g, streams, state: [0.0; 2], start: START, torque: 0.0 })
    }

    fn observation_space(_config: &PendulumConfig) -> Result<Space> {
        let high = [1.0, 1.0, MAX_SPEED as f32];
        Ok(Leaf::real::<f32>(&[3]).bounded_by(&high.map(|h| -h), &high).into())
    }

    fn action_space(_config: &PendulumConfig) -> Result<Space> {
        Ok(Leaf::real::<f32>(&[1]).bounded(-MAX_TORQUE, MAX_TORQUE).into())
    }

    #[inline]
    fn step(&mut self, a: &[f32; 1]) -> Result<(Step<Self>, Record)> {
        let torque = clipped(a[0]);
        let [theta, speed] = self.state;
        // libm's float32 pow is not the product in the last bit. The compiler makes a product
        // of a pow whose exponent it knows.
        let angle = (theta + PI).rem_euclid(TAU) - PI;
        let cost = cost(angle, speed, torque.powf(black_box(2.0)));
        self.state = swing(self.g, self.state, torque, theta.sin());
        self.torque = torque;
        Ok((Step::new(*a, self.observation(), -cost, ()), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<[f32; 3]> {
        if !wants_reset(is_done)? {
            return Ok(self.observation());
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<[f32; 3]> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn reseed(&mut self, _config: &PendulumConfig, seed: i64) -> Result<()> {
        (self.streams, self.start) = (Streams::new(seed), START);
        Ok(())
    }

    /// `x_init` and `y_init`: the largest angle and speed at the start.
    fn set_options(&mut self, options: &Options) -> Result<()> {
        let start = start::numbers("Pendulum-v1", ["x_init", "y_init"], self.start, options)?;
        for (name, most) in [("x_init", start.0), ("y_init", start.1)] {
            if most < 0.0 || !(2.0 * most).is_finite() {
                return Err(Error::OptionValue(format!(
                    "Pendulum-v1: reset option '{name}' is {most}: starts are drawn from -{name} to {name}, \
                     so it is not negative, and half the largest float at most"
                )));
            }
        }
        self.start = start;
        Ok(())
    }

    fn render(&mut self) -> Result<Frame> {
        draw(self.state[0] as f32, self.torque)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        *self = state::from_bytes(bytes)?;
        Ok(())
    }
}

/// Angles below this stay in the range of the formulas for a step.
const FAR: f64 = 1e7;

/// `value.rem_euclid(TAU)` of a value below 10⁸ in magnitude, without a branch. A remainder is
/// exact, and so is a fused multiply-add whose result is a float.
#[inline(always)]
fn turned(value: f64) -> f64 {
    let size = value.abs();
    let whole = (size * (1.0 / TAU)).floor();
    // The product is rounded, and may be beyond a whole number.
    let whole = if (-whole).mul_add(TAU, size) < 0.0 { whole - 1.0 } else { whole };
    let whole = if (-whole).mul_add(TAU, size) >= TAU { whole + 1.0 } else { whole };
    let rest = (-whole).mul_add(TAU, size).copysign(value);
    if rest < 0.0 { rest + TAU } else { rest }
}

#[derive(Clone, Copy)]
struct PendulumLanes {
    g: f64,
}

impl Lanes<3, 3> for PendulumLanes {
    type Action = f32;
    /// Sines and cosines; pushes and their squares.
    type Between = (Numbers<2>, Numbers<2, f32>, sines::Between<BLOCK>);

    #[inline(always)]
    fn step<const FUSED: bool>(
        &self,
        block: EnvBlock<'_, f32, 3, 3>,
        (Numbers([sin, cos]), Numbers([pushes, efforts]), between): &mut Self::Between,
    ) -> bool {
        let EnvBlock { fields: [theta, speed, torque], actions, observation, reward, terminated, ahead } =
            block;
        let are_numbers = actions.iter().fold(true, |all, action| all & !action.is_nan());
        if !(lanes::are_near(theta, FAR) & are_numbers) {
            return false;
        }
        ahead.fetch::<0>();
        sines::sines::<FUSED, BLOCK>(theta, sin, between);
        ahead.fetch::<1>();
        for i in 0..BLOCK {
            pushes[i] = clipped(actions[i]);
        }
        squares_f32(pushes, efforts);
        ahead.fetch::<2>();
        for i in 0..BLOCK {
            reward[i] = -cost(turned(theta[i] + PI) - PI, speed[i], efforts[i]);
            torque[i] = pushes[i].into();
            [theta[i], speed[i]] = swing(self.g, [theta[i], speed[i]], pushes[i], sin[i]);
        }
        terminated.fill(false);
        ahead.fetch::<3>();
        sines::sines_and_cosines::<FUSED, BLOCK>(theta, sin, cos, between);
        for i in 0..BLOCK {
            observation[i] = [cos[i] as f32, sin[i] as f32, speed[i] as f32];
        }
        true
    }
}

impl ByField<3> for Pendulum {
    const FEWEST: usize = lanes::FEW;

    /// With other gravities a speed may become a NaN, which the kernel does not expect.
    fn is_wanted(config: &PendulumConfig) -> bool {
        lanes::are_exact() && config.g.abs() < 1e6
    }

    fn fields(&self) -> [f64; 3] {
        let [theta, speed] = self.state;
        [theta, speed, self.torque.into()]
    }

    fn set_fields(&mut self, [theta, speed, torque]: [f64; 3]) {
        (self.state, self.torque) = ([theta, speed], torque as f32);
    }

    fn step_fields(
        config: &PendulumConfig,
        fields: [&mut [f64]; 3],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        left: &mut Vec<Range<usize>>,
    ) {
        lanes::step(PendulumLanes { g: config.g }, fields, slots, actions, rows, left);
    }
}

const SIDE: u32 = 500;
const ROD: [u8; 3] = [204, 77, 77];

/// The scene in Gymnasium's proportions: 4.4 m across, the axle in the middle. An arrow around the
/// axle is the torque, and grows with it.
fn draw(theta: f32, torque: f32) -> Result<Frame> {
    let mut canvas = Canvas::new(SIDE, SIDE, WHITE)?;
    let (scale, middle) = (SIDE as f32 / 4.4, SIDE as f32 / 2.0);
    let half_width = 0.1 * scale;
    canvas.turned(middle, middle, -theta, |canvas| {
        canvas.rect(-half_width, -scale, 2.0 * half_width, scale, ROD);
        canvas.circle(0.0, 0.0, half_width, ROD);
        canvas.circle(0.0, -scale, half_width, ROD);
    });
    canvas.moved(middle, middle, |canvas| draw_torque(canvas, torque, scale * torque.abs() / 4.0));
    canvas.circle(middle, middle, 0.05 * scale, BLACK);
    canvas.frame()
}

/// Three quarters of a circle around the origin, with a head at the end.
fn draw_torque(canvas: &mut Canvas, torque: f32, radius: f32) {
    // Counter-clockwise is positive, and y goes down.
    let way = -torque.signum();
    let at = |turn: f32, radius: f32| {
        let angle = way * turn * TURN;
        (radius * angle.sin(), -radius * angle.cos())
    };
    let arc: Vec<(f32, f32)> = (0..=30).map(|k| at(-0.3 + 0.65 * k as f32 / 30.0, radius)).collect();
    canvas.line(&arc, radius / 14.0, BLACK);
    canvas.polygon(&[at(0.34, 0.8 * radius), at(0.34, 1.2 * radius), at(0.43, radius)], BLACK);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::lanes::tests::compare;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_step_as_pendulums_alone(
            states in prop::collection::vec((prop_oneof![-100.0..100.0, -9e6..9e6], -8.0..8.0), 80..90),
            actions in prop::collection::vec(prop_oneof![4 => -2.0f32..2.0, 1 => -3.0f32..3.0, 1 => Just(0.0)], 90),
        ) {
            let states: Vec<[f64; 3]> = states.into_iter().map(|(theta, speed)| [theta, speed, 0.0]).collect();
            let lanes = PendulumLanes { g: 9.81 };
            let left = compare(lanes, &states, &actions[..states.len()], |[theta, speed, _], action, library| {
                let torque = clipped(action);
                let angle = (theta + PI).rem_euclid(TAU) - PI;
                let cost = cost(angle, speed, torque.powf(black_box(2.0)));
                let [theta, speed] = swing(9.81, [theta, speed], torque, (library.sin)(theta));
                let observation = [(library.cos)(theta) as f32, (library.sin)(theta) as f32, speed as f32];
                ([theta, speed, torque.into()], observation, -cost, false)
            });
            prop_assert!(!left);
        }

        #[test]
        fn turns_are_taken_off_as_by_a_remainder(turns in -1_000i32..1_000, ulps in -3i64..4, any in -9e7..9e7) {
            let whole = f64::from(turns) * TAU;
            let beside = f64::from_bits((whole.to_bits() as i64 + ulps).max(0) as u64);
            for value in [whole, beside, any] {
                prop_assert_eq!(turned(value).to_bits(), value.rem_euclid(TAU).to_bits(), "{}", value);
            }
        }
    }
}
