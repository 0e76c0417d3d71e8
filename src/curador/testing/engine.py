"""The rules that every engine keeps: exact integers of the declared rows, and nothing of a row where none may be read."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.answers.release import normalize_key
from curador.engines.base import EngineFailed
from curador.plan.build import build_plan
from curador.query.sql import parse
from curador.query.tree import Ref
from curador.study.model import Budget, Caps, Column, EngineSettings, Study, Table, UnitColumn
from curador.study.values import Type
from curador.testing.findings import require_conforming

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from curador.engines.base import Compiled, Engine, Tallied
    from curador.plan.model import BlockPlan, Tally

Visit: TypeAlias = tuple[int, float | None, str | None, str | None]
"""A row: user, spent, city, shop."""

Tallying: TypeAlias = "Callable[[Compiled], list[Tallied]]"

CITIES = ("Cuzco", "Lima")
VISITS: tuple[Visit, ...] = tuple(
    (
        number % 7,
        None if number % 11 == 0 else float(number * 37 % 700 - 100),  # some below 0, some above 500
        ("Cuzco", "Lima", "Quito", None)[number % 4],  # Quito is not declared: it is read as NULL
        ("north", "south", "", None)[number % 3 if number < 90 else 3],
    )
    for number in range(100)
)
LOW, HIGH = 0, 500
MOST = max(Counter(visit[0] for visit in VISITS).values())
"""Rows of the unit that has most: a cap at which nothing is left out."""

QUESTIONS = (
    "SELECT COUNT(*) AS n, COUNT(spent) AS known FROM visits",
    "SELECT city, COUNT(*) AS n, SUM(spent) AS total FROM visits GROUP BY city",
    "SELECT VAR_POP(spent) AS v FROM visits",
    "SELECT city, COUNT(DISTINCT user) AS people FROM visits GROUP BY city",
    "SELECT COUNT(DISTINCT shop) AS shops FROM visits",
    "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop",
    "SELECT MEDIAN(spent) AS m FROM visits",
)


def check_engine(open_engine: Callable[[Study], Engine], *, copies: bool = True) -> None:
    """Raise NonconformingError, with a sentence a rule, unless the engine keeps every rule on small studies of our own.

    open_engine   opens an engine on a study of one Parquet file, ready to be asked: its data version 1 is prepared
    copies        whether a version is a copy; who serves the files themselves answers for their staying as they are

    Rules: the schema has every column; tallies of all kinds are the integers that Python counts row by row, each group once,
    NULL among them; integers are integers; a table without rows has one group where there is no key; caps are executed; what
    is rehearsed has the same shape and no row in it; a copied version stays as it was taken when its file changes; a learner
    reads all rows with their units. What one unit can do to another, and failures, are for the tests of each engine.
    """
    with contextlib.ExitStack() as opened:
        # opened once each, where first needed: preparing a version is what takes the time
        whole = functools.cache(lambda: opened.enter_context(_open_on_rows(open_engine)))
        capped = functools.cache(lambda: opened.enter_context(_open_on_rows(open_engine, cap=2)))
        empty = functools.cache(lambda: opened.enter_context(_open_on_rows(open_engine, rows=())))
        require_conforming(
            getattr(open_engine, "__name__", type(open_engine).__name__),
            (
                lambda: _schema(whole()),
                lambda: _all_wrong(whole().tally, whole(), VISITS),
                lambda: _all_wrong(empty().tally, empty(), ()),
                lambda: _caps(capped()),
                lambda: _all_wrong(whole().rehearse, whole(), (), "rehearsed"),
                lambda: _reading(capped()),
                lambda: _version(whole()) if copies else iter(()),
            ),
        )


def _schema(engine: Engine) -> Iterator[str]:
    names = [field.name for field in engine.schema.tables[0].fields]
    if names != ["user", "spent", "city", "shop"]:
        yield f"the schema must have the columns of the file in their order; got {names}"
    if not engine.ready:
        yield "an engine whose version is prepared must be ready"


def _all_wrong(tally: Tallying, engine: Engine, rows: Sequence[Visit], how: str = "tallied") -> Iterator[str]:
    """Yield what differs from Python's integers, question by question."""
    for question in QUESTIONS:
        blocks = _blocks(engine, question)
        found = tally(engine.compile(blocks))
        yield from (f"{question}, {len(rows)} rows {how}: {what}" for what in _wrong_tallies(found, blocks, rows))


def _caps(engine: Engine) -> Iterator[str]:
    (tallied,) = engine.tally(engine.compile(_blocks(engine, QUESTIONS[0])))
    expected = sum(min(count, 2) for count in Counter(visit[0] for visit in VISITS).values())
    if int(tallied.tallies[0][0]) != expected:
        yield f"two rows of each unit must be kept, {expected} together; got {int(tallied.tallies[0][0])}"


def _version(engine: Engine) -> Iterator[str]:
    blocks = _blocks(engine, QUESTIONS[1])
    compiled = engine.compile(blocks)
    _write(engine.schema.study.folder, VISITS[:10])
    with contextlib.suppress(EngineFailed):  # to notice it and to stop is right, too
        yield from (f"after the file changed: {what}" for what in _wrong_tallies(engine.tally(compiled), blocks, VISITS))


def _reading(engine: Engine) -> Iterator[str]:
    read = engine.read("visits", ["spent", "shop"])
    found = Counter(zip(*(read.column(name).to_pylist() for name in ("v0", "v1")), strict=True))
    if found != Counter((visit[1], visit[3]) for visit in VISITS):
        yield "v0 and v1 must be the columns asked for, of all rows"
    units = Counter(Counter(read.column("u").to_pylist()).values())
    if units != Counter(Counter(visit[0] for visit in VISITS).values()):
        yield "u must tell the units of rows apart"


@contextlib.contextmanager
def _open_on_rows(
    open_engine: Callable[[Study], Engine], rows: Sequence[Visit] = VISITS, cap: int = MOST
) -> Generator[Engine]:
    columns = (
        Column("spent", Type.FLOAT, bounds=(Fraction(LOW), Fraction(HIGH))),
        Column("city", Type.STRING, values=CITIES),
        Column("shop", Type.STRING),
    )
    visits = Table("visits", "visits.parquet", UnitColumn("user"), columns, caps=Caps(rows=cap))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, rows)
        settings = EngineSettings(worker="inline", memory=500_000_000)
        engine = open_engine(
            Study("conformance", (visits,), Budget(epsilon=1), Path("study.ledger"), folder=folder, engine=settings)
        )
        try:
            yield engine
        finally:
            engine.close()


def _write(folder: Path, rows: Sequence[Visit]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"user": pa.int64(), "spent": pa.float64(), "city": pa.string(), "shop": pa.string()}
    columns = {name: pa.array([row[place] for row in rows], kind) for place, (name, kind) in enumerate(kinds.items())}
    pq.write_table(pa.table(columns), folder / "visits.parquet")


def _blocks(engine: Engine, question: str) -> tuple[BlockPlan, ...]:
    return tuple(build_plan(parse(question, engine.schema), engine.schema).blocks)


def _wrong_tallies(found: Sequence[Tallied], blocks: Sequence[BlockPlan], rows: Sequence[Visit]) -> Iterator[str]:
    """Yield what differs from the integers that Python counts."""
    if len(found) != len(blocks):
        yield "there must be one result for each block"
    for block, tallied in zip(blocks, found, strict=False):
        groups, kinds = _group_visits(block, rows), [key.type for key in block.keys]
        keys = [tuple(map(normalize_key, key, kinds)) for key in zip(*tallied.keys, strict=True)] if block.keys else [()]
        if len(set(keys)) != len(keys) or set(keys) != set(groups):
            yield f"groups must be {len(groups)}, each once; got {len(keys)}"
            continue
        for place, tally in enumerate(block.tallies):
            if tally.kind == "cells":
                yield from _wrong_cells(tallied, place, tally, groups, keys)
                continue
            numbers: Any = tallied.tallies[place]
            if np.asarray(numbers).dtype.kind not in "iO" or not all(
                isinstance(number, (int, np.integer)) for number in numbers
            ):
                yield f"a tally of {tally.kind} must be integers; got {np.asarray(numbers).dtype}"
            expected = [_count_tally(tally, groups[key]) for key in keys]
            if np.asarray(numbers).tolist() != expected:
                yield f"a tally of {tally.kind} is not what Python counts"
        if block.private_keys:
            yield from _wrong_selection(tallied, groups)


def _group_visits(block: BlockPlan, rows: Sequence[Visit]) -> dict[tuple[Any, ...], list[Visit]]:
    groups: defaultdict[tuple[Any, ...], list[Visit]] = defaultdict(list)
    if not block.keys:
        groups[()] = []
    for row in rows:
        groups[tuple(_value(key.expression, row) for key in block.keys)].append(row)
    return dict(groups)


def _value(expression: object, row: Visit) -> Any:
    """A column as the study declares it: what is not among its values is NULL."""
    if not isinstance(expression, Ref):
        raise TypeError("questions of the suite are about columns alone")
    value = row[expression.index]
    return None if expression.index == 2 and value not in CITIES else value


def _count_tally(tally: Tally, rows: Sequence[Visit]) -> int:
    if tally.kind == "units":
        return len({row[0] for row in rows})
    values = [_value(tally.argument, row) for row in rows] if tally.argument is not None else [True for _ in rows]
    known = [value for value in values if value is not None]
    if tally.kind == "rows":
        return len(known)
    if tally.kind == "distinct":
        return len(set(known))
    steps = [_step(tally, value) for value in known]
    if tally.kind == "steps":
        return sum(steps)
    return sum((step - tally.centre) ** 2 >> tally.shift for step in steps)


def _step(tally: Tally, value: float) -> int:
    if tally.grid is None:
        raise TypeError("a tally of numbers has a grid")
    return int(Fraction(min(max(value, LOW), HIGH)) / tally.grid.step) - tally.grid.start


def _wrong_cells(
    tallied: Tallied, place: int, tally: Tally, groups: dict[tuple[Any, ...], list[Visit]], keys: Sequence[tuple[Any, ...]]
) -> Iterator[str]:
    cells = tallied.cells[place]
    found = Counter(
        dict(zip(zip(cells.groups.tolist(), cells.cells.tolist(), strict=True), cells.counts.tolist(), strict=True))
    )
    expected = Counter(
        (group, _step(tally, value))
        for group, key in enumerate(keys)
        for row in groups[key]
        if (value := _value(tally.argument, row)) is not None
    )
    if found != expected:
        yield "a histogram is not what Python counts"


def _wrong_selection(tallied: Tallied, groups: dict[tuple[Any, ...], list[Visit]]) -> Iterator[str]:
    if tallied.selection is None:
        yield "private keys must come with the number of their units"
        return
    columns, units = tallied.selection
    found = dict(zip(zip(*columns, strict=True), np.asarray(units).tolist(), strict=True))
    if found != {key: len({row[0] for row in rows}) for key, rows in groups.items()}:
        yield "the units of private keys are not what Python counts"
