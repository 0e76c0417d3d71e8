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
from curador.engines.duckdb.numbering import as_arrow, as_numpy, begins_unit, columns_to_number, number_rows, number_values
from curador.engines.duckdb.spelling import UNIT_PARTS, commas
from curador.errors import Failed
from curador.plan.model import column_grid
from curador.plan.ownership import numbered_columns
from curador.plan.work import UNIT_TEXT_BYTES

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

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
    one = RankingPass(
        connection, f"t{place}", reading.column_names(schema), grids, keys, _long_texts(schema), most, owned, number
    )
    passes = _passes(connection, schema, owned, memory)
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
    return [*reading.column_types(schema), *packed, *own]


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
"""Rows that are looked at together while they are numbered, more where a unit has more."""


_WIDE_STEPS = 1 << 24
"""Numbers of steps from here on are stored as they are: packed they would be hardly smaller."""


@dataclass(frozen=True, slots=True)
class RankingPass:
    """How a range of units is ranked: sorted by (u, p), numbered where they lie, and appended without another sort.

    keys    columns whose values are numbered (`numbering.py`)
    texts   columns whose texts are shortened where a unit has too many
    most    rows of one unit that are kept: those of the lowest ranks
    number  what a rank is stored in

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
        waiting = (
            f"SELECT s.*, w.u, w.h FROM (SELECT *, rowid AS id, {unit} AS u FROM ranked) AS s JOIN waiting AS w USING (u)"
        )
        self._do(f"CREATE TEMP TABLE tied AS SELECT {columns}, u, h, id, {pseudorandom(columns)} AS p FROM ({waiting})")
        self.connection.unregister("waiting")
        places = rank_by_formula("tied", columns, "id")
        placed = f"SELECT s.* EXCLUDE (id), q.r FROM tied AS s JOIN ({places}) AS q USING (id)"
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
        import pyarrow as pa

        pieces, late = self._number(source, units, known)
        if pieces:
            self.connection.register("numbers", pa.concat_tables([as_arrow(one) for one in pieces]))
            stored = commas([*self.names, *(f"{expression} AS {name}" for name, expression in self.grids.items())])
            joined = f"{source} AS s POSITIONAL JOIN numbers"
            kept = f"__r BETWEEN 1 AND {self.most}"
            self._do(f"INSERT INTO {self.table} SELECT {stored}, numbers.* FROM {joined} WHERE {kept}")
            self.connection.unregister("numbers")
        return late

    def _number(
        self, source: str, units: UnitRange, known: NDArray[np.int64]
    ) -> tuple[list[dict[str, NDArray[Any]]], NDArray[np.int64]]:
        """Return the numbers of a source's rows, in the places in which they lie, piece by piece; and units that come later.

        Claim   The numbers are those of `numbering.py` in the order in which rows lie, which is that of k; ranks are 0 in
                units that come later, and no unit with equal rows is missed.
        Source  Every row's place is the one expected, and every row was compared with the one before it.
        """
        total = int(str(self._do(f"SELECT count(*) FROM {source}")[0][0]))
        named = commas(["rowid AS id", "k", *self.keys])
        pieces: list[dict[str, NDArray[Any]]] = []
        late: list[NDArray[np.int64]] = []
        start, began, before, room = 0, 0, None, np.uint64(units.shift)
        while start < total:
            behind = start + max(_CHUNK, 2 * self.most)
            read = self.connection.sql(f"SELECT {named} FROM {source} WHERE rowid >= {start} AND rowid < {behind}")
            rows = read.to_arrow_table().combine_chunks()
            ids, order = (as_numpy(rows.column(name).chunk(0)) for name in ("id", "k"))
            places = (order >> room).astype(np.int64)
            begins, tied = _compare_neighbours(places, order, ids - start, before)
            starts = np.flatnonzero(begins)
            end = len(order) if behind >= total or starts[-1] == 0 else int(starts[-1])
            number = number_rows(begins)
            waiting = np.isin(places[starts] + units.first, known) if len(known) else np.zeros(len(starts), np.bool_)
            waiting[np.searchsorted(starts, np.flatnonzero(tied), side="right") - 1] = True
            if before is not None and places[0] == before >> room:  # the rest of a unit of very many rows, beyond the most
                number[: starts[1] if len(starts) > 1 else end] = self.most + 1
                if waiting[0]:
                    for piece in pieces[began:]:
                        piece["__r"][:] = 0
            else:
                began = len(pieces)
            if waiting.any():
                late.append(places[starts][waiting & (starts < end)] + units.first)
                number[np.repeat(waiting, np.diff(starts, append=len(order)))] = 0
            hashes = units.hashes[places[:end]]
            columns: dict[str, NDArray[Any]] = {
                "__u": places[:end] + units.first,
                "__h": hashes,
                "__b": (hashes >> np.uint64(64 - (UNIT_PARTS - 1).bit_length())).astype(np.uint8),
                "__r": np.minimum(number[:end], self.most + 1).astype(self.number),
            }
            for name in self.keys:
                values = number_values(begins[:end], rows.column(name).chunk(0).slice(0, end))
                columns |= dict(zip((f"__d{name[1:]}", f"__f{name[1:]}"), values, strict=True))
            pieces.append(columns)
            start, before = start + end, order[end - 1]
        return pieces, np.unique(np.concatenate(late)) if late else np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class UnitRange:
    """The units of a pass: the first of them, their hashes, and by how many bits k has them before what follows."""

    first: int
    shift: int
    hashes: NDArray[np.uint64]


def _compare_neighbours(
    places: NDArray[np.int64], order: NDArray[np.uint64], ids: NDArray[np.int64], before: np.uint64 | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows are their unit's first here, and which equal the row before; stop where rows lie in another order.

    places  of units
    order   what rows are ordered by: k
    before  that of the row before the first
    """
    begins = begins_unit(places)
    tied = np.zeros(len(order), np.bool_)
    np.equal(order[1:], order[:-1], out=tied[1:])
    disorder = bool((order[1:] < order[:-1]).any() or (np.diff(ids) != 1).any() or ids[0])
    if before is not None:
        disorder |= bool(order[0] < before)
        tied[0] = order[0] == before
    if disorder:
        raise Failed("The engine did not keep the order in which it had sorted rows.")
    return begins, tied


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


def _passes(connection: duckdb.DuckDBPyConnection, schema: TableSchema, owned: OwnedRows, memory: int) -> int:
    """Return in how many parts the table is ranked: a quarter at a time, less where memory is short, small tables at once.

    It depends on the rows, and nothing depends on it but time and memory.
    """
    count = int(str(connection.execute(f"SELECT count(*) FROM {owned.rows}").fetchall()[0][0]))
    fields = schema.fields
    fixed = sum(_TEXT_BYTES if field.type == "string" else 8 for field in fields) + _OWN_BYTES
    texts = [f"coalesce(strlen(c{place}), 0)" for place, field in enumerate(fields) if field.type == "string"]
    if texts:
        sample = f"SELECT list_sum([{commas(texts)}]) AS n FROM {owned.rows} LIMIT {_SAMPLE}"
        fixed += int(connection.execute(f"SELECT coalesce(avg(n), 0) FROM ({sample})").fetchall()[0][0])
    whole = count * fixed
    part = min(max(_SMALL, whole // _PASSES + 1), max(_SMALL // 8, memory // 6))
    return max(1, -(-whole // part))
