"""Spellings that become something that is there already: one tree, whoever writes it."""

import pytest
from query_words import read, words

from curador.errors import InvalidQuery, NotPrivate


def item(text, name="people", dialect="duckdb", rows="visits"):
    return words(read(f"SELECT {text} FROM {rows}", name, dialect).blocks[0].items[0].expression)


COUNTS = {
    "COUNT(DISTINCT CASE WHEN spent > 3 THEN user_id END)": "count_units(| >(#4, 3))",
    "COUNT(DISTINCT CASE WHEN spent > 3 THEN user_id ELSE NULL END)": "count_units(| >(#4, 3))",
    "COUNT(DISTINCT CASE WHEN returned THEN user_id END)": "count_units(| #7)",
    "COUNT(DISTINCT IF(spent > 3, user_id, NULL))": "count_units(| >(#4, 3))",
    "COUNT(DISTINCT CASE place WHEN 'web' THEN user_id END)": "count_units(| =(#3, 'web'))",
    "COUNT(CASE WHEN spent > 3 THEN user_id END)": "count(| >(#4, 3))",
    "COUNT(DISTINCT CASE WHEN spent > 3 THEN user_id END) FILTER (WHERE returned)": "count_units(| and(#7, >(#4, 3)))",
    "COUNT(DISTINCT CASE WHEN returned THEN NULL ELSE user_id END)": "count_units(| case(#7, False, True))",
    "COUNT(DISTINCT CASE WHEN returned THEN CASE WHEN spent > 3 THEN user_id END END)": (
        "count_units(| case(#7, >(#4, 3), False))"
    ),
    "COUNT(DISTINCT CASE WHEN returned THEN user_id WHEN spent > 3 THEN user_id END)": (
        "count_units(| case(#7, True, >(#4, 3), True, False))"
    ),
}


@pytest.mark.parametrize("text", COUNTS)
def test_units_are_counted_under_a_condition(text):
    """CASE WHEN c THEN unit END is the unit where c holds, and NULL is not counted."""
    assert item(text) == COUNTS[text]


def test_a_unit_that_may_be_missing_is_counted_where_it_is_there():
    """Behind an outer join the unit's column holds the row's unit or NULL."""
    rows = "people p LEFT JOIN visits v USING (user_id)"
    found = item("COUNT(DISTINCT CASE WHEN age > 3 THEN v.user_id END)", rows=rows)

    assert found == "count_units(| case(>(#1, 3), not(is_null(#10)), False))"


@pytest.mark.parametrize("other", ["5", "items", "user_id + 1", "COALESCE(user_id, 1)", "-user_id"])
def test_another_value_beside_the_unit_is_refused(other):
    """What is the unit in some rows and something else in others tells of single units."""
    with pytest.raises(NotPrivate, match="unit must not be measured"):
        read(f"SELECT COUNT(DISTINCT CASE WHEN spent > 3 THEN user_id ELSE {other} END) FROM visits")


LISTS = {
    ("duckdb", "QUANTILE_CONT(spent, [0.25, 0.999]) AS q"): {"q_25": "1/4", "q_99_9": "999/1000"},
    ("duckdb", "QUANTILE(spent, [0.1, 0.5])"): {"quantile_10": "1/10", "quantile_50": "1/2"},
    ("postgres", "PERCENTILE_CONT(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY spent) AS p"): {"p_10": "1/10", "p_90": "9/10"},
    ("bigquery", "APPROX_QUANTILES(spent, 3) AS q"): {"q_0": "0", "q_33_3333": "1/3", "q_66_6667": "2/3", "q_100": "1"},
    ("bigquery", "APPROX_QUANTILES(spent, 100)[OFFSET(90)] AS q"): {"q": "9/10"},
    ("bigquery", "APPROX_QUANTILES(spent, 100)[ORDINAL(91)] AS q"): {"q": "9/10"},
    ("spark", "percentile(spent, array(0.25, 0.5)) AS q"): {"q_25": "1/4", "q_50": "1/2"},
}


@pytest.mark.parametrize(("dialect", "text"), LISTS)
def test_several_quantiles_are_several_columns(dialect, text):
    """Named after the alias and the level."""
    items = read(f"SELECT {text}, COUNT(*) AS n FROM visits", dialect=dialect).blocks[0].items

    assert {one.name: words(one.expression) for one in items[:-1]} == {
        name: f"quantile(#4 {level})" for name, level in LISTS[dialect, text].items()
    }


@pytest.mark.parametrize(
    "levels", ["[]", "[0.5, 0.5]", "[1.5]", "[spent]", f"[{', '.join(f'0.{one:03}' for one in range(101))}]"]
)
def test_lists_of_quantiles_are_written_and_short(levels):
    """A level is a number from 0 to 1 that stands in the question, once."""
    with pytest.raises(InvalidQuery, match=r"different numbers|must be a number"):
        read(f"SELECT QUANTILE_CONT(spent, {levels}) FROM visits")
