"""openenv-core's own client, with its typed actions and observations, beside corral's server.

`test_openenv.py` runs this with each of two versions of openenv-core.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import requests
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import (
    Action,
    EnvironmentMetadata,
    HealthResponse,
    Observation,
    ResetResponse,
    SchemaResponse,
    State,
    StepResponse,
)

import corral
from tests.net.waiting import until

ROOT = Path(__file__).parents[2]


class Label(Action):
    action: int


class Floats(Observation):
    observation: list[float]


class Word(Action):
    action: str


class Said(Observation):
    observation: str


class Level(Observation):
    image: list[list[list[int]]]
    direction: int
    mission: str


class Client(EnvClient[Any, Any, State]):
    """A client as OpenEnv's template writes it."""

    observation_class: type[Observation] = Floats

    def _step_payload(self, action: Any) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Any]:
        reward, done = payload["reward"], payload["done"]
        observation = self.observation_class(**payload["observation"], reward=reward, done=done)
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)


class SpeakingClient(Client):
    observation_class = Said


class LevelClient(Client):
    observation_class = Level


class Echo(gymnasium.Env[str, str]):
    """Says what it is told, until it is told to end or to fail."""

    observation_space = gymnasium.spaces.Text(200, min_length=0)
    action_space = gymnasium.spaces.Text(200, min_length=0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return f"number {self.np_random.integers(1000)}", {"options": options or {}}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "fail":
            raise RuntimeError("told to fail")
        if action == "sleep":
            time.sleep(0.3)
        return action, float(len(action)), action == "end", False, {"length": len(action)}


def echoes(num_envs: int) -> corral.VectorEnv:
    return corral.from_gymnasium(Echo, num_envs, runner="serial", autoreset_mode="disabled")


@pytest.fixture(scope="module")
def cart_poles() -> Iterator[corral.openenv.Server]:
    with corral.serve("CartPole-v1", "127.0.0.1:0", protocol="openenv") as server:
        yield server


@pytest.fixture(scope="module")
def talkers() -> Iterator[corral.openenv.Server]:
    with corral.serve(echoes, "127.0.0.1:0", protocol="openenv", max_sessions=4) as server:
        yield server


def push(seed: int, step: int) -> int:
    """The action of an episode's step."""
    return (seed + step * step // 3) % 2


Trajectory = list[tuple[list[float], float | None, bool]]


def here(**reset: Any) -> Trajectory:
    """The trajectory that a vec env in this process plays."""
    envs = corral.make_vec("CartPole-v1", 1, autoreset_mode="disabled")
    number = reset.get("seed", reset.get("index", 0))
    if "index" in reset:
        observations, _ = envs.reset(options={"index": [reset["index"]]})
    else:
        observations, _ = envs.reset(**reset)
    played: Trajectory = [(observations[0].tolist(), None, False)]
    while not played[-1][2]:
        actions = np.array([push(number, len(played))])
        observations, rewards, terminations, truncations, _ = envs.step(actions)
        played.append(
            (observations[0].tolist(), rewards[0].item(), bool(terminations[0] or truncations[0]))
        )
    envs.close()
    return played


async def there(client: Client, number: int, **reset: Any) -> Trajectory:
    """The trajectory that a session of a server plays."""
    result = await client.reset(**reset)
    played: Trajectory = [(result.observation.observation, result.reward, result.done)]
    while not played[-1][2]:
        result = await client.step(Label(action=push(number, len(played))))
        played.append((result.observation.observation, result.reward, result.done))
    return played


def test_a_seeded_episode_is_that_of_a_vec_env_in_this_process(
    cart_poles: corral.openenv.Server,
) -> None:
    with Client(base_url=cart_poles.url).sync() as env:
        result = env.reset(seed=3, episode_id="mine")
        assert isinstance(result.observation, Floats)
        assert (result.reward, result.done) == (None, False)
        assert result.observation.metadata == {"terminated": False, "truncated": False}
        assert env.state() == State(episode_id="mine", step_count=0)
        played: Trajectory = [(result.observation.observation, None, False)]
        while not result.done:
            result = env.step(Label(action=push(3, len(played))))
            played.append((result.observation.observation, result.reward, result.done))
        assert result.observation.metadata == {"terminated": True, "truncated": False}
        assert played == here(seed=3)
        assert env.state().step_count == len(played) - 1


def test_two_hundred_sessions_at_once_play_each_its_own_seed(
    cart_poles: corral.openenv.Server,
) -> None:
    async def play() -> list[Trajectory]:
        clients = [Client(base_url=cart_poles.url) for _ in range(200)]
        await asyncio.gather(*(client.connect() for client in clients))
        assert cart_poles.metrics()["envs"] == 200
        talks = (there(client, seed, seed=seed) for seed, client in enumerate(clients))
        played = await asyncio.gather(*talks)
        await asyncio.gather(*(client.close() for client in clients))
        return played

    played = asyncio.run(play())
    for seed, trajectory in enumerate(played):
        assert trajectory == here(seed=seed), seed
    assert until(lambda: cart_poles.metrics()["envs"] == 0)


def test_a_group_of_rollouts_begins_alike_by_an_index(cart_poles: corral.openenv.Server) -> None:
    async def play() -> list[Trajectory]:
        clients = [Client(base_url=cart_poles.url) for _ in range(3)]
        for number, client in enumerate(clients):
            # What a session played before changes nothing.
            await there(client, number, seed=number)
        talks = (there(client, 7, episode_id="index:7") for client in clients)
        played = await asyncio.gather(*talks)
        assert (await clients[0].state()).episode_id == "index:7"
        await asyncio.gather(*(client.close() for client in clients))
        return played

    assert asyncio.run(play()) == [here(index=7)] * 3


def test_texts_travel_as_texts(talkers: corral.openenv.Server) -> None:
    with SpeakingClient(base_url=talkers.url).sync() as env:
        first = env.reset(seed=4, options={"way": [1, "two"]}).observation
        assert first.observation == f"number {np.random.default_rng(4).integers(1000)}"
        assert first.metadata["info"] == {"options": {"way": [1, "two"]}}
        for text in ("hello", 'süß "quoted"\n\t\\ 猫 \U0001f600', "", "\x00\x1f\x7f"):
            result = env.step(Word(action=text))
            assert (result.observation.observation, result.reward) == (text, len(text))
            assert result.observation.metadata["info"] == {"length": len(text)}
        assert env.step(Word(action="end")).done


def test_a_dict_has_a_field_for_each_key() -> None:
    id = "MiniGrid-DoorKey-5x5-v0"
    envs = corral.make_vec(id, 1, autoreset_mode="disabled")
    with (
        corral.serve(id, "127.0.0.1:0", protocol="openenv", max_sessions=1) as server,
        LevelClient(base_url=server.url).sync() as env,
    ):
        result, shown = env.reset(seed=1), envs.reset(seed=1)[0]
        for action in (2, 1, 2, 3, 0):
            level = result.observation
            assert level.image == shown["image"][0].tolist()
            assert level.direction == shown["direction"][0]
            assert level.mission == shown["mission"][0]
            result = env.step(Label(action=action))
            shown = envs.step(np.array([action]))[0]
    envs.close()


def test_what_goes_wrong_is_told_and_the_session_goes_on(talkers: corral.openenv.Server) -> None:
    with SpeakingClient(base_url=talkers.url).sync() as env:
        with pytest.raises(RuntimeError, match=r"send a reset before.*EXECUTION_ERROR"):
            env.step(Word(action="early"))
        for data, why in (
            ({"seed": -1}, "data.seed: -1 where a seed belongs"),
            ({"episode_id": "index:x"}, "'x' where an index belongs"),
            ({"sed": 1}, "a reset has seed, episode_id and options"),
        ):
            with pytest.raises(RuntimeError, match=re.escape(why)):
                env.reset(**data)
        env.reset(seed=1)
        with pytest.raises(RuntimeError, match=r"data.action: 3 where a text.*VALIDATION_ERROR"):
            env.step(Label(action=3))
        with pytest.raises(RuntimeError, match=r"at most 200 fit.*VALIDATION_ERROR"):
            env.step(Word(action="x" * 201))
        assert env.step(Word(action="well")).observation.observation == "well"
        with pytest.raises(RuntimeError, match=r"told to fail.*EXECUTION_ERROR"):
            env.step(Word(action="fail"))
        with pytest.raises(RuntimeError, match="the env has failed: send a reset"):
            env.step(Word(action="well"))
        env.reset(seed=1)
        assert env.step(Word(action="end")).done
        with pytest.raises(RuntimeError, match="the episode has ended: send a reset"):
            env.step(Word(action="well"))


def test_a_session_beyond_the_most_is_refused_and_finds_room_later(
    talkers: corral.openenv.Server,
) -> None:
    assert until(lambda: talkers.metrics()["envs"] == 0)

    async def crowd() -> None:
        clients = [SpeakingClient(base_url=talkers.url) for _ in range(4)]
        for client in clients:
            await client.reset()
        late = SpeakingClient(base_url=talkers.url)
        with pytest.raises(RuntimeError, match=r"as many as there may be.*CAPACITY_REACHED"):
            await late.reset()
        await late.close()
        answer = requests.post(f"{talkers.url}/reset", timeout=60)
        assert answer.status_code == 503
        await clients.pop().close()
        assert until(lambda: talkers.metrics()["envs"] == 3)
        await late.reset()
        for client in [*clients, late]:
            await client.close()

    asyncio.run(crowd())


def test_a_client_that_is_killed_gives_its_session_back(talkers: corral.openenv.Server) -> None:
    assert until(lambda: talkers.metrics()["envs"] == 0)
    code = (
        "import sys, time; from tests.net.openenv_suite import SpeakingClient, Word\n"
        "env = SpeakingClient(base_url=sys.argv[1]).sync(); env.connect(); env.reset()\n"
        "print('ready', flush=True); env.step(Word(action='sleep')); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, talkers.url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"ready\n"
        assert talkers.metrics()["envs"] == 1
        client.kill()
    assert until(lambda: talkers.metrics()["envs"] == 0)


def test_the_pages_are_the_protocols(cart_poles: corral.openenv.Server) -> None:
    url = cart_poles.url

    def page(path: str) -> Any:
        answer = requests.get(url + path, timeout=60)
        assert answer.status_code == 200
        return answer.json()

    assert HealthResponse(**page("/health")).status.value == "healthy"
    about = EnvironmentMetadata(**page("/metadata"))
    assert (about.name, about.version) == ("CartPole-v1", corral.__version__)
    schema = SchemaResponse(**page("/schema"))
    assert schema.action["required"] == ["action"]
    assert schema.action["properties"]["action"] == {"type": "integer", "minimum": 0, "maximum": 1}
    shown = schema.observation["properties"]["observation"]
    assert (shown["type"], shown["minItems"], shown["items"]["type"]) == ("array", 4, "number")
    assert State(**page("/state")) == State()
    assert {"/reset", "/step", "/state", "/schema"} <= set(page("/openapi.json")["paths"])


def test_openenvs_own_validation_passes(cart_poles: corral.openenv.Server) -> None:
    validation = pytest.importorskip("openenv.cli._validation")
    report = validation.validate_running_environment(cart_poles.url)
    assert report["passed"], report
    assert report["mode"] == "simulation"


def test_http_plays_in_an_env_of_its_own(cart_poles: corral.openenv.Server) -> None:
    def post(path: str, **body: Any) -> Any:
        return requests.post(cart_poles.url + path, json=body, timeout=60)

    first = ResetResponse(**post("/reset", seed=5).json())
    assert (first.observation["observation"], first.reward, first.done) == here(seed=5)[0]
    indexed = ResetResponse(**post("/reset", episode_id="index:7").json())
    assert indexed.observation["observation"] == here(index=7)[0][0]
    assert requests.post(cart_poles.url + "/reset", timeout=60).status_code == 200
    step = StepResponse(**post("/step", action={"action": 1}).json())
    assert (step.reward, step.done, len(step.observation["observation"])) == (1.0, False, 4)
    for path, body, where in (
        ("/step", {"action": {"action": 2}}, []),
        ("/step", {"action": {"action": "1"}}, ["body.action", "action"]),
        ("/step", {"action": {}}, ["body.action", "action"]),
        ("/step", {}, []),
        ("/reset", {"seed": "one"}, ["body", "seed"]),
    ):
        answer = post(path, **body)
        assert answer.status_code == 422, answer.text
        (detail,) = answer.json()["detail"]
        assert detail["loc"] == where, detail
    garbage = requests.post(cart_poles.url + "/reset", data=b"{", timeout=60)
    assert garbage.status_code == 422
    assert requests.get(cart_poles.url + "/nothing", timeout=60).status_code == 404
    assert requests.get(cart_poles.url + "/step", timeout=60).status_code == 405
    assert cart_poles.metrics()["envs"] == 0


def test_a_token_opens_the_door(tmp_path: Path) -> None:
    token = "correct-horse-battery-staple"
    (tmp_path / "token").write_text(token)
    with corral.serve(
        "CartPole-v1", "127.0.0.1:0", protocol="openenv", token_file=tmp_path / "token"
    ) as server:
        for url in (server.url, server.url.replace("//", "//me:wrong@")):
            with pytest.raises(ConnectionError, match="401"):
                asyncio.run(Client(base_url=url).connect())
        # OpenEnv's client has no argument for a token, but its URL may have a password.
        with Client(base_url=server.url.replace("//", f"//me:{token}@")).sync() as env:
            assert env.reset(seed=1).observation.observation == here(seed=1)[0][0]
        assert requests.get(f"{server.url}/health", timeout=60).status_code == 200
        for path in ("/schema", "/metadata", "/state", "/openapi.json", "/nothing"):
            assert requests.get(server.url + path, timeout=60).status_code == 401
            bearer = {"Authorization": f"Bearer {token}"}
            answer = requests.get(server.url + path, headers=bearer, timeout=60)
            assert answer.status_code == (404 if path == "/nothing" else 200)


def test_the_code_of_the_page_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "openenv.md").read_text()
    pages = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.DOTALL)
    assert pages
    for code, expected in pages:
        exec(code, {"__name__": "__main__"})
        assert capsys.readouterr().out == expected
