"""The envs that Gymnasium has too are Gymnasium's, number for number: both play in one run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import corral
from tests.parity.beside import AVX512, compare, plain
from tests.parity.cases import CASES, OPTIONS, Parity
from tests.support import GYMNASIUM_MODES, OLD_NUMPY, ROUNDED_BY_NUMPY

ROOT = Path(__file__).resolve().parents[2]
SEEDS, EPISODES = 200, 3
SOME, FEW = 40, 12
TOY = ("FrozenLake", "CliffWalking", "Taxi", "Blackjack")
# Older versions differ in their envs: other ids, fewer options.
OLD_ENVS = gymnasium.__version__ < "1.4"


def marked(case: Parity) -> Any:
    """The case, skipped where the installed versions have another env."""
    if OLD_ENVS and case.id.startswith(TOY):
        reason = "Gymnasium 1.4 changed the toy texts"
        return pytest.param(case, marks=pytest.mark.skip(reason=reason), id=str(case))
    if OLD_NUMPY and case.id in ROUNDED_BY_NUMPY:
        reason = "NumPy 2 changed what is rounded to float32"
        return pytest.param(case, marks=pytest.mark.skip(reason=reason), id=str(case))
    return pytest.param(case, id=str(case))


def each(cases: Iterable[Parity], *marks: pytest.MarkDecorator) -> list[Any]:
    params = map(marked, cases)
    return [pytest.param(*p.values, marks=[*p.marks, *marks], id=p.id) for p in params]


def beside_gymnasium(case: Parity, seeds: int, many: bool = False) -> dict[str, Any]:
    """What the comparison found, with so many of our envs that a kernel steps them if `many`.

    Where NumPy has sin and cos of its own, it is told to use libm's.
    """
    if not case.trig:
        return compare(case, seeds, EPISODES, many)
    program = [sys.executable, "-m", "tests.parity.beside", str(case), str(seeds), str(EPISODES)]
    done = subprocess.run(
        [*program, *["many"] * many],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "NPY_DISABLE_CPU_FEATURES": AVX512},
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not result["libm"]:
        pytest.skip("this NumPy's sin and cos are not libm's, whatever it is told")
    return result


@pytest.mark.parametrize("case", each(CASES))
def test_40_seeds_of_3_episodes_are_gymnasiums_own(case: Parity) -> None:
    result = beside_gymnasium(case, SOME)
    assert result["difference"] is None
    assert all(result[end] > 10 for end in case.ends), result


KERNELS = ("CartPole", "Pendulum", "MountainCar", "Acrobot")


@pytest.mark.parametrize("case", each(c for c in [*CASES, *OPTIONS] if c.id.startswith(KERNELS)))
def test_envs_by_kernels_are_gymnasiums_own(case: Parity) -> None:
    result = beside_gymnasium(case, FEW, many=True)
    assert result["difference"] is None
    assert all(result[end] > 0 for end in case.ends), result


@pytest.mark.parametrize("case", each(CASES, pytest.mark.thorough))
def test_200_seeds_of_3_episodes_are_gymnasiums_own(case: Parity) -> None:
    result = beside_gymnasium(case, SEEDS)
    assert result["difference"] is None
    assert all(result[end] > 50 for end in case.ends), result


@pytest.mark.parametrize("case", each(OPTIONS))
def test_a_few_seeds_are_gymnasiums_own_under_every_option(case: Parity) -> None:
    result = beside_gymnasium(case, FEW)
    assert result["difference"] is None
    assert all(result[end] > 0 for end in case.ends), result


@pytest.mark.parametrize("case", each(OPTIONS, pytest.mark.thorough))
def test_200_seeds_of_3_episodes_are_gymnasiums_own_under_every_option(case: Parity) -> None:
    result = beside_gymnasium(case, SEEDS)
    assert result["difference"] is None
    assert all(result[end] > 30 for end in case.ends), result


def test_every_option_is_compared() -> None:
    """Those of the envs' configs, but for one that has no effect any more."""
    for id in {case.id for case in CASES}:
        compared: set[str] = set()
        for case in [*CASES, *OPTIONS]:
            # The two sizes of a lake, and a cliff slippery or not, are one env with other defaults.
            if case.id.split("-")[0][:10] == id.split("-")[0][:10]:
                compared |= {*case.options, *case.ours}
        assert set(corral.envs()[id]["options"]) - {"fast"} <= compared, id


def test_every_id_that_gymnasium_has_is_compared() -> None:
    if OLD_ENVS:
        pytest.skip("the ids are those of Gymnasium 1.4")
    known = [id for id in gymnasium.registry if id.startswith((*TOY, "Pendulum", "MountainCar"))]
    assert set(known) <= {case.id for case in CASES}


@pytest.mark.parametrize("case", each([*CASES, *OPTIONS]))
def test_spaces_limit_and_threshold_are_gymnasiums(case: Parity) -> None:
    theirs, ours = case.make_theirs(), case.make_ours()
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    vector = corral.make_vec(case.id, 3, **case.options, **case.ours)
    sync = SyncVectorEnv([case.make_theirs] * 3)
    assert vector.observation_space == sync.observation_space
    assert vector.action_space == sync.action_space
    assert ours.spec is not None
    assert theirs.spec is not None
    assert ours.max_episode_steps == theirs.spec.max_episode_steps
    assert ours.spec.reward_threshold == theirs.spec.reward_threshold
    assert ours.metadata["render_fps"] == theirs.metadata["render_fps"]
    # "human" is a window.
    modes = set(theirs.metadata["render_modes"]) - {"human"}
    assert set(ours.metadata["render_modes"]) == modes


@pytest.mark.parametrize("case", each(CASES))
def test_the_random_stream_is_gymnasiums_from_one_episode_to_the_next(case: Parity) -> None:
    ours = corral.make_vec(case.id, 4, seed=100)
    sync = SyncVectorEnv([case.make_theirs] * 4)
    assert plain(ours.reset()[0]) == plain(sync.reset(seed=100)[0])
    for _ in range(5):
        assert plain(ours.reset()[0]) == plain(sync.reset()[0])


@pytest.mark.parametrize("case", each(CASES))
def test_an_index_is_the_episode_of_that_seed(case: Parity) -> None:
    ours, theirs = case.make_ours(), case.make_theirs()
    for index in (0, 7, 12345):
        got, expected = ours.reset(options={"index": index}), theirs.reset(seed=index)
        theirs.action_space.seed(index)
        for _ in range(20):
            assert plain(got[0]) == plain(expected[0])
            action = theirs.action_space.sample()
            got, expected = ours.step(action), theirs.step(action)
            if got[2]:
                break


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("case", each(case for case in CASES if case.id.startswith(TOY)))
def test_infos_of_batches_have_gymnasiums_keys_masks_and_values(case: Parity, mode: str) -> None:
    ours = corral.make_vec(case.id, 5, autoreset_mode=mode)
    sync = SyncVectorEnv([case.make_theirs] * 5, autoreset_mode=GYMNASIUM_MODES[mode])
    assert_same_infos(ours.reset(seed=3)[1], sync.reset(seed=3)[1])
    sync.action_space.seed(0)
    for _ in range(150):
        actions = sync.action_space.sample()
        got, expected = ours.step(actions), sync.step(actions)
        assert plain(got[0]) == plain(expected[0])
        np.testing.assert_array_equal(got[1], expected[1])
        assert_same_infos(got[4], expected[4])


def assert_same_infos(got: dict[str, Any], expected: dict[str, Any]) -> None:
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(value, dict):
            assert_same_infos(got[key], value)
        elif key == "final_obs":
            assert [plain(one) for one in got[key]] == [plain(one) for one in value]
        elif value.dtype.kind == "i" and got[key].dtype.kind == "f":
            # A whole number at a reset makes Gymnasium's column one of integers, and what other
            # rows tell is cut.
            np.testing.assert_array_equal(got[key].astype(value.dtype), value)
        else:
            np.testing.assert_array_equal(got[key], value)


ANSI = [case for case in [*CASES, *OPTIONS] if case.id.startswith(TOY[:3])]


@pytest.mark.parametrize("case", each(ANSI))
def test_texts_are_gymnasiums(case: Parity) -> None:
    ours, theirs = case.make_ours(render_mode="ansi"), case.make_theirs(render_mode="ansi")
    shown = set()
    for seed in range(4):
        ours.reset(seed=seed)
        theirs.reset(seed=seed)
        theirs.action_space.seed(seed)
        for _ in range(60):
            text = ours.render()
            assert text == theirs.render()
            shown.add(text)
            action = theirs.action_space.sample()
            _, _, terminated, truncated, _ = theirs.step(action)
            ours.step(action)
            if terminated or truncated:
                break
    assert len(shown) > 3


def test_random_maps_are_gymnasiums() -> None:
    from gymnasium.envs.toy_text.frozen_lake import generate_random_map

    for size, p, seed in [(8, 0.8, 0), (2, 0.3, 5), (5, 0.55, 3), (12, 0.75, 9), (4, 1.0, 1)]:
        options: dict[str, Any] = {"map_name": None, "map_size": size, "map_p": p, "map_seed": seed}
        env = corral.make("FrozenLake-v1", render_mode="ansi", **options)
        env.reset(seed=0)
        shown = re.sub("\x1b\\[[0-9;]*m", "", str(env.render())).split()
        assert shown == generate_random_map(size=size, p=p, seed=seed)


def test_reset_options_hold_until_changed() -> None:
    """Gymnasium's are those of one reset."""
    for case in OPTIONS:
        if not case.start:
            continue
        ours, again = case.make_ours(), case.make_ours()
        ours.reset(seed=5, options=dict(case.start))
        held, _ = ours.reset(seed=6)
        assert plain(held) == plain(again.reset(seed=6, options=dict(case.start))[0])
        assert plain(held) != plain(case.make_ours().reset(seed=6)[0])


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("Acrobot-v1", {"book_or_nips": "bible"}, "book_or_nips"),
    ("Acrobot-v1", {"torque_noise_max": 1e308}, "torque_noise_max is 1"),
    ("FrozenLake-v1", {"desc": ["SF", "FFG"]}, "row 1 of desc has 3 letters"),
    ("FrozenLake-v1", {"desc": ["SX", "FG"]}, "row 0 of desc holds 'X'"),
    ("FrozenLake-v1", {"desc": ["FF", "FG"]}, "desc has no S"),
    ("FrozenLake-v1", {"desc": []}, "desc has 0 fields"),
    ("FrozenLake-v1", {"map_name": "5x5"}, "map_name is one of '4x4', '8x8', or None, not '5x5'"),
    ("FrozenLake-v1", {"map_name": None, "map_size": 1}, "map_size is an int from 2 to 64, not 1"),
    ("FrozenLake-v1", {"map_name": None, "map_p": 0}, "map_p is 0"),
    ("FrozenLake-v1", {"map_name": None, "map_size": 40, "map_p": 0.1}, "has a way to the goal"),
    ("FrozenLake-v1", {"success_rate": 1.5}, "success_rate is a number from 0 to 1, not 1.5"),
    ("Taxi-v4", {"rainy_probability": -1}, "rainy_probability is a number from 0 to 1, not -1"),
    ("Taxi-v4", {"fickle_probability": 2}, "fickle_probability is a number from 0 to 1, not 2"),
]


@pytest.mark.parametrize(("id", "options", "what"), WRONG)
def test_an_option_that_makes_no_sense_is_named(id: str, options: Any, what: str) -> None:
    with pytest.raises(corral.errors.OptionValueError, match=re.escape(what)):
        corral.make_vec(id, 2, **options)


WRONG_STARTS: list[tuple[str, dict[str, Any], str]] = [
    ("Pendulum-v1", {"x_init": -1}, "'x_init' is -1"),
    ("Pendulum-v1", {"y_init": "fast"}, "'y_init' is"),
    ("MountainCar-v0", {"low": 1, "high": 0}, "low 1 is above high 0"),
    ("MountainCarContinuous-v0", {"low": float("nan")}, "'low' is NaN, not a finite number"),
    ("Acrobot-v1", {"low": -1e308, "high": 1e308}, "too far apart"),
]


@pytest.mark.parametrize(("id", "start", "what"), WRONG_STARTS)
def test_a_start_that_makes_no_sense_is_named(id: str, start: Any, what: str) -> None:
    env = corral.make(id)
    with pytest.raises(corral.errors.OptionValueError, match=re.escape(what)):
        env.reset(options=start)
    assert np.isfinite(env.reset(seed=0)[0]).all()
    with pytest.raises(corral.errors.UnknownOptionError, match="valid: "):
        env.reset(options={"middle": 0})


def test_links_that_outrun_the_numbers_are_an_error_and_not_a_wait() -> None:
    envs = corral.make_vec("Acrobot-v1", 1, dt=1e9)
    envs.reset(seed=0, options={"low": 0, "high": 1e30})

    def play() -> None:
        for _ in range(50):
            envs.step([2])

    with pytest.raises(corral.errors.EnvError, match="choose a smaller dt"):
        play()


def test_a_taxis_mask_is_of_the_actions_that_change_the_state() -> None:
    envs = corral.make_vec("Taxi-v4", 16, max_episode_steps=-1)
    seen, infos = envs.reset(seed=0)
    rng = np.random.default_rng(0)
    served = 0
    for _ in range(300):
        masks, before = infos["action_mask"], seen
        actions = rng.integers(0, 6, 16)
        seen, _, terminated, _, infos = envs.step(actions)
        np.testing.assert_array_equal(seen != before, masks[np.arange(16), actions] == 1)
        served += int(masks[:, 4:].sum())
        if terminated.any():
            seen, infos = envs.reset()
    assert served > 50
