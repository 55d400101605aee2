//! Environments that fail: the others complete their step, the report says
//! where, and the slot comes back with its next reset.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::oracle::{Naive, Oracle};
use crate::common::plugin::through_plugin;
use crate::common::{
    Cell, Seen, config, receive, recv, refusal, reset, rows_of, some_action, some_actions, source, source_of,
    view,
};
use envcore::{
    AutoresetMode, Batch, Begin, Cause, Discrete, Env, Error, Options, Phase, Record, Result, RowKind,
    Serial, Shard, SlotError, Slots, Step, VecEnv, Want, wants_reset,
};
use envs::testing::{Faulty, FaultyConfig};

const SLOTS: usize = 4;

/// The same, its envs a plugin's.
fn faulty_plugin(fault: &str, autoreset: AutoresetMode, options: Options) -> Serial {
    let options = options.with("fault", fault).with("of_seed", 102i64);
    Serial::new(&*through_plugin("testing/Faulty-v0", &options), config(SLOTS, autoreset)).unwrap()
}

/// A Faulty whose slot 2 has `fault`.
fn faulty(fault: &str, autoreset: AutoresetMode, options: Options) -> Serial {
    let options = options.with("fault", fault).with("of_seed", 102i64);
    Serial::new(&*source("testing/Faulty-v0", &options), config(SLOTS, autoreset)).unwrap()
}

/// What the slots do whose seed has no fault.
fn sound(autoreset: AutoresetMode) -> Naive<Faulty> {
    Naive::new(FaultyConfig::default(), SLOTS, 100, autoreset, None)
}

fn send(envs: &mut dyn VecEnv, t: usize) -> Box<Batch> {
    let actions = some_actions(&envs.spec().action, t, envs.spec().num_slots);
    envs.send(&Slots::All, &view(&actions)).unwrap();
    recv(envs)
}

/// The rows by slot, where those of `lost` must be failed ones of zeros, but for
/// reward and flags of a step after which only the autoreset failed.
fn rows(envs: &dyn VecEnv, batch: &Batch, lost: &[usize]) -> Vec<Seen> {
    let rows = rows_of(envs.spec(), batch).into_iter().map(|(_, seen)| seen).collect::<Vec<_>>();
    for (slot, seen) in rows.iter().enumerate() {
        assert_eq!(seen.kind == RowKind::Failed, lost.contains(&slot), "env {slot}: {seen:?}");
        if lost.contains(&slot) {
            let step_counts = seen.last.is_some() && seen.done();
            assert!(step_counts || (seen.reward == 0 && !seen.done()), "{seen:?}");
            assert!(seen.infos.is_empty(), "{seen:?}");
            let zero = |cell: &Cell| matches!(cell, Cell::Bytes(bytes) if bytes.iter().all(|b| *b == 0));
            assert!(seen.observation.iter().all(zero), "{seen:?}");
        }
    }
    rows
}

fn check_others(envs: &dyn VecEnv, batch: &Batch, oracle: &mut dyn Oracle, t: usize) {
    for (slot, seen) in rows(envs, batch, &[2]).into_iter().enumerate().filter(|(slot, _)| *slot != 2) {
        let action = some_action(&envs.spec().action, t, slot);
        assert_eq!(seen, oracle.step(slot, &action), "env {slot}");
    }
}

#[test]
fn a_step_that_fails_is_reported_and_the_other_slots_complete_theirs() {
    let faults = [
        ("panic_in_step", Cause::Panic, "a fault on demand"),
        ("error_in_step", Cause::Error, "a fault on demand"),
        ("incomplete_observation", Cause::Error, "1 of the observation's 4 leaves were written"),
        ("wrong_dtype", Cause::Panic, "declared with float32 and written with uint8"),
    ];
    type Make = fn(&str, AutoresetMode, Options) -> Serial;
    for (mode, make) in crate::common::MODES
        .into_iter()
        .flat_map(|mode| [(mode, faulty as Make), (mode, faulty_plugin as Make)])
    {
        for (fault, cause, message) in faults {
            let mut envs = make(fault, mode, Options::new().with("at_step", 1i64));
            let mut oracle = sound(mode);
            let begin = [Begin::Own, Begin::Own, Begin::Own, Begin::Index(9)];
            reset(&mut envs, &begin);
            (0..SLOTS).for_each(|slot| drop(oracle.reset(slot, begin[slot], None)));
            let batch = send(&mut envs, 0);
            assert_eq!(batch.failures, []);
            (0..SLOTS).for_each(|slot| {
                oracle.step(slot, &some_action(&envs.spec().action, 0, slot));
            });
            let batch = send(&mut envs, 1);
            check_others(&envs, &batch, &mut oracle, 1);

            let [failure] = batch.failures.as_slice() else { panic!("{:?}", batch.failures) };
            let SlotError { slot, begin, seed, episode, step, .. } = failure;
            assert_eq!((*slot, *begin, *seed, *episode, *step), (2, Begin::Own, Some(102), 0, 1));
            assert_eq!((failure.failure.phase, failure.failure.cause), (Phase::Step, cause));
            assert!(failure.failure.message.contains(message), "{failure}");
            let action = failure.action.as_deref().unwrap();
            assert!(action.starts_with("{force: [") && action.contains("gear: "), "{action}");
            let text = failure.to_string();
            assert!(text.contains("testing/Faulty-v0: env 2 ") && text.contains("seed 102"), "{text}");
            assert!(text.contains("episode 0, step 1, action {"), "{text}");
        }
    }
}

#[test]
fn a_lost_slot_refuses_steps_until_its_reset_rebuilds_it_from_another_seed() {
    let mut envs = faulty("panic_in_step", AutoresetMode::NextStep, Options::new().with("at_step", 0i64));
    let first = reset(&mut envs, &[Begin::Own; SLOTS]);
    send(&mut envs, 0);
    let actions = some_actions(&envs.spec().action, 1, SLOTS);
    let error = envs.send(&Slots::All, &view(&actions)).unwrap_err();
    assert!(matches!(error, Error::NeedsReset(_)));
    assert!(error.to_string().contains("env 2 failed earlier: reset it"), "{error}");
    let keep = envs.send_reset(&Slots::List(vec![2]), &[Begin::Keep], None);
    assert!(refusal(keep).contains("env 2 has no observation to keep"));
    assert!(refusal(envs.render(&Slots::List(vec![2]))).contains("env 2 shows nothing before its reset"));

    let own = [Begin::Keep, Begin::Keep, Begin::Own, Begin::Keep];
    let again = reset(&mut envs, &own);
    assert_ne!(again[2].observation, first[2].observation, "not the stream of the seed that failed");
    let nobody = &sound(AutoresetMode::NextStep).reset(2, Begin::Own, None);
    assert_ne!(again[2].observation, nobody.observation);
    // The rebuilt env has another seed, so it has no fault; nor have the others.
    assert_eq!(send(&mut envs, 1).failures, []);
    assert!(rebuilt(&["panic_in_step"; 2])[0] == rebuilt(&["error_in_step"; 2])[0], "derived, not drawn");
}

/// What slot 2 shows at its resets after one failure each.
fn rebuilt(faults: &[&str]) -> Vec<Vec<Cell>> {
    let options = Options::new().with("at_step", 0i64).with("fault", faults[0]);
    let mut envs =
        Serial::new(&*source("testing/Faulty-v0", &options), config(SLOTS, AutoresetMode::NextStep)).unwrap();
    reset(&mut envs, &[Begin::Own; SLOTS]);
    let shown = faults.iter().map(|_| {
        send(&mut envs, 0);
        reset(&mut envs, &[Begin::Own; SLOTS])[2].observation.clone()
    });
    shown.collect()
}

#[test]
fn every_restart_of_a_slot_has_its_own_stream() {
    let shown = rebuilt(&["panic_in_step"; 6]);
    for (k, one) in shown.iter().enumerate() {
        assert!(!shown[..k].contains(one), "restart {k} repeats an earlier one");
    }
}

#[test]
fn after_a_seeded_reset_restarts_are_counted_anew_and_go_on_after_a_load() {
    let source =
        source("testing/Faulty-v0", &Options::new().with("fault", "panic_in_step").with("at_step", 0i64));
    let make = || Serial::new(&*source, config(1, AutoresetMode::NextStep)).unwrap();
    let action = |envs: &Serial| some_actions(&envs.spec().action, 0, 1);
    // What the slot shows after each of two failures since its seed.
    let fail = |envs: &mut Serial| {
        let action = action(envs);
        assert_eq!(envs.step(&Slots::All, &view(&action), Want::all()).unwrap().unwrap().failures.len(), 1);
        reset(envs, &[Begin::Own])[0].observation.clone()
    };
    let mut envs = make();
    let runs: Vec<[Vec<Cell>; 2]> = (0..3)
        .map(|_| {
            reset(&mut envs, &[Begin::Seed(5)]);
            [fail(&mut envs), fail(&mut envs)]
        })
        .collect();
    assert!(runs[1] == runs[0] && runs[2] == runs[0], "a function of the seed and the failures since");
    assert!(runs[0][0] != runs[0][1]);

    reset(&mut envs, &[Begin::Seed(5)]);
    fail(&mut envs);
    let state = envs.save(0).unwrap();
    let mut other = make();
    other.load(0, &state).unwrap();
    assert!(fail(&mut other) == runs[0][1], "the count is part of the state");
}

#[test]
fn a_lost_slot_reset_with_a_seed_or_an_index_plays_what_a_fresh_env_plays() {
    for begin in [Begin::Seed(55), Begin::Index(55)] {
        let mut envs = faulty("panic_in_step", AutoresetMode::SameStep, Options::new().with("at_step", 0i64));
        reset(&mut envs, &[Begin::Own; SLOTS]);
        send(&mut envs, 0);
        let mut all = [Begin::Keep; SLOTS];
        all[2] = begin;
        let mut oracle = sound(AutoresetMode::SameStep);
        let fresh = Seen { kind: RowKind::Restarted, ..oracle.reset(2, begin, None) };
        assert_eq!(reset(&mut envs, &all)[2], fresh, "{begin:?}");
        for t in 0..3 {
            let batch = send(&mut envs, t);
            let action = some_action(&envs.spec().action, t, 2);
            assert_eq!(rows(&envs, &batch, &[])[2], oracle.step(2, &action), "{begin:?}");
        }
    }
}

#[test]
fn a_report_names_the_seed_that_the_slot_was_last_given() {
    let options = Options::new().with("fault", "panic_in_step").with("at_step", 0i64);
    let source = source("testing/Faulty-v0", &options);
    let mut envs = Serial::new(&*source, config(2, AutoresetMode::NextStep)).unwrap();
    reset(&mut envs, &[Begin::Own, Begin::Seed(7)]);
    let mut seeds =
        || send(&mut envs, 0).failures.iter().map(|failure| failure.seed.unwrap()).collect::<Vec<_>>();
    assert_eq!(seeds(), [100, 7]);
    reset(&mut envs, &[Begin::Seed(55), Begin::Own]);
    let again = send(&mut envs, 0).failures;
    assert_eq!(again[0].seed, Some(55));
    // A rebuilt env's own seed is reported: building from it gives the same env.
    assert_ne!(again[1].seed, Some(7));
    let rebuilt = reset(&mut envs, &[Begin::Seed(again[1].seed.unwrap()), Begin::Own]);
    let fresh = Naive::<Faulty>::new(
        FaultyConfig::default(),
        1,
        again[1].seed.unwrap(),
        AutoresetMode::NextStep,
        None,
    )
    .reset(0, Begin::Own, None);
    assert_eq!(rebuilt[0], Seen { kind: RowKind::Restarted, ..fresh });
}

#[test]
fn a_reset_that_fails_loses_its_slot_alone() {
    for (fault, cause) in [("panic_in_reset", Cause::Panic), ("error_in_reset", Cause::Error)] {
        let mut envs = faulty(fault, AutoresetMode::NextStep, Options::new().with("in_episode", 1i64));
        reset(&mut envs, &[Begin::Own; SLOTS]);
        let mut oracle = sound(AutoresetMode::NextStep);
        (0..SLOTS).for_each(|slot| drop(oracle.reset(slot, Begin::Own, None)));
        envs.send_reset(&Slots::All, &[Begin::Own, Begin::Own, Begin::Index(4), Begin::Own], None).unwrap();
        let batch = recv(&mut envs);
        let rows = rows(&envs, &batch, &[2]);
        [0, 1, 3].into_iter().for_each(|k| assert_eq!(rows[k], oracle.reset(k, Begin::Own, None)));
        let [failure] = batch.failures.as_slice() else { panic!("{:?}", batch.failures) };
        assert_eq!((failure.slot, failure.begin, failure.episode, failure.step), (2, Begin::Index(4), 1, 0));
        assert_eq!((failure.failure.phase, failure.failure.cause), (Phase::Reset, cause));
        assert_eq!(failure.action, None);
        assert!(failure.to_string().contains("(index 4, episode 1, step 0)"), "{failure}");
        reset(&mut envs, &[Begin::Own; SLOTS]);
    }
}

#[test]
fn an_autoreset_that_fails_is_reported_and_the_others_go_on() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
        for (fault, cause) in [("panic_in_reset", Cause::Panic), ("error_in_reset", Cause::Error)] {
            let mut envs = faulty(fault, mode, Options::new().with("in_episode", 1i64));
            let mut oracle = sound(mode);
            reset(&mut envs, &[Begin::Own; SLOTS]);
            (0..SLOTS).for_each(|slot| drop(oracle.reset(slot, Begin::Own, None)));
            let mut t = 0;
            let mut batch = send(&mut envs, t);
            while batch.failures.is_empty() {
                for (slot, seen) in rows(&envs, &batch, &[]).into_iter().enumerate() {
                    assert_eq!(seen, oracle.step(slot, &some_action(&envs.spec().action, t, slot)));
                }
                t += 1;
                batch = send(&mut envs, t);
            }
            check_others(&envs, &batch, &mut oracle, t);
            if mode == AutoresetMode::SameStep {
                // The step itself is not lost with the reset after it.
                let (ended, expected) = (
                    rows(&envs, &batch, &[2]).remove(2),
                    oracle.step(2, &some_action(&envs.spec().action, t, 2)),
                );
                assert_eq!((ended.reward, ended.done(), ended.last), (expected.reward, true, expected.last));
            }
            let failure = &batch.failures[0];
            assert_eq!((failure.slot, failure.seed, failure.episode, failure.step), (2, Some(102), 1, 0));
            assert_eq!((failure.failure.phase, failure.failure.cause), (Phase::Reset, cause));
            let actions = some_actions(&envs.spec().action, 0, SLOTS);
            assert!(refusal(envs.send(&Slots::All, &view(&actions))).contains("env 2 failed earlier"));
            reset(&mut envs, &[Begin::Keep, Begin::Keep, Begin::Own, Begin::Keep]);
            assert_eq!(send(&mut envs, 0).failures, []);
        }
    }
}

#[test]
fn several_failures_in_one_batch_are_all_reported() {
    for panics in ["panic_in_step", "error_in_step"] {
        let options = Options::new().with("fault", panics).with("at_step", 1i64);
        let source = source("testing/Faulty-v0", &options);
        let mut envs = Serial::new(&*source, config(7, AutoresetMode::NextStep)).unwrap();
        reset(&mut envs, &[Begin::Own; 7]);
        send(&mut envs, 0);
        // Slots 0, 3 and 6 are at their first step, the others at their second.
        let begin = [0, 1, 2, 3, 4, 5, 6].map(|slot| if slot % 3 == 0 { Begin::Own } else { Begin::Keep });
        reset(&mut envs, &begin);
        let batch = send(&mut envs, 1);
        rows(&envs, &batch, &[1, 2, 4, 5]);
        let slots: Vec<usize> = batch.failures.iter().map(|failure| failure.slot).collect();
        assert_eq!(slots, [1, 2, 4, 5]);
        assert!(batch.failures.iter().all(|failure| failure.seed == Some(100 + failure.slot as i64)));
    }
}

#[test]
fn a_shard_numbers_failures_by_its_own_slots() {
    let options = Options::new().with("fault", "panic_in_step").with("at_step", 0i64).with("of_seed", 101i64);
    let source = source("testing/Faulty-v0", &options);
    let part = || Box::new(Serial::new(&*source, config(2, AutoresetMode::NextStep)).unwrap()) as Box<_>;
    let mut envs = Shard::new(vec![part(), part()]).unwrap();
    reset(&mut envs, &[Begin::Own; 4]);
    let batch = send(&mut envs, 0);
    rows(&envs, &batch, &[1, 3]);
    assert_eq!(batch.failures.iter().map(|failure| failure.slot).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn an_env_that_cannot_be_built_is_an_error_that_names_its_slot_and_seed() {
    for (fault, verb) in [("panic_in_build", "panicked"), ("error_in_build", "failed")] {
        let options = Options::new().with("fault", fault).with("of_seed", 102i64);
        let made = Serial::new(&*source("testing/Faulty-v0", &options), config(4, AutoresetMode::NextStep));
        let Err(Error::Slots(failures)) = made else { panic!("it was built") };
        assert_eq!((failures[0].slot, failures[0].seed), (2, Some(102)));
        assert_eq!(failures[0].failure.phase, Phase::Build);
        let text = failures[0].to_string();
        assert!(text.contains(&format!("env 2 {verb} in build: a fault on demand")), "{text}");
        // A seeded reset builds it too.
        let source = source("testing/Faulty-v0", &options);
        let mut envs = Serial::new(&*source, config(2, AutoresetMode::NextStep)).unwrap();
        envs.send_reset(&Slots::All, &[Begin::Own, Begin::Seed(102)], None).unwrap();
        let batch = recv(&mut envs);
        rows(&envs, &batch, &[1]);
        assert_eq!((batch.failures[0].slot, batch.failures[0].seed), (1, Some(102)));
        let rows = reset(&mut envs, &[Begin::Keep, Begin::Own]);
        assert_eq!(rows[1].kind, RowKind::Restarted);
    }
}

#[test]
fn options_that_an_env_refuses_are_refused_before_anything_is_reset() {
    let mut envs = faulty("none", AutoresetMode::NextStep, Options::new());
    let good = Options::new().with("bias", 0.25);
    envs.send_reset(&Slots::All, &[Begin::Own; SLOTS], Some(&good)).unwrap();
    receive(&mut envs);
    let before: Vec<_> = (0..SLOTS).map(|slot| envs.save(slot).unwrap()).collect();
    let wrong = Options::new().with("bais", 1.0);
    let begin = [Begin::Keep, Begin::Own, Begin::Keep, Begin::Seed(5)];
    let error = envs.send_reset(&Slots::All, &begin, Some(&wrong)).unwrap_err();
    assert!(matches!(error, Error::UnknownOption(_)), "{error}");
    assert!(error.to_string().contains("unknown reset option 'bais'"), "{error}");
    assert_eq!(envs.in_flight(), 0);
    let after: Vec<_> = (0..SLOTS).map(|slot| envs.save(slot).unwrap()).collect();
    assert_eq!(before, after);
    let mut oracle = sound(AutoresetMode::NextStep);
    let rows = reset(&mut envs, &[Begin::Keep, Begin::Seed(6), Begin::Keep, Begin::Seed(5)]);
    assert_eq!(rows[1], oracle.reset(1, Begin::Seed(6), Some(&good)), "the options before are in force");
    assert_eq!(rows[3], oracle.reset(3, Begin::Seed(5), Some(&good)));
}

#[test]
fn a_panic_in_render_or_close_is_an_error_and_harms_no_other_slot() {
    let mut envs = faulty("panic_in_render", AutoresetMode::NextStep, Options::new());
    reset(&mut envs, &[Begin::Own; SLOTS]);
    assert!(refusal(envs.render(&Slots::All)).contains("a fault on demand"));
    assert_eq!(envs.render(&Slots::List(vec![3, 0])).unwrap().len(), 2);
    assert_eq!(envs.in_flight(), 0);
    send(&mut envs, 0);

    let mut envs = faulty("panic_in_close", AutoresetMode::NextStep, Options::new());
    reset(&mut envs, &[Begin::Own; SLOTS]);
    assert!(refusal(envs.close()).contains("a fault on demand"));
    envs.close().unwrap();
    assert!(matches!(envs.in_flight(), 0));
    drop(faulty("panic_in_close", AutoresetMode::NextStep, Options::new()));
}

/// Whether `Brittle` panics when observed, and when dropped.
static OBSERVED: AtomicBool = AtomicBool::new(false);

/// Cannot be observed without a reset, nor dropped, on demand.
struct Brittle;

impl Env for Brittle {
    type Config = ();
    type Obs = i32;
    type Act = Discrete<2>;
    type Info = ();

    fn build(_config: &(), _seed: i64) -> Result<Self> {
        Ok(Brittle)
    }

    fn step(&mut self, a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
        assert!(a.0 == 0, "{}", "a message of its own".to_string());
        Ok((Step::new(*a, 1, 0.0, ()), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<i32> {
        assert!(wants_reset(is_done)? || !OBSERVED.load(Ordering::Relaxed), "not now");
        Ok(0)
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<i32> {
        Err(Error::env(format!("no episode {ix}")))
    }
}

impl Drop for Brittle {
    fn drop(&mut self) {
        panic!("a panic in drop");
    }
}

#[test]
fn an_observation_that_fails_names_the_episode_that_it_is_of() {
    let mut envs = Serial::new(&source_of::<Brittle>(), config(2, AutoresetMode::NextStep)).unwrap();
    for _ in 0..3 {
        reset(&mut envs, &[Begin::Own; 2]);
    }
    for _ in 0..4 {
        envs.send(&Slots::All, &[envcore::ColumnIn::scalars(&[0i64; 2], &[2])]).unwrap();
        recv(&mut envs);
    }
    OBSERVED.store(true, Ordering::Relaxed);
    envs.send_reset(&Slots::All, &[Begin::Keep, Begin::Own], None).unwrap();
    let batch = recv(&mut envs);
    OBSERVED.store(false, Ordering::Relaxed);
    assert_eq!((batch.failures[0].episode, batch.failures[0].step), (2, 4));
}

#[test]
fn an_env_that_panics_when_dropped_is_only_reported_for_what_it_did_before() {
    let mut envs = Serial::new(&source_of::<Brittle>(), config(3, AutoresetMode::NextStep)).unwrap();
    reset(&mut envs, &[Begin::Own; 3]);
    envs.send(&Slots::All, &[envcore::ColumnIn::scalars(&[0i64, 1, 0], &[3])]).unwrap();
    let batch = recv(&mut envs);
    let shown: Vec<i32> = batch.observation[0].as_fixed().unwrap().as_slice().to_vec();
    assert_eq!(shown, [1, 0, 1]);
    assert!(
        batch.failures[0].failure.message.starts_with("a message of its own (at "),
        "{:?}",
        batch.failures
    );
    assert_eq!(batch.failures[0].action.as_deref(), Some("1"));
    envs.send_reset(&Slots::All, &[Begin::Own, Begin::Own, Begin::Index(5)], None).unwrap();
    let batch = recv(&mut envs);
    assert_eq!(batch.failures.len(), 1);
    assert!(batch.failures[0].to_string().contains("env 2 failed in reset: no episode 5 (index 5"));
    drop(envs);
}
