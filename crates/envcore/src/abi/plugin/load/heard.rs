//! What a plugin says during a call: the host's functions of its report.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::abi::plugin::report::{CALL, cause_of, error_of, phase_from};
use crate::abi::plugin::sys;
use crate::abi::plugin::value::{Allowance, MAX_BYTES, copied, counted, decode_field, decode_within};
use crate::error::{Error, Failure, Phase, Result};
use crate::frame::Frame;
use crate::guard::guard;
use crate::space::Value;

/// The most bytes that are kept of a failure's message.
const MAX_MESSAGE: usize = 1 << 20;

/// A failure that a plugin told of.
pub(super) struct ToldFailure {
    /// Of the chunk, or `CALL`.
    pub(super) slot: usize,
    kind: u32,
    phase: u32,
    pub(super) message: String,
}

impl ToldFailure {
    /// The failure that it is, told in a call about `phase`.
    pub(super) fn failure(&self, phase: Phase) -> Failure {
        Failure::new(phase_from(self.phase, phase), cause_of(self.kind), self.message.as_str())
    }

    /// The error that it is, where no slot failed.
    fn error(self, phase: Phase) -> Error {
        match self.kind {
            sys::CORRAL_ERROR | sys::CORRAL_PANIC => Error::env(self.failure(phase)),
            kind => error_of(kind, self.message),
        }
    }
}

/// What a plugin has said during a call.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) failures: Vec<ToldFailure>,
    pub(super) extras: Vec<(usize, String, Value)>,
    /// Whether it is of the infos, leaf, row, value.
    pub(super) leaves: Vec<(bool, usize, usize, Value)>,
    pub(super) state: Option<Vec<u8>>,
    pub(super) frame: Option<Result<Frame>>,
    pub(super) answer: Option<Value>,
    /// What is left of it in this call.
    pub(super) allowance: Allowance,
}

impl Heard {
    /// What comes of `call`, and what it says.
    pub(super) fn during<R>(call: impl FnOnce(&sys::Report) -> R) -> (R, Heard) {
        let mut heard = Heard::default();
        let result = call(&heard.report());
        (result, heard)
    }

    /// A report that tells `self`: valid while `self` is, and used by nobody else.
    pub(super) fn report(&mut self) -> sys::Report {
        sys::Report {
            context: ptr::from_mut(self).cast(),
            fail: Some(hear_failure),
            info: Some(hear_info),
            leaf: Some(hear_leaf),
            state: Some(hear_state),
            frame: Some(hear_frame),
            answer: Some(hear_answer),
        }
    }

    /// What cannot have been said.
    fn bad(&mut self, error: &Error) {
        let (kind, phase, message) = (sys::CORRAL_ERROR_SPACE, sys::CORRAL_PHASE_CALL, error.to_string());
        self.failures.push(ToldFailure { slot: CALL, kind, phase, message });
    }

    /// The error of a call about `phase` of `id` that failed.
    pub(super) fn error(mut self, id: &str, phase: Phase) -> Error {
        if self.failures.is_empty() {
            nothing_said(id, phase)
        } else {
            self.failures.swap_remove(0).error(phase)
        }
    }
}

/// The error of a call that failed without a word.
pub(super) fn nothing_said(id: &str, phase: Phase) -> Error {
    Error::env(format!("{id}: its plugin's {phase} failed and said nothing"))
}

/// The `Heard` of a report, for one of its functions.
///
/// # Safety
/// `context` must be a report's, which tells it during the call that it came
/// with.
unsafe fn hear(context: *mut c_void, note: impl FnOnce(&mut Heard) -> Result<()>) {
    // SAFETY: the caller guarantees what this function requires.
    let Some(heard) = (unsafe { context.cast::<Heard>().as_mut() }) else { return };
    // No panic may go through a plugin's frames.
    match guard(Phase::Call, || note(heard)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => heard.bad(&error),
        Err(failure) => heard.bad(&Error::env(failure)),
    }
}

unsafe extern "C" fn hear_failure(
    context: *mut c_void,
    slot: usize,
    kind: u32,
    phase: u32,
    message: *const c_char,
    length: usize,
) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            let kept = length.min(MAX_MESSAGE);
            let message = counted(message.cast::<u8>(), kept, MAX_MESSAGE, "bytes of a message")?;
            let message = String::from_utf8_lossy(message).into_owned();
            heard.failures.push(ToldFailure { slot, kind, phase, message });
            Ok(())
        });
    }
}

unsafe extern "C" fn hear_info(context: *mut c_void, row: usize, info: *const sys::Field) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            let field = info.as_ref().ok_or_else(|| Error::Space("an info that is NULL".into()))?;
            let (key, value) = decode_field(field, &mut heard.allowance)?;
            heard.extras.push((row, key, value));
            Ok(())
        });
    }
}

unsafe extern "C" fn hear_leaf(
    context: *mut c_void,
    part: u32,
    leaf: usize,
    row: usize,
    value: *const sys::Value,
) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            let value = value.as_ref().ok_or_else(|| Error::Space("a value that is NULL".into()))?;
            let value = decode_within(value, &mut heard.allowance)?;
            heard.leaves.push((part == sys::CORRAL_PART_INFO, leaf, row, value));
            Ok(())
        });
    }
}

unsafe extern "C" fn hear_state(context: *mut c_void, bytes: *const c_void, length: usize) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            heard.state = Some(copied(counted(bytes.cast(), length, MAX_BYTES, "bytes of a state")?)?);
            Ok(())
        });
    }
}

unsafe extern "C" fn hear_frame(context: *mut c_void, height: usize, width: usize, pixels: *const u8) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            let size = height.checked_mul(width).and_then(|n| n.checked_mul(3));
            let size = size.ok_or_else(|| Error::Space(format!("a picture of {height}×{width}")))?;
            let pixels = counted(pixels, size, MAX_BYTES, "bytes of a picture")?;
            heard.frame = Some(Frame::new(height, width, copied(pixels)?));
            Ok(())
        });
    }
}

unsafe extern "C" fn hear_answer(context: *mut c_void, value: *const sys::Value) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            let value = value.as_ref().ok_or_else(|| Error::Space("an answer that is NULL".into()))?;
            heard.answer = Some(decode_within(value, &mut heard.allowance)?);
            Ok(())
        });
    }
}
