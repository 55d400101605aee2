"""MiniGrid's levels are the package's own, number for number: both play in one run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import corral
from tests.abi import peers

ROOT = Path(__file__).resolve().parents[2]
IDS = [id for id in corral.envs() if id.startswith("MiniGrid-")]
PARTS = 4
FEW, ALL = 3, 100
KINDS = (
    *("Empty", "FourRooms", "DoorKey", "MultiRoom", "SimpleCrossing", "LavaCrossing", "LavaGap"),
    *("Unlock", "KeyCorridor", "Dynamic-Obstacles", "Memory", "Fetch", "GoToDoor", "PutNear"),
    *("RedBlueDoors", "DistShift", "LockedRoom", "ObstructedMaze", "BlockedUnlockPickup"),
    *("GoToObject", "Playground"),
)
# Where chance alone fulfils a mission now and then.
WINNABLE = [
    *("Empty-5x5-v0", "DoorKey-5x5-v0", "SimpleCrossingS9N1-v0", "LavaGapS5-v0", "Unlock-v0"),
    *("UnlockPickup-v0", "KeyCorridorS3R1-v0", "MemoryS7-v0", "Fetch-5x5-N2-v0"),
    *("GoToDoor-5x5-v0", "RedBlueDoors-6x6-v0", "PutNear-6x6-N2-v0", "DistShift1-v0"),
    *("Dynamic-Obstacles-Random-5x5-v0", "MultiRoom-N2-S4-v0", "ObstructedMaze-1Dl-v0"),
]


def beside(request: dict[str, Any]) -> Any:
    """What the program tells that has the package."""
    try:
        python = peers.minigrid_python()
    except peers.Missing as missing:
        pytest.skip(str(missing))
    done = subprocess.run(
        [python, "-m", "tests.parity.beside_minigrid", json.dumps(request)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{ROOT}"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def compared(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the comparisons found, none of which may find a difference."""
    found: list[dict[str, Any]] = beside({"compare": requests})
    assert [one for one in found if one["difference"] is not None] == []
    assert all(one["steps"] > 0 for one in found)
    return found


def test_the_ids_are_the_packages() -> None:
    told = beside({"ids": True})
    assert set(IDS) == set(told["ids"])
    assert all(any(id.startswith(f"MiniGrid-{kind}") for kind in KINDS) for id in IDS)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_few_seeds_of_every_level_are_the_packages_own(part: int) -> None:
    """Two episodes a seed, the second from where the stream is then."""
    ids = IDS[part::PARTS]
    compared([{"id": id, "seeds": FEW, "episodes": 2, "steps": 120} for id in ids])


def test_missions_are_fulfilled_and_missed_as_in_the_package() -> None:
    found = compared(
        [{"id": f"MiniGrid-{id}", "seeds": 12, "steps": 400} for id in WINNABLE],
    )
    assert [one["id"] for one in found if one["won"] == 0] == []
    assert sum(one["lost"] for one in found) > 30


@pytest.mark.thorough
@pytest.mark.parametrize("id", IDS)
def test_100_seeds_of_whole_episodes_are_the_packages_own(id: str) -> None:
    (told,) = compared([{"id": id, "seeds": ALL}])
    assert told["episodes"] + told["impossible"] == ALL
    print(told)


SHOWN = [
    *("Empty-Random-5x5-v0", "FourRooms-v0", "DoorKey-6x6-v0", "MultiRoom-N2-S4-v0"),
    *("LavaCrossingS9N3-v0", "LavaGapS6-v0", "UnlockPickup-v0", "KeyCorridorS3R2-v0"),
    *("Dynamic-Obstacles-6x6-v0", "MemoryS9-v0", "Fetch-6x6-N2-v0", "GoToDoor-6x6-v0"),
    *("PutNear-8x8-N3-v0", "RedBlueDoors-6x6-v0", "DistShift2-v0", "LockedRoom-v0"),
    *("ObstructedMaze-1Dlhb-v0", "SimpleCrossingS9N2-v0", "Unlock-v0"),
]


@pytest.mark.parametrize("view", ["full", "rgb", "rgb_partial"])
def test_views_and_rendered_frames_are_the_packages_own(view: str) -> None:
    requests = [
        {"id": f"MiniGrid-{id}", "view": view, "seeds": 2, "steps": 40, "drawn_every": 20}
        for id in SHOWN
    ]
    compared(requests)


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("DoorKey-8x8-v0", {"see_through_walls": True}),
    ("FourRooms-v0", {"agent_view_size": 3}),
    ("MultiRoom-N6-v0", {"agent_view_size": 11, "see_through_walls": False}),
    ("LockedRoom-v0", {"agent_view_size": 25}),
    ("KeyCorridorS4R3-v0", {"max_steps": 17}),
    ("Empty-8x8-v0", {"agent_view_size": 9, "max_steps": 25}),
]


@pytest.mark.parametrize("view", ["partial", "rgb_partial"])
def test_options_are_the_packages_own(view: str) -> None:
    requests = [
        {"id": f"MiniGrid-{id}", "options": options, "view": view, "seeds": 3, "steps": 40}
        for id, options in OPTIONS
    ]
    found = compared(requests)
    assert all(one["cut"] > 0 for one, (_, options) in zip(found, OPTIONS) if "max_steps" in options)
    named = {name for _, options in OPTIONS for name in options} | {"view"}
    assert set(corral.envs()[IDS[0]]["options"]) == named


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"agent_view_size": 4}, "agent_view_size is 4"),
    ({"agent_view_size": 1}, "agent_view_size is 1"),
    ({"agent_view_size": 65}, "agent_view_size is 65"),
    ({"max_steps": 0}, "max_steps is 0"),
    ({"view": "half"}, "expected one of `partial`, `full`, `rgb`, `rgb_partial`"),
]


@pytest.mark.parametrize(("options", "what"), WRONG)
def test_an_option_that_makes_no_sense_is_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(corral.errors.OptionValueError, match=what):
        corral.make_vec("MiniGrid-DoorKey-5x5-v0", 2, **options)
