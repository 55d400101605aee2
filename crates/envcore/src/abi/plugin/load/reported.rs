//! What a plugin reports during a call: the host's functions of the report.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::abi::plugin::report::{CALL, cause_of, error_of, phase_from};
use crate::abi::plugin::sys;
use crate::abi::plugin::value::{Allowance, MAX_BYTES, copied, counted, decode_field, decode_within};
use crate::error::{Error, Failure, Phase, Result};
use crate::frame::Frame;
use crate::guard::guard;
use crate::space::Value;

/// How many bytes of a failure's message are kept.
const MAX_MESSAGE: usize = 1 << 20;

/// A failure that a plugin reported.
pub(super) struct ReportedFailure {
    /// The slot's number in the chunk, or `CALL`.
    pub(super) slot: usize,
    kind: u32,
    phase: u32,
    pub(super) message: String,
}

impl ReportedFailure {
    /// The failure, reported in a call about `phase`.
    pub(super) fn failure(&self, phase: Phase) -> Failure {
        Failure::carried_by(phase_from(self.phase, phase), cause_of(self.kind), self.message.clone())
    }

    /// The error, where no slot failed.
    fn error(self, phase: Phase) -> Error {
        match self.kind {
            sys::CORRAL_ERROR | sys::CORRAL_PANIC => Error::env(self.failure(phase)),
            kind => error_of(kind, self.message),
        }
    }
}

/// What a plugin has reported during a call.
#[derive(Default)]
pub(super) struct PluginReport {
    pub(super) failures: Vec<ReportedFailure>,
    pub(super) extras: Vec<(usize, String, Value)>,
    /// Rows of leaves that are not of fixed shape: whether the leaf is an info, the leaf,
    /// the row, the value.
    pub(super) leaves: Vec<(bool, usize, usize, Value)>,
    pub(super) state: Option<Vec<u8>>,
    pub(super) frame: Option<Result<Frame>>,
    pub(super) answer: Option<Value>,
    /// How much the plugin may still report in this call.
    pub(super) allowance: Allowance,
}

impl PluginReport {
    /// The result of `call`, and what the plugin reported during it.
    pub(super) fn during<R>(call: impl FnOnce(&sys::Report) -> R) -> (R, PluginReport) {
        let mut reported = PluginReport::default();
        let result = call(&reported.report());
        (result, reported)
    }

    /// A report that writes to `self`: valid while `self` is, and while nobody else uses it.
    pub(super) fn report(&mut self) -> sys::Report {
        sys::Report {
            context: ptr::from_mut(self).cast(),
            fail: Some(report_failure),
            info: Some(report_info),
            leaf: Some(report_leaf),
            state: Some(report_state),
            frame: Some(report_frame),
            answer: Some(report_answer),
        }
    }

    /// Notes a report that makes no sense.
    fn bad(&mut self, error: &Error) {
        let (kind, phase, message) = (sys::CORRAL_ERROR_SPACE, sys::CORRAL_PHASE_CALL, error.to_string());
        self.failures.push(ReportedFailure { slot: CALL, kind, phase, message });
    }

    /// The error of a call about `phase` of `id` that failed.
    pub(super) fn error(mut self, id: &str, phase: Phase) -> Error {
        if self.failures.is_empty() {
            no_report(id, phase)
        } else {
            self.failures.swap_remove(0).error(phase)
        }
    }
}

/// The error of a call that failed without a report.
pub(super) fn no_report(id: &str, phase: Phase) -> Error {
    Error::env(format!("{id}: its plugin's {phase} failed and said nothing"))
}

/// Calls `note` with the `PluginReport` of a report, for one of the report's functions.
///
/// # Safety
/// `context` must be that of a report, used during the call that got the report.
unsafe fn with_report(context: *mut c_void, note: impl FnOnce(&mut PluginReport) -> Result<()>) {
    // SAFETY: the caller guarantees what this function requires.
    let Some(reported) = (unsafe { context.cast::<PluginReport>().as_mut() }) else { return };
    // No panic may unwind through a plugin's frames.
    match guard(Phase::Call, || note(reported)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => reported.bad(&error),
        Err(failure) => reported.bad(&Error::env(failure)),
    }
}

unsafe extern "C" fn report_failure(
    context: *mut c_void,
    slot: usize,
    kind: u32,
    phase: u32,
    message: *const c_char,
    length: usize,
) {
    // SAFETY: the plugin guarantees what `corral.h` requires.
    unsafe {
        with_report(context, |reported| {
            let kept = length.min(MAX_MESSAGE);
            let message = counted(message.cast::<u8>(), kept, MAX_MESSAGE, "bytes of a message")?;
            let message = String::from_utf8_lossy(message).into_owned();
            reported.failures.push(ReportedFailure { slot, kind, phase, message });
            Ok(())
        });
    }
}

unsafe extern "C" fn report_info(context: *mut c_void, row: usize, info: *const sys::Field) {
    // SAFETY: the plugin guarantees what `corral.h` requires.
    unsafe {
        with_report(context, |reported| {
            let field = info.as_ref().ok_or_else(|| Error::Space("an info that is NULL".into()))?;
            let (key, value) = decode_field(field, &mut reported.allowance)?;
            reported.extras.push((row, key, value));
            Ok(())
        });
    }
}

unsafe extern "C" fn report_leaf(
    context: *mut c_void,
    part: u32,
    leaf: usize,
    row: usize,
    value: *const sys::Value,
) {
    // SAFETY: the plugin guarantees what `corral.h` requires.
    unsafe {
        with_report(context, |reported| {
            let value = value.as_ref().ok_or_else(|| Error::Space("a value that is NULL".into()))?;
            let value = decode_within(value, &mut reported.allowance)?;
            reported.leaves.push((part == sys::CORRAL_PART_INFO, leaf, row, value));
            Ok(())
        });
    }
}

unsafe extern "C" fn report_state(context: *mut c_void, bytes: *const c_void, length: usize) {
    // SAFETY: the plugin guarantees what `corral.h` requires.
    unsafe {
        with_report(context, |reported| {
            reported.state = Some(copied(counted(bytes.cast(), length, MAX_BYTES, "bytes of a state")?)?);
            Ok(())
        });
    }
}

unsafe extern "C" fn report_frame(context: *mut c_void, height: usize, width: usize, pixels: *const u8) {
    // SAFETY: the plugin guarantees what `corral.h` requires.
    unsafe {
        with_report(context, |reported| {
            let size = height.checked_mul(width).and_then(|n| n.checked_mul(3));
            let size = size.ok_or_else(|| Error::Space(format!("a picture of {height}×{width}")))?;
            let pixels = counted(pixels, size, MAX_BYTES, "bytes of a picture")?;
            reported.frame = Some(Frame::new(height, width, copied(pixels)?));
            Ok(())
        });
    }
}

unsafe extern "C" fn report_answer(context: *mut c_void, value: *const sys::Value) {
    // SAFETY: the plugin guarantees what `corral.h` requires.
    unsafe {
        with_report(context, |reported| {
            let value = value.as_ref().ok_or_else(|| Error::Space("an answer that is NULL".into()))?;
            reported.answer = Some(decode_within(value, &mut reported.allowance)?);
            Ok(())
        });
    }
}
