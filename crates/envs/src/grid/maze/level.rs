//! A level: the maze, its start and goal, every cell's distance to the goal, and its background.

use std::ops::Deref;

use super::config::MazeConfig;
use super::draw::{self, Scene};
use super::grid::{Direction, Grid};
use super::layout::{FRAME_SIDE, MazeLayout};
use super::sprite::Skin;
use super::theme::THEMES;

/// A 64×64×3 picture, which every step copies. It begins a cache line, as the rows of a batch do:
/// how fast it is copied depends on where it lies.
#[derive(Clone, Debug, PartialEq)]
#[repr(align(64))]
pub(super) struct MazePicture([u8; FRAME_SIDE * FRAME_SIDE * 3]);

impl Deref for MazePicture {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// One maze. Immutable: a game and its views share it.
///
/// In this order, what a step reads first lies before the picture that it then copies, and behind the
/// picture of the level that was made before: the CPU fetches it early.
#[repr(C)]
pub struct Level {
    pub(super) scene: Scene,
    start: usize,
    distances: Vec<u16>,
    pub(super) skin: &'static Skin,
    /// The 64×64×3 frame without the agent.
    pub(super) background: MazePicture,
}

impl Level {
    /// The level that `rng` and `config` decide. `rng(n)` is uniform in `0..n`, for n ≥ 1. The start
    /// is random; the goal is a cell as far from it as any.
    ///
    /// Errors if the config is not valid.
    pub fn generate(rng: &mut impl FnMut(u64) -> u64, config: &MazeConfig) -> Result<Self, String> {
        config.check()?;
        let size = config.size as usize;
        let theme = rng(THEMES.len() as u64) as usize;
        let grain = rng(draw::GRAIN_STARTS as u64) as usize;
        let grid = Grid::generate(rng, size, config.loops);
        let start = rng((size * size) as u64) as usize;
        let goal = farthest(&grid.distances(start));
        let distances = grid.distances(goal);

        let layout = MazeLayout::new(size);
        let skin = Skin::shared(layout, theme);
        let scene = Scene { grid, layout, theme, grain, goal };
        let mut background = MazePicture([0; FRAME_SIDE * FRAME_SIDE * 3]);
        background.0.copy_from_slice(&draw::background(&scene, 1, skin));
        Ok(Self { scene, start, distances, background, skin })
    }

    /// Cells per side.
    pub fn size(&self) -> usize {
        self.scene.grid.size
    }

    /// The cell an episode starts from. Cells are numbered row by row from the top left.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The cell that ends an episode.
    pub fn goal(&self) -> usize {
        self.scene.goal
    }

    /// The number of steps on a shortest path from `cell` to the goal. Panics outside the maze.
    pub fn distance(&self, cell: usize) -> u16 {
        self.distances[cell]
    }

    /// Where a move from `cell` leads; `None` at a wall. Panics outside the maze.
    pub fn walk(&self, cell: usize, direction: Direction) -> Option<usize> {
        self.scene.grid.walk(cell, direction)
    }
}

/// The first of the farthest cells.
fn farthest(distances: &[u16]) -> usize {
    let mut best = 0;
    for (cell, distance) in distances.iter().enumerate() {
        if *distance > distances[best] {
            best = cell;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{level, many_levels, relaxed_distances};
    use super::*;

    #[test]
    fn every_cell_knows_its_distance_to_the_goal() {
        for level in many_levels() {
            for (cell, expected) in relaxed_distances(&level, level.goal()).into_iter().enumerate() {
                assert_eq!(Some(level.distance(cell)), expected, "cell {cell}");
            }
        }
    }

    #[test]
    fn no_cell_is_farther_from_the_start_than_the_goal() {
        for level in many_levels() {
            let distances = relaxed_distances(&level, level.start());
            assert_eq!(distances.iter().max(), Some(&Some(level.distance(level.start()))));
        }
    }

    #[test]
    fn the_index_decides_the_level() {
        for size in [3, 7, 12] {
            for index in 0..50 {
                let (one, other) = (level(index, size, 10), level(index, size, 10));
                assert_eq!(one.scene.grid, other.scene.grid);
                assert_eq!((one.start(), one.goal()), (other.start(), other.goal()));
                assert_eq!(one.background, other.background);
                assert_ne!(one.background, level(index + 1, size, 10).background);
            }
        }
    }

    #[test]
    fn levels_use_every_theme_and_many_starts_and_goals() {
        let of = |property: fn(&Level) -> usize| {
            let seen: std::collections::BTreeSet<_> =
                (0..300).map(|index| property(&level(index, 7, 0))).collect();
            seen.len()
        };
        assert_eq!(of(|level| level.scene.theme), THEMES.len());
        assert_eq!(of(Level::start), 49);
        assert!(of(Level::goal) > 25);
    }

    #[test]
    fn a_config_out_of_range_is_an_error() {
        let config = MazeConfig { size: 40, loops: 0 };
        assert!(Level::generate(&mut |_| 0, &config).is_err_and(|e| e.contains("size is 40")));
    }
}
