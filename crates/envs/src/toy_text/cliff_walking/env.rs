//! The rules.

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, Space, Step, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::draw;
use crate::toy_text::chance::{Chance, outcome};

pub(super) const ROWS: usize = 4;
pub(super) const COLUMNS: usize = 12;
pub(super) const START: usize = (ROWS - 1) * COLUMNS;
pub(super) const GOAL: usize = ROWS * COLUMNS - 1;

/// CliffWalking's options. `SLIPPERY` is the usual value of the only one.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct CliffWalkingConfig<const SLIPPERY: bool> {
    /// Whether a step may go to a side of where it is meant to go.
    pub is_slippery: bool,
}

impl<const SLIPPERY: bool> Default for CliffWalkingConfig<SLIPPERY> {
    fn default() -> Self {
        CliffWalkingConfig { is_slippery: SLIPPERY }
    }
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct CliffWalking<const SLIPPERY: bool> {
    is_slippery: bool,
    streams: Streams,
    cell: usize,
}

/// Whether a field is the cliff's.
pub(super) fn is_cliff(cell: usize) -> bool {
    START < cell && cell < GOAL
}

/// The field beside `cell`: 0 up, 1 right, 2 down, 3 left.
#[inline]
fn next(cell: usize, direction: i64) -> usize {
    let column = cell % COLUMNS;
    match direction {
        0 if cell >= COLUMNS => cell - COLUMNS,
        1 if column + 1 < COLUMNS => cell + 1,
        2 if cell + COLUMNS <= GOAL => cell + COLUMNS,
        3 if column > 0 => cell - 1,
        _ => cell,
    }
}

impl<const SLIPPERY: bool> CliffWalking<SLIPPERY> {
    fn begin(&mut self) -> i64 {
        // Gymnasium draws the start, although there is one only.
        self.streams.rng().random();
        self.cell = START;
        START as i64
    }
}

impl<const SLIPPERY: bool> Env for CliffWalking<SLIPPERY> {
    type Config = CliffWalkingConfig<SLIPPERY>;
    type Obs = i64;
    type Act = Discrete<4>;
    type Info = Chance;

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::ANSI).union(Caps::BRIEF);

    fn build(config: &Self::Config, seed: i64) -> Result<Self> {
        Ok(CliffWalking { is_slippery: config.is_slippery, streams: Streams::new(seed), cell: START })
    }

    fn observation_space(_config: &Self::Config) -> Result<Space> {
        Ok(Leaf::discrete((ROWS * COLUMNS) as u64).into())
    }

    #[inline(always)]
    fn step(&mut self, a: &Discrete<4>) -> Result<(Step<Self>, Record)> {
        let draw = self.streams.rng().random();
        let (direction, prob) = if self.is_slippery {
            let prob = 1.0 / 3.0;
            let k = outcome([prob; 3], draw).unwrap_or(0);
            ((a.0 + k as i64 - 1).rem_euclid(4), prob)
        } else {
            (a.0, 1.0)
        };
        let cell = next(self.cell, direction);
        let fell = is_cliff(cell);
        self.cell = if fell { START } else { cell };
        let reward = if fell { -100.0 } else { -1.0 };
        let step = Step::new(*a, self.cell as i64, reward, Chance { prob });
        Ok((step.terminated_if(cell == GOAL), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<i64> {
        if !wants_reset(is_done)? {
            return Ok(self.cell as i64);
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<i64> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn info(&self) -> Option<Chance> {
        Some(Chance::SURE)
    }

    fn render(&mut self) -> Result<Frame> {
        draw::picture(self.cell)
    }

    fn ansi(&mut self) -> Result<String> {
        Ok(draw::text(self.cell))
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let loaded: Self = state::from_bytes(bytes)?;
        if loaded.cell > GOAL {
            return Err(Error::State(format!("field {} is not on the land", loaded.cell)));
        }
        *self = loaded;
        Ok(())
    }
}
