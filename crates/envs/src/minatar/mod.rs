//! MinAtar: five Atari games made small, on a board of 10×10 cells.
//!
//! The games are those of K. Young and T. Tian, *MinAtar: An Atari-Inspired Testbed for Thorough and
//! Reproducible Reinforcement Learning Experiments*, arXiv 1903.03176. The rules are from the
//! paper's and the authors' description, and from playing the package `minatar` 1.0 (GPL-3.0), of
//! which there is no code here: with the same random numbers both give the same observations,
//! rewards and ends. The package draws its numbers from other generators, so its own seeds give
//! other episodes. Each game's file has its rules.
//!
//! Observation: `bool`, rows, then columns, then channels; one channel for each kind of thing.
//!
//! Action: 0 nothing, 1 left, 2 up, 3 right, 4 down, 5 fire, in every game (`-v0`). `-v1` numbers only those
//! that do something in the game, in this order. A step is sticky with `sticky_action_prob`: it
//! plays what the step before has played. Before an episode's first step nothing has been played;
//! the package takes the last step of the episode before.
//!
//! Reward: whole numbers, as the game says. Terminated: by the game's own rules; there is no time
//! limit. Index ix is the episode of seed ix: its chance, sticky steps included.
//!
//! Versions: v0 has six actions, v1 those that do something in the game; the games are alike. Licence:
//! the code and the pictures are Corral's own.

mod asterix;
mod board;
mod breakout;
mod config;
mod draw;
mod env;
mod freeway;
mod game;
mod seaquest;
mod space_invaders;

pub use asterix::Asterix;
pub use board::{MinAtarSeen, Planes};
pub use breakout::Breakout;
pub use config::MinAtarConfig;
pub use env::MinAtar;
pub use freeway::Freeway;
pub use game::{ChannelLook, MinAtarGame, MinAtarMove, MinAtarTurn};
pub use seaquest::Seaquest;
pub use space_invaders::SpaceInvaders;

use envcore::{Config, Options, Result, Source};

use crate::Entry;

const ASTERIX: &str = "Run after treasure and from enemies; MinAtar's own game.";
const BREAKOUT: &str = "Keep a ball in play that breaks bricks; MinAtar's own game.";
const FREEWAY: &str = "Lead a chicken across a road; MinAtar's own game.";
const SEAQUEST: &str = "Rescue divers among fish and submarines; MinAtar's own game.";
const SPACE_INVADERS: &str = "Shoot a swarm of aliens; MinAtar's own game.";

/// The family's table.
pub const TABLE: &[Entry] = &[
    entry::<Asterix>("MinAtar-Asterix-v0", ASTERIX),
    entry::<Asterix>("MinAtar-Asterix-v1", ASTERIX),
    entry::<Breakout>("MinAtar-Breakout-v0", BREAKOUT),
    entry::<Breakout>("MinAtar-Breakout-v1", BREAKOUT),
    entry::<Freeway>("MinAtar-Freeway-v0", FREEWAY),
    entry::<Freeway>("MinAtar-Freeway-v1", FREEWAY),
    entry::<Seaquest>("MinAtar-Seaquest-v0", SEAQUEST),
    entry::<Seaquest>("MinAtar-Seaquest-v1", SEAQUEST),
    entry::<SpaceInvaders>("MinAtar-SpaceInvaders-v0", SPACE_INVADERS),
    entry::<SpaceInvaders>("MinAtar-SpaceInvaders-v1", SPACE_INVADERS),
];

const fn entry<G: MinAtarGame>(id: &'static str, about: &'static str) -> Entry {
    Entry::one_of::<MinAtar<G>>(id, about, make::<G>).fps(10)
}

/// The source of a game under the action set that an entry's id stands for.
fn make<G: MinAtarGame>(entry: &Entry, options: &Options) -> Result<Box<dyn Source>> {
    let mut config = MinAtarConfig::from_options(entry.id, options)?;
    config.use_minimal_action_set.get_or_insert(entry.id.ends_with("-v1"));
    Ok(Box::new(entry.source_of::<MinAtar<G>>(config)?))
}

/// The id in this table for the one that the package uses: `MinAtar-Breakout-v0` for
/// `MinAtar/Breakout-v0`.
pub(crate) fn id_of_package(id: &str) -> Option<String> {
    id.strip_prefix("MinAtar/").map(|game| format!("MinAtar-{game}"))
}

#[cfg(test)]
mod tests {
    use envcore::{Discrete, Env};

    use super::*;
    use crate::damaged::survives;

    #[test]
    fn a_state_that_no_episode_has_is_refused() {
        let acts: Vec<_> = (0..30).map(|act| Discrete(act % 6)).collect();
        let refused = [
            survives::<MinAtar<Asterix>>(&acts, 200),
            survives::<MinAtar<Breakout>>(&acts, 200),
            survives::<MinAtar<Freeway>>(&acts, 200),
            survives::<MinAtar<Seaquest>>(&acts, 200),
            survives::<MinAtar<SpaceInvaders>>(&acts, 200),
        ];
        assert!(refused.iter().all(|count| *count > 20), "{refused:?}");
    }

    #[test]
    fn the_packages_ids_are_known_too() {
        assert_eq!(crate::find("MinAtar/Freeway-v1").unwrap().id, "MinAtar-Freeway-v1");
        let text = crate::find("MinAtar/Freway-v1").err().unwrap().to_string();
        assert!(text.contains("Did you mean 'MinAtar-Freeway-v1'?"), "{text}");
    }

    #[test]
    fn what_is_no_probability_is_refused_by_name() {
        for wrong in [-0.1, 1.5] {
            let config = MinAtarConfig { sticky_action_prob: wrong, ..MinAtarConfig::default() };
            let text = MinAtar::<Breakout>::build(&config, 0).err().unwrap().to_string();
            assert!(text.contains(&format!("sticky_action_prob is {wrong}")), "{text}");
        }
    }
}
