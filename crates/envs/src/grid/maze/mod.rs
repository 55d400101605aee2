//! Maze-v0: find the gem in a procedurally generated maze, from 64×64×3 `uint8` pixels.
//!
//! A level is a function of (config, index) alone: one source of uniform integers, fed from the
//! index, decides the walls, the start, the goal and the colours. Generation, dynamics and drawing
//! use integers only, so the same level and actions give the same bytes on every machine.
//!
//! Observation: RGB pixels, rows first (`[64, 64, 3]`). The frame shows the whole state: the
//! walls, the goal, the agent and the way it faces.
//!
//! Action: 0 stay, 1 up, 2 right, 3 down, 4 left. A move into a wall leaves the agent where it is,
//! but turns it to face the wall. Movement is deterministic.
//!
//! Info: `distance`, the steps on a shortest path to the goal; `position`, the agent's column and
//! row, from the top left; `level`, the level's index.
//!
//! Reward: 1.0 on the step that reaches the goal, and 0.0 on every other. So a return is 0 or 1, a
//! mean return is the success rate, and discounting alone prefers short paths.
//!
//! Terminated: at the goal. The time limit suits every size: the longest possible shortest path is
//! 143 steps (at size 12).
//!
//! Index ix is level ix, the same on every machine. An episode that is begun otherwise plays a level
//! of the env's own stream.
//!
//! Versions: v0 is the only one.
//!
//! Licence: rules, levels and pictures are Corral's own.
//!
//! What a step costs: one copy of the level's background (12,288 bytes, painted once when the level
//! is generated, the goal in it) and one small sprite, the agent.

mod config;
mod draw;
mod env;
#[cfg(test)]
mod fixtures;
mod game;
mod grid;
mod layout;
mod level;
mod sprite;
mod theme;
mod view;

pub use config::MazeConfig;
pub use env::{Maze, MazeInfo};
pub use view::View;
