//! The errors that `libenv_last_error` tells.

use std::cell::RefCell;
use std::ffi::CString;
use std::io::Write;

/// How many errors of an instance are written to stderr.
const TOLD: u32 = 10;

/// The errors of an instance.
#[derive(Default)]
pub(super) struct Errors {
    pub(super) last: Option<CString>,
    told: u32,
}

impl Errors {
    /// Keeps an error, and writes the first few to stderr.
    pub(super) fn note(&mut self, call: &str, why: &str) {
        let text = format!("{call}: {why}");
        self.told = self.told.saturating_add(1);
        if self.told <= TOLD {
            let rest = if self.told == TOLD { "\ncorral: more only by libenv_last_error" } else { "" };
            // Ignores failures, because a host may have closed stderr.
            let _ = writeln!(std::io::stderr(), "corral: {text}{rest}");
        }
        self.last = CString::new(text.replace('\0', "\\0")).ok();
    }
}

thread_local! {
    /// The errors of this thread's calls without an instance.
    pub(super) static ERRORS: RefCell<Errors> = RefCell::default();
}

/// Keeps an error of a call without an instance.
pub(super) fn note_here(call: &str, why: &str) {
    // In a thread that is ending the variable may be gone.
    let _ = ERRORS.try_with(|errors| {
        let mut errors = errors.borrow_mut();
        errors.told = 0;
        errors.note(call, why);
    });
}
