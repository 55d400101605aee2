"""The pages of docs/envs say what the sources, the envs and the recorded scores say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import corral
from corral import _native, errors

ROOT = Path(__file__).resolve().parents[2]
IDS = [entry["id"] for entry in _native.entries()]
# What an option needs beside it to have an effect.
BESIDE = {"map_size": {"map_name": None}}
MOST_BYTES = 6_000_000


@pytest.fixture(scope="module")
def writer() -> Iterator[Any]:
    """The package that writes the pages."""
    pytest.importorskip("PIL", reason="what makes films is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        from env_pages import films, pages, policies, scores, sources

        yield SimpleNamespace(
            films=films, pages=pages, policies=policies, scores=scores, sources=sources
        )


@pytest.fixture(scope="module")
def texts(writer: Any) -> Any:
    return writer.sources.texts()


def test_the_pages_are_what_is_written_of_the_envs(writer: Any, texts: Any) -> None:
    for path, text in writer.pages.files(texts).items():
        assert path.is_file(), f"{path} is missing: run `make docs`"
        assert path.read_text() == text, f"{path} is out of date: run `make docs`"
    assert writer.pages.left_over(texts) == []


def options_of(name: str, texts: Any) -> tuple[str, dict[str, Any]]:
    """An id of a page, and its options."""
    id = next(id for id, its in texts["ids"].items() if its == name)
    return id, corral.envs()[id]["option_docs"]


def test_every_env_has_a_page_and_every_option_a_meaning(texts: Any) -> None:
    assert set(texts["ids"]) == set(IDS)
    for id in texts["ids"]:
        entry = corral.envs()[id]
        options = entry["option_docs"]
        assert set(options) == set(entry["options"]), id
        assert all(option["meaning"].endswith(".") for option in options.values()), id


def test_an_options_meaning_is_the_comment_of_its_field() -> None:
    """Looked up in the source by its words, of three kinds of struct."""
    for id, option, source, struct in (
        ("Maze-v0", "size", "grid/maze/config.rs", "MazeConfig"),
        ("FrozenLake-v1", "map_p", "toy_text/frozen_lake/env.rs", "FrozenLakeConfig"),
        ("MiniGrid-Unlock-v0", "view", "minigrid/config.rs", "MiniGridConfig"),
    ):
        text = (ROOT / "crates" / "envs" / "src" / source).read_text()
        fields = text.partition(f"pub struct {struct}")[2].partition("\n}")[0]
        before = fields.partition(f"pub {option}:")[0].rpartition(",\n")[2]
        lines = [line.strip() for line in before.rpartition("{\n")[2].splitlines()]
        comment = " ".join(line[3:].strip() for line in lines if line.startswith("///"))
        assert corral.envs()[id]["option_docs"][option]["meaning"] == comment


def ranged(texts: Any) -> Iterator[tuple[str, str, float, float, float]]:
    """Options that say between which numbers they are, and a step beyond these."""
    for name in texts["pages"]:
        id, options = options_of(name, texts)
        for option, told in options.items():
            for low, high in re.findall(r"(\d+) to (\d+)", told["meaning"]):
                is_float = told["type"] == "float"
                step = 0.01 if is_float else 2 if "odd" in told["meaning"] else 1
                kind = float if is_float else int
                yield id, option, kind(low), kind(high), step


def test_options_take_the_numbers_that_their_meanings_name_and_no_others(texts: Any) -> None:
    cases = list(ranged(texts))
    assert {option for _, option, *_ in cases} >= {"size", "agent_view_size", "success_rate"}
    for id, option, low, high, step in cases:
        beside = BESIDE.get(option, {})
        for value in (low, high):
            corral.make_vec(id, 1, **{option: value}, **beside).close()
        for value in (low - step, high + step):
            with pytest.raises(errors.OptionValueError):
                corral.make_vec(id, 1, **{option: value}, **beside)


def test_options_take_the_words_that_their_meanings_name_and_no_others(texts: Any) -> None:
    seen = set()
    for name in texts["pages"]:
        id, options = options_of(name, texts)
        for option, told in options.items():
            if not told["type"].startswith("text"):
                continue
            words = re.findall(r'"([^"]+)"', told["meaning"])
            assert words, f"{id}: what may {option} be?"
            seen.add(option)
            for word in words:
                corral.make_vec(id, 1, **{option: word}).close()
            with pytest.raises(errors.OptionValueError):
                corral.make_vec(id, 1, **{option: "no such word"})
    assert {"view", "map_name", "book_or_nips"} <= seen


def test_each_page_has_a_small_film(writer: Any, texts: Any) -> None:
    from PIL import Image

    total = 0
    for name in texts["pages"]:
        path = writer.films.path_of(name)
        assert path.is_file(), f"{path} is missing: run `make env-scores`"
        size = path.stat().st_size
        assert size <= writer.films.MOST_BYTES, f"{path} has {size} bytes"
        total += size
        with Image.open(path) as film:
            assert film.n_frames > 1, f"nothing moves in {path}"
            assert 64 <= max(film.size) <= 200
    assert total <= MOST_BYTES


def test_good_policies_are_better_than_random_actions(writer: Any, texts: Any) -> None:
    known = writer.scores.known()
    assert set(known) == set(texts["ids"])
    for id, score in known.items():
        random, good = score["random"], score["policy"]
        assert (good is None) == (writer.policies.of(id) is None), f"{id}: run `make env-scores`"
        if good is not None:
            assert good["mean"] > random["mean"] + 3 * (random["error"] + good["error"]), id


@pytest.mark.parametrize(
    "id", ["CartPole-v1", "Acrobot-v1", "CliffWalking-v1", "Maze-v0", "MiniGrid-Unlock-v0"]
)
def test_good_policies_play_as_recorded(writer: Any, id: str) -> None:
    episodes, good = 20, writer.policies.of(id)
    recorded = writer.scores.known()[id]["policy"]
    result = corral.evaluate(good.make(id), id, range(episodes), num_envs=20, **good.config)
    error = recorded["error"] * (recorded["episodes"] / episodes) ** 0.5
    assert result.mean == pytest.approx(recorded["mean"], abs=5 * error + 1e-6)


FIGURES = """date,bench,what,size,theirs,ours_rate,theirs_rate,ratio,cores,cpu
2026-01-01T10:00,minatar-Freeway,MinAtar-Freeway-v1,64 envs,minatar,1e6,2e3,500,2,A
2026-01-02T10:00,minatar-Freeway,MinAtar-Freeway-v1,64 envs,minatar,2.5e6,2e3,1249,4,B
2026-01-02T10:00,minatar-Freeway,MinAtar-Freeway-v1,64 envs,was missing,2.5e6,,,4,B
2026-01-03T10:00,minigrid-pictures,"MiniGrid-FourRooms-v0, view=rgb",64 envs,x,9e3,743,12.1,2,B
2026-01-03T10:00,python-minigrid,MiniGrid-DoorKey-8x8-v0,64 envs,y,5e3,2e3,2.5,2,B
2026-01-03T10:00,games-2048,2048-v0,64 envs,a bare Rust loop,9.5e6,1e7,0.95,2,B
"""


def test_a_page_has_the_last_figures_beside_each_peer_and_no_word_without_any(
    writer: Any, texts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer.pages, "FIGURES", tmp_path / "figures.csv")
    (tmp_path / "figures.csv").write_text(FIGURES)
    written = {path.stem: text for path, text in writer.pages.files(texts).items()}
    with_speed = {name for name, text in written.items() if "## Speed" in text}
    assert with_speed == {"MinAtar-Freeway", "MiniGrid-FourRooms", "Game2048"}

    def rows(name: str) -> list[str]:
        speed = written[name].partition("## Speed\n\n")[2].partition("\n\n")[0]
        return speed.splitlines()[2:]

    assert rows("MinAtar-Freeway") == [
        "| `MinAtar-Freeway-v1` | 64 envs | 2.5 M | minatar | 2 k | 1,249 × "
        "| 2026-01-02, B, 4 cores |"
    ]
    assert rows("MiniGrid-FourRooms") == [
        "| 64 envs | 9 k | x | 743 | 12.1 × | 2026-01-03, B, 2 cores |"
    ]
    assert rows("Game2048") == [
        "| 64 envs | 9.5 M | a bare Rust loop | 10 M | 0.95 × | 2026-01-03, B, 2 cores |"
    ]


DOCS = """//! Catch-v0: catch what falls.
//!
//! Observation: a board. Action: 0 left, 1 right. {reward}Terminated: it has
//! fallen. Index ix is the episode of seed ix.
//!
//! Versions: v0 is the only one. Licence: ours.

pub struct Catch;
"""
REWARD = "Reward: 1 for a catch (see\n//! [`Env::step`]). "


@pytest.fixture
def family(writer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a family of one env, and reads it."""
    sources = writer.sources
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(sources, "ENVS", tmp_path)
    (tmp_path / "games").mkdir()

    def read(reward: str = REWARD, name: str = "Catch") -> Any:
        table = f'const TABLE: &[Entry] = &[Entry::new::<{name}>(\n    "Catch-v0",\n    "A.")];\n'
        (tmp_path / "games" / "mod.rs").write_text(f"//! Games.\n\n{table}")
        (tmp_path / "games" / "catch.rs").write_text(DOCS.format(reward=reward))
        for cached in (sources.listed, sources._labelled):
            cached.cache_clear()
        return sources.texts()

    yield read
    for cached in (sources.listed, sources._labelled):
        cached.cache_clear()


def test_a_page_takes_its_texts_from_the_docs(family: Any) -> None:
    assert family() == {
        "pages": {
            "Catch": {
                "rules": [],
                "observation": "A board.",
                "action": "0 left, 1 right.",
                "reward": "1 for a catch (see `Env::step`).",
                "terminated": "It has fallen.",
                "index": "Index ix is the episode of seed ix.",
                "versions": "v0 is the only one.",
                "licence": "Ours.",
                "source": "games/catch.rs",
            }
        },
        "ids": {"Catch-v0": "Catch"},
    }


@pytest.mark.parametrize(
    ("lacks", "message"),
    [
        ({"reward": ""}, r'games/catch.rs .*say nothing of "Reward": add a sentence'),
        ({"name": "Throw"}, "declares the struct Throw"),
    ],
)
def test_what_the_docs_lack_is_an_error_that_says_where_to_write_it(
    writer: Any, family: Any, lacks: dict[str, str], message: str
) -> None:
    with pytest.raises(writer.sources.SourceError, match=message):
        family(**lacks)


def test_an_option_without_a_comment_is_an_error_that_says_where_to_write_it(writer: Any) -> None:
    rows = {"type": "int", "meaning": None}
    env = SimpleNamespace(id="Catch-v0", options={"rows": rows}, defaults={"rows": 10})
    with pytest.raises(writer.sources.SourceError, match="Catch-v0: the option rows has no doc"):
        writer.pages._options([env])


def test_an_env_without_score_or_policy_is_an_error_that_says_what_to_do(
    writer: Any, texts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(writer.policies, "_GOOD", {})
        with pytest.raises(writer.sources.SourceError, match="docs/env_pages/policies"):
            writer.pages.files(texts)
    monkeypatch.setattr(writer.scores, "known", dict)
    with pytest.raises(writer.sources.SourceError, match="make env-scores IDS=CartPole-v1"):
        writer.pages.files(texts)
