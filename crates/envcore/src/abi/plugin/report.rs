//! Conversion of errors between host and plugin, both ways.

// Each side of the boundary is a feature of this crate.
#![cfg_attr(not(all(feature = "export", feature = "load")), allow(dead_code))]

use std::ffi::c_char;

use super::sys;
use crate::error::{Cause, Error, Failure, Phase};

/// In place of a slot, says that the whole call failed.
pub(super) const CALL: usize = sys::CORRAL_NO_SLOT;

/// The number of an error's kind.
pub(super) fn kind_of(error: &Error) -> u32 {
    match error {
        Error::Action(_) | Error::Argument(_) | Error::ArgumentType(_) => sys::CORRAL_ERROR_ARGUMENT,
        Error::UnknownOption(_) => sys::CORRAL_ERROR_UNKNOWN_OPTION,
        Error::OptionValue(_) => sys::CORRAL_ERROR_OPTION_VALUE,
        Error::Space(_) => sys::CORRAL_ERROR_SPACE,
        Error::Unsupported(_) => sys::CORRAL_ERROR_UNSUPPORTED,
        Error::State(_) => sys::CORRAL_ERROR_STATE,
        Error::Memory(_) => sys::CORRAL_ERROR_MEMORY,
        Error::NeedsReset(_) => sys::CORRAL_ERROR_NEEDS_RESET,
        Error::UnknownName(_) => sys::CORRAL_ERROR_UNKNOWN_NAME,
        _ => sys::CORRAL_ERROR,
    }
}

/// The error of a kind that the other side reported.
pub(super) fn error_of(kind: u32, message: String) -> Error {
    match kind {
        sys::CORRAL_ERROR_ARGUMENT => Error::Argument(message),
        sys::CORRAL_ERROR_UNKNOWN_OPTION => Error::UnknownOption(message),
        sys::CORRAL_ERROR_OPTION_VALUE => Error::OptionValue(message),
        sys::CORRAL_ERROR_SPACE => Error::Space(message),
        sys::CORRAL_ERROR_UNSUPPORTED => Error::Unsupported(message),
        sys::CORRAL_ERROR_STATE => Error::State(message),
        sys::CORRAL_ERROR_NEEDS_RESET => Error::NeedsReset(message),
        sys::CORRAL_ERROR_UNKNOWN_NAME => Error::UnknownName(message),
        _ => Error::env(message),
    }
}

const PHASES: [Phase; 7] =
    [Phase::Build, Phase::Reset, Phase::Step, Phase::Render, Phase::Save, Phase::Load, Phase::Close];

/// The number of `phase`.
pub(super) fn phase_to(phase: Phase) -> u32 {
    PHASES.iter().position(|one| *one == phase).map_or(sys::CORRAL_PHASE_CALL, |k| k as u32 + 1)
}

/// The phase of this number; `call`, the phase of the call, for any other number.
pub(super) fn phase_from(number: u32, call: Phase) -> Phase {
    let index = (number as usize).checked_sub(1);
    index.and_then(|index| PHASES.get(index)).copied().unwrap_or(call)
}

/// The cause of a failure of this kind.
pub(super) fn cause_of(kind: u32) -> Cause {
    if kind == sys::CORRAL_PANIC { Cause::Panic } else { Cause::Error }
}

impl sys::Report {
    /// Reports a failure of `slot`, or of the call.
    ///
    /// # Safety
    /// The report must be the host's report of this call.
    pub(super) unsafe fn tell(&self, slot: usize, kind: u32, phase: u32, message: &str) {
        if let Some(fail) = self.fail {
            let text = message.as_ptr().cast::<c_char>();
            // SAFETY: the caller guarantees the report; the message lives during the call.
            unsafe { fail(self.context, slot, kind, phase, text, message.len()) }
        }
    }

    /// Reports `failure` of `slot`.
    ///
    /// # Safety
    /// As [`tell`](Self::tell).
    pub(super) unsafe fn tell_failure(&self, slot: usize, failure: &Failure) {
        let panicked = failure.cause == Cause::Panic;
        let kind = if panicked { sys::CORRAL_PANIC } else { sys::CORRAL_ERROR };
        // SAFETY: the caller guarantees what this function requires.
        unsafe { self.tell(slot, kind, phase_to(failure.phase), &failure.carried()) }
    }

    /// Reports `error` as one of the call, or of the slots that the error names.
    ///
    /// # Safety
    /// As [`tell`](Self::tell).
    pub(super) unsafe fn tell_error(&self, error: &Error) {
        // SAFETY: the caller guarantees what this function requires.
        unsafe {
            match error {
                Error::Slots(slots) => {
                    slots.iter().for_each(|slot| self.tell_failure(slot.slot, &slot.failure));
                }
                Error::Env(cause) => match cause.downcast_ref::<Failure>() {
                    Some(failure) => self.tell_failure(CALL, failure),
                    None => self.tell(CALL, sys::CORRAL_ERROR, sys::CORRAL_PHASE_CALL, &cause.to_string()),
                },
                other => self.tell(CALL, kind_of(other), sys::CORRAL_PHASE_CALL, &other.to_string()),
            }
        }
    }
}
