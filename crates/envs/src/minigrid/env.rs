//! The rules as an [`Env`].

use std::sync::Arc;

use envcore::rng::Streams;
use envcore::{
    Caps, Discrete, Env, Error, Frame, Leaf, Record, Result, Space, Step, Text, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::aim::{Aim, MAX_BALLS};
use super::builder::{LevelBuilder, LevelGenerator};
use super::cell::GridCell;
use super::config::MiniGridConfig;
use super::picture;
use super::view::{self, MAX_MISSION, MiniGridSeen};
use super::world::GridWorld;

/// The environment; see the module.
pub struct MiniGrid {
    level: &'static dyn LevelGenerator,
    streams: Streams,
    world: Arc<GridWorld>,
}

/// What an episode's rest depends on, beside the config.
#[derive(Serialize, Deserialize)]
struct SavedMiniGrid {
    streams: Streams,
    cells: Vec<u8>,
    agent: (i32, i32),
    facing: u8,
    carried: u8,
    steps: u32,
    mission: Text,
    aim: Aim,
}

impl MiniGrid {
    fn begin(&mut self) -> Result<MiniGridSeen> {
        let world = Arc::make_mut(&mut self.world);
        let mut builder = LevelBuilder::new(world, self.streams.rng());
        let (mission, aim) = self.level.generate(&mut builder)?;
        (world.mission, world.aim) = (mission, aim);
        Ok(self.seen())
    }

    #[inline]
    fn seen(&self) -> MiniGridSeen {
        MiniGridSeen(self.world.clone())
    }
}

impl Env for MiniGrid {
    type Config = MiniGridConfig;
    type Obs = MiniGridSeen;
    type Act = Discrete<7>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::BRIEF);

    fn build(config: &MiniGridConfig, seed: i64) -> Result<Self> {
        let level = config.level.0;
        let (width, height) = level.size();
        let world = GridWorld::new(width, height, config.max_steps()?, config.sight()?);
        Ok(MiniGrid { level, streams: Streams::new(seed), world: Arc::new(world) })
    }

    fn observation_space(config: &MiniGridConfig) -> Result<Space> {
        view::space(config.level.0, config.sight()?)
    }

    fn action_space(config: &MiniGridConfig) -> Result<Space> {
        Ok(Leaf::discrete(config.level.0.num_actions()).into())
    }

    #[inline(always)]
    fn step(&mut self, a: &Discrete<7>) -> Result<(Step<Self>, Record)> {
        let world = Arc::make_mut(&mut self.world);
        let verdict = world.play(a.0 as u8, self.streams.rng());
        let is_late = world.steps >= world.max_steps;
        let step = Step::new(*a, self.seen(), verdict.reward, ());
        Ok((step.terminated_if(verdict.terminated).truncated_if(is_late), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<MiniGridSeen> {
        if !wants_reset(is_done)? {
            return Ok(self.seen());
        }
        self.streams.begin_own();
        self.begin()
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<MiniGridSeen> {
        self.streams.begin_index(ix as u64);
        self.begin()
    }

    fn reseed(&mut self, _config: &MiniGridConfig, seed: i64) -> Result<()> {
        self.streams = Streams::new(seed);
        Ok(())
    }

    fn render(&mut self) -> Result<Frame> {
        picture::frame(&self.world)
    }

    fn save(&self) -> Result<Vec<u8>> {
        let world = &*self.world;
        let rows = (0..world.height).flat_map(|row| world.cells_of_row(row));
        state::to_bytes(&SavedMiniGrid {
            streams: self.streams.clone(),
            cells: rows.map(|cell| cell.code()).collect(),
            agent: world.spot(world.agent),
            facing: world.facing,
            carried: world.carried.code(),
            steps: world.steps,
            mission: world.mission.clone(),
            aim: world.aim,
        })
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let saved: SavedMiniGrid = state::from_bytes(bytes)?;
        let mut world = GridWorld::clone(&self.world);
        saved.put_into(&mut world).ok_or_else(|| Error::State("no episode of this level has it".into()))?;
        (self.streams, self.world) = (saved.streams, Arc::new(world));
        Ok(())
    }
}

impl SavedMiniGrid {
    /// `None` where no episode on a grid of this size can be in this state.
    fn put_into(&self, world: &mut GridWorld) -> Option<()> {
        let (width, height) = (world.width, world.height);
        let cells = self.cells.iter().map(|code| GridCell::from_code(*code)).collect::<Option<Vec<_>>>()?;
        let carried = GridCell::from_code(self.carried)?;
        let holds = carried == GridCell::EMPTY || carried.is_portable();
        let spots = self.aim.places().all(|number| world.has(world.spot(number)));
        let count = if let Aim::Dodge { count, .. } = self.aim { usize::from(count) } else { 0 };
        let fits = cells.len() == width * height
            && world.has(self.agent)
            && self.facing < 4
            && holds
            && spots
            && count <= MAX_BALLS
            && self.steps <= world.max_steps
            && self.steps < u32::MAX
            && self.mission.chars().count() <= MAX_MISSION;
        if !fits {
            return None;
        }
        for (row, cells) in cells.chunks_exact(width).enumerate() {
            world.cells_of_row_mut(row).copy_from_slice(cells);
        }
        world.agent = world.number(self.agent);
        (world.facing, world.carried, world.steps) = (self.facing, carried, self.steps);
        (world.mission, world.aim) = (self.mission.clone(), self.aim);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::MiniGridView;
    use super::*;

    fn env(level: &str, view: MiniGridView) -> MiniGrid {
        let config = MiniGridConfig { view, ..MiniGridConfig::default() }.with_level(level);
        let mut env = MiniGrid::build(&config, 3).unwrap();
        env.reset(None).unwrap();
        env
    }

    fn image(seen: &MiniGridSeen, bytes: usize) -> Vec<u8> {
        let mut image = vec![0; bytes];
        seen.write_image(&mut image);
        image
    }

    /// A state that loads is one that can be shown, drawn and played.
    #[test]
    fn a_state_that_no_episode_has_is_refused() {
        let levels = [
            ("MiniGrid-Dynamic-Obstacles-5x5-v0", MiniGridView::Rgb, 40 * 40 * 3),
            ("MiniGrid-PutNear-6x6-N2-v0", MiniGridView::Full, 6 * 6 * 3),
            ("MiniGrid-ObstructedMaze-1Dlh-v0", MiniGridView::Partial, 7 * 7 * 3),
            ("MiniGrid-MemoryS7-v0", MiniGridView::RgbPartial, 56 * 56 * 3),
        ];
        for (level, view, bytes) in levels {
            let mut env = env(level, view);
            let state = env.save().unwrap();
            let mut refused = 0;
            for (at, value) in
                (0..state.len()).flat_map(|at| [0x03, 0x0b, 0x7f, 0xff].map(|value| (at, value)))
            {
                let mut changed = state.clone();
                changed[at] = value;
                match env.load(&changed) {
                    Ok(()) => {
                        for action in 0..7 {
                            let (step, _) = env.step(&Discrete(action)).unwrap();
                            image(&step.obs, bytes);
                        }
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::State(_)), "{error}");
                        refused += 1;
                    }
                }
            }
            assert!(refused > 50, "{level}: {refused}");
            env.load(&state).unwrap();
        }
    }

    #[test]
    fn an_observation_that_is_kept_is_not_changed_by_the_next_step() {
        let mut env = env("MiniGrid-FourRooms-v0", MiniGridView::Partial);
        let kept = env.reset(Some(&vec![0])).unwrap();
        let (before, facing) = (image(&kept, 147), kept.direction());
        env.step(&Discrete(0)).unwrap();
        assert_eq!((image(&kept, 147), kept.direction()), (before, facing));
    }
}
