"""BigQuery's privacy clause becomes options of the question."""

from fractions import Fraction

import pytest
from query_words import read, shape, words

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


def test_bounds_per_group_clamp_what_a_unit_has_in_a_group():
    """SUM, COUNT and AVG are of groups of (unit, keys), as BigQuery says; NULL stays NULL."""
    text = f"""
        SELECT {CLAUSE}(epsilon = 1) place, AVG(spent, {BOUNDS} => (-1.5, 100)) AS m, SUM(items, {BOUNDS} => (0, 5)) AS s,
            COUNT(*, {BOUNDS} => (0, 3)) AS n, COUNT(DISTINCT user_id) AS u, COUNT_IF(returned) AS r
        FROM visits GROUP BY place HAVING COUNT(*) > 2 ORDER BY SUM(items)
    """
    question = read(text, dialect="bigquery")
    (block,) = question.blocks

    inner = [words(one) for one in block.relation.aggregates]
    assert (shape(block.relation), inner) == (
        "(visits) by unit #1, #3: avg(#4), sum(#5), count(), count(| #7)",
        ["avg(#4)", "sum(#5)", "count()", "count(| #7)"],
    )
    assert [words(item.expression) for item in block.items] == [
        "K0",
        "avg(case(is_null(#2), NULL, least(greatest(#2, -3/2), 100)))",
        "sum(case(is_null(#3), NULL, least(greatest(#3, 0), 5)))",
        "cast(sum(least(greatest(#4, 0), 3)))",
        "count_units()",
        "cast(sum(#5))",
    ]
    assert words(block.having) == ">(cast(sum(#4)), 2)"
    assert [words(sort.expression) for sort in question.order] == ["sum(#3)"]
    assert question.options.bounds == ()


def test_a_mean_under_the_clause_is_one_of_units():
    """AVG is the mean of units' means there; sums and counts without bounds are of rows, in either way."""
    mean = read(f"SELECT {CLAUSE}(epsilon = 1) AVG(spent) FROM visits").blocks[0]
    plain = read(f"SELECT {CLAUSE}(epsilon = 1) SUM(spent), COUNT(*) FROM visits").blocks[0]

    assert (shape(mean.relation), words(mean.items[0].expression)) == ("(visits) by unit #1: avg(#4)", "avg(#1)")
    assert (shape(plain.relation), words(plain.items[0].expression)) == ("visits", "sum(#4)")


def test_where_every_row_is_a_unit_its_value_is_clamped():
    """Its sum and its mean are its value."""
    block = read(f"SELECT {CLAUSE}(epsilon = 1) AVG(fare, {BOUNDS} => (0, 50)) AS m FROM trips", "trips", "bigquery").blocks[
        0
    ]
    assert (shape(block.relation), words(block.items[0].expression)) == (
        "trips",
        "avg(case(is_null(#2), NULL, least(greatest(#2, 0), 50)))",
    )


def test_bounds_per_row_are_of_quantiles():
    """PERCENTILE_CONT has them in BigQuery; they are told by the name of the output column."""
    text = f"SELECT {CLAUSE}(epsilon = 1) PERCENTILE_CONT(spent, 0.5, contribution_bounds_per_row => (0, 9)) AS m FROM visits"
    assert options(text).bounds == (("m", Fraction(0), Fraction(9)),)


def test_delta_and_the_strategy_are_read():
    """What selecting keys may cost, and the only strategy that ours is."""
    said = "(epsilon = 1, delta = 1e-8, group_selection_strategy = LAPLACE_THRESHOLD)"
    assert options(f"SELECT {CLAUSE}{said} COUNT(*) FROM visits") == Options(Fraction(1), delta=Fraction(1, 10**8))


def test_a_unit_behind_a_reference_may_be_named():
    """privacy_unit_column is the unit's column of a table that is read."""
    assert options(f"SELECT {CLAUSE}(privacy_unit_column = o.o_customer) COUNT(*) FROM orders o", name="shop") == Options()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"SELECT {CLAUSE}(delta = 2) COUNT(*) FROM visits", "from 0 to below 1"),
        (f"SELECT {CLAUSE}(group_selection_strategy = PUBLIC_GROUPS) COUNT(*) FROM visits", "LAPLACE_THRESHOLD"),
        (f"SELECT {CLAUSE}({BOUNDS} = (0, 1)) SUM(spent) FROM visits", "is not known"),
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
            f"SELECT {CLAUSE}(epsilon = 1) MEDIAN(spent, {BOUNDS} => (0, 1)) FROM visits",
            "must stand in a SUM, AVG or COUNT",
        ),
        (
            f"SELECT {CLAUSE}(epsilon = 1) SUM(spent, contribution_bounds_per_row => (0, 1)) FROM visits",
            "must stand in a quantile",
        ),
        (f"SELECT {CLAUSE}(epsilon = 1) AVG(spent), MEDIAN(spent) FROM visits", "only SUM, COUNT, AVG and COUNT(DISTINCT"),
    ],
)
def test_options_are_refused_by_name(text, rule):
    """Whatever is not known, or would be another study's, is refused."""
    with pytest.raises(Refused) as refusal:
        options(text)

    assert rule in str(refusal.value)
