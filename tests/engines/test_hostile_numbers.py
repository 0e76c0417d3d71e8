"""Statements that are short and mean: planning stays quick, nothing fails after a charge, sums stay within their bounds."""

import contextlib
import decimal
import math
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu
from curador.answers.release import normalize_columns
from curador.plan.build import build_plan
from curador.query.sql import parse


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    """A table of 200 rows, with an integer at the end of 64 bits."""
    folder, dice = tmp_path_factory.mktemp("mean"), np.random.default_rng(1)
    rating = dice.integers(1, 6, 200)
    rating[0] = 2**63 - 1
    pq.write_table(pa.table({"u": np.arange(200) // 2, "x": dice.random(200) * 10, "r": rating}), folder / "t.parquet")
    with cu.open(
        folder / "t.parquet",
        unit="u",
        budget=cu.Budget(epsilon=100, delta="1e-6"),
        bounds={"x": (0, 10), "r": (1, 5)},
        caps={"rows": 10},
        ledger=folder / "t.ledger",
        engine={"worker": "inline"},
    ) as opened:
        yield opened


NESTED = "SELECT SUM(x) AS a FROM " + "(SELECT u, x + x AS x FROM " * 12 + "t" + ")" * 12


@pytest.mark.parametrize(
    "question",
    [
        f"SELECT SUM(x{'+1' * 60}) AS a FROM t",
        f"SELECT SUM({'ABS(' * 25}x{')' * 25}) AS a FROM t",
        f"SELECT r{'+1' * 60} AS k, COUNT(*) AS a FROM t GROUP BY 1",
        NESTED,
        "SELECT SUM(x) AS a FROM (SELECT u, POWER(x, 64) AS x FROM (SELECT u, POWER(x, 64) AS x FROM t))",
        "SELECT SUM(POWER(x / 1000, 64) / 3) AS a FROM t",
    ],
    ids=range(6),
)
def test_planning_takes_no_longer_than_the_text_is_long(curator, question):
    """Every part of an expression is looked at once, with no factor for each level: refused or planned, in a moment."""
    start = time.process_time()
    with contextlib.suppress(cu.Refused):
        build_plan(parse(question, curator.schema), curator.schema)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "question",
    [
        "SELECT FLOOR(1e308 * COUNT(*)) AS a FROM t",
        "SELECT 1e308 * COUNT(*) * 1e308 AS a FROM t",
        "SELECT COUNT(*) * 1e300 / 1e-300 AS a FROM t",
        "SELECT EXP(1000 + ABS(COUNT(*))) AS a, POWER(COUNT(*), 64) AS b FROM t",
    ],
)
def test_numbers_beyond_doubles_become_null(curator, question):
    """What is computed from released numbers overflows to NULL; the study stays open."""
    answer = curator.ask(question, spend="0.1%")

    assert answer.rows[0]["a"] is None
    assert curator.ledger.failures == 0


@pytest.mark.parametrize("question", [f"SELECT COUNT(*) AS a FROM t WHERE x = {'x + ' * 90}x"])
def test_what_the_engine_cannot_run_is_refused_before_it_costs(curator, question):
    """The preview and the question refuse alike, and nothing is spent."""
    before = curator.budget.spent
    for verb in (curator.preview, curator.ask):
        with pytest.raises(cu.InvalidQuery):
            verb(question, spend="1%")

    assert curator.budget.spent == before


@pytest.mark.parametrize("options", [{"weights": {"a": "1e300"}}, {"weights": {"a": "1e-300"}}, {"bounds": {1: (1, 2)}}])
def test_absurd_options_are_refused(curator, options):
    """In one sentence, before any charge."""
    with pytest.raises(cu.Refused):
        curator.ask("SELECT SUM(x) AS a FROM t", spend="1%", **options)


@pytest.mark.parametrize("argument", ["r + r", "r * r", "-r", "r - 1"])
def test_the_same_rows_are_summed_and_counted(curator, argument):
    """A whole number beyond 64 bits is NULL in both, so a centred sum gets nothing from its row."""
    plan = build_plan(
        parse(f"SELECT AVG({argument}) AS a, VAR_POP({argument}) AS v FROM t WHERE u = 0", curator.schema), curator.schema
    )
    (block,) = plan.blocks
    (tallied,) = curator._session.engine.tally(curator._session.engine.compile(plan.blocks))  # noqa: SLF001 -- exact integers leave no other way
    for measurement in block.measurements:
        if measurement.name != "count":
            value = sum(coefficient * int(tallied.tallies[place][0]) for place, coefficient in measurement.combination)
            assert abs(value) <= measurement.l1


def test_a_study_of_rows_keeps_its_first_version(tmp_path):
    """Which row of one version is a row of another nobody has said, so there is no second one."""
    pq.write_table(pa.table({"x": np.arange(10.0)}), tmp_path / "rows.parquet")
    options = {"unit": "row", "budget": cu.Budget(epsilon=1), "bounds": {"x": (0, 10)}, "engine": {"worker": "inline"}}
    with cu.open(tmp_path / "rows.parquet", ledger=tmp_path / "rows.ledger", **options) as opened:
        with pytest.raises(cu.InvalidStudy, match="must keep its first data version"):
            opened.refresh("new rows")
        assert opened.data_version == 1
        assert "row" in opened.ask("SELECT COUNT(*) AS n FROM rows", spend="50%").receipt.plain


@pytest.mark.parametrize("prepare", ["auto", "never"])
@pytest.mark.parametrize("others", [[1.0, 3.0], [1.0, 3.0, None], [1.0, float("inf")]], ids=str)
def test_a_file_s_statistics_decide_nothing(tmp_path, others, prepare):
    """Parquet's statistics leave NaN out; one row's NaN is NULL all the same, whatever stands in other rows."""
    values = [float("nan"), *others]
    pq.write_table(pa.table({"u": np.arange(len(values)), "x": pa.array(values, pa.float64())}), tmp_path / "n.parquet")
    options = {"unit": "u", "budget": cu.Budget(epsilon=100, delta="1e-6"), "bounds": {"x": (0, 10)}, "caps": {"rows": 10}}
    with cu.open(
        tmp_path / "n.parquet", ledger=tmp_path / "n.ledger", engine={"worker": "inline", "prepare": prepare}, **options
    ) as c:
        plan = build_plan(parse("SELECT COUNT(*) AS a, COUNT(x) AS b FROM n", c.schema), c.schema)
        (tallied,) = c._session.engine.tally(c._session.engine.compile(plan.blocks))  # noqa: SLF001 -- idem
        summed = build_plan(parse("SELECT SUM(x) AS s, COUNT(x) AS b FROM n", c.schema), c.schema)
        (on_grid,) = c._session.engine.tally(c._session.engine.compile(summed.blocks))  # noqa: SLF001 -- idem
        filtered = build_plan(parse("SELECT COUNT(*) AS a FROM n WHERE x > 5", c.schema), c.schema)
        (above,) = c._session.engine.tally(c._session.engine.compile(filtered.blocks))  # noqa: SLF001 -- idem

    present = sum(one is not None for one in others)
    assert [int(tallied.tallies[place][0]) for place in range(2)] == [len(values), present]
    by_kind = {one.kind: int(on_grid.tallies[place][0]) for place, one in enumerate(summed.blocks[0].tallies)}
    steps = next(one.grid for one in summed.blocks[0].tallies if one.grid is not None)
    assert by_kind["rows"] == present
    assert by_kind["steps"] * steps.step == sum(min(one, 10.0) for one in others if one is not None)
    assert int(above.tallies[0][0]) == sum(one is not None and one > 5 for one in others)


ODD = [
    0.0,
    -0.0,
    math.nan,
    None,
    0.1 + 0.2,
    0.3,
    5e-324,
    -5e-324,
    math.inf,
    -math.inf,
    1e308,
    1e308,
    -1e308,
    math.inf,
    -math.inf,
]
PER_PERSON = "SELECT s, COUNT(*) AS n FROM (SELECT user_id, {} AS s FROM t GROUP BY user_id) GROUP BY s"


@pytest.mark.parametrize("prepare", ["auto", "never"])
def test_no_two_groups_have_one_key(tmp_path, prepare):
    """NaN, both zeros, infinities that cancel, decimals of many digits: what an engine holds apart is apart as a key."""
    people = [1, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 7, 8, 9]
    near = [decimal.Decimal(f"0.1{n:027d}") for n in range(len(ODD))]  # one double
    table = pa.table({"user_id": people, "x": ODD, "d": pa.array(near, pa.decimal128(38, 28)), "o": range(len(ODD))})
    asked = [
        *(
            f"SELECT {one} AS s, COUNT(*) AS n FROM t GROUP BY 1"
            for one in ("x", "d", "-x", "x * 0", "x - x", "d - 0.1", "x / 3")
        ),
        *(PER_PERSON.format(f"{one}(x)") for one in ("SUM", "AVG", "VAR_POP", "MIN", "MAX", "MEDIAN")),
        "SELECT s, COUNT(*) AS n FROM (SELECT user_id, SUM(x) OVER (PARTITION BY user_id ORDER BY o) AS s FROM t) GROUP BY s",
    ]
    budget, engine = cu.Budget(epsilon=9, delta="1e-6"), {"worker": "inline", "prepare": prepare}
    with cu.open(
        {"t": table},
        name="t",
        unit="user_id",
        budget=budget,
        caps={"rows": 10},
        ledger=tmp_path / "t.ledger",
        engine=engine,
    ) as curator:
        for question in asked:
            (block,) = build_plan(parse(question, curator.schema), curator.schema).blocks
            (tallied,) = curator._session.engine.tally(curator._session.engine.compile([block]))  # noqa: SLF001 -- idem
            (keys,) = normalize_columns(tallied.keys, [block.keys[0].type])
            assert len(set(keys)) == len(keys) > 0
