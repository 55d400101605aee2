//! A strip of lava across a room, with a gap in it.

use envcore::{Result, Text};

use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::GridCell;

pub(in crate::minigrid) struct LavaGap {
    pub(in crate::minigrid) size: usize,
}

impl LevelGenerator for LavaGap {
    fn size(&self) -> (usize, usize) {
        (self.size, self.size)
    }

    fn max_steps(&self) -> u32 {
        4 * (self.size * self.size) as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let (width, height) = (level.width(), level.height());
        level.outer_walls();
        level.put_agent((1, 1), 0);
        level.goal_in_corner();
        let gap = (level.int(2, width - 2), level.int(1, height - 1));
        level.vertical((gap.0, 1), height - 2, GridCell::LAVA);
        level.set(gap, GridCell::EMPTY);
        Ok((Text::from_static("avoid the lava and get to the green goal square"), Aim::Goal))
    }
}
