/* An env in C: count up to a target by steps of 1 or 2 and do not overshoot.
 *
 *     INCLUDE=$(python -c "import corral; print(corral.include_dir())")
 *     cc -std=c99 -shared -fPIC -O2 -I"$INCLUDE" counter.c -o counter.so
 *     python -c "import corral; print(corral.load('counter.so'))"
 *
 * Observation: {"count": int32, "target": int32}; action: Discrete(2, start=1).
 * The reward is 1 for reaching the target, else 0; overshooting ends the episode
 * with -1. The target is drawn from 5 to 9 by a generator of the slot's own; an
 * index's target depends on the index alone.
 */

#include <corral.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t stream; /* the slot's own generator */
    int32_t count;
    int32_t target;
    int32_t broken; /* fails at its next step */
} counter;

typedef struct {
    int32_t most; /* the option: the greatest target */
    corral_spec spec;
    corral_leaf observation[2];
    corral_leaf action[1];
    corral_bound bounds[4];
    char config[32];
} source;

typedef struct {
    size_t num_slots;
    int32_t most;
    counter *slots;
} chunk;

static void fail(const corral_report *report, size_t slot, uint32_t kind, const char *message) {
    report->fail(report->context, slot, kind, CORRAL_PHASE_CALL, message, strlen(message));
}

/* splitmix64 */
static uint64_t draw(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int32_t target_of(uint64_t *state, int32_t most) {
    return 5 + (int32_t)(draw(state) % (uint64_t)(most - 4));
}

static void *make(size_t env, const corral_value *options, const corral_report *report) {
    (void)env;
    int32_t most = 9;
    for (size_t k = 0; options != NULL && k < options->length; k++) {
        const corral_field *field = &options->data.fields[k];
        if (field->key_length != 4 || memcmp(field->key, "most", 4) != 0) {
            fail(report, CORRAL_NO_SLOT, CORRAL_ERROR_UNKNOWN_OPTION, "unknown option; valid: most (9)");
            return NULL;
        }
        if (field->value->kind != CORRAL_VALUE_INT || field->value->data.integer < 5 ||
            field->value->data.integer > 1000) {
            fail(report, CORRAL_NO_SLOT, CORRAL_ERROR_OPTION_VALUE, "most is an int from 5 to 1000");
            return NULL;
        }
        most = (int32_t)field->value->data.integer;
    }
    source *s = calloc(1, sizeof(source));
    if (s == NULL) {
        fail(report, CORRAL_NO_SLOT, CORRAL_ERROR_MEMORY, "no memory");
        return NULL;
    }
    s->most = most;
    s->bounds[1].integer = 1001;
    s->bounds[2].integer = 1;
    s->bounds[3].integer = 2;
    corral_leaf number = {.kind = CORRAL_LEAF_FIXED, .dtype = CORRAL_INT32, .num_low = 1, .num_high = 1};
    number.low = &s->bounds[0];
    number.high = &s->bounds[1];
    s->observation[0] = number;
    s->observation[0].name = "count";
    s->observation[1] = number;
    s->observation[1].name = "target";
    s->action[0].name = "";
    s->action[0].kind = CORRAL_LEAF_FIXED;
    s->action[0].dtype = CORRAL_INT64;
    s->action[0].discrete = 1;
    s->action[0].num_low = s->action[0].num_high = 1;
    s->action[0].low = &s->bounds[2];
    s->action[0].high = &s->bounds[3];
    snprintf(s->config, sizeof(s->config), "{\"most\": %d}", most);
    s->spec.size = sizeof(corral_spec);
    s->spec.observation.num_leaves = 2;
    s->spec.observation.leaves = s->observation;
    s->spec.action.num_leaves = 1;
    s->spec.action.leaves = s->action;
    s->spec.caps = CORRAL_CAP_ENV | CORRAL_CAP_SAVE | CORRAL_CAP_CALL | CORRAL_CAP_EVENTS | CORRAL_CAP_BRIEF;
    s->spec.config = s->config;
    return s;
}

static const corral_spec *spec(void *source_) { return &((source *)source_)->spec; }

static void free_source(void *source_) { free(source_); }

static void *make_chunk(void *source_, const int64_t *seeds, size_t num_slots,
                        const corral_report *report) {
    chunk *c = calloc(1, sizeof(chunk));
    counter *slots = calloc(num_slots, sizeof(counter));
    if (c == NULL || slots == NULL) {
        free(c);
        free(slots);
        fail(report, CORRAL_NO_SLOT, CORRAL_ERROR_MEMORY, "no memory");
        return NULL;
    }
    c->num_slots = num_slots;
    c->most = ((source *)source_)->most;
    c->slots = slots;
    for (size_t k = 0; seeds != NULL && k < num_slots; k++) slots[k].stream = (uint64_t)seeds[k];
    return c;
}

static void show(const counter *slot, const corral_rows *rows, size_t row) {
    ((int32_t *)rows->observation[0])[row] = slot->count;
    ((int32_t *)rows->observation[1])[row] = slot->target;
}

static int32_t reset(void *chunk_, const corral_reset *resets, size_t num_resets,
                     const corral_rows *rows, const corral_report *report) {
    (void)report;
    chunk *c = chunk_;
    for (const corral_reset *r = resets; r < resets + num_resets; r++) {
        counter *s = &c->slots[r->slot];
        if (r->rebuild) {
            memset(s, 0, sizeof(*s));
            s->stream = (uint64_t)r->rebuild_seed;
        }
        if (r->how == CORRAL_BEGIN_SEED) s->stream = (uint64_t)r->value;
        if (r->how != CORRAL_BEGIN_KEEP) {
            uint64_t other = (uint64_t)r->value;
            s->target = target_of(r->how == CORRAL_BEGIN_INDEX ? &other : &s->stream, c->most);
            s->count = 0;
        }
        show(s, rows, r->row);
    }
    return 0;
}

/* Tells that the target was reached: the one event [name, [target]]. */
static void tell_reached(const corral_report *report, size_t row, int32_t target) {
    corral_value number = {.kind = CORRAL_VALUE_INT, .data.integer = target};
    corral_value event[2] = {{.kind = CORRAL_VALUE_TEXT, .length = 7, .data.text = "reached"},
                             {.kind = CORRAL_VALUE_LIST, .length = 1, .data.items = &number}};
    corral_value one = {.kind = CORRAL_VALUE_LIST, .length = 2, .data.items = event};
    corral_value events = {.kind = CORRAL_VALUE_LIST, .length = 1, .data.items = &one};
    corral_field info = {.key = CORRAL_EVENTS, .key_length = strlen(CORRAL_EVENTS), .value = &events};
    report->info(report->context, row, &info);
}

static int32_t step(void *chunk_, size_t first_slot, size_t num_slots, const uint8_t *skip,
                    const void *const *actions, const corral_rows *rows,
                    const corral_report *report) {
    chunk *c = chunk_;
    const int64_t *by = actions[0];
    int32_t failed = 0;
    for (size_t row = 0; row < num_slots; row++) {
        size_t slot = first_slot + row;
        counter *s = &c->slots[slot];
        if (skip[slot]) continue;
        if (s->count == 777) {
#ifdef WRONG_SLOT
            /* For tests: tells of a slot that has no part in it. */
            slot = WRONG_SLOT;
#endif
            fail(report, slot, CORRAL_ERROR, "777 is too much");
            failed = -1;
            continue;
        }
        s->count += (int32_t)by[slot];
        rows->reward[row] = s->count == s->target ? 1.0 : s->count > s->target ? -1.0 : 0.0;
        rows->terminated[row] = s->count >= s->target ? 1 : 0;
        rows->truncated[row] = 0;
        if (s->count == s->target) tell_reached(report, row, s->target);
        show(s, rows, row);
    }
    return failed;
}

static int is_name(const char *name, size_t length, const char *other) {
    return length == strlen(other) && memcmp(name, other, length) == 0;
}

/* The property "target" can be got and set, the function "double" doubles the count. */
static int32_t call(void *chunk_, size_t slot, uint32_t kind, const char *name, size_t name_length,
                    const corral_value *args, const corral_value *kwargs,
                    const corral_report *report) {
    (void)kwargs;
    counter *s = &((chunk *)chunk_)->slots[slot];
    corral_value answer = {.kind = CORRAL_VALUE_INT};
    if (kind == CORRAL_CALL_LIST) {
        corral_value can_be_set = {.kind = CORRAL_VALUE_BOOL, .data.boolean = 1};
        corral_field target = {.key = "target", .key_length = 6, .value = &can_be_set};
        corral_value names = {.kind = CORRAL_VALUE_MAP, .length = 1, .data.fields = &target};
        report->answer(report->context, &names);
        return 0;
    }
    if (is_name(name, name_length, "target")) {
        if (kind == CORRAL_CALL_SET) {
            if (args->length != 1 || args->data.items[0].kind != CORRAL_VALUE_INT) {
                fail(report, CORRAL_NO_SLOT, CORRAL_ERROR_ARGUMENT, "target is one int");
                return -1;
            }
            s->target = (int32_t)args->data.items[0].data.integer;
            return 0;
        }
        answer.data.integer = s->target;
    } else if (kind == CORRAL_CALL_FUNCTION && is_name(name, name_length, "double")) {
        answer.data.integer = s->count *= 2;
    } else {
        fail(report, CORRAL_NO_SLOT, CORRAL_ERROR_UNKNOWN_NAME, "there are target and double()");
        return -1;
    }
    report->answer(report->context, &answer);
    return 0;
}

static int32_t save(void *chunk_, size_t slot, const corral_report *report) {
    report->state(report->context, &((chunk *)chunk_)->slots[slot], sizeof(counter));
    return 0;
}

static int32_t load(void *chunk_, size_t slot, const void *state, size_t length,
                    const corral_report *report) {
    if (length != sizeof(counter)) {
        fail(report, CORRAL_NO_SLOT, CORRAL_ERROR_STATE, "not a counter's state");
        return -1;
    }
    memcpy(&((chunk *)chunk_)->slots[slot], state, length);
    return 0;
}

static void free_chunk(void *chunk_) {
    free(((chunk *)chunk_)->slots);
    free(chunk_);
}

static const corral_entry ENTRIES[] = {{
    .id = "Counter-v0",
#ifdef ABOUT
    .about = ABOUT,
#else
    .about = "Count up to a target.",
#endif
    .max_episode_steps = 20,
    .reward_threshold = 0.9,
    .render_fps = 30,
    .options = "{\"most\": 9}",
}};

static const corral_plugin PLUGIN = {
    .abi_version = CORRAL_ABI_VERSION,
    .entry_size = sizeof(corral_entry),
    .size = sizeof(corral_plugin),
    .name = "counting",
    .version = "1.0",
    .built_with = "a C compiler",
    .num_envs = 1,
    .envs = ENTRIES,
    .make = make,
    .spec = spec,
    .free_source = free_source,
    .chunk = make_chunk,
    .reset = reset,
    .step = step,
    .save = save,
    .load = load,
    .call = call,
    .free_chunk = free_chunk,
};

const corral_plugin *corral_plugin_entry(void) { return &PLUGIN; }
