"""One suite for Gymnasium's vector classes and for ours: what holds of one holds of all."""

from __future__ import annotations

import functools
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import NormalizeObservation, RecordEpisodeStatistics

from tests.python_envs.drawn import INFOS, SPACES, Broken, Drawn, Trouble
from tests.python_envs.support import (
    ASYNC,
    CLASSES,
    MODES,
    OLD_ASSERTION,
    OURS,
    assert_same,
    fns,
    oracle,
    play,
)

# Gymnasium's own workers show what the tests want of ours; that need not be seen in every run.
KINDS = [
    pytest.param(name, marks=pytest.mark.thorough) if "gymnasium async" in name else name
    for name in CLASSES
]
LENGTHS = (3, 4, 5)
Make = Callable[..., Any]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Make:
    return CLASSES[request.param]


@pytest.fixture(params=ASYNC)
def async_kind(request: pytest.FixtureRequest) -> Make:
    return CLASSES[request.param]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> AutoresetMode:
    return MODES[request.param]


def compare(kind: Make, mode: AutoresetMode, steps: int = 12, **how: Any) -> None:
    mask = mode == AutoresetMode.DISABLED
    reference = oracle(LENGTHS, mode, **how)
    expected = play(reference, steps, mask=mask)
    envs = kind(fns(LENGTHS, **how), autoreset_mode=mode)
    try:
        assert_same(play(envs, steps, mask=mask), expected)
    finally:
        envs.close()
        reference.close()


@pytest.mark.parametrize("space", SPACES)
def test_observations_of_every_space_are_what_the_envs_show(
    kind: Make, mode: AutoresetMode, space: str
) -> None:
    if kind is CLASSES["gymnasium async"]:
        if space in ("custom", "sequence", "longer sequence", "graph"):
            pytest.skip("Gymnasium shares no memory for these")
        if space in ("text", "other text", "nested"):
            pytest.skip("Gymnasium reads shared text once, before it is there")
    compare(kind, mode, space=space)


ACTIONS = ("box", "scalar box", "discrete with a start", "multi-discrete", "multi-binary")
ACTIONS += ("dict", "tuple", "nested", "text")


@pytest.mark.parametrize("action", ACTIONS)
def test_actions_of_every_space_reach_the_envs(kind: Make, action: str) -> None:
    reference = oracle(LENGTHS, AutoresetMode.NEXT_STEP, action=action)
    expected = play(reference, 5)
    envs = kind(fns(LENGTHS, action=action))
    assert_same(play(envs, 5), expected)
    envs.close()


@pytest.mark.parametrize("infos", INFOS)
def test_infos_are_batched_with_their_dtypes_and_masks(
    kind: Make, mode: AutoresetMode, infos: str
) -> None:
    compare(kind, mode, infos=infos)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_a_box_takes_numbers_of_other_types(kind: Make, dtype: type) -> None:
    envs = kind([functools.partial(gymnasium.make, "Pendulum-v1")] * 2)
    envs.reset(seed=0)
    observations, rewards, *_ = envs.step(np.array([[1.0], [-1.0]], dtype))
    lone = gymnasium.make("Pendulum-v1")
    lone.reset(seed=0)
    observation, reward, *_ = lone.step(np.array([1.0], np.float32))
    assert (observations[0] == observation).all()
    assert rewards[0] == pytest.approx(reward)
    envs.close()


def test_the_final_observation_and_info_are_those_of_the_ended_episode(kind: Make) -> None:
    envs = kind(fns((2, 3), infos="python"), autoreset_mode=AutoresetMode.SAME_STEP)
    _, _ = envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    _, _, terminations, _, infos = envs.step(envs.action_space.sample())
    assert terminations.tolist() == [True, False]
    assert infos["_final_obs"].tolist() == [True, False]
    assert infos["_final_info"].tolist() == [True, False]
    assert infos["final_obs"].dtype == object
    assert infos["final_obs"][1] is None
    assert infos["final_info"]["int"].tolist() == [2, 0]
    assert infos["int"].tolist() == [0, 2]
    envs.close()


@pytest.mark.parametrize("seed", [None, 0, 11, [5, None, 7], [3, 3, 3]])
def test_seeds_are_one_for_each_env(kind: Make, seed: Any) -> None:
    envs = kind(fns())
    envs.reset(seed=1)
    observations, _ = envs.reset(seed=seed)
    if seed == [3, 3, 3]:
        assert (observations == observations[0]).all()
    told = [history[-1][0] for history in envs.call("history")]
    start = seed if isinstance(seed, int) else 0
    by_number = [start + k for k in range(3)] if isinstance(seed, int) else [None] * 3
    assert told == (seed if isinstance(seed, list) else by_number)
    envs.close()


def test_the_same_seed_gives_the_same_run_and_no_seed_another(kind: Make) -> None:
    envs = kind(fns())
    first, again, other = envs.reset(seed=4), envs.reset(seed=4), envs.reset()
    assert_same(again, first)
    assert not (other[0] == first[0]).all()
    envs.close()


def test_seeds_of_the_wrong_number_are_refused(kind: Make) -> None:
    envs = kind(fns())
    with pytest.raises((ValueError, *OLD_ASSERTION)):
        envs.reset(seed=[1, 2])
    envs.close()


OPTIONS = {"level": 3, "pair": (1, 2), "array": np.arange(3), "number": np.float32(0.5), "deep": {}}


def test_options_reach_the_envs_as_they_are_and_that_reset_alone(kind: Make) -> None:
    envs = kind(fns((1, 1)))
    envs.reset(options=OPTIONS)
    envs.step(envs.action_space.sample())
    envs.step(envs.action_space.sample())
    envs.reset()
    for history in envs.call("history"):
        assert_same([told for _, told in history], [OPTIONS, None, None])
    envs.close()


def test_a_masked_reset_leaves_the_others_where_they_are(kind: Make) -> None:
    envs = kind(fns(), autoreset_mode=AutoresetMode.DISABLED)
    before, _ = envs.reset(seed=2)
    mask = np.array([True, False, True])
    after, infos = envs.reset(seed=[8, 9, 10], options={"reset_mask": mask})
    assert (after[1] == before[1]).all()
    assert not (after[0] == before[0]).all()
    assert infos == {}
    assert envs.get_attr("resets") == (2, 1, 2)
    assert [history[-1][0] for history in envs.call("history")] == [8, 3, 10]
    envs.close()


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False, True], TypeError),
        (np.array([1, 0, 1]), TypeError),
        (np.array([True, False]), ValueError),
        (np.array([False, False, False]), ValueError),
    ],
)
def test_masks_that_make_no_sense_are_refused(kind: Make, mask: Any, error: Any) -> None:
    envs = kind(fns(), autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    with pytest.raises((error, *OLD_ASSERTION)):
        envs.reset(options={"reset_mask": mask})
    envs.close()


def test_a_wrong_number_of_actions_is_a_value_error(kind: Make) -> None:
    envs = kind(fns())
    envs.reset(seed=0)
    if OLD_ASSERTION and kind in (CLASSES["gymnasium sync"], *map(CLASSES.get, ASYNC[:2])):
        envs.close()
        pytest.skip("Gymnasium 1.2 does not count actions")
    for actions in (np.zeros(2, np.int64), np.zeros(4, np.int64)):
        with pytest.raises(ValueError):  # noqa: PT011  whose words differ
            envs.step(actions)
        if kind not in (CLASSES["our sync"], CLASSES["our async"]):
            # Gymnasium's have moved and owe answers by now.
            break
    envs.close(**({} if kind is CLASSES["gymnasium sync"] else {"terminate": True}))


def test_a_step_before_the_first_reset_is_an_error_where_the_env_says_so(kind: Make) -> None:
    envs = kind([functools.partial(gymnasium.make, "CartPole-v1")] * 2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(np.zeros(2, np.int64))
    envs.close()


def test_attributes_and_methods_of_the_envs_are_called_by_name(kind: Make) -> None:
    envs = kind(fns())
    assert envs.get_attr("length") == LENGTHS
    assert envs.call("length") == LENGTHS
    assert envs.call("double", 3) == (6, 6, 6)
    assert envs.call("double", 3, plus=0.5) == (6.5, 6.5, 6.5)
    envs.set_attr("level", 2)
    assert envs.get_attr("level") == (2, 2, 2)
    envs.set_attr("level", [1, 2, 3])
    assert envs.get_attr("level") == (1, 2, 3)
    envs.set_attr("level", ("a", None, {"b": 1}))
    assert envs.get_attr("level") == ("a", None, {"b": 1})
    with pytest.raises(ValueError, match="2"):
        envs.set_attr("level", [1, 2])
    envs.close()


def test_attributes_are_found_through_wrappers(kind: Make) -> None:
    envs = kind([functools.partial(gymnasium.make, "CartPole-v1", max_episode_steps=9)] * 2)
    assert envs.get_attr("gravity") == (9.8, 9.8)
    envs.set_attr("gravity", 1.5)
    assert envs.get_attr("gravity") == (1.5, 1.5)
    assert envs.get_attr("_max_episode_steps") == (9, 9)
    envs.close()


def test_an_attribute_that_is_not_there_is_an_attribute_error(kind: Make) -> None:
    envs = kind(fns())
    with pytest.raises(AttributeError, match="nowhere"):
        envs.get_attr("nowhere")
    envs.close(**({} if kind is CLASSES["gymnasium sync"] else {"terminate": True}))


def test_np_random_and_its_seed_are_the_envs_own(kind: Make) -> None:
    envs = kind(fns())
    envs.reset(seed=20)
    assert envs.np_random_seed == (20, 21, 22)
    assert all(isinstance(one, np.random.Generator) for one in envs.np_random)
    envs.close()


def test_render_gives_a_frame_of_each(kind: Make) -> None:
    envs = kind(fns(render_mode="rgb_array"))
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    assert envs.render_mode == "rgb_array"
    frames = envs.render()
    assert isinstance(frames, tuple)
    assert_same(list(frames), [np.ones((3, 2, 3), np.uint8)] * 3)
    envs.close()


def test_what_an_env_raises_is_raised(kind: Make) -> None:
    good = functools.partial(Drawn, length=9)
    for where in ("reset", "step"):
        envs = kind([good, functools.partial(Broken, where, KeyError("lost"), length=9)])
        with pytest.raises(KeyError, match="lost"):
            play(envs, 3)
        envs.close(**({} if kind is CLASSES["gymnasium sync"] else {"terminate": True}))


def test_envs_of_other_spaces_are_refused(kind: Make) -> None:
    mixed = [
        ({"space": "box"}, {"space": "box of float64"}),
        ({"space": "discrete"}, {"space": "discrete with a start"}),
        ({"action": "discrete"}, {"action": "multi-discrete"}),
        ({"action": "text"}, {"action": "other text"}),
    ]
    for one, other in mixed:
        with pytest.raises((RuntimeError, *OLD_ASSERTION)):
            kind([functools.partial(Drawn, **one), functools.partial(Drawn, **other)])


def test_they_describe_their_envs(kind: Make, mode: AutoresetMode) -> None:
    envs = kind(fns(space="nested", action="box"), autoreset_mode=mode)
    single = Drawn("nested", action="box")
    assert envs.num_envs == 3
    assert envs.spec is None
    assert envs.render_mode is None
    assert not envs.closed
    assert envs.metadata["autoreset_mode"] is mode
    assert envs.metadata["render_fps"] == 7
    assert envs.autoreset_mode is mode
    assert envs.single_observation_space == single.observation_space
    assert envs.single_action_space == single.action_space
    batch = gymnasium.vector.utils.batch_space
    assert envs.observation_space == batch(single.observation_space, 3)
    assert envs.action_space == batch(single.action_space, 3)
    assert len(envs.env_fns) == 3
    assert repr(envs) in ("SyncVectorEnv(num_envs=3)", "AsyncVectorEnv(num_envs=3)")
    assert "autoreset_mode" not in Drawn.metadata or OLD_ASSERTION
    envs.close()


def test_a_mode_is_given_by_its_value_too(kind: Make, mode: AutoresetMode) -> None:
    envs = kind(fns(), autoreset_mode=mode.value)
    assert envs.metadata["autoreset_mode"] is mode
    envs.close()


@pytest.mark.parametrize("wrong", [{"autoreset_mode": "later"}, {"observation_mode": "odd"}])
def test_arguments_that_make_no_sense_are_value_errors(kind: Make, wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, *OLD_ASSERTION)):
        kind(fns(), **wrong)


def test_closing_twice_does_nothing(kind: Make) -> None:
    envs = kind(fns())
    envs.reset(seed=0)
    envs.close()
    assert envs.closed
    envs.close()


def test_results_are_kept_unless_copy_is_off(kind: Make) -> None:
    envs = kind(fns())
    first, _ = envs.reset(seed=0)
    kept = first.copy()
    envs.step(envs.action_space.sample())
    assert (first == kept).all()
    envs.close()
    unchecked = kind(fns(), copy=False)
    assert_same(unchecked.reset(seed=0)[0], kept)
    unchecked.close()


def test_episode_statistics_of_gymnasiums_wrapper_are_right(kind: Make) -> None:
    envs = RecordEpisodeStatistics(kind(fns((2, 3))))
    envs.reset(seed=0)
    rewards = envs.step(np.ones(2, np.int64))[1]
    _, more, _, _, infos = envs.step(np.ones(2, np.int64))
    assert infos["_episode"].tolist() == [True, False]
    assert infos["episode"]["l"].tolist() == [2, 0]
    assert infos["episode"]["r"][0] == pytest.approx(rewards[0] + more[0])
    envs.close()


def test_gymnasiums_normalisation_is_the_same_over_each(kind: Make) -> None:
    reference = NormalizeObservation(oracle(LENGTHS, AutoresetMode.NEXT_STEP))
    expected = play(reference, 12)
    envs = NormalizeObservation(kind(fns()))
    assert_same(play(envs, 12), expected)
    envs.close()


def test_async_calls_give_what_plain_ones_do(async_kind: Make) -> None:
    expected = play(oracle(LENGTHS, AutoresetMode.NEXT_STEP, infos="python"), 6)
    envs = async_kind(fns(infos="python"))
    envs.action_space.seed(3)
    envs.reset_async(seed=3)
    told = [envs.reset_wait(timeout=60)]
    for _ in range(6):
        envs.step_async(envs.action_space.sample())
        told.append(envs.step_wait())
    assert_same(told, expected)
    envs.call_async("double", 2, plus=1)
    assert tuple(envs.call_wait(timeout=60)) == (5, 5, 5)
    envs.close()


def test_an_async_reset_takes_a_mask(async_kind: Make) -> None:
    envs = async_kind(fns(), autoreset_mode=AutoresetMode.DISABLED)
    before, _ = envs.reset(seed=0)
    envs.reset_async(options={"reset_mask": np.array([False, True, False])})
    after, _ = envs.reset_wait()
    assert (after == before).all(axis=1).tolist() == [True, False, True]
    envs.close()


BEGIN: dict[str, Callable[[Any], None]] = {
    "reset": lambda envs: envs.reset_async(),
    "step": lambda envs: envs.step_async(envs.action_space.sample()),
    "call": lambda envs: envs.call_async("length"),
}


@pytest.mark.parametrize("pending", BEGIN)
def test_a_call_while_another_is_pending_is_an_error(async_kind: Make, pending: str) -> None:
    envs = async_kind(fns())
    envs.reset(seed=0)
    BEGIN[pending](envs)
    for begin in BEGIN.values():
        with pytest.raises(AlreadyPendingCallError) as raised:
            begin(envs)
        assert raised.value.name == pending
    with pytest.raises(AlreadyPendingCallError):
        envs.set_attr("level", 1)
    getattr(envs, f"{pending}_wait")()
    envs.close()


@pytest.mark.parametrize("name", BEGIN)
def test_waiting_for_what_was_not_begun_is_an_error(async_kind: Make, name: str) -> None:
    envs = async_kind(fns())
    with pytest.raises(NoAsyncCallError) as raised:
        getattr(envs, f"{name}_wait")()
    assert raised.value.name == name
    envs.close()


@pytest.mark.parametrize("name", BEGIN)
def test_after_close_everything_is_an_error(async_kind: Make, name: str) -> None:
    envs = async_kind(fns())
    envs.reset(seed=0)
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        BEGIN[name](envs)
    with pytest.raises(ClosedEnvironmentError):
        getattr(envs, f"{name}_wait")()
    with pytest.raises(ClosedEnvironmentError):
        envs.set_attr("level", 1)


class Slow(Drawn):
    """Takes half a second a step."""

    def step(self, action: Any) -> Any:
        time.sleep(0.5)
        return super().step(action)

    def doze(self) -> str:
        time.sleep(0.5)
        return "awake"


def test_a_wait_ends_with_its_timeout(async_kind: Make) -> None:
    envs = async_kind([Slow])
    envs.reset(seed=0)
    envs.step_async(np.zeros(1, np.int64))
    with pytest.raises(multiprocessing.TimeoutError):
        envs.step_wait(timeout=0.05)
    envs.close(terminate=True)
    envs = async_kind([Slow])
    envs.call_async("doze")
    with pytest.raises(multiprocessing.TimeoutError):
        envs.call_wait(timeout=0.05)
    envs.close(terminate=True)


@pytest.mark.parametrize("how", [{}, {"timeout": 30}, {"timeout": 0.01}, {"terminate": True}])
def test_close_while_a_step_is_pending_ends_it(async_kind: Make, how: dict[str, Any]) -> None:
    envs = async_kind([Slow])
    envs.reset(seed=0)
    envs.step_async(np.zeros(1, np.int64))
    envs.close(**how)
    assert envs.closed


# --- Where Gymnasium's are at fault, or differ from each other: ours alone ---


@pytest.fixture(params=OURS)
def our_kind(request: pytest.FixtureRequest) -> Make:
    return CLASSES[request.param]


def test_ours_leave_the_callers_options_as_they_are(our_kind: Make) -> None:
    envs = our_kind(fns(), autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    mask = np.array([True, False, False])
    options = {"reset_mask": mask, "level": 1}
    envs.reset(options=options)
    assert options == {"reset_mask": mask, "level": 1}
    assert [history[-1][1] for history in envs.call("history")] == [{"level": 1}, None, None]
    envs.close()


def test_ours_play_the_action_after_a_reset_that_followed_an_end(our_kind: Make) -> None:
    envs = our_kind(fns((1, 1)))
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    envs.reset()
    assert envs.step(envs.action_space.sample())[1].all()
    envs.close()


def test_ours_refuse_to_step_what_has_ended_in_disabled(our_kind: Make) -> None:
    envs = our_kind(fns((1, 2)), autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    with pytest.raises(gymnasium.error.ResetNeeded, match="env 0"):
        envs.step(envs.action_space.sample())
    envs.close()


def test_ours_move_nothing_on_a_wrong_number_of_actions(our_kind: Make) -> None:
    envs = our_kind(fns())
    envs.reset(seed=0)
    for n in (0, 2, 4):
        with pytest.raises(ValueError, match="3"):
            envs.step(np.zeros(n, np.int64))
    assert envs.get_attr("time") == (0, 0, 0)
    envs.close()


def test_ours_go_on_after_an_envs_exception_which_arrives_whole(our_kind: Make) -> None:
    broken = functools.partial(Broken, "step", Trouble("odd", code=41), length=9)
    envs = our_kind([functools.partial(Drawn, length=9), broken])
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    with pytest.raises(Trouble, match="odd") as raised:
        envs.step(envs.action_space.sample())
    assert raised.value.code == 41
    assert raised.value.__cause__.failures[0].slot == 1
    assert raised.value.__cause__.batch[1][0] > 0
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    envs.close()


def test_ours_are_all_closed_after_close(our_kind: Make) -> None:
    envs = our_kind(fns())
    envs.reset(seed=0)
    envs.close()
    for use in (envs.reset, lambda: envs.step(np.zeros(3, np.int64)), lambda: envs.call("length")):
        with pytest.raises(ClosedEnvironmentError):
            use()


def test_ours_wait_again_after_a_timeout() -> None:
    envs = CLASSES["our async"]([Slow])
    envs.reset(seed=0)
    envs.step_async(np.zeros(1, np.int64))
    with pytest.raises(multiprocessing.TimeoutError):
        envs.step_wait(timeout=0.05)
    assert envs.step_wait()[1][0] > 0
    envs.call_async("doze")
    with pytest.raises(multiprocessing.TimeoutError):
        envs.call_wait(timeout=0)
    assert envs.call_wait() == ("awake",)
    envs.close()


def test_ours_say_what_they_cannot_do() -> None:
    with pytest.raises(NotImplementedError, match="worker"):
        CLASSES["our async"](fns(), worker=print)


def test_our_sync_shows_its_envs() -> None:
    envs = CLASSES["our sync"](fns())
    assert [env.length for env in envs.envs] == [3, 4, 5]
    envs.envs[1].level = 8
    assert envs.get_attr("level") == (0, 8, 0)
    envs.close()


def test_our_async_takes_functions_of_a_script_by_default() -> None:
    from corral.compat.gymnasium import AsyncVectorEnv

    envs = AsyncVectorEnv([lambda: Drawn(length=2)] * 3, max_concurrency=1)
    assert envs.native.num_envs == 3
    assert len(set(envs.call("history") and envs.get_attr("length"))) == 1
    envs.close()


def test_our_check_looks_into_spaces_that_travel_as_objects(our_kind: Make) -> None:
    for space, other in (("sequence", "longer sequence"), ("text", "other text")):
        with pytest.raises(RuntimeError, match="env 1"):
            our_kind(
                [
                    functools.partial(Drawn, space=space),
                    functools.partial(Drawn, space=other),
                ]
            )
