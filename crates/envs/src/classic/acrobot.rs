//! Acrobot-v1: swing the end of two hanging links above a line, by a motor
//! between the links.
//!
//! The dynamics are those of Gymnasium 1.4's
//! `gymnasium/envs/classic_control/acrobot.py` (after Sutton, 1996, and Sutton and
//! Barto's book; integrated by the classic Runge-Kutta method), operation by
//! operation in float64, with libm's sin, cos and pow as there. A start is
//! float32 and its observation is made by NumPy's float32 functions
//! (`numpy_f32.rs`). So from the same seed the same trajectory comes out, bit for
//! bit, wherever NumPy's float64 sin and cos are libm's.
//!
//! Observation: `float32[6]`: cosine and sine of the first link's angle (0 hangs
//! down), of the second's relative to the first, and both angular velocities
//! (rad/s). Action: a torque of −1, 0 or 1 N m on the joint. Reward: −1 per step,
//! 0 for the last one. Terminated: the end is more than 1 m above the fixed point.
//! Index ix is the episode of seed ix.
//!
//! Reset options: `low` and `high`, between which the four state variables start
//! (−0.1 and 0.1).
//!
//! Versions: v1 is Gymnasium's. Its v0 had a limit of 200 steps and showed angles
//! instead of their cosines and sines.

mod kernel;

use std::f64::consts::{FRAC_PI_2, PI, TAU};
use std::hint::black_box;

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Discrete, Env, Error, Frame, Leaf, Options, Record, Result, Space, Step, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::lanes::MathLibrary;
use super::{numpy_f32, start};
use crate::canvas::{BLACK, Canvas, WHITE};

const GRAVITY: f64 = 9.8;
/// The largest angular velocities of the two links.
const MAX_SPEEDS: [f64; 2] = [4.0 * PI, 9.0 * PI];
/// Between which each state variable starts, unless asked otherwise.
const START: (f64, f64) = (-0.1, 0.1);

/// Which equations of motion hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AcrobotEquations {
    /// Those of Sutton and Barto's book.
    #[default]
    Book,
    /// Those printed in the paper of 1996, which lack a term.
    Nips,
}

/// Acrobot's options.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct AcrobotConfig {
    /// The equations of motion: "book" or "nips".
    pub book_or_nips: AcrobotEquations,
    /// Seconds between steps.
    pub dt: f64,
    /// The largest random torque that every step adds.
    pub torque_noise_max: f64,
}

impl Default for AcrobotConfig {
    fn default() -> Self {
        AcrobotConfig { book_or_nips: AcrobotEquations::Book, dt: 0.2, torque_noise_max: 0.0 }
    }
}

/// The environment; see the module. Both links are 1 m long, weigh 1 kg and have a moment of
/// inertia of 1 kg m² around their middle.
#[derive(Clone, Serialize, Deserialize)]
pub struct Acrobot {
    equations: AcrobotEquations,
    dt: f64,
    noise: f64,
    streams: Streams,
    /// Both angles, then both angular velocities.
    state: [f64; 4],
    /// Whether the state is a start, in float32.
    is_start: bool,
    /// Between which each state variable starts.
    start: (f64, f64),
}

/// libm's square, which differs from the product in the last bit now and then. The compiler makes
/// a product of a pow whose exponent it knows.
fn square(value: f64) -> f64 {
    value.powf(black_box(2.0))
}

/// `value` less or more whole turns, from −π to π, turn by turn as Gymnasium. Angles beyond 10⁵
/// would take Gymnasium long, and are reduced at once.
fn wrap(mut value: f64) -> f64 {
    if value.abs() > 1e5 {
        value %= TAU;
    }
    while value > PI {
        value -= TAU;
    }
    while value < -PI {
        value += TAU;
    }
    value
}

#[inline(always)]
fn torque_of(action: i64) -> f64 {
    let torque = if action == 0 { -1.0 } else { 1.0 };
    if action == 1 { 0.0 } else { torque }
}

/// The equations' d1 and d2, by the second angle's cosine.
#[inline(always)]
fn inertia(cos2: f64) -> [f64; 2] {
    [0.25 + (1.25 + cos2) + 1.0 + 1.0, 0.25 + 0.5 * cos2 + 1.0]
}

/// Both angular accelerations. `cos1` and `cos12` are the cosines of the first angle and of both
/// angles' sum, less π/2; `squares` those of both speeds and of d2.
#[inline(always)]
fn accelerations(
    equations: AcrobotEquations,
    [speed1, speed2]: [f64; 2],
    torque: f64,
    [sin2, cos2, cos1]: [f64; 3],
    cos12: f64,
    [square1, square2, square_d2]: [f64; 3],
) -> [f64; 2] {
    let [d1, d2] = inertia(cos2);
    let phi2 = 0.5 * GRAVITY * cos12;
    let phi1 = -0.5 * square2 * sin2 - speed2 * speed1 * sin2 + 1.5 * GRAVITY * cos1 + phi2;
    let push = torque + d2 / d1 * phi1;
    let push = match equations {
        AcrobotEquations::Book => push - 0.5 * square1 * sin2,
        AcrobotEquations::Nips => push,
    };
    let acceleration2 = (push - phi2) / (1.25 - square_d2 / d1);
    [-(d2 * acceleration2 + phi1) / d1, acceleration2]
}

impl Acrobot {
    fn observation(&self) -> [f32; 6] {
        let [theta1, theta2, speed1, speed2] = self.state;
        let [cos1, sin1, cos2, sin2] = if self.is_start {
            let (theta1, theta2) = (theta1 as f32, theta2 as f32);
            use numpy_f32::{cos, sin};
            [cos(theta1), sin(theta1), cos(theta2), sin(theta2)]
        } else {
            [theta1.cos(), theta1.sin(), theta2.cos(), theta2.sin()].map(|value| value as f32)
        };
        [cos1, sin1, cos2, sin2, speed1 as f32, speed2 as f32]
    }

    fn begin(&mut self) -> [f32; 6] {
        let (low, high) = self.start;
        let state: [f64; 4] = self.streams.rng().uniform_array(low, high);
        self.state = state.map(|value| f64::from(value as f32));
        self.is_start = true;
        self.observation()
    }

    /// How fast each state variable changes at a state, under a torque.
    fn derivative(&self, state: [f64; 4], torque: f64, library: MathLibrary) -> [f64; 4] {
        let [theta1, theta2, speed1, speed2] = state;
        let cos2 = (library.cos)(theta2);
        let square1 = if self.equations == AcrobotEquations::Book { square(speed1) } else { 0.0 };
        let [acceleration1, acceleration2] = accelerations(
            self.equations,
            [speed1, speed2],
            torque,
            [(library.sin)(theta2), cos2, (library.cos)(theta1 - FRAC_PI_2)],
            (library.cos)(theta1 + theta2 - FRAC_PI_2),
            [square1, square(speed2), square(inertia(cos2)[1])],
        );
        [speed1, speed2, acceleration1, acceleration2]
    }

    /// Moves the links for `dt` seconds.
    fn swing(&mut self, torque: f64, library: MathLibrary) {
        let (from, dt) = (self.state, self.dt);
        let at = |slope: [f64; 4], time: f64| std::array::from_fn(|k| from[k] + time * slope[k]);
        let half = dt / 2.0;
        let k1 = self.derivative(from, torque, library);
        let k2 = self.derivative(at(k1, half), torque, library);
        let k3 = self.derivative(at(k2, half), torque, library);
        let k4 = self.derivative(at(k3, dt), torque, library);
        let slope = std::array::from_fn(|k| k1[k] + 2.0 * k2[k] + 2.0 * k3[k] + k4[k]);
        let [theta1, theta2, speed1, speed2] = at(slope, dt / 6.0);
        let [most1, most2] = MAX_SPEEDS;
        self.state = [wrap(theta1), wrap(theta2), speed1.clamp(-most1, most1), speed2.clamp(-most2, most2)];
        self.is_start = false;
    }

    fn is_above_the_line(&self) -> bool {
        let [theta1, theta2, ..] = self.state;
        -theta1.cos() - (theta2 + theta1).cos() > 1.0
    }
}

impl Env for Acrobot {
    type Config = AcrobotConfig;
    type Obs = [f32; 6];
    type Act = Discrete<3>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::OPTIONS).union(Caps::BRIEF);

    fn build(config: &AcrobotConfig, seed: i64) -> Result<Self> {
        let &AcrobotConfig { book_or_nips, dt, torque_noise_max: noise } = config;
        if !(2.0 * noise).is_finite() {
            let why = format!("Acrobot-v1: torque_noise_max is {noise}, which is too large to draw from");
            return Err(Error::OptionValue(why));
        }
        Ok(Acrobot {
            equations: book_or_nips,
            dt,
            noise,
            streams: Streams::new(seed),
            state: [0.0; 4],
            is_start: true,
            start: START,
        })
    }

    fn observation_space(_config: &AcrobotConfig) -> Result<Space> {
        let high = [1.0, 1.0, 1.0, 1.0, MAX_SPEEDS[0] as f32, MAX_SPEEDS[1] as f32];
        Ok(Leaf::real::<f32>(&[6]).bounded_by(&high.map(|h| -h), &high).into())
    }

    #[inline]
    fn step(&mut self, a: &Discrete<3>) -> Result<(Step<Self>, Record)> {
        let mut torque = torque_of(a.0);
        if self.noise > 0.0 {
            torque += self.streams.rng().uniform(-self.noise, self.noise);
        }
        self.swing(torque, MathLibrary::HERE);
        if self.state.iter().any(|value| value.is_nan()) {
            return Err(Error::env(format!(
                "Acrobot-v1: the links move faster than numbers tell, with dt = {}: choose a smaller dt, \
                 or smaller 'low' and 'high' at the reset",
                self.dt
            )));
        }
        let above = self.is_above_the_line();
        let reward = if above { 0.0 } else { -1.0 };
        Ok((Step::new(*a, self.observation(), reward, ()).terminated_if(above), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<[f32; 6]> {
        if !wants_reset(is_done)? {
            return Ok(self.observation());
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<[f32; 6]> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn reseed(&mut self, _config: &AcrobotConfig, seed: i64) -> Result<()> {
        (self.streams, self.start) = (Streams::new(seed), START);
        Ok(())
    }

    /// `low` and `high`: between which the four state variables start.
    fn set_options(&mut self, options: &Options) -> Result<()> {
        self.start = start::bounds("Acrobot-v1", self.start, options)?;
        Ok(())
    }

    fn render(&mut self) -> Result<Frame> {
        draw(self.state[0] as f32, self.state[1] as f32)
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
const LINK: [u8; 3] = [0, 204, 204];
const JOINT: [u8; 3] = [204, 204, 0];

/// The scene in Gymnasium's proportions: 4.4 m across, the fixed point in the middle.
fn draw(theta1: f32, theta2: f32) -> Result<Frame> {
    let mut canvas = Canvas::new(SIDE, SIDE, WHITE)?;
    let (scale, middle) = (SIDE as f32 / 4.4, SIDE as f32 / 2.0);
    canvas.rect(0.0, middle - scale - 0.5, SIDE as f32, 1.0, BLACK);
    let elbow = (middle + theta1.sin() * scale, middle + theta1.cos() * scale);
    for ((x, y), angle) in [((middle, middle), theta1), (elbow, theta1 + theta2)] {
        canvas.turned(x, y, -angle, |canvas| canvas.rect(-0.1 * scale, 0.0, 0.2 * scale, scale, LINK));
        canvas.circle(x, y, 0.1 * scale, JOINT);
    }
    canvas.frame()
}
