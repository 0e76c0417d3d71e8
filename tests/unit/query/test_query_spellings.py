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


WRITTEN = {
    "SUBSTRING(city, CASE WHEN (0 + 1) >= 1 THEN 0 + 1 ELSE 0 + 1 + LENGTH(city) END, 2)": "SUBSTRING(city, 1, 2)",
    "SUBSTRING(city, COALESCE(NULL, 3 - 1), CASE WHEN 1 > 2 THEN 7 ELSE (4) END)": "SUBSTRING(city, 2, 4)",
    "LEFT(city, COALESCE(2, 1))": "LEFT(city, 2)",
    "ARRAY_SLICE(city, COALESCE(0 + 1, 1), COALESCE(2, -1))": "SUBSTRING(city, 1, 2)",
    "ARRAY_SLICE(city, 3, -1)": "SUBSTRING(city, 3)",
    "ARRAY_SLICE(city, 3, 1)": "SUBSTRING(city, 3, 0)",
    "SUFFIX(city, 'o')": "city LIKE '%o'",
    "ENDS_WITH(city, 'o')": "city LIKE '%o'",
    "day >= MAKE_DATE(2024, 2, 29)": "day >= DATE '2024-02-29'",
    "at < MAKE_TIMESTAMP(2024, 12, 31, 23, 59, 58.5)": "at < TIMESTAMP '2024-12-31 23:59:58.5'",
}
NOT_WRITTEN = [
    "SUBSTRING(city, CASE WHEN items > 1 THEN 1 ELSE 2 END, 2)",
    "SUBSTRING(city, COALESCE(items, 1), 2)",
    "SUBSTRING(city, CASE WHEN 1 > 2 THEN 7 END, 2)",
    "SUBSTRING(city, CASE WHEN 1 >= 1 THEN -1 ELSE 2 END, 2)",
    "ARRAY_SLICE(city, 0, 2)",
    "ARRAY_SLICE(city, 1, -2)",
    "ARRAY_SLICE(city, items, 2)",
    "SUFFIX(city, 'a%')",
    "SUFFIX(city, place)",
    "MAKE_DATE(items, 1, 1)",
    "MAKE_DATE(2023, 2, 29)",
    "MAKE_TIMESTAMP(2024, 1, 1, 0, 0, 60)",
]


def columns_as_there(text):
    """The words of this file with the columns that the study has."""
    return text.replace("city", "place").replace("day >", "CAST(at AS DATE) >")


@pytest.mark.parametrize("text", WRITTEN)
def test_what_programs_write_is_what_people_write(text):
    """A number that is written as an expression of written numbers is that number."""
    assert item(f"COUNT({columns_as_there(text)})") == item(f"COUNT({columns_as_there(WRITTEN[text])})")


@pytest.mark.parametrize("text", NOT_WRITTEN)
def test_what_a_row_would_choose_is_refused(text):
    """Places and parts of texts are never a column's."""
    with pytest.raises(InvalidQuery):
        item(f"COUNT({columns_as_there(text)})")


def test_a_slice_is_of_one_dialect():
    """Elsewhere ARRAY_SLICE counts from 0."""
    with pytest.raises(InvalidQuery, match="array_slice"):
        item("COUNT(ARRAY_SLICE(place, 1, 2))", dialect="snowflake")


@pytest.mark.parametrize("function", ["row_number()", "rank()", "dense_rank()", "lag(n)", "lead(n)"])
def test_the_frame_of_the_whole_partition_means_nothing_to_a_rank(function):
    """Programs write it there; any other frame is refused."""

    def over(frame):
        counted = "SELECT place, COUNT(*) AS n FROM visits GROUP BY 1"
        return read(f"SELECT place, n, {function} OVER (ORDER BY n {frame}) AS r FROM ({counted})")

    assert over("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING").blocks == over("").blocks
    with pytest.raises(InvalidQuery, match="must have no frame"):
        over("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
