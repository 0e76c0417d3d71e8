"""Arithmetic on dates needs bounds as arithmetic on numbers does: the years 1 to 9999 are none."""

import datetime as dt

import pytest
from plan_schemas import schema

from curador.errors import NotPrivate
from curador.plan.build import build_plan
from curador.query.sql import parse
from curador.study.model import Caps, Column, Table, UnitColumn
from curador.study.values import Type

YEAR = (dt.date(2025, 1, 1), dt.date(2025, 12, 31))
TRIPS = {"id": Type.INTEGER, "began": Type.DATE, "ended": Type.DATE, "free": Type.DATE}


def known():
    """Trips with two dates that have bounds, and one that has none."""
    columns = (Column("began", Type.DATE, YEAR), Column("ended", Type.DATE, YEAR))
    return schema([(Table("trips", "t.parquet", UnitColumn("id"), caps=Caps(3), columns=columns), TRIPS)])


def planned(argument, where=""):
    """Return the one block of a mean."""
    return build_plan(parse(f"SELECT AVG({argument}) AS m FROM trips {where}", known()), known()).blocks[0]


@pytest.mark.parametrize(
    "argument",
    [
        "date_diff('day', began, free)",
        "date_diff('week', free, ended)",
        "1 + date_diff('day', DATE '2025-01-01', free)",
        "EXTRACT(year FROM free)",
        "2 * year(free)",
    ],
)
def test_a_date_without_bounds_is_refused(argument):
    """One sentence that names what is missing and what to do, before any price."""
    with pytest.raises(NotPrivate, match=r"needs both bounds of .*; known is") as refusal:
        planned(argument)
    assert "declare `bounds`" in refusal.value.hint


def test_bounds_that_are_declared_asked_for_or_written_will_do():
    """Of the column, of the aggregate, in a condition, or in the expression itself."""
    assert "dates" in " ".join(planned("date_diff('day', began, ended)").notes)
    assert "[2025, 2025]" in " ".join(planned("EXTRACT(year FROM began)").notes)
    assert planned("date_diff('day', began, free)", "WHERE free BETWEEN DATE '2025-01-01' AND DATE '2025-06-30'").notes
    assert planned("greatest(0, least(90, date_diff('day', began, free)))").notes
    question = parse("SELECT AVG(date_diff('day', began, free)) AS m FROM trips", known())
    assert build_plan(question, known(), bounds={"m": (0, 90)}).blocks[0].notes


def test_parts_of_a_date_need_none():
    """A month is one of twelve."""
    assert "a month" in " ".join(planned("EXTRACT(month FROM free)").notes)
