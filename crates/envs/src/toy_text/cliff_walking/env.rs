//! The rules.

use std::ops::Range;
use std::sync::LazyLock;

use envcore::rng::Streams;
use envcore::{
    ByField, Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, RowsMut, Space, Step, StepArgs,
    state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::draw;
use crate::toy_text::chance::Chance;
use crate::toy_text::walk::{FEW, Transition, Transitions, Walk, slipped, table};

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

/// The rewards of a step that holds, and of a fall.
const REWARDS: [f64; 2] = [-1.0, -100.0];
/// The probabilities of a step to one side, ahead and to the other side, on a slippery cliff.
const SLIPS: [f64; 3] = [1.0 / 3.0; 3];

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

/// Where a step in a direction ends, after a fall.
#[inline]
fn walked(cell: usize, direction: i64) -> Transition {
    let cell = next(cell, direction);
    let fell = is_cliff(cell);
    let next = if fell { START } else { cell };
    Transition { next: next as u16, reward: fell.into(), is_over: cell == GOAL }
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
        let (direction, prob) = if self.is_slippery { slipped(SLIPS, a.0, draw) } else { (a.0, 1.0) };
        let Transition { next, reward, is_over } = walked(self.cell, direction);
        self.cell = next.into();
        let step = Step::new(*a, self.cell as i64, REWARDS[usize::from(reward)], Chance { prob });
        Ok((step.terminated_if(is_over), Record::empty()))
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

/// The walker's field, and the draw.
impl<const SLIPPERY: bool> ByField<2> for CliffWalking<SLIPPERY> {
    const FEWEST: usize = FEW;
    const DRAWS: Option<usize> = Some(1);

    fn is_wanted(_config: &Self::Config) -> bool {
        true
    }

    fn fields(&self) -> [f64; 2] {
        [self.cell as f64, 0.0]
    }

    fn set_fields(&mut self, [cell, _]: [f64; 2]) {
        self.cell = cell as usize;
    }

    fn draw(&mut self) -> f64 {
        self.streams.rng().random()
    }

    fn step_fields(
        config: &Self::Config,
        fields: [&mut [f64]; 2],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        _left: &mut Vec<Range<usize>>,
    ) {
        static STEPS: LazyLock<Transitions<4>> =
            LazyLock::new(|| table(GOAL + 1, |cell, direction| walked(cell, direction as i64)));
        let slips = config.is_slippery.then_some(SLIPS);
        Walk { table: &STEPS, rewards: REWARDS, slips }.step(fields, slots, actions, rows);
    }
}
