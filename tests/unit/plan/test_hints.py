"""What a refusal shows to be written instead is SQL that is planned: statements, conditions, calls, of the whole corpus."""

import datetime as dt
import functools
import itertools
import re
from fractions import Fraction
from pathlib import Path

import corpus_schemas
import pytest

from curador.errors import Refused
from curador.plan.build import build_plan
from curador.query.replacements import REPLACEMENTS, replace_function, replace_window
from curador.query.sql import parse
from curador.study.model import Budget, Caps, Column, Field, Schema, Study, Table, TableSchema, UnitColumn
from curador.study.values import Type

DAYS = (dt.date(2020, 1, 1), dt.date(2024, 12, 31))
KINDS = {
    "number": Column("x", Type.FLOAT, bounds=(Fraction(0), Fraction(100))),
    "text": Column("x", Type.STRING, length=20),
    "date": Column("x", Type.DATE, bounds=DAYS),
    "timestamp": Column("x", Type.TIMESTAMP),
    "boolean": Column("x", Type.BOOLEAN),
}
"""What x may be in a hint."""

CALL = re.compile(r"[A-Z_]{2,}\(")
CONDITION = re.compile(r"\b(?:WHERE )?(?:NOT )?x(?: (?:IS|LIKE|BETWEEN|IN|=|<|>)[^,;:.]*)?|\bCASE .* END\b|\bDATE '[^']*'")
STATEMENT = re.compile(r"\bSELECT [^;…]*? FROM [^;…]*")


@functools.cache
def world(kind):
    """A table whose columns x and y are of one kind."""
    tables = []
    for name in ("t", "a_table", "visits", "people", "orders", "customers"):
        columns = [KINDS[kind], Column("y", KINDS[kind].type, bounds=KINDS[kind].bounds, length=KINDS[kind].length)]
        fields = [Field(unit, Type.INTEGER, False, None) for unit in ("user_id", "c_id")]
        table = Table(name, f"{name}.parquet", UnitColumn("user_id"), tuple(columns), caps=Caps(rows=5, groups=2))
        tables.append(TableSchema(table, (*fields, *(Field(one.name, one.type, True, one) for one in columns))))
    budget = Budget(epsilon=10, delta=Fraction(1, 10**6))
    study = Study(kind, tuple(one.table for one in tables), budget, Path("t.ledger"))
    return Schema(study, tuple(tables), corpus_schemas.Facts({}, 10))


def planned(text, known, dialect="duckdb"):
    """Whether a question has a plan; else its refusal."""
    try:
        return build_plan(parse(text, known, dialect=dialect), known) is not None
    except Refused as refusal:
        return refusal


def shown(hint):
    """The pieces of SQL in a hint; one with … in it is no SQL and says so."""
    rest = re.sub(r'"[^"]*"', "", hint)
    found = []
    for statement in STATEMENT.findall(rest):
        found.append(statement.rstrip(". "))
        rest = rest.replace(statement, "")
    for match in CALL.finditer(rest):
        depth, end = 1, match.end()
        while depth and end < len(rest):
            depth += {"(": 1, ")": -1}.get(rest[end], 0)
            end += 1
        found.append(rest[match.start() : end])
    found += [one.strip() for one in CONDITION.findall(rest)]
    return [one for one in dict.fromkeys(found) if "…" not in one and one != "x"]


CONTEXTS = (
    "{}",
    "SELECT {} AS a FROM t",
    "SELECT COUNT(*) AS a FROM t WHERE {}",
    "SELECT COUNT(*) AS a FROM t AS t {}",
    "SELECT COUNT(*) AS a FROM t WHERE ({}) IS NOT NULL",
    "SELECT AVG(a) AS b FROM (SELECT user_id, {} AS a FROM t GROUP BY user_id)",
)


def runs(piece):
    """Whether a piece is SQL with x of some kind, at some place of a question."""
    places = CONTEXTS[:1] if piece.startswith("SELECT") else CONTEXTS
    return any(planned(place.format(piece), world(kind)) is True for kind, place in itertools.product(KINDS, places))


@functools.cache
def corpus_hints():
    """Every hint of the corpus, with a question that gets it."""
    found = {}
    for one in corpus_schemas.questions():
        refusal = planned(one["sql"], corpus_schemas.schema(one["schema"]), one["dialect"])
        if refusal is not True and refusal.hint:
            found.setdefault(refusal.hint, one["sql"])
    return found


REFUSED = {
    "SELECT SPLIT_PART(name, '-', 1), COUNT(*) FROM people GROUP BY 1": "SUBSTRING(x, 1, 3)",
    "SELECT COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people)": "ask for it, then write the number",
    "SELECT user_id FROM people UNION SELECT user_id FROM visits": "COUNT(DISTINCT user_id)",
    "SELECT TOP 3 city, COUNT(*) FROM people GROUP BY 1": "LIMIT 3",
    "SELECT AVG(LENGTH(city)) FROM people": "WHERE x BETWEEN 0 AND 100",
    "SELECT MAX(at) FROM visits": "WHERE at BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'",
    "SELECT AVG(raw) FROM visits": "WHERE raw BETWEEN 0 AND 100",
    (
        "SELECT COUNT(*) FROM people u WHERE EXISTS "
        "(SELECT 1 FROM visits v WHERE v.user_id = u.user_id GROUP BY v.user_id HAVING COUNT(*) > 2)"
    ): "user_id IN (SELECT user_id FROM visits GROUP BY user_id HAVING COUNT(*) > 3)",
    "SELECT STRFTIME(joined, '%x'), COUNT(*) FROM people GROUP BY 1": "%Y",
    "SELECT MONTHS_BETWEEN(joined, joined), COUNT(*) FROM people GROUP BY 1": "DATE_DIFF('month', x, y)",
    "SELECT LISTAGG(city) FROM people": "no list of single rows' values",
}


@pytest.mark.parametrize("text", REFUSED)
def test_hints_name_what_replaces_what_was_written(text):
    """The refusals that analysts meet most."""
    refusal = planned(text, corpus_schemas.schema("people"))

    assert refusal is not True
    assert REFUSED[text] in (refusal.hint or "")


@pytest.mark.slow
def test_hints_of_the_corpus_are_sql_that_runs():
    """Of every refusal: each piece of SQL in its hint is planned at some place of a question."""
    wrong = {hint: one for hint in corpus_hints() for one in shown(hint) if not runs(one)}

    assert not wrong
    assert sum(len(shown(hint)) for hint in corpus_hints()) > 20


@pytest.mark.slow
def test_replacements_are_sql_that_runs():
    """Of every function that does not exist here."""
    assert not {name: one for name, hint in REPLACEMENTS.items() for one in shown(hint) if not runs(one)}
    assert all(shown(hint) for hint in REPLACEMENTS.values() if "(x" in hint)


@pytest.mark.parametrize("name", ["ratio_to_report", "percent_rank", "cume_dist", "ntile"])
def test_what_replaces_a_window_function_runs_over_released_rows(name):
    """Each of them is planned over a count by a key."""
    said = replace_window(f"{name}()").rstrip(".")
    assert planned(f"SELECT {said} AS a FROM (SELECT y, COUNT(*) AS n FROM t GROUP BY y)", world("boolean")) is True


def test_a_hint_that_does_not_run_is_seen():
    """Seeded bugs: a function that does not exist, a condition of no kind, a half statement."""
    assert shown("write STRFTIM(x, 'a'), or x LIKE 3.") == ["STRFTIM(x, 'a')", "x LIKE 3"]
    assert not any(map(runs, ("STRFTIM(x, 'a')", "x LIKE 3", "SELECT x FROM t", "WHERE z > 3")))


@pytest.mark.parametrize(("name", "said"), [("medain", '"median"'), ("cuont", '"count"'), ("stddve", '"stddev"')])
def test_a_slip_of_one_letter_is_told(name, said):
    """Letters that are swapped, missing, doubled or wrong."""
    assert said in replace_function(name, ("median", "count", "stddev"))


@pytest.mark.parametrize("name", ["strftime", "dayname", "error", "log3", "xyz"])
def test_names_that_only_look_alike_are_not_proposed(name):
    """Another function is no replacement because its letters are."""
    assert replace_function(name, ("trim", "day", "quantile", "floor", "log10", "trunc")) is None
