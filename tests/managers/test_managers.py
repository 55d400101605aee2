"""What all managers do, beside plain loops over the same envs."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import corral.managers
from corral import errors
from corral.managers import (
    AsyncSubprocessEnvManager,
    BaseEnvInfo,
    BaseEnvManager,
    BaseEnvTimestep,
    EnvElementInfo,
    EnvState,
    SyncSubprocessEnvManager,
    base_env_manager,
    subprocess_env_manager,
)
from tests.managers.by_hand import CARTPOLE, played_by_hand
from tests.managers.envs import Abnormal, Counter, Engine, OldEngine, Pid
from tests.managers.managers import KINDS, each, every_manager, in_workers, launched, managed
from tests.support import assert_same


@every_manager
def test_gymnasiums_cartpole_plays_what_a_plain_loop_plays(kind: str) -> None:
    actions = np.random.default_rng(0).integers(0, 2, (60, 4))
    with managed(kind, [CARTPOLE] * 4) as manager:
        manager.seed(7)
        manager.launch()
        shown: dict[int, list[Any]] = {k: [obs] for k, obs in manager.ready_obs.items()}
        for row in actions:
            ready = manager.ready_obs
            assert sorted(ready) == [0, 1, 2, 3]
            for k, obs in ready.items():
                last = shown[k][-1]
                is_over = isinstance(last, tuple) and last[2]
                if is_over:
                    shown[k].append(obs)
                assert_same(obs, last[0] if isinstance(last, tuple) and not is_over else obs)
            for k, timestep in manager.step(dict(enumerate(row))).items():
                assert isinstance(timestep, BaseEnvTimestep)
                shown[k].append((timestep.obs, timestep.reward, timestep.done))
        for k in range(4):
            expected = played_by_hand(7 + k, actions[:, k].tolist())
            assert_same(shown[k], expected[: len(shown[k])], f"env {k}")
            assert sum(isinstance(one, tuple) and one[2] for one in expected) > 1


@every_manager
def test_a_timestep_has_what_the_env_gave(kind: str) -> None:
    with launched(kind, each(Counter, 2)) as manager:
        assert_same(manager.ready_obs[1], np.array([1.0, -1.0, 0.0, 0.0]))
        timestep = manager.step({1: 2})[1]
        assert_same(timestep.obs, np.array([1.0, -1.0, 0.0, 1.0]))
        assert (timestep.reward, timestep.done) == (1.0, False)
        assert timestep.info == {"at": 1, "action": 2}
        assert type(timestep.reward) is float


@every_manager
def test_a_step_gives_the_ids_that_it_was_given(kind: str) -> None:
    with launched(kind, each(Counter, 3)) as manager:
        assert list(manager.step({2: 0})) == [2]
        assert sorted(manager.step({2: 0, 0: 1})) == [0, 2]
        assert manager.step({}) == {}
        steps = {k: int(obs[3]) for k, obs in manager.ready_obs.items()}
        assert steps == {0: 1, 1: 0, 2: 2}


@every_manager
def test_the_last_timestep_has_the_final_observation_and_ready_obs_the_next_first_one(
    kind: str,
) -> None:
    with launched(kind, each(Counter, 2, 2)) as manager:
        manager.step({0: 0, 1: 0})
        last = manager.step({0: 0, 1: 0})[0]
        assert last.done is True
        assert_same(last.obs, np.array([0.0, -1.0, 0.0, 2.0]))
        assert_same(manager.ready_obs[0], np.array([0.0, -1.0, 1.0, 0.0]))


@every_manager
@pytest.mark.parametrize("terminates", [True, False])
def test_a_truncated_episode_says_so(kind: str, terminates: bool) -> None:
    with launched(kind, each(Counter, 1, 1, terminates)) as manager:
        info = manager.step({0: 0})[0].info
        assert info.get("TimeLimit.truncated", False) is not terminates


@every_manager
def test_envs_of_di_engine_are_taken_as_they_are(kind: str) -> None:
    with managed(kind, each(Engine, 2)) as manager:
        manager.seed(5, dynamic_seed=False)
        manager.launch([{"level": 1}, None])
        assert_same(manager.ready_obs[1]["at"], np.array([1, 0], np.int32))
        assert manager.ready_obs[1]["told"] == ((6, False),)
        timestep = manager.step({0: np.array([1]), 1: "left"})
        assert_same(timestep[0].reward, np.array([0.5], np.float32))
        assert_same(timestep[0].info["action"], np.array([1]))
        assert timestep[1].info["action"] == "left"
        assert timestep[0].info["params"] == [{"level": 1}]
        assert timestep[1].info["params"] == [{}]
        assert manager.observation_space is None
        assert_same(manager.random_action(), {0: np.array([7]), 1: np.array([7])})


@every_manager
def test_what_reset_is_told_holds_for_later_episodes(kind: str) -> None:
    with managed(kind, each(Engine, 2, 1)) as manager:
        manager.launch({0: {"a": 1}, 1: {"b": 2}})
        for _ in range(2):
            manager.step({0: 0, 1: 0})
            assert set(manager.ready_obs) == {0, 1}
        manager.reset({1: {"c": 3}})
        told = {k: one.info["params"] for k, one in manager.step({0: 0, 1: 0}).items()}
        assert told == {0: [{"a": 1}] * 3, 1: [{"b": 2}] * 3 + [{"c": 3}]}
        manager.reset({0: None})
        assert manager.step({0: 0})[0].info["params"][-1] == {}
        manager.reset([{"d": 4}, {"e": 5}])
        told = {k: one.info["params"][-1] for k, one in manager.step({0: 0, 1: 0}).items()}
        assert told == {0: {"d": 4}, 1: {"e": 5}}


@every_manager
def test_a_reset_of_some_leaves_the_others_where_they_are(kind: str) -> None:
    with launched(kind, each(Counter, 3)) as manager:
        manager.step({0: 0, 1: 0, 2: 0})
        manager.reset({1: None})
        shown = {k: obs[2:].tolist() for k, obs in manager.ready_obs.items()}
        assert shown == {0: [0, 1], 1: [1, 0], 2: [0, 1]}
        manager.reset()
        assert {k: obs[2] for k, obs in manager.ready_obs.items()} == {0: 1, 1: 2, 2: 1}


@every_manager
def test_gymnasiums_reset_gets_its_arguments(kind: str) -> None:
    with managed(kind, each(Counter, 2)) as manager:
        manager.launch({0: {"options": {"x": 1}}, 1: {"seed": 9}})
        assert manager.options == [{"x": 1}, None]
        assert manager.ready_obs[1][1] == 9


@every_manager
def test_the_number_of_episodes_ends_an_env(kind: str) -> None:
    with launched(kind, each(Counter, 2, 2), episode_num=2) as manager:
        for step in range(4):
            assert not manager.done
            assert [manager.env_state_done(k) for k in (0, 1)] == [False, False]
            assert sorted(manager.ready_obs) == [0, 1], step
            manager.step({0: 0, 1: 0})
        assert manager.done
        assert manager.env_state_done(1)
        assert manager.active_env == []
        # DI-engine waits here for ever.
        assert manager.ready_obs == {}
        assert manager.random_action() == {}
        with pytest.raises(errors.ResetNeededError, match=r"env 0 .* DONE"):
            manager.step({0: 0})
        manager.reset({0: None})
        assert sorted(manager.ready_obs) == [0]


@every_manager
def test_without_auto_reset_an_env_waits_for_reset(kind: str) -> None:
    own = {"reset_inplace": False} if kind == "async" else {}
    with launched(kind, each(Counter, 2, 1), auto_reset=False, **own) as manager:
        manager.step({0: 0})
        assert manager.active_env == [1]
        assert sorted(manager.ready_obs) == [1]
        manager.step({1: 0})
        # Nothing can become ready.
        assert manager.ready_obs == {}
        with pytest.raises(errors.ResetNeededError, match="NEED_RESET"):
            manager.step({0: 0})
        manager.reset({0: None})
        assert sorted(manager.ready_obs) == [0]


@every_manager
def test_an_abnormal_timestep_puts_its_env_aside_until_reset(kind: str) -> None:
    with launched(kind, each(Abnormal, 2, 9)) as manager:
        manager.step({0: 0, 1: 0})
        timesteps = manager.step({0: 0})
        assert timesteps[0] == BaseEnvTimestep(None, None, False, {"abnormal": True})
        assert manager.active_env == [1]
        assert sorted(manager.ready_obs) == [1]
        with pytest.raises(errors.ResetNeededError, match=r"env 0 .* ERROR"):
            manager.step({0: 0})
        manager.reset({0: None})
        assert_same(manager.ready_obs[0]["at"], np.array([0, 0], np.int32))


@pytest.mark.parametrize("kind", ["sync", "packed", "async"])
@pytest.mark.parametrize("space", ["declared", "told"])
def test_an_abnormal_timestep_of_an_env_with_spaces_is_taken_too(kind: str, space: str) -> None:
    class Declaring(Abnormal):
        if space == "declared":
            observation_space = spaces.Box(-9, 9, (2,), np.float32)
        else:
            info = OldEngine.info

        def _shown(self) -> Any:
            return np.array([self.number, self.at], np.float32)

    with launched(kind, each(Declaring, 2, 9)) as manager:
        manager.step({0: 0})
        assert manager.step({0: 0})[0].obs is None
        manager.reset({0: None})
        assert_same(manager.ready_obs[0], np.zeros(2, np.float32))


@every_manager
def test_attributes_are_lists_of_one_per_env(kind: str) -> None:
    with launched(kind, each(Counter, 3)) as manager:
        assert manager.number == [0, 1, 2]
        assert manager.colour == ["red"] * 3
        assert not hasattr(manager, "nothing_of_the_kind")
        with pytest.raises(AttributeError, match="nothing_of_the_kind"):
            _ = manager.nothing_of_the_kind
        with pytest.raises(RuntimeError, match=r"a_method.*method_name_list"):
            _ = manager.a_method
        assert [draw()[0, 0, 0] for draw in manager.render] == [0, 40, 80]
        assert manager.reward_shaping(2, ["t"]) == [(2, "t")]


@every_manager
def test_a_subclass_may_list_more_methods(kind: str) -> None:
    manager_class, cfg = KINDS[kind]

    class Wider(manager_class):  # type: ignore[misc,valid-type]
        @property
        def method_name_list(self) -> list[str]:
            return [*super().method_name_list, "a_method"]

    with contextlib.closing(Wider(each(Counter, 2), cfg)) as manager:
        manager.launch()
        assert [call() for call in manager.a_method] == [None, None]


def test_the_methods_are_di_engines() -> None:
    assert BaseEnvManager([Counter]).method_name_list == [
        "reset",
        "step",
        "seed",
        "close",
        "enable_save_replay",
        "render",
        "reward_shaping",
        "enable_save_figure",
    ]


@every_manager
def test_spaces_and_numbers_are_there_before_launch(kind: str) -> None:
    with managed(kind, each(Counter, 3)) as manager:
        assert manager.env_num == 3
        assert manager.observation_space == Counter.observation_space
        assert manager.action_space == spaces.Discrete(3)
        assert manager.reward_space is None
        assert manager.closed
        assert manager.active_env == []
        assert not manager.done
        assert isinstance(manager.env_ref, Counter)


def test_spaces_that_an_env_knows_after_a_reset_only_are_found() -> None:
    class Late(Engine):
        def reset(self, **params: Any) -> Any:
            self.observation_space = spaces.Box(0, 9, (2,), np.int32)
            self.action_space = spaces.Discrete(4)
            return super().reset(**params)["at"]

    with launched("sync", each(Late, 2)) as manager:
        assert manager.action_space == spaces.Discrete(4)
        assert_same(manager.ready_obs[1], np.array([1, 0], np.int32))


@every_manager
def test_env_info_is_what_the_env_tells_of_itself(kind: str) -> None:
    with managed(kind, each(OldEngine, 2)) as manager:
        assert manager.env_info() == OldEngine().info()
        assert manager.observation_space == spaces.Box(-np.inf, np.inf, (2,), np.float32)
        manager.launch()
        assert_same(manager.ready_obs[1], np.array([1, 0], np.float32))


def test_env_info_of_a_gymnasium_env_is_made_of_its_spaces() -> None:
    info = BaseEnvManager([CARTPOLE]).env_info()
    assert isinstance(info, BaseEnvInfo)
    assert all(isinstance(part, EnvElementInfo) for part in info[1:4])
    assert info.agent_num == 1
    assert info.obs_space.shape == (4,)
    assert info.obs_space.value["dtype"] == np.float32
    assert_same(info.obs_space.value["max"], CARTPOLE().observation_space.high)
    assert info.act_space == EnvElementInfo((1,), {"min": 0, "max": 2, "dtype": np.int64})
    assert info.rew_space.shape == ()
    assert info.use_wrappers is None


def test_env_info_of_a_dict_space_is_nested() -> None:
    class Nested(Counter):
        observation_space = spaces.Dict(
            {"a": spaces.Box(0, 1, (2,), np.float32), "b": spaces.MultiDiscrete([3, 4])}
        )

    info = BaseEnvManager([Nested]).env_info().obs_space
    assert info.shape == {"a": (2,), "b": (2,)}
    assert_same(info.value["b"]["max"], np.array([3, 4]))


@every_manager
def test_random_actions_are_of_the_action_space_and_seeded(kind: str) -> None:
    drawn = []
    for _ in range(2):
        with managed(kind, each(Counter, 2)) as manager:
            manager.seed(3)
            manager.launch()
            drawn.append([manager.random_action() for _ in range(20)])
    assert drawn[0] == drawn[1]
    assert all(sorted(one) == [0, 1] for one in drawn[0])
    assert {action for one in drawn[0] for action in one.values()} == {0, 1, 2}


@every_manager
def test_labels_of_shape_1_are_labels(kind: str) -> None:
    with launched(kind, each(Counter, 2)) as manager:
        timesteps = manager.step({0: np.array([2]), 1: np.array([0])})
        assert [timesteps[k].info["action"] for k in (0, 1)] == [2, 0]


@every_manager
def test_nested_spaces_go_both_ways(kind: str) -> None:
    class Nested(Counter):
        observation_space = spaces.Dict(
            {"a": spaces.Box(-9, 9, (2,), np.float32), "n": spaces.Discrete(100)}
        )
        action_space = spaces.Dict(
            {"push": spaces.Box(-1, 1, (2,), np.float32), "gear": spaces.Discrete(3)}
        )

        def _shown(self) -> Any:
            return {"a": np.full(2, self.number, np.float32), "n": self.at}

    with launched(kind, each(Nested, 2)) as manager:
        action = {"push": np.array([0.5, -0.5], np.float32), "gear": 2}
        timesteps = manager.step({0: action, 1: action})
        assert_same(timesteps[1].obs["a"], np.ones(2, np.float32))
        assert int(manager.ready_obs[1]["n"]) == 1
        assert isinstance(manager.ready_obs[1]["n"], np.ndarray)
        assert_same(timesteps[1].info["action"]["push"], action["push"])


@in_workers
@pytest.mark.parametrize("shared", [True, False])
def test_observations_are_kept_as_they_were(kind: str, shared: bool) -> None:
    with launched(kind, each(Counter, 2, 9), shared_memory=shared) as manager:
        first = manager.ready_obs[1]
        second = manager.step({0: 0, 1: 0})[1].obs
        manager.step({0: 0, 1: 0})
        assert_same(first, np.array([1.0, -1.0, 0.0, 0.0]))
        assert_same(second, np.array([1.0, -1.0, 0.0, 1.0]))
        second[:] = 0
        assert manager.ready_obs[1][3] == 2


@in_workers
@pytest.mark.parametrize("copies", [True, False])
def test_a_copy_holds_no_other_envs_observation(kind: str, copies: bool) -> None:
    with launched(kind, each(Counter, 2, 9), copy_on_get=copies) as manager:
        obs = manager.step({0: 0, 1: 0})[1].obs
        assert (obs.base is None) is copies
        manager.step({0: 0, 1: 0})
        assert obs[3] == 1


@in_workers
def test_without_shared_memory_observations_need_not_keep_to_their_space(kind: str) -> None:
    class Growing(Counter):
        def _shown(self) -> Any:
            return np.arange(self.at, dtype=np.int16)

    with launched(kind, each(Growing, 2, 9), shared_memory=False) as manager:
        manager.step({0: 0})
        assert_same(manager.step({0: 0})[0].obs, np.array([0, 1], np.int16))


@pytest.mark.parametrize(("kind", "workers"), [("sync", 4), ("packed", 2), ("async", 4)])
def test_there_is_one_worker_per_env_unless_they_are_packed(kind: str, workers: int) -> None:
    with launched(kind, each(Pid, 4)) as manager:
        pids = {int(obs[1]) for obs in manager.ready_obs.values()}
        assert len(pids) == workers
        assert os.getpid() not in pids


def test_the_base_manager_has_its_envs_in_its_own_process() -> None:
    with launched("base", each(Pid, 2)) as manager:
        assert {int(obs[1]) for obs in manager.ready_obs.values()} == {os.getpid()}


@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_workers_start_in_each_way(context: str) -> None:
    with launched("sync", each(Counter, 2), context=context, num_workers=1) as manager:
        assert manager.step({0: 0, 1: 0})[1].reward == 1.0


@every_manager
def test_a_manager_that_was_closed_can_be_launched_again(kind: str) -> None:
    with launched(kind, each(Counter, 2)) as manager:
        manager.step({0: 0})
        manager.close()
        manager.close()
        assert manager.closed
        manager.launch()
        assert sorted(manager.ready_obs) == [0, 1]


@every_manager
def test_a_reset_in_place_is_over_when_step_returns(kind: str) -> None:
    own = {} if kind == "base" else {"reset_inplace": True}
    with launched(kind, each(Counter, 2, 1), **own) as manager:
        last = manager.step({0: 0, 1: 0})[0]
        assert manager._env_states == {0: EnvState.RUN, 1: EnvState.RUN}
        assert last.obs[3] == 1
        assert manager.ready_obs[0][3] == 0


def test_the_modules_are_di_engines() -> None:
    assert set(base_env_manager.__all__) | set(subprocess_env_manager.__all__) == set(
        corral.managers.__all__
    )
    assert base_env_manager.BaseEnvManager is BaseEnvManager
    assert subprocess_env_manager.SyncSubprocessEnvManager is SyncSubprocessEnvManager
    assert subprocess_env_manager.AsyncSubprocessEnvManager is AsyncSubprocessEnvManager
    assert [(state.name, state.value) for state in EnvState] == [
        ("VOID", 0),
        ("INIT", 1),
        ("RUN", 2),
        ("RESET", 3),
        ("DONE", 4),
        ("ERROR", 5),
        ("NEED_RESET", 6),
    ]
    assert BaseEnvTimestep._fields == ("obs", "reward", "done", "info")


@in_workers
def test_large_observations_need_no_shared_memory(kind: str) -> None:
    class Large(Counter):
        observation_space = spaces.Box(0, 255, (1200, 900), np.uint8)

        def _shown(self) -> Any:
            return np.full((1200, 900), self.at, np.uint8)

    with launched(kind, each(Large, 2, 9), shared_memory=False) as manager:
        assert_same(manager.step({1: 0})[1].obs, np.full((1200, 900), 1, np.uint8))


def _called() -> str:
    return "called"


@every_manager
def test_actions_and_infos_may_be_of_any_size_and_kind(kind: str) -> None:
    class Telling(Engine):
        def step(self, action: Any) -> Any:
            told = super().step(action)
            called = action() if callable(action) else None
            info = {"got": action, "called": called, "back": (lambda: 7) if called else None}
            return told._replace(info=info)

    large = np.random.default_rng(0).random((300, 300))
    with launched(kind, each(Telling, 3, 9)) as manager:
        for actions in (
            {0: large, 1: np.int32(5), 2: {"a": [1, "two"], "b": large[0]}},
            {0: large[:2], 1: large[:2] + 1, 2: large[:2] + 2},
            {k: np.full((2, 3), k, np.int16) for k in range(3)},
            {k: np.full((1, 2, 2), k > 1) for k in range(3)},
            {k: np.array(k + 0.5, np.float32) for k in range(3)},
            {0: np.array(3), 1: np.array([3.5], np.float32), 2: np.zeros((1, 2, 3, 4), np.int8)},
            {0: "text", 1: None, 2: np.array([True])},
        ):
            for k, timestep in manager.step(actions).items():
                assert_same(timestep.info["got"], actions[k])
        timesteps = manager.step({0: lambda: "local", 1: _called, 2: 0})
        assert [timesteps[k].info["called"] for k in range(3)] == ["local", "called", None]
        assert timesteps[0].info["back"]() == 7


@every_manager
@pytest.mark.parametrize(
    "form", ["f4 (1,)", "f8 (1,)", "f8 (3,)", "f4 ()", "i8 (1,)", "int", "float"]
)
def test_a_reward_is_what_the_env_gave(kind: str, form: str) -> None:
    class Paid(Counter):
        def step(self, action: Any) -> Any:
            observation, *_ = super().step(action)
            if form in ("int", "float"):
                return observation, {"int": int, "float": float}[form](3), False, False, {}
            dtype, shape = form.split(" ")
            reward = np.full(eval(shape), 3, dtype)
            return observation, reward, False, False, {"extra": 1} if self.at > 1 else {}

    local = Paid()
    local.reset()
    with launched(kind, each(Paid, 2, 9)) as manager:
        for _ in range(2):
            assert_same(manager.step({0: 0, 1: 0})[1].reward, local.step(0)[1])


@every_manager
def test_an_env_may_show_the_same_array_and_change_it(kind: str) -> None:
    class Reusing(Engine):
        array = np.zeros(2)

        def _shown(self) -> Any:
            self.array[:] = self.at
            return self.array

    for size in (2, 5000):
        Reusing.array = np.zeros(size)
        with launched(kind, each(Reusing, 1, 9)) as manager:
            kept = [manager.ready_obs[0]] + [manager.step({0: 0})[0].obs for _ in range(3)]
            assert [one[0] for one in kept] == [0, 1, 2, 3]


@every_manager
def test_old_gyms_reset_with_a_seed_and_without_an_info_is_taken(kind: str) -> None:
    class Old(Engine):
        observation_space = spaces.Box(-9, 9, (2,), np.float32)
        action_space = spaces.Discrete(2)

        def reset(self, seed: int | None = None) -> Any:  # type: ignore[override]
            self.at, self.number = 0, 0 if seed is None else seed
            return self._shown()

        def _shown(self) -> Any:
            return np.array([self.number, self.at], np.float32)

    with managed(kind, each(Old, 2)) as manager:
        manager.seed(3)
        manager.launch()
        assert_same(manager.ready_obs[1], np.array([4, 0], np.float32))
        assert manager.step({1: 1})[1].info["action"] == 1
