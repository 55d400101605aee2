//! A room whose doors, or things, differ in colour: say "done" beside the right one.

use envcore::{Result, Text};

use super::mission;
use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator, any_of};
use crate::minigrid::cell::{Colour, GridCell, Thing};
use crate::minigrid::world::Area;

/// A door in each wall of a room of any size.
pub(in crate::minigrid) struct GoToDoor {
    pub(in crate::minigrid) size: usize,
}

/// Two things in a room.
pub(in crate::minigrid) struct GoToObject {
    pub(in crate::minigrid) size: usize,
}

impl LevelGenerator for GoToDoor {
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
        let (width, height) = (level.int(5, level.width() + 1), level.int(5, level.height() + 1));
        let room = Area { top: (0, 0), size: (width, height) };
        level.walls(room);
        let doors = [
            (level.int(2, width - 2), 0),
            (level.int(2, width - 2), height - 1),
            (0, level.int(2, height - 2)),
            (width - 1, level.int(2, height - 2)),
        ];
        let mut colours = [Colour::Red; 4];
        let mut count = 0;
        while count < doors.len() {
            let colour = level.colour();
            if !colours[..count].contains(&colour) {
                colours[count] = colour;
                count += 1;
            }
        }
        for (door, colour) in doors.iter().zip(colours) {
            level.set(*door, GridCell::new(Thing::ClosedDoor, colour));
        }
        level.place_agent(room)?;
        let wanted = level.int(0, 4) as usize;
        let mission = mission(format!("go to the {} door", colours[wanted].name()));
        Ok((mission, Aim::Beside { place: level.number(doors[wanted]) }))
    }
}

impl LevelGenerator for GoToObject {
    fn size(&self) -> (usize, usize) {
        (self.size, self.size)
    }

    fn max_steps(&self) -> u32 {
        5 * (self.size * self.size) as u32
    }

    fn see_through_walls(&self) -> bool {
        true
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        level.outer_walls();
        let mut things = [((Thing::Empty, Colour::Red), (0, 0)); 2];
        let mut count = 0;
        while count < things.len() {
            let drawn = any_of(level, &[Thing::Key, Thing::Ball, Thing::Box]);
            if !things[..count].iter().any(|(known, _)| *known == drawn) {
                let spot = level.place(GridCell::new(drawn.0, drawn.1), level.everywhere())?;
                things[count] = (drawn, spot);
                count += 1;
            }
        }
        level.place_agent(level.everywhere())?;
        let ((thing, colour), spot) = level.one(&things);
        let mission = mission(format!("go to the {} {}", colour.name(), thing.name()));
        Ok((mission, Aim::Beside { place: level.number(spot) }))
    }
}
