"""The tables of task S, the page and the JSON beside it."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from accounting.report import table_of_checks
from presentation import Table, machine, page
from sampling import tasks
from sampling.targets import against_numpy, against_opendp

if TYPE_CHECKING:
    from pathlib import Path

    from accounting.targets import Check
    from sampling.results import Results, Series

MANY = (tasks.NUMPY, tasks.QUICK, tasks.LEVEL, tasks.RELEASE)


def tables(results: Results) -> list[Table]:
    """Return the six tables."""
    return [_vectors(results), _sizes(results), _scalars(results), _choices(results), _setup(results), _short(results)]


def _vectors(results: Results) -> Table:
    columns = ("law, scale", *MANY, "quick / NumPy", "level / NumPy", "release / NumPy", tasks.OPENDP, "times faster, quick")
    rows = [_vector_row(results, law, scale) for law, scale in itertools.product(tasks.LAWS, tasks.SCALES)]
    title = f"S1. Vectors of {tasks.VECTOR:,}: milliseconds a call, best / median; ratios likewise"
    return Table(title, columns, tuple(rows + _real_rows(results)))


def _vector_row(results: Results, law: str, scale: float) -> tuple[str, ...]:
    times = [_pair(results.found(tasks.VECTORS, tool, law, scale=scale), 1e3) for tool in MANY]
    ratios = [_ratios(results, tool, law, scale) for tool in MANY[1:]]
    peer = results.found(tasks.VECTORS, tasks.OPENDP, law, kind=tasks.INTEGERS, scale=scale)
    faster = against_opendp(results, law, scale)
    return (f"{law}, {scale:g}", *times, *ratios, _scaled(peer), "" if faster is None else f"{faster:,.0f}")


def _ratios(results: Results, tool: str, law: str, scale: float) -> str:
    both = [against_numpy(results, tool, law, scale, median=median) for median in (False, True)]
    return "" if None in both else " / ".join(_number(one) for one in both)


def _real_rows(results: Results) -> list[tuple[str, ...]]:
    """Return opendp's real-valued noise, against curador's release of real values."""
    rows: list[tuple[str, ...]] = []
    for law in tasks.LAWS:
        peer = results.found(tasks.VECTORS, tasks.OPENDP, law, kind=tasks.REALS)
        ours = results.found(tasks.VECTORS, tasks.RELEASE, law, scale=tasks.SIZE_SCALE)
        faster = "" if peer is None or ours is None else f"{peer.each / ours.each:,.0f} (release)"
        rows.append(
            (f"{law}, {tasks.SIZE_SCALE:g}, real values", "", "", "", _pair(ours, 1e3), "", "", "", _scaled(peer), faster)
        )
    return rows


def _sizes(results: Results) -> Table:
    columns = ("law, size", *MANY, "quick / NumPy", "level / NumPy", "release / NumPy")
    rows: list[tuple[str, ...]] = []
    for law, size in itertools.product(tasks.LAWS, tasks.SIZE_LIST):
        found = [results.found(tasks.SIZES, tool, law, draws=size) for tool in MANY]
        ratios = [_number(one.best / found[0].best) if one and found[0] else "" for one in found[1:]]
        rows.append((f"{law}, {size:,}", *(_pair(one, 1e6) for one in found), *ratios))
    title = f"S2. Sizes, scale {tasks.SIZE_SCALE:g}: microseconds a call, best / median; ratios of the best"
    return Table(title, columns, tuple(rows))


def _scalars(results: Results) -> Table:
    rows = [_scalar_row(results, one) for one in sorted(results.of(tasks.SCALARS), key=_scalar_order)]
    rows += [(f"{tool}: {reason}", "", "", "", "", "", "") for tool, reason in results.absent.items()]
    columns = ("tool", "law, scale", "values", "call", "µs, best / median", "a second", "times the pool")
    return Table("S3. Scalars, one draw a call", columns, tuple(rows))


def _scalar_order(one: Series) -> tuple[int, float]:
    return tasks.LAWS.index(one.law), one.scale


def _scalar_row(results: Results, one: Series) -> tuple[str, ...]:
    where = (f"{one.law}, {one.scale:g}", one.kind, one.statement)
    if not one.seconds:
        return (f"{one.tool}: {one.reason}", *where, "", "", "")
    pool = results.found(tasks.SCALARS, tasks.POOL, one.law, scale=one.scale)
    times = "" if pool is None else _number(one.best / pool.best)
    return (one.tool, *where, _pair(one, 1e6), f"{1 / one.best:,.0f}", times)


def _choices(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for one in sorted(results.of(tasks.CHOICES), key=lambda one: tasks.SELECTIONS.index(one.law)):
        ours = results.found(tasks.CHOICES, tasks.RELEASE, one.law)
        same = ours is not None and ours.draws == one.draws
        ratio = _number(one.best / ours.best) if one.seconds and ours is not None and same else ""
        name = one.tool if one.seconds else f"{one.tool}: {one.reason}"
        rows.append((name, one.law, f"{one.draws:,}", one.statement, _pair(one if one.seconds else None, 1e3), ratio))
    columns = ("tool", "law", "candidates", "call", "ms, best / median", "times ours")
    return Table("S4. One candidate of many, epsilon 1, sensitivity 1", columns, tuple(rows))


def _setup(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for law, scale in itertools.product(tasks.LAWS, tasks.SCALES):
        both = [results.found(tasks.SETUP, tool, law, scale=scale) for tool in ("fresh", "again")]
        rows.append((f"{law}, about {scale:g}", *(_pair(one, 1e6) for one in both)))
    columns = ("law, scale", "first draw at a fresh scale", "a draw at a known scale")
    return Table("S5. Set-up: microseconds for one unpooled draw, best / median", columns, tuple(rows))


def _short(results: Results) -> Table:
    ways = ((tasks.AHEAD, tasks.INTEGERS), (tasks.RELEASE, tasks.INTEGERS), (tasks.RELEASE, tasks.REALS))
    rows: list[tuple[str, ...]] = []
    for law, scale, size in itertools.product(tasks.LAWS, tasks.SCALES, tasks.SHORT_LIST):
        numpy = results.found(tasks.SHORT, tasks.NUMPY, law, scale=scale, draws=size)
        found = [results.found(tasks.SHORT, tool, law, kind=kind, scale=scale, draws=size) for tool, kind in ways]
        cold = results.found(tasks.SHORT, tasks.FIRST, law, scale=scale, draws=size)
        ratios = [f"{one.best / numpy.best:.2f} / {one.median / numpy.median:.2f}" if one and numpy else "" for one in found]
        rows.append((f"{law}, {scale:g}, {size:,}", _pair(numpy, 1e6), _pair(found[0], 1e6), *ratios, _pair(cold, 1e6)))
    columns = ("law, scale, size", tasks.NUMPY, tasks.AHEAD, "drawn / NumPy", "release of integers / NumPy",
               "release of reals / NumPy", tasks.FIRST)  # fmt: skip
    return Table("S6. Short vectors: microseconds a call, best / median; ratios likewise", columns, tuple(rows))


def _pair(one: Series | None, unit: float) -> str:
    return "" if one is None else f"{_number(one.best * unit)} / {_number(one.median * unit)}"


def _scaled(one: Series | None) -> str:
    """Return the milliseconds that a whole vector would take."""
    if one is None:
        return ""
    return " / ".join(f"{value / one.draws * tasks.VECTOR * 1e3:,.0f}" for value in (one.best, one.median))


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def explanation(results: Results) -> str:
    """Return how the numbers were taken, in one paragraph."""
    rounds = max((len(one.seconds) for one in results.series), default=0)
    return (
        f"curador and NumPy are timed by turns in one process, {rounds} rounds in all; the peers' processes run between "
        "curador's, and have fewer rounds where a call is long. Integers are exact draws of `curador.randomness`: *quick* "
        "accepts at once what a 16-bit comparison proves, *level* does the same arithmetic for every draw, *pool* hands out "
        "scalars drawn ahead, and short vectors are *drawn ahead* likewise; each vector includes replacing the key. "
        "*release* is a mechanism's whole release, checks "
        "included. NumPy's draws are rounded floats from a generator that can be predicted; diffprivlib's Laplace, Geometric "
        f"and Gaussian are floats too. opendp's vectors are of {tasks.FEWER:,} and scaled."
    )


def versions(results: Results) -> str:
    """Return every package and version, in one sentence; a peer's environment may hold another NumPy than ours."""
    found = {pair for one in results.versions.values() for pair in one.items() if pair[0] not in {"python", "numpy", "scipy"}}
    ours = results.versions.get("curador", {})
    found |= {("numpy", ours["numpy"])} if "numpy" in ours else set()
    return "Packages: " + ", ".join(f"{name} {number}" for name, number in sorted(found)) + "."


def write(results: Results, shown: list[Table], checks: list[Check], folder: Path) -> Path:
    """Write `sampling.md` and `sampling.json`; return the page's place."""
    folder.mkdir(exist_ok=True)
    place = folder / "sampling.md"
    paragraphs = [machine(), versions(results), explanation(results)]
    place.write_text(page("Sampling against the peers", paragraphs, [*shown, table_of_checks(checks)]))
    record = {
        "machine": machine(),
        "versions": results.versions,
        "absent": results.absent,
        "series": [_record(one) for one in results.series],
        "checks": [asdict(check) for check in checks],
    }
    place.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    return place


def _record(one: Series) -> dict[str, object]:
    record = asdict(one)
    del record["seconds"]
    if one.seconds:
        record |= {"best_seconds": one.best, "median_seconds": one.median, "rounds": len(one.seconds)}
    return record
