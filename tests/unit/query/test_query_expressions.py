"""Expressions: what SQL says becomes calls of the closed catalogue, or is refused."""

import datetime as dt
from fractions import Fraction

import pytest
from query_words import condition, item, read, words

from curador.errors import InvalidQuery, NotPrivate
from curador.query.tree import Literal
from curador.study.values import Type

CONDITIONS = {
    "age BETWEEN 1 AND 2": "and(>=(#1, 1), <=(#1, 2))",
    "age NOT BETWEEN 1 AND 2": "not(and(>=(#1, 1), <=(#1, 2)))",
    "city IN ('a', 'b')": "in(#3, 'a', 'b')",
    "city NOT IN ('a')": "not(in(#3, 'a'))",
    "age IN (1, income)": "or(=(#1, 1), =(#1, #4))",
    "city LIKE 'a%'": "like(#3, 'a%')",
    "city NOT ILIKE '%b'": "not(ilike(#3, '%b'))",
    "contains(city, 'a')": "like(#3, '%a%')",
    "prefix(city, 'a')": "starts_with(#3, 'a')",
    "income IS NULL": "is_null(#4)",
    "income IS NOT NULL": "not(is_null(#4))",
    "active IS TRUE": "coalesce(#7, False)",
    "active IS NOT FALSE": "not(coalesce(not(#7), False))",
    "age IS DISTINCT FROM 3": "not(coalesce(=(#1, 3), False))",
    "age IS NOT DISTINCT FROM income": "coalesce(=(#1, #4), and(is_null(#1), is_null(#4)))",
    "city IS DISTINCT FROM NULL": "not(is_null(#3))",
    "age = 1 AND age = 2 AND age = 3": "and(=(#1, 1), =(#1, 2), =(#1, 3))",
    "age = 1 OR (age = 2 OR age = 3)": "or(=(#1, 1), =(#1, 2), =(#1, 3))",
    "CASE WHEN active THEN 1 END = 1": "=(case(#7, 1, NULL), 1)",
    "CASE age WHEN 1 THEN 'a' ELSE 'b' END = 'a'": "=(case(=(#1, 1), 'a', 'b'), 'a')",
    "if(active, 1, 2) = 1": "=(case(#7, 1, 2), 1)",
    "ifnull(age, 0) = 1": "=(coalesce(#1, 0), 1)",
    "nullif(age, 0) = 1": "=(nullif(#1, 0), 1)",
    "age * 2 + 1 > -age": ">(+(*(#1, 2), 1), neg(#1))",
    "age / 2 > 1": ">(/(#1, 2), 1)",
    "age // 2 > age % 3": ">(//(#1, 2), %(#1, 3))",
    "trunc(income) > 1": ">(//(#4, 1), 1)",
    "round(income, -2) > round(income)": ">(round(#4, -2), round(#4, 0))",
    "log(income) > log10(income)": ">(log10(#4), log10(#4))",
    "age ** 2 > power(age, 0.5)": ">(power(#1, 2), power(#1, 1/2))",
    "least(age, 3) > greatest(1, age)": ">(least(#1, 3), greatest(1, #1))",
    "city || '-' || sex = 'x'": "=(concat(#3, '-', #2), 'x')",
    "concat(city, sex) = 'x'": "=(concat(coalesce(#3, ''), #2), 'x')",
    "substr(city, 2) = left(city, 3)": "=(substring(#3, 2, 1000000), substring(#3, 1, 3))",
    "replace(city, 'a', 'b') = trim(lower(upper(city)))": "=(replace(#3, 'a', 'b'), trim(lower(upper(#3))))",
    "length(name) > 3": ">(length(#8), 3)",
    "joined >= '2020-01-31'": ">=(#6, 2020-01-31)",
    "joined < TIMESTAMP '2020-01-01 10:00:00'": "<(cast(#6), 2020-01-01 10:00:00)",
    "joined + INTERVAL 3 MONTH > DATE '2020-01-01'": ">(date_add(#6, 3, 'month'), 2020-01-01)",
    "INTERVAL '2 weeks' + joined > '2020-01-01'": ">(date_add(#6, 2, 'week'), 2020-01-01)",
    "joined - INTERVAL '1' DAY > '2020-01-01'": ">(date_add(#6, -1, 'day'), 2020-01-01)",
    "joined + 3 > '2020-01-01'": ">(date_add(#6, 3, 'day'), 2020-01-01)",
    "joined - DATE '2020-01-01' > 3": ">(date_diff('day', 2020-01-01, #6), 3)",
    "date_diff('month', joined, '2020-01-01') > 3": ">(date_diff('month', #6, 2020-01-01), 3)",
    "date_trunc('year', joined) = '2020-01-01'": "=(date_trunc('year', #6), 2020-01-01)",
    "extract(doy FROM joined) = date_part('dow', joined)": "=(extract('dayofyear', #6), extract('dayofweek', #6))",
    "age::VARCHAR = '3'": "=(cast(#1), '3')",
    "CAST(age AS BIGINT) = 3": "=(#1, 3)",
    "TRY_CAST(city AS DOUBLE) > 3": ">(cast(#3), 3)",
    "height = CAST(income AS DECIMAL(10, 2))": "=(#5, round(cast(#4), 2))",
    "true": "True",
    "user_id % 7 = 3": "=(%(#0, 7), 3)",
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_become_calls(text):
    """A condition becomes the calls of the catalogue that mean the same."""
    assert condition(text) == CONDITIONS[text]


FOLDED = {
    "1 + 2 * 3": (7, Type.INTEGER),
    "-(2 - 5)": (3, Type.INTEGER),
    "7 // 2": (3, Type.INTEGER),
    "-7 // 2": (-3, Type.INTEGER),
    "-7 % 4": (-3, Type.INTEGER),
    "1 / 4": (Fraction(1, 4), Type.FLOAT),
    "0.1 + 0.2": (Fraction(3, 10), Type.DECIMAL),
    "1e3": (Fraction(1000), Type.FLOAT),
    ".5": (Fraction(1, 2), Type.DECIMAL),
    "1_000": (1000, Type.INTEGER),
    "9223372036854775807": (2**63 - 1, Type.INTEGER),
    "9223372036854775808": (Fraction(2**63), Type.DECIMAL),
    "-9223372036854775808": (-(2**63), Type.INTEGER),
    "CAST('12' AS INTEGER)": (12, Type.INTEGER),
    "CAST(2.5 AS INTEGER)": (3, Type.INTEGER),
    "CAST(1 AS DOUBLE)": (Fraction(1), Type.FLOAT),
}


@pytest.mark.parametrize("text", FOLDED)
def test_arithmetic_of_literals_is_done_at_once(text):
    """What can be computed from the text alone is one exact literal."""
    call = read(f"SELECT COUNT(*) FROM people WHERE income > {text}").blocks[0].relation.predicate
    value, kind = FOLDED[text]

    assert call.arguments[1] == Literal(value, kind)


DATES = {
    "DATE '2020-01-31' + INTERVAL 1 MONTH": dt.date(2020, 2, 29),
    "DATE '2020-03-31' - INTERVAL 1 MONTH": dt.date(2020, 2, 29),
    "DATE '2020-02-29' - INTERVAL 1 YEAR": dt.date(2019, 2, 28),
    "DATE '1998-12-01' - INTERVAL '90' DAY": dt.date(1998, 9, 2),
    "CAST('2020-01-02' AS DATE)": dt.date(2020, 1, 2),
}


@pytest.mark.parametrize("text", DATES)
def test_dates_of_the_text_are_moved_at_once(text):
    """An interval on a literal date gives the date that the calendar says."""
    call = read(f"SELECT COUNT(*) FROM people WHERE joined > {text}").blocks[0].relation.predicate

    assert call.arguments[1] == Literal(DATES[text], Type.DATE)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020-01-01", dt.datetime(2020, 1, 1)),  # noqa: DTZ001 -- all values are UTC without zone
        ("2020-01-01 10:30", dt.datetime(2020, 1, 1, 10, 30)),  # noqa: DTZ001
        ("2020-01-01T10:30:05.25Z", dt.datetime(2020, 1, 1, 10, 30, 5, 250_000)),  # noqa: DTZ001
        ("2020-01-01 10:30:00+02:00", dt.datetime(2020, 1, 1, 8, 30)),  # noqa: DTZ001
    ],
)
def test_points_in_time_are_read_in_utc(text, moment):
    """A string beside a timestamp is a point in time; its zone is taken off."""
    call = read(f"SELECT COUNT(*) FROM visits WHERE at > '{text}'").blocks[0].relation.predicate

    assert call.arguments[1] == Literal(moment, Type.TIMESTAMP)


AGGREGATES = {
    "COUNT(*)": "count()",
    "COUNT(1)": "count()",
    "COUNT(user_id)": "count()",
    "COUNT(income)": "count(#4)",
    "COUNT(DISTINCT user_id)": "count_units()",
    "COUNT(DISTINCT city)": "count_distinct(#3)",
    "APPROX_COUNT_DISTINCT(city)": "count_distinct(#3)",
    "COUNT_IF(active)": "count(| #7)",
    "COUNT_IF(active) FILTER (WHERE age > 3)": "count(| and(>(#1, 3), #7))",
    "SUM(age) FILTER (WHERE user_id < 9)": "sum(#1 | <(#0, 9))",
    "MEAN(age)": "avg(#1)",
    "VARIANCE(age)": "var_samp(#1)",
    "VAR_POP(age)": "var_pop(#1)",
    "STDDEV(age)": "sqrt(var_samp(#1))",
    "STDDEV_POP(age)": "sqrt(var_pop(#1))",
    "MIN(age)": "quantile(#1 0)",
    "MAX(joined)": "from_days(quantile(date_diff('day', 1970-01-01, #6) 1))",
    "REGR_AVGX(height, age)": "avg(#1 | and(not(is_null(#5)), not(is_null(#1))))",
    "MEDIAN(age)": "quantile(#1 1/2)",
    "QUANTILE(age, 0.9)": "quantile(#1 9/10)",
    "QUANTILE_CONT(age, 1)": "quantile(#1 1)",
    "APPROX_QUANTILE(age, 0.25)": "quantile(#1 1/4)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age DESC)": "quantile(#1 3/4)",
    "SUM(age) / COUNT(*)": "/(sum(#1), count())",
}


@pytest.mark.parametrize("text", AGGREGATES)
def test_aggregates_have_one_spelling(text):
    """The many names of an aggregate become one."""
    assert item(text) == AGGREGATES[text]


def test_released_numbers_are_floats_and_counts_integers():
    """The type of a released number does not depend on its column's."""
    items = read("SELECT COUNT(*), SUM(age), AVG(height), MAX(age), MAX(joined) FROM people").blocks[0].items

    assert [one.expression.type for one in items] == [Type.INTEGER, Type.FLOAT, Type.FLOAT, Type.FLOAT, Type.DATE]


REFUSED = {
    "age = 'x'": "of one kind",
    "age = '30'": "without quotes",
    "city = 3": "single quotes",
    "active = 1": "needs no comparison",
    "age = NULL": "IS NULL",
    "age IN (1, NULL)": "never true",
    "age": "must be a condition",
    "age AND active": "must be a condition",
    "age + active > 1": "must be a number",
    "city + 1 > 1": "must be a number",
    "name || age = 'x'": "must be a string",
    "joined = '2020-13-01'": "must be a date",
    "joined > 5": "of one kind",
    "joined + joined > joined": "compared, not calculated",
    "joined + INTERVAL 1 HOUR > joined": "has no hour",
    "joined + INTERVAL '1 day 2 hours' > joined": "unit of time",
    "joined + INTERVAL 1.5 DAY > joined": "whole number",
    "extract(epoch FROM joined) > 1": "unit of time",
    "hour(joined) = 1": "has no hour",
    "age > 1 / 0": "division by zero",
    "age > 1e400": "range of a double",
    "age > 1e999999": "range of a double",
    f"age > {'9' * 101}": "at most 100 digits",
    "age > 0x1F": "decimal digits",
    "round(age, age) = 1": "from -15 to 15",
    "round(age, 16) = 1": "from -15 to 15",
    "power(2, age) = 1": "must be a number written here",
    "log(2, age) = 1": "base 10",
    "substring(name, age, 1) = 'a'": "whole number",
    "substring(name, 0, 1) = 'a'": "from 1 to",
    "city LIKE name": "written here",
    "city LIKE 'a' ESCAPE '!'": "ESCAPE",
    "city SIMILAR TO name": "written here",
    "regexp_matches(city, '(a)\\1')": "no references",
    "regexp_matches(city, 'a', 'g')": "must be 'i'",
    "age > ANY (SELECT 1)": "not part of the language",
    "(age, sex) = (1, 'f')": "a row of values",
    "age[1] = 2": "x[…]",
    "age > ?": "a parameter",
    "age > $1": "a parameter",
    "random() > 0.5": "no other chance",
    "current_date > joined": "time of asking",
    "joined < now()": "time of asking",
    "error('x')": "does not exist",
    "age IS DISTINCT FROM 'x'": "of one kind",
    "CASE WHEN active THEN 1 ELSE 'x' END = 1": "of one kind",
    "COALESCE(NULL, NULL) = 1": "besides NULL",
    "CAST(joined AS INTEGER) = 1": "cannot be cast",
    "CAST(age AS DATE) = joined": "cannot be cast",
    "age::INT[] = 1": "not part of the language",
    "CAST('x' AS INTEGER) = 1": "must be a number",
    "CAST('x' AS BOOLEAN)": "true or false",
    "E'a' = city": "not part of the language",
    "'a' 'b' = city": "nothing stands between",
}


@pytest.mark.parametrize("text", REFUSED)
def test_conditions_are_refused_with_the_rule(text):
    """What has no meaning, or would need the rows to be checked, is refused by the text alone."""
    with pytest.raises(InvalidQuery) as refusal:
        condition(text)

    assert REFUSED[text] in str(refusal.value)


def test_a_cast_of_the_unit_is_not_the_unit():
    """Even a cast to the type that it has makes an expression of the unit."""
    with pytest.raises(NotPrivate):
        read("SELECT COUNT(DISTINCT CAST(user_id AS BIGINT)) FROM people")


def test_expressions_that_double_at_every_step_are_refused_in_time():
    """A name that is used twice at each of forty steps would be a tree of a million millions."""
    steps = ", ".join(f"a{step} + a{step} AS a{step + 1}" for step in range(40))

    with pytest.raises(InvalidQuery, match="at most 20,000 parts"):
        read(f"SELECT age + age AS a0, {steps}, COUNT(*) FROM people GROUP BY ALL")


@pytest.mark.slow
def test_long_chains_are_read_and_deep_ones_refused():
    """A thousand conditions are a flat AND; hundreds of additions are deeper than anything that walks the tree may go."""
    chain = " AND ".join(["active"] * 1000)

    assert len(read(f"SELECT COUNT(*) FROM people WHERE {chain}").blocks[0].relation.predicate.arguments) == 1000
    for length in (150, 700):
        with pytest.raises(InvalidQuery, match="deep"):
            read(f"SELECT COUNT(*) FROM people WHERE age > {' + '.join(['age'] * length)}")


def test_dialects_say_what_their_words_mean():
    """The same word becomes what it means where it is written."""

    def key(text, dialect):
        return words(read(f"SELECT {text} AS k, COUNT(*) FROM visits GROUP BY k", dialect=dialect).blocks[0].keys[0])

    assert key("items / 2", "duckdb") == "/(#5, 2)"
    assert key("items / 2", "postgres") == "//(#5, 2)"
    assert key("dayofweek(at)", "duckdb") == "extract('dayofweek', #2)"
    assert key("EXTRACT(DAYOFWEEK FROM at)", "bigquery") == "+(extract('dayofweek', #2), 1)"
    assert key("log(items)", "duckdb") == "log10(#5)"
    assert key("log(items)", "bigquery") == "ln(#5)"
    assert key("DATE_TRUNC(at, ISOWEEK)", "bigquery") == "date_trunc('week', #2)"
    assert key("DATE_TRUNC(at, WEEK(MONDAY))", "bigquery") == "date_trunc('week', #2)"
    sunday = "date_add(date_trunc('week', date_add(#2, -6, 'day')), 6, 'day')"
    assert key("DATE_TRUNC(at, WEEK)", "bigquery") == key("DATE_TRUNC(at, WEEK(SUNDAY))", "bigquery") == sunday
    assert key("CAST(spent AS INT)", "spark") == "cast(//(#4, 1))"
    assert key("CAST(spent AS INT)", "postgres") == "cast(#4)"
    assert key("CAST(spent AS INT)", "duckdb").startswith("cast(case(and(=(-(#4, floor(#4)), 1/2), ")
    assert key("CAST(2.7 AS INT) + items", "spark") == "+(2, #5)"
    assert key("spent::NUMBER", "snowflake") == "round(cast(#4), 0)"
    with pytest.raises(InvalidQuery, match="begin on Monday"):
        key("EXTRACT(WEEK FROM at)", "bigquery")
    with pytest.raises(InvalidQuery, match="never NULL"):
        key("GREATEST(spent, 1)", "bigquery")
    with pytest.raises(InvalidQuery, match="in days"):
        key("DATEDIFF(MONTH, at, at)", "spark")
