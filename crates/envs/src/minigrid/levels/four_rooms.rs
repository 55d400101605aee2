//! Four rooms with a gap in each wall between them; agent and goal are anywhere.

use envcore::{Result, Text};

use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::GridCell;

pub(in crate::minigrid) struct FourRooms;

const SIDE: i32 = 19;

impl LevelGenerator for FourRooms {
    fn size(&self) -> (usize, usize) {
        (SIDE as usize, SIDE as usize)
    }

    fn max_steps(&self) -> u32 {
        100
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        level.outer_walls();
        let room = SIDE / 2;
        for (column, row) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let (left, top) = (column * room, row * room);
            let (right, bottom) = (left + room, top + room);
            if column == 0 {
                level.vertical((right, top), room, GridCell::WALL);
                let gap = level.int(top + 1, bottom);
                level.set((right, gap), GridCell::EMPTY);
            }
            if row == 0 {
                level.horizontal((left, bottom), room, GridCell::WALL);
                let gap = level.int(left + 1, right);
                level.set((gap, bottom), GridCell::EMPTY);
            }
        }
        level.place_agent(level.everywhere())?;
        level.place(GridCell::GOAL, level.everywhere())?;
        Ok((Text::from_static("reach the goal"), Aim::Goal))
    }
}
