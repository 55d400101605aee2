/* A host of EnvCApi without Python: steps contexts of an exported library one after
 * another, as fast as it goes, by the calls that Corral's own loader makes.
 *
 *   cc -O2 -I python/corral/include benches/c/env_c_api_loop.c -ldl -o env_c_api_loop
 *   ./env_c_api_loop target/release/libcorral_envs.so CartPole-v1 1024
 *
 * Says `ready`, and answers every line of seconds on its standard input with a line of
 * steps and seconds. An action is a random 0 or 1, of batches that are prepared. */
#define _GNU_SOURCE
#include "env_c_api.h"
#include "loop.h"

#include <dlfcn.h>
#include <string.h>

typedef struct {
    EnvCApi api;
    int num, observations, *prepared, *episodes;
    void **contexts;
    double *shown, *rewards;
} Loop;

static void fail(const char *what, int k) {
    fprintf(stderr, "%s of context %d failed\n", what, k);
    exit(1);
}

/* Copies what a context shows, and counts its events. */
static void look(Loop *loop, int k) {
    for (int leaf = 0; leaf < loop->observations; leaf++) {
        EnvCApi_Observation seen;
        loop->api.observation(loop->contexts[k], leaf, &seen);
        memcpy(&loop->shown[k * 16], seen.payload.doubles, sizeof(double) * (size_t)seen.spec.shape[0]);
    }
    if (loop->api.event_count(loop->contexts[k])) fail("event_count", k);
}

static void play(void *of) {
    Loop *loop = of;
    for (int batch = 0; batch < PREPARED; batch++) {
        for (int k = 0; k < loop->num; k++) {
            loop->api.act_discrete(loop->contexts[k], &loop->prepared[batch * loop->num + k]);
            int status = loop->api.advance(loop->contexts[k], 1, &loop->rewards[k]);
            look(loop, k);
            if (status == EnvCApi_EnvironmentStatus_Error) fail("advance", k);
            if (status != EnvCApi_EnvironmentStatus_Running) {
                int episode = ++loop->episodes[k];
                if (loop->api.start(loop->contexts[k], episode, k + loop->num * episode)) fail("start", k);
                look(loop, k);
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s LIBRARY ENV_ID NUM\n", argv[0]);
        return 1;
    }
    int num = atoi(argv[3]);
    int (*connect)(EnvCApi *, void **);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library || !(*(void **)&connect = dlsym(library, "corral_connect"))) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    Loop loop = {
        .num = num,
        .prepared = prepare_actions(num),
        .episodes = calloc((size_t)num, sizeof(int)),
        .contexts = calloc((size_t)num, sizeof(void *)),
        .shown = calloc((size_t)num * 16, sizeof(double)),
        .rewards = calloc((size_t)num, sizeof(double)),
    };
    for (int k = 0; k < num; k++) {
        if (connect(&loop.api, &loop.contexts[k])) fail("connect", k);
        loop.api.setting(loop.contexts[k], "env_id", argv[2]);
        if (loop.api.init(loop.contexts[k]) || loop.api.start(loop.contexts[k], 0, k)) fail("start", k);
    }
    loop.observations = loop.api.observation_count(loop.contexts[0]);
    answer(num, play, &loop);
    for (int k = 0; k < num; k++) loop.api.release_context(loop.contexts[k]);
    return 0;
}
