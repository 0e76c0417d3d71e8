"""The calculus of R: how many rows one unit can have."""

import pytest
from plan_schemas import Public, event_tables, schema
from plan_trees import by_unit, column, equal, joined, number, projected, scan, union, where

from curador.errors import NotPrivate
from curador.plan.caps import RequestedCaps, bound_contribution, caps_of
from curador.plan.ownership import ownership_of
from curador.study.model import Caps

S = schema()
PEOPLE, VISITS, REGIONS = (scan(S, name) for name in ("people", "visits", "regions"))
E = schema(event_tables())
EVENTS = scan(E, "events")


def rows(relation, cap=None, known=S):
    return ownership_of(relation, known, cap=cap).rows


@pytest.mark.parametrize(
    ("relation", "plain", "capped"),
    [
        (PEOPLE, 1, 1),
        (VISITS, None, 5),
        (where(VISITS, equal(column(VISITS, "rating"), number(3))), None, 5),
        (projected(VISITS, "id", "spent"), None, 5),
        (joined(PEOPLE, VISITS), None, 5),
        (joined(VISITS, VISITS), None, 25),
        (joined(VISITS, PEOPLE, "left"), None, 5),
        (joined(PEOPLE, VISITS, "full"), None, 1 * 5 + 1 + 5),
        (joined(PEOPLE, VISITS, "semi"), 1, 1),
        (joined(VISITS, PEOPLE, "anti"), None, 5),
        (union(VISITS, VISITS), None, 10),
        (by_unit(VISITS), 1, 1),
        (by_unit(VISITS, "kind"), None, 5),
        (union(by_unit(VISITS), by_unit(VISITS)), 2, 2),
        (joined(VISITS, REGIONS, on=("city", "city")), None, 5),
    ],
    ids=str,
)
def test_rows_of_one_unit(relation, plain, capped):
    """Each operator's rule, without and with a cap of five rows on base tables."""
    assert rows(relation) == plain
    assert rows(relation, 5) == capped


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_a_public_table_multiplies_by_its_most_frequent_key(kind):
    """A thousand public rows for one key give a unit a thousand rows; without an equality, all rows of the table."""
    crowded = schema(public=Public(many=1000))

    assert rows(joined(PEOPLE, REGIONS, kind, on=("city", "city")), known=crowded) == 1000
    assert rows(joined(PEOPLE, REGIONS, kind, on=None), known=crowded) == 100
    assert rows(joined(EVENTS, REGIONS, kind, on=None), known=E) == 100


def test_a_row_that_is_a_unit_can_be_multiplied():
    """Three copies of a table have three rows for each of its rows."""
    assert rows(EVENTS, known=E) == 1
    assert rows(union(EVENTS, EVENTS, EVENTS), known=E) == 3


@pytest.mark.parametrize(
    "relation",
    [
        joined(REGIONS, PEOPLE, "left", on=("city", "city")),
        joined(PEOPLE, REGIONS, "full", on=("city", "city")),
        joined(PEOPLE, REGIONS, "right", on=("city", "city")),
        joined(REGIONS, PEOPLE, "semi", on=("city", "city")),
        union(PEOPLE, REGIONS),
    ],
    ids=str,
)
def test_rows_without_an_owner_are_refused(relation):
    """Public rows that no person's row keeps would appear when somebody leaves."""
    with pytest.raises(NotPrivate):
        ownership_of(relation, S)


def cap_of(relation, asked=None, *, known=S, keyed=False, private=False, units=False, groups=None):
    wanted = asked or RequestedCaps()
    needs = {"keyed": keyed, "private_keys": private, "counts_units": units, "known_groups": groups}
    return bound_contribution(relation, known, caps_of(relation, known, wanted), wanted, **needs)


def test_the_prepared_rank_serves_where_every_row_counts():
    """No filter and no join: the rank; a filter first: a window; one row a unit: nothing."""
    assert cap_of(VISITS)[0].by == "rank"
    assert cap_of(where(VISITS, equal(column(VISITS, "rating"), number(3))))[0].by == "window"
    assert cap_of(joined(PEOPLE, VISITS))[0].by == "window"
    assert cap_of(PEOPLE)[0].by == "none"
    assert cap_of(by_unit(VISITS))[0].by == "none"
    assert cap_of(union(*[EVENTS] * 11), known=E)[0].by == "window"
    assert cap_of(EVENTS, known=E)[0] == cap_of(EVENTS, known=E)[0].__class__(1, "none")


def test_the_rank_may_be_asked_for_under_a_filter_only_if_it_bounds_the_result():
    """A public table that multiplies rows brings the window back."""
    filtered = where(VISITS, equal(column(VISITS, "rating"), number(3)))

    assert cap_of(filtered, RequestedCaps(prepared=True))[0].by == "rank"
    assert cap_of(joined(filtered, filtered), RequestedCaps(prepared=True))[0].by == "window"


def test_groups_are_capped_where_it_helps():
    """A cap on groups changes nothing for counts under a bare row cap, so it is not executed; for units and keys it is."""
    assert cap_of(VISITS, keyed=True, groups=50)[0].groups is None
    assert cap_of(VISITS, keyed=True, groups=50)[1].groups == 10
    assert cap_of(VISITS, keyed=True, units=True, groups=50)[0].groups == 4
    assert cap_of(VISITS, keyed=True, private=True)[0].groups == 4
    assert cap_of(VISITS, keyed=True, private=True)[1].groups == 4
    assert cap_of(VISITS, keyed=True, units=True, groups=3)[0].groups is None
    known = schema(caps=Caps(10, groups=2, rows_per_group=3))
    assert cap_of(scan(known, "visits"), known=known, keyed=True, groups=50)[0] == cap_of(
        scan(known, "visits"), known=known, keyed=True, groups=50
    )[0].__class__(10, "rank", 2, 3)


def test_an_analyst_lowers_caps_and_raises_them_only_as_the_owner_allows():
    """The owner's caps_max is the ceiling; without one, the caps are."""
    assert cap_of(VISITS, RequestedCaps(rows=3))[0].rows == 3
    with pytest.raises(ValueError, match=r"caps\.rows must be from 1 to 10"):
        cap_of(VISITS, RequestedCaps(rows=11))
