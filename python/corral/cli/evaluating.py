"""`corral eval`."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

import corral
from corral import errors
from corral.cli import ids, policies
from corral.cli.app import Json, app, err, errors_told, print_json, print_text
from corral.evaluation import Evaluation

_RANGE = re.compile(r"(\d+):(\d+)(?::(\d+))?")


@app.command("eval")
def evaluate(
    id: ids.Id,
    policy: policies.Given = None,
    indices: Annotated[
        str,
        typer.Option(
            metavar="RANGE|LIST",
            help="Which episodes: FIRST:END[:STEP], where END is left out, or 3,5,8.",
        ),
    ] = "0:100",
    num_envs: Annotated[
        int, typer.Option(min=1, help="How many play at a time; the result is the same.")
    ] = 32,
    policy_seed: policies.Seed = 0,
    option: ids.Options = None,
    loads: ids.Loads = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write index, return and length of each.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Play each index once with a policy, or with random actions; returns and lengths.

    Example: corral eval CartPole-v1 --indices 0:20
    """
    with errors_told():
        ids.load(loads)
        played = read_indices(indices)
        config = ids.options_of(option)
        function = None if policy is None else policies.load(policy)
        with closing(ids.make(id, min(num_envs, len(played)), config)) as envs:
            if function is None:
                function = policies.Random(envs, policy_seed)
                err.print(f"random actions, seed {policy_seed}: no --policy is given")
            with policies.told(policy or "the env"):
                result = corral.evaluate(function, envs, played)
        if csv is not None:
            result.to_csv(csv)
    if as_json:
        print_json(_json(id, policy or f"random, seed {policy_seed}", config, result))
    else:
        print_text(result.table())


def read_indices(text: str) -> list[int]:
    """The indices that a text names.

    Raises:
        ArgumentError: for what names none, or one twice.
    """
    match = _RANGE.fullmatch(text)
    if match is not None:
        first, end, step = (int(one) if one else 1 for one in match.groups())
        found = list(range(first, end, step)) if step else []
    elif re.fullmatch(r"\d+(,\d+)*", text):
        found = [int(one) for one in text.split(",")]
    else:
        raise errors.ArgumentError(f"'{text}' are no indices: write FIRST:END[:STEP], or 3,5,8")
    if not found:
        raise errors.ArgumentError(f"'{text}' names no index")
    twice = next((one for one in found if found.count(one) > 1), None) if not match else None
    if twice is not None:
        raise errors.ArgumentError(f"index {twice} is named twice")
    return found


def _json(id: str, policy: str, config: dict[str, Any], result: Evaluation) -> dict[str, Any]:
    return {
        "env": id,
        "policy": policy,
        "config": config,
        "episodes": len(result.indices),
        "mean": result.mean,
        "std": result.std,
        "min": float(result.returns.min()),
        "max": float(result.returns.max()),
        "mean_length": float(result.lengths.mean()),
        "indices": result.indices.tolist(),
        "returns": result.returns.tolist(),
        "lengths": result.lengths.tolist(),
    }
