"""Are the statistics those that are published: rliable's and SciPy's?"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from tests.abi import peers
from tests.abi.venvs import fetched

THEIRS = """
import json, sys
import numpy as np, scipy.stats
from rliable import library, metrics

job = json.load(sys.stdin)
a, b = np.array(job["a"]), np.array(job["b"])  # (runs, tasks)
reps = 8000

def interval(data, function):
    _, found = library.get_interval_estimates(
        {"x": data}, lambda *scores: np.array([function(*scores)]), reps=reps,
        random_state=np.random.RandomState(1))
    return np.ravel(found["x"]).tolist()

one = a.reshape(-1, 1)
signs = library.get_interval_estimates
told = {
    "iqm": metrics.aggregate_iqm(a), "mean": metrics.aggregate_mean(a),
    "median": float(np.median(a)),
    "iqm interval": interval(one, metrics.aggregate_iqm),
    "mean interval": interval(one, metrics.aggregate_mean),
    "iqm strata": interval(a, metrics.aggregate_iqm),
    "mean strata": interval(a, metrics.aggregate_mean),
    "trimmed": [float(scipy.stats.trim_mean(np.arange(n) ** 1.5, 0.25)) for n in range(1, 30)],
    "improvement": metrics.probability_of_improvement(a.reshape(1, -1), b.reshape(1, -1)),
}
for name, function in (("median", np.median), ("mean", np.mean)):
    found = scipy.stats.bootstrap(
        (a.ravel(),), function, n_resamples=reps, method="percentile", rng=np.random.default_rng(3))
    told[f"scipy {name}"] = list(found.confidence_interval)
found = scipy.stats.bootstrap(
    (a.ravel(), b.ravel()), lambda x, y, axis: np.mean(x, axis) - np.mean(y, axis), paired=True,
    n_resamples=reps, method="percentile", vectorized=True, rng=np.random.default_rng(3))
told["scipy paired"] = list(found.confidence_interval)
print(json.dumps({k: v if isinstance(v, list) else float(v) for k, v in told.items()}))
"""
# Returns of 6 runs of 15 levels that are not alike, with ties.
RNG = np.random.default_rng(5)
A = np.round(RNG.gamma(2.0, 10.0, (6, 15)) * np.arange(1, 16), 0)
B = np.round(A - 20 + RNG.normal(0, 30, A.shape), 0)


@functools.cache
def theirs() -> dict[str, Any]:
    python = fetched(peers.venv_python, "rliable")
    job = json.dumps({"a": A.tolist(), "b": B.tolist()})
    ran = subprocess.run(
        [python, "-c", THEIRS], input=job, capture_output=True, text=True, timeout=280
    )
    assert ran.returncode == 0, ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def of(returns: Any, **more: Any) -> corral.Evaluation:
    returns = np.asarray(returns, dtype=np.float64).ravel()
    return corral.Evaluation(
        np.arange(len(returns)), returns, np.ones(len(returns), np.int64), **more
    )


LEVELS = np.tile(np.arange(15), 6)


@pytest.mark.xdist_group("rliable")
def test_the_statistics_are_rliables_and_scipys() -> None:
    told, found = theirs(), of(A)
    assert found.iqm == pytest.approx(told["iqm"], rel=1e-14)
    assert found.mean == pytest.approx(told["mean"], rel=1e-14)
    assert found.median == told["median"]
    ours = [of(np.arange(n) ** 1.5).iqm for n in range(1, 30)]
    assert ours == pytest.approx(told["trimmed"], rel=1e-14)


@pytest.mark.xdist_group("rliable")
@pytest.mark.parametrize("strata", [None, LEVELS, LEVELS.astype(str).tolist()])
@pytest.mark.parametrize("statistic", ["iqm", "mean"])
def test_the_intervals_are_rliables(statistic: str, strata: Any) -> None:
    """Both are drawn at random: the ends agree within the error of so many draws."""
    expected = theirs()[f"{statistic} {'interval' if strata is None else 'strata'}"]
    ours = of(A).interval(statistic, resamples=20_000, strata=strata)
    width = expected[1] - expected[0]
    np.testing.assert_allclose(ours, expected, atol=0.03 * width)
    # The levels differ: whoever draws among all of them finds a wider interval.
    other = theirs()[f"{statistic} {'strata' if strata is None else 'interval'}"]
    assert abs((ours.high - ours.low) - (other[1] - other[0])) > 0.1 * width


@pytest.mark.xdist_group("rliable")
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_the_intervals_are_scipys(statistic: str) -> None:
    expected = theirs()[f"scipy {statistic}"]
    ours = of(A).interval(statistic, resamples=20_000)
    np.testing.assert_allclose(ours, expected, atol=0.05 * (expected[1] - expected[0]))


@pytest.mark.xdist_group("rliable")
def test_a_comparison_is_paired_as_scipys_and_improves_as_rliables() -> None:
    told, compared = theirs(), corral.compare(of(A), of(B))
    assert compared.probability_of_improvement == pytest.approx(told["improvement"], rel=1e-12)
    expected = told["scipy paired"]
    ours = compared.interval("mean", resamples=20_000)
    np.testing.assert_allclose(ours, expected, atol=0.05 * (expected[1] - expected[0]))
    # Not paired, it would be several times as wide.
    assert of(A).interval("mean").high - of(A).interval("mean").low > 3 * (ours.high - ours.low)


def test_a_comparison_by_hand() -> None:
    a, b = of([1, 2, 3, 4, 10, 6]), of([1, 1, 5, 4, 1, 2])
    compared = corral.compare(a, b)
    assert compared.differences.tolist() == [0, 1, -2, 0, 9, 4]
    assert compared.difference("mean") == pytest.approx(2.0)
    assert compared.difference("median") == 3.5 - 1.5
    # Of six, one goes at either end.
    assert compared.difference() == (2 + 3 + 4 + 6) / 4 - (1 + 1 + 2 + 4) / 4
    assert compared.probability_of_improvement == (3 + 2 / 2) / 6
    low, high = compared.interval("probability_of_improvement")
    assert 0 <= low < 4 / 6 < high <= 1
    back = corral.compare(b, a)
    assert back.probability_of_improvement == pytest.approx(1 - 4 / 6)
    assert "6 episodes" in str(compared)


def test_evaluations_of_other_indices_or_envs_are_not_compared() -> None:
    a = of([1, 2, 3], id="CartPole-v1")
    with pytest.raises(ArgumentError, match="3 in a, 2 in b"):
        corral.compare(a, of([1, 2], id="CartPole-v1"))
    other = corral.Evaluation(np.array([0, 2, 1]), a.returns, a.lengths, id="CartPole-v1")
    with pytest.raises(ArgumentError, match="number 1 is 1 in a and 2 in b"):
        corral.compare(a, other)
    with pytest.raises(ArgumentError, match="'CartPole-v1' and b one of 'Maze-v0'"):
        corral.compare(a, of([1, 2, 3], id="Maze-v0"))
    with pytest.raises(ArgumentTypeError, match="b is an Evaluation"):
        corral.compare(a, [1, 2, 3])  # type: ignore[arg-type]


def test_an_interval_is_the_same_again_and_another_by_another_seed() -> None:
    found = of(A)
    assert found.interval() == found.interval(seed=0) != found.interval(seed=1)
    low, high = found.interval(confidence=0.5)
    wide = found.interval(confidence=0.99)
    assert wide.low < low < found.iqm < high < wide.high
    assert of([7.0]).interval() == (7.0, 7.0)


def test_an_interval_of_many_episodes_takes_little_memory() -> None:
    program = (
        "import resource, numpy as np, corral\n"
        "n = 300_000\n"
        "e = corral.Evaluation(np.arange(n), np.ones(n), np.ones(n, np.int64))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert e.interval('mean', resamples=100) == (1.0, 1.0)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=90
    )
    # All at once would be 240 MB for the numbers of the episodes alone.
    assert int(ran.stdout) < 200_000, ran.stderr


def test_successes_have_a_rate_and_an_interval() -> None:
    successes = np.array([True] * 30 + [False] * 10)
    found = of(np.zeros(40), successes=successes)
    assert found.success_rate == 0.75
    low, high = found.interval("success_rate", resamples=20_000)
    # The binomial's own, within its discreteness.
    spread = 1.96 * np.sqrt(0.75 * 0.25 / 40)
    assert low == pytest.approx(0.75 - spread, abs=0.026)
    assert high == pytest.approx(0.75 + spread, abs=0.026)


def test_a_success_rate_that_nobody_asked_for_says_so() -> None:
    with pytest.raises(UnsupportedError, match="success="):
        _ = of([1]).success_rate
    with pytest.raises(UnsupportedError, match="success="):
        of([1]).interval("success_rate")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"statistic": "mode"}, ArgumentError, "'mode'.*'iqm'"),
        ({"statistic": 3}, ArgumentTypeError, "statistic"),
        ({"confidence": 0}, ArgumentError, "confidence is 0"),
        ({"confidence": 95}, ArgumentError, r"0\.95 for 95 %"),
        ({"confidence": "0.95"}, ArgumentTypeError, "confidence"),
        ({"confidence": float("nan")}, ArgumentError, "confidence"),
        ({"resamples": 0}, ArgumentError, "resamples"),
        ({"resamples": 1.5}, ArgumentTypeError, "resamples"),
        ({"seed": -1}, ArgumentError, "seed"),
        ({"strata": [1, 2]}, ArgumentError, "one label for each of 3"),
    ],
)
def test_arguments_of_an_interval_that_make_no_sense_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        of([1, 2, 3]).interval(**arguments)
    with pytest.raises(error, match=message):
        corral.compare(of([1, 2, 3]), of([1, 2, 3])).interval(**arguments)


def test_a_plot_is_written_and_is_no_plot_of_pyplots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = of(A, id="CartPole-v1").plot(tmp_path / "returns.png")
    assert (tmp_path / "returns.png").read_bytes()[1:4] == b"PNG"
    axes = figure.axes[0]
    told = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"IQM {of(A).iqm:.4g}" in told
    assert "CartPole-v1: 90 episodes" in axes.get_title(loc="left")
    assert sum(bar.get_height() for bar in axes.patches if bar.get_height() < 90) >= 90


@pytest.mark.parametrize("returns", [[3.0], [2.0] * 9, [1.0, np.nan, np.inf], [np.nan]])
def test_a_plot_of_odd_returns_is_drawn(returns: list[float], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    of(returns).plot(tmp_path / "odd.png")
    assert (tmp_path / "odd.png").exists()


def test_without_matplotlib_a_plot_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnsupportedError, match="pip install matplotlib"):
        of([1]).plot()
