//! An env's own random stream beside that of an indexed episode.
//!
//! The contract of `reset_with_index` is that index ix plays what
//! `reset(seed=ix)` plays, and that the env's own episodes, before and after,
//! are as if the indexed one had not been. An env that holds its randomness as
//! `Streams` keeps both by one call at each reset.

use serde::{Deserialize, Serialize};

use super::Rng;

/// The random streams of one env: its own, and that of an indexed episode while
/// one is played.
///
/// Call [`begin_own`](Self::begin_own) or [`begin_index`](Self::begin_index) at
/// the start of each reset and draw from [`rng`](Self::rng) alone. Draw nothing
/// before the first reset: what `build` draws is gone when a seed's first
/// episode begins, and the index of that number would play another.
///
/// ```
/// use envcore::rng::{Rng, Streams};
///
/// let mut streams = Streams::new(7);
/// let first = streams.rng().random();
///
/// streams.begin_index(3);
/// assert_eq!(streams.rng().random(), Rng::new(3).random());
///
/// streams.begin_own();
/// let second = streams.rng().random();
///
/// let mut undisturbed = Rng::new(7);
/// assert_eq!([first, second], [undisturbed.random(), undisturbed.random()]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    own: Rng,
    /// Present while an indexed episode is the current one.
    indexed: Option<Rng>,
}

impl Streams {
    /// The streams of an env built with `seed`; the current one is its own.
    ///
    /// Negative seeds are refused where seeds enter (a vec env's reset). One
    /// that comes here nevertheless counts modulo 2⁶⁴.
    #[must_use]
    pub fn new(seed: i64) -> Self {
        Self { own: Rng::new(seed as u64), indexed: None }
    }

    /// The episode that begins draws from the env's own stream, from where its
    /// last own episode left it.
    pub fn begin_own(&mut self) {
        self.indexed = None;
    }

    /// The episode that begins draws from the stream of seed `ix`, from its
    /// start. The own stream rests until the next [`begin_own`](Self::begin_own).
    pub fn begin_index(&mut self, ix: u64) {
        self.indexed = Some(Rng::new(ix));
    }

    /// The current episode's stream.
    #[inline]
    pub fn rng(&mut self) -> &mut Rng {
        self.indexed.as_mut().unwrap_or(&mut self.own)
    }
}
