//! How many instructions the core's inner loops take: `make bench-instructions`.
//!
//! Counted by Valgrind, so the same on a machine that is busy. No measure of
//! time: a division counts as one, and so does a load that misses every cache.

#![allow(missing_docs)]

use std::hint::black_box;

use envcore::{AutoresetMode, Begin, ColumnIn, Options, Serial, Slots, VecConfig, VecEnv, Want};
use gungraun::{library_benchmark, library_benchmark_group, main};

/// A vec env after some steps, and actions for the next.
struct Begun {
    envs: Serial,
    actions: Vec<i64>,
}

fn begun(id: &str, num_slots: usize) -> Begun {
    let source = envs::find(id).unwrap().source(&Options::new()).unwrap();
    let config = VecConfig {
        num_slots,
        seed: Some(0),
        autoreset: Some(AutoresetMode::NextStep),
        max_episode_steps: Some(500),
        ..VecConfig::default()
    };
    let mut envs = Serial::new(&*source, config).unwrap();
    envs.reset(&Slots::All, &vec![Begin::Own; num_slots], None, Want::all()).unwrap();
    let mut begun = Begun { envs, actions: (0..num_slots).map(|slot| slot as i64 % 2).collect() };
    for _ in 0..50 {
        step(&mut begun);
    }
    begun
}

fn step(begun: &mut Begun) {
    let shape = [begun.actions.len()];
    let columns = [ColumnIn::scalars(&begun.actions, &shape)];
    black_box(begun.envs.step(&Slots::All, &columns, Want::all()).unwrap());
}

fn cart_poles(num_slots: usize) -> Begun {
    begun("CartPole-v1", num_slots)
}

fn maze(num_slots: usize) -> Begun {
    begun("Maze-v0", num_slots)
}

#[library_benchmark]
#[bench::cart_pole_1(cart_poles(1))]
#[bench::cart_pole_64(cart_poles(64))]
#[bench::cart_pole_4096(cart_poles(4096))]
#[bench::maze_64(maze(64))]
fn one_step(mut begun: Begun) -> Begun {
    step(&mut begun);
    begun
}

library_benchmark_group!(name = steps, benchmarks = one_step);
main!(library_benchmark_groups = steps);
