//! What becomes of slots that fail, under each policy, mode and runner.

use std::sync::Arc;

use crate::common::oracle::{Naive, Oracle};
use crate::common::runners::{RUNNERS, runner};
use crate::common::{MODES, Seen, config, recv, refusal, rows_of, some_action, some_actions, source, view};
use envcore::{
    AutoresetMode, Batch, Begin, FailurePolicy, OnFailure, Options, RowKind, Shard, Slots, Source, VecEnv,
    Want,
};
use envs::testing::{Faulty, FaultyConfig};

const SLOTS: usize = 4;
const SICK: usize = 2;

fn faulty(fault: &str, options: Options) -> Arc<dyn Source> {
    source("testing/Faulty-v0", &options.with("fault", fault)).into()
}

fn sick(fault: &str, options: Options) -> Arc<dyn Source> {
    faulty(fault, options.with("of_seed", 100 + SICK as i64))
}

fn sound(mode: AutoresetMode) -> Naive<Faulty> {
    Naive::new(FaultyConfig::default(), SLOTS, 100, mode, None)
}

fn tolerant(
    name: &str,
    source: &Arc<dyn Source>,
    mode: AutoresetMode,
    policy: OnFailure,
    max_restarts: u32,
) -> FailurePolicy {
    FailurePolicy::new(runner(name, source, &config(SLOTS, mode)), policy, max_restarts).unwrap()
}

fn begin(envs: &mut dyn VecEnv, begin: &[Begin]) -> Box<Batch> {
    envs.send_reset(&Slots::All, begin, None).unwrap();
    recv(envs)
}

fn step(envs: &mut dyn VecEnv, t: usize) -> Box<Batch> {
    let actions = some_actions(&envs.spec().action, t, SLOTS);
    envs.send(&Slots::All, &view(&actions)).unwrap();
    let batch = recv(envs);
    assert_eq!(batch.slots, Slots::All);
    batch
}

fn row(envs: &dyn VecEnv, batch: &Batch, slot: usize) -> Seen {
    rows_of(envs.spec(), batch)[slot].1.clone()
}

fn is_zero(seen: &Seen) -> bool {
    let zero = |cell: &crate::common::Cell| matches!(cell, crate::common::Cell::Bytes(bytes) if bytes.iter().all(|b| *b == 0));
    seen.observation.iter().all(zero) && seen.reward() == 0.0 && seen.infos.is_empty()
}

/// Steps the sound slots beside `oracle`'s, and gives the sick one's row.
fn step_beside(envs: &mut dyn VecEnv, oracle: &mut Naive<Faulty>, t: usize) -> (Box<Batch>, Seen) {
    let batch = step(envs, t);
    for slot in (0..SLOTS).filter(|slot| *slot != SICK) {
        let expected = oracle.step(slot, &some_action(&envs.spec().action, t, slot));
        assert_eq!(row(envs, &batch, slot), expected, "env {slot}, step {t}");
    }
    let seen = row(envs, &batch, SICK);
    (batch, seen)
}

#[test]
fn a_restarted_slot_is_truncated_marked_and_rebuilt_as_its_mode_has_it() {
    for name in RUNNERS {
        for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
            for fault in ["panic_in_step", "error_in_step"] {
                let source = sick(fault, Options::new().with("at_step", 1i64));
                let mut envs = tolerant(name, &source, mode, OnFailure::Restart, 10);
                let mut oracle = sound(mode);
                begin(&mut envs, &[Begin::Own; SLOTS]);
                (0..SLOTS).for_each(|slot| drop(oracle.reset(slot, Begin::Own, None)));
                let (batch, seen) = step_beside(&mut envs, &mut oracle, 0);
                assert!(batch.tolerated.is_empty() && seen.kind == RowKind::Step);
                let (batch, seen) = step_beside(&mut envs, &mut oracle, 1);
                assert_eq!(batch.failures, []);
                assert_eq!(batch.tolerated.len(), 1);
                assert_eq!((batch.tolerated[0].slot, batch.tolerated[0].step), (SICK, 1));
                assert_eq!((seen.reward(), seen.terminated, seen.truncated), (0.0, false, true));
                let first = if mode == AutoresetMode::NextStep {
                    assert_eq!(seen.kind, RowKind::Failed);
                    assert!(is_zero(&seen), "{seen:?}");
                    let (batch, seen) = step_beside(&mut envs, &mut oracle, 2);
                    assert!(batch.tolerated.is_empty());
                    assert_eq!((seen.kind, seen.done(), seen.reward()), (RowKind::Restarted, false, 0.0));
                    seen
                } else {
                    assert_eq!(seen.kind, RowKind::Restarted);
                    let (last, told) = seen.last.clone().expect("an episode ended");
                    let unseen = Seen::quiet(RowKind::Step, last, told);
                    assert!(is_zero(&unseen), "nobody saw the end: {unseen:?}");
                    seen
                };
                assert!(!is_zero(&first), "it shows a new episode");
                // It was rebuilt from a seed that is not the one that fails.
                for t in 3..30 {
                    let (batch, seen) = step_beside(&mut envs, &mut oracle, t);
                    assert!(batch.tolerated.is_empty() && seen.kind != RowKind::Failed, "{name} {mode:?}");
                }
            }
        }
    }
}

#[test]
fn with_autoreset_disabled_a_failed_slot_is_truncated_and_waits_for_its_reset() {
    for name in RUNNERS {
        let source = sick("panic_in_step", Options::new().with("at_step", 0i64));
        let mut envs = tolerant(name, &source, AutoresetMode::Disabled, OnFailure::Restart, 10);
        begin(&mut envs, &[Begin::Own; SLOTS]);
        let batch = step(&mut envs, 0);
        let seen = row(&envs, &batch, SICK);
        assert!(batch.failures.is_empty() && batch.tolerated.len() == 1);
        assert!(is_zero(&seen) && seen.truncated && !seen.terminated);
        let actions = some_actions(&envs.spec().action, 1, SLOTS);
        let why = refusal(envs.send(&Slots::All, &view(&actions)));
        assert!(why.contains("env 2 failed earlier: reset it"), "{why}");
        let mut again = [Begin::Keep; SLOTS];
        again[SICK] = Begin::Own;
        let batch = begin(&mut envs, &again);
        assert_eq!(batch.kind(SICK), RowKind::Restarted);
        assert_eq!(batch.kind(0), RowKind::Kept);
        step(&mut envs, 1);
    }
}

#[test]
fn a_masked_slot_shows_zeros_and_takes_no_action_until_its_reset() {
    for name in RUNNERS {
        for mode in MODES {
            for (fault, at) in [("panic_in_step", Some(0)), ("error_in_reset", None)] {
                let options = Options::new().with("at_step", 0i64).with("in_episode", 0i64);
                let mut envs = tolerant(name, &sick(fault, options), mode, OnFailure::Mask, 10);
                let mut oracle = sound(mode);
                let batch = begin(&mut envs, &[Begin::Own; SLOTS]);
                (0..SLOTS).for_each(|slot| drop(oracle.reset(slot, Begin::Own, None)));
                if at.is_none() {
                    assert!(is_zero(&row(&envs, &batch, SICK)) && batch.tolerated.len() == 1);
                }
                for t in 0..2 {
                    let (batch, seen) = step_beside(&mut envs, &mut oracle, t);
                    assert_eq!(seen.kind, RowKind::Failed, "{name} {mode:?} {fault} {t}");
                    assert!(is_zero(&seen) && !seen.terminated);
                    assert_eq!(
                        (seen.truncated, batch.tolerated.len()),
                        (Some(t) == at, usize::from(Some(t) == at))
                    );
                    assert_eq!(batch.failures, []);
                }
                let kept = begin(&mut envs, &[Begin::Keep; SLOTS]);
                assert_eq!((kept.kind(SICK), kept.kind(0)), (RowKind::Failed, RowKind::Kept));
                let mut again = [Begin::Keep; SLOTS];
                again[SICK] = Begin::Own;
                let batch = begin(&mut envs, &again);
                assert_eq!(batch.kind(SICK), RowKind::Restarted);
                let (_, seen) = step_beside(&mut envs, &mut oracle, 2);
                assert_eq!(seen.kind, RowKind::Step);
            }
        }
    }
}

#[test]
fn what_fails_at_every_restart_is_raised_after_max_restarts() {
    for name in RUNNERS {
        for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
            // Every env fails, whatever its seed.
            let source = faulty("panic_in_step", Options::new().with("at_step", 0i64));
            let mut envs = tolerant(name, &source, mode, OnFailure::Restart, 3);
            begin(&mut envs, &[Begin::Own; SLOTS]);
            let mut tolerated = 0;
            let raised = (0..20).find_map(|t| {
                let batch = step(&mut envs, t);
                tolerated += batch.tolerated.len();
                (!batch.failures.is_empty()).then_some(batch.failures)
            });
            let raised = raised.expect("it does not go on for ever");
            assert_eq!((tolerated, raised.len()), (3 * SLOTS, SLOTS), "{name} {mode:?}");
            assert!(raised[0].to_string().contains("restarted 3 times"), "{}", raised[0]);
        }
        let source = faulty("panic_in_reset", Options::new().with("in_episode", 0i64));
        let mut envs = tolerant(name, &source, AutoresetMode::NextStep, OnFailure::Restart, 2);
        let batch = begin(&mut envs, &[Begin::Own; SLOTS]);
        assert_eq!((batch.failures.len(), batch.tolerated.len()), (SLOTS, 2 * SLOTS), "{name}");
    }
}

#[test]
fn a_slot_that_ends_an_episode_in_between_may_fail_for_ever() {
    // Fails at step 5, which only the longer of its episodes have.
    let source = faulty("error_in_step", Options::new().with("at_step", 5i64));
    let mut envs = tolerant("serial", &source, AutoresetMode::NextStep, OnFailure::Restart, 20);
    begin(&mut envs, &[Begin::Own; SLOTS]);
    let mut tolerated = 0;
    for t in 0..3000 {
        let batch = step(&mut envs, t);
        assert_eq!(batch.failures, []);
        tolerated += batch.tolerated.len();
    }
    assert!(tolerated > 100, "{tolerated}");
}

#[test]
fn a_reset_that_fails_is_tried_again_and_an_index_stays_an_index() {
    for name in RUNNERS {
        let source = sick("panic_in_reset", Options::new().with("in_episode", 0i64));
        let mut envs = tolerant(name, &source, AutoresetMode::NextStep, OnFailure::Restart, 10);
        let indices: Vec<Begin> = (0..SLOTS as u64).map(|slot| Begin::Index(40 + slot)).collect();
        let batch = begin(&mut envs, &indices);
        assert!(batch.failures.is_empty() && batch.tolerated.len() == 1, "{name}");
        let mut oracle = sound(AutoresetMode::NextStep);
        for (slot, &index) in indices.iter().enumerate() {
            let expected = oracle.reset(slot, index, None);
            let seen = row(&envs, &batch, slot);
            let kind = if slot == SICK { RowKind::Restarted } else { RowKind::Reset };
            assert_eq!(seen, Seen { kind, ..expected }, "{name} env {slot}");
        }
    }
}

#[test]
fn pieces_come_in_the_order_sent_and_nothing_is_lost_while_a_slot_restarts() {
    for name in RUNNERS {
        let source = sick("panic_in_step", Options::new().with("at_step", 0i64));
        let mut envs = tolerant(name, &source, AutoresetMode::SameStep, OnFailure::Restart, 10);
        begin(&mut envs, &[Begin::Own; SLOTS]);
        for t in 0..6 {
            for slots in [vec![3, SICK], vec![1, 0]] {
                let slots = Slots::List(slots);
                let space = envs.spec().action.clone();
                let rows: Vec<_> = slots.iter(SLOTS).map(|slot| some_action(&space, t, slot)).collect();
                let columns =
                    crate::common::columns(&space, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
                envs.send(&slots, &view(&columns)).unwrap();
            }
            let mut seen = Vec::new();
            while envs.in_flight() > 0 {
                let want = Want { min_rows: 1, max_rows: 3, ..Want::all() };
                let batch = envs.recv(want).unwrap().unwrap();
                assert!(batch.rows() <= 3 && batch.failures.is_empty());
                seen.extend(rows_of(envs.spec(), &batch).into_iter().map(|(slot, _)| slot));
            }
            seen.sort();
            assert_eq!(seen, [0, 1, 2, 3], "{name}");
        }
        // All at once, they come in the order sent.
        let actions = some_actions(&envs.spec().action, 9, 2);
        envs.send(&Slots::List(vec![3, 1]), &view(&actions)).unwrap();
        envs.send(&Slots::List(vec![0, 2]), &view(&actions)).unwrap();
        let batch = recv(&mut envs);
        assert_eq!(batch.slots, Slots::List(vec![3, 1, 0, 2]), "{name}");
    }
}

#[test]
fn a_shard_numbers_what_its_parts_policies_dealt_with_by_its_own_slots() {
    let source = faulty("panic_in_step", Options::new().with("at_step", 0i64).with("of_seed", 101i64));
    let part = || Box::new(tolerant("serial", &source, MODES[0], OnFailure::Restart, 10)) as Box<dyn VecEnv>;
    let mut envs = Shard::new(vec![part(), part()]).unwrap();
    begin(&mut envs, &[Begin::Own; 2 * SLOTS]);
    let actions = some_actions(&envs.spec().action, 0, 2 * SLOTS);
    envs.send(&Slots::All, &view(&actions)).unwrap();
    let batch = recv(&mut envs);
    let slots: Vec<usize> = batch.tolerated.iter().map(|failure| failure.slot).collect();
    assert_eq!(slots, [1, SLOTS + 1]);
}
