"""Intervals on real tables: every aggregate, 5,000 redraws of noise from one engine result, and 20 whole questions.

An interval of 95 % must hold the bounded value so often that fewer would happen with probability 1e-9 (4,653 of 5,000): no
assertion fails by chance more often than that, and a true coverage of 92 % fails with probability 0.996. Laws that are exact
(sums, means, ratios) must not cover more than 97 % either. Of the 240 intervals of whole questions as many must hold as 95 %
ones do but for a chance of 1e-9.
"""

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom
from shared_studies import written

import curador as cu
from curador.engines.duckdb.engine import DuckDBEngine
from curador.engines.duckdb.versions import prepared_folder
from curador.plan.build import build_plan
from curador.plan.price import price
from curador.query.sql import parse
from curador.study.build import build_study
from curador.study.file import read_study
from curador.testing.redraw import redraw

pytestmark = pytest.mark.slow

TIMES = 5000
FEWEST = int(binom.ppf(1e-9, TIMES, 0.95))
SHARED = Path(os.environ.get("CURADOR_SHARED", Path(__file__).resolve().parents[3] / "shared"))
REFERENCE = pytest.mark.skipif(not (SHARED / "data").exists(), reason="the reference material is absent")

AGGREGATES = [
    "COUNT(*) AS a",
    "COUNT({x}) AS a",
    "COUNT(DISTINCT {unit}) AS a",
    "SUM({x}) AS a",
    "AVG({x}) AS a",
    "COUNT(*) AS n, SUM({x}) AS a, AVG({x}) AS m",
    "VAR_POP({x}) AS a",
    "STDDEV({x}) AS a",
    "MEDIAN({x}) AS a",
    "QUANTILE({x}, 0.9) AS a",
    "MIN({x}) AS a",
    "MAX({x}) AS a",
    "SUM({x}) / COUNT(DISTINCT {unit}) AS a",
    "100.0 * COUNT(*) FILTER (WHERE {x} > {middle}) / COUNT(*) AS a",
    "COUNT(DISTINCT {other}) AS a",
]
EXACT = ("SUM({x}) AS a", "AVG({x}) AS a", "SUM({x}) / COUNT(DISTINCT {unit}) AS a")


def coverage(engine, sql, kind, amount, times=TIMES):
    plan = build_plan(parse(sql, engine.schema), engine.schema)
    priced = price(plan, kind, Fraction(amount), Fraction(1, 10**6))
    return redraw(priced, engine.tally(engine.compile(plan.blocks)), times)


def check(found, *, exact):
    for one in found:
        for key, held in zip(one.keys, one.held, strict=True):
            assert held >= FEWEST, (one.name, key, held)
            if exact and one.whole[0] == TIMES:
                assert held <= 0.97 * TIMES + 5 * (0.03 * 0.97 * TIMES) ** 0.5, (one.name, key, held)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """Our own table: 3,000 people, skewed numbers of visits, NULLs and values out of bounds."""
    folder, dice = tmp_path_factory.mktemp("ours"), np.random.default_rng(4)
    many = 20_000
    table = {
        "user": np.minimum(dice.zipf(1.3, many), 3000),
        "spent": pa.array(dice.gamma(2, 60, many) - 20, mask=dice.random(many) < 0.05),
        "kind": np.array(["a", "b", "c"])[dice.choice(3, many, p=[0.7, 0.25, 0.05])],
        "place": dice.integers(0, 30, many).astype(str),
        "fixed": np.full(many, 200.0),
    }
    pq.write_table(pa.table(table), folder / "visits.parquet")
    study = build_study(
        folder / "visits.parquet",
        unit="user",
        budget=cu.Budget(epsilon=10, delta="1e-6"),
        bounds={"spent": (0, 300), "fixed": (0, 500)},
        types={"spent": "float", "fixed": "float"},
        values={"visits.kind": ["a", "b", "c"]},
        physical={"kind": "string"},
        caps={"rows": 5},
        ledger=folder / "visits.ledger",
        engine={"worker": "inline"},
    )
    engine = DuckDBEngine(study, 1)
    engine.prepare(1)
    yield engine
    engine.close()


NAMES = {"x": "spent", "unit": '"user"', "middle": 100, "other": "place"}


@pytest.mark.parametrize(("kind", "amount"), [("concentrated", "1/20"), ("laplace", "1/2")])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_intervals_of_every_aggregate_hold(ours, aggregate, kind, amount):
    """Without keys and by a declared key, under Gaussian and Laplace noise."""
    quantile = any(word in aggregate for word in ("MEDIAN", "QUANTILE", "MIN", "MAX"))
    for tail, key in [("", ""), (" GROUP BY kind", "kind, ")]:
        sql = f"SELECT {key}{aggregate.format(**NAMES)} FROM visits{tail}"
        check(coverage(ours, sql, kind, amount), exact=aggregate in EXACT and not quantile)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_mean_of_a_constant_is_that_constant(ours, rows):
    """For every cap: count and sum are of the same kept rows."""
    from curador.plan.ownership import RequestedCaps

    question = parse("SELECT AVG(fixed) AS a FROM visits", ours.schema)
    plan = build_plan(question, ours.schema, asked=RequestedCaps(rows=rows))
    priced = price(plan, "concentrated", Fraction(1, 20))
    (found,) = redraw(priced, ours.tally(ours.compile(plan.blocks)), 10)

    assert found.truths == [pytest.approx(200, abs=1e-6)]


@pytest.mark.shared
@REFERENCE
@pytest.mark.parametrize(
    ("schema", "table", "names"),
    [
        ("pums", "PUMS_null", {"x": "income", "unit": "pid", "middle": 30000, "other": "educ"}),
        ("visits", "visits", {"x": "spend", "unit": "user_id", "middle": 300, "other": "n_products"}),
    ],
)
def test_intervals_hold_on_the_reference_tables(schema, table, names, tmp_path):
    """The same on the reference data."""
    engine = DuckDBEngine(read_study(written(schema, tmp_path, SHARED)), 1)
    engine.prepare(1)
    try:
        for aggregate in AGGREGATES:
            check(
                coverage(engine, f"SELECT {aggregate.format(**names)} FROM {table}", "concentrated", "1/20"),
                exact=aggregate in EXACT,
            )
    finally:
        engine.close()


def test_a_bar_that_is_too_short_is_caught(ours, monkeypatch):
    """Power: with noise one and a half times what the bars know, the check fails."""
    from curador.mechanisms.gaussian import DiscreteGaussian

    plain = DiscreteGaussian.draw
    monkeypatch.setattr(
        DiscreteGaussian,
        "draw",
        lambda self, value, source, size=None: (plain(self, value, source, size) - value) * 3 // 2 + value,
    )
    with pytest.raises(AssertionError):
        check(coverage(ours, "SELECT SUM(spent) AS a FROM visits", "concentrated", "1/20"), exact=False)


def keyed(ledger, engine):
    """Give a new ledger the key of an engine's study, so that its caps keep the same rows."""
    folder = Path(f"{ledger}.prepared")
    folder.mkdir(mode=0o700)
    key = folder / "key"
    key.write_bytes((prepared_folder(engine.schema.study) / "key").read_bytes())
    key.chmod(0o600)


def test_twenty_whole_questions(ours, tmp_path):
    """The intervals of real answers hold the engine's own bounded numbers."""
    sql = "SELECT kind, COUNT(*) AS n, SUM(spent) AS s, AVG(spent) AS m, MEDIAN(spent) AS q FROM visits GROUP BY kind"
    plan = build_plan(parse(sql, ours.schema), ours.schema)
    priced = price(plan, "concentrated", Fraction(1, 20))
    truths = {
        one.name: dict(zip(one.keys, one.truths, strict=True))
        for one in redraw(priced, ours.tally(ours.compile(plan.blocks)), 1)
    }
    held = total = 0
    keyed(tmp_path / "asked.ledger", ours)
    with cu.open(
        Path(ours.schema.study.folder) / "visits.parquet",
        unit="user",
        budget=cu.Budget(epsilon=100, delta="1e-6"),
        bounds={"spent": (0, 300)},
        values={"kind": ["a", "b", "c"]},
        caps={"rows": 5},
        ledger=tmp_path / "asked.ledger",
        engine={"worker": "inline"},
    ) as curator:
        for _ in range(20):
            for row in curator.ask(sql, spend="4%", fresh=True).rows:
                for name, by_key in truths.items():
                    truth = by_key[(row["kind"],)]
                    held += row[f"{name}_low"] <= truth <= row[f"{name}_high"]
                    total += 1

    assert total == 20 * 3 * 4
    assert held >= int(binom.ppf(1e-9, total, 0.95))
