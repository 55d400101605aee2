/* Corral's plugin interface, version 5: a shared library of reinforcement-learning
 * environments that Corral runs in batches.
 *
 * A plugin exports one function,
 *
 *     const corral_plugin *corral_plugin_entry(void);
 *
 * which returns a table that stays valid for ever. `corral.load("library.so")`
 * does the rest: threads, autoresets, time limits, statistics, NumPy arrays. What
 * each function must do is said at its place in `corral_plugin`, at the end.
 *
 *     INCLUDE=$(python -c "import corral; print(corral.include_dir())")
 *     cc -std=c99 -O2 -shared -fPIC -I"$INCLUDE" walk.c -o walk.so
 *     corral check walk.so
 *
 * builds a plugin and plays it. A whole one, walk.c, whose env walks from a random
 * place between -3 and 3 to 5:
 *
 *     #include <corral.h>
 *     #include <stdlib.h>
 *     typedef struct { uint64_t stream; int32_t at; } slot;  // one env
 *     static const corral_bound LOW = {.integer = -5}, HIGH = {.integer = 5};
 *     static const corral_bound LEFT = {.integer = 0}, RIGHT = {.integer = 1};
 *     static const corral_leaf AT = {.kind = CORRAL_LEAF_FIXED, .dtype = CORRAL_INT32,
 *                                    .num_low = 1, .low = &LOW, .num_high = 1, .high = &HIGH};
 *     static const corral_leaf MOVE = {.kind = CORRAL_LEAF_FIXED, .dtype = CORRAL_INT64, .discrete = 1,
 *                                      .num_low = 1, .low = &LEFT, .num_high = 1, .high = &RIGHT};
 *     static const corral_spec SPEC = {.size = sizeof(corral_spec), .caps = CORRAL_CAP_ENV,
 *         .observation = {.num_leaves = 1, .leaves = &AT}, .action = {.num_leaves = 1, .leaves = &MOVE}};
 *     static void *make(size_t env, const corral_value *options, const corral_report *report) {
 *         (void)env;
 *         if (options == NULL || options->length == 0) return (void *)&SPEC;
 *         report->fail(report->context, CORRAL_NO_SLOT, CORRAL_ERROR_UNKNOWN_OPTION, 0, "Walk takes none", 15);
 *         return NULL;
 *     }
 *     static const corral_spec *spec(void *source) { return source; }
 *     static void free_source(void *source) { (void)source; }
 *     static void *chunk(void *source, const int64_t *seeds, size_t n, const corral_report *report) {
 *         slot *slots = calloc(n, sizeof(slot));
 *         (void)source;
 *         if (slots == NULL) report->fail(report->context, CORRAL_NO_SLOT, CORRAL_ERROR_MEMORY, 0, "", 0);
 *         for (size_t k = 0; slots != NULL && seeds != NULL && k < n; k++) slots[k].stream = (uint64_t)seeds[k];
 *         return slots;
 *     }
 *     static int32_t reset(void *chunk_, const corral_reset *resets, size_t n, const corral_rows *rows,
 *                          const corral_report *report) {
 *         (void)report;
 *         for (const corral_reset *r = resets; r < resets + n; r++) {
 *             slot *s = (slot *)chunk_ + r->slot;
 *             uint64_t index = (uint64_t)r->value, *from = r->how == CORRAL_BEGIN_INDEX ? &index : &s->stream;
 *             if (r->rebuild) s->stream = (uint64_t)r->rebuild_seed;
 *             if (r->how == CORRAL_BEGIN_SEED) s->stream = (uint64_t)r->value;
 *             if (r->how != CORRAL_BEGIN_KEEP) {
 *                 *from = *from * 6364136223846793005u + 1442695040888963407u;
 *                 s->at = (int32_t)((*from >> 33) % 7) - 3;
 *             }
 *             ((int32_t *)rows->observation[0])[r->row] = s->at;
 *         }
 *         return 0;
 *     }
 *     static int32_t step(void *chunk_, size_t first, size_t n, const uint8_t *skip,
 *                         const void *const *actions, const corral_rows *rows, const corral_report *report) {
 *         (void)report;
 *         for (size_t row = 0; row < n; row++) {
 *             slot *s = (slot *)chunk_ + first + row;
 *             if (skip[first + row]) continue;
 *             s->at += ((const int64_t *)actions[0])[first + row] == 1 ? 1 : -1;
 *             ((int32_t *)rows->observation[0])[row] = s->at;
 *             rows->reward[row] = s->at == 5;
 *             rows->terminated[row] = s->at == 5 || s->at == -5;
 *             rows->truncated[row] = 0;
 *         }
 *         return 0;
 *     }
 *     static const corral_entry WALK = {.id = "Walk-v0", .about = "Go to 5.", .max_episode_steps = 100,
 *                                       .reward_threshold = 0.9};
 *     static const corral_plugin PLUGIN = {
 *         .abi_version = CORRAL_ABI_VERSION, .entry_size = sizeof(corral_entry),
 *         .size = sizeof(corral_plugin), .name = "walking", .num_envs = 1, .envs = &WALK,
 *         .make = make, .spec = spec, .free_source = free_source, .chunk = chunk, .reset = reset,
 *         .step = step, .free_chunk = free};
 *     const corral_plugin *corral_plugin_entry(void) { return &PLUGIN; }
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

// Element types, for `dtype`: a bool is one byte, 0 or 1; the others are C's numbers of as many
// bits, and a float16 is IEEE's half, in two bytes. Numbers are native-endian.
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

// A leaf of fixed dtype and shape: one block of memory per batch. The usual kind.
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

// Kinds of value, for `corral_value.kind`; `corral_value_data` says which field goes with which.
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
// a time limit. `reset` and `step` are all that it takes.
#define CORRAL_CAP_ENV 247

// The env can begin from a seed.
#define CORRAL_CAP_SEED 2

// The env can begin the episode of an index.
#define CORRAL_CAP_INDEX 4

// The env takes options at a reset: `check_options`, and `corral_reset.options`.
#define CORRAL_CAP_OPTIONS 8

// The env can save and load the state of a slot, with its random stream: `save`, `load`.
#define CORRAL_CAP_SAVE 256

// The env can draw a slot: `render`.
#define CORRAL_CAP_RENDER 512

// The env can call functions, get and set properties by name: `call`.
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

// An error of an env. Of a step or reset every other kind counts as this one, except
// `CORRAL_PANIC`.
#define CORRAL_ERROR 1

// A bug that was caught: an assertion, or an exception that nobody expected. What follows a line
// "stack backtrace:" in the message is shown to users apart from it.
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

// What an env was doing when it failed, for `corral_report.fail`. 0 stands for the purpose of
// the function that reports, which is right for every plugin in C.
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

// A named value: a field of a map.
typedef struct corral_field {
    // UTF-8, `key_length` bytes. No NUL ends it.
    const char *key;
    size_t key_length;
    const struct corral_value *value;
} corral_field;

// The content of a value; `kind` says which field is set.
typedef union corral_value_data {
    // `CORRAL_VALUE_BOOL`: 0 or 1.
    uint8_t boolean;
    // `CORRAL_VALUE_INT`.
    int64_t integer;
    // `CORRAL_VALUE_REAL`.
    double real;
    // `CORRAL_VALUE_TEXT`: UTF-8, `length` bytes. No NUL ends it.
    const char *text;
    // `CORRAL_VALUE_ARRAY`: elements in row-major order, `length` bytes.
    const void *elements;
    // `CORRAL_VALUE_LIST`: `length` values.
    const struct corral_value *items;
    // `CORRAL_VALUE_MAP`: `length` named values.
    const struct corral_field *fields;
} corral_value_data;

// A value of any kind: an option, an info that was not declared, a row of a
// leaf that is not of fixed shape. Whoever gives a value owns it and all that it points to:
// the host's are valid during the call that they came with, and the host copies a plugin's
// before the function of the report returns. All zeros are the value "none".
typedef struct corral_value {
    // `CORRAL_VALUE_…`.
    uint32_t kind;
    // The type of an array's elements.
    uint32_t dtype;
    // The number of an array's axes.
    size_t num_axes;
    // The extents of an array's axes.
    const size_t *shape;
    // The bytes of a text or an array, the items of a list, the fields of a map.
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

// One named part of a space: an array of numbers, or a single one, where `num_axes` is 0.
typedef struct corral_leaf {
    // Where the space has no nodes, the leaf's name: empty or NULL for the only leaf of a
    // space that is no struct; a `.` with text on both sides separates the levels of nested
    // structs. Where the space has nodes, the name is not read.
    const char *name;
    // `CORRAL_LEAF_…`.
    uint32_t kind;
    // `CORRAL_FLOAT32`, for instance; not read of texts.
    uint32_t dtype;
    // The shape of one row; the largest extents of a ragged leaf; the largest number of
    // characters of a text, as its one axis.
    size_t num_axes;
    const size_t *shape;
    // 1 where the values are labels (Gymnasium's Discrete and MultiDiscrete), 0 where they are
    // quantities (its Box). Labels are integers with a lower and an upper bound.
    uint32_t discrete;
    // Inclusive bounds: one for all elements or one for each. With a count of 0 the bounds
    // are the dtype's own range, and the pointer is not read. An action is within the bounds of
    // labels when it reaches `step`; a quantity may be beyond them, for the env to clip.
    size_t num_low;
    const union corral_bound *low;
    size_t num_high;
    const union corral_bound *high;
} corral_leaf;

// A node of a space's tree. Every node is followed directly by the nodes below it.
typedef struct corral_node {
    // The node's key where the node above it is a dict: UTF-8, `key_length` bytes. No NUL ends
    // it.
    const char *key;
    size_t key_length;
    // `CORRAL_NODE_…`.
    uint32_t kind;
    // The number of the leaf, or how many branches the dict or tuple has.
    size_t value;
} corral_node;

// The leaves of a space, in order, and the tree that they form. A space of one leaf without a
// name is that leaf; any other is a dict of its leaves by name. All zeros are an empty space,
// which infos may have, and observations.
typedef struct corral_space {
    size_t num_leaves;
    const struct corral_leaf *leaves;
    // 0 where the leaves' names determine the tree. A tree has every leaf once.
    size_t num_nodes;
    const struct corral_node *nodes;
} corral_space;

// What an env with given options is: of each of its slots. It and all that it points to are the
// plugin's, and stay as they are until `free_source`.
typedef struct corral_spec {
    // The size of this struct in bytes, as the plugin was compiled: `sizeof(corral_spec)`.
    size_t size;
    // What a slot shows.
    struct corral_space observation;
    // What a slot takes. It has at least one leaf.
    struct corral_space action;
    // What a slot tells beside: its declared infos.
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

// An env of a plugin, before its options are known. Texts are UTF-8 and end with a NUL.
typedef struct corral_entry {
    // `Name-v0`, without the text before the `/`.
    const char *id;
    // One line on what the env is.
    const char *about;
    // The env's usual time limit in steps; 0 for none. The host counts and truncates: the env
    // does not.
    uint64_t max_episode_steps;
    // The mean return from which the env counts as solved; NaN for none.
    double reward_threshold;
    // The frames per second at which the env's episodes look natural; 0 for unknown.
    uint32_t render_fps;
    // 1 for an env that can be made by its id but is not listed, else 0.
    uint32_t hidden;
    // The env's options and their defaults, as a JSON object; NULL for none.
    const char *options;
    // What the options are, as a JSON object with an object for each option: `type` ("bool",
    // "int", "float", "text", or words of your own), and where there is something to tell
    // `meaning` (a text), `low` and `high` (the least and the greatest number) and `choices` (a
    // list of the texts that it takes). NULL tells nothing. Corral shows this to users; `make`
    // checks the options.
    const char *option_docs;
} corral_entry;

// A slot to reset, and how the slot begins. In this order: build the env anew if `rebuild` says
// so, take the options, begin as `how` says, show the observation.
typedef struct corral_reset {
    size_t slot;
    // The row to which the slot's observation and infos are written.
    size_t row;
    // `CORRAL_BEGIN_…`.
    uint32_t how;
    // 1 where the slot's env is to be built again first, because the old env failed or
    // there is none, else 0. The seed is `rebuild_seed`, or the seed that the slot begins from.
    uint32_t rebuild;
    // The seed, 0 or greater; or the index, whose bits are those of a `uint64_t`. The same seed
    // gives the same episodes whatever the slot did before. An index's episode depends on the
    // index, the options and the actions alone, and leaves the slot's own random stream as it
    // was: the next `CORRAL_BEGIN_OWN` goes on with that.
    int64_t value;
    int64_t rebuild_seed;
    // A map of options that the env takes before it begins, or NULL.
    const struct corral_value *options;
} corral_reset;

// Rows of a batch to write. The i-th row of a call has the i-th element of each array
// (of leaves, the i-th block of a row's elements: row i of a leaf of 4 floats is at
// `(float *)observation[leaf] + 4 * i`). All memory is the host's, aligned for its dtype and
// C-contiguous, and only this call uses it: write within the rows, and keep no pointer. Reward
// and flags have an element for each agent of each row, agents innermost; with one agent, one
// element a row.
typedef struct corral_rows {
    size_t num_rows;
    // A block per leaf; NULL for a leaf that is not of fixed shape, whose rows go to
    // `corral_report.leaf`. The content of a block is unspecified before the call: write all of
    // it, in every row that the call is about.
    void *const *observation;
    // Written by `step` alone, for every row, as the two flags are.
    double *reward;
    // 1 where the episode ended by the env's own rules, else 0. Anything but 0 passes for 1, and
    // is an error of the slot where the vec env is made with debug=True or the
    // environment variable CORRAL_DEBUG is 1; so it is with
    // all flags and leaves of `CORRAL_BOOL`.
    uint8_t *terminated;
    // 1 where the episode was cut short, by a limit of the env's own, else 0.
    uint8_t *truncated;
    // A block per leaf of the declared infos, zeros before the call.
    void *const *info;
    // Per leaf, which rows have the info: 1 for a row that has it; 0 before the call.
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
    // `kind` is `CORRAL_ERROR…` or `CORRAL_PANIC`, `phase` is `CORRAL_PHASE_…` (0 will do), and
    // the message is UTF-8 of `length` bytes, for the user: what was wrong, with the value, and
    // what to do.
    void (*fail)(void *context,
                 size_t slot,
                 uint32_t kind,
                 uint32_t phase,
                 const char *message,
                 size_t length);
    // Gives row `row` an info that was not declared. It costs an allocation, which declared
    // infos do not.
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
// `report.fail` why. No exception, `longjmp` or `exit` may leave a function.
//
// The host calls `make` and `spec` once for each use of an env; then `chunk`, once or for each
// of its threads; then `reset` and `step` of each chunk, a `reset` of every slot first; at the end
// `close` and `free_chunk` of each chunk, and `free_source`, whichever comes first. A slot is
// not stepped after an episode's end, or after it failed, until it is reset: when that happens is
// the host's affair (autoreset, time limits), and no plugin needs to know.
//
// A chunk is some slots, numbered from 0, that one call steps. Calls with one chunk never
// overlap, but may come from several threads; calls with different chunks do overlap.
// Calls of `make`, `spec` and `chunk` may overlap as well. So a plugin needs no lock, and has no
// variables that change outside its sources and chunks. A function returns soon: nobody else
// can stop it.
typedef struct corral_plugin {
    // `CORRAL_ABI_VERSION`.
    uint32_t abi_version;
    // `sizeof(corral_entry)`.
    uint32_t entry_size;
    // `sizeof(corral_plugin)`.
    size_t size;
    // The text before the `/` of the plugin's ids. Texts of the table are UTF-8 and end with a
    // NUL.
    const char *name;
    // The plugin's own version, for messages; NULL for none.
    const char *version;
    // What the plugin was built with, for messages; NULL for nothing to say.
    const char *built_with;
    size_t num_envs;
    const struct corral_entry *envs;
    // Makes env number `env` of `envs` with these options (a map; those that are not in it have
    // their defaults). Returns a source, which is the plugin's own (any address but NULL), or
    // NULL after `report.fail`: of an option that the env does not have with
    // `CORRAL_ERROR_UNKNOWN_OPTION`, of a value that it does not take with
    // `CORRAL_ERROR_OPTION_VALUE`.
    void *(*make)(size_t env, const struct corral_value *options, const struct corral_report *report);
    // What a source is. The result is valid until the source is freed.
    const struct corral_spec *(*spec)(void *source);
    // Frees a source. The source's chunks stay valid.
    void (*free_source)(void *source);
    // Makes a chunk with one slot per seed, which begins slot i's random stream. Returns NULL
    // after `report.fail`. Where `seeds` is NULL the slots hold no env until a reset rebuilds
    // them.
    void *(*chunk)(void *source,
                   const int64_t *seeds,
                   size_t num_slots,
                   const struct corral_report *report);
    // Begins an episode of each of `num_resets` slots, or only observes the slot, and
    // writes observation and infos to the slot's row, never reward and flags. No slot and no row
    // is given twice. Where some slots fail, the others begin nevertheless.
    int32_t (*reset)(void *chunk,
                     const struct corral_reset *resets,
                     size_t num_resets,
                     const struct corral_rows *rows,
                     const struct corral_report *report);
    // Plays the actions of `num_slots` slots from `first_slot` on and writes the rows: row 0 is
    // that of `first_slot`. Slots for which `skip` is 1 are not stepped, and what is written to
    // their rows is ignored. `skip` and `actions` begin with slot 0: slot s has `skip[s]` and,
    // of a leaf of n elements, those from `n * s` on. `actions` has a block per leaf; for a
    // leaf that is not of fixed shape the block is an array of `corral_value`. Where some slots
    // fail, the others are stepped nevertheless. This is the call that speed depends on.
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
    // Passes the state of `slot` to `report.state`: all bytes that its future depends on, in a
    // form that another process understands.
    int32_t (*save)(void *chunk, size_t slot, const struct corral_report *report);
    // Restores a state in `slot`, which may have been saved of another slot of an env with the
    // same options, or in another process. `CORRAL_ERROR_STATE` for bytes that are none.
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
    // Ends every env. It is called at most once, before `free_chunk`. May be NULL.
    int32_t (*close)(void *chunk, const struct corral_report *report);
    // Frees a chunk, whose envs may not have been ended by `close`.
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
