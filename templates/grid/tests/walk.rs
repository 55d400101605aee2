//! What `Walk-v0` promises. `corral.testing.check_env` (`tests/test_my_env.py`)
//! asks what every environment must answer; here stand its own rules.

use envcore::{Discrete, Env, Error};

use my_env::{Walk, WalkConfig};

fn small() -> WalkConfig {
    WalkConfig { size: 6, gems: 2, levels: 10 }
}

fn built(config: &WalkConfig) -> Walk {
    Walk::build(config, 1).unwrap()
}

fn mask(env: &Walk) -> [bool; 4] {
    let mut mask = [true; 4];
    env.action_mask(&mut mask);
    mask
}

#[test]
fn the_mask_has_the_moves_that_no_rock_stops() {
    let mut env = built(&small());
    for level in 0..20 {
        let mut seen = env.reset_with_index(level).unwrap();
        for k in 0..40 {
            let (way, before) = ((k * 7 + level) % 4, seen.body.position);
            let is_allowed = mask(&env)[way];
            let (step, _) = env.step(&Discrete(way as i64)).unwrap();
            assert_eq!(step.obs.body.position != before, is_allowed, "level {level}, step {k}");
            if step.is_terminated {
                break;
            }
            seen = step.obs;
        }
    }
}

#[test]
fn who_roams_gathers_all_gems_and_each_pays_one() {
    for level in 0..5 {
        let mut env = built(&small());
        env.reset_with_index(level).unwrap();
        let (mut total, mut steps, mut draw) = (0.0, 0, envcore::rng::Rng::new(5));
        let record = loop {
            let (step, record) = env.step(&Discrete(draw.integers(0, 4))).unwrap();
            (total, steps) = (total + step.reward, steps + 1);
            assert!(steps < 10_000, "level {level} has a gem that nobody reaches");
            if step.is_terminated {
                break record;
            }
        };
        assert!((total - (2.0 - 0.01 * f64::from(steps))).abs() < 1e-9);
        assert_eq!(record.get("steps_per_gem"), Some(&(f64::from(steps) / 2.0).into()));
    }
}

#[test]
fn a_level_is_the_same_whatever_was_played_before() {
    let (mut one, mut other) = (built(&small()), Walk::build(&small(), 2).unwrap());
    other.reset(None).unwrap();
    other.step(&Discrete(0)).unwrap();
    for level in [0, 3, 999_999] {
        one.reset_with_index(level).unwrap();
        other.reset_with_index(level).unwrap();
        assert_eq!(one.render().unwrap(), other.render().unwrap());
    }
}

#[test]
fn what_cannot_be_is_an_error_that_says_what_can() {
    for (config, told) in [
        (WalkConfig { size: 4, ..small() }, "size is an int from 5 to 64, not 4"),
        (WalkConfig { gems: 8, ..small() }, "gems is an int from 1 to 7, not 8"),
        (WalkConfig { levels: 0, ..small() }, "levels is an int from 1 to 1000000, not 0"),
    ] {
        let error = Walk::build(&config, 1).err().unwrap();
        assert!(
            matches!(error, Error::OptionValue(_)) && error.to_string().contains(told),
            "{error}"
        );
    }
    let mut env = built(&small());
    let error = env.reset_with_index(1_000_000).err().unwrap();
    assert!(error.to_string().contains("from 0 to 999999, not 1000000"), "{error}");
    let state = built(&WalkConfig { size: 7, ..small() }).save().unwrap();
    assert!(matches!(env.load(&state), Err(Error::State(_))));
}
