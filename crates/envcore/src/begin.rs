//! How an episode begins.

/// What a slot's next episode is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Begin {
    /// The next episode of the slot's own random stream.
    #[default]
    Own,
    /// The first episode of a new stream, from this seed (never negative).
    Seed(i64),
    /// The episode of this index; the slot's own stream stays where it is.
    Index(u64),
    /// None: change nothing and give the current observation once more.
    Keep,
}
