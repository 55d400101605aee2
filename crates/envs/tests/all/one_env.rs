//! The trait's own promises, of one env stepped by hand: what `reset` does with
//! each argument, and what a step with reset shows and goes on with.

#[path = "../../examples/one_env.rs"]
mod example;

use envcore::{Discrete, Env, Error};
use envs::classic::{CartPole, CartPoleConfig};
use envs::grid::{Maze, MazeConfig};

#[test]
fn the_example_runs() {
    example::main().unwrap();
}

/// An env just built, numbers by which its observations are compared, and an
/// action for each step.
struct Case<E: Env> {
    env: E,
    /// Built the same.
    twin: E,
    show: fn(&E::Obs) -> Vec<f64>,
    act: fn(usize) -> E::Act,
}

fn cart_pole(seed: i64) -> Case<CartPole> {
    let built = || CartPole::build(&CartPoleConfig::default(), seed).unwrap();
    let show = |obs: &[f32; 4]| obs.iter().map(|&x| f64::from(x)).collect();
    Case { env: built(), twin: built(), show, act: |_| Discrete(1) }
}

fn maze(seed: i64) -> Case<Maze> {
    let built = || Maze::build(&MazeConfig::default(), seed).unwrap();
    let show = |view: &envs::grid::MazeView| {
        let frame = view.frame(1).unwrap();
        frame.2.iter().map(|&x| f64::from(x)).collect()
    };
    Case { env: built(), twin: built(), show, act: |step| Discrete(step as i64 % 4) }
}

/// None and [1] begin the next episode of the env's own stream; the same one for
/// envs built the same.
fn one_resets_as_none_does<E: Env>(case: Case<E>) {
    let Case { mut env, mut twin, show, .. } = case;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let shown = show(&env.reset(Some(&vec![1])).unwrap());
        assert_eq!(shown, show(&twin.reset(None).unwrap()));
        assert!(!seen.contains(&shown), "each episode is another");
        seen.push(shown);
    }
}

/// [0] shows the current observation again, at an episode's beginning, in its
/// midst, and changes nothing of what comes after.
fn zero_shows_the_same_again<E: Env>(case: Case<E>) {
    let Case { mut env, mut twin, show, act } = case;
    let keep = Some(vec![0]);
    let mut last = show(&env.reset(None).unwrap());
    twin.reset(None).unwrap();
    for k in 0..6 {
        for _ in 0..2 {
            assert_eq!(show(&env.reset(keep.as_ref()).unwrap()), last);
        }
        last = show(&env.step(&act(k)).unwrap().0.obs);
        assert_eq!(last, show(&twin.step(&act(k)).unwrap().0.obs));
    }
    assert_eq!(show(&env.reset(None).unwrap()), show(&twin.reset(None).unwrap()));
}

/// Any other length, and any other number, is an error that says what is taken;
/// nothing has changed.
fn what_is_not_one_flag_is_an_error<E: Env>(case: Case<E>) {
    let Case { mut env, show, .. } = case;
    let shown = show(&env.reset(None).unwrap());
    for wrong in [vec![], vec![0, 0], vec![1, 1], vec![0; 64], vec![2], vec![-1], vec![i8::MIN]] {
        let error = env.reset(Some(&wrong)).err().expect("an error");
        assert!(matches!(error, Error::Argument(_)));
        let expected =
            format!("reset takes None, [1] (reset) or [0] (observe): this is one env; not {wrong:?}");
        assert_eq!(error.to_string(), expected);
        assert_eq!(show(&env.reset(Some(&vec![0])).unwrap()), shown);
    }
}

#[test]
fn reset_does_what_its_argument_says() {
    one_resets_as_none_does(cart_pole(1));
    one_resets_as_none_does(maze(1));
    zero_shows_the_same_again(cart_pole(2));
    zero_shows_the_same_again(maze(2));
    what_is_not_one_flag_is_an_error(cart_pole(3));
    what_is_not_one_flag_is_an_error(maze(3));
}

/// Beside an env that is stepped and reset by hand: the same steps; where an
/// episode ends, `obs` is its last observation and `init_obs` what the reset
/// showed; and the next step is one of the episode that has begun.
#[test]
fn a_step_with_reset_shows_the_next_beginning_and_goes_on_from_there() {
    let Case { mut env, mut twin, .. } = cart_pole(4);
    env.reset(None).unwrap();
    twin.reset(None).unwrap();
    let mut lengths = vec![0];
    while lengths.len() < 5 {
        let (step, _) = env.step_with_reset(&Discrete(1)).unwrap();
        let (expected, _) = twin.step(&Discrete(1)).unwrap();
        assert_eq!((step.obs, step.reward), (expected.obs, expected.reward));
        assert_eq!(step.is_terminated, expected.is_terminated);
        *lengths.last_mut().unwrap() += 1;
        if expected.is_done() {
            let first = twin.reset(None).unwrap();
            assert_eq!(step.init_obs, Some(first));
            assert_ne!(step.obs, first);
            // Where it is now is where the new episode begins.
            assert_eq!(env.reset(Some(&vec![0])).unwrap(), first);
            lengths.push(0);
        } else {
            assert_eq!(step.init_obs, None);
        }
    }
    assert!(lengths[..4].iter().all(|&length| length > 1), "{lengths:?}");
}
