# ruff: noqa: S608 -- names pass through `name_of`, the rest is ours

"""Prepares a data version on a Spark server: the columns that `duckdb/prepare.py` makes, chosen once and stored.

    sources ─► stage (cleaned, once) ─► keys verified ─► units numbered ─► owners ─► t0, t1, … by unit, as Parquet files

`__u` numbers the units of the study from 0, in the order of their hashes; `__h` is the low half of MD5 of a secret key and
the unit's canonical bytes, with the bits that the embedded engine's has; `__r` is the row's place in a random order of its
unit's rows. `__d<c>` and `__f<c>` number the values of a column in the order of first appearance. Nothing of it is ever
computed again: questions read it. Partitions are by the unit itself, never by a hash of it.

How a row is ranked is `duckdb/ranking.py`'s formula with the server's own hash, seeded by the unit's secret one:

    __r = ROW_NUMBER() OVER (PARTITION BY unit ORDER BY PRF(h, all columns, k), all columns, k)

Claim   T-UL: for every unit, the rows of t<i> that it owns (c, g, __h, __r, __d, __f) are a function of its own rows and the
        key. A task that a server runs twice gives the same rows.
Needs   Keys of paths are UNIQUE NOT NULL, which is verified here; the key is independent of the data; sources stay as they
        are while they are staged.
Source  As there. Every window is by the unit, and its order is total up to rows that are equal in all columns.

The rank key enters as a row of a table that the client sends with the plan, never as text of a statement: a server's logs
and pages keep statements and plans, in which the table is a name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from curador.engines.duckdb.reading import column_names, grid_columns
from curador.engines.duckdb.schema import TAGS, owners_first, unit_type, verified_keys
from curador.engines.duckdb.spelling import commas
from curador.engines.lower.aggregates import clamp_to_ends, scale_to_steps
from curador.engines.lower.dialect_spark import SPARK
from curador.engines.spark.server import run_tagged
from curador.engines.spark.sources import columns_of, find, select_cleaned
from curador.errors import Failed
from curador.plan.model import column_grid
from curador.plan.ownership import numbered_columns
from curador.plan.work import UNIT_TEXT_BYTES, stored_rows
from curador.study.model import UnitColumn, UnitPath, UnitRow
from curador.study.rules import broken_rule
from curador.study.values import Plain, Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.engines.spark.server import Session
    from curador.study.model import Column, Schema, TableSchema

MORE = 255
"""The number of every value from here on, as in `duckdb/numbering.py`."""

_KEY = "curador_key"


@dataclass(frozen=True, slots=True)
class SparkPreparation:
    """One preparation under way.

    place  the folder, as the server sees it, in which tables are written; nothing was there before
    until  the moment of the monotonic clock by which each statement must have ended
    """

    session: Session
    schema: Schema
    key: str
    place: str
    until: float
    tell: Callable[[str], None]
    written: list[str] = field(default_factory=list[str])

    def table(self, place: int) -> TableSchema:
        return self.schema.tables[place]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return a small result."""
        found = run_tagged(self.session, lambda: self.session.sql(statement).toArrow(), self.until)
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def write(self, name: str, statement: str, *, by: tuple[str, ...] = ()) -> None:
        """Store a statement's rows, and let them be a view of this name from now on. by: in order, of whole units first."""
        path = f"{self.place}/{name}"
        frame = self.session.sql(statement)
        described = frame.schema
        sorted_ = frame.repartition(by[0]).sortWithinPartitions(*by) if by else frame
        self.written.append(path)
        run_tagged(self.session, lambda: sorted_.write.mode("error").parquet(path), self.until)
        self.session.read.schema(described).parquet(path).createOrReplaceTempView(name)

    def forget(self, name: str) -> None:
        """Remove the rows of a table that was stored on the way."""
        remove(self.session, f"{self.place}/{name}", self.until)


def remove(session: Session, path: str, until: float) -> None:
    """Remove the rows of a stored table: Spark has no other way to than to write none over them."""
    empty = session.sql("SELECT 1 AS gone WHERE FALSE")
    run_tagged(session, lambda: empty.write.mode("overwrite").parquet(path), until)


def prepare(work: SparkPreparation) -> None:
    """Store t0, t1, … of the study's sources; what was stored on the way is removed. Whoever calls removes what fails."""
    staged: list[str] = []
    _share_key(work)
    for place, table in enumerate(work.schema.tables):
        work.tell(f"reading {table.table.name}")
        _stage(work, place)
        staged.append(f"s{place}")
    _verify_keys(work)
    _prepare_staged(work, staged)
    for name in staged:
        work.forget(name)


def _prepare_staged(work: SparkPreparation, staged: list[str]) -> None:
    for place, table in enumerate(work.schema.tables):
        if table.table.public:
            _public(work, place)
    roots = [place for place in owners_first(work.schema.study) if isinstance(work.table(place).table.unit, UnitColumn)]
    if roots:
        work.tell("numbering units")
        _number_units(work, roots)
        staged.append("units")
    for place in owners_first(work.schema.study):
        work.tell(f"ranking rows of {work.table(place).table.name}")
        if isinstance(work.table(place).table.unit, UnitRow):
            _rows(work, place)
        else:
            _rank(work, place)
        _verify(work, place)


def _share_key(work: SparkPreparation) -> None:
    import pyarrow as pa

    work.session.createDataFrame(pa.table({"key": [work.key]})).createOrReplaceTempView(_KEY)


def _stage(work: SparkPreparation, place: int) -> None:
    schema = work.table(place)
    frame = find(work.schema.study, schema.table).read(work.session)
    frame.createOrReplaceTempView(f"source{place}")
    work.write(f"s{place}", select_cleaned(f"source{place}", columns_of(frame), schema))


def _verify_keys(work: SparkPreparation) -> None:
    """Verify that every key through which units are found is UNIQUE NOT NULL."""
    for place, column in verified_keys(work.schema.study):
        schema = work.table(place)
        name, where = f"c{schema.index(column)}", ("tables", schema.table.name, "columns", column)
        if work.rows(f"SELECT 1 AS x FROM s{place} WHERE {name} IS NULL LIMIT 1"):
            hint = "every row needs one, as units are found through it"
            raise broken_rule(where, "a key without NULL", Plain("a NULL"), hint)
        if work.rows(f"SELECT 1 AS x FROM s{place} GROUP BY {name} HAVING COUNT(*) > 1 LIMIT 1"):
            raise broken_rule(where, "a key that no two rows share", Plain("a repeated one"), "units are found through it")


def _public(work: SparkPreparation, place: int) -> None:
    """A public table: rows in the order of all columns, numbered."""
    schema = work.table(place)
    names = commas(column_names(schema))
    work.write(f"t{place}", f"SELECT *, CAST(ROW_NUMBER() OVER (ORDER BY {names}) AS BIGINT) AS __p FROM s{place}")
    keys = commas(f"c{schema.index(name)}" for name in schema.table.key)
    if keys and work.rows(f"SELECT 1 AS x FROM t{place} GROUP BY {keys} HAVING COUNT(*) > 1 LIMIT 1"):
        raise broken_rule(("tables", schema.table.name, "key"), "columns that no two rows agree in", schema.table.key)


# ---- units -----------------------------------------------------------------------------------------------------------------


def _number_units(work: SparkPreparation, roots: list[int]) -> None:
    """Store `units` (value, h, u): all units of the study, numbered from 0 in the order of their hashes.

    Numbers are counted inside each of 256 parts, by the first byte of the hash, and moved behind those of the parts before.
    """
    kind = unit_type(work.schema.tables)
    tag = "" if kind is None else TAGS[kind]
    columns = [
        f"SELECT c{index} AS value FROM s{place} WHERE c{index} IS NOT NULL"
        for place in roots
        for index in (work.table(place).unit_index,)
    ]
    found = f"SELECT DISTINCT value FROM ({' UNION ALL '.join(columns)}) AS v"
    digest = f"md5(concat(k.key, '{tag}', CAST(v.value AS STRING)))"
    hashed = f"SELECT v.value, {digest} AS m FROM ({found}) AS v CROSS JOIN {_KEY} AS k"
    turned = f"SELECT value, {_turned('m')} AS digits FROM ({hashed}) AS w"
    number = "ROW_NUMBER() OVER (PARTITION BY substring(digits, 1, 2) ORDER BY digits, value)"
    work.write(
        "found", f"SELECT value, digits, substring(digits, 1, 2) AS part, CAST({number} AS BIGINT) AS n FROM ({turned}) AS x"
    )
    before, offsets = 0, ["SELECT '' AS part, 0L AS offset"]
    for part, count in sorted(work.rows("SELECT part, COUNT(*) AS n FROM found GROUP BY part")):
        offsets.append(f"SELECT '{part}', {before:d}L")
        before += int(count)
    numbered = f"SELECT f.value, {_signed('f.digits')} AS h, f.n - 1L + o.offset AS u FROM found AS f"
    work.write("units", f"{numbered} JOIN ({' UNION ALL '.join(offsets)}) AS o ON f.part = o.part")
    work.forget("found")


def _turned(digest: str) -> str:
    """The last eight bytes of an MD5 in hexadecimal digits, last byte first: the embedded engine counts them so."""
    return f"concat({commas(f'substring({digest}, {start:d}, 2)' for start in range(31, 16, -2))})"


def _signed(digits: str) -> str:
    """Sixteen hexadecimal digits as the 64-bit integer of the same bits."""
    high, low = (f"CAST(conv(substring({digits}, {start:d}, 8), 16, 10) AS BIGINT)" for start in (1, 9))
    return f"((CASE WHEN {high} >= {1 << 31:d}L THEN {high} - {1 << 32:d}L ELSE {high} END) * {1 << 32:d}L + {low})"


def _owners(work: SparkPreparation, place: int) -> str:
    """Return the relation (value, h, u) that says whom a row of a table belongs to, by the column that says it."""
    unit = work.table(place).table.unit
    if not isinstance(unit, UnitPath):
        return "SELECT value, h, u FROM units"
    other = next(number for number, one in enumerate(work.schema.tables) if one.table.name == unit.table)
    there = work.table(other)
    if isinstance(there.table.unit, UnitRow):
        return f"SELECT c{there.index(unit.key or '')} AS value, __h AS h, __u AS u FROM t{other}"
    owner = f"c{there.index(getattr(there.table.unit, 'column', ''))}"
    if unit.key is None:
        return f"SELECT o.* FROM ({_owners(work, other)}) AS o LEFT SEMI JOIN s{other} AS s ON o.value = s.{owner}"
    joined = f"s{other} AS s JOIN ({_owners(work, other)}) AS o ON s.{owner} = o.value"
    return f"SELECT s.c{there.index(unit.key)} AS value, o.h, o.u FROM {joined}"


# ---- rows ------------------------------------------------------------------------------------------------------------------


def _rows(work: SparkPreparation, place: int) -> None:
    """Rows that are their own unit: nothing to rank. The number is the server's own for a row, stored, for equality only.

    That no two rows have one number is verified (`_verify`): a unit has as many rows as its largest rank says.
    """
    schema = work.table(place)
    names = commas(f"s.{name}" for name in column_names(schema))
    hashed = f"xxhash64(xxhash64(k.key), {names})"
    rows = f"SELECT s.*, {hashed} AS h, monotonically_increasing_id() AS u FROM s{place} AS s CROSS JOIN {_KEY} AS k"
    stored = _on_grids(schema, rows, ["h", "u"])
    columns = commas([*column_names(schema), *grid_columns(schema)])
    work.write(f"t{place}", f"SELECT {columns}, u AS __u, h AS __h, 1L AS __r FROM ({stored}) AS x")


def _rank(work: SparkPreparation, place: int) -> None:
    """Rank rows inside their units, keep the first ones, and number the values that one groups by."""
    schema = work.table(place)
    columns, names = column_names(schema), commas(column_names(schema))
    owner = f"c{schema.index(getattr(schema.table.unit, 'column', ''))}"
    most = stored_rows(schema.table, work.schema.study)
    owned = f"SELECT s.*, o.h, o.u FROM s{place} AS s JOIN ({_owners(work, place)}) AS o ON s.{owner} = o.value"
    hashed = f"SELECT *, xxhash64(h, {names}) AS p FROM ({owned}) AS a"
    occurring = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY u, p ORDER BY {names}) AS k FROM ({hashed}) AS b"
    order = f"CASE WHEN k = 1 THEN p ELSE xxhash64(p, k) END, {names}, k"
    rank = f"CAST(ROW_NUMBER() OVER (PARTITION BY u ORDER BY {order}) AS BIGINT)"
    ranked = f"SELECT {names}, h, u, {rank} AS r FROM ({occurring}) AS c"
    kept = f"SELECT * FROM ({ranked}) AS d WHERE r <= {most:d}"
    texts = _long_texts(schema)
    if texts:
        running = commas(
            f"SUM(octet_length({name})) OVER (PARTITION BY u ORDER BY r ROWS UNBOUNDED PRECEDING) AS n{name}"
            for name in texts
        )
        cut = commas(
            f"CASE WHEN n{name} <= {UNIT_TEXT_BYTES} THEN {name} END AS {name}" if name in texts else name for name in columns
        )
        kept = f"SELECT {cut}, h, u, r FROM (SELECT *, {running} FROM ({kept}) AS e) AS f"
    keys = [f"c{number}" for number in numbered_columns(schema)]
    if keys:
        first = commas(f"MIN(r) OVER (PARTITION BY u, {name}) AS m{name}" for name in keys)
        number = commas(f"DENSE_RANK() OVER (PARTITION BY u ORDER BY m{name}) AS o{name}" for name in keys)
        kept = f"SELECT *, {number} FROM (SELECT *, {first} FROM ({kept}) AS g) AS i"
    more = [name for key in keys for name in (f"m{key}", f"o{key}")]
    stored = _on_grids(schema, kept, ["h", "u", "r", *more])
    own = ["u AS __u", "h AS __h", "r AS __r"]
    own += [
        text
        for key in keys
        for text in (f"CAST(least(o{key}, {MORE}) AS INT) AS __d{key[1:]}", f"(r = m{key}) AS __f{key[1:]}")
    ]
    work.write(
        f"t{place}", f"SELECT {commas([*columns, *grid_columns(schema), *own])} FROM ({stored}) AS y", by=("__u", "__r")
    )


def _long_texts(schema: TableSchema) -> list[str]:
    """The columns whose texts a unit has a limited number of bytes for: not those of few values, nor whose a row is."""
    owner = getattr(schema.table.unit, "column", None)
    free = {field.name for field in schema.fields if field.declared is None or field.declared.values is None} - {owner}
    texts = [place for place, field in enumerate(schema.fields) if field.type is Type.STRING and field.name in free]
    return [f"c{place}" for place in texts]


def _on_grids(schema: TableSchema, rows: str, through: list[str]) -> str:
    """Return rows with the places of bounded numbers on their grids, in two layers as questions compute them."""
    grids = grid_columns(schema)
    kept = [*column_names(schema), *through]
    middle = [f"{_scaled(name, column)} AS s{name}" for name, column in grids.items()]
    last = [f"CAST({clamp_to_ends(f's{name}', 0, _steps(column))} AS INT) AS {name}" for name, column in grids.items()]
    return f"SELECT {commas([*kept, *last])} FROM (SELECT {commas([*kept, *middle])} FROM ({rows}) AS q) AS z"


def _scaled(name: str, column: Column) -> str:
    grid = column_grid(column)
    if grid is None:
        raise AssertionError(column.name)
    x = f"c{name[1:]}"
    exact = (
        column.type is Type.INTEGER and grid.exponent == 0 and max(abs(grid.start), abs(grid.start + grid.steps)) > 1 << 53
    )
    x = x if exact or column.type is not Type.INTEGER else f"CAST({x} AS DOUBLE)"
    return scale_to_steps(x, grid, 0, SPARK, integers=exact)


def _steps(column: Column) -> int:
    grid = column_grid(column)
    return 0 if grid is None else grid.steps


def _verify(work: SparkPreparation, place: int) -> None:
    """Verify what questions count on.

    Claim   Every row has an owner; ranks of a unit are 1, 2, … without a gap; every stored integer is on its grid.
    Source  Every row and every unit was looked at, in the files that are then only read.
    """
    schema = work.table(place)
    off = [f"{name} < 0 OR {name} > {_steps(column):d}" for name, column in grid_columns(schema).items()]
    wrong = " OR ".join(["__u IS NULL OR __h IS NULL OR __r IS NULL", *off])
    ranks = "COUNT(*) <> MAX(__r) OR COUNT(DISTINCT __r) <> COUNT(*)"
    if work.rows(f"SELECT 1 AS x FROM t{place} WHERE {wrong} LIMIT 1") or work.rows(
        f"SELECT 1 AS x FROM (SELECT __u FROM t{place} GROUP BY __u HAVING {ranks}) AS u LIMIT 1"
    ):
        raise Failed("The server did not store rows as they were to be prepared.")
