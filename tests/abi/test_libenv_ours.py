"""A library that corral exported, loaded by corral: the same envs as without that way round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral

LIBRARY = Path(corral.__file__).parent / "lib" / "libcorral_envs.so"
NUM_ENVS = 4

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="the library of built-in envs was not built: make build"
)


def loaded(**settings: Any) -> corral.VectorEnv:
    options = {"env_id": "CartPole-v1", "max_episode_steps": 25, "cast": True}
    return corral.load_libenv(LIBRARY, NUM_ENVS, options, **settings)


@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_exported_env_plays_as_it_does_here(isolation: str, num_workers: int) -> None:
    here = corral.make_vec(
        "CartPole-v1", NUM_ENVS, autoreset_mode="same_step", max_episode_steps=25, seed=3
    )
    there = loaded(isolation=isolation, num_workers=num_workers, seed=3)
    rng = np.random.default_rng(0)
    ended = np.zeros(2, np.int64)

    def reset(**how: Any) -> None:
        expected, _ = here.reset(**how)
        found, _ = there.reset(**how)
        assert np.array_equal(found["obs"], expected)

    reset()
    reset(seed=5)
    for step in range(300):
        actions = rng.integers(0, 2, NUM_ENVS)
        expected, found = here.step(actions), there.step({"action": actions})
        assert np.array_equal(found[0]["obs"], expected[0])
        for one, other in zip(found[1:4], expected[1:4]):
            assert np.array_equal(one, other)
        finals, others = (infos.get("final_obs") for infos in (found[4], expected[4]))
        assert (finals is None) == (others is None)
        for one, other in zip([] if finals is None else finals, [] if others is None else others):
            assert (one is None) == (other is None)
            assert one is None or np.array_equal(one["obs"], other)
        ended += expected[2].sum(), expected[3].sum()
        if step % 50 == 49:
            mask = np.array([True, False, True, False])
            reset(options={"reset_mask": mask, "index": [step, 0, 9, 0]})
    assert ended.all()
    state = there.save_state()
    after = [there.step({"action": actions})[0]["obs"] for _ in range(40)]
    there.load_state(state)
    again = [there.step({"action": actions})[0]["obs"] for _ in range(40)]
    assert np.array_equal(again, after)
    here.close(), there.close()
