//! An env of a plugin, with its options.

use std::ffi::c_void;
use std::ptr;

use serde_json::Value as Json;

use super::chunk::PluginChunk;
use super::reported::{PluginReport, ReportedFailure};
use super::{Listed, PluginHandle, Table};
use crate::abi::plugin::space::{self, MAX_TEXT, owned_text};
use crate::abi::plugin::{sys, value};
use crate::begin::Begin;
use crate::caps::Caps;
use crate::env_source::OPTIONAL;
use crate::error::{Error, Phase, Result, SlotError};
use crate::source::{Chunk, Source, SourceSpec};

/// An env of a plugin with its options, which can fill slots.
pub struct PluginSource {
    made: MadeSource,
    spec: SourceSpec,
}

/// The source that `make` returned; freed when dropped.
struct MadeSource {
    raw: Table,
    handle: PluginHandle,
}

impl Drop for MadeSource {
    fn drop(&mut self) {
        // SAFETY: `make` returned the handle, which only this struct owns.
        unsafe { (self.raw.free_source)(self.handle.0) }
    }
}

impl PluginSource {
    /// The source that `make` returned for the env `listed`. Messages call it `id`.
    ///
    /// # Errors
    /// [`Error::Space`], [`Error::Library`] where the source's spec makes no sense.
    ///
    /// # Safety
    /// The plugin at `raw` must have returned `handle`, and from then on only this value
    /// may own the handle.
    pub(super) unsafe fn new(raw: Table, handle: *mut c_void, id: String, listed: &Listed) -> Result<Self> {
        let made = MadeSource { raw, handle: PluginHandle(handle) };
        // SAFETY: the caller guarantees the handle, and the plugin what `corral.h` requires.
        let spec = unsafe {
            let spec = (raw.spec)(handle).as_ref();
            spec_of(raw, spec.ok_or_else(|| Error::Space(format!("{id}: `spec` gave NULL")))?, id, listed)
        };
        Ok(PluginSource { made, spec: spec? })
    }

    fn chunk_of(&self, first_slot: usize, seeds: &[i64], num_slots: usize) -> Result<Box<dyn Chunk>> {
        let MadeSource { raw, handle: source } = &self.made;
        let seeds_at = if seeds.is_empty() { ptr::null() } else { seeds.as_ptr() };
        let (handle, reported) = PluginReport::during(|report| {
            // SAFETY: `make` returned the source; the arguments live during the
            // call.
            unsafe { (raw.chunk)(source.0, seeds_at, num_slots, report) }
        });
        if !handle.is_null() {
            return Ok(Box::new(PluginChunk::new(*raw, handle, &self.spec, num_slots)));
        }
        let of_slots = |told: &&ReportedFailure| told.slot < seeds.len();
        let slot_error = |told: &ReportedFailure| {
            let (slot, begin) = (first_slot + told.slot, Begin::Seed(seeds[told.slot]));
            SlotError::in_build(self.spec.id.as_str(), slot, begin, told.failure(Phase::Build))
        };
        let slots: Vec<_> = reported.failures.iter().filter(of_slots).map(slot_error).collect();
        Err(if slots.is_empty() { reported.error(&self.spec.id, Phase::Build) } else { Error::Slots(slots) })
    }
}

/// The spec that a plugin declared in `spec`.
///
/// # Safety
/// `spec` must be as `corral.h` says.
unsafe fn spec_of(raw: Table, spec: &sys::Spec, id: String, listed: &Listed) -> Result<SourceSpec> {
    if spec.size < size_of::<sys::Spec>() {
        let (theirs, ours) = (spec.size, size_of::<sys::Spec>());
        return Err(Error::Library(format!(
            "{id}: `size` of its spec is {theirs}, where {ours} belongs: sizeof(corral_spec)"
        )));
    }
    let known = Caps::ENV | OPTIONAL;
    // SAFETY: the caller guarantees what this function requires.
    let mut about = unsafe {
        SourceSpec {
            observation: space::decode(&spec.observation, &format!("{id}: observation"))?,
            action: space::decode(&spec.action, &format!("{id}: action"))?,
            info: space::decode(&spec.info, &format!("{id}: info"))?,
            // The host's runner can do the rest for every env.
            caps: Caps::from_bits_truncate(spec.caps) & known | (Caps::ENV - Caps::SEED - Caps::INDEX),
            autoreset: None,
            max_episode_steps: listed.max_episode_steps,
            metadata: value::decode_map(&spec.metadata)
                .map_err(|error| Error::Space(format!("{id}: `metadata` of its spec: {error}")))?,
            num_agents: spec.num_agents.max(1),
            config: owned_text(spec.config, MAX_TEXT, &format!("{id}: `config` of its spec"))?,
            id,
        }
    };
    let id = &about.id;
    if about.config.is_empty() {
        about.config = "null".into();
    }
    if !matches!(serde_json::from_str(&about.config), Ok(Json::Object(_) | Json::Null)) {
        let why = format!("{id}: `config` of its spec is no JSON object: '{}'", about.config);
        return Err(Error::Library(why));
    }
    if about.action.leaves().is_empty() {
        return Err(Error::Space(format!("{id}: its action space has no leaves")));
    }
    let all = raw.all;
    for (cap, is_there, what) in [
        (Caps::SAVE, all.save.is_some() && all.load.is_some(), "save and load"),
        (Caps::RENDER, all.render.is_some(), "render"),
        (Caps::OPTIONS, all.check_options.is_some(), "check_options"),
        (Caps::CALL, all.call.is_some(), "call"),
        (Caps::ANSI, about.caps.contains(Caps::CALL), "call"),
    ] {
        if about.caps.contains(cap) && !is_there {
            let why = format!("{id}: `caps` of its spec has {cap:?}, but its plugin's table has no {what}");
            return Err(Error::Library(why));
        }
    }
    Ok(about)
}

impl Source for PluginSource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        // Without seeds a plugin would make a vacant chunk.
        if seeds.is_empty() {
            return Err(Error::Argument(format!("{}: a chunk has at least 1 slot", self.spec.id)));
        }
        self.chunk_of(first_slot, seeds, seeds.len())
    }

    fn vacant(&self, slot: usize) -> Result<Box<dyn Chunk>> {
        self.chunk_of(slot, &[], 1)
    }
}
