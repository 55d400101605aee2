"""Imports PufferLib, which leaves a link `resources` in the folder that it is imported from."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from corral.bench import needs


def needs_pufferlib(module: str) -> Any:
    """A module of PufferLib, imported from a folder that is thrown away; or `Skip`."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return needs(module)
        finally:
            os.chdir(here)
