//! The panic guard, which keeps panics of environments from runners.
//!
//! A caught panic becomes a [`Failure`] with its message, its place in the source and, where
//! the environment variable `RUST_BACKTRACE` asks for it, its backtrace. While a thread is
//! inside a guard, the process's panic hook prints nothing for that thread, because the error
//! carries the report to the user.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::error::{Failure, Phase};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
    static CALLS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The calls that led here, as `RUST_BACKTRACE` asks for them: in full, in short, or not.
fn calls() -> Option<String> {
    let asked = std::env::var_os("RUST_BACKTRACE").filter(|asked| asked != "0")?;
    let calls = Backtrace::force_capture();
    Some(if asked == "full" { format!("{calls:#}") } else { calls.to_string() })
}

static HOOK: Once = Once::new();

fn install_hook() {
    HOOK.call_once(|| {
        let outer = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if GUARDED.get() {
                let place = info.location().map(ToString::to_string).unwrap_or_default();
                PLACE.with(|cell| cell.replace(place));
                CALLS.with(|cell| cell.replace(calls()));
            } else {
                outer(info);
            }
        }));
    });
}

/// Runs `work`; a panic becomes a failure in `phase`.
pub(crate) fn guard<R>(phase: Phase, work: impl FnOnce() -> R) -> Result<R, Failure> {
    install_hook();
    let result = GUARDED.with(|guarded| {
        let outer = guarded.replace(true);
        let result = catch_unwind(AssertUnwindSafe(work));
        guarded.set(outer);
        result
    });
    result.map_err(|payload| {
        let mut failure = Failure::panic(phase, payload.as_ref());
        let place = PLACE.with(RefCell::take);
        if !place.is_empty() {
            failure.message = format!("{} (at {place})", failure.message);
        }
        failure.backtrace = CALLS.with(RefCell::take);
        // The payload is leaked, because it may itself panic when dropped.
        std::mem::forget(payload);
        failure
    })
}

/// Drops `value`, whatever its destructor does.
pub(crate) fn drop_guarded<T>(value: T) {
    let _ = guard(Phase::Close, || drop(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Cause;

    #[test]
    fn a_panic_becomes_a_failure_with_its_message_and_place() {
        let failure = guard(Phase::Step, || panic!("odd number {}", 3)).unwrap_err();
        assert_eq!(failure.cause, Cause::Panic);
        assert!(failure.message.starts_with("odd number 3 (at "), "{}", failure.message);
        assert!(failure.message.contains("guard.rs:"), "{}", failure.message);
        assert_eq!(guard(Phase::Step, || 5).unwrap(), 5);
    }
}
