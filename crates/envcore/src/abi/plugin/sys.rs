//! The layout of a plugin. `corral.h` is generated from this file.
//!
//! Above 400 lines because a header is generated from one file.

use std::ffi::{c_char, c_void};

/// The version of this interface. Later versions only append to its structs.
pub const CORRAL_ABI_VERSION: u32 = 5;

/// The name of the one function that a plugin exports:
/// `const corral_plugin *corral_plugin_entry(void)`.
pub const CORRAL_PLUGIN_SYMBOL: &str = "corral_plugin_entry";

/// Element types, for `dtype`: a bool is one byte, 0 or 1; the others are C's numbers of as many
/// bits, and a float16 is IEEE's half, in two bytes. Numbers are native-endian.
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

/// A leaf of fixed dtype and shape: one block of memory per batch. The usual kind.
pub const CORRAL_LEAF_FIXED: u32 = 1;
/// A leaf whose rows are arrays of one dtype and any shape.
pub const CORRAL_LEAF_RAGGED: u32 = 2;
/// A leaf whose rows are texts.
pub const CORRAL_LEAF_TEXT: u32 = 3;

/// A node of a tree that is a leaf, whose number is `value`.
pub const CORRAL_NODE_LEAF: u32 = 1;
/// A node that is a dict of `value` branches, each of which has a key.
pub const CORRAL_NODE_DICT: u32 = 2;
/// A node that is a tuple of `value` branches.
pub const CORRAL_NODE_TUPLE: u32 = 3;

/// Kinds of value, for `corral_value.kind`; `corral_value_data` says which field goes with which.
pub const CORRAL_VALUE_NONE: u32 = 0;
pub const CORRAL_VALUE_BOOL: u32 = 1;
pub const CORRAL_VALUE_INT: u32 = 2;
pub const CORRAL_VALUE_REAL: u32 = 3;
pub const CORRAL_VALUE_TEXT: u32 = 4;
pub const CORRAL_VALUE_ARRAY: u32 = 5;
pub const CORRAL_VALUE_LIST: u32 = 6;
pub const CORRAL_VALUE_MAP: u32 = 7;

/// What every env can do: be reset when asked, begin from a seed, begin an index, be
/// left out of a step, show its last observation, tell truncated from terminated, have
/// a time limit. `reset` and `step` are all that it takes.
pub const CORRAL_CAP_ENV: u32 = 247;
/// The env can begin from a seed.
pub const CORRAL_CAP_SEED: u32 = 2;
/// The env can begin the episode of an index.
pub const CORRAL_CAP_INDEX: u32 = 4;
/// The env takes options at a reset: `check_options`, and `corral_reset.options`.
pub const CORRAL_CAP_OPTIONS: u32 = 8;
/// The env can save and load the state of a slot, with its random stream: `save`, `load`.
pub const CORRAL_CAP_SAVE: u32 = 256;
/// The env can draw a slot: `render`.
pub const CORRAL_CAP_RENDER: u32 = 512;
/// The env can call functions, get and set properties by name: `call`.
pub const CORRAL_CAP_CALL: u32 = 1024;
/// The env steps and resets in less than a microsecond, and waits for nothing meanwhile.
pub const CORRAL_CAP_BRIEF: u32 = 4096;
/// The env tells of events, by the info `CORRAL_EVENTS`.
pub const CORRAL_CAP_EVENTS: u32 = 65536;
/// The env tells which discrete choices are allowed. The last leaf of the infos is called
/// `action_mask` and is of int8, with an element for each choice of each discrete element
/// of the action. Every row that shows an observation has this info.
pub const CORRAL_CAP_ACTION_MASK: u32 = 131072;
/// The env draws a slot as text: the answer to a call of the function "ansi". An env with this
/// capability has `CORRAL_CAP_CALL` too.
pub const CORRAL_CAP_ANSI: u32 = 262144;

/// A call by name that calls the function.
pub const CORRAL_CALL_FUNCTION: u32 = 0;
/// A call by name that gives the property's value.
pub const CORRAL_CALL_GET: u32 = 1;
/// A call by name that sets the property to the only argument.
pub const CORRAL_CALL_SET: u32 = 2;
/// A call by name that gives the names of the properties below this one ("" for the
/// root), as a map of each name to whether the property can be set.
pub const CORRAL_CALL_LIST: u32 = 3;

/// The slot begins the next episode of its own stream.
pub const CORRAL_BEGIN_OWN: u32 = 0;
/// The slot begins from a seed, which is `value`.
pub const CORRAL_BEGIN_SEED: u32 = 1;
/// The slot begins the episode of an index, which is `value`.
pub const CORRAL_BEGIN_INDEX: u32 = 2;
/// The slot begins no episode and shows its current observation again.
pub const CORRAL_BEGIN_KEEP: u32 = 3;

/// An error of an env. Of a step or reset every other kind counts as this one, except
/// `CORRAL_PANIC`.
pub const CORRAL_ERROR: u32 = 1;
/// A bug that was caught: an assertion, or an exception that nobody expected. What follows a line
/// "stack backtrace:" in the message is shown to users apart from it.
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
/// Bytes that are not a state of this env.
pub const CORRAL_ERROR_STATE: u32 = 8;
/// There is not enough memory.
pub const CORRAL_ERROR_MEMORY: u32 = 9;
/// A slot that holds no env, because it failed earlier.
pub const CORRAL_ERROR_NEEDS_RESET: u32 = 10;
/// A function or property that the env does not have.
pub const CORRAL_ERROR_UNKNOWN_NAME: u32 = 11;

/// What an env was doing when it failed, for `corral_report.fail`. 0 stands for the purpose of
/// the function that reports, which is right for every plugin in C.
pub const CORRAL_PHASE_CALL: u32 = 0;
pub const CORRAL_PHASE_BUILD: u32 = 1;
pub const CORRAL_PHASE_RESET: u32 = 2;
pub const CORRAL_PHASE_STEP: u32 = 3;
pub const CORRAL_PHASE_RENDER: u32 = 4;
pub const CORRAL_PHASE_SAVE: u32 = 5;
pub const CORRAL_PHASE_LOAD: u32 = 6;
pub const CORRAL_PHASE_CLOSE: u32 = 7;

/// For `corral_report.leaf`: a leaf of the observation.
pub const CORRAL_PART_OBSERVATION: u32 = 0;
/// For `corral_report.leaf`: a leaf of the declared infos.
pub const CORRAL_PART_INFO: u32 = 1;

/// In place of a slot, says that the whole call failed.
pub const CORRAL_NO_SLOT: usize = usize::MAX;

/// The content of a value; `kind` says which field is set.
#[derive(Clone, Copy)]
#[repr(C)]
pub union ValueData {
    /// `CORRAL_VALUE_BOOL`: 0 or 1.
    pub boolean: u8,
    /// `CORRAL_VALUE_INT`.
    pub integer: i64,
    /// `CORRAL_VALUE_REAL`.
    pub real: f64,
    /// `CORRAL_VALUE_TEXT`: UTF-8, `length` bytes. No NUL ends it.
    pub text: *const c_char,
    /// `CORRAL_VALUE_ARRAY`: elements in row-major order, `length` bytes.
    pub elements: *const c_void,
    /// `CORRAL_VALUE_LIST`: `length` values.
    pub items: *const Value,
    /// `CORRAL_VALUE_MAP`: `length` named values.
    pub fields: *const Field,
}

/// A value of any kind: an option, an info that was not declared, a row of a
/// leaf that is not of fixed shape. Whoever gives a value owns it and all that it points to:
/// the host's are valid during the call that they came with, and the host copies a plugin's
/// before the function of the report returns. All zeros are the value "none".
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Value {
    /// `CORRAL_VALUE_…`.
    pub kind: u32,
    /// The type of an array's elements.
    pub dtype: u32,
    /// The number of an array's axes.
    pub num_axes: usize,
    /// The extents of an array's axes.
    pub shape: *const usize,
    /// The bytes of a text or an array, the items of a list, the fields of a map.
    pub length: usize,
    pub data: ValueData,
}

/// A named value: a field of a map.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Field {
    /// UTF-8, `key_length` bytes. No NUL ends it.
    pub key: *const c_char,
    pub key_length: usize,
    pub value: *const Value,
}

/// A bound: `real` for floats, `integer` for bool and signed integers, `natural` for
/// unsigned integers.
#[derive(Clone, Copy)]
#[repr(C)]
pub union Bound {
    pub real: f64,
    pub integer: i64,
    pub natural: u64,
}

/// One named part of a space: an array of numbers, or a single one, where `num_axes` is 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Leaf {
    /// Where the space has no nodes, the leaf's name: empty or NULL for the only leaf of a
    /// space that is no struct; a `.` with text on both sides separates the levels of nested
    /// structs. Where the space has nodes, the name is not read.
    pub name: *const c_char,
    /// `CORRAL_LEAF_…`.
    pub kind: u32,
    /// `CORRAL_FLOAT32`, for instance; not read of texts.
    pub dtype: u32,
    /// The shape of one row; the largest extents of a ragged leaf; the largest number of
    /// characters of a text, as its one axis.
    pub num_axes: usize,
    pub shape: *const usize,
    /// 1 where the values are labels (Gymnasium's Discrete and MultiDiscrete), 0 where they are
    /// quantities (its Box). Labels are integers with a lower and an upper bound.
    pub discrete: u32,
    /// Inclusive bounds: one for all elements or one for each. With a count of 0 the bounds
    /// are the dtype's own range, and the pointer is not read. An action is within the bounds of
    /// labels when it reaches `step`; a quantity may be beyond them, for the env to clip.
    pub num_low: usize,
    pub low: *const Bound,
    pub num_high: usize,
    pub high: *const Bound,
}

/// A node of a space's tree. Every node is followed directly by the nodes below it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Node {
    /// The node's key where the node above it is a dict: UTF-8, `key_length` bytes. No NUL ends
    /// it.
    pub key: *const c_char,
    pub key_length: usize,
    /// `CORRAL_NODE_…`.
    pub kind: u32,
    /// The number of the leaf, or how many branches the dict or tuple has.
    pub value: usize,
}

/// The leaves of a space, in order, and the tree that they form. A space of one leaf without a
/// name is that leaf; any other is a dict of its leaves by name. All zeros are an empty space,
/// which infos may have, and observations.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Space {
    pub num_leaves: usize,
    pub leaves: *const Leaf,
    /// 0 where the leaves' names determine the tree. A tree has every leaf once.
    pub num_nodes: usize,
    pub nodes: *const Node,
}

/// What an env with given options is: of each of its slots. It and all that it points to are the
/// plugin's, and stay as they are until `free_source`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Spec {
    /// The size of this struct in bytes, as the plugin was compiled: `sizeof(corral_spec)`.
    pub size: usize,
    /// What a slot shows.
    pub observation: Space,
    /// What a slot takes. It has at least one leaf.
    pub action: Space,
    /// What a slot tells beside: its declared infos.
    pub info: Space,
    /// What the env can do: the sum of `CORRAL_CAP_…`.
    pub caps: u32,
    /// All options of the env and their values, as a JSON object. A replay makes the env
    /// from this text, and states are exchanged only between equal texts. NULL where the
    /// env has no options.
    pub config: *const c_char,
    /// A map of anything else that users may want to know, or no value.
    pub metadata: Value,
    /// How many agents act in one env. 0 means 1. Hosts of this version refuse other
    /// numbers.
    pub num_agents: usize,
}

/// An env of a plugin, before its options are known. Texts are UTF-8 and end with a NUL.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Entry {
    /// `Name-v0`, without the text before the `/`.
    pub id: *const c_char,
    /// One line on what the env is.
    pub about: *const c_char,
    /// The env's usual time limit in steps; 0 for none. The host counts and truncates: the env
    /// does not.
    pub max_episode_steps: u64,
    /// The mean return from which the env counts as solved; NaN for none.
    pub reward_threshold: f64,
    /// The frames per second at which the env's episodes look natural; 0 for unknown.
    pub render_fps: u32,
    /// 1 for an env that can be made by its id but is not listed, else 0.
    pub hidden: u32,
    /// The env's options and their defaults, as a JSON object; NULL for none.
    pub options: *const c_char,
    /// What the options are, as a JSON object with an object for each option: `type` ("bool",
    /// "int", "float", "text", or words of your own), and where there is something to tell
    /// `meaning` (a text), `low` and `high` (the least and the greatest number) and `choices` (a
    /// list of the texts that it takes). NULL tells nothing. Corral shows this to users; `make`
    /// checks the options.
    pub option_docs: *const c_char,
}

/// A slot to reset, and how the slot begins. In this order: build the env anew if `rebuild` says
/// so, take the options, begin as `how` says, show the observation.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Reset {
    pub slot: usize,
    /// The row to which the slot's observation and infos are written.
    pub row: usize,
    /// `CORRAL_BEGIN_…`.
    pub how: u32,
    /// 1 where the slot's env is to be built again first, because the old env failed or
    /// there is none, else 0. The seed is `rebuild_seed`, or the seed that the slot begins from.
    pub rebuild: u32,
    /// The seed, 0 or greater; or the index, whose bits are those of a `uint64_t`. The same seed
    /// gives the same episodes whatever the slot did before. An index's episode depends on the
    /// index, the options and the actions alone, and leaves the slot's own random stream as it
    /// was: the next `CORRAL_BEGIN_OWN` goes on with that.
    pub value: i64,
    pub rebuild_seed: i64,
    /// A map of options that the env takes before it begins, or NULL.
    pub options: *const Value,
}

/// Rows of a batch to write. The i-th row of a call has the i-th element of each array
/// (of leaves, the i-th block of a row's elements: row i of a leaf of 4 floats is at
/// `(float *)observation[leaf] + 4 * i`). All memory is the host's, aligned for its dtype and
/// C-contiguous, and only this call uses it: write within the rows, and keep no pointer. Reward
/// and flags have an element for each agent of each row, agents innermost; with one agent, one
/// element a row.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Rows {
    pub num_rows: usize,
    /// A block per leaf; NULL for a leaf that is not of fixed shape, whose rows go to
    /// `corral_report.leaf`. The content of a block is unspecified before the call: write all of
    /// it, in every row that the call is about.
    pub observation: *const *mut c_void,
    /// Written by `step` alone, for every row, as the two flags are.
    pub reward: *mut f64,
    /// 1 where the episode ended by the env's own rules, else 0. Anything but 0 passes for 1, and
    /// is an error of the slot where the vec env is made with debug=True or the
    /// environment variable CORRAL_DEBUG is 1; so it is with
    /// all flags and leaves of `CORRAL_BOOL`.
    pub terminated: *mut u8,
    /// 1 where the episode was cut short, by a limit of the env's own, else 0.
    pub truncated: *mut u8,
    /// A block per leaf of the declared infos, zeros before the call.
    pub info: *const *mut c_void,
    /// Per leaf, which rows have the info: 1 for a row that has it; 0 before the call.
    pub info_mask: *const *mut u8,
}

/// The functions by which a plugin answers beside its rows. Each copies what it is
/// passed before it returns. The report and all that it points to are only valid during
/// the call that they came with, and must not be used from two threads at once.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Report {
    /// The first argument of each function.
    pub context: *mut c_void,
    /// Reports that slot `slot` of the chunk failed or, with `CORRAL_NO_SLOT`, that the call
    /// did. A slot that fails in a step or reset is not used until a reset rebuilds it.
    /// `kind` is `CORRAL_ERROR…` or `CORRAL_PANIC`, `phase` is `CORRAL_PHASE_…` (0 will do), and
    /// the message is UTF-8 of `length` bytes, for the user: what was wrong, with the value, and
    /// what to do.
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
    /// Gives row `row` an info that was not declared. It costs an allocation, which declared
    /// infos do not.
    pub info: Option<unsafe extern "C" fn(context: *mut c_void, row: usize, info: *const Field)>,
    /// Gives row `row` of leaf `leaf` of `part`, where the leaf is not of fixed shape.
    pub leaf: Option<
        unsafe extern "C" fn(context: *mut c_void, part: u32, leaf: usize, row: usize, value: *const Value),
    >,
    /// Gives the state that was asked for.
    pub state: Option<unsafe extern "C" fn(context: *mut c_void, bytes: *const c_void, length: usize)>,
    /// Gives the picture that was asked for: RGB, `height · width · 3` bytes, rows from the
    /// top.
    pub frame:
        Option<unsafe extern "C" fn(context: *mut c_void, height: usize, width: usize, pixels: *const u8)>,
    /// Gives the answer to a call by name. Without this call there is no answer.
    pub answer: Option<unsafe extern "C" fn(context: *mut c_void, value: *const Value)>,
}

/// A plugin. A function that returns an `int32_t` returns 0, or -1 after it has told
/// `report.fail` why. No exception, `longjmp` or `exit` may leave a function.
///
/// The host calls `make` and `spec` once for each use of an env; then `chunk`, once or for each
/// of its threads; then `reset` and `step` of each chunk, a `reset` of every slot first; at the end
/// `close` and `free_chunk` of each chunk, and `free_source`, whichever comes first. A slot is
/// not stepped after an episode's end, or after it failed, until it is reset: when that happens is
/// the host's affair (autoreset, time limits), and no plugin needs to know.
///
/// A chunk is some slots, numbered from 0, that one call steps. Calls with one chunk never
/// overlap, but may come from several threads; calls with different chunks do overlap.
/// Calls of `make`, `spec` and `chunk` may overlap as well. So a plugin needs no lock, and has no
/// variables that change outside its sources and chunks. A function returns soon: nobody else
/// can stop it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Plugin {
    /// `CORRAL_ABI_VERSION`.
    pub abi_version: u32,
    /// `sizeof(corral_entry)`.
    pub entry_size: u32,
    /// `sizeof(corral_plugin)`.
    pub size: usize,
    /// The text before the `/` of the plugin's ids. Texts of the table are UTF-8 and end with a
    /// NUL.
    pub name: *const c_char,
    /// The plugin's own version, for messages; NULL for none.
    pub version: *const c_char,
    /// What the plugin was built with, for messages; NULL for nothing to say.
    pub built_with: *const c_char,
    pub num_envs: usize,
    pub envs: *const Entry,
    /// Makes env number `env` of `envs` with these options (a map; those that are not in it have
    /// their defaults). Returns a source, which is the plugin's own (any address but NULL), or
    /// NULL after `report.fail`: of an option that the env does not have with
    /// `CORRAL_ERROR_UNKNOWN_OPTION`, of a value that it does not take with
    /// `CORRAL_ERROR_OPTION_VALUE`.
    pub make:
        Option<unsafe extern "C" fn(env: usize, options: *const Value, report: *const Report) -> *mut c_void>,
    /// What a source is. The result is valid until the source is freed.
    pub spec: Option<unsafe extern "C" fn(source: *mut c_void) -> *const Spec>,
    /// Frees a source. The source's chunks stay valid.
    pub free_source: Option<unsafe extern "C" fn(source: *mut c_void)>,
    /// Makes a chunk with one slot per seed, which begins slot i's random stream. Returns NULL
    /// after `report.fail`. Where `seeds` is NULL the slots hold no env until a reset rebuilds
    /// them.
    pub chunk: Option<
        unsafe extern "C" fn(
            source: *mut c_void,
            seeds: *const i64,
            num_slots: usize,
            report: *const Report,
        ) -> *mut c_void,
    >,
    /// Begins an episode of each of `num_resets` slots, or only observes the slot, and
    /// writes observation and infos to the slot's row, never reward and flags. No slot and no row
    /// is given twice. Where some slots fail, the others begin nevertheless.
    pub reset: Option<
        unsafe extern "C" fn(
            chunk: *mut c_void,
            resets: *const Reset,
            num_resets: usize,
            rows: *const Rows,
            report: *const Report,
        ) -> i32,
    >,
    /// Plays the actions of `num_slots` slots from `first_slot` on and writes the rows: row 0 is
    /// that of `first_slot`. Slots for which `skip` is 1 are not stepped, and what is written to
    /// their rows is ignored. `skip` and `actions` begin with slot 0: slot s has `skip[s]` and,
    /// of a leaf of n elements, those from `n * s` on. `actions` has a block per leaf; for a
    /// leaf that is not of fixed shape the block is an array of `corral_value`. Where some slots
    /// fail, the others are stepped nevertheless. This is the call that speed depends on.
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
    /// Checks whether a reset would take these options, and changes nothing. May be NULL
    /// without `CORRAL_CAP_OPTIONS`; the next four may be NULL without their capability.
    pub check_options:
        Option<unsafe extern "C" fn(chunk: *mut c_void, options: *const Value, report: *const Report) -> i32>,
    /// Passes the state of `slot` to `report.state`: all bytes that its future depends on, in a
    /// form that another process understands.
    pub save: Option<unsafe extern "C" fn(chunk: *mut c_void, slot: usize, report: *const Report) -> i32>,
    /// Restores a state in `slot`, which may have been saved of another slot of an env with the
    /// same options, or in another process. `CORRAL_ERROR_STATE` for bytes that are none.
    pub load: Option<
        unsafe extern "C" fn(
            chunk: *mut c_void,
            slot: usize,
            state: *const c_void,
            length: usize,
            report: *const Report,
        ) -> i32,
    >,
    /// Passes a picture of `slot` to `report.frame`.
    pub render: Option<unsafe extern "C" fn(chunk: *mut c_void, slot: usize, report: *const Report) -> i32>,
    /// Makes a call by name to `slot`, and passes the answer to `report.answer`. `kind` is
    /// `CORRAL_CALL_…`, the name is UTF-8 without a NUL, `args` is a list, and `kwargs` is a
    /// map of named arguments.
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
    /// Ends every env. It is called at most once, before `free_chunk`. May be NULL.
    pub close: Option<unsafe extern "C" fn(chunk: *mut c_void, report: *const Report) -> i32>,
    /// Frees a chunk, whose envs may not have been ended by `close`.
    pub free_chunk: Option<unsafe extern "C" fn(chunk: *mut c_void)>,
}
