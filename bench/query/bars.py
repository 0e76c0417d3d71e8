"""`make redraws`: how often bars hold, and how much longer they are than the error that there is, of every kind of column.

The engine counts once; noise is drawn 5,000 times on the same tallies. Coverage is how many of the bars at 95 % hold the
number before noise; excess is half of their mean length over what 95 % of all released numbers were off by. What is computed
from released rows is asked of as many copies of the same groups at once: the copy is a key, and there is no engine.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import curador as cu
from curador.answers.release import ReleasedBlock, cross_keys, key_columns, release
from curador.answers.table import answer_columns
from curador.engines.base import Tallied
from curador.engines.duckdb.engine import DuckDBEngine
from curador.plan.build import build_plan
from curador.plan.price import price
from curador.query.sql import parse
from curador.study.build import build_study
from curador.testing.redraw import redraw
from presentation import CONSOLE, Table, page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.engines.base import Engine

RESULTS = Path(__file__).resolve().parents[1] / "results"
TIMES = 5000
SIZES = (150, 400, 2000, 5000)
NOISES = {"Gaussian": ("concentrated", Fraction(1, 50)), "Laplace": ("laplace", Fraction(1, 2))}
SPENDS = {"Gaussian": "ρ = 0.02", "Laplace": "ε = 1/2"}
MOST, MOST_OF_QUANTILES = 1.2, 2.0
LEAST = 0.95
_PART = 8

YOUNG, OLD = "AVG(income) FILTER (WHERE age < 40)", "AVG(income) FILTER (WHERE age >= 40)"
UNDER = "100.0 * COUNT(*) FILTER (WHERE age < 40) / COUNT(*)"
COLUMNS = {
    "count": "COUNT(*)",
    "count of a column": "COUNT(income)",
    "different values": "COUNT(DISTINCT age)",
    "sum": "SUM(age)",
    "mean": "AVG(income)",
    "ratio of a sum and a count": "SUM(income) / COUNT(*)",
    "percentage": UNDER,
    "variance": "VARIANCE(income)",
    "population variance": "VAR_POP(age)",
    "deviation": "STDDEV(age)",
    "difference of means": f"{YOUNG} - {OLD}",
    "difference of means of the same rows": "AVG(age) - AVG(income) / 1000",
    "difference of percentages": f"{UNDER} - 100.0 * COUNT(*) FILTER (WHERE income < 9000) / COUNT(*)",
    "difference of deviations": "STDDEV(age) FILTER (WHERE income < 9000) - STDDEV(age) FILTER (WHERE income >= 9000)",
    "CORR": "CORR(weight, age)",
    "COVAR_POP": "COVAR_POP(weight, age)",
    "COVAR_SAMP": "COVAR_SAMP(weight, age)",
    "REGR_SLOPE": "REGR_SLOPE(weight, age)",
    "REGR_INTERCEPT": "REGR_INTERCEPT(weight, age)",
    "REGR_R2": "REGR_R2(weight, age)",
    "REGR_SXX": "REGR_SXX(weight, age)",
    "REGR_SYY": "REGR_SYY(weight, age)",
    "REGR_SXY": "REGR_SXY(weight, age)",
    "REGR_AVGX": "REGR_AVGX(weight, age)",
    "REGR_COUNT": "REGR_COUNT(weight, age)",
}
QUANTILES = {
    "tenth": "QUANTILE(income, 0.1)",
    "median": "MEDIAN(income)",
    "ninetieth": "QUANTILE(income, 0.9)",
    "minimum": "MIN(income)",
    "maximum": "MAX(income)",
    "median less mean": "MEDIAN(income) - AVG(income)",
    "ratio of medians": "MEDIAN(income) FILTER (WHERE age < 40) / MEDIAN(income) FILTER (WHERE age >= 40)",
}
OVER = "OVER (PARTITION BY copy, size)"
ORDERED = "OVER (PARTITION BY copy, size ORDER BY half)"
RELEASED = {
    "sum over groups": f"SUM(n) {OVER}",
    "running sum": f"SUM(n) {ORDERED}",
    "mean over groups": f"AVG(n) {OVER}",
    "n less LAG(n)": f"n - LAG(n) {ORDERED}",
    "n over LAG(n)": f"1.0 * n / LAG(n) {ORDERED}",
    "n less the mean over groups": f"n - AVG(n) {OVER}",
    "share of total": f"100.0 * n / SUM(n) {OVER}",
    "share of all groups": "100.0 * n / SUM(n) OVER (PARTITION BY copy)",
    "MAX(n) over groups": f"MAX(n) {OVER}",
    "MIN(n) over groups": f"MIN(n) {OVER}",
    "n over MAX(n)": f"1.0 * n / MAX(n) {OVER}",
    "rank": f"RANK() {OVER[:-1]} ORDER BY n DESC)",
    "mean less LAG of the mean": f"m - LAG(m) {ORDERED}",
    "MAX of the mean over groups": f"MAX(m) {OVER}",
}
HALVES = {"a": (1.0, 3), "b": (0.9, 6)}
"""Of each size there are two groups: how large they are, and the mean of a number between 0 and 10."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of column in groups of one size: coverage, excess (None: noise changed nothing), how many have both ends."""

    coverage: float
    excess: float | None
    ended: float

    def text(self, most: float) -> str:
        """Return both in one cell; what is above the limit is marked."""
        if self.excess is None:
            return f"{self.coverage:.1%} –"
        if not math.isfinite(self.excess):
            return f"{self.coverage:.1%} {1 - self.ended:.0%} open *"
        return f"{self.coverage:.1%} {self.excess:.2f}{' *' if self.excess > most else ''}"


def people(folder: Path) -> DuckDBEngine:
    """Return an engine over groups of people: ages, incomes of a lognormal law with some NULLs, weights that go with ages."""
    many, dice = sum(SIZES), np.random.default_rng(11)
    table = {
        "person": np.arange(many),
        "age": np.clip(dice.normal(44, 18, many), 0, 100).astype(np.int64),
        "income": np.clip(dice.lognormal(9, 0.9, many), 0, 100_000),
        "size": np.repeat([str(size) for size in SIZES], SIZES),
    }
    table["weight"] = np.clip(0.6 * table["age"] + dice.normal(20, 10, many), 0, 100)
    pq.write_table(pa.table(table), folder / "people.parquet")
    bounds = {"people.age": (0, 100), "people.income": (0, 100_000), "people.weight": (0, 100)}
    study = build_study(
        {"people": folder / "people.parquet"},
        unit={"people": "person"},
        budget=cu.Budget(epsilon=10, delta="1e-6"),
        bounds=bounds,
        types={"people.age": "integer", "people.income": "float", "people.weight": "float"},
        physical={"people.size": "string"},
        values={"people.size": [str(size) for size in SIZES]},
        caps={"people": {"rows": 1}},
        ledger=folder / "people.ledger",
        engine={"worker": "inline"},
    )
    made = DuckDBEngine(study, 1)
    made.prepare(1)
    return made


def of_rows(engine: Engine, column: str, noise: str, times: int) -> dict[int, Cell]:
    """Return by size what redraws of a column over people's rows show."""
    sql = f"SELECT size, {column} AS a FROM people GROUP BY size"
    plan = build_plan(parse(sql, engine.schema), engine.schema)
    priced = price(plan, *NOISES[noise], Fraction(1, 10**6))
    (one,) = redraw(priced, engine.tally(engine.compile(plan.blocks)), times)
    found = {}
    for (size,), held, ended, width, error in zip(one.keys, one.held, one.whole, one.width, one.error, strict=True):
        excess = None if error == 0 else width / 2 / error if ended == times and math.isfinite(error) else math.inf
        found[int(size)] = Cell(held / times, excess, ended / times)
    return found


def copies(folder: Path, times: int) -> Any:
    """Return the schema of copies of groups, of which no rows are read."""
    rows = {"copy": [0], "size": ["150"], "half": ["a"], "x": [1], "person": [1]}
    pq.write_table(pa.table(rows), folder / "rows.parquet")
    study = build_study(
        {"rows": folder / "rows.parquet"},
        unit={"rows": "person"},
        budget=cu.Budget(epsilon=10, delta="1e-6"),
        bounds={"rows.x": (0, 10)},
        types={"rows.x": "integer", "rows.copy": "integer"},
        physical={"rows.size": "string", "rows.half": "string"},
        values={"rows.copy": list(range(times)), "rows.size": [str(size) for size in SIZES], "rows.half": list(HALVES)},
        caps={"rows": {"rows": 1}},
        ledger=folder / "rows.ledger",
        engine={"worker": "inline"},
    )
    engine = DuckDBEngine(study, 1)
    try:
        engine.prepare(1)
        return engine.schema
    finally:
        engine.close()


def of_released(about: Any, noise: str, times: int) -> dict[str, dict[int, Cell]]:
    """Return by column and size what copies of groups show."""
    listed = ", ".join(f'{text} AS "{name}"' for name, text in RELEASED.items())
    inner = "SELECT copy, size, half, COUNT(*) AS n, AVG(x) AS m FROM rows GROUP BY copy, size, half"
    plan = build_plan(parse(f"SELECT size, half, {listed} FROM ({inner})", about), about)
    priced = price(plan, *NOISES[noise], Fraction(1, 10**6))
    exact, tallied = [], []
    for block in plan.blocks:
        keys = key_columns(cross_keys(block, [()]), len(block.keys))
        count = np.array([round(int(size) * HALVES[half][0]) for size, half in zip(keys[1], keys[2], strict=True)])
        total = count * np.array([HALVES[half][1] for half in keys[2]])
        held = {place: total if tally.kind == "steps" else count for place, tally in enumerate(block.tallies)}
        sums = (sum(factor * held[place] for place, factor in one.combination) for one in block.measurements)
        exact.append(ReleasedBlock(keys, tuple(sums)))
        tallied.append(Tallied(keys, held, {}, None))
    noisy, true = answer_columns(priced, release(priced, tallied)), answer_columns(priced, exact)
    return {one.name: _by_size(noisy, one, before, times) for one, before in zip(noisy[2:], true[2:], strict=True)}


def _by_size(noisy: Sequence[Any], one: Any, before: Any, times: int) -> dict[int, Cell]:
    """The worse of both halves of each size."""
    size, half = np.array(noisy[0].values), np.array(noisy[1].values)
    found: dict[int, Cell] = {}
    for each in SIZES:
        cells = []
        for name in HALVES:
            rows = np.flatnonzero((size == str(each)) & (half == name))
            value, low, high, truth = (
                np.array([np.nan if held[row] is None else float(held[row]) for row in rows])
                for held in (one.values, one.low, one.high, before.values)
            )
            if np.isnan(truth).all():
                continue
            coverage = float((~(low > truth) & ~(high < truth)).mean())
            error, ended = np.sort(np.abs(value - truth))[math.ceil(0.95 * times) - 1], np.isfinite(low) & np.isfinite(high)
            excess = float(np.mean(high - low) / 2 / error) if ended.all() and error else math.inf if error else None
            cells.append(Cell(coverage, excess, float(ended.mean())))
        found[each] = Cell(
            min(cell.coverage for cell in cells),
            max((cell.excess for cell in cells if cell.excess is not None), default=None),
            min(cell.ended for cell in cells),
        )
    return found


def _measured(noise: str, names: Sequence[str], times: int) -> dict[str, tuple[float, dict[int, Cell]]]:
    """Some kinds of column under one noise, or those over released rows: by name the limit, and cells by size."""
    with tempfile.TemporaryDirectory(prefix="redraws-") as place:
        if not names:
            return {name: (MOST, cells) for name, cells in of_released(copies(Path(place), times), noise, times).items()}
        engine = people(Path(place))
        try:
            columns = {**COLUMNS, **QUANTILES}
            return {
                name: (MOST_OF_QUANTILES if name in QUANTILES else MOST, of_rows(engine, columns[name], noise, times))
                for name in names
            }
        finally:
            engine.close()


def _everything(times: int, workers: int) -> dict[str, dict[str, tuple[float, dict[int, Cell]]]]:
    """All of them, a few at a time in processes of their own, by noise."""
    names = [*COLUMNS, *QUANTILES]
    parts = [tuple(names[start : start + _PART]) for start in range(0, len(names), _PART)]
    tasks = [(noise, part) for noise in NOISES for part in (*parts, ())]
    found: dict[str, dict[str, tuple[float, dict[int, Cell]]]] = {noise: {} for noise in NOISES}
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        held = pool.map(_measured, *zip(*tasks, strict=True), [times] * len(tasks))
        for (noise, _), cells in zip(tasks, held, strict=True):
            found[noise] |= cells
    return found


def _table(noise: str, found: Mapping[str, tuple[float, dict[int, Cell]]]) -> Table:
    rows = tuple((name, *(cells[size].text(most) for size in SIZES)) for name, (most, cells) in found.items())
    return Table(f"{noise} noise, {SPENDS[noise]}", ("column", *(f"{size:,} rows" for size in SIZES)), rows)


def _summary(found: Mapping[str, Mapping[str, tuple[float, dict[int, Cell]]]], times: int) -> str:
    cells = [(most, cell) for one in found.values() for most, held in one.values() for cell in held.values()]
    within = sum(cell.excess is None or cell.excess <= most for most, cell in cells)
    least = min(cell.coverage for _, cell in cells)
    deviation = math.sqrt(LEAST * (1 - LEAST) / times)
    return (
        f"{len(cells)} cells of {times:,} redraws each: {within} are within {MOST} (quantiles {MOST_OF_QUANTILES:g}), the "
        f"others bear a star. The least coverage is {least:.1%}; what redraws show of a bar that holds exactly 95 % of "
        f"the time has a deviation of {deviation:.1%}."
    )


def run(times: int, workers: int, folder: Path) -> int:
    """Redraw, show, write `bars.md` and `bars.json`; return 1 if a bar held less often than chance allows but for 1e-6."""
    from scipy.stats import binom

    found = _everything(times, workers)
    tables, summary = [_table(noise, held) for noise, held in found.items()], _summary(found, times)
    for table in tables:
        table.show()
    CONSOLE.print(summary)
    words = (
        "Each cell: how many of the bars at 95 % held the number before noise, and half of their mean length over the error "
        "that 95 % of all draws had. Each column is asked alone, at the whole spend, but for those over released rows, which "
        "share one count and one mean. Where some bars have no end, no excess is told, but how many."
    )
    folder.mkdir(exist_ok=True)
    (folder / "bars.md").write_text(page("Bars, redrawn", [words, summary], tables))
    record = {
        noise: {
            name: {str(size): [cell.coverage, cell.excess, cell.ended] for size, cell in cells.items()}
            for name, (_, cells) in held.items()
        }
        for noise, held in found.items()
    }
    text = json.dumps({"times": times, "noises": record}, indent=1, ensure_ascii=False)
    (folder / "bars.json").write_text(text.replace("Infinity", "null") + "\n")
    count = sum(len(cells) for held in found.values() for _, cells in held.values())
    fewest = binom.ppf(1e-6 / count, times, LEAST) / times
    return int(
        any(cell.coverage < fewest for held in found.values() for _, cells in held.values() for cell in cells.values())
    )


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Coverage and excess of bars, by redraws.")
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    return run(chosen.times, chosen.workers, RESULTS)


if __name__ == "__main__":
    sys.exit(main())
