/* Corral's plugin interface, version 4: a shared library of reinforcement-learning
 * environments that Corral runs in batches.
 *
 * A plugin exports one function,
 *
 *     const corral_plugin *corral_plugin_entry(void);
 *
 * which returns a table that stays valid for ever. `corral.load("library.so")`
 * does the rest: threads, autoresets, time limits, statistics, NumPy arrays.
 * An example in C is in Corral's repository, tests/abi/c/counter.c.
 *
 * Made from crates/envcore/src/abi/plugin/sys.rs by `make headers`: do not edit.
 */

#ifndef CORRAL_H
#define CORRAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// `slot` for "no slot": a failure of the whole call.
#define CORRAL_NO_SLOT SIZE_MAX

// The version of this interface. Later ones only append to its structs.
#define CORRAL_ABI_VERSION 4

#define CORRAL_BOOL 1

#define CORRAL_UINT8 2

#define CORRAL_INT8 3

#define CORRAL_UINT16 4

#define CORRAL_INT16 5

#define CORRAL_UINT32 6

#define CORRAL_INT32 7

#define CORRAL_UINT64 8

#define CORRAL_INT64 9

#define CORRAL_FLOAT16 10

#define CORRAL_FLOAT32 11

#define CORRAL_FLOAT64 12

// A leaf of fixed dtype and shape: one block of memory per batch.
#define CORRAL_LEAF_FIXED 1

// A leaf whose rows are arrays of one dtype and any shape.
#define CORRAL_LEAF_RAGGED 2

// A leaf whose rows are texts.
#define CORRAL_LEAF_TEXT 3

// What a node of a tree is: the leaf whose number is `value`.
#define CORRAL_NODE_LEAF 1

// … a dict of `value` branches, each of which has a key.
#define CORRAL_NODE_DICT 2

// … a tuple of `value` branches.
#define CORRAL_NODE_TUPLE 3

#define CORRAL_VALUE_NONE 0

#define CORRAL_VALUE_BOOL 1

#define CORRAL_VALUE_INT 2

#define CORRAL_VALUE_REAL 3

#define CORRAL_VALUE_TEXT 4

#define CORRAL_VALUE_ARRAY 5

#define CORRAL_VALUE_LIST 6

#define CORRAL_VALUE_MAP 7

// Every env can do these: reset when asked, begin from a seed, begin an
// index, be left out of a step, show its last observation, tell truncated from
// terminated, bear a time limit.
#define CORRAL_CAP_ENV 247

// Begin from a seed.
#define CORRAL_CAP_SEED 2

// Begin the episode of an index.
#define CORRAL_CAP_INDEX 4

// Take options at a reset.
#define CORRAL_CAP_OPTIONS 8

// Save and load a slot.
#define CORRAL_CAP_SAVE 256

// Draw a slot.
#define CORRAL_CAP_RENDER 512

// Call functions, get and set properties by name.
#define CORRAL_CAP_CALL 1024

// Step and reset in less than a microsecond, and wait for nothing in it.
#define CORRAL_CAP_BRIEF 4096

// Tell of events: the info `CORRAL_EVENTS`.
#define CORRAL_CAP_EVENTS 65536

// Tell which discrete choices are allowed: the last leaf of the infos is called
// `action_mask`, of int8, with an element for each choice of each discrete element
// of the action, and is told in every row that shows an observation.
#define CORRAL_CAP_ACTION_MASK 131072

// What is asked of a name: call the function.
#define CORRAL_CALL_FUNCTION 0

// … give the property's value.
#define CORRAL_CALL_GET 1

// … set the property to the only argument.
#define CORRAL_CALL_SET 2

// … give the names of the properties below this one ("" for the root): a map of each to
// whether it can be set.
#define CORRAL_CALL_LIST 3

// How a slot begins: the next episode of its own stream.
#define CORRAL_BEGIN_OWN 0

// … from the seed that `value` is.
#define CORRAL_BEGIN_SEED 1

// … the episode of the index that `value` is.
#define CORRAL_BEGIN_INDEX 2

// … not at all: it shows its current observation once more.
#define CORRAL_BEGIN_KEEP 3

// An error of an env's own.
#define CORRAL_ERROR 1

// A bug that was caught: an assertion, an exception that nobody expected.
#define CORRAL_PANIC 2

// An argument of the wrong value.
#define CORRAL_ERROR_ARGUMENT 3

// An option that does not exist; the message lists those that do.
#define CORRAL_ERROR_UNKNOWN_OPTION 4

// An option with a value that it does not take.
#define CORRAL_ERROR_OPTION_VALUE 5

// A space that contradicts itself.
#define CORRAL_ERROR_SPACE 6

// Something that the env cannot do.
#define CORRAL_ERROR_UNSUPPORTED 7

// Bytes that are no state of this env.
#define CORRAL_ERROR_STATE 8

// No memory.
#define CORRAL_ERROR_MEMORY 9

// A slot that holds no env, because it failed earlier.
#define CORRAL_ERROR_NEEDS_RESET 10

// A function or property that the env does not have.
#define CORRAL_ERROR_UNKNOWN_NAME 11

#define CORRAL_PHASE_CALL 0

#define CORRAL_PHASE_BUILD 1

#define CORRAL_PHASE_RESET 2

#define CORRAL_PHASE_STEP 3

#define CORRAL_PHASE_RENDER 4

#define CORRAL_PHASE_SAVE 5

#define CORRAL_PHASE_LOAD 6

#define CORRAL_PHASE_CLOSE 7

// In `corral_report.leaf`: a leaf of the observation.
#define CORRAL_PART_OBSERVATION 0

// … of the declared infos.
#define CORRAL_PART_INFO 1

// A named value.
typedef struct corral_field {
    // UTF-8 without a NUL, `key_length` bytes.
    const char *key;
    size_t key_length;
    const struct corral_value *value;
} corral_field;

// What a value is; `kind` says which holds.
typedef union corral_value_data {
    uint8_t boolean;
    int64_t integer;
    double real;
    // UTF-8 without a NUL, `length` bytes.
    const char *text;
    // Elements in row-major order, `length` bytes.
    const void *elements;
    // `length` values.
    const struct corral_value *items;
    // `length` named values.
    const struct corral_field *fields;
} corral_value_data;

// A value of any kind: an option, an info that was not declared, a row of a
// leaf that is not of fixed shape.
typedef struct corral_value {
    uint32_t kind;
    // Of an array's elements.
    uint32_t dtype;
    // Of an array.
    size_t num_axes;
    const size_t *shape;
    size_t length;
    union corral_value_data data;
} corral_value;

// A bound: `real` for floats, `integer` for bool and signed integers, `natural`
// for unsigned ones.
typedef union corral_bound {
    double real;
    int64_t integer;
    uint64_t natural;
} corral_bound;

// One named part of a space.
typedef struct corral_leaf {
    // Where the space has no nodes: empty or NULL for the only leaf of a space that
    // is no struct; a `.` with text on both sides separates the levels of nested
    // structs. With nodes it is not read.
    const char *name;
    // `CORRAL_LEAF_…`.
    uint32_t kind;
    uint32_t dtype;
    // Of one row; the greatest extents of a ragged leaf; the most characters of
    // a text, as its one axis.
    size_t num_axes;
    const size_t *shape;
    // Whether the values are labels rather than quantities.
    uint32_t discrete;
    // One bound for all elements or one for each, inclusive; 0 for the dtype's
    // own range.
    size_t num_low;
    const union corral_bound *low;
    size_t num_high;
    const union corral_bound *high;
} corral_leaf;

// A node of the tree that a space's leaves hang in. Every node stands before the
// nodes under it, which follow at once.
typedef struct corral_node {
    // Its key where the node above it is a dict: UTF-8, `key_length` bytes.
    const char *key;
    size_t key_length;
    // `CORRAL_NODE_…`.
    uint32_t kind;
    // The number of a leaf; how many branches a dict or a tuple has.
    size_t value;
} corral_node;

// Leaves, in order, and the tree that they hang in.
typedef struct corral_space {
    size_t num_leaves;
    const struct corral_leaf *leaves;
    // 0 where the leaves' names say what their tree is. Every leaf is in a tree once.
    size_t num_nodes;
    const struct corral_node *nodes;
} corral_space;

// What an env with its options is.
typedef struct corral_spec {
    // Its bytes, as the plugin was compiled.
    size_t size;
    struct corral_space observation;
    struct corral_space action;
    struct corral_space info;
    // What it can do: `CORRAL_CAP_…`, added up.
    uint32_t caps;
    // The options that it was made with and their values, all of them, as a JSON
    // object: a replay makes it of these, and states are exchanged only between
    // equal texts. NULL where it has none.
    const char *config;
    // A map of whatever else users may want to know, or none.
    struct corral_value metadata;
    // How many agents act in one env: 1, which 0 is read as. Hosts of this version
    // refuse others.
    size_t num_agents;
} corral_spec;

// An env that a plugin has, whatever its options.
typedef struct corral_entry {
    // `Name-v0`, without what comes before the `/`.
    const char *id;
    // One line on what it is.
    const char *about;
    // Its usual time limit in steps; 0 for none.
    uint64_t max_episode_steps;
    // The mean return from which it counts as solved; NaN for none.
    double reward_threshold;
    uint32_t render_fps;
    // Whether it is found by its id and listed nowhere.
    uint32_t hidden;
    // Its options and their defaults, as a JSON object.
    const char *options;
} corral_entry;

// A slot to reset, and how it begins.
typedef struct corral_reset {
    size_t slot;
    // The row for its observation and infos.
    size_t row;
    // `CORRAL_BEGIN_…`.
    uint32_t how;
    // Whether its env is to be made anew first, from the seed `rebuild_seed`
    // (or the seed that it begins from): the old one failed, or there is none.
    uint32_t rebuild;
    // The seed or the index.
    int64_t value;
    int64_t rebuild_seed;
    // A map of options to take first, or NULL.
    const struct corral_value *options;
} corral_reset;

// Rows of a batch to write: what belongs to the i-th row of a call is the i-th
// element (of leaves: the i-th block of a row's elements). All memory is the
// host's, C-contiguous, and the call's alone. Reward and flags have an element
// for each agent of each row, agents innermost; with one agent, one a row.
typedef struct corral_rows {
    size_t num_rows;
    // A block per leaf; NULL for one that is not of fixed shape, which goes to
    // `corral_report.leaf`. What was in it before is unspecified.
    void *const *observation;
    double *reward;
    // 0 or 1.
    uint8_t *terminated;
    // 0 or 1.
    uint8_t *truncated;
    // A block per leaf of the declared infos, at first zeros.
    void *const *info;
    // Per leaf, which rows have it; at first 0.
    uint8_t *const *info_mask;
} corral_rows;

// How a plugin answers, beside its rows. What it passes is copied before the
// function returns. Only valid, with all that it points to, during the call
// that it came with, and not from two threads at once.
typedef struct corral_report {
    // To be passed to each.
    void *context;
    // Slot `slot` of the chunk failed (in a step or reset: it is not used until
    // rebuilt), or with `CORRAL_NO_SLOT` the call did. `kind` is
    // `CORRAL_ERROR…` or `CORRAL_PANIC`, `phase` `CORRAL_PHASE_…`; the message
    // UTF-8 without a NUL.
    void (*fail)(void *context,
                 size_t slot,
                 uint32_t kind,
                 uint32_t phase,
                 const char *message,
                 size_t length);
    // Row `row` has an info that was not declared.
    void (*info)(void *context, size_t row, const struct corral_field *info);
    // Row `row` of leaf `leaf` of `part`, one that is not of fixed shape.
    void (*leaf)(void *context,
                 uint32_t part,
                 size_t leaf,
                 size_t row,
                 const struct corral_value *value);
    // The state that was asked for.
    void (*state)(void *context, const void *bytes, size_t length);
    // The picture that was asked for: RGB, `height · width · 3` bytes, rows from
    // the top.
    void (*frame)(void *context, size_t height, size_t width, const uint8_t *pixels);
    // The answer to a call by name; none without it.
    void (*answer)(void *context, const struct corral_value *value);
} corral_report;

// A plugin. Functions that return an `int32_t` return 0, or -1 after telling
// `report.fail` why. No exception may leave one.
//
// A chunk is some slots, numbered from 0, that are stepped by one call. Calls
// with one chunk never overlap, but need not come from one thread; calls with
// different chunks do overlap. `make`, `spec` and `chunk` may overlap as well.
typedef struct corral_plugin {
    // `CORRAL_ABI_VERSION`.
    uint32_t abi_version;
    // `sizeof(corral_entry)`.
    uint32_t entry_size;
    // `sizeof(corral_plugin)`.
    size_t size;
    // What comes before the `/` of its ids.
    const char *name;
    const char *version;
    // What it was built with, for messages.
    const char *built_with;
    size_t num_envs;
    const struct corral_entry *envs;
    // Env number `env` with these options (a map): a source, or NULL after
    // `report.fail`.
    void *(*make)(size_t env, const struct corral_value *options, const struct corral_report *report);
    // What a source is; holds until it is freed.
    const struct corral_spec *(*spec)(void *source);
    // Frees a source. Its chunks live on.
    void (*free_source)(void *source);
    // A chunk with one slot per seed, or NULL after `report.fail`. Without
    // `seeds` its slots hold no env until a reset rebuilds them.
    void *(*chunk)(void *source,
                   const int64_t *seeds,
                   size_t num_slots,
                   const struct corral_report *report);
    // Begins an episode of each of `num_resets` slots, or observes the slot, and
    // writes observation and infos to its row. No slot and no row is there twice.
    // Where some fail, the others begin all the same.
    int32_t (*reset)(void *chunk,
                     const struct corral_reset *resets,
                     size_t num_resets,
                     const struct corral_rows *rows,
                     const struct corral_report *report);
    // Plays the actions of `num_slots` slots from `first_slot` on into the rows,
    // but not of those for which `skip` is 1: what is written there does not
    // count. `skip` and `actions` (a block per leaf; for one that is not of fixed
    // shape an array of `corral_value`) begin with slot 0.
    int32_t (*step)(void *chunk,
                    size_t first_slot,
                    size_t num_slots,
                    const uint8_t *skip,
                    const void *const *actions,
                    const struct corral_rows *rows,
                    const struct corral_report *report);
    // Whether a reset would take these options; nothing changes. May be NULL
    // without `CORRAL_CAP_OPTIONS`, as the next four without theirs.
    int32_t (*check_options)(void *chunk,
                             const struct corral_value *options,
                             const struct corral_report *report);
    // Tells `report.state` the state of `slot`.
    int32_t (*save)(void *chunk, size_t slot, const struct corral_report *report);
    // Takes up a state.
    int32_t (*load)(void *chunk,
                    size_t slot,
                    const void *state,
                    size_t length,
                    const struct corral_report *report);
    // Tells `report.frame` a picture of `slot`.
    int32_t (*render)(void *chunk, size_t slot, const struct corral_report *report);
    // Does to `slot` what is asked of a name, and tells `report.answer`: `kind` is
    // `CORRAL_CALL_…`, the name UTF-8 without a NUL, `args` a list, `kwargs` a map of
    // named arguments.
    int32_t (*call)(void *chunk,
                    size_t slot,
                    uint32_t kind,
                    const char *name,
                    size_t name_length,
                    const struct corral_value *args,
                    const struct corral_value *kwargs,
                    const struct corral_report *report);
    // Ends every env; called once, before `free_chunk`. May be NULL.
    int32_t (*close)(void *chunk, const struct corral_report *report);
    // Frees a chunk.
    void (*free_chunk)(void *chunk);
} corral_plugin;

#endif  /* CORRAL_H */

/* The key of the info that a row's events are: a list of lists, each of a name
 * (a text) and a list of values. */
#define CORRAL_EVENTS "events"

#if defined(_WIN32)
#define CORRAL_API __declspec(dllexport)
#else
#define CORRAL_API __attribute__((__visibility__("default")))
#endif

/* What a plugin exports. */
CORRAL_API const corral_plugin *corral_plugin_entry(void);

#ifdef __cplusplus
}  /* extern "C" */
#endif
