"""PPO for discrete actions in NumPy: networks, backpropagation, Adam, GAE and the training loop.

It follows Schulman et al. 2017 (https://arxiv.org/abs/1707.06347), with GAE, normalised advantages,
an entropy bonus and an annealed learning rate, for observations of one array of numbers, which are
taken as flat float32, and `Discrete` actions.

The environments run in Gymnasium's NEXT_STEP mode: the step after an episode's end only resets, and
is left out of the loss. In return every other step's successor is the next observation, also when
it ends an episode, so bootstrapping a truncated one from its final observation is no special case.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

import corral

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Config:
    """The hyper-parameters; the defaults suit CartPole-v1."""

    env: str = "CartPole-v1"
    options: Mapping[str, Any] = field(default_factory=dict)  # of the env
    solved_return: float = 495.0  # stop when the last 100 training episodes average this
    max_seconds: float = 55.0  # stop at the first update after this
    max_steps: int = 500_000  # of all envs together; the learning rate reaches 0 here
    num_envs: int = 64
    rollout_steps: int = 64  # of each env, between two updates
    epochs: int = 6
    minibatches: int = 8
    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 2e-3
    discount: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy_bonus: float = 0.001


class MLP:
    """A perceptron with tanh hidden layers, in float32, with orthogonal initial weights."""

    def __init__(self, sizes: list[int], output_gain: float, rng: np.random.Generator) -> None:
        self.parameters: list[Array] = []  # weight [inputs, outputs], bias [outputs], weight, ...
        for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
            gain = output_gain if layer == len(sizes) - 2 else np.sqrt(2)
            weight = np.linalg.qr(rng.standard_normal((max(inputs, outputs), outputs)))[0][:inputs]
            self.parameters += [(gain * weight).astype(np.float32), np.zeros(outputs, np.float32)]

    def forward(self, inputs: Array) -> list[Array]:
        """Return the output [..., size] of every layer, the inputs themselves first."""
        layers = [inputs]
        for i in range(0, len(self.parameters), 2):
            output = layers[-1] @ self.parameters[i] + self.parameters[i + 1]
            layers.append(output if i + 2 == len(self.parameters) else np.tanh(output))
        return layers

    def backward(self, layers: list[Array], slope: Array) -> list[Array]:
        """Turn d loss / d output [rows, size] into d loss / d parameter, for every parameter."""
        slopes: list[Array] = []
        for i in reversed(range(len(layers) - 1)):
            slopes += [slope.sum(axis=0), layers[i].T @ slope]
            if i > 0:  # back through the tanh that made layers[i]
                slope = (slope @ self.parameters[2 * i].T) * (1 - layers[i] ** 2)
        return slopes[::-1]


class Adam:
    """Adam (Kingma & Ba 2015) with its usual constants."""

    def __init__(self, parameters: list[Array]) -> None:
        self.parameters, self.time = parameters, 0
        self.mean = [np.zeros_like(p) for p in parameters]
        self.square = [np.zeros_like(p) for p in parameters]

    def step(self, slopes: list[Array], learning_rate: float) -> None:
        """Change the parameters in place."""
        self.time += 1
        rate = learning_rate * np.sqrt(1 - 0.999**self.time) / (1 - 0.9**self.time)
        for p, g, m, s in zip(self.parameters, slopes, self.mean, self.square):
            m += 0.1 * (g - m)
            s += 0.001 * (g**2 - s)
            p -= rate * m / (np.sqrt(s) + 1e-8)


def flat(observations: Array) -> Array:
    """Return observations [rows, …] as float32 [rows, size]."""
    return observations.reshape(len(observations), -1).astype(np.float32, copy=False)


def log_softmax(logits: Array) -> Array:
    """Return the log probabilities of logits [rows, actions]."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logs


class Agent:
    """A policy and a value network, which share nothing, and how PPO changes them."""

    def __init__(self, observations: int, actions: int, config: Config, seed: int) -> None:
        self.config, self.rng = config, np.random.default_rng(seed)
        self.policy = MLP([observations, *config.hidden, actions], 0.01, self.rng)
        self.value = MLP([observations, *config.hidden, 1], 1.0, self.rng)
        self.policy_adam = Adam(self.policy.parameters)
        self.value_adam = Adam(self.value.parameters)

    def act(self, observations: Array) -> Array:
        """Return the most probable action [rows] of each observation [rows, …]."""
        best: Array = self.policy.forward(flat(observations))[-1].argmax(axis=1)
        return best

    def sample(self, observations: Array) -> Array:
        """Draw an action [rows] for each observation [rows, …], by the Gumbel-max trick."""
        logits = self.policy.forward(flat(observations))[-1]
        drawn: Array = (logits + self.rng.gumbel(size=logits.shape)).argmax(axis=1)
        return drawn

    def log_probabilities(self, obs: Array, actions: Array) -> Array:
        """Return the log probability [rows] of each action [rows], given observations [rows, …]."""
        logs = log_softmax(self.policy.forward(flat(obs))[-1])
        taken: Array = logs[np.arange(len(obs)), actions]
        return taken

    def estimate(
        self, obs: Array, rewards: Array, terminated: Array, ended: Array
    ) -> tuple[Array, Array]:
        """Return advantages and value targets [time, envs] by GAE; `obs` [time + 1, envs, size].

        Rewards are scaled such that values are about 1 whatever the discount.
        """
        discount, values = self.config.discount, self.value.forward(obs)[-1][..., 0]
        errors = (1 - discount) * rewards + discount * values[1:] * ~terminated - values[:-1]
        decay = discount * self.config.gae_lambda * ~ended
        advantages = np.zeros_like(values)
        for t in reversed(range(len(rewards))):
            advantages[t] = errors[t] + decay[t] * advantages[t + 1]
        return advantages[:-1], advantages[:-1] + values[:-1]

    def update(
        self,
        obs: Array,
        actions: Array,
        advantages: Array,
        targets: Array,
        rate: float,
        old: Array | None = None,
    ) -> None:
        """Train on observations [rows, size] and actions, advantages and value targets [rows].

        `old` [rows] are the log probabilities that the actions were drawn with; by default those of
        the policy as it is.
        """
        if old is None:
            old = self.log_probabilities(obs, actions)
        for _ in range(self.config.epochs):
            for rows in np.array_split(self.rng.permutation(len(obs)), self.config.minibatches):
                layers = self.policy.forward(obs[rows])
                slope = self.policy_slope(layers[-1], actions[rows], advantages[rows], old[rows])
                self.policy_adam.step(self.policy.backward(layers, slope), rate)
                layers = self.value.forward(obs[rows])
                slope = (layers[-1] - targets[rows, None]) / len(rows)  # of half the mean square
                self.value_adam.step(self.value.backward(layers, slope), rate)

    def policy_slope(self, logits: Array, actions: Array, advantages: Array, old: Array) -> Array:
        """Return d loss / d logits [rows, actions], given the old log probabilities [rows]."""
        clip, taken = self.config.clip, (np.arange(len(actions)), actions)
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        logs = log_softmax(logits)
        probabilities = np.exp(logs)
        ratio = np.exp(logs[taken] - old)
        # Elsewhere the loss, -min(ratio * A, clipped ratio * A), does not depend on the ratio.
        active = np.where(advantages > 0, ratio < 1 + clip, ratio > 1 - clip)
        weight = -advantages * ratio * active  # d loss / d log probability of the action taken
        slope: Array = -probabilities * weight[:, None]
        slope[taken] += weight
        entropy = -(probabilities * logs).sum(axis=1, keepdims=True)
        slope += self.config.entropy_bonus * probabilities * (logs + entropy)
        slope /= len(actions)
        return slope


class Progress(NamedTuple):
    """Where training stands after an update."""

    agent: Agent
    steps: int  # of all envs together; those that only reset are not counted
    seconds: float
    episodes: list[tuple[int, float]]  # (steps when it ended, return), of every episode so far

    def mean_return(self) -> float:
        """Return the mean of the last 100 training episodes, or of all while there are fewer."""
        return float(np.mean([value for _, value in self.episodes[-100:]] or [0.0]))


def train(seed: int, config: Config = Config()) -> Iterator[Progress]:
    """Train an agent, yielding after every update, until it is solved or out of time or steps."""
    envs = corral.make_vec(
        config.env, config.num_envs, seed=seed, episode_statistics=True, **config.options
    )
    seen, actions = envs.single_observation_space, envs.single_action_space
    if not isinstance(seen, Box) or not isinstance(actions, Discrete):
        raise TypeError(
            f"{config.env}: PPO here takes one array and Discrete, not {seen}, {actions}"
        )
    agent = Agent(int(np.prod(seen.shape)), int(actions.n), config, seed)
    start, steps = time.perf_counter(), 0
    episodes: list[tuple[int, float]] = []
    envs.reset()
    while steps < config.max_steps and time.perf_counter() - start < config.max_seconds:
        rollout = envs.rollout(agent.sample, config.rollout_steps)
        valid = rollout.valid  # the others only reset in this step
        counts = steps + valid.sum(axis=1).cumsum()
        steps = int(counts[-1])
        ended = rollout.episodes
        assert ended is not None  # for the envs were made with episode_statistics
        episodes += zip(counts[ended.steps].tolist(), ended.returns.tolist())
        obs = rollout.observations
        obs = obs.reshape(*obs.shape[:2], -1).astype(np.float32, copy=False)
        ends = rollout.terminations
        advantages, targets = agent.estimate(obs, rollout.rewards, ends, ends | rollout.truncations)
        obs, taken = obs[:-1], rollout.actions
        rate = config.learning_rate * max(0.0, 1 - steps / config.max_steps)
        agent.update(obs[valid], taken[valid], advantages[valid], targets[valid], rate)
        progress = Progress(agent, steps, time.perf_counter() - start, episodes)
        yield progress
        if progress.mean_return() >= config.solved_return:
            break
    envs.close()
