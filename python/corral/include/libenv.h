/*
 * libenv, version 1: environments as a shared library with a C interface.
 *
 * A library has the seven functions below. Its host (gym3, or Corral) drives
 * them in this order:
 *
 *   libenv_version                     must give LIBENV_VERSION
 *   libenv_make(num, options)          num environments that step together
 *   libenv_get_tensortypes             once with NULL for how many, once to fill
 *                                      them in; for each of the three spaces
 *   libenv_set_buffers                 where everything is written and read, once
 *   libenv_observe, libenv_act, ...    until the host has had enough
 *   libenv_close
 *
 * Names, values and layouts are those of the libenv.h that OpenAI published with
 * gym3; what is said about them here are Corral's words. Beside them, gym3 0.3.3
 * reads nothing else of a library.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#if defined(__GNUC__)
#define LIBENV_API __attribute__((__dllexport__))
#else
#define LIBENV_API __declspec(dllexport)
#endif
#else
#if defined(__GNUC__)
#define LIBENV_API __attribute__((__visibility__("default")))
#else
#define LIBENV_API
#endif
#endif

/* Between these two marks stands only what a C parser without a preprocessor
 * (Python's cffi) can be given, conditionals aside. */
// BEGIN_CDEF

#define LIBENV_MAX_NAME_LEN 128
#define LIBENV_MAX_NDIM 16
#define LIBENV_VERSION 1

// What libenv_make gives: the library's own affair, and nobody else looks inside.
typedef void libenv_env;

// The type of one element.
enum libenv_dtype {
    LIBENV_DTYPE_UNUSED = 0,
    LIBENV_DTYPE_UINT8 = 1,
    LIBENV_DTYPE_INT32 = 2,
    LIBENV_DTYPE_FLOAT32 = 3,
};

// One element; which member holds is for the dtype beside it to say.
union libenv_value {
    uint8_t uint8;
    int32_t int32;
    float float32;
};

// What the elements mean: measures (float32 only), or labels from 0 to high
// (uint8 or int32).
enum libenv_scalar_type {
    LIBENV_SCALAR_TYPE_UNUSED = 0,
    LIBENV_SCALAR_TYPE_REAL = 1,
    LIBENV_SCALAR_TYPE_DISCRETE = 2,
};

// The three spaces of an instance. Each is a list of named tensors: even one that
// stands alone has a name.
enum libenv_space_name {
    LIBENV_SPACE_UNUSED = 0,
    LIBENV_SPACE_OBSERVATION = 1,
    LIBENV_SPACE_ACTION = 2,
    LIBENV_SPACE_INFO = 3,
};

// One tensor of a space: what a single environment shows or takes under `name`,
// C-contiguous, with the first `ndim` entries of `shape`. `name` ends with a NUL.
// `low` and `high` are both inclusive, and the same for all elements.
struct libenv_tensortype {
    char name[LIBENV_MAX_NAME_LEN];
    enum libenv_scalar_type scalar_type;
    enum libenv_dtype dtype;
    int shape[LIBENV_MAX_NDIM];
    int ndim;
    union libenv_value low;
    union libenv_value high;
};

// One option of an instance: `count` elements of `dtype` at `data`, which stay
// there until libenv_close. Text is uint8, without a NUL. What options there are is
// for each library to say.
struct libenv_option {
    char name[LIBENV_MAX_NAME_LEN];
    enum libenv_dtype dtype;
    int count;
    void *data;
};

// All options of an instance, in the order in which they were given.
struct libenv_options {
    struct libenv_option *items;
    int count;
};

// Where an instance of `num` environments writes and reads. Every block belongs to
// the host, which keeps it, and this struct, where they are until libenv_close.
//
// `ob`, `info` and `ac` point to a pointer for each tensor of their space and each
// environment: that of tensor k and environment e is [k * num + e]. A host has one
// block per tensor, all environments in a row: with tensors "at" (float32 [2]) and
// "on" (uint8 [4]) and num = 2,
//
//   ob[0]           ob[1]               ob[2]   ob[3]
//   v               v                   v       v
//   +---------------+---------------+   +-------+-------+
//   | at, env 0     | at, env 1     |   | on, 0 | on, 1 |
//   +---------------+---------------+   +-------+-------+
//   0               8              16   0       4       8   bytes
//
// but a library may rely on no more than the pointers.
struct libenv_buffers {
    void **ob;      // written by libenv_observe
    float *rew;     // [num], written by libenv_observe
    uint8_t *first; // [num], written by libenv_observe; 0 or 1
    void **info;    // written by libenv_observe
    void **ac;      // read by libenv_act
};

#if !defined(NO_PROTOTYPE)

// LIBENV_VERSION, as the library was compiled with: hosts refuse any other.
LIBENV_API int libenv_version(void);

// An instance of `num` environments, or NULL where it cannot be made. It is the
// library's, until libenv_close takes it back.
//
// An instance is used by one thread at a time; different instances may be used by
// different threads at once. Whether the environments of an instance share a world
// is the library's to decide.
LIBENV_API libenv_env *libenv_make(int num, const struct libenv_options options);

// How many tensors the space `name` of this instance has, the same at every call.
// Where `types` is not NULL it is the host's, has room for so many, and is filled in.
LIBENV_API int libenv_get_tensortypes(libenv_env *handle, enum libenv_space_name name, struct libenv_tensortype *types);

// Says where this instance writes and reads from now on. `bufs` and all that it
// points to are the host's.
LIBENV_API void libenv_set_buffers(libenv_env *handle, struct libenv_buffers *bufs);

// Writes observations, rewards, firsts and infos of where the environments are.
// Again without a libenv_act in between, it writes the same.
//
// Where `first` is 1, an episode begins: the observation is the new one's, and the
// reward is the last of the one that it ended. An episode's final observation is
// never shown. The rewards of the very first call mean nothing.
LIBENV_API void libenv_observe(libenv_env *handle);

// Takes the actions of all environments. They need not be played before the next
// libenv_observe, but are the library's to read only during this call.
LIBENV_API void libenv_act(libenv_env *handle);

// Ends the instance and frees what it holds. The host's blocks may go after it.
LIBENV_API void libenv_close(libenv_env *handle);

#endif

// END_CDEF

#ifdef __cplusplus
}
#endif
