//! Catch-v0: catch a ball that falls down a board with a paddle.
//!
//! The rules are those of `bsuite/environments/catch.py` (DeepMind, Apache-2.0; I. Osband et al.,
//! *Behaviour Suite for Reinforcement Learning*, 2019). bsuite draws from MT19937, this env from
//! `np.random.default_rng(seed)`.
//!
//! The board has `rows` × `columns` fields. An episode starts with the ball in the first row, in the
//! column `rng.integers(columns)`, and the paddle in the middle of the last row (`columns // 2`).
//! Every step moves the paddle and then drops the ball by one row. Observation: the board as
//! `float32`, 1 where the ball and the paddle are, else 0. Action: 0 left, 1 stay, 2 right; an edge
//! holds the paddle. Reward: when the ball is in the last row, 1 if the paddle is there too, else
//! −1; before that 0. Terminated: the ball is in the last row, after `rows` − 1 steps. Index ix is
//! the episode of seed ix.

use std::ops::Range;

use envcore::rng::Streams;
use envcore::simd::{self, Kernel};
use envcore::{
    ByField, Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, Row, RowsMut, Space, Step,
    StepArgs, StepColumns, ToRow, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::canvas::{Canvas, Rgb};

const NIGHT: Rgb = [24, 28, 44];
const SEAM: Rgb = [40, 46, 68];
const BALL: Rgb = [250, 196, 60];
const PADDLE: Rgb = [90, 180, 220];
/// About how many pixels the longer side of a picture has.
const PICTURE: f32 = 480.0;

/// Catch's options.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct CatchConfig {
    /// The rows of the board, 2 to 100.
    #[option(low = 2, high = 100)]
    pub rows: u32,
    /// The columns of the board, 1 to 100.
    #[option(low = 1, high = 100)]
    pub columns: u32,
}

/// The fields of the board that most envs have.
const USUAL: usize = 10 * 5;

impl Default for CatchConfig {
    fn default() -> Self {
        CatchConfig { rows: 10, columns: 5 }
    }
}

impl CatchConfig {
    /// Rows and columns.
    ///
    /// # Errors
    /// [`Error::OptionValue`] where they are out of range.
    fn size(&self) -> Result<[usize; 2]> {
        check_range("Catch-v0", "rows", self.rows, 2..=100)?;
        check_range("Catch-v0", "columns", self.columns, 1..=100)?;
        Ok([self.rows as usize, self.columns as usize])
    }
}

/// The environment; see the module.
pub struct Catch {
    rows: usize,
    columns: usize,
    streams: Streams,
    now: CatchState,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct CatchState {
    /// Where the ball is.
    row: usize,
    column: usize,
    /// The paddle's column.
    paddle: usize,
}

/// What the env shows: the numbers of two fields, row by row from the top left.
pub struct CatchSeen {
    ball: usize,
    paddle: usize,
}

impl ToRow for CatchSeen {
    fn space() -> Result<Space> {
        Err(Error::Space("the size of the board depends on the config".into()))
    }

    #[inline(always)]
    fn write(&self, row: &mut Row<'_>) {
        self.write_board(row.fixed::<f32>());
    }
}

impl CatchSeen {
    /// Writes the board.
    #[inline(always)]
    pub fn write_board(&self, board: &mut [f32]) {
        // The compiler clears a board whose size it knows in half of the time. It must not merge the
        // two ways into one, so that each draws all of the board.
        if let Ok(usual) = <&mut [f32; USUAL]>::try_from(&mut *board) {
            usual.fill(0.0);
            usual[self.ball] = 1.0;
            usual[self.paddle] = 1.0;
        } else {
            board.fill(0.0);
            board[self.ball] = 1.0;
            board[self.paddle] = 1.0;
        }
    }
}

impl Catch {
    fn begin(&mut self) -> CatchSeen {
        let column = self.streams.rng().choice(self.columns);
        self.now = CatchState { row: 0, column, paddle: self.columns / 2 };
        self.seen()
    }

    #[inline]
    fn seen(&self) -> CatchSeen {
        let CatchState { row, column, paddle } = self.now;
        CatchSeen { ball: row * self.columns + column, paddle: (self.rows - 1) * self.columns + paddle }
    }
}

impl Env for Catch {
    type Config = CatchConfig;
    type Obs = CatchSeen;
    type Act = Discrete<3>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::ANSI).union(Caps::BRIEF);

    fn build(config: &CatchConfig, seed: i64) -> Result<Self> {
        let [rows, columns] = config.size()?;
        Ok(Catch { rows, columns, streams: Streams::new(seed), now: CatchState::default() })
    }

    fn observation_space(config: &CatchConfig) -> Result<Space> {
        Ok(Leaf::real::<f32>(&config.size()?).bounded(0.0, 1.0).into())
    }

    #[inline(always)]
    fn step(&mut self, a: &Discrete<3>) -> Result<(Step<Self>, Record)> {
        let now = &mut self.now;
        // Without a branch, for nobody can predict a policy's actions.
        now.paddle = now.paddle.saturating_add(a.0 as usize).saturating_sub(1).min(self.columns - 1);
        let last = self.rows - 1;
        now.row = (now.row + 1).min(last);
        let is_over = now.row == last;
        let reward = match (is_over, now.paddle == now.column) {
            (false, _) => 0.0,
            (true, true) => 1.0,
            (true, false) => -1.0,
        };
        Ok((Step::new(*a, self.seen(), reward, ()).terminated_if(is_over), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<CatchSeen> {
        if !wants_reset(is_done)? {
            return Ok(self.seen());
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<CatchSeen> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn render(&mut self) -> Result<Frame> {
        let side = (PICTURE / self.rows.max(self.columns) as f32).floor();
        let length = |fields: usize| fields as f32 * side;
        let (width, height) = (length(self.columns), length(self.rows));
        let mut canvas = Canvas::new(width as u32, height as u32, NIGHT)?;
        (1..self.rows).for_each(|row| canvas.rect(0.0, length(row), width, 1.0, SEAM));
        (1..self.columns).for_each(|column| canvas.rect(length(column), 0.0, 1.0, height, SEAM));
        let CatchState { row, column, paddle } = self.now;
        canvas.rect(length(paddle), length(self.rows - 1) + side * 0.6, side, side * 0.4, PADDLE);
        canvas.circle(length(column) + side / 2.0, length(row) + side / 2.0, side * 0.3, BALL);
        canvas.frame()
    }

    /// The board: `o` is the ball, `=` the paddle, and `@` the ball in the paddle.
    fn ansi(&mut self) -> Result<String> {
        let CatchSeen { ball, paddle } = self.seen();
        let mut text = String::new();
        for field in 0..self.rows * self.columns {
            text.push(match (field == ball, field == paddle) {
                (true, true) => '@',
                (true, false) => 'o',
                (false, true) => '=',
                (false, false) => '.',
            });
            text.push_str(if (field + 1) % self.columns == 0 { "\n" } else { " " });
        }
        Ok(text)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(&(&self.streams, self.now))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let (streams, now): (Streams, CatchState) = state::from_bytes(bytes)?;
        if now.row >= self.rows || now.column >= self.columns || now.paddle >= self.columns {
            return Err(Error::State("a ball or a paddle beside the board".into()));
        }
        (self.streams, self.now) = (streams, now);
        Ok(())
    }
}

/// The ball's row and column, and the paddle's column.
impl ByField<3> for Catch {
    /// One ball falls faster by itself.
    const FEWEST: usize = 16;

    fn is_wanted(_config: &CatchConfig) -> bool {
        true
    }

    fn fields(&self) -> [f64; 3] {
        let CatchState { row, column, paddle } = self.now;
        [row as f64, column as f64, paddle as f64]
    }

    fn set_fields(&mut self, fields: [f64; 3]) {
        let [row, column, paddle] = fields.map(|field| field as usize);
        self.now = CatchState { row, column, paddle };
    }

    fn step_fields(
        config: &CatchConfig,
        [row, column, paddle]: [&mut [f64]; 3],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        _left: &mut Vec<Range<usize>>,
    ) {
        let size = [config.rows as usize, config.columns as usize];
        let actions = actions.leaf(0, slots);
        let StepColumns { reward, terminated, truncated, mut observation } = rows.columns();
        truncated.fill(false);
        let boards = observation.leaf(0);
        simd::dispatch(Falls { size, row, column, paddle, actions, boards, reward, terminated });
    }
}

/// A whole number from 0 to 2³² − 1. Of any other number a cast would make a number too, which takes
/// ten instructions.
#[inline(always)]
fn whole(number: f64) -> usize {
    // From here on, floats are one apart.
    const FROM: f64 = (1u64 << 52) as f64;
    (number + FROM).to_bits() as u32 as usize
}

/// What a step reads and writes, with an element per env; of `boards` with a board per env.
struct Falls<'a> {
    /// Rows and columns.
    size: [usize; 2],
    row: &'a mut [f64],
    column: &'a [f64],
    paddle: &'a mut [f64],
    actions: &'a [i64],
    boards: &'a mut [f32],
    reward: &'a mut [f64],
    terminated: &'a mut [bool],
}

impl Kernel for Falls<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Falls { size: [rows, columns], row, column, paddle, actions, boards, reward, terminated } = self;
        let n = row.len();
        let (column, paddle, actions) = (&column[..n], &mut paddle[..n], &actions[..n]);
        let (reward, terminated) = (&mut reward[..n], &mut terminated[..n]);
        let (last_row, last_column) = ((rows - 1) as f64, (columns - 1) as f64);
        for env in 0..n {
            // The action of a slot that awaits its reset may be any bytes.
            paddle[env] = (paddle[env] + f64::from(actions[env] as i32) - 1.0).clamp(0.0, last_column);
            row[env] = (row[env] + 1.0).min(last_row);
        }
        for env in 0..n {
            let is_over = row[env] == last_row;
            let caught = if paddle[env] == column[env] { 1.0 } else { -1.0 };
            (reward[env], terminated[env]) = (if is_over { caught } else { 0.0 }, is_over);
        }
        let across = columns as f64;
        let below = last_row * across;
        for (env, board) in boards.chunks_exact_mut(rows * columns).take(n).enumerate() {
            let (ball, paddle) = (row[env] * across + column[env], below + paddle[env]);
            CatchSeen { ball: whole(ball), paddle: whole(paddle) }.write_board(board);
        }
    }
}
