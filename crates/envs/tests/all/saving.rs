//! Saving and loading a slot: it goes on bit for bit elsewhere; what is no such
//! state is refused and changes nothing.

use crate::common::{MODES, config, refusal, reset, saved, some_action, source, step, view};
use envcore::{AutoresetMode, Begin, Options, Serial, Slots, VecConfig, VecEnv};
use proptest::prelude::*;

const IDS: [&str; 3] = ["CartPole-v1", "Maze-v0", "testing/Faulty-v0"];

fn limited(id: &str, num_slots: usize, seed: i64, mode: AutoresetMode) -> Serial {
    let limit = VecConfig {
        max_episode_steps: Some(60),
        seed: Some(seed),
        episode_statistics: true,
        ..config(num_slots, mode)
    };
    Serial::new(&*source(id, &Options::new()), limit).unwrap()
}

/// Steps one slot; where it ended with autoreset off, resets it.
fn step_one(envs: &mut Serial, slot: usize, t: usize) -> Vec<crate::common::Seen> {
    let slots = Slots::List(vec![slot]);
    let action = some_action(&envs.spec().action, t, 0);
    envs.send(&slots, &view(&crate::common::columns(&envs.spec().action, &[&action]))).unwrap();
    let batch = crate::common::recv(envs);
    let mut rows: Vec<_> =
        crate::common::rows_of(envs.spec(), &batch).into_iter().map(|(_, row)| row).collect();
    if rows[0].done() && envs.spec().autoreset == AutoresetMode::Disabled {
        envs.send_reset(&slots, &[Begin::Own], None).unwrap();
        let batch = crate::common::recv(envs);
        rows.extend(crate::common::rows_of(envs.spec(), &batch).into_iter().map(|(_, row)| row));
    }
    rows
}

#[test]
fn a_slot_saved_at_every_25th_of_500_steps_goes_on_bit_for_bit_elsewhere() {
    for id in IDS {
        for mode in MODES {
            let mut here = limited(id, 1, 4, mode);
            reset(&mut here, &[Begin::Own]);
            here.set_next(&Slots::All, &[Begin::Index(11)]).unwrap();
            let mut states = Vec::new();
            let mut played = Vec::new();
            for t in 0..500 {
                if t % 25 == 0 {
                    states.push((t, here.save(0).unwrap()));
                }
                played.push(step_one(&mut here, 0, t));
            }
            for (at, state) in states {
                // Another vec env, another slot, in the midst of another life.
                let mut there = limited(id, 3, 77, mode);
                reset(&mut there, &[Begin::Own; 3]);
                step(&mut there, 999);
                there.load(2, &state).unwrap();
                assert_eq!(there.save(2).unwrap(), state, "{id} {mode:?}: loading and saving again");
                for (t, expected) in played.iter().enumerate().skip(at).take(130) {
                    let rows = step_one(&mut there, 2, t);
                    assert!(rows == *expected, "{id} {mode:?}, saved at {at}: step {t} differs");
                }
            }
        }
    }
}

#[test]
fn a_slot_that_never_began_is_saved_and_loaded_as_such() {
    let mut envs = limited("CartPole-v1", 2, 4, AutoresetMode::NextStep);
    let state = envs.save(0).unwrap();
    reset(&mut envs, &[Begin::Own; 2]);
    envs.load(1, &state).unwrap();
    let begin = [Begin::Keep, Begin::Own];
    let rows = reset(&mut envs, &begin);
    assert_eq!(rows[0].observation, rows[1].observation, "env 1 begins where env 0 began");
}

#[test]
fn options_in_force_go_with_the_state_to_the_last_bit() {
    // Numbers that a careless way through text rounds.
    for bias in [0.1, 1.0 / 3.0, 0.123_456_789_012_345_68, 2.5e-9, -0.999_999_999_999_999_9, 5e-324] {
        let mut here = limited("testing/Faulty-v0", 1, 4, AutoresetMode::NextStep);
        let options = Options::new().with("bias", bias);
        here.send_reset(&Slots::All, &[Begin::Own], Some(&options)).unwrap();
        crate::common::recv(&mut here);
        let state = here.save(0).unwrap();
        let mut there = limited("testing/Faulty-v0", 1, 9, AutoresetMode::NextStep);
        there.load(0, &state).unwrap();
        // A seeded reset gives the env its options anew.
        let rows = [reset(&mut here, &[Begin::Seed(1)]), reset(&mut there, &[Begin::Seed(1)])];
        assert_eq!(rows[0], rows[1], "bias {bias:?}");
    }
}

#[test]
fn a_state_of_another_env_or_config_is_refused_with_both_named() {
    let mut envs = limited("CartPole-v1", 1, 4, AutoresetMode::NextStep);
    reset(&mut envs, &[Begin::Own]);
    let before = saved(&mut envs);
    let mut maze = limited("Maze-v0", 1, 4, AutoresetMode::NextStep);
    reset(&mut maze, &[Begin::Own]);
    let error = refusal(envs.load(0, &maze.save(0).unwrap()));
    assert!(error.contains("another env: Maze-v0, not CartPole-v1"), "{error}");

    let book = source("CartPole-v1", &Options::new().with("sutton_barto_reward", true));
    let mut book = Serial::new(&*book, config(1, AutoresetMode::NextStep)).unwrap();
    reset(&mut book, &[Begin::Own]);
    let error = refusal(envs.load(0, &book.save(0).unwrap()));
    assert!(error.contains("another config") && error.contains("true"), "{error}");
    assert_eq!(saved(&mut envs), before);
}

#[test]
fn a_slot_that_does_not_exist_is_neither_saved_nor_loaded() {
    let mut envs = limited("CartPole-v1", 2, 4, AutoresetMode::NextStep);
    let state = envs.save(1).unwrap();
    assert!(refusal(envs.save(2)).contains("env 2 does not exist: there are 2"));
    assert!(refusal(envs.load(7, &state)).contains("env 7 does not exist"));
}

#[test]
fn a_slot_in_flight_is_neither_saved_nor_loaded_and_the_others_are() {
    let mut envs = limited("CartPole-v1", 2, 4, AutoresetMode::NextStep);
    let state = envs.save(0).unwrap();
    envs.send_reset(&Slots::List(vec![0]), &[Begin::Own], None).unwrap();
    assert!(refusal(envs.save(0)).contains("env 0 is in flight"));
    assert!(refusal(envs.load(0, &state)).contains("in flight"));
    assert!(refusal(envs.save_state()).contains("1 envs in flight"));
    let other = envs.save(1).unwrap();
    envs.load(1, &other).unwrap();
}

#[test]
fn a_state_cut_short_or_drawn_out_is_refused_and_changes_nothing() {
    for id in IDS {
        let mut envs = limited(id, 1, 4, AutoresetMode::NextStep);
        reset(&mut envs, &[Begin::Own]);
        let old = envs.save(0).unwrap();
        step(&mut envs, 0);
        let before = saved(&mut envs);
        for n in 0..old.len() {
            refusal(envs.load(0, &old[..n]));
            assert_eq!(saved(&mut envs), before, "{id} cut to {n} of {} bytes", old.len());
        }
        refusal(envs.load(0, &[old.as_slice(), &[0]].concat()));
        assert_eq!(saved(&mut envs), before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn garbage_is_refused_and_changes_nothing(garbage in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut envs = limited("testing/Faulty-v0", 1, 4, AutoresetMode::NextStep);
        reset(&mut envs, &[Begin::Own]);
        let before = saved(&mut envs);
        prop_assert!(envs.load(0, &garbage).is_err());
        prop_assert_eq!(saved(&mut envs), before);
    }

    /// No checksum says that a changed byte is wrong; but a state is taken whole
    /// or not at all, and whatever it holds, stepping it is no crash.
    #[test]
    fn a_state_with_a_changed_byte_is_taken_whole_or_refused_whole(
        which in 0usize..3, at in any::<prop::sample::Index>(), to in any::<u8>(),
    ) {
        let mut envs = limited(IDS[which], 1, 4, AutoresetMode::NextStep);
        reset(&mut envs, &[Begin::Own]);
        let options = if which == 2 { Some(Options::new().with("bias", 0.5)) } else { None };
        envs.send_reset(&Slots::All, &[Begin::Own], options.as_ref()).unwrap();
        crate::common::recv(&mut envs);
        let mut state = envs.save(0).unwrap();
        step(&mut envs, 0);
        let before = saved(&mut envs);
        let at = at.index(state.len());
        state[at] = to;
        if envs.load(0, &state).is_err() {
            prop_assert_eq!(saved(&mut envs), before);
        }
        let actions = crate::common::some_actions(&envs.spec().action, 1, 1);
        if envs.send(&Slots::All, &view(&actions)).is_ok() {
            crate::common::recv(&mut envs);
        }
    }
}
