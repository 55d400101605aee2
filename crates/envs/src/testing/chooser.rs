//! An env that tells which actions it allows: what was played last is not.
//!
//! An episode of the env's own begins with a number forbidden that follows from
//! its stream; index ix forbids ix % 3. It ends after four steps, or by a choice
//! that is forbidden, with reward -1. On demand its mask allows everything, or nothing, and a
//! choice that is forbidden is an error.

use envcore::rng::Streams;
use envcore::{Caps, Discrete, Env, Error, Leaf, Record, Result, Space, Step, state, wants_reset};
use serde::{Deserialize, Serialize};

/// What a mask says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChooserMask {
    /// What is allowed.
    #[default]
    Right,
    /// That everything is allowed, though `step` refuses a choice.
    All,
    /// That nothing is allowed.
    Nothing,
}

/// Chooser's options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChooserConfig {
    /// What its mask says.
    pub mask: ChooserMask,
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct Chooser {
    mask: ChooserMask,
    forbidden: i64,
    steps: i32,
    streams: Streams,
}

impl Chooser {
    fn begin(&mut self, forbidden: i64) -> i64 {
        (self.forbidden, self.steps) = (forbidden, 0);
        self.forbidden
    }
}

impl Env for Chooser {
    type Config = ChooserConfig;
    /// What is forbidden.
    type Obs = i64;
    type Act = Discrete<3>;
    /// How many steps were played.
    type Info = i32;

    const CAPS: Caps = Caps::SAVE.union(Caps::ACTION_MASK);

    fn build(config: &ChooserConfig, seed: i64) -> Result<Self> {
        Ok(Chooser { mask: config.mask, forbidden: 0, steps: 0, streams: Streams::new(seed) })
    }

    fn step(&mut self, a: &Discrete<3>) -> Result<(Step<Self>, Record)> {
        let is_wrong = a.0 == self.forbidden;
        if is_wrong && self.mask == ChooserMask::All {
            return Err(Error::env(format!("{} was played last", a.0)));
        }
        (self.forbidden, self.steps) = (a.0, self.steps + 1);
        let reward = if is_wrong { -1.0 } else { 1.0 };
        let step = Step::new(*a, self.forbidden, reward, self.steps);
        Ok((step.terminated_if(is_wrong || self.steps == 4), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<i64> {
        if wants_reset(is_done)? {
            self.streams.begin_own();
            let forbidden = self.streams.rng().integers(0, 3);
            self.begin(forbidden);
        }
        Ok(self.forbidden)
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<i64> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin(ix as i64 % 3))
    }

    fn observation_space(_: &ChooserConfig) -> Result<Space> {
        Ok(Leaf::discrete(3).into())
    }

    fn action_mask(&self, mask: &mut [bool]) {
        match self.mask {
            ChooserMask::Right => mask[self.forbidden as usize] = false,
            ChooserMask::All => {}
            ChooserMask::Nothing => mask.fill(false),
        }
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        *self = state::from_bytes(bytes)?;
        Ok(())
    }
}
