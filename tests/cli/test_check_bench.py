"""Checks and figures of any env."""

from __future__ import annotations

from pathlib import Path

from corral import __version__
from tests.cli.support import Command
from tests.support import FAULTY


def test_an_id_a_python_env_and_a_class_are_checked(command: Command, corridor: str):
    for what in ("CartPole-v1", corridor, "corridor:Corridor"):
        told = command.json("check", what, "--steps", 15)
        assert told["passed"]
        assert [one["passed"] for one in told["envs"]] == [True]
        assert "determinism" in {check["name"] for check in told["envs"][0]["checks"]}


def test_what_breaks_its_contract_ends_in_1(command: Command, corridor: str, tmp_path: Path):
    done = command("check", FAULTY, "--option", "fault=ignores_seed", "--steps", 30)
    assert done.returncode == 1
    assert "FAIL  seed matters" in done.stdout
    source = (tmp_path / "corridor.py").read_text()
    (tmp_path / "corridor.py").write_text(source.replace("[self.at]", "[self.at + 30]"))
    done = command("check", "corridor:Corridor", "--steps", 15)
    assert done.returncode == 1
    assert "FAIL  spaces" in done.stdout


def test_an_env_without_randomness_may_say_so(command: Command, corridor: str, tmp_path: Path):
    source = (tmp_path / "corridor.py").read_text()
    (tmp_path / "corridor.py").write_text(source.replace("integers(0, 3)", "integers(0, 1)"))
    assert command("check", "corridor:Corridor", "--steps", 15).returncode == 1
    assert command.json("check", "corridor:Corridor", "--steps", 15, "--no-randomness")["passed"]


def test_options_reach_the_class_that_is_checked(command: Command, corridor: str):
    why = command.refusal("check", "corridor:Corridor", "--option", "width=3")
    assert "width" in why


def test_what_cannot_be_checked_is_told_in_one_line(command: Command, corridor: str):
    assert "no class 'Tunnel', nor an env" in command.refusal("check", "corridor:Tunnel")
    assert "cannot be read" in command.refusal("check", "none.so")
    assert "cannot be read" in command.refusal("check", "./none")
    assert "unknown env" in command.refusal("check", "None-v0")


def test_an_id_is_measured_beside_gymnasiums_where_that_has_it(command: Command, corridor: str):
    def bench(id: str) -> list[tuple[str, str | None]]:
        figures = command.json("bench", id, "--num-envs", 2, "--quick", "--seconds", 0.001)
        for figure in figures:
            assert figure["ours"] > 0, figure
            if figure["against"] is not None:
                assert figure["theirs"] > 0, figure
        return [(figure["bench"], figure["against"]) for figure in figures]

    peer = "Gymnasium's SyncVectorEnv"
    assert bench("CartPole-v1") == [("CartPole-v1", peer)]
    assert bench(corridor) == [(corridor, peer)]
    assert bench("Maze-v0") == [("Maze-v0", None)]
    shown = command.out("bench", "CartPole-v1", "--list")
    assert "1,024 envs, 1 thread" in shown


def test_without_a_checkout_it_says_what_can_be_measured(command: Command):
    assert "say which env: corral bench CartPole-v1" in command.refusal("bench")
    assert "say which env: corral bench CartPole-v1" in command.refusal("bench", "cartpole")
    assert "unknown env 'None-v0'" in command.refusal("bench", "None-v0", "--quick")


def test_the_version_is_the_packages(command: Command):
    assert command.out("--version") == f"corral {__version__}\n"
