/* A host of libenv without Python: steps an exported library as fast as it goes.
 *
 *   cc -O2 -I python/corral/include benches/c/libenv_loop.c -ldl -o libenv_loop
 *   ./libenv_loop target/release/libcorral_envs.so CartPole-v1 1024
 *
 * Says `ready`, and answers every line of seconds on its standard input with a
 * line of steps and seconds, as `bare_loop` does, so that the two can run in
 * turns. An action is a random 0 or 1, of batches that are prepared. */
#define _GNU_SOURCE
#define NO_PROTOTYPE
#include "libenv.h"
#include "loop.h"

#include <dlfcn.h>
#include <string.h>

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

/* A zeroed block, and pointers to its rows. */
static char *block(const struct libenv_tensortype *type, int num, void **rows) {
    size_t bytes = type->dtype == LIBENV_DTYPE_UINT8 ? 1 : 4;
    for (int k = 0; k < type->ndim; k++) bytes *= (size_t)type->shape[k];
    size_t size = (bytes * (size_t)num + 63) / 64 * 64;
    char *memory = aligned_alloc(64, size ? size : 64);
    memset(memory, 0, size);
    for (int env = 0; env < num; env++) rows[env] = memory + (size_t)env * bytes;
    return memory;
}

typedef struct {
    libenv_env *env;
    int num, *prepared;
    int32_t *actions;
    void (*act)(libenv_env *), (*observe)(libenv_env *);
} Loop;

static void play(void *of) {
    Loop *loop = of;
    for (int k = 0; k < PREPARED; k++) {
        memcpy(loop->actions, loop->prepared + k * loop->num, sizeof(int32_t) * (size_t)loop->num);
        loop->act(loop->env);
        loop->observe(loop->env);
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s LIBRARY ENV_ID NUM [NUM_THREADS]\n", argv[0]);
        return 1;
    }
    int32_t num = atoi(argv[3]), seed = 0, threads = argc > 4 ? atoi(argv[4]) : 1;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    libenv_env *(*make)(int, struct libenv_options) = symbol(library, "libenv_make");
    int (*get_tensortypes)(libenv_env *, enum libenv_space_name, struct libenv_tensortype *) =
        symbol(library, "libenv_get_tensortypes");
    void (*set_buffers)(libenv_env *, struct libenv_buffers *) = symbol(library, "libenv_set_buffers");
    void (*observe)(libenv_env *) = symbol(library, "libenv_observe");
    void (*act)(libenv_env *) = symbol(library, "libenv_act");
    void (*close_env)(libenv_env *) = symbol(library, "libenv_close");

    struct libenv_option items[] = {
        {"env_id", LIBENV_DTYPE_UINT8, (int)strlen(argv[2]), argv[2]},
        {"seed", LIBENV_DTYPE_INT32, 1, &seed},
        {"num_threads", LIBENV_DTYPE_INT32, 1, &threads},
    };
    libenv_env *env = make(num, (struct libenv_options){items, 3});
    if (!env) return 1;

    struct libenv_buffers buffers;
    void ***rows[] = {&buffers.ob, &buffers.ac, &buffers.info};
    int32_t *actions = NULL;
    for (int space = 1; space <= 3; space++) {
        int count = get_tensortypes(env, space, NULL);
        struct libenv_tensortype *types = calloc((size_t)count + 1, sizeof *types);
        get_tensortypes(env, space, types);
        *rows[space - 1] = calloc((size_t)(count * num) + 1, sizeof(void *));
        for (int k = 0; k < count; k++) {
            char *memory = block(&types[k], num, *rows[space - 1] + k * num);
            if (space == LIBENV_SPACE_ACTION) {
                if (types[k].dtype != LIBENV_DTYPE_INT32 || types[k].ndim) {
                    fprintf(stderr, "only for envs whose action is one label\n");
                    return 1;
                }
                actions = (int32_t *)memory;
            }
        }
        free(types);
    }
    buffers.rew = calloc((size_t)num, sizeof(float));
    buffers.first = calloc((size_t)num, 1);
    set_buffers(env, &buffers);

    observe(env);
    Loop loop = {env, num, prepare_actions(num), actions, act, observe};
    answer(num, play, &loop);
    close_env(env);
    return 0;
}
