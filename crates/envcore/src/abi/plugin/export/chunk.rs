//! The functions of a plugin's chunk.
//!
//! Above 400 lines because the functions share one handle and what checks its arguments.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use super::{SourceHandle, conclude};
use crate::abi::handle::{CallStop, Handle, Misuse};
use crate::abi::plugin::sys;
use crate::abi::plugin::value::{self, call_kind_from, decode_map, slice};
use crate::begin::Begin;
use crate::buffer::{Addresses, HostActions, HostRows};
use crate::call::Call;
use crate::error::{Error, Failure, Phase, Result};
use crate::guard::guard;
use crate::source::{Chunk, ResetArgs, Side, StepArgs};
use crate::space::Value;

/// A chunk, and buffers for what a host passes and gets back.
struct ChunkHandle {
    chunk: Box<dyn Chunk>,
    rows: HostRows,
    actions: HostActions,
    addresses: Addresses,
    num_slots: usize,
    /// The resets of the current call.
    resets: Vec<ResetArgs>,
    side: Side,
}

/// Errors unless a chunk of `num_slots` slots has `count` slots from `first` on.
fn check(first: usize, count: usize, num_slots: usize) -> Result<()> {
    if first <= num_slots && count <= num_slots - first {
        return Ok(());
    }
    let end = first.saturating_add(count);
    Err(Error::Argument(format!("slots {first} to {end} of a chunk of {num_slots}")))
}

/// Does `work` with the chunk at `handle` under a guard, and tells `report` of failures
/// and of what has no place in the rows.
///
/// # Safety
/// `handle` must be null or a chunk that [`chunk`] returned, which is not freed and in
/// no other call; `report` must be null or the host's report of this call.
unsafe fn with_chunk(
    handle: *mut c_void,
    report: *const sys::Report,
    phase: Phase,
    work: impl FnOnce(&mut ChunkHandle) -> Result<()>,
) -> i32 {
    // SAFETY: the caller guarantees what this function requires.
    let mut hand = match unsafe { Handle::<ChunkHandle>::take(handle) } {
        Ok(hand) => hand,
        Err(misuse) => {
            let why = match misuse {
                Misuse::Null => "a chunk that is NULL",
                Misuse::Strange => "this is no chunk that `chunk` gave, or it was freed",
                Misuse::Busy => "another thread is in a call of this chunk: one at a time",
            };
            // SAFETY: the caller guarantees what this function requires.
            unsafe { conclude(report, Ok(Err(Error::Argument(why.into())))) };
            return -1;
        }
    };
    let outcome = match hand.work(phase, work) {
        Ok(()) => Ok(Ok(())),
        Err(CallStop::Failed(error)) => Ok(Err(error)),
        Err(CallStop::Panicked(failure)) => Err(failure),
        Err(CallStop::Poisoned(why)) => Ok(Err(Error::env(format!("this chunk is not used again: {why}")))),
    };
    let handle = hand.object();
    // SAFETY: the caller guarantees what this function requires.
    let told = guard(phase, || unsafe { tell(handle, report) }).and_then(|told| Ok(Ok(told?)));
    let told = told.or_else(|failure| Ok::<_, Failure>(Err(Error::env(failure))));
    // SAFETY: the caller guarantees what this function requires.
    let good = unsafe { conclude(report, outcome) & conclude(report, told) };
    if good { 0 } else { -1 }
}

/// Tells `report` of failures and of what has no place in the rows.
///
/// # Safety
/// `report` must be null or the host's report of this call.
unsafe fn tell(handle: &mut ChunkHandle, report: *const sys::Report) -> Result<(), Failure> {
    // SAFETY: the caller guarantees what this function requires.
    let Some(report) = (unsafe { report.as_ref() }) else { return Ok(()) };
    for extra in handle.side.extras.drain(..) {
        let mut parts = value::ValueParts::default();
        let value = parts.encode(&extra.value).map_err(|error| Failure::error(Phase::Step, error))?;
        let field = value::named(&extra.key, &value);
        if let Some(info) = report.info {
            // SAFETY: the caller guarantees the report; what the field points to is alive.
            unsafe { info(report.context, extra.row, &field) }
        }
    }
    let mut told = Ok(());
    handle.rows.take_loose(|is_info, leaf, row, value| {
        let part = if is_info { sys::CORRAL_PART_INFO } else { sys::CORRAL_PART_OBSERVATION };
        let mut parts = value::ValueParts::default();
        match (parts.encode(&value), report.leaf) {
            // SAFETY: the caller guarantees the report; what the value points to is alive.
            (Ok(value), Some(tell)) => unsafe { tell(report.context, part, leaf, row, &value) },
            (Err(error), _) => told = Err(Failure::error(Phase::Step, error)),
            _ => {}
        }
    });
    for (slot, failure) in handle.side.failures.drain(..) {
        // SAFETY: the caller guarantees what this function requires.
        unsafe { report.tell_failure(slot, &failure) }
    }
    told
}

pub(super) unsafe extern "C" fn chunk(
    source: *mut c_void,
    seeds: *const i64,
    num_slots: usize,
    report: *const sys::Report,
) -> *mut c_void {
    let mut made = ptr::null_mut();
    let outcome = guard(Phase::Build, || {
        // SAFETY: the host guarantees that this is a source of `make`, or null.
        let handle = unsafe { source.cast::<SourceHandle>().as_ref() };
        let source = &handle.ok_or_else(|| Error::Argument("a source that is NULL".into()))?.source;
        let chunk = if seeds.is_null() {
            if num_slots != 1 {
                return Err(Error::Unsupported("a chunk without envs has one slot".into()));
            }
            source.vacant(0)?
        } else {
            // SAFETY: the host guarantees that there are `num_slots` seeds.
            source.chunk(0, unsafe { slice(seeds, num_slots) })?
        };
        let spec = source.spec();
        let handle = ChunkHandle {
            chunk,
            rows: HostRows::new(&spec.observation, &spec.info),
            actions: HostActions::new(&spec.action, num_slots),
            addresses: Addresses::default(),
            num_slots,
            resets: Vec::new(),
            side: Side::default(),
        };
        made = Handle::open(handle);
        Ok(())
    });
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { conclude(report, outcome) };
    made
}

/// Notes where the host's rows are. Returns how many there are.
///
/// # Safety
/// `rows` must be the host's rows of this call, with as many leaves of the observation
/// and of the infos as the chunk has.
unsafe fn locate(handle: &mut ChunkHandle, rows: *const sys::Rows) -> Result<usize> {
    // SAFETY: the caller guarantees what this function requires.
    let rows = unsafe { rows.as_ref() }.ok_or_else(|| Error::Argument("rows that are NULL".into()))?;
    let (observation, info) = handle.rows.leaves();
    let to = &mut handle.addresses;
    let copy = |to: &mut Vec<*mut c_void>, from: *const *mut c_void, count| {
        to.clear();
        // SAFETY: the caller guarantees what this function requires.
        to.extend_from_slice(unsafe { slice(from, count) });
    };
    copy(&mut to.observation, rows.observation, observation);
    copy(&mut to.info, rows.info, info);
    to.info_mask.clear();
    // SAFETY: the caller guarantees what this function requires.
    to.info_mask.extend_from_slice(unsafe { slice(rows.info_mask, info) });
    (to.reward, to.terminated, to.truncated) = (rows.reward, rows.terminated, rows.truncated);
    Ok(rows.num_rows)
}

/// How the host's `reset` begins a slot; `None` for no way to begin.
#[inline]
fn begin_of(reset: &sys::Reset) -> Option<Begin> {
    match reset.how {
        sys::CORRAL_BEGIN_OWN => Some(Begin::Own),
        sys::CORRAL_BEGIN_SEED => Some(Begin::Seed(reset.value)),
        sys::CORRAL_BEGIN_INDEX => Some(Begin::Index(reset.value as u64)),
        sys::CORRAL_BEGIN_KEEP => Some(Begin::Keep),
        _ => None,
    }
}

/// Whether a chunk of `num_slots` slots and `num_rows` rows can do `reset`.
#[inline]
fn is_possible(reset: &sys::Reset, num_slots: usize, num_rows: usize) -> bool {
    reset.row < num_rows && reset.slot < num_slots && begin_of(reset).is_some()
}

/// The error for resets of which a chunk of `num_slots` slots and `num_rows` rows cannot do one.
#[cold]
fn impossible(resets: &[sys::Reset], num_slots: usize, num_rows: usize) -> Error {
    let Some(bad) = resets.iter().find(|reset| !is_possible(reset, num_slots, num_rows)) else {
        return Error::Argument("resets that change during the call".into());
    };
    if bad.row >= num_rows {
        return Error::Argument(format!("row {} of {num_rows}", bad.row));
    }
    let no_way = Error::Argument(format!("{} is no way to begin", bad.how));
    check(bad.slot, 1, num_slots).err().unwrap_or(no_way)
}

/// What the host's `reset` asks for, but for its options.
#[inline]
fn reset_of(reset: &sys::Reset) -> ResetArgs {
    let rebuild = (reset.rebuild != 0).then_some(reset.rebuild_seed);
    let begin = begin_of(reset).unwrap_or_default();
    ResetArgs { begin, rebuild, ..ResetArgs::own(reset.slot, reset.row) }
}

pub(super) unsafe extern "C" fn reset(
    chunk: *mut c_void,
    resets: *const sys::Reset,
    num_resets: usize,
    rows: *const sys::Rows,
    report: *const sys::Report,
) -> i32 {
    let work = |handle: &mut ChunkHandle| {
        if resets.is_null() && num_resets > 0 {
            return Err(Error::Argument("resets that are NULL".into()));
        }
        // SAFETY: the host guarantees what `corral.h` requires.
        let len = unsafe { locate(handle, rows) }?;
        // SAFETY: the host guarantees that there are `num_resets` resets.
        let resets = unsafe { slice(resets, num_resets) };
        let (num_slots, mut possible, mut has_options) = (handle.num_slots, true, false);
        handle.resets.clear();
        // In one pass, which is quicker than to look at each reset once more.
        handle.resets.extend(resets.iter().map(|reset| {
            possible &= is_possible(reset, num_slots, len);
            has_options |= !reset.options.is_null();
            reset_of(reset)
        }));
        if !possible {
            return Err(impossible(resets, num_slots, len));
        }
        for (args, reset) in handle.resets.iter_mut().zip(resets).filter(|_| has_options) {
            if !reset.options.is_null() {
                // SAFETY: the host guarantees that the options are valid in this call.
                args.options = Some(Arc::new(unsafe { decode_map(reset.options) }?));
            }
        }
        // SAFETY: the host guarantees that the rows belong to this call.
        let mut rows = unsafe { handle.rows.at(&handle.addresses, len) };
        handle.chunk.reset(&handle.resets, &mut rows, &mut handle.side);
        Ok(())
    };
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { with_chunk(chunk, report, Phase::Reset, work) }
}

pub(super) unsafe extern "C" fn step(
    chunk: *mut c_void,
    first_slot: usize,
    num_slots: usize,
    skip: *const u8,
    actions: *const *const c_void,
    rows: *const sys::Rows,
    report: *const sys::Report,
) -> i32 {
    let work = |handle: &mut ChunkHandle| {
        check(first_slot, num_slots, handle.num_slots)?;
        // SAFETY: the host guarantees what `corral.h` requires.
        let len = unsafe { locate(handle, rows) }?;
        if len < num_slots || skip.is_null() {
            return Err(Error::Argument(format!("{len} rows for {num_slots} slots")));
        }
        // SAFETY: the host guarantees a byte per slot, which is 0 or 1.
        let skip = unsafe { slice(skip.cast::<bool>(), handle.num_slots) };
        // SAFETY: the host guarantees an address per leaf.
        let actions = unsafe { slice(actions, handle.actions.leaves()) };
        for leaf in handle.actions.loose() {
            for slot in (first_slot..first_slot + num_slots).filter(|slot| !skip[*slot]) {
                // SAFETY: the host guarantees a value for each slot.
                let value = unsafe { value::decode(&*actions[leaf].cast::<sys::Value>().add(slot)) }?;
                handle.actions.set_loose(leaf, slot, value);
            }
        }
        // SAFETY: the host guarantees that rows and actions belong to this call.
        let (mut rows, actions) =
            unsafe { (handle.rows.at(&handle.addresses, len), handle.actions.at(actions)) };
        let slots = first_slot..first_slot + num_slots;
        handle.chunk.step(slots, skip, StepArgs(actions), &mut rows, &mut handle.side);
        Ok(())
    };
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { with_chunk(chunk, report, Phase::Step, work) }
}

pub(super) unsafe extern "C" fn check_options(
    chunk: *mut c_void,
    options: *const sys::Value,
    report: *const sys::Report,
) -> i32 {
    let work = |handle: &mut ChunkHandle| {
        // SAFETY: the host guarantees what `corral.h` requires.
        let options = unsafe { decode_map(options) }?;
        handle.chunk.check_options(&options)
    };
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { with_chunk(chunk, report, Phase::Reset, work) }
}

pub(super) unsafe extern "C" fn save(chunk: *mut c_void, slot: usize, report: *const sys::Report) -> i32 {
    let work = |handle: &mut ChunkHandle| {
        check(slot, 1, handle.num_slots)?;
        let bytes = handle.chunk.save(slot)?;
        // SAFETY: the host guarantees that the report is that of this call.
        if let Some((state, context)) = unsafe { report.as_ref() }.and_then(|r| Some((r.state?, r.context))) {
            // SAFETY: the report is valid, and the bytes live during the call.
            unsafe { state(context, bytes.as_ptr().cast(), bytes.len()) }
        }
        Ok(())
    };
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { with_chunk(chunk, report, Phase::Save, work) }
}

pub(super) unsafe extern "C" fn load(
    chunk: *mut c_void,
    slot: usize,
    state: *const c_void,
    length: usize,
    report: *const sys::Report,
) -> i32 {
    let work = |handle: &mut ChunkHandle| {
        check(slot, 1, handle.num_slots)?;
        // SAFETY: the host guarantees `length` bytes.
        handle.chunk.load(slot, unsafe { slice(state.cast::<u8>(), length) })
    };
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { with_chunk(chunk, report, Phase::Load, work) }
}

pub(super) unsafe extern "C" fn render(chunk: *mut c_void, slot: usize, report: *const sys::Report) -> i32 {
    let work = |handle: &mut ChunkHandle| {
        check(slot, 1, handle.num_slots)?;
        let picture = handle.chunk.render(slot)?;
        // SAFETY: the host guarantees that the report is that of this call.
        if let Some((frame, context)) = unsafe { report.as_ref() }.and_then(|r| Some((r.frame?, r.context))) {
            // SAFETY: the report is valid, and the pixels live during the call.
            unsafe { frame(context, picture.height(), picture.width(), picture.pixels().as_ptr()) }
        }
        Ok(())
    };
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { with_chunk(chunk, report, Phase::Render, work) }
}

pub(super) unsafe extern "C" fn call(
    chunk: *mut c_void,
    slot: usize,
    kind: u32,
    name: *const c_char,
    name_length: usize,
    args: *const sys::Value,
    kwargs: *const sys::Value,
    report: *const sys::Report,
) -> i32 {
    let work = |handle: &mut ChunkHandle| {
        check(slot, 1, handle.num_slots)?;
        // SAFETY: the host guarantees what `corral.h` requires.
        let call = unsafe {
            let args = match args.as_ref().map(|args| value::decode(args)).transpose()? {
                None | Some(Value::None) => Vec::new(),
                Some(Value::List(args)) => args,
                Some(other) => return Err(Error::Argument(format!("{other:?} where a list belongs"))),
            };
            let name = value::text(name, name_length, &mut value::Allowance::default())?;
            Call { kind: call_kind_from(kind)?, name: name.into(), args, kwargs: decode_map(kwargs)? }
        };
        let value = handle.chunk.call(slot, &call)?;
        let mut parts = value::ValueParts::default();
        let encoded = parts.encode(&value)?;
        // SAFETY: the host guarantees that the report is that of this call.
        if let Some((answer, context)) = unsafe { report.as_ref() }.and_then(|r| Some((r.answer?, r.context)))
        {
            // SAFETY: the report is valid, and the value lives during the call.
            unsafe { answer(context, &encoded) }
        }
        Ok(())
    };
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { with_chunk(chunk, report, Phase::Call, work) }
}

pub(super) unsafe extern "C" fn close(chunk: *mut c_void, report: *const sys::Report) -> i32 {
    let work = |handle: &mut ChunkHandle| {
        handle.side.failures = handle.chunk.close();
        Ok(())
    };
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { with_chunk(chunk, report, Phase::Close, work) }
}

pub(super) unsafe extern "C" fn free_chunk(chunk: *mut c_void) {
    // SAFETY: the host guarantees that `chunk` returned it and nobody uses it again.
    if let Ok(hand) = unsafe { Handle::<ChunkHandle>::take(chunk) } {
        hand.close();
    }
}
