//! `Walk-v0`: walk to a goal on a windy square.
//!
//! - **Observation**: `position` and `goal`, each x and y from -1 to 1.
//! - **Action**: 0 to 3, a stride to the right, up, to the left, down.
//! - **Reward**: by how much the stride came nearer to the goal, less 0.01.
//! - **End**: terminated within 0.1 of the goal. The time limit is not the
//!   env's: it stands in `lib.rs`.
//! - **Index**: ix is the start, goal and wind of seed ix.
//!
//! To make it yours: change what [`Walk`] remembers, what [`Observation`] shows
//! and what [`Env::step`] does, then run `cargo test`. Raise the id's version
//! where the same actions no longer give the same episode.

use envcore::rng::Streams;
use envcore::{Caps, Discrete, Env, Error, Record, Result, Step, ToRow, state, wants_reset};
use serde::{Deserialize, Serialize};

const STRIDE: f64 = 0.1;
const REACH: f64 = 0.1;

/// The options: each field is one, with its default below. From Python:
/// `corral.make_vec("my_env/Walk-v0", 8, wind=0.5)`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WalkConfig {
    /// The strongest gust, in strides.
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
    /// Where the walker is.
    #[leaf(low = -1.0, high = 1.0)]
    pub position: [f32; 2],
    /// Where it should go.
    #[leaf(low = -1.0, high = 1.0)]
    pub goal: [f32; 2],
}

/// The environment: all that an episode depends on. Corral makes as many as are
/// asked for, and sees to threads, batches and time limits.
#[derive(Clone, Serialize, Deserialize)]
pub struct Walk {
    wind: f64,
    /// All randomness comes from here, so that seeds and indices mean something.
    streams: Streams,
    position: [f64; 2],
    goal: [f64; 2],
}

impl Walk {
    /// Begins an episode; the stream that it draws from has been chosen.
    fn begin(&mut self) -> Observation {
        self.position = self.anywhere();
        self.goal = self.anywhere();
        self.observation()
    }

    fn anywhere(&mut self) -> [f64; 2] {
        std::array::from_fn(|_| self.streams.rng().uniform(-1.0, 1.0))
    }

    fn observation(&self) -> Observation {
        Observation {
            position: self.position.map(|value| value as f32),
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
    // For continuous actions: `[f32; 2]`, or a struct that derives `FromRow`.
    type Act = Discrete<4>;
    // What else a step tells: `()`, or a struct that derives `ToRow`.
    type Info = ();

    // `SAVE`: there are `save` and `load`. `BRIEF`: a step takes well under a
    // microsecond; leave it out where that is not so. With `RENDER`, write
    // `render`; with `OPTIONS`, `set_options`.
    const CAPS: Caps = Caps::SAVE.union(Caps::BRIEF);

    fn build(config: &WalkConfig, seed: i64) -> Result<Self> {
        if !(0.0..=10.0).contains(&config.wind) {
            let why = format!("Walk-v0: wind is from 0 to 10 strides, not {}", config.wind);
            return Err(Error::OptionValue(why));
        }
        Ok(Walk {
            wind: config.wind,
            streams: Streams::new(seed),
            position: [0.0; 2],
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

    fn step(&mut self, a: &Discrete<4>) -> Result<(Step<Self>, Record)> {
        let before = self.distance();
        let (axis, way) = [(0, 1.0), (1, 1.0), (0, -1.0), (1, -1.0)][a.0 as usize];
        self.position[axis] += way * STRIDE;
        for value in &mut self.position {
            let gust = self.streams.rng().uniform(-1.0, 1.0) * self.wind * STRIDE;
            *value = (*value + gust).clamp(-1.0, 1.0);
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
