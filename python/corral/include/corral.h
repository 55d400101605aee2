/* Corral's plugin interface, version 5: a shared library of reinforcement-learning
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

// The version of this interface. Later versions only append to its structs.
#define CORRAL_ABI_VERSION 5

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

// A node of a tree that is a leaf, whose number is `value`.
#define CORRAL_NODE_LEAF 1

// A node that is a dict of `value` branches, each of which has a key.
#define CORRAL_NODE_DICT 2

// A node that is a tuple of `value` branches.
#define CORRAL_NODE_TUPLE 3

#define CORRAL_VALUE_NONE 0

#define CORRAL_VALUE_BOOL 1

#define CORRAL_VALUE_INT 2

#define CORRAL_VALUE_REAL 3

#define CORRAL_VALUE_TEXT 4

#define CORRAL_VALUE_ARRAY 5

#define CORRAL_VALUE_LIST 6

#define CORRAL_VALUE_MAP 7

// What every env can do: be reset when asked, begin from a seed, begin an index, be
// left out of a step, show its last observation, tell truncated from terminated, have
// a time limit.
#define CORRAL_CAP_ENV 247

// The env can begin from a seed.
#define CORRAL_CAP_SEED 2

// The env can begin the episode of an index.
#define CORRAL_CAP_INDEX 4

// The env takes options at a reset.
#define CORRAL_CAP_OPTIONS 8

// The env can save and load the state of a slot.
#define CORRAL_CAP_SAVE 256

// The env can draw a slot.
#define CORRAL_CAP_RENDER 512

// The env can call functions, get and set properties by name.
#define CORRAL_CAP_CALL 1024

// The env steps and resets in less than a microsecond, and waits for nothing meanwhile.
#define CORRAL_CAP_BRIEF 4096

// The env tells of events, by the info `CORRAL_EVENTS`.
#define CORRAL_CAP_EVENTS 65536

// The env tells which discrete choices are allowed. The last leaf of the infos is called
// `action_mask` and is of int8, with an element for each choice of each discrete element
// of the action. Every row that shows an observation has this info.
#define CORRAL_CAP_ACTION_MASK 131072

// The env draws a slot as text: the answer to a call of the function "ansi". An env with this
// capability has `CORRAL_CAP_CALL` too.
#define CORRAL_CAP_ANSI 262144

// A call by name that calls the function.
#define CORRAL_CALL_FUNCTION 0

// A call by name that gives the property's value.
#define CORRAL_CALL_GET 1

// A call by name that sets the property to the only argument.
#define CORRAL_CALL_SET 2

// A call by name that gives the names of the properties below this one ("" for the
// root), as a map of each name to whether the property can be set.
#define CORRAL_CALL_LIST 3

// The slot begins the next episode of its own stream.
#define CORRAL_BEGIN_OWN 0

// The slot begins from a seed, which is `value`.
#define CORRAL_BEGIN_SEED 1

// The slot begins the episode of an index, which is `value`.
#define CORRAL_BEGIN_INDEX 2

// The slot begins no episode and shows its current observation again.
#define CORRAL_BEGIN_KEEP 3

// An error of an env.
#define CORRAL_ERROR 1

// A bug that was caught: an assertion, or an exception that nobody expected.
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

// Bytes that are not a state of this env.
#define CORRAL_ERROR_STATE 8

// There is not enough memory.
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

// For `corral_report.leaf`: a leaf of the observation.
#define CORRAL_PART_OBSERVATION 0

// For `corral_report.leaf`: a leaf of the declared infos.
#define CORRAL_PART_INFO 1

// A named value.
typedef struct corral_field {
    // UTF-8 without a NUL, `key_length` bytes.
    const char *key;
    size_t key_length;
    const struct corral_value *value;
} corral_field;

// The content of a value; `kind` says which field is set.
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
    // The type of an array's elements.
    uint32_t dtype;
    // The number of an array's axes.
    size_t num_axes;
    const size_t *shape;
    size_t length;
    union corral_value_data data;
} corral_value;

// A bound: `real` for floats, `integer` for bool and signed integers, `natural` for
// unsigned integers.
typedef union corral_bound {
    double real;
    int64_t integer;
    uint64_t natural;
} corral_bound;

// One named part of a space.
typedef struct corral_leaf {
    // Where the space has no nodes, the leaf's name: empty or NULL for the only leaf of a
    // space that is no struct; a `.` with text on both sides separates the levels of nested
    // structs. Where the space has nodes, the name is not read.
    const char *name;
    // `CORRAL_LEAF_…`.
    uint32_t kind;
    uint32_t dtype;
    // The shape of one row; the largest extents of a ragged leaf; the largest number of
    // characters of a text, as its one axis.
    size_t num_axes;
    const size_t *shape;
    // Whether the values are labels rather than quantities.
    uint32_t discrete;
    // Inclusive bounds: one for all elements or one for each. With a count of 0 the bounds
    // are the dtype's own range.
    size_t num_low;
    const union corral_bound *low;
    size_t num_high;
    const union corral_bound *high;
} corral_leaf;

// A node of a space's tree. Every node is followed directly by the nodes below it.
typedef struct corral_node {
    // The node's key where the node above it is a dict: UTF-8, `key_length` bytes.
    const char *key;
    size_t key_length;
    // `CORRAL_NODE_…`.
    uint32_t kind;
    // The number of the leaf, or how many branches the dict or tuple has.
    size_t value;
} corral_node;

// The leaves of a space, in order, and the tree that they form.
typedef struct corral_space {
    size_t num_leaves;
    const struct corral_leaf *leaves;
    // 0 where the leaves' names determine the tree. A tree has every leaf once.
    size_t num_nodes;
    const struct corral_node *nodes;
} corral_space;

// What an env with given options is.
typedef struct corral_spec {
    // The size of this struct in bytes, as the plugin was compiled.
    size_t size;
    struct corral_space observation;
    struct corral_space action;
    struct corral_space info;
    // What the env can do: the sum of `CORRAL_CAP_…`.
    uint32_t caps;
    // All options of the env and their values, as a JSON object. A replay makes the env
    // from this text, and states are exchanged only between equal texts. NULL where the
    // env has no options.
    const char *config;
    // A map of anything else that users may want to know, or no value.
    struct corral_value metadata;
    // How many agents act in one env. 0 means 1. Hosts of this version refuse other
    // numbers.
    size_t num_agents;
} corral_spec;

// An env of a plugin, before its options are known.
typedef struct corral_entry {
    // `Name-v0`, without the text before the `/`.
    const char *id;
    // One line on what the env is.
    const char *about;
    // The env's usual time limit in steps; 0 for none.
    uint64_t max_episode_steps;
    // The mean return from which the env counts as solved; NaN for none.
    double reward_threshold;
    uint32_t render_fps;
    // Whether the env can be made by its id but is not listed.
    uint32_t hidden;
    // The env's options and their defaults, as a JSON object.
    const char *options;
    // What the options are, as a JSON object with an object for each option: `type` ("bool",
    // "int", "float", "text", or words of your own), and where there is something to tell
    // `meaning` (a text), `low` and `high` (the least and the greatest number) and `choices` (a
    // list of the texts that it takes). NULL tells nothing. Corral shows this to users; `make`
    // checks the options.
    const char *option_docs;
} corral_entry;

// A slot to reset, and how the slot begins.
typedef struct corral_reset {
    size_t slot;
    // The row to which the slot's observation and infos are written.
    size_t row;
    // `CORRAL_BEGIN_…`.
    uint32_t how;
    // Whether the slot's env is to be built again first, because the old env failed or
    // there is none. The seed is `rebuild_seed`, or the seed that the slot begins from.
    uint32_t rebuild;
    // The seed or the index.
    int64_t value;
    int64_t rebuild_seed;
    // A map of options that the env takes before it begins, or NULL.
    const struct corral_value *options;
} corral_reset;

// Rows of a batch to write. The i-th row of a call has the i-th element of each array
// (of leaves, the i-th block of a row's elements). All memory is the host's and
// C-contiguous, and only this call uses it. Reward and flags have an element for each
// agent of each row, agents innermost; with one agent, one element a row.
typedef struct corral_rows {
    size_t num_rows;
    // A block per leaf; NULL for a leaf that is not of fixed shape, whose rows go to
    // `corral_report.leaf`. The content of a block is unspecified before the call.
    void *const *observation;
    double *reward;
    // 0 or 1.
    uint8_t *terminated;
    // 0 or 1.
    uint8_t *truncated;
    // A block per leaf of the declared infos, zeros before the call.
    void *const *info;
    // Per leaf, which rows have the info; 0 before the call.
    uint8_t *const *info_mask;
} corral_rows;

// The functions by which a plugin answers beside its rows. Each copies what it is
// passed before it returns. The report and all that it points to are only valid during
// the call that they came with, and must not be used from two threads at once.
typedef struct corral_report {
    // The first argument of each function.
    void *context;
    // Reports that slot `slot` of the chunk failed or, with `CORRAL_NO_SLOT`, that the call
    // did. A slot that fails in a step or reset is not used until a reset rebuilds it.
    // `kind` is `CORRAL_ERROR…` or `CORRAL_PANIC`, `phase` is `CORRAL_PHASE_…`, and the
    // message is UTF-8 without a NUL.
    void (*fail)(void *context,
                 size_t slot,
                 uint32_t kind,
                 uint32_t phase,
                 const char *message,
                 size_t length);
    // Gives row `row` an info that was not declared.
    void (*info)(void *context, size_t row, const struct corral_field *info);
    // Gives row `row` of leaf `leaf` of `part`, where the leaf is not of fixed shape.
    void (*leaf)(void *context,
                 uint32_t part,
                 size_t leaf,
                 size_t row,
                 const struct corral_value *value);
    // Gives the state that was asked for.
    void (*state)(void *context, const void *bytes, size_t length);
    // Gives the picture that was asked for: RGB, `height · width · 3` bytes, rows from the
    // top.
    void (*frame)(void *context, size_t height, size_t width, const uint8_t *pixels);
    // Gives the answer to a call by name. Without this call there is no answer.
    void (*answer)(void *context, const struct corral_value *value);
} corral_report;

// A plugin. A function that returns an `int32_t` returns 0, or -1 after it has told
// `report.fail` why. No exception may leave a function.
//
// A chunk is some slots, numbered from 0, that one call steps. Calls with one chunk never
// overlap, but may come from several threads; calls with different chunks do overlap.
// Calls of `make`, `spec` and `chunk` may overlap as well.
typedef struct corral_plugin {
    // `CORRAL_ABI_VERSION`.
    uint32_t abi_version;
    // `sizeof(corral_entry)`.
    uint32_t entry_size;
    // `sizeof(corral_plugin)`.
    size_t size;
    // The text before the `/` of the plugin's ids.
    const char *name;
    const char *version;
    // What the plugin was built with, for messages.
    const char *built_with;
    size_t num_envs;
    const struct corral_entry *envs;
    // Makes env number `env` with these options (a map). Returns a source, or NULL after
    // `report.fail`.
    void *(*make)(size_t env, const struct corral_value *options, const struct corral_report *report);
    // What a source is. The result is valid until the source is freed.
    const struct corral_spec *(*spec)(void *source);
    // Frees a source. The source's chunks stay valid.
    void (*free_source)(void *source);
    // Makes a chunk with one slot per seed. Returns NULL after `report.fail`. Without
    // `seeds` the slots hold no env until a reset rebuilds them.
    void *(*chunk)(void *source,
                   const int64_t *seeds,
                   size_t num_slots,
                   const struct corral_report *report);
    // Begins an episode of each of `num_resets` slots, or only observes the slot, and
    // writes observation and infos to the slot's row. No slot and no row is given twice.
    // Where some slots fail, the others begin nevertheless.
    int32_t (*reset)(void *chunk,
                     const struct corral_reset *resets,
                     size_t num_resets,
                     const struct corral_rows *rows,
                     const struct corral_report *report);
    // Plays the actions of `num_slots` slots from `first_slot` on and writes the rows.
    // Slots for which `skip` is 1 are not stepped, and what is written to their rows is
    // ignored. `skip` and `actions` begin with slot 0. `actions` has a block per leaf; for a
    // leaf that is not of fixed shape the block is an array of `corral_value`.
    int32_t (*step)(void *chunk,
                    size_t first_slot,
                    size_t num_slots,
                    const uint8_t *skip,
                    const void *const *actions,
                    const struct corral_rows *rows,
                    const struct corral_report *report);
    // Checks whether a reset would take these options, and changes nothing. May be NULL
    // without `CORRAL_CAP_OPTIONS`; the next four may be NULL without their capability.
    int32_t (*check_options)(void *chunk,
                             const struct corral_value *options,
                             const struct corral_report *report);
    // Passes the state of `slot` to `report.state`.
    int32_t (*save)(void *chunk, size_t slot, const struct corral_report *report);
    // Restores a state of `slot`.
    int32_t (*load)(void *chunk,
                    size_t slot,
                    const void *state,
                    size_t length,
                    const struct corral_report *report);
    // Passes a picture of `slot` to `report.frame`.
    int32_t (*render)(void *chunk, size_t slot, const struct corral_report *report);
    // Makes a call by name to `slot`, and passes the answer to `report.answer`. `kind` is
    // `CORRAL_CALL_…`, the name is UTF-8 without a NUL, `args` is a list, and `kwargs` is a
    // map of named arguments.
    int32_t (*call)(void *chunk,
                    size_t slot,
                    uint32_t kind,
                    const char *name,
                    size_t name_length,
                    const struct corral_value *args,
                    const struct corral_value *kwargs,
                    const struct corral_report *report);
    // Ends every env. It is called once, before `free_chunk`. May be NULL.
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
