"""What is grouped: releases, groups inside a unit, windows, what happens after the release."""

import pytest
from query_words import read, shape, words

from curador.errors import InvalidQuery, NotPrivate
from curador.query.tree import Filter, Ref
from curador.study.values import Type


def block(sql, name="people"):
    return read(sql, name).blocks[0]


def blocks(sql):
    return [
        ([words(one) for one in part.keys], [words(one.expression) for one in part.items], part.having and words(part.having))
        for part in read(sql).blocks
    ]


def test_keys_may_be_named_by_position_alias_or_expression():
    """However a key is named, the same block results."""
    texts = [
        "SELECT upper(city) AS c, COUNT(*) FROM people GROUP BY 1",
        "SELECT upper(city) AS c, COUNT(*) FROM people GROUP BY c",
        "SELECT upper(city) AS c, COUNT(*) FROM people GROUP BY upper(city)",
        "SELECT upper(city) AS c, COUNT(*) FROM people GROUP BY ALL",
        "SELECT upper(city) AS c, COUNT(*) FROM people GROUP BY (upper(city))",
    ]

    assert {repr(blocks(one)) for one in texts} == {repr([(["upper(#3)"], ["K0", "count()"], None)])}


def test_expressions_over_keys_are_computed_after_the_release():
    """A key inside an expression is the released key."""
    assert blocks("SELECT lower(upper(city)) AS c, COUNT(*) FROM people GROUP BY upper(city)") == [
        (["upper(#3)"], ["lower(K0)", "count()"], None)
    ]


def test_columns_win_over_aliases_in_group_by_and_lose_in_order_by():
    """As in DuckDB: GROUP BY city is the column although an item is called so; ORDER BY city is the item."""
    question = read("SELECT upper(city) AS city, COUNT(*) FROM people GROUP BY city ORDER BY city")

    assert [words(one) for one in question.blocks[0].keys] == ["#3"]
    assert words(question.order[0].expression) == "upper(K0)"


def test_having_takes_keys_first_and_then_aliases():
    """Outside of aggregates an alias wins over a column that is no key; inside, the column is meant."""
    text = "SELECT sex, SUM(income) AS income FROM people GROUP BY sex HAVING income > 1 AND SUM(income) > 2 AND sex = 'f'"

    assert blocks(text)[0][2] == "and(>(sum(#4), 1), >(sum(#4), 2), =(K0, 'f'))"


def test_order_and_limit():
    """ORDER BY and LIMIT are about released values, selected or not."""
    question = read("SELECT sex FROM people GROUP BY sex ORDER BY COUNT(*) DESC NULLS FIRST, 1 LIMIT 3 OFFSET 1")

    assert [(words(one.expression), one.descending, one.nulls_first) for one in question.order] == [
        ("count()", True, True),
        ("K0", False, False),
    ]
    assert (question.limit, question.offset) == (3, 1)
    assert read("SELECT COUNT(*) FROM people FETCH FIRST 2 ROWS ONLY").limit == 2
    assert len(read("SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY ALL").order) == 2


def test_distinct_is_group_by():
    """SELECT DISTINCT k is GROUP BY k."""
    assert blocks("SELECT DISTINCT sex, city FROM people") == blocks("SELECT sex, city FROM people GROUP BY sex, city")


def test_grouping_sets_are_releases_of_their_own():
    """Each set is a block; a key that it leaves out is NULL of the key's type."""
    text = "SELECT sex, active, COUNT(*) FROM people GROUP BY {} HAVING sex = 'f'"

    assert blocks(text.format("ROLLUP (sex, active)")) == [
        (["#2", "#7"], ["K0", "K1", "count()"], "=(K0, 'f')"),
        (["#2"], ["K0", "NULL", "count()"], "=(K0, 'f')"),
        ([], ["NULL", "NULL", "count()"], "=(NULL, 'f')"),
    ]
    assert [keys for keys, _, _ in blocks(text.format("CUBE (sex, active)"))] == [["#2", "#7"], ["#2"], ["#7"], []]
    assert [keys for keys, _, _ in blocks(text.format("sex, GROUPING SETS ((active), ())"))] == [["#2", "#7"], ["#2"]]
    assert [keys for keys, _, _ in blocks(text.format("GROUPING SETS ((sex, active), ROLLUP (sex))"))] == [
        ["#2", "#7"],
        ["#2"],
        [],
    ]
    first = read(text.format("ROLLUP (sex, active)")).blocks[2].items[0].expression
    assert (first.value, first.type) == (None, Type.STRING)


def test_grouping_tells_the_sets_apart():
    """GROUPING(key) is 1 where the set leaves the key out; ORDER BY of several blocks is an output column."""
    question = read("SELECT sex, GROUPING(sex, active) AS g, COUNT(*) FROM people GROUP BY ROLLUP (sex, active) ORDER BY g")

    assert [words(one.items[1].expression) for one in question.blocks] == ["0", "1", "3"]
    assert question.order[0].expression == Ref(1, Type.INTEGER)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT city, COUNT(*) FROM people", "GROUP BY or inside"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY city", "GROUP BY or inside"),
        ("SELECT COUNT(*) FROM people GROUP BY sex HAVING city = 'a'", "GROUP BY or inside"),
        ("SELECT lower(sex) FROM people GROUP BY sex", "every item must be"),
        ("SELECT sex, 'x' FROM people GROUP BY sex", "every item must be"),
        ("SELECT COUNT(*) FROM people GROUP BY 2", "from 1 to 1"),
        ("SELECT COUNT(*) FROM people GROUP BY 1", "must not hold an aggregate"),
        ("SELECT COUNT(*) FROM people GROUP BY 'x'", "over columns"),
        ("SELECT DISTINCT 'x' FROM people", "over columns"),
        ("SELECT COUNT(*) FROM people GROUP BY", "nothing stands behind"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY ALL sex", "without further keys"),
        ("SELECT DISTINCT COUNT(*) FROM people GROUP BY sex", "select every key"),
        ("SELECT COUNT(*) FROM people GROUP BY CUBE (age, sex, city, income, height, joined, active)", "at most 64"),
        ("SELECT COUNT(*) FROM people GROUP BY ROLLUP (age, sex), ROLLUP (age, sex), CUBE (age, sex, city)", "at most 64"),
        (f"SELECT COUNT(*) FROM people GROUP BY {', '.join(f'age + {n}' for n in range(70))}", "at most 64 keys"),
        ("SELECT GROUPING(age), COUNT(*) FROM people GROUP BY sex", "must be of keys"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) ORDER BY COUNT(*) + 1", "output column"),
        ("SELECT AVG(COUNT(*)) FROM people", "inside another"),
        ("SELECT COUNT(*) FROM people WHERE SUM(age) > 1", "must not stand in WHERE"),
        ("SELECT COUNT(*) AS n FROM people WHERE n > 1", "must not stand in WHERE"),
        ("SELECT COUNT(NULL) FROM people", "counts nothing"),
        ("SELECT COUNT() FROM people", "must have an argument"),
        ("SELECT SUM() FROM people", "cannot be read"),
        ("SELECT MAX(age, 3) FROM people", "not part of the language"),
        ("SELECT MIN(city) FROM people", "number or a date"),
        ("SELECT SUM(age ORDER BY age) FROM people", "not part of the language"),
        ("SELECT COUNT(*) WITHIN GROUP (ORDER BY age) FROM people", "must follow PERCENTILE"),
        ("SELECT ABS(age) FILTER (WHERE active) FROM people", "must follow an aggregate"),
        ("SELECT COUNT(*) FROM people LIMIT -1", "whole number"),
        ("SELECT COUNT(*) FROM people FETCH FIRST 2 ROWS WITH TIES", "WITH TIES"),
    ],
)
def test_groups_are_refused_with_the_rule(text, rule):
    """What cannot be grouped says why."""
    with pytest.raises(InvalidQuery) as refusal:
        read(text)

    assert rule in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT city FROM people",
        "SELECT * FROM people",
        "SELECT *, COUNT(*) FROM people GROUP BY ALL",
        "SELECT DISTINCT * FROM people",
        "SELECT user_id FROM people GROUP BY user_id",
        "SELECT COUNT(*) FROM people GROUP BY user_id + 1",
        "SELECT COUNT(*) FROM people GROUP BY ROLLUP (user_id)",
        "SELECT MIN(user_id) FROM people",
        "SELECT SUM(CASE WHEN user_id = 1 THEN age END) FROM people",
        "SELECT COUNT(DISTINCT user_id % 3) FROM people",
        "SELECT COUNT(user_id + 1) FROM people",
        "SELECT SUM(DISTINCT age) FROM people",
        "SELECT MODE(age) FROM people",
        "SELECT ANY_VALUE(age) FROM people",
        "SELECT BOOL_OR(active) FROM people",
        "SELECT COUNT(*) FROM (SELECT user_id * 2 AS x FROM people)",
        "SELECT COUNT(*) FROM (SELECT user_id + 0, COUNT(*) FROM visits GROUP BY user_id)",
        "SELECT COUNT(*) FROM (SELECT user_id, user_id % 2, COUNT(*) FROM visits GROUP BY user_id, user_id % 2)",
        "SELECT COUNT(*) FROM (SELECT user_id, MAX(user_id) FROM visits GROUP BY user_id)",
        "SELECT COUNT(*) FROM (SELECT user_id, FIRST(spent) FROM visits GROUP BY user_id)",
        "SELECT COUNT(*) FROM (SELECT user_id FROM visits GROUP BY user_id LIMIT 3)",
        "SELECT COUNT(*) FROM (SELECT rank() OVER (ORDER BY age) AS r FROM people)",
        "SELECT COUNT(*) FROM (SELECT sum(user_id) OVER (PARTITION BY user_id) AS r FROM people)",
        "SELECT COUNT(*) FROM (SELECT sum(age) OVER (PARTITION BY user_id, user_id + 1) AS r FROM people)",
        "SELECT COUNT(*) FROM (SELECT sum(age) OVER (PARTITION BY v.user_id) FROM people LEFT JOIN visits v USING (user_id))",
        "SELECT COUNT(*) FROM people WHERE row_number() OVER (PARTITION BY user_id) = 1",
        "SELECT SUM(row_number() OVER (PARTITION BY user_id)) FROM people",
        "SELECT COUNT(*) OVER (PARTITION BY user_id) FROM people",
        "SELECT COUNT(*) FROM (SELECT user_id FROM people UNION ALL SELECT items FROM visits)",
        "SELECT COUNT(*) FROM (SELECT age FROM people UNION SELECT age FROM people)",
        "SELECT COUNT(*) FROM (SELECT age FROM people EXCEPT SELECT age FROM people)",
        "SELECT COUNT(*) FROM (SELECT COUNT(*) FROM people UNION ALL SELECT age FROM people)",
    ],
)
def test_people_are_never_singled_out(text):
    """No rows, no units as keys or numbers, no aggregates across units inside a subquery."""
    with pytest.raises(NotPrivate):
        read(text)


# ---- inside a unit -------------------------------------------------------------------------------------------------------


def test_groups_of_the_unit_are_exact_and_of_their_own_type():
    """A subquery that groups by the unit keeps sums whole, takes MIN and MAX as they are, and filters by HAVING."""
    text = """
        SELECT AVG(s) FROM (
            SELECT user_id AS u, place, SUM(items) + 1 AS s, MAX(spent) AS m, MEDIAN(items) AS q
            FROM visits WHERE spent > 1 GROUP BY user_id, place HAVING COUNT(*) > 2 ORDER BY u
        ) WHERE m > 3
    """
    relation = block(text).relation

    assert shape(relation) == (
        "[#0, #1, +(#2, 1), #3, #4] of ((visits where >(#4, 1)) by unit #1, #3: "
        "sum(#5), max(#4), quantile(#5 1/2), count() where >(#5, 2)) where >(#3, 3)"
    )
    assert [one.type for one in relation.columns] == [Type.INTEGER, Type.STRING, Type.INTEGER, Type.FLOAT, Type.INTEGER]
    assert [one.name for one in relation.columns] == ["u", "place", "s", "m", "q"]
    assert relation.columns[0].unit
    assert relation.columns[1].source == ("visits", "place")


def test_distinct_rows_of_each_unit():
    """SELECT DISTINCT with the unit is about rows; without it, it would be keys."""
    assert shape(block("SELECT COUNT(*) FROM (SELECT DISTINCT user_id, place FROM visits)").relation) == (
        "distinct ([#1, #3] of (visits))"
    )


def test_windows_stay_inside_the_unit():
    """The unit is always part of the partition and is not repeated; a declared key is inside the unit too."""
    text = "SELECT {} AS x FROM visits"
    window = block(f"SELECT COUNT(*) FROM ({text.format('sum(items) OVER (PARTITION BY user_id, place ORDER BY at DESC)')})")
    call = window.relation.input.calls[0]

    assert shape(window.relation) == "[#8] of ((visits) over sum)"
    assert [words(one) for one in call.partition] == ["#3"]
    assert [(words(one), down, first) for one, down, first in call.order] == [("#2", True, False)]
    assert not call.whole
    whole = block(f"SELECT COUNT(*) FROM ({text.format('count(*) OVER (PARTITION BY user_id)')})").relation.input.calls[0]
    assert (whole.function, whole.argument, whole.whole) == ("count", None, True)
    lag = block(f"SELECT COUNT(*) FROM ({text.format('lag(spent, 2) OVER (PARTITION BY user_id ORDER BY at)')})")
    assert lag.relation.input.calls[0].offset == 2
    key = "SELECT COUNT(*) FROM (SELECT row_number() OVER (PARTITION BY l_order ORDER BY price) AS r FROM lines) WHERE r = 1"
    assert [words(one) for one in block(key, "shop").relation.input.input.calls[0].partition] == ["#0"]


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ("ntile(4) OVER (PARTITION BY user_id ORDER BY at)", "before OVER"),
        ("first_value(spent) OVER (PARTITION BY user_id ORDER BY at)", "before OVER"),
        ("sum(spent) OVER (PARTITION BY user_id ORDER BY at ROWS 2 PRECEDING)", "a frame must run"),
        ("sum(spent) OVER (PARTITION BY user_id ORDER BY at GROUPS UNBOUNDED PRECEDING)", "a frame must run"),
        ("sum(spent) OVER (PARTITION BY user_id ORDER BY at ROWS UNBOUNDED PRECEDING EXCLUDE TIES)", "EXCLUDE"),
        ("row_number() OVER (PARTITION BY user_id ORDER BY at ROWS UNBOUNDED PRECEDING)", "no frame"),
        ("lag(spent, items) OVER (PARTITION BY user_id ORDER BY at)", "offset of lag"),
        ("lag(spent, 1, 0) OVER (PARTITION BY user_id ORDER BY at)", "DEFAULT"),
        ("sum(place) OVER (PARTITION BY user_id)", "must be a number"),
        ("max(place) OVER (PARTITION BY user_id)", "number or a date"),
        ("count(DISTINCT place) OVER (PARTITION BY user_id)", "DISTINCT must not"),
        ("sum(spent) OVER w", "ALIAS"),
        ("sum(spent) OVER (PARTITION BY user_id ORDER BY 1)", "ordered by columns"),
        ("sum(spent) FILTER (WHERE returned) OVER (PARTITION BY user_id)", "before OVER"),
    ],
)
def test_windows_are_refused_with_the_rule(call, rule):
    """Frames and functions that are not in the list say so."""
    with pytest.raises(InvalidQuery) as refusal:
        read(f"SELECT COUNT(*) FROM (SELECT {call} AS x FROM visits)")

    assert rule in str(refusal.value)


# ---- after the release ---------------------------------------------------------------------------------------------------


def test_an_outer_select_becomes_part_of_the_block():
    """WHERE over released values is HAVING; items, ORDER BY and LIMIT are put in place of what they name."""
    question = read("""
        SELECT k, n / 2 AS half FROM (SELECT upper(sex) AS k, COUNT(*) AS n FROM people GROUP BY 1 HAVING COUNT(*) > 1) t
        WHERE t.n > 3 AND half > 1 ORDER BY half DESC LIMIT 2
    """)

    assert blocks("SELECT k, n FROM (SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex)") == [
        (["#2"], ["K0", "count()"], None)
    ]
    assert words(question.blocks[0].having) == "and(>(count(), 1), >(count(), 3), >(/(count(), 2), 1))"
    assert [words(one.expression) for one in question.blocks[0].items] == ["K0", "/(count(), 2)"]
    assert words(question.order[0].expression) == "/(count(), 2)"
    assert question.limit == 2


def test_the_order_of_a_subquery_stays_where_none_is_given():
    """An inner ORDER BY and LIMIT are kept by a plain outer SELECT, and come before what another does."""
    kept = read("SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 1)")

    assert (words(kept.order[0].expression), kept.limit) == ("count()", 1)
    above = read("SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex LIMIT 1) WHERE n > 2").above
    assert isinstance(above.input, Filter)
    assert above.input.input.limit == 1


def test_union_all_puts_releases_one_after_the_other():
    """Names come from the first part, types are made one, ORDER BY names an output column."""
    question = read("""
        SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex
        UNION ALL SELECT NULL, AVG(age) FROM people UNION ALL (SELECT city, COUNT(*) FROM people GROUP BY city)
        ORDER BY n DESC, 1 LIMIT 3
    """)

    assert [[words(one.expression) for one in part.items] for part in question.blocks] == [
        ["K0", "cast(count())"],
        ["NULL", "avg(#1)"],
        ["K0", "cast(count())"],
    ]
    assert {tuple(one.name for one in part.items) for part in question.blocks} == {("k", "n")}
    assert question.order[0].expression == Ref(1, Type.FLOAT)
    assert question.order[1].expression == Ref(0, Type.STRING)
    outer = read("SELECT n FROM (SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM visits) WHERE n > 1")
    assert [words(one.having) for one in outer.blocks] == [">(count(), 1)"] * 2


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT COUNT(*) FROM people UNION ALL SELECT sex, COUNT(*) FROM people GROUP BY sex", "must have 1 columns"),
        ("SELECT sex FROM people GROUP BY sex UNION ALL SELECT COUNT(*) FROM people", "of one kind"),
        ("SELECT COUNT(*) FROM people UNION ALL BY NAME SELECT COUNT(*) FROM people", "BY NAME"),
        ("(SELECT COUNT(*) FROM people LIMIT 1) UNION ALL SELECT COUNT(*) FROM people", "LIMIT must stand once"),
        (" UNION ALL ".join(["SELECT COUNT(*) FROM people"] * 65), "at most 64 parts"),
        ("SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT place FROM visits)", "of one kind"),
        ("SELECT COUNT(*) FROM (SELECT age, sex FROM people UNION ALL SELECT items FROM visits)", "must have 2 columns"),
    ],
)
def test_unions_are_refused_with_the_rule(text, rule):
    """Parts that do not fit together say why."""
    with pytest.raises(InvalidQuery) as refusal:
        read(text)

    assert rule in str(refusal.value)


def test_union_of_rows_keeps_the_unit_and_agrees_on_types():
    """The unit stays the unit where it is one in every part; numbers of two types become one."""
    relation = block(
        "SELECT COUNT(*) FROM (SELECT user_id, age AS x FROM people UNION ALL SELECT user_id, spent FROM visits)"
    ).relation

    assert shape(relation) == "([#0, cast(#1)] of ([#0, #1] of (people))) + ([#1, #4] of (visits))"
    assert [(one.unit, one.type, one.source) for one in relation.columns] == [
        (True, Type.INTEGER, None),
        (False, Type.FLOAT, None),
    ]


def test_tables_are_told():
    """Every table that is read is listed, public ones too."""
    text = "SELECT COUNT(*) FROM visits v JOIN people p USING (user_id) WHERE p.city IN (SELECT city FROM cities)"

    assert read(text).tables == ("cities", "people", "visits")


def test_public_tables_alone_are_not_asked_about():
    """A question without a private table is refused with what to do instead."""
    for text in ("SELECT COUNT(*) FROM cities", "SELECT city FROM cities", "SELECT DISTINCT country FROM cities"):
        with pytest.raises(InvalidQuery, match="directly"):
            read(text)
