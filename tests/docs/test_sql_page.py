"""The page on SQL is true: what it shows is planned, what it says is refused is refused, and what to write instead is not."""

import re
from pathlib import Path

import example_data
import pytest

import curador as cu

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8")
REFUSALS = PAGE.partition("## What is refused")[2]
STATEMENT = re.compile(r"`((?:SELECT|WITH) [^`]*)`")
REFUSED = [match.group(1) for match in re.finditer(r"^\| `((?:SELECT|WITH) [^`]*)` \|", REFUSALS, re.MULTILINE)]
UNDERSTOOD = sorted({match.group(1) for match in STATEMENT.finditer(PAGE)} - set(REFUSED))


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    """The study of the page; nothing is asked of it."""
    folder = tmp_path_factory.mktemp("sql")
    example_data.write(folder)
    with cu.open(folder / "study.toml", engine={"worker": "inline"}) as opened:
        yield opened


@pytest.mark.parametrize("statement", UNDERSTOOD)
def test_what_is_shown_is_understood(curator, statement):
    """It has a price."""
    assert curator.preview(statement, spend="5%").cost


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_said_to_be_refused_is(curator, statement):
    """With a reason that is safe to show, and for nothing."""
    with pytest.raises(cu.Refused):
        curator.preview(statement, spend="5%")


def test_the_page_has_statements():
    """Both kinds are found."""
    assert len(REFUSED) > 20
    assert len(UNDERSTOOD) > 40
