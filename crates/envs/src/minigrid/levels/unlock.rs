//! Two rooms with a locked door between them: open it, or fetch the box behind it; a ball may
//! block the door.

use envcore::{Result, Text};

use super::mission;
use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::{GridCell, Thing};
use crate::minigrid::rooms::{EAST, RoomGrid, RoomPlan};

/// Open the door.
pub(in crate::minigrid) struct Unlock;

/// Pick the box up.
pub(in crate::minigrid) struct UnlockPickup {
    pub(in crate::minigrid) is_blocked: bool,
}

const PLAN: RoomPlan = RoomPlan { side: 6, columns: 2, rows: 1 };

impl LevelGenerator for Unlock {
    fn size(&self) -> (usize, usize) {
        PLAN.size()
    }

    fn max_steps(&self) -> u32 {
        8 * 6 * 6
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let mut rooms = RoomGrid::new(level, PLAN);
        let (colour, door) = rooms.add_door((0, 0), EAST, None, true)?;
        rooms.add((0, 0), Thing::Key, Some(colour))?;
        rooms.place_agent((0, 0))?;
        Ok((Text::from_static("open the door"), Aim::Open { door: level.number(door) }))
    }
}

impl LevelGenerator for UnlockPickup {
    fn size(&self) -> (usize, usize) {
        PLAN.size()
    }

    fn max_steps(&self) -> u32 {
        if self.is_blocked { 16 * 6 * 6 } else { 8 * 6 * 6 }
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let mut rooms = RoomGrid::new(level, PLAN);
        let wanted = rooms.add((1, 0), Thing::Box, None)?;
        let (colour, door) = rooms.add_door((0, 0), EAST, None, true)?;
        if self.is_blocked {
            let ball = GridCell::new(Thing::Ball, rooms.level.colour());
            rooms.level.set((door.0 - 1, door.1), ball);
        }
        rooms.add((0, 0), Thing::Key, Some(colour))?;
        rooms.place_agent((0, 0))?;
        let mission = mission(format!("pick up the {} box", wanted.colour().name()));
        Ok((mission, Aim::PickUp { thing: wanted.code() }))
    }
}
