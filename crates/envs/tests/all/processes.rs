//! Worker processes: what becomes of slots whose worker dies, is silent, or
//! never comes to be; and that nothing is left behind.

use std::time::{Duration, Instant};

use crate::common::process::process;
use crate::common::runners::{RUNNERS, runner};
use crate::common::{MODES, config, rows_of, source};
use envcore::{
    AutoresetMode, Batch, Begin, Cause, ColumnIn, Error, FailurePolicy, OnFailure, Options, Phase, Process,
    RowKind, Slots, VecConfig, VecEnv, Want,
};

const FAULTY: &str = "testing/Faulty-v0";
const SLOTS: usize = 6;
/// A bound that only a hang exceeds: shorter than the sleep of a slow env.
const LONG: Duration = Duration::from_secs(20);

fn faulty(options: &Options, config: VecConfig, workers: usize) -> Process {
    process(FAULTY, options, config, workers).unwrap()
}

fn next_step() -> VecConfig {
    VecConfig { seed: Some(7), ..config(SLOTS, AutoresetMode::NextStep) }
}

fn own() -> Vec<Begin> {
    vec![Begin::Own; SLOTS]
}

fn reset(envs: &mut dyn VecEnv) -> Box<Batch> {
    envs.reset(&Slots::All, &own(), None, Want::all()).unwrap().unwrap()
}

/// An action of Faulty's for each of `rows`.
fn send(envs: &mut dyn VecEnv, slots: &Slots) {
    let space = envs.spec().action.clone();
    let rows: Vec<Vec<envcore::Value>> =
        slots.iter(SLOTS).map(|slot| crate::common::some_action(&space, 0, slot)).collect();
    let rows: Vec<&[envcore::Value]> = rows.iter().map(Vec::as_slice).collect();
    let columns = crate::common::columns(&space, &rows);
    envs.send(slots, &crate::common::view(&columns)).unwrap();
}

fn step(envs: &mut dyn VecEnv) -> Box<Batch> {
    send(envs, &Slots::All);
    envs.recv(Want::all()).unwrap().unwrap()
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Steps slots 0 and 1 until the death of the other one of two workers is noticed.
fn until_it_is_noticed(envs: &mut Process) {
    let began = Instant::now();
    while envs.workers().len() == 2 && began.elapsed() < Duration::from_secs(5) {
        send(envs, &Slots::List(vec![0, 1]));
        envs.recv(Want::all()).unwrap().unwrap();
    }
}

fn failed(batch: &Batch) -> Vec<usize> {
    (0..batch.rows())
        .filter(|row| batch.kind(*row) == RowKind::Failed)
        .map(|row| batch.slots.at(row))
        .collect()
}

#[test]
fn a_worker_killed_between_calls_takes_its_slots_along_and_a_reset_brings_them_back() {
    let mut envs = faulty(&Options::new(), next_step(), 2);
    reset(&mut envs);
    step(&mut envs);
    kill(envs.workers()[1].0);
    let began = Instant::now();
    let batch = step(&mut envs);
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    assert_eq!(failed(&batch), [3, 4, 5]);
    assert_eq!(batch.failures.len(), 3);
    for (failure, slot) in batch.failures.iter().zip(3..) {
        assert_eq!((failure.slot, failure.seed, failure.step), (slot, Some(7 + slot as i64), 1));
        assert_eq!((failure.failure.phase, failure.failure.cause), (Phase::Step, Cause::Death));
        let text = failure.to_string();
        assert!(text.contains("worker 1 of 2 (envs 3 to 5) was killed by signal 9 (SIGKILL)"), "{text}");
        assert!(failure.action.is_some());
    }
    // Until they are reset they are not stepped; the others go on.
    let refused = envs.check_send(&Slots::List(vec![4]), &[]);
    assert!(matches!(refused, Err(Error::NeedsReset(_))), "{refused:?}");
    send(&mut envs, &Slots::List(vec![0, 1, 2]));
    assert!(failed(&envs.recv(Want::all()).unwrap().unwrap()).is_empty());
    let begin = [Begin::Keep, Begin::Keep, Begin::Keep, Begin::Own, Begin::Own, Begin::Own];
    let batch = envs.reset(&Slots::All, &begin, None, Want::all()).unwrap().unwrap();
    let kinds: Vec<RowKind> = (0..SLOTS).map(|row| batch.kind(row)).collect();
    assert_eq!(kinds[..3], [RowKind::Kept; 3]);
    assert_eq!(kinds[3..], [RowKind::Restarted; 3]);
    assert!(failed(&step(&mut envs)).is_empty());
}

#[test]
fn a_worker_killed_at_work_is_noticed_before_its_envs_answer() {
    let slow = Options::new().with("fault", "sleep_in_every_step").with("sleep", 30.0);
    let mut envs = faulty(&slow, next_step(), 3);
    reset(&mut envs);
    send(&mut envs, &Slots::All);
    let soon = Want { deadline: Some(Instant::now() + Duration::from_millis(100)), ..Want::all() };
    assert!(envs.recv(soon).unwrap().is_none());
    let workers = envs.workers();
    workers.iter().for_each(|(pid, _)| kill(*pid));
    let began = Instant::now();
    let batch = envs.recv(Want::all()).unwrap().unwrap();
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    assert_eq!(failed(&batch), [0, 1, 2, 3, 4, 5]);
    assert!(envs.workers().is_empty());
}

#[test]
fn silence_ends_the_worker_and_says_whose_it_was() {
    let sleeper =
        Options::new().with("fault", "sleep_in_step").with("of_seed", 8i64).with("in_episode", 0i64);
    let timeout = Some(Duration::from_millis(300));
    let mut envs = faulty(&sleeper, VecConfig { timeout, ..next_step() }, 2);
    reset(&mut envs);
    let batch = (0..20).map(|_| step(&mut envs)).find(|batch| !batch.failures.is_empty()).expect("it slept");
    let told: Vec<(usize, Cause)> = batch.failures.iter().map(|f| (f.slot, f.failure.cause)).collect();
    assert_eq!(told, [(1, Cause::Silence), (2, Cause::Death)]);
    for failure in &batch.failures {
        let part = "env 1 gave no answer within 300ms (timeout), and worker 0 of 2 (envs 0 to 2) was ended";
        assert!(failure.to_string().contains(part), "{failure}");
    }
    // Slot 0 had answered: its row is good, and it is lost with the next.
    let begin = [Begin::Keep; 3].into_iter().chain([Begin::Own; 3]).collect::<Vec<_>>();
    let begin: Vec<Begin> = begin.into_iter().rev().collect();
    let batch = envs.reset(&Slots::List(vec![1, 2]), &begin[..2], None, Want::all()).unwrap().unwrap();
    assert!(batch.failures.is_empty());
    let batch = step(&mut envs);
    assert_eq!(failed(&batch), [0]);
}

#[test]
fn a_policy_restarts_what_died_with_its_worker() {
    for mode in MODES {
        let envs = faulty(&Options::new(), VecConfig { autoreset: Some(mode), ..next_step() }, 2);
        let pids = envs.workers();
        let mut envs = FailurePolicy::new(Box::new(envs), OnFailure::Restart, 3).unwrap();
        reset(&mut envs);
        step(&mut envs);
        kill(pids[0].0);
        let batch = step(&mut envs);
        assert!(batch.failures.is_empty(), "{:?}", batch.failures);
        assert_eq!(batch.tolerated.len(), 3);
        assert_eq!(batch.truncated.as_slice::<bool>(), [true, true, true, false, false, false]);
        if mode == AutoresetMode::Disabled {
            let begin = [Begin::Own, Begin::Own, Begin::Own, Begin::Keep, Begin::Keep, Begin::Keep];
            envs.reset(&Slots::All, &begin, None, Want::all()).unwrap().unwrap();
        }
        for _ in 0..if mode == AutoresetMode::Disabled { 1 } else { 5 } {
            let batch = step(&mut envs);
            assert!(batch.failures.is_empty() && batch.tolerated.is_empty(), "{mode}");
        }
    }
}

#[test]
fn envs_that_cannot_be_built_are_reported_and_no_process_stays() {
    let broken = Options::new().with("fault", "panic_in_build");
    let error = process(FAULTY, &broken, next_step(), 3).err().expect("it panics in build");
    let Error::Slots(failures) = &error else { panic!("{error}") };
    assert_eq!(failures[0].failure.phase, Phase::Build);
    let error = process("No-v0", &Options::new(), next_step(), 2).err().expect("there is no such env");
    assert!(matches!(error, Error::UnknownEnv(_)), "{error}");
}

#[test]
fn faults_within_a_worker_are_told_as_serial_tells_them() {
    for fault in ["panic_in_step", "error_in_step", "panic_in_reset", "incomplete_observation", "wrong_dtype"]
    {
        let options = Options::new().with("fault", fault);
        let mut told: Vec<Vec<String>> = Vec::new();
        for workers in [None, Some(1), Some(3)] {
            let source: std::sync::Arc<dyn envcore::Source> = source(FAULTY, &options).into();
            let mut envs = match workers {
                None => runner(RUNNERS[0], &source, &next_step()),
                Some(workers) => Box::new(faulty(&options, next_step(), workers)),
            };
            let mut texts = Vec::new();
            let mut batch = reset(&mut *envs);
            for _ in 0..12 {
                texts.extend(batch.failures.iter().map(ToString::to_string));
                let lost = failed(&batch);
                let begin: Vec<Begin> =
                    (0..SLOTS).map(|k| if lost.contains(&k) { Begin::Own } else { Begin::Keep }).collect();
                if !lost.is_empty() {
                    let again = envs.reset(&Slots::All, &begin, None, Want::all()).unwrap().unwrap();
                    texts.extend(again.failures.iter().map(ToString::to_string));
                    if !again.failures.is_empty() {
                        break;
                    }
                }
                batch = step(&mut *envs);
            }
            assert!(!texts.is_empty(), "{fault}");
            told.push(texts);
        }
        assert_eq!(told[0], told[1], "{fault}");
        assert_eq!(told[0], told[2], "{fault}");
    }
}

#[test]
fn states_go_in_and_out_of_workers() {
    let source: std::sync::Arc<dyn envcore::Source> = source("CartPole-v1", &Options::new()).into();
    for mode in MODES {
        let config = VecConfig { seed: Some(3), max_episode_steps: Some(9), ..config(SLOTS, mode) };
        let mut ours = process("CartPole-v1", &Options::new(), config.clone(), 2).unwrap();
        let mut theirs = runner(RUNNERS[0], &source, &config);
        let zeros = [0i64; SLOTS];
        let act = |envs: &mut dyn VecEnv| {
            let batch =
                envs.step(&Slots::All, &[ColumnIn::scalars(&zeros, &[SLOTS])], Want::all()).unwrap().unwrap();
            rows_of(envs.spec(), &batch)
        };
        reset(&mut ours);
        reset(&mut *theirs);
        for _ in 0..7 {
            assert_eq!(act(&mut ours), act(&mut *theirs));
        }
        let state = ours.save_state().unwrap();
        assert_eq!(state, theirs.save_state().unwrap(), "{mode}");
        let mut other = process("CartPole-v1", &Options::new(), config.clone(), 3).unwrap();
        other.load_state(&state).unwrap();
        if mode != AutoresetMode::Disabled {
            for _ in 0..20 {
                assert_eq!(act(&mut other), act(&mut *theirs), "{mode}");
            }
        }
    }
}

#[test]
fn closing_leaves_no_process_whatever_the_envs_do() {
    let slow = Options::new().with("fault", "sleep_in_every_step").with("sleep", 60.0);
    let mut envs = faulty(&slow, next_step(), 2);
    reset(&mut envs);
    send(&mut envs, &Slots::All);
    std::thread::sleep(Duration::from_millis(50));
    let pids = envs.workers();
    let began = Instant::now();
    envs.close().unwrap();
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    for (pid, _) in pids {
        let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
    assert!(matches!(envs.recv(Want::all()), Err(Error::Closed)));
}

#[test]
fn a_death_that_nobody_was_told_of_marks_the_reset_that_follows_it() {
    let mut envs = faulty(&Options::new(), next_step(), 2);
    reset(&mut envs);
    step(&mut envs);
    kill(envs.workers()[1].0);
    // Only slots 0 and 1 are in flight when it is noticed.
    until_it_is_noticed(&mut envs);
    // Slot 4 is told of by its row; slot 3 is not asked for one.
    send(&mut envs, &Slots::List(vec![4]));
    let batch = envs.recv(Want::all()).unwrap().unwrap();
    assert_eq!(failed(&batch), [4]);
    assert_eq!((batch.failures[0].seed, batch.failures[0].step), (Some(11), 1));
    let batch = envs.reset(&Slots::List(vec![3]), &[Begin::Own], None, Want::all()).unwrap().unwrap();
    assert_eq!(batch.kind(0), RowKind::Restarted);
    // The worker is there again; slot 5's report is still of its old life.
    send(&mut envs, &Slots::List(vec![5]));
    let batch = envs.recv(Want::all()).unwrap().unwrap();
    assert_eq!((failed(&batch), batch.failures[0].seed), (vec![5], Some(12)));
}

#[test]
fn a_death_after_a_rebuild_names_the_seed_of_the_rebuilt_stream() {
    let broken = Options::new().with("fault", "error_in_step").with("of_seed", 8i64);
    let mut envs = faulty(&broken, next_step(), 2);
    reset(&mut envs);
    let batch = (0..20).map(|_| step(&mut envs)).find(|batch| !batch.failures.is_empty()).expect("it fails");
    assert_eq!((failed(&batch), batch.failures[0].seed), (vec![1], Some(8)));
    let begin = [Begin::Keep, Begin::Own, Begin::Keep, Begin::Keep, Begin::Keep, Begin::Keep];
    envs.reset(&Slots::All, &begin, None, Want::all()).unwrap().unwrap();
    kill(envs.workers()[0].0);
    let batch = step(&mut envs);
    assert_eq!(batch.failures[1].slot, 1);
    // As `SeedSequence([8, 1])`, halved, gives it.
    let sequence = envcore::rng::SeedSequence::from_seeds(&[8, 1]);
    assert_eq!(batch.failures[1].seed, Some((sequence.generate_u64::<1>()[0] >> 32) as i64));
}

#[test]
fn options_in_force_outlive_a_worker() {
    let mut envs = process("CartPole-v1", &Options::new(), next_step(), 2).unwrap();
    let still = Options::new().with("low", 0.03).with("high", 0.03);
    envs.reset(&Slots::All, &own(), Some(&still), Want::all()).unwrap();
    kill(envs.workers()[1].0);
    until_it_is_noticed(&mut envs);
    // One is told of by its row first, the other is reset unseen.
    send(&mut envs, &Slots::List(vec![4]));
    assert_eq!(failed(&envs.recv(Want::all()).unwrap().unwrap()), [4]);
    for slot in [3, 4] {
        let batch = envs.reset(&Slots::List(vec![slot]), &[Begin::Own], None, Want::all()).unwrap().unwrap();
        assert_eq!(batch.kind(0), RowKind::Restarted);
        assert_eq!(batch.observation[0].as_fixed().unwrap().as_slice::<f32>(), [0.03; 4], "env {slot}");
    }
}

#[test]
fn a_seed_that_an_env_failed_of_is_the_one_that_restarts_come_from() {
    let broken =
        Options::new().with("fault", "error_in_reset").with("of_seed", 5i64).with("in_episode", 0i64);
    let mut envs = faulty(&broken, next_step(), 2);
    let begin = |begin| {
        let mut all = vec![Begin::Keep; SLOTS];
        all[0] = begin;
        all
    };
    reset(&mut envs);
    let batch = envs.reset(&Slots::All, &begin(Begin::Seed(5)), None, Want::all()).unwrap().unwrap();
    assert_eq!(failed(&batch), [0]);
    envs.reset(&Slots::All, &begin(Begin::Own), None, Want::all()).unwrap().unwrap();
    kill(envs.workers()[0].0);
    let batch = step(&mut envs);
    assert_eq!(batch.failures[0].slot, 0);
    let sequence = envcore::rng::SeedSequence::from_seeds(&[5, 1]);
    assert_eq!(batch.failures[0].seed, Some((sequence.generate_u64::<1>()[0] >> 32) as i64));
}
