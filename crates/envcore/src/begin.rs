//! How an episode begins.

/// How a slot's next episode begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Begin {
    /// The next episode of the slot's own random stream.
    #[default]
    Own,
    /// The first episode of a new stream from this seed, which is never negative.
    Seed(i64),
    /// The episode of this index. The slot's own stream does not advance.
    Index(u64),
    /// No episode begins: nothing changes, and the current observation is given again.
    Keep,
}
