"""What docstrings say of arguments."""

from __future__ import annotations

import re

# "name: text" and "name (type): text" below "Args:".
_ARGUMENT = re.compile(r"^(?P<indent> +)(?P<name>\w+)(?: *\([^)]*\))?: +(?P<text>.*\w.*)$")
# "* `name=0.1`: text", as Gymnasium's envs have it, "* `name` - text", and either after an anchor.
_LISTED = re.compile(
    r"^ *(?:[-*] +|<a [^>]*></a>)`(?P<name>\w+)(?:=[^`]*)?`(?: *:| -) +(?P<text>.*\w.*)$"
)
# "| `name` | … | text |".
_ROW = re.compile(r"^ *\| *`(?P<name>\w+)` *\|.*\| *(?P<text>[^|]*\w[^|]*?) *\| *$")


def summary(text: str) -> str:
    """The first paragraph that is no heading, in one line."""
    paragraphs = [" ".join(one.split()) for one in re.split(r"\n\s*\n", text)]
    plain = [one for one in paragraphs if one and not one.startswith(("#", "<", "|", "="))]
    return plain[0] if plain else ""


def meanings(text: str) -> dict[str, str]:
    """What each argument means, by name."""
    found: dict[str, str] = {}
    inside, open_name, indent = False, "", 0
    for line in text.splitlines():
        if re.fullmatch(r" *(Args|Arguments|Parameters):", line):
            inside, open_name = True, ""
            continue
        listed = _LISTED.match(line) or _ROW.match(line)
        match = _ARGUMENT.match(line) if inside else None
        depth = len(line) - len(line.lstrip())
        if listed is not None:
            open_name, indent = listed["name"], -1
            found.setdefault(open_name, listed["text"].strip())
        elif match is not None and (not open_name or depth <= indent):
            open_name, indent = match["name"], depth
            found.setdefault(open_name, match["text"].strip())
        elif open_name and line.strip() and depth > indent and "```" not in line:
            found[open_name] += f" {line.strip()}"
        elif line.strip():
            inside, open_name = inside and depth > 0, ""
        elif indent < 0:
            open_name = ""
    return found
