"""Configs: defaults, keys, values, and the functions that choose a manager."""

from __future__ import annotations

import copy
import math
import sys
from collections import UserDict
from pathlib import Path
from typing import Any

import pytest

from corral import errors
from corral.managers import (
    AsyncSubprocessEnvManager,
    BaseEnvManager,
    SyncSubprocessEnvManager,
    create_env_manager,
    get_env_manager_cls,
)
from tests.managers.envs import Counter

# As DI-engine 0.5.3 has them.
BASE = {
    "episode_num": math.inf,
    "max_retry": 1,
    "retry_type": "reset",
    "auto_reset": True,
    "step_timeout": None,
    "reset_timeout": None,
    "retry_waiting_time": 0.1,
}
SUBPROCESS = {
    **BASE,
    "shared_memory": True,
    "copy_on_get": True,
    "context": "fork",
    "connect_timeout": 60,
    "reset_inplace": False,
}
OURS = {"num_workers": None}
MANAGERS = [
    (BaseEnvManager, "base", BASE),
    (
        SyncSubprocessEnvManager,
        "subprocess",
        {**SUBPROCESS, **OURS, "wait_num": math.inf, "step_wait_timeout": None},
    ),
    (
        AsyncSubprocessEnvManager,
        "async_subprocess",
        {**SUBPROCESS, **OURS, "wait_num": 2, "step_wait_timeout": 0.01},
    ),
]
every = pytest.mark.parametrize(
    ("manager", "name", "defaults"), MANAGERS, ids=lambda one: str(one)[:20]
)


@every
def test_the_defaults_are_di_engines(manager: Any, name: str, defaults: dict[str, Any]) -> None:
    config = manager.default_config()
    assert config == {**defaults, "cfg_type": f"{manager.__name__}Dict"}
    assert config.retry_type == "reset"
    config.max_retry = 9
    assert config["max_retry"] == 9
    assert manager.default_config().max_retry == 1


@every
def test_a_type_chooses_a_manager(manager: Any, name: str, defaults: dict[str, Any]) -> None:
    assert get_env_manager_cls({"type": name}) is manager
    config = {"type": name, "import_names": ["json"], "max_retry": 3}
    before = copy.deepcopy(config)
    made = create_env_manager(config, [Counter, Counter])
    assert type(made) is manager
    assert made.env_num == 2
    assert config == before


def test_the_modules_of_import_names_are_imported(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "of_a_user.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    get_env_manager_cls({"type": "base", "import_names": ["of_a_user"]})
    assert sys.modules.pop("of_a_user").__file__ == str(tmp_path / "of_a_user.py")


@pytest.mark.parametrize(
    "choose", [get_env_manager_cls, lambda cfg: create_env_manager(cfg, [Counter])]
)
def test_a_missing_or_unknown_type_lists_the_known_ones(choose: Any) -> None:
    known = "'base', 'async_subprocess', 'subprocess'"
    with pytest.raises(errors.ArgumentError, match=f"has no 'type': it is one of {known}"):
        choose({})
    with pytest.raises(
        errors.ArgumentError, match=f"'subproces': it is one of {known}; did you mean 'subprocess'"
    ):
        choose({"type": "subproces"})
    with pytest.raises(errors.ArgumentTypeError, match="a dict with a 'type', not str"):
        choose("base")


@every
def test_an_unknown_key_is_named_with_the_nearest(
    manager: Any, name: str, defaults: dict[str, Any]
) -> None:
    with pytest.raises(errors.UnknownOptionError) as raised:
        manager([Counter], {"max_retries": 2})
    told = str(raised.value)
    assert "unknown key 'max_retries'" in told
    assert "did you mean 'max_retry'?" in told
    assert all(key in told for key in defaults)
    assert manager.__name__ in told


def test_a_config_serves_all_managers() -> None:
    # A program of DI-engine's changes the type alone.
    everything = {key: value for key, value in MANAGERS[2][2].items()}
    for _, name, _ in MANAGERS:
        create_env_manager({"type": name, **everything}, [Counter])


def test_a_config_of_another_mapping_is_taken() -> None:
    config = UserDict({"type": "base", "max_retry": 2, "cfg_type": "BaseEnvManagerDict"})
    assert create_env_manager(config, [Counter])._cfg.max_retry == 2


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("episode_num", 0, "episode_num is 0: it must be at least 1"),
        ("episode_num", "many", "episode_num is an int, not 'many'"),
        ("max_retry", -1, "max_retry is -1: it must be at least 0"),
        ("max_retry", 1.5, "max_retry is an int, not 1.5"),
        ("retry_type", "again", "retry_type is 'reset' or 'renew', not 'again'"),
        ("auto_reset", 1, "auto_reset is a bool, not 1"),
        ("step_timeout", 0, "step_timeout is 0 seconds: give more, or None for no limit"),
        ("step_timeout", "1", "step_timeout is a number of seconds, not '1'"),
        ("reset_timeout", -2, "reset_timeout is -2 seconds: it must be finite and at least 0"),
        ("reset_timeout", math.nan, "reset_timeout is nan seconds"),
        ("connect_timeout", True, "connect_timeout is a number of seconds, not True"),
        ("retry_waiting_time", math.inf, "retry_waiting_time is inf seconds"),
        ("shared_memory", "yes", "shared_memory is a bool, not 'yes'"),
        ("copy_on_get", None, "copy_on_get is a bool, not None"),
        ("context", "forks", "context is 'spawn', 'forkserver' or 'fork', not 'forks'"),
        ("wait_num", 0, "wait_num is 0: it must be at least 1"),
        ("step_wait_timeout", -0.5, "step_wait_timeout is -0.5 seconds"),
        ("num_workers", 0, "num_workers is 0: it must be at least 1"),
    ],
)
def test_a_value_that_a_key_does_not_take_is_named(key: str, value: Any, words: str) -> None:
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match=words):
        AsyncSubprocessEnvManager([Counter], {key: value})


def test_a_reset_in_place_needs_auto_reset() -> None:
    with pytest.raises(errors.ArgumentError, match="auto_reset is False"):
        SyncSubprocessEnvManager([Counter], {"reset_inplace": True, "auto_reset": False})


def test_a_config_is_a_dict_with_attributes() -> None:
    config = SyncSubprocessEnvManager.default_config()
    config.mine = {"inner": {"deep": 1}}
    assert config.mine.inner.deep == 1
    again = copy.deepcopy(config)
    again.mine.inner.deep = 2
    assert config.mine.inner.deep == 1
    del again.mine
    assert "mine" not in again
    with pytest.raises(AttributeError, match="no key 'max_retrys'; did you mean 'max_retry'"):
        _ = again.max_retrys
    with pytest.raises(AttributeError):
        del again.nothing
    with pytest.raises(
        errors.ArgumentTypeError, match="the config of BaseEnvManager is a dict, not list"
    ):
        BaseEnvManager([Counter], [])


@pytest.mark.parametrize(
    ("env_fn", "words"),
    [
        (Counter, "env_fn is a list of functions"),
        ([], "env_fn is empty"),
        ([Counter, Counter()], r"env_fn\[1\] is .*: it is a function"),
        (["CartPole-v1", "Maze-v0"], r"env_fn\[1\] is 'Maze-v0' and env_fn\[0\] is 'CartPole-v1'"),
        (["CartPole-v1", Counter], "ids are the same for all envs"),
    ],
)
def test_what_makes_no_envs_is_named(env_fn: Any, words: str) -> None:
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match=words):
        BaseEnvManager(env_fn)


def test_an_unknown_id_is_named() -> None:
    with pytest.raises(errors.UnknownEnvError, match="CartPol"):
        BaseEnvManager(["CartPol-v1"] * 2)
