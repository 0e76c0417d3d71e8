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
from curador.engines.duckdb.spelling import commas
from curador.errors import Failed
from curador.plan.ownership import numbered_columns
from curador.plan.work import UNIT_TEXT_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb
    from numpy.typing import NDArray

    from curador.study.model import TableSchema

_SMALL = 16_000_000
_PASSES = 6
_TEXT_BYTES = 16
_OWN_BYTES = 24
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
    names, grids = reading.column_names(schema), reading.grids(schema)
    keys = [f"c{index}" for index in numbered_columns(schema)]
    types = ["__u BIGINT", "__r BIGINT", *columns_to_number(keys), *(f"{name} INTEGER" for name in grids)]
    packed = {one.partition(" ")[0]: f"{one} USING COMPRESSION bitpacking" for one in types}
    packed["__h"] = "__h UBIGINT USING COMPRESSION rle"  # said, so that others need not be tried
    order = [*grids, "__u", "__h", "__r", *(one.partition(" ")[0] for one in columns_to_number(keys))]
    columns = [*reading.column_types(schema), *(packed[name] for name in order)]
    connection.execute(f"CREATE TABLE t{place} ({commas(columns)})").fetchall()
    one = RankingPass(connection, f"t{place}", names, grids, keys, _long_texts(schema), most)
    passes = _passes(connection, schema, owned, memory)
    for number in range(passes):
        first, behind = owned.units * number // passes, owned.units * (number + 1) // passes
        owners = f"(SELECT * FROM {owned.owners} WHERE u >= {first} AND u < {behind})"
        one.run(f"SELECT s.*, o.h, o.u FROM {owned.rows} AS s JOIN {owners} AS o ON s.{owned.column} = o.value")
    verify_order(connection, f"t{place}")


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
    twice = f"SELECT 1 FROM {table} WHERE __r = 1 HAVING count(*) <> count(DISTINCT __u)"
    if any(connection.execute(statement).fetchall() for statement in (disorder, twice)):
        raise Failed("The engine did not keep the order in which it had sorted rows.")


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


@dataclass(frozen=True, slots=True)
class RankingPass:
    """How a range of units is ranked: sorted by (u, p), numbered where they lie, and appended without another sort.

    keys   columns whose values are numbered (`numbering.py`)
    texts  columns whose texts are shortened where a unit has too many
    most   rows of one unit that are kept: those of the lowest ranks

    Units with equal p, and those whose texts are shortened, come behind the others: ranked by the formula, and sorted again.
    """

    connection: duckdb.DuckDBPyConnection
    table: str
    names: list[str]
    grids: dict[str, str]
    keys: list[str]
    texts: list[str]
    most: int

    def run(self, rows: str) -> None:
        """Append these rows, which have c0 and on, h and u."""
        columns = commas(self.names)
        self._do(f"CREATE TEMP TABLE ranked AS SELECT *, {pseudorandom(columns)} AS p FROM ({rows}) ORDER BY u, p")
        wordy = " OR ".join(f"sum(strlen({name})) > {UNIT_TEXT_BYTES}" for name in self.texts)
        too_long = f"SELECT u FROM ranked GROUP BY u HAVING {wordy}"
        late = self._number("ranked", "p", [int(str(one)) for (one,) in self._do(too_long)] if wordy else [])
        self._append("ranked")
        if len(late):
            self._late(late, too_long if wordy else None)
        self._do("DROP TABLE ranked")

    def _late(self, units: NDArray[np.int64], too_long: str | None) -> None:
        """Append the units that come behind the others."""
        columns = commas(self.names)
        self.connection.register("waiting", as_arrow({"u": units}))
        # taken out first: they are few, and what follows then reads them alone
        self._do("CREATE TEMP TABLE tied AS SELECT *, rowid AS id FROM ranked WHERE u IN (SELECT u FROM waiting)")
        self.connection.unregister("waiting")
        places = rank_by_formula("tied", columns, "id")
        placed = f"SELECT s.* EXCLUDE (id), q.r FROM tied AS s JOIN ({places}) AS q USING (id)"
        if too_long is not None:
            placed = _shorten_texts(placed, too_long, self.texts)
        self._do(f"CREATE TEMP TABLE late AS SELECT * FROM ({placed}) WHERE r <= {self.most} ORDER BY u, r")
        self._do("DROP TABLE tied")
        if len(self._number("late", "r")):
            raise Failed("Two rows of one unit have the same rank.")
        self._append("late")
        self._do("DROP TABLE late")

    def _do(self, statement: str) -> list[tuple[object, ...]]:
        return self.connection.execute(statement).fetchall()

    def _append(self, source: str) -> None:
        """Append the rows of a source, each with its numbers, which lie in the same places of another table."""
        stored = commas([*self.names, *(f"{expression} AS {name}" for name, expression in self.grids.items())])
        joined = f"{source} AS s POSITIONAL JOIN numbers"
        self._do(
            f"INSERT INTO {self.table} SELECT {stored}, u, h, numbers.* FROM {joined} WHERE __r BETWEEN 1 AND {self.most}"
        )
        self._do("DROP TABLE numbers")

    def _number(self, source: str, order: str, known: Sequence[int] = ()) -> NDArray[np.int64]:
        """Make the numbers of a source's rows, in the places in which they lie; return the units that come later.

        order  what a unit's rows are ordered by; units in which two rows are equal in it come later
        known  others that do

        Claim   The numbers are those of `numbering.py` in the order in which rows lie, which is that of units and of `order`;
                they are 0 in units that come later, and no unit with equal rows is missed.
        Source  Every row's place is the one expected, and every row was compared with the one before it.
        """
        self._do(f"CREATE TEMP TABLE numbers ({commas(['__r BIGINT', *columns_to_number(self.keys)])})")
        total = int(str(self._do(f"SELECT count(*) FROM {source}")[0][0]))
        named = commas(["rowid AS id", "u", f"{order} AS p", *self.keys])
        late: list[NDArray[np.int64]] = []
        start, began, before = 0, 0, None
        while start < total:
            behind = start + max(_CHUNK, 2 * self.most)
            read = self.connection.sql(f"SELECT {named} FROM {source} WHERE rowid >= {start} AND rowid < {behind}")
            rows = read.to_arrow_table().combine_chunks()
            ids, units, places = (as_numpy(rows.column(name).chunk(0)) for name in ("id", "u", "p"))
            begins, tied = _compare_neighbours(units, places, ids - start, before)
            starts = np.flatnonzero(begins)
            end = len(units) if behind >= total or starts[-1] == 0 else int(starts[-1])
            number = number_rows(begins)
            waiting = np.isin(units[starts], np.asarray(known, np.int64))
            waiting[np.searchsorted(starts, np.flatnonzero(tied), side="right") - 1] = True
            if before is not None and units[0] == before[0]:  # the rest of a unit of very many rows, beyond the most
                number[: starts[1] if len(starts) > 1 else end] = self.most + 1
                if waiting[0]:
                    self._do(f"UPDATE numbers SET __r = 0 WHERE rowid >= {began} AND rowid < {start}")
            else:
                began = start
            if waiting.any():
                late.append(units[starts][waiting & (starts < end)])
                number[np.repeat(waiting, np.diff(starts, append=len(units)))] = 0
            columns: dict[str, NDArray[Any]] = {"__r": number[:end]}
            for name in self.keys:
                values = number_values(begins[:end], rows.column(name).chunk(0).slice(0, end))
                columns |= dict(zip((f"__d{name[1:]}", f"__f{name[1:]}"), values, strict=True))
            self.connection.register("numbered", as_arrow(columns))
            self._do("INSERT INTO numbers SELECT * FROM numbered")
            self.connection.unregister("numbered")
            start, before = start + end, (units[end - 1], places[end - 1])
        return np.unique(np.concatenate(late)) if late else np.empty(0, np.int64)


def _compare_neighbours(
    units: NDArray[np.int64], places: NDArray[Any], ids: NDArray[np.int64], before: tuple[Any, Any] | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows are their unit's first here, and which equal the row before; stop where rows lie in another order.

    before  the unit and the place of the row before the first
    """
    begins = begins_unit(units)
    tied = np.zeros(len(units), np.bool_)
    np.equal(places[1:], places[:-1], out=tied[1:])
    falls = (places[1:] < places[:-1]) & ~begins[1:]
    tied &= ~begins
    disorder = bool(falls.any() or (units[1:] < units[:-1]).any() or (np.diff(ids) != 1).any() or ids[0])
    if before is not None and units[0] <= before[0]:
        disorder |= bool(units[0] < before[0] or places[0] < before[1])
        tied[0] = places[0] == before[1]
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
    """Return in how many parts the table is ranked: a sixth at a time, less where memory is short, small tables at once.

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
