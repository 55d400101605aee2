"""Trainers themselves collect experience, mostly of 16 CartPoles: over corral's envs, and over the
envs that their users have. The networks are small, and one thread computes them. The loops of
CleanRL, LeRobot and TRL are written out: CleanRL is no package, and LeRobot and TRL want weights.

The trainers have venvs of their own: `make bench-trainers`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import corral
from corral.bench import Bench, Contender, Loop, Turns, needs

ID = "CartPole-v1"
NUM_ENVS = 16
STEPS = 32
EACH = NUM_ENVS * STEPS


def installed(module: str) -> Any:
    """PyTorch, for a trainer that needs this module."""
    torch = needs("torch", "make bench-trainers")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    needs(module, "make bench-trainers")
    return torch


def cart_poles(mode: str) -> corral.VectorEnv:
    return corral.make_vec(ID, NUM_ENVS, autoreset_mode=mode, seed=0)


def makers() -> list[Callable[[], Any]]:
    return [partial(needs("gymnasium").make, ID)] * NUM_ENVS


@contextmanager
def played(collect: Callable[[], Any], close: Callable[[], Any]) -> Iterator[Turns]:
    """Collects `EACH` steps in a call."""
    yield Loop(lambda _: collect(), [None], EACH)
    close()


# Stable-Baselines3


@contextmanager
def stable_baselines3(make: Callable[[], Any]) -> Iterator[Turns]:
    """PPO's `collect_rollouts`."""
    installed("stable_baselines3")
    model = needs("stable_baselines3").PPO("MlpPolicy", make(), n_steps=STEPS, seed=0, device="cpu")
    _, callback = model._setup_learn(10**9)
    envs, buffer = model.env, model.rollout_buffer
    collect = partial(model.collect_rollouts, envs, callback, buffer, STEPS)
    with played(collect, envs.close) as turns:
        yield turns


def for_sb3() -> Any:
    return corral.to_sb3(cart_poles("same_step"))


def of_sb3(kind: str) -> Any:
    sb3 = needs("stable_baselines3")
    monitored = lambda: sb3.common.monitor.Monitor(needs("gymnasium").make(ID))  # noqa: E731
    return getattr(sb3.common.vec_env, kind)([monitored] * NUM_ENVS)


# CleanRL


def cleanrl_agent(torch: Any) -> tuple[Any, Any]:
    """The critic and the actor of `ppo.py`."""
    nn = torch.nn

    def net(outputs: int) -> Any:
        hidden = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()]
        return nn.Sequential(*hidden, nn.Linear(64, outputs))

    return net(1), net(2)


@contextmanager
def cleanrl(make: Callable[[], Any]) -> Iterator[Turns]:
    """The steps that `ppo.py` plays before an update."""
    torch = installed("gymnasium")
    critic, actor = cleanrl_agent(torch)
    envs = make()
    shape = (STEPS, NUM_ENVS)
    seen = torch.zeros((*shape, 4))
    actions, logprobs, rewards, dones, values = (torch.zeros(shape) for _ in range(5))
    following = torch.Tensor(envs.reset(seed=1)[0])
    ended = torch.zeros(NUM_ENVS)
    returns: list[Any] = []

    def play() -> None:
        nonlocal following, ended
        for step in range(STEPS):
            seen[step], dones[step] = following, ended
            with torch.no_grad():
                choice = torch.distributions.Categorical(logits=actor(following))
                action = choice.sample()
                logprobs[step], values[step] = choice.log_prob(action), critic(following).flatten()
                choice.entropy()
            actions[step] = action
            shown, reward, terminations, truncations, infos = envs.step(action.cpu().numpy())
            rewards[step] = torch.tensor(reward).view(-1)
            following = torch.Tensor(shown)
            ended = torch.Tensor(terminations | truncations)
            # The logger of `ppo.py`, which reads Gymnasium 0.29's infos. Those of later versions
            # have nothing for it.
            for info in infos.get("final_info", ()):
                if info and "episode" in info:
                    returns.append(info["episode"]["r"])

    with played(play, envs.close) as turns:
        yield turns


def for_cleanrl() -> Any:
    layout = "gymnasium-0.29"
    return corral.make_vec(ID, NUM_ENVS, info_layout=layout, episode_statistics=True)


def of_cleanrl(kind: str) -> Any:
    gymnasium = needs("gymnasium")
    counted = lambda: gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make(ID))  # noqa: E731
    return getattr(gymnasium.vector, kind)([counted] * NUM_ENVS)


# Tianshou


@contextmanager
def tianshou(make: Callable[[], Any]) -> Iterator[Turns]:
    """A collector for DQN."""
    installed("tianshou")
    algorithms, data = needs("tianshou.algorithm"), needs("tianshou.data")
    policies = needs("tianshou.algorithm.modelfree.dqn")
    envs, space = make(), needs("gymnasium").make(ID)
    net = needs("tianshou.utils.net.common").Net
    policy = policies.DiscreteQLearningPolicy(
        model=net(state_shape=(4,), action_shape=2, hidden_sizes=(64, 64)),
        action_space=space.action_space,
        observation_space=space.observation_space,
        eps_training=0.1,
        eps_inference=0.0,
    )
    adam = needs("tianshou.algorithm.optim").AdamOptimizerFactory(lr=1e-3)
    algorithm = algorithms.DQN(policy=policy, optim=adam)
    buffer = data.VectorReplayBuffer(20_000, NUM_ENVS)
    collector = data.Collector(algorithm, envs, buffer, exploration_noise=True)
    collector.reset()
    with played(partial(collector.collect, n_step=EACH), envs.close) as turns:
        yield turns


def for_tianshou() -> Any:
    return corral.to_tianshou(cart_poles("disabled"))


def of_tianshou(kind: str) -> Any:
    return getattr(needs("tianshou.env"), kind)(makers())


def of_envpool() -> Any:
    module = needs("envpool", "make bench-trainers")
    return module.make_gymnasium(ID, num_envs=NUM_ENVS, num_threads=1, seed=0)


# rl_games


def config(where: str, settings: dict[str, Any]) -> dict[str, Any]:
    """PPO's."""
    mlp = {"units": [64, 64], "activation": "relu", "initializer": {"name": "default"}}
    return {
        "seed": 1,
        "algo": {"name": "a2c_discrete"},
        "model": {"name": "discrete_a2c"},
        "network": {
            "name": "actor_critic",
            "separate": False,
            "space": {"discrete": None},
            "mlp": mlp,
        },
        "config": {
            "name": "CartPole",
            "env_name": where,
            "env_config": settings,
            "num_actors": NUM_ENVS,
            "horizon_length": STEPS,
            "minibatch_size": EACH,
            "mini_epochs": 1,
            "max_epochs": 1,
            "ppo": True,
            "value_bootstrap": True,
            "gamma": 0.99,
            "tau": 0.95,
            "learning_rate": 1e-3,
            "lr_schedule": None,
            "e_clip": 0.2,
            "clip_value": True,
            "critic_coef": 1,
            "entropy_coef": 0.0,
            "grad_norm": 1.0,
            "truncate_grads": True,
            "normalize_advantage": True,
            "normalize_input": False,
            "reward_shaper": {"scale_value": 0.1},
            "score_to_win": 100_000,
            "save_best_after": 1000,
            "save_frequency": 0,
            "device": "cpu",
            "torch_compile": False,
            "train_dir": tempfile.mkdtemp(),
        },
    }


@contextmanager
def rl_games(where: str, settings: dict[str, Any]) -> Iterator[Turns]:
    """The steps that its PPO plays before an update."""
    installed("rl_games")
    environments, vecenv = (
        needs("rl_games.common.env_configurations"),
        needs("rl_games.common.vecenv"),
    )
    vecenv.register("CORRAL", lambda *_, **__: corral.to_rl_games(cart_poles("same_step")))
    environments.register("corral", {"vecenv_type": "CORRAL"})
    runner = needs("rl_games.torch_runner").Runner()
    runner.load({"params": config(where, settings)})
    torch = needs("torch")
    agent = runner.algo_factory.create(runner.algo_name, base_name="run", params=runner.params)
    agent.init_tensors()
    agent.obs = agent.env_reset()

    def play() -> None:
        with torch.no_grad():
            agent.play_steps()

    with played(play, getattr(agent.vec_env, "close", lambda: None)) as turns:
        yield turns


# TorchRL


@contextmanager
def torchrl(make: Callable[[], Any]) -> Iterator[Turns]:
    """A collector for a random policy."""
    installed("torchrl")
    collectors = needs("torchrl.collectors")
    collector = collectors.Collector(make, policy=None, frames_per_batch=EACH, total_frames=-1)
    batches = iter(collector)
    with played(lambda: next(batches), collector.shutdown) as turns:
        yield turns


def for_torchrl() -> Any:
    wrapper = needs("torchrl.envs").GymWrapper
    return wrapper(cart_poles("disabled"), categorical_action_encoding=True)


def of_torchrl(kind: str) -> Any:
    envs = needs("torchrl.envs")
    one = partial(envs.GymEnv, ID, categorical_action_encoding=True)
    return one(num_envs=NUM_ENVS) if kind == "GymEnv" else getattr(envs, kind)(NUM_ENVS, one)


# skrl


@contextmanager
def skrl(make: Callable[[], Any]) -> Iterator[Turns]:
    """Steps of its wrapper, as its trainers make them."""
    torch = installed("skrl")
    env = needs("skrl.envs.wrappers.torch").wrap_env(make())
    env.reset()
    actions = list(torch.randint(0, 2, (64, NUM_ENVS, 1)))
    with torch.no_grad():
        yield Loop(env.step, actions, NUM_ENVS)
    env.close()


def of_gymnasium(kind: str) -> Any:
    return getattr(needs("gymnasium").vector, kind)(makers())


# RLlib


@contextmanager
def rllib(id: str, mode: str) -> Iterator[Turns]:
    """An env runner, which plays random actions."""
    installed("ray.rllib")
    ppo = needs("ray.rllib.algorithms.ppo").PPOConfig()
    built = (
        ppo.environment(id)
        .env_runners(num_envs_per_env_runner=NUM_ENVS, gym_env_vectorize_mode=mode)
        .debugging(seed=1)
    )
    runner = needs("ray.rllib.env.single_agent_env_runner").SingleAgentEnvRunner(config=built)
    sample = partial(runner.sample, num_timesteps=EACH, random_actions=True)
    with played(sample, runner.stop) as turns:
        yield turns


# LeRobot


@contextmanager
def lerobot(make: Callable[[], Any]) -> Iterator[Turns]:
    """The calls that LeRobot's `rollout` makes for a step, without a policy."""
    torch = installed("gymnasium")
    envs = make()
    envs.reset(seed=list(range(NUM_ENVS)))

    def step(actions: Any) -> None:
        observations, rewards, _, _, infos = envs.step(actions)
        torch.from_numpy(observations["agent_pos"]).float()
        envs.call("task_description")
        infos.get("final_info", {}).get("is_success")
        torch.from_numpy(rewards)

    pushes = needs("numpy").random.default_rng(0).integers(0, 2, (64, NUM_ENVS, 1))
    yield Loop(step, list(pushes.astype("float32")), NUM_ENVS)
    envs.close()


def for_lerobot() -> Any:
    make_env = needs("corral.adapters.lerobot").make_env(ID, task="balance", success="terminated")
    return make_env(n_envs=NUM_ENVS)[ID][0]


def of_lerobot(kind: str) -> Any:
    """A robot's env as LeRobot's packages write them, in Gymnasium's vec env."""
    gymnasium, numpy = needs("gymnasium"), needs("numpy")

    class Robot(gymnasium.Wrapper[Any, Any, Any, Any]):  # type: ignore[misc]
        task_description = "balance"

        def __init__(self, env: Any) -> None:
            super().__init__(env)
            state = env.observation_space
            self.observation_space = gymnasium.spaces.Dict({"agent_pos": state})
            self.action_space = gymnasium.spaces.Box(0, 1, (1,), numpy.float32)

        def reset(self, **options: Any) -> Any:
            state, infos = self.env.reset(**options)
            return {"agent_pos": state}, infos

        def step(self, action: Any) -> Any:
            state, reward, terminated, truncated, infos = self.env.step(round(float(action[0])))
            if terminated or truncated:
                infos["is_success"] = terminated
            return {"agent_pos": state}, reward, terminated, truncated, infos

    same_step = gymnasium.vector.AutoresetMode.SAME_STEP
    robots = [lambda: Robot(gymnasium.make(ID, disable_env_checker=True))] * NUM_ENVS
    # LeRobot starts workers so, too.
    how = {"context": "forkserver"} if kind == "AsyncVectorEnv" else {}
    return getattr(gymnasium.vector, kind)(robots, autoreset_mode=same_step, **how)


# TRL

MOVES = ("down", "down", "right", "right", "down", "right")


@contextmanager
def trl(make: Callable[[], Any]) -> Iterator[Turns]:
    """What TRL's trainer does with an environment for one completion."""
    lake = make()()

    def complete(index: int) -> None:
        lake.reset(index=index)
        for move in MOVES:
            lake.move(action=move)
        assert lake.get_reward() == 1

    yield Loop(complete, range(64), len(MOVES))
    lake.env.close()


LAKE = {"is_slippery": False, "render_mode": "ansi"}
NAMES = ["left", "down", "right", "up"]


def for_trl() -> Any:
    return corral.to_trl("FrozenLake-v1", tool="move", actions=NAMES, **LAKE)


def of_trl() -> Any:
    """A class over Gymnasium's env, written as TRL's docs write them."""
    gymnasium = needs("gymnasium")

    class Lake:
        def __init__(self) -> None:
            self.env, self.reward = gymnasium.make("FrozenLake-v1", **LAKE), 0.0

        def reset(self, index: int = 0, **_: Any) -> Any:
            self.reward = 0.0
            self.env.reset(seed=index)
            return self.env.render()

        def move(self, action: str) -> Any:
            _, reward, ended, _, _ = self.env.step(NAMES.index(action))
            self.reward += float(reward)
            return self.env.render() + ("\nThe episode is over." if ended else "")

        def get_reward(self) -> float:
            return self.reward

    return Lake


Opened = Callable[[], AbstractContextManager[Turns]]


def theirs(
    name: str, opened: Opened, package: str = "gymnasium", *, apart: bool = True
) -> Contender:
    return Contender(name, opened, package, wanted=1, apart=apart)


def bench(
    name: str,
    package: str,
    ours: Opened,
    *others: Contender,
    what: str | None = None,
    size: str = f"{NUM_ENVS} envs",
) -> Bench:
    return Bench(
        name=f"trainers-{name}",
        what=what or f"{package} collects CartPole",
        size=size,
        ours=Contender("corral", ours, package),
        theirs=others,
    )


def over(trainer: Callable[..., Any], make: Callable[[str], Any], kind: str) -> Contender:
    """The vec env of this name; all but these start processes."""
    is_here = kind in ("DummyVecEnv", "DummyVectorEnv", "SerialEnv", "SyncVectorEnv")
    return theirs(kind, partial(trainer, partial(make, kind)), apart=not is_here)


POOL = {"env_name": ID, "num_threads": 1, "env_type": "gymnasium"}

BENCHES = [
    bench(
        "sb3",
        "stable_baselines3",
        partial(stable_baselines3, for_sb3),
        over(stable_baselines3, of_sb3, "DummyVecEnv"),
        over(stable_baselines3, of_sb3, "SubprocVecEnv"),
    ),
    bench(
        "cleanrl",
        "gymnasium",
        partial(cleanrl, for_cleanrl),
        over(cleanrl, of_cleanrl, "SyncVectorEnv"),
        over(cleanrl, of_cleanrl, "AsyncVectorEnv"),
        what="the loop of CleanRL's ppo.py collects CartPole",
    ),
    bench(
        "lerobot",
        "gymnasium",
        partial(lerobot, for_lerobot),
        over(lerobot, of_lerobot, "SyncVectorEnv"),
        over(lerobot, of_lerobot, "AsyncVectorEnv"),
        what="the calls of LeRobot's rollout, CartPole",
    ),
    bench(
        "trl",
        "gymnasium",
        partial(trl, for_trl),
        theirs("a class over gymnasium.make", partial(trl, of_trl), apart=False),
        what="the calls of TRL's trainer, FrozenLake as text",
        size="1 env",
    ),
    bench(
        "tianshou",
        "tianshou",
        partial(tianshou, for_tianshou),
        over(tianshou, of_tianshou, "DummyVectorEnv"),
        over(tianshou, of_tianshou, "SubprocVectorEnv"),
        theirs("EnvPool", partial(tianshou, of_envpool), "envpool"),
    ),
    bench(
        "rl_games",
        "rl_games",
        partial(rl_games, "corral", {}),
        theirs("EnvPool", partial(rl_games, "envpool", POOL), "envpool"),
    ),
    # Ray's processes go on while others have their turn.
    bench(
        "rl_games-ray",
        "rl_games",
        partial(rl_games, "corral", {}),
        theirs("RayVecEnv", partial(rl_games, ID, {})),
    ),
    bench(
        "torchrl",
        "torchrl",
        partial(torchrl, for_torchrl),
        over(torchrl, of_torchrl, "SerialEnv"),
        over(torchrl, of_torchrl, "ParallelEnv"),
        over(torchrl, of_torchrl, "GymEnv"),
    ),
    bench(
        "skrl",
        "skrl",
        partial(skrl, partial(cart_poles, "same_step")),
        over(skrl, of_gymnasium, "SyncVectorEnv"),
        over(skrl, of_gymnasium, "AsyncVectorEnv"),
    ),
    bench(
        "rllib",
        "ray",
        partial(rllib, "corral:corral/CartPole-v1", "vector_entry_point"),
        theirs("sync", partial(rllib, ID, "sync"), apart=False),
        theirs("async", partial(rllib, ID, "async")),
    ),
]
