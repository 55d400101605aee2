"""Render modes: pictures, texts, and nothing."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import corral
from corral import errors


@pytest.mark.parametrize("how", [{"num_threads": 1}, {"num_threads": 2}, {"batch_size": 1}])
def test_ansi_gives_a_text_per_env_or_of_those_named(how: dict[str, int]) -> None:
    envs = corral.make_vec("FrozenLake-v1", 3, render_mode="ansi", is_slippery=False, **how)
    assert envs.render_mode == "ansi"
    assert envs.metadata["render_modes"] == ["rgb_array", "ansi"]
    with pytest.raises(errors.ResetNeededError, match="env 0 shows nothing before its reset"):
        envs.render()
    envs.reset(seed=0)
    if "batch_size" not in how:
        envs.step(np.array([0, 1, 2]))
    texts = envs.render()
    assert texts is not None
    assert len(texts) == 3
    assert all(isinstance(text, str) and "\x1b[41mS" in text for text in texts[:1])
    assert envs.render([1]) == texts[1:2]
    with pytest.raises(errors.ArgumentError, match="env 7 does not exist"):
        envs.render([7])


def test_one_env_and_gymnasiums_makers_take_ansi() -> None:
    for env in (
        corral.make("Taxi-v4", render_mode="ansi"),
        gymnasium.make("corral/Taxi-v4", render_mode="ansi"),
    ):
        env.reset(seed=0)
        assert "|R: | : :" in str(env.render())
    envs = gymnasium.make_vec("corral/Taxi-v4", 2, render_mode="ansi")
    envs.reset(seed=0)
    texts = envs.render()
    assert texts is not None
    assert all(isinstance(text, str) for text in texts)


def test_an_env_without_texts_says_what_it_draws() -> None:
    for make in (corral.make, corral.make_vec):
        with pytest.raises(
            errors.UnsupportedError,
            match=r"CartPole-v1 draws no text: leave render_mode at None or 'rgb_array'",
        ):
            make("CartPole-v1", render_mode="ansi")
    with pytest.raises(errors.UnsupportedError, match=r"nothing to call by name|call anything"):
        corral.make_vec("CartPole-v1", 1).call("ansi")
