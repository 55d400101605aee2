//! The declarations of DeepMind's EnvCApi, version 1.4, as C has them.

use std::ffi::{c_char, c_int, c_uchar, c_void};

/// The version of these declarations: there is no ABI compatibility between any
/// two.
pub const VERSION: (c_int, c_int) = (1, 4);

/// What `advance` says of an episode.
pub mod status {
    use std::ffi::c_int;

    /// It goes on.
    pub const RUNNING: c_int = 0;
    /// It was cut.
    pub const INTERRUPTED: c_int = 1;
    /// It is over, for the call failed.
    pub const ERROR: c_int = 2;
    /// It reached a terminal state.
    pub const TERMINATED: c_int = 3;
}

/// What the elements of an observation are.
pub mod observation_type {
    use std::ffi::c_int;

    /// `double`s.
    pub const DOUBLES: c_int = 0;
    /// `unsigned char`s.
    pub const BYTES: c_int = 1;
    /// The bytes of a text: one axis, as long as the text.
    pub const STRING: c_int = 2;
}

/// What can be done with a property: a sum of these.
pub mod attributes {
    use std::ffi::c_int;

    /// It can be read.
    pub const READABLE: c_int = 1;
    /// It can be written.
    pub const WRITABLE: c_int = 2;
    /// It has properties below it.
    pub const LISTABLE: c_int = 4;
}

/// How a call about a property ended.
pub mod property {
    use std::ffi::c_int;

    /// It did what was asked.
    pub const SUCCESS: c_int = 0;
    /// There is no such property.
    pub const NOT_FOUND: c_int = 1;
    /// That cannot be done with this property.
    pub const PERMISSION_DENIED: c_int = 2;
    /// The property does not take this value.
    pub const INVALID_ARGUMENT: c_int = 3;
}

/// Type and shape of an observation. Where `dims` is 0 in the spec of an
/// observation, each value has a shape of its own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ObservationSpec {
    /// An [`observation_type`].
    pub kind: c_int,
    /// How many axes there are.
    pub dims: c_int,
    /// The extent of each.
    pub shape: *const c_int,
}

/// Where the elements are, whichever they are.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Payload {
    /// Of [`observation_type::DOUBLES`].
    pub doubles: *const f64,
    /// Of [`observation_type::BYTES`].
    pub bytes: *const c_uchar,
    /// Of [`observation_type::STRING`].
    pub string: *const c_char,
}

/// An observation: row-major elements.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Observation {
    /// What they are.
    pub spec: ObservationSpec,
    /// Where they are.
    pub payload: Payload,
}

/// An event, and the observations that belong to it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The number of its type.
    pub id: c_int,
    /// How many observations it has.
    pub observation_count: c_int,
    /// These.
    pub observations: *const Observation,
}

/// A text action.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TextAction {
    /// The text, which a NUL follows.
    pub data: *const c_char,
    /// Its length in bytes, without that NUL.
    pub len: u64,
}

/// What a host gives to be told of each property.
pub type PropertyCallback = unsafe extern "C" fn(*mut c_void, *const c_char, c_int);

/// The functions of an environment. The first argument of each is its context.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct EnvCApi {
    pub setting: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> c_int>,
    pub init: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub start: Option<unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int>,
    pub release_context: Option<unsafe extern "C" fn(*mut c_void)>,
    pub error_message: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
    pub write_property: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> c_int>,
    pub read_property: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *mut *const c_char) -> c_int>,
    pub list_property: Option<
        unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char, Option<PropertyCallback>) -> c_int,
    >,
    pub environment_name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
    pub action_discrete_count: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub action_continuous_count: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub action_text_count: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub action_discrete_name: Option<unsafe extern "C" fn(*mut c_void, c_int) -> *const c_char>,
    pub action_continuous_name: Option<unsafe extern "C" fn(*mut c_void, c_int) -> *const c_char>,
    pub action_text_name: Option<unsafe extern "C" fn(*mut c_void, c_int) -> *const c_char>,
    pub action_discrete_bounds: Option<unsafe extern "C" fn(*mut c_void, c_int, *mut c_int, *mut c_int)>,
    pub action_continuous_bounds: Option<unsafe extern "C" fn(*mut c_void, c_int, *mut f64, *mut f64)>,
    pub observation_count: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub observation_name: Option<unsafe extern "C" fn(*mut c_void, c_int) -> *const c_char>,
    pub observation_spec: Option<unsafe extern "C" fn(*mut c_void, c_int, *mut ObservationSpec)>,
    pub event_type_count: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub event_type_name: Option<unsafe extern "C" fn(*mut c_void, c_int) -> *const c_char>,
    pub fps: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub observation: Option<unsafe extern "C" fn(*mut c_void, c_int, *mut Observation)>,
    pub event_count: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub event: Option<unsafe extern "C" fn(*mut c_void, c_int, *mut Event)>,
    pub act: Option<unsafe extern "C" fn(*mut c_void, *const c_int, *const f64)>,
    pub act_discrete: Option<unsafe extern "C" fn(*mut c_void, *const c_int)>,
    pub act_continuous: Option<unsafe extern "C" fn(*mut c_void, *const f64)>,
    pub act_text: Option<unsafe extern "C" fn(*mut c_void, *const TextAction)>,
    pub advance: Option<unsafe extern "C" fn(*mut c_void, c_int, *mut f64) -> c_int>,
}

const _: () = assert!(size_of::<EnvCApi>() == 31 * size_of::<usize>());
