//! The core's inner loops, each per env step: `make bench-rust`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use envcore::rng::Streams;
use envcore::{
    AutoresetMode, Begin, ColumnIn, Discrete, Env, Options, Serial, Slots, Threaded, VecConfig, VecEnv, Want,
};
use envs::classic::{CartPole, CartPoleConfig};
use std::hint::black_box;

const SIZES: [usize; 3] = [1, 64, 4096];

fn config(num_slots: usize, num_threads: usize) -> VecConfig {
    VecConfig {
        num_slots,
        seed: Some(0),
        autoreset: Some(AutoresetMode::NextStep),
        max_episode_steps: Some(500),
        num_threads: Some(num_threads),
        ..VecConfig::default()
    }
}

/// A vec env of a built-in env, reset.
fn begun(id: &str, num_slots: usize, num_threads: usize) -> Box<dyn VecEnv> {
    let source = envs::find(id).unwrap().source(&Options::new()).unwrap();
    let config = config(num_slots, num_threads);
    let mut envs: Box<dyn VecEnv> = match num_threads {
        1 => Box::new(Serial::new(&*source, config).unwrap()),
        _ => Box::new(Threaded::new(&*source, config).unwrap()),
    };
    envs.send_reset(&Slots::All, &vec![Begin::Own; num_slots], None).unwrap();
    envs.recv(Want::all()).unwrap();
    envs
}

/// Pushes left and right, so that episodes last.
fn actions(num_slots: usize) -> [Vec<i64>; 2] {
    [0, 1].map(|push| (0..num_slots).map(|slot| (slot as i64 + push) % 2).collect())
}

fn step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("step");
    for (id, num_threads) in [("CartPole-v1", 1), ("CartPole-v1", 2), ("Maze-v0", 1)] {
        for num_slots in SIZES.into_iter().filter(|&n| num_threads == 1 || n == 4096) {
            let (mut envs, actions) = (begun(id, num_slots, num_threads), actions(num_slots));
            let (mut turn, shape) = (0, [num_slots]);
            group.throughput(Throughput::Elements(num_slots as u64));
            let name = BenchmarkId::new(format!("{id} on {num_threads}"), num_slots);
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    turn ^= 1;
                    let columns = [ColumnIn::scalars(&actions[turn], &shape)];
                    black_box(envs.step(&Slots::All, &columns, Want::all()).unwrap())
                });
            });
        }
    }
}

fn env(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("env");
    let mut env = CartPole::build(&CartPoleConfig::default(), 0).unwrap();
    env.reset(None).unwrap();
    let mut push = 0;
    group.bench_function("CartPole step", |bencher| {
        bencher.iter(|| {
            push ^= 1;
            black_box(env.step(&Discrete(push)).unwrap().0.obs)
        });
    });
    group.bench_function("CartPole reset", |bencher| bencher.iter(|| black_box(env.reset(None).unwrap())));
    group.bench_function("CartPole reset by index", |bencher| {
        bencher.iter(|| black_box(env.reset_with_index(black_box(7)).unwrap()));
    });
}

fn rng(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rng");
    let mut streams = Streams::new(0);
    streams.begin_own();
    group.bench_function("uniform", |bencher| bencher.iter(|| black_box(streams.rng().uniform(-1.0, 1.0))));
    group.bench_function("integers", |bencher| bencher.iter(|| black_box(streams.rng().integers(0, 12))));
    group.bench_function("a stream from a seed", |bencher| bencher.iter(|| Streams::new(black_box(7))));
}

criterion_group!(inner_loops, step, env, rng);
criterion_main!(inner_loops);
