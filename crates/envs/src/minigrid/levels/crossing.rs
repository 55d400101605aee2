//! Rivers of lava, or walls, across a room, with an opening in each on a way to the goal.

use envcore::{Result, Text};

use crate::minigrid::aim::Aim;
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::GridCell;

pub(in crate::minigrid) struct Crossing {
    pub(in crate::minigrid) size: usize,
    pub(in crate::minigrid) crossings: usize,
    /// Lava or wall.
    pub(in crate::minigrid) obstacle: GridCell,
}

/// The most places for rivers: as many vertical as horizontal ones.
const MAX_RIVERS: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Vertical,
    Horizontal,
}

/// The openings' limits along one axis: the walls, and between them the rivers in order.
struct Banks {
    at: [i32; MAX_RIVERS + 2],
    rivers: usize,
}

impl Banks {
    fn of(rivers: &[(Course, i32)], course: Course, far: i32) -> Self {
        let mut at = [0; MAX_RIVERS + 2];
        let mut count = 0;
        for (_, place) in rivers.iter().filter(|(its, _)| *its == course) {
            count += 1;
            at[count] = *place;
        }
        at[1..=count].sort_unstable();
        at[count + 1] = far;
        Banks { at, rivers: count }
    }

    /// A place between two neighbours.
    fn between(&self, level: &mut LevelBuilder<'_>, k: usize) -> i32 {
        level.int(self.at[k] + 1, self.at[k + 1])
    }
}

impl LevelGenerator for Crossing {
    fn size(&self) -> (usize, usize) {
        (self.size, self.size)
    }

    fn max_steps(&self) -> u32 {
        4 * (self.size * self.size) as u32
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        let side = self.size as i32;
        level.outer_walls();
        level.put_agent((1, 1), 0);
        level.goal_in_corner();

        let mut rivers = [(Course::Vertical, 0); MAX_RIVERS];
        let count = (self.size - 3) / 2;
        for k in 0..count {
            let place = 2 + 2 * k as i32;
            (rivers[k], rivers[count + k]) = ((Course::Vertical, place), (Course::Horizontal, place));
        }
        level.shuffle(&mut rivers[..2 * count]);
        let rivers = &rivers[..self.crossings];
        for (course, place) in rivers {
            match course {
                Course::Horizontal => level.horizontal((1, *place), side - 2, self.obstacle),
                Course::Vertical => level.vertical((*place, 1), side - 2, self.obstacle),
            }
        }

        let across = Banks::of(rivers, Course::Vertical, side - 1);
        let down = Banks::of(rivers, Course::Horizontal, side - 1);
        let mut way = [Course::Vertical; MAX_RIVERS];
        way[..across.rivers].fill(Course::Horizontal);
        level.shuffle(&mut way[..self.crossings]);
        let (mut column, mut row) = (0, 0);
        for course in &way[..self.crossings] {
            let opening = match course {
                Course::Horizontal => {
                    column += 1;
                    (across.at[column], down.between(level, row))
                }
                Course::Vertical => {
                    row += 1;
                    (across.between(level, column), down.at[row])
                }
            };
            level.set(opening, GridCell::EMPTY);
        }
        let mission = match self.obstacle {
            GridCell::LAVA => "avoid the lava and get to the green goal square",
            _ => "find the opening and get to the green goal square",
        };
        Ok((Text::from_static(mission), Aim::Goal))
    }
}
