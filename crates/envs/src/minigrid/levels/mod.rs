//! The levels, a file for each kind.

mod crossing;
mod dist_shift;
mod door_key;
mod dynamic_obstacles;
mod empty;
mod fetch;
mod four_rooms;
mod go_to;
mod key_corridor;
mod lava_gap;
mod locked_room;
mod memory;
mod multi_room;
mod obstructed_maze;
mod playground;
mod put_near;
mod red_blue_doors;
mod unlock;

pub(super) use crossing::Crossing;
pub(super) use dist_shift::DistShift;
pub(super) use door_key::DoorKey;
pub(super) use dynamic_obstacles::DynamicObstacles;
pub(super) use empty::Empty;
pub(super) use fetch::Fetch;
pub(super) use four_rooms::FourRooms;
pub(super) use go_to::{GoToDoor, GoToObject};
pub(super) use key_corridor::KeyCorridor;
pub(super) use lava_gap::LavaGap;
pub(super) use locked_room::LockedRoom;
pub(super) use memory::MemoryTest;
pub(super) use multi_room::MultiRoom;
pub(super) use obstructed_maze::{KeyOrder, ObstructedMaze, TwoRooms};
pub(super) use playground::Playground;
pub(super) use put_near::PutNear;
pub(super) use red_blue_doors::RedBlueDoors;
pub(super) use unlock::{Unlock, UnlockPickup};

/// The mission of levels where a goal is all.
const TO_THE_GOAL: envcore::Text = envcore::Text::from_static("get to the green goal square");
