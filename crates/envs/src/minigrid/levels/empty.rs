//! An empty room with a goal in its far corner. The agent starts in the near corner, or anywhere.

use envcore::{Result, Text};

use super::TO_THE_GOAL;
use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};

pub(in crate::minigrid) struct Empty {
    pub(in crate::minigrid) size: usize,
    pub(in crate::minigrid) is_random: bool,
}

impl LevelGenerator for Empty {
    fn size(&self) -> (usize, usize) {
        (self.size, self.size)
    }

    fn max_steps(&self) -> u32 {
        4 * (self.size * self.size) as u32
    }

    fn see_through_walls(&self) -> bool {
        true
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        level.outer_walls();
        level.goal_in_corner();
        if self.is_random {
            level.place_agent(level.everywhere())?;
        } else {
            level.put_agent((1, 1), 0);
        }
        Ok((TO_THE_GOAL, Aim::Goal))
    }
}
