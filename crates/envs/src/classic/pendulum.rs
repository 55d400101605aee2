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

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Env, Error, Frame, Leaf, Options, Record, Result, Space, Step, state, wants_reset,
};
use serde::{Deserialize, Serialize};

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
        let torque = a[0].clamp(-MAX_TORQUE, MAX_TORQUE);
        let [theta, speed] = self.state;
        let angle = (theta + PI).rem_euclid(TAU) - PI;
        // libm's float32 pow is not the product in the last bit. The compiler makes a product
        // of a pow whose exponent it knows.
        let effort = f64::from(0.001f32 * torque.powf(black_box(2.0)));
        let cost = angle * angle + 0.1 * (speed * speed) + effort;

        let pull = 3.0 * self.g / 2.0 * theta.sin();
        let speed = (speed + (pull + f64::from(3.0 * torque)) * DT).clamp(-MAX_SPEED, MAX_SPEED);
        self.state = [theta + speed * DT, speed];
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
