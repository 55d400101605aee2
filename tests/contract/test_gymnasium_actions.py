"""Do we take the actions that Gymnasium takes, in the forms in which it takes them?

Each action of a table is given to Gymnasium's own env or `SyncVectorEnv` and to ours: both play it
and show the same, or both refuse it. Some of Gymnasium's envs compute in the dtype of the action.
So what is shown is compared with what they show for the action in the space's dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import corral
from corral.errors import InvalidActionError
from tests.support import OLD_NUMPY, ROUNDED_BY_NUMPY, assert_same

N = 3
QUARTERS = np.array([[0.25], [-0.75], [1.5]])
THIRDS = np.array([[0.25], [-0.75], [1.5]]) / 3

# For each id, actions of three envs, and whether they are taken.
VECTORS: list[tuple[str, Callable[[], Any], bool]] = [
    ("Pendulum-v1", lambda: THIRDS, True),
    ("Pendulum-v1", lambda: QUARTERS.astype(np.float32), True),
    ("Pendulum-v1", lambda: QUARTERS.astype(np.float16), True),
    ("Pendulum-v1", lambda: np.asfortranarray(np.repeat(QUARTERS, 2, 1))[:, 1:], True),
    ("Pendulum-v1", lambda: THIRDS.tolist(), True),
    ("Pendulum-v1", lambda: tuple(map(tuple, QUARTERS)), True),
    ("Pendulum-v1", lambda: list(QUARTERS), True),
    ("Pendulum-v1", lambda: [[1], [0.5], [-1]], True),
    ("Pendulum-v1", lambda: [[1], [0], [-1]], True),
    ("Pendulum-v1", lambda: np.array([[1], [0], [-1]]), True),
    ("Pendulum-v1", lambda: np.array([[1], [0], [1]], np.uint8), True),
    ("Pendulum-v1", lambda: [0.25, -0.75, 1.5], False),
    ("Pendulum-v1", lambda: 0.25, False),
    ("MountainCarContinuous-v0", lambda: QUARTERS, True),
    ("MountainCarContinuous-v0", lambda: QUARTERS.tolist(), True),
    ("CartPole-v1", lambda: np.array([1, 0, 1]), True),
    ("CartPole-v1", lambda: np.array([1, 0, 1], np.int8), True),
    ("CartPole-v1", lambda: [1, 0, 1], True),
    ("CartPole-v1", lambda: (1, 0, 1), True),
    ("CartPole-v1", lambda: [np.int32(1), np.array(0), 1], True),
    ("CartPole-v1", lambda: np.array([1.0, 0.0, 1.0]), False),
    ("CartPole-v1", lambda: [1.0, 0.0, 1.0], False),
    ("CartPole-v1", lambda: [1, 0, 2], False),
    ("CartPole-v1", lambda: [1, -1, 0], False),
    ("CartPole-v1", lambda: np.array([1, 0, 257]), False),
    ("CartPole-v1", lambda: 1, False),
]

SINGLES: list[tuple[str, Any, bool]] = [
    ("Pendulum-v1", np.array([0.1]), True),
    ("Pendulum-v1", np.array([0.25], np.float32), True),
    ("Pendulum-v1", [0.25], True),
    ("Pendulum-v1", (1,), True),
    ("Pendulum-v1", 0.25, False),
    ("CartPole-v1", 1, True),
    ("CartPole-v1", True, True),
    ("CartPole-v1", np.int8(1), True),
    ("CartPole-v1", np.array(1, np.uint16), True),
    ("CartPole-v1", 1.0, False),
    ("CartPole-v1", np.float64(1), False),
    ("CartPole-v1", 2, False),
    ("CartPole-v1", 2**70, False),
]


def _taken(step: Callable[[Any], Any], action: Any, refusal: type[Exception]) -> Any:
    """What the step gives; None where the action is refused."""
    try:
        return step(action)
    except refusal:
        return None


def _typed(action: Any, space: Any) -> Any:
    """The action in the space's dtype."""
    return np.asarray(action).astype(space.dtype)


def _shown_alike(id: str) -> bool:
    """Does Gymnasium's env show what ours shows, to the last bit?"""
    return not (OLD_NUMPY and id in ROUNDED_BY_NUMPY)


def _names(cases: list[tuple[Any, ...]]) -> list[str]:
    return [f"{k}-{case[0]}" for k, case in enumerate(cases)]


@pytest.mark.parametrize(("id", "make", "taken"), VECTORS, ids=_names(VECTORS))
def test_a_vector_env_takes_what_gymnasiums_takes(
    id: str, make: Callable[[], Any], taken: bool
) -> None:
    theirs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(id)] * N)
    ours = corral.make_vec(id, N)
    assert_same(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    expected = _taken(theirs.step, make(), Exception)
    got = _taken(ours.step, make(), InvalidActionError)
    assert (got is not None, expected is not None) == (taken, taken)
    if taken and _shown_alike(id):
        theirs.reset(seed=3)
        assert_same(got[:4], theirs.step(_typed(make(), theirs.action_space))[:4])
    theirs.close()


@pytest.mark.parametrize(("id", "action", "taken"), SINGLES, ids=_names(SINGLES))
def test_a_single_env_takes_what_gymnasiums_takes(id: str, action: Any, taken: bool) -> None:
    theirs, ours = gymnasium.make(id, disable_env_checker=True), corral.make(id)
    assert_same(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    expected = _taken(theirs.step, action, Exception)
    got = _taken(ours.step, action, InvalidActionError)
    assert (got is not None, expected is not None) == (taken, taken)
    if taken and _shown_alike(id):
        theirs.reset(seed=3)
        observation, reward, *_ = theirs.step(_typed(action, theirs.action_space))
        np.testing.assert_array_equal(got[0], observation)
        assert got[1] == reward


class Nested(gymnasium.Env[Any, Any]):
    """Tells the actions of a nested space."""

    observation_space = spaces.Discrete(2)
    action_space = spaces.Dict(
        {
            "push": spaces.Box(-1, 1, (2,), np.float32),
            "pair": spaces.Tuple((spaces.Box(-1, 1, (), np.float32), spaces.Discrete(3))),
        }
    )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        told = {"push": action["push"], "one": action["pair"][0], "label": action["pair"][1]}
        return 0, 0.0, False, False, told


NESTED: list[dict[str, Any]] = [
    {"push": np.full((N, 2), 0.5), "pair": (np.array([0.25, 0.5, 1]), np.array([0, 1, 2]))},
    {"push": [[0.5, 0.25]] * N, "pair": ([0.25, 0.5, 1], [0, 1, 2])},
    {"push": [[1, 0]] * N, "pair": [(1, 0, 1), (2, 1, 0)]},
    {"push": np.ones((N, 2), np.int64), "pair": (np.ones(N, np.int8), np.ones(N, np.uint8))},
]


@pytest.mark.parametrize("runner", ["serial", "thread", "process"])
@pytest.mark.parametrize("actions", NESTED, ids=range(len(NESTED)))
def test_leaves_of_dicts_and_tuples_are_cast_alike(actions: Any, runner: str) -> None:
    theirs = gymnasium.vector.SyncVectorEnv([Nested] * N)
    theirs.reset(seed=0)
    theirs.step(actions)
    one, label = actions["pair"]
    expected = {"push": actions["push"], "one": one, "label": label}
    with closing(corral.from_gymnasium(Nested, N, runner=runner)) as ours:
        ours.reset(seed=0)
        told = ours.step(actions)[4]
    for name in ("push", "one", "label"):
        np.testing.assert_array_equal(np.stack(list(told[name])), np.asarray(expected[name]))
        kind = np.integer if name == "label" else np.float32
        assert all(np.issubdtype(np.asarray(each).dtype, kind) for each in told[name])


def _steps(envs: corral.VectorEnv, actions: Any) -> Any:
    return envs.step(actions)[:4]


def _sends(envs: corral.VectorEnv, actions: Any) -> Any:
    envs.send(actions)
    return envs.recv()[:4]


def _sends_in_turn(envs: corral.VectorEnv, actions: Any) -> Any:
    for k in reversed(range(N)):
        envs.send(actions[k : k + 1], [k])
    rows = envs.drain()
    assert rows is not None
    order = np.argsort(rows[4]["env_id"])
    return tuple(column[order] for column in rows[:4])


@pytest.mark.parametrize("how", [_steps, _sends, _sends_in_turn])
@pytest.mark.parametrize("made", [{}, {"num_threads": 2}, {"batch_size": N}])
def test_float64s_and_lists_are_rounded_on_every_way_in(
    how: Callable[[corral.VectorEnv, Any], Any], made: dict[str, Any]
) -> None:
    if how is _steps and "batch_size" in made:
        made = {}
    rounded = THIRDS.astype(np.float32)
    theirs = gymnasium.make_vec("Pendulum-v1", N, vectorization_mode="sync")
    if not _shown_alike("Pendulum-v1"):
        theirs = corral.make_vec("Pendulum-v1", N)
    theirs.reset(seed=3)
    expected = theirs.step(rounded)
    for actions in (THIRDS, THIRDS.tolist()):
        with closing(corral.make_vec("Pendulum-v1", N, **made)) as envs:
            envs.reset(seed=3)
            assert_same(how(envs, actions), expected[:4])


def test_an_evaluation_takes_a_policy_of_float64s_and_of_lists() -> None:
    def torque(observations: Any) -> Any:
        return np.asarray(observations)[:, 1:2].astype(np.float32) / np.float32(3)

    played = [
        corral.evaluate(policy, corral.make_vec("Pendulum-v1", 2), range(3)).returns
        for policy in (
            torque,
            lambda observations: torque(observations).astype(np.float64),
            lambda observations: torque(observations).tolist(),
        )
    ]
    np.testing.assert_array_equal(played[1], played[0])
    np.testing.assert_array_equal(played[2], played[0])


def test_an_adapter_takes_float64s() -> None:
    envs = [corral.to_dm_env(corral.make("Pendulum-v1", seed=1)) for _ in range(2)]
    for env in envs:
        env.reset()
    steps = [envs[k].step(np.array([0.1], [np.float32, np.float64][k])) for k in range(2)]
    np.testing.assert_array_equal(steps[0].observation, steps[1].observation)
    assert steps[0].reward == steps[1].reward
