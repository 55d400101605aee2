//! The layout of a plugin: what `corral.h` declares, which is made of this file.
//!
//! Above 400 lines because a header is made of one file.

use std::ffi::{c_char, c_void};

/// The version of this interface. Later ones only append to its structs.
pub const CORRAL_ABI_VERSION: u32 = 4;

/// The name of the one function that a plugin exports:
/// `const corral_plugin *corral_plugin_entry(void)`.
pub const CORRAL_PLUGIN_SYMBOL: &str = "corral_plugin_entry";

// Element types.
pub const CORRAL_BOOL: u32 = 1;
pub const CORRAL_UINT8: u32 = 2;
pub const CORRAL_INT8: u32 = 3;
pub const CORRAL_UINT16: u32 = 4;
pub const CORRAL_INT16: u32 = 5;
pub const CORRAL_UINT32: u32 = 6;
pub const CORRAL_INT32: u32 = 7;
pub const CORRAL_UINT64: u32 = 8;
pub const CORRAL_INT64: u32 = 9;
pub const CORRAL_FLOAT16: u32 = 10;
pub const CORRAL_FLOAT32: u32 = 11;
pub const CORRAL_FLOAT64: u32 = 12;

/// A leaf of fixed dtype and shape: one block of memory per batch.
pub const CORRAL_LEAF_FIXED: u32 = 1;
/// A leaf whose rows are arrays of one dtype and any shape.
pub const CORRAL_LEAF_RAGGED: u32 = 2;
/// A leaf whose rows are texts.
pub const CORRAL_LEAF_TEXT: u32 = 3;

/// What a node of a tree is: the leaf whose number is `value`.
pub const CORRAL_NODE_LEAF: u32 = 1;
/// … a dict of `value` branches, each of which has a key.
pub const CORRAL_NODE_DICT: u32 = 2;
/// … a tuple of `value` branches.
pub const CORRAL_NODE_TUPLE: u32 = 3;

// Kinds of value.
pub const CORRAL_VALUE_NONE: u32 = 0;
pub const CORRAL_VALUE_BOOL: u32 = 1;
pub const CORRAL_VALUE_INT: u32 = 2;
pub const CORRAL_VALUE_REAL: u32 = 3;
pub const CORRAL_VALUE_TEXT: u32 = 4;
pub const CORRAL_VALUE_ARRAY: u32 = 5;
pub const CORRAL_VALUE_LIST: u32 = 6;
pub const CORRAL_VALUE_MAP: u32 = 7;

/// Every env can do these: reset when asked, begin from a seed, begin an
/// index, be left out of a step, show its last observation, tell truncated from
/// terminated, bear a time limit.
pub const CORRAL_CAP_ENV: u32 = 247;
/// Begin from a seed.
pub const CORRAL_CAP_SEED: u32 = 2;
/// Begin the episode of an index.
pub const CORRAL_CAP_INDEX: u32 = 4;
/// Take options at a reset.
pub const CORRAL_CAP_OPTIONS: u32 = 8;
/// Save and load a slot.
pub const CORRAL_CAP_SAVE: u32 = 256;
/// Draw a slot.
pub const CORRAL_CAP_RENDER: u32 = 512;
/// Call functions, get and set properties by name.
pub const CORRAL_CAP_CALL: u32 = 1024;
/// Step and reset in less than a microsecond, and wait for nothing in it.
pub const CORRAL_CAP_BRIEF: u32 = 4096;
/// Tell of events: the info `CORRAL_EVENTS`.
pub const CORRAL_CAP_EVENTS: u32 = 65536;
/// Tell which discrete choices are allowed: the last leaf of the infos is called
/// `action_mask`, of int8, with an element for each choice of each discrete element
/// of the action, and is told in every row that shows an observation.
pub const CORRAL_CAP_ACTION_MASK: u32 = 131072;

/// What is asked of a name: call the function.
pub const CORRAL_CALL_FUNCTION: u32 = 0;
/// … give the property's value.
pub const CORRAL_CALL_GET: u32 = 1;
/// … set the property to the only argument.
pub const CORRAL_CALL_SET: u32 = 2;
/// … give the names of the properties below this one ("" for the root): a map of each to
/// whether it can be set.
pub const CORRAL_CALL_LIST: u32 = 3;

/// How a slot begins: the next episode of its own stream.
pub const CORRAL_BEGIN_OWN: u32 = 0;
/// … from the seed that `value` is.
pub const CORRAL_BEGIN_SEED: u32 = 1;
/// … the episode of the index that `value` is.
pub const CORRAL_BEGIN_INDEX: u32 = 2;
/// … not at all: it shows its current observation once more.
pub const CORRAL_BEGIN_KEEP: u32 = 3;

/// An error of an env's own.
pub const CORRAL_ERROR: u32 = 1;
/// A bug that was caught: an assertion, an exception that nobody expected.
pub const CORRAL_PANIC: u32 = 2;
/// An argument of the wrong value.
pub const CORRAL_ERROR_ARGUMENT: u32 = 3;
/// An option that does not exist; the message lists those that do.
pub const CORRAL_ERROR_UNKNOWN_OPTION: u32 = 4;
/// An option with a value that it does not take.
pub const CORRAL_ERROR_OPTION_VALUE: u32 = 5;
/// A space that contradicts itself.
pub const CORRAL_ERROR_SPACE: u32 = 6;
/// Something that the env cannot do.
pub const CORRAL_ERROR_UNSUPPORTED: u32 = 7;
/// Bytes that are no state of this env.
pub const CORRAL_ERROR_STATE: u32 = 8;
/// No memory.
pub const CORRAL_ERROR_MEMORY: u32 = 9;
/// A slot that holds no env, because it failed earlier.
pub const CORRAL_ERROR_NEEDS_RESET: u32 = 10;
/// A function or property that the env does not have.
pub const CORRAL_ERROR_UNKNOWN_NAME: u32 = 11;

// What an env was doing when it failed; 0 for what the function is about.
pub const CORRAL_PHASE_CALL: u32 = 0;
pub const CORRAL_PHASE_BUILD: u32 = 1;
pub const CORRAL_PHASE_RESET: u32 = 2;
pub const CORRAL_PHASE_STEP: u32 = 3;
pub const CORRAL_PHASE_RENDER: u32 = 4;
pub const CORRAL_PHASE_SAVE: u32 = 5;
pub const CORRAL_PHASE_LOAD: u32 = 6;
pub const CORRAL_PHASE_CLOSE: u32 = 7;

/// In `corral_report.leaf`: a leaf of the observation.
pub const CORRAL_PART_OBSERVATION: u32 = 0;
/// … of the declared infos.
pub const CORRAL_PART_INFO: u32 = 1;

/// `size_t` for "no slot": an error of the whole call.
pub const CORRAL_NO_SLOT: usize = usize::MAX;

/// What a value is; `kind` says which holds.
#[derive(Clone, Copy)]
#[repr(C)]
pub union ValueData {
    pub boolean: u8,
    pub integer: i64,
    pub real: f64,
    /// UTF-8 without a NUL, `length` bytes.
    pub text: *const c_char,
    /// Elements in row-major order, `length` bytes.
    pub elements: *const c_void,
    /// `length` values.
    pub items: *const Value,
    /// `length` named values.
    pub fields: *const Field,
}

/// A value of any kind: an option, an info that was not declared, a row of a
/// leaf that is not of fixed shape.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Value {
    pub kind: u32,
    /// Of an array's elements.
    pub dtype: u32,
    /// Of an array.
    pub num_axes: usize,
    pub shape: *const usize,
    pub length: usize,
    pub data: ValueData,
}

/// A named value.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Field {
    /// UTF-8 without a NUL, `key_length` bytes.
    pub key: *const c_char,
    pub key_length: usize,
    pub value: *const Value,
}

/// A bound: `real` for floats, `integer` for bool and signed integers, `natural`
/// for unsigned ones.
#[derive(Clone, Copy)]
#[repr(C)]
pub union Bound {
    pub real: f64,
    pub integer: i64,
    pub natural: u64,
}

/// One named part of a space.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Leaf {
    /// Where the space has no nodes: empty or NULL for the only leaf of a space that
    /// is no struct; a `.` with text on both sides separates the levels of nested
    /// structs. With nodes it is not read.
    pub name: *const c_char,
    /// `CORRAL_LEAF_…`.
    pub kind: u32,
    pub dtype: u32,
    /// Of one row; the greatest extents of a ragged leaf; the most characters of
    /// a text, as its one axis.
    pub num_axes: usize,
    pub shape: *const usize,
    /// Whether the values are labels rather than quantities.
    pub discrete: u32,
    /// One bound for all elements or one for each, inclusive; 0 for the dtype's
    /// own range.
    pub num_low: usize,
    pub low: *const Bound,
    pub num_high: usize,
    pub high: *const Bound,
}

/// A node of the tree that a space's leaves hang in. Every node stands before the
/// nodes under it, which follow at once.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Node {
    /// Its key where the node above it is a dict: UTF-8, `key_length` bytes.
    pub key: *const c_char,
    pub key_length: usize,
    /// `CORRAL_NODE_…`.
    pub kind: u32,
    /// The number of a leaf; how many branches a dict or a tuple has.
    pub value: usize,
}

/// Leaves, in order, and the tree that they hang in.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Space {
    pub num_leaves: usize,
    pub leaves: *const Leaf,
    /// 0 where the leaves' names say what their tree is. Every leaf is in a tree once.
    pub num_nodes: usize,
    pub nodes: *const Node,
}

/// What an env with its options is.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Spec {
    /// Its bytes, as the plugin was compiled.
    pub size: usize,
    pub observation: Space,
    pub action: Space,
    pub info: Space,
    /// What it can do: `CORRAL_CAP_…`, added up.
    pub caps: u32,
    /// The options that it was made with and their values, all of them, as a JSON
    /// object: a replay makes it of these, and states are exchanged only between
    /// equal texts. NULL where it has none.
    pub config: *const c_char,
    /// A map of whatever else users may want to know, or none.
    pub metadata: Value,
    /// How many agents act in one env: 1, which 0 is read as. Hosts of this version
    /// refuse others.
    pub num_agents: usize,
}

/// An env that a plugin has, whatever its options.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Entry {
    /// `Name-v0`, without what comes before the `/`.
    pub id: *const c_char,
    /// One line on what it is.
    pub about: *const c_char,
    /// Its usual time limit in steps; 0 for none.
    pub max_episode_steps: u64,
    /// The mean return from which it counts as solved; NaN for none.
    pub reward_threshold: f64,
    pub render_fps: u32,
    /// Whether it is found by its id and listed nowhere.
    pub hidden: u32,
    /// Its options and their defaults, as a JSON object.
    pub options: *const c_char,
}

/// A slot to reset, and how it begins.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Reset {
    pub slot: usize,
    /// The row for its observation and infos.
    pub row: usize,
    /// `CORRAL_BEGIN_…`.
    pub how: u32,
    /// Whether its env is to be made anew first, from the seed `rebuild_seed`
    /// (or the seed that it begins from): the old one failed, or there is none.
    pub rebuild: u32,
    /// The seed or the index.
    pub value: i64,
    pub rebuild_seed: i64,
    /// A map of options to take first, or NULL.
    pub options: *const Value,
}

/// Rows of a batch to write: what belongs to the i-th row of a call is the i-th
/// element (of leaves: the i-th block of a row's elements). All memory is the
/// host's, C-contiguous, and the call's alone. Reward and flags have an element
/// for each agent of each row, agents innermost; with one agent, one a row.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Rows {
    pub num_rows: usize,
    /// A block per leaf; NULL for one that is not of fixed shape, which goes to
    /// `corral_report.leaf`. What was in it before is unspecified.
    pub observation: *const *mut c_void,
    pub reward: *mut f64,
    /// 0 or 1.
    pub terminated: *mut u8,
    /// 0 or 1.
    pub truncated: *mut u8,
    /// A block per leaf of the declared infos, at first zeros.
    pub info: *const *mut c_void,
    /// Per leaf, which rows have it; at first 0.
    pub info_mask: *const *mut u8,
}

/// How a plugin answers, beside its rows. What it passes is copied before the
/// function returns. Only valid, with all that it points to, during the call
/// that it came with, and not from two threads at once.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Report {
    /// To be passed to each.
    pub context: *mut c_void,
    /// Slot `slot` of the chunk failed (in a step or reset: it is not used until
    /// rebuilt), or with `CORRAL_NO_SLOT` the call did. `kind` is
    /// `CORRAL_ERROR…` or `CORRAL_PANIC`, `phase` `CORRAL_PHASE_…`; the message
    /// UTF-8 without a NUL.
    pub fail: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            slot: usize,
            kind: u32,
            phase: u32,
            message: *const c_char,
            length: usize,
        ),
    >,
    /// Row `row` has an info that was not declared.
    pub info: Option<unsafe extern "C" fn(context: *mut c_void, row: usize, info: *const Field)>,
    /// Row `row` of leaf `leaf` of `part`, one that is not of fixed shape.
    pub leaf: Option<
        unsafe extern "C" fn(context: *mut c_void, part: u32, leaf: usize, row: usize, value: *const Value),
    >,
    /// The state that was asked for.
    pub state: Option<unsafe extern "C" fn(context: *mut c_void, bytes: *const c_void, length: usize)>,
    /// The picture that was asked for: RGB, `height · width · 3` bytes, rows from
    /// the top.
    pub frame:
        Option<unsafe extern "C" fn(context: *mut c_void, height: usize, width: usize, pixels: *const u8)>,
    /// The answer to a call by name; none without it.
    pub answer: Option<unsafe extern "C" fn(context: *mut c_void, value: *const Value)>,
}

/// A plugin. Functions that return an `int32_t` return 0, or -1 after telling
/// `report.fail` why. No exception may leave one.
///
/// A chunk is some slots, numbered from 0, that are stepped by one call. Calls
/// with one chunk never overlap, but need not come from one thread; calls with
/// different chunks do overlap. `make`, `spec` and `chunk` may overlap as well.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Plugin {
    /// `CORRAL_ABI_VERSION`.
    pub abi_version: u32,
    /// `sizeof(corral_entry)`.
    pub entry_size: u32,
    /// `sizeof(corral_plugin)`.
    pub size: usize,
    /// What comes before the `/` of its ids.
    pub name: *const c_char,
    pub version: *const c_char,
    /// What it was built with, for messages.
    pub built_with: *const c_char,
    pub num_envs: usize,
    pub envs: *const Entry,
    /// Env number `env` with these options (a map): a source, or NULL after
    /// `report.fail`.
    pub make:
        Option<unsafe extern "C" fn(env: usize, options: *const Value, report: *const Report) -> *mut c_void>,
    /// What a source is; holds until it is freed.
    pub spec: Option<unsafe extern "C" fn(source: *mut c_void) -> *const Spec>,
    /// Frees a source. Its chunks live on.
    pub free_source: Option<unsafe extern "C" fn(source: *mut c_void)>,
    /// A chunk with one slot per seed, or NULL after `report.fail`. Without
    /// `seeds` its slots hold no env until a reset rebuilds them.
    pub chunk: Option<
        unsafe extern "C" fn(
            source: *mut c_void,
            seeds: *const i64,
            num_slots: usize,
            report: *const Report,
        ) -> *mut c_void,
    >,
    /// Begins an episode of each of `num_resets` slots, or observes the slot, and
    /// writes observation and infos to its row. No slot and no row is there twice.
    /// Where some fail, the others begin all the same.
    pub reset: Option<
        unsafe extern "C" fn(
            chunk: *mut c_void,
            resets: *const Reset,
            num_resets: usize,
            rows: *const Rows,
            report: *const Report,
        ) -> i32,
    >,
    /// Plays the actions of `num_slots` slots from `first_slot` on into the rows,
    /// but not of those for which `skip` is 1: what is written there does not
    /// count. `skip` and `actions` (a block per leaf; for one that is not of fixed
    /// shape an array of `corral_value`) begin with slot 0.
    pub step: Option<
        unsafe extern "C" fn(
            chunk: *mut c_void,
            first_slot: usize,
            num_slots: usize,
            skip: *const u8,
            actions: *const *const c_void,
            rows: *const Rows,
            report: *const Report,
        ) -> i32,
    >,
    /// Whether a reset would take these options; nothing changes. May be NULL
    /// without `CORRAL_CAP_OPTIONS`, as the next four without theirs.
    pub check_options:
        Option<unsafe extern "C" fn(chunk: *mut c_void, options: *const Value, report: *const Report) -> i32>,
    /// Tells `report.state` the state of `slot`.
    pub save: Option<unsafe extern "C" fn(chunk: *mut c_void, slot: usize, report: *const Report) -> i32>,
    /// Takes up a state.
    pub load: Option<
        unsafe extern "C" fn(
            chunk: *mut c_void,
            slot: usize,
            state: *const c_void,
            length: usize,
            report: *const Report,
        ) -> i32,
    >,
    /// Tells `report.frame` a picture of `slot`.
    pub render: Option<unsafe extern "C" fn(chunk: *mut c_void, slot: usize, report: *const Report) -> i32>,
    /// Does to `slot` what is asked of a name, and tells `report.answer`: `kind` is
    /// `CORRAL_CALL_…`, the name UTF-8 without a NUL, `args` a list, `kwargs` a map of
    /// named arguments.
    pub call: Option<
        unsafe extern "C" fn(
            chunk: *mut c_void,
            slot: usize,
            kind: u32,
            name: *const c_char,
            name_length: usize,
            args: *const Value,
            kwargs: *const Value,
            report: *const Report,
        ) -> i32,
    >,
    /// Ends every env; called once, before `free_chunk`. May be NULL.
    pub close: Option<unsafe extern "C" fn(chunk: *mut c_void, report: *const Report) -> i32>,
    /// Frees a chunk.
    pub free_chunk: Option<unsafe extern "C" fn(chunk: *mut c_void)>,
}
