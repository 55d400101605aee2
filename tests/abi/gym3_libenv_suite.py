"""gym3 as a host of libenv, its C interface of env libraries: gym3 reads our header `libenv.h` as
its own, and drives a library that was compiled with ours. `test_gym3.py` runs this file where gym3
is installed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gym3 import libenv
from gymnasium import spaces

import corral
from tests.support import assert_same

INCLUDE = Path(corral.__file__).parent / "include"


# Counts up by its action to 5; env 1 begins at 1. Leaves of every dtype.
LIBRARY = r"""
#include "libenv.h"
#include <string.h>
struct env { int num; struct libenv_buffers bufs; int at[8]; float rew[8]; uint8_t first[8]; };
static struct libenv_tensortype leaf(const char *name, enum libenv_scalar_type kind,
                                     enum libenv_dtype dtype, int shape, int high) {
    struct libenv_tensortype type;
    memset(&type, 0, sizeof type);
    strcpy(type.name, name);
    type.scalar_type = kind;
    type.dtype = dtype;
    if (shape) { type.ndim = 1; type.shape[0] = shape; }
    if (dtype == LIBENV_DTYPE_UINT8) type.high.uint8 = (uint8_t)high;
    else if (dtype == LIBENV_DTYPE_INT32) type.high.int32 = high;
    else type.high.float32 = (float)high;
    return type;
}
int libenv_version(void) { return LIBENV_VERSION; }
libenv_env *libenv_make(int num, const struct libenv_options options) {
    struct env *env = calloc(1, sizeof *env);
    (void)options;
    env->num = num;
    for (int k = 0; k < num; k++) { env->at[k] = k % 2; env->first[k] = 1; }
    return env;
}
int libenv_get_tensortypes(libenv_env *handle, enum libenv_space_name name,
                           struct libenv_tensortype *types) {
    (void)handle;
    if (name == LIBENV_SPACE_OBSERVATION) {
        if (types) {
            types[0] = leaf("image", LIBENV_SCALAR_TYPE_DISCRETE, LIBENV_DTYPE_UINT8, 3, 255);
            types[1] = leaf("at", LIBENV_SCALAR_TYPE_REAL, LIBENV_DTYPE_FLOAT32, 0, 9);
        }
        return 2;
    }
    if (name == LIBENV_SPACE_ACTION) {
        if (types) types[0] = leaf("by", LIBENV_SCALAR_TYPE_DISCRETE, LIBENV_DTYPE_INT32, 0, 2);
        return 1;
    }
    if (types) types[0] = leaf("left", LIBENV_SCALAR_TYPE_DISCRETE, LIBENV_DTYPE_INT32, 0, 5);
    return 1;
}
void libenv_set_buffers(libenv_env *handle, struct libenv_buffers *bufs) {
    ((struct env *)handle)->bufs = *bufs;
}
void libenv_observe(libenv_env *handle) {
    struct env *env = handle;
    for (int k = 0; k < env->num; k++) {
        memset(env->bufs.ob[k], env->at[k], 3);
        *(float *)env->bufs.ob[env->num + k] = env->at[k] / 2.0f;
        env->bufs.rew[k] = env->rew[k];
        env->bufs.first[k] = env->first[k];
        *(int32_t *)env->bufs.info[k] = 5 - env->at[k];
    }
}
void libenv_act(libenv_env *handle) {
    struct env *env = handle;
    for (int k = 0; k < env->num; k++) {
        int by = *(int32_t *)env->bufs.ac[k];
        env->at[k] += by;
        env->rew[k] = (float)by;
        env->first[k] = env->at[k] >= 5;
        if (env->first[k]) env->at[k] = 0;
    }
}
void libenv_close(libenv_env *handle) { free(handle); }
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "count.c").write_text(LIBRARY)
    command = ["cc", "-shared", "-fPIC", "-I", str(INCLUDE), "count.c", "-o", "libcount.so"]
    try:
        subprocess.run(command, cwd=tmp_path, check=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler: cc is not installed")
    return tmp_path


def test_gym3_drives_a_library_compiled_with_our_header(library: Path) -> None:
    envs = corral.from_gym3(libenv.CEnv(num=2, lib_dir=str(library), lib_name="count"))
    assert envs.single_observation_space == spaces.Dict(
        [
            ("image", spaces.Box(0, 255, (3,), np.uint8)),
            ("at", spaces.Box(-np.inf, np.inf, (), np.float32)),
        ]
    )
    assert envs.single_action_space == spaces.Dict({"by": spaces.Discrete(3, dtype=np.int32)})
    observations, infos = envs.reset()
    assert_same(observations["at"], np.array([0, 0.5], np.float32))
    assert infos["left"].tolist() == [5, 4]
    rows = [envs.step({"by": np.array([2, 2])}) for _ in range(3)]
    assert [row[0]["image"][:, 0].tolist() for row in rows] == [[2, 3], [4, 0], [0, 2]]
    assert [row[1].tolist() for row in rows] == [[2.0, 2.0]] * 3
    assert [row[2].tolist() for row in rows] == [[False, False], [False, True], [True, False]]
    assert rows[2][4]["left"].tolist() == [5, 3]
    envs.close()


def test_gym3_reads_our_header_as_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"struct libenv_{name}" for name in ("tensortype", "option", "options", "buffers")]

    def layouts() -> dict[str, Any]:
        ffi = libenv.FFI()
        ffi.cdef(libenv._load_libenv_cdef())
        told = {
            name: (
                ffi.sizeof(name),
                [(key, field.offset) for key, field in ffi.typeof(name).fields],
            )
            for name in names
        }
        enums = ("libenv_dtype", "libenv_scalar_type", "libenv_space_name")
        return {**told, **{name: ffi.typeof(f"enum {name}").relements for name in enums}}

    theirs = layouts()
    monkeypatch.setattr(libenv, "get_header_dir", lambda: str(INCLUDE))
    assert layouts() == theirs
