"""Record what NumPy draws, for tests/rng.rs: writes rng.json beside this file.

    python make_rng_vectors.py

The recording in the repository is of NumPy 2.4.6 (x86-64, the wheel of PyPI, on
glibc); the file says which version wrote it. Every run of one version writes the
same bytes. Floats are recorded as the 64 bits they are made of. Long sequences
are recorded as a digest: the sum of word[i] * (2 i + 1), modulo 2**64, which a
single wrong word always changes.
"""

import json
import pathlib
import random
import struct

import numpy as np

HERE = pathlib.Path(__file__).parent

INT_SEEDS = [0, 1, 2, 42, 123, 0xDEADBEEF, 2**31, 2**32 - 1, 2**32, 2**32 + 1]
INT_SEEDS += [12345678901234567, 2**63 - 1, 2**63, 2**64 - 1]
LIST_SEEDS = [[], [0], [0, 0], [1, 2], [2, 1], [42, 0], [2**32, 5], [5, 2**32], [1, 2, 3, 4]]
LIST_SEEDS += [[1, 2, 3, 4, 5, 6, 7], [2**64 - 1] * 3, [0, 2**32 - 1, 2**63, 9, 0, 0]]
WIDE_SEEDS = [2**64, 2**64 + 5, 2**128 - 1, 2**200 + 3**100]

# The widths around which NumPy changes its method, and some that reject often:
# just above half of 2**32 or 2**64, every other word is thrown away.
RANGES = [(0, 1), (-7, -6), (0, 2), (1, 7), (-5, 5), (0, 1000), (0, 2**31), (0, 2**31 + 1)]
RANGES += [(0, 3 * 2**30 + 1), (0, 2**32 - 2), (0, 2**32 - 1), (0, 2**32), (-(2**31), 2**31)]
RANGES += [(0, 2**32 + 1), (-(2**33), 2**33), (0, 2**62 + 1), (-(2**62), 2**62 + 1)]
RANGES += [(0, 2**63 - 1), (-(2**63), 0), (-(2**63), 1), (-(2**63), 2**63 - 1)]

# The words a bit generator is asked for, in this order.
WIDTHS = [64, 32, 32, 64, 64, 32, 32, 32, 64, 32, 64, 32, 32, 32, 32, 32, 64, 32, 64, 64, 32]

UNIFORMS = [(0.0, 1.0), (-0.05, 0.05), (-0.6, -0.4), (-3.5, 100.25), (1e-300, 3e300), (2.5, 2.5)]
NORMALS = [(0.0, 1.0), (10.0, 0.5), (-1e6, 1e-3), (3.0, 0.0)]


def bits(values):
    """Floats as the integers of the same bits."""
    return np.atleast_1d(np.asarray(values, dtype=np.float64)).view(np.uint64).tolist()


def digest(words):
    words = np.ascontiguousarray(words).view(np.uint64)
    weights = 2 * np.arange(len(words), dtype=np.uint64) + 1
    return int((words * weights).sum(dtype=np.uint64))


def words_of(seed):
    """The 32-bit words that NumPy makes of a seed too wide for 64 bits."""
    words = []
    while seed:
        seed, word = divmod(seed, 2**32)
        words.append(word)
    return words


def seed_sequence(entropy):
    sequence = np.random.SeedSequence(entropy)
    return {
        "u32": sequence.generate_state(9).tolist(),
        "u64": sequence.generate_state(7, np.uint64).tolist(),
    }


def seed_sequences():
    """A seed is an integer, a list of them, or one that goes as 32-bit words."""
    cases = [{"seed": seed, **seed_sequence(seed)} for seed in INT_SEEDS]
    cases += [{"seeds": seeds, **seed_sequence(seeds)} for seeds in LIST_SEEDS]
    cases += [{"words": words_of(seed), **seed_sequence(seed)} for seed in WIDE_SEEDS]
    return cases


def raw(seed):
    """64- and 32-bit draws mixed, then floats, then bytes."""
    generator = np.random.PCG64(seed)
    interface = generator.ctypes
    draws = [interface.next_uint64 if width == 64 else interface.next_uint32 for width in WIDTHS]
    return {
        "words": [draw(interface.state_address) for draw in draws],
        "doubles": bits([interface.next_double(interface.state_address) for _ in range(5)]),
        "bytes": list(np.random.Generator(generator).bytes(11)),
    }


def distributions(seed):
    """Each method alone, from a fresh generator."""

    def rng():
        return np.random.default_rng(seed)

    return {
        "random": bits(rng().random(8)),
        "uniform": [
            {"low": bits(low)[0], "high": bits(high)[0], "bits": bits(rng().uniform(low, high, 5))}
            for low, high in UNIFORMS
        ],
        "integers": [
            {"low": low, "high": high, "values": rng().integers(low, high, 8).tolist()}
            for low, high in RANGES
        ],
        "normal": [
            {
                "loc": bits(loc)[0],
                "scale": bits(scale)[0],
                "bits": bits(rng().normal(loc, scale, 5)),
            }
            for loc, scale in NORMALS
        ],
        "standard_normal": bits(rng().standard_normal(8)),
        "permutation": rng().permutation(23).tolist(),
        "digests": {
            "of": 40_000,
            "random": digest(rng().random(40_000)),
            "standard_normal": digest(rng().standard_normal(40_000)),
            "integers": digest(rng().integers(-9, 3 * 2**30, 40_000)),
            "wide_integers": digest(rng().integers(-(2**62), 2**62 + 1, 40_000)),
        },
    }


def mixed(seed, count=150):
    """One generator, all methods in a mixed order, scalar calls: they must agree
    on the half word one leaves to the next."""
    pick = random.Random(seed)
    rng = np.random.default_rng(seed)
    calls = []
    for _ in range(count):
        method = pick.choice(["random", "uniform", "integers", "choice", "normal", "shuffle"])
        if method == "random":
            args, result = [], bits(rng.random())
        elif method == "uniform":
            low, high = pick.choice(UNIFORMS)
            args, result = bits([low, high]), bits(rng.uniform(low, high))
        elif method == "integers":
            low, high = pick.choice(RANGES)
            args, result = [low, high], [int(rng.integers(low, high))]
        elif method == "choice":
            n = pick.choice([1, 2, 3, 10, 1000, 2**32, 2**40])
            args, result = [n], [int(rng.choice(n))]
        elif method == "normal":
            loc, scale = pick.choice(NORMALS)
            args, result = bits([loc, scale]), bits(rng.normal(loc, scale))
        else:
            items = list(range(pick.randrange(8)))
            args = [len(items)]
            rng.shuffle(items)
            result = items
        calls.append({"method": method, "args": args, "result": result})
    return calls


def ziggurat():
    """The tables compiled into NumPy's own library. Each is 256 entries of 8
    bytes, found by how ziggurat_constants.h begins it."""
    library = pathlib.Path(np.random.__file__).parent / "lib" / "libnpyrandom.a"
    data = library.read_bytes()
    beginnings = {
        "ki_double": struct.pack("<2Q", 0x000EF33D8025EF6A, 0),
        "wi_double": struct.pack("<2d", 8.68362706080130616677e-16, 4.77933017572773682428e-17),
        "fi_double": struct.pack("<2d", 1.0, 9.77101701267671596263e-01),
    }
    tables = {}
    for name, beginning in beginnings.items():
        if data.count(beginning) != 1:
            raise SystemExit(f"{library}: {name} begins in {data.count(beginning)} places, not 1")
        tables[name] = list(struct.unpack_from("<256Q", data, data.find(beginning)))
    return tables


def main():
    recording = {
        "numpy": np.__version__,
        "widths": WIDTHS,
        "seed_sequences": seed_sequences(),
        "generators": [{"seed": seed, **raw(seed), **distributions(seed)} for seed in INT_SEEDS],
        "mixed": [{"seed": seed, "calls": mixed(seed)} for seed in INT_SEEDS],
        "ziggurat": ziggurat(),
    }
    # One line per case: a diff shows which one changed.
    text = json.dumps(recording, separators=(",", ":"))
    for opening in ('{"seed":', '{"seeds":', '{"words":', '{"method":', '"ziggurat":'):
        text = text.replace(opening, "\n" + opening)
    (HERE / "rng.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
