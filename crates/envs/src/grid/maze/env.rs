//! The rules as an [`Env`].

use std::sync::Arc;

use envcore::rng::{Rng, Streams};
use envcore::{
    Caps, Discrete, Env, Error, Frame, Leaf, Record, Result, Row, Space, Step, ToRow, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::config::MazeConfig;
use super::game::{Game, State};
use super::layout::FRAME_SIDE;
use super::level::Level;
use super::view::View;

/// The scale of [`Env::render`]: 512×512 pixels.
const RENDER_SCALE: usize = 8;

/// Maze-v0; see the module.
pub struct Maze {
    config: MazeConfig,
    streams: Streams,
    /// The index of the level being played.
    level: u64,
    game: Game,
}

/// What Maze-v0 tells beside its pixels, at resets too.
#[derive(ToRow)]
pub struct MazeInfo {
    /// Steps on a shortest path to the goal.
    distance: i32,
    /// The agent's column and row, from the top left.
    position: [i32; 2],
    /// The level's index.
    level: i64,
}

#[derive(Serialize, Deserialize)]
struct SavedMaze {
    streams: Streams,
    level: u64,
    cell: u16,
    facing: u8,
}

fn generate(config: &MazeConfig, level: u64) -> Result<Arc<Level>> {
    let mut rng = Rng::new(level);
    let mut below = |n: u64| rng.integers(0, n as i64) as u64;
    Level::generate(&mut below, config).map(Arc::new).map_err(Error::OptionValue)
}

impl Maze {
    fn play(&mut self, level: u64) -> Result<View> {
        self.level = level;
        self.game = Game::new(generate(&self.config, level)?);
        Ok(self.game.view())
    }

    fn told(&self) -> MazeInfo {
        MazeInfo { distance: self.game.distance(), position: self.game.position(), level: self.level as i64 }
    }
}

impl Env for Maze {
    type Config = MazeConfig;
    type Obs = View;
    type Act = Discrete<5>;
    type Info = MazeInfo;

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER);

    fn build(config: &MazeConfig, seed: i64) -> Result<Self> {
        Ok(Maze {
            config: config.clone(),
            streams: Streams::new(seed),
            level: 0,
            game: Game::new(generate(config, 0)?),
        })
    }

    fn step(&mut self, a: &Discrete<5>) -> Result<(Step<Self>, Record)> {
        let outcome = self.game.step(a.0 as u8).map_err(Error::env)?;
        let step = Step::new(*a, self.game.view(), outcome.reward, self.told());
        Ok((step.terminated_if(outcome.reached), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<View> {
        if !wants_reset(is_done)? {
            return Ok(self.game.view());
        }
        self.streams.begin_own();
        let level = self.streams.rng().integers(0, 1 << 31) as u64;
        self.play(level)
    }

    /// The level of index `ix`.
    fn reset_with_index(&mut self, ix: usize) -> Result<View> {
        self.play(ix as u64)
    }

    fn reseed(&mut self, _config: &MazeConfig, seed: i64) -> Result<()> {
        self.streams = Streams::new(seed);
        Ok(())
    }

    fn info(&self) -> Option<MazeInfo> {
        Some(self.told())
    }

    fn render(&mut self) -> Result<Frame> {
        let (height, width, pixels) = self.game.view().frame(RENDER_SCALE).map_err(Error::env)?;
        Frame::new(height, width, pixels)
    }

    fn save(&self) -> Result<Vec<u8>> {
        let State { cell, facing } = self.game.state();
        state::to_bytes(&SavedMaze { streams: self.streams.clone(), level: self.level, cell, facing })
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let SavedMaze { streams, level, cell, facing } = state::from_bytes(bytes)?;
        let game = Game::restore(generate(&self.config, level)?, State { cell, facing });
        self.game = game.map_err(Error::State)?;
        (self.streams, self.level) = (streams, level);
        Ok(())
    }
}

impl ToRow for View {
    fn space() -> Result<Space> {
        Ok(Leaf::image(&[FRAME_SIDE, FRAME_SIDE, 3]).into())
    }

    #[inline]
    fn write(&self, row: &mut Row<'_>) {
        self.draw(row.fixed::<u8>());
    }
}
