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

use std::f64::consts::{FRAC_PI_2, PI, TAU};
use std::hint::black_box;
use std::ops::Range;

use envcore::rng::Streams;
use envcore::sines::{FAR, cosines, sines, squares::squares};
use envcore::{
    ByField, Caps, Config, Discrete, Env, Error, Frame, Leaf, Options, Record, Result, RowsMut, Space, Step,
    StepArgs, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::lanes::{self, BLOCK, Block, Lanes};
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

/// The functions of a C library.
#[derive(Clone, Copy)]
struct Library {
    sin: fn(f64) -> f64,
    cos: fn(f64) -> f64,
}

/// This machine's.
const LIBRARY: Library = Library { sin: f64::sin, cos: f64::cos };

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
        let rng = self.streams.rng();
        for value in &mut self.state {
            *value = f64::from(rng.uniform(low, high) as f32);
        }
        self.is_start = true;
        self.observation()
    }

    /// How fast each state variable changes at a state, under a torque.
    fn derivative(&self, state: [f64; 4], torque: f64, library: Library) -> [f64; 4] {
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
    fn swing(&mut self, torque: f64, library: Library) {
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
        self.swing(torque, LIBRARY);
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

#[derive(Clone, Copy)]
struct AcrobotLanes {
    equations: AcrobotEquations,
    dt: f64,
}

type Numbers = [f64; BLOCK];

impl AcrobotLanes {
    /// How fast the state variables change; whether the formulas hold.
    #[inline(always)]
    fn slopes<const FUSED: bool>(
        &self,
        state: &[Numbers; 4],
        torque: &Numbers,
        slopes: &mut [Numbers; 4],
    ) -> bool {
        let [theta1, theta2, speed1, speed2] = state;
        let (mut from1, mut from12) = ([0.0; BLOCK], [0.0; BLOCK]);
        for i in 0..BLOCK {
            from1[i] = theta1[i] - FRAC_PI_2;
            from12[i] = theta1[i] + theta2[i] - FRAC_PI_2;
        }
        let near =
            lanes::are_near(theta2, FAR) & lanes::are_near(&from1, FAR) & lanes::are_near(&from12, FAR);
        let [mut sin2, mut cos2, mut cos1, mut cos12] = [[0.0; BLOCK]; 4];
        sines::<FUSED, BLOCK>(theta2, &mut sin2);
        cosines::<FUSED, BLOCK>(theta2, &mut cos2);
        cosines::<FUSED, BLOCK>(&from1, &mut cos1);
        cosines::<FUSED, BLOCK>(&from12, &mut cos12);
        let [mut square1, mut square2, mut square_d2, mut d2] = [[0.0; BLOCK]; 4];
        for i in 0..BLOCK {
            d2[i] = inertia(cos2[i])[1];
        }
        squares(&d2, &mut square_d2);
        squares(speed2, &mut square2);
        if self.equations == AcrobotEquations::Book {
            squares(speed1, &mut square1);
        }
        for i in 0..BLOCK {
            [slopes[2][i], slopes[3][i]] = accelerations(
                self.equations,
                [speed1[i], speed2[i]],
                torque[i],
                [sin2[i], cos2[i], cos1[i]],
                cos12[i],
                [square1[i], square2[i], square_d2[i]],
            );
        }
        (slopes[0], slopes[1]) = (*speed1, *speed2);
        near
    }
}

/// As [`wrap`], for angles that are less than two turns away.
#[inline(always)]
fn wrap_twice(mut angle: f64) -> f64 {
    for _ in 0..2 {
        angle = if angle > PI { angle - TAU } else { angle };
    }
    for _ in 0..2 {
        angle = if angle < -PI { angle + TAU } else { angle };
    }
    angle
}

impl Lanes<5, 6> for AcrobotLanes {
    type Action = i64;

    #[inline(always)]
    fn step<const FUSED: bool>(&self, block: Block<'_, i64, 5, 6>) -> bool {
        let Block { fields, actions, observation, reward, terminated } = block;
        let [theta1, theta2, speed1, speed2, is_start] = fields;
        let from = [*theta1, *theta2, *speed1, *speed2];
        let mut torque = [0.0; BLOCK];
        for i in 0..BLOCK {
            torque[i] = torque_of(actions[i]);
        }
        // The classic Runge-Kutta method: slopes at the start, twice in the middle, at the end.
        let (mut slopes, mut sums, mut at) = ([[0.0; BLOCK]; 4], [[0.0; BLOCK]; 4], from);
        let half = self.dt / 2.0;
        let mut holds = true;
        for (stage, time) in [half, half, self.dt, self.dt / 6.0].into_iter().enumerate() {
            holds &= self.slopes::<FUSED>(&at, &torque, &mut slopes);
            for k in 0..4 {
                for i in 0..BLOCK {
                    let slope = slopes[k][i];
                    sums[k][i] = match stage {
                        0 => slope,
                        3 => sums[k][i] + slope,
                        _ => sums[k][i] + 2.0 * slope,
                    };
                    at[k][i] = from[k][i] + time * if stage == 3 { sums[k][i] } else { slope };
                }
            }
        }
        let [most1, most2] = MAX_SPEEDS;
        let mut sum = [0.0; BLOCK];
        for i in 0..BLOCK {
            (at[0][i], at[1][i]) = (wrap_twice(at[0][i]), wrap_twice(at[1][i]));
            (at[2][i], at[3][i]) = (at[2][i].clamp(-most1, most1), at[3][i].clamp(-most2, most2));
            sum[i] = at[1][i] + at[0][i];
            // False for what is more than two turns away, and for a NaN.
            holds &=
                (at[0][i].abs() <= PI) & (at[1][i].abs() <= PI) & !at[2][i].is_nan() & !at[3][i].is_nan();
        }
        if !holds {
            return false;
        }
        let [mut sin1, mut cos1, mut sin2, mut cos2, mut cos12] = [[0.0; BLOCK]; 5];
        sines::<FUSED, BLOCK>(&at[0], &mut sin1);
        cosines::<FUSED, BLOCK>(&at[0], &mut cos1);
        sines::<FUSED, BLOCK>(&at[1], &mut sin2);
        cosines::<FUSED, BLOCK>(&at[1], &mut cos2);
        cosines::<FUSED, BLOCK>(&sum, &mut cos12);
        [*theta1, *theta2, *speed1, *speed2] = at;
        is_start.fill(0.0);
        for i in 0..BLOCK {
            terminated[i] = -cos1[i] - cos12[i] > 1.0;
            reward[i] = if terminated[i] { 0.0 } else { -1.0 };
            let angles = [cos1[i], sin1[i], cos2[i], sin2[i]].map(|v| v as f32);
            let [cos1, sin1, cos2, sin2] = angles;
            observation[i] = [cos1, sin1, cos2, sin2, speed1[i] as f32, speed2[i] as f32];
        }
        true
    }
}

impl ByField<5> for Acrobot {
    /// Random torques come from each env's own stream.
    fn is_wanted(config: &AcrobotConfig) -> bool {
        let noisy = config.torque_noise_max > 0.0;
        lanes::are_exact() && !noisy
    }

    fn fields(&self) -> [f64; 5] {
        let [theta1, theta2, speed1, speed2] = self.state;
        [theta1, theta2, speed1, speed2, self.is_start.into()]
    }

    fn set_fields(&mut self, [theta1, theta2, speed1, speed2, is_start]: [f64; 5]) {
        (self.state, self.is_start) = ([theta1, theta2, speed1, speed2], is_start != 0.0);
    }

    fn step_fields(
        config: &AcrobotConfig,
        fields: [&mut [f64]; 5],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        left: &mut Vec<Range<usize>>,
    ) {
        let lanes = AcrobotLanes { equations: config.book_or_nips, dt: config.dt };
        lanes::step(lanes, fields, slots, actions, rows, left);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::lanes::tests::compare;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_step_as_acrobots_alone(
            states in prop::collection::vec((-PI..PI, -PI..PI, -1.0..1.0, -1.0..1.0), 80..90),
            speed in prop_oneof![3 => Just(5.0), 1 => Just(12.5)],
            torques in prop::collection::vec(0i64..3, 90),
            nips in any::<bool>(),
        ) {
            let states: Vec<[f64; 5]> =
                states.into_iter().map(|(theta1, theta2, v, w)| [theta1, theta2, speed * v, 2.0 * speed * w, 1.0]).collect();
            let equations = if nips { AcrobotEquations::Nips } else { AcrobotEquations::Book };
            let config = AcrobotConfig { book_or_nips: equations, ..AcrobotConfig::default() };
            let lanes = AcrobotLanes { equations, dt: config.dt };
            let left = compare(lanes, &states, &torques[..states.len()], |state, action, library| {
                let library = Library { sin: library.sin, cos: library.cos };
                let mut env = Acrobot::build(&config, 0).unwrap();
                env.set_fields(state);
                env.swing((action - 1) as f64, library);
                let [theta1, theta2, speed1, speed2] = env.state;
                let Library { sin, cos } = library;
                let above = -cos(theta1) - cos(theta2 + theta1) > 1.0;
                let seen = [cos(theta1), sin(theta1), cos(theta2), sin(theta2), speed1, speed2];
                (env.fields(), seen.map(|v| v as f32), if above { 0.0 } else { -1.0 }, above)
            });
            // At the largest speeds some turn more than twice in a step.
            prop_assert!(speed > 5.0 || !left);
        }
    }
}
