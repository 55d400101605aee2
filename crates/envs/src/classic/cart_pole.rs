//! CartPole-v1: balance a pole on a cart.
//!
//! The dynamics are those of Gymnasium 1.4's
//! `gymnasium/envs/classic_control/cartpole.py` (after Barto, Sutton and
//! Anderson, 1983), operation by operation in float64, so that from the same
//! seed the same trajectory comes out, bit for bit, wherever NumPy's sin and cos
//! are libm's.
//!
//! Observation: `float32[4]`: cart position (m), cart velocity (m/s), pole angle
//! (rad), pole angular velocity (rad/s). Action: 0 pushes left, 1 right, with
//! 10 N. Reward: 1 per step, the last one included. Terminated: |position| > 2.4
//! or |angle| > 12°. Index ix is the episode of seed ix.

use std::f64::consts::PI;

use envcore::rng::Streams;
use envcore::{
    Caps, Discrete, Env, Error, Frame, Leaf, Options, Record, Result, Space, Step, Value, state, wants_reset,
};
use serde::{Deserialize, Serialize};
use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Transform};

const GRAVITY: f64 = 9.8;
const MASS_POLE: f64 = 0.1;
const TOTAL_MASS: f64 = MASS_POLE + 1.0;
/// Half the pole's length.
const LENGTH: f64 = 0.5;
const POLE_MASS_LENGTH: f64 = MASS_POLE * LENGTH;
const FORCE: f64 = 10.0;
/// Seconds between steps.
const TAU: f64 = 0.02;
/// Between which each state variable starts, unless asked otherwise.
const START: (f64, f64) = (-0.05, 0.05);
const X_LIMIT: f64 = 2.4;
const THETA_LIMIT: f64 = 12.0 * 2.0 * PI / 360.0;

/// CartPole's options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CartPoleConfig {
    /// Reward 0 per step and -1 at the end, as in Sutton and Barto's book.
    pub sutton_barto_reward: bool,
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct CartPole {
    sutton_barto_reward: bool,
    streams: Streams,
    /// x, ẋ, θ, θ̇.
    state: [f64; 4],
    /// Between which each of the four starts.
    start: (f64, f64),
}

impl CartPole {
    fn observation(&self) -> [f32; 4] {
        self.state.map(|value| value as f32)
    }

    fn begin(&mut self) -> [f32; 4] {
        let (low, high) = self.start;
        self.state = std::array::from_fn(|_| self.streams.rng().uniform(low, high));
        self.observation()
    }

    fn integrate(&mut self, force: f64) {
        let [x, x_dot, theta, theta_dot] = self.state;
        let (sin, cos) = (theta.sin(), theta.cos());
        let temp = (force + POLE_MASS_LENGTH * (theta_dot * theta_dot) * sin) / TOTAL_MASS;
        let theta_acc =
            (GRAVITY * sin - cos * temp) / (LENGTH * (4.0 / 3.0 - MASS_POLE * (cos * cos) / TOTAL_MASS));
        let x_acc = temp - POLE_MASS_LENGTH * theta_acc * cos / TOTAL_MASS;
        self.state =
            [x + TAU * x_dot, x_dot + TAU * x_acc, theta + TAU * theta_dot, theta_dot + TAU * theta_acc];
    }

    fn has_fallen(&self) -> bool {
        let [x, _, theta, _] = self.state;
        !(-X_LIMIT..=X_LIMIT).contains(&x) || !(-THETA_LIMIT..=THETA_LIMIT).contains(&theta)
    }
}

impl Env for CartPole {
    type Config = CartPoleConfig;
    type Obs = [f32; 4];
    type Act = Discrete<2>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::OPTIONS);

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
        self.integrate(if a.0 == 1 { FORCE } else { -FORCE });
        let fallen = self.has_fallen();
        let reward = match (self.sutton_barto_reward, fallen) {
            (false, _) => 1.0,
            (true, false) => 0.0,
            (true, true) => -1.0,
        };
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
        let mut start = self.start;
        for (name, value) in options.iter() {
            let number = match value {
                Value::Float(v) if v.is_finite() => *v,
                Value::Int(v) => *v as f64,
                other => {
                    let why = format!("CartPole-v1: reset option '{name}' is {other:?}, not a finite number");
                    return Err(Error::OptionValue(why));
                }
            };
            match name {
                "low" => start.0 = number,
                "high" => start.1 = number,
                _ => {
                    return Err(Error::UnknownOption(format!(
                        "CartPole-v1: unknown reset option '{name}'; valid: low (now {}), high (now {})",
                        start.0, start.1
                    )));
                }
            }
        }
        if start.0 > start.1 {
            let (low, high) = start;
            return Err(Error::OptionValue(format!("CartPole-v1: low {low} is above high {high}")));
        }
        if !(start.1 - start.0).is_finite() {
            return Err(Error::OptionValue("CartPole-v1: low and high are too far apart".into()));
        }
        self.start = start;
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

const WIDTH: u32 = 600;
const HEIGHT: u32 = 400;

/// The scene in Gymnasium's proportions: 4.8 m across, the track 100 pixels
/// above the bottom edge.
fn draw(x: f64, theta: f64) -> Result<Frame> {
    let fault = || Error::env("CartPole-v1: the scene cannot be drawn");
    let mut canvas = Pixmap::new(WIDTH, HEIGHT).ok_or_else(fault)?;
    canvas.fill(Color::WHITE);
    let scale = WIDTH as f32 / (2.0 * X_LIMIT as f32);
    let (cart_x, track_y) = (x as f32 * scale + WIDTH as f32 / 2.0, HEIGHT as f32 - 100.0);
    let axle_y = track_y - 7.5;

    let rect = |x, y, w, h| Rect::from_xywh(x, y, w, h).map(PathBuilder::from_rect).ok_or_else(fault);
    let mut fill = |path: &Path, rgb: [u8; 3], transform: Transform| {
        let mut paint = Paint::default();
        paint.set_color_rgba8(rgb[0], rgb[1], rgb[2], 255);
        paint.anti_alias = true;
        canvas.fill_path(path, &paint, FillRule::Winding, transform, None);
    };
    let here = Transform::identity();
    fill(&rect(0.0, track_y - 0.5, WIDTH as f32, 1.0)?, [0, 0, 0], here);
    fill(&rect(cart_x - 25.0, track_y - 15.0, 50.0, 30.0)?, [0, 0, 0], here);
    let pole_length = scale * (2.0 * LENGTH as f32);
    let tilt = Transform::from_rotate((theta as f32).to_degrees()).post_translate(cart_x, axle_y);
    fill(&rect(-5.0, 5.0 - pole_length, 10.0, pole_length)?, [202, 152, 101], tilt);
    let axle = PathBuilder::from_circle(cart_x, axle_y, 5.0).ok_or_else(fault)?;
    fill(&axle, [129, 132, 203], here);

    let rgb = canvas.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    Frame::new(HEIGHT as usize, WIDTH as usize, rgb)
}
