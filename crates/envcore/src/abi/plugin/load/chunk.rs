//! Some slots of a plugin's env, which steps a range of them by one call. What the plugin
//! reports is put into the batch.
//!
//! Above 400 lines because a call and the callbacks that answer it share one state.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

use super::reported::{PluginReport, ReportedFailure, no_report};
use super::{PluginHandle, Table};
use crate::abi::plugin::report::CALL;
use crate::abi::plugin::sys;
use crate::abi::plugin::value::{self, Allowance, call_kind_to};
use crate::begin::Begin;
use crate::buffer::{Addresses, Extra, LeafLayout, RowsMut};
use crate::call::Call;
use crate::error::{Error, Failure, Phase, Result};
use crate::frame::Frame;
use crate::source::{Chunk, ResetArgs, Side, SourceSpec, StepArgs};
use crate::space::check::accept_value;
use crate::space::{Leaf, LeafKind, Options, Space, Value};

/// Memory that is passed to the plugin by its address.
#[derive(Default)]
struct Passed {
    /// The addresses of each leaf's actions.
    actions: Vec<*const c_void>,
    resets: Vec<sys::Reset>,
}

// SAFETY: the struct only holds addresses and does not follow them.
unsafe impl Send for Passed {}

/// Some slots of a plugin's env.
pub(super) struct PluginChunk {
    raw: Table,
    handle: PluginHandle,
    id: String,
    num_slots: usize,
    /// The action's leaves that are not of fixed shape.
    loose_actions: Vec<(usize, LeafKind)>,
    loose_observation: Vec<(usize, LeafKind)>,
    loose_info: Vec<(usize, LeafKind)>,
    /// The layout of rows and actions, by the plugin's spaces.
    layout: ChunkLayout,
    addresses: Addresses,
    passed: Passed,
    reported: PluginReport,
    /// Whether a flag that is neither 0 nor 1 is a failure; else it is taken for 1.
    checks_flags: bool,
}

/// The dtype and number of elements of each leaf of fixed shape.
struct ChunkLayout {
    observation: Vec<LeafLayout>,
    action: Vec<LeafLayout>,
    info: Vec<LeafLayout>,
}

impl ChunkLayout {
    fn of(spec: &SourceSpec) -> Self {
        let leaf = |leaf: &Leaf| leaf.as_fixed().map(|tensor| (tensor.dtype, tensor.elements()));
        let leaves = |space: &Space| space.leaves().iter().map(leaf).collect();
        ChunkLayout {
            observation: leaves(&spec.observation),
            action: leaves(&spec.action),
            info: leaves(&spec.info),
        }
    }
}

/// The slots that a call is about, and their rows.
enum Of<'a> {
    /// The slots of a range, except those that are skipped. The first has row 0.
    Range(&'a Range<usize>, &'a [bool]),
    /// The slots of these resets.
    Resets(&'a [ResetArgs]),
}

impl Of<'_> {
    /// Whether a chunk of `num_slots` slots has these slots, and `rows` rows have one for
    /// each of them.
    fn fits(&self, num_slots: usize, rows: usize) -> bool {
        match self {
            Of::Range(range, skip) => {
                range.end <= num_slots && skip.len() == num_slots && range.len() <= rows
            }
            Of::Resets(resets) => resets.iter().all(|reset| reset.slot < num_slots && reset.row < rows),
        }
    }

    /// The slots and their rows.
    fn each(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (range, skip, resets) = match *self {
            Of::Range(range, skip) => (range.clone(), skip, &[][..]),
            Of::Resets(resets) => (0..0, &[][..], resets),
        };
        let due = range.enumerate().filter(|(_, slot)| !skip[*slot]).map(|(row, slot)| (slot, row));
        due.chain(resets.iter().map(|reset| (reset.slot, reset.row)))
    }

    fn has(&self, slot: usize) -> bool {
        match self {
            Of::Range(range, skip) => range.contains(&slot) && !skip[slot],
            Of::Resets(resets) => resets.iter().any(|reset| reset.slot == slot),
        }
    }
}

/// Whether the environment variable `CORRAL_DEBUG` asks for checks that cost time.
fn is_debugged() -> bool {
    std::env::var_os("CORRAL_DEBUG").is_some_and(|asked| !asked.is_empty() && asked != "0")
}

/// Notes a failure of `slot`, unless one is noted already.
fn note(side: &mut Side, slot: usize, failure: Failure) {
    if side.failures.iter().all(|(known, _)| *known != slot) {
        side.failures.push((slot, failure));
    }
}

/// Notes `failure` of each slot that the call was about.
fn note_all(side: &mut Side, of: &Of<'_>, failure: &Failure) {
    of.each().for_each(|(slot, _)| note(side, slot, failure.clone()));
}

impl PluginChunk {
    /// The `num_slots` slots at `handle`, of the source that has `spec`.
    pub(super) fn new(raw: Table, handle: *mut c_void, spec: &SourceSpec, num_slots: usize) -> Self {
        let loose = |space: &Space| {
            let leaves = space.leaves().iter().enumerate();
            let loose = leaves.filter(|(_, leaf)| leaf.as_fixed().is_none());
            loose.map(|(k, leaf)| (k, leaf.kind.clone())).collect()
        };
        PluginChunk {
            raw,
            handle: PluginHandle(handle),
            id: spec.id.clone(),
            num_slots,
            loose_actions: loose(&spec.action),
            loose_observation: loose(&spec.observation),
            loose_info: loose(&spec.info),
            layout: ChunkLayout::of(spec),
            addresses: Addresses::default(),
            passed: Passed::default(),
            reported: PluginReport::default(),
            checks_flags: is_debugged(),
        }
    }

    /// The failures of slots for which the plugin wrote a flag that is neither 0 nor 1.
    #[cold]
    fn odd_flags(phase: Phase, of: &Of<'_>, rows: &mut RowsMut<'_>) -> Vec<(usize, Failure)> {
        let mut failed = Vec::new();
        for (slot, row) in of.each() {
            if let Some((flag, byte)) = rows.odd_flag(row, phase == Phase::Step) {
                let why = format!("its plugin wrote {byte} to rows->{flag} of row {row}: a flag is 0 or 1");
                failed.push((slot, Failure::error(phase, Error::Space(why))));
            }
        }
        failed
    }

    /// The rows at `addresses`, in the form that the plugin takes.
    fn rows(addresses: &Addresses, len: usize) -> sys::Rows {
        sys::Rows {
            num_rows: len,
            observation: addresses.observation.as_ptr(),
            reward: addresses.reward,
            terminated: addresses.terminated,
            truncated: addresses.truncated,
            info: addresses.info.as_ptr(),
            info_mask: addresses.info_mask.as_ptr(),
        }
    }

    /// Calls the plugin with `rows`, and puts what it reported into the batch. A failure of
    /// the whole call is one of each slot.
    fn call(
        &mut self,
        phase: Phase,
        of: &Of<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
        call: impl FnOnce(&Self, *mut c_void, &sys::Rows, &sys::Report) -> i32,
    ) {
        // The plugin writes by the layout of its own spaces, whatever rows it is given.
        if !rows.are_of(&self.layout.observation, &self.layout.info) || !of.fits(self.num_slots, rows.len()) {
            let why = Error::Space("rows or slots that are not of its plugin's spaces".into());
            return note_all(side, of, &Failure::error(phase, why));
        }
        rows.addresses(&mut self.addresses);
        let raw_rows = Self::rows(&self.addresses, rows.len());
        // Taken out of `self`, so that nobody else uses it while the plugin writes to it.
        let mut reported = std::mem::take(&mut self.reported);
        reported.allowance = Allowance::default();
        let code = call(self, self.handle.0, &raw_rows, &reported.report());
        let odd = if self.checks_flags { Self::odd_flags(phase, of, rows) } else { Vec::new() };
        rows.make_bools();
        let failed = self.take(code, phase, of, rows, side, &mut reported);
        self.reported = reported;
        if let Some(failure) = failed {
            note_all(side, of, &failure);
        }
        odd.into_iter().for_each(|(slot, failure)| note(side, slot, failure));
    }

    #[inline]
    fn take(
        &self,
        code: i32,
        phase: Phase,
        of: &Of<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
        reported: &mut PluginReport,
    ) -> Option<Failure> {
        let silent = reported.extras.is_empty() && reported.leaves.is_empty() && reported.failures.is_empty();
        if silent && code == 0 && self.loose_observation.is_empty() {
            return None;
        }
        // By row, whether the call is about it.
        let mut is_asked = vec![false; rows.len()];
        of.each().for_each(|(_, row)| is_asked[row] = true);
        let has_row = |row: usize| is_asked.get(row) == Some(&true);
        // By row and loose leaf of the observation, whether it was told.
        let leaves = self.loose_observation.len();
        let mut shown = vec![false; rows.len() * leaves];
        let mut misplaced = None;
        for (row, key, value) in reported.extras.drain(..) {
            if has_row(row) {
                side.extras.push(Extra { row: rows.start() + row, key, value });
            } else {
                misplaced = Some(format!("info '{key}' for row {row}, which is not of this call"));
            }
        }
        for (is_info, leaf, row, value) in reported.leaves.drain(..) {
            let loose = if is_info { &self.loose_info } else { &self.loose_observation };
            let Some(place) = loose.iter().position(|(k, _)| *k == leaf && has_row(row)) else {
                misplaced = Some(format!("a value for leaf {leaf} of row {row}, which is not of this call"));
                continue;
            };
            if let Err(why) = accept_value(&value, &loose[place].1) {
                misplaced = Some(format!("leaf {leaf} of row {row}: {why}"));
                continue;
            }
            if !is_info {
                shown[row * leaves + place] = true;
            }
            let mut writer = if is_info { rows.info(row) } else { rows.observation(row) };
            writer.seek(leaf).value(value);
        }
        let mut whole = misplaced.map(|why| Failure::error(phase, Error::Space(why)));
        let mut told = false;
        for told_of in reported.failures.drain(..) {
            let slot = told_of.slot;
            if slot == CALL {
                whole.get_or_insert(told_of.failure(phase));
            } else if !of.has(slot) {
                let why = format!(
                    "its plugin told of a failure of slot {slot}, which is not in this call: {}",
                    told_of.message
                );
                whole.get_or_insert(Failure::error(phase, Error::Space(why)));
            } else {
                told = true;
                note(side, slot, told_of.failure(phase));
            }
        }
        for (slot, row) in of.each().filter(|_| whole.is_none() && !self.loose_observation.is_empty()) {
            let failed = side.failures.iter().any(|(known, _)| *known == slot);
            if !failed && shown[row * leaves..][..leaves].contains(&false) {
                let why = Error::Space("not every leaf of the observation was told".into());
                side.failures.push((slot, Failure::error(phase, why)));
            }
        }
        if code != 0 && !told && whole.is_none() {
            whole = Some(Failure::error(phase, no_report(&self.id, phase)));
        }
        whole
    }

    /// Makes a call without rows.
    fn ask(
        &mut self,
        phase: Phase,
        call: impl FnOnce(*mut c_void, &sys::Report) -> i32,
    ) -> Result<PluginReport> {
        let (code, reported) = PluginReport::during(|report| call(self.handle.0, report));
        if code == 0 && reported.failures.is_empty() {
            Ok(reported)
        } else {
            Err(reported.error(&self.id, phase))
        }
    }

    /// Errors where there is no such slot, because the plugin would not check the number.
    fn check_slot(&self, slot: usize) -> Result<()> {
        if slot < self.num_slots {
            return Ok(());
        }
        Err(Error::Argument(format!("{}: slot {slot} of a chunk of {}", self.id, self.num_slots)))
    }

    fn lacks(&self, what: &str) -> Error {
        Error::Unsupported(format!("{}: its plugin cannot {what}", self.id))
    }
}

impl Chunk for PluginChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        assert!(slots.end <= self.num_slots && skip.len() == self.num_slots, "slots of another chunk");
        assert!(actions.are_of(&self.layout.action, self.num_slots), "actions of another space");
        self.passed.actions.clear();
        self.passed.actions.extend(actions.heads());
        let (mut parts, mut loose) = (value::ValueParts::default(), Vec::new());
        for &(leaf, _) in &self.loose_actions {
            let mut value = |slot: usize| {
                let value = if slots.contains(&slot) && !skip[slot] {
                    actions.loose(leaf, slot)
                } else {
                    &Value::None
                };
                parts.encode(value).unwrap_or(value::NOTHING)
            };
            let values: Vec<sys::Value> = (0..self.num_slots).map(&mut value).collect();
            self.passed.actions[leaf] = values.as_ptr().cast();
            loose.push(values);
        }
        let skipped: *const u8 = skip.as_ptr().cast();
        let range = slots.clone();
        let of = Of::Range(&slots, skip);
        self.call(Phase::Step, &of, rows, side, |chunk, handle, rows, report| {
            let actions = chunk.passed.actions.as_ptr();
            // SAFETY: `chunk` returned the handle. Rows, actions and flags are those of these
            // slots and live during the call, and nobody else uses `rows`.
            unsafe { (chunk.raw.step)(handle, range.start, range.len(), skipped, actions, rows, report) }
        });
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        let of = Of::Resets(resets);
        let mut parts = value::ValueParts::default();
        let options = resets.iter().filter_map(|reset| reset.options.as_deref());
        let options = match options.map(|options| parts.encode_map(options)).collect::<Result<Vec<_>>>() {
            Ok(options) => options,
            Err(error) => return note_all(side, &of, &Failure::error(Phase::Reset, error)),
        };
        let mut given = options.iter();
        let mut raw = |reset: &ResetArgs| {
            let (how, value) = match reset.begin {
                Begin::Own => (sys::CORRAL_BEGIN_OWN, 0),
                Begin::Seed(seed) => (sys::CORRAL_BEGIN_SEED, seed),
                Begin::Index(index) => (sys::CORRAL_BEGIN_INDEX, index as i64),
                Begin::Keep => (sys::CORRAL_BEGIN_KEEP, 0),
            };
            let options = reset.options.as_ref().and_then(|_| given.next());
            sys::Reset {
                slot: reset.slot,
                row: reset.row,
                how,
                rebuild: u32::from(reset.rebuild.is_some()),
                value,
                rebuild_seed: reset.rebuild.unwrap_or(0),
                options: options.map_or(ptr::null(), ptr::from_ref),
            }
        };
        self.passed.resets.clear();
        self.passed.resets.extend(resets.iter().map(&mut raw));
        self.call(Phase::Reset, &of, rows, side, |chunk, handle, rows, report| {
            let resets = &chunk.passed.resets;
            // SAFETY: `chunk` returned the handle. The arguments live during the call, and
            // nobody else uses the rows.
            unsafe { (chunk.raw.reset)(handle, resets.as_ptr(), resets.len(), rows, report) }
        });
    }

    fn check_options(&mut self, options: &Options) -> Result<()> {
        let Some(check) = self.raw.all.check_options else { return Err(self.lacks("take options")) };
        let mut parts = value::ValueParts::default();
        let options = parts.encode_map(options)?;
        // SAFETY: `chunk` returned the handle; the options live during the call.
        self.ask(Phase::Reset, |handle, report| unsafe { check(handle, &options, report) }).map(drop)
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        let Some(save) = self.raw.all.save else { return Err(self.lacks("save its state")) };
        self.check_slot(slot)?;
        // SAFETY: `chunk` returned the handle, and the chunk has this slot.
        let reported = self.ask(Phase::Save, |handle, report| unsafe { save(handle, slot, report) })?;
        reported.state.ok_or_else(|| Error::env(format!("{}: its plugin saved nothing", self.id)))
    }

    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        let Some(load) = self.raw.all.load else { return Err(self.lacks("load a state")) };
        self.check_slot(slot)?;
        let (bytes, length) = (state.as_ptr().cast(), state.len());
        // SAFETY: `chunk` returned the handle; the bytes live during the call.
        self.ask(Phase::Load, |handle, report| unsafe { load(handle, slot, bytes, length, report) }).map(drop)
    }

    fn render(&mut self, slot: usize) -> Result<Frame> {
        let Some(render) = self.raw.all.render else { return Err(self.lacks("draw a picture")) };
        self.check_slot(slot)?;
        // SAFETY: `chunk` returned the handle, and the chunk has this slot.
        let reported = self.ask(Phase::Render, |handle, report| unsafe { render(handle, slot, report) })?;
        reported.frame.unwrap_or_else(|| Err(Error::env(format!("{}: its plugin drew nothing", self.id))))
    }

    fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        let Some(by_name) = self.raw.all.call else { return Err(self.lacks("call anything by name")) };
        self.check_slot(slot)?;
        let mut parts = value::ValueParts::default();
        let args = Value::List(call.args.clone());
        let (args, kwargs) = (parts.encode(&args)?, parts.encode_map(&call.kwargs)?);
        let (name, length) = (call.name.as_ptr().cast(), call.name.len());
        let kind = call_kind_to(call.kind);
        let reported = self.ask(Phase::Call, |handle, report| {
            // SAFETY: `chunk` returned the handle, and the chunk has this slot; the
            // arguments live during the call.
            unsafe { by_name(handle, slot, kind, name, length, &args, &kwargs, report) }
        })?;
        Ok(reported.answer.unwrap_or_default())
    }

    fn debug(&mut self) {
        self.checks_flags = true;
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        let Some(close) = self.raw.all.close else { return Vec::new() };
        let (code, reported) = PluginReport::during(|report| {
            // SAFETY: `chunk` returned the handle.
            unsafe { close(self.handle.0, report) }
        });
        if code != 0 && reported.failures.is_empty() {
            return vec![(0, Failure::error(Phase::Close, no_report(&self.id, Phase::Close)))];
        }
        let slot = |told: &ReportedFailure| if told.slot < self.num_slots { told.slot } else { 0 };
        reported.failures.iter().map(|told| (slot(told), told.failure(Phase::Close))).collect()
    }
}

impl Drop for PluginChunk {
    fn drop(&mut self) {
        // SAFETY: `chunk` returned the handle, which only this struct owns.
        unsafe { (self.raw.free_chunk)(self.handle.0) }
    }
}
