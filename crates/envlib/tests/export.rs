//! The built-in envs through libenv: what hosts see is what runners give.

#![allow(unsafe_code)]

mod host;

use std::sync::Arc;

use envcore::abi::libenv::sys::ours;
use envcore::{
    AutoresetMode, Begin, Column, ColumnIn, Fixed, Options, Scalar, Serial, Slots, Space, VecConfig, VecEnv,
    Want, with_element,
};
use host::{Data, Host};

envcore::export_libenv!(envs::TABLE);

/// The runner that an instance with these options has inside.
fn serial(id: &str, num_slots: usize, limit: Option<u64>, options: &Options) -> Serial {
    let source = envs::find(id).unwrap().source(options).unwrap();
    let config = VecConfig {
        num_slots,
        seed: Some(7),
        autoreset: Some(AutoresetMode::SameStep),
        max_episode_steps: limit,
        episode_statistics: true,
        ..VecConfig::default()
    };
    Serial::new(&*source, config).unwrap()
}

fn numbers(column: &Fixed, row: usize) -> Vec<f64> {
    with_element!(column.dtype(), T => {
        column.row::<T>(row).iter().map(|v| envcore::Element::to_scalar(*v).as_f64()).collect()
    })
}

/// What is to be taken from each leaf's numbers: the low of labels.
fn lows(space: &Space, given: &[host::Block]) -> Vec<f64> {
    let discrete = envcore::abi::libenv::sys::scalar_type::DISCRETE;
    let low = |(leaf, block): (&envcore::Leaf, &host::Block)| match leaf.as_fixed().unwrap().bounds.low[0] {
        Scalar::Int(low) if block.kind.scalar_type == discrete => low as f64,
        _ => 0.0,
    };
    space.leaves().iter().zip(given).map(low).collect()
}

/// A column's row as libenv is to show it.
fn shown(column: &Column, row: usize, low: f64, like: &host::Block) -> Vec<f64> {
    let narrow = |v: f64| match like.kind.dtype {
        envcore::abi::libenv::sys::dtype::FLOAT32 => f64::from(v as f32),
        _ => v - low,
    };
    numbers(column.as_fixed().unwrap(), row).into_iter().map(narrow).collect()
}

/// Some action of each slot, the same each time: a row of numbers per leaf.
fn some_actions(host: &Host, t: usize) -> Vec<Vec<Vec<f64>>> {
    let of = |(k, block): (usize, &host::Block)| {
        let some = |row: usize| {
            let pick = |e: usize| (t * 7919 + row * 104_729 + k * 31 + e * 13) / 3;
            let one = |e: usize| match block.kind.dtype {
                envcore::abi::libenv::sys::dtype::FLOAT32 => (pick(e) % 200) as f64 / 100.0 - 1.0,
                // SAFETY: the dtype says which.
                _ => (pick(e) % (unsafe { block.kind.high.int32 } as usize + 1)) as f64,
            };
            (0..block.numbers(row).len()).map(one).collect()
        };
        (0..host.num).map(some).collect()
    };
    host.ac.iter().enumerate().map(of).collect()
}

/// Gives both the same actions.
fn act(host: &mut Host, envs: &mut Serial, t: usize) -> Box<envcore::Batch> {
    let actions = some_actions(host, t);
    let lows = lows(&envs.spec().action, &host.ac);
    let mut owned = Vec::new();
    for (k, leaf) in envs.spec().action.leaves().iter().enumerate() {
        for (row, numbers) in actions[k].iter().enumerate() {
            host.ac[k].put(row, numbers);
        }
        let tensor = leaf.as_fixed().unwrap();
        let flat: Vec<f64> = actions[k].concat().iter().map(|v| v + lows[k]).collect();
        let bytes: Vec<u8> = match tensor.dtype {
            envcore::DType::I64 => flat.iter().flat_map(|v| (*v as i64).to_ne_bytes()).collect(),
            envcore::DType::F32 => flat.iter().flat_map(|v| (*v as f32).to_ne_bytes()).collect(),
            other => panic!("{other}"),
        };
        owned.push((tensor.dtype, [&[host.num], &tensor.shape[..]].concat(), bytes));
    }
    let columns: Vec<ColumnIn<'_>> = owned
        .iter()
        .map(|(dtype, shape, bytes)| ColumnIn::Fixed { dtype: *dtype, shape, bytes: bytes.into() })
        .collect();
    host.act();
    envs.step(&Slots::All, &columns, Want::all()).unwrap().unwrap()
}

/// Holds what the host sees to a batch of the runner's.
fn compare(host: &Host, envs: &Serial, batch: &envcore::Batch, at: &str) {
    let spec = envs.spec();
    let flag = |column: &Fixed, row: usize| column.as_slice::<bool>()[row];
    let lows = lows(&spec.observation, &host.ob);
    let zeros = |block: &host::Block| vec![0.0; block.numbers(0).len()];
    let single = |name: &str, row| host.info(name).numbers(row)[0];
    for row in 0..host.num {
        for (k, block) in host.ob.iter().enumerate() {
            let expected = shown(&batch.observation[k], row, lows[k], block);
            assert_eq!(block.numbers(row), expected, "{at}, row {row}, {}", block.name());
        }
        let (terminated, truncated) = (flag(&batch.terminated, row), flag(&batch.truncated, row));
        let over = terminated || truncated;
        let begun = over || batch.kind(row) == envcore::RowKind::Reset;
        assert_eq!(host.first[row], u8::from(begun), "{at}");
        assert_eq!(host.rew[row], batch.reward.as_slice::<f64>()[row] as f32, "{at}");
        assert_eq!(single("terminated", row), f64::from(u8::from(terminated)), "{at}");
        assert_eq!(single("truncated", row), f64::from(u8::from(truncated)), "{at}");
        for (k, leaf) in spec.info.leaves().iter().enumerate() {
            let name = match leaf.name.as_str() {
                "episode.t" => continue,
                "episode.r" => "episode_return",
                "episode.l" => "episode_length",
                other => other,
            };
            let block = host.info(name);
            assert_eq!(block.numbers(row), shown(&batch.infos.columns[k], row, 0.0, block), "{at}, {name}");
        }
        let finals = batch.finals.as_ref().unwrap();
        for (k, block) in host.ob.iter().enumerate() {
            let last = host.info(&format!("final_{}", block.name()));
            let expected =
                if over { shown(&finals.observation[k], row, lows[k], block) } else { zeros(block) };
            assert_eq!(last.numbers(row), expected, "{at}, row {row}, {}", last.name());
        }
        for (k, leaf) in
            spec.info.leaves().iter().enumerate().filter(|(_, l)| !l.name.starts_with("episode."))
        {
            let last = host.info(&format!("final_{}", leaf.name));
            let expected = if over { shown(&finals.infos.columns[k], row, 0.0, last) } else { zeros(last) };
            assert_eq!(last.numbers(row), expected, "{at}, row {row}, {}", last.name());
        }
    }
}

#[test]
fn the_same_seed_and_actions_show_what_the_serial_runner_gives() {
    for (id, cast, limit) in
        [("CartPole-v1", false, 12), ("Maze-v0", false, 9), ("testing/Faulty-v0", true, 7)]
    {
        for (threads, gap) in [(1, 0), (2, 0), (0, 0), (1, 4), (1, 1)] {
            let options = [
                ("env_id", id.into()),
                ("seed", 7.into()),
                ("cast", cast.into()),
                ("num_threads", threads.into()),
                ("max_episode_steps", limit.into()),
            ];
            let mut host = Host::spread(5, &options, gap);
            let mut envs = serial(id, 5, Some(limit as u64), &Options::new());
            host.observe();
            let batch = envs.reset(&Slots::All, &[Begin::Own; 5], None, Want::all()).unwrap().unwrap();
            compare(&host, &envs, &batch, id);
            for t in 0..60 {
                let before = host.seen();
                let batch = act(&mut host, &mut envs, t);
                assert_eq!(host.seen(), before, "a step shows at observe, not before");
                host.observe();
                compare(&host, &envs, &batch, &format!("{id}, {threads} threads, gap {gap}, step {t}"));
                let once = host.seen();
                host.observe();
                assert_eq!(host.seen(), once, "observe says the same again");
                assert_eq!(host.error(), None);
            }
        }
    }
}

#[test]
fn an_index_is_played_first_or_each_of_many_by_turns_and_then_the_own_stream() {
    let first = |begin: Begin| {
        let mut envs = serial("CartPole-v1", 1, Some(1), &Options::new());
        let batch = envs.reset(&Slots::All, &[begin], None, Want::all()).unwrap().unwrap();
        numbers(batch.observation[0].as_fixed().unwrap(), 0)
    };
    let own = |slot: i64| first(Begin::Seed(7 + slot));
    let base = [("env_id", "CartPole-v1".into()), ("seed", 7.into()), ("max_episode_steps", 1.into())];
    let play = |more: (&'static str, Data), episodes: usize| {
        let mut host = Host::new(2, &[&base[..], &[more]].concat());
        let mut seen = vec![Vec::new(), Vec::new()];
        for _ in 0..episodes {
            host.observe();
            (0..2).for_each(|slot| seen[slot].push(host.ob[0].numbers(slot)));
            host.put_all(1.0);
            host.act();
        }
        seen
    };
    let seen = play(("index", 40.into()), 2);
    for (slot, seen) in seen.iter().enumerate() {
        assert_eq!(seen[..], [first(Begin::Index(40 + slot as u64)), own(slot as i64)]);
    }
    let seen = play(("indices", [3, 4, 5, 6, 9].into()), 4);
    let index = |index: u64| first(Begin::Index(index));
    assert_eq!(seen[0][..3], [index(3), index(5), index(9)]);
    assert_eq!(seen[0][3], own(0));
    assert_eq!(seen[1][..3], [index(4), index(6), own(1)]);
}

#[test]
fn a_bad_action_moves_nothing_and_is_told() {
    let mut host = Host::new(3, &[("env_id", "CartPole-v1".into()), ("seed", 7.into())]);
    host.observe();
    let before = host.seen();
    host.put_all(1.0);
    host.ac[0].put(1, &[5.0]);
    host.act();
    let error = host.error().unwrap();
    assert!(error.contains("env 1") && error.contains("5 is outside 0 to 1"), "{error}");
    host.observe();
    assert_eq!(host.seen(), before);
    host.put_all(1.0);
    host.act();
    assert_eq!(host.error(), None);
    host.observe();
    assert_ne!(host.seen(), before);
    assert_eq!(host.first, [0; 3]);
}

#[test]
fn other_buffers_show_the_same_at_any_time() {
    for gap in [0, 4] {
        let options = [("env_id", "testing/Faulty-v0".into()), ("seed", 7.into()), ("cast", true.into())];
        let mut host = Host::new(4, &options);
        host.observe();
        for t in 0..40 {
            host.put_all((t % 2) as f64);
            host.act();
            host.observe();
            // What is seen after other memory is set, less infos that a step leaves.
            let mut other = Host::over(host.handle, 4, gap);
            other.set_buffers();
            other.observe();
            assert_eq!(other.seen(), host.seen(), "step {t}");
            other.handle = std::ptr::null_mut();
            // The memory of `other` goes; its successor must not need it.
            drop(other);
            host.set_buffers();
            host.observe();
            assert_eq!(host.error(), None);
        }
    }
}

#[test]
fn a_state_is_taken_up_with_what_was_seen_of_it_here_and_elsewhere() {
    for id in ["CartPole-v1", "Maze-v0"] {
        let options = [("env_id", id.into()), ("seed", 7.into()), ("max_episode_steps", 6.into())];
        let (mut host, mut other) = (Host::new(3, &options), Host::new(3, &options));
        let play = |host: &mut Host, steps: usize| -> Vec<(Vec<u8>, f32, u8)> {
            let step = |t: usize| {
                host.put_all((t % 2) as f64);
                host.act();
                host.observe();
                (host.ob[0].row(2).to_vec(), host.rew[2], host.first[2])
            };
            (0..steps).map(step).collect()
        };
        host.observe();
        play(&mut host, 6);
        assert_eq!(host.first, [1; 3]);
        let state = host.state(2);
        let seen = (host.ob[0].row(2).to_vec(), host.rew[2], host.first[2]);
        let after = play(&mut host, 20);
        other.observe();
        play(&mut other, 3);
        for host in [&mut host, &mut other] {
            host.load(2, &state);
            assert_eq!(host.error(), None);
            host.observe();
            assert_eq!((host.ob[0].row(2).to_vec(), host.rew[2], host.first[2]), seen, "{id}");
            assert_eq!(play(host, 20), after, "{id}");
        }
        let mut damaged = state.clone();
        damaged[9] ^= 1;
        for wrong in [&damaged, &state[..8].to_vec(), &Vec::new()] {
            let before = host.seen();
            host.load(2, wrong);
            assert!(host.error().is_some());
            host.observe();
            assert_eq!(host.seen(), before);
        }
    }
}

#[test]
fn an_env_that_fails_is_restarted_as_a_first_and_the_others_go_on() {
    for fault in ["panic_in_step", "error_in_step", "panic_in_reset"] {
        let options = |fault: &str| {
            vec![
                ("env_id", Data::from("testing/Faulty-v0")),
                ("seed", 7.into()),
                ("cast", true.into()),
                ("fault", fault.into()),
                ("of_seed", 8.into()),
            ]
        };
        let (mut host, mut healthy) = (Host::new(3, &options(fault)), Host::new(3, &options("none")));
        let mut told = Vec::new();
        for t in 0..30 {
            for host in [&mut host, &mut healthy] {
                host.observe();
                host.put_all((t % 2) as f64);
            }
            for slot in [0, 2] {
                assert_eq!(host.ob[0].row(slot), healthy.ob[0].row(slot), "{fault}, step {t}");
                assert_eq!(host.rew[slot], healthy.rew[slot]);
            }
            if let Some(error) = host.error() {
                assert_eq!(host.first[1], 1, "{fault}, step {t}");
                told.push(error);
            }
            host.act();
            healthy.act();
        }
        assert!(told[0].contains("a fault on demand") && told[0].contains("env 1"), "{told:?}");
        assert_eq!(healthy.error(), None);
    }
}

#[test]
fn a_reset_by_hand_is_what_observe_shows_next() {
    let options = [("env_id", "CartPole-v1".into()), ("seed", 7.into())];
    let mut host = Host::new(3, &options);
    let mut envs = serial("CartPole-v1", 3, None, &Options::new());
    // Before anything was shown, it is how the slot begins.
    assert_eq!(host.reset(1, ours::HOW_INDEX, 5), 0);
    host.observe();
    let batch = envs
        .reset(&Slots::All, &[Begin::Own, Begin::Index(5), Begin::Own], None, Want::all())
        .unwrap()
        .unwrap();
    compare(&host, &envs, &batch, "at first");
    for t in 0..4 {
        act(&mut host, &mut envs, t);
    }
    // Of the others, the step that is under way is shown.
    let batch = act(&mut host, &mut envs, 4);
    let seen = |batch: &envcore::Batch, row| numbers(batch.observation[0].as_fixed().unwrap(), row);
    for (how, value, begin) in [
        (ours::HOW_SEED, 90, Begin::Seed(90)),
        (ours::HOW_INDEX, 6, Begin::Index(6)),
        (ours::HOW_OWN, 0, Begin::Own),
    ] {
        assert_eq!(host.reset(2, how, value), 0);
        host.observe();
        let reset = envs.reset(&Slots::List(vec![2]), &[begin], None, Want::all()).unwrap().unwrap();
        assert_eq!(host.ob[0].numbers(2), seen(&reset, 0));
        assert_eq!((host.first[2], host.rew[2]), (1, 0.0));
        assert_eq!(host.ob[0].numbers(0), seen(&batch, 0));
        assert_eq!(host.rew[0], 1.0);
    }
    let batch = act(&mut host, &mut envs, 5);
    host.observe();
    compare(&host, &envs, &batch, "afterwards");
    for (env, how, value) in
        [(3, 0, 0), (-1, 0, 0), (0, 9, 0), (0, ours::HOW_SEED, -1), (0, ours::HOW_INDEX, -1)]
    {
        assert_eq!(host.reset(env, how, value), -1);
        assert!(host.error().is_some());
    }
}

#[test]
fn two_instances_from_two_threads_do_not_know_each_other() {
    let play = |threads: i32| {
        let options = [("env_id", "CartPole-v1".into()), ("seed", 7.into()), ("num_threads", threads.into())];
        let mut host = Host::new(64, &options);
        let step = |t: usize| {
            host.put_all((t % 2) as f64);
            host.act();
            host.observe();
            host.seen()
        };
        (0..200).map(step).collect::<Vec<_>>()
    };
    let alone = Arc::new(play(1));
    let threads: Vec<_> = [1, 2]
        .map(|n| {
            let alone = alone.clone();
            std::thread::spawn(move || assert!(play(n) == *alone))
        })
        .into();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
