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

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

use envcore::Text;

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
const TO_THE_GOAL: Text = Text::from_static("get to the green goal square");

/// A mission that was put together from words.
///
/// All levels together have a few hundred, each of which is kept for good: a text that the program
/// holds is quick to pass on, because nobody counts who has it. A thread never waits for another one
/// here, which a fork of the process may have left in the middle.
fn mission(words: String) -> Text {
    static KEPT: LazyLock<Mutex<HashSet<&str>>> = LazyLock::new(Mutex::default);
    let Ok(mut kept) = KEPT.try_lock() else { return words.into() };
    if let Some(text) = kept.get(&*words) {
        return Text::from_static(text);
    }
    let text: &str = words.leak();
    kept.insert(text);
    Text::from_static(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mission_is_kept_once() {
        let [one, two] = [(); 2].map(|()| mission("fetch a grey key".into()));
        assert!(one.is_shared_with(&two) && one == *"fetch a grey key");
        assert_ne!(one, mission("fetch a grey ball".into()));
    }
}
