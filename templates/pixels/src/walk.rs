//! `Walk-v0`: catch ten falling balls, seen as pixels.
//!
//! - **Observation**: the screen, grey pixels of shape (32, 32, 1), drawn
//!   straight into the batch.
//! - **Action**: 0 stays, 1 moves the paddle to the left, 2 to the right.
//! - **Reward**: 1 for a ball that is caught, -1 for one that is not.
//! - **End**: terminated after ten balls. The time limit is not the env's: it
//!   stands in `lib.rs`.
//! - **Index**: ix is the balls of seed ix.

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, Row, Space, Step, ToRow,
    state, wants_reset,
};
use serde::{Deserialize, Serialize};

/// Pixels along a side of the screen.
pub const SIDE: usize = 32;
/// Half of the paddle's width, in pixels.
const REACH: i32 = 2;
const BALLS: u32 = 10;
/// How many pixels of a frame a pixel of the screen is wide and high.
const ZOOM: usize = 10;

/// The options: each field is one, with its default below. From Python:
/// `corral.make_vec("my_env/Walk-v0", 8, speed=2)`.
#[derive(Clone, Debug, Config)]
pub struct WalkConfig {
    /// Pixels that a ball falls in a step.
    #[option(low = 1, high = 4)]
    pub speed: u32,
}

impl Default for WalkConfig {
    fn default() -> Self {
        WalkConfig { speed: 1 }
    }
}

/// What there is to see: it is small, and draws itself into a row of the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Screen {
    /// The ball's row and column.
    pub ball: [i32; 2],
    /// The column of the paddle's middle, in the last row.
    pub paddle: i32,
}

impl Screen {
    /// The grey of a pixel: the ball is white, the paddle grey.
    fn grey(self, row: i32, column: i32) -> u8 {
        let is_ball = [row, column] == self.ball;
        let is_paddle = row == SIDE as i32 - 1 && (column - self.paddle).abs() <= REACH;
        if is_ball {
            255
        } else if is_paddle {
            128
        } else {
            0
        }
    }
}

impl ToRow for Screen {
    fn space() -> Result<Space> {
        Ok(Leaf::image(&[SIDE, SIDE, 1]).into())
    }

    fn write(&self, row: &mut Row<'_>) {
        // The row holds what an earlier step wrote, so every pixel is written.
        let pixels = row.fixed::<u8>();
        pixels.fill(0);
        for column in self.paddle - REACH..=self.paddle + REACH {
            if (0..SIDE as i32).contains(&column) {
                pixels[(SIDE - 1) * SIDE + column as usize] = 128;
            }
        }
        let [row, column] = self.ball.map(|place| place as usize);
        pixels[row * SIDE + column] = 255;
    }
}

/// The environment: all that an episode depends on. Corral makes as many as are
/// asked for, and sees to threads, batches and time limits.
#[derive(Clone, Serialize, Deserialize)]
pub struct Walk {
    speed: i32,
    /// All randomness comes from here, so that seeds and indices mean something.
    streams: Streams,
    screen: Screen,
    balls_left: u32,
}

impl Walk {
    /// Begins an episode; the stream that it draws from has been chosen.
    fn begin(&mut self) -> Screen {
        self.balls_left = BALLS;
        self.screen.paddle = SIDE as i32 / 2;
        self.drop_ball();
        self.screen
    }

    fn drop_ball(&mut self) {
        self.screen.ball = [0, self.streams.rng().choice(SIDE) as i32];
    }
}

impl Env for Walk {
    type Config = WalkConfig;
    type Obs = Screen;
    type Act = Discrete<3>;
    // What else a step tells: `()`, or a struct that derives `ToRow`.
    type Info = ();

    // `SAVE`: there are `save` and `load`. `RENDER`: there is `render`. `BRIEF`:
    // a step takes well under a microsecond.
    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::BRIEF);

    fn build(config: &WalkConfig, seed: i64) -> Result<Self> {
        if !(1..=4).contains(&config.speed) {
            let why = format!("Walk-v0: speed is an int from 1 to 4, not {}", config.speed);
            return Err(Error::OptionValue(why));
        }
        Ok(Walk {
            speed: config.speed as i32,
            streams: Streams::new(seed),
            screen: Screen::default(),
            balls_left: BALLS,
        })
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Screen> {
        if !wants_reset(is_done)? {
            return Ok(self.screen);
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Screen> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn step(&mut self, a: &Discrete<3>) -> Result<(Step<Self>, Record)> {
        let last = SIDE as i32 - 1;
        let way = [0, -1, 1][a.0 as usize];
        self.screen.paddle = (self.screen.paddle + 2 * way).clamp(0, last);
        self.screen.ball[0] = (self.screen.ball[0] + self.speed).min(last);
        let mut reward = 0.0;
        let seen = self.screen;
        if seen.ball[0] == last {
            let is_caught = (seen.ball[1] - seen.paddle).abs() <= REACH;
            reward = if is_caught { 1.0 } else { -1.0 };
            self.balls_left -= 1;
            self.drop_ball();
        }
        let step = Step::new(*a, seen, reward, ());
        Ok((step.terminated_if(self.balls_left == 0), Record::empty()))
    }

    fn render(&mut self) -> Result<Frame> {
        let side = SIDE * ZOOM;
        let grey = |k: usize| self.screen.grey((k / side / ZOOM) as i32, (k % side / ZOOM) as i32);
        let pixels = (0..side * side).flat_map(|k| [grey(k); 3]).collect();
        Frame::new(side, side, pixels)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        *self = state::from_bytes(bytes)?;
        Ok(())
    }
}
