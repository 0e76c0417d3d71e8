"""From a question to exact integers, on the prepared version and on views, in the worker and in this process."""

import collections
import contextlib
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from duckdb_studies import engine_of, looking_into, visits_table

import curador
from curador.engines import base
from curador.engines.base import EngineFailed
from curador.engines.duckdb import worker as runners
from curador.engines.lower import block as lowering
from curador.plan.build import build_plan
from curador.plan.model import column_grid
from curador.query.sql import parse
from curador.study.model import Caps, Column
from curador.study.values import Type

COLUMNS = (Column("spent", Type.FLOAT, bounds=(Fraction(0), Fraction(500))), Column("city", Type.STRING, values=("a", "b")))
TABLE = pa.table(
    {
        "user": [number % 7 for number in range(100)],
        "spent": [None if number % 11 == 0 else float(number * 7 % 600) for number in range(100)],
        "city": [("a", "b", "c", None)[number % 4] for number in range(100)],
    }
)
SOURCE = Path(curador.__file__).parent
SQL = "SELECT city, COUNT(*) AS n, SUM(spent) AS total FROM visits GROUP BY city"


def expected(study):
    """The same integers, row by row in Python, from the prepared rows."""
    grid = column_grid(COLUMNS[0])
    with looking_into(study) as connection:
        kept = connection.execute("SELECT c2, c1 FROM t0 WHERE __r <= 5").fetchall()
    counts, sums = collections.Counter(), collections.Counter()
    for city, spent in kept:
        counts[city] += 1
        if spent is not None:
            sums[city] += int(min(max(spent, 0.0), 500.0) / float(grid.step)) - grid.start
    return {city: (counts[city], sums[city]) for city in ("a", "b")}


CASES = [
    ("inline", "auto"),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (("process", "auto"), ("inline", "never"))),
]


@pytest.mark.parametrize(("worker", "prepare"), CASES)
def test_a_question_is_tallied(tmp_path, worker, prepare):
    """Counts and sums of the kept rows, exactly."""
    study = visits_table(tmp_path, TABLE, columns=COLUMNS, caps=Caps(rows=5), prepare=prepare)
    with contextlib.closing(engine_of(study, worker=worker)) as engine:
        plan = build_plan(parse(SQL, engine.schema), engine.schema)
        (found,) = engine.tally(engine.compile(plan.blocks))
    kinds = [tally.kind for tally in plan.blocks[0].tallies]
    by_key = {key: place for place, key in enumerate(found.keys[0])}

    for city, (count, total) in expected(study).items():
        numbers = {
            kind: int(found.tallies[place][by_key[city]]) for place, kind in enumerate(kinds) if place in found.tallies
        }
        assert numbers["steps"] == total
        assert count in {int(found.tallies[place][by_key[city]]) for place, kind in enumerate(kinds) if kind == "rows"}


def test_a_result_that_cannot_be_read_is_a_failure_with_an_id(tmp_path, monkeypatch):
    """After rows were read nothing but an id leaves, whatever went wrong."""

    def confused(*_):
        raise ValueError("canary-5512")

    monkeypatch.setattr(lowering, "collect", confused)
    with contextlib.closing(engine_of(visits_table(tmp_path, TABLE, columns=COLUMNS, caps=Caps(rows=10)))) as engine:
        plan = build_plan(parse(SQL, engine.schema), engine.schema)
        with pytest.raises(EngineFailed) as raised:
            engine.tally(engine.compile(plan.blocks))

    assert "canary" not in str(raised.value)
    assert "canary-5512" in (tmp_path / "study.ledger.prepared" / "incidents.log").read_text()


def test_a_plan_is_lowered_once_and_tried_without_rows_once(tmp_path, monkeypatch):
    """Rehearsing and tallying lower nothing; what went well without rows runs there again for a new version only."""
    ran = []
    whole = runners.InlineRunner.run

    def noted(self, statements, seconds, *, empty=False):
        ran.append(empty)
        return whole(self, statements, seconds, empty=empty)

    monkeypatch.setattr(runners.InlineRunner, "run", noted)
    with contextlib.closing(
        engine_of(visits_table(tmp_path, TABLE, columns=COLUMNS, caps=Caps(rows=10)), worker="inline")
    ) as engine:
        plan, renamed = (
            build_plan(parse(text, engine.schema), engine.schema) for text in (SQL, SQL.replace("total", "sum_of_all"))
        )
        compiled, again = engine.compile(plan.blocks), engine.compile(renamed.blocks)
        monkeypatch.setattr("curador.engines.lower.block.lower_block", None)  # calling it would fail
        first, second = engine.rehearse(compiled), engine.rehearse(again)
        assert ran == [True]
        assert [one.tallies.keys() for one in first] == [one.tallies.keys() for one in second]
        (found,) = engine.tally(again)
        assert ran == [True, False]
        assert sum(int(one) for one in found.tallies[0]) > 0
        engine.prepare(2)
        engine.rehearse(compiled)
        assert ran == [True, False, True]


def test_a_curator_finds_its_engine_by_name(monkeypatch):
    """A second kind is a line of the registry: the rooms above name no engine."""
    monkeypatch.setitem(base._KINDS, "other", "engine_kind_of_a_test")  # noqa: SLF001 -- what a new engine adds
    monkeypatch.setitem(sys.modules, "engine_kind_of_a_test", SimpleNamespace(KIND="a kind"))
    assert base.engine_kind("other") == "a kind"
    with pytest.raises(
        curador.InvalidStudy, match=r"engine\.kind must be one of duckdb, postgres, spark, other; got 'another'"
    ):
        base.engine_kind("another")
    above = [path for room in ("curator", "learn", "ledger") for path in (SOURCE / room).rglob("*.py")]
    assert above
    assert not [path.name for path in above if "engines.duckdb" in path.read_text(encoding="utf-8")]
