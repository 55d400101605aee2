//! The rules as an [`Env`].

use envcore::rng::Streams;
use envcore::{
    Caps, Discrete, Env, Error, Frame, Leaf, Record, Result, Space, Step, ToRow, state, wants_reset,
};

use super::board::{MAX_EXPONENT, SIDE, TileBoard};
use super::draw;

/// The environment; see the module.
pub struct Game2048 {
    streams: Streams,
    board: TileBoard,
    /// Whether each move changes the board.
    legal: [bool; 4],
}

/// What the env tells beside the board, at resets too.
#[derive(Clone, Copy, Debug, ToRow)]
pub struct Game2048Info {
    /// The number on the highest tile.
    highest: i64,
}

impl Game2048 {
    fn begin(&mut self) -> [u8; SIDE * SIDE] {
        self.board = TileBoard::default();
        for _ in 0..2 {
            self.board.add_tile(self.streams.rng());
        }
        self.legal = self.board.legal_moves();
        self.board.0
    }

    #[inline]
    fn told(&self) -> Game2048Info {
        Game2048Info { highest: 1 << self.board.highest() }
    }
}

impl Env for Game2048 {
    type Config = ();
    type Obs = [u8; SIDE * SIDE];
    type Act = Discrete<4>;
    type Info = Game2048Info;

    const CAPS: Caps =
        Caps::SAVE.union(Caps::RENDER).union(Caps::ANSI).union(Caps::BRIEF).union(Caps::ACTION_MASK);

    fn build(_config: &(), seed: i64) -> Result<Self> {
        Ok(Game2048 { streams: Streams::new(seed), board: TileBoard::default(), legal: [false; 4] })
    }

    fn observation_space(_config: &()) -> Result<Space> {
        Ok(Leaf::real::<u8>(&[SIDE, SIDE]).bounded(0, MAX_EXPONENT).into())
    }

    #[inline]
    fn step(&mut self, a: &Discrete<4>) -> Result<(Step<Self>, Record)> {
        let action = a.0 as usize;
        let mut reward = 0.0;
        if self.legal[action] {
            reward = f64::from(self.board.slide(action));
            self.board.add_tile(self.streams.rng());
            self.legal = self.board.legal_moves();
        }
        let is_over = self.legal == [false; 4];
        let step = Step::new(*a, self.board.0, reward, self.told());
        Ok((step.terminated_if(is_over), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Self::Obs> {
        if !wants_reset(is_done)? {
            return Ok(self.board.0);
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Self::Obs> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn info(&self) -> Option<Game2048Info> {
        Some(self.told())
    }

    #[inline]
    fn action_mask(&self, mask: &mut [bool]) {
        mask.copy_from_slice(&self.legal);
    }

    fn render(&mut self) -> Result<Frame> {
        draw::picture(&self.board)
    }

    fn ansi(&mut self) -> Result<String> {
        Ok(draw::text(&self.board))
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(&(&self.streams, self.board))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let (streams, board): (Streams, TileBoard) = state::from_bytes(bytes)?;
        if !board.is_possible() {
            return Err(Error::State("no game of 2048 comes to this board".into()));
        }
        (self.streams, self.board, self.legal) = (streams, board, board.legal_moves());
        Ok(())
    }
}
