//! The export of environments to hosts of libenv (gym3).
//!
//! [`export_libenv!`](crate::export_libenv) gives a library the seven functions of
//! libenv over a table of envs. A host that knows only libenv finds an ordinary
//! library: `first`, one reward, and the next episode's first observation in the row
//! that ended the last episode. All else is optional: options (`env_id`, `seed`,
//! `index`, `indices`, `max_episode_steps`, `num_threads`, `cast` and the env's own),
//! infos (`spaces`), and five more functions: procgen's `get_state` and `set_state`,
//! `libenv_last_error`, `corral_libenv_reset`, `corral_libenv_options`.
//!
//! A mistake of the host does not end the host, as far as a library can notice the
//! mistake. Errors are kept for `libenv_last_error`, and the first few of each instance
//! are written to stderr. A `libenv_act` that is refused changes nothing, and
//! `libenv_observe` then shows the same again. An env that fails is restarted, shown
//! as a `first`, and reported in the same way. After a panic outside every env the
//! instance refuses all further calls.
//!
//! A leaf that has no dtype in libenv is refused (`wire_leaf`). With `cast=1`, floats are
//! rounded to float32 and labels are limited to int32's range.

mod errors;
mod host;
mod instance;
mod options;
mod queue;
mod spaces;
mod sums;
mod wire_leaf;

use std::ffi::{c_char, c_int, c_void};
use std::io::Write;
use std::ptr;

use super::sys;
use crate::abi::handle::{CallStop, Handle, InHand, Misuse};
use crate::entry::Entry;
use crate::error::{Error, Phase, Result};
use crate::guard::guard;
use errors::{ERRORS, Errors, note_here};
use instance::ExportedInstance;
#[doc(hidden)]
pub use options::options_of;

/// Gives a library libenv's functions over a table, which is a `&'static [Entry]`. See
/// [`export`](crate::abi::libenv::export).
#[macro_export]
macro_rules! export_libenv {
    ($table:expr) => {
        #[allow(unsafe_code)]
        const _: () = {
            use ::std::ffi::{c_char, c_int, c_void};
            use $crate::abi::libenv::{export, sys};

            #[unsafe(no_mangle)]
            pub extern "C" fn libenv_version() -> c_int {
                sys::VERSION
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn libenv_make(num: c_int, options: sys::Options) -> *mut c_void {
                // SAFETY: the host guarantees what `libenv.h` requires.
                unsafe { export::make($table, num, options) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn libenv_get_tensortypes(
                handle: *mut c_void,
                space: c_int,
                types: *mut sys::TensorType,
            ) -> c_int {
                // SAFETY: the host guarantees what `libenv.h` requires.
                unsafe { export::get_tensortypes(handle, space, types) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn libenv_set_buffers(handle: *mut c_void, buffers: *mut sys::Buffers) {
                // SAFETY: the host guarantees what `libenv.h` requires.
                unsafe { export::set_buffers(handle, buffers) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn libenv_observe(handle: *mut c_void) {
                // SAFETY: the host guarantees what `libenv.h` requires.
                unsafe { export::observe(handle) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn libenv_act(handle: *mut c_void) {
                // SAFETY: the host guarantees what `libenv.h` requires.
                unsafe { export::act(handle) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn libenv_close(handle: *mut c_void) {
                // SAFETY: the host guarantees what `libenv.h` requires.
                unsafe { export::close(handle) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn get_state(
                handle: *mut c_void,
                env: c_int,
                data: *mut c_char,
                length: c_int,
            ) -> c_int {
                // SAFETY: the host guarantees what `export::get_state` requires.
                unsafe { export::get_state(handle, env, data, length) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn set_state(
                handle: *mut c_void,
                env: c_int,
                data: *mut c_char,
                length: c_int,
            ) {
                // SAFETY: the host guarantees what `libenv.h` requires.
                unsafe { export::set_state(handle, env, data, length) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn libenv_last_error(handle: *mut c_void) -> *const c_char {
                // SAFETY: the host guarantees what `libenv.h` requires.
                unsafe { export::last_error(handle) }
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn corral_libenv_options() -> *const c_char {
                export::options_of($table)
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn corral_libenv_reset(
                handle: *mut c_void,
                env: c_int,
                how: c_int,
                value: i64,
            ) -> c_int {
                // SAFETY: the host guarantees what `libenv.h` requires.
                unsafe { export::reset(handle, env, how, value) }
            }
        };
    };
}

/// The object behind a host's handle.
struct HostInstance {
    instance: ExportedInstance,
    errors: Errors,
}

/// # Safety
/// `handle` must be NULL or a handle that `make` returned and `close` has not taken.
unsafe fn take<'a>(handle: *mut c_void) -> Result<InHand<'a, HostInstance>, &'static str> {
    // SAFETY: the caller guarantees what this function requires.
    unsafe { Handle::take(handle) }.map_err(|misuse| match misuse {
        Misuse::Null => "the env is NULL",
        Misuse::Strange => "this is no env that libenv_make gave, or it is closed",
        Misuse::Busy => "another thread is in a call of this env: one at a time",
    })
}

/// Does `work` on an instance. Where `work` fails, notes the error and returns
/// `instead`. Every function that has an instance uses this one.
///
/// # Safety
/// As [`take`].
unsafe fn on<R>(
    handle: *mut c_void,
    call: &str,
    instead: R,
    work: impl FnOnce(&mut ExportedInstance) -> Result<R>,
) -> R {
    // SAFETY: the caller guarantees what this function requires.
    let mut hand = match unsafe { take(handle) } {
        Ok(hand) => hand,
        Err(why) => {
            note_here(call, why);
            return instead;
        }
    };
    // An error of `act` is kept until the next `act`, because a host may ask for it
    // only after it has observed.
    if call != "libenv_observe" {
        hand.object().errors.last = None;
    }
    let fault = |why: &str| format!("a fault of Corral's, please report it: {why}; close this env");
    let done = hand.work(Phase::Call, |held| work(&mut held.instance)).map_err(|stop| match stop {
        CallStop::Failed(error) => error.to_string(),
        CallStop::Panicked(failure) => fault(&failure.message),
        CallStop::Poisoned(why) => fault(&why),
    });
    let HostInstance { instance, errors } = hand.object();
    instance.failures.drain(..).for_each(|why| errors.note(call, &why));
    done.unwrap_or_else(|why| {
        errors.note(call, &why);
        instead
    })
}

/// `libenv_make`.
///
/// # Safety
/// `options` must be as `libenv.h` says; NULL and negative counts are errors.
#[doc(hidden)]
pub unsafe fn make(table: &'static [Entry], num: c_int, options: sys::Options) -> *mut c_void {
    let _ = ERRORS.try_with(|errors| errors.borrow_mut().last = None);
    let made = guard(Phase::Build, || {
        let num = options::count(num)?;
        // SAFETY: the caller guarantees what this function requires.
        unsafe { ExportedInstance::make(table, num, options) }
    });
    match made.unwrap_or_else(|failure| Err(Error::env(failure))) {
        Ok(instance) => {
            if let Some(what) = &instance.narrowed {
                // Ignores failures, because a host may have closed stderr.
                let _ = writeln!(std::io::stderr(), "corral: libenv_make: {what}");
            }
            Handle::open(HostInstance { instance, errors: Errors::default() })
        }
        Err(error) => {
            note_here("libenv_make", &error.to_string());
            ptr::null_mut()
        }
    }
}

/// `libenv_get_tensortypes`; returns 0 where there is no such space, and -1 for NULL. gym3 does
/// not look at what `make` gave; it makes an array of as many types as it is told of, which is an
/// error for -1, and would be an env with empty spaces for 0.
///
/// # Safety
/// `handle` must be NULL or open; `types` must be NULL or have room for as many as
/// this function returns.
#[doc(hidden)]
pub unsafe fn get_tensortypes(handle: *mut c_void, space: c_int, types: *mut sys::TensorType) -> c_int {
    // SAFETY: the caller guarantees what this function requires.
    unsafe {
        on(handle, "libenv_get_tensortypes", if handle.is_null() { -1 } else { 0 }, |instance| {
            let wire_leaves = instance.wire_leaves(space)?;
            if !types.is_null() {
                let each = wire_leaves.iter().enumerate();
                each.for_each(|(k, wire_leaf)| types.add(k).write_unaligned(wire_leaf.tensor_type()));
            }
            Ok(wire_leaves.len() as c_int)
        })
    }
}

/// `libenv_set_buffers`; may be called again, even between two steps.
///
/// # Safety
/// `handle` must be NULL or open; `buffers` must be NULL, or as `libenv.h` requires
/// except that any pointer may be NULL.
#[doc(hidden)]
pub unsafe fn set_buffers(handle: *mut c_void, buffers: *mut sys::Buffers) {
    // SAFETY: the caller guarantees what this function requires.
    unsafe { on(handle, "libenv_set_buffers", (), |instance| instance.set_buffers(buffers)) }
}

/// `libenv_observe`.
///
/// # Safety
/// `handle` must be NULL or open, and the buffers must be valid.
#[doc(hidden)]
pub unsafe fn observe(handle: *mut c_void) {
    // SAFETY: the caller guarantees what this function requires.
    unsafe { on(handle, "libenv_observe", (), |instance| instance.observe()) }
}

/// `libenv_act`.
///
/// # Safety
/// As [`observe`].
#[doc(hidden)]
pub unsafe fn act(handle: *mut c_void) {
    // SAFETY: the caller guarantees what this function requires.
    unsafe { on(handle, "libenv_act", (), |instance| instance.act()) }
}

/// `libenv_close`; ends every thread.
///
/// # Safety
/// `handle` must be NULL or open, and is closed afterwards.
#[doc(hidden)]
pub unsafe fn close(handle: *mut c_void) {
    let call = "libenv_close";
    // SAFETY: the caller guarantees what this function requires.
    let mut hand = match unsafe { take(handle) } {
        Ok(hand) => hand,
        Err(why) => return note_here(call, why),
    };
    let closed = guard(Phase::Close, || hand.object().instance.close());
    if let Err(error) = closed.unwrap_or_else(|failure| Err(Error::env(failure))) {
        note_here(call, &error.to_string());
    }
    hand.close();
}

/// `get_state` as procgen has it: writes the state of one env and returns its length.
/// With `data` NULL, returns the length that the state needs. Returns -1 on failure.
///
/// # Safety
/// `handle` must be NULL or open; `data` must be NULL or have room for `length` bytes.
#[doc(hidden)]
pub unsafe fn get_state(handle: *mut c_void, env: c_int, data: *mut c_char, length: c_int) -> c_int {
    let save = |instance: &mut ExportedInstance| {
        let state = instance.save(env)?;
        let needed = c_int::try_from(state.len());
        let needed = needed.map_err(|_| Error::State("longer than an int counts".into()))?;
        if !data.is_null() {
            if length < needed {
                return Err(Error::Argument(format!(
                    "the state takes {needed} bytes, and there are {length}"
                )));
            }
            // SAFETY: the caller guarantees that `data` has room for `length` bytes.
            unsafe { ptr::copy(state.as_ptr(), data.cast(), state.len()) };
        }
        Ok(needed)
    };
    // SAFETY: the caller guarantees what this function requires.
    unsafe { on(handle, "get_state", -1, save) }
}

/// `set_state` as procgen has it: restores what `get_state` wrote for any env of the
/// same kind and options. `libenv_observe` shows the restored state.
///
/// # Safety
/// `handle` must be NULL or open; `data` must be NULL or have `length` bytes.
#[doc(hidden)]
pub unsafe fn set_state(handle: *mut c_void, env: c_int, data: *mut c_char, length: c_int) {
    let load = |instance: &mut ExportedInstance| {
        let length = usize::try_from(length).ok().filter(|_| !data.is_null());
        let length =
            length.ok_or_else(|| Error::Argument("no state at NULL or of negative length".into()))?;
        // SAFETY: the caller guarantees that `data` has `length` bytes.
        instance.load(env, unsafe { std::slice::from_raw_parts(data.cast(), length) })
    };
    // SAFETY: the caller guarantees what this function requires.
    unsafe { on(handle, "set_state", (), load) }
}

/// `corral_libenv_reset`; see [`sys::ours`].
///
/// # Safety
/// `handle` must be NULL or open.
#[doc(hidden)]
pub unsafe fn reset(handle: *mut c_void, env: c_int, how: c_int, value: i64) -> c_int {
    // SAFETY: the caller guarantees what this function requires.
    unsafe { on(handle, "corral_libenv_reset", -1, |instance| instance.reset(env, how, value).map(|()| 0)) }
}

/// `libenv_last_error`: the last error since the last call other than `libenv_observe`;
/// with NULL, the error of this thread's last call without an instance.
///
/// # Safety
/// `handle` must be NULL or open.
#[doc(hidden)]
pub unsafe fn last_error(handle: *mut c_void) -> *const c_char {
    let text = |errors: &Errors| errors.last.as_ref().map_or(ptr::null(), |text| text.as_ptr());
    // SAFETY: the caller guarantees what this function requires.
    match unsafe { take(handle) } {
        Ok(mut hand) => text(&hand.object().errors),
        Err(_) => ERRORS.try_with(|errors| text(&errors.borrow())).unwrap_or(ptr::null()),
    }
}
