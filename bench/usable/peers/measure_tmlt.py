"""tmlt.analytics on a local Spark: `measure_tmlt.py QUESTIONS`. Bounds are what its get_bounds finds.

It has no word for how many rows or groups of an id count. But get_bounds of their number, of which each id has one, gives a
cap: the same as flat_map_by_id, get_bounds and MaxRowsPerID. Rows are added up by id first, as its documentation advises.
Half of the spend finds caps and bounds, as in Google's library; half of the rest finds groups, where they are private. Shares
are of epsilon, with Laplace noise, which for ten questions is less than with shares of rho; of rho, with Gaussian noise,
where groups are public and several of an id count.

A query takes ten seconds whatever its size. So questions of one shape are asked together, and each several times: a run of
a question is a group of one table, with ids of its own. An id is in one group, so that each group gets the noise, and spends
the budget, of a query of its own. Values are divided by the bound that was found for their group before they are added up.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

import stopwatch
from usable import asking, tasks
from usable.relations_model import MEAN, ROWS, SUM, UNITS, VALUES, Relation

warnings.simplefilter("ignore")
FIND = 1 / 2
TOP = 1 << 20  # a cap beyond it caps nothing here
ROWS_OF_ALL_RUNS = 600_000
CAPPED_RUNS = 4  # every cap that is found in some run is a query of its own

Run = tuple[int, int]
"""Which question, and which of its runs."""


@dataclass(frozen=True)
class Shape:
    """What questions must have in common to be asked together."""

    single: bool
    capped: bool
    keyed: bool
    public: bool
    distinct: bool
    mean: bool
    figures: int

    @classmethod
    def of(cls, question: Relation) -> Shape:
        """Return the shape of a question."""
        what, single = question.what, question.single
        figures = len(columns_of(question))
        capped = not single and (question.keyed or what == VALUES)
        mean = single and what == MEAN
        return cls(single, capped, question.keyed, question.public is not None, what == VALUES, mean, figures)

    @property
    def private(self) -> bool:
        """Whether groups must be found."""
        return self.keyed and not self.public

    @property
    def parts(self) -> tuple[float, float]:
        """The share of each cap or bound that is found, and of each that follows."""
        finding = self.figures + self.capped
        rest = (1 - FIND if finding else 1.0) / (2 if self.private else 1)
        return FIND / max(finding, 1), rest

    def spend(self, part: float, *, groups: bool = False):
        """Return a part of a question's budget; delta goes to finding groups."""
        if self.public:
            return RhoZCDPBudget(part * rho_of(float(tasks.EPSILON), float(tasks.DELTA)) * tasks.SHARED / 100)
        if self.private:
            return ApproxDPBudget(part * asking.EPSILON, asking.DELTA if groups else 0)
        return PureDPBudget(part * asking.EPSILON)


def columns_of(question: Relation) -> tuple[str, ...]:
    """Return the columns that need bounds; a mean is a sum by a number, but for single rows, where it is the tool's own."""
    if question.what in {UNITS, VALUES} or (question.what == ROWS and question.single):
        return ()
    if question.what == MEAN and not question.single:
        return ("total", "counted")
    return ("n",) if question.what == ROWS else ("total",)


def rho_of(epsilon: float, delta: float) -> float:
    """Return the rho that its own formula, rho + 2 sqrt(rho log(1/delta)), turns into epsilon."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


class Together:
    """Questions of one shape, asked together."""

    def __init__(self, spark: SparkSession, shape: Shape, questions: Sequence[Relation]) -> None:
        """Read the rows of the questions."""
        self.spark, self.shape, self.questions = spark, shape, questions
        self.rows = [_read(question) for question in questions]
        self.runs = [
            (place, number)
            for place, rows in enumerate(self.rows)
            for number in range(min(max(ROWS_OF_ALL_RUNS // len(rows), 3), CAPPED_RUNS if shape.capped else tasks.PEER_RUNS))
        ]

    def answers(self) -> dict[Run, asking.Groups]:
        """Return an answer for each run of each question."""
        found: dict[Run, asking.Groups] = {}
        caps = self._caps()
        for cap in sorted(set(caps.values())):
            runs = [run for run in self.runs if caps[run] == cap]
            found |= self._counted(runs, cap) if not self.shape.figures else self._summed(runs, cap)
        return {run: found.get(run, {}) for run in self.runs}

    def _caps(self) -> dict[Run, int]:
        """Find how many groups of an id count, for each run."""
        if not self.shape.capped:
            return dict.fromkeys(self.runs, 1)
        numbers = [rows.groupby("unit", as_index=False).agg(value=("key", "count")) for rows in self.rows]
        frame = self._stacked(self.runs, lambda run: numbers[run[0]].assign(key=""))
        return {run: int(min(bound, TOP)) for run, bound in self._bounds(frame, 1).items()}

    def _bounds(self, frame: pd.DataFrame, cap: int) -> dict[Any, float]:
        """Return the bound of values that it finds for each run; the lower one is its negative."""
        keys = KeySet.from_dict({"run": sorted(set(frame.run))})
        asked = self._asked(
            frame[["unit", "run", "value"]],
            lambda table: self._capped(table, cap).groupby(keys).get_bounds("value", "low", "high"),
            self.shape.spend(self.shape.parts[0]),
        )
        return {_run(row["run"]): row["high"] for row in asked}

    def _counted(self, runs: Sequence[Run], cap: int) -> dict[Run, asking.Groups]:
        """Return numbers of rows, of ids, or of different values."""
        frame = self._stacked(runs, lambda run: self.rows[run[0]].assign(value=0))
        if self.shape.distinct:
            keys = KeySet.from_dict({"run": sorted(set(frame.run))})
            asked = self._asked(
                frame[["unit", "run", "key"]],
                lambda table: self._capped(table, cap).groupby(keys).count_distinct(["key"], name="x"),
                self.shape.spend(self.shape.parts[1]),
            )
            return {_run(row["run"]): {"": float(row["x"])} for row in asked}
        slots = self._slots(frame, runs, cap)
        return self._shown(frame, slots, cap, lambda grouped: grouped.count(name="x"), self.shape.parts[1])

    def _summed(self, runs: Sequence[Run], cap: int) -> dict[Run, asking.Groups]:
        """Return sums, or means: of single rows its own, else a sum by a number."""
        shape = self.shape
        slots, sums = None, list[dict[Run, asking.Groups]]()
        kind = "average" if shape.mean else "sum"
        for figure in range(shape.figures):

            def rows_of(run: Run, figure: int = figure) -> pd.DataFrame:
                rows = self.rows[run[0]]
                return rows.assign(value=rows[columns_of(self.questions[run[0]])[figure]].astype(float))

            frame = self._stacked(runs, rows_of)
            bounds = self._bounds(frame, cap)
            frame["value"] /= frame.run.map({_label(run): bound for run, bound in bounds.items()})
            slots = self._slots(frame, runs, cap) if slots is None else slots
            part = shape.parts[1] / shape.figures
            shown = self._shown(frame, slots, cap, lambda grouped: getattr(grouped, kind)("value", -1, 1, name="x"), part)
            sums.append({run: {key: one * bounds[run] for key, one in own.items()} for run, own in shown.items()})
        if len(sums) == 1:
            return sums[0]
        total, count = sums
        return {run: {key: one / max(count[run][key], 1.0) for key, one in own.items()} for run, own in total.items()}

    def _slots(self, frame: pd.DataFrame, runs: Sequence[Run], cap: int) -> list[str]:
        """Return the groups of all runs: found privately, or those of the public table, or one."""
        if not self.shape.keyed:
            return [_slot(run, "") for run in runs]
        if self.shape.public:
            return [_slot(run, key) for run in runs for key in self.questions[run[0]].public or ()]
        asked = self._asked(
            frame[["unit", "slot"]],
            lambda table: self._capped(table, cap).get_groups(["slot"]),
            self.shape.spend(self.shape.parts[1], groups=True),
        )
        return [row["slot"] for row in asked]

    def _shown(
        self, frame: pd.DataFrame, slots: Sequence[str], cap: int, query: Callable[[Any], Any], part: float
    ) -> dict[Run, asking.Groups]:
        if not slots:
            return {}
        keys = KeySet.from_dict({"slot": list(slots)})

        def asked(table: QueryBuilder):
            if self.shape.public:
                table = table.enforce(MaxGroupsPerID("slot", cap)).enforce(MaxRowsPerGroupPerID("slot", 1))
                return query(table.groupby(keys))
            return query(self._capped(table, cap).groupby(keys))

        out: dict[Run, asking.Groups] = {}
        for row in self._asked(frame[["unit", "slot", "value"]], asked, self.shape.spend(part)):
            label, _, key = row["slot"].partition("|")
            out.setdefault(_run(label), {})[key] = float(row["x"])
        return out

    def _capped(self, table: QueryBuilder, cap: int) -> QueryBuilder:
        return table if self.shape.single else table.enforce(MaxRowsPerID(cap))

    def _stacked(self, runs: Iterable[Run], rows_of: Callable[[Run], pd.DataFrame]) -> pd.DataFrame:
        """Return one table of all runs, each with ids of its own."""
        parts = []
        for place, run in enumerate(runs):
            rows = rows_of(run)
            label = _label(run)
            slots = label + "|" + rows["key"]
            parts.append(rows[["key", "value"]].assign(unit=rows.unit + place * 10**9, run=label, slot=slots))
        return pd.concat(parts, ignore_index=True)

    def _asked(self, frame: pd.DataFrame, query: Callable[[QueryBuilder], Any], spend: Any) -> list[Mapping[str, Any]]:
        """Ask one query in a session of its own."""
        if self.shape.single:
            frame = frame.drop(columns="unit")
        change = AddOneRow() if self.shape.single else AddRowsWithID("unit")
        with tempfile.TemporaryDirectory() as place:
            frame.to_parquet(Path(place) / "rows.parquet", index=False)
            table = self.spark.read.parquet(str(Path(place) / "rows.parquet"))
            session = Session.from_dataframe(spend, "rows", table, protected_change=change)
            return session.evaluate(query(QueryBuilder("rows")), spend).collect()


def _read(question: Relation) -> pd.DataFrame:
    rows = pd.read_parquet(question.file)
    return rows[rows.counted > 0] if question.what in {SUM, MEAN} else rows


def _label(run: Run) -> str:
    return f"{run[0]}.{run[1]}"


def _slot(run: Run, key: str) -> str:
    return f"{_label(run)}|{key}"


def _run(label: str) -> Run:
    place, _, number = label.partition(".")
    return int(place), int(number)


def started(warehouse: str) -> SparkSession:
    """Return a small local Spark; what it materializes goes to a folder of its own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # for the processes that Spark starts
    builder = SparkSession.builder.master("local[1]").config("spark.driver.memory", "6g")
    builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.default.parallelism", "1")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.warehouse.dir", warehouse).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main() -> None:
    """Ask every question: there is none that it cannot express, once rows are added up by id."""
    with tempfile.TemporaryDirectory() as warehouse:
        spark = started(warehouse)
        print(json.dumps({"versions": stopwatch.versions(["tmlt.analytics", "pyspark"])}), flush=True)
        questions = asking.questions()
        for shape in dict.fromkeys(map(Shape.of, questions)):
            own = [question for question in questions if Shape.of(question) == shape]
            answers = Together(spark, shape, own).answers()
            for place, question in enumerate(own):
                asking.tell(question, [found for run, found in answers.items() if run[0] == place])


if __name__ == "__main__":
    main()
