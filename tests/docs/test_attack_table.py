"""The table of `make attack` names tests that are there, and enough seeded bugs."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from attack_table import BUGS, ROWS  # noqa: E402

NAMED = sorted({name for row in ROWS for name in (*row.tests, *row.full)} | set(BUGS.values()))


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_is_there(name):
    """Its file, its function, and each of its parameters that can be read there."""
    file, _, test = name.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert not test or re.search(rf"^def {re.escape(test.partition('[')[0])}\(", text, re.MULTILINE)


def test_every_row_is_run_or_says_why_not():
    """And no number stands twice."""
    assert all(row.tests or row.full or row.reason for row in ROWS)
    assert len({row.number for row in ROWS}) == len(ROWS)


def test_there_are_bugs_enough():
    """At least 25, each with a test of its own."""
    assert len(BUGS) >= 25
    assert len(set(BUGS.values())) == len(BUGS)


def test_a_name_that_is_not_there_is_seen():
    """The check itself can fail."""
    with pytest.raises(AssertionError):
        test_a_named_test_is_there("tests/docs/test_attack_table.py::test_nothing")
