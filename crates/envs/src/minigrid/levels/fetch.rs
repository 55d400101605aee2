//! Things in a room, of which one is to be fetched.

use envcore::{Result, Text};

use super::mission;
use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator, any_of};
use crate::minigrid::cell::{GridCell, Thing};

pub(in crate::minigrid) struct Fetch {
    pub(in crate::minigrid) size: usize,
    /// At most 3.
    pub(in crate::minigrid) things: usize,
}

impl LevelGenerator for Fetch {
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
        let mut things = [GridCell::EMPTY; 3];
        for place in &mut things[..self.things] {
            let (thing, colour) = any_of(level, &[Thing::Key, Thing::Ball]);
            *place = GridCell::new(thing, colour);
            level.place(*place, level.everywhere())?;
        }
        level.place_agent(level.everywhere())?;
        let wanted = level.one(&things[..self.things]);
        let words = level.one(&["get a", "go get a", "fetch a", "go fetch a", "you must fetch a"]);
        let mission = mission(format!("{words} {} {}", wanted.colour().name(), wanted.thing().name()));
        Ok((mission, Aim::Fetch { thing: wanted.code() }))
    }
}
