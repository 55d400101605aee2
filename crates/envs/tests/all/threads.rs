//! What threads add to a runner's promises: slow and silent envs, deadlines,
//! closing in the midst of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::oracle::{Naive, Oracle};
use crate::common::runners::{RUNNERS, runner};
use crate::common::{
    MODES, Seen, config, recv, refusal, reset, rows_of, some_action, some_actions, source, view,
};
use envcore::{
    AutoresetMode, Background, Batch, Begin, Cause, Error, Options, RowKind, Slots, Source, Threaded,
    VecConfig, VecEnv, Want, start,
};
use envs::testing::{Faulty, FaultyConfig};

const SLOTS: usize = 4;
/// The slot that misbehaves, built from seed 102.
const SICK: usize = 2;

fn faulty(fault: &str, options: Options) -> Arc<dyn Source> {
    let options = options.with("fault", fault).with("of_seed", 100 + SICK as i64);
    source("testing/Faulty-v0", &options).into()
}

fn sound(mode: AutoresetMode) -> Naive<Faulty> {
    Naive::new(FaultyConfig::default(), SLOTS, 100, mode, None)
}

fn send(envs: &mut dyn VecEnv, t: usize, slots: &Slots) {
    let space = envs.spec().action.clone();
    let rows: Vec<_> = slots.iter(SLOTS).map(|slot| some_action(&space, t, slot)).collect();
    let columns = crate::common::columns(&space, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
    envs.send(slots, &view(&columns)).unwrap();
}

fn within(deadline: Duration) -> Want<'static> {
    Want { deadline: Some(Instant::now() + deadline), ..Want::all() }
}

#[test]
fn a_slow_slot_holds_up_no_other_while_a_thread_is_free() {
    let source = faulty("sleep_in_step", Options::new().with("at_step", 0i64).with("sleep", 0.5));
    let config = VecConfig { num_threads: Some(2), ..config(SLOTS, AutoresetMode::NextStep) };
    let mut envs = Background::new(source, config).unwrap();
    reset(&mut envs, &[Begin::Own; SLOTS]);
    send(&mut envs, 0, &Slots::All);
    let mut oracle = sound(AutoresetMode::NextStep);
    (0..SLOTS).for_each(|slot| drop(oracle.reset(slot, Begin::Own, None)));
    let mut steps = [0; SLOTS];
    while steps[SICK] == 0 {
        let want = Want { min_rows: 1, max_rows: 2, ..Want::all() };
        let batch = envs.recv(want).unwrap().unwrap();
        assert!(batch.rows() <= 2);
        for (slot, seen) in rows_of(envs.spec(), &batch) {
            let expected = oracle.step(slot, &some_action(&envs.spec().action, steps[slot], slot));
            assert_eq!(seen, expected, "env {slot}, step {}", steps[slot]);
            steps[slot] += 1;
            if slot != SICK {
                send(&mut envs, steps[slot], &Slots::List(vec![slot]));
            }
        }
    }
    for slot in [0, 1, 3] {
        assert!(steps[slot] > 50, "while one slot slept, env {slot} made {} steps", steps[slot]);
    }
}

#[test]
fn a_silent_slot_is_lost_and_a_reset_rebuilds_it() {
    for mode in MODES {
        for (fault, options) in [
            ("sleep_in_step", Options::new().with("at_step", 1i64)),
            ("sleep_in_reset", Options::new().with("in_episode", 0i64)),
        ] {
            let source = faulty(fault, options);
            let timeout = Some(Duration::from_millis(100));
            let mut envs = start(source, VecConfig { timeout, ..config(SLOTS, mode) }).unwrap();
            let mut oracle = sound(mode);
            envs.send_reset(&Slots::All, &[Begin::Own; SLOTS], None).unwrap();
            let mut batch = recv(&mut *envs);
            let mut expected: Vec<Seen> =
                (0..SLOTS).map(|slot| oracle.reset(slot, Begin::Own, None)).collect();
            let mut t = 0;
            while batch.failures.is_empty() {
                check_others(&*envs, &batch, &expected);
                send(&mut *envs, t, &Slots::All);
                batch = recv(&mut *envs);
                let action = |slot| some_action(&envs.spec().action, t, slot);
                expected = (0..SLOTS).map(|slot| oracle.step(slot, &action(slot))).collect();
                t += 1;
            }
            check_others(&*envs, &batch, &expected);
            let [failure] = batch.failures.as_slice() else { panic!("{:?}", batch.failures) };
            assert_eq!(
                (failure.slot, failure.seed, failure.failure.cause),
                (SICK, Some(102), Cause::Silence)
            );
            let in_step = fault == "sleep_in_step";
            assert_eq!(failure.action.is_some(), in_step);
            assert_eq!(failure.step, u64::from(in_step));
            let text = failure.to_string();
            assert!(text.contains("env 2 went silent in ") && text.contains("within 100ms"), "{text}");
            let seen = &rows_of(envs.spec(), &batch)[SICK].1;
            assert_eq!((seen.kind, seen.reward(), seen.done()), (RowKind::Failed, 0.0, false));

            let why =
                refusal(envs.check_send(&Slots::All, &view(&some_actions(&envs.spec().action, t, SLOTS))));
            assert!(why.contains("env 2 failed earlier"), "{why}");
            let mut begin = [Begin::Keep; SLOTS];
            begin[SICK] = Begin::Own;
            envs.send_reset(&Slots::All, &begin, None).unwrap();
            let batch = recv(&mut *envs);
            assert_eq!(batch.failures, []);
            assert_eq!(batch.kind(SICK), RowKind::Restarted);
            // The rebuilt env has another seed than the one that sleeps.
            for t in 0..3 {
                if mode == AutoresetMode::Disabled {
                    break;
                }
                send(&mut *envs, t, &Slots::All);
                assert_eq!(recv(&mut *envs).failures, []);
            }
        }
    }
}

fn check_others(envs: &dyn VecEnv, batch: &Batch, expected: &[Seen]) {
    for (slot, seen) in rows_of(envs.spec(), batch) {
        if slot != SICK {
            assert_eq!(seen, expected[slot], "env {slot}");
        }
    }
}

#[test]
fn a_deadline_that_passes_loses_nothing() {
    for name in ["threaded 3", "background 2"] {
        let source = faulty("sleep_in_every_step", Options::new().with("sleep", 0.1));
        let mut envs = runner(name, &source, &config(SLOTS, AutoresetMode::NextStep));
        let mut oracle = sound(AutoresetMode::NextStep);
        reset(&mut *envs, &[Begin::Own; SLOTS]);
        (0..SLOTS).for_each(|slot| drop(oracle.reset(slot, Begin::Own, None)));
        for t in 0..6 {
            send(&mut *envs, t, &Slots::All);
            let mut late = 0;
            let batch = loop {
                match envs.recv(within(Duration::from_millis(1))).unwrap() {
                    Some(batch) => break batch,
                    None => late += 1,
                }
                assert_eq!(envs.in_flight(), SLOTS);
                let action = some_actions(&envs.spec().action, t, SLOTS);
                let pending = envs.check_send(&Slots::All, &view(&action));
                assert!(matches!(pending, Err(Error::Pending(_))), "{pending:?}");
            };
            // The caller itself may have had the slow slot, the first few times.
            assert!(late > 0 || name == "threaded 3", "{name}");
            let action = |slot| some_action(&envs.spec().action, t, slot);
            let expected: Vec<Seen> = (0..SLOTS).map(|slot| oracle.step(slot, &action(slot))).collect();
            let found: Vec<Seen> = rows_of(envs.spec(), &batch).into_iter().map(|(_, seen)| seen).collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn an_end_in_the_midst_of_it_waits_a_moment_and_no_longer() {
    for drop_it in [false, true] {
        for name in ["threaded 3", "background 2", "with a timeout"] {
            let source = faulty("sleep_in_step", Options::new().with("at_step", 0i64));
            let mut envs = runner(name, &source, &config(SLOTS, AutoresetMode::NextStep));
            reset(&mut *envs, &[Begin::Own; SLOTS]);
            if name == "threaded 3" {
                // That runner's caller works too, and must not meet the sleeper:
                // nothing has begun until a recv.
                send(&mut *envs, 0, &Slots::All);
            } else {
                send(&mut *envs, 0, &Slots::All);
                assert!(envs.recv(within(Duration::from_millis(20))).unwrap().is_none());
            }
            let start = Instant::now();
            if drop_it {
                drop(envs);
            } else {
                envs.close().unwrap();
                assert!(matches!(envs.recv(Want::all()), Err(Error::Closed)));
                envs.close().unwrap();
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{name}");
        }
    }
}

#[test]
fn as_many_slots_as_anyone_wants() {
    const MANY: usize = 1 << 16;
    let source: Arc<dyn Source> = source("CartPole-v1", &Options::new()).into();
    let mut rewards = Vec::new();
    for name in RUNNERS {
        let mut envs = runner(name, &source, &config(MANY, AutoresetMode::SameStep));
        envs.reset(&Slots::All, &vec![Begin::Own; MANY], None, Want::all()).unwrap().unwrap();
        let actions: Vec<i64> = (0..MANY as i64).map(|slot| slot % 2).collect();
        for _ in 0..12 {
            let columns = [envcore::ColumnIn::scalars(&actions, &[MANY])];
            let batch = envs.step(&Slots::All, &columns, Want::all()).unwrap().unwrap();
            let ended = batch.terminated.as_slice::<bool>().iter().filter(|ended| **ended).count();
            rewards.push((name, ended, batch.observation[0].as_fixed().unwrap().as_slice::<f32>().to_vec()));
        }
    }
    let first = &rewards[..12];
    for (k, (name, ended, observations)) in rewards.iter().enumerate() {
        let (_, same, theirs) = &first[k % 12];
        assert!(ended == same && observations == theirs, "{name}, step {}", k % 12);
    }
    assert!(first.iter().any(|(_, ended, _)| *ended > 1000), "episodes ended");
}

#[test]
fn numbers_of_threads_rows_and_seconds_that_make_no_sense_are_errors() {
    let source: Arc<dyn Source> = source("CartPole-v1", &Options::new()).into();
    let base = config(4, AutoresetMode::NextStep);
    for (config, why) in [
        (VecConfig { num_threads: Some(0), ..base.clone() }, "num_threads is 0"),
        (VecConfig { num_threads: Some(100_000), ..base.clone() }, "num_threads is 100000"),
        (VecConfig { batch_size: Some(0), ..base.clone() }, "batch_size is 0"),
        (VecConfig { batch_size: Some(5), ..base.clone() }, "batch_size is 5"),
        (VecConfig { timeout: Some(Duration::ZERO), ..base.clone() }, "timeout is 0"),
    ] {
        let text = refusal(start(source.clone(), config));
        assert!(text.contains(why), "{text}");
    }
    // Bound to cores that wrap around.
    let config = VecConfig { thread_affinity_offset: Some(1000), num_threads: Some(3), ..base };
    let mut envs = Threaded::new(&*source, config).unwrap();
    reset(&mut envs, &[Begin::Own; 4]);
}
