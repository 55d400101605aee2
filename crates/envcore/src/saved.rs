//! Saved states, which are sections under one checksum.
//!
//! Each vec env of a stack adds its section after those of the vec envs below it, and takes
//! the section off when the state is loaded. A section that is left over or missing means
//! that the state belongs to another stack. The bytes of a state end in a checksum, so that
//! a state that was cut short or altered is an error.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::env::state;
use crate::error::{Error, Result};

/// The beginning of the bytes of a slot's state. It changes with the layout and with this
/// crate's version, on which env states depend.
const OF_SLOT: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " slot 5");

/// The beginning of the bytes of a whole vec env's state; it changes as [`OF_SLOT`] does.
const OF_ALL: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " state 2");

/// What one vec env of a stack saves.
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

/// The state on which the rest of one slot's run depends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotState {
    sections: Vec<Section>,
}

/// Sections that no vec env has taken yet.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a>(&'a [Section]);

impl SlotState {
    /// Adds what a vec env saves of the slot, under the vec env's own name.
    ///
    /// # Errors
    /// [`Error::State`] where `of` cannot be written.
    pub fn push<S: Serialize>(&mut self, name: &str, of: &S) -> Result<()> {
        self.sections.push(Section::new(name, of)?);
        Ok(())
    }

    /// The state's sections.
    pub fn sections(&self) -> Sections<'_> {
        Sections(&self.sections)
    }

    /// The state as bytes.
    ///
    /// # Errors
    /// [`Error::State`] where the state cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        seal(OF_SLOT, self)
    }

    /// The state of which [`to_bytes`](Self::to_bytes) gave `bytes`.
    ///
    /// # Errors
    /// [`Error::State`] for any other bytes, those of other versions included.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        unseal(OF_SLOT, bytes)
    }
}

/// The name of the section of a failure policy.
pub(crate) const POLICY: &str = "failure policy";

/// What a failure policy saves of a slot. A run may be continued under another policy, or
/// without one.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedPolicy {
    /// Whether the slot failed and shows nothing until it is reset.
    pub(crate) lost: bool,
    /// How often the slot was restarted since it last ended an episode.
    pub(crate) restarts: u32,
}

impl<'a> Sections<'a> {
    /// A state that has these sections.
    pub fn to_state(self) -> SlotState {
        SlotState { sections: self.0.to_vec() }
    }

    /// The content of the last section, which must be called `name`, and the sections before it.
    ///
    /// # Errors
    /// [`Error::State`] where the last section has another name or other content.
    pub fn take<S: DeserializeOwned>(self, name: &str) -> Result<(S, Self)> {
        match self.0.split_last() {
            Some((last, rest)) if last.name == name => Ok((state::from_bytes(&last.bytes)?, Sections(rest))),
            Some((last, _)) => Err(foreign_layer(&last.name, name)),
            None => Err(foreign_layer("none", name)),
        }
    }

    /// Takes the last section as [`take`](Self::take) does, if it is called `name`.
    ///
    /// # Errors
    /// [`Error::State`] where a section of this name has other content.
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

/// The state on which the rest of every slot's run depends, and what the slots share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VecEnvState {
    id: String,
    slots: Vec<SlotState>,
    shared: Vec<Section>,
}

/// What no vec env has taken yet of the state of a whole vec env.
#[derive(Clone, Debug)]
pub struct AllSections<'a> {
    pub(crate) id: &'a str,
    /// The sections of each slot.
    pub(crate) slots: Vec<Sections<'a>>,
    pub(crate) shared: Sections<'a>,
}

impl VecEnvState {
    pub(crate) fn new(id: &str, slots: Vec<SlotState>) -> Self {
        VecEnvState { id: id.into(), slots, shared: Vec::new() }
    }

    /// Adds what a vec env saves of each slot.
    ///
    /// # Errors
    /// [`Error::State`] where a value of `of` cannot be written.
    pub(crate) fn push_slots<S: Serialize>(&mut self, name: &str, of: impl Fn(usize) -> S) -> Result<()> {
        self.slots.iter_mut().enumerate().try_for_each(|(slot, state)| state.push(name, &of(slot)))
    }

    /// Adds what a vec env saves that its slots share.
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

    /// All sections of the state.
    pub(crate) fn sections(&self) -> AllSections<'_> {
        let slots = self.slots.iter().map(SlotState::sections).collect();
        AllSections { id: &self.id, slots, shared: Sections(&self.shared) }
    }

    /// The states of `parts` as one state called `id`, with the slots of one part after those
    /// of the other. The number of a part is put before the names of what its slots share.
    pub(crate) fn join(id: &str, parts: Vec<VecEnvState>) -> Self {
        let mut whole = VecEnvState::new(id, Vec::new());
        for (k, part) in parts.into_iter().enumerate() {
            whole.slots.extend(part.slots);
            let named = |section: Section| Section { name: of_part(k, &section.name), ..section };
            whole.shared.extend(part.shared.into_iter().map(named));
        }
        whole
    }

    /// The state as bytes.
    ///
    /// # Errors
    /// [`Error::State`] where the state cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        seal(OF_ALL, self)
    }

    /// The state of which [`to_bytes`](Self::to_bytes) gave `bytes`.
    ///
    /// # Errors
    /// [`Error::State`] for any other bytes, those of other versions included.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        unseal(OF_ALL, bytes)
    }
}

impl AllSections<'_> {
    /// A state that has these sections.
    #[cfg(feature = "net")]
    pub(crate) fn to_state(&self) -> VecEnvState {
        let slots = self.slots.iter().map(|slot| slot.to_state()).collect();
        VecEnvState { id: self.id.into(), slots, shared: self.shared.0.to_vec() }
    }

    /// Errors unless these are the sections of `num_slots` slots of `id`.
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

    /// The states of the parts, given by id and number of slots.
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

/// The bytes of `format` and `of`, followed by a checksum.
fn seal<S: Serialize>(format: &str, of: &S) -> Result<Vec<u8>> {
    let mut bytes = state::to_bytes(&(format, of))?;
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    Ok(bytes)
}

/// The value that was sealed under `format`. Bytes of another format are not read.
///
/// # Errors
/// [`Error::State`] where the bytes were altered, or are of another format.
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

/// The error of a state that belongs to another vec env.
pub(crate) fn foreign(what: &str, theirs: &str, ours: &str) -> Error {
    Error::State(format!("this state is of another {what}: {theirs}, not {ours}"))
}

/// The error of a state whose vec env has other layers. `theirs` is the state's last
/// section, and `ours` is what this vec env expects.
fn foreign_layer(theirs: &str, ours: &str) -> Error {
    let what = foreign("layer", theirs, ours);
    Error::State(format!("{what}: make the vec env with the options that the state was saved under"))
}
