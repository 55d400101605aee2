"""The C headers that ship with the package: they compile everywhere, with the layouts of old."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import corral

INCLUDE = Path(corral.__file__).parent / "include"
LIBENV, ENV_C_API = "libenv.h", "env_c_api.h"
LANGUAGES = {"C": ("cc", "-std=c99", ".c"), "C++": ("c++", "-std=c++11", ".cc")}

# Sizes, and offsets of members, in bytes: what gym3 0.3.3 and procgen 0.10.7 were measured to use.
LIBENV_LAYOUT = {
    "union libenv_value": (4, {"uint8": 0, "int32": 0, "float32": 0}),
    "struct libenv_tensortype": (
        212,
        {
            "name": 0,
            "scalar_type": 128,
            "dtype": 132,
            "shape": 136,
            "ndim": 200,
            "low": 204,
            "high": 208,
        },
    ),
    "struct libenv_option": (144, {"name": 0, "dtype": 128, "count": 132, "data": 136}),
    "struct libenv_options": (16, {"items": 0, "count": 8}),
    "struct libenv_buffers": (40, {"ob": 0, "rew": 8, "first": 16, "info": 24, "ac": 32}),
}

# In the table's order, of which every function has one pointer.
ENV_C_API_FUNCTIONS = [
    "setting",
    "init",
    "start",
    "release_context",
    "error_message",
    "write_property",
    "read_property",
    "list_property",
    "environment_name",
    "action_discrete_count",
    "action_continuous_count",
    "action_text_count",
    "action_discrete_name",
    "action_continuous_name",
    "action_text_name",
    "action_discrete_bounds",
    "action_continuous_bounds",
    "observation_count",
    "observation_name",
    "observation_spec",
    "event_type_count",
    "event_type_name",
    "fps",
    "observation",
    "event_count",
    "event",
    "act",
    "act_discrete",
    "act_continuous",
    "act_text",
    "advance",
]
ENV_C_API_LAYOUT = {
    "EnvCApi": (248, {name: 8 * k for k, name in enumerate(ENV_C_API_FUNCTIONS)}),
    "EnvCApi_ObservationSpec": (16, {"type": 0, "dims": 4, "shape": 8}),
    "EnvCApi_Observation": (24, {"spec": 0, "payload": 16}),
    "EnvCApi_Event": (16, {"id": 0, "observation_count": 4, "observations": 8}),
    "EnvCApi_TextAction": (16, {"data": 0, "len": 8}),
}

LIBENV_NUMBERS = {
    "LIBENV_VERSION": 1,
    "LIBENV_MAX_NAME_LEN": 128,
    "LIBENV_MAX_NDIM": 16,
    "LIBENV_DTYPE_UNUSED": 0,
    "LIBENV_DTYPE_UINT8": 1,
    "LIBENV_DTYPE_INT32": 2,
    "LIBENV_DTYPE_FLOAT32": 3,
    "LIBENV_SCALAR_TYPE_UNUSED": 0,
    "LIBENV_SCALAR_TYPE_REAL": 1,
    "LIBENV_SCALAR_TYPE_DISCRETE": 2,
    "LIBENV_SPACE_UNUSED": 0,
    "LIBENV_SPACE_OBSERVATION": 1,
    "LIBENV_SPACE_ACTION": 2,
    "LIBENV_SPACE_INFO": 3,
}
ENV_C_API_NUMBERS = {
    "DEEPMIND_ENV_C_API_VERSION_MAJOR": 1,
    "DEEPMIND_ENV_C_API_VERSION_MINOR": 4,
    "EnvCApi_EnvironmentStatus_Running": 0,
    "EnvCApi_EnvironmentStatus_Interrupted": 1,
    "EnvCApi_EnvironmentStatus_Error": 2,
    "EnvCApi_EnvironmentStatus_Terminated": 3,
    "EnvCApi_ObservationDoubles": 0,
    "EnvCApi_ObservationBytes": 1,
    "EnvCApi_ObservationString": 2,
    "EnvCApi_PropertyAttributes_Readable": 1,
    "EnvCApi_PropertyAttributes_Writable": 2,
    "EnvCApi_PropertyAttributes_ReadWritable": 3,
    "EnvCApi_PropertyAttributes_Listable": 4,
    "EnvCApi_PropertyResult_Success": 0,
    "EnvCApi_PropertyResult_NotFound": 1,
    "EnvCApi_PropertyResult_PermissionDenied": 2,
    "EnvCApi_PropertyResult_InvalidArgument": 3,
}
LIBENV_FUNCTIONS = ("version", "make", "get_tensortypes", "set_buffers", "observe", "act", "close")


def build(language: str, code: str, where: Path, *flags: str) -> Path:
    """The program (or what the flags ask for); skips where there is no compiler."""
    name, standard, suffix = LANGUAGES[language]
    compiler = shutil.which(name)
    if compiler is None:
        pytest.skip(f"no {language} compiler: {name} is not installed")
    source, program = where / f"probe{suffix}", where / "probe"
    source.write_text(code)
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = [compiler, standard, *warnings, *flags, "-I", str(INCLUDE), str(source)]
    built = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return program


def compile_and_run(language: str, code: str, where: Path, *flags: str) -> str:
    """What the program prints."""
    built = build(language, code, where, *flags)
    return subprocess.run([built], capture_output=True, text=True, check=True).stdout


def printed(layout: dict[str, tuple[int, dict[str, int]]], numbers: dict[str, int]) -> str:
    """C statements that print the lines of `expected`."""
    lines = []
    for type_, (_, members) in layout.items():
        lines.append(f'printf("{type_} %d\\n", (int)sizeof({type_}));')
        for member in members:
            lines.append(f'printf("{type_}.{member} %d\\n", (int)offsetof({type_}, {member}));')
    lines += [f'printf("{name} %d\\n", (int){name});' for name in numbers]
    return "\n    ".join(lines)


def expected(layout: dict[str, tuple[int, dict[str, int]]], numbers: dict[str, int]) -> list[str]:
    lines = []
    for type_, (size, members) in layout.items():
        lines.append(f"{type_} {size}")
        lines += [f"{type_}.{member} {offset}" for member, offset in members.items()]
    return lines + [f"{name} {number}" for name, number in numbers.items()]


def program(headers: list[str], body: str) -> str:
    included = "".join(f'#include "{header}"\n' for header in headers)
    # The headers first: they must bring along what they need.
    return f"{included}#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n    {body}\n}}\n"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("headers", "layout", "numbers"),
    [
        ([LIBENV], LIBENV_LAYOUT, LIBENV_NUMBERS),
        ([ENV_C_API], ENV_C_API_LAYOUT, ENV_C_API_NUMBERS),
        (
            [LIBENV, ENV_C_API, LIBENV, ENV_C_API],
            {**LIBENV_LAYOUT, **ENV_C_API_LAYOUT},
            {**LIBENV_NUMBERS, **ENV_C_API_NUMBERS},
        ),
    ],
    ids=["libenv", "EnvCApi", "both, twice"],
)
def test_every_struct_has_its_layout(
    tmp_path: Path,
    language: str,
    headers: list[str],
    layout: dict[str, tuple[int, dict[str, int]]],
    numbers: dict[str, int],
) -> None:
    told = compile_and_run(language, program(headers, printed(layout, numbers)), tmp_path)
    assert told.splitlines() == expected(layout, numbers)


@pytest.mark.parametrize("language", LANGUAGES)
def test_libenvs_functions_can_be_defined_and_are_seen_from_outside(
    tmp_path: Path, language: str
) -> None:
    code = """#include "libenv.h"
int libenv_version(void) { return LIBENV_VERSION; }
libenv_env *libenv_make(int num, const struct libenv_options options) {
    return num < options.count ? 0 : options.items;
}
int libenv_get_tensortypes(libenv_env *handle, enum libenv_space_name name,
                           struct libenv_tensortype *types) {
    return handle != 0 && name == LIBENV_SPACE_ACTION && types != 0;
}
void libenv_set_buffers(libenv_env *handle, struct libenv_buffers *bufs) {
    (void)handle;
    bufs->rew[0] = 0;
}
void libenv_observe(libenv_env *handle) { (void)handle; }
void libenv_act(libenv_env *handle) { (void)handle; }
void libenv_close(libenv_env *handle) { (void)handle; }
"""
    build(language, code, tmp_path, "-shared", "-fPIC", "-fvisibility=hidden")
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    command = ["nm", "-D", tmp_path / "probe"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    defined = {line.split()[-1] for line in listed.stdout.splitlines() if " T " in line}
    assert {name for name in defined if "libenv" in name} == {
        f"libenv_{name}" for name in LIBENV_FUNCTIONS
    }


def test_without_prototypes_libenv_declares_types_alone(tmp_path: Path) -> None:
    code = '#include "libenv.h"\nint libenv_make = 1;\nint main(void) { return 1 - libenv_make; }\n'
    assert compile_and_run("C", code, tmp_path, "-DNO_PROTOTYPE") == ""
    with pytest.raises(AssertionError, match="libenv_make"):
        compile_and_run("C", code, tmp_path)


@pytest.mark.parametrize("header", [LIBENV, ENV_C_API])
def test_headers_are_plain_ascii_of_bearable_width(header: str) -> None:
    for line in (INCLUDE / header).read_text(encoding="ascii").splitlines():
        assert len(line) <= 120, line
