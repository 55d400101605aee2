//! What `Walk-v0` promises. `corral.testing.check_env` (`tests/test_my_env.py`)
//! asks what every environment must answer; here stand its own rules.

use envcore::{Discrete, Env, Error};

use my_env::{SIDE, Screen, Walk, WalkConfig};

fn built(speed: u32) -> Walk {
    Walk::build(&WalkConfig { speed }, 1).unwrap()
}

/// The action that brings the paddle below the ball.
fn follow(seen: Screen) -> Discrete<3> {
    match seen.ball[1] - seen.paddle {
        -1..=1 => Discrete(0),
        far => Discrete(if far < 0 { 1 } else { 2 }),
    }
}

#[test]
fn who_follows_the_ball_catches_ten() {
    for ix in 0..20 {
        let mut env = built(1);
        let mut seen = env.reset_with_index(ix).unwrap();
        let mut total = 0.0;
        for count in 1.. {
            let (step, _) = env.step(&follow(seen)).unwrap();
            (seen, total) = (step.obs, total + step.reward);
            if step.is_terminated {
                assert_eq!(count, 10 * (SIDE - 1), "index {ix}");
                break;
            }
        }
        assert_eq!(total, 10.0, "index {ix}");
    }
}

#[test]
fn the_paddle_stays_on_the_screen() {
    let mut env = built(1);
    env.reset(None).unwrap();
    for _ in 0..20 {
        let seen = env.step(&Discrete(1)).unwrap().0.obs;
        assert!((0..SIDE as i32).contains(&seen.paddle));
    }
}

#[test]
fn a_fast_ball_lands_sooner() {
    let mut env = built(4);
    env.reset(None).unwrap();
    let rows: Vec<i32> = (0..8).map(|_| env.step(&Discrete(0)).unwrap().0.obs.ball[0]).collect();
    assert_eq!(rows, [4, 8, 12, 16, 20, 24, 28, 31]);
}

#[test]
fn a_speed_that_cannot_be_is_an_error_that_names_it() {
    for speed in [0, 5] {
        let error = Walk::build(&WalkConfig { speed }, 1).err().unwrap();
        assert!(matches!(error, Error::OptionValue(_)) && error.to_string().contains("speed"));
    }
}
