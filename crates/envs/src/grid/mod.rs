//! Worlds of cells: integers only, the same bytes on every machine.

mod maze;

pub use maze::{Maze, MazeConfig, MazeInfo, View as MazeView};

use crate::Entry;

/// The family's table.
pub const TABLE: &[Entry] = &[Entry::new::<Maze>(
    "Maze-v0",
    "Find the gem in a procedurally generated maze, from 64×64 pixels; the index is the level.",
)
.steps(256)
.fps(8)];
