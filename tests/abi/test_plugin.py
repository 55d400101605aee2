"""Libraries of envs by Corral's own C interface: one in C, and what cannot be loaded."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import corral
from corral import errors

HERE = Path(__file__).parent
CC = shutil.which("cc")

pytestmark = pytest.mark.skipif(CC is None, reason="there is no C compiler here")


def build(source: Path, to: Path, *flags: str) -> Path:
    include = Path(corral.__file__).parent / "include"
    command = [str(CC), "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    subprocess.run([*command, f"-I{include}", *flags, str(source), "-o", str(to)], check=True)
    return to


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    path = build(HERE / "c" / "counter.c", tmp_path_factory.mktemp("c") / "counter.so")
    assert corral.load(path) == ["counting/Counter-v0"]
    return path


def targets(seed: int, count: int, most: int = 9) -> list[int]:
    """What splitmix64 draws, worked out in Python."""
    mask = (1 << 64) - 1
    drawn = []
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        drawn.append(5 + (z ^ (z >> 31)) % (most - 4))
    return drawn


@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_env_in_c_plays_by_its_own_rules_in_every_mode(counter, num_threads):
    for mode in ("next_step", "same_step", "disabled"):
        envs = corral.make_vec(
            "counting/Counter-v0", 3, seed=7, autoreset_mode=mode, num_threads=num_threads
        )
        observation, _ = envs.reset()
        first = [targets(7 + slot, 2) for slot in range(3)]
        assert observation["target"].tolist() == [target for target, _ in first]
        assert observation["count"].dtype == np.int32
        for step in range(1, min(target for target, _ in first) + 1):
            observation, rewards, terminated, truncated, infos = envs.step(np.full(3, 1))
            reached = np.array([step == target for target, _ in first])
            assert rewards.tolist() == reached.astype(float).tolist()
            assert terminated.tolist() == reached.tolist()
            # The library wrote 2 for true.
            assert terminated.view(np.uint8).max() == reached.max()
            assert not truncated.any()
            shown = infos["final_obs"][reached.argmax()] if "final_obs" in infos else None
            if mode == "same_step" and reached.any():
                assert shown["count"] == step
                assert observation["target"][reached.argmax()] == first[reached.argmax()][1]
            else:
                assert observation["count"].tolist() == [step] * 3
        envs.close()


def test_an_index_plays_the_same_episode_and_leaves_the_slots_own_stream(counter):
    envs = corral.make_vec("counting/Counter-v0", 2, seed=1)
    observation, _ = envs.reset(options=None)
    own = targets(1, 3)
    assert observation["target"][0] == own[0]
    result = corral.evaluate(lambda obs: np.full(len(obs["count"]), 1), envs, range(10))
    assert result.lengths.tolist() == [targets(index, 1)[0] for index in range(10)]
    assert result.returns.tolist() == [1.0] * 10
    assert envs.reset()[0]["target"][0] == own[1]


def test_the_conformance_check_and_gymnasium_take_it(counter):
    corral.testing.check_env("counting/Counter-v0")
    envs = gymnasium.make_vec("counting/Counter-v0", 2, most=5)
    assert envs.reset(seed=3)[0]["target"].tolist() == [5, 5]
    env = gymnasium.make("counting/Counter-v0")
    assert env.spec.max_episode_steps == 20
    assert env.reset(seed=3)[0]["target"] == targets(3, 1)[0]
    assert "counting/Counter-v0" in corral.envs()
    assert corral.envs()["counting/Counter-v0"]["options"] == {"most": 9}


def test_what_a_library_says_of_its_options_is_listed(counter, tmp_path):
    told = corral.envs()["counting/Counter-v0"]["option_docs"]
    assert told == {"most": {"type": "int", "meaning": None}}
    docs = '{"most": {"type": "int", "low": 5, "high": 1000, "meaning": "The greatest target."}}'
    quoted = docs.replace('"', r"\"")
    more = (r'    .options = "{\"most\": 9}",' + "\n", f'    .option_docs = "{quoted}",\n')
    library = variant(tmp_path, "told", (more[0], more[0] + more[1]))
    corral.load(library, namespace="told")
    most = corral.envs()["told/Counter-v0"]["option_docs"]["most"]
    assert most == {"type": "int", "low": 5, "high": 1000, "meaning": "The greatest target."}
    for n, wrong in enumerate(("{", "[1]", r"{\"least\": {}}", r"{\"most\": 3}")):
        odd = (more[0], f'{more[0]}    .option_docs = "{wrong}",\n')
        with pytest.raises(errors.LibraryError, match="option_docs"):
            corral.load(variant(tmp_path, f"odd{n}", odd), namespace="odd")


@pytest.mark.parametrize(
    "id", ["counting/Cuonter-v0", "Counter-v0", "couting/Counter-v0", "counting/counter-v3"]
)
def test_an_unknown_id_suggests_a_librarys(counter, id):
    with pytest.raises(errors.UnknownEnvError, match=r"Did you mean 'counting/Counter-v0'\?"):
        corral.make_vec(id, 1)


def test_options_states_and_failures_are_the_librarys_own(counter):
    with pytest.raises(errors.UnknownOptionError, match=r"valid: most \(9\)"):
        corral.make_vec("counting/Counter-v0", 1, least=3)
    with pytest.raises(errors.OptionValueError, match="from 5 to 1000"):
        corral.make_vec("counting/Counter-v0", 1, most="many")
    envs = corral.make_vec("counting/Counter-v0", 2, seed=0, most=1000, max_episode_steps=-1)
    envs.reset()
    state = envs.save_state()
    first = envs.step([1, 2])[0]
    envs.load_state(state)
    np.testing.assert_array_equal(envs.step([1, 2])[0]["count"], first["count"])
    far = next(seed for seed in range(1000) if targets(seed, 1, 1000)[0] > 777)
    envs.reset(seed=[far, far])
    for _ in range(388):
        envs.step([2, 1])
    envs.step([1, 1])
    with pytest.raises(errors.EnvError, match="777 is too much") as raised:
        envs.step([1, 1])
    assert [failure.slot for failure in raised.value.failures] == [0]


@pytest.mark.parametrize("how", [{}, {"batch_size": 1}, {"on_failure": "mask"}])
def test_calls_and_events_of_a_library_reach_python(counter, how):
    envs = corral.make_vec("counting/Counter-v0", 2, seed=0, **how)
    envs.reset()
    assert envs.list_attr() == ({"target": True}, {"target": True})
    envs.set_attr("target", [9, 12])
    assert envs.get_attr("target") == (9, 12)
    assert envs.call("target") == (9, 12)
    envs.send([2, 2])
    envs.drain()
    assert envs.call("double") == (4, 4)
    for unknown in (lambda: envs.call("half"), lambda: envs.get_attr("double")):
        with pytest.raises(AttributeError, match=r"there are target and double\(\)"):
            unknown()
    with pytest.raises(errors.ArgumentError, match="target is one int"):
        envs.set_attr("target", "far")
    told = []
    for action in (2, 2, 1):
        envs.send([action, action])
        told.append(envs.drain()[4])
    assert "events" not in told[0]
    assert "events" not in told[1]
    assert told[2]["_events"].tolist() == [True, False]
    assert told[2]["events"][0] == [["reached", [9]]]
    assert told[2]["events"][1] is None


@pytest.mark.parametrize("wrong", [0, 3, 9])
@pytest.mark.parametrize("on_failure", ["raise", "restart", "mask"])
def test_a_failure_told_of_another_slot_is_the_whole_calls(counter, tmp_path, wrong, on_failure):
    path = build(HERE / "c" / "counter.c", tmp_path / "wrong.so", f"-DWRONG_SLOT={wrong}")
    corral.load(path, namespace="wrong")
    envs = corral.make_vec(
        "wrong/Counter-v0",
        4,
        most=1000,
        max_episode_steps=-1,
        on_failure=on_failure,
        # One chunk, whose slots are numbered as the envs are.
        num_threads=1,
    )
    far = next(seed for seed in range(1000) if targets(seed, 1, 1000)[0] > 777)
    envs.reset(seed=[far] * 4)
    # Slot 2 alone, which tells of another.
    envs.native.step_slots([2], np.array([1]))
    for _ in range(388):
        envs.native.step_slots([2], np.array([2]))
    if on_failure == "raise":
        with pytest.raises(errors.EnvError, match=f"slot {wrong}, which is not in this call") as e:
            envs.native.step_slots([2], np.array([1]))
        assert [failure.slot for failure in e.value.failures] == [2]
    else:
        infos = envs.native.step_slots([2], np.array([1]))[4]
        assert infos["_failed"].tolist() == [True]
    # Nothing is left in flight.
    envs.reset()
    envs.step([1, 1, 1, 1])
    envs.close()
    envs.close()


def test_a_library_built_anew_is_loaded_anew(tmp_path):
    path = tmp_path / "anew.so"
    for about in ("the first", "the second", "the third"):
        path.unlink(missing_ok=True)
        build(HERE / "c" / "counter.c", path, f'-DABOUT="{about}"')
        for _ in range(2):
            corral.load(path, namespace="anew")
            assert corral.envs()["anew/Counter-v0"]["about"] == about
    envs = corral.make_vec("anew/Counter-v0", 2, seed=7)
    assert envs.reset()[0]["target"].tolist() == [targets(7 + k, 1)[0] for k in range(2)]


def test_a_recorded_failure_of_a_librarys_env_is_played_again(counter, tmp_path):
    envs = corral.make_vec(
        "counting/Counter-v0", 1, most=1000, max_episode_steps=-1, record=tmp_path
    )
    far = next(seed for seed in range(1000) if targets(seed, 1, 1000)[0] > 777)
    envs.reset(seed=far)
    envs.step([1])
    for _ in range(388):
        envs.step([2])
    with pytest.raises(errors.EnvError, match="777 is too much") as raised:
        envs.step([1])
    again = corral.replay(raised.value.failures[0].replay)
    assert again.env == "counting/Counter-v0"
    assert again.config == {"most": 1000}
    assert again.num_steps == 389
    assert [step.observation["count"] for step in again][-1] == 777
    assert again.reproduced


def test_the_command_replays_an_env_of_a_library_that_it_is_told_of(
    counter: Path, tmp_path: Path
) -> None:
    envs = corral.make_vec(
        "counting/Counter-v0", 1, most=1000, max_episode_steps=-1, record=tmp_path
    )
    far = next(seed for seed in range(1000) if targets(seed, 1, 1000)[0] > 777)
    envs.reset(seed=far)
    envs.step([1])
    for _ in range(388):
        envs.step([2])
    with pytest.raises(errors.EnvError) as raised:
        envs.step([1])
    file = str(raised.value.failures[0].replay)
    other = variant(tmp_path, "other", ('.name = "counting"', '.name = "other"'))

    def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "corral", "replay", *arguments], capture_output=True, text=True
        )

    done = command("--load", other, "--load", counter, file)
    assert (done.returncode, done.stderr) == (0, "")
    assert "failed again, as recorded" in done.stdout
    for loaded in ([], ["--load", other]):
        done = command(*loaded, file)
        assert (done.returncode, done.stdout) == (2, "")
        assert "no library called 'counting'" in done.stderr
        assert "corral replay --load LIBRARY FILE" in done.stderr
    done = command("--load", tmp_path / "none.so", file)
    assert done.returncode == 2
    assert "none.so" in done.stderr


def test_what_is_no_library_of_envs_is_refused(counter, tmp_path):
    with pytest.raises(errors.LibraryError, match="No such file"):
        corral.load(tmp_path / "nowhere.so")
    (tmp_path / "text.so").write_text("hello")
    with pytest.raises(errors.LibraryError, match="no shared library"):
        corral.load(tmp_path / "text.so")
    (tmp_path / "empty.c").write_text("int nothing(void) { return 0; }\n")
    with pytest.raises(errors.LibraryError, match="no function corral_plugin_entry"):
        corral.load(build(tmp_path / "empty.c", tmp_path / "empty.so"))
    (tmp_path / "libenv.c").write_text("int libenv_make(void) { return 0; }\n")
    with pytest.raises(errors.LibraryError, match=r"for corral\.load_libenv"):
        corral.load(build(tmp_path / "libenv.c", tmp_path / "libenv.so"))
    with pytest.raises(errors.ArgumentError, match="another namespace="):
        corral.load(counter, namespace="corral")


@pytest.mark.parametrize(
    ("version", "size", "message"),
    [
        ("CORRAL_ABI_VERSION + 1", "sizeof(corral_plugin)", "this Corral is old"),
        ("CORRAL_ABI_VERSION - 1", "sizeof(corral_plugin)", "the plugin is old"),
        ("CORRAL_ABI_VERSION", "64", "the plugin is old"),
    ],
)
def test_a_library_of_another_version_or_layout_says_which_side_is_old(
    tmp_path, version, size, message
):
    (tmp_path / "other.c").write_text(
        "#include <corral.h>\n"
        f"static const corral_plugin P = {{.abi_version = {version},\n"
        f"    .entry_size = sizeof(corral_entry), .size = {size}}};\n"
        "const corral_plugin *corral_plugin_entry(void) { return &P; }\n"
    )
    with pytest.raises(errors.LibraryError, match=message):
        corral.load(build(tmp_path / "other.c", tmp_path / "other.so"))


# For variants that leave a function out.
UNUSED = ("-Wno-unused-function", "-Wno-unused-variable", "-Wno-unused-const-variable")


def variant(
    tmp_path: Path, name: str, *changes: tuple[str, str], flags: tuple[str, ...] = ()
) -> Path:
    """The counter, with some of its source replaced."""
    text = (HERE / "c" / "counter.c").read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    source = tmp_path / f"{name}.c"
    source.write_text(text)
    return build(source, tmp_path / f"{name}.so", *flags)


def lists(*entries: str) -> tuple[tuple[str, str], ...]:
    """The changes by which it has these entries after its own."""
    added = ", ".join(f"{{{entry}}}" for entry in entries)
    return (
        (
            '    .options = "{\\"most\\": 9}",\n}};',
            f'    .options = "{{\\"most\\": 9}}",\n}}, {added}}};',
        ),
        (".num_envs = 1,", f".num_envs = {1 + len(entries)},"),
    )


@pytest.fixture
def untouched(counter: Path) -> Iterator[None]:
    """Nothing that is loaded or registered changes; and what was loaded still works."""
    before = dict(gymnasium.registry), corral.envs()
    yield
    assert (dict(gymnasium.registry), corral.envs()) == before
    corral.register_with_gymnasium()
    corral.make_vec("counting/Counter-v0", 1).close()
    assert corral.load(counter) == ["counting/Counter-v0"]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("namespace", [None, "counting", "fresh"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((('"{\\"most\\": 9}"', '"{most: 9}"'),), "options of 'Counter-v0' are no JSON: "),
        ((('"{\\"most\\": 9}"', '"[1, 2]"'),), r"no JSON object, but \[1, 2\]"),
        ((('"{\\"most\\": 9}"', '"0"'),), "no JSON object, but 0"),
        ((('.id = "Counter-v0"', '.id = "Count/er-v0"'),), "an env called 'Count/er-v0'"),
        ((('.id = "Counter-v0"', '.id = "Coun ter-v0"'),), "an env called 'Coun ter-v0'"),
        ((('.id = "Counter-v0"', '.id = "os:Counter-v0"'),), "an env called 'os:Counter-v0'"),
        (lists('.id = "Counter-v0"'), "two envs called 'Counter-v0'"),
        (lists('.id = "Walk-v0"', '.id = "Walk-v1", .options = "{"'), "options of 'Walk-v1'"),
        (lists('.id = "Counter"'), "Gymnasium does not register '.*/Counter': .*unversioned"),
    ],
)
def test_a_library_with_a_fault_in_its_list_leaves_everything_as_it_was(
    tmp_path: Path, changes: Any, message: str, namespace: str | None
) -> None:
    library = variant(tmp_path, "faulty", *changes)
    with pytest.raises(errors.LibraryError, match=message):
        corral.load(library, namespace=namespace)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", ["", "corral", "x y", "a.b", "a/b", "a:b", "x\n"])
def test_a_librarys_own_name_that_is_none_takes_another_namespace(
    tmp_path: Path, name: str
) -> None:
    text = name.replace("\n", "\\n")
    library = variant(tmp_path, "named", ('.name = "counting"', f'.name = "{text}"'))
    with pytest.raises(errors.LibraryError, match="another namespace="):
        corral.load(library)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "namespace", ["", "corral", "testing", "x y", "a.b", "a/b", "a:b", "x\0y", "x\n", "\ud800"]
)
def test_a_namespace_that_gymnasium_does_not_take_is_refused(counter: Path, namespace: str) -> None:
    with pytest.raises(errors.ArgumentError, match="another namespace="):
        corral.load(counter, namespace=namespace)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("namespace", [3, b"x", ["x"]])
def test_a_namespace_that_is_no_string_is_refused(counter: Path, namespace: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="namespace is a string"):
        corral.load(counter, namespace=namespace)


def test_a_library_in_anothers_place_takes_its_ids_away(tmp_path: Path) -> None:
    first = variant(tmp_path, "first", *lists('.id = "Walk-v0"'))
    second = variant(tmp_path, "second", *lists('.id = "Run-v0", .about = "Newer."'))
    assert corral.load(first, namespace="moving") == ["moving/Counter-v0", "moving/Walk-v0"]
    assert corral.load(second, namespace="moving") == ["moving/Counter-v0", "moving/Run-v0"]
    for known in (corral.envs(), gymnasium.registry):
        ids = {id for id in known if id.startswith("moving/")}
        assert ids == {"moving/Counter-v0", "moving/Run-v0"}
    assert corral.envs()["moving/Run-v0"]["about"] == "Newer."
    with pytest.raises(errors.UnknownEnvError):
        corral.make_vec("moving/Walk-v0", 1)


def test_what_is_listed_is_the_callers_to_change(counter: Path) -> None:
    corral.envs()["counting/Counter-v0"]["options"]["most"] = 0
    assert corral.envs()["counting/Counter-v0"]["options"] == {"most": 9}


class Entry:
    """An entry point whose function ends in `error`."""

    name, value = "leaving", "leaving:library"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def load(self) -> Any:
        raise self.error


def test_an_installed_package_that_exits_is_a_warning_and_an_interrupt_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries: list[Entry] = [Entry(SystemExit(3)), Entry(OSError("no such file"))]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: entries)
    with pytest.warns(UserWarning, match="the envs of 'leaving'") as warned:
        corral.load_installed()
    said = [str(one.message).rpartition("not there: ")[2] for one in warned]
    assert said == ["SystemExit(3)", "no such file"]
    entries[:] = [Entry(KeyboardInterrupt())]
    with pytest.raises(KeyboardInterrupt):
        corral.load_installed()


def test_an_id_of_a_library_that_is_not_there_says_how_to_load_one():
    with pytest.raises(errors.UnknownEnvError, match=r"corral\.load\(path\) loads one"):
        corral.make_vec("nobody/Walk-v0", 1)


def flagged(tmp_path: Path, namespace: str, *changes: tuple[str, str]) -> corral.VectorEnv:
    """Three counters with targets from 5 to 9, of which some have been changed."""
    corral.load(variant(tmp_path, namespace, *changes), namespace=namespace)
    envs = corral.make_vec(f"{namespace}/Counter-v0", 3, num_threads=1)
    envs.reset(seed=7)
    return envs


FLAGS: list[tuple[str, tuple[str, str]]] = [
    ("terminated", ("s->count >= s->target ? 1 : 0", "s->count == 1 ? 2 : 0")),
    ("truncated", ("rows->truncated[row] = 0", "rows->truncated[row] = s->count == 1 ? 255 : 0")),
]


@pytest.mark.parametrize(("flag", "change"), FLAGS, ids=[flag for flag, _ in FLAGS])
def test_a_flag_that_is_neither_0_nor_1_is_1_and_with_debug_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str, change: tuple[str, str]
) -> None:
    monkeypatch.delenv("CORRAL_DEBUG", raising=False)
    envs = flagged(tmp_path, f"lax-{flag}", change)
    step = envs.step([1, 2, 1])
    ended = step[2] if flag == "terminated" else step[3]
    assert ended.view(np.uint8).tolist() == [1, 0, 1]
    monkeypatch.setenv("CORRAL_DEBUG", "1")
    envs = flagged(tmp_path, f"strict-{flag}", change)
    wrote = 2 if flag == "terminated" else 255
    with pytest.raises(errors.EnvError, match=f"wrote {wrote} to rows->{flag} of row 0") as raised:
        envs.step([1, 2, 1])
    assert [failure.slot for failure in raised.value.failures] == [0, 2]
    batch = raised.value.batch
    assert batch[0]["count"].tolist() == [0, 2, 0]
    # Sound flags are no error, nor are those of slots that are left alone.
    envs.reset(seed=7)
    envs.step([2, 2, 2])


def test_a_bool_that_is_neither_0_nor_1_is_1_and_with_debug_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of observations, in resets too."""
    changes = (
        ("    s->bounds[1].integer = 1001;", "    s->bounds[1].integer = 1;"),
        (".dtype = CORRAL_INT32, .num_low", ".dtype = CORRAL_BOOL, .num_low"),
        (
            "((int32_t *)rows->observation[0])[row] = slot->count;",
            "((uint8_t *)rows->observation[0])[row] = (uint8_t)slot->count;",
        ),
        (
            "((int32_t *)rows->observation[1])[row] = slot->target;",
            "((uint8_t *)rows->observation[1])[row] = (uint8_t)(slot->count ? 1 : 1);",
        ),
    )
    monkeypatch.delenv("CORRAL_DEBUG", raising=False)
    envs = flagged(tmp_path, "lax-bool", *changes)
    assert envs.step([2, 1, 1])[0]["count"].view(np.uint8).tolist() == [1, 1, 1]
    monkeypatch.setenv("CORRAL_DEBUG", "1")
    envs = flagged(tmp_path, "strict-bool", *changes)
    with pytest.raises(errors.EnvError, match=r"wrote 2 to rows->observation\[0\] of row 1"):
        envs.step([1, 2, 1])
    at_reset = [(old, new.replace("? 1 : 1)", "? 1 : 9)")) for old, new in changes]
    with pytest.raises(errors.EnvError, match=r"wrote 9 to rows->observation\[1\] of row 0"):
        flagged(tmp_path, "strict-reset", *at_reset)


# A change of the counter, and what is said of it: each names the field.
TABLES: list[tuple[tuple[tuple[str, str], ...], str]] = [
    ((("    .make = make,\n", ""),), "no function 'make'"),
    ((("    .spec = spec,\n", ""),), "no function 'spec'"),
    ((("    .free_source = free_source,\n", ""),), "no function 'free_source'"),
    ((("    .chunk = make_chunk,\n", ""),), "'chunk'"),
    ((("    .reset = reset,\n", ""),), "no function 'reset'"),
    ((("    .step = step,\n", ""),), "no function 'step'"),
    ((("    .free_chunk = free_chunk,\n", ""),), "'free_ch"),
    (((".entry_size = sizeof(corral_entry)", ".entry_size = 8"),), "tables have .* and 8 bytes"),
    (((".envs = ENTRIES", ".envs = NULL"),), "1 envs at NULL"),
    (((".num_envs = 1", ".num_envs = (size_t)-1"),), "envs, where 65536 is the most"),
    ((('.name = "counting"', '.name = "\\xff"'),), "`name` of its table is not UTF-8"),
    ((('.version = "1.0"', '.version = "\\xff"'),), "`version` of its table is not UTF-8"),
    ((('.id = "Counter-v0"', '.id = "\\xff-v0"'),), r"envs\[0\]\.id is not UTF-8"),
    ((('.id = "Counter-v0"', ".id = NULL"),), r"envs\[0\]\.id is NULL or empty"),
    ((('.about = "Count up to a target."', '.about = "\\xff"'),), r"envs\[0\]\.about is not"),
    (lists('.id = "Run-v0", .options = "\\xff"'), r"envs\[1\]\.options is not UTF-8"),
]
SPECS: list[tuple[tuple[tuple[str, str], ...], str]] = [
    ((("return &((source *)source_)->spec;", "(void)source_; return NULL;"),), "`spec` gave NULL"),
    ((("s->spec.size = sizeof(corral_spec)", "s->spec.size = 8"),), "`size` of its spec is 8"),
    ((("s->spec.config = s->config", 's->spec.config = "[1]"'),), "`config` of its spec is no"),
    ((("s->spec.config = s->config", 's->spec.config = "\\xff"'),), "`config` of its spec is not"),
    ((("    .save = save,\n    .load = load,\n", ""),), "`caps` of its spec has .*save and load"),
    ((("    .call = call,\n", ""),), "`caps` of its spec has .*call"),
    ((("CORRAL_CAP_ENV | CORRAL_CAP_SAVE", "CORRAL_CAP_ENV | CORRAL_CAP_RENDER"),), "no render"),
    ((('s->observation[0].name = "count"', 's->observation[0].name = "\\xff"'),), "not UTF-8"),
    ((('s->observation[0].name = "count"', 's->observation[0].name = "target"'),), "target"),
    ((("s->action[0].dtype = CORRAL_INT64", "s->action[0].dtype = 99"),), "99"),
    ((("s->action[0].discrete = 1", "s->action[0].discrete = 7"),), "`discrete` is 7"),
    ((("s->action[0].kind = CORRAL_LEAF_FIXED", "s->action[0].kind = 9"),), "9 is no kind of leaf"),
    ((("s->spec.action.num_leaves = 1", "s->spec.action.num_leaves = 0"),), "action space has no"),
    ((("s->spec.action.leaves = s->action", "s->spec.action.leaves = NULL"),), "1 leaves at NULL"),
    ((("s->action[0].low = &s->bounds[2]", "s->action[0].low = NULL"),), "`low`: 1 bounds at NULL"),
    ((("s->action[0].high = &s->bounds[3]", "s->action[0].high = NULL"),), "`high`: 1 bounds at"),
    ((("s->bounds[3].integer = 2", "s->bounds[3].integer = -2"),), "action space"),
    ((("s->action[0].num_low = s->action[0].num_high = 1", "s->action[0].num_axes = 2; "
       "s->action[0].num_low = s->action[0].num_high = 1"),), "2 axes at NULL"),
]  # fmt: skip


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("changes", "message"), TABLES, ids=[message for _, message in TABLES])
def test_a_table_with_a_fault_is_refused_at_load_and_the_field_is_named(
    tmp_path: Path, changes: Any, message: str
) -> None:
    library = variant(tmp_path, "faulty", *changes, flags=UNUSED)
    with pytest.raises((errors.LibraryError, errors.SpaceError), match=message) as raised:
        corral.load(library, namespace="faulty")
    assert str(library) in str(raised.value)


@pytest.fixture
def faulty_spec(counter: Path) -> Iterator[str]:
    """A namespace for a library whose envs cannot be made; afterwards the sound one has it."""
    yield "faulty-spec"
    corral.load(counter, namespace="faulty-spec")


@pytest.mark.parametrize(("changes", "message"), SPECS, ids=[message for _, message in SPECS])
def test_a_spec_with_a_fault_is_refused_when_the_env_is_made_and_the_field_is_named(
    tmp_path: Path, faulty_spec: str, changes: Any, message: str
) -> None:
    corral.load(variant(tmp_path, "faulty", *changes, flags=UNUSED), namespace=faulty_spec)
    with pytest.raises((errors.LibraryError, errors.SpaceError), match=message) as raised:
        corral.make_vec(f"{faulty_spec}/Counter-v0", 1)
    assert f"{faulty_spec}/Counter-v0" in str(raised.value)


def test_the_example_at_the_top_of_the_header_keeps_its_contract(tmp_path: Path) -> None:
    header = (Path(corral.__file__).parent / "include" / "corral.h").read_text()
    comment = header.partition("*/")[0]
    found = re.search(r" \*     (#include <corral\.h>\n.*?)\n \*\n", comment, re.DOTALL)
    assert found is not None
    source = tmp_path / "walk.c"
    source.write_text(re.sub(r"\n \*     ", "\n", found[1]).replace("\n *", "\n") + "\n")
    assert corral.load(build(source, tmp_path / "walk.so")) == ["walking/Walk-v0"]
    corral.testing.check_env("walking/Walk-v0")
    with pytest.raises(errors.UnknownOptionError, match="Walk takes none"):
        corral.make_vec("walking/Walk-v0", 1, size=3)
    envs = corral.make_vec("walking/Walk-v0", 8)
    observations = envs.reset(seed=0)[0]
    assert len(set(observations.tolist())) > 2
    moved = envs.step(np.arange(8) % 2)[0] - observations
    assert moved.tolist() == [-1, 1] * 4
