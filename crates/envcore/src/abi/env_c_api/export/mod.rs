//! Environments for EnvCApi's hosts (DeepMind Lab's and Lab2D's).
//!
//! [`export_env_c_api!`](crate::export_env_c_api) gives a library its entrance,
//! `<crate>_connect`, and `<crate>_connect_v`, which looks at the version first. One
//! context is one env: `setting` names it (`env_id`) and its options, `init` makes
//! it, and each `start` begins an episode from its seed, or with the setting
//! `episode_id_is_index` the one that the episode's number is the index of.
//!
//! - An action's elements are numbered row by row behind its name: `force.0`. What
//!   was set sticks; before that, each is the value in its bounds nearest to 0.
//! - Observations of `uint8` and `bool` are bytes, other numbers doubles, texts
//!   strings. An integer that no double holds is an error.
//! - Declared infos are events of the infos' names, and the env's own events are
//!   events.
//! - Properties: see `properties`.
//!
//! Nothing that a host does wrong ends it, as far as a library can tell. What
//! returns a status returns an error, what returns nothing writes what is empty, and
//! `error_message` says why. A panic of ours poisons its context.

mod actions;
mod context;
mod events;
mod functions;
mod observations;
mod properties;
mod settings;

use std::ffi::{CString, c_int, c_void};
use std::io::Write;

use super::sys::{self, EnvCApi};
use crate::abi::handle::Handle;
use crate::entry::Entry;
use crate::error::{Error, Result};
use context::Context;

/// What a call that failed returns where 0 is success: `EPERM`, and so not `EAGAIN`,
/// which asks to try again.
const FAILED: c_int = 1;

/// Gives a library EnvCApi's entrances, over a table: a `&'static [Entry]`. Their
/// names begin with the crate's, or with the text that is given. See
/// [`export`](crate::abi::env_c_api::export).
#[macro_export]
macro_rules! export_env_c_api {
    ($table:expr) => {
        $crate::export_env_c_api!($table, env!("CARGO_CRATE_NAME"));
    };
    ($table:expr, $name:expr) => {
        #[allow(unsafe_code)]
        const _: () = {
            use ::std::ffi::{c_int, c_void};
            use $crate::abi::env_c_api::{export, sys};

            #[unsafe(export_name = concat!($name, "_connect"))]
            pub unsafe extern "C" fn connect(api: *mut sys::EnvCApi, context: *mut *mut c_void) -> c_int {
                // SAFETY: the host's duty, as `env_c_api.h` has it.
                unsafe { export::connect($table, api, context) }
            }

            #[unsafe(export_name = concat!($name, "_connect_v"))]
            pub unsafe extern "C" fn connect_v(
                major: c_int,
                minor: c_int,
                api: *mut sys::EnvCApi,
                context: *mut *mut c_void,
            ) -> c_int {
                // SAFETY: the host's duty.
                unsafe { export::connect_v($table, major, minor, api, context) }
            }
        };
    };
}

/// A text as C has it: what stands behind a NUL in it is left out.
fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// The names of the elements of what is called so: row-major numbers behind it,
/// none behind a number alone.
fn element_names(name: &str, shape: &[usize]) -> Vec<CString> {
    let mut names = vec![name.to_string()];
    for &extent in shape {
        names = names.iter().flat_map(|name| (0..extent).map(move |k| format!("{name}.{k}"))).collect();
    }
    names.iter().map(|name| c_text(name)).collect()
}

/// The index that a host's number is.
///
/// # Errors
/// [`Error::Argument`] where there are not so many.
fn number(given: c_int, count: usize, what: &str) -> Result<usize> {
    let at = usize::try_from(given).ok().filter(|at| *at < count);
    at.ok_or_else(|| Error::Argument(format!("there is no {what} {given}: there are {count}")))
}

/// Fills `api` and makes a context; 0, or another number where either is NULL.
///
/// # Safety
/// Both must be NULL or have room.
#[doc(hidden)]
pub unsafe fn connect(table: &'static [Entry], api: *mut EnvCApi, context: *mut *mut c_void) -> c_int {
    if api.is_null() || context.is_null() {
        return FAILED;
    }
    // SAFETY: the caller's duty.
    unsafe {
        api.write_unaligned(functions::FUNCTIONS);
        context.write_unaligned(Handle::open(Context::new(table)));
    }
    0
}

/// As [`connect`], where the host was compiled for this version.
///
/// # Safety
/// As [`connect`]'s.
#[doc(hidden)]
pub unsafe fn connect_v(
    table: &'static [Entry],
    major: c_int,
    minor: c_int,
    api: *mut EnvCApi,
    context: *mut *mut c_void,
) -> c_int {
    if (major, minor) != sys::VERSION {
        let (ours, theirs) = (sys::VERSION, (major, minor));
        // A host may have closed stderr.
        let _ = writeln!(
            std::io::stderr(),
            "corral: the host was compiled for EnvCApi {}.{}, and this library for {}.{}",
            theirs.0,
            theirs.1,
            ours.0,
            ours.1
        );
        return FAILED;
    }
    // SAFETY: the caller's duty.
    unsafe { connect(table, api, context) }
}
