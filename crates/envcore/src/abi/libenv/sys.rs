//! libenv's declarations, as `libenv.h` version 1 has them; a test holds them to
//! a C compiler's view of it.

use std::ffi::{c_char, c_int, c_void};

/// What `libenv_version` returns.
pub const VERSION: c_int = 1;
/// Bytes of a name, its NUL included.
pub const MAX_NAME_LEN: usize = 128;
/// The most axes of a tensor.
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

/// `union libenv_value`: which field holds is the tensor's dtype's to say.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub union Value {
    pub uint8: u8,
    pub int32: i32,
    pub float32: f32,
}

/// `struct libenv_tensortype`. Enums are `int` here: a library may have written
/// anything.
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

/// `struct libenv_buffers`: the buffer of leaf k, env e is `ob[k * num + e]`.
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

/// Functions that a library of ours has beside the seven of libenv.
pub mod ours {
    use super::{c_char, c_int, c_void};

    /// `int corral_libenv_reset(libenv_env *, int idx, int how, int64_t value)`:
    /// begins an episode of env `idx` at once; its first observation is what
    /// `libenv_observe` shows next, with reward 0 and `first` set. 0, or -1 and
    /// `libenv_last_error` says why.
    pub type Reset = unsafe extern "C" fn(*mut c_void, c_int, c_int, i64) -> c_int;
    /// Its name.
    pub const RESET: &str = "corral_libenv_reset";
    /// `const char *libenv_last_error(libenv_env *)`: what went wrong last with
    /// this instance (with NULL: in this thread's last call without one), or
    /// NULL; holds until the next call.
    pub type LastError = unsafe extern "C" fn(*mut c_void) -> *const c_char;
    /// Its name.
    pub const LAST_ERROR: &str = "libenv_last_error";
    /// `how`: the next episode of the env's own stream; `value` means nothing.
    pub const HOW_OWN: c_int = 0;
    /// `how`: `value` is a seed.
    pub const HOW_SEED: c_int = 1;
    /// `how`: `value` is an index.
    pub const HOW_INDEX: c_int = 2;
}
