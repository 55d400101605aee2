/* A host of EnvCApi that makes each of its 31 calls: in the order that the header
 * asks for, then in every other that a careless host might.
 *
 *     env_c_api_host LIBRARY CONNECT KEY=VALUE...
 *
 * Plays three episodes, adds up all that it reads, and prints that: whoever runs it
 * under a sanitizer learns of each byte that should not have been read. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env_c_api.h"

static EnvCApi api;
static void *context;
static double sum;
static long calls;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, api.error_message ? api.error_message(context) : "");
    exit(1);
}

static void check(int holds, const char *what) {
    if (!holds) fail(what);
}

static void read_text(const char *text) {
    check(text != NULL, "a text is NULL");
    sum += (double)strlen(text);
    calls += 1;
}

static void read_observation(const EnvCApi_Observation *seen) {
    check(seen->spec.dims >= 1 && seen->spec.shape != NULL, "an observation has no shape");
    long count = 1;
    for (int k = 0; k < seen->spec.dims; k++) count *= seen->spec.shape[k];
    check(count >= 0, "a shape is negative");
    for (long k = 0; k < count; k++) {
        switch (seen->spec.type) {
            case EnvCApi_ObservationDoubles: sum += seen->payload.doubles[k]; break;
            case EnvCApi_ObservationBytes: sum += seen->payload.bytes[k]; break;
            case EnvCApi_ObservationString: sum += seen->payload.string[k]; break;
            default: fail("an observation of no type");
        }
    }
    calls += 1;
}

static void read_property(void *nested, const char *key, EnvCApi_PropertyAttributes attributes) {
    const char *value = NULL;
    read_text(key);
    if (attributes & EnvCApi_PropertyAttributes_Readable) {
        check(api.read_property(context, key, &value) == EnvCApi_PropertyResult_Success, key);
        read_text(value);
    }
    if (attributes & EnvCApi_PropertyAttributes_Writable) {
        char *copy = strdup(value);
        check(api.write_property(context, key, copy) == EnvCApi_PropertyResult_Success, key);
        free(copy);
    }
    if (attributes & EnvCApi_PropertyAttributes_Listable) {
        check(api.list_property(context, nested, key, read_property) == EnvCApi_PropertyResult_Success, key);
    }
}

static void read_metadata(void) {
    EnvCApi_ObservationSpec spec;
    int low, high;
    double least, most;
    read_text(api.environment_name(context));
    sum += api.fps(context);
    for (int k = 0; k < api.action_discrete_count(context); k++) {
        read_text(api.action_discrete_name(context, k));
        api.action_discrete_bounds(context, k, &low, &high);
        check(low <= high, "bounds that hold nothing");
    }
    for (int k = 0; k < api.action_continuous_count(context); k++) {
        read_text(api.action_continuous_name(context, k));
        api.action_continuous_bounds(context, k, &least, &most);
        check(least <= most, "bounds that hold nothing");
    }
    for (int k = 0; k < api.action_text_count(context); k++) read_text(api.action_text_name(context, k));
    for (int k = 0; k < api.observation_count(context); k++) {
        read_text(api.observation_name(context, k));
        api.observation_spec(context, k, &spec);
        for (int axis = 0; axis < spec.dims; axis++) sum += spec.shape[axis];
    }
    for (int k = 0; k < api.event_type_count(context); k++) read_text(api.event_type_name(context, k));
    check(api.list_property(context, NULL, "", read_property) == EnvCApi_PropertyResult_Success, "list");
}

static void read_all(void) {
    EnvCApi_Observation seen;
    EnvCApi_Event event;
    for (int again = 0; again < 2; again++) {
        for (int k = 0; k < api.observation_count(context); k++) {
            api.observation(context, k, &seen);
            read_observation(&seen);
        }
        for (int k = 0; k < api.event_count(context); k++) {
            api.event(context, k, &event);
            check(0 <= event.id && event.id < api.event_type_count(context), "an event of no type");
            for (int n = 0; n < event.observation_count; n++) read_observation(&event.observations[n]);
            read_text(api.event_type_name(context, event.id));
        }
    }
}

/* Actions within their bounds, each in memory of its own size: what is read beyond is
 * told. */
static void act(unsigned step) {
    int discrete = api.action_discrete_count(context);
    int continuous = api.action_continuous_count(context), texts = api.action_text_count(context);
    int *labels = malloc((size_t)discrete * sizeof(int));
    double *forces = malloc((size_t)continuous * sizeof(double));
    EnvCApi_TextAction *words = malloc((size_t)texts * sizeof(EnvCApi_TextAction));
    char *word = strdup("up");
    for (int k = 0; k < discrete; k++) {
        int low, high;
        api.action_discrete_bounds(context, k, &low, &high);
        labels[k] = low + (int)((step * 7 + (unsigned)k) % (unsigned)(high - low + 1));
    }
    for (int k = 0; k < continuous; k++) forces[k] = (double)(step % 3) / 4 - 0.25;
    for (int k = 0; k < texts; k++) {
        words[k].data = word;
        words[k].len = step % 3;
    }
    if (step % 2) {
        api.act(context, labels, forces);
    } else {
        api.act_discrete(context, discrete ? labels : NULL);
        api.act_continuous(context, continuous ? forces : NULL);
    }
    api.act_text(context, texts ? words : NULL);
    free(labels);
    free(forces);
    free(words);
    free(word);
}

static void careless(int is_made) {
    EnvCApi_ObservationSpec spec;
    EnvCApi_Observation seen;
    EnvCApi_Event event;
    const char *value;
    int wrong[] = {INT32_MIN, -1, 0, 1, 1 << 20, INT32_MAX}, low, high;
    double least, most, reward;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        read_text(api.action_discrete_name(context, wrong[k]));
        read_text(api.action_continuous_name(context, wrong[k]));
        read_text(api.action_text_name(context, wrong[k]));
        read_text(api.observation_name(context, wrong[k]));
        read_text(api.event_type_name(context, wrong[k]));
        api.action_discrete_bounds(context, wrong[k], &low, &high);
        api.action_continuous_bounds(context, wrong[k], &least, &most);
        api.observation_spec(context, wrong[k], &spec);
        api.observation(context, wrong[k], &seen);
        read_observation(&seen);
        api.event(context, wrong[k], &event);
        for (int n = 0; n < event.observation_count; n++) read_observation(&event.observations[n]);
        read_text(api.error_message(context));
        check(api.start(context, wrong[k], -1) != 0, "a negative seed");
        check(api.start(context, wrong[k], -1) != EAGAIN, "EAGAIN asks to try again");
        check(api.advance(context, wrong[k], &reward) == EnvCApi_EnvironmentStatus_Error, "not started");
        check(reward == 0, "an error has a reward");
    }
    check(api.setting(context, "late", "1") != 0 || !is_made, "a setting after init");
    check(api.read_property(context, "nothing", &value) == EnvCApi_PropertyResult_NotFound, "read nothing");
    check(api.list_property(context, NULL, "nothing", read_property) != EnvCApi_PropertyResult_Success, "list");
    check(api.write_property(context, "nothing", "1") != EnvCApi_PropertyResult_Success, "write nothing");
    check(api.event_count(context) == 0, "an event of nothing");
    api.act(context, NULL, NULL);
    api.act_text(context, NULL);
    if (is_made) check(api.init(context) != 0, "init twice");
}

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW);
    check(library != NULL, argv[1]);
    int (*connect)(EnvCApi *, void **);
    *(void **)&connect = dlsym(library, argv[2]);
    check(connect != NULL && connect(&api, &context) == 0, argv[2]);
    careless(0);
    api.release_context(context);

    check(connect(&api, &context) == 0, argv[2]);
    for (int k = 3; k < argc; k++) {
        /* The library copies what it is given. */
        char *key = strdup(argv[k]), *value = strchr(key, '=');
        *value++ = 0;
        check(api.setting(context, key, value) == 0, key);
        memset(key, 'x', strlen(key));
        free(key);
    }
    check(api.init(context) == 0, "init");
    read_metadata();
    careless(1);
    for (int episode = 0; episode < 3; episode++) {
        int status = EnvCApi_EnvironmentStatus_Running, steps = 0;
        check(api.start(context, episode, 7 + episode) == 0, "start");
        while (status == EnvCApi_EnvironmentStatus_Running) {
            double reward = -1e300;
            read_all();
            act((unsigned)steps);
            status = (int)api.advance(context, 1 + steps % 2, &reward);
            check(reward > -1e300, "a reward that nobody wrote");
            sum += reward;
            steps += 1;
        }
        check(status != EnvCApi_EnvironmentStatus_Error, "advance");
        read_all();
        read_metadata();
        printf("episode %d: status %d after %d calls\n", episode, status, steps);
    }
    careless(1);
    api.release_context(context);
    printf("%ld reads, sum %.17g\n", calls, sum);
    return 0;
}
