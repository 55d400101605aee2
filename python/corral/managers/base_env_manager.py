"""DI-engine's `BaseEnvManager`, which steps envs in its own process, one after the other; and the
functions that choose a manager by its config.

A manager is a face of dictionaries, keyed by env, over one `corral.VectorEnv` in the autoreset mode
"disabled". The vec env has the workers, the buffers and the timeouts. The manager sends the resets.

Above 400 lines because half of it are the docstrings of one class.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from corral import errors, registry
from corral.managers import config as configs
from corral.managers.alone import alone
from corral.managers.arguments import by_env, env_number, functions, replay_paths, reset_params
from corral.managers.choosing import create_env_manager, get_env_manager_cls, registered
from corral.managers.config import Config
from corral.managers.declared import declared, env_info
from corral.managers.fleet import Fleet
from corral.managers.life import EnvState
from corral.managers.members import HostedMembers, Members
from corral.managers.own_members import NativeMembers
from corral.managers.seeds import Seeds
from corral.managers.timestep import BaseEnvInfo, BaseEnvTimestep, EnvElementInfo

__all__ = [
    "BaseEnvInfo",
    "BaseEnvManager",
    "BaseEnvTimestep",
    "EnvElementInfo",
    "EnvState",
    "create_env_manager",
    "get_env_manager_cls",
]


_CALLED = ("reset", "step", "seed", "close", "enable_save_replay")
_PASSED_ON = ("render", "reward_shaping", "enable_save_figure")


@registered("base")
class BaseEnvManager:
    """Several envs by number, stepped one after the other in this process.

    An env is any object with `reset` and `step`: a Gymnasium env as it is, or an env of DI-engine
    (`seed(seed, dynamic_seed)`, a `reset` that gives the observation alone, a `step` that gives a
    `BaseEnvTimestep` or a tuple of 4).

    Args:
        env_fn: one for each env: a function that makes it, or for all the id of an env of ours.
        cfg: what differs from `default_config()`: a dict, an EasyDict.

    Raises:
        ArgumentTypeError, ArgumentError: for another `env_fn`, and for values that a key does not
            take.
        UnknownOptionError: for a key that no manager has.
        Exception: what the making of the first env raises, which is made here too, for its spaces.
    """

    config: ClassVar[dict[str, Any]] = configs.BASE

    @classmethod
    def default_config(cls) -> Config:
        """A copy of the defaults, with attribute access."""
        return Config(copy.deepcopy(cls.config), cfg_type=f"{cls.__name__}Dict")

    def __init__(self, env_fn: Sequence[Callable[[], Any] | str], cfg: Any = None) -> None:
        given = {} if cfg is None else cfg
        self._cfg = configs.merged(self.default_config(), given, type(self).__name__)
        self._env_fn = functions(env_fn)
        self._fleet: Fleet | None = None
        self._seeds = Seeds(self.env_num)
        self._replay_paths: list[str | None] = [None] * self.env_num
        first = self._env_fn[0]
        self._env_ref = registry.make(first) if isinstance(first, str) else first()
        for method in ("reset", "step"):
            if not callable(getattr(self._env_ref, method, None)):
                raise errors.ArgumentTypeError(
                    f"env_fn[0] gave {self._env_ref!r}, which is no env: it has no method {method}"
                )
        self._call = threading.Lock()
        self._ref_close = getattr(self._env_ref, "close", None)
        self._declared = declared(self._env_ref)
        if self._declared.observation is None and self._declared.action is None:
            # Some envs know their spaces after a reset only.
            self._env_ref.reset()
            self._declared = declared(self._env_ref)

    @property
    def env_num(self) -> int:
        """The number of envs."""
        return len(self._env_fn)

    @property
    def env_ref(self) -> Any:
        """An env that the first function made, which is asked for spaces and attributes and never
        stepped. The first `close` closes it."""
        return self._env_ref

    @property
    def observation_space(self) -> Any:
        """One env's observation space as Gymnasium has it; None where the env declares none."""
        return self._declared.observation

    @property
    def action_space(self) -> Any:
        """One env's action space as Gymnasium has it; None where the env declares none."""
        return self._declared.action

    @property
    def reward_space(self) -> Any:
        """One env's reward space as Gymnasium has it; None where the env declares none."""
        return self._declared.reward

    @property
    def closed(self) -> bool:
        """Whether there are no envs: before `launch` and after `close`."""
        return self._fleet is None or self._fleet.is_closed

    @property
    def done(self) -> bool:
        """Whether every env has played `episode_num` episodes."""
        return all(state is EnvState.DONE for state in self._env_states.values())

    @property
    def active_env(self) -> list[int]:
        """The numbers of the envs whose episode is under way, those in flight included."""
        return [env_id for env_id, state in self._env_states.items() if state is EnvState.RUN]

    @property
    def method_name_list(self) -> list[str]:
        """The methods of envs that a manager calls. A subclass may add its own."""
        return [*_CALLED, *_PASSED_ON]

    @property
    def _env_states(self) -> dict[int, EnvState]:
        if self._fleet is None or self._fleet.is_closed:
            return dict.fromkeys(range(self.env_num), EnvState.VOID)
        return {env_id: life.state for env_id, life in enumerate(self._fleet.lives)}

    @property
    @alone
    def ready_obs(self) -> dict[int, Any]:
        """The observations of the envs that take an action now, by env: arrays, or dicts of arrays.

        Envs that are being reset are waited for. Where no env can become ready (all are DONE,
        ERROR or NEED_RESET), the dict is empty, at once.

        Raises:
            LaunchError, ClosedError: where there are no envs.
            RetriesUsedUpError: if an env could not be reset; the manager is closed then.
        """
        return self._ready(self._launched())

    @property
    @alone
    def ready_obs_id(self) -> list[int]:
        """The numbers of the envs in `ready_obs`."""
        return list(self._ready(self._launched()))

    def _ready(self, fleet: Fleet) -> dict[int, Any]:
        """The observations of the envs that take an action now, when there are any."""
        while fleet.in_step:
            # A step was interrupted: nobody is given its timesteps.
            fleet.collect(len(fleet.in_step))
        fleet.landed.clear()
        fleet.finish_resets()
        return fleet.ready()

    def env_state_done(self, env_id: int) -> bool:
        """Whether an env has played `episode_num` episodes.

        Raises:
            ArgumentError, ArgumentTypeError: for what is no env's number.
        """
        return self._env_states[env_number(env_id, self.env_num)] is EnvState.DONE

    def random_action(self) -> dict[int, Any]:
        """An action for each env of `ready_obs`: the env's own `random_action()`, or a sample of
        its action space, which `seed` seeds.

        Raises:
            UnsupportedError: for envs that declare no action space.
        """
        own, space = getattr(self._env_ref, "random_action", None), self._declared.action
        if not callable(own) and space is None:
            raise errors.UnsupportedError(
                "there is no random action: the envs have neither a random_action nor an "
                "action_space"
            )
        draw = own if callable(own) else space.sample
        return {env_id: draw() for env_id in self.ready_obs_id}

    def env_info(self) -> Any:
        """What one env is like: what its own `info()` tells, else a `BaseEnvInfo` of its spaces.
        Where an env declares no rewards, they are float64 of shape ()."""
        return env_info(self._env_ref)

    @alone
    def launch(self, reset_param: Any = None) -> None:
        """Makes the envs and resets them all.

        Args:
            reset_param: as for `reset`. Envs that a dict does not name are reset without arguments.

        Raises:
            LaunchError: if the manager is launched already.
            SpaceError: if an env's spaces are not env 0's.
            RetriesUsedUpError: if an env could not be made or reset; its cause is what was raised.
        """
        if not self.closed:
            raise errors.LaunchError("the manager is launched already: close it first")
        params = reset_params(reset_param, self.env_num)
        first, told = self._env_fn[0], (self._cfg, self._replay_paths)
        made: Members
        if isinstance(first, str) and self._cfg.get("num_workers") is None:
            made = NativeMembers(first, self.env_num, *told, self._native_runner())
        else:
            envs = self._env_fn, self._env_ref, self._declared
            made = HostedMembers(*envs, *told, self._hosted_runner())
        self._fleet = Fleet(made, self.env_num, self._cfg, self._seeds)
        try:
            self._fleet.begin(params, range(self.env_num))
            self._fleet.finish_resets()
        except BaseException:
            self.close()
            raise

    def _native_runner(self) -> dict[str, Any]:
        """Options of `make_vec`."""
        return {"num_threads": 1}

    def _hosted_runner(self) -> dict[str, Any]:
        """Options of `from_gymnasium`."""
        return {"runner": "serial"}

    @alone
    def reset(self, reset_param: Any = None) -> None:
        """Resets envs now, whatever they are at. An env that failed is made again where that is
        needed, its worker too.

        Args:
            reset_param: None for all envs with the arguments that they had last; a dict of the
                envs to reset, each with the keyword arguments of its `reset`, or None for none; or
                a list of these, one for each env. The arguments hold for later auto-resets, too.

        Raises:
            LaunchError, ClosedError: where there are no envs.
            ArgumentError, ArgumentTypeError: for another `reset_param`; nothing has moved.
            RetriesUsedUpError: if an env could not be reset; the manager is closed then.
        """
        fleet = self._launched()
        params = reset_params(reset_param, self.env_num)
        env_ids = list(range(self.env_num) if reset_param is None else params)
        fleet.begin(params, env_ids)
        fleet.settle(env_ids)

    @alone
    def step(self, actions: Mapping[int, Any]) -> dict[int, BaseEnvTimestep]:
        """Plays one action in each of these envs. An env whose episode ends is reset.

        Args:
            actions: by env. An action is in the env's action space; a label may have shape (1,).
                An env of DI-engine gets its action as it is.

        Returns:
            A timestep for each of these envs, and for no other. The last one of an episode has its
            final observation.

        Raises:
            LaunchError, ClosedError: where there are no envs.
            ArgumentError, ArgumentTypeError, InvalidActionError: name what is wrong; nothing has
                moved.
            ResetNeededError: for an env that takes no action now; nothing has moved.
            Exception: what an env raised, with the worker's traceback; its cause is the `EnvError`.
            EnvError: for an env that died; `EnvTimeoutError` where all that failed were silent for
                longer than `step_timeout`. It names the envs, which are in ERROR until `reset`, and
                its `batch` is the others' timesteps.
            RetriesUsedUpError: if an env could not be reset; the manager is closed then.
        """
        fleet = self._launched()
        sent = self._checked(fleet, actions)
        fleet.step(sent)
        if self._cfg.get("reset_inplace", True):
            fleet.finish_resets()
        landed, fleet.landed = fleet.landed, {}
        if len(landed) > len(sent):
            landed = {env_id: landed[env_id] for env_id in sent}
        return landed

    def _checked(self, fleet: Fleet, actions: Mapping[int, Any]) -> dict[int, Any]:
        """The actions, whose envs all take one now."""
        if type(actions) is dict and fleet.takes(actions):
            # To look at each number and each env takes three times as long.
            return dict(actions)
        sent = by_env("actions", actions, self.env_num)
        for env_id in sent:
            if env_id in fleet.in_step or env_id in fleet.landed:
                raise errors.PendingCallError(
                    f"env {env_id} is in flight: step gives its timestep before it takes another "
                    "action"
                )
            if env_id not in fleet.shown:
                raise errors.ResetNeededError(
                    f"env {env_id} takes no action, for its state is "
                    f"{fleet.lives[env_id].state.name}: step the "
                    "envs of ready_obs"
                )
        return sent

    def seed(self, seed: Any, dynamic_seed: bool | None = None) -> None:
        """Seeds each env's next reset, `launch` included; later resets go on.

        Args:
            seed: an int (env i gets `seed + i`), a list of one for each env, or a dict by env,
                which leaves the others as they are. Never negative.
            dynamic_seed: an env of DI-engine gets it beside its seed. For other envs False
                repeats the seed at every reset, and True is as None: the env's stream goes on.

        Raises:
            ArgumentError, ArgumentTypeError: nothing has changed.
        """
        given = self._seeds.give(seed, dynamic_seed)
        if 0 in given and hasattr(self._declared.action, "seed"):
            self._declared.action.seed(given[0])

    def enable_save_replay(self, replay_path: Any) -> None:
        """Has each env's episodes filmed from the next `launch` on.

        Args:
            replay_path: one folder for all, in which env i has the folder `env_<i>`; or a list of
                one for each env. An env that has an `enable_save_replay` of its own is given its
                path, and writes what it does. Of any other env, which must draw pictures
                (`render_mode="rgb_array"`), each episode becomes `env_<i>_episode_<k>.mp4`.

        Raises:
            LaunchError: after `launch`.
            ArgumentError, ArgumentTypeError: for another `replay_path`.
        """
        if not self.closed:
            raise errors.LaunchError(
                "the manager is launched already: enable_save_replay comes before launch"
            )
        self._replay_paths = replay_paths(replay_path, self.env_num)

    def enable_save_figure(self, env_id: int, figure_path: str) -> None:
        """Calls this method of one env."""
        self._invoke(env_id, "enable_save_figure", figure_path)

    def reward_shaping(self, env_id: int, transitions: Any) -> Any:
        """What this method of one env makes of transitions."""
        return self._invoke(env_id, "reward_shaping", transitions)

    def _invoke(self, env_id: int, name: str, *args: Any, **kwargs: Any) -> Any:
        members = self._settled([env_number(env_id, self.env_num)])
        return members.invoke(int(env_id), name, *args, **kwargs)

    @alone
    def _settled(self, env_ids: Sequence[int]) -> Members:
        """The vec env, once none of these envs is in flight."""
        fleet = self._launched()
        fleet.settle(env_ids)
        return fleet.members

    def close(self) -> None:
        """Closes the envs, those in flight too; again does nothing."""
        ref_close, self._ref_close = self._ref_close, None
        try:
            if self._fleet is not None:
                self._fleet.close()
        finally:
            if ref_close is not None:
                ref_close()

    def __getattr__(self, name: str) -> Any:
        """An attribute of each env, as a list; envs in flight are waited for. Of a method in
        `method_name_list` the list has one function for each env, which calls it there.

        Raises:
            AttributeError: for what the envs do not have.
            RuntimeError: for a method that `method_name_list` does not have.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        members = self._settled(range(self.env_num))
        is_method = callable(getattr(self._env_ref, name, None))
        if name in self.method_name_list and is_method:
            return [functools.partial(self._invoke, k, name) for k in range(self.env_num)]
        if isinstance(members, NativeMembers) and not is_method:
            try:
                return members.attribute(name)
            except AttributeError:
                # What the vec env has no property for may be one of Gymnasium's own.
                pass
        if not hasattr(self._env_ref, name):
            raise errors.UnknownNameError(
                f"the envs ({type(self._env_ref).__name__}) have no attribute '{name}', nor has "
                f"{type(self).__name__}"
            )
        if is_method:
            raise errors.UnsupportedError(
                f"'{name}' is a method of the envs: a manager calls those of method_name_list, "
                f"{', '.join(self.method_name_list)}; a subclass may add its own"
            )
        if isinstance(members, NativeMembers):
            return [getattr(self._env_ref, name)] * self.env_num
        return members.attribute(name)

    def _launched(self) -> Fleet:
        if self._fleet is None:
            raise errors.LaunchError("the manager is not launched: call launch() first")
        if self._fleet.is_closed:
            raise errors.ClosedError("the manager is closed: launch it again")
        if self._fleet.may_be_torn:
            self._fleet.mend()
        return self._fleet
