//! Two strips of lava between the agent and the goal; the second is in another row in DistShift2.

use envcore::{Result, Text};

use super::TO_THE_GOAL;
use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::GridCell;

pub(in crate::minigrid) struct DistShift {
    /// The row of the second strip.
    pub(in crate::minigrid) strip: i32,
}

const WIDTH: i32 = 9;
const HEIGHT: i32 = 7;

impl LevelGenerator for DistShift {
    fn size(&self) -> (usize, usize) {
        (WIDTH as usize, HEIGHT as usize)
    }

    fn max_steps(&self) -> u32 {
        4 * (WIDTH * HEIGHT) as u32
    }

    fn see_through_walls(&self) -> bool {
        true
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        level.outer_walls();
        level.set((WIDTH - 2, 1), GridCell::GOAL);
        level.horizontal((3, 1), WIDTH - 6, GridCell::LAVA);
        level.horizontal((3, self.strip), WIDTH - 6, GridCell::LAVA);
        level.put_agent((1, 1), 0);
        Ok((TO_THE_GOAL, Aim::Goal))
    }
}
