//! A thing in a small room, and two things at the ends of a crossing hallway, one of them like it.

use envcore::{Result, Text};

use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::{Colour, GridCell, Thing};

pub(in crate::minigrid) struct MemoryTest {
    /// Odd.
    pub(in crate::minigrid) size: usize,
    /// Whether the hallway's length is drawn.
    pub(in crate::minigrid) is_random: bool,
}

impl LevelGenerator for MemoryTest {
    fn size(&self) -> (usize, usize) {
        (self.size, self.size)
    }

    fn max_steps(&self) -> u32 {
        5 * (self.size * self.size) as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let side = self.size as i32;
        let middle = side / 2;
        level.outer_walls();
        let end = if self.is_random { level.int(4, side - 2) } else { side - 3 };

        level.horizontal((1, middle - 2), 4, GridCell::WALL);
        level.horizontal((1, middle + 2), 4, GridCell::WALL);
        level.horizontal((4, middle - 1), (end - 4).max(1), GridCell::WALL);
        level.horizontal((4, middle + 1), (end - 4).max(1), GridCell::WALL);
        level.vertical((end, 0), middle, GridCell::WALL);
        level.vertical((end, middle + 1), side - middle - 1, GridCell::WALL);
        level.vertical((end + 2, 0), side, GridCell::WALL);

        let start = level.int(1, end + 1);
        level.put_agent((start, middle), 0);
        let [key, ball] = [Thing::Key, Thing::Ball].map(|thing| GridCell::new(thing, Colour::Green));
        let shown = level.one(&[key, ball]);
        level.set((1, middle - 1), shown);
        let [above, below] = level.one(&[[ball, key], [key, ball]]);
        level.set((end + 1, middle - 2), above);
        level.set((end + 1, middle + 2), below);

        let [upper, lower] = [middle - 1, middle + 1].map(|row| level.number((end + 1, row)));
        let (right, wrong) = if shown == above { (upper, lower) } else { (lower, upper) };
        let mission = Text::from_static("go to the matching object at the end of the hallway");
        Ok((mission, Aim::WalkTo { right, wrong }))
    }
}
