//! Calls in the wrong order, slots that do not exist, and the end: always a
//! clear error, and nothing moves.

use crate::common::{config, refusal, reset, saved, serial, source};
use envcore::{
    AutoresetMode, Begin, Call, ColumnIn, Error, Options, Result, Serial, Shard, Slots, VecConfig, VecEnv,
    Want,
};

const SLOTS: usize = 4;

/// Four CartPoles, each way.
fn each_way() -> [Box<dyn VecEnv>; 2] {
    let part = |n| Box::new(serial("CartPole-v1", n, AutoresetMode::NextStep)) as Box<dyn VecEnv>;
    [part(4), Box::new(Shard::new(vec![part(1), part(3)]).unwrap())]
}

fn zeros(rows: &'static [usize; 1]) -> [ColumnIn<'static>; 1] {
    [ColumnIn::scalars(&[0i64; SLOTS + 2][..rows[0]], rows)]
}

#[test]
fn recv_with_nothing_in_flight_is_an_error() {
    for mut envs in each_way() {
        assert!(matches!(envs.recv(Want::all()), Err(Error::NothingPending)));
        reset(&mut *envs, &[Begin::Own; SLOTS]);
        assert!(matches!(envs.recv(Want::all()), Err(Error::NothingPending)));
        // A request of no slots puts nothing in flight.
        envs.send(&Slots::List(vec![]), &zeros(&[0])).unwrap();
        envs.send_reset(&Slots::List(vec![]), &[], None).unwrap();
        assert_eq!(envs.in_flight(), 0);
    }
}

#[test]
fn a_slot_in_flight_takes_no_second_request() {
    for mut envs in each_way() {
        reset(&mut *envs, &[Begin::Own; SLOTS]);
        envs.send(&Slots::List(vec![3, 1]), &zeros(&[2])).unwrap();
        assert_eq!(envs.in_flight(), 2);
        for refused in [
            envs.send(&Slots::All, &zeros(&[4])),
            envs.send(&Slots::List(vec![0, 3]), &zeros(&[2])),
            envs.send_reset(&Slots::List(vec![1]), &[Begin::Own], None),
            envs.set_next(&Slots::List(vec![1]), &[Begin::Own]),
        ] {
            assert!(matches!(refused, Err(Error::Pending(_))), "{refused:?}");
        }
        assert_eq!(envs.in_flight(), 2);
        assert!(refusal(envs.render(&Slots::All)).contains("in flight"));
        // The others may be sent meanwhile, and all come back.
        envs.send_reset(&Slots::List(vec![2, 0]), &[Begin::Own, Begin::Seed(1)], None).unwrap();
        let mut came: Vec<usize> = crate::common::recv(&mut *envs).slots.iter(SLOTS).collect();
        came.sort_unstable();
        assert_eq!(came, [0, 1, 2, 3]);
        envs.send(&Slots::All, &zeros(&[4])).unwrap();
        assert!(matches!(envs.send(&Slots::List(vec![2]), &zeros(&[1])), Err(Error::Pending(_))));
        assert_eq!(crate::common::recv(&mut *envs).rows(), SLOTS);
    }
}

#[test]
fn recv_gives_at_most_as_many_rows_as_wanted_in_the_order_sent() {
    let mut envs = serial("CartPole-v1", SLOTS, AutoresetMode::NextStep);
    envs.send_reset(&Slots::List(vec![2, 0, 3, 1]), &[Begin::Own; SLOTS], None).unwrap();
    let mut recv = |max_rows| {
        let batch =
            envs.recv(Want { min_rows: 1, max_rows, deadline: None, buffers: None }).unwrap().unwrap();
        (batch.slots.iter(batch.rows()).collect::<Vec<_>>(), envs.in_flight())
    };
    assert_eq!(recv(1), (vec![2], 3));
    assert_eq!(recv(2), (vec![0, 3], 1));
    assert_eq!(recv(9), (vec![1], 0));
}

#[test]
fn slots_that_do_not_exist_or_are_named_twice_are_refused_and_nothing_moves() {
    for mut envs in each_way() {
        reset(&mut *envs, &[Begin::Own; SLOTS]);
        let before = saved(&mut *envs);
        let far = usize::MAX;
        for (list, part) in [
            (vec![0, 4], "env 4 does not exist: there are 4"),
            (vec![far, 1], "does not exist"),
            (vec![2, 2], "is named twice"),
            (vec![0, 3, 1, 3], "is named twice"),
        ] {
            let rows = [list.len()];
            let actions = [ColumnIn::scalars(&[0i64; 4][..list.len()], &rows)];
            let (slots, begin) = (Slots::List(list.clone()), vec![Begin::Own; list.len()]);
            let results: [Result<()>; 3] = [
                envs.send(&slots, &actions),
                envs.send_reset(&slots, &begin, None),
                envs.set_next(&slots, &begin),
            ];
            for refused in results {
                assert!(matches!(refused, Err(Error::Argument(_))), "{list:?}: {refused:?}");
                assert!(refusal(refused).contains(part));
            }
            assert!(matches!(envs.render(&slots), Err(Error::Argument(_))), "{list:?}");
        }
        for begin in [vec![], vec![Begin::Own; 3], vec![Begin::Own; 5]] {
            assert!(matches!(envs.send_reset(&Slots::All, &begin, None), Err(Error::Argument(_))));
            assert!(matches!(envs.set_next(&Slots::All, &begin), Err(Error::Argument(_))));
        }
        assert_eq!(envs.in_flight(), 0);
        assert_eq!(saved(&mut *envs), before);
    }
}

#[test]
fn what_one_part_of_a_shard_refuses_reaches_none() {
    let [_, mut envs] = each_way();
    reset(&mut *envs, &[Begin::Own; SLOTS]);
    let before = saved(&mut *envs);
    assert!(envs.send(&Slots::All, &[ColumnIn::scalars(&[0i64, 1, 1, 2], &[4])]).is_err());
    assert!(envs.send(&Slots::All, &[]).is_err());
    let negative = [Begin::Own, Begin::Own, Begin::Own, Begin::Seed(-1)];
    assert!(envs.send_reset(&Slots::All, &negative, None).is_err());
    assert_eq!(envs.in_flight(), 0);
    assert_eq!(saved(&mut *envs), before);
}

#[test]
fn a_negative_seed_is_refused_before_anything_moves() {
    for mut envs in each_way() {
        reset(&mut *envs, &[Begin::Own; SLOTS]);
        let before = saved(&mut *envs);
        for seed in [-1, i64::MIN] {
            let begin = [Begin::Own, Begin::Own, Begin::Own, Begin::Seed(seed)];
            let text = refusal(envs.send_reset(&Slots::All, &begin, None));
            assert!(text.contains(&format!("seed {seed} is negative")), "{text}");
        }
        assert_eq!(saved(&mut *envs), before);
    }
}

#[test]
fn after_close_every_call_says_so_and_a_second_close_does_nothing() {
    for in_flight in [vec![], vec![3, 0], vec![0, 1, 2, 3]] {
        for mut envs in each_way() {
            reset(&mut *envs, &[Begin::Own; SLOTS]);
            let state = envs.save(0).unwrap();
            let rows = [in_flight.len()];
            let slots = if rows == [SLOTS] { Slots::All } else { Slots::List(in_flight.clone()) };
            envs.send(&slots, &[ColumnIn::scalars(&[0i64; SLOTS][..rows[0]], &rows)]).unwrap();
            envs.close().unwrap();
            envs.close().unwrap();
            let results: [Result<()>; 10] = [
                envs.send(&Slots::All, &zeros(&[4])),
                envs.check_send(&Slots::List(vec![3]), &zeros(&[1])),
                envs.send_reset(&Slots::All, &[Begin::Own; SLOTS], None),
                envs.check_reset(&Slots::All, &[Begin::Own; SLOTS], None),
                envs.set_next(&Slots::All, &[Begin::Own; SLOTS]),
                envs.recv(Want::all()).map(drop),
                envs.step(&Slots::All, &zeros(&[4]), Want::all()).map(drop),
                envs.save(0).map(drop),
                envs.load(0, &state),
                envs.render(&Slots::All).map(drop),
            ];
            for (call, result) in results.into_iter().enumerate() {
                assert!(matches!(result, Err(Error::Closed)), "call {call}: {result:?}");
            }
            assert_eq!(envs.in_flight(), 0);
            assert_eq!(envs.spec().num_slots, SLOTS);
        }
    }
}

#[test]
fn a_vec_env_may_be_dropped_with_slots_in_flight() {
    for mut envs in each_way() {
        envs.send_reset(&Slots::All, &[Begin::Own; SLOTS], None).unwrap();
        drop(envs);
    }
    for mut envs in each_way() {
        reset(&mut *envs, &[Begin::Own; SLOTS]);
        envs.send(&Slots::List(vec![1]), &zeros(&[1])).unwrap();
        drop(envs);
    }
}

#[test]
fn parts_of_different_kinds_make_no_shard() {
    let part = |id, mode| Box::new(serial(id, 1, mode)) as Box<dyn VecEnv>;
    assert!(refusal(Shard::new(vec![])).contains("at least one part"));
    let next = AutoresetMode::NextStep;
    let other = Shard::new(vec![part("CartPole-v1", next), part("Maze-v0", next)]);
    assert!(refusal(other).contains("part 1 (Maze-v0) has other spaces"));
    let modes = [AutoresetMode::SameStep, next].map(|mode| part("CartPole-v1", mode));
    assert!(refusal(Shard::new(modes.into())).contains("another autoreset mode"));
}

fn odd(config: VecConfig) -> Result<Serial> {
    Serial::new(&*source("testing/Odd-v0", &Options::new()), config)
}

#[test]
fn what_a_source_cannot_do_is_refused_at_construction() {
    let plain = || VecConfig { autoreset: None, ..config(2, AutoresetMode::SameStep) };
    assert_eq!(odd(plain()).unwrap().spec().autoreset, AutoresetMode::SameStep);
    for mode in [AutoresetMode::NextStep, AutoresetMode::Disabled] {
        let error = odd(config(2, mode)).err().unwrap();
        assert!(matches!(error, Error::Unsupported(_)));
        assert!(error.to_string().contains("no autoreset mode but same_step"), "{error}");
    }
    let error = odd(VecConfig { max_episode_steps: Some(9), ..plain() }).err().unwrap();
    assert!(error.to_string().contains("testing/Odd-v0 cannot bear a time limit"), "{error}");
}

#[test]
fn what_a_source_cannot_do_is_refused_at_first_use() {
    let whole = || odd(config(2, AutoresetMode::SameStep)).unwrap();
    let shard = Shard::new(vec![Box::new(whole()) as Box<dyn VecEnv>, Box::new(whole())]).unwrap();
    for mut envs in [Box::new(whole()) as Box<dyn VecEnv>, Box::new(shard)] {
        let n = envs.spec().num_slots;
        let begin = |last: Begin| [vec![Begin::Own; n - 1], vec![last]].concat();
        let option = Options::new().with("anything", 1i64);
        for (refused, part) in [
            (envs.send_reset(&Slots::All, &begin(Begin::Seed(1)), None), "cannot be seeded"),
            (
                envs.send_reset(&Slots::All, &begin(Begin::Index(1)), None),
                "cannot play the episode of an index",
            ),
            (envs.send_reset(&Slots::All, &begin(Begin::Own), Some(&option)), "cannot take options"),
            (envs.set_next(&Slots::All, &begin(Begin::Index(1))), "cannot play the episode of an index"),
            (envs.save(1).map(drop), "cannot save its state"),
            (envs.load(1, &[]), "cannot load a state"),
            (envs.render(&Slots::All).map(drop), "cannot draw a picture"),
            (envs.call(&Slots::All, &Call::new("name")).map(drop), "cannot call anything by name"),
        ] {
            assert!(matches!(refused, Err(Error::Unsupported(_))), "{part}: {refused:?}");
            let text = refusal(refused);
            assert!(text.starts_with("testing/Odd-v0 ") && text.contains(part), "{text}");
        }
        assert_eq!(envs.in_flight(), 0);
        reset(&mut *envs, &vec![Begin::Own; n]);
        let again = envs.send_reset(&Slots::All, &begin(Begin::Own), None);
        assert!(refusal(again).contains("cannot be reset a second time"));
        reset(&mut *envs, &vec![Begin::Keep; n]);
    }
}

#[test]
fn a_slot_that_cannot_be_reset_again_stays_lost_and_the_others_go_on() {
    let mut envs = odd(config(3, AutoresetMode::SameStep)).unwrap();
    reset(&mut envs, &[Begin::Own; 3]);
    let words = ["a", "fail", "b"].map(Into::into);
    envs.send(&Slots::All, &[ColumnIn::scalars(&[1i64; 3], &[3]), ColumnIn::Values(&words)]).unwrap();
    let batch = crate::common::recv(&mut envs);
    assert_eq!(batch.observation[2].as_fixed().unwrap().as_slice::<u8>(), [2, 0, 2]);
    assert_eq!(batch.failures.len(), 1);
    assert!(batch.failures[0].to_string().contains("env 1 failed in step: told to fail"));
    assert!(batch.failures[0].to_string().contains("action {move: 1, word: \"fail\"}"));
    let again = envs.send_reset(&Slots::List(vec![1]), &[Begin::Own], None);
    assert!(refusal(again).contains("cannot be reset a second time"));
    let actions = [ColumnIn::scalars(&[1i64; 2], &[2]), ColumnIn::Values(&["".into(), "c".into()])];
    envs.send(&Slots::List(vec![2, 0]), &actions).unwrap();
    let batch = crate::common::recv(&mut envs);
    assert_eq!(batch.observation[2].as_fixed().unwrap().as_slice::<u8>(), [3, 4]);
}
