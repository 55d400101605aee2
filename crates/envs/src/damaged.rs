//! What tests of several families ask: whether an env refuses the states that it cannot play.

use envcore::{Caps, Env, Error};

/// Saved bytes with one of them changed in several ways.
fn damaged(state: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let places = (0..state.len()).flat_map(|at| [0x03, 0x0b, 0x7f, 0xff].map(|value| (at, value)));
    places.map(|(at, value)| {
        let mut changed = state.to_vec();
        changed[at] = value;
        changed
    })
}

/// Panics unless every state that loads is one that can be shown, drawn and played. The state is the
/// one after `steps` steps of `acts` in turn; each of `acts` is played from a state that loads, past
/// an episode's end too. Returns how many states were refused.
pub(crate) fn survives<E: Env>(acts: &[E::Act], steps: usize) -> usize {
    let mut env = E::build(&E::Config::default(), 3).unwrap();
    env.reset(None).unwrap();
    for act in acts.iter().cycle().take(steps) {
        if env.step(act).unwrap().0.is_terminated {
            env.reset(None).unwrap();
        }
    }
    let state = env.save().unwrap();
    let mut refused = 0;
    for bytes in damaged(&state) {
        match env.load(&bytes) {
            Ok(()) => {
                env.render().unwrap();
                if E::CAPS.contains(Caps::ANSI) {
                    env.ansi().unwrap();
                }
                for act in acts {
                    env.step(act).unwrap();
                }
            }
            Err(error) => {
                assert!(matches!(error, Error::State(_)), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
    env.load(&state).unwrap();
    assert_eq!(env.save().unwrap(), state);
    refused
}
