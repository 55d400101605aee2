//! What `Walk-v0` promises. `corral.testing.check_env` (`tests/test_my_env.py`)
//! asks what every environment must answer; here stand its own rules.

use envcore::{Env, Error};

use my_env::{Observation, Push, Walk, WalkConfig};

const RIGHT: Push = Push([1.0, 0.0]);

fn calm(seed: i64) -> Walk {
    Walk::build(&WalkConfig { wind: 0.0 }, seed).unwrap()
}

/// Pushes towards the goal until the episode ends; its steps and return.
fn steer_to_the_goal(env: &mut Walk, mut seen: Observation) -> (usize, f64) {
    let mut total = 0.0;
    for count in 1..=100 {
        let push = std::array::from_fn(|axis| {
            let far = seen.goal[axis] - seen.position[axis];
            (10.0 * far - 30.0 * seen.velocity[axis]).clamp(-1.0, 1.0)
        });
        let (step, _) = env.step(&Push(push)).unwrap();
        (seen, total) = (step.obs, total + step.reward);
        if step.is_terminated {
            return (count, total);
        }
    }
    panic!("not there after 100 steps: {seen:?}");
}

#[test]
fn a_push_moves_the_agent_and_friction_slows_it() {
    let mut env = calm(1);
    let before = env.reset(None).unwrap();
    let first = env.step(&RIGHT).unwrap().0.obs;
    assert!((first.position[0] - before.position[0] - 0.024).abs() < 1e-6);
    assert_eq!((first.position[1], first.goal), (before.position[1], before.goal));
    let second = env.step(&Push([0.0; 2])).unwrap().0.obs;
    assert!((second.velocity[0] - 0.8 * first.velocity[0]).abs() < 1e-6);
}

#[test]
fn who_steers_to_the_goal_gets_there_and_is_paid() {
    for ix in 0..20 {
        let mut env = calm(1);
        let first = env.reset_with_index(ix).unwrap();
        let (steps, total) = steer_to_the_goal(&mut env, first);
        assert!(steps <= 60, "index {ix}: {steps} steps");
        assert!(total > -0.2, "index {ix}: return {total}");
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
