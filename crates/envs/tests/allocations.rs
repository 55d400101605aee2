//! No environment step allocates: a step of all slots costs the same number of
//! heap blocks, however many slots there are. In a binary of its own, whose
//! allocator counts.

#![allow(unsafe_code)]

#[path = "all/common/mod.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{config, reset, source};
use envcore::{
    ActionBounds, AutoresetMode, Begin, ColumnIn, Options, Recorder, Serial, Slots, VecConfig, VecEnv, Want,
};

thread_local! {
    static BLOCKS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: `System`'s own methods, with a count beside them that allocates
// nothing (a `Cell` in a const-initialised thread local).
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = BLOCKS.try_with(|blocks| blocks.set(blocks.get() + 1));
        // SAFETY: the caller's duties are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above; every block is `System`'s.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Blocks that each of a few steps of `num_slots` slots takes, none of which
/// ends an episode.
fn blocks_per_step(id: &str, num_slots: usize, autoreset: AutoresetMode) -> Vec<u64> {
    blocks_of(&mut made(id, num_slots, autoreset))
}

fn made(id: &str, num_slots: usize, autoreset: AutoresetMode) -> Serial {
    let asked = VecConfig { episode_statistics: true, ..config(num_slots, autoreset) };
    Serial::new(&*source(id, &Options::new()), asked).unwrap()
}

fn blocks_of(envs: &mut dyn VecEnv) -> Vec<u64> {
    let id = envs.spec().id.clone();
    let mut one = made(&id, 1, AutoresetMode::NextStep);
    let calm = (0..).find(|index| blocks_of_index(&mut one, &id, *index).is_some()).unwrap();
    blocks_of_index(envs, &id, calm).unwrap()
}

/// The blocks where all slots play one index, if its episode does not end in six steps.
fn blocks_of_index(envs: &mut dyn VecEnv, id: &str, index: u64) -> Option<Vec<u64>> {
    let num_slots = envs.spec().num_slots;
    reset(envs, &vec![Begin::Index(index); num_slots]);
    let (labels, forces) = ([num_slots], [num_slots, 1]);
    let mut taken = Vec::new();
    for t in 0..6 {
        // Standing still, or back and forth; a card at every step.
        let label = match id {
            "Maze-v0" => 0i64,
            "Blackjack-v1" => 1,
            _ => t % 2,
        };
        let (label, force) = (vec![label; num_slots], vec![0.5f32; num_slots]);
        let column = match id {
            "Pendulum-v1" | "MountainCarContinuous-v0" => ColumnIn::scalars(&force, &forces),
            _ => ColumnIn::scalars(&label, &labels),
        };
        let before = BLOCKS.get();
        envs.send(&Slots::All, &[column]).unwrap();
        let batch = envs.recv(Want::all()).unwrap().unwrap();
        taken.push(BLOCKS.get() - before);
        let over = |flags: &envcore::Fixed| flags.as_slice::<bool>().contains(&true);
        if over(&batch.terminated) || over(&batch.truncated) {
            return None;
        }
    }
    // The first batch makes the pools' blocks.
    Some(taken.split_off(1))
}

/// One type plays all of MiniGrid's levels: these have every kind of mission and of step.
const LEVELS: [&str; 3] =
    ["MiniGrid-DoorKey-5x5-v0", "MiniGrid-Fetch-5x5-N2-v0", "MiniGrid-Dynamic-Obstacles-Random-6x6-v0"];

#[test]
fn a_step_of_all_slots_takes_as_few_blocks_for_4096_slots_as_for_8() {
    let ids = envs::all().map(|entry| entry.id);
    for id in ids.filter(|id| !id.starts_with("MiniGrid-") || LEVELS.contains(id)) {
        for autoreset in common::MODES {
            let few = blocks_per_step(id, 8, autoreset);
            let many = blocks_per_step(id, 4096, autoreset);
            assert_eq!(few, many, "{id} {autoreset:?}");
            assert!(many.iter().all(|blocks| *blocks < 40), "{many:?}");
        }
    }
}

#[test]
fn recording_takes_blocks_only_where_its_log_doubles() {
    let dir = std::env::temp_dir().join(format!("corral-blocks-{}", std::process::id()));
    for autoreset in common::MODES {
        let envs = Box::new(made("CartPole-v1", 512, autoreset));
        let mut envs = Recorder::new(envs, "null", ActionBounds::Env, &dir).unwrap();
        let plain: u64 = blocks_per_step("CartPole-v1", 512, autoreset).iter().sum();
        let taken: Vec<u64> = (0..40).map(|_| blocks_of(&mut envs).iter().sum::<u64>() - plain).collect();
        // 200 steps of 4 KiB and more: at most 12 times twice as long.
        assert!(taken.iter().sum::<u64>() <= 12, "{taken:?}");
    }
    std::fs::remove_dir(&dir).unwrap();
}

#[test]
fn the_allocator_counts() {
    let before = BLOCKS.get();
    let block = std::hint::black_box(Box::new(1u64));
    assert_eq!(BLOCKS.get(), before + 1);
    drop(block);
}
