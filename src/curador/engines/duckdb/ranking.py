# ruff: noqa: S608 -- nothing but names of ours enters
"""The rank of a row inside its unit, and rows in the order of their units.

    __r = ROW_NUMBER() OVER (PARTITION BY unit ORDER BY PRF(h, all columns, k), all columns, k)

with k the number of the row among its unit's rows that equal it, so ties are between identical rows only. PRF(…, 1) is a hash
p of (h, all columns), and PRF(…, k) a hash of (p, k). The whole formula is needed only for units with two equal p; for all
others the rank is the place in the order of p. So rows are sorted once, by (u, p): the place of a row in that order, less
that of its unit's first row, is its rank; units with equal p, found by looking at neighbours, are ranked by the formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from curador.engines.duckdb import reading
from curador.engines.duckdb.quoting import listed
from curador.errors import Failed

if TYPE_CHECKING:
    import duckdb

    from curador.study.schema import TableSchema

_SMALL = 64_000_000
_PASSES = 6
_TEXT_BYTES = 16
_OWN_BYTES = 24
_SAMPLE = 10_000


@dataclass(frozen=True, slots=True)
class Owned:
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


def formula(relation: str, names: str, carried: str) -> str:
    """Return the SELECT of `carried` and the rank r, by the formula, of a relation with columns u, p and all columns."""
    occurrence = f"row_number() OVER (PARTITION BY u, p ORDER BY {names})"
    numbered = f"SELECT *, {occurrence} AS k FROM {relation}"
    order = f"{next_occurrence('p', 'k')}, {names}, k"
    return f"SELECT {carried}, row_number() OVER (PARTITION BY u ORDER BY {order}) AS r FROM ({numbered})"


def rank(connection: duckdb.DuckDBPyConnection, schema: TableSchema, owned: Owned, memory: int) -> None:
    """Make t<i> of staged rows: in passes over ranges of units, each sorted, ranked and appended."""
    place = owned.rows.rpartition(".s")[2]
    names = reading.column_names(schema)
    grids = reading.grids(schema)
    types = [*reading.column_types(schema), *(f"{name} INTEGER" for name in grids)]
    connection.execute(f"CREATE TABLE t{place} ({listed(types)}, __u BIGINT, __h UBIGINT, __r BIGINT)").fetchall()
    passes = _passes(connection, schema, owned, memory)
    for number in range(passes):
        first, behind = owned.units * number // passes, owned.units * (number + 1) // passes
        owners = f"(SELECT * FROM {owned.owners} WHERE u >= {first} AND u < {behind})"
        rows = f"SELECT s.*, o.h, o.u FROM {owned.rows} AS s JOIN {owners} AS o ON s.{owned.column} = o.value"
        _one_pass(connection, f"t{place}", rows, names, grids, unique=schema.table.unique)


def _one_pass(
    connection: duckdb.DuckDBPyConnection, table: str, rows: str, names: list[str], grids: dict[str, str], *, unique: bool
) -> None:
    def run(statement: str) -> list[tuple[object, ...]]:
        return connection.execute(statement).fetchall()

    columns = listed(names)
    run(f"CREATE TEMP TABLE ranked AS SELECT *, {pseudorandom(columns)} AS p FROM ({rows}) ORDER BY u, p")
    run("CREATE TEMP TABLE firsts AS SELECT u, min(rowid) AS first, max(rowid) AS last, count(*) AS n FROM ranked GROUP BY u")
    run(f"CREATE TEMP TABLE ties AS {_NEIGHBOURS}")
    holes = run("SELECT count(*) FROM firsts WHERE last - first + 1 <> n")[0][0]
    if holes or run("SELECT count(*) FROM ties WHERE disorder")[0][0]:
        raise Failed("The engine did not keep the order in which it had sorted rows.")
    tied = "(SELECT *, rowid AS id FROM ranked WHERE u IN (SELECT u FROM ties))"
    run(f"CREATE TEMP TABLE places AS {formula(tied, columns, 'id')}")
    stored = listed([*names, *(f"{expression} AS {name}" for name, expression in grids.items())])
    joined = "ranked AS s JOIN firsts AS f ON s.u = f.u LEFT JOIN places AS q ON q.id = s.rowid"
    placed = f"SELECT s.*, coalesce(q.r, s.rowid - f.first + 1) AS __r FROM {joined}"
    only = " WHERE __r = 1" if unique else ""
    run(f"INSERT INTO {table} SELECT {stored}, u AS __u, h AS __h, __r FROM ({placed}){only} ORDER BY u, __r")
    for name in ("ranked", "firsts", "ties", "places"):
        run(f"DROP TABLE {name}")


_NEIGHBOURS = """
    SELECT u, bool_or(disorder) AS disorder
    FROM (SELECT u, before_u = u AND before_p = p AS tie, before_u > u OR (before_u = u AND before_p > p) AS disorder
          FROM (SELECT u, p, lag(u) OVER places AS before_u, lag(p) OVER places AS before_p
                FROM ranked WINDOW places AS (ORDER BY rowid)))
    WHERE tie OR disorder GROUP BY u"""
"""Units with two equal p, and whether the order is not the one asked for."""


def _passes(connection: duckdb.DuckDBPyConnection, schema: TableSchema, owned: Owned, memory: int) -> int:
    """Return in how many parts the table is ranked: a sixth at a time, less where memory is short, small tables at once.

    It depends on the rows, and nothing depends on it but time and memory.
    """
    count = int(str(connection.execute(f"SELECT count(*) FROM {owned.rows}").fetchall()[0][0]))
    fields = schema.fields
    fixed = sum(_TEXT_BYTES if field.type == "string" else 8 for field in fields) + _OWN_BYTES
    texts = [f"coalesce(strlen(c{place}), 0)" for place, field in enumerate(fields) if field.type == "string"]
    if texts:
        sample = f"SELECT {' + '.join(texts)} AS n FROM {owned.rows} LIMIT {_SAMPLE}"
        fixed += int(connection.execute(f"SELECT coalesce(avg(n), 0) FROM ({sample})").fetchall()[0][0])
    whole = count * fixed
    part = min(max(_SMALL, whole // _PASSES + 1), max(_SMALL // 8, memory // 6))
    return max(1, -(-whole // part))
