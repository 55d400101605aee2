//! The env, operation by operation as Gymnasium's.

use std::f64::consts::PI;

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Discrete, Env, Frame, Leaf, Options, Record, Result, Space, Step, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::draw::draw;
use crate::classic::start;

pub(super) const GRAVITY: f64 = 9.8;
pub(super) const MASS_POLE: f64 = 0.1;
pub(super) const TOTAL_MASS: f64 = MASS_POLE + 1.0;
/// Half the pole's length.
pub(super) const LENGTH: f64 = 0.5;
pub(super) const POLE_MASS_LENGTH: f64 = MASS_POLE * LENGTH;
pub(super) const FORCE: f64 = 10.0;
/// Seconds between steps.
pub(super) const TAU: f64 = 0.02;
/// Between which each state variable starts, unless asked otherwise.
const START: (f64, f64) = (-0.05, 0.05);
pub(super) const X_LIMIT: f64 = 2.4;
pub(super) const THETA_LIMIT: f64 = 12.0 * 2.0 * PI / 360.0;

/// The reward, as `[sutton_barto_reward][fallen]`.
pub(super) const REWARD: [[f64; 2]; 2] = [[1.0, 1.0], [0.0, -1.0]];

/// CartPole's options.
#[derive(Clone, Debug, Default, PartialEq, Config)]
pub struct CartPoleConfig {
    /// Reward 0 per step and -1 at the end, as in Sutton and Barto's book.
    pub sutton_barto_reward: bool,
    /// Without effect since 0.2: all envs are stepped by kernels that are exact. It will be gone in 0.3.
    pub fast: bool,
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct CartPole {
    sutton_barto_reward: bool,
    streams: Streams,
    /// x, ẋ, θ, θ̇.
    pub(super) state: [f64; 4],
    /// Between which each of the four starts.
    start: (f64, f64),
}

impl CartPole {
    #[inline]
    fn observation(&self) -> [f32; 4] {
        self.state.map(|value| value as f32)
    }

    fn begin(&mut self) -> [f32; 4] {
        let (low, high) = self.start;
        let state = self.streams.rng().uniform_array(low, high);
        self.state = state;
        // Of the numbers at hand: a load of several that were just stored one by one waits for them.
        state.map(|value| value as f32)
    }

    /// Moves the cart by what its pole's sine and cosine tell.
    #[inline(always)]
    pub(super) fn integrate(&mut self, force: f64, sin: f64, cos: f64) {
        let [x, x_dot, theta, theta_dot] = self.state;
        let temp = (force + POLE_MASS_LENGTH * (theta_dot * theta_dot) * sin) / TOTAL_MASS;
        let theta_acc =
            (GRAVITY * sin - cos * temp) / (LENGTH * (4.0 / 3.0 - MASS_POLE * (cos * cos) / TOTAL_MASS));
        let x_acc = temp - POLE_MASS_LENGTH * theta_acc * cos / TOTAL_MASS;
        self.state =
            [x + TAU * x_dot, x_dot + TAU * x_acc, theta + TAU * theta_dot, theta_dot + TAU * theta_acc];
    }

    pub(super) fn has_fallen(&self) -> bool {
        let [x, _, theta, _] = self.state;
        !(-X_LIMIT..=X_LIMIT).contains(&x) || !(-THETA_LIMIT..=THETA_LIMIT).contains(&theta)
    }
}

impl Env for CartPole {
    type Config = CartPoleConfig;
    type Obs = [f32; 4];
    type Act = Discrete<2>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::OPTIONS).union(Caps::BRIEF);

    fn build(config: &CartPoleConfig, seed: i64) -> Result<Self> {
        Ok(CartPole {
            sutton_barto_reward: config.sutton_barto_reward,
            streams: Streams::new(seed),
            state: [0.0; 4],
            start: START,
        })
    }

    fn observation_space(_config: &CartPoleConfig) -> Result<Space> {
        let high = [(X_LIMIT * 2.0) as f32, f32::INFINITY, (THETA_LIMIT * 2.0) as f32, f32::INFINITY];
        Ok(Leaf::real::<f32>(&[4]).bounded_by(&high.map(|h| -h), &high).into())
    }

    #[inline]
    fn step(&mut self, a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
        let theta = self.state[2];
        self.integrate(if a.0 == 1 { FORCE } else { -FORCE }, theta.sin(), theta.cos());
        let fallen = self.has_fallen();
        let reward = REWARD[usize::from(self.sutton_barto_reward)][usize::from(fallen)];
        Ok((Step::new(*a, self.observation(), reward, ()).terminated_if(fallen), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<[f32; 4]> {
        if !wants_reset(is_done)? {
            return Ok(self.observation());
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<[f32; 4]> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn reseed(&mut self, _config: &CartPoleConfig, seed: i64) -> Result<()> {
        self.streams = Streams::new(seed);
        self.start = START;
        Ok(())
    }

    /// `low` and `high`: between which the four state variables start.
    fn set_options(&mut self, options: &Options) -> Result<()> {
        self.start = start::bounds("CartPole-v1", self.start, options)?;
        Ok(())
    }

    fn render(&mut self) -> Result<Frame> {
        draw(self.state[0], self.state[2])
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        *self = state::from_bytes(bytes)?;
        Ok(())
    }
}
