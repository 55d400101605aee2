//! Whole saved states: every slot's, checked before any is taken up.
//!
//! A sealed state ends in a checksum, so that one that was cut short or
//! altered on its way is an error and not another run.

use crate::env::state;
use crate::error::{Error, Result};
use crate::vec_env::VecEnv;

/// What a whole state begins with; changes with its layout and with this
/// crate's version, which env states depend on.
const FORMAT: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " state 1");

#[derive(serde::Serialize, serde::Deserialize)]
struct Whole {
    format: String,
    id: String,
    slots: Vec<Vec<u8>>,
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

/// The error of a state that belongs elsewhere.
pub(crate) fn foreign(what: &str, theirs: &str, ours: &str) -> Error {
    Error::State(format!("this state is of another {what}: {theirs}, not {ours}"))
}

fn check_idle<V: VecEnv + ?Sized>(envs: &V, what: &str) -> Result<()> {
    match envs.in_flight() {
        0 => Ok(()),
        n => Err(Error::Pending(format!("cannot {what} with {n} slots in flight: recv or drain first"))),
    }
}

/// Every slot's state.
pub(crate) fn save<V: VecEnv + ?Sized>(envs: &mut V) -> Result<Vec<u8>> {
    check_idle(envs, "save")?;
    let slots = (0..envs.spec().num_slots).map(|slot| envs.save(slot)).collect::<Result<_>>()?;
    Ok(seal(state::to_bytes(&Whole { format: FORMAT.into(), id: envs.spec().id.clone(), slots })?))
}

/// Takes up every slot's state, or none.
pub(crate) fn load<V: VecEnv + ?Sized>(envs: &mut V, bytes: &[u8]) -> Result<()> {
    check_idle(envs, "load")?;
    let Whole { format, id, slots } = state::from_bytes(unseal(bytes)?)?;
    let spec = envs.spec();
    if format != FORMAT {
        return Err(foreign("kind or version", &format, FORMAT));
    }
    if id != spec.id {
        return Err(foreign("env", &id, &spec.id));
    }
    if slots.len() != spec.num_slots {
        let (theirs, ours) = (slots.len(), spec.num_slots);
        return Err(Error::State(format!("this state has {theirs} slots, and there are {ours} here")));
    }
    // A state refused halfway must leave every slot as it was.
    let mut before = Vec::new();
    for (slot, saved) in slots.iter().enumerate() {
        let loaded = envs.save(slot).and_then(|was| {
            before.push(was);
            envs.load(slot, saved)
        });
        if let Err(error) = loaded {
            for (slot, was) in before.iter().enumerate() {
                envs.load(slot, was)?;
            }
            return Err(error);
        }
    }
    Ok(())
}
