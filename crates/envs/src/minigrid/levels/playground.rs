//! Nine rooms with doors between them and twelve things, without a task.

use envcore::{Result, Text};

use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator, any_of};
use crate::minigrid::cell::{GridCell, Thing};

pub(in crate::minigrid) struct Playground;

const SIDE: i32 = 19;
const THINGS: usize = 12;

impl LevelGenerator for Playground {
    fn size(&self) -> (usize, usize) {
        (SIDE as usize, SIDE as usize)
    }

    fn max_steps(&self) -> u32 {
        100
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        level.outer_walls();
        let room = SIDE / 3;
        for (row, column) in (0..3).flat_map(|row| (0..3).map(move |column| (row, column))) {
            let (left, top) = (column * room, row * room);
            let (right, bottom) = (left + room, top + room);
            if column < 2 {
                level.vertical((right, top), room, GridCell::WALL);
                let spot = (right, level.int(top + 1, bottom - 1));
                let door = GridCell::new(Thing::ClosedDoor, level.colour());
                level.set(spot, door);
            }
            if row < 2 {
                level.horizontal((left, bottom), room, GridCell::WALL);
                let spot = (level.int(left + 1, right - 1), bottom);
                let door = GridCell::new(Thing::ClosedDoor, level.colour());
                level.set(spot, door);
            }
        }
        level.place_agent(level.everywhere())?;
        for _ in 0..THINGS {
            let (thing, colour) = any_of(level, &[Thing::Key, Thing::Ball, Thing::Box]);
            level.place(GridCell::new(thing, colour), level.everywhere())?;
        }
        Ok((Text::default(), Aim::Goal))
    }
}
