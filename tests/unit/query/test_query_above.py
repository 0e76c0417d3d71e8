"""A released result in FROM: what it becomes, and what stays refused."""

import itertools

import pytest
from corpus_schemas import schema
from query_words import read
from tree_rules import check

from curador.errors import InvalidQuery, NotPrivate
from curador.query.context import MOST_RELEASES
from curador.query.tree import Aggregate, Cut, Filter, Join, Key, ReleasedGroup, ReleasedWindow, UnionAll, inputs_of
from curador.study.values import Type

COUNTS = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def steps(sql, dialect="duckdb"):
    """Return the steps of a question over released rows, from the top."""
    question = read(sql, dialect=dialect)
    check(question, schema("people"))
    found, waiting = [], [question.above]
    while waiting:
        one = waiting.pop(0)
        found.append(type(one).__name__)
        waiting += inputs_of(one)
    return found


def measured(sql):
    """Return of every block how many keys and which aggregates it measures."""
    return [
        (
            sum(isinstance(item.expression, Key) for item in block.items),
            [item.expression.function for item in block.items if isinstance(item.expression, Aggregate)],
        )
        for block in read(sql).blocks
    ]


def test_windows_over_aggregates_stand_above_one_block():
    """SUM(COUNT(*)) OVER () is of the counts that are shown beside it: measured once."""
    text = "SELECT sex, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY sex"
    assert steps(text) == ["Project", "ReleasedWindow", "ReleasedLeaf"]
    assert measured(text) == [(1, ["count"])]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT a.n - b.n AS d FROM ({COUNTS}) a JOIN ({COUNTS}) b ON a.sex = b.sex",
        f"WITH a AS ({COUNTS}) SELECT x.n / y.n AS d FROM a x JOIN a y USING (sex)",
        f"WITH a AS ({COUNTS}), b AS ({COUNTS} HAVING COUNT(*) > 3) SELECT a.n, b.n AS m FROM a JOIN b USING (sex)",
        f"SELECT n / (SELECT SUM(n) FROM ({COUNTS})) AS share FROM ({COUNTS})",
    ],
)
def test_a_result_that_is_read_twice_is_measured_once(text):
    """However it is named, and whatever HAVING keeps of it."""
    assert measured(text) == [(1, ["count"])]


def test_results_of_the_same_groups_are_one_block():
    """Their aggregates are measured side by side, over the same groups."""
    sums = "SELECT sex, SUM(income) AS s FROM people GROUP BY sex"
    text = f"SELECT a.sex, s / n AS mean FROM ({COUNTS}) a JOIN ({sums}) b USING (sex)"
    assert measured(text) == [(1, ["count", "sum"])]


def test_the_order_of_clauses_is_that_of_sql():
    """WHERE, groups, HAVING, windows, QUALIFY, ORDER BY and LIMIT, the list."""
    text = f"""
        SELECT n > 3 AS many, SUM(n) AS s, RANK() OVER (ORDER BY SUM(n)) AS r FROM ({COUNTS}) WHERE n > 0 GROUP BY many
        HAVING SUM(n) > 1 QUALIFY RANK() OVER (ORDER BY SUM(n)) < 3 ORDER BY s LIMIT 1
    """
    assert steps(text) == [
        "Project",
        "Cut",
        "Filter",
        "ReleasedWindow",
        "Filter",
        "ReleasedGroup",
        "Filter",
        "ReleasedLeaf",
    ]


def test_a_plain_outer_select_stays_part_of_its_block():
    """Questions that were read before keep their trees, and so their keys."""
    question = read(f"SELECT n + 1 AS m FROM ({COUNTS}) WHERE n > 3 ORDER BY n LIMIT 2")
    assert question.above is None
    assert len(question.blocks[0].items) == 1


def test_scalar_subqueries_stand_beside_groups():
    """In the list, in HAVING, and in WHERE over a result; one that is used twice is one block."""
    text = """
        SELECT sex, COUNT(*) / (SELECT COUNT(*) FROM people) AS share FROM people GROUP BY sex
        HAVING COUNT(*) > (SELECT COUNT(*) FROM people) / 10
    """
    assert measured(text) == [(1, ["count"]), (0, ["count"])]
    assert steps(f"SELECT * FROM ({COUNTS}) WHERE n > (SELECT AVG(n) FROM ({COUNTS}))").count("Join") == 1
    assert measured("SELECT (SELECT COUNT(*) FROM visits) / (SELECT COUNT(*) FROM people) AS each") == [
        (0, ["count"]),
        (0, ["count"]),
    ]


def test_grouping_sets_are_put_one_after_the_other():
    """A window over ROLLUP is over the rows of all its sets; a key that is left out is NULL."""
    text = "SELECT sex, active, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM people GROUP BY ROLLUP (sex, active)"
    question = read(text)
    assert [len(block.keys) for block in question.blocks] == [2, 1, 0]
    assert isinstance(inputs_of(inputs_of(question.above)[0])[0], UnionAll)


def test_types_are_those_of_released_values():
    """Counts and their sums are whole; sums of people's numbers, means and quotients are not."""
    outs = read(f"SELECT SUM(n) AS a, AVG(n) AS b, MAX(n) AS c, COUNT(*) AS d FROM ({COUNTS})").above.columns
    assert [out.type for out in outs] == [Type.INTEGER, Type.FLOAT, Type.INTEGER, Type.INTEGER]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people)",
        "SELECT COUNT(*) FILTER (WHERE income > (SELECT AVG(income) FROM people)) FROM people",
        "SELECT SUM(age / (SELECT AVG(age) FROM people)) FROM people",
        "SELECT sex, SUM(age - (SELECT AVG(age) FROM people)) AS s, RANK() OVER (ORDER BY COUNT(*)) FROM people GROUP BY sex",
        "SELECT COUNT(*) * (SELECT MAX(income) FROM people) FROM people",
        "SELECT COUNT(*) - (SELECT income FROM people) FROM people",
    ],
)
def test_people_are_not_compared_with_a_scalar_subquery(text):
    """It would need its exact value; the number may be asked for, and written."""
    with pytest.raises(NotPrivate, match="ask for it, then write the number"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) FROM people p JOIN ({COUNTS}) c ON p.sex = c.sex",
        f"SELECT COUNT(*) FROM ({COUNTS}) c JOIN people p ON p.sex = c.sex",
        f"SELECT COUNT(*) FROM people WHERE sex IN (SELECT sex FROM ({COUNTS}) GROUP BY sex HAVING SUM(n) > 5)",
        f"SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM (SELECT SUM(n) AS s FROM ({COUNTS})) c WHERE s = age)",
        f"SELECT * FROM ({COUNTS}) c JOIN cities ON cities.city = c.sex",
        f"SELECT city FROM cities UNION ALL SELECT sex FROM (SELECT sex, SUM(n) AS s FROM ({COUNTS}) GROUP BY sex)",
        f"SELECT * FROM ({COUNTS}) WHERE sex IN (SELECT city FROM cities)",
        "SELECT user_id, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) FROM visits GROUP BY user_id",
        "SELECT age, RANK() OVER (ORDER BY age) FROM people",
    ],
)
def test_results_stand_beside_results_only(text):
    """Rows of tables, private or public, are never put beside them; units are no keys of a result."""
    with pytest.raises((NotPrivate, InvalidQuery)):
        read(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"SELECT n, RANK() OVER () FROM ({COUNTS})", "must have an order"),
        (f"SELECT NTILE(4) OVER (ORDER BY n) FROM ({COUNTS})", "must not stand before OVER"),
        (f"SELECT SUM(RANK() OVER (ORDER BY n)) OVER () FROM ({COUNTS})", "window"),
        (f"SELECT SUM(n) AS s FROM ({COUNTS}) HAVING RANK() OVER (ORDER BY SUM(n)) = 1", "window function"),
        (f"SELECT SUM(n) AS s, RANK() OVER (ORDER BY SUM(n)) AS r FROM ({COUNTS}) HAVING r = 1", "QUALIFY"),
        (f"SELECT MEDIAN(n) FROM ({COUNTS})", "must not be over released rows"),
        (f"SELECT n FROM ({COUNTS}) WHERE n > (SELECT n FROM ({COUNTS}))", "must give one row"),
        (f"SELECT n FROM ({COUNTS}) WHERE n > (SELECT MAX(n), 1 FROM ({COUNTS}))", "must have one column"),
        (f"SELECT sex, SUM(n) FROM ({COUNTS})", "must stand in GROUP BY"),
        (f"SELECT SUM(n) AS x, MAX(n) AS x_low FROM ({COUNTS})", "clash"),
        (f"SELECT AVG(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM ({COUNTS})", "a frame must be"),
        (f"SELECT AVG(n) OVER (ORDER BY n ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM ({COUNTS})", "a frame must be"),
        (f"SELECT LAG(n, 5000) OVER (ORDER BY n) FROM ({COUNTS})", "offset"),
        (f"SELECT * FROM ({COUNTS}) a, ({COUNTS}) a", "must stand once in FROM"),
    ],
)
def test_what_is_no_part_of_the_language_is_said(text, rule):
    """One sentence each."""
    with pytest.raises((InvalidQuery, NotPrivate), match=rule):
        read(text)


def test_results_are_few():
    """A tree that doubles at every step is refused before it is large."""
    names = [f"t{place}" for place in range(12)]
    parts = [f"t0 AS ({COUNTS})"]
    parts += [f"{new} AS (SELECT a.sex, a.n FROM {old} a JOIN {old} b USING (sex))" for old, new in itertools.pairwise(names)]
    with pytest.raises(InvalidQuery, match=f"at most {MOST_RELEASES} results"):
        read(f"WITH {', '.join(parts)} SELECT SUM(n) FROM {names[-1]}")


def test_the_classes_of_steps_are_met():
    """What the tests above look for exists."""
    text = f"SELECT SUM(n) AS s, RANK() OVER (ORDER BY SUM(n)) AS r FROM ({COUNTS}) WHERE n > 1 GROUP BY sex ORDER BY s"
    assert {ReleasedGroup.__name__, ReleasedWindow.__name__, Filter.__name__, Cut.__name__} <= set(steps(text))
    assert Join.__name__ in steps(f"SELECT a.n FROM ({COUNTS}) a, ({COUNTS}) b")
