//! An empty room with a goal in its far corner, where balls roll about.

use envcore::{Result, Text};

use super::TO_THE_GOAL;
use crate::minigrid::aim::{Aim, MAX_BALLS};
use crate::minigrid::builder::{LevelBuilder, LevelGenerator};
use crate::minigrid::cell::{Colour, GridCell, Thing};

pub(in crate::minigrid) struct DynamicObstacles {
    pub(in crate::minigrid) size: usize,
    /// At most [`MAX_BALLS`].
    pub(in crate::minigrid) balls: usize,
    pub(in crate::minigrid) is_random: bool,
}

/// So many draws place a ball.
const TRIES: u32 = 100;

impl LevelGenerator for DynamicObstacles {
    fn size(&self) -> (usize, usize) {
        (self.size, self.size)
    }

    fn max_steps(&self) -> u32 {
        4 * (self.size * self.size) as u32
    }

    fn see_through_walls(&self) -> bool {
        true
    }

    fn num_actions(&self) -> u64 {
        3
    }

    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)> {
        level.outer_walls();
        level.goal_in_corner();
        if self.is_random {
            level.place_agent(level.everywhere())?;
        } else {
            level.put_agent((1, 1), 0);
        }
        let mut balls = [0; MAX_BALLS];
        for ball in &mut balls[..self.balls] {
            let cell = GridCell::new(Thing::Ball, Colour::Blue);
            let spot = level.place_where(cell, level.everywhere(), TRIES, |_| false)?;
            *ball = level.number(spot);
        }
        Ok((TO_THE_GOAL, Aim::Dodge { balls, count: self.balls as u8 }))
    }
}
