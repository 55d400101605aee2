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

impl Begin {
    /// This as two numbers, the first of which is 0 for [`Begin::Own`] alone.
    pub(crate) fn pack(self) -> (u8, u64) {
        match self {
            Begin::Own => (0, 0),
            Begin::Seed(seed) => (1, seed as u64),
            Begin::Index(index) => (2, index),
            Begin::Keep => (3, 0),
        }
    }

    /// What [`pack`](Self::pack) made these numbers of.
    pub(crate) fn unpack(tag: u8, number: u64) -> Self {
        match tag {
            0 => Begin::Own,
            1 => Begin::Seed(number as i64),
            2 => Begin::Index(number),
            _ => Begin::Keep,
        }
    }
}
