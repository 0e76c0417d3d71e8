"""The runner of mutants: what it seeds is what runs, wherever it was imported to, and its page speaks of the same modules."""

import functools
import re
import sys
import types
from pathlib import Path

import pytest

pytest.importorskip("mutmut")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import mutants  # noqa: E402

SOURCE = """
import functools

def twice(x, factor=2):
    return x * factor

class Pair:
    @property
    def total(self):
        return 1 + 2

    @classmethod
    def made(cls):
        return 3 > 4

@functools.lru_cache
def kept(x):
    return x - 1
"""


@pytest.fixture
def module(tmp_path):
    """A module of the text above, and its mutants by function."""
    path = tmp_path / "small.py"
    path.write_text(SOURCE, encoding="utf-8")
    made = types.ModuleType("small")
    exec(compile(SOURCE, path, "exec"), vars(made))  # noqa: S102
    return made, mutants.mutants_of(path)


def test_functions_methods_and_what_is_decorated_have_mutants(module):
    """Properties, class methods and remembered functions, too, though mutmut leaves the first and the last out."""
    assert {one.function for one in module[1]} == {"twice", "Pair.total", "Pair.made", "kept"}
    assert any(one.change() == "-    return x - 1\n+    return x + 1" for one in module[1])


@pytest.mark.parametrize(
    ("name", "change", "ask", "before", "after"),
    [
        ("twice", "x / factor", lambda one: one.twice(6), 12, 3),
        ("twice", "factor=3", lambda one: one.twice(6), 12, 18),
        ("Pair.total", "1 - 2", lambda one: one.Pair().total, 3, -1),
        ("Pair.made", "3 >= 4", lambda one: one.Pair.made(), False, False),
        ("kept", "x + 1", lambda one: one.kept(5), 4, 6),
    ],
)
def test_what_is_seeded_runs(module, name, change, ask, before, after):
    """Through the name that somebody imported before, and with changed default values."""
    made, found = module
    imported = functools.partial(ask, types.SimpleNamespace(**vars(made)))
    mutant = next(one for one in found if one.function == name and change in one.false)
    assert mutants.in_fork(imported, 10.0) == before  # a fork of its own, as remembered answers would stay
    mutants.seed(made, mutant)
    assert imported() == after


@pytest.mark.slow
def test_a_fork_that_dies_or_hangs_says_nothing():
    """None, and the process that asked goes on."""

    def hang():
        while True:
            pass

    assert mutants.in_fork(lambda: 7, 10.0) == 7
    assert mutants.in_fork(lambda: sys.exit(1), 10.0) is None
    assert mutants.in_fork(hang, 0.1) is None


def test_the_page_has_every_module_above_the_floor():
    """One line for each, all of its mutants tried."""
    page = (ROOT / "docs" / "reference" / "mutants.md").read_text(encoding="utf-8")
    lines = {
        name: rest for name, *rest in re.findall(r"\| `([\w/]+\.py)` \| (\d+) \| (\d+) \| \d+ \| (\d+) \| ([\d.]+) %", page)
    }

    assert set(lines) == set(mutants.SUBJECTS)
    for every, killed, lived, score in lines.values():
        assert int(killed) + int(lived) == int(every)
        assert float(score) == pytest.approx(100 * int(killed) / int(every), abs=0.05)
        assert float(score) >= mutants.FLOOR
    for subject, tests in mutants.SUBJECTS.items():
        assert (mutants.SOURCE / subject).is_file()
        assert all((ROOT / one).is_file() for one in tests)
