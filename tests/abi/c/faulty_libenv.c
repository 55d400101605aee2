// A libenv library to load in tests: sound by default, and with -DFAULT=… wrong in one way.
//
// Env e counts its steps from 0 and ends an episode after e + 2 of them, in which it begins the
// next. It shows, at step t of its episode number n (from 0):
//   count  int32, 5 to 14   5 + t
//   grid   uint8 [2, 3]     100 e + 10 n + t + (0 … 5)
//   bits   uint8 [2], 0, 1  t & 1, e & 1
//   pos    float32          the sum of push[0] in this episode
// takes move (int32, 0 to 2) and push (float32 [2]), rewards move + 10 e + push[1], and tells
// infos total (int32: steps of its life) and pushed (float32 [2]: the push it took last).
//
// With -DOURS it is as one that corral exported: env e ends terminated if e is even, truncated if
// it is odd; a seed or an index is where an episode begins to count n from.
//
// With -DDOTTED names have dots: a, a.b, a., and . are seen, a.b and a taken, total.r and x. told.
// gym3's own host takes it then: its labels count from 0.
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "libenv.h"

enum fault {
  NONE,
  WRONG_VERSION,
  NULL_MAKE,
  NEGATIVE_COUNT,
  HUGE_COUNT,
  CHANGING_COUNT,
  MORE_THAN_COUNTED,
  UNWRITTEN_LEAF,
  NO_ACTIONS,
  ENDLESS_NAME,
  EMPTY_NAME,
  SAME_NAMES,
  NAME_NO_UTF8,
  BAD_DTYPE,
  BAD_SCALAR_TYPE,
  REAL_UINT8,
  DISCRETE_FLOAT,
  MANY_AXES,
  NEGATIVE_AXES,
  NEGATIVE_EXTENT,
  HUGE_SHAPE,
  CROSSED_BOUNDS,
  CROSSED_REAL_BOUNDS,
  BAD_FIRST,
  COUNT_TOO_HIGH,
  BITS_TOO_HIGH,
  COUNT_TOO_LOW,
  EXIT_IN_MAKE,
  ABORT_IN_MAKE,
  CRASH_IN_MAKE,
  ENDLESS_MAKE,
  EXIT_IN_ACT,
  ABORT_IN_ACT,
  CRASH_IN_ACT,
  EXIT_IN_OBSERVE,
  ABORT_IN_OBSERVE,
  CRASH_IN_OBSERVE,
  ENDLESS_ACT,
  FAILS_IN_ACT,
  FAILS_IN_MAKE,
  SECOND_MAKE_FAILS,
  OTHER_SPACES_AT_SECOND_MAKE,
};

#ifndef FAULT
#define FAULT NONE
#endif

struct env {
  int t, n, total;
  float pos, pushed[2], reward;
  bool first, terminated, truncated;
  // Of the episode that ended in the last act.
  int final_t, final_n;
  float final_pos, episode_return;
};

struct state {
  int num, acts, leaves_asked;
  struct env *envs;
  struct libenv_buffers *bufs;
  char error[64];
};

static int made = 0;

static void die(const char *where, int how) {
  fprintf(stderr, "last words: %s fails now\n", where);
  if (how == EXIT_IN_MAKE) exit(1);
  if (how == ABORT_IN_MAKE) abort();
  if (how == CRASH_IN_MAKE) raise(SIGSEGV);
  if (how == ENDLESS_MAKE)
    for (;;) pause();
}

#ifndef WITHOUT_libenv_version
LIBENV_API int libenv_version() { return FAULT == WRONG_VERSION ? 3 : LIBENV_VERSION; }
#endif

static void dump(const struct libenv_options options) {
  const char *path = getenv("FAULTY_LIBENV_DUMP");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  for (int i = 0; i < options.count; i++) {
    const struct libenv_option *option = &options.items[i];
    int size = option->dtype == LIBENV_DTYPE_UINT8 ? 1 : 4;
    fprintf(file, "%s %d %d ", option->name, option->dtype, option->count);
    for (int k = 0; k < option->count * size; k++)
      fprintf(file, "%02x", ((unsigned char *)option->data)[k]);
    fprintf(file, "\n");
  }
  fclose(file);
}

#ifndef WITHOUT_libenv_make
LIBENV_API libenv_env *libenv_make(int num, const struct libenv_options options) {
  made++;
  dump(options);
  if (FAULT == NULL_MAKE || (FAULT == SECOND_MAKE_FAILS && made == 2)) return NULL;
  if (FAULT >= EXIT_IN_MAKE && FAULT <= ENDLESS_MAKE) die("make", FAULT);
  struct state *s = calloc(1, sizeof *s);
  s->num = num;
  s->envs = calloc(num, sizeof *s->envs);
  for (int e = 0; e < num; e++) {
    s->envs[e].first = true;
    for (int i = 0; i < options.count; i++) {
      if (!strcmp(options.items[i].name, "episode")) s->envs[e].n = *(int *)options.items[i].data;
      if (!strcmp(options.items[i].name, "seed")) s->envs[e].n = *(int *)options.items[i].data + e;
    }
  }
  if (FAULT == FAILS_IN_MAKE) strcpy(s->error, "no such level");
  return s;
}
#endif

static void leaf(struct libenv_tensortype *t, const char *name, int dtype, int axes, int a, int b,
                 double low, double high) {
  memset(t, 0, sizeof *t);
  strcpy(t->name, name);
  t->dtype = dtype;
  t->scalar_type =
      dtype == LIBENV_DTYPE_FLOAT32 ? LIBENV_SCALAR_TYPE_REAL : LIBENV_SCALAR_TYPE_DISCRETE;
  t->ndim = axes;
  t->shape[0] = a;
  t->shape[1] = b;
  if (dtype == LIBENV_DTYPE_UINT8) t->low.uint8 = low, t->high.uint8 = high;
  if (dtype == LIBENV_DTYPE_INT32) t->low.int32 = low, t->high.int32 = high;
  if (dtype == LIBENV_DTYPE_FLOAT32) t->low.float32 = low, t->high.float32 = high;
}

#ifdef DOTTED
#define EITHER(plain, dotted) dotted
#else
#define EITHER(plain, dotted) plain
#endif

static int observation(struct libenv_tensortype *t, const char *prefix) {
  const char *names[] = {EITHER("count", "a"), EITHER("grid", "a.b"), EITHER("bits", "a."),
                         EITHER("pos", ".")};
  char full[4][32];
  for (int k = 0; k < 4; k++) snprintf(full[k], 32, "%s%s", prefix, names[k]);
  leaf(&t[0], full[0], LIBENV_DTYPE_INT32, 0, 0, 0, EITHER(5, 0), 14);
  leaf(&t[1], full[1], LIBENV_DTYPE_UINT8, 2, 2, 3, 0, 255);
  leaf(&t[2], full[2], LIBENV_DTYPE_UINT8, 1, 2, 0, 0, 1);
  leaf(&t[3], full[3], LIBENV_DTYPE_FLOAT32, 0, 0, 0, -INFINITY, INFINITY);
  return 4;
}

static void spoil(struct state *s, struct libenv_tensortype *t) {
  switch (FAULT) {
    case UNWRITTEN_LEAF: memset(&t[3], 0xA5, sizeof t[3]); break;
    case ENDLESS_NAME: memset(t[1].name, 'x', sizeof t[1].name); break;
    case EMPTY_NAME: t[1].name[0] = 0; break;
    case SAME_NAMES: strcpy(t[1].name, "count"); break;
    case NAME_NO_UTF8: strcpy(t[1].name, "gr\xffid"); break;
    case BAD_DTYPE: t[1].dtype = 9; break;
    case BAD_SCALAR_TYPE: t[1].scalar_type = 0; break;
    case REAL_UINT8: t[1].scalar_type = LIBENV_SCALAR_TYPE_REAL; break;
    case DISCRETE_FLOAT: t[3].scalar_type = LIBENV_SCALAR_TYPE_DISCRETE; break;
    case MANY_AXES: t[1].ndim = 17; break;
    case NEGATIVE_AXES: t[1].ndim = -1; break;
    case NEGATIVE_EXTENT: t[1].shape[1] = -3; break;
    case HUGE_SHAPE:
      t[1].ndim = 16;
      for (int k = 0; k < 16; k++) t[1].shape[k] = 1 << 20;
      break;
    case CROSSED_BOUNDS: t[0].low.int32 = 15; break;
    case CROSSED_REAL_BOUNDS: t[3].low.float32 = 1, t[3].high.float32 = -1; break;
    case OTHER_SPACES_AT_SECOND_MAKE: t[1].shape[1] = 2 + made; break;
    default: break;
  }
}

#ifndef WITHOUT_libenv_get_tensortypes
LIBENV_API int libenv_get_tensortypes(libenv_env *handle, enum libenv_space_name name,
                                      struct libenv_tensortype *types) {
  struct state *s = handle;
  struct libenv_tensortype found[16];  // of which ours needs the most: 11 infos
  int count = 0;
  if (name == LIBENV_SPACE_OBSERVATION) {
    count = observation(found, "");
    spoil(s, found);
    if (FAULT == NEGATIVE_COUNT) return -1;
    if (FAULT == HUGE_COUNT) return 1 << 30;
    if (FAULT == CHANGING_COUNT) count -= s->leaves_asked++ > 0;
    if (FAULT == MORE_THAN_COUNTED && types) leaf(&types[count], "more", 1, 0, 0, 0, 0, 1);
  } else if (name == LIBENV_SPACE_ACTION) {
    if (FAULT == NO_ACTIONS) return 0;
    leaf(&found[count++], EITHER("move", "a.b"), LIBENV_DTYPE_INT32, 0, 0, 0, 0, 2);
    leaf(&found[count++], EITHER("push", "a"), LIBENV_DTYPE_FLOAT32, 1, 2, 0, -1, 1);
  } else {
    leaf(&found[count++], EITHER("total", "total.r"), LIBENV_DTYPE_INT32, 0, 0, 0, 0, 1 << 30);
    leaf(&found[count++], EITHER("pushed", "x."), LIBENV_DTYPE_FLOAT32, 1, 2, 0, 0, 0);
#ifdef OURS
    leaf(&found[count++], "terminated", LIBENV_DTYPE_UINT8, 0, 0, 0, 0, 1);
    leaf(&found[count++], "truncated", LIBENV_DTYPE_UINT8, 0, 0, 0, 0, 1);
    leaf(&found[count++], "episode_return", LIBENV_DTYPE_FLOAT32, 0, 0, 0, 0, 0);
    leaf(&found[count++], "episode_length", LIBENV_DTYPE_INT32, 0, 0, 0, 0, 1 << 30);
    count += observation(&found[count], "final_");
    leaf(&found[count++], EITHER("final_total", "final_total.r"), LIBENV_DTYPE_INT32, 0, 0, 0, 0, 1 << 30);
#endif
  }
  if (types) memcpy(types, found, count * sizeof *types);
  return count;
}
#endif

#ifndef WITHOUT_libenv_set_buffers
LIBENV_API void libenv_set_buffers(libenv_env *handle, struct libenv_buffers *bufs) {
  ((struct state *)handle)->bufs = bufs;
}
#endif

static void show(struct state *s, void **ob, int e, int t, int n, float pos) {
  int count = 5 + t;
  if (FAULT == COUNT_TOO_HIGH && s->acts == 2 && e == 1) count = 15;
  if (FAULT == COUNT_TOO_LOW && s->acts == 2 && e == 1) count = 4;
  *(int32_t *)ob[0 * s->num + e] = count;
  for (int k = 0; k < 6; k++) ((uint8_t *)ob[1 * s->num + e])[k] = 100 * e + 10 * n + t + k;
  uint8_t *bits = ob[2 * s->num + e];
  bits[0] = FAULT == BITS_TOO_HIGH && s->acts == 2 && e == 1 ? 2 : t & 1;
  bits[1] = e & 1;
  *(float *)ob[3 * s->num + e] = pos;
}

#ifndef WITHOUT_libenv_observe
LIBENV_API void libenv_observe(libenv_env *handle) {
  struct state *s = handle;
  if (FAULT >= EXIT_IN_OBSERVE && FAULT <= CRASH_IN_OBSERVE && s->acts == 2)
    die("observe", FAULT - EXIT_IN_OBSERVE + EXIT_IN_MAKE);
  for (int e = 0; e < s->num; e++) {
    struct env *env = &s->envs[e];
    show(s, s->bufs->ob, e, env->t, env->n, env->pos);
    s->bufs->rew[e] = env->reward;
    s->bufs->first[e] = FAULT == BAD_FIRST && s->acts == 2 && e == 1 ? 7 : env->first;
    *(int32_t *)s->bufs->info[0 * s->num + e] = env->total;
    memcpy(s->bufs->info[1 * s->num + e], env->pushed, sizeof env->pushed);
#ifdef OURS
    *(uint8_t *)s->bufs->info[2 * s->num + e] = env->terminated;
    *(uint8_t *)s->bufs->info[3 * s->num + e] = env->truncated;
    *(float *)s->bufs->info[4 * s->num + e] = env->episode_return;
    *(int32_t *)s->bufs->info[5 * s->num + e] = env->final_t;
    show(s, &s->bufs->info[6 * s->num], e, env->final_t, env->final_n, env->final_pos);
    *(int32_t *)s->bufs->info[10 * s->num + e] = env->total;
#endif
  }
}
#endif

#ifndef WITHOUT_libenv_act
LIBENV_API void libenv_act(libenv_env *handle) {
  struct state *s = handle;
  s->acts++;
  s->error[0] = 0;
  if (FAULT >= EXIT_IN_ACT && FAULT <= CRASH_IN_ACT && s->acts == 2)
    die("act", FAULT - EXIT_IN_ACT + EXIT_IN_MAKE);
  if (FAULT == ENDLESS_ACT && s->acts == 2) die("act", ENDLESS_MAKE);
  if (FAULT == FAILS_IN_ACT && s->acts == 2) {
    strcpy(s->error, "the floor gave way");
    return;
  }
  for (int e = 0; e < s->num; e++) {
    struct env *env = &s->envs[e];
    int move = *(int32_t *)s->bufs->ac[0 * s->num + e];
    memcpy(env->pushed, s->bufs->ac[1 * s->num + e], sizeof env->pushed);
    env->t++, env->total++;
    env->pos += env->pushed[0];
    env->reward = move + 10 * e + env->pushed[1];
    env->first = env->t == e + 2 || move < 0;
    env->terminated = env->first && e % 2 == 0;
    env->truncated = env->first && e % 2 == 1;
    if (env->first) {
      env->final_t = env->t, env->final_n = env->n, env->final_pos = env->pos;
      env->t = 0, env->n++, env->pos = 0;
    }
  }
}
#endif

#ifndef WITHOUT_libenv_close
LIBENV_API void libenv_close(libenv_env *handle) {
  struct state *s = handle;
  free(s->envs);
  free(s);
}
#endif

// Beyond libenv: what env `idx` has had in all, changed by `by`.
LIBENV_API int add_to_total(libenv_env *handle, int idx, int by) {
  return ((struct state *)handle)->envs[idx].total += by;
}

#ifdef OURS
LIBENV_API int corral_libenv_reset(libenv_env *handle, int idx, int how, int64_t value) {
  struct state *s = handle;
  struct env *env = &s->envs[idx];
  s->error[0] = 0;
  if (how == 2 && value == 13) {
    strcpy(s->error, "there is no level 13");
    return -1;
  }
  int n = how == 0 ? env->n + 1 : (int)value;
  *env = (struct env){.n = n, .first = true, .total = env->total};
  return 0;
}

LIBENV_API const char *libenv_last_error(libenv_env *handle) {
  struct state *s = handle;
  if (!s) return FAULT == NULL_MAKE ? "there is no room" : NULL;
  return s->error[0] ? s->error : NULL;
}
#endif

#ifdef STATES
// The state is as large as -DSTATES=… says, so that the room for it must grow.
LIBENV_API int get_state(libenv_env *handle, int idx, char *data, int length) {
  if (!data || length < STATES) return STATES;
  memset(data, 0, STATES);
  memcpy(data, &((struct state *)handle)->envs[idx], sizeof(struct env));
  return STATES;
}

LIBENV_API void set_state(libenv_env *handle, int idx, char *data, int length) {
  if (length == STATES) memcpy(&((struct state *)handle)->envs[idx], data, sizeof(struct env));
}
#endif
