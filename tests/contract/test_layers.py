"""Frame stack and normalisation: Gymnasium's own numbers where its wrappers are right, and right
where they are not: partial resets, final observations, returns of episodes that are over."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.wrappers import FrameStackObservation
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, TransformObservation
from hypothesis import given
from hypothesis import strategies as st

import corral
from tests.support import CASES, FAULTY, MODES, ODD, Case, assert_same, row, sampled

CART_POLE = CASES[1]
STEPS = 120


def of_doubles(envs: Any) -> Any:
    """Gymnasium's wrappers compute in the observations' dtype; here, in float64."""
    low, high = -np.inf, np.inf
    single = Box(low, high, envs.single_observation_space.shape, np.float64)
    batch = Box(low, high, envs.observation_space.shape, np.float64)
    return TransformObservation(envs, lambda obs: obs.astype(np.float64), batch, single)


def normalized_in_doubles(envs: Any) -> Any:
    """Gymnasium's wrapper with statistics that begin in float64 too."""
    theirs = NormalizeObservation(envs)
    theirs.obs_rms.mean = theirs.obs_rms.mean.astype(np.float64)
    theirs.obs_rms.var = theirs.obs_rms.var.astype(np.float64)
    return theirs


def single(observations: Any) -> Any:
    """As float32, which Gymnasium's wrapper leaves to NumPy before 1.4."""
    return observations.astype(np.float32)


def moments(seen: list[Any]) -> tuple[Any, Any]:
    """Mean and variance of all that was seen, and of what statistics begin with: 1e-4 of mean 0,
    variance 1."""
    weight = 1e-4 + len(seen)
    mean = np.sum(seen, axis=0, dtype=float) / weight
    squares = np.sum((np.array(seen, dtype=float) - mean) ** 2, axis=0)
    return mean, (squares + 1e-4 * (1 + mean**2)) / weight


class TestFrameStack:
    @pytest.mark.parametrize("case", CASES, ids=str)
    @pytest.mark.parametrize("k", [1, 4])
    def test_every_env_shows_gymnasiums_stack(self, case: Case, k: int) -> None:
        envs = case.make_vec(3, "next_step", frame_stack=k)
        singles = [FrameStackObservation(case.make_gymnasium(), k) for _ in range(3)]
        observations, _ = envs.reset(seed=5)
        for i, single in enumerate(singles):
            assert_same(row(observations, i), single.reset(seed=5 + i)[0], "the first stack")
        over = np.zeros(3, dtype=bool)
        for t, actions in zip(range(STEPS), sampled(envs, 0)):
            observations, _, terminated, truncated, _ = envs.step(actions)
            for i, single in enumerate(singles):
                expected = single.reset()[0] if over[i] else single.step(row(actions, i))[0]
                assert_same(row(observations, i), expected, f"step {t}, env {i}")
            over = terminated | truncated
        assert envs.observation_space.contains(observations)

    @pytest.mark.parametrize("mode", MODES)
    def test_the_space_has_the_frames_and_holds_what_is_shown(self, mode: str) -> None:
        envs = corral.make_vec("CartPole-v1", 3, autoreset_mode=mode, frame_stack=4)
        assert envs.single_observation_space.shape == (4, 4)
        assert envs.observation_space.shape == (3, 4, 4)
        one = corral.make_vec("CartPole-v1").single_observation_space
        assert isinstance(envs.single_observation_space, Box)
        assert isinstance(one, Box)
        assert (envs.single_observation_space.low == one.low).all()
        assert envs.reset(seed=0)[0] in envs.observation_space

    @given(
        mode=st.sampled_from(MODES),
        k=st.integers(1, 5),
        seed=st.integers(0, 1000),
        masks=st.lists(st.none() | st.lists(st.booleans(), min_size=3, max_size=3), max_size=25),
    )
    def test_a_mask_resets_its_own_stacks_and_no_other(
        self, mode: str, k: int, seed: int, masks: list[list[bool] | None]
    ) -> None:
        """Against a list of all that the same env without a stack shows."""
        plain, stacked = (
            corral.make_vec(
                "CartPole-v1", 3, autoreset_mode=mode, max_episode_steps=4, frame_stack=frames
            )
            for frames in (None, k)
        )
        shown = [[first] for first in plain.reset(seed=seed)[0]]
        stacked.reset(seed=seed)
        over = np.zeros(3, dtype=bool)
        for t, mask in enumerate(masks):
            if mode == "disabled" and over.any():
                mask = [bool(asked) for asked in over]
            if mask is not None and not any(mask):
                mask = None
            if mask is not None:
                options = {"reset_mask": np.array(mask)}
                bare, got = (envs.reset(options=options)[0] for envs in (plain, stacked))
                for i in np.flatnonzero(mask):
                    shown[i] = [bare[i]]
                    over[i] = False
            else:
                actions = np.full(3, t % 2)
                bare, _, terminated, truncated, infos = plain.step(actions)
                got, *_, got_infos = stacked.step(actions)
                was_over, over = over, terminated | truncated
                for i in range(3):
                    if mode == "same_step" and over[i]:
                        last = [*shown[i], infos["final_obs"][i]]
                        expected = [last[max(0, len(last) - 1 - back)] for back in range(k)][::-1]
                        assert_same(got_infos["final_obs"][i], np.stack(expected), "final_obs")
                    begins = (mode == "next_step" and was_over[i]) or (
                        mode == "same_step" and over[i]
                    )
                    shown[i] = [bare[i]] if begins else [*shown[i], bare[i]]
                if mode == "same_step":
                    over[:] = False
            for i in range(3):
                frames = [shown[i][max(0, len(shown[i]) - 1 - back)] for back in range(k)]
                assert_same(got[i], np.stack(frames[::-1]), f"call {t}, env {i}")
            assert_same(stacked.observe(), got, "observing changes nothing")

    def test_kept_stacks_are_never_overwritten(self) -> None:
        envs = corral.make_vec("CartPole-v1", 4, frame_stack=3, seed=0)
        kept = [envs.reset()[0]]
        copies = [kept[0].copy()]
        for _, actions in zip(range(100), sampled(envs, 0)):
            kept.append(envs.step(actions)[0])
            copies.append(kept[-1].copy())
        assert_same(kept, copies)

    def test_send_and_recv_of_few_envs_at_a_time_stack_as_step_does(self) -> None:
        options: dict[str, Any] = {"frame_stack": 3, "max_episode_steps": 7, "seed": 0}
        whole = corral.make_vec("CartPole-v1", 4, **options)
        parts = corral.make_vec("CartPole-v1", 4, batch_size=1, num_threads=2, **options)
        expected = [[first] for first in whole.reset()[0]]
        for t in range(30):
            for i, stack in enumerate(whole.step(np.full(4, t % 2))[0]):
                expected[i].append(stack)
        parts.async_reset()
        seen = [0] * 4
        while min(seen) < len(expected[0]):
            stacks, *_, infos = parts.recv()
            (i,) = infos["env_id"]
            assert_same(stacks[0], expected[i][seen[i]], f"env {i}, row {seen[i]}")
            seen[i] += 1
            if seen[i] < len(expected[0]):
                parts.send(np.array([(seen[i] - 1) % 2]), [i])

    @pytest.mark.parametrize("wrong", [0, -1, 2.5, "4", True, 1 << 60])
    def test_a_wrong_number_of_frames_is_refused(self, wrong: Any) -> None:
        with pytest.raises(
            (corral.errors.ArgumentError, corral.errors.ArgumentTypeError)
        ) as caught:
            corral.make_vec("CartPole-v1", 2, frame_stack=wrong)
        assert "frame_stack" in str(caught.value)

    def test_leaves_without_a_fixed_shape_are_refused_by_name(self) -> None:
        with pytest.raises(corral.errors.UnsupportedError, match=r"leaf '.* is not of fixed"):
            corral.make_vec(ODD, 2, autoreset_mode="same_step", frame_stack=2)


class TestNormalizeObservation:
    @pytest.mark.parametrize("num_envs", [1, 3, 9, 200])
    def test_the_numbers_are_gymnasiums_bit_for_bit_in_float64(self, num_envs: int) -> None:
        envs = CART_POLE.make_vec(num_envs, "next_step", normalize_observation=True)
        theirs = normalized_in_doubles(of_doubles(CART_POLE.make_vec(num_envs, "next_step")))
        assert_same(envs.reset(seed=3)[0], single(theirs.reset(seed=3)[0]))
        for _, actions in zip(range(STEPS), sampled(envs, 0)):
            assert_same(envs.step(actions)[0], single(theirs.step(actions)[0]))
        ours = envs.observation_normalization
        assert ours is not None
        assert_same(ours.mean, theirs.obs_rms.mean)
        assert_same(ours.var, theirs.obs_rms.var)
        assert ours.count == theirs.obs_rms.count

    def test_gymnasiums_own_float32_statistics_agree_to_their_rounding(self) -> None:
        envs = CART_POLE.make_vec(8, "next_step", normalize_observation=True)
        theirs = NormalizeObservation(CART_POLE.make_vec(8, "next_step"))
        envs.reset(seed=3)
        theirs.reset(seed=3)
        for _, actions in zip(range(STEPS), sampled(envs, 0)):
            np.testing.assert_allclose(
                envs.step(actions)[0], theirs.step(actions)[0], rtol=1e-3, atol=1e-4
            )

    def test_pixels_are_gymnasiums_bit_for_bit(self) -> None:
        maze = CASES[2]
        envs = maze.make_vec(3, "next_step", normalize_observation=True)
        theirs = normalized_in_doubles(maze.make_vec(3, "next_step"))
        assert_same(envs.reset(seed=3)[0], single(theirs.reset(seed=3)[0]))
        for _, actions in zip(range(15), sampled(envs, 0)):
            assert_same(envs.step(actions)[0], single(theirs.step(actions)[0]))
        assert envs.single_observation_space.dtype == np.float32

    def test_slots_that_a_mask_leaves_alone_do_not_count_again(self) -> None:
        envs = corral.make_vec("CartPole-v1", 4, normalize_observation=True)
        normalization = envs.observation_normalization
        assert normalization is not None
        envs.reset(seed=0)
        before = normalization.count
        mask = {"reset_mask": np.array([True, False, False, False])}
        envs.reset(options=mask)
        assert normalization.count == before + 1
        envs.observe()
        assert normalization.count == before + 1
        # Gymnasium's statistics would take all four rows; its wrapper refuses the mask.
        theirs = NormalizeObservation(corral.make_vec("CartPole-v1", 4))
        theirs.reset(seed=0)
        with pytest.raises((ValueError, AssertionError)):
            theirs.reset(options=mask)

    def test_final_observations_count_and_are_normalised(self) -> None:
        options: dict[str, Any] = {"autoreset_mode": "same_step", "max_episode_steps": 5}
        envs = corral.make_vec("CartPole-v1", 3, normalize_observation=True, **options)
        plain = corral.make_vec("CartPole-v1", 3, **options)
        normalization = envs.observation_normalization
        assert normalization is not None
        seen = list(plain.reset(seed=0)[0])
        envs.reset(seed=0)
        for _, actions in zip(range(20), sampled(envs, 0)):
            bare, *_, bare_infos = plain.step(actions)
            got, *_, infos = envs.step(actions)
            seen += list(bare)
            finals = [final for final in bare_infos.get("final_obs", ()) if final is not None]
            seen += finals
            mean, var = moments(seen)
            np.testing.assert_allclose(
                got, (bare - mean) / np.sqrt(var + 1e-8), rtol=1e-3, atol=1e-3
            )
            for i, final in enumerate(bare_infos.get("final_obs", ())):
                if final is not None:
                    expected = (final - mean) / np.sqrt(var + 1e-8)
                    np.testing.assert_allclose(
                        infos["final_obs"][i], expected, rtol=1e-3, atol=1e-3
                    )
        assert normalization.count == pytest.approx(1e-4 + len(seen))

    def test_a_dict_keeps_its_labels_and_names_its_means(self) -> None:
        envs = corral.make_vec(FAULTY, 2, normalize_observation=True, frame_stack=3)
        normalization = envs.observation_normalization
        assert normalization is not None
        plain = corral.make_vec(FAULTY, 2)
        got, bare = envs.reset(seed=1)[0], plain.reset(seed=1)[0]
        assert got["level"].dtype == np.float32
        assert (got["body"]["awake"] == bare["body"]["awake"][:, None]).all()
        assert isinstance(normalization.mean, dict)
        assert normalization.mean["body.joints"].shape == (3, 2)

    def test_what_has_nothing_to_normalise_is_refused(self) -> None:
        with pytest.raises(
            corral.errors.ArgumentTypeError, match="normalize_observation is a bool"
        ):
            corral.make_vec("CartPole-v1", 2, normalize_observation=1)  # type: ignore[arg-type]


class TestNormalizeReward:
    @pytest.mark.parametrize("num_envs", [1, 3, 9, 200])
    @pytest.mark.parametrize("case", CASES[1:4], ids=str)
    def test_the_numbers_are_gymnasiums_bit_for_bit_in_float64(
        self, case: Case, num_envs: int
    ) -> None:
        """In SAME_STEP, where Gymnasium 1.4 forgets the returns of episodes that are over."""
        if not hasattr(NormalizeReward(case.make_vec(1, "same_step")), "_autoreset_mode"):
            pytest.skip("this Gymnasium takes every mode for NEXT_STEP")
        envs = case.make_vec(num_envs, "same_step", normalize_reward=True, reward_gamma=0.9)
        theirs = NormalizeReward(case.make_vec(num_envs, "same_step"), gamma=0.9)
        theirs.accumulated_reward = theirs.accumulated_reward.astype(np.float64)
        envs.reset(seed=3)
        theirs.reset(seed=3)
        for _, actions in zip(range(STEPS), sampled(envs, 0)):
            assert_same(envs.step(actions)[1], theirs.step(actions)[1])
        ours = envs.reward_normalization
        assert ours is not None
        assert_same(np.float64(ours.var[()]), np.float64(theirs.return_rms.var))

    def test_gymnasiums_own_float32_returns_agree_to_their_rounding(self) -> None:
        envs = corral.make_vec("CartPole-v1", 8, normalize_reward=True)
        theirs = NormalizeReward(corral.make_vec("CartPole-v1", 8))
        envs.reset(seed=3)
        theirs.reset(seed=3)
        # No pole falls in eight steps left and right.
        for t in range(8):
            actions = np.full(8, t % 2)
            np.testing.assert_allclose(envs.step(actions)[1], theirs.step(actions)[1], rtol=1e-5)

    @pytest.mark.parametrize("mode", ["next_step", "disabled"])
    def test_an_episodes_return_ends_with_it_where_gymnasiums_leaks(self, mode: str) -> None:
        options: dict[str, Any] = {"autoreset_mode": mode, "max_episode_steps": 3}
        envs = corral.make_vec("CartPole-v1", 2, normalize_reward=True, **options)
        theirs = NormalizeReward(corral.make_vec("CartPole-v1", 2, **options))
        returns: list[float] = []
        leaks = False
        for each in (envs, theirs):
            each.reset(seed=0)
        for t in range(12):
            if t % 4 == 3 and mode == "disabled":
                mask = {"reset_mask": np.array([True, True])}
                envs.reset(options=mask)
                theirs.reset(options=mask)
                continue
            got, leaky = (each.step(np.full(2, t % 2))[1] for each in (envs, theirs))
            if t % 4 != 3:
                returns += 2 * [sum(0.99**k for k in range(t % 4 + 1))]
                np.testing.assert_allclose(got, 1 / np.sqrt(moments(returns)[1] + 1e-8), rtol=1e-6)
                leaks |= not np.allclose(got, leaky, rtol=1e-2)
            else:
                assert (got == 0).all()
        # In which mode it leaks differs between Gymnasiums: NEXT_STEP always does.
        assert leaks or mode == "disabled"

    def test_a_mask_forgets_its_own_returns_alone(self) -> None:
        """Gymnasium's wrapper forgets all of them."""
        envs = corral.make_vec("CartPole-v1", 2, normalize_reward=True)
        theirs = NormalizeReward(corral.make_vec("CartPole-v1", 2))
        returns: list[float] = []
        for each in (envs, theirs):
            each.reset(seed=0)
        for t in range(6):
            if t == 3:
                for each in (envs, theirs):
                    each.reset(options={"reset_mask": np.array([True, False])})
            got, wrong = (each.step(np.full(2, t % 2))[1] for each in (envs, theirs))
            returns += [sum(0.99**k for k in range(n)) for n in (t % 3 + 1, t + 1)]
        np.testing.assert_allclose(got, 1 / np.sqrt(moments(returns)[1] + 1e-8), rtol=1e-6)
        assert not np.allclose(got, wrong, rtol=1e-2)

    def test_episode_statistics_are_of_the_envs_own_rewards(self) -> None:
        envs = corral.make_vec(
            "CartPole-v1", 1, normalize_reward=True, episode_statistics=True, max_episode_steps=5
        )
        envs.reset(seed=0)
        for t in range(5):
            *_, infos = envs.step([t % 2])
        assert infos["episode"]["r"] == [5.0]

    @pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan"), "a", True])
    def test_a_wrong_gamma_is_refused(self, wrong: Any) -> None:
        with pytest.raises(
            (corral.errors.ArgumentError, corral.errors.ArgumentTypeError), match="gamma"
        ):
            corral.make_vec("CartPole-v1", 2, normalize_reward=True, reward_gamma=wrong)


LAYERS: dict[str, Any] = {
    "frame_stack": 3,
    "normalize_observation": True,
    "normalize_reward": True,
}


class TestStatistics:
    def test_an_evaluation_takes_the_trainings_statistics_and_leaves_them(self) -> None:
        training, evaluation = (corral.make_vec("CartPole-v1", 4, **LAYERS) for _ in range(2))
        training.reset(seed=0)
        for _, actions in zip(range(50), sampled(training, 0)):
            training.step(actions)
        learnt, used = training.observation_normalization, evaluation.observation_normalization
        assert learnt is not None
        assert used is not None
        used.load(json.loads(json.dumps(learnt.state())))
        used.update = False
        evaluation.reset(seed=9)
        for _, actions in zip(range(50), sampled(evaluation, 1)):
            evaluation.step(actions)
        assert used.state() == learnt.state()
        assert not used.update
        assert learnt.update

    @pytest.mark.parametrize(
        "wrong", [None, {}, {"": {}}, {"": {"count": 1, "mean": [0], "var": [1]}}, {"a": 1}]
    )
    def test_statistics_of_something_else_are_refused(self, wrong: Any) -> None:
        normalization = corral.make_vec("CartPole-v1", 2, **LAYERS).observation_normalization
        assert normalization is not None
        before = normalization.state()
        with pytest.raises(corral.errors.StateError):
            normalization.load(wrong)
        assert normalization.state() == before

    def test_there_are_none_unless_asked_for(self) -> None:
        envs = corral.make_vec("CartPole-v1", 2, frame_stack=2)
        assert envs.observation_normalization is None
        assert envs.reward_normalization is None


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("case", CASES[1:4], ids=str)
def test_a_saved_state_goes_on_bit_for_bit(case: Case, mode: str) -> None:
    here, there = (case.make_vec(3, mode, **LAYERS) for _ in range(2))
    here.reset(seed=0)
    actions = sampled(here, 0)
    for _ in range(23):
        here.step(next(actions))
    there.reset(seed=7)
    there.load_state(here.save_state())
    assert_same(there.observe(), here.observe())
    for t in range(40):
        action = next(actions)
        assert_same(there.step(action), here.step(action), f"step {t}")


def test_gymnasiums_make_vec_passes_the_layers_on() -> None:
    envs = gymnasium.make_vec("corral/CartPole-v1", num_envs=3, **LAYERS)
    assert envs.observation_space.shape == (3, 3, 4)
    assert envs.reset(seed=0)[0] in envs.observation_space
    envs.close()
