"""The cost class: how many ticks a question has is a function of the question and the study."""

from dataclasses import replace
from fractions import Fraction

import pytest
from plan_schemas import Public, schema

from curador.plan.build import build_plan
from curador.plan.cost_class import cost_class, most_ticks
from curador.query.sql import parse
from curador.study.model import EngineSettings

SETTINGS = EngineSettings(answer_every=Fraction(1))


def ticks(sql, known=None, settings=SETTINGS):
    known = known or schema()
    return cost_class(build_plan(parse(sql, known), known).blocks, known, settings)


def test_a_plain_question_has_one_tick_and_more_has_more():
    """A table that is read once; a join; joins of joins. Each class is a power of two."""
    plain = ticks("SELECT COUNT(*) AS n FROM people")
    joined = ticks("SELECT COUNT(*) AS n FROM people p JOIN regions r ON r.city = p.city")
    medians = ", ".join(f"MEDIAN(income + {place}) AS m{place}" for place in range(12))
    many = ticks(f"SELECT {medians} FROM people")
    assert plain == 1 < joined <= many
    assert {plain, joined, many} <= {2**power for power in range(7)}


def test_it_does_not_change_with_who_is_asked_about():
    """Constants are nothing to it: one person, or everybody."""
    one = "SELECT COUNT(*) AS n FROM people WHERE id = {}"
    assert ticks(one.format(1)) == ticks(one.format(999_999)) == 1


def test_rows_that_public_tables_multiply_count():
    """Four public rows for each: the join, and all above it."""
    sql = "SELECT COUNT(*) AS n FROM people p JOIN regions r ON r.city = p.city JOIN regions s ON s.city = p.city"
    assert ticks(sql, schema(public=Public(many=1))) < ticks(sql, schema(public=Public(many=4)))


def test_there_are_not_more_than_a_tick_beyond_the_deadline():
    """What could run longer is stopped there."""
    calls = " + ".join(f"LN(income + {place + 1})" for place in range(40))
    few = replace(SETTINGS, deadline=Fraction(2), unit_work=Fraction(3600))
    known = schema()
    known = replace(known, study=replace(known.study, engine=few))
    assert most_ticks(few) == 3
    assert ticks(f"SELECT AVG({calls}) AS a, MEDIAN({calls}) AS b, SUM({calls}) AS c FROM people", known, few) <= 3
    assert most_ticks(EngineSettings()) == 1
    assert ticks("SELECT COUNT(*) AS n FROM people", settings=EngineSettings()) == 1


@pytest.mark.parametrize(
    "sql", ["SELECT city, COUNT(*) AS n FROM people GROUP BY city", "SELECT MEDIAN(income) AS m FROM people"]
)
def test_private_keys_and_quantiles_count(sql):
    """Not many: they are read with the same scan."""
    assert ticks(sql) in {1, 2}
