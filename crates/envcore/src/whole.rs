//! Whole saved states: every slot's, checked before any is taken up.
//!
//! A sealed state ends in a checksum, so that one that was cut short or
//! altered on its way is an error and not another run.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::env::state;
use crate::error::{Error, Result};

/// What a whole state begins with; changes with its layout and with this
/// crate's version, which env states depend on.
const FORMAT: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " state 1");

/// What the state of a shard begins with whose parts have more than their slots'
/// states.
const OF_PARTS: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " shard state 1");

#[derive(serde::Serialize, serde::Deserialize)]
struct Whole {
    format: String,
    id: String,
    /// One for each slot, or for each part.
    states: Vec<Vec<u8>>,
}

impl Whole {
    fn bytes(format: &str, id: &str, states: Vec<Vec<u8>>) -> Result<Vec<u8>> {
        Ok(seal(state::to_bytes(&Whole { format: format.into(), id: id.into(), states })?))
    }

    /// The states in `bytes`, which must be of `format`, of `id`, and as many as
    /// there are `what`.
    fn read(bytes: &[u8], format: &str, id: &str, ours: usize, what: &str) -> Result<Vec<Vec<u8>>> {
        let whole: Whole = read(bytes, format)?;
        if whole.id != id {
            return Err(foreign("env", &whole.id, id));
        }
        let theirs = whole.states.len();
        if theirs != ours {
            return Err(Error::State(format!("this state has {theirs} {what}, and there are {ours} here")));
        }
        Ok(whole.states)
    }

    fn is_of(bytes: &[u8], format: &str) -> bool {
        unseal(bytes).ok().and_then(state::first_text) == Some(format)
    }
}

/// What the state of a slot begins with that a failure policy keeps something of;
/// changes with its layout.
const OF_POLICY: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " tolerated slot 1");

/// What a failure policy keeps of a slot, beside the slot's own state: a run may be
/// taken up under another policy, or without one.
#[derive(Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct SavedPolicy {
    /// The slot failed and shows nothing until it is reset.
    pub(crate) lost: bool,
    /// Restarts since the slot last ended an episode.
    pub(crate) restarts: u32,
}

impl SavedPolicy {
    /// The state of a slot that is in the state `below`.
    pub(crate) fn beside(self, below: Vec<u8>) -> Result<Vec<u8>> {
        if self == SavedPolicy::default() {
            return Ok(below);
        }
        Ok(seal(state::to_bytes(&(OF_POLICY, self, below))?))
    }

    /// What a policy kept, if anything, and the state of the slot itself.
    pub(crate) fn split(bytes: &[u8]) -> Result<(Self, Cow<'_, [u8]>)> {
        // Bytes that are damaged are for the slot's own reader to refuse.
        if unseal(bytes).ok().and_then(state::first_text) != Some(OF_POLICY) {
            return Ok((SavedPolicy::default(), Cow::Borrowed(bytes)));
        }
        let (_, policy, below): (String, _, Vec<u8>) = state::from_bytes(unseal(bytes)?)?;
        Ok((policy, Cow::Owned(below)))
    }
}

/// `bytes` with a checksum behind them.
pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// What was sealed.
///
/// # Errors
/// [`Error::State`] where it is not as it was.
pub(crate) fn unseal(bytes: &[u8]) -> Result<&[u8]> {
    let damaged = || Error::State(format!("these {} bytes are no state, or not all of it", bytes.len()));
    let (inner, sum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
    if crc32fast::hash(inner).to_le_bytes() != *sum {
        return Err(damaged());
    }
    Ok(inner)
}

/// What was sealed, which begins with `format`. Bytes of another format are not
/// read as this one's.
///
/// # Errors
/// [`Error::State`] where it is not as it was, or of another format.
pub(crate) fn read<S: DeserializeOwned>(bytes: &[u8], format: &str) -> Result<S> {
    let inner = unseal(bytes)?;
    match state::first_text(inner) {
        Some(theirs) if theirs != format => Err(foreign("kind or version", theirs, format)),
        _ => state::from_bytes(inner),
    }
}

/// The error of a state that belongs elsewhere.
pub(crate) fn foreign(what: &str, theirs: &str, ours: &str) -> Error {
    Error::State(format!("this state is of another {what}: {theirs}, not {ours}"))
}

/// The state of a vec env of `id` whose slots are in these states.
pub(crate) fn of_slots(id: &str, slots: Vec<Vec<u8>>) -> Result<Vec<u8>> {
    Whole::bytes(FORMAT, id, slots)
}

/// The states of the `ours` slots of a vec env of `id`.
pub(crate) fn slots(bytes: &[u8], id: &str, ours: usize) -> Result<Vec<Vec<u8>>> {
    Whole::read(bytes, FORMAT, id, ours, "envs")
}

/// The state of a shard called `id` with parts in these states: as any runner's
/// where they are no more than their slots' states, else one that shards of as
/// many parts take up.
pub(crate) fn join(id: &str, parts: Vec<Vec<u8>>) -> Result<Vec<u8>> {
    if !parts.iter().all(|part| Whole::is_of(part, FORMAT)) {
        return Whole::bytes(OF_PARTS, id, parts);
    }
    let mut slots = Vec::new();
    for part in parts {
        slots.extend(state::from_bytes::<Whole>(unseal(&part)?)?.states);
    }
    Whole::bytes(FORMAT, id, slots)
}

/// The states of `parts` parts, if that is what this state of a shard called `id`
/// is made of.
pub(crate) fn of_parts(bytes: &[u8], id: &str, parts: usize) -> Result<Option<Vec<Vec<u8>>>> {
    if !Whole::is_of(bytes, OF_PARTS) {
        return Ok(None);
    }
    Whole::read(bytes, OF_PARTS, id, parts, "parts").map(Some)
}
