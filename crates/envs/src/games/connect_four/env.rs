//! The rules as an [`Env`].

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, Row, Space, Step, ToRow, state,
    wants_reset,
};
use serde::{Deserialize, Serialize};

use super::board::{self, BOARD, COLUMNS, ROWS, dropped, field, has_four, has_room};
use super::draw;
use super::opponent::{OpponentKind, pick};
use crate::games::check_range;

/// Who begins a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstMove {
    /// Either, as is drawn.
    Random,
    /// The player.
    Player,
    /// The opponent.
    Opponent,
}

/// Connect Four's options.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct ConnectFourConfig {
    /// "random", "greedy" or "minimax".
    pub opponent: OpponentKind,
    /// How many stones "minimax" looks ahead, 1 to 12.
    #[option(low = 1, high = 12)]
    pub depth: u32,
    /// Who begins: "random", "player" or "opponent".
    pub first: FirstMove,
}

impl Default for ConnectFourConfig {
    fn default() -> Self {
        ConnectFourConfig { opponent: OpponentKind::Random, depth: 4, first: FirstMove::Random }
    }
}

/// The environment; see the module.
pub struct ConnectFour {
    config: ConnectFourConfig,
    streams: Streams,
    seen: ConnectFourSeen,
}

/// What the env shows: the stones of both.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ConnectFourSeen {
    /// The player's.
    pub(super) mine: u64,
    /// The opponent's.
    pub(super) theirs: u64,
}

impl ToRow for ConnectFourSeen {
    fn space() -> Result<Space> {
        Ok(Leaf::real::<i8>(&[ROWS, COLUMNS]).bounded(-1, 1).into())
    }

    #[inline(always)]
    fn write(&self, row: &mut Row<'_>) {
        self.write_board(row.fixed::<i8>());
    }
}

impl ConnectFourSeen {
    /// Writes the board.
    #[inline]
    pub fn write_board(&self, fields: &mut [i8]) {
        let is_in = |stones: u64, row, column| i8::from(stones & field(row, column) != 0);
        for (down, fields) in fields.chunks_exact_mut(COLUMNS).enumerate() {
            for (column, stone) in fields.iter_mut().enumerate() {
                let row = ROWS - 1 - down;
                *stone = is_in(self.mine, row, column) - is_in(self.theirs, row, column);
            }
        }
    }

    #[inline]
    pub(super) fn all(self) -> u64 {
        self.mine | self.theirs
    }
}

impl ConnectFour {
    fn begin(&mut self) -> ConnectFourSeen {
        self.seen = ConnectFourSeen::default();
        let is_second = match self.config.first {
            FirstMove::Random => self.streams.rng().choice(2) == 1,
            FirstMove::Player => false,
            FirstMove::Opponent => true,
        };
        if is_second {
            self.answer();
        }
        self.seen
    }

    /// Plays the opponent's stone.
    #[inline]
    fn answer(&mut self) {
        let ConnectFourSeen { mine, theirs } = self.seen;
        let column = pick(self.config.opponent, self.config.depth, theirs, mine, self.streams.rng());
        self.seen.theirs |= dropped(mine | theirs, column);
    }

    /// Plays the player's stone and the answer to it: the reward, and whether the game is over.
    #[inline]
    fn play(&mut self, column: usize) -> (f64, bool) {
        if column >= COLUMNS || !has_room(self.seen.all(), column) {
            return (-1.0, true);
        }
        self.seen.mine |= dropped(self.seen.all(), column);
        if has_four(self.seen.mine) {
            return (1.0, true);
        }
        if self.seen.all() == BOARD {
            return (0.0, true);
        }
        self.answer();
        let has_lost = has_four(self.seen.theirs);
        (if has_lost { -1.0 } else { 0.0 }, has_lost || self.seen.all() == BOARD)
    }
}

impl Env for ConnectFour {
    type Config = ConnectFourConfig;
    type Obs = ConnectFourSeen;
    type Act = Discrete<7>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::ANSI).union(Caps::ACTION_MASK);

    fn build(config: &ConnectFourConfig, seed: i64) -> Result<Self> {
        check_range("ConnectFour-v0", "depth", config.depth, 1..=12)?;
        let (config, seen) = (config.clone(), ConnectFourSeen::default());
        Ok(ConnectFour { config, streams: Streams::new(seed), seen })
    }

    #[inline(always)]
    fn step(&mut self, a: &Discrete<7>) -> Result<(Step<Self>, Record)> {
        let (reward, is_over) = self.play(a.0 as usize);
        Ok((Step::new(*a, self.seen, reward, ()).terminated_if(is_over), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<ConnectFourSeen> {
        if !wants_reset(is_done)? {
            return Ok(self.seen);
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<ConnectFourSeen> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    #[inline(always)]
    fn action_mask(&self, mask: &mut [bool]) {
        for (column, is_allowed) in mask.iter_mut().enumerate() {
            *is_allowed = has_room(self.seen.all(), column);
        }
    }

    fn render(&mut self) -> Result<Frame> {
        draw::picture(self.seen)
    }

    fn ansi(&mut self) -> Result<String> {
        Ok(draw::text(self.seen))
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(&(&self.streams, self.seen))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let (streams, seen): (Streams, ConnectFourSeen) = state::from_bytes(bytes)?;
        if !board::are_possible(seen.mine, seen.theirs) {
            return Err(Error::State("no game of Connect Four has these stones".into()));
        }
        (self.streams, self.seen) = (streams, seen);
        Ok(())
    }
}
