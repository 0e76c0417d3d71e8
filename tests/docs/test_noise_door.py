"""Noise has one door: nobody but the seam asks for entropy, and numbers that are drawn elsewhere are public ones."""

import ast
from pathlib import Path

import pytest

from parsed import nodes_of

SOURCE = Path(__file__).parents[2] / "src" / "curador"
ALLOWED = {
    "mechanisms/seam.py": "the door",
    "randomness/entropy.py": "where it is made",
    "audit/mutants.py": "wrong on purpose",
    "cli/demo_mathematics.py": "wrong on purpose: noise in floating point, to be attacked",
    "curator/rehearsal.py": "a stream of its own, thrown away, before any row is read",
    "client/connection.py": "how long a client waits before it tries again",
}
"""Clients of `local/client/` draw on people's devices, by the standard library alone."""

DEVICES = "local/client/"
NAMES = {"token_hex", "token_bytes", "token_urlsafe"}


def sources():
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")


def askers(files):
    """Whoever names `entropy()` or a keystream, imports the system's randomness, or draws numbers without a public seed."""
    for name, text in files:
        for node in nodes_of(text):
            found = _found(node)
            if found is not None:
                yield name, found


def _found(node):
    match node:
        case ast.ImportFrom(module="curador.randomness.entropy") if {one.name for one in node.names} & {
            "entropy",
            "Keystream",
        }:
            return "entropy"
        case ast.ImportFrom(module="secrets" | "random"):
            return node.module
        case ast.Import() if "random" in {one.name for one in node.names}:
            return "random"
        case ast.Attribute(value=ast.Name(id="secrets"), attr=made) if made not in NAMES:
            return f"secrets.{made}"  # names, tokens and keys are no noise
        case ast.Call(func=ast.Name(id="entropy" | "Keystream") | ast.Attribute(attr="entropy" | "Keystream" | "urandom")):
            return "entropy"
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="random"), attr=drawing)):
            seeded = drawing == "default_rng" and len(node.args) == 1 and not _asks(node.args[0])
            return None if seeded else f"numpy.random.{drawing}"
    return None


def _asks(seed):
    """Whether a seed is made by a call, or is None: then it is no public number."""
    nothing = isinstance(seed, ast.Constant) and seed.value is None
    return nothing or any(isinstance(one, ast.Call) for one in ast.walk(seed))


def test_nobody_but_the_seam_asks_for_entropy():
    """A mechanism gets its source from the seam: so a recorder sees every draw, and the key is erased after it."""
    beside = {name: what for name, what in askers(sources()) if name not in ALLOWED and not name.startswith(DEVICES)}

    assert beside == {}


@pytest.mark.slow
def test_what_is_allowed_is_needed():
    """A place that no longer asks is taken off the list."""
    assert set(ALLOWED) <= {name for name, _ in askers(sources())}


@pytest.mark.parametrize(
    "line",
    [
        "from curador.randomness.entropy import entropy",
        "from curador.randomness.entropy import U64, Keystream",
        "from curador.randomness import entropy as e; e.entropy().words(1)",
        "stream = entropy()",
        "import os; os.urandom(8)",
        "import random",
        "import secrets; secrets.randbelow(2)",
        "from random import gauss",
        "import numpy as np; np.random.normal(size=3)",
        "import numpy as np; np.random.default_rng()",
        "import numpy as np; np.random.default_rng(None)",
        "import numpy as np; np.random.default_rng(stream.bits(128))",
    ],
)
def test_a_second_door_is_caught(line):
    """The check itself can fail: every way that was ever used, and some more."""
    assert list(askers([("learn/beside.py", line)])) != []


def test_public_numbers_are_no_noise():
    """What a public seed makes is the same for everybody; and names of files are no noise."""
    lines = (
        "import secrets; secrets.token_hex(8)",
        "import numpy as np; np.random.default_rng(7).normal(size=3)",
        "from curador.randomness.entropy import U64, Entropy",
    )

    assert list(askers([("learn/start.py", line) for line in lines])) == []
