//! What a game is: [`MinAtarGame`], and the types of its parts.

use envcore::rng::Rng;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::board::Planes;
use crate::canvas::Rgb;

/// A move. Its number is that of the action, where all six are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MinAtarMove {
    /// Nothing.
    Stay,
    /// One cell to the left.
    Left,
    /// One cell up.
    Up,
    /// One cell to the right.
    Right,
    /// One cell down.
    Down,
    /// Shoots.
    Fire,
}

impl MinAtarMove {
    /// All of them, in the order of their numbers.
    pub const ALL: &[MinAtarMove] = &[
        MinAtarMove::Stay,
        MinAtarMove::Left,
        MinAtarMove::Up,
        MinAtarMove::Right,
        MinAtarMove::Down,
        MinAtarMove::Fire,
    ];

    /// How far it goes to the right and down.
    pub(super) fn way(self) -> (i8, i8) {
        match self {
            MinAtarMove::Stay | MinAtarMove::Fire => (0, 0),
            MinAtarMove::Left => (-1, 0),
            MinAtarMove::Up => (0, -1),
            MinAtarMove::Right => (1, 0),
            MinAtarMove::Down => (0, 1),
        }
    }
}

/// What a step of a game brings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MinAtarTurn {
    /// The reward.
    pub reward: u32,
    /// Whether the episode ends.
    pub is_over: bool,
}

/// How a channel is shown to people.
#[derive(Clone, Copy)]
pub struct ChannelLook {
    /// What it stands for in a text.
    pub(super) letter: char,
    /// Its colour in a picture.
    pub(super) colour: Rgb,
    /// How much of a cell's side it covers.
    pub(super) size: f32,
}

impl ChannelLook {
    /// Something that fills its cell.
    pub(super) const fn body(letter: char, colour: Rgb) -> Self {
        ChannelLook { letter, colour, size: 0.9 }
    }

    /// Something small: a bullet, or the trail of what moves.
    pub(super) const fn speck(letter: char, colour: Rgb) -> Self {
        ChannelLook { letter, colour, size: 0.4 }
    }

    /// What is no thing of its own, but tells more of a thing on another channel.
    pub(super) const fn hidden() -> Self {
        ChannelLook { letter: ' ', colour: [0; 3], size: 0.0 }
    }
}

/// A game's state, apart from its random stream, and its rules.
pub trait MinAtarGame: Clone + Send + Serialize + DeserializeOwned + 'static {
    /// The channels of its observations.
    type Channels: Planes;

    /// The moves that do something in this game.
    const MOVES: &'static [MinAtarMove];

    /// How each channel is shown; a later one covers an earlier one.
    const LOOKS: &'static [ChannelLook];

    /// The first state of an episode.
    fn begin(rng: &mut Rng) -> Self;

    /// Plays one move; `ramps` tells whether the game grows harder as it goes on.
    fn play(&mut self, choice: MinAtarMove, ramps: bool, rng: &mut Rng) -> MinAtarTurn;

    /// What is seen, channel by channel.
    fn channels(&self) -> Self::Channels;

    /// Whether an episode may be in this state: every cell is on the board, and every count in its
    /// range.
    fn is_sound(&self) -> bool;
}
