/*
 * EnvCApi, version 1.4: an environment as a table of C functions.
 *
 * A library fills in an EnvCApi and hands out a context, by a function whose name
 * and arguments are its own affair (`int xyz_connect(EnvCApi *, void **context)` as
 * a rule). Everything after that goes through the table, the context first:
 *
 *   setting*  init  [specs and counts]
 *   ( start  [observation, event]*  ( act_*  advance  [observation, event]* )* )*
 *   release_context
 *
 * A context is one environment, for one thread at a time.
 *
 * Names, values and layouts are those of the env_c_api.h of DeepMind Lab (Google,
 * Apache License 2.0); what is said about them here are Corral's words.
 */
#ifndef DEEPMIND_ENV_C_API_H_
#define DEEPMIND_ENV_C_API_H_

/*
 * Tables of different versions differ in layout, minor ones too, and nothing in
 * them tells: library and host must be compiled against the same pair of numbers.
 * A library does well to have the pair passed to its connect function.
 */
#define DEEPMIND_ENV_C_API_VERSION_MAJOR 1
#define DEEPMIND_ENV_C_API_VERSION_MINOR 4

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct EnvCApi_s EnvCApi;
typedef struct EnvCApi_ObservationSpec_s EnvCApi_ObservationSpec;
typedef struct EnvCApi_Observation_s EnvCApi_Observation;
typedef struct EnvCApi_Event_s EnvCApi_Event;
typedef struct EnvCApi_TextAction_s EnvCApi_TextAction;

/* Where an episode is after a step. */
enum EnvCApi_EnvironmentStatus_enum {
  /* It goes on. */
  EnvCApi_EnvironmentStatus_Running,
  /* It was cut short of a terminal state: Corral's `truncated`. */
  EnvCApi_EnvironmentStatus_Interrupted,
  /* Something failed, and it is over; `error_message` says what. */
  EnvCApi_EnvironmentStatus_Error,
  /* It reached a terminal state: Corral's `terminated`. */
  EnvCApi_EnvironmentStatus_Terminated
};
typedef enum EnvCApi_EnvironmentStatus_enum EnvCApi_EnvironmentStatus;

/* What an observation is made of. */
enum EnvCApi_ObservationType_enum {
  EnvCApi_ObservationDoubles,
  EnvCApi_ObservationBytes,
  EnvCApi_ObservationString
};
typedef enum EnvCApi_ObservationType_enum EnvCApi_ObservationType;

/*
 * Type and shape: `shape` has `dims` entries. In the spec that is asked of an
 * environment beforehand, dims of 0 says that each observation brings a shape of
 * its own. A string has one dimension: its length.
 */
struct EnvCApi_ObservationSpec_s {
  EnvCApi_ObservationType type;
  int dims;
  const int* shape;
};

/* The elements, in row-major order without gaps, under the type's own name. */
struct EnvCApi_Observation_s {
  EnvCApi_ObservationSpec spec;
  union {
    const double* doubles;
    const unsigned char* bytes;
    const char* string;
  } payload;
};

/*
 * Something that happened: of the type `id`, with values that have nothing to do
 * with the environment's own observations.
 */
struct EnvCApi_Event_s {
  int id;
  int observation_count;
  const EnvCApi_Observation* observations;
};

/* A text and its length in bytes; a NUL follows, which `len` does not count. */
struct EnvCApi_TextAction_s {
  const char* data;
  uint64_t len;
};

/*
 * Properties are texts under dotted keys, which describe an environment or steer
 * it. What may be done with one, as bits:
 */
enum EnvCApi_PropertyAttributes_enum {
  EnvCApi_PropertyAttributes_Readable = 1 << 0,
  EnvCApi_PropertyAttributes_Writable = 1 << 1,
  EnvCApi_PropertyAttributes_ReadWritable =
      EnvCApi_PropertyAttributes_Readable | EnvCApi_PropertyAttributes_Writable,
  /* It has properties below it. */
  EnvCApi_PropertyAttributes_Listable = 1 << 2,
};
typedef enum EnvCApi_PropertyAttributes_enum EnvCApi_PropertyAttributes;

/* How it went with a property. */
enum EnvCApi_PropertyResult_enum {
  EnvCApi_PropertyResult_Success = 0,
  EnvCApi_PropertyResult_NotFound = 1,
  EnvCApi_PropertyResult_PermissionDenied = 2,
  EnvCApi_PropertyResult_InvalidArgument = 3,
};
typedef enum EnvCApi_PropertyResult_enum EnvCApi_PropertyResult;

/*
 * The table. Of all functions:
 * - `context` is one that a connect function gave and nobody has released;
 * - pointers that go in are valid and not NULL; texts that come out are not NULL;
 * - what comes out belongs to the library, and holds until the next call with the
 *   same context: a host copies at once;
 * - indices count from 0 to below the count of the same name.
 */
struct EnvCApi_s {
  /* Beginning and end. */

  /* Sets an option, before `init`; of the same key the last one counts. 0, or
   * something else and `error_message` says why. */
  int (*setting)(void* context, const char* key, const char* value);

  /* Ends the settings; all that follows comes after it. 0, or something else and
   * `error_message` says why. */
  int (*init)(void* context);

  /* Begins the episode of this id and seed, whatever became of the last one. 0;
   * EAGAIN (<errno.h>): call again; or something else and `error_message` says
   * why. */
  int (*start)(void* context, int episode_id, int seed);

  /* Frees the context: the last call with it. */
  void (*release_context)(void* context);

  /* Why the call before this one failed: of `setting`, `init`, `start` or
   * `advance`. */
  const char* (*error_message)(void* context);

  /* What it is like: at any time after `init`, between episodes too. */

  /* Sets a property. Success promises neither that it takes effect at once nor
   * that the same text can be read back. InvalidArgument: not a value for it;
   * PermissionDenied: not Writable; NotFound: no such key. */
  EnvCApi_PropertyResult (*write_property)(void* context, const char* key,
                                           const char* value);

  /* Reads a property. Unless it is Success (PermissionDenied: not Readable;
   * NotFound: no such key), *value stays what it was. */
  EnvCApi_PropertyResult (*read_property)(void* context, const char* key,
                                          const char** value);

  /* Calls `prop_callback` with `userdata` for each property directly below
   * `list_key` (the empty text is the root), in any order. `key` is whole, and
   * holds within the callback only, from which nothing of this table may be
   * called. PermissionDenied: not Listable; NotFound: no such key. */
  EnvCApi_PropertyResult (*list_property)(
      void* context, void* userdata, const char* list_key,
      void (*prop_callback)(void* userdata, const char* key,
                            EnvCApi_PropertyAttributes attributes));

  /* What the environment is called. */
  const char* (*environment_name)(void* context);

  /* An action is so many ints, doubles and texts. */
  int (*action_discrete_count)(void* context);
  int (*action_continuous_count)(void* context);
  int (*action_text_count)(void* context);

  /* What each of them is called. */
  const char* (*action_discrete_name)(void* context, int discrete_idx);
  const char* (*action_continuous_name)(void* context, int continuous_idx);
  const char* (*action_text_name)(void* context, int text_idx);

  /* The least and the greatest value that each may have, both inclusive. */
  void (*action_discrete_bounds)(void* context, int discrete_idx,
                                 int* min_value, int* max_value);
  void (*action_continuous_bounds)(void* context, int continuous_idx,
                                   double* min_value, double* max_value);

  /* How many observations there are, and what each is called. */
  int (*observation_count)(void* context);
  const char* (*observation_name)(void* context, int observation_idx);

  /* An observation's type and shape, which hold for all of this index, unless
   * dims is 0: then each has its own. */
  void (*observation_spec)(void* context, int observation_idx,
                           EnvCApi_ObservationSpec* spec);

  /* How many types of events are known so far, and what each is called: events'
   * ids are below this count. */
  int (*event_type_count)(void* context);
  const char* (*event_type_name)(void* context, int event_type_idx);

  /* Steps per second, for those who watch. Newer libraries have a property for
   * it, and newer versions no such function. */
  int (*fps)(void* context);

  /* An episode: after `start` has succeeded, and no more once `advance` gives
   * anything but Running. */

  /* The current observation of this index. */
  void (*observation)(void* context, int observation_idx,
                      EnvCApi_Observation* obs);

  /* How many events there were since the last `start` or `advance`, and each. */
  int (*event_count)(void* context);
  void (*event)(void* context, int event_idx, EnvCApi_Event* event);

  /* As `act_discrete`, then `act_continuous`, which are to be used instead: newer
   * versions have no such function. */
  void (*act)(void* context,
              const int actions_discrete[], const double actions_continuous[]);

  /* Each sets one kind of actions, which stay in force until they are set again.
   * The arrays are as long as that kind's count. */
  void (*act_discrete)(void* context, const int actions_discrete[]);
  void (*act_continuous)(void* context, const double actions_continuous[]);
  void (*act_text)(void* context, const EnvCApi_TextAction actions_text[]);

  /* Plays the actions in force for `num_steps` steps, at least 1, or until the
   * episode is over. *reward gets the sum of the rewards, be it 0. */
  EnvCApi_EnvironmentStatus (*advance)(void* context, int num_steps,
                                       double* reward);
};

#ifdef __cplusplus
}
#endif

#endif
