/* An environment that uses every corner of EnvCApi, for the tests of Corral's loader.
 *
 * Compiled as version 1.4; with -DVERSION_2 as version 2.2; with -DFUNCTIONS=n its
 * connect fills in n pointers of another version. -DNO_CONNECT, -DFAILING_CONNECT,
 * -DTWO_CONNECTS, -DWITH_PARAMS and -DONE_CONTEXT make other entrances.
 *
 * Settings: "length" (steps of an episode), "eagain" (how often each start says EAGAIN
 * first; -1: always), "single_steps" (advance refuses more than one step), "actions"
 * ("none": no actions, and act_... aborts), "strict" (observations and events after the
 * end abort), "fault" (what goes wrong, or "abort:<function>", "segv:<function>"). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef VERSION_2
/* As 1.4's, without fps and act. */
typedef struct {
  int type, dims;
  const int* shape;
} EnvCApi_ObservationSpec;
typedef struct {
  EnvCApi_ObservationSpec spec;
  union {
    const double* doubles;
    const unsigned char* bytes;
    const char* string;
    const void* any;
  } payload;
} EnvCApi_Observation;
typedef struct {
  int id, observation_count;
  const EnvCApi_Observation* observations;
} EnvCApi_Event;
typedef struct {
  const char* data;
  unsigned long long len;
} EnvCApi_TextAction;
enum { EnvCApi_ObservationDoubles, EnvCApi_ObservationBytes, EnvCApi_ObservationString };
typedef void EnvCApi;
#else
#include "env_c_api.h"
#endif

enum { RUNNING, INTERRUPTED, ERROR, TERMINATED };
enum { SUCCESS, NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT };

typedef struct {
  int length, eagain, single_steps, no_actions, strict;
  char fault[64];
  char error[128];
  int episode, seed, step, status, eagains, starts;
  int discrete[2];
  double force;
  char said[64];
  size_t said_length;
  char speed[32];
  /* What is pointed to until the next call. */
  double state[3];
  unsigned char pixels[18];
  double changing[8];
  unsigned char rows[8];
  int shape[8];
  char text[64];
  int ints[2];
  long long number;
  double event_payload;
  int event_shape[2];
  EnvCApi_Observation event_observations[2];
  int events[4], event_count, types;
  char ballast[1 << 16]; /* Contexts that are not released are seen. */
} Context;

#ifdef ONE_CONTEXT
static int contexts;
#endif

static void crash(const Context* c, const char* call) {
  if (!strncmp(c->fault, "abort:", 6) && !strcmp(c->fault + 6, call)) {
    fprintf(stderr, "corners: abort in %s\n", call);
    abort();
  }
  if (!strncmp(c->fault, "segv:", 5) && !strcmp(c->fault + 5, call)) *(volatile int*)16 = 1;
}
#define BEGIN(call) \
  Context* c = context; \
  crash(c, call)

static int has(const Context* c, const char* fault) { return !strcmp(c->fault, fault); }

/* A failure with a message, or (fault "..._silent") without. */
static int failed(Context* c, const char* call) {
  char silent[64];
  snprintf(silent, sizeof silent, "%s_silent", call);
  c->error[0] = 0;
  if (has(c, silent)) return 1;
  if (!has(c, call)) return 0;
  snprintf(c->error, sizeof c->error, "the %s fails on demand", call);
  return 1;
}

static int setting(void* context, const char* key, const char* value) {
  Context* c = context;
  if (!strcmp(key, "length")) c->length = atoi(value);
  else if (!strcmp(key, "eagain")) c->eagain = atoi(value);
  else if (!strcmp(key, "single_steps")) c->single_steps = !strcmp(value, "true");
  else if (!strcmp(key, "actions")) c->no_actions = !strcmp(value, "none");
  else if (!strcmp(key, "strict")) c->strict = !strcmp(value, "true");
  else if (!strcmp(key, "fault")) snprintf(c->fault, sizeof c->fault, "%s", value);
  else {
    snprintf(c->error, sizeof c->error, "there is no setting %s", key);
    return 1;
  }
  crash(c, "setting");
  return failed(c, "setting");
}

static int init(void* context) {
  BEGIN("init");
  strcpy(c->speed, "1.5");
  return failed(c, "init");
}

static void happened(Context* c, int type) {
  c->events[c->event_count++] = type;
  if (c->types <= type) c->types = type + 1;
}

static int start(void* context, int episode, int seed) {
  BEGIN("start");
  if (c->eagain < 0 || c->eagains < c->eagain) {
    c->eagains++;
    return EAGAIN;
  }
  c->eagains = 0;
  if (failed(c, "start")) return 7;
  c->episode = episode;
  c->seed = seed;
  c->step = 0;
  c->status = RUNNING;
  c->starts++;
  c->event_count = 0;
  happened(c, 0);
  return 0;
}

static void release_context(void* context) {
  BEGIN("release_context");
#ifdef ONE_CONTEXT
  contexts--;
#endif
  free(c);
}

static const char* error_message(void* context) {
  BEGIN("error_message");
  return has(c, "start_null_message") || !c->error[0] ? 0 : c->error;
}

static int write_property(void* context, const char* key, const char* value) {
  BEGIN("write_property");
  if (!strcmp(key, "speed")) {
    char* end;
    strtod(value, &end);
    if (end == value || *end) return INVALID_ARGUMENT;
    snprintf(c->speed, sizeof c->speed, "%s", value);
    return SUCCESS;
  }
  if (!strcmp(key, "secret")) return SUCCESS;
  return strcmp(key, "level") && strcmp(key, "level.name") && strcmp(key, "level.seed") ? NOT_FOUND
                                                                                         : PERMISSION_DENIED;
}

static int read_property(void* context, const char* key, const char** value) {
  BEGIN("read_property");
  if (!strcmp(key, "speed")) *value = c->speed;
  else if (!strcmp(key, "level.name")) *value = "corners";
  else if (!strcmp(key, "level.seed")) {
    snprintf(c->text, sizeof c->text, "%d", c->seed);
    *value = c->text;
  } else {
    return strcmp(key, "level") && strcmp(key, "secret") ? NOT_FOUND : PERMISSION_DENIED;
  }
  return SUCCESS;
}

static int list_property(void* context, void* userdata, const char* list_key,
                         void (*callback)(void*, const char*, int)) {
  static const char* const root[] = {"level", "speed", "secret"};
  static const int root_attributes[] = {4, 3, 2};
  static const char* const level[] = {"level.name", "level.seed"};
  static const int level_attributes[] = {1, 1};
  BEGIN("list_property");
  const char* const* keys = root;
  const int* attributes = root_attributes;
  int count = 3;
  if (!strcmp(list_key, "level")) {
    keys = level;
    attributes = level_attributes;
    count = 2;
  } else if (*list_key) {
    return strcmp(list_key, "speed") && strcmp(list_key, "secret") ? NOT_FOUND : PERMISSION_DENIED;
  }
  for (int k = 0; k < count; k++) {
    char key[32];
    snprintf(key, sizeof key, "%s", keys[k]);
    callback(userdata, key, attributes[k]);
    memset(key, '#', sizeof key); /* The key was valid only within the callback. */
  }
  return SUCCESS;
}

static const char* environment_name(void* context) {
  BEGIN("environment_name");
  return "corners";
}

static int action_discrete_count(void* context) {
  BEGIN("action_discrete_count");
  return c->no_actions ? 0 : 2;
}
static int action_continuous_count(void* context) {
  BEGIN("action_continuous_count");
  return c->no_actions ? 0 : 1;
}
static int action_text_count(void* context) {
  BEGIN("action_text_count");
  return c->no_actions ? 0 : 1;
}
static const char* action_discrete_name(void* context, int k) {
  BEGIN("action_discrete_name");
  if (has(c, "null_name")) return 0;
  return k ? (has(c, "same_names") ? "MOVE" : "JUMP") : "MOVE";
}
static const char* action_continuous_name(void* context, int k) {
  BEGIN("action_continuous_name");
  (void)k;
  return "FORCE";
}
static const char* action_text_name(void* context, int k) {
  BEGIN("action_text_name");
  (void)k;
  return "SAY";
}
static void action_discrete_bounds(void* context, int k, int* low, int* high) {
  BEGIN("action_discrete_bounds");
  *low = k ? 0 : -1;
  *high = has(c, "crossed_bounds") ? -2 : 1;
}
static void action_continuous_bounds(void* context, int k, double* low, double* high) {
  BEGIN("action_continuous_bounds");
  (void)k;
  *low = -2;
  *high = has(c, "nan_bounds") ? strtod("nan", 0) : 2;
}

#ifdef VERSION_2
enum { OBSERVATIONS = 8 };
#else
enum { OBSERVATIONS = 5 };
#endif
static const char* const names[] = {"STATE", "pixels.rgb", "CHANGING", "SAYS", "ROWS", "INTS", "LONG", "DYNAMIC"};

static int observation_count(void* context) {
  BEGIN("observation_count");
  return has(c, "negative_count") ? -3 : OBSERVATIONS;
}
static const char* observation_name(void* context, int k) {
  BEGIN("observation_name");
  return has(c, "name_not_utf8") ? "\xff\xfe" : names[k];
}

static void fill_shape(Context* c, EnvCApi_ObservationSpec* spec, int dims, int a, int b, int d) {
  c->shape[0] = a;
  c->shape[1] = b;
  c->shape[2] = d;
  spec->dims = dims;
  spec->shape = dims > 0 ? c->shape : 0;
}

static void observation_spec(void* context, int k, EnvCApi_ObservationSpec* spec) {
  BEGIN("observation_spec");
  spec->type = EnvCApi_ObservationDoubles;
  switch (k) {
    case 0: fill_shape(c, spec, 1, has(c, "negative_spec") ? -3 : has(c, "huge_spec") ? INT_MAX : 3, 0, 0);
      if (has(c, "huge_spec")) fill_shape(c, spec, 3, INT_MAX, INT_MAX, INT_MAX);
      if (has(c, "unknown_type")) spec->type = 9;
      break;
    case 1:
      spec->type = EnvCApi_ObservationBytes;
      fill_shape(c, spec, 3, 2, 3, 3);
      break;
    case 2:
#ifdef VERSION_2
      fill_shape(c, spec, -1, 0, 0, 0);
#else
      fill_shape(c, spec, 0, 0, 0, 0);
#endif
      break;
    case 3:
      spec->type = EnvCApi_ObservationString;
      fill_shape(c, spec, 1, 0, 0, 0);
      break;
    case 4:
      spec->type = EnvCApi_ObservationBytes;
      fill_shape(c, spec, 2, 0, 2, 0);
      break;
    case 5:
      spec->type = 3;
      fill_shape(c, spec, 1, 2, 0, 0);
      break;
    case 6:
      spec->type = 4;
      fill_shape(c, spec, 0, 0, 0, 0);
      break;
    default: fill_shape(c, spec, -1, 0, 0, 0);
  }
}

static int event_type_count(void* context) {
  BEGIN("event_type_count");
  return has(c, "event_id") ? 0 : c->types; /* Types are named when they first happen. */
}
static const char* event_type_name(void* context, int k) {
  static const char* const types[] = {"began", "said", "third"};
  BEGIN("event_type_name");
  return types[k];
}
#ifndef VERSION_2
static int fps(void* context) {
  BEGIN("fps");
  return 30;
}
#endif

static void check_running(const Context* c) {
  if (c->strict && c->status != RUNNING) {
    fprintf(stderr, "corners: looked at after the end\n");
    abort();
  }
}

static void observation(void* context, int k, EnvCApi_Observation* o) {
  BEGIN("observation");
  check_running(c);
  o->spec.type = EnvCApi_ObservationDoubles;
  switch (k) {
    case 0:
      c->state[0] = c->episode;
      c->state[1] = c->seed;
      c->state[2] = c->step;
      fill_shape(c, &o->spec, 1, 3, 0, 0);
      if (has(c, "negative_shape")) c->shape[0] = -1;
      if (has(c, "huge_shape")) fill_shape(c, &o->spec, 3, INT_MAX, INT_MAX, INT_MAX);
      if (has(c, "other_shape")) c->shape[0] = 2;
      if (has(c, "other_type")) o->spec.type = EnvCApi_ObservationBytes;
      o->payload.doubles = has(c, "null_payload") ? 0 : c->state;
      break;
    case 1:
      for (int i = 0; i < 18; i++) c->pixels[i] = (unsigned char)(i + c->step);
      o->spec.type = EnvCApi_ObservationBytes;
      fill_shape(c, &o->spec, 3, 2, 3, 3);
      o->payload.bytes = c->pixels;
      break;
    case 2:
    case 7:
      for (int i = 0; i < 8; i++) c->changing[i] = c->step + i / 10.0;
      fill_shape(c, &o->spec, 2, c->step % 3, 2, 0);
      o->payload.doubles = c->step % 3 ? c->changing : 0;
      break;
    case 3: {
      int n = snprintf(c->text, sizeof c->text, "step %d", c->step);
      if (c->step == 2) memcpy(c->text, "\xff\xfestep", 6);
      o->spec.type = EnvCApi_ObservationString;
      fill_shape(c, &o->spec, 1, n, 0, 0);
      o->payload.string = has(c, "null_string") ? 0 : c->text;
      break;
    }
    case 4:
      for (int i = 0; i < 8; i++) c->rows[i] = (unsigned char)(10 * c->step + i);
      o->spec.type = EnvCApi_ObservationBytes;
      fill_shape(c, &o->spec, 2, c->step % 4, 2, 0);
      o->payload.bytes = c->rows;
      break;
#ifdef VERSION_2
    case 5:
      c->ints[0] = -c->step;
      c->ints[1] = INT_MAX;
      o->spec.type = 3;
      fill_shape(c, &o->spec, 1, 2, 0, 0);
      o->payload.any = c->ints;
      break;
    case 6:
      c->number = 5000000000LL + c->step;
      o->spec.type = 4;
      fill_shape(c, &o->spec, 0, 0, 0, 0);
      o->payload.any = &c->number;
      break;
#endif
  }
}

static int event_count(void* context) {
  BEGIN("event_count");
  check_running(c);
  return c->event_count;
}

static void event(void* context, int k, EnvCApi_Event* e) {
  BEGIN("event");
  EnvCApi_Observation* o = c->event_observations;
  e->id = c->events[k];
  e->observation_count = e->id == 2 ? 0 : 1;
  e->observations = e->id == 2 ? 0 : o;
  o->spec.dims = 1;
  o->spec.shape = c->event_shape;
  if (e->id == 0) {
    c->event_payload = c->episode;
    c->event_shape[0] = 1;
    o->spec.type = EnvCApi_ObservationDoubles;
    o->payload.doubles = &c->event_payload;
  } else if (e->id == 1) {
    c->event_shape[0] = (int)c->said_length;
    o->spec.type = EnvCApi_ObservationString;
    o->payload.string = c->said;
  }
}

static void act_discrete(void* context, const int* actions) {
  BEGIN("act_discrete");
  if (c->no_actions) abort();
  for (int k = 0; k < 2; k++) {
    if (actions[k] < (k ? 0 : -1) || actions[k] > 1) abort();
    c->discrete[k] = actions[k];
  }
}
static void act_continuous(void* context, const double* actions) {
  BEGIN("act_continuous");
  if (c->no_actions || !(actions[0] >= -2 && actions[0] <= 2)) abort();
  c->force = actions[0];
}
static void act_text(void* context, const EnvCApi_TextAction* actions) {
  BEGIN("act_text");
  if (c->no_actions || actions[0].data[actions[0].len] || actions[0].len >= sizeof c->said) abort();
  c->said_length = (size_t)actions[0].len;
  memcpy(c->said, actions[0].data, c->said_length);
}
#ifndef VERSION_2
static void act(void* context, const int* discrete, const double* continuous) {
  act_discrete(context, discrete);
  act_continuous(context, continuous);
}
#endif

static int advance(void* context, int num_steps, double* reward) {
  BEGIN("advance");
  if (c->single_steps && num_steps != 1) {
    strcpy(c->error, "one step at a time");
    return c->status = ERROR;
  }
  if (c->status != RUNNING) abort();
  if (has(c, "status")) return 17;
  if (c->step == 1 && failed(c, "advance")) return c->status = ERROR;
  c->event_count = 0;
  for (int k = 0; k < num_steps && c->status == RUNNING; k++) {
    c->step++;
    *reward += c->discrete[0] + 10 * c->discrete[1] + c->force;
    if (c->step >= c->length) c->status = c->episode % 2 ? INTERRUPTED : TERMINATED;
  }
  if (c->said_length) happened(c, 1);
  if (c->step == 3) happened(c, 2);
  return c->status;
}

static int fill(void** api, void** context) {
  void* functions[] = {
      (void*)setting, (void*)init, (void*)start, (void*)release_context, (void*)error_message,
      (void*)write_property, (void*)read_property, (void*)list_property, (void*)environment_name,
      (void*)action_discrete_count, (void*)action_continuous_count, (void*)action_text_count,
      (void*)action_discrete_name, (void*)action_continuous_name, (void*)action_text_name,
      (void*)action_discrete_bounds, (void*)action_continuous_bounds, (void*)observation_count,
      (void*)observation_name, (void*)observation_spec, (void*)event_type_count,
      (void*)event_type_name,
#ifndef VERSION_2
      (void*)fps,
#endif
      (void*)observation, (void*)event_count, (void*)event,
#ifndef VERSION_2
      (void*)act,
#endif
      (void*)act_discrete, (void*)act_continuous, (void*)act_text, (void*)advance};
  int count = (int)(sizeof functions / sizeof *functions);
#ifdef ONE_CONTEXT
  if (contexts) return 1;
  contexts++;
#endif
#ifdef FAILING_CONNECT
  return 42;
#endif
#ifdef FUNCTIONS
  for (int k = count; k < FUNCTIONS; k++) api[k] = (void*)advance;
  count = count < FUNCTIONS ? count : FUNCTIONS;
#endif
  memcpy(api, functions, (size_t)count * sizeof *functions);
  Context* c = calloc(1, sizeof *c);
  memset(c->ballast, 1, sizeof c->ballast);
  c->length = 5;
  *context = c;
  return 0;
}

#ifdef WITH_PARAMS
typedef struct {
  const char* runfiles;
} Params;
int corners_connect(const Params* params, EnvCApi* api, void** context) {
  if (!params || !params->runfiles || strcmp(params->runfiles, "/run/files")) return 3;
  return fill((void**)api, context);
}
#elif defined(NO_CONNECT)
int corners_open(EnvCApi* api, void** context) { return fill((void**)api, context); }
#else
int corners_connect(EnvCApi* api, void** context) { return fill((void**)api, context); }
#ifdef TWO_CONNECTS
int other_connect(EnvCApi* api, void** context) { return fill((void**)api, context); }
#endif
#endif
