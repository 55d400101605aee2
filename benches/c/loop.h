/* What the loops share: a clock, actions that are prepared, and the driver's questions. */
#ifndef CORRAL_BENCH_LOOP_H
#define CORRAL_BENCH_LOOP_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PREPARED = 64 };

/* PREPARED batches of `num` actions, each a random 0 or 1. */
static int *prepare_actions(int num) {
    unsigned long long state = 0x9e3779b97f4a7c15u;
    int *prepared = malloc(sizeof *prepared * (size_t)(PREPARED * num));
    for (int k = 0; k < PREPARED * num; k++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        prepared[k] = (int)(state >> 33 & 1);
    }
    return prepared;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Says `ready`, and answers every line of seconds on the standard input with a line of
 * steps and seconds. `play` steps `num` envs once for each of the prepared batches. */
static void answer(int num, void (*play)(void *), void *of) {
    printf("ready\n");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        double seconds = atof(line), began = now();
        long steps = 0;
        while (now() - began < seconds) {
            play(of);
            steps += (long)PREPARED * num;
        }
        printf("%ld %.9f\n", steps, now() - began);
        fflush(stdout);
    }
}

#endif
