//! A chain of rooms of any sizes, with closed doors between them and a goal in the last one.
//!
//! Versions: `MultiRoom-N4-S5-v0` has six rooms, its v1 has the four that its name says.

use envcore::{Result, Text};

use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::{Colour, GridCell, Thing};
use crate::minigrid::world::{Area, Spot};

pub(in crate::minigrid) struct MultiRoom {
    pub(in crate::minigrid) rooms: usize,
    /// The largest side of a room, with its walls.
    pub(in crate::minigrid) max_side: i32,
}

const SIDE: i32 = 25;
const MIN_SIDE: i32 = 4;
const MAX_ROOMS: usize = 6;
/// So many doors are tried for a next room.
const DOOR_TRIES: usize = 8;

/// A chain of rooms that is being found: each room's area, and the door by which it is entered.
#[derive(Clone, Copy)]
struct Chain {
    rooms: [(Area, Spot); MAX_ROOMS],
    len: usize,
}

impl LevelGenerator for MultiRoom {
    fn size(&self) -> (usize, usize) {
        (SIDE as usize, SIDE as usize)
    }

    fn max_steps(&self) -> u32 {
        20 * self.rooms as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let nothing = Area { top: (0, 0), size: (0, 0) };
        let empty = Chain { rooms: [(nothing, (0, 0)); MAX_ROOMS], len: 0 };
        let mut chain = empty;
        while chain.len < self.rooms {
            let mut found = empty;
            let start = (level.int(0, SIDE - 2), level.int(0, SIDE - 2));
            self.extend(level, &mut found, self.rooms, 2, start);
            if found.len > chain.len {
                chain = found;
            }
        }
        let rooms = &chain.rooms[..chain.len];
        let mut before = None;
        for (k, (area, door)) in rooms.iter().enumerate() {
            level.walls(*area);
            if k > 0 {
                let mut colours = Colour::BY_NAME.into_iter().filter(|colour| Some(*colour) != before);
                let others: [Colour; 6] = std::array::from_fn(|_| colours.next().unwrap_or(Colour::Red));
                let count = if before.is_some() { 5 } else { 6 };
                let colour = level.one(&others[..count]);
                level.set(*door, GridCell::new(Thing::ClosedDoor, colour));
                before = Some(colour);
            }
        }
        level.place_agent(rooms[0].0)?;
        level.place(GridCell::GOAL, rooms[rooms.len() - 1].0)?;
        Ok((Text::from_static("traverse the rooms to get to the goal"), Aim::Goal))
    }
}

impl MultiRoom {
    /// Adds a room that is entered by `door` in its wall `entry` (0 east, 1 south, 2 west, 3
    /// north), and up to `left` - 1 rooms behind it. Whether this room was added.
    fn extend(
        &self,
        level: &mut LevelBuilder<'_>,
        chain: &mut Chain,
        left: usize,
        entry: i32,
        door: Spot,
    ) -> bool {
        let width = level.int(MIN_SIDE, self.max_side + 1);
        let height = level.int(MIN_SIDE, self.max_side + 1);
        let (x, y) = door;
        let top = match entry {
            // The first room's corner is at the door.
            _ if chain.len == 0 => door,
            0 => (x - width + 1, level.int(y - height + 2, y)),
            1 => (level.int(x - width + 2, x), y - height + 1),
            2 => (x, level.int(y - height + 2, y)),
            _ => (level.int(x - width + 2, x), y),
        };
        let area = Area { top, size: (width, height) };
        // The room before this one shares a wall with it.
        let others = &chain.rooms[..chain.len.saturating_sub(1)];
        if !fits(area) || others.iter().any(|(other, _)| overlap(area, *other)) {
            return false;
        }
        chain.rooms[chain.len] = (area, door);
        chain.len += 1;
        if left == 1 {
            return true;
        }
        for _ in 0..DOOR_TRIES {
            let walls = [0, 1, 2, 3].map(|k| (k + i32::from(k >= entry)) % 4);
            let exit = level.one(&walls[..3]);
            let (x, y) = top;
            let door = match exit {
                0 => (x + width - 1, y + level.int(1, height - 1)),
                1 => (x + level.int(1, width - 1), y + height - 1),
                2 => (x, y + level.int(1, height - 1)),
                _ => (x + level.int(1, width - 1), y),
            };
            if self.extend(level, chain, left - 1, (exit + 2) % 4, door) {
                break;
            }
        }
        true
    }
}

fn fits(area: Area) -> bool {
    let ((x, y), (width, height)) = (area.top, area.size);
    x >= 0 && y >= 0 && x + width <= SIDE && y + height < SIDE
}

/// Whether a room is too near to an earlier one. The package compares the sides unalike.
fn overlap(area: Area, other: Area) -> bool {
    let ((x, y), (width, height)) = (area.top, area.size);
    let ((left, top), (columns, rows)) = (other.top, other.size);
    x + width >= left && left + columns > x && y + height >= top && top + rows > y
}
