"""Builds what a release is made of, looks at it, and tests it as users have it.

`build` makes the source distribution and, out of that alone, the wheel, so that nothing of the
checkout gets into the wheel by accident. `audit` looks at a wheel: its tag, which system
libraries of which version it needs, and whether it keeps to Python's stable ABI. `test` installs
a wheel, or the source distribution, into a new venv and runs the tests there without the checkout;
for a wheel there is no Rust on PATH either.

The program runs with Python alone. `build` and `audit` take what the dependency group `wheels` of
pyproject.toml names, in the venv that this program is run by. `test` takes any Python with venv.
`make wheels`, `make test-wheel` and the workflows in .github call it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "target" / "wheels"
# What the tests of an installed wheel are run in.
WORK = ROOT / "target" / "wheel-tests"
# The oldest system that zig links for: that of manylinux2014, which pip knows by this name too.
MANYLINUX = "manylinux2014"
TAG = "manylinux_2_17"
# The oldest versions that pyproject.toml allows.
OLDEST = ("gymnasium==1.2.0", "numpy==1.26.*")
RUST = ("cargo", "rustc", "rustup")
# Ends with an error if corral is imported from anywhere but the venv.
_WHERE = """
import os, sys
import corral
at = os.path.realpath(corral.__file__)
print("corral", corral.__version__, at, corral.simd())
sys.exit(not at.startswith(sys.argv[1]))
"""


def build(interpreter: str | None) -> list[Path]:
    """Makes the source distribution, and the wheel out of it; where an interpreter is given, a
    wheel for that one alone.

    Returns:
        The files that were made.
    """
    shutil.rmtree(OUT, ignore_errors=True)
    arguments = []
    if sys.platform == "linux":
        arguments += ["--zig", "--compatibility", MANYLINUX]
    if interpreter:
        arguments += ["--interpreter", interpreter]
    environment = {
        **os.environ,
        "MATURIN_PEP517_ARGS": " ".join(arguments),
        # Each build unpacks the source distribution to another folder: what it is built with
        # need not be compiled each time.
        "CARGO_TARGET_DIR": str(ROOT / "target" / "wheel-build"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(OUT), str(ROOT)]
    began = time.monotonic()
    subprocess.run(command, env=environment, check=True)
    made = sorted(OUT.iterdir())
    print(f"built in {time.monotonic() - began:.0f} s:")
    for path in made:
        print(f"  {path.name}  {path.stat().st_size / 1e6:.1f} MB")
    return made


def audit(wheel: Path) -> None:
    """Prints what a wheel needs.

    Raises:
        SystemExit: if the wheel needs a younger Linux than its tag says, or calls what is not in
            Python's stable ABI.
    """
    with zipfile.ZipFile(wheel) as packed:
        largest = sorted(packed.infolist(), key=lambda file: -file.file_size)[:5]
        for file in largest:
            unpacked, size = file.file_size / 1e6, file.compress_size / 1e6
            print(f"  {unpacked:6.1f} MB, {size:.1f} packed: {file.filename}")
    stable = "-abi3-" in wheel.name
    if stable:
        _run(sys.executable, "-m", "abi3audit", "--strict", "--verbose", str(wheel))
    if "linux" not in wheel.name:
        return
    told = _run(sys.executable, "-m", "auditwheel", "show", str(wheel))
    found = re.search(r'platform tag:\s+"(\w+)"', told)
    if found is None or not found[1].startswith(TAG + "_"):
        raise SystemExit(f"{wheel.name} is to run on every {TAG}: auditwheel says otherwise")


def test(distribution: Path, python: str, oldest: bool, arguments: list[str]) -> None:
    """Installs a wheel or a source distribution into a new venv and runs tests there.

    Args:
        distribution: the file.
        python: the Python that makes the venv.
        oldest: whether to install the oldest Gymnasium and NumPy that are supported.
        arguments: those of pytest; none run the contract tests.

    Raises:
        SystemExit: if a test fails.
    """
    from_source = distribution.suffix == ".gz"
    version = _run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])", quiet=True)
    name = version.strip() + ("-oldest" if oldest else "") + ("-sdist" if from_source else "")
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    venv = folder / "venv"
    subprocess.run([python, "-m", "venv", str(venv)], check=True)
    scripts = venv / ("Scripts" if os.name == "nt" else "bin")
    own = str(scripts / ("python.exe" if os.name == "nt" else "python"))
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV", "MATURIN_PEP517_ARGS")
    }
    path = [str(scripts), *os.environ["PATH"].split(os.pathsep)]
    if from_source:
        environment["CARGO_TARGET_DIR"] = str(ROOT / "target" / "sdist-build")
    else:
        path = [entry for entry in path if not any(shutil.which(tool, path=entry) for tool in RUST)]
    environment["PATH"] = os.pathsep.join(path)
    tree = folder / "tree"
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "pyproject.toml", tree / "pyproject.toml")
    # Tests run the programs of these pages.
    shutil.copytree(ROOT / "docs", tree / "docs", ignore=shutil.ignore_patterns("*.gif", "*.png"))

    def run(*command: str) -> None:
        ran = subprocess.run(command, cwd=tree, env=environment)
        if ran.returncode:
            raise SystemExit(f"{distribution.name}, Python {name}: {command[1:4]} failed")

    pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--upgrade", "pip>=25.1")
    run(*pip, str(distribution.resolve()), *(OLDEST if oldest else ()), "--group", "test")
    print(f"tested: Python {name}", flush=True)
    run(own, "-c", _WHERE, str(venv.resolve()))
    run(own, "-m", "pytest", "-p", "no:cacheprovider", *(arguments or _contract()))


def _contract() -> list[str]:
    jobs = os.environ.get("JOBS", "6")
    return ["--numprocesses", jobs, "--dist", "loadgroup", "-m", "not thorough", "tests/contract"]


def _run(*command: str, quiet: bool = False) -> str:
    """What a program prints; shown too, unless `quiet`."""
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if not quiet:
        print(ran.stdout, flush=True)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {ran.returncode}")
    return ran.stdout


def _made(pattern: str) -> Path:
    found = sorted(OUT.glob(pattern))
    if not found:
        raise SystemExit(f"there is no {pattern} in {OUT}: run `make wheels`")
    return found[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build", help="make the source distribution and the wheel")
    one.add_argument("--interpreter", help="for this Python alone, such as python3.14t")
    one = commands.add_parser("audit", help="look at a wheel")
    one.add_argument("wheel", type=Path, nargs="?")
    one = commands.add_parser("test", help="test what was built in a new venv")
    one.add_argument("--python", default=sys.executable, help="the Python that makes the venv")
    one.add_argument("--oldest", action="store_true", help="with the oldest Gymnasium and NumPy")
    one.add_argument("--sdist", action="store_true", help="build the source distribution there")
    one.add_argument("arguments", nargs="*", help="pytest's, after --; default: tests/contract")
    told = parser.parse_args()
    if told.command == "build":
        for path in build(told.interpreter):
            if path.suffix == ".whl":
                audit(path)
    elif told.command == "audit":
        audit(told.wheel or _made("*.whl"))
    else:
        distribution = _made("*.tar.gz" if told.sdist else "*.whl")
        test(distribution, told.python, told.oldest, told.arguments)


if __name__ == "__main__":
    main()
