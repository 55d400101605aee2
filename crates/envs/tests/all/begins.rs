//! What an episode begins from: the slot's own stream, a seed, an index, under
//! which options.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::count::{Count, act, count, drawn, draws, reset_with, shift};
use crate::common::runners::{RUNNERS, runner};
use crate::common::{Cell, MODES, Seen, config, reset, serial, source_of, step};
use envcore::{
    AutoresetMode, Begin, Caps, Discrete, Env, Error, FailurePolicy, OnFailure, Options, Record, Result,
    Serial, Shard, Slots, Source, Step, VecConfig, VecEnv, wants_reset,
};
use envs::classic::{CartPole, CartPoleConfig};

#[test]
fn what_the_next_autoreset_plays_can_be_said_once() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
        let mut envs = count(3, mode);
        reset(&mut envs, &[Begin::Own; 3]);
        envs.set_next(&Slots::List(vec![2, 0]), &[Begin::Index(7), Begin::Seed(9)]).unwrap();
        // In NEXT_STEP the new episodes show one step later.
        let end_all = |envs: &mut Serial| {
            let rows = act(envs, &[1, 1, 1]);
            let rows = if mode == AutoresetMode::NextStep { act(envs, &[0; 3]) } else { rows };
            rows.iter().map(drawn).collect::<Vec<i64>>()
        };
        let nth = |seed, n| draws(seed).nth(n).unwrap();
        assert_eq!(end_all(&mut envs), [nth(9, 0), nth(101, 1), nth(7, 0)]);
        assert_eq!(end_all(&mut envs), [nth(9, 1), nth(101, 2), nth(102, 1)]);
        // A reset by the user forgets it.
        envs.set_next(&Slots::All, &[Begin::Index(7); 3]).unwrap();
        reset(&mut envs, &[Begin::Own, Begin::Keep, Begin::Own]);
        assert_eq!(end_all(&mut envs), [nth(9, 3), nth(7, 0), nth(102, 3)]);
    }
}

#[test]
fn a_refused_set_next_changes_nothing() {
    let mut envs = count(2, AutoresetMode::SameStep);
    reset(&mut envs, &[Begin::Own; 2]);
    for bad in [Begin::Keep, Begin::Seed(-1)] {
        assert!(envs.set_next(&Slots::All, &[Begin::Index(7), bad]).is_err());
    }
    assert!(envs.set_next(&Slots::All, &[Begin::Own]).is_err());
    let rows = act(&mut envs, &[1, 1]);
    assert_eq!(drawn(&rows[0]), draws(100).nth(1).unwrap());
}

#[test]
fn slot_i_is_built_from_seed_plus_i_and_a_seeded_reset_is_a_fresh_env() {
    for mode in MODES {
        let mut envs = serial("CartPole-v1", 4, mode);
        let fresh =
            |seed: i64| CartPole::build(&CartPoleConfig::default(), seed).unwrap().reset(None).unwrap();
        let start = |seen: &Seen| seen.observation[0].clone();
        let cell = |obs: [f32; 4]| Cell::Bytes(obs.iter().flat_map(|x| x.to_ne_bytes()).collect());
        let rows = reset(&mut envs, &[Begin::Own; 4]);
        (0..4).for_each(|k| assert_eq!(start(&rows[k]), cell(fresh(100 + k as i64))));
        step(&mut envs, 0);
        let seeds = [5, 5, 0, i64::MAX];
        let rows = reset(&mut envs, &seeds.map(Begin::Seed));
        (0..4).for_each(|k| assert_eq!(start(&rows[k]), cell(fresh(seeds[k]))));
        assert_ne!(start(&rows[0]), start(&rows[2]), "the seed matters");
    }
    for seed in [-1, i64::MIN] {
        let negative = VecConfig { seed: Some(seed), ..config(1, AutoresetMode::NextStep) };
        assert!(crate::common::refusal(Serial::new(&source_of::<Count>(), negative)).contains("negative"));
    }
    let no_room = VecConfig { seed: Some(i64::MAX), ..config(2, AutoresetMode::NextStep) };
    assert!(crate::common::refusal(Serial::new(&source_of::<Count>(), no_room)).contains("leaves no room"));
    let none = config(0, AutoresetMode::NextStep);
    assert!(crate::common::refusal(Serial::new(&source_of::<Count>(), none)).contains("at least 1"));
}

#[test]
fn without_a_seed_two_vec_envs_and_their_slots_differ() {
    let make = || {
        let unseeded = VecConfig { seed: None, ..config(2, AutoresetMode::NextStep) };
        let mut envs = Serial::new(&source_of::<Count>(), unseeded).unwrap();
        reset(&mut envs, &[Begin::Own; 2]).iter().map(drawn).collect::<Vec<_>>()
    };
    let (a, b) = (make(), make());
    assert!(a[0] != a[1] && a[0] != b[0] && a[1] != b[1]);
}

#[test]
fn an_indexed_episode_does_not_disturb_the_slots_own() {
    for mode in MODES {
        let mut envs = count(2, mode);
        let mut plain = count(1, mode);
        let mut own = Vec::new();
        for begin in [Begin::Own, Begin::Own, Begin::Index(3), Begin::Own, Begin::Index(3), Begin::Own] {
            let rows = reset(&mut envs, &[begin, Begin::Own]);
            match begin {
                Begin::Index(_) => assert_eq!(drawn(&rows[0]), draws(3).next().unwrap()),
                _ => own.push(drawn(&rows[0])),
            }
            act(&mut envs, &[0, 0]);
        }
        let undisturbed: Vec<i64> = (0..4).map(|_| drawn(&reset(&mut plain, &[Begin::Own])[0])).collect();
        assert_eq!(own, undisturbed);
        assert_eq!(own, draws(100).take(4).collect::<Vec<_>>());
    }
}

#[test]
fn options_hold_through_autoresets_seeded_resets_and_later_resets() {
    let mut envs = count(2, AutoresetMode::SameStep);
    reset(&mut envs, &[Begin::Own; 2]);
    let shifts = |rows: &[Seen]| [shift(&rows[0]), shift(&rows[1])];
    let five = Options::new().with("shift", 5i64);
    assert_eq!(shifts(&reset_with(&mut envs, &[Begin::Own, Begin::Keep], five)), [5, 0]);
    assert_eq!(shifts(&act(&mut envs, &[1, 1])), [5, 0], "through an autoreset");
    assert_eq!(shifts(&reset(&mut envs, &[Begin::Own; 2])), [5, 0], "through a reset");
    assert_eq!(shifts(&reset(&mut envs, &[Begin::Seed(1); 2])), [5, 0], "through a seeded reset");
    envs.set_next(&Slots::All, &[Begin::Seed(4), Begin::Index(2)]).unwrap();
    assert_eq!(shifts(&act(&mut envs, &[1, 1])), [5, 0], "through a seeded autoreset");
    let six = Options::new().with("shift", 6i64);
    assert_eq!(shifts(&reset_with(&mut envs, &[Begin::Index(1); 2], six)), [6, 6], "until changed");
}

#[test]
fn options_that_an_env_fails_of_are_not_in_force_afterwards() {
    let mut envs = count(2, AutoresetMode::NextStep);
    let shift_by = |shift: i64| Options::new().with("shift", shift);
    reset_with(&mut envs, &[Begin::Own; 2], shift_by(5));
    envs.send_reset(&Slots::All, &[Begin::Own, Begin::Keep], Some(&shift_by(i64::MAX))).unwrap();
    let batch = crate::common::recv(&mut envs);
    assert_eq!(batch.failures.len(), 1);
    assert!(batch.failures[0].failure.message.contains("a panic of the options"));
    let rows = reset(&mut envs, &[Begin::Own, Begin::Keep]);
    assert_eq!(shift(&rows[0]), 5, "the rebuilt env has the options of before");
}

/// How often an env was built: by one test alone.
static BUILT: AtomicUsize = AtomicUsize::new(0);

/// Takes the option `level`, up to 9.
struct Built;

impl Env for Built {
    type Config = ();
    type Obs = i64;
    type Act = Discrete<2>;
    type Info = ();

    const CAPS: Caps = Caps::OPTIONS;

    fn build(_: &(), _: i64) -> Result<Self> {
        BUILT.fetch_add(1, Ordering::Relaxed);
        Ok(Built)
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<i64> {
        wants_reset(is_done).map(|_| 0)
    }

    fn reset_with_index(&mut self, _: usize) -> Result<i64> {
        Ok(0)
    }

    fn step(&mut self, a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
        Ok((Step::new(*a, 0, 0.0, ()), Record::empty()))
    }

    fn set_options(&mut self, options: &Options) -> Result<()> {
        match options.get("level") {
            Some(envcore::Value::Int(level)) if *level > 9 => {
                Err(Error::OptionValue(format!("level is {level}: it goes up to 9")))
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn one_env_alone_tries_the_options_of_a_reset_before_any_slot_is_reset() {
    let source: Arc<dyn Source> = Arc::new(source_of::<Built>());
    let level = |level: i64| Options::new().with("level", level);
    let plain = |name: &str| runner(name, &source, &config(6, AutoresetMode::NextStep));
    let tolerant = || {
        Box::new(FailurePolicy::new(plain("background 2"), OnFailure::Restart, 3).unwrap()) as Box<dyn VecEnv>
    };
    let shard = || Box::new(Shard::new(vec![plain("threaded 2")]).unwrap()) as Box<dyn VecEnv>;
    for mut envs in RUNNERS.map(plain).into_iter().chain([tolerant(), shard()]) {
        let tried = |envs: &mut dyn VecEnv, options: &Options| {
            let before = BUILT.load(Ordering::Relaxed);
            let sent = envs.send_reset(&Slots::All, &[Begin::Own; 6], Some(options));
            if sent.is_ok() {
                crate::common::receive(envs);
            }
            (BUILT.load(Ordering::Relaxed) - before, sent.err().map(|error| error.to_string()))
        };
        assert_eq!(tried(&mut *envs, &level(3)), (1, None));
        assert_eq!(tried(&mut *envs, &level(4)), (1, None));
        let (built, error) = tried(&mut *envs, &level(10));
        assert_eq!((built, error.as_deref()), (1, Some("level is 10: it goes up to 9")));
        // Slots under other options are not the same question.
        envs.send_reset(&Slots::List(vec![2, 4]), &[Begin::Own; 2], Some(&level(5))).unwrap();
        crate::common::recv(&mut *envs);
        assert_eq!(tried(&mut *envs, &Options::new().with("other", 1i64)), (2, None));
    }
}
