/* `Walk-v0`: reach a goal on a line.
 *
 * - Observation: {"position": int32, "goal": int32}, each from 0 to length - 1.
 * - Action: 0 stays, 1 goes to the left, 2 to the right: Discrete(3).
 * - Reward: 1 at the goal, else -0.01.
 * - End: terminated at the goal. The time limit is not the env's: it stands in the
 *   table at the end of this file.
 * - Index: ix is the start and goal of seed ix.
 * - Option: length, the fields of the line, 2 to 1000, by default 20.
 *
 * vendor/corral.h says what each function owes. In short: `make` reads options and
 * returns a source, which says by its spec what an env shows and takes. `chunk` makes
 * some envs ("slots"), which `reset` and `step` play together. They write a row for
 * each slot straight into the arrays that Python gets.
 */

#include <corral.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One env: all that an episode depends on. */
typedef struct {
    uint64_t stream; /* where its random numbers come from */
    int32_t position;
    int32_t goal;
} slot_state;

typedef struct {
    int32_t length;
    corral_spec spec;
    /* What the spec points to. */
    corral_leaf observation[2];
    corral_leaf action[1];
    corral_bound bounds[4];
    char config[32];
} source;

typedef struct {
    int32_t length;
    slot_state *slots;
} chunk;

static void fail(const corral_report *report, uint32_t kind, uint32_t phase, const char *message) {
    report->fail(report->context, CORRAL_NO_SLOT, kind, phase, message, strlen(message));
}

/* The next number of a stream, by splitmix64 (Sebastiano Vigna, public domain). */
static uint64_t draw(uint64_t *stream) {
    uint64_t z = (*stream += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* ---- options and spaces ---- */

static corral_leaf number(const char *name, uint32_t dtype, const corral_bound *bounds) {
    corral_leaf leaf = {.name = name, .kind = CORRAL_LEAF_FIXED, .dtype = dtype};
    leaf.num_low = leaf.num_high = 1;
    leaf.low = &bounds[0];
    leaf.high = &bounds[1];
    return leaf;
}

static void *make(size_t env, const corral_value *options, const corral_report *report) {
    (void)env;
    int64_t length = 20;
    for (size_t k = 0; options != NULL && k < options->length; k++) {
        const corral_field *option = &options->data.fields[k];
        if (option->key_length != 6 || memcmp(option->key, "length", 6) != 0) {
            char message[200];
            snprintf(message, sizeof(message),
                     "Walk-v0: unknown option '%.*s'. Valid options: length (default 20)",
                     option->key_length > 80 ? 80 : (int)option->key_length, option->key);
            fail(report, CORRAL_ERROR_UNKNOWN_OPTION, CORRAL_PHASE_BUILD, message);
            return NULL;
        }
        length = option->value->kind == CORRAL_VALUE_INT ? option->value->data.integer : 0;
        if (length < 2 || length > 1000) {
            fail(report, CORRAL_ERROR_OPTION_VALUE, CORRAL_PHASE_BUILD,
                 "Walk-v0: length is an int from 2 to 1000");
            return NULL;
        }
    }
    source *s = calloc(1, sizeof(source));
    if (s == NULL) {
        fail(report, CORRAL_ERROR_MEMORY, CORRAL_PHASE_BUILD, "no memory");
        return NULL;
    }
    s->length = (int32_t)length;
    s->bounds[1].integer = length - 1;
    s->bounds[3].integer = 2;
    s->observation[0] = number("position", CORRAL_INT32, &s->bounds[0]);
    s->observation[1] = number("goal", CORRAL_INT32, &s->bounds[0]);
    s->action[0] = number("", CORRAL_INT64, &s->bounds[2]);
    s->action[0].discrete = 1;
    snprintf(s->config, sizeof(s->config), "{\"length\": %d}", (int)length);
    s->spec.size = sizeof(corral_spec);
    s->spec.observation = (corral_space){.num_leaves = 2, .leaves = s->observation};
    s->spec.action = (corral_space){.num_leaves = 1, .leaves = s->action};
    /* `SEED` and `INDEX` are among `ENV`. `BRIEF`: a step takes well under a
     * microsecond. Leave it out where that is not so. */
    s->spec.caps = CORRAL_CAP_ENV | CORRAL_CAP_SAVE | CORRAL_CAP_BRIEF;
    s->spec.config = s->config;
    return s;
}

static const corral_spec *spec(void *made) { return &((source *)made)->spec; }

static void free_source(void *made) { free(made); }

/* ---- slots ---- */

static void *make_chunk(void *made, const int64_t *seeds, size_t num_slots,
                        const corral_report *report) {
    chunk *c = calloc(1, sizeof(chunk));
    slot_state *slots = calloc(num_slots == 0 ? 1 : num_slots, sizeof(slot_state));
    if (c == NULL || slots == NULL) {
        free(c);
        free(slots);
        fail(report, CORRAL_ERROR_MEMORY, CORRAL_PHASE_BUILD, "no memory");
        return NULL;
    }
    c->length = ((source *)made)->length;
    c->slots = slots;
    for (size_t k = 0; seeds != NULL && k < num_slots; k++) slots[k].stream = (uint64_t)seeds[k];
    return c;
}

static void free_chunk(void *made) {
    free(((chunk *)made)->slots);
    free(made);
}

/* Writes what a slot shows. */
static void show(const slot_state *s, const corral_rows *rows, size_t row) {
    ((int32_t *)rows->observation[0])[row] = s->position;
    ((int32_t *)rows->observation[1])[row] = s->goal;
}

/* ---- episodes ---- */

static int32_t reset(void *made, const corral_reset *resets, size_t num_resets,
                     const corral_rows *rows, const corral_report *report) {
    (void)report;
    chunk *c = made;
    for (const corral_reset *r = resets; r < resets + num_resets; r++) {
        slot_state *s = &c->slots[r->slot];
        if (r->rebuild) *s = (slot_state){.stream = (uint64_t)r->rebuild_seed};
        if (r->how == CORRAL_BEGIN_SEED) s->stream = (uint64_t)r->value;
        if (r->how != CORRAL_BEGIN_KEEP) {
            /* An index has a stream of its own and leaves the slot's alone. */
            uint64_t other = (uint64_t)r->value;
            uint64_t *stream = r->how == CORRAL_BEGIN_INDEX ? &other : &s->stream;
            s->position = (int32_t)(draw(stream) % (uint64_t)c->length);
            /* Any field but the first one. */
            uint64_t far = 1 + draw(stream) % (uint64_t)(c->length - 1);
            s->goal = (int32_t)(((uint64_t)s->position + far) % (uint64_t)c->length);
        }
        show(s, rows, r->row);
    }
    return 0;
}

static int32_t step(void *made, size_t first_slot, size_t num_slots, const uint8_t *skip,
                    const void *const *actions, const corral_rows *rows,
                    const corral_report *report) {
    (void)report;
    chunk *c = made;
    const int64_t *action = actions[0];
    for (size_t row = 0; row < num_slots; row++) {
        size_t slot = first_slot + row;
        if (skip[slot]) continue;
        slot_state *s = &c->slots[slot];
        if (action[slot] == 1 && s->position > 0) s->position--;
        if (action[slot] == 2 && s->position < c->length - 1) s->position++;
        int is_there = s->position == s->goal;
        rows->reward[row] = is_there ? 1.0 : -0.01;
        rows->terminated[row] = is_there ? 1 : 0;
        rows->truncated[row] = 0;
        show(s, rows, row);
    }
    return 0;
}

/* ---- states ---- */

static int32_t save(void *made, size_t slot, const corral_report *report) {
    report->state(report->context, &((chunk *)made)->slots[slot], sizeof(slot_state));
    return 0;
}

static int32_t load(void *made, size_t slot, const void *state, size_t length,
                    const corral_report *report) {
    chunk *c = made;
    slot_state loaded;
    if (length == sizeof(loaded)) {
        memcpy(&loaded, state, length);
        if (loaded.position >= 0 && loaded.position < c->length && loaded.goal >= 0 &&
            loaded.goal < c->length) {
            c->slots[slot] = loaded;
            return 0;
        }
    }
    fail(report, CORRAL_ERROR_STATE, CORRAL_PHASE_LOAD, "Walk-v0: this is no state of a line of this length");
    return -1;
}

/* ---- the table ---- */

/* Another env is another entry, whose number `make` is told. */
static const corral_entry ENTRIES[] = {{
    .id = "Walk-v0",
    .about = "Reach a goal on a line.",
    .max_episode_steps = 200,
    .reward_threshold = 0.8,
    .render_fps = 30,
    .options = "{\"length\": 20}",
    .option_docs = "{\"length\": {\"type\": \"int\", \"low\": 2, \"high\": 1000,"
                   " \"meaning\": \"The fields of the line.\"}}",
}};

static const corral_plugin PLUGIN = {
    .abi_version = CORRAL_ABI_VERSION,
    .entry_size = sizeof(corral_entry),
    .size = sizeof(corral_plugin),
    .name = "my_env",
    .version = "0.1.0",
    .built_with = "a C compiler",
    .num_envs = sizeof(ENTRIES) / sizeof(ENTRIES[0]),
    .envs = ENTRIES,
    .make = make,
    .spec = spec,
    .free_source = free_source,
    .chunk = make_chunk,
    .reset = reset,
    .step = step,
    .save = save,
    .load = load,
    .free_chunk = free_chunk,
};

const corral_plugin *corral_plugin_entry(void) { return &PLUGIN; }
