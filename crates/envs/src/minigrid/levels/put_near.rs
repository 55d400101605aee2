//! Things in a room: put one beside another.

use envcore::{Result, Text};

use super::mission;
use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator, any_of};
use crate::minigrid::cell::{Colour, GridCell, Thing};

pub(in crate::minigrid) struct PutNear {
    pub(in crate::minigrid) size: usize,
    /// 2 or 3.
    pub(in crate::minigrid) things: usize,
}

impl LevelGenerator for PutNear {
    fn size(&self) -> (usize, usize) {
        (self.size, self.size)
    }

    fn max_steps(&self) -> u32 {
        5 * self.size as u32
    }

    fn see_through_walls(&self) -> bool {
        true
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        level.outer_walls();
        let mut things = [((Thing::Empty, Colour::Red), (0, 0)); 3];
        let mut count = 0;
        while count < self.things {
            let drawn = any_of(level, &[Thing::Key, Thing::Ball, Thing::Box]);
            let known = &things[..count];
            if known.iter().any(|(known, _)| *known == drawn) {
                continue;
            }
            let touches = |(x, y): (i32, i32)| {
                known.iter().any(|(_, (to_x, to_y))| (x - to_x).abs() <= 1 && (y - to_y).abs() <= 1)
            };
            let cell = GridCell::new(drawn.0, drawn.1);
            let spot = level.place_where(cell, level.everywhere(), u32::MAX, touches)?;
            things[count] = (drawn, spot);
            count += 1;
        }
        level.place_agent(level.everywhere())?;
        let count = self.things as i32;
        let moved = level.int(0, count);
        let target = loop {
            let drawn = level.int(0, count);
            if drawn != moved {
                break drawn;
            }
        };
        let [((thing, colour), _), ((other, its), place)] = [moved, target].map(|k| things[k as usize]);
        let mission = mission(format!(
            "put the {} {} near the {} {}",
            colour.name(),
            thing.name(),
            its.name(),
            other.name()
        ));
        let thing = GridCell::new(thing, colour).code();
        Ok((mission, Aim::PutNear { thing, place: level.number(place) }))
    }
}
