//! The rules as an [`Env`].

use std::sync::Arc;

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, Row, Space, Step, ToRow, state,
    wants_reset,
};
use serde::{Deserialize, Serialize};

use super::draw;
use super::world::{PLANES, SnakeWorld};
use crate::games::check_range;

/// Snake's options.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct SnakeConfig {
    /// The rows of the board, 2 to 64.
    #[option(low = 2, high = 64)]
    pub rows: u32,
    /// The columns of the board, 2 to 64.
    #[option(low = 2, high = 64)]
    pub columns: u32,
}

impl Default for SnakeConfig {
    /// As Jumanji registers the env.
    fn default() -> Self {
        SnakeConfig { rows: 12, columns: 12 }
    }
}

impl SnakeConfig {
    /// Rows and columns.
    ///
    /// # Errors
    /// [`Error::OptionValue`] where they are out of range.
    fn size(&self) -> Result<[usize; 2]> {
        check_range("Snake-v0", "rows", self.rows, 2..=64)?;
        check_range("Snake-v0", "columns", self.columns, 2..=64)?;
        Ok([self.rows as usize, self.columns as usize])
    }
}

/// The environment; see the module.
pub struct Snake {
    streams: Streams,
    world: Arc<SnakeWorld>,
}

/// What the env shows: the board, which writes itself into the row.
pub struct SnakeSeen(Arc<SnakeWorld>);

impl ToRow for SnakeSeen {
    fn space() -> Result<Space> {
        Err(Error::Space("the size of the board depends on the config".into()))
    }

    #[inline(always)]
    fn write(&self, row: &mut Row<'_>) {
        self.write_planes(row.fixed::<f32>());
    }
}

impl SnakeSeen {
    /// Writes the planes.
    #[inline]
    pub fn write_planes(&self, planes: &mut [f32]) {
        self.0.write_planes(planes);
    }
}

/// What an episode's rest depends on, beside the config.
#[derive(Serialize, Deserialize)]
struct SavedSnake {
    streams: Streams,
    /// From the tail to the head.
    snake: Vec<u16>,
    fruit: Option<u16>,
}

impl Snake {
    fn begin(&mut self) -> SnakeSeen {
        Arc::make_mut(&mut self.world).begin(self.streams.rng());
        self.seen()
    }

    #[inline]
    fn seen(&self) -> SnakeSeen {
        SnakeSeen(self.world.clone())
    }
}

impl Env for Snake {
    type Config = SnakeConfig;
    type Obs = SnakeSeen;
    type Act = Discrete<4>;
    type Info = ();

    const CAPS: Caps =
        Caps::SAVE.union(Caps::RENDER).union(Caps::ANSI).union(Caps::BRIEF).union(Caps::ACTION_MASK);

    fn build(config: &SnakeConfig, seed: i64) -> Result<Self> {
        let [rows, columns] = config.size()?;
        let world = SnakeWorld::new(rows, columns);
        Ok(Snake { streams: Streams::new(seed), world: Arc::new(world) })
    }

    fn observation_space(config: &SnakeConfig) -> Result<Space> {
        let [rows, columns] = config.size()?;
        Ok(Leaf::real::<f32>(&[rows, columns, PLANES]).bounded(0.0, 1.0).into())
    }

    #[inline(always)]
    fn step(&mut self, a: &Discrete<4>) -> Result<(Step<Self>, Record)> {
        let world = Arc::make_mut(&mut self.world);
        let (has_eaten, is_over) = world.play(a.0 as usize, self.streams.rng());
        let reward = if has_eaten { 1.0 } else { 0.0 };
        Ok((Step::new(*a, self.seen(), reward, ()).terminated_if(is_over), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<SnakeSeen> {
        if !wants_reset(is_done)? {
            return Ok(self.seen());
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<SnakeSeen> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn reseed(&mut self, _config: &SnakeConfig, seed: i64) -> Result<()> {
        self.streams = Streams::new(seed);
        Ok(())
    }

    #[inline]
    fn action_mask(&self, mask: &mut [bool]) {
        let free = self.world.free_moves();
        if free.contains(&true) {
            mask.copy_from_slice(&free);
        }
    }

    fn render(&mut self) -> Result<Frame> {
        draw::picture(&self.world)
    }

    fn ansi(&mut self) -> Result<String> {
        Ok(draw::text(&self.world))
    }

    fn save(&self) -> Result<Vec<u8>> {
        let (streams, snake) = (self.streams.clone(), self.world.snake().collect());
        state::to_bytes(&SavedSnake { streams, snake, fruit: self.world.fruit })
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let SavedSnake { streams, snake, fruit } = state::from_bytes(bytes)?;
        let mut world = SnakeWorld::clone(&self.world);
        world.put(&snake, fruit).ok_or_else(|| Error::State("no episode on this board has it".into()))?;
        (self.streams, self.world) = (streams, Arc::new(world));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_that_is_kept_is_not_changed_by_the_next_step() {
        let mut env = Snake::build(&SnakeConfig::default(), 3).unwrap();
        let kept = env.reset(None).unwrap();
        let planes = |seen: &SnakeSeen| {
            let mut planes = vec![0.0; 12 * 12 * PLANES];
            seen.write_planes(&mut planes);
            planes
        };
        let before = planes(&kept);
        let mut mask = [true; 4];
        env.action_mask(&mut mask);
        let action = mask.iter().position(|is_allowed| *is_allowed).unwrap() as i64;
        let (step, _) = env.step(&Discrete(action)).unwrap();
        assert_eq!(planes(&kept), before);
        assert_ne!(planes(&step.obs), before);
    }

    #[test]
    fn the_mask_has_the_moves_that_do_not_end_the_game_and_all_where_every_move_does() {
        let mut env = Snake::build(&SnakeConfig { rows: 3, columns: 3 }, 0).unwrap();
        let cases: [(&[u16], u16, [bool; 4]); 2] = [
            // From the left edge only the tail's field, below the head.
            (&[6, 7, 4, 1, 0, 3], 8, [false, false, true, false]),
            // In a corner, shut in by its own body.
            (&[5, 8, 7, 4, 1, 0, 3, 6], 2, [true; 4]),
        ];
        for (snake, fruit, expected) in cases {
            Arc::make_mut(&mut env.world).put(snake, Some(fruit)).unwrap();
            let mut mask = [true; 4];
            env.action_mask(&mut mask);
            assert_eq!(mask, expected, "{snake:?}");
        }
    }
}
