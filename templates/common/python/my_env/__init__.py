"""The environments of `my_env`: after `pip install`, Corral finds them by itself."""

from pathlib import Path


def library() -> str:
    """The path of the compiled library: what Corral loads, and what a libenv host may."""
    folder = Path(__file__).parent / "_native"
    for file in sorted(folder.glob("*")):
        if file.suffix in (".so", ".dylib", ".dll"):
            return str(file)
    raise FileNotFoundError(f"no library in {folder}: build it by `pip install .`")
