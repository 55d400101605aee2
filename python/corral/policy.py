"""Policies as they come: functions of NumPy arrays, PyTorch modules, with further arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType, MethodType
from typing import Any, cast

import numpy as np

from corral import errors

Policy = Callable[..., Any]

_GIVEN_BY_NAME = ("began", "index", "infos")
# What a function may have that says that it takes other parameters than its code.
_OTHERS = ("__signature__", "__wrapped__")


class Actor:
    """Calls a policy; `named` are the further arguments that it takes.

    PyTorch is never imported here: where it is in use, it has been.
    """

    def __init__(self, policy: Policy) -> None:
        if not callable(policy):
            raise errors.ArgumentTypeError(f"policy is a function of observations, not {policy!r}")
        self._policy = cast(Any, policy)
        self._is_module = _is_module(policy)
        # A module's own call takes anything, and passes it on.
        takes = _forward_of(self._policy) if self._is_module else policy
        self.named = _named_parameters(takes)

    @property
    def plain(self) -> Policy | None:
        """The policy itself, where calling it is all that is to be done."""
        return None if self._is_module or "torch" in sys.modules else cast(Policy, self._policy)

    def __call__(self, observations: Any, more: dict[str, Any]) -> Any:
        """The actions, as NumPy arrays."""
        if "torch" not in sys.modules:
            return self._act(observations, more)
        with _without_gradients():
            return self._act(observations, more)

    def _act(self, observations: Any, more: dict[str, Any]) -> Any:
        if self._is_module:
            device = next((one.device for one in self._policy.parameters()), None)
            observations, more = _as_tensors(observations, device), _as_tensors(more, device)
        given = self._policy(observations, **more)
        return given if type(given) is np.ndarray else _as_arrays(given)


def _torch() -> Any:
    """PyTorch, where the program has imported it. Some programs put a stand-in in its place, which
    has no modules of neural networks, or cannot leave gradients out."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    is_whole = hasattr(getattr(torch, "nn", None), "Module") and hasattr(torch, "inference_mode")
    return torch if is_whole else None


def _is_module(policy: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(policy, torch.nn.Module)


def _forward_of(module: Any) -> Callable[..., Any]:
    """The function that names a module's arguments. PyTorch's modules around another one
    (`DataParallel`, `AveragedModel`, what `torch.compile` makes) pass on whatever they get."""
    takes = module.forward
    if _takes_any_names(takes):
        for within in ("module", "_orig_mod"):
            inner = getattr(module, within, None)
            if _is_module(inner):
                return _forward_of(inner)
    return cast("Callable[..., Any]", takes)


def _without_gradients() -> AbstractContextManager[Any]:
    torch = _torch()
    none: AbstractContextManager[Any] = nullcontext()
    return none if torch is None else torch.inference_mode()


def _parameters(policy: Policy) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(policy).parameters.values())
    except (TypeError, ValueError):
        return []


def _takes_any_names(policy: Policy) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in _parameters(policy))


def _named_parameters(policy: Policy) -> set[str]:
    names = _names_of(policy)
    if names is None:
        if _takes_any_names(policy):
            return set(_GIVEN_BY_NAME)
        parameters = _parameters(policy)
        names = [p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY]
    return set(names).intersection(_GIVEN_BY_NAME)


def _names_of(policy: Policy) -> Sequence[str] | None:
    """The parameters of a plain function or method that are given by name, which `inspect` takes
    fifty microseconds to tell; None for anything else, and where there may be any."""
    function = policy.__func__ if isinstance(policy, MethodType) else policy
    if not isinstance(function, FunctionType) or not vars(function).keys().isdisjoint(_OTHERS):
        return None
    code = function.__code__
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return None
    return code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]


def _as_tensors(value: Any, device: Any) -> Any:
    """Nested arrays of numbers as tensors; anything else as it is."""
    if isinstance(value, dict):
        return {name: _as_tensors(inner, device) for name, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(_as_tensors(inner, device) for inner in value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return _torch().as_tensor(value, device=device)
    return value


def _as_arrays(actions: Any) -> Any:
    """Nested tensors as arrays; anything else as it is."""
    torch = _torch()
    if torch is None:
        return actions
    if isinstance(actions, dict):
        return {name: _as_arrays(inner) for name, inner in actions.items()}
    if type(actions) is tuple:
        return tuple(_as_arrays(inner) for inner in actions)
    if not isinstance(actions, torch.Tensor):
        return actions
    kept = actions.detach().cpu()
    # NumPy has no bfloat16; float32 has all of its numbers.
    return (kept.float() if kept.dtype is torch.bfloat16 else kept).numpy()
