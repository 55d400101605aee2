//! A step through libenv costs the same number of heap blocks, however many
//! slots there are. In a binary of its own, whose allocator counts.

#![allow(unsafe_code)]

mod host;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use host::Host;

envcore::export_libenv!(envs::TABLE);

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

/// Blocks that each of a few steps takes. CartPoles end episodes in some of them;
/// a maze's level is made of blocks of its own.
fn blocks_per_step(id: &str, num: usize) -> Vec<u64> {
    let limit = if id == "CartPole-v1" { 4 } else { 100 };
    let options = [("env_id", id.into()), ("index", 6.into()), ("max_episode_steps", limit.into())];
    let mut host = Host::new(num, &options);
    host.observe();
    host.put_all(0.0);
    let step = |_| {
        let before = BLOCKS.get();
        host.act();
        host.observe();
        BLOCKS.get() - before
    };
    // The first ones make the pools' blocks, and room for those that end.
    (0..20).map(step).skip(10).collect()
}

#[test]
fn a_step_takes_as_few_blocks_for_1024_slots_as_for_8() {
    for id in ["CartPole-v1", "Maze-v0"] {
        let (few, many) = (blocks_per_step(id, 8), blocks_per_step(id, 1024));
        assert_eq!(few, many, "{id}");
        assert!(many.iter().all(|blocks| *blocks < 20), "{many:?}");
    }
}

#[test]
fn the_allocator_counts() {
    let before = BLOCKS.get();
    let block = std::hint::black_box(Box::new(1u64));
    assert_eq!(BLOCKS.get(), before + 1);
    drop(block);
}
