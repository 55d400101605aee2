//! A room with a red door and a blue one, to be opened in this order.

use envcore::{Result, Text};

use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::{Colour, GridCell, Thing};
use crate::minigrid::world::Area;

pub(in crate::minigrid) struct RedBlueDoors {
    /// The room's side; the grid is twice as wide.
    pub(in crate::minigrid) size: usize,
}

impl LevelGenerator for RedBlueDoors {
    fn size(&self) -> (usize, usize) {
        (2 * self.size, self.size)
    }

    fn max_steps(&self) -> u32 {
        20 * (self.size * self.size) as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let side = self.size as i32;
        level.outer_walls();
        let room = Area { top: (side / 2, 0), size: (side, side) };
        level.walls(room);
        level.place_agent(room)?;
        let red = (side / 2, level.int(1, side - 1));
        level.set(red, GridCell::new(Thing::ClosedDoor, Colour::Red));
        let blue = (side / 2 + side - 1, level.int(1, side - 1));
        level.set(blue, GridCell::new(Thing::ClosedDoor, Colour::Blue));
        let [red, blue] = [red, blue].map(|door| level.number(door));
        Ok((Text::from_static("open the red door then the blue door"), Aim::RedThenBlue { red, blue }))
    }
}
