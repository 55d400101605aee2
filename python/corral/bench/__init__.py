"""Measures ours against theirs, turn by turn in one run; `corral bench` drives it.

A definition is a Python file with a list `BENCHES`; `benches/definitions/` has ours, and
docs/benchmarks.md says how to write one.
"""

from __future__ import annotations

from corral.bench.definition import Bench, Contender, Limit, Loop, Skip, Turns, needs
from corral.bench.program import Program

__all__ = ["Bench", "Contender", "Limit", "Loop", "Program", "Skip", "Turns", "needs"]
