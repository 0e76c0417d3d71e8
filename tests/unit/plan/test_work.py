"""W: what one unit's rows can cause is bounded through every step, and a plan above the limit is refused with its place."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from plan_schemas import Public, event_tables, people_tables, schema

from curador.errors import NotPrivate
from curador.plan.build import build_plan
from curador.plan.words import explain
from curador.plan.work import LEAST_HEIGHT, TEXT_BYTES, UNIT_TEXT_BYTES, cost_of, most_stored, nanoseconds_of, stored_rows
from curador.query.sql import parse
from curador.query.tree import Call, Literal, Ref
from curador.study.model import Caps, EngineSettings
from curador.study.values import Type

SCHEMA = schema()


def planned(sql, known=SCHEMA):
    """Return the one block of a question."""
    (block,) = build_plan(parse(sql, known), known).blocks
    return block


def height_of(block, known=SCHEMA):
    """Return the rows of a unit that tables give at most: all that are stored where nothing is cut."""
    return most_stored(block.relation, known) if block.cap.height is None else block.cap.height


def limited(**changes):
    """Return the schema with other settings of the engine."""
    return replace(SCHEMA, study=replace(SCHEMA.study, engine=EngineSettings(**changes)))


def refused(sql, known=SCHEMA):
    """Return the words of a refusal for work's sake."""
    with pytest.raises(NotPrivate, match="ms of work") as caught:
        planned(sql, known)
    return str(caught.value)


# ---- read-outs by time ---------------------------------------------------------------------------------------------


def test_rows_multiplied_by_public_tables_are_refused_where_they_stand():
    """A person's row times four public rows, ten times over: a million rows from one."""
    four = schema(public=Public(many=4))
    joins = " ".join(f"JOIN regions r{place} ON r{place}.city = p.city" for place in range(10))
    words = refused(f"SELECT COUNT(*) AS n FROM people p {joins} WHERE p.id = 237 AND p.sex = 'm'", four)

    assert words.startswith("line 1, column")
    assert "one person must cause at most 2 ms of work" in words
    assert "1,048,576 rows" in words
    planned("SELECT COUNT(*) AS n FROM people p JOIN regions r ON r.city = p.city", four)


@pytest.mark.parametrize("times", [5, 6, 8])
def test_rows_joined_with_themselves_are_refused(times):
    """h rows become h^k."""
    joins = " ".join(f"JOIN visits v{place} ON v{place}.id = v.id" for place in range(times))

    assert "join" in refused(f"SELECT COUNT(*) AS n FROM visits v {joins} WHERE v.id = 237")


def test_one_self_join_lowers_the_height_and_says_so():
    """The height is public, a power of two, and stands in the plan's text."""
    block = planned("SELECT COUNT(*) AS n FROM visits v JOIN visits w ON v.id = w.id AND v.spent < w.spent")

    assert block.cap.height is not None
    assert LEAST_HEIGHT <= block.cap.height < 1_000
    assert block.cap.height & (block.cap.height - 1) == 0
    plan = build_plan(parse("SELECT COUNT(*) AS n FROM visits v JOIN visits w ON v.id = w.id", SCHEMA), SCHEMA)
    assert f"at most {plan.blocks[0].cap.height:,} rows per person of a table" in explain(plan, SCHEMA)
    assert "the rows of one person cause at most about" in explain(plan, SCHEMA)


def test_many_logarithms_lower_the_height():
    """300 logarithms of each of 10,000 rows would be 100 ms."""
    one = planned("SELECT COUNT(*) AS n FROM visits WHERE id = 237 AND LN(spent) > 1")
    many = " AND ".join(f"LN(spent + {place}) > 1" for place in range(300))
    block = planned(f"SELECT COUNT(*) AS n FROM visits WHERE id = 237 AND {many}")

    assert block.cap.height * 8 <= one.cap.height
    assert nanoseconds_of(block.work) <= 2_000_000


def test_patterns_cost_what_looking_for_them_takes():
    """A pattern with _ is compared at every place, letter by letter."""

    def looking(pattern):
        node = Call("like", (Ref(0, Type.STRING), Literal(pattern, Type.STRING)), Type.BOOLEAN)
        return cost_of(node, 10, (10 * TEXT_BYTES,))

    assert looking("%" + "a" * 1000 + "_b%") > 100 * looking("%aaa%")
    assert looking("a_%") < looking("%a_%")
    refused(f"SELECT COUNT(*) AS n FROM visits WHERE city LIKE '%{'a' * 1000}_b%'")
    planned("SELECT COUNT(*) AS n FROM visits WHERE city LIKE '%a%'")


def test_nested_guards_are_counted_as_often_as_they_are_computed():
    """What is guarded stands twice in the text."""
    x = Ref(0, Type.FLOAT)
    costs = []
    for _ in range(6):
        x = Call("ln", (x,), Type.FLOAT)
        costs.append(cost_of(x, 100, (0,)))

    assert all(later > 2 * sooner for sooner, later in itertools.pairwise(costs))


# ---- what must not be refused --------------------------------------------------------------------------------------

ORDINARY = [
    "SELECT COUNT(*) AS n FROM visits WHERE id = 237",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT LOWER(city) AS c, AVG(spent) AS m FROM visits GROUP BY LOWER(city)",
    "SELECT COUNT(*) AS n FROM visits WHERE city LIKE 'P%' AND spent > 3",
    'SELECT SUM(l.price) AS s FROM orders o JOIN lines l ON l."order" = o."order"',
    'SELECT SUM(l.price) AS s FROM people p JOIN orders o ON p.id = o.id JOIN lines l ON l."order" = o."order"',
    "SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id AND v.spent > 100)",
    "SELECT COUNT(*) AS n FROM people WHERE id NOT IN (SELECT id FROM visits)",
    "SELECT r.region, COUNT(*) AS n FROM visits v JOIN regions r ON r.city = v.city GROUP BY r.region",
    "SELECT AVG(n) AS m FROM (SELECT id, COUNT(*) AS n FROM visits GROUP BY id) t",
]


@pytest.mark.parametrize("sql", ORDINARY)
def test_ordinary_questions_keep_thousands_of_rows(sql):
    """Far below the limit: people with a thousand rows lose none of them."""
    block = planned(sql)

    assert height_of(block) >= 1_000
    assert nanoseconds_of(block.work) <= 2_000_000


def test_a_join_on_a_verified_key_multiplies_by_one():
    """`orders.order` is what lines find their unit through."""
    block = planned('SELECT COUNT(*) AS n FROM orders o JOIN lines l ON l."order" = o."order"')
    other = planned("SELECT COUNT(*) AS n FROM visits v JOIN orders o ON v.id = o.id")

    assert max(step.rows for step in block.work) == height_of(block)
    assert height_of(other) < height_of(block)


def test_rows_that_are_units_and_unique_tables_have_height_one():
    """Nothing is cut where there is nothing to cut."""
    known = schema(event_tables())

    assert planned("SELECT COUNT(*) AS n FROM events WHERE x > 3", known).cap.height is None
    assert planned("SELECT COUNT(*) AS n FROM people WHERE age > 3").cap.height is None


# ---- limits --------------------------------------------------------------------------------------------------------


def test_the_height_is_the_largest_that_fits():
    """Twice the height would be above the limit."""
    sql = "SELECT COUNT(*) AS n FROM visits WHERE spent > 3"
    block = planned(sql)
    twice = 2 * nanoseconds_of(block.work)
    wider = limited(unit_work=Fraction(twice, 1_000_000_000))

    assert height_of(planned(sql, wider), wider) >= 2 * height_of(block)


def test_an_owner_can_allow_more_and_less():
    """The limit is the owner's; far below it everything is refused."""
    sql = "SELECT COUNT(*) AS n FROM visits v JOIN visits w ON v.id = w.id JOIN visits x ON x.id = v.id"
    less, more = limited(unit_work=Fraction(1, 100)), limited(unit_work=Fraction(10))

    assert height_of(planned(sql, less), less) < height_of(planned(sql, more), more)
    refused("SELECT COUNT(*) AS n FROM visits WHERE spent > 3", limited(unit_work=Fraction(1, 1_000_000)))


def test_a_refusal_says_which_tables_may_be_unique():
    """Of a join of several tables that may have many rows of a unit; not of one that is unique already."""
    little = limited(unit_work=Fraction(1, 1_000_000))
    both = "SELECT COUNT(*) AS n FROM visits v JOIN orders o ON v.id = o.id WHERE spent > 3"

    assert "say unique = true of visits or orders if nobody has two rows there" in refused(both, little)
    assert "unique" not in refused("SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.id = p.id WHERE spent > 3", little)


def test_a_cap_above_the_height_becomes_the_height():
    """Where a cap allows more rows than fit, the height is the cap, and sensitivities are those of the height."""
    known = schema(people_tables(Caps(100_000)))
    block = planned("SELECT COUNT(*) AS n FROM visits WHERE spent > 3", known)

    assert block.cap.by == "none"
    assert block.contribution.rows == block.cap.height < 100_000
    assert stored_rows(known.study.tables[1], known.study) == 100_000


def test_texts_of_a_unit_are_bounded_together():
    """Thousands of rows cost no more than the texts that are kept."""
    block = planned("SELECT COUNT(*) AS n FROM visits WHERE LOWER(city) = 'lima'")
    step = next(one for one in block.work if one.what == "a filter")

    assert step.nanoseconds < 12 * UNIT_TEXT_BYTES + 100 * height_of(block)
