//! What `Walk-v0` promises. `corral.testing.check_env` (`tests/test_my_env.py`)
//! asks what every environment must answer; here stand its own rules.

use envcore::{Discrete, Env, Error};

use my_env::{Observation, Walk, WalkConfig};

const RIGHT: Discrete<4> = Discrete(0);

fn calm(seed: i64) -> Walk {
    Walk::build(&WalkConfig { wind: 0.0 }, seed).unwrap()
}

/// Walks towards the goal until the episode ends; its steps and return.
fn walk_to_the_goal(env: &mut Walk, mut seen: Observation) -> (usize, f64) {
    let mut total = 0.0;
    for count in 1..=100 {
        let [dx, dy] = [0, 1].map(|axis| seen.goal[axis] - seen.position[axis]);
        let (axis, far) = if dx.abs() > dy.abs() {
            (0, dx)
        } else {
            (1, dy)
        };
        let way = axis + if far > 0.0 { 0 } else { 2 };
        let (step, _) = env.step(&Discrete(way)).unwrap();
        (seen, total) = (step.obs, total + step.reward);
        if step.is_terminated {
            return (count, total);
        }
    }
    panic!("not there after 100 steps: {seen:?}");
}

#[test]
fn a_stride_to_the_right_is_a_tenth_of_a_unit() {
    let mut env = calm(1);
    let before = env.reset(None).unwrap();
    let after = env.step(&RIGHT).unwrap().0.obs;
    assert!((after.position[0] - before.position[0] - 0.1).abs() < 1e-6);
    assert_eq!(after.position[1], before.position[1]);
    assert_eq!(after.goal, before.goal);
}

#[test]
fn who_walks_to_the_goal_gets_there_and_is_paid() {
    for ix in 0..20 {
        let mut env = calm(1);
        let first = env.reset_with_index(ix).unwrap();
        let (steps, total) = walk_to_the_goal(&mut env, first);
        assert!(steps <= 40, "index {ix}: {steps} steps");
        assert!(total > -0.1, "index {ix}: return {total}");
    }
}

#[test]
fn walls_hold() {
    let mut env = Walk::build(&WalkConfig { wind: 10.0 }, 1).unwrap();
    env.reset(None).unwrap();
    for _ in 0..100 {
        let seen = env.step(&RIGHT).unwrap().0.obs;
        let inside = seen.position.iter().all(|value| value.abs() <= 1.0);
        assert!(inside, "{seen:?}");
    }
}

#[test]
fn a_wind_that_cannot_be_is_an_error_that_names_it() {
    for wind in [-1.0, f64::NAN] {
        let error = Walk::build(&WalkConfig { wind }, 1).err().unwrap();
        assert!(matches!(error, Error::OptionValue(_)) && error.to_string().contains("wind"));
    }
}
