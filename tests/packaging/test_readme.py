"""What the README shows is what one gets."""

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def printed(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    return out.getvalue()


def test_the_first_screens_code_prints_what_it_shows() -> None:
    assert printed(blocks("python")[0]) == blocks("text")[0]


def test_the_check_prints_what_it_shows() -> None:
    prompt, expected = blocks("text")[1].split("\n", 1)
    code = prompt.removeprefix(">>> ")
    ast.parse(code)
    assert printed(f"import corral\n{code}") == expected


@pytest.mark.parametrize(
    "command", ["demo", "test", "bench", "bench-peers", "lint", "help", "docs"]
)
def test_commands_that_the_papers_name_exist(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{command}:.*## ", makefile, flags=re.MULTILINE)


def test_the_code_about_python_envs_runs_when_pasted() -> None:
    text = (ROOT / "docs" / "python_envs.md").read_text()
    code = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[0]
    assert printed(code).startswith("corral.VectorEnv(Corridor, num_envs=64, next_step) (64, 1) ")


def test_the_code_about_libenv_runs_when_pasted() -> None:
    text = (ROOT / "docs" / "libenv.md").read_text()
    first = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    assert printed(first).endswith("64.0\n")


def test_the_code_about_env_c_api_runs_when_pasted() -> None:
    text = (ROOT / "docs" / "env_c_api.md").read_text()
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    lines = printed(code).splitlines()
    assert lines[0] == "(4, 64, 64, 3) Maze-v0"
    assert lines[1].startswith("['distance', [array([")
    assert lines[2] == "7 True"
    assert "statistics.episode_length" in lines[3]


def test_the_code_about_dm_env_runs_when_pasted() -> None:
    text = (ROOT / "docs" / "dm_env.md").read_text()
    code = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[0]
    shown = printed(code).splitlines()
    assert shown[0] == "StepType.LAST 1.0 0.0" or shown[0] == "2 1.0 0.0"
    assert shown[1:] == ["(64,) (64, 4) False", "(4, 4) [1. 1. 1. 1.]"]


def test_the_code_about_netenv_runs_when_pasted() -> None:
    text = (ROOT / "docs" / "netenv.md").read_text()
    first, second, third = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert printed(first) == "(16, 4) 16.0\n"
    assert printed(second) == ""
    assert printed(third) == "(4, 64, 64, 3) 8\n"


EVALUATION = re.findall(
    r"```python\n(.*?)```\n\n```text\n(.*?)```",
    (ROOT / "docs" / "evaluation.md").read_text(),
    flags=re.DOTALL,
)


@pytest.mark.parametrize("number", range(5))
def test_the_code_about_evaluation_prints_what_it_shows(number: int) -> None:
    assert len(EVALUATION) == 5
    code, expected = EVALUATION[number]
    assert printed(code) == expected


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
