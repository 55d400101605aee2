//! Batches that are kept are yours; those that are not cost no memory.

use crate::common::{Seen, config, recv, reset, rows_of, serial, some_actions, source, view};
use envcore::{AutoresetMode, Batch, Begin, Fixed, Options, Serial, Shard, Slots, VecEnv};

const SLOTS: usize = 4;

/// Every way to run `SLOTS` slots of an env with finals and infos, and the
/// rounds that warm its pools up.
fn each_way(id: &str) -> [Box<dyn VecEnv>; 2] {
    let part = |n| Box::new(serial(id, n, AutoresetMode::SameStep)) as Box<dyn VecEnv>;
    [part(SLOTS), Box::new(Shard::new(vec![part(3), part(1)]).unwrap())]
}

fn step(envs: &mut dyn VecEnv, t: usize) -> Box<Batch> {
    let actions = some_actions(&envs.spec().action, t, SLOTS);
    envs.send(&Slots::All, &view(&actions)).unwrap();
    recv(envs)
}

fn shown(envs: &dyn VecEnv, batch: &Batch) -> Vec<(usize, Seen)> {
    rows_of(envs.spec(), batch)
}

#[test]
fn a_thousand_kept_batches_never_change() {
    for id in ["testing/Faulty-v0", "CartPole-v1", "testing/Odd-v0"] {
        for mut envs in each_way(id) {
            reset(&mut *envs, &[Begin::Own; SLOTS]);
            let kept: Vec<_> = (0..1000)
                .map(|t| {
                    let batch = step(&mut *envs, t);
                    let copy = shown(&*envs, &batch);
                    // Others come and go meanwhile.
                    drop(step(&mut *envs, t + 5000));
                    (batch, copy)
                })
                .collect();
            for (t, (batch, copy)) in kept.iter().enumerate() {
                assert!(shown(&*envs, batch) == *copy, "{id}: batch {t} has changed");
            }
        }
    }
}

#[test]
fn a_loop_that_keeps_nothing_allocates_no_batch_memory() {
    for id in ["testing/Faulty-v0", "CartPole-v1", "Maze-v0"] {
        for mut envs in each_way(id) {
            reset(&mut *envs, &[Begin::Own; SLOTS]);
            drop(step(&mut *envs, 0));
            let before = envs.allocations();
            assert!(before > 0);
            (0..300).for_each(|t| drop(step(&mut *envs, t)));
            assert_eq!(envs.allocations(), before, "{id}");
        }
    }
}

#[test]
fn keeping_only_rewards_pins_nothing_else() {
    for mut envs in each_way("Maze-v0") {
        reset(&mut *envs, &[Begin::Own; SLOTS]);
        drop(step(&mut *envs, 0));
        let before = envs.allocations();
        let rewards: Vec<Fixed> = (0..300).map(|t| step(&mut *envs, t).reward).collect();
        // The first reward's block was there; each later one is new, and only those are.
        assert_eq!(envs.allocations(), before + 299);
        drop(rewards);
    }
}

#[test]
fn keeping_the_last_batches_allocates_as_many_and_no_more() {
    for mut envs in each_way("CartPole-v1") {
        reset(&mut *envs, &[Begin::Own; SLOTS]);
        let mut kept: std::collections::VecDeque<Box<Batch>> = (0..32).map(|t| step(&mut *envs, t)).collect();
        kept.push_back(step(&mut *envs, 40));
        let before = envs.allocations();
        for t in 0..300 {
            kept.pop_front();
            kept.push_back(step(&mut *envs, t));
        }
        assert_eq!(envs.allocations(), before);
    }
}

#[test]
fn a_batch_may_be_read_and_dropped_on_another_thread_and_its_memory_comes_back() {
    let mut envs = serial("testing/Faulty-v0", SLOTS, AutoresetMode::SameStep);
    reset(&mut envs, &[Begin::Own; SLOTS]);
    let mut last = 0;
    for t in 0..50 {
        let batch = step(&mut envs, t);
        let copy = shown(&envs, &batch);
        let spec = envs.spec().clone();
        let there = std::thread::spawn(move || rows_of(&spec, &batch));
        assert_eq!(there.join().unwrap(), copy);
        if t > 0 {
            assert_eq!(envs.allocations(), last, "step {t}");
        }
        last = envs.allocations();
    }
}

#[test]
fn a_batch_outlives_its_vec_env() {
    for id in ["testing/Faulty-v0", "Maze-v0"] {
        for mut envs in each_way(id) {
            reset(&mut *envs, &[Begin::Own; SLOTS]);
            let batch = step(&mut *envs, 0);
            let (copy, spec) = (shown(&*envs, &batch), envs.spec().clone());
            envs.close().unwrap();
            drop(envs);
            assert!(rows_of(&spec, &batch) == copy);
        }
    }
}

#[test]
fn every_column_is_aligned_and_as_long_as_the_batch() {
    let mut envs =
        Serial::new(&*source("testing/Faulty-v0", &Options::new()), config(SLOTS, AutoresetMode::SameStep))
            .unwrap();
    reset(&mut envs, &[Begin::Own; SLOTS]);
    for slots in [Slots::All, Slots::List(vec![2])] {
        let n = slots.len(SLOTS);
        let actions = some_actions(&envs.spec().action, 0, n);
        envs.send(&slots, &view(&actions)).unwrap();
        let batch = recv(&mut envs);
        let finals = batch.finals.as_ref().unwrap();
        let columns = batch.observation.iter().chain(&batch.infos.columns).chain(&finals.observation);
        let fixed = columns.filter_map(|column| column.as_fixed());
        let flags = [&batch.reward, &batch.terminated, &batch.truncated, &batch.kinds, &finals.ended];
        for column in fixed.chain(flags).chain(&batch.infos.masks) {
            assert_eq!(column.rows(), n);
            assert_eq!(column.bytes().len(), n * column.row_bytes());
            assert_eq!(column.bytes().as_ptr() as usize % 64, 0);
        }
    }
}
