"""`VectorEnv`: a batch of environments with Gymnasium's face.

Above 400 lines because a third of it are the docstrings of one class.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt
from gymnasium import logger
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from numpy.ma import MaskedArray

from corral import _native, errors, slot_env, spaces
from corral._closing import Closing
from corral._rolling import roll
from corral.normalization import Normalization
from corral.policy import Policy
from corral.properties import Properties, attributes_of
from corral.rendering import drawn, render_modes
from corral.rollouts import Rollout

_MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}


GYMNASIUM_029 = "gymnasium-0.29"
"""The `info_layout` that is not the usual one."""


class RowKind(IntEnum):
    """What a row of a `recv` is: `infos["row_kind"]`."""

    STEP = 0
    """A step's result; with same_step, of an episode that ended, the next one's first row too."""
    RESET = 1
    """A new episode's first observation; reward 0."""
    KEPT = 2
    """The current observation once more; reward 0."""
    FAILED = 3
    """The env failed: its observation is zeros."""
    RESTARTED = 4
    """The first observation of an env that was rebuilt after a failure."""


NO_COPY = (
    "envs are not copied or pickled, for a copy would share what they run in: make another, "
    "or carry their state by save_state and load_state"
)


def autoreset_name(mode: str | AutoresetMode) -> str:
    """The core's name of a mode: takes its own, Gymnasium's enum or that enum's values."""
    for name, known in _MODES.items():
        if isinstance(mode, str | AutoresetMode) and mode in (name, known, known.value):
            return name
    raise errors.ArgumentError(
        f"autoreset_mode is one of {', '.join(_MODES)} or a gymnasium AutoresetMode, not {mode!r}"
    )


def split_options(options: dict[str, Any] | None) -> tuple[Any, Any, dict[str, Any] | None]:
    """(index, reset_mask, the env's own options); the caller's dict is not changed."""
    if options is None:
        return None, None, None
    if not isinstance(options, dict):
        raise errors.ArgumentTypeError(f"options is a dict, not {type(options).__name__}")
    check_order("index", options.get("index"))
    check_unmasked("reset_mask", options.get("reset_mask"))
    own = {name: value for name, value in options.items() if name not in ("index", "reset_mask")}
    return options.get("index"), options.get("reset_mask"), own or None


def check_order(name: str, given: Any) -> None:
    """Errors for numbers of the envs that have no order, or no number for some."""
    # Asking an abstract class takes a microsecond, and `send` is called in a loop.
    if given is None or type(given) is np.ndarray:
        return
    if isinstance(given, Mapping | Set):
        raise errors.ArgumentTypeError(
            f"{name} is an int or a sequence of one per env, not {type(given).__name__}"
        )
    check_unmasked(name, given)


def check_unmasked(name: str, given: Any) -> None:
    """Errors for an array with masked elements: NumPy shows what lies under the mask as if it were
    there."""
    if isinstance(given, MaskedArray) and np.ma.is_masked(given):
        raise errors.ArgumentTypeError(
            f"{name} is a masked array with masked elements, which have no meaning here: give a "
            "plain array (its .filled(value))"
        )


def slot_number(env: int | None) -> int | None:
    """An env's number, checked to be one."""
    if env is None:
        return None
    try:
        number = operator.index(env)
    except TypeError:
        number = True
    if isinstance(env, bool) or number is True:
        raise errors.ArgumentTypeError(f"env is an int, not {type(env).__name__}")
    if not 0 <= number < 2**63:
        raise errors.ArgumentError(f"env {number} does not exist: they count from 0")
    return number


def check_layout(envs: VectorEnv) -> None:
    """Errors for envs whose infos are not laid out as what stands over them reads infos."""
    if envs.native.info_layout != "gymnasium":
        raise errors.UnsupportedError(
            f'{envs} was made with info_layout="{envs.native.info_layout}", which is for programs '
            "that read infos themselves: make the envs without it"
        )


def state_bytes(state: bytes) -> bytes:
    """A state's bytes, whatever holds them."""
    if not isinstance(state, bytes | bytearray | memoryview):
        raise errors.ArgumentTypeError(f"a state is bytes, not {type(state).__name__}")
    return bytes(state)


def _of_observation(native: _native.VecEnv) -> Normalization | None:
    statistics = native.observation_statistics
    if statistics is None:
        return None
    leaves = native.observation_leaves
    # Frames are stacked after they are normalised: the statistics are of one frame.
    shapes = [tuple(leaf.get("shape", ()))[1 if native.frame_stack else 0 :] for leaf in leaves]
    names = [leaf["name"] for leaf in leaves]
    if len(set(names)) < len(names):
        # The dots of some are letters of a key: "a.b" beside "b" within "a".
        names = [f"{name} (leaf {k})" for k, name in enumerate(names)]
    return Normalization(statistics, names, shapes)


def _of_reward(native: _native.VecEnv) -> Normalization | None:
    statistics = native.reward_statistics
    return None if statistics is None else Normalization(statistics, ("",), ((),))


class _Told(type):
    """The class of `VectorEnv`, which is printed with a word on Stable-Baselines3: its error for an
    env that it does not take prints the env's class, and reads nothing else of the env."""

    def __repr__(cls) -> str:
        return f"{super().__repr__()[:-1]}; Stable-Baselines3 takes corral.to_sb3(envs)>"


class VectorEnv(Closing, GymnasiumVectorEnv[Any, Any, Any], metaclass=_Told):
    """`num_envs` environments stepped as one; made by `corral.make_vec`.

    A real `gymnasium.vector.VectorEnv`, with the autoreset mode in `metadata["autoreset_mode"]`.
    `with corral.make_vec(…) as envs:` closes the envs at the end of the block.
    Every array that it returns is the caller's to keep and to change: nothing is ever overwritten.

    Attributes:
        num_envs: number of environments, the first axis of every array.
        single_observation_space, single_action_space: one environment's spaces.
        observation_space, action_space: the batched spaces.
        autoreset_mode: as in `metadata`.
        max_episode_steps: the time limit in force, or None.
        batch_size: rows of a `recv`; `num_envs` unless made with another.
        observation_normalization, reward_normalization: their running statistics, a
            `Normalization`; None unless made with `normalize_observation`, `normalize_reward`.
        native: the native vec env underneath.
        final_frames: the envs that were made to tell of their last pictures.
    """

    final_frames: tuple[int, ...] = ()
    # What the native half needs and must not hold itself; see `corral.python_envs`.
    held: Any = None
    # What resets do not take, "seed" or "options", and why, where the native half cannot know.
    refused: Mapping[str, str] = MappingProxyType({})

    def __init__(self, native: _native.VecEnv, *, render_mode: str | None = None) -> None:
        self.native = native
        self.num_envs = native.num_envs
        self.autoreset_mode = _MODES[native.autoreset_mode]
        self.max_episode_steps = native.max_episode_steps
        self.batch_size = native.batch_size
        self.render_mode = render_mode
        about = native.about
        if about is None:
            metadata = {**native.metadata, "render_modes": render_modes(native)}
            self.single_observation_space = spaces.from_leaves(
                native.observation_tree, native.observation_leaves
            )
            self.single_action_space = spaces.from_leaves(native.action_tree, native.action_leaves)
        else:
            metadata = about.metadata
            self.single_action_space = about.action_space
            changed = native.frame_stack is not None or native.observation_statistics is not None
            self.single_observation_space = (
                spaces.from_leaves(native.observation_tree, native.observation_leaves)
                if changed
                else about.observation_space
            )
            self.spec = about.spec
        self.metadata = {**metadata, "autoreset_mode": self.autoreset_mode}
        self.observation_space = spaces.batched(self.single_observation_space, self.num_envs)
        self.action_space = spaces.batched(self.single_action_space, self.num_envs)
        self.observation_normalization = _of_observation(native)
        self.reward_normalization = _of_reward(native)
        if type(self).step is VectorEnv.step:
            # A Python function around the native one takes a twentieth of the call of one env.
            self.step = native.step  # type: ignore[method-assign]

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: None continues each env's own random stream; an int gives env i `seed + i`; a
                sequence gives each its own (None: its stream goes on). Never negative.
            options: `"reset_mask"`, bool array `(num_envs,)`: only these are reset, the others
                keep their episode and last observation. `"index"`, an int (env i plays
                `index + i`) or one per env: play the episodes of these indices, each a function
                of config, index and actions alone, leaving the envs' own streams untouched.
                Anything else goes to the envs and holds until changed. Not modified.

        Returns:
            observations `(num_envs, …)` of all envs, and infos with masks.

        Raises:
            ArgumentError, ArgumentTypeError: for seeds, indices or masks that make no sense.
            UnsupportedError: for what this env cannot do.
            EnvError: if envs failed; the others were reset.
        """
        index, mask, own = split_options(options)
        check_order("seed", seed)
        self._refuse(seed, own)
        return self.native.reset(seed=seed, index=index, mask=mask, options=own)

    def step(
        self, actions: Any
    ) -> tuple[
        Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]
    ]:
        """Plays one action in each env.

        Args:
            actions: an array `(num_envs, …)` in the action space (or a dict or tuple of them), or
                lists of numbers. Checked whole before any env moves. Floats of another width are
                rounded to the space's dtype, and then checked; integers of any dtype are taken
                by their values. Floats are no labels.

        Returns:
            observations `(num_envs, …)`, rewards `float64 (num_envs,)`, terminations and
            truncations `bool (num_envs,)`, infos. In "same_step", where episodes ended,
            `infos["final_obs"]` is a `corral.FinalObservations`: Gymnasium's object array, which
            is made when it is read. Its `rows` and `stacked` are the same in plain arrays.

        Raises:
            InvalidActionError: names env, leaf, value and bounds; nothing has moved.
            ResetNeededError: before the first reset, after a failure, or (autoreset disabled)
                after an episode's end; nothing has moved.
            UnsupportedError: with a batch size below `num_envs`: use `send` and `recv`.
            EnvError: if envs failed; the others completed, see its `batch`. EnvTimeoutError
                where all that failed were silent for longer than the timeout.
            KeyboardInterrupt: the envs stay in flight: `recv` gives their rows, `reset` drops
                them.
        """
        return self.native.step(actions)

    def rollout(
        self,
        policy: Policy,
        steps: int,
        *,
        infos: Sequence[str] = (),
        extras: Sequence[str] = (),
        out: Rollout | None = None,
    ) -> Rollout:
        """Lets a policy play, from where the envs stand, and keeps what a learner needs in one
        array per leaf. Nothing is copied: envs write to their places in these arrays.

        With autoreset disabled, envs whose episode ended are reset at once.

        Args:
            policy: takes observations `(num_envs, …)` and returns actions, as `step` takes them; a
                function of NumPy arrays or a PyTorch module, of which no gradients are kept. One
                with a parameter `infos` is given the infos that are asked for.
            steps: how many steps of each env.
            infos: the names of infos to keep.
            extras: names of what the policy returns beside its actions, log probabilities and
                values for instance: it returns a tuple then, the actions first, and an array
                `(num_envs, …)` for each name.
            out: an earlier rollout of these envs with the same arguments, whose arrays are
                overwritten and which is returned anew. Without it, memory of rollouts that nobody
                holds is used again.

        Returns:
            A `Rollout`.

        Raises:
            ArgumentError, ArgumentTypeError: for arguments, or a policy's extras, that make no
                sense.
            ResetNeededError: before the first reset.
            UnsupportedError: with a batch size below `num_envs`, or `lazy_frames`.
            Exception: what the policy or `step` raises, KeyboardInterrupt among them. Its
                attribute `rollout` is a `Rollout` of the steps that were made.
        """
        return roll(self, policy, steps, infos=infos, extras=extras, out=out)

    def async_reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """As `send_reset`, of all envs: EnvPool's name for it."""
        self._begin("async_reset", None, seed, options)

    def send_reset(
        self,
        env_id: Sequence[int] | npt.NDArray[np.int64] | None = None,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Puts envs in flight to begin new episodes; `recv` gives them.

        Args:
            env_id: which envs; all without.
            seed: as for `reset`: an int gives env i `seed + i`; a sequence has one for each of
                `env_id`.
            options: as for `reset`, without a `"reset_mask"`. `"index"` is an int (env i plays
                `index + i`) or has one for each of `env_id`.

        Raises:
            PendingCallError: if any of them is in flight; nothing has moved.
            ArgumentError, ArgumentTypeError, UnsupportedError: as `reset`; nothing has moved.
        """
        self._begin("send_reset", env_id, seed, options)

    def _begin(self, name: str, env_id: Any, seed: Any, options: dict[str, Any] | None) -> None:
        index, mask, own = split_options(options)
        if mask is not None:
            raise errors.ArgumentError(
                f"{name} takes no reset_mask: send_reset takes an env_id, and reset a reset_mask"
            )
        check_order("seed", seed)
        check_order("env_id", env_id)
        self._refuse(seed, own)
        self.native.send_reset(env_id, seed=seed, index=index, options=own)

    def _refuse(self, seed: Any, own: dict[str, Any] | None) -> None:
        """Errors for seeds and options that the envs do not take."""
        is_none = seed is None or (
            isinstance(seed, list | tuple) and all(one is None for one in seed)
        )
        for name, is_given in (("seed", not is_none), ("options", own is not None)):
            if is_given and name in self.refused:
                raise errors.UnsupportedError(
                    f"{self.native.id} takes no {name} at a reset: {self.refused[name]}"
                )

    def send(
        self, actions: Any, env_id: Sequence[int] | npt.NDArray[np.int64] | None = None
    ) -> None:
        """Puts envs in flight with their actions, and returns.

        With a `batch_size` or a `timeout` they run in the background from here on; else `recv`
        does the work.

        Args:
            actions: as for `step`, one row for each of `env_id`.
            env_id: which envs, `infos["env_id"]` of an earlier `recv` for instance; all without.

        Raises:
            InvalidActionError, ResetNeededError, ArgumentError: nothing has moved.
            PendingCallError: if any of them is in flight; nothing has moved.
        """
        check_order("env_id", env_id)
        self.native.send(actions, env_id)

    def recv(
        self,
        timeout: float | None = None,
        *,
        min_rows: int | None = None,
        max_rows: int | None = None,
    ) -> tuple[
        Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]
    ]:
        """Waits for `batch_size` envs in flight, or for all if fewer are.

        Each env's rows depend on its own actions alone; which envs share a batch depends on who
        is done first.

        Args:
            timeout: seconds after which to give up this wait. Nothing is lost by it.
            min_rows: wait for at least so many envs; `batch_size` without, or `max_rows` if
                that is less.
            max_rows: give at most so many; `batch_size` without, or `min_rows` if that is more.

        Returns:
            As `step`, rows first, with `infos["env_id"]`, int64 `(rows,)`: which envs they are,
            in the order in which they were sent; and `infos["row_kind"]`, uint8 `(rows,)`: what
            each row is, a `corral.RowKind`. Rows of resets have reward 0.

        Raises:
            NothingPendingError: if nothing is in flight.
            RecvTimeoutError: if the wait took longer than its timeout.
            EnvError: if envs failed, see its `batch`.
        """
        return self.native.recv(timeout, min_rows, max_rows)

    def drain(
        self, timeout: float | None = None
    ) -> (
        tuple[
            Any,
            npt.NDArray[np.float64],
            npt.NDArray[np.bool_],
            npt.NDArray[np.bool_],
            dict[str, Any],
        ]
        | None
    ):
        """As `recv`, for all envs in flight; None if nothing is."""
        return self.native.drain(timeout)

    def save_state(self, env: int | None = None) -> bytes:
        """All that the rest of the run depends on, of all envs or of one.

        Random streams, episodes under way, time limits, statistics: an env that loads it goes on
        bit for bit, in this process or another, on any number of threads.

        Raises:
            PendingCallError: while any (or that one) is in flight: `drain` first.
            UnsupportedError: if this env cannot save its state.
        """
        return self.native.save(slot_number(env))

    def load_state(self, state: bytes, env: int | None = None) -> None:
        """Takes up what `save_state` gave; one env takes any env's state.

        `observe` then shows where they are. Under another autoreset mode an episode that is over
        awaits that mode's reset. Of an episode that began without `episode_statistics` the return
        is NaN.

        Raises:
            StateError: for a state of another env, config, number of envs or version of corral,
                and for bytes that are none; every env is as it was.
        """
        self.native.load(state_bytes(state), slot_number(env))

    def observe(self) -> Any:
        """The current observations `(num_envs, …)` of all envs; nothing changes.

        Raises:
            ResetNeededError: if an env has none to show.
        """
        return self.native.observe()[0]

    def render(
        self, envs: Sequence[int] | None = None
    ) -> tuple[npt.NDArray[np.uint8] | str, ...] | None:
        """Frames `uint8 (height, width, 3)` of all envs, or of those named, or texts with
        `render_mode="ansi"`; of Python envs, whatever their `render` gives.

        None, with a warning, unless made with a `render_mode`.
        """
        if self.native.about is not None:
            numbers = None if envs is None else [cast("int", slot_number(env)) for env in envs]
            return self.native.call("render", (), {}, numbers)
        if self.render_mode is None:
            logger.warn(
                "render() without a render mode gives nothing: "
                'make the envs with render_mode="rgb_array"'
            )
            return None
        if envs is not None:
            try:
                envs = [cast("int", slot_number(env)) for env in envs]
            except TypeError as error:
                raise errors.ArgumentTypeError(f"envs is a list of ints: {error}") from None
        return drawn(self.native, self.render_mode, envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What a method of each env gives, or the attribute of that name: `(num_envs,)`.

        For Python envs, as Gymnasium's: found through their wrappers. All other envs answer what
        every env of Gymnasium has ("render", "spec", "unwrapped", "observation_space", …) as one
        env of `corral.make` would; "unwrapped" gives a `corral.slot_env.SlotEnv` each. What else
        they answer is their own. For envs in Rust and plugins it is what their `Env::call`
        answers. For libenv libraries it is a function of the library's, of each env in turn: see
        `corral.load_libenv`.

        Raises:
            UnsupportedError: for envs that have nothing to call by name, and for "step", "reset"
                and "close", which the vec env does.
            AttributeError: if the envs do not have it; of envs in Rust it is `UnknownNameError`.
            EnvError: if envs failed at it; they go on.
        """
        # What `render` of an env takes is the env's own matter: a netenv server's, for instance.
        if slot_env.is_known(self, name) and not (name == "render" and (args or kwargs)):
            return slot_env.answers(self, name, args, kwargs)
        return self.native.call(name, args, kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each env: what `call` answers, and of envs in Rust and plugins one of
        their properties."""
        if slot_env.is_known(self, name):
            return slot_env.answers(self, name, (), {})
        return self.native.call(name, (), {}, None, "get")

    def list_attr(self) -> tuple[dict[str, bool], ...]:
        """The names of each env's attributes, and whether each can be set."""
        listed = self.native.call("", (), {}, None, "list")
        return tuple(
            {name: attributes_of(can).writable for name, can in one.items()} for one in listed
        )

    def properties(self, env: int) -> Properties:
        """The properties of one env, as a mapping: of an env in Rust or of a plugin those that
        its `Env::call` answers, of an EnvCApi library the library's. They can be read and written
        before the first reset, too.

        Raises:
            ArgumentError, ArgumentTypeError: for what is no env's number.
        """
        try:
            number = cast("int", slot_number(env))
        except TypeError as error:
            raise errors.ArgumentTypeError(f"env is an int: {error}") from None
        if not 0 <= number < self.num_envs:
            raise errors.ArgumentError(f"there is no env {number}: there are {self.num_envs}")
        return Properties(self.native, number)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each env: to its own of a list or tuple of values, or all to one.

        Raises:
            ArgumentError: for a list or tuple of another length.
            UnsupportedError: for an attribute that cannot be set.
        """
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise errors.ArgumentError(
                f"{len(values)} values of {name} for {self.num_envs} envs: give one each"
            )
        if slot_env.is_known(self, name):
            raise errors.UnsupportedError(
                f"{self.native.id}: '{name}' of an env can be read, not set: give the maker of the "
                "vec env its option"
            )
        for env, value in enumerate(values):
            self.native.call(name, (value,), {}, [env], "set")

    def close_extras(self, **kwargs: Any) -> None:
        """Closes every env; called by `close`, once.

        A call that is under way, in another thread or in the one whose signal handler calls
        this, ends with a ClosedError as soon as it can be interrupted. One that runs envs in its
        own thread is waited for, two seconds at most, and then closes on its way out.
        """
        self._close_native(hasty=False)

    def _close_native(self, *, hasty: bool) -> None:
        """`hasty`: envs in workers that are in a step are ended, not waited for."""
        try:
            self.native.close(hasty)
        except BaseException:
            self.closed = True
            raise

    def __del__(self) -> None:
        """Leaves the end to the native half: older Gymnasiums print what `close` raises here."""

    def __reduce__(self) -> NoReturn:
        raise errors.UnsupportedError(NO_COPY)

    def __repr__(self) -> str:
        limit = "" if self.max_episode_steps is None else f", limit={self.max_episode_steps}"
        return (
            f"corral.VectorEnv({self.native.id}, num_envs={self.num_envs}, "
            f"{self.native.autoreset_mode}{limit}{', closed' if self.closed else ''})"
        )
