//! An env's own random stream, and that of an indexed episode.
//!
//! `reset_with_index` has two rules. Index ix plays what `reset(seed=ix)` plays. The env's
//! own episodes, before and after, are as if there was no indexed episode. An env that
//! holds its randomness as `Streams` keeps both rules by one call at each reset.

use serde::{Deserialize, Serialize};

use super::Rng;

/// The random streams of one env: its own, and that of an indexed episode while
/// one is played.
///
/// An env should call [`begin_own`](Self::begin_own) or [`begin_index`](Self::begin_index) at
/// the start of each reset, and draw only from [`rng`](Self::rng). It should draw nothing
/// before the first reset: `build` would advance the stream before a seed's first episode,
/// and the index of that number would play another episode.
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
    /// The stream of the current episode, if that is an indexed one. It lies elsewhere so that envs,
    /// which most often have none, are small.
    indexed: Option<Box<Rng>>,
}

impl Streams {
    /// The streams of an env built with `seed`. The env's own stream is the current one.
    ///
    /// Negative seeds are refused before (in a vec env's reset). A negative seed counts modulo
    /// 2⁶⁴.
    #[must_use]
    pub fn new(seed: i64) -> Self {
        Self { own: Rng::new(seed as u64), indexed: None }
    }

    /// Makes the new episode draw from the env's own stream, from where the last own episode
    /// left the stream.
    pub fn begin_own(&mut self) {
        self.indexed = None;
    }

    /// Makes the new episode draw from the stream of seed `ix`, from its start. The own stream
    /// does not advance until the next [`begin_own`](Self::begin_own).
    pub fn begin_index(&mut self, ix: u64) {
        self.indexed = Some(Box::new(Rng::new(ix)));
    }

    /// The current episode's stream.
    #[inline]
    pub fn rng(&mut self) -> &mut Rng {
        self.indexed.as_deref_mut().unwrap_or(&mut self.own)
    }
}
