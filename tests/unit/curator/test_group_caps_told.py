"""What caps on groups left out is told by its own numbers, and a line about rows never claims to be all."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from surveyed_studies import BY_CITY, BY_SHOP, COUNT, opened, write_rows

from curador.curator import finding, survey

pytestmark = pytest.mark.slow


def write_shoppers(folder):
    """Units with 40 visits, 30 of them in one shop and two in each of five others."""
    write_rows(folder)
    owners = [unit for unit in range(400) for _ in range(40)]
    shops = [f"shop {max(place - 28, 0) // 2}" for _ in range(400) for place in range(40)]
    pq.write_table(
        pa.table({"user_id": owners, "spent": [5] * len(owners), "city": ["Lima"] * len(owners), "shop": shops}),
        folder / "visits.parquet",
    )


def shares(lines, start):
    """The interval of the one line that begins like that, and of how many it speaks."""
    (line,) = [one for one in lines if one.startswith(start)]
    low, high = (float(one) / 100 for one in re.search(r"\(([\d.]+) – ([\d.]+) %\) are missing", line).groups())
    return low, high, int(re.search(r"of the first ([\d,]+)", line)[1])


@pytest.fixture
def curator(tmp_path, monkeypatch):
    """A study whose survey finds 64 rows, and whose questions find 2 groups and 4 rows in one."""
    monkeypatch.setattr(survey, "choose_rows", lambda *_given, **_named: 64)
    monkeypatch.setattr(finding, "choose_groups", lambda *_given, **_named: 2)
    monkeypatch.setattr(finding, "choose_in_group", lambda *_given, **_named: 4)
    write_shoppers(tmp_path)
    with opened(tmp_path, budget='{ epsilon = "200", delta = "1e-6" }') as one:
        one.survey()
        yield one


def test_each_cap_is_told_by_its_own_numbers(curator):
    """The cap on rows takes nothing here, that on groups four of six, that inside a group 26 of 30."""
    answer = curator.ask(BY_SHOP, spend="10%")
    assert answer.receipt["caps"][0]["groups"] == 2
    low, high, height = shares(answer.notes, "in visits, by the cap on rows alone, of the first")
    assert (low, height) == (0, 128)
    assert high < 0.5
    low, high, height = shares(answer.notes, "of the first 8 groups per customer")
    assert low <= 4 / 6 <= high
    assert high - low < 0.3
    low, high, height = shares(answer.notes, "of the first 32 rows in the largest group of a customer")
    assert low <= 26 / 30 <= high
    assert high - low < 0.3


def test_what_was_not_counted_is_not_known(curator):
    """Caps that the asker gave: how much more they leave out is not known, and it is said that it is more."""
    answer = curator.ask(BY_SHOP, spend="1%", caps={"rows": 32, "groups": 3})
    assert "beyond 3 groups per customer more is missing, and how much is not known" in answer.notes
    assert any(one.startswith("in visits, by the cap on rows alone") for one in answer.notes)


def test_where_no_group_is_capped_nothing_is_said_of_groups(curator):
    """A whole table, and keys that are known: the line about rows is of all that is missing."""
    for text in (COUNT, BY_CITY.replace(" WHERE spent > 400", "")):
        notes = curator.ask(text, spend="1%").notes
        assert any(one.startswith("in visits, of the first") for one in notes)
        assert not any("alone" in one or "group of a" in one for one in notes)
