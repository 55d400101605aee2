//! A goal behind a locked door, and its key on the agent's side.

use envcore::{Result, Text};

use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::{Colour, GridCell, Thing};
use crate::minigrid::world::Area;

pub(in crate::minigrid) struct DoorKey {
    pub(in crate::minigrid) size: usize,
}

impl LevelGenerator for DoorKey {
    fn size(&self) -> (usize, usize) {
        (self.size, self.size)
    }

    fn max_steps(&self) -> u32 {
        10 * (self.size * self.size) as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let (width, height) = (level.width(), level.height());
        level.outer_walls();
        level.goal_in_corner();
        let wall = level.int(2, width - 2);
        level.vertical((wall, 0), height, GridCell::WALL);
        let left = Area { top: (0, 0), size: (wall, height) };
        level.place_agent(left)?;
        let door = level.int(1, height - 2);
        level.set((wall, door), GridCell::new(Thing::LockedDoor, Colour::Yellow));
        level.place(GridCell::new(Thing::Key, Colour::Yellow), left)?;
        Ok((Text::from_static("use the key to open the door and then get to the goal"), Aim::Goal))
    }
}
