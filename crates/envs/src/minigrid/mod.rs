//! MiniGrid: an agent in a grid of rooms, doors, keys and other things, of which it sees a part.
//!
//! The levels and the rules are those of the Python package `minigrid` 3.2 (Farama Foundation,
//! Apache-2.0; M. Chevalier-Boisvert et al., *Minigrid & Miniworld*, 2023), with a draw for a draw,
//! so that from the same seed the same levels and trajectories come out. The ids are the package's.
//!
//! Observation: a dict. `image` is by default what the agent sees: a square of 7×7 fields before it,
//! itself in the middle of the last row, three numbers a field (type, colour, state), columns
//! first. Walls and closed doors hide what is behind them. At its own field the agent sees what it
//! carries. `direction` is 0 east, 1 south, 2 west, 3 north. `mission` says what to do. By the option
//! `view`, `image` is the whole grid or a picture instead.
//!
//! Action: 0 turn left, 1 turn right, 2 walk, 3 pick up, 4 drop, 5 toggle (doors and boxes), 6 done.
//! Where balls roll about there are only the first three.
//!
//! Reward: 1 − 0.9 · steps / `max_steps` where the mission is fulfilled, −1 for running into
//! something where balls roll about, else 0. Terminated: the mission is fulfilled or cannot be any
//! more, or the agent stands in lava. Truncated: after `max_steps` steps, which the level sets. Index
//! ix is the level of seed ix.
//!
//! Versions: the package's of these ids.
//!
//! Licence: the levels, the rules and the look of the pictures are those of the package (Farama
//! Foundation, Apache-2.0), the code is Corral's own.
//!
//! A kind of level is a file in `levels/`, which only draws levels and names their task. All share
//! one grid (`world`), the tasks (`aim`), what is seen (`view`) and the pictures (`tile`,
//! `picture`).

mod aim;
mod builder;
mod cell;
mod config;
mod env;
mod levels;
mod picture;
mod rooms;
mod tile;
mod view;
mod world;

pub use config::{MiniGridConfig, MiniGridView};
pub use env::MiniGrid;
pub use view::MiniGridSeen;

use builder::LevelGenerator;
use cell::GridCell;
use config::LevelChoice;
use envcore::{Config, Options, Result, Source};
use levels::KeyOrder::{AfterDoors, WithDoors};
use levels::*;

use crate::Entry;

/// An id, what the level is, and the level.
type ListedLevel = (&'static str, &'static str, &'static dyn LevelGenerator);

/// The family's levels.
#[rustfmt::skip]
const LEVELS: &[ListedLevel] = &[
    ("MiniGrid-Empty-5x5-v0", EMPTY, &Empty { size: 5, is_random: false }),
    ("MiniGrid-Empty-6x6-v0", EMPTY, &Empty { size: 6, is_random: false }),
    ("MiniGrid-Empty-8x8-v0", EMPTY, &Empty { size: 8, is_random: false }),
    ("MiniGrid-Empty-16x16-v0", EMPTY, &Empty { size: 16, is_random: false }),
    ("MiniGrid-Empty-Random-5x5-v0", EMPTY, &Empty { size: 5, is_random: true }),
    ("MiniGrid-Empty-Random-6x6-v0", EMPTY, &Empty { size: 6, is_random: true }),
    ("MiniGrid-FourRooms-v0", FOUR_ROOMS, &FourRooms),
    ("MiniGrid-DoorKey-5x5-v0", DOOR_KEY, &DoorKey { size: 5 }),
    ("MiniGrid-DoorKey-6x6-v0", DOOR_KEY, &DoorKey { size: 6 }),
    ("MiniGrid-DoorKey-8x8-v0", DOOR_KEY, &DoorKey { size: 8 }),
    ("MiniGrid-DoorKey-16x16-v0", DOOR_KEY, &DoorKey { size: 16 }),
    ("MiniGrid-MultiRoom-N2-S4-v0", MULTI_ROOM, &MultiRoom { rooms: 2, max_side: 4 }),
    ("MiniGrid-MultiRoom-N4-S5-v0", MULTI_ROOM, &MultiRoom { rooms: 6, max_side: 5 }),
    ("MiniGrid-MultiRoom-N4-S5-v1", MULTI_ROOM, &MultiRoom { rooms: 4, max_side: 5 }),
    ("MiniGrid-MultiRoom-N6-v0", MULTI_ROOM, &MultiRoom { rooms: 6, max_side: 10 }),
    ("MiniGrid-SimpleCrossingS9N1-v0", SIMPLE_CROSSING, &Crossing { size: 9, crossings: 1, obstacle: GridCell::WALL }),
    ("MiniGrid-SimpleCrossingS9N2-v0", SIMPLE_CROSSING, &Crossing { size: 9, crossings: 2, obstacle: GridCell::WALL }),
    ("MiniGrid-SimpleCrossingS9N3-v0", SIMPLE_CROSSING, &Crossing { size: 9, crossings: 3, obstacle: GridCell::WALL }),
    ("MiniGrid-SimpleCrossingS11N5-v0", SIMPLE_CROSSING, &Crossing { size: 11, crossings: 5, obstacle: GridCell::WALL }),
    ("MiniGrid-LavaCrossingS9N1-v0", LAVA_CROSSING, &Crossing { size: 9, crossings: 1, obstacle: GridCell::LAVA }),
    ("MiniGrid-LavaCrossingS9N2-v0", LAVA_CROSSING, &Crossing { size: 9, crossings: 2, obstacle: GridCell::LAVA }),
    ("MiniGrid-LavaCrossingS9N3-v0", LAVA_CROSSING, &Crossing { size: 9, crossings: 3, obstacle: GridCell::LAVA }),
    ("MiniGrid-LavaCrossingS11N5-v0", LAVA_CROSSING, &Crossing { size: 11, crossings: 5, obstacle: GridCell::LAVA }),
    ("MiniGrid-LavaGapS5-v0", LAVA_GAP, &LavaGap { size: 5 }),
    ("MiniGrid-LavaGapS6-v0", LAVA_GAP, &LavaGap { size: 6 }),
    ("MiniGrid-LavaGapS7-v0", LAVA_GAP, &LavaGap { size: 7 }),
    ("MiniGrid-Unlock-v0", UNLOCK, &Unlock),
    ("MiniGrid-UnlockPickup-v0", UNLOCK_PICKUP, &UnlockPickup { is_blocked: false }),
    ("MiniGrid-BlockedUnlockPickup-v0", UNLOCK_PICKUP, &UnlockPickup { is_blocked: true }),
    ("MiniGrid-KeyCorridorS3R1-v0", KEY_CORRIDOR, &KeyCorridor { side: 3, rows: 1 }),
    ("MiniGrid-KeyCorridorS3R2-v0", KEY_CORRIDOR, &KeyCorridor { side: 3, rows: 2 }),
    ("MiniGrid-KeyCorridorS3R3-v0", KEY_CORRIDOR, &KeyCorridor { side: 3, rows: 3 }),
    ("MiniGrid-KeyCorridorS4R3-v0", KEY_CORRIDOR, &KeyCorridor { side: 4, rows: 3 }),
    ("MiniGrid-KeyCorridorS5R3-v0", KEY_CORRIDOR, &KeyCorridor { side: 5, rows: 3 }),
    ("MiniGrid-KeyCorridorS6R3-v0", KEY_CORRIDOR, &KeyCorridor { side: 6, rows: 3 }),
    ("MiniGrid-Dynamic-Obstacles-5x5-v0", DYNAMIC_OBSTACLES, &DynamicObstacles { size: 5, balls: 2, is_random: false }),
    ("MiniGrid-Dynamic-Obstacles-Random-5x5-v0", DYNAMIC_OBSTACLES, &DynamicObstacles { size: 5, balls: 2, is_random: true }),
    ("MiniGrid-Dynamic-Obstacles-6x6-v0", DYNAMIC_OBSTACLES, &DynamicObstacles { size: 6, balls: 3, is_random: false }),
    ("MiniGrid-Dynamic-Obstacles-Random-6x6-v0", DYNAMIC_OBSTACLES, &DynamicObstacles { size: 6, balls: 3, is_random: true }),
    ("MiniGrid-Dynamic-Obstacles-8x8-v0", DYNAMIC_OBSTACLES, &DynamicObstacles { size: 8, balls: 4, is_random: false }),
    ("MiniGrid-Dynamic-Obstacles-16x16-v0", DYNAMIC_OBSTACLES, &DynamicObstacles { size: 16, balls: 8, is_random: false }),
    ("MiniGrid-MemoryS7-v0", MEMORY, &MemoryTest { size: 7, is_random: false }),
    ("MiniGrid-MemoryS9-v0", MEMORY, &MemoryTest { size: 9, is_random: false }),
    ("MiniGrid-MemoryS11-v0", MEMORY, &MemoryTest { size: 11, is_random: false }),
    ("MiniGrid-MemoryS13-v0", MEMORY, &MemoryTest { size: 13, is_random: false }),
    ("MiniGrid-MemoryS13Random-v0", MEMORY, &MemoryTest { size: 13, is_random: true }),
    ("MiniGrid-MemoryS17Random-v0", MEMORY, &MemoryTest { size: 17, is_random: true }),
    ("MiniGrid-Fetch-5x5-N2-v0", FETCH, &Fetch { size: 5, things: 2 }),
    ("MiniGrid-Fetch-6x6-N2-v0", FETCH, &Fetch { size: 6, things: 2 }),
    ("MiniGrid-Fetch-8x8-N3-v0", FETCH, &Fetch { size: 8, things: 3 }),
    ("MiniGrid-GoToDoor-5x5-v0", GO_TO_DOOR, &GoToDoor { size: 5 }),
    ("MiniGrid-GoToDoor-6x6-v0", GO_TO_DOOR, &GoToDoor { size: 6 }),
    ("MiniGrid-GoToDoor-8x8-v0", GO_TO_DOOR, &GoToDoor { size: 8 }),
    ("MiniGrid-GoToObject-6x6-N2-v0", GO_TO_OBJECT, &GoToObject { size: 6 }),
    ("MiniGrid-GoToObject-8x8-N2-v0", GO_TO_OBJECT, &GoToObject { size: 8 }),
    ("MiniGrid-PutNear-6x6-N2-v0", PUT_NEAR, &PutNear { size: 6, things: 2 }),
    ("MiniGrid-PutNear-8x8-N3-v0", PUT_NEAR, &PutNear { size: 8, things: 3 }),
    ("MiniGrid-RedBlueDoors-6x6-v0", RED_BLUE_DOORS, &RedBlueDoors { size: 6 }),
    ("MiniGrid-RedBlueDoors-8x8-v0", RED_BLUE_DOORS, &RedBlueDoors { size: 8 }),
    ("MiniGrid-DistShift1-v0", DIST_SHIFT, &DistShift { strip: 2 }),
    ("MiniGrid-DistShift2-v0", DIST_SHIFT, &DistShift { strip: 5 }),
    ("MiniGrid-LockedRoom-v0", LOCKED_ROOM, &LockedRoom),
    ("MiniGrid-ObstructedMaze-1Dl-v0", OBSTRUCTED_MAZE, &TwoRooms { in_box: false, is_blocked: false }),
    ("MiniGrid-ObstructedMaze-1Dlh-v0", OBSTRUCTED_MAZE, &TwoRooms { in_box: true, is_blocked: false }),
    ("MiniGrid-ObstructedMaze-1Dlhb-v0", OBSTRUCTED_MAZE, &TwoRooms { in_box: true, is_blocked: true }),
    ("MiniGrid-ObstructedMaze-2Dl-v0", OBSTRUCTED_MAZE, &ObstructedMaze { start: (2, 1), in_box: false, is_blocked: false, quarters: 1, visits: 4, keys: WithDoors }),
    ("MiniGrid-ObstructedMaze-2Dlh-v0", OBSTRUCTED_MAZE, &ObstructedMaze { start: (2, 1), in_box: true, is_blocked: false, quarters: 1, visits: 4, keys: WithDoors }),
    ("MiniGrid-ObstructedMaze-2Dlhb-v0", OBSTRUCTED_MAZE, &ObstructedMaze { start: (2, 1), in_box: true, is_blocked: true, quarters: 1, visits: 4, keys: WithDoors }),
    ("MiniGrid-ObstructedMaze-1Q-v0", OBSTRUCTED_MAZE, &ObstructedMaze { start: (1, 1), in_box: true, is_blocked: true, quarters: 1, visits: 5, keys: WithDoors }),
    ("MiniGrid-ObstructedMaze-2Q-v0", OBSTRUCTED_MAZE, &ObstructedMaze { start: (2, 1), in_box: true, is_blocked: true, quarters: 2, visits: 11, keys: WithDoors }),
    ("MiniGrid-ObstructedMaze-Full-v0", OBSTRUCTED_MAZE, &ObstructedMaze { start: (1, 1), in_box: true, is_blocked: true, quarters: 4, visits: 25, keys: WithDoors }),
    ("MiniGrid-ObstructedMaze-2Dlhb-v1", OBSTRUCTED_MAZE, &ObstructedMaze { start: (2, 1), in_box: true, is_blocked: true, quarters: 1, visits: 4, keys: AfterDoors }),
    ("MiniGrid-ObstructedMaze-1Q-v1", OBSTRUCTED_MAZE, &ObstructedMaze { start: (1, 1), in_box: true, is_blocked: true, quarters: 1, visits: 5, keys: AfterDoors }),
    ("MiniGrid-ObstructedMaze-2Q-v1", OBSTRUCTED_MAZE, &ObstructedMaze { start: (2, 1), in_box: true, is_blocked: true, quarters: 2, visits: 11, keys: AfterDoors }),
    ("MiniGrid-ObstructedMaze-Full-v1", OBSTRUCTED_MAZE, &ObstructedMaze { start: (1, 1), in_box: true, is_blocked: true, quarters: 4, visits: 25, keys: AfterDoors }),
    ("MiniGrid-Playground-v0", PLAYGROUND, &Playground),
];

const EMPTY: &str = "Walk through an empty room to the goal; MiniGrid's own levels.";
const FOUR_ROOMS: &str = "Find the goal in one of four rooms; MiniGrid's own levels.";
const DOOR_KEY: &str = "Unlock the door to the goal by the key; MiniGrid's own levels.";
const MULTI_ROOM: &str = "Walk through a chain of rooms to the goal; MiniGrid's own levels.";
const SIMPLE_CROSSING: &str = "Find the openings in the walls before the goal; MiniGrid's own levels.";
const LAVA_CROSSING: &str = "Find the openings in the lava before the goal; MiniGrid's own levels.";
const LAVA_GAP: &str = "Walk through the gap in the lava to the goal; MiniGrid's own levels.";
const UNLOCK: &str = "Unlock the door by the key; MiniGrid's own levels.";
const UNLOCK_PICKUP: &str = "Unlock the door and pick up the box behind it; MiniGrid's own levels.";
const KEY_CORRIDOR: &str =
    "Find the key in a corridor's rooms and fetch the ball that is locked up; MiniGrid's own levels.";
const DYNAMIC_OBSTACLES: &str = "Walk to the goal and around balls that roll about; MiniGrid's own levels.";
const MEMORY: &str = "Remember a thing, and walk to the one like it; MiniGrid's own levels.";
const FETCH: &str = "Pick up the thing that the mission names; MiniGrid's own levels.";
const GO_TO_DOOR: &str = "Go to the door that the mission names; MiniGrid's own levels.";
const GO_TO_OBJECT: &str = "Go to the thing that the mission names; MiniGrid's own levels.";
const PUT_NEAR: &str = "Put one thing near another; MiniGrid's own levels.";
const RED_BLUE_DOORS: &str = "Open the red door, then the blue one; MiniGrid's own levels.";
const DIST_SHIFT: &str = "Walk around strips of lava to the goal; MiniGrid's own levels.";
const LOCKED_ROOM: &str = "Find the key to the room with the goal; MiniGrid's own levels.";
const OBSTRUCTED_MAZE: &str = "Fetch a ball from behind locked and blocked doors; MiniGrid's own levels.";
const PLAYGROUND: &str = "Rooms full of things, without a task; MiniGrid's own levels.";

/// The family's table.
pub const TABLE: &[Entry] = &{
    let mut table = [entry(LEVELS[0]); LEVELS.len()];
    let mut at = 0;
    while at < LEVELS.len() {
        table[at] = entry(LEVELS[at]);
        at += 1;
    }
    table
};

const fn entry((id, about, _): ListedLevel) -> Entry {
    Entry::one_of::<MiniGrid>(id, about, make).fps(10)
}

/// The source of the level that an entry's id stands for.
fn make(entry: &Entry, options: &Options) -> Result<Box<dyn Source>> {
    let config = MiniGridConfig::from_options(entry.id, options)?;
    Ok(Box::new(entry.source_of::<MiniGrid>(config.with_level(entry.id))?))
}

impl MiniGridConfig {
    /// This config for the level of `id`; unchanged where there is no such id.
    pub fn with_level(mut self, id: &str) -> Self {
        if let Some((_, _, level)) = LEVELS.iter().find(|(known, _, _)| *known == id) {
            self.level = LevelChoice(*level);
        }
        self
    }
}
