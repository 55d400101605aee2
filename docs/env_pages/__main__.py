"""`make docs` writes texts and pages; `make env-scores` scores and films envs before it does."""

from __future__ import annotations

import argparse

import corral
from env_pages import films, pages, scores, sources


def main() -> None:
    parser = argparse.ArgumentParser(prog="env_pages", description=__doc__)
    parser.add_argument(
        "--measure",
        nargs="*",
        metavar="ID",
        help="score these envs, or those that have no score yet, and film their pages",
    )
    asked = parser.parse_args().measure
    texts = sources.texts()
    if asked is not None:
        unknown = [id for id in asked if id not in corral.envs()]
        if unknown:
            parser.error(f"there is no env {unknown[0]}: `corral list` has those that there are")
        played = asked or scores.missing(texts)
        for id in played:
            scores.measure(id)
        for name in dict.fromkeys(texts["ids"][id] for id in played):
            films.film(name, texts)
        for name in films.missing(texts):
            films.film(name, texts)
    for path, text in pages.files(texts).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in pages.left_over(texts):
        path.unlink()


if __name__ == "__main__":
    main()
