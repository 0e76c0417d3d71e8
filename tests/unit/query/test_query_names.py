"""Names of output columns."""

import pytest
from query_words import names

from curador.errors import InvalidQuery


def test_names_come_from_alias_column_or_function():
    """The alias; else the column; else the function with its column; else a word."""
    text = """
        SELECT sex, city AS "the city", COUNT(*), SUM(age), AVG(p.income), MEDIAN(age), COUNT(DISTINCT user_id),
            STDDEV_POP(age), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income), SUM(age + 1),
            COUNT(*) FILTER (WHERE active), COUNT_IF(active), SUM(age) / COUNT(*),
            GREATEST(COUNT(*), 0), CASE WHEN COUNT(*) > 1 THEN 1 END, EXTRACT(year FROM joined),
            date_trunc('month', joined), MAX(age)
        FROM people p GROUP BY ALL
    """

    assert names(text) == [
        "sex",
        "the city",
        "count",
        "sum_age",
        "avg_income",
        "median_age",
        "count_user_id",
        "stddev_pop_age",
        "percentile_cont_income",
        "sum",
        "count_2",
        "count_if_active",
        "value",
        "greatest",
        "case",
        "year_joined",
        "date_trunc_joined",
        "max_age",
    ]


def test_a_column_has_the_letter_case_of_its_table():
    """What is written in capitals is still the table's column."""
    assert names("SELECT SEX, COUNT(*) FROM people GROUP BY Sex") == ["sex", "count"]
    assert names("SELECT X, COUNT(*) FROM (SELECT sex AS x FROM people) GROUP BY x") == ["x", "count"]


def test_repeats_are_numbered_whatever_their_letter_case():
    """A second one gets _2; a name that is taken already is left out."""
    assert names(
        "SELECT COUNT(*), COUNT(*), COUNT(*) AS count_2, SUM(age) AS s, AVG(age) AS S, MIN(age) AS s FROM people"
    ) == [
        "count",
        "count_2",
        "count_2_2",
        "s",
        "S_2",
        "s_3",
    ]


def test_many_repeats_are_numbered_in_time():
    """Nine hundred columns of one name are named one by one."""
    assert names(f"SELECT {', '.join(['COUNT(*)'] * 900)} FROM people")[-1] == "count_900"


@pytest.mark.parametrize("other", ["n_low", "N_HIGH"])
def test_names_of_intervals_are_kept_free(other):
    """x is followed by x_low and x_high, so no other column may have these names."""
    with pytest.raises(InvalidQuery, match="clash"):
        names(f"SELECT COUNT(*) AS n, sex AS {other} FROM people GROUP BY sex")


def test_keys_and_words_have_no_interval():
    """Only released numbers have intervals: a key called k leaves k_low free."""
    assert names("SELECT sex AS k, COUNT(*) AS k_low, CASE WHEN COUNT(*) > 1 THEN 'a' END AS w, MIN(age) AS w_high "
                 "FROM people GROUP BY sex") == ["k", "k_low", "w", "w_high"]  # fmt: skip


@pytest.mark.parametrize("alias", ["", "x" * 201, "a\nb", "a\x07"])
def test_names_that_cannot_be_printed_are_refused(alias):
    """A name has 1 to 200 printable letters."""
    with pytest.raises(InvalidQuery):
        names(f'SELECT COUNT(*) AS "{alias}" FROM people')


def test_hostile_names_are_only_names():
    """A name may hold anything that can be printed; it is never a part of a statement."""
    assert names('SELECT COUNT(*) AS "x""; DROP TABLE people; --" FROM people') == ['x"; DROP TABLE people; --']
