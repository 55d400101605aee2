"""The vec env under a manager of envs of ours, by an id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from corral import errors, registry
from corral.adapters.infos import rows
from corral.managers.config import Config
from corral.managers.members import (
    Batch,
    Members,
    ResetOrder,
    mark_cut,
    render_mode,
    rows_of,
    vec_options,
)
from corral.managers.timestep import BaseEnvTimestep
from corral.managers.video import Recorder

_OF_RESET = ("seed", "options")


class NativeMembers(Members):
    """Envs of ours, in threads of this process."""

    def __init__(
        self,
        id: str,
        env_num: int,
        config: Config,
        replay_paths: Sequence[str | None],
        runner: dict[str, Any],
    ) -> None:
        super().__init__(config.get("copy_on_get", False))
        self.envs = registry.make_vec(
            id,
            env_num,
            render_mode=render_mode(replay_paths),
            **vec_options(config),
            **runner,
        )
        self.action_space = self.envs.single_action_space
        self._space = self.envs.single_observation_space
        fps = self.envs.metadata.get("render_fps")
        self._recorders = {
            env_id: Recorder(path, env_id, fps)
            for env_id, path in enumerate(replay_paths)
            if path is not None
        }
        self.films = bool(self._recorders)

    def send_resets(self, orders: dict[int, ResetOrder]) -> Iterator[int]:
        """As `Members.send_resets`; `param` has "seed" and "options", as Gymnasium's reset."""
        id = self.envs.native.id
        for env_id, order in orders.items():
            other = ", ".join(repr(key) for key in order.param or () if key not in _OF_RESET)
            if other:
                raise errors.ArgumentError(
                    f"the reset_param of env {env_id} has {other}: a reset of {id} takes 'seed' "
                    "and 'options'"
                )
        for env_id, order in orders.items():
            given = {"seed": order.seed, **(order.param or {})}
            options = given.get("options")
            if options and "index" in options:
                # An int would be counted from env 0.
                options = {**options, "index": [options["index"]]}
            self.envs.send_reset([env_id], seed=[given["seed"]], options=options)
            yield env_id

    def film(self, env_id: int, *, is_first: bool = False, is_last: bool = False) -> None:
        """Adds a picture of the env to its video."""
        recorder = self._recorders.get(env_id)
        if recorder is None:
            return
        frames = self.envs.render([env_id])
        assert frames is not None
        (recorder.begin if is_first else recorder.add)(frames[0])
        if is_last:
            recorder.end()

    def timesteps(self, batch: Batch) -> list[BaseEnvTimestep]:
        """As `Members.timesteps`."""
        _, rewards, terminations, truncations, infos = batch
        env_ids, kinds = infos.pop("env_id"), infos.pop("row_kind")
        each = rows(infos, len(rewards))
        infos["env_id"], infos["row_kind"] = env_ids, kinds
        mark_cut(each, terminations, truncations)
        observations = rows_of(self._space, batch[0], len(each), self._copies)
        dones = (terminations | truncations).tolist()
        return list(map(BaseEnvTimestep, observations, rewards.tolist(), dones, each))

    def attribute(self, name: str) -> list[Any]:
        """A property of each env.

        Raises:
            AttributeError: for a name that is none of its properties.
        """
        try:
            return list(self.envs.get_attr(name))
        except errors.UnsupportedError as error:
            raise errors.UnknownNameError(str(error)) from None

    def invoke(self, env_id: int, name: str, *args: Any, **kwargs: Any) -> Any:
        """What a method of one env gives."""
        if name == "render" and not args and not kwargs:
            frames = self.envs.render([env_id])
            return None if frames is None else frames[0]
        return self.envs.native.call(name, args, kwargs, [env_id])[0]

    def close(self) -> None:
        """Closes the envs and their videos."""
        for recorder in self._recorders.values():
            recorder.end()
        super().close()
