//! Saved states: sections, sealed once.
//!
//! Each vec env of a stack puts its section behind those of the vec envs below it,
//! and takes it off again when the state is loaded. What is left over, or lacks,
//! belongs to another stack. The bytes of a state end in a checksum, so that one
//! that was cut short or altered on its way is an error and not another run.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::env::state;
use crate::error::{Error, Result};

/// What the bytes of a slot's state begin with; changes with its layout and with
/// this crate's version, which env states depend on.
const OF_SLOT: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " slot 5");

/// What the bytes of the state of a whole vec env begin with, as [`OF_SLOT`].
const OF_ALL: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " state 2");

/// What one vec env of a stack keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Section {
    name: String,
    #[serde(with = "crate::bytes")]
    bytes: Vec<u8>,
}

impl Section {
    fn new<S: Serialize>(name: &str, of: &S) -> Result<Self> {
        Ok(Section { name: name.into(), bytes: state::to_bytes(of)? })
    }
}

/// All that the rest of one slot's run depends on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotState {
    sections: Vec<Section>,
}

/// Sections that nobody has taken yet.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a>(&'a [Section]);

impl SlotState {
    /// Adds what a vec env keeps of the slot, under a name of its own.
    ///
    /// # Errors
    /// [`Error::State`] where it cannot be written.
    pub fn push<S: Serialize>(&mut self, name: &str, of: &S) -> Result<()> {
        self.sections.push(Section::new(name, of)?);
        Ok(())
    }

    /// Its sections.
    pub fn sections(&self) -> Sections<'_> {
        Sections(&self.sections)
    }

    /// Its bytes.
    ///
    /// # Errors
    /// [`Error::State`] where it cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        seal(OF_SLOT, self)
    }

    /// What [`to_bytes`](Self::to_bytes) was called of.
    ///
    /// # Errors
    /// [`Error::State`] for other bytes, of other versions too.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        unseal(OF_SLOT, bytes)
    }
}

/// The name of the section of a failure policy.
pub(crate) const POLICY: &str = "failure policy";

/// What a failure policy keeps of a slot: a run may be taken up under another
/// policy, or without one.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedPolicy {
    /// The slot failed and shows nothing until it is reset.
    pub(crate) lost: bool,
    /// Restarts since the slot last ended an episode.
    pub(crate) restarts: u32,
}

impl<'a> Sections<'a> {
    /// A state of these sections.
    pub fn to_state(self) -> SlotState {
        SlotState { sections: self.0.to_vec() }
    }

    /// What is in the last section, which must be called `name`; those before it.
    ///
    /// # Errors
    /// [`Error::State`] where the last is another, or is not such a section.
    pub fn take<S: DeserializeOwned>(self, name: &str) -> Result<(S, Self)> {
        match self.0.split_last() {
            Some((last, rest)) if last.name == name => Ok((state::from_bytes(&last.bytes)?, Sections(rest))),
            Some((last, _)) => Err(foreign_layer(&last.name, name)),
            None => Err(foreign_layer("none", name)),
        }
    }

    /// As [`take`](Self::take), where the last section is called `name`.
    ///
    /// # Errors
    /// [`Error::State`] where it is not such a section.
    pub fn take_if<S: DeserializeOwned>(self, name: &str) -> Result<(Option<S>, Self)> {
        match self.0.last() {
            Some(last) if last.name == name => self.take(name).map(|(own, rest)| (Some(own), rest)),
            _ => Ok((None, self)),
        }
    }

    /// Errors where sections are left.
    ///
    /// # Errors
    /// [`Error::State`].
    pub fn end(self) -> Result<()> {
        match self.0.last() {
            Some(last) => Err(foreign_layer(&last.name, "none")),
            None => Ok(()),
        }
    }
}

/// All that the rest of every slot's run depends on, and what the slots share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VecEnvState {
    id: String,
    slots: Vec<SlotState>,
    shared: Vec<Section>,
}

/// What nobody has taken yet of the state of a whole vec env.
#[derive(Clone, Debug)]
pub struct AllSections<'a> {
    pub(crate) id: &'a str,
    /// By slot.
    pub(crate) slots: Vec<Sections<'a>>,
    pub(crate) shared: Sections<'a>,
}

impl VecEnvState {
    pub(crate) fn new(id: &str, slots: Vec<SlotState>) -> Self {
        VecEnvState { id: id.into(), slots, shared: Vec::new() }
    }

    /// Adds what a vec env keeps of each slot.
    ///
    /// # Errors
    /// [`Error::State`] where it cannot be written.
    pub(crate) fn push_slots<S: Serialize>(&mut self, name: &str, of: impl Fn(usize) -> S) -> Result<()> {
        self.slots.iter_mut().enumerate().try_for_each(|(slot, state)| state.push(name, &of(slot)))
    }

    /// Adds what a vec env keeps that its slots share.
    ///
    /// # Errors
    /// As [`push_slots`](Self::push_slots).
    pub(crate) fn push_shared<S: Serialize>(&mut self, name: &str, of: &S) -> Result<()> {
        self.shared.push(Section::new(name, of)?);
        Ok(())
    }

    pub(crate) fn slots_mut(&mut self) -> &mut [SlotState] {
        &mut self.slots
    }

    /// All of its sections.
    pub(crate) fn sections(&self) -> AllSections<'_> {
        let slots = self.slots.iter().map(SlotState::sections).collect();
        AllSections { id: &self.id, slots, shared: Sections(&self.shared) }
    }

    /// The state of `parts`, the slots of one behind those of the other, as one
    /// called `id`: what their slots share has the part's number before its name.
    pub(crate) fn join(id: &str, parts: Vec<VecEnvState>) -> Self {
        let mut whole = VecEnvState::new(id, Vec::new());
        for (k, part) in parts.into_iter().enumerate() {
            whole.slots.extend(part.slots);
            let named = |section: Section| Section { name: of_part(k, &section.name), ..section };
            whole.shared.extend(part.shared.into_iter().map(named));
        }
        whole
    }

    /// Its bytes.
    ///
    /// # Errors
    /// [`Error::State`] where it cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        seal(OF_ALL, self)
    }

    /// What [`to_bytes`](Self::to_bytes) was called of.
    ///
    /// # Errors
    /// [`Error::State`] for other bytes, of other versions too.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        unseal(OF_ALL, bytes)
    }
}

impl AllSections<'_> {
    /// Errors unless they are of `num_slots` slots of `id`.
    ///
    /// # Errors
    /// [`Error::State`].
    pub(crate) fn check(&self, id: &str, num_slots: usize) -> Result<()> {
        if self.id != id {
            return Err(foreign("env", self.id, id));
        }
        match self.slots.len() {
            theirs if theirs == num_slots => Ok(()),
            theirs => {
                Err(Error::State(format!("this state has {theirs} envs, and there are {num_slots} here")))
            }
        }
    }

    /// The states of the parts called `ids`, which have so many slots each.
    ///
    /// # Errors
    /// [`Error::State`] where there are other parts.
    pub(crate) fn split(&self, parts: &[(&str, usize)]) -> Result<Vec<VecEnvState>> {
        let mut slots = self.slots.iter();
        let mut shared = self.shared.0.iter().peekable();
        let mut states = Vec::with_capacity(parts.len());
        for (k, (id, count)) in parts.iter().enumerate() {
            let slots = slots.by_ref().take(*count).map(|slot| slot.to_state());
            let mut state = VecEnvState::new(id, slots.collect());
            let own = of_part(k, "");
            while let Some(section) = shared.next_if(|section| section.name.starts_with(&own)) {
                let name = section.name[own.len()..].into();
                state.shared.push(Section { name, bytes: section.bytes.clone() });
            }
            states.push(state);
        }
        match shared.next() {
            Some(section) => Err(foreign_layer(&section.name, "none")),
            None => Ok(states),
        }
    }
}

fn of_part(k: usize, name: &str) -> String {
    format!("part {k}: {name}")
}

/// `format` and `of`, with a checksum behind them.
fn seal<S: Serialize>(format: &str, of: &S) -> Result<Vec<u8>> {
    let mut bytes = state::to_bytes(&(format, of))?;
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    Ok(bytes)
}

/// What was sealed under `format`. Bytes of another format are not read as this
/// one's.
///
/// # Errors
/// [`Error::State`] where it is not as it was, or of another format.
fn unseal<S: DeserializeOwned>(format: &str, bytes: &[u8]) -> Result<S> {
    let damaged = || Error::State(format!("these {} bytes are no state, or not all of it", bytes.len()));
    let (inner, sum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
    if crc32fast::hash(inner).to_le_bytes() != *sum {
        return Err(damaged());
    }
    match state::first_text(inner) {
        Some(theirs) if theirs != format => Err(foreign("kind or version", theirs, format)),
        _ => state::from_bytes::<(String, S)>(inner).map(|(_, of)| of),
    }
}

/// The error of a state that belongs elsewhere.
pub(crate) fn foreign(what: &str, theirs: &str, ours: &str) -> Error {
    Error::State(format!("this state is of another {what}: {theirs}, not {ours}"))
}

/// The error of a state whose vec env has other layers: what the state ends in,
/// where this vec env keeps `ours`.
fn foreign_layer(theirs: &str, ours: &str) -> Error {
    let what = foreign("layer", theirs, ours);
    Error::State(format!("{what}: make the vec env with the options that the state was saved under"))
}
