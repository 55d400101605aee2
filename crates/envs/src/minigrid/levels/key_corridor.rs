//! Rooms on both sides of a corridor: a ball is locked up in one, the key is in another.

use envcore::{Result, Text};

use super::mission;
use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::Thing;
use crate::minigrid::rooms::{RoomGrid, RoomPlan, WEST};

pub(in crate::minigrid) struct KeyCorridor {
    /// The side of a room, with its walls.
    pub(in crate::minigrid) side: i32,
    pub(in crate::minigrid) rows: i32,
}

impl KeyCorridor {
    fn plan(&self) -> RoomPlan {
        RoomPlan { side: self.side, columns: 3, rows: self.rows }
    }
}

impl LevelGenerator for KeyCorridor {
    fn size(&self) -> (usize, usize) {
        self.plan().size()
    }

    fn max_steps(&self) -> u32 {
        30 * (self.side * self.side) as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let mut rooms = RoomGrid::new(level, self.plan());
        for row in 1..self.rows {
            rooms.remove_north_wall((1, row));
        }
        let row = rooms.level.int(0, self.rows);
        let (colour, _) = rooms.add_door((2, row), WEST, None, true)?;
        let wanted = rooms.add((2, row), Thing::Ball, None)?;
        let row = rooms.level.int(0, self.rows);
        rooms.add((0, row), Thing::Key, Some(colour))?;
        rooms.place_agent((1, self.rows / 2))?;
        rooms.connect_all()?;
        let mission = mission(format!("pick up the {} ball", wanted.colour().name()));
        Ok((mission, Aim::PickUp { thing: wanted.code() }))
    }
}
