//! The declarations of `libenv.h` version 1; a test compares them with what a C compiler
//! makes of the header.

use std::ffi::{c_char, c_int, c_void};

/// What `libenv_version` returns.
pub const VERSION: c_int = 1;
/// The size of a name in bytes, its NUL included.
pub const MAX_NAME_LEN: usize = 128;
/// The most axes that a tensor may have.
pub const MAX_NDIM: usize = 16;

/// `enum libenv_dtype`.
#[allow(missing_docs)]
pub mod dtype {
    use super::c_int;
    pub const UINT8: c_int = 1;
    pub const INT32: c_int = 2;
    pub const FLOAT32: c_int = 3;
}

/// `enum libenv_scalar_type`.
#[allow(missing_docs)]
pub mod scalar_type {
    use super::c_int;
    pub const REAL: c_int = 1;
    pub const DISCRETE: c_int = 2;
}

/// `enum libenv_space_name`.
#[allow(missing_docs)]
pub mod space_name {
    use super::c_int;
    pub const OBSERVATION: c_int = 1;
    pub const ACTION: c_int = 2;
    pub const INFO: c_int = 3;
}

/// `union libenv_value`; the tensor's dtype says which field is set.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub union Value {
    pub uint8: u8,
    pub int32: i32,
    pub float32: f32,
}

/// `struct libenv_tensortype`. Its enums are `int`, because a library may have written
/// any value.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct TensorType {
    pub name: [c_char; MAX_NAME_LEN],
    pub scalar_type: c_int,
    pub dtype: c_int,
    pub shape: [c_int; MAX_NDIM],
    pub ndim: c_int,
    pub low: Value,
    pub high: Value,
}

/// `struct libenv_option`.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Option {
    pub name: [c_char; MAX_NAME_LEN],
    pub dtype: c_int,
    pub count: c_int,
    pub data: *mut c_void,
}

/// `struct libenv_options`.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Options {
    pub items: *mut Option,
    pub count: c_int,
}

/// `struct libenv_buffers`; the buffer of leaf k and env e is `ob[k * num + e]`.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Buffers {
    pub ob: *mut *mut c_void,
    pub rew: *mut f32,
    pub first: *mut u8,
    pub info: *mut *mut c_void,
    pub ac: *mut *mut c_void,
}

/// The functions that a library exported by Corral has beside the seven of libenv.
pub mod ours {
    use super::{c_char, c_int, c_void};

    /// `int corral_libenv_reset(libenv_env *, int idx, int how, int64_t value)`:
    /// begins an episode of env `idx` at once. `libenv_observe` then shows the first
    /// observation of the episode, with reward 0 and `first` set. Returns 0, or -1 where
    /// it fails and `libenv_last_error` says why.
    pub type Reset = unsafe extern "C" fn(*mut c_void, c_int, c_int, i64) -> c_int;
    /// The name of [`Reset`].
    pub const RESET: &str = "corral_libenv_reset";
    /// `const char *libenv_last_error(libenv_env *)`: the last error of this instance or,
    /// with NULL, of this thread's last call without an instance; NULL where there is
    /// none. The text is valid until the next call.
    pub type LastError = unsafe extern "C" fn(*mut c_void) -> *const c_char;
    /// The name of [`LastError`].
    pub const LAST_ERROR: &str = "libenv_last_error";
    /// `const char *corral_libenv_options(void)`: a JSON object with an object for each env of the
    /// library, which has an object for each option: `default`, `type`, `meaning`, and where there
    /// are any `low`, `high`, `choices` and `fields`. The text stays valid.
    pub type Options = unsafe extern "C" fn() -> *const c_char;
    /// The name of [`Options`].
    pub const OPTIONS: &str = "corral_libenv_options";
    /// `how`: the next episode of the env's own stream; `value` means nothing.
    pub const HOW_OWN: c_int = 0;
    /// `how`: `value` is a seed.
    pub const HOW_SEED: c_int = 1;
    /// `how`: `value` is an index.
    pub const HOW_INDEX: c_int = 2;
}
