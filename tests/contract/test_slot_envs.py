"""What vec envs answer of each of their envs: as Gymnasium's SyncVectorEnv of single envs."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv, VectorEnv

import corral
from corral import errors

ATTRIBUTES = (
    *("spec", "observation_space", "action_space", "metadata", "render_mode"),
    "max_episode_steps",
)
ENVS: dict[str, dict[str, Any]] = {
    "CartPole-v1": {"render_mode": "rgb_array"},
    "Maze-v0": {"max_episode_steps": 9},
    "testing/Caller-v0": {},
}
each_env = pytest.mark.parametrize(("id", "options"), ENVS.items(), ids=ENVS)


def single_envs(id: str, options: dict[str, Any], n: int = 3) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: corral.make(id, **options)] * n)


@contextlib.contextmanager
def native_envs(source: str) -> Iterator[corral.VectorEnv]:
    """Three CartPoles by sources whose envs are no Python objects."""
    if source == "netenv":
        with (
            corral.serve("CartPole-v1", ("127.0.0.1", 0)) as server,
            contextlib.closing(corral.connect(server.address, 3)) as envs,
        ):
            yield envs
        return
    if source == "libenv":
        envs = corral.load_libenv(corral.libenv_path(), 3, {"env_id": "CartPole-v1"})
    else:
        envs = corral.make_vec("CartPole-v1", 3, **({"batch_size": 1} if source == "async" else {}))
    with envs:
        yield envs


def told(name: str, value: Any) -> Any:
    """Gymnasium 1.2's SyncVectorEnv writes its own autoreset mode into the metadata of its envs."""
    if name == "metadata":
        return {key: one for key, one in value.items() if key != "autoreset_mode"}
    return value


@each_env
@pytest.mark.parametrize("asked", ["call", "get_attr"])
def test_every_env_has_the_attributes_of_a_single_env(
    id: str, options: dict[str, Any], asked: str
) -> None:
    ours, theirs = corral.make_vec(id, 3, **options), single_envs(id, options)
    for name in ATTRIBUTES:
        mine, right = getattr(ours, asked)(name), getattr(theirs, asked)(name)
        assert [told(name, one) for one in mine] == [told(name, one) for one in right], name
    unwrapped = getattr(ours, asked)("unwrapped")
    assert [env.number for env in unwrapped] == [0, 1, 2]
    for env, single in zip(unwrapped, theirs.get_attr("unwrapped"), strict=True):
        assert isinstance(env, gymnasium.Env)
        assert env.unwrapped is env
        for name in ATTRIBUTES:
            right = told(name, single.get_wrapper_attr(name))
            assert told(name, env.get_wrapper_attr(name)) == right, name


@pytest.mark.parametrize("source", ["built-in", "async", "libenv", "netenv"])
def test_envs_of_every_source_answer(source: str) -> None:
    with native_envs(source) as envs:
        for name in ("observation_space", "action_space"):
            assert envs.call(name) == (getattr(envs, f"single_{name}"),) * 3
        assert envs.get_attr("max_episode_steps") == (envs.max_episode_steps,) * 3
        assert envs.get_attr("spec") == (envs.spec,) * 3
        assert all("autoreset_mode" not in metadata for metadata in envs.call("metadata"))
        assert len(set(map(id, envs.get_attr("unwrapped")))) == 3


@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_render_by_name_gives_what_each_env_looks_like(mode: str) -> None:
    options = {"render_mode": mode}
    ours = corral.make_vec("FrozenLake-v1", 3, **options)
    theirs = single_envs("FrozenLake-v1", options)
    ours.reset(seed=5)
    theirs.reset(seed=5)
    ours.step(np.array([0, 1, 2]))
    theirs.step(np.array([0, 1, 2]))
    expected = theirs.call("render")
    for found in (
        ours.call("render"),
        ours.get_attr("render"),
        tuple(env.render() for env in ours.get_attr("unwrapped")),
    ):
        assert len(found) == 3
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_render_by_name_without_a_render_mode_is_none_for_each() -> None:
    ours, theirs = corral.make_vec("CartPole-v1", 2), single_envs("CartPole-v1", {}, 2)
    for envs in (ours, theirs):
        envs.reset()
        with pytest.warns(UserWarning, match="without a render mode"):
            assert envs.call("render") == (None, None)


def test_an_env_has_its_properties_and_its_state_but_is_not_stepped() -> None:
    envs = corral.make_vec("testing/Caller-v0", 3)
    envs.send_reset(seed=0)
    envs.drain()
    envs.set_attr("gravity", [1.0, 2.0, 3.0])
    one = envs.get_attr("unwrapped")[1]
    assert one.gravity == 2.0
    one.gravity = 5.0
    assert envs.get_attr("gravity") == (1.0, 5.0, 3.0)
    with pytest.raises(AttributeError):
        one.fly = 1
    assert one.has_wrapper_attr("gravity")
    assert not hasattr(one, "fly")
    assert not hasattr(one, "np_random")
    assert envs.call("save_state") == tuple(envs.save_state(env) for env in range(3))
    for refused in (
        lambda: one.step(0),
        one.reset,
        one.close,
        lambda: envs.call("close"),
        lambda: pickle.dumps(one),
        lambda: envs.set_attr("spec", None),
    ):
        with pytest.raises(errors.UnsupportedError):
            refused()
    assert not hasattr(corral.make_vec("CartPole-v1", 1).get_attr("unwrapped")[0], "gravity")


def test_a_vec_env_is_a_direct_subclass_of_gymnasiums() -> None:
    # Trainers look for it among the bases of the class.
    assert VectorEnv in corral.VectorEnv.__bases__
