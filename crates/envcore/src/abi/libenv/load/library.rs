//! A library, which stays open for ever, and its functions.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use crate::abi::exports;
use crate::abi::libenv::sys;
use crate::abi::library::Library as Opened;
use crate::error::{Error, Result};

pub(super) type LibenvHandle = *mut c_void;

type Version = unsafe extern "C" fn() -> c_int;
pub(super) type Make = unsafe extern "C" fn(c_int, sys::Options) -> LibenvHandle;
type TensorTypes = unsafe extern "C" fn(LibenvHandle, c_int, *mut sys::TensorType) -> c_int;
type SetBuffers = unsafe extern "C" fn(LibenvHandle, *mut sys::Buffers);
type OfHandle = unsafe extern "C" fn(LibenvHandle);
type GetState = unsafe extern "C" fn(LibenvHandle, c_int, *mut c_char, c_int) -> c_int;
type SetState = unsafe extern "C" fn(LibenvHandle, c_int, *const c_char, c_int);

/// The functions beyond libenv's seven that save and load one env. Procgen and Corral's
/// libraries have them.
#[derive(Clone, Copy)]
pub(super) struct StateFunctions {
    pub(super) get: GetState,
    pub(super) set: SetState,
}

/// A libenv library's functions.
pub(super) struct LibenvLibrary {
    pub(super) opened: Opened,
    pub(super) make: Make,
    pub(super) tensor_types: TensorTypes,
    pub(super) set_buffers: SetBuffers,
    pub(super) observe: OfHandle,
    pub(super) act: OfHandle,
    pub(super) close: OfHandle,
    pub(super) state: Option<StateFunctions>,
    pub(super) reset: Option<sys::ours::Reset>,
    last_error: Option<sys::ours::LastError>,
}

impl LibenvLibrary {
    /// Opens the library in the way that gym3 does, under which libraries were tested: all
    /// symbols are resolved at once, no other library sees them, and the library's own
    /// symbols come before the program's.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | deepbind();
        // SAFETY: the library's initialisers are foreign code, and the user who named the
        // library answers for what they do.
        let opened = unsafe { Opened::open(path, flags) }?;
        let missing =
            |symbol: &str| opened.fault(format_args!("it has no function {symbol}: it is no libenv library"));
        macro_rules! find {
            ($symbol:expr) => {{
                let symbol: &str = $symbol;
                // SAFETY: a function of that name in a libenv library has this type;
                // `libenv_version` is called before any other function.
                unsafe { opened.function(symbol) }
            }};
        }
        macro_rules! need {
            ($symbol:expr) => {
                find!($symbol).ok_or_else(|| missing($symbol))?
            };
        }
        let version: Version = need!("libenv_version");
        let state = match (find!("get_state"), find!("set_state")) {
            (Some(get), Some(set)) => Some(StateFunctions { get, set }),
            _ => None,
        };
        let reset = find!(sys::ours::RESET);
        let library = LibenvLibrary {
            make: need!("libenv_make"),
            tensor_types: need!("libenv_get_tensortypes"),
            set_buffers: need!("libenv_set_buffers"),
            observe: need!("libenv_observe"),
            act: need!("libenv_act"),
            close: need!("libenv_close"),
            state,
            reset,
            // In a foreign library a function of that name may do anything.
            last_error: reset.and_then(|_: sys::ours::Reset| find!(sys::ours::LAST_ERROR)),
            opened,
        };
        // SAFETY: in every version this function takes nothing and returns an int.
        let found = unsafe { version() };
        if found != sys::VERSION {
            let why = format_args!(
                "it is of libenv version {found}, and only version {} is understood",
                sys::VERSION
            );
            return Err(library.opened.fault(why));
        }
        Ok(library)
    }

    pub(super) fn path(&self) -> &Path {
        &self.opened.path
    }

    /// Errors where the library reports an error; `what` says what was tried.
    pub(super) fn check(&self, handle: LibenvHandle, what: &str) -> Result<()> {
        match self.last_error(handle) {
            Some(why) => Err(self.fault(format!("{what} failed: {why}"))),
            None => Ok(()),
        }
    }

    /// The last error, where the library has a function that tells it.
    pub(super) fn last_error(&self, handle: LibenvHandle) -> Option<String> {
        let last_error = self.last_error?;
        // SAFETY: in Corral's libraries this function takes every handle, NULL too, and
        // returns NULL or a text that stays valid until the next call.
        let text = unsafe { last_error(handle) };
        if text.is_null() {
            return None;
        }
        // SAFETY: the text is still valid, and it ends with a NUL.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The error for a function that the library does not have.
    pub(super) fn unknown(&self, function: &str) -> Error {
        self.opened.fault(format_args!("it has no function '{function}'"))
    }

    /// An error of the library's envs.
    pub(super) fn fault(&self, why: impl std::fmt::Display) -> Error {
        Error::env(format!("{}: {why}", self.path().display()))
    }

    /// An error of the spaces that the library declares.
    pub(super) fn misfit(&self, why: impl std::fmt::Display) -> Error {
        Error::Space(format!("{}: {why}", self.path().display()))
    }
}

/// `RTLD_DEEPBIND` where the C library has it; musl does not.
fn deepbind() -> c_int {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    return libc::RTLD_DEEPBIND;
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    0
}

/// Whether Corral exported the library at `path`, which then has more functions than
/// libenv's. None of the library's code is run.
///
/// # Errors
/// [`Error::Library`] where there is no such file, or the file is no shared library.
pub fn is_ours(path: &Path) -> Result<bool> {
    Ok(exports(path)?.iter().any(|name| name == sys::ours::RESET))
}
