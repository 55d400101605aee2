//! One env, stepped by hand: what the trait's methods do, without a vec env.
//!
//! `cargo run -p envs --example one_env`

use envcore::{Discrete, Env, Result};
use envs::classic::{CartPole, CartPoleConfig};

/// Begins episodes in every way, and plays two.
pub fn main() -> Result<()> {
    let mut env = CartPole::build(&CartPoleConfig::default(), 7)?;

    // `None` begins the next episode of the env's own random stream, and so does [1].
    println!("None: {:?}", env.reset(None)?);
    println!("[1]:  {:?}", env.reset(Some(&vec![1]))?);
    // [0] changes nothing: it shows the current observation once more.
    println!("[0]:  {:?}", env.reset(Some(&vec![0]))?);
    // One instance is one env: any other length is an error, and any other number too.
    for wrong in [vec![], vec![1, 1], vec![2]] {
        match env.reset(Some(&wrong)) {
            Ok(_) => panic!("{wrong:?} was taken"),
            Err(error) => println!("{wrong:?}: {error}"),
        }
    }

    // An index begins the same episode each time.
    println!("index 3: {:?}", env.reset_with_index(3)?);

    // A step that ends an episode begins the next one, and that goes on with the next step:
    // `obs` is the last observation of the one, `init_obs` the first of the other.
    let (mut episodes, mut steps) = (0, 0);
    while episodes < 2 {
        let (step, _record) = env.step_with_reset(&Discrete(1))?;
        steps += 1;
        if let Some(first) = step.init_obs {
            println!("over after {steps} steps at {:?}; the next begins at {first:?}", step.obs);
            (episodes, steps) = (episodes + 1, 0);
        }
    }
    env.close()
}
