"""The options of vec envs: their one definition, what each function that makes vec envs refuses of
them, and how they reach the native half."""

from __future__ import annotations

import difflib
import inspect
import operator
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

import numpy as np
from gymnasium.vector import AutoresetMode

from corral import _native, errors
from corral.frames import LazyVectorEnv
from corral.vector import GYMNASIUM_029, VectorEnv, autoreset_name

Function = TypeVar("Function", bound=Callable[..., Any])


class VecOptions(TypedDict, total=False):
    """The options of vec envs, each with its default. Public docstrings show these lines.

    autoreset_mode ("next_step"): "next_step", "same_step", "disabled", or Gymnasium's
        `AutoresetMode`.
    seed (None): env i is built from `seed + i`, so that the first `reset()` is
        `reset(seed=seed)`; None for seeds from the system.
    max_episode_steps (None): truncates episodes after so many steps; None for the env's usual
        limit, -1 for none.
    episode_statistics (False): adds `infos["episode"]`, {"r": returns, "l": lengths,
        "t": seconds}, with its mask `infos["_episode"]` to steps that end episodes.
    action_bounds ("env"): what becomes of finite actions outside their box: "env" (the env sees
        them), "clip" or "error". A label outside its `Discrete` and what is not finite are
        errors under all three. "unchecked": whatever fits the leaf's dtype is passed on, labels
        and NaN too; what comes of it is up to the env, whose panic or error is `EnvError` as
        ever.
    check_actions ("space"): "space": actions are held to their space. "masked": what the env's
        action mask forbids (`infos["action_mask"]` of the env's last row) is an
        `InvalidActionError` too, and nothing has moved.
    debug (False): holds every observation, reward and declared info (masks too) to its space, after
        each step and reset. An env that shows anything else, or a reward that is not finite,
        fails as by an error of its own (`on_failure` says what becomes of it): the `EnvError`
        names env, leaf, step, element, value and bounds, and the next reset rebuilds the env.
    info_layout ("gymnasium"): how infos are laid out. "gymnasium": as by Gymnasium's vector envs
        since version 1. "gymnasium-0.29": as by its earlier ones, for programs that read
        `infos["final_observation"][i]` and `infos["final_info"][i]`, the last infos of env i as a
        dict, or None. Numbers are in typed arrays, everything else is in object arrays. What
        `episode_statistics` adds is in `infos["final_info"][i]["episode"]`: {"r": float32 (1,),
        "l": int32 (1,), "t": float32 (1,)}. This layout implies `autoreset_mode="same_step"`,
        which was all that Gymnasium 0.29 had.
    render_mode (None): what `render` gives: None for nothing, "rgb_array" for frames, "ansi" for
        texts of envs that have them.
    final_frames (None): with "same_step", envs (their numbers) whose last picture of an episode
        comes with its last infos: `infos["final_info"]["final_frame"][i]` is a list of one frame,
        or a text that says why there is none. `render` shows the next episode then.
        `corral.record` films with it.
    num_threads (None): how many threads step envs, the caller's included; None for as many as
        there are cores, where that is faster than one (it is measured as it goes). The results
        are the same for any number.
    batch_size (None): how many envs a `recv` waits for; None for all. With fewer than
        `num_envs` every env runs by itself in the background, driven by `send` and `recv`; a
        slow env holds up no other while a thread is free.
    timeout (None): seconds that an env may take for one step or reset. One that takes longer
        fails; its thread is left behind, for code in this process cannot be stopped. No env
        runs on the caller's thread then, so that Ctrl-C always gets through. None for no limit.
    reset_timeout (None): the same for a reset, an autoreset of "next_step" included; None: as
        `timeout`. A step of "same_step", which may reset too, may take the longer of the two.
    on_failure ("raise"): what becomes of an env that fails, by panic, error or silence.
        "raise": `EnvError`, which carries the others' results; the env waits for its reset.
        "restart": the env is rebuilt and its episode reported truncated, marked by
        `infos["_failed"]` and `infos["restarted"]`. "mask": the env's rows are zeros, marked by
        `infos["_failed"]`, and its actions ignored until it is reset. The last observation of
        an episode that ended so was seen by nobody: zeros stand in its place, in the row or
        (same_step) in `infos["final_obs"]`, and `infos["_failed"]` of that row is True,
        `infos["failed"]` the `corral.SlotFailure`.
    max_restarts (10): with "restart", how often in a row one env may be restarted without
        ending an episode in between, before its failure is raised.
    thread_affinity_offset (None): binds thread k to the k-th core after this one, of those that
        this process may use; None (or EnvPool's -1) leaves that to the system.
    record (None): a directory, made if missing, for a file of every env that fails; the file's
        path is in the failure's `replay`, and `corral.replay` or the command `corral replay`
        plays it. Keeps 64 KiB of actions an env at most.
    frame_stack (None): shows each env's last so many observations, oldest first, as
        `(num_envs, frame_stack, …)`; an episode's first observation fills the stack. As Gymnasium's
        FrameStackObservation, but right under autoreset and `reset_mask`. Each frame is kept
        once, in a ring; a step copies one frame in and `frame_stack` out.
    lazy_frames (False): observations are `corral.StackedFrames`, which are stacked when they
        are looked at, whole or some rows: a rollout that keeps them keeps each frame once, and
        a step copies none. For observations that are one Box.
    normalize_observation (False): shows real observations as float32
        `(x - mean) / sqrt(var + 1e-8)`, by running statistics that every new observation
        updates once, final ones included. `observation_normalization` has them, and freezes
        them. Frames are normalised before they are stacked.
    normalize_reward (False): divides rewards by the root of the running variance of discounted
        returns, as Gymnasium's NormalizeReward; `reward_normalization` has the statistics.
        Episode statistics stay those of the env's own rewards.
    reward_gamma (0.99): the discount of these returns, from 0 to 1.
    """

    autoreset_mode: str | AutoresetMode
    seed: int | None
    max_episode_steps: int | None
    episode_statistics: bool
    action_bounds: str
    check_actions: str | bool
    debug: bool
    info_layout: str
    render_mode: str | None
    final_frames: Sequence[int] | None
    num_threads: int | None
    batch_size: int | None
    timeout: float | None
    reset_timeout: float | None
    on_failure: str
    max_restarts: int
    thread_affinity_offset: int | None
    record: str | os.PathLike[str] | None
    frame_stack: int | None
    lazy_frames: bool
    normalize_observation: bool
    normalize_reward: bool
    reward_gamma: float


NAMES = tuple(VecOptions.__annotations__)
"""The names of all options."""


def documented(refused: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Completes a function's docstring: `{options}` becomes the text of `VecOptions`, `{names}` the
    names of those that are not `refused`."""
    names = ", ".join(name for name in NAMES if name not in refused)
    texts = {
        "options": inspect.cleandoc(VecOptions.__doc__ or "").partition("\n\n")[2],
        "names": textwrap.fill(names, 88),
    }

    def complete(function: Function) -> Function:
        function.__doc__ = re.sub(
            r"( +)\{(options|names)\}",
            lambda mark: textwrap.indent(texts[mark[2]], mark[1]),
            inspect.getdoc(function) or "",
        )
        return function

    return complete


def split(given: Mapping[str, Any], names: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is given by these names, and the rest."""
    named = {name: given[name] for name in names if name in given}
    return named, {name: value for name, value in given.items() if name not in named}


def near(names: Iterable[str], known: Iterable[str] = NAMES) -> str:
    """A hint at the known option that one of `names` may stand for; empty if none is near."""
    found = [one for name in names for one in difflib.get_close_matches(name, known, n=1)]
    return f"; did you mean '{found[0]}'?" if found else ""


def check(maker: Any, given: Mapping[str, Any], refused: Mapping[str, str]) -> None:
    """Errors for what is no option of the function `maker`, and for options that `maker` does not
    support: `refused` says why, by name. None asks for nothing."""
    for name, value in given.items():
        if name not in NAMES:
            known = [*(maker.__kwdefaults__ or ()), *(one for one in NAMES if one not in refused)]
            raise errors.UnknownOptionError(
                f"{maker.__name__}: unknown option '{name}'. Valid options: {', '.join(known)}"
                f"{near([name], known)}"
            )
        if name in refused and value is not None:
            raise errors.UnsupportedError(f"{maker.__name__} takes no {name}: {refused[name]}")


def implied(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with the autoreset mode that their `info_layout` implies where they name none.

    Raises:
        ArgumentError: where they name a mode that the layout has no place for.
    """
    if not _is_of_029(options):
        return dict(options)
    given = {"autoreset_mode": "same_step", **options}
    if (name := autoreset_name(given["autoreset_mode"])) != "same_step":
        raise errors.ArgumentError(
            f'info_layout="{GYMNASIUM_029}" goes with autoreset_mode="same_step", which was all '
            f"that Gymnasium 0.29 had, not with '{name}': leave one of the two options out"
        )
    return given


def _is_of_029(options: Mapping[str, Any]) -> bool:
    layout = options.get("info_layout")
    return isinstance(layout, str) and layout == GYMNASIUM_029


def native(
    source: _native.Source,
    num_envs: int,
    options: Mapping[str, Any],
    usual_mode: str | None = "next_step",
) -> _native.VecEnv:
    """The native vec env of `num_envs` envs of a source, with `VecOptions`.

    Args:
        usual_mode: the autoreset mode where `options` name none; None for the source's own.
    """
    frames, told = split(implied(options), ("lazy_frames", "frame_stack", "render_mode"))
    mode = told.pop("autoreset_mode", usual_mode)
    if mode is not None or usual_mode is not None:
        told["autoreset_mode"] = autoreset_name(mode)
    is_lazy = flag("lazy_frames", frames.get("lazy_frames", False))
    if (frame_stack := frames.get("frame_stack")) is not None:
        whole("frame_stack", frame_stack, _native.MAX_FRAMES)
        told["frame_stack"] = None if is_lazy else frame_stack
    elif is_lazy:
        raise errors.ArgumentError("lazy_frames says how frames are stacked: give frame_stack too")
    made = _native.make(source, num_envs, told)
    if _is_of_029(options) and not made.can("final_obs"):
        made.close()
        raise errors.UnsupportedError(
            f'{made.id} shows no final observations, which info_layout="{GYMNASIUM_029}" is for: '
            "leave the option out"
        )
    return made


def vector(
    native: _native.VecEnv, options: Mapping[str, Any], render_mode: str | None = None
) -> VectorEnv:
    """The native vec env with Gymnasium's face."""
    envs = (
        LazyVectorEnv(native, operator.index(options["frame_stack"]), render_mode=render_mode)
        if options.get("lazy_frames", False)
        else VectorEnv(native, render_mode=render_mode)
    )
    envs.final_frames = _final_frames(options)
    return envs


def _final_frames(options: Mapping[str, Any]) -> tuple[int, ...]:
    given = options.get("final_frames")
    return () if given is None else tuple(map(operator.index, given))


def text(name: str, value: Any) -> str:
    """A string, checked to be one."""
    if not isinstance(value, str):
        raise errors.ArgumentTypeError(f"{name} is a str, not {value!r}")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise errors.ArgumentError(f"{name} is {value!r}: one half of a character is no text")
    return value


def whole(name: str, value: Any, most: int, least: int = 1) -> int:
    """A number of things, checked to be an int from `least` to `most`."""
    if isinstance(value, bool | np.bool_):
        raise errors.ArgumentTypeError(f"{name} is an int, not {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise errors.ArgumentTypeError(f"{name} is an int, not {value!r}") from None
    if number < least:
        raise errors.ArgumentError(f"{name} is {number}: it must be at least {least}")
    if number > most:
        raise errors.ArgumentError(f"{name} is {number}: it must be at most {most}")
    return number


def flag(name: str, value: Any) -> bool:
    """A truth value, checked to be one."""
    if not isinstance(value, bool | np.bool_):
        raise errors.ArgumentTypeError(f"{name} is a bool, not {value!r}")
    return bool(value)


def file_path(name: str, value: Any) -> str:
    """A path, checked to be a str or a Path."""
    if not isinstance(value, str | os.PathLike):
        raise errors.ArgumentTypeError(f"{name} is a path (a str or a Path), not {value!r}")
    path = os.fsdecode(value)
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise errors.ArgumentError(f"{name} is {value!r}, which no file is called") from None
    return path
