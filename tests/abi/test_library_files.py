"""What is given for a library and is none, or not all of one: an error that says so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import corral
from corral import errors
from tests.abi.libenv import compiled

LOADERS: dict[str, Callable[[Any], Any]] = {
    "plugin": corral.load,
    "libenv in a worker": lambda path: corral.load_libenv(path, isolation="process"),
    "libenv here": lambda path: corral.load_libenv(path, isolation="thread"),
    "libenv, either": corral.load_libenv,
}

loaders = pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)


WHAT_IS_NO_FILE = """
import os, sys
from pathlib import Path
import corral

folder = Path(sys.argv[1])
os.mkfifo(folder / "fifo.so")
(folder / "folder.so").mkdir()
kinds = {folder / "fifo.so": "FIFO", folder / "folder.so": "directory", Path("/dev/zero"): "device"}
here = lambda path: corral.load_libenv(path, isolation="thread")
there = lambda path: corral.load_libenv(path, isolation="process")
for path, kind in kinds.items():
    for load in (corral.load, corral.load_libenv, here, there):
        try:
            load(path)
        except corral.errors.LibraryError as error:
            assert str(error) == f"{path}: it is a {kind}: give the file of a shared library", error
        else:
            raise AssertionError(f"{path} was loaded")
"""


def test_a_fifo_a_directory_and_a_device_are_refused_by_what_they_are(tmp_path: Path) -> None:
    # In a process of its own, which can be ended: a FIFO that is waited for is waited for by all
    # of Python.
    done = subprocess.run(
        [sys.executable, "-c", WHAT_IS_NO_FILE, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


@loaders
def test_a_file_that_is_no_library_is_refused(load: Callable[[Any], Any], tmp_path: Path) -> None:
    for name, content in (("empty", b""), ("text", b"not a library\n"), ("elf", b"\x7fELF" * 99)):
        path = tmp_path / f"{name}.so"
        path.write_bytes(content)
        with pytest.raises(errors.LibraryError, match=f"{name}.so: it is no shared library"):
            load(path)
    with pytest.raises(errors.LibraryError, match="No such file"):
        load(tmp_path / "none.so")


@loaders
def test_a_symbol_that_is_nowhere_is_named_as_the_loader_names_it(
    load: Callable[[Any], Any], tmp_path: Path
) -> None:
    source, library = tmp_path / "undefined.c", tmp_path / "undefined.so"
    source.write_text(
        "extern int nowhere(void);\n"
        "const void *corral_plugin_entry(void) { nowhere(); return 0; }\n"
        "int libenv_make(void) { return nowhere(); }\n"
    )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-z,now", str(source), "-o", str(library)], check=True
    )
    with pytest.raises(
        errors.CorralError, match="it cannot be loaded: undefined symbol: nowhere"
    ) as raised:
        load(library)
    assert str(raised.value).count(str(library)) == 1


CUT = """
import sys
from pathlib import Path
import corral

library, to = map(Path, sys.argv[1:])
whole = library.read_bytes()
sizes = [*range(0, len(whole), 512), len(whole) - 1]
for size in sizes:
    # Another file each time: the loader would give the first again.
    cut = to / f"cut-{size}.so"
    cut.write_bytes(whole[:size])
    for load in (corral.load, lambda path: corral.load_libenv(path, isolation="thread")):
        try:
            load(cut)
        except corral.errors.LibraryError as error:
            assert "not all of one" in str(error) or "it is cut short" in str(error), error
        else:
            raise AssertionError(f"{size} of {len(whole)} bytes were taken for a library")
print(len(sizes), "refused")
"""


def test_a_library_that_was_cut_short_is_refused_wherever_it_was_cut(tmp_path: Path) -> None:
    # In a process of its own: what is not refused ends by SIGBUS.
    library = compiled()
    done = subprocess.run(
        [sys.executable, "-c", CUT, str(library), str(tmp_path)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("refused\n")
