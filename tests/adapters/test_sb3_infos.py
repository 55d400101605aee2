"""Is the list of infos of `corral.to_sb3` a list of one dict per env, for whoever reads it?"""

from __future__ import annotations

import contextlib
import copy
import json
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

N = 4
CUT = {"TimeLimit.truncated": False}


@pytest.fixture
def infos(sb3: Any) -> Any:
    """Of four envs, of which the third has something to tell."""
    from corral.adapters.sb3_infos import Infos

    return Infos(N, lambda: [(2, {"level": 3, **CUT})])


def plain() -> list[dict[str, Any]]:
    """What `DummyVecEnv` gives there."""
    return [{**CUT}, {**CUT}, {"level": 3, **CUT}, {**CUT}]


def put(infos: Any, start: int) -> list[Any]:
    other: list[Any] = [None] * 6
    other[start : start + N] = infos
    return other


READS: dict[str, Callable[[Any], Any]] = {
    "a number": lambda infos: infos[1],
    "a number from the end": lambda infos: infos[-1],
    "what was told": lambda infos: infos[2],
    "a slice": lambda infos: infos[1:3],
    "length": len,
    "iteration": lambda infos: list(infos),
    "from the end": lambda infos: list(reversed(infos)),
    "enumerate": lambda infos: [(k, dict(info)) for k, info in enumerate(infos)],
    "zip": lambda infos: list(zip(range(N), infos, strict=True)),
    "unpacking": lambda infos: (lambda a, b, c, d: [a, b, c, d])(*infos),
    "stars": lambda infos: [*infos],
    "tuple": tuple,
    "truth": bool,
    "repr": repr,
    "contains": lambda infos: ({**CUT} in infos, {} in infos),
    "index": lambda infos: infos.index({"level": 3, **CUT}),
    "count": lambda infos: infos.count({**CUT}),
    "sum": lambda infos: operator.add(infos, [{}]),
    "sum behind": lambda infos: operator.add([{}], infos),
    "sum of both": lambda infos: infos + infos,
    "product": lambda infos: infos * 2,
    "product behind": lambda infos: 2 * infos,
    "copy method": lambda infos: infos.copy(),
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda infos: pickle.loads(pickle.dumps(infos)),
    "json": json.dumps,
    "equality": lambda infos: (infos == [{}], infos != [{}], infos == plain()),
    "sorted": lambda infos: sorted(infos, key=len),
    "array": lambda infos: np.array(infos).tolist(),
    "array of objects": lambda infos: np.asarray(infos, dtype=object).tolist(),
    "slice of another": lambda infos: put(infos, 1),
    "extended": lambda infos: ([1].extend(infos), [1, *infos])[1],
}


@pytest.mark.parametrize("read", READS)
def test_what_is_read_is_what_a_list_of_dicts_has(infos: Any, read: str) -> None:
    found, expected = READS[read](infos), READS[read](plain())
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("read", [read for read in READS if read not in ("json", "repr", "length")])
def test_it_is_the_same_list_after_each_read(infos: Any, read: str) -> None:
    READS[read](infos)
    assert infos == plain()
    assert plain() == infos
    assert infos != plain()[:3]


def test_what_envs_tell_is_made_once_by_the_first_read(sb3: Any) -> None:
    from corral.adapters.sb3_infos import Infos

    times: list[int] = []

    def tell() -> list[tuple[int, dict[str, Any]]]:
        times.append(1)
        return [(2, {"level": 3, **CUT})]

    infos = Infos(N, tell)
    assert len(infos) == N
    assert not times
    assert infos[1] == CUT
    assert infos[2] is infos[2] is list(infos)[2]
    assert len(times) == 1


def test_it_is_a_list(infos: Any) -> None:
    assert isinstance(infos, list)
    assert all(type(info) is dict for info in infos)
    assert type(pickle.loads(pickle.dumps(infos))) is list


@pytest.mark.parametrize("first", [lambda infos: None, list, lambda infos: infos[0]])
def test_what_is_written_stays_and_is_of_one_env(infos: Any, first: Callable[[Any], Any]) -> None:
    first(infos)
    infos[1]["x"] = 1
    next(iter(infos))["y"] = 2
    infos[-1].update(z=3)
    expected = [{**CUT, "y": 2}, {**CUT, "x": 1}, {"level": 3, **CUT}, {**CUT, "z": 3}]
    assert infos == expected
    assert list(infos) == expected
    assert infos[1] is infos[1]


@pytest.mark.parametrize(
    "read",
    [list, copy.copy, np.array, lambda infos: infos.copy(), lambda infos: infos[:]],
    ids=["list", "copy", "array", "copy method", "slice"],
)
def test_no_two_envs_have_one_dict(infos: Any, read: Callable[[Any], Any]) -> None:
    assert len({id(info) for info in read(infos)}) == N


def test_a_list_of_it_has_its_dicts(infos: Any) -> None:
    """As a list of a list has: VecMonitor makes one, and changes the dicts of envs that ended."""
    again = list(infos)
    again[0]["x"] = 1
    assert infos[0] == {**CUT, "x": 1}


@pytest.mark.parametrize(
    "change",
    [
        lambda infos: infos.append({}),
        lambda infos: infos.insert(1, {}),
        lambda infos: infos.extend([{}]),
        lambda infos: infos.__setitem__(2, {}),
        lambda infos: infos.pop(),
        lambda infos: infos.pop(0)["a"],
        lambda infos: infos.pop(0).update(a=1),
        lambda infos: infos.reverse(),
        lambda infos: infos.sort(key=len),
        lambda infos: infos.remove({**CUT}),
        lambda infos: infos.__setitem__(slice(0, 2), [{}]),
        lambda infos: infos.__delitem__(0),
        lambda infos: infos.__iadd__([{}]),
        lambda infos: infos.__imul__(2),
        lambda infos: infos.clear(),
    ],
)
def test_it_is_changed_as_a_list(infos: Any, change: Callable[[Any], Any]) -> None:
    expected = plain()
    for changed in (infos, expected):
        with contextlib.suppress(KeyError):
            change(changed)
    assert infos == expected
    assert list(infos) == expected
