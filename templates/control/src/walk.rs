//! `Walk-v0`: reach a goal on a windy square, by pushes.
//!
//! - **Observation**: `position` and `goal`, each x and y from -1 to 1, and
//!   `velocity` in units a step.
//! - **Action**: a push along x and y, each from -1 to 1.
//! - **Reward**: by how much the step came nearer to the goal, less 0.01.
//! - **End**: terminated within 0.1 of the goal. The time limit is not the
//!   env's: it stands in `lib.rs`.
//! - **Index**: ix is the start, goal and wind of seed ix.
//!
//! To make it yours: change what [`Walk`] remembers, what [`Observation`] shows
//! and what [`Env::step`] does, then run `cargo test`. Raise the id's version
//! where the same actions no longer give the same episode.

use envcore::rng::Streams;
use envcore::{Caps, Config, Env, Error, FromRow, Record, Result, Step, ToRow, state, wants_reset};
use serde::{Deserialize, Serialize};

/// What a full push adds to the velocity.
const PUSH: f64 = 0.03;
/// What is left of the velocity after a step.
const GLIDE: f64 = 0.8;
/// How near the goal is near enough.
const REACH: f64 = 0.1;

/// The options: each field is one, with its default below. From Python:
/// `corral.make_vec("my_env/Walk-v0", 8, wind=0.5)`.
#[derive(Clone, Debug, Config)]
pub struct WalkConfig {
    /// The strongest gust, in full pushes.
    #[option(low = 0.0, high = 10.0)]
    pub wind: f64,
}

impl Default for WalkConfig {
    fn default() -> Self {
        WalkConfig { wind: 0.2 }
    }
}

/// What an agent sees: each field is a leaf, in Python an entry of a dict.
#[derive(Clone, Debug, PartialEq, ToRow)]
pub struct Observation {
    /// Where the agent is.
    #[leaf(low = -1.0, high = 1.0)]
    pub position: [f32; 2],
    /// How fast it moves.
    pub velocity: [f32; 2],
    /// Where it should go.
    #[leaf(low = -1.0, high = 1.0)]
    pub goal: [f32; 2],
}

/// What an agent does. A tuple struct of one field is that field: a Box.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct Push(#[leaf(low = -1.0, high = 1.0)] pub [f32; 2]);

/// The environment: all that an episode depends on. Corral makes as many as are
/// asked for, and sees to threads, batches and time limits.
#[derive(Clone, Serialize, Deserialize)]
pub struct Walk {
    wind: f64,
    /// All randomness comes from here, so that seeds and indices mean something.
    streams: Streams,
    position: [f64; 2],
    velocity: [f64; 2],
    goal: [f64; 2],
}

impl Walk {
    /// Begins an episode; the stream that it draws from has been chosen.
    fn begin(&mut self) -> Observation {
        self.position = self.anywhere();
        self.velocity = [0.0; 2];
        self.goal = self.anywhere();
        self.observation()
    }

    fn anywhere(&mut self) -> [f64; 2] {
        std::array::from_fn(|_| self.streams.rng().uniform(-1.0, 1.0))
    }

    fn observation(&self) -> Observation {
        Observation {
            position: self.position.map(|value| value as f32),
            velocity: self.velocity.map(|value| value as f32),
            goal: self.goal.map(|value| value as f32),
        }
    }

    fn distance(&self) -> f64 {
        let [dx, dy] = std::array::from_fn(|axis| self.goal[axis] - self.position[axis]);
        (dx * dx + dy * dy).sqrt()
    }
}

impl Env for Walk {
    type Config = WalkConfig;
    type Obs = Observation;
    // For labels: `Discrete<4>`. For several parts: a struct that derives `FromRow`.
    type Act = Push;
    // What else a step tells: `()`, or a struct that derives `ToRow`.
    type Info = ();

    // `SAVE`: there are `save` and `load`. `BRIEF`: a step takes well under a
    // microsecond; leave it out where that is not so. With `RENDER`, write
    // `render`; with `OPTIONS`, `set_options`.
    const CAPS: Caps = Caps::SAVE.union(Caps::BRIEF);

    fn build(config: &WalkConfig, seed: i64) -> Result<Self> {
        if !(0.0..=10.0).contains(&config.wind) {
            let why = format!("Walk-v0: wind is a number from 0 to 10, not {}", config.wind);
            return Err(Error::OptionValue(why));
        }
        Ok(Walk {
            wind: config.wind,
            streams: Streams::new(seed),
            position: [0.0; 2],
            velocity: [0.0; 2],
            goal: [0.0; 2],
        })
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Observation> {
        if !wants_reset(is_done)? {
            return Ok(self.observation());
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Observation> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn step(&mut self, a: &Push) -> Result<(Step<Self>, Record)> {
        let before = self.distance();
        for axis in 0..2 {
            let gust = self.streams.rng().uniform(-1.0, 1.0) * self.wind;
            self.velocity[axis] += PUSH * (f64::from(a.0[axis]) + gust);
            self.velocity[axis] *= GLIDE;
            self.position[axis] = (self.position[axis] + self.velocity[axis]).clamp(-1.0, 1.0);
        }
        let after = self.distance();
        let step = Step::new(*a, self.observation(), before - after - 0.01, ());
        Ok((step.terminated_if(after < REACH), Record::empty()))
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        *self = state::from_bytes(bytes)?;
        Ok(())
    }
}
