"""The games are those of `tests/parity/games.py`, which plays their published rules in Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import corral
from tests.parity import games

Action = Callable[[Any, Any, np.random.Generator], int]


def at_random(naive: Any, seen: Any, rng: np.random.Generator) -> int:
    """Any action, the illegal ones now and then."""
    mask, count = naive.mask(), ACTIONS[type(naive)]
    if mask is None or not any(mask) or rng.random() < 0.03:
        return int(rng.integers(count))
    return int(rng.choice(np.flatnonzero(mask)))


def to_the_fruit(naive: Any, seen: Any, rng: np.random.Generator) -> int:
    """Mostly the safe move that comes nearest to the fruit."""
    if naive.fruit is None or rng.random() < 0.05:
        return at_random(naive, seen, rng)
    row, column = naive.fruit
    reached = [naive.reached(action) for action in range(4)]
    far = [abs(r - row) + abs(c - column) for r, c in reached]
    return min((not is_safe, far[k], k) for k, is_safe in enumerate(naive.mask()))[2]


def to_a_corner(naive: Any, seen: Any, rng: np.random.Generator) -> int:
    """The first legal move of left, down, right and up, so that tiles become high."""
    if rng.random() < 0.02:
        return int(rng.integers(4))
    mask = naive.mask()
    return next((action for action in (3, 2, 1, 0) if mask[action]), 0)


def towards_four(naive: Any, seen: Any, rng: np.random.Generator) -> int:
    """Mostly wins or blocks at once."""
    room = games.columns_with_room(naive.board)
    for who in (1, -1):
        for column in room:
            if games.has_won(games.with_stone(naive.board, column, who), who):
                return int(column)
    return at_random(naive, seen, rng)


ACTIONS = {games.Catch: 3, games.Snake: 4, games.Game2048: 4, games.ConnectFour: 7}


@dataclass(frozen=True)
class Game:
    """A game with options, how it is played, and how long."""

    id: str
    naive: type
    seeds: int
    episodes: int = 2
    options: dict[str, Any] = field(default_factory=dict)
    play: Action = at_random
    least_steps: int = 0

    def __str__(self) -> str:
        told = [f"{name}={value}" for name, value in self.options.items()]
        return " ".join([self.id, *told, self.play.__name__])


CATCH, SNAKE, GAME_2048, FOUR = "Catch-v0", "Snake-v0", "2048-v0", "ConnectFour-v0"
GAMES = [
    Game(CATCH, games.Catch, 150, 3),
    Game(CATCH, games.Catch, 20, options={"rows": 2, "columns": 3}),
    Game(CATCH, games.Catch, 20, options={"rows": 7, "columns": 12}),
    Game(SNAKE, games.Snake, 15),
    Game(SNAKE, games.Snake, 20, 1, play=to_the_fruit, least_steps=2000),
    Game(SNAKE, games.Snake, 100, options={"rows": 2, "columns": 3}, play=to_the_fruit),
    Game(SNAKE, games.Snake, 50, options={"rows": 5, "columns": 3}, play=to_the_fruit),
    Game(GAME_2048, games.Game2048, 15),
    Game(GAME_2048, games.Game2048, 8, 1, play=to_a_corner, least_steps=1500),
    Game(FOUR, games.ConnectFour, 100),
    Game(FOUR, games.ConnectFour, 20, play=towards_four, options={"first": "player"}),
    Game(FOUR, games.ConnectFour, 20, options={"opponent": "greedy"}),
    Game(FOUR, games.ConnectFour, 30, options={"opponent": "greedy"}, play=towards_four),
    Game(FOUR, games.ConnectFour, 20, options={"opponent": "minimax", "depth": 1}),
    Game(
        FOUR,
        games.ConnectFour,
        10,
        options={"opponent": "minimax", "depth": 2, "first": "opponent"},
        play=towards_four,
    ),
    Game(FOUR, games.ConnectFour, 2, options={"opponent": "minimax", "depth": 3}),
    pytest.param(
        Game(
            FOUR,
            games.ConnectFour,
            4,
            options={"opponent": "minimax", "depth": 4},
            play=towards_four,
        ),
        marks=pytest.mark.thorough,
    ),
]


def mask_of(info: dict[str, Any]) -> list[bool] | None:
    mask = info.get("action_mask")
    return None if mask is None else [bool(allowed) for allowed in mask]


def assert_seen(got: Any, expected: Any, where: str) -> None:
    assert got.dtype == expected.dtype, where
    np.testing.assert_array_equal(got, expected, err_msg=where)


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_a_game_is_the_naive_one_step_by_step(game: Game) -> None:
    ours = corral.make(game.id, max_episode_steps=-1, **game.options)
    steps, rewards = 0, set()
    for seed in range(game.seeds):
        rng, naive = np.random.default_rng([seed, 1]), game.naive(seed, **game.options)
        for episode in range(game.episodes):
            where = f"seed {seed}, episode {episode}"
            got, info = ours.reset(seed=seed if episode == 0 else None)
            expected, over = naive.reset(), False
            assert_seen(got, expected, where)
            assert ours.observation_space.contains(got)
            while not over:
                assert mask_of(info) == naive.mask(), where
                action = game.play(naive, expected, rng)
                expected, reward, over = naive.step(action)
                got, our_reward, our_over, truncated, info = ours.step(action)
                steps += 1
                assert (our_reward, our_over, truncated) == (reward, over, False), where
                assert_seen(got, expected, f"{where}, step {steps}")
                rewards.add(reward)
                if game.id == GAME_2048:
                    assert info["highest"] == max(naive.tiles.values())
            assert mask_of(info) == naive.mask(), where
    print(f"{game}: {steps} steps, rewards {sorted(rewards)}")
    assert steps >= game.least_steps
    assert len(rewards) > 1


@pytest.mark.parametrize("id", [CATCH, SNAKE, GAME_2048, FOUR])
def test_an_index_is_the_episode_of_that_seed(id: str) -> None:
    env, seeded = corral.make(id), corral.make(id)
    env.reset(seed=5)
    for index in (0, 3, 2**40):
        got, info = env.reset(options={"index": index})
        expected, told = seeded.reset(seed=index)
        rng = np.random.default_rng(index)
        for _ in range(60):
            assert_seen(got, expected, f"index {index}")
            assert mask_of(info) == mask_of(told)
            action = int(rng.integers(env.action_space.n))
            got, reward, over, _, info = env.step(action)
            expected, *rest, told = seeded.step(action)
            assert rest == [reward, over, False]
            if over:
                break


@pytest.mark.parametrize("id", [CATCH, SNAKE, GAME_2048, FOUR])
def test_a_game_that_is_saved_in_the_middle_goes_on_alike(id: str) -> None:
    options = {"opponent": "minimax", "depth": 3} if id == FOUR else {}
    env, other = corral.make(id, **options), corral.make(id, **options)
    rng = np.random.default_rng(0)
    branched = 0
    for seed in range(30):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            mask = info.get("action_mask", np.ones(env.action_space.n))
            allowed = np.flatnonzero(mask)
            state = env.save_state()
            action = int(rng.choice(allowed))
            *result, truncated, info = env.step(action)
            other.reset(seed=seed + 1000)
            other.load_state(state)
            *again, _, told = other.step(action)
            assert_seen(again[0], result[0], f"seed {seed}")
            assert again[1:] == result[1:]
            assert mask_of(told) == mask_of(info)
            branched += 1
            over = result[2] or truncated or branched % 60 == 0
    assert branched > 100


def test_full_games_of_connect_four_are_draws() -> None:
    """With all columns full there is nothing to answer."""
    ends = []
    for seed in range(60):
        env = corral.make(FOUR, opponent="minimax", depth=2)
        naive = games.ConnectFour(seed, "minimax", 2)
        env.reset(seed=seed)
        naive.reset()
        rng, over = np.random.default_rng(seed), False
        while not over:
            # The naive opponent's own choice, for the player.
            naive.board = [[-stone for stone in row] for row in naive.board]
            action = int(rng.choice(naive.options()))
            naive.board = [[-stone for stone in row] for row in naive.board]
            seen, reward, over = naive.step(action)
            got, our_reward, our_over, _, _ = env.step(action)
            assert (our_reward, our_over) == (reward, over)
            assert_seen(got, seen, f"seed {seed}")
        ends.append((reward, bool((seen != 0).all())))
        if (0.0, True) in ends:
            break
    assert (0.0, True) in ends, ends


@pytest.mark.parametrize("id", [SNAKE, GAME_2048, FOUR])
def test_masks_are_followed_where_asked(id: str) -> None:
    envs = corral.make_vec(id, 8, check_actions="masked")
    _, infos = envs.reset(seed=0)
    rng, over = np.random.default_rng(0), np.zeros(8, dtype=bool)
    refused = 0
    for _ in range(200):
        legal = infos["action_mask"].astype(bool)
        actions = np.array([rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in legal])
        for env in np.flatnonzero(~over & ~legal.all(axis=1))[:1]:
            wrong = actions.copy()
            wrong[env] = np.flatnonzero(~legal[env])[0]
            with pytest.raises(corral.errors.InvalidActionError, match=f"env {env}: .* is masked"):
                envs.step(wrong)
            refused += 1
        _, _, terminated, truncated, infos = envs.step(actions)
        over = terminated | truncated
    assert refused > 20


WRONG: list[tuple[str, dict[str, Any], str]] = [
    (CATCH, {"rows": 1}, "rows is an int from 2 to 100, not 1"),
    (CATCH, {"columns": 0}, "columns is an int from 1 to 100, not 0"),
    (CATCH, {"rows": "ten"}, "rows is an int from 2 to 100, not 'ten'"),
    (SNAKE, {"rows": 65}, "rows is an int from 2 to 64, not 65"),
    (SNAKE, {"columns": 1}, "columns is an int from 2 to 64, not 1"),
    (SNAKE, {"columns": -3}, "columns is an int from 2 to 64, not -3"),
    (FOUR, {"opponent": "perfect"}, "is one of 'random', 'greedy', 'minimax', not 'perfect'"),
    (FOUR, {"first": "me"}, "is one of 'random', 'player', 'opponent', not 'me'"),
    (FOUR, {"depth": 0}, "depth is an int from 1 to 12, not 0"),
    (FOUR, {"depth": 13}, "depth is an int from 1 to 12, not 13"),
]


@pytest.mark.parametrize(("id", "options", "what"), WRONG)
def test_an_option_that_makes_no_sense_is_named(id: str, options: Any, what: str) -> None:
    with pytest.raises(corral.errors.OptionValueError, match=re.escape(what)):
        corral.make_vec(id, 2, **options)


def test_an_option_that_2048_does_not_take_is_named() -> None:
    with pytest.raises(corral.errors.UnknownOptionError, match="takes no options"):
        corral.make_vec(GAME_2048, 2, size=5)


def test_texts_show_the_board() -> None:
    env = corral.make(CATCH, render_mode="ansi", rows=4)
    seen, _ = env.reset(seed=0)
    lines = str(env.render()).splitlines()
    assert [line.split() for line in lines] == [
        [("=" if row == 3 else "o") if value else "." for value in values]
        for row, values in enumerate(seen)
    ]
    env = corral.make(SNAKE, render_mode="ansi", rows=3, columns=4)
    seen, _ = env.reset(seed=1)
    signs = {(1, 1): "@", (0, 0): "."}
    text = [line.split() for line in str(env.render()).splitlines()]
    assert text == [
        ["*" if fruit else signs[int(body), int(head)] for body, head, _, fruit, _ in row]
        for row in seen
    ]
    env = corral.make(GAME_2048, render_mode="ansi")
    seen, _ = env.reset(seed=2)
    text = [line.split() for line in str(env.render()).splitlines()]
    assert text == [[str(2**k) if k else "." for k in row] for row in seen.tolist()]
    env = corral.make(FOUR, render_mode="ansi", first="opponent")
    env.reset(seed=3)
    seen, *_ = env.step(2)
    *text, numbers = [line.split() for line in str(env.render()).splitlines()]
    assert text == [[".xo"[stone] for stone in row] for row in seen.tolist()]
    assert numbers == list("0123456")
