"""MiniGrid's levels are the package's own, number for number: both play in one run."""

from __future__ import annotations

from typing import Any

import pytest

import corral
from tests.abi.venvs import ask

IDS = [id for id in corral.envs() if id.startswith("MiniGrid-")]
PARTS = 2
FEW, ALL = 2, 100
KINDS = (
    *("Empty", "FourRooms", "DoorKey", "MultiRoom", "SimpleCrossing", "LavaCrossing", "LavaGap"),
    *("Unlock", "KeyCorridor", "Dynamic-Obstacles", "Memory", "Fetch", "GoToDoor", "PutNear"),
    *("RedBlueDoors", "DistShift", "LockedRoom", "ObstructedMaze", "BlockedUnlockPickup"),
    *("GoToObject", "Playground"),
)
# Seeds whose missions are fulfilled by chance.
WON = {
    "Empty-5x5-v0": 3,
    "DoorKey-5x5-v0": 35,
    "LavaGapS5-v0": 3,
    "MultiRoom-N2-S4-v0": 49,
    "Unlock-v0": 24,
    "UnlockPickup-v0": 135,
    "KeyCorridorS3R1-v0": 83,
    "ObstructedMaze-1Dl-v0": 60,
    "Fetch-5x5-N2-v0": 11,
    "GoToDoor-5x5-v0": 72,
    "GoToObject-6x6-N2-v0": 69,
    "PutNear-6x6-N2-v0": 42,
    "RedBlueDoors-6x6-v0": 55,
    "MemoryS7-v0": 22,
    "Dynamic-Obstacles-Random-5x5-v0": 45,
}


def beside(request: dict[str, Any]) -> Any:
    return ask("minigrid", "tests.parity.beside_minigrid", request)


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
    seeds = list(range(FEW))
    found = compared([{"id": id, "seeds": seeds, "episodes": 2, "steps": 40} for id in ids])
    assert sum(one["lost"] for one in found) > 10


def test_every_kind_of_mission_is_fulfilled_as_in_the_package() -> None:
    found = compared([{"id": f"MiniGrid-{id}", "seeds": [seed]} for id, seed in WON.items()])
    assert [one["id"] for one in found if one["won"] != 1] == []


@pytest.mark.thorough
@pytest.mark.parametrize("id", IDS)
def test_100_seeds_of_whole_episodes_are_the_packages_own(id: str) -> None:
    (told,) = compared([{"id": id, "seeds": list(range(ALL))}])
    assert told["episodes"] + told["impossible"] == ALL
    print(told)


# Between them they have every kind of thing.
SHOWN = [
    *("DoorKey-6x6-v0", "LavaGapS6-v0", "Dynamic-Obstacles-6x6-v0", "PutNear-8x8-N3-v0"),
    *("RedBlueDoors-6x6-v0", "ObstructedMaze-1Dlhb-v0"),
]
EACH_KIND = [
    next(id for id in IDS if id.startswith(f"MiniGrid-{kind}")).removeprefix("MiniGrid-")
    for kind in KINDS
]
VIEWS = ["full", "rgb", "rgb_partial"]


def shown(ids: list[str], view: str, seeds: int, steps: int) -> list[dict[str, Any]]:
    return [
        {"id": f"MiniGrid-{id}", "view": view, "seeds": list(range(seeds)), "steps": steps}
        | {"drawn_every": steps // 2}
        for id in ids
    ]


def test_views_and_rendered_frames_are_the_packages_own() -> None:
    compared([request for view in VIEWS for request in shown(SHOWN, view, seeds=1, steps=20)])


@pytest.mark.thorough
@pytest.mark.parametrize("view", VIEWS)
def test_views_and_frames_of_every_kind_of_level_are_the_packages_own(view: str) -> None:
    compared(shown(EACH_KIND, view, seeds=3, steps=80))


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("DoorKey-8x8-v0", {"see_through_walls": True}),
    ("FourRooms-v0", {"agent_view_size": 3}),
    ("MultiRoom-N6-v0", {"agent_view_size": 11, "see_through_walls": False}),
    ("LockedRoom-v0", {"agent_view_size": 25}),
    ("KeyCorridorS4R3-v0", {"max_steps": 17}),
    ("Empty-8x8-v0", {"agent_view_size": 9, "max_steps": 25}),
]


def test_options_are_the_packages_own() -> None:
    requests = [
        {"id": f"MiniGrid-{id}", "options": options, "seeds": [0, 1], "steps": 40}
        for id, options in OPTIONS
    ]
    compared([{**request, "view": "rgb_partial", "steps": 3} for request in requests])
    found = compared(requests)
    assert all(
        one["cut"] > 0 for one, (_, options) in zip(found, OPTIONS) if "max_steps" in options
    )
    named = {name for _, options in OPTIONS for name in options} | {"view"}
    assert set(corral.envs()[IDS[0]]["options"]) == named


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"agent_view_size": 4}, "agent_view_size is 4"),
    ({"agent_view_size": 1}, "agent_view_size is an int from 3 to 63, not 1"),
    ({"agent_view_size": 65}, "agent_view_size is an int from 3 to 63, not 65"),
    ({"max_steps": 0}, "max_steps is an int from 1 to 4294967295, or None, not 0"),
    ({"view": "half"}, "view is one of 'partial', 'full', 'rgb', 'rgb_partial', not 'half'"),
]


@pytest.mark.parametrize(("options", "what"), WRONG)
def test_an_option_that_makes_no_sense_is_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(corral.errors.OptionValueError, match=what):
        corral.make_vec("MiniGrid-DoorKey-5x5-v0", 2, **options)
