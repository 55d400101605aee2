//! Rooms behind locked doors, whose keys may be in boxes; balls may block the doors. A blue ball is
//! to be picked up.
//!
//! Versions: in v0 a ball may take the place of a key, which is then missing; v1 places the keys after
//! the balls.

use envcore::{Result, Text};

use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::{Colour, GridCell, Thing};
use crate::minigrid::rooms::{EAST, RoomGrid, RoomPlan};
use crate::minigrid::world::Spot;

/// The colours of the ball that is wanted, of those in the way, and of boxes.
const WANTED: Colour = Colour::Blue;
const BLOCKING: Colour = Colour::Green;
const BOXES: Colour = Colour::Grey;

/// Two rooms, and the door between them.
pub(in crate::minigrid) struct TwoRooms {
    pub(in crate::minigrid) in_box: bool,
    pub(in crate::minigrid) is_blocked: bool,
}

/// When a room's keys are placed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::minigrid) enum KeyOrder {
    /// Each with its door, so that a ball may take the place of a key: the levels of version 0.
    WithDoors,
    /// After both doors and their balls: the levels of version 1.
    AfterDoors,
}

/// Nine rooms, of which some quarters have doors.
pub(in crate::minigrid) struct ObstructedMaze {
    pub(in crate::minigrid) start: Spot,
    pub(in crate::minigrid) in_box: bool,
    pub(in crate::minigrid) is_blocked: bool,
    pub(in crate::minigrid) quarters: usize,
    /// How many rooms an episode has time for.
    pub(in crate::minigrid) visits: u32,
    pub(in crate::minigrid) keys: KeyOrder,
}

const SIDE: i32 = 6;
const TWO: RoomPlan = RoomPlan { side: SIDE, columns: 2, rows: 1 };
const NINE: RoomPlan = RoomPlan { side: SIDE, columns: 3, rows: 3 };

/// The steps from a door, one for each side that it is on: outwards.
const OUTWARDS: [Spot; 4] = [(1, 0), (0, 1), (-1, 0), (0, -1)];

/// The doors' colours, in a drawn order.
fn door_colours(level: &mut LevelBuilder<'_>) -> [Colour; 6] {
    let mut colours = Colour::BY_NAME;
    for k in 0..colours.len() {
        let drawn = k + level.int(0, (colours.len() - k) as i32) as usize;
        colours[k..=drawn].rotate_right(1);
    }
    colours
}

/// A locked door, which a ball may block.
fn add_locked(
    rooms: &mut RoomGrid<'_, '_>,
    room: Spot,
    side: usize,
    colour: Colour,
    is_blocked: bool,
) -> Result<()> {
    let (_, (x, y)) = rooms.add_door(room, side, Some(colour), true)?;
    if is_blocked {
        let (dx, dy) = OUTWARDS[side];
        rooms.level.set((x - dx, y - dy), GridCell::new(Thing::Ball, BLOCKING));
    }
    Ok(())
}

fn add_key(rooms: &mut RoomGrid<'_, '_>, room: Spot, colour: Colour, in_box: bool) -> Result<()> {
    let key = if in_box { GridCell::box_with_key(BOXES, colour) } else { GridCell::new(Thing::Key, colour) };
    rooms.put(room, key).map(drop)
}

fn task(wanted: GridCell) -> (Text, Aim) {
    (Text::from_static("pick up the blue ball"), Aim::PickUp { thing: wanted.code() })
}

impl LevelGenerator for TwoRooms {
    fn size(&self) -> (usize, usize) {
        TWO.size()
    }

    fn max_steps(&self) -> u32 {
        4 * 2 * (SIDE * SIDE) as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let mut rooms = RoomGrid::new(level, TWO);
        let colours = door_colours(rooms.level);
        add_locked(&mut rooms, (0, 0), EAST, colours[0], self.is_blocked)?;
        add_key(&mut rooms, (0, 0), colours[0], self.in_box)?;
        let wanted = rooms.add((1, 0), Thing::Ball, Some(WANTED))?;
        rooms.place_agent((0, 0))?;
        Ok(task(wanted))
    }
}

impl LevelGenerator for ObstructedMaze {
    fn size(&self) -> (usize, usize) {
        NINE.size()
    }

    fn max_steps(&self) -> u32 {
        4 * self.visits * (SIDE * SIDE) as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let mut rooms = RoomGrid::new(level, NINE);
        let colours = door_colours(rooms.level);
        let sides = [(2, 1), (1, 2), (0, 1), (1, 0)];
        for (k, side) in sides.into_iter().enumerate().take(self.quarters) {
            rooms.add_door((1, 1), k, Some(colours[k]), false)?;
            // The doors before and behind, counted clockwise.
            let doors = [((k + 3) % 4, colours[(k + 5) % 6]), ((k + 1) % 4, colours[(k + 1) % 6])];
            for (door, colour) in doors {
                add_locked(&mut rooms, side, door, colour, self.is_blocked)?;
                if self.keys == KeyOrder::WithDoors {
                    add_key(&mut rooms, side, colour, self.in_box)?;
                }
            }
            if self.keys == KeyOrder::AfterDoors {
                for (_, colour) in doors {
                    add_key(&mut rooms, side, colour, self.in_box)?;
                }
            }
        }
        let corners = [(2, 0), (2, 2), (0, 2), (0, 0)];
        let corner = rooms.level.one(&corners[..self.quarters]);
        let wanted = rooms.add(corner, Thing::Ball, Some(WANTED))?;
        rooms.place_agent(self.start)?;
        Ok(task(wanted))
    }
}
