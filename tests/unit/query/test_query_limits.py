"""What is checked before a text is parsed, and where refusals say it stands."""

import pytest
from query_words import read

from curador.errors import InvalidParameter, InvalidQuery, Refused

LONG = " AND ".join(["age > 1"] * 2000)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT COUNT(*) FROM people WHERE name = '" + "x" * 16_400 + "'", "at most 16,384 bytes"),
        ("SELECT COUNT(*) FROM people WHERE name = '" + "東" * 6_000 + "'", "at most 16,384 bytes"),
        ("SELECT COUNT(*) FROM people WHERE age IN (" + "1," * 2_500 + "1)", "at most 5,000 tokens"),
        ("SELECT COUNT(*) FROM people WHERE " + "(" * 33 + "active" + ")" * 33, "at most 32 deep"),
        ("SELECT COUNT(*) FROM people WHERE active\0", "NUL"),
        ("SELECT COUNT(*) FROM people WHERE name = '\ud800'", "surrogate"),
        ("SELECT COUNT(*) FROM people; SELECT 1", "one statement"),
        ("SELECT COUNT(*) FROM people;; -- \n SELECT 1", "one statement"),
        ("SELECT COUNT(*) FROM people /* a /* b */", "must be closed"),
        ("SELECT COUNT(*) FROM people WHERE name = 'a", "must be closed"),
        ("SELECT COUNT(*) FROM people WHERE (active", "1 is open"),
        ("SELECT COUNT(*) FROM people WHERE active)", "none is open"),
        ("  ; ; -- nothing\n", "it is empty"),
        ("EXPLAIN SELECT COUNT(*) FROM people", "must be a SELECT"),
        ("TABLE people", "must be a SELECT"),
        ("SELECT COUNT(*) FROM people WHERE NOT " + "NOT " * 3_000 + "active", "nested so deeply"),
        ("SELECT COUNT(*) FROM people WHERE age = " + "- " * 2_000 + "1", "nested so deeply"),
        ("SELECT COUNT(*) FROM people WHERE age IN " + "ARRAY[" * 30 + "1" + "]" * 30, "few ways"),
        ("SELECT " + "DATE(" * 30 + "born" + ")" * 30 + ", COUNT(*) FROM people", "few ways"),
        ("SELECT COUNT(*) FROM people WHERE " + "INT(" * 30 + "age" + ")" * 30 + " > 1", "few ways"),
        ("SELECT COUNT(*) FROM UNNEST(" + "ARRAY[" * 30 + "1" + "]" * 30 + ") people", "few ways"),
        ("SELECT , COUNT(*) FROM people", "nothing stands between"),
        ("SELECT COUNT(*) FROM people, WHERE active", "nothing stands between"),
        ("SELECT COUNT(*) FROM . people", "nothing stands between"),
        ("SELECT AS STRUCT COUNT(*) FROM people", "nothing stands between"),
        ("SELECT COUNT(*) FROM people WHERE age IN (1, )", "nothing stands between"),
        ("SELECT COUNT(*) FROM people WHERE active AND", "nothing stands behind"),
        ("SELECT COUNT(*) FROM people WHERE CASE WHEN active 1 END = 1", "each WHEN must have its THEN"),
        ("SELECT COUNT(*) FROM people WHERE CASE + WHEN active THEN 1 END = 1", "nothing stands between"),
        ("SELECT FROM people", "must list"),
        ("SELECT 1", "must have FROM"),
        ("SELECT COUNT(*) FROM people WHERE age > 12abc", "decimal digits"),
        ("SELECT COUNT(*) FROM people PIVOT (SUM(age) FOR sex IN ('f'))", "PIVOT"),
        ("SELECT COUNT(*) FROM people FOR UPDATE", "FOR UPDATE"),
        ("SELECT COUNT(*) FROM people USING SAMPLE 3", "TABLESAMPLE"),
        ("SELECT COUNT(*) INTO x FROM people", "INTO"),
        ("WITH RECURSIVE t AS (SELECT * FROM people) SELECT COUNT(*) FROM t", "RECURSIVE"),
        ("WITH t AS (SELECT * FROM people), T AS (SELECT 1) SELECT COUNT(*) FROM t", "stand once in WITH"),
        ("WITH t AS (INSERT INTO people VALUES (1)) SELECT COUNT(*) FROM t", "must be a SELECT"),
        ("WITH t(a, b) AS (SELECT age FROM people) SELECT AVG(a) FROM t", "at most the 1 columns"),
        ("SELECT AVG(a) FROM (SELECT age FROM people) t(a, b)", "at most the 1 columns"),
        ("SELECT AVG(a) FROM people t(1, 2)", "must be names"),
    ],
)
def test_limits_are_said(text, rule):
    """Each limit is a sentence of its own."""
    with pytest.raises(InvalidQuery) as refusal:
        read(text)

    assert rule in str(refusal.value)


def test_what_is_within_the_limits_is_read():
    """Thirty-two brackets, nested comments, semicolons and long lists are no reason to refuse."""
    assert read("SELECT COUNT(*) FROM people WHERE " + "(" * 31 + "active" + ")" * 31)
    assert read("SELECT/**/COUNT(*)/* a /* b */ c */FROM/**/people ; ;")
    assert read("SELECT COUNT(*) FROM people WHERE age IN (" + "1," * 2_000 + "1)")
    assert read("SELECT COUNT(*) FROM people WHERE name = '" + "x" * 16_000 + "'")


def test_the_dialect_is_one_of_five():
    """Another dialect is refused by name."""
    with pytest.raises(InvalidParameter, match="duckdb, postgres, bigquery, spark, snowflake"):
        read("SELECT COUNT(*) FROM people", dialect="mysql")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT COUNT(*)\nFROM people\nWHERE  ssn = 1", "line 3, column 8"),
        ("SELECT COUNT(*) FROM nobody", "line 1, column 22"),
        ("SELECT sex,\n  COUNT(*),\n  city\nFROM people GROUP BY sex", "line 3, column 3"),
        ("SELECT COUNT(*) FROM people\nWHERE age > 1 AND\n      nosuch(age) = 1", "line 3, column 7"),
        ("SELECT COUNT(*)\nFROM people p\nJOIN visits v ON p.age = v.items", "line 3, column 6"),
        ("SELECT COUNT(*) FROM people GROUP BY\n user_id", "line 2, column 2"),
        ("SELECT COUNT(*) FROM people WHERE\n age = 'x'", "line 2, column 8"),
        ("-- a comment\n/* two\nlines */ SELECT SUM(DISTINCT age) FROM people", "line 3, column 17"),
        ("SELECT COUNT(*) FROM people WHERE 東京 = 1", "line 1, column 35"),
        ("SELECT COUNT(*) FROM people\nWHERE (age > 1))", "line 2, column 16"),
    ],
)
def test_refusals_say_where(text, place):
    """Line and column are those of the word that is wrong, counted from 1."""
    with pytest.raises(Refused) as refusal:
        read(text)

    assert str(refusal.value).startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT COUNT(*) FROM peple", 'did you mean "people"?'),
        ("SELECT COUNT(*) FROM people WHERE agee > 1", 'did you mean "age"?'),
        ("SELECT cuont(*) FROM people", '"count"'),
        ("SELECT COUNT(*) FROM people WHERE zzz > 1", 'the columns are: "user_id", "age"'),
        ("SELECT COUNT(*) FROM people GROUP BY user_id", "COUNT(DISTINCT user_id)"),
        ("SELECT people FROM people", "name a column"),
    ],
)
def test_hints_say_what_to_write(text, hint):
    """A refusal ends with what to write instead."""
    with pytest.raises(Refused) as refusal:
        read(text)

    assert hint in str(refusal.value).partition("\nHint: ")[2]


def test_a_refusal_shows_at_most_a_part_of_a_long_name():
    """What is quoted from the text is cut."""
    with pytest.raises(InvalidQuery) as refusal:
        read(f"SELECT COUNT(*) FROM {'x' * 10_000}")

    assert len(str(refusal.value)) < 400
