"""A contender in a process of its own: `python -m corral.bench.child FILE BENCH CONTENDER`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import perf_counter

from corral.bench import files
from corral.bench.definition import Contender, Skip


def main(file: str, bench_name: str, contender_name: str) -> None:
    """Plays turns until its standard input ends."""
    # What an env prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    bench = next(bench for bench in files.benches_of(Path(file)) if bench.name == bench_name)
    contender = next(
        one
        for one in (bench.ours, *bench.theirs)
        if isinstance(one, Contender) and one.name == contender_name
    )
    try:
        with contender.open() as loop:
            print("ready", file=answers)
            for line in sys.stdin:
                began = perf_counter()
                rate = loop.play(float(line))
                seconds = perf_counter() - began
                print(rate * seconds, seconds, file=answers)
    except Skip as why:
        print(f"skip {why}", file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
