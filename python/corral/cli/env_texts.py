"""What the built-in envs' Rust sources say of them.

`make docs` writes the texts (docs/env_pages) into `env_texts.json`.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from importlib import resources
from typing import Any


def of(id: str) -> dict[str, Any] | None:
    """The texts of an env; None for one that is not built in.

    They are `rules` (a list), `observation`, `action`, `reward`, `terminated`, `index`, `versions`
    and `licence`; `info`, `truncated` and `reset_options` where there is something to tell;
    `source` and `page`, files of Corral's repository.
    """
    texts = _texts()
    name = texts["ids"].get(id)
    if name is None:
        return None
    return {**copy.deepcopy(texts["pages"][name]), "page": f"docs/envs/{name}.md"}


@cache
def _texts() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("env_texts.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
