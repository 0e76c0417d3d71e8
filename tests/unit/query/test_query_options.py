"""BigQuery's privacy clause becomes options of the question."""

from fractions import Fraction

import pytest
from query_words import read

from curador.errors import Refused
from curador.query.tree import Options

CLAUSE = "WITH DIFFERENTIAL_PRIVACY OPTIONS"
BOUNDS = "contribution_bounds_per_group"


def options(text, dialect="bigquery", name="people"):
    return read(text, name, dialect).options


@pytest.mark.parametrize("dialect", ["bigquery", "duckdb"])
def test_the_clause_is_read_in_both_places(dialect):
    """Behind SELECT or in front of it, in any dialect."""
    said = "(epsilon = 1.5, max_groups_contributed = 2, max_rows_contributed = 3, privacy_unit_column = USER_ID)"
    expected = Options(Fraction(3, 2), 3, 2)

    assert options(f"SELECT {CLAUSE}{said} COUNT(*) FROM visits", dialect) == expected
    assert options(f"{CLAUSE}{said} SELECT COUNT(*) FROM visits", dialect) == expected
    assert options(f"WITH v AS (SELECT * FROM visits) SELECT {CLAUSE}{said} COUNT(*) FROM v", dialect) == expected


def test_without_the_clause_nothing_is_asked_for():
    """The options of a plain question are empty."""
    assert options("SELECT COUNT(*) FROM visits") == Options()


def test_bounds_belong_to_the_column_whose_aggregate_has_them():
    """Named bounds are taken out of the call and told by the name of the output column."""
    text = f"""
        SELECT {CLAUSE}(epsilon = 1) place, AVG(spent, contribution_bounds_per_group => (-1.5, 100)) AS m,
            SUM(items, contribution_bounds_per_group => (0, 5)), COUNT(*) AS n
        FROM visits GROUP BY place
    """

    assert options(text).bounds == (("m", Fraction(-3, 2), Fraction(100)), ("sum_items", Fraction(0), Fraction(5)))
    items = "COUNT(*) AS n, SUM(spent) AS s, AVG(items) AS a"
    every = options(f"SELECT {CLAUSE}(contribution_bounds_per_group = (0, 10)) {items} FROM visits")
    assert [name for name, _, _ in every.bounds] == ["s", "a"]


def test_a_unit_behind_a_reference_may_be_named():
    """privacy_unit_column is the unit's column of a table that is read."""
    assert options(f"SELECT {CLAUSE}(privacy_unit_column = o.o_customer) COUNT(*) FROM orders o", name="shop") == Options()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"SELECT {CLAUSE}(delta = 1e-6) COUNT(*) FROM visits", '"delta" is not known'),
        (f"SELECT {CLAUSE}(kappa = 1) COUNT(*) FROM visits", '"kappa" is not known'),
        (f"SELECT {CLAUSE}(epsilon = 0) COUNT(*) FROM visits", "above 0"),
        (f"SELECT {CLAUSE}(epsilon = -1) COUNT(*) FROM visits", "above 0"),
        (f"SELECT {CLAUSE}(epsilon = 1e999) COUNT(*) FROM visits", "range of a double"),
        (f"SELECT {CLAUSE}(epsilon = x) COUNT(*) FROM visits", "must be a number"),
        (f"SELECT {CLAUSE}(epsilon = 1, epsilon = 2) COUNT(*) FROM visits", "must stand once"),
        (f"SELECT {CLAUSE}(max_groups_contributed = 1.5) COUNT(*) FROM visits", "whole number"),
        (f"SELECT {CLAUSE}(max_rows_contributed = 0) COUNT(*) FROM visits", "whole number"),
        (f"SELECT {CLAUSE}(privacy_unit_column = visit_id) COUNT(*) FROM visits", "study's unit"),
        (f"SELECT {CLAUSE}() COUNT(*) FROM visits", "not known"),
        (f"SELECT {CLAUSE} COUNT(*) FROM visits", "must go on with ("),
        ("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM visits", "must go on with OPTIONS"),
        (f"SELECT {CLAUSE}(epsilon = 1 COUNT(*) FROM visits)", "must go on with , or )"),
        (f"{CLAUSE}(epsilon = 1) SELECT {CLAUSE}(epsilon = 1) COUNT(*) FROM visits", "must stand once"),
        ("SELECT AVG(spent, contribution_bounds_per_group => (0, 1)) FROM visits", "must come with"),
        (
            f"SELECT {CLAUSE}(epsilon = 1) AVG(spent, contribution_bounds_per_group => (1, 0)) FROM visits",
            "lower below upper",
        ),
        (
            f"SELECT {CLAUSE}(epsilon = 1) COUNT(spent, contribution_bounds_per_group => (0, 1)) FROM visits",
            "SUM, AVG, variance or quantile",
        ),
        (
            f"SELECT {CLAUSE}(epsilon = 1) COUNT(*) FROM visits HAVING SUM(items, {BOUNDS} => (0, 1)) > 1",
            "of the SELECT list",
        ),
        (
            f"SELECT {CLAUSE}(epsilon = 1) SUM(spent, {BOUNDS} => (0, 1)) / SUM(items, {BOUNDS} => (0, 2)) FROM visits",
            "the same for all",
        ),
    ],
)
def test_options_are_refused_by_name(text, rule):
    """Whatever is not known, or would be another study's, is refused."""
    with pytest.raises(Refused) as refusal:
        options(text)

    assert rule in str(refusal.value)
