"""The page of a question's way is true: the files that it lists are those that one warm question enters, and they are few."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # a process of its own

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "a-questions-way.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<file>[\w/]+\.py)` \| `(?P<function>\w+)` \|", re.MULTILINE)

MOST_FILES = 83
MOST_TYPES = 78
"""What a reader must hold in mind: a question that needs more has grown where it should not. Raised three times: from 73 and
64, when keys became the images of their expressions and bars got laws of several parts; from 75 and 69, when one writer came
to serve many askers (acts, writer, sharing), machines to agree on one copy, and answers to leave by classes; and from 80 and
77, when doors came that hand a question over with an id (ticket), a parser that gives up, and notes on conditions that
nothing fulfils."""


@pytest.fixture(scope="module")
def way():
    """What one question enters, in a process that has asked nothing before."""
    script = Path(__file__).with_name("questions_way.py")
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": paths}
    )
    return json.loads(done.stdout)


def test_the_page_lists_the_files_that_are_entered(way):
    """Each once, and none that is not."""
    listed = [found["file"] for found in ROW.finditer(PAGE)]
    assert len(listed) == len(set(listed))
    assert sorted(listed) == sorted(way["files"])


def test_the_functions_of_the_page_are_entered(way):
    """A name that is renamed is noticed here."""
    wrong = [found[0] for found in ROW.finditer(PAGE) if found["function"] not in way["files"].get(found["file"], ())]
    assert not wrong


def test_the_way_stays_short(way):
    """The limits, and what the page says of them."""
    files, types = len(way["files"]), len(way["types"])
    assert files <= MOST_FILES
    assert types <= MOST_TYPES, way["types"]
    assert f"**{files} files**" in PAGE
    assert f"**{types} types**" in PAGE


def test_the_way_sees_what_is_made(way):
    """A walk that saw nothing would pass: classes, slotted ones and named tuples are all found, enumerations are not."""
    made = set(way["types"])
    assert {"curador.query.tree.Question", "curador.randomness.entropy.Keystream", "curador.ledger.entry.ChainRow"} <= made
    assert "curador.ledger.entry.EntryKind" not in made
