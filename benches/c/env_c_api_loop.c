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

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PREPARED = 64 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Copies what a context shows, and counts its events. */
static void look(EnvCApi *api, void *context, int observations, double *to) {
    for (int k = 0; k < observations; k++) {
        EnvCApi_Observation seen;
        api->observation(context, k, &seen);
        memcpy(to, seen.payload.doubles, sizeof(double) * (size_t)seen.spec.shape[0]);
    }
    if (api->event_count(context)) exit(1);
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
    EnvCApi api;
    void **contexts = calloc((size_t)num, sizeof *contexts);
    int *episodes = calloc((size_t)num, sizeof *episodes);
    double *shown = calloc((size_t)num * 16, sizeof *shown);
    double *rewards = calloc((size_t)num, sizeof *rewards);
    for (int k = 0; k < num; k++) {
        if (connect(&api, &contexts[k])) return 1;
        api.setting(contexts[k], "env_id", argv[2]);
        if (api.init(contexts[k]) || api.start(contexts[k], 0, k)) return 1;
    }
    int observations = api.observation_count(contexts[0]);
    unsigned long long state = 0x9e3779b97f4a7c15u;
    int *prepared = malloc(sizeof(int) * (size_t)(PREPARED * num));
    for (int k = 0; k < PREPARED * num; k++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        prepared[k] = (int)(state >> 33 & 1);
    }
    printf("ready\n");
    fflush(stdout);

    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        double seconds = atof(line), began = now();
        long steps = 0;
        while (now() - began < seconds) {
            for (int batch = 0; batch < PREPARED; batch++) {
                for (int k = 0; k < num; k++) {
                    void *context = contexts[k];
                    api.act_discrete(context, &prepared[batch * num + k]);
                    int status = api.advance(context, 1, &rewards[k]);
                    look(&api, context, observations, &shown[k * 16]);
                    if (status == EnvCApi_EnvironmentStatus_Error) return 1;
                    if (status != EnvCApi_EnvironmentStatus_Running) {
                        episodes[k]++;
                        if (api.start(context, episodes[k], k + num * episodes[k])) return 1;
                        look(&api, context, observations, &shown[k * 16]);
                    }
                }
                steps += num;
            }
        }
        printf("%ld %.9f\n", steps, now() - began);
        fflush(stdout);
    }
    for (int k = 0; k < num; k++) api.release_context(contexts[k]);
    return 0;
}
