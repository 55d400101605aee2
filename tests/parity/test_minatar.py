"""MinAtar's games are the package's own, number for number, where both draw the same random
numbers: both play in one run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import corral
from tests.abi.venvs import ask

GAMES = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
IDS = [id for id in corral.envs() if id.startswith("MinAtar-")]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"sticky_action_prob": 0.0},
    {"sticky_action_prob": 0.6, "difficulty_ramping": False},
]
ALL = 100


def beside(request: dict[str, Any]) -> Any:
    return ask("minatar", "tests.parity.beside_minatar", request)


def compared(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the comparisons found, none of which may find a difference."""
    found: list[dict[str, Any]] = beside({"compare": requests})
    assert [one for one in found if one["difference"] is not None] == []
    return found


def test_the_ids_are_the_packages() -> None:
    told = beside({"ids": True})
    assert set(IDS) == {id.replace("/", "-") for id in told["ids"]}
    assert {id.split("-")[1] for id in IDS} == set(GAMES)


def test_a_few_seeds_of_every_game_are_the_packages_own() -> None:
    """Three episodes a seed, the second and third from where the stream is then."""
    ids = [f"MinAtar/{game}-v{version}" for game in GAMES for version in (0, 1)]
    found = compared(
        [
            {"id": id, "seeds": [k, k + 2], "episodes": 3, "steps": 250, "options": options}
            for k, id in enumerate(ids)
            for options in OPTIONS[k % 2 :: 2]
        ]
    )
    assert all(one["reward"] > 0 for one in found)


def test_oxygen_that_is_used_up_does_not_last_for_the_step_to_the_surface() -> None:
    """Seeds of the long test in which that decides."""
    request = {"id": "MinAtar/Seaquest-v1", "episodes": 2, "steps": 400}
    compared([{**request, "seeds": [33]}, {**request, "seeds": [72], "options": OPTIONS[2]}])


@pytest.mark.thorough
@pytest.mark.parametrize("id", IDS)
def test_100_seeds_are_the_packages_own(id: str) -> None:
    request = {"id": id.replace("-", "/", 1), "episodes": 2, "steps": 400}
    found = compared(
        [
            {**request, "seeds": list(range(k, ALL, 10 if options else 1)), "options": options}
            for k, options in enumerate(OPTIONS)
        ]
    )
    print(found)


@pytest.mark.thorough
def test_long_games_of_rising_difficulty_are_the_packages_own() -> None:
    """To Freeway's end, and until nothing can come or move faster."""
    for id in ("MinAtar/Asterix-v1", "MinAtar/Freeway-v1", "MinAtar/Seaquest-v1"):
        (told,) = compared([{"id": id, "seeds": [0, 1, 2], "episodes": 1, "steps": 3000}])
        print(told)


def test_every_id_shows_bools_and_takes_the_moves_of_its_game() -> None:
    channels = {"Asterix": 4, "Breakout": 4, "Freeway": 7, "Seaquest": 10, "SpaceInvaders": 6}
    moves = {"Asterix": 5, "Breakout": 3, "Freeway": 3, "Seaquest": 6, "SpaceInvaders": 4}
    for game in GAMES:
        for version, actions in ((0, 6), (1, moves[game])):
            env = corral.make(f"MinAtar/{game}-v{version}")
            assert env.observation_space == spaces.Box(0, 1, (10, 10, channels[game]), np.bool_)
            assert env.action_space == spaces.Discrete(actions)
            again = corral.make(f"MinAtar-{game}-v0", use_minimal_action_set=version == 1)
            assert again.action_space == env.action_space


def test_a_text_has_a_letter_for_what_is_in_a_cell() -> None:
    env = corral.make("MinAtar-Breakout-v1", render_mode="ansi")
    seen, _ = env.reset(seed=0)
    rows = str(env.render()).splitlines()
    assert [len(row) for row in rows] == [10] * 10
    assert rows[1:4] == ["#" * 10 if row.all() else "" for row in seen[1:4, :, 3]]
    assert rows[9] == "....=....."


def test_a_picture_shows_each_cell_in_its_channels_colour() -> None:
    env = corral.make("MinAtar-Asterix-v1", render_mode="rgb_array")
    seen, _ = env.reset(seed=0)
    for _ in range(60):
        seen, _, over, _, _ = env.step(0)
        if over:
            seen, _ = env.reset()
    middles = np.asarray(env.render())[16::32, 16::32].astype(int)
    ground = middles[0, 0]
    shown = (middles != ground).any(-1)
    np.testing.assert_array_equal(shown, seen.any(-1))
    colours = [{tuple(c) for c in middles[seen[..., k]].tolist()} for k in (0, 1, 3)]
    assert all(len(one) <= 1 for one in colours)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sticky_action_prob": -0.1}, "sticky_action_prob is a number from 0 to 1, not -0.1"),
    ({"sticky_action_prob": 2}, "sticky_action_prob is a number from 0 to 1, not 2"),
    ({"difficulty_ramping": "yes"}, "difficulty_ramping is a bool, not 'yes'"),
]


@pytest.mark.parametrize(("options", "what"), WRONG)
def test_an_option_that_makes_no_sense_is_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(corral.errors.OptionValueError, match=what):
        corral.make_vec("MinAtar-Freeway-v1", 2, **options)
