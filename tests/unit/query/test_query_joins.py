"""FROM: joins tie units, rows that nobody owns are refused, names find their columns."""

import pytest
from query_words import read, shape, source, words

from curador.errors import InvalidQuery, NotPrivate

PEOPLE = {
    "people p JOIN visits v ON p.user_id = v.user_id": "(people) inner (visits) on =(#0, #10)",
    "people JOIN visits USING (user_id)": "(people) inner (visits) on =(#0, #10)",
    "people, visits WHERE people.user_id = visits.user_id": "(people) inner (visits) on =(#0, #10)",
    "people p CROSS JOIN visits v WHERE p.user_id = v.user_id AND p.age > 3": (
        "(people) inner (visits) on =(#0, #10) where >(#1, 3)"
    ),
    "people p JOIN visits v ON v.spent > 1 WHERE p.user_id = v.user_id": (
        "(people) inner (visits) on =(#0, #10) where >(#13, 1)"
    ),
    "people p LEFT JOIN visits v ON p.user_id = v.user_id AND v.spent > 1 WHERE v.spent IS NULL": (
        "(people) left (visits) on and(=(#0, #10), >(#13, 1)) where is_null(#13)"
    ),
    "people RIGHT JOIN visits USING (user_id)": "(people) right (visits) on =(#0, #10)",
    "people p JOIN cities c ON p.city = c.city": "(people) inner (cities) on =(#3, #9)",
    "cities c JOIN people p ON p.city = c.city": "(people) inner (cities) on =(#3, #9)",
    "cities c, people p WHERE c.city = p.city AND c.capital": "(people) inner (cities) on =(#9, #3) where #12",
    "people LEFT JOIN cities USING (city)": "(people) left (cities) on =(#3, #9)",
    "cities RIGHT JOIN people USING (city)": "(cities) right (people) on =(#0, #7)",
    "people CROSS JOIN cities": "(people) inner (cities)",
    "people SEMI JOIN visits USING (user_id)": "(people) semi (visits) on =(#0, #10)",
    "people p ANTI JOIN cities c ON p.city = c.city": "(people) anti (cities) on =(#3, #9)",
    "(people JOIN visits USING (user_id)) JOIN cities USING (city)": (
        "((people) inner (visits) on =(#0, #10)) inner (cities) on =(#3, #17)"
    ),
    "people WHERE city IN (SELECT city FROM cities WHERE capital)": "(people) semi (cities where #3) on =(#3, #9)",
    "people WHERE city NOT IN (SELECT city FROM cities)": "(people where not(is_null(#3))) anti (cities) on =(#3, #9)",
    "people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.user_id = p.user_id AND v.items > 1 AND v.items > p.age)": (
        "(people) semi (visits where >(#5, 1)) on and(=(#10, #0), >(#14, #1))"
    ),
    "people p WHERE NOT EXISTS (SELECT * FROM cities c WHERE c.city = p.city)": "(people) anti (cities) on =(#9, #3)",
    "people WHERE user_id IN (SELECT user_id FROM visits)": "(people) semi (visits) on =(#0, #10)",
    "people WHERE age > 1 AND user_id IN (SELECT user_id FROM visits GROUP BY user_id HAVING COUNT(*) > 1)": (
        "(people where >(#1, 1)) semi ([#0] of ((visits) by unit #1: count() where >(#1, 1))) on =(#0, #9)"
    ),
}
SHOP = {
    "orders JOIN lines ON o_id = l_order": "(orders) inner (lines) on =(#0, #5)",
    "lines a JOIN lines b ON a.l_order = b.l_order": "(lines) inner (lines) on =(#0, #6)",
    "customers, orders, lines WHERE c_id = o_customer AND o_id = l_order": (
        "((customers) inner (orders) on =(#0, #5)) inner (lines) on =(#4, #9)"
    ),
    "lines, customers, orders WHERE c_id = o_customer AND o_id = l_order": (
        "((lines) inner (orders) on =(#6, #0)) inner (customers) on =(#11, #7)"
    ),
    "products, lines, orders WHERE p_id = l_product AND o_id = l_order": (
        "((lines) inner (products) on =(#6, #1)) inner (orders) on =(#9, #0)"
    ),
    "orders WHERE o_id IN (SELECT l_order FROM lines)": "(orders) semi (lines) on =(#0, #5)",
}


@pytest.mark.parametrize("text", PEOPLE)
def test_joins_of_units_and_public_tables(text):
    """A join that ties units, or adds public columns, becomes one relation; spelling does not matter."""
    assert source(text) == PEOPLE[text]


@pytest.mark.parametrize("text", SHOP)
def test_joins_along_declared_keys(text):
    """A declared key ties as the unit does, and tables are joined in an order in which each is tied."""
    assert source(text, "shop") == SHOP[text]


NOT_PRIVATE = [
    "people a, people b",
    "people a JOIN people b ON a.city = b.city",
    "people p JOIN visits v ON p.user_id = v.user_id OR TRUE",
    "people p JOIN visits v ON p.user_id + 0 = v.user_id",
    "people p JOIN visits v ON p.user_id <> v.user_id",
    "people p JOIN visits v ON p.user_id = v.items",
    "people p JOIN visits v ON p.user_id = p.user_id",
    "people p LEFT JOIN visits v ON p.age = v.items WHERE p.user_id = v.user_id",
    "people p FULL JOIN visits v ON p.age = v.items",
    "people p SEMI JOIN visits v ON p.age = v.items",
    "cities LEFT JOIN people USING (city)",
    "people RIGHT JOIN cities USING (city)",
    "people FULL JOIN cities USING (city)",
    "cities SEMI JOIN people USING (city)",
    "cities WHERE city IN (SELECT city FROM people)",
    "people WHERE city IN (SELECT place FROM visits)",
    "people WHERE EXISTS (SELECT 1 FROM visits)",
    "people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.place = p.city)",
    "people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.user_id = p.user_id OR v.spent > 1)",
    "(SELECT user_id, user_id AS u FROM people) FULL JOIN (SELECT items user_id, user_id u FROM visits) USING (user_id, u)",
    "people WHERE active OR user_id IN (SELECT user_id FROM visits)",
    "people WHERE user_id IN (SELECT user_id % 2 FROM visits)",
    "people WHERE age > (SELECT AVG(age) FROM people)",
    "people WHERE age IN (SELECT COUNT(*) FROM visits)",
    "people JOIN (SELECT city, COUNT(*) AS n FROM people GROUP BY city) USING (city)",
    "people JOIN (SELECT c.city FROM cities c WHERE EXISTS (SELECT 1 FROM people p WHERE p.city = c.city)) x USING (city)",
]


@pytest.mark.parametrize("text", NOT_PRIVATE)
def test_rows_of_one_person_never_depend_on_another(text):
    """What would pair, filter or keep rows across people is refused."""
    with pytest.raises(NotPrivate):
        source(text)


INVALID = {
    "people NATURAL JOIN visits": "NATURAL JOIN",
    "people ASOF JOIN visits ON people.user_id = visits.user_id": "ASOF JOIN",
    "people JOIN visits": "must have a condition",
    "people JOIN visits ON": "nothing stands behind",
    "people JOIN visits USING ()": "must name a column",
    "people JOIN visits USING (age)": "on both sides",
    "people JOIN visits USING (user_id) JOIN people USING (user_id)": "stand once in FROM",
    "people p JOIN visits v USING (user_id) WHERE q.age > 1": "no table",
    "people a JOIN people b USING (user_id) WHERE age > 1": "several have it",
    "people, visits RIGHT JOIN cities ON place = cities.city WHERE people.user_id = visits.user_id": "follow a comma",
    "read_csv('x')": "must be named",
    "(VALUES (1)) t": "must not stand in FROM",
    "people * p": "followed by *",
    "people TABLESAMPLE 10%": "TABLESAMPLE",
    "main.people": "name of a schema",
    "people WHERE city IN (SELECT city, country FROM cities)": "one column",
    "people LIMIT ALL OFFSET x": "OFFSET must be a whole number",
    ", ".join(f"people p{number}" for number in range(17)): "at most 16 tables",
}


@pytest.mark.parametrize("text", INVALID)
def test_what_is_no_from_is_refused(text):
    """What cannot be read as FROM says which rule it breaks."""
    with pytest.raises(InvalidQuery) as refusal:
        source(text)

    assert INVALID[text] in str(refusal.value)


def test_the_unit_is_followed_through_joins():
    """The side that may be absent has the unit or NULL; the merged column of a full join has it always."""
    left = read("SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.user_id = v.user_id").blocks[0].relation
    full = read("SELECT COUNT(*) FROM people FULL JOIN visits USING (user_id)").blocks[0].relation

    assert [(one.unit, one.unit_or_null) for one in left.columns if one.name == "user_id"] == [(True, False), (False, True)]
    assert [(one.unit, one.unit_or_null) for one in full.columns if one.name == "user_id"] == [
        (False, True),
        (False, True),
        (True, False),
    ]
    assert not full.columns[-1].nullable
    assert left.columns[-1].nullable


def test_units_of_the_absent_side_are_counted_where_they_are():
    """COUNT and COUNT(DISTINCT) of the unit skip the rows where it is absent."""
    items = read(
        "SELECT COUNT(v.user_id), COUNT(DISTINCT v.user_id), COUNT(DISTINCT p.user_id) "
        "FROM people p LEFT JOIN visits v ON p.user_id = v.user_id"
    )

    assert [words(one.expression) for one in items.blocks[0].items] == [
        "count(| not(is_null(#10)))",
        "count_units(| not(is_null(#10)))",
        "count_units()",
    ]


def test_the_absent_side_is_no_key_of_a_unit():
    """A column that may be NULL does not say whose row it is."""
    with pytest.raises(NotPrivate):
        source("(SELECT v.user_id FROM people p LEFT JOIN visits v USING (user_id) GROUP BY v.user_id)")


def test_columns_keep_the_order_of_the_text_in_a_star():
    """However the tables are joined, * lists them as they were written, and a merged column once."""
    rows = read("SELECT COUNT(*) FROM (SELECT * FROM cities c, people p WHERE c.city = p.city)").blocks[0].relation
    merged = read("SELECT COUNT(*) FROM (SELECT * FROM people JOIN cities USING (city))").blocks[0].relation

    assert [one.name for one in rows.columns][:5] == ["city", "country", "population", "capital", "user_id"]
    assert [one.name for one in merged.columns].count("city") == 1


def test_names_shadow_as_in_sql():
    """A name of WITH hides a table inside its own query only; identity, not spelling, decides what the unit is."""
    assert source("people", "people") == "people"
    shadowed = read(
        "WITH people AS (SELECT * FROM visits), x AS (SELECT * FROM people) SELECT COUNT(DISTINCT user_id) FROM x"
    )
    assert shape(shadowed.blocks[0].relation) == "visits"
    itself = read("WITH people AS (SELECT * FROM people WHERE age > 1) SELECT COUNT(*) FROM people")
    assert shape(itself.blocks[0].relation) == "people where >(#1, 1)"
    renamed = read("WITH t(x, u) AS (SELECT age, user_id FROM people) SELECT AVG(x) FROM t WHERE u = 3")
    assert words(renamed.blocks[0].items[0].expression) == "avg(#0)"
    with pytest.raises(NotPrivate):
        read("SELECT user_id, COUNT(*) FROM (SELECT user_id AS age, age AS user_id FROM people) GROUP BY age, user_id")
    swapped = read("SELECT user_id, COUNT(*) FROM (SELECT user_id AS age, age AS user_id FROM people) GROUP BY user_id")
    assert words(swapped.blocks[0].keys[0]) == "#1"


def test_tables_are_counted_as_often_as_they_are_read():
    """A CTE that doubles at every step is refused long before it is large."""
    steps = "".join(f", c{step + 1} AS (SELECT a.* FROM c{step} a JOIN c{step} b USING (user_id))" for step in range(60))

    with pytest.raises(InvalidQuery, match="at most 16 tables"):
        read(f"WITH c0 AS (SELECT * FROM people){steps} SELECT COUNT(*) FROM c60")
    with pytest.raises(InvalidQuery, match="at most 2,000 columns"):
        read("SELECT COUNT(*) FROM " + "(SELECT *, *, *, * FROM " * 10 + "people" + ")" * 10)
