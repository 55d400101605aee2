/* The env of counter.c among four that are sick: one crashes, one hangs, one cannot be
 * built, one knows no options. For the tests of `corral check`.
 */

#define corral_plugin_entry counter_entry
#include "counter.c"
#undef corral_plugin_entry
#include <unistd.h>

enum { SOUND, CRASHES, HANGS, UNBUILT, PLAIN, NUM_ENVS };

/* The greatest target tells the chunks which env they are. */
static const int32_t CRASH = 1000, HANG = 999;

static void *sick_make(size_t env, const corral_value *options, const corral_report *report) {
    if (env == UNBUILT) {
        fail(report, CORRAL_NO_SLOT, CORRAL_ERROR, "the file of its model is missing");
        return NULL;
    }
    if (env == PLAIN && options != NULL && options->length > 0) {
        fail(report, CORRAL_NO_SLOT, CORRAL_ERROR_UNKNOWN_OPTION, "it has no options");
        return NULL;
    }
    source *s = make(0, options, report);
    if (s != NULL && (env == CRASHES || env == HANGS)) s->most = env == CRASHES ? CRASH : HANG;
    return s;
}

static int32_t sick_step(void *chunk_, size_t first_slot, size_t num_slots, const uint8_t *skip,
                         const void *const *actions, const corral_rows *rows,
                         const corral_report *report) {
    volatile int32_t *nowhere = NULL;
    int32_t most = ((chunk *)chunk_)->most;
    if (most == CRASH) *nowhere = 1;
    while (most == HANG) sleep(1);
    return step(chunk_, first_slot, num_slots, skip, actions, rows, report);
}

#define SICK(name) \
    { .id = name, .about = "Sick, or not.", .max_episode_steps = 20, .options = "{\"most\": 9}" }
static const corral_entry SICK_ENTRIES[NUM_ENVS] = {SICK("Sound-v0"), SICK("Crashes-v0"),
                                                    SICK("Hangs-v0"), SICK("Unbuilt-v0"),
                                                    SICK("Plain-v0")};

const corral_plugin *corral_plugin_entry(void) {
    static corral_plugin plugin;
    plugin = *counter_entry();
    plugin.name = "sick";
    plugin.num_envs = NUM_ENVS;
    plugin.envs = SICK_ENTRIES;
    plugin.make = sick_make;
    plugin.step = sick_step;
    return &plugin;
}
