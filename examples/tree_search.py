"""Plays Connect Four by Monte Carlo tree search over saved states, against minimax of 4 stones.

    python examples/tree_search.py [--quick]

A node of the tree is the state of an env (`save_state`). A new node is rated by games at random
from its state on, 64 of them in a batch (`load_state`). A state holds the opponent's random stream,
too: where several columns are as good for the opponent, the search knows which one it will draw.
Needs nothing but corral. Measured on 2 shared cores:

    20 games, 100 simulations a move: 20 won, 0 drawn, 0 lost in 141.3 s
    the first column with room instead: a mean return of -1.00
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

import numpy as np

import corral

ID = "ConnectFour-v0"
OPTIONS = {"opponent": "minimax", "depth": 4}
ROLLOUTS = 64
COLUMNS = 7


@dataclass
class Node:
    """A state, and what was found of its actions."""

    state: bytes
    legal: np.ndarray
    visits: np.ndarray = field(default_factory=lambda: np.zeros(COLUMNS))
    total: np.ndarray = field(default_factory=lambda: np.zeros(COLUMNS))
    after: dict[int, Node | float] = field(default_factory=dict)  # a number where the game is over

    def choose(self) -> int:
        """The action of the highest upper confidence bound."""
        visits = np.maximum(self.visits, 1)
        bound = self.total / visits + np.sqrt(np.log(self.visits.sum() + 1) / visits)
        bound[self.visits == 0] = np.inf
        return int(np.where(self.legal, bound, -np.inf).argmax())


class Search:
    """The envs that search plays with."""

    def __init__(self, seed: int) -> None:
        self.one = corral.make(ID, **OPTIONS)
        self.one.reset(seed=seed)
        self.many = corral.make_vec(ID, ROLLOUTS, seed=seed, **OPTIONS)
        self.many.reset()
        self.rng = np.random.default_rng(seed)

    def best(self, state: bytes, observation: np.ndarray, simulations: int) -> int:
        """The action that was tried most from a state."""
        root = Node(state, observation[0] == 0)
        for _ in range(simulations):
            self.simulate(root)
        return int(root.visits.argmax())

    def simulate(self, node: Node) -> float:
        """Follows the best actions to a new node or the game's end; the mean return from there."""
        action = node.choose()
        after = node.after.get(action)
        if isinstance(after, Node):
            value = self.simulate(after)
        elif after is not None:
            value = after
        else:
            self.one.load_state(node.state)
            observation, value, over, *_ = self.one.step(action)
            node.after[action] = value
            if not over:
                node.after[action] = Node(self.one.save_state(), observation[0] == 0)
                value = self.rollout(self.one.save_state())
        node.visits[action] += 1
        node.total[action] += value
        return value

    def rollout(self, state: bytes) -> float:
        """The mean return of games at random from a state on."""
        for env in range(ROLLOUTS):
            self.many.load_state(state, env)
        observations = self.many.observe()
        returns, under_way = np.zeros(ROLLOUTS), np.ones(ROLLOUTS, dtype=bool)
        while under_way.any():
            # The first row is the top one: a column has room where it is empty.
            chance = self.rng.random((ROLLOUTS, COLUMNS)) * (observations[:, 0] == 0)
            observations, rewards, over, *_ = self.many.step(chance.argmax(axis=1))
            returns += rewards * under_way
            under_way &= ~over
        return float(returns.mean())


def play(index: int, simulations: int) -> float:
    """The return of the game of an index."""
    env, search = corral.make(ID, **OPTIONS), Search(index)
    observation, _ = env.reset(options={"index": index})
    over, reward = False, 0.0
    while not over:
        action = search.best(env.save_state(), observation, simulations)
        observation, reward, over, *_ = env.step(action)
    return reward


def main(quick: bool) -> None:
    """Plays some games, one of them and with little thought if `quick`."""
    games, simulations = (1, 10) if quick else (20, 100)
    began = time.perf_counter()
    returns = np.array([play(index, simulations) for index in range(games)])
    seconds = time.perf_counter() - began
    won, lost = int((returns > 0).sum()), int((returns < 0).sum())
    print(
        f"{games} games, {simulations} simulations a move: {won} won, {games - won - lost} drawn, "
        f"{lost} lost in {seconds:.1f} s"
    )
    plain = corral.evaluate(
        lambda observations, infos: np.argmax(infos["action_mask"], axis=1),
        ID,
        range(games),
        **OPTIONS,
    )
    print(f"the first column with room instead: a mean return of {plain.mean:.2f}")


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
