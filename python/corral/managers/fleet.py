"""The envs of one launch: the state of each, what is in flight, what has landed.

Only here do states change, resets go out, and failed resets go out again.

Above 400 lines because all that changes a state stands here.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Set
from typing import Any

from corral.errors import (
    ArgumentError,
    ArgumentTypeError,
    EnvError,
    EnvTimeoutError,
    RecvTimeoutError,
    RetriesUsedUpError,
    SlotFailure,
    SpaceError,
    UnsupportedError,
)
from corral.managers.config import Config
from corral.managers.life import EnvState, Life
from corral.managers.members import Landed, Members, ResetOrder
from corral.managers.seeds import Seeds
from corral.managers.timestep import BaseEnvTimestep, is_abnormal

_INT = frozenset({int})
# What is refused (other spaces, no env at all) is refused again.
_FINAL = (ArgumentError, ArgumentTypeError, SpaceError, UnsupportedError)


class Fleet:
    """The envs of one launch.

    Attributes:
        members: the vec env.
        lives: one for each env.
        landed: timesteps that have come back and that nobody has been given yet.
        shown: by env the observation of each that is in `RUN` and not in flight.
        in_step: the envs that are in flight with an action.
        resets: how many envs are being reset.
        is_closed: whether the envs were closed.
        may_be_torn: whether an exception may have come between a row and what this object knows of
            it; `mend` looks.
    """

    def __init__(self, members: Members, env_num: int, config: Config, seeds: Seeds) -> None:
        self.members, self._config, self._seeds = members, config, seeds
        self.lives = [Life() for _ in range(env_num)]
        self.landed: dict[int, BaseEnvTimestep] = {}
        self.shown: dict[int, Any] = {}
        self.in_step: set[int] = set()
        self.resets = 0
        self.is_closed = False
        self.may_be_torn = False
        # Whether envs play on without end, and nobody films them.
        self._plays_on = config.auto_reset and config.episode_num == math.inf and not members.films
        # When resets that are in flight were sent, by the monotonic clock.
        self._sent: dict[int, float] = {}
        # When resets that failed go out again.
        self._retries: dict[int, float] = {}

    def close(self) -> None:
        """Closes the envs, those in flight too; again does nothing."""
        if not self.is_closed:
            self.is_closed = True
            self.members.close()

    def finish_resets(self) -> None:
        """Waits until no env is being reset.

        Raises:
            EnvError: as `collect`.
        """
        while self.resets:
            self.collect(self.resets)

    def ready(self) -> dict[int, Any]:
        """The observations of the envs that take an action now."""
        shown, landed = self.shown, self.landed
        ready = [k for k in shown if k not in landed] if landed else shown
        return {k: shown[k] for k in sorted(ready)}

    def takes(self, actions: dict[Any, Any]) -> bool:
        """Whether the keys of `actions` are numbers of envs that take an action now."""
        return (
            actions.keys() <= self.shown.keys()
            and _INT.issuperset(map(type, actions))
            and (not self.landed or self.landed.keys().isdisjoint(actions))
        )

    def settle(self, env_ids: Iterable[int], pardoned: Set[int] = frozenset()) -> None:
        """Waits until none of these envs is in flight. Timesteps that land are kept.

        Raises:
            EnvError: as `collect`.
        """
        wanted = list(env_ids)
        while any(k in self.in_step or self.lives[k].order is not None for k in wanted):
            self.collect(pardoned=pardoned)

    def begin(self, params: dict[int, dict[str, Any] | None], env_ids: Iterable[int]) -> None:
        """Puts envs in flight to be reset. An env in flight is waited for, and its row dropped.

        Args:
            params: new arguments of resets, by env; None for none.
            env_ids: which envs.

        Raises:
            EnvError: for another env that failed meanwhile.
            CorralError: for arguments that cannot be sent; their envs are in ERROR.
        """
        wanted = set(env_ids)
        self.settle(wanted, wanted)
        for env_id in wanted:
            self.landed.pop(env_id, None)
        for env_id, param in params.items():
            self.lives[env_id].param = param
        self._begin(sorted(wanted))

    def _begin(self, env_ids: list[int]) -> None:
        for env_id in env_ids:
            life = self.lives[env_id]
            seed, dynamic = self._seeds.take(env_id), self._seeds.dynamic[env_id]
            is_new = not life.has_heard(life.param, dynamic)
            life.order = ResetOrder(seed, dynamic, life.param, is_new)
            life.state, life.attempts = EnvState.RESET, 0
            self.shown.pop(env_id, None)
        self.resets += len(env_ids)
        self._send_resets(env_ids)

    def _send_resets(self, env_ids: list[int]) -> None:
        rest = {k: order for k in env_ids if (order := self.lives[k].order) is not None}
        try:
            for env_id in self.members.send_resets(dict(rest)):
                self._sent[env_id] = time.monotonic()
                del rest[env_id]
        finally:
            for env_id in rest:
                self._end_reset(env_id, EnvState.ERROR)

    def _end_reset(self, env_id: int, state: EnvState) -> None:
        life = self.lives[env_id]
        life.order, life.state = None, state
        self._sent.pop(env_id, None)
        self.resets -= 1

    def send(self, actions: dict[int, Any]) -> None:
        """Puts envs in flight with their actions; nothing moves where one is wrong."""
        if actions:
            self._depart(self.members.send, actions)

    def step(self, actions: dict[int, Any]) -> None:
        """Puts envs in flight with their actions, and waits until none is; nothing moves where an
        action is wrong.

        Raises:
            EnvError: as `collect`.
        """
        received, again = None, False
        if actions and not self.resets and not self.in_step:
            again = self._resets_at_once()
            received = self._depart(self.members.step, actions, again)
        if received is None:
            self.send(actions)
        elif type(received) is dict:
            self._land_steps(received, again)
        else:
            self.collect(received=received)
        while self.in_step:
            # All that is in flight comes at once, so that an error carries all timesteps.
            self.collect(len(self.in_step) + self.resets)

    def _depart(self, send: Callable[..., Any], actions: dict[int, Any], *more: Any) -> Any:
        """What `send(actions, *more)` returns, which puts envs in flight, or raises an `Exception`
        or returns False where nothing has moved. Each of these envs is shown. Ctrl-C may end it at
        any point: the envs are said to be in flight before they are."""
        shown = self.shown
        self.in_step.update(actions)
        rest = len(shown) - len(actions)
        self.shown = {k: shown[k] for k in shown if k not in actions} if rest else {}
        sent: Any = False
        try:
            sent = send(actions, *more)
        except Exception:
            self._stay(actions, shown)
            raise
        if sent is False:
            self._stay(actions, shown)
            return None
        return sent

    def _stay(self, actions: dict[int, Any], shown: dict[int, Any]) -> None:
        self.in_step.difference_update(actions)
        self.shown = shown

    def mend(self) -> None:
        """Puts envs whose rows were lost in ERROR, where an exception came between a row and what
        is known of it: Ctrl-C, or an info that nobody can unpickle."""
        native = self.members.envs.native
        believed = len(self.in_step) + len(self._sent)
        lost = {k for k, life in enumerate(self.lives) if self._is_lost(k, life.state)}
        if lost or native.in_flight() != believed:
            # Whose rows are missing is unknown: the rest is dropped, too.
            with contextlib.suppress(EnvError):
                native.drain()
            for env_id in lost.union(self.in_step, self._sent):
                life = self.lives[env_id]
                life.order, life.state, life.knows = None, EnvState.ERROR, (None, None)
                self.shown.pop(env_id, None)
            self.in_step.clear()
            self._sent.clear()
            self.resets = len(self._retries)
        self.may_be_torn = False

    def _is_lost(self, env_id: int, state: EnvState) -> bool:
        """Whether an env is said to be at something, and nothing says where."""
        if state is EnvState.RUN:
            return env_id not in self.shown and env_id not in self.in_step
        in_flight = env_id in self._sent or env_id in self._retries
        return state is EnvState.RESET and not in_flight

    def collect(
        self,
        rows: int = 1,
        timeout: float | None = None,
        pardoned: Set[int] = frozenset(),
        received: Any = None,
    ) -> None:
        """Waits for rows of envs in flight, or until a reset that failed goes out again.

        Args:
            rows: how many rows to wait for; all in flight, if these are fewer.
            timeout: seconds after which to give up.
            pardoned: envs that may fail in a step without an error.
            received: what `Members.step` returned, if the wait is over.

        Raises:
            EnvError, or what an env raised (its cause is the `EnvError`, whose `batch` is the
                timesteps that have landed).
            RetriesUsedUpError: if an env could not be reset; all are closed then.
            EnvTimeoutError: if a reset has no answer within `connect_timeout`; likewise.
        """
        if self.resets:
            limits = [self._next_retry(), self._next_unanswered(), timeout]
            timeout = min((limit for limit in limits if limit is not None), default=None)
        in_flight = len(self.in_step) + len(self._sent)
        if in_flight == 0:
            time.sleep(timeout or 0)
            return
        try:
            if received is None:
                received = self.members.receive(timeout, min(rows, in_flight), len(self.lives))
            landed = self.members.opened(received)
        except RecvTimeoutError:
            if rows > 1:
                # Fewer may have come.
                self.collect(1, 0.0, pardoned)
            else:
                self._give_up()
        except BaseException as error:
            # Ctrl-C in the step of an env in this process is that env's failure.
            told = _report(error)
            if told is None:
                raise
            self._land(self.members.opened(told.batch))
            self._fail(told, error, pardoned)
        else:
            self._land(landed)

    def _next_retry(self) -> float | None:
        """Sends again what is due; seconds until the next reset is."""
        if not self._retries:
            return None
        now = time.monotonic()
        due = [env_id for env_id, when in self._retries.items() if when <= now]
        for env_id in due:
            del self._retries[env_id]
        self._send_resets(due)
        return min((when - now for when in self._retries.values()), default=None)

    def _next_unanswered(self) -> float | None:
        """Seconds until a reset has had no answer for `connect_timeout`."""
        left = self._left_to_answer().values()
        return max(min(left), 0.0) if left else None

    def _left_to_answer(self) -> dict[int, float]:
        """Seconds that each reset in flight may still go without an answer."""
        limit = self._config.get("connect_timeout")
        if limit is None:
            return {}
        began = time.monotonic() - limit
        return {env_id: since - began for env_id, since in self._sent.items()}

    def _give_up(self) -> None:
        """Closes all where a reset has had no answer in time."""
        late = [str(env_id) for env_id, left in self._left_to_answer().items() if left <= 0]
        if late:
            self.close()
            raise EnvTimeoutError(
                f"env {', '.join(late)}: no answer to a reset within "
                f"{self._config.connect_timeout} seconds (connect_timeout). The manager is closed: "
                "launch it again, with a reset_timeout, after which a reset is tried again"
            )

    def _land(self, landed: Landed) -> None:
        """Takes in the rows of envs that did not fail."""
        timesteps, has_infos = landed
        if has_infos or self.resets or self.members.films:
            if over := self._land_any(timesteps):
                self._end_episodes(over)
        else:
            self._land_steps(timesteps, again=False)

    def _land_steps(self, timesteps: dict[int, BaseEnvTimestep], again: bool) -> None:
        """Takes in rows of steps without infos. With `again`, the envs whose episodes are over are
        being reset already."""
        self.in_step.difference_update(timesteps)
        if self.landed:
            self.landed.update(timesteps)
        else:
            self.landed = timesteps
        shown, over = self.shown, []
        for env_id, (observation, _, done, _) in timesteps.items():
            if not done:
                shown[env_id] = observation
            elif again:
                self._note_reset(env_id)
            else:
                over.append(env_id)
        if over:
            self._end_episodes(over)

    def _note_reset(self, env_id: int) -> None:
        """Notes that the episode of an env is over, which is being reset already."""
        life = self.lives[env_id]
        life.episodes += 1
        life.order = ResetOrder(None, life.knows[1], life.param, is_new=False)
        life.state, life.attempts = EnvState.RESET, 0
        self._sent[env_id] = time.monotonic()
        self.resets += 1

    def _resets_at_once(self) -> bool:
        """Whether envs whose episodes end are reset, all of them without a seed and new arguments.
        The native half sends such resets itself: a worker need not wait for Python.

        An env that takes actions was told its arguments at its last reset. Only `seed` adds to
        them without a reset."""
        return self._plays_on and not self._seeds.has_any()

    def _land_any(self, timesteps: dict[int, BaseEnvTimestep]) -> list[int]:
        """Takes in rows of steps and of resets; the envs whose episodes are over."""
        films, over = self.members.films, []
        for env_id, timestep in timesteps.items():
            life = self.lives[env_id]
            if life.order is not None:
                life.knows = life.order.param, life.order.dynamic_seed
                self._end_reset(env_id, EnvState.RUN)
                self.shown[env_id] = timestep.obs
                if films:
                    self.members.film(env_id, is_first=True)
                continue
            self.in_step.discard(env_id)
            self.landed[env_id] = timestep
            observation, _, done, info = timestep
            if films:
                self.members.film(env_id, is_last=bool(done))
            if info and is_abnormal(info):
                life.state = EnvState.ERROR
            elif done:
                over.append(env_id)
            else:
                self.shown[env_id] = observation
        return over

    def _end_episodes(self, env_ids: list[int]) -> None:
        """Resets envs whose episodes are over, where they play on."""
        again = []
        for env_id in env_ids:
            life = self.lives[env_id]
            life.episodes += 1
            if life.episodes >= self._config.episode_num:
                life.state = EnvState.DONE
            elif self._config.auto_reset:
                again.append(env_id)
            else:
                life.state = EnvState.NEED_RESET
        if again:
            self._begin(again)

    def _fail(self, told: EnvError, error: BaseException, pardoned: Set[int]) -> None:
        """Takes in envs that failed. A failed reset goes out again, as often as it may; any other
        failure is raised."""
        used_up: list[SlotFailure] = []
        is_raised = False
        for failure in told.failures:
            life = self.lives[failure.slot]
            if failure.cause != "error":
                # Its process or thread is gone, and what it knew.
                life.knows = (None, None)
            if life.order is None:
                self.in_step.discard(failure.slot)
                life.state = EnvState.ERROR
                is_raised |= failure.slot not in pardoned
                continue
            life.attempts += 1
            is_final = isinstance(failure.exception, _FINAL) or failure.cause == "interrupt"
            if is_final or life.attempts >= self._config.max_retry:
                self._end_reset(failure.slot, EnvState.ERROR)
                is_raised |= is_final
                used_up.extend([] if is_final else [failure])
            else:
                is_known = life.has_heard(life.order.param, life.order.dynamic_seed)
                life.order = life.order._replace(is_new=not is_known)
                self._sent.pop(failure.slot, None)
                self._retries[failure.slot] = time.monotonic() + self._config.retry_waiting_time
        if not used_up and not is_raised:
            return
        told.batch, self.landed = self.landed, {}
        if is_raised:
            raise error
        self.close()
        raise RetriesUsedUpError.of_resets(used_up, self._config.max_retry, told) from error


def _report(error: BaseException) -> EnvError | None:
    """The vec env's report behind what it raised, which may be an env's own exception."""
    cause = error.__cause__
    is_own = isinstance(cause, EnvError) and any(one.exception is error for one in cause.failures)
    report = cause if is_own else error
    return report if isinstance(report, EnvError) and report.batch is not None else None
