//! Six rooms along a hallway: the goal is locked up in one, the key is in another.

use envcore::{Result, Text};

use super::mission;
use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::{Colour, GridCell, Thing};
use crate::minigrid::world::{Area, Spot};

pub(in crate::minigrid) struct LockedRoom;

const SIDE: i32 = 19;
/// The columns of the hallway's walls.
const LEFT: i32 = SIDE / 2 - 2;
const RIGHT: i32 = SIDE / 2 + 2;
/// From a room to the one below it.
const PITCH: i32 = SIDE / 3;

/// A field within a room.
fn within(level: &mut LevelBuilder<'_>, (x, y): Spot) -> Spot {
    (level.int(x + 1, x + LEFT), level.int(y + 1, y + PITCH))
}

impl LevelGenerator for LockedRoom {
    fn size(&self) -> (usize, usize) {
        (SIDE as usize, SIDE as usize)
    }

    fn max_steps(&self) -> u32 {
        10 * SIDE as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        level.outer_walls();
        level.vertical((LEFT, 0), SIDE, GridCell::WALL);
        level.vertical((RIGHT, 0), SIDE, GridCell::WALL);
        // The corner and the door of each room.
        let mut rooms = [((0, 0), (0, 0)); 6];
        for (k, room) in rooms.iter_mut().enumerate() {
            let row = k as i32 / 2 * PITCH;
            *room = if k % 2 == 0 { ((0, row), (LEFT, row + 3)) } else { ((RIGHT, row), (RIGHT, row + 3)) };
            level.horizontal(room.0, LEFT + 1, GridCell::WALL);
        }
        let locked = level.int(0, 6) as usize;
        let goal = within(level, rooms[locked].0);
        level.set(goal, GridCell::GOAL);

        let mut colours = Colour::BY_NAME;
        for (k, (_, door)) in rooms.iter().enumerate() {
            // The colours that are left, in order, follow those of the doors.
            let drawn = k + level.int(0, 6 - k as i32) as usize;
            colours[k..=drawn].rotate_right(1);
            let thing = if k == locked { Thing::LockedDoor } else { Thing::ClosedDoor };
            level.set(*door, GridCell::new(thing, colours[k]));
        }
        let keeper = loop {
            let drawn = level.int(0, 6) as usize;
            if drawn != locked {
                break drawn;
            }
        };
        let key = within(level, rooms[keeper].0);
        level.set(key, GridCell::new(Thing::Key, colours[locked]));
        level.place_agent(Area { top: (LEFT, 0), size: (RIGHT - LEFT, SIDE) })?;
        let [locked, keeper] = [locked, keeper].map(|room| colours[room].name());
        let mission = mission(format!(
            "get the {locked} key from the {keeper} room, unlock the {locked} door and go to the goal"
        ));
        Ok((mission, Aim::Goal))
    }
}
