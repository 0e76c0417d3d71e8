# ruff: noqa: S608 -- questions of our own
"""An engine beside the embedded one: the same rows under one key, and every integer before noise compared.

questions     joins, groups inside a person, windows, histograms, moments, several keys: identical integers
functions     every one of the catalogue on edge values: a row each, and its value as the key of its group
preparation   the rows that are kept of a person are the same with and without another one; caps hold; which rows are kept
              is spread evenly

What an engine may choose by a hash of its own (groups beyond a cap of several keys, values beyond a cap) is not asked here:
the contract leaves it open. Where it refuses a function as one that it lacks, with its name, that is said and not wrong.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import math
import secrets
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.answers.release import normalize_key
from curador.engines.base import EngineFailed, engine_kind
from curador.engines.duckdb.rank_key import KEY_BYTES
from curador.engines.duckdb.versions import prepared_folder, write_private
from curador.errors import InvalidQuery
from curador.plan.build import build_plan
from curador.query.sql import parse
from curador.study.model import Budget, Caps, Column, EngineSettings, Study, Table, UnitColumn
from curador.study.values import Type
from curador.testing.engine import check_engine
from curador.testing.engine_place import open_on, open_place, opened_on
from curador.testing.findings import require_conforming

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from curador.engines.base import Engine, Tallied
    from curador.plan.model import BlockPlan
    from curador.testing.engine_place import MadeUpPlace

_DOUBLES = (0.0, 1.0, -1.0, 0.5, -2.5, 2.5, 0.1, 123.456, 0.49999999999999994, 1e-300, 1e18, 9.3e18, 1e300, math.inf, None)
_WHOLE = (0, 1, -1, 2, 7, -10, 1 << 31, 1 << 53, (1 << 53) + 1, -(1 << 62), (1 << 63) - 1, -(1 << 63), None)
_TEXTS = (
    *(
        "",
        "a",
        "A b ",
        " 12 ",
        "12",
        "-7",
        "1e3",
        ".5",
        "nan",
        "true",
        " F",
        "0x1f",
        "2020-02-30",
        "2020-02-29",
        "%",
        "_",
        "\\",
    ),
    *("o'hara", "é日本", "a\nb", "a,b", '"', "\\.", "x" * 300, "9223372036854775808", "2020-01-01 10:20:30.5", None),
)
_DAYS = (dt.date(1, 1, 1), dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(2000, 2, 29), dt.date(9999, 12, 31), None)
_FUNCTIONS = r"""
d + 1; d - 0.1; d * 3; d / 3; d // 2; d % 3; -d; ABS(d); SIGN(d); ROUND(d); ROUND(d, 2); ROUND(d, -1);
FLOOR(d); CEIL(d); SQRT(d); d > 1; d = 0.5; d BETWEEN 0 AND 2; COALESCE(d, 5); NULLIF(d, 1); LEAST(d, 1);
GREATEST(d, 1); CAST(d AS BIGINT); CASE WHEN d > 0 THEN d ELSE 0 END; d IN (0.1, 2.5); d IS NULL; n + 1; n - 1;
n * 2; n / 7; n // 7; n % 7; -n; ABS(n); n > 2; CAST(n AS VARCHAR); n = 9007199254740992; LOWER(s); UPPER(s);
TRIM(s); LENGTH(s); SUBSTRING(s, 2, 2); REPLACE(s, 'a', 'bb'); s || 'x'; s LIKE '%a%'; s ILIKE 'A%';
STARTS_WITH(s, 'a'); REGEXP_MATCHES(s, '^[0-9]+$'); REGEXP_MATCHES(s, 'a.b'); s < 'a'; s = '';
TRY_CAST(s AS BIGINT); TRY_CAST(s AS DOUBLE); TRY_CAST(s AS DATE); TRY_CAST(s AS BOOLEAN); s IN ('a', '%');
DATE_TRUNC('month', day); DATE_TRUNC('week', day); EXTRACT(YEAR FROM day); EXTRACT(DOW FROM day);
day > DATE '2000-01-01'; DATE_DIFF('day', day, DATE '2001-01-01'); DATE_DIFF('week', day, DATE '2001-01-01');
day + INTERVAL 1 MONTH; EXTRACT(QUARTER FROM day); CAST(day AS VARCHAR);
DATE_DIFF('month', day, DATE '2001-01-01'); NOT (d > 1)
"""
"""Behind one another with semicolons: d is a number, n a whole one, s a text, day a date."""

_QUESTIONS = """
SELECT COUNT(*) AS n, COUNT(d) AS k FROM rows
SELECT kind, COUNT(*) AS n, SUM(d) AS t, AVG(d) AS m FROM rows GROUP BY kind
SELECT kind, VAR_POP(d) AS v, STDDEV_SAMP(n) AS w FROM rows GROUP BY kind
SELECT MEDIAN(d) AS m, MIN(d) AS low, MAX(n) AS high FROM rows
SELECT kind, COUNT(DISTINCT who) AS people FROM rows WHERE d > 0 GROUP BY kind
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM rows GROUP BY month
SELECT SUM(d * n) AS t FROM (SELECT d, LEAST(GREATEST(n, 0), 9) AS n FROM rows) WHERE d * n BETWEEN 0 AND 1000
SELECT COUNT(*) AS n FROM (SELECT who, COUNT(*) AS c FROM rows GROUP BY who) WHERE c > 3
SELECT COUNT(m) AS n FROM (SELECT who, AVG(d) AS m FROM rows GROUP BY who)
SELECT COUNT(*) AS n FROM (SELECT who, kind, SUM(d) AS t FROM rows GROUP BY who, kind) WHERE t > 2
SELECT COUNT(*) AS n FROM (SELECT who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY day) AS place FROM rows) WHERE
    place = 1
SELECT COUNT(*) AS n FROM (SELECT who, d - LAG(d) OVER (PARTITION BY who ORDER BY day, d) AS step FROM rows) WHERE step
    > 0
SELECT COUNT(*) AS n FROM rows AS a JOIN people AS b ON a.who = b.who WHERE b.age > 40
SELECT b.home, COUNT(*) AS n FROM rows AS a LEFT JOIN people AS b ON a.who = b.who GROUP BY b.home
SELECT COUNT(*) AS n FROM rows AS a FULL JOIN people AS b ON a.who = b.who
SELECT COUNT(*) AS n FROM people AS b WHERE EXISTS (SELECT 1 FROM rows AS a WHERE a.who = b.who AND a.d > 2)
SELECT COUNT(*) AS n FROM people AS b WHERE NOT EXISTS (SELECT 1 FROM rows AS a WHERE a.who = b.who AND a.d > 2)
SELECT region, SUM(d) AS t FROM rows JOIN regions USING (kind) GROUP BY region
SELECT COUNT(*) AS n FROM (SELECT who, kind FROM rows UNION ALL SELECT who, home FROM people)
SELECT COUNT(*) AS n FROM (SELECT DISTINCT who, kind FROM rows)
"""
"""One a line; what is moved in belongs to the line before."""

_PEOPLE, _CAP = 60, 5


@dataclass(slots=True)
class Checked:
    """What was compared: numbers of questions and functions, and what the engine says that it lacks."""

    questions: int = 0
    functions: int = 0
    lacking: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        lacks = f"; it lacks, and refuses: {', '.join(self.lacking)}" if self.lacking else ""
        return f"{self.questions} questions and {self.functions} functions have the integers of the embedded engine{lacks}"


def check_engine_at(url: str) -> Checked:
    """Raise NonconformingError unless the engine of a server keeps every rule; return what was compared.

    Makes a schema of made-up tables there and removes it; nothing else is read. Who logs in is said by the environment, as
    for a study.
    """
    checked = Checked()
    with open_place(url) as place:
        check_engine(_opening(place))
        with _both(place, cap=40) as (here, there):
            require_conforming(
                url.partition("?")[0],
                (
                    lambda: _same(here, there, _QUESTIONS.replace("\n    ", " ").split("\n")[1:-1], checked, "questions"),
                    lambda: _same(
                        here, there, [_by_value(one.strip()) for one in _FUNCTIONS.split(";")], checked, "functions"
                    ),
                    lambda: _laws(place),
                ),
            )
    return checked


def _opening(place: MadeUpPlace) -> Any:
    """What `check_engine` opens engines with; they are removed when it closes them."""

    def on_server(study: Study) -> Engine:
        engine, remove = open_on(place, study)
        closing = engine.close

        def close() -> None:
            closing()
            remove()

        engine.close = close  # type: ignore[method-assign]  # the suite closes what it opened, and knows of no place
        return engine

    return on_server


def _by_value(function: str) -> str:
    return f"SELECT {function.strip()} AS k, COUNT(*) AS n FROM edges GROUP BY k"


# ---- made-up rows ----------------------------------------------------------------------------------------------------------


def _tables(without: int | None = None) -> dict[str, Any]:
    """The made-up rows: some of everything, on a few people, and a row of its own for every edge value."""
    import pyarrow as pa

    dice = np.random.default_rng(7)
    rows: list[tuple[Any, ...]] = []
    for who in range(_PEOPLE):
        for _ in range(int(dice.integers(1, 12))):
            spent = None if dice.random() < 0.1 or who % 9 == 0 else float(dice.integers(-20, 120)) / 8
            day = dt.date(2024, 1, 1) + dt.timedelta(days=int(dice.integers(0, 90)))
            kind = ("a", "b", "é", None)[int(dice.integers(0, 4))]
            rows.append((who, spent, int(dice.integers(-3, 12)), kind, day, f"p{who}"))
    kept = [row for row in rows if row[0] != without]
    people = [(who, 20 + who, ("a", "b", None)[who % 3]) for who in range(0, _PEOPLE, 2) if who != without]
    edges = list(itertools.zip_longest(_DOUBLES, _WHOLE, _TEXTS, _DAYS))
    even = [(who, str(place)) for who in range(_EVEN) for place in range(_PLACES)]
    types = pa.int64(), pa.float64(), pa.int64(), pa.string(), pa.date32(), pa.string()
    return {
        "rows": _arrow(kept, ("who", "d", "n", "kind", "day", "tag"), types),
        "people": _arrow(people, ("who", "age", "home"), (pa.int64(), pa.int64(), pa.string())),
        "even": _arrow(even, ("who", "place"), (pa.int64(), pa.string())),
        "regions": _arrow([("a", "north"), ("b", "south"), ("b", "east")], ("kind", "region"), (pa.string(), pa.string())),
        "edges": _arrow(
            [(place, *row) for place, row in enumerate(edges)],
            ("who", "d", "n", "s", "day"),
            (pa.int64(), pa.float64(), pa.int64(), pa.string(), pa.date32()),
        ),
    }


def _arrow(rows: Sequence[tuple[Any, ...]], names: Sequence[str], types: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array([row[at] for row in rows], types[at]) for at, name in enumerate(names)})


def _study(folder: Path, key: bytes, cap: int, without: int | None = None) -> Study:
    """Write the made-up tables, and the key under which they are prepared; return the study of them."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    for name, table in _tables(without).items():
        pq.write_table(table, folder / f"{name}.parquet")
    caps, unit = Caps(rows=cap, groups=cap), UnitColumn("who")
    bounded = Column("d", Type.FLOAT, bounds=(Fraction(-3), Fraction(16)))
    whole = Column("n", Type.INTEGER, bounds=(-5, 20))
    kind = Column("kind", Type.STRING, values=("a", "b", "é"))
    tables = (
        Table("rows", "rows.parquet", unit, (bounded, whole, kind), caps=caps),
        Table("people", "people.parquet", unit, (Column("age", Type.INTEGER, bounds=(0, 120)),), unique=True),
        Table("regions", "regions.parquet", None, ()),
        Table("even", "even.parquet", unit, (), caps=Caps(rows=1)),
        Table("edges", "edges.parquet", unit, (), caps=Caps(rows=1)),
    )
    settings = EngineSettings(worker="inline", memory=500_000_000, unit_work=Fraction(100))
    study = Study(
        "conformance", tables, Budget(epsilon=1, delta="1e-9"), Path("study.ledger"), folder=folder, engine=settings
    )
    prepared = prepared_folder(study)
    prepared.mkdir(mode=0o700)
    write_private(prepared / "key", key, new=True)
    return study


@contextlib.contextmanager
def _both(
    place: MadeUpPlace, cap: int, without: int | None = None, key: bytes | None = None
) -> Generator[tuple[Engine, Engine]]:
    """The embedded engine and the other one on the same rows, prepared under one key."""
    secret = secrets.token_bytes(KEY_BYTES) if key is None else key
    with tempfile.TemporaryDirectory() as name:
        here = engine_kind().open(_study(Path(name) / "here", secret, cap, without), 1)
        with contextlib.closing(here), opened_on(place, _study(Path(name) / "there", secret, cap, without)) as there:
            here.prepare(1)
            yield here, there


# ---- compared --------------------------------------------------------------------------------------------------------------


def _same(here: Engine, there: Engine, questions: Sequence[str], checked: Checked, counted: str) -> Iterator[str]:
    for question in questions:
        blocks = build_plan(parse(question, here.schema), here.schema).blocks
        wanted = integers_of(blocks, here.tally(here.compile(blocks)))
        try:
            found = integers_of(blocks, there.tally(there.compile(blocks)))
        except InvalidQuery:
            checked.lacking.append(question)
            continue
        except EngineFailed as problem:
            yield f"{question}: it must not fail; incident {problem.incident}"
            continue
        setattr(checked, counted, getattr(checked, counted) + 1)
        if found != wanted:
            yield f"{question}: its integers must be those of the embedded engine"


def integers_of(blocks: Sequence[BlockPlan], tallied: Sequence[Tallied]) -> list[dict[Any, Any]]:
    """Return the integers of blocks by key: what the order of an engine's groups does not change."""
    found: list[dict[Any, Any]] = []
    for block, result in zip(blocks, tallied, strict=True):
        kinds = [key.type for key in block.keys]
        keys = [tuple(map(normalize_key, key, kinds)) for key in zip(*result.keys, strict=True)] if kinds else [()]
        held: dict[Any, Any] = {"groups": len(keys)}
        for place, numbers in result.tallies.items():
            held[place] = dict(zip(keys, map(int, np.asarray(numbers).tolist()), strict=True))
        for place, cells in result.cells.items():
            rows = zip(cells.groups.tolist(), cells.cells.tolist(), cells.counts.tolist(), strict=True)
            held[place] = {(keys[group], cell): int(count) for group, cell, count in rows}
        if result.selection is not None:
            private, units = [block.keys[place].type for place in block.private_keys], np.asarray(result.selection[1])
            chosen = [tuple(map(normalize_key, row, private)) for row in zip(*result.selection[0], strict=True)]
            held["selection"] = dict(zip(chosen, map(int, units.tolist()), strict=True))
        found.append(held)
    return found


# ---- preparation -----------------------------------------------------------------------------------------------------------


_GONE = 7
"""Who leaves."""

_EVEN, _PLACES, _LIMIT = 300, 6, 45.0
"""People with a row at each place, of whom one is kept; and a sum of squares that χ² with 5 degrees of freedom exceeds once
in 10⁷."""


def _laws(place: MadeUpPlace) -> Iterator[str]:
    """Yield what preparation does to others when somebody leaves, and where a cap is not kept."""
    key = secrets.token_bytes(KEY_BYTES)
    with _both(place, _CAP, key=key) as (_, there):
        whole, even = _by_person(there), _counted(there, "SELECT place, COUNT(*) AS n FROM even GROUP BY place")
    with _both(place, _CAP, without=_GONE, key=key) as (_, there):
        left = _by_person(there)
    gone = f"p{_GONE}"
    if gone in left or {who: rows for who, rows in whole.items() if who != gone} != left:
        yield "the rows that are kept of a person must be the same with and without another one"
    many = Counter(_tables()["rows"].column("tag").to_pylist())
    if {who: sum(rows.values()) for who, rows in whole.items()} != {who: min(n, _CAP) for who, n in many.items()}:
        yield f"of each person as many rows must be kept as there are, at most {_CAP}"
    wanted = _EVEN / _PLACES
    if sum((even.get((str(at),), 0) - wanted) ** 2 / wanted for at in range(_PLACES)) > _LIMIT:
        yield "each row of a person must be kept as often as another"


def _by_person(engine: Engine) -> dict[Any, Counter[Any]]:
    """The rows that count of each person, by what only they have."""
    found: dict[Any, Counter[Any]] = {}
    for (tag, day), many in _counted(engine, "SELECT tag, day, COUNT(*) AS n FROM rows GROUP BY tag, day").items():
        found.setdefault(tag, Counter())[day] += many
    return found


def _counted(engine: Engine, question: str) -> dict[tuple[Any, ...], int]:
    """The number of rows by key."""
    blocks = build_plan(parse(question, engine.schema), engine.schema).blocks
    (tallied,) = engine.tally(engine.compile(blocks))
    keys = zip(*tallied.keys, strict=True)
    return dict(zip(keys, map(int, np.asarray(tallied.tallies[0]).tolist()), strict=True))
