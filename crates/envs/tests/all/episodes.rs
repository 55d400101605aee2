//! When episodes begin and end: the three autoreset modes to the letter, time
//! limits, kept slots.

use crate::common::count::{Count, Says, act, count, drawn, draws, first, midst, reset_with, says, shift};
use crate::common::{MODES, Seen, config, reset, rows_of, source_of};
use envcore::{AutoresetMode, Begin, ColumnIn, Error, Options, RowKind, Serial, Slots, VecConfig, VecEnv};

#[test]
fn next_step_shows_the_final_observation_and_resets_on_the_step_after() {
    for (action, flags) in [(1, (true, false)), (2, (false, true)), (3, (true, true))] {
        let mut envs = count(2, AutoresetMode::NextStep);
        let rows = reset(&mut envs, &[Begin::Own; 2]);
        assert_eq!([says(&rows[0]), says(&rows[1])], [first(), first()]);
        act(&mut envs, &[0, 0]);
        let rows = act(&mut envs, &[action, 0]);
        assert_eq!([says(&rows[0]), says(&rows[1])], [Says { flags, ..midst(2) }, midst(2)]);
        // The action of the slot that ended is ignored, even one that would end it.
        let rows = act(&mut envs, &[3, 0]);
        assert_eq!([says(&rows[0]), says(&rows[1])], [first(), midst(3)]);
        assert_eq!(drawn(&rows[0]), draws(100).nth(1).unwrap());
        let rows = act(&mut envs, &[0, 0]);
        assert_eq!([says(&rows[0]), says(&rows[1])], [midst(1), midst(4)]);
    }
}

#[test]
fn same_step_shows_the_next_episode_beside_the_final_observation_reward_and_flags() {
    for (action, flags) in [(1, (true, false)), (2, (false, true)), (3, (true, true))] {
        let mut envs = count(2, AutoresetMode::SameStep);
        reset(&mut envs, &[Begin::Own; 2]);
        act(&mut envs, &[0, 0]);
        let rows = act(&mut envs, &[action, 0]);
        // The reset's info is at the top level, the step's in the finals.
        let ended = Says { at: 0, told: Some(0), flags, last: Some((2, 2)), ..midst(2) };
        assert_eq!([says(&rows[0]), says(&rows[1])], [ended, midst(2)]);
        assert_eq!(drawn(&rows[0]), draws(100).nth(1).unwrap());
        let rows = act(&mut envs, &[0, 0]);
        assert_eq!([says(&rows[0]), says(&rows[1])], [midst(1), midst(3)]);
    }
}

#[test]
fn disabled_refuses_to_step_a_finished_slot_until_it_is_reset() {
    let mut envs = count(3, AutoresetMode::Disabled);
    reset(&mut envs, &[Begin::Own; 3]);
    let rows = act(&mut envs, &[0, 1, 0]);
    assert_eq!(says(&rows[1]), Says { flags: (true, false), ..midst(1) });
    let error = envs.send(&Slots::All, &[ColumnIn::scalars(&[0i64; 3], &[3])]).unwrap_err();
    assert!(matches!(error, Error::NeedsReset(_)));
    assert!(error.to_string().contains("env 1 has ended its episode"), "{error}");
    assert_eq!(envs.in_flight(), 0);
    // The others may go on without it.
    envs.send(&Slots::List(vec![2, 0]), &[ColumnIn::scalars(&[0i64; 2], &[2])]).unwrap();
    let batch = crate::common::recv(&mut envs);
    let rows: Vec<(usize, Says)> =
        rows_of(envs.spec(), &batch).iter().map(|(slot, seen)| (*slot, says(seen))).collect();
    assert_eq!(rows, [(2, midst(2)), (0, midst(2))]);
    let rows = reset(&mut envs, &[Begin::Keep, Begin::Own, Begin::Keep]);
    assert_eq!(says(&rows[1]), first());
    let rows = act(&mut envs, &[0, 0, 0]);
    assert_eq!(rows.iter().map(says).collect::<Vec<_>>(), [midst(3), midst(1), midst(3)]);
}

#[test]
fn a_kept_slot_shows_its_observation_again_and_goes_on_as_if_nothing_had_been() {
    for mode in MODES {
        let mut envs = count(3, mode);
        reset(&mut envs, &[Begin::Own; 3]);
        let before = act(&mut envs, &[0, 0, 1]);
        let begin = [Begin::Keep, Begin::Own, Begin::Keep];
        let rows = reset_with(&mut envs, &begin, Options::new().with("shift", 5i64));
        let kept = |at| Says { kind: RowKind::Kept, at, reward: 0.0, told: None, ..midst(at) };
        assert_eq!([says(&rows[0]), says(&rows[1])], [kept(1), first()]);
        assert_eq!(rows[0].observation, before[0].observation);
        assert_eq!(rows[2].observation, before[2].observation);
        assert_eq!([shift(&rows[0]), shift(&rows[1]), shift(&rows[2])], [0, 5, 0], "options of kept slots");
        if mode == AutoresetMode::Disabled {
            continue;
        }
        let rows = act(&mut envs, &[0, 0, 0]);
        assert_eq!([says(&rows[0]), says(&rows[1])], [midst(2), midst(1)]);
        // An autoreset that was due is still due.
        let third = if mode == AutoresetMode::NextStep { first() } else { midst(1) };
        assert_eq!(says(&rows[2]), third);
        assert_eq!(drawn(&rows[2]), draws(102).nth(1).unwrap());
    }
}

#[test]
fn a_slot_that_never_began_has_nothing_to_keep_and_cannot_be_stepped() {
    let mut envs = count(2, AutoresetMode::NextStep);
    let error = envs.send_reset(&Slots::All, &[Begin::Own, Begin::Keep], None).unwrap_err();
    assert!(error.to_string().contains("env 1 has no observation to keep"), "{error}");
    let error = envs.send(&Slots::All, &[ColumnIn::scalars(&[0i64; 2], &[2])]).unwrap_err();
    assert!(error.to_string().contains("env 0 has not begun: call reset"), "{error}");
    assert_eq!(envs.in_flight(), 0);
}

#[test]
fn a_time_limit_truncates_and_a_terminal_state_on_its_step_sets_both_flags() {
    for mode in MODES {
        let limited = VecConfig { max_episode_steps: Some(3), ..config(3, mode) };
        let mut envs = Serial::new(&source_of::<Count>(), limited).unwrap();
        assert_eq!(envs.spec().max_episode_steps, Some(3));
        reset(&mut envs, &[Begin::Own; 3]);
        act(&mut envs, &[0, 0, 0]);
        let rows = act(&mut envs, &[0, 0, 1]);
        let flags = |rows: &[Seen]| rows.iter().map(|row| says(row).flags).collect::<Vec<_>>();
        assert_eq!(flags(&rows), [(false, false), (false, false), (true, false)]);
        if mode == AutoresetMode::Disabled {
            reset(&mut envs, &[Begin::Keep, Begin::Keep, Begin::Own]);
        }
        let rows = act(&mut envs, &[0, 1, 0]);
        assert_eq!(flags(&rows), [(false, true), (true, true), (false, false)]);
    }
    let none = VecConfig { max_episode_steps: Some(0), ..config(1, AutoresetMode::NextStep) };
    assert!(crate::common::refusal(Serial::new(&source_of::<Count>(), none)).contains("at least 1"));
}
