# ruff: noqa: S608 -- nothing but names of ours enters
"""The rank of a row inside its unit, and rows in the order of their units.

    __r = ROW_NUMBER() OVER (PARTITION BY unit ORDER BY PRF(h, all columns, k), all columns, k)

with k the number of the row among its unit's rows that equal it, so ties are between identical rows only. PRF(…, 1) is a hash
p of (h, all columns), and PRF(…, k) a hash of (p, k). The whole formula is needed only for units with two equal p; for all
others the rank is the place in the order of p. So rows are sorted once, by (u, p): the place of a row in that order, less
that of its unit's first row, is its rank; units with equal p, found by looking at neighbours, are ranked by the formula. Rows
are stored as they lie then, without another sort: what matters is that each unit's rows lie together, in the order of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.engines.duckdb import reading
from curador.engines.duckdb.numbering import as_arrow, as_numpy, columns_to_number, number_rows, number_values
from curador.engines.duckdb.spelling import UNIT_PARTS, commas
from curador.errors import Failed
from curador.plan.model import column_grid
from curador.plan.ownership import numbered_columns
from curador.plan.work import UNIT_TEXT_BYTES
from curador.study.model import UnitColumn
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    from numpy.typing import NDArray

    from curador.engines.duckdb.numbering import Arrow
    from curador.study.model import TableSchema

_SMALL = 16_000_000
_PASSES = 4
_TEXT_BYTES = 16
_OWN_BYTES = 8
_SAMPLE = 10_000


@dataclass(frozen=True, slots=True)
class OwnedRows:
    """Rows (c0, c1, …) and the relation (value, h, u) that says whom a value of their `column` belongs to.

    units  how many units there are: u is from 0 to this
    """

    rows: str
    column: str
    owners: str
    units: int


def pseudorandom(names: str) -> str:
    """Return p: a hash of the unit's hash and all columns.

    The inner hash combines its arguments by XOR; alone it would prefer the same values in every unit. The outer one mixes.
    """
    return f"hash(hash(h, {names}))"


def next_occurrence(p: str, k: str) -> str:
    """Return PRF(…, k) from p = PRF(…, 1)."""
    return f"CASE {k} WHEN 1 THEN {p} ELSE hash(hash({p}, {k})) END"


def rank_by_formula(relation: str, names: str, carried: str) -> str:
    """Return the SELECT of `carried` and the rank r, by the formula, of a relation with columns u, p and all columns."""
    occurrence = f"row_number() OVER (PARTITION BY u, p ORDER BY {names})"
    numbered = f"SELECT *, {occurrence} AS k FROM {relation}"
    order = f"{next_occurrence('p', 'k')}, {names}, k"
    return f"SELECT {carried}, row_number() OVER (PARTITION BY u ORDER BY {order}) AS r FROM ({numbered})"


def rank_in_one_sort(relation: str, names: str, carried: str) -> str:
    """Return what `formula` returns, sorting once the rows of units in which no two p are equal.

    Claim   The rank is the formula's. In a unit without equal p the order of p is the formula's order, as k is 1 everywhere;
            a unit with equal p has two neighbours in the order of p that show it, and all its rows go by the formula.
    """
    sort = "PARTITION BY u ORDER BY p"
    placed = f"SELECT {carried}, p, row_number() OVER ({sort}) AS r, lag(p) OVER ({sort}) = p AS tie FROM {relation}"
    alone = f"SELECT {carried}, r FROM placed ANTI JOIN tied USING (u)"
    others = rank_by_formula("(SELECT * FROM placed SEMI JOIN tied USING (u))", names, carried)
    tied = "SELECT DISTINCT u FROM placed WHERE tie"
    return f"WITH placed AS MATERIALIZED ({placed}), tied AS ({tied}) {alone} UNION ALL {others}"


def rank(connection: duckdb.DuckDBPyConnection, schema: TableSchema, owned: OwnedRows, memory: int, most: int) -> None:
    """Make t<i> of staged rows: in passes over ranges of units, each sorted, ranked and appended.

    most  rows of one unit that are kept, those of the lowest ranks
    """
    place = owned.rows.rpartition(".s")[2]
    grids, keys = reading.grids(schema), [f"c{index}" for index in numbered_columns(schema)]
    number = np.dtype(np.uint16) if most < 1 << 16 else np.dtype(np.int64)
    connection.execute(f"CREATE TABLE t{place} ({commas(_columns(schema, keys, number))})").fetchall()
    connection.execute("SET arrow_large_buffer_size = true").fetchall()  # texts of a chunk may be more than two gigabytes
    connection.execute("SET max_vacuum_tasks = 0").fetchall()  # nothing is deleted; ends of statements would be written twice
    width = _row_bytes(connection, schema, owned)
    names, chunk = reading.column_names(schema), max(1, min(_CHUNK, _CHUNK_BYTES // width))
    passes = _passes(connection, owned, width, memory)
    one = RankingPass(connection, f"t{place}", names, grids, keys, _long_texts(schema), most, owned, number, chunk)
    for part in range(passes):
        one.run(owned.units * part // passes, owned.units * (part + 1) // passes)
    verify_order(connection, f"t{place}")


def _columns(schema: TableSchema, keys: list[str], number: np.dtype[Any]) -> list[str]:
    """The columns of a prepared table, each of ours with how it is packed: said, so that other ways need not be tried.

    Rows of a unit lie together, so that a unit's number and hash come in runs. Numbers inside a unit are small already.
    """
    packed = [
        f"{name} INTEGER USING COMPRESSION {'bitpacking' if grid.steps < _WIDE_STEPS else 'uncompressed'}"
        for name, grid in ((name, column_grid(column)) for name, column in reading.grid_columns(schema).items())
        if grid is not None
    ]
    runs = ["__u BIGINT", "__h UBIGINT", "__b UTINYINT"]
    small = ["__r USMALLINT" if number == np.uint16 else "__r BIGINT", *columns_to_number(keys)]
    own = [f"{one} USING COMPRESSION rle" for one in runs] + [f"{one} USING COMPRESSION uncompressed" for one in small]
    return [*_kept_types(schema), *packed, *own]


def _kept_types(schema: TableSchema) -> list[str]:
    """The columns of the table itself. Whole numbers that say whose a row is come in runs as well."""
    unit = schema.table.unit
    owner = unit.column if isinstance(unit, UnitColumn) and not schema.table.single else None
    return [
        f"{kept} USING COMPRESSION rle" if field.name == owner and field.type == Type.INTEGER else kept
        for kept, field in zip(reading.column_types(schema), schema.fields, strict=True)
    ]


def verify_order(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Verify how the rows of a prepared table lie: questions count on it (`engines/lower/relation.py:can_stream`).

    Claim   Every row has an owner, and the rows of a unit lie in consecutive places, in the order of `__r` = 1, 2, …
    Source  Each row but the first was compared with the row of the place before its own: it follows that one in its unit, or
            it is its unit's first. No two units' first rows are of one unit, so a unit begins once.
    """
    compared = f"""
        SELECT rowid AS id, __u, __r, lag(rowid, 1, -1) OVER () AS before, lag(__u, 1, -1) OVER () AS before_u,
               lag(__r, 1, 0) OVER () AS before_r
        FROM {table}"""
    apart = "before <> id - 1 OR __u IS NULL OR __r <> CASE WHEN __u = before_u THEN before_r + 1 ELSE 1 END"
    disorder = f"SELECT 1 FROM ({compared}) WHERE {apart} LIMIT 1"
    if connection.execute(disorder).fetchall() or _begins_twice(connection, table):
        raise Failed("The engine did not keep the order in which it had sorted rows.")


def _begins_twice(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Whether two first rows are of one unit."""
    firsts = connection.sql(f"SELECT __u FROM {table} WHERE __r = 1").to_arrow_table().combine_chunks().column(0)
    return bool(firsts.num_chunks and (np.bincount(as_numpy(firsts.chunk(0))) > 1).any())


def _long_texts(schema: TableSchema) -> list[str]:
    """The columns whose texts a unit has a limited number of bytes for: not those of few values, nor whose a row is."""
    owner = getattr(schema.table.unit, "column", None)
    return [
        f"c{place}"
        for place, field in enumerate(schema.fields)
        if field.type == "string" and field.name != owner and (field.declared is None or field.declared.values is None)
    ]


_CHUNK = 1 << 20
"""Rows that are numbered and written together, fewer where they are wide."""

_CHUNK_BYTES = 1 << 26
"""About how many bytes these have together."""

_WRITTEN_BYTES = 1 << 28
"""Chunks are written together up to about so many bytes: where one statement ends, a part of the file is written twice."""

_LOOK = 1 << 16
"""Rows whose neighbours are compared together: what is made of them stays in a processor's cache."""


_WIDE_STEPS = 1 << 24
"""Numbers of steps from here on are stored as they are: packed they would be hardly smaller."""


@dataclass(frozen=True, slots=True)
class RankingPass:
    """How a range of units is ranked: sorted by (u, p), numbered where they lie, and appended without another sort.

    keys    columns whose values are numbered (`numbering.py`)
    texts   columns whose texts are shortened where a unit has too many
    most    rows of one unit that are kept: those of the lowest ranks
    number  what a rank is stored in
    chunk   rows that are numbered and written together

    One number is sorted by: k, the unit's place in the range, and behind it as many of the first bits of p as there is room
    for. Units in which two rows have the same k, and those whose texts are shortened, come behind the others: ranked by the
    formula, with all of p, and sorted again. What follows from a unit alone is not carried through the sort.
    """

    connection: duckdb.DuckDBPyConnection
    table: str
    names: list[str]
    grids: dict[str, str]
    keys: list[str]
    texts: list[str]
    most: int
    owned: OwnedRows
    number: np.dtype[Any]
    chunk: int

    def run(self, first: int, behind: int) -> None:
        """Append the rows of the units from `first` to the one before `behind`."""
        shift = 64 - max((behind - first - 1).bit_length(), 1)
        owners = f"(SELECT * FROM {self.owned.owners} WHERE u >= {first} AND u < {behind})"
        rows = f"SELECT s.*, o.h, o.u FROM {self.owned.rows} AS s JOIN {owners} AS o ON s.{self.owned.column} = o.value"
        columns = commas(self.names)
        hashed = f"SELECT *, {pseudorandom(columns)} AS p FROM ({rows})"
        key = f"((u - {first})::UBIGINT << {shift}) | (p >> {64 - shift})"
        self._do(f"CREATE TEMP TABLE ranked AS SELECT {columns}, {key} AS k FROM ({hashed}) ORDER BY k")
        units = UnitRange(first, shift, self._hashes(owners, first, behind))
        unit = f"(k >> {shift})::BIGINT + {first}"
        wordy = " OR ".join(f"sum(strlen({name})) > {UNIT_TEXT_BYTES}" for name in self.texts)
        too_long = f"SELECT {unit} AS u FROM ranked GROUP BY ALL HAVING {wordy}"
        known = np.array([int(str(one)) for (one,) in self._do(too_long)] if wordy else [], np.int64)
        late = self._append("ranked", units, known)
        if len(late):
            self._append_late(units, late, unit, too_long if wordy else None)
        self._do("DROP TABLE ranked")

    def _hashes(self, owners: str, first: int, behind: int) -> NDArray[np.uint64]:
        """Return the hash of every unit of a range, in its place."""
        read = self.connection.sql(f"SELECT u, h FROM {owners}").to_arrow_table().combine_chunks()
        hashes = np.zeros(behind - first, np.uint64)
        if read.num_rows:
            hashes[as_numpy(read.column("u").chunk(0)) - first] = as_numpy(read.column("h").chunk(0))
        return hashes

    def _append_late(self, units: UnitRange, late: NDArray[np.int64], unit: str, too_long: str | None) -> None:
        """Append the units that come behind the others."""
        columns = commas(self.names)
        self.connection.register("waiting", as_arrow({"u": late, "h": units.hashes[late - units.first]}))
        # taken out first: they are few, and what follows then reads them alone
        waiting = f"SELECT s.*, w.u, w.h FROM (SELECT *, {unit} AS u FROM ranked) AS s JOIN waiting AS w USING (u)"
        self._do(f"CREATE TEMP TABLE tied AS SELECT {columns}, u, {pseudorandom(columns)} AS p FROM ({waiting})")
        self.connection.unregister("waiting")
        placed = rank_by_formula("tied", columns, f"{columns}, u")
        if too_long is not None:
            placed = _shorten_texts(placed, too_long, self.texts)
        key = f"((u - {units.first})::UBIGINT << {units.shift}) | r::UBIGINT"
        chosen = f"SELECT {columns}, {key} AS k FROM ({placed}) WHERE r <= {self.most}"
        self._do(f"CREATE TEMP TABLE late AS {chosen} ORDER BY k")
        self._do("DROP TABLE tied")
        if len(self._append("late", units, np.empty(0, np.int64))):
            raise Failed("Two rows of one unit have the same rank.")
        self._do("DROP TABLE late")

    def _do(self, statement: str) -> list[tuple[object, ...]]:
        return self.connection.execute(statement).fetchall()

    def _append(self, source: str, units: UnitRange, known: NDArray[np.int64]) -> NDArray[np.int64]:
        """Append the rows of a source, but those of units that come later; return these units.

        known  units that do; others are those in which two rows are equal in k
        """
        order = self._order(source)
        lying = _find_units(order, units, known)
        chunks: list[Arrow] = []
        for unit, behind in _cut(lying.ends, self.chunk):
            kept = lying.kept(unit, behind, self.most)
            if not kept.any():
                continue
            start = int(lying.ends[unit])
            end = int(lying.ends[behind]) if behind > unit + 1 else start + int(kept[0])
            rows = self._chunk(source, order, start, end)
            chunks.append(self._number(rows, units, lying, unit, behind))
            if sum(one.nbytes for one in chunks) > _WRITTEN_BYTES:
                self._write(chunks)
        self._write(chunks)
        return lying.places[lying.late] + units.first

    def _write(self, chunks: list[Arrow]) -> None:
        """Append chunks of numbered rows, and forget them. The engine keeps the order of an Arrow table that it inserts."""
        import pyarrow as pa

        if not chunks:
            return
        self.connection.register("numbered", pa.concat_tables(chunks))
        stored = commas([*self.names, *(f"{expression} AS {name}" for name, expression in self.grids.items())])
        own = commas(name for name in chunks[0].column_names if name.startswith("__"))
        self._do(f"INSERT INTO {self.table} SELECT {stored}, {own} FROM numbered WHERE __r BETWEEN 1 AND {self.most}")
        self.connection.unregister("numbered")
        chunks.clear()

    def _order(self, source: str) -> NDArray[np.uint64]:
        """Return what a source is ordered by."""
        read = self.connection.sql(f"SELECT k FROM {source}").to_arrow_table().column("k")
        return np.concatenate([as_numpy(chunk) for chunk in read.chunks]) if read.num_chunks else np.empty(0, np.uint64)

    def _chunk(self, source: str, order: NDArray[np.uint64], start: int, end: int) -> Arrow:
        """Return rows of a source as they lie.

        Claim   They are the rows from place `start` to the one before `end`, in their order, but for rows equal in k.
        Source  Every row's k was compared.
        """
        named = commas([*self.names, "k"])
        read = self.connection.sql(f"SELECT {named} FROM {source} WHERE rowid >= {start} AND rowid < {end}")
        rows = read.to_arrow_table()
        found = np.concatenate([as_numpy(chunk) for chunk in rows.column("k").chunks])
        if not np.array_equal(found, order[start:end]):
            raise Failed(_DISORDER)
        return rows

    def _number(self, chunk: Arrow, units: UnitRange, lying: LyingUnits, unit: int, behind: int) -> Arrow:
        """Return a chunk's rows, those of the units from `unit` to the one before `behind`, with their numbers.

        Claim   The numbers are those of `numbering.py` in the order in which rows lie, which is that of k; ranks are 0 in
                units that come later.
        """
        starts = lying.ends[unit:behind] - lying.ends[unit]
        counts = np.diff(starts, append=chunk.num_rows)
        places = lying.places[unit:behind]
        begins = np.zeros(chunk.num_rows, np.bool_)
        begins[starts] = True
        ranks = np.minimum(number_rows(begins), self.most + 1).astype(self.number)
        late = lying.late[unit:behind]
        if late.any():
            ranks[np.repeat(late, counts)] = 0
        hashes = units.hashes[places]
        columns: dict[str, NDArray[Any]] = {
            "__u": np.repeat(places + units.first, counts),
            "__h": np.repeat(hashes, counts),
            "__b": np.repeat((hashes >> np.uint64(64 - (UNIT_PARTS - 1).bit_length())).astype(np.uint8), counts),
            "__r": ranks,
        }
        for name in self.keys:
            values = number_values(begins, chunk.column(name).combine_chunks())
            columns |= dict(zip((f"__d{name[1:]}", f"__f{name[1:]}"), values, strict=True))
        numbers = as_arrow(columns)
        rows = chunk.drop_columns(["k"])
        for name in numbers.column_names:
            rows = rows.append_column(name, numbers.column(name))
        return rows


@dataclass(frozen=True, slots=True)
class UnitRange:
    """The units of a pass: the first of them, their hashes, and by how many bits k has them before what follows."""

    first: int
    shift: int
    hashes: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class LyingUnits:
    """The units of a source in the order in which they lie there.

    ends    where each begins, and behind them the number of rows
    places  of each in the range of the pass
    late    whether it comes later: two of its rows are equal in k, or it was known before
    """

    ends: NDArray[np.int64]
    places: NDArray[np.int64]
    late: NDArray[np.bool_]

    def kept(self, unit: int, behind: int, most: int) -> NDArray[np.int64]:
        """Return how many rows are kept now of the units from `unit` to the one before `behind`."""
        return np.where(self.late[unit:behind], 0, np.minimum(np.diff(self.ends[unit : behind + 1]), most))


_DISORDER = "The engine did not keep the order in which it had sorted rows."


def _find_units(order: NDArray[np.uint64], units: UnitRange, known: NDArray[np.int64]) -> LyingUnits:
    """Return the units of rows that lie in this order; stop where it is no order.

    Claim   No unit in which two rows are equal in k is missed.
    Source  Every row was compared with the one before it, and in a sorted sequence equal ones are neighbours.
    """
    room = np.uint64(units.shift)
    begins, tied = [np.zeros(min(len(order), 1), np.int64)], [np.empty(0, np.int64)]
    for start in range(1, len(order), _LOOK):
        rows, before = order[start : start + _LOOK], order[start - 1 : start - 1 + _LOOK][: len(order) - start]
        if (rows < before).any():
            raise Failed(_DISORDER)
        differ = rows ^ before
        tied.append(np.flatnonzero(differ == 0) + start)
        begins.append(np.flatnonzero(differ >> room) + start)
    starts = np.concatenate(begins)
    places = (order[starts] >> room).astype(np.int64)
    late = np.isin(places + units.first, known) if len(known) else np.zeros(len(starts), np.bool_)
    late[np.searchsorted(starts, np.concatenate(tied), side="right") - 1] = True
    return LyingUnits(np.append(starts, len(order)), places, late)


def _cut(ends: NDArray[np.int64], rows: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of whole units, of at most so many rows, more where one unit has more."""
    unit = 0
    while unit < len(ends) - 1:
        behind = max(int(np.searchsorted(ends, ends[unit] + rows, side="right")) - 1, unit + 1)
        yield unit, behind
        unit = behind


def _shorten_texts(placed: str, too_long: str, texts: list[str]) -> str:
    """Return the rows with the texts of a unit up to its limit: those of its first rows; NULL where they were left out.

    too_long  the SELECT of the units that have more

    Claim   The texts of one unit in one column have at most UNIT_TEXT_BYTES bytes; which are kept depends on its rows alone.
    """
    running = ", ".join(f"sum(strlen({name})) OVER (PARTITION BY u ORDER BY r) AS n{name}" for name in texts)
    cut = ", ".join(f"CASE WHEN n{name} <= {UNIT_TEXT_BYTES} THEN {name} END AS {name}" for name in texts)
    counted = f"SELECT *, {running} FROM ({placed}) SEMI JOIN ({too_long}) USING (u)"
    short = f"SELECT * EXCLUDE ({', '.join(f'n{name}' for name in texts)}) REPLACE ({cut}) FROM ({counted})"
    return f"{short} UNION ALL BY NAME SELECT * FROM ({placed}) ANTI JOIN ({too_long}) USING (u)"


def _row_bytes(connection: duckdb.DuckDBPyConnection, schema: TableSchema, owned: OwnedRows) -> int:
    """Return about how many bytes a row has, by a few of them."""
    fields = schema.fields
    fixed = sum(_TEXT_BYTES if field.type == "string" else 8 for field in fields) + _OWN_BYTES
    texts = [f"coalesce(strlen(c{place}), 0)" for place, field in enumerate(fields) if field.type == "string"]
    if texts:
        sample = f"SELECT list_sum([{commas(texts)}]) AS n FROM {owned.rows} LIMIT {_SAMPLE}"
        fixed += int(connection.execute(f"SELECT coalesce(avg(n), 0) FROM ({sample})").fetchall()[0][0])
    return fixed


def _passes(connection: duckdb.DuckDBPyConnection, owned: OwnedRows, width: int, memory: int) -> int:
    """Return in how many parts the table is ranked: a quarter at a time, less where memory is short, small tables at once.

    It depends on the rows, and nothing depends on it but time and memory.
    """
    whole = int(str(connection.execute(f"SELECT count(*) FROM {owned.rows}").fetchall()[0][0])) * width
    part = min(max(_SMALL, whole // _PASSES + 1), max(_SMALL // 8, memory // 6))
    return max(1, -(-whole // part))
