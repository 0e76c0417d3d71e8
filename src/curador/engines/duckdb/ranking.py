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
from curador.engines.duckdb.spelling import commas
from curador.errors import Failed
from curador.plan.work import UNIT_TEXT_BYTES

if TYPE_CHECKING:
    import duckdb

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
    names = reading.column_names(schema)
    grids = reading.grids(schema)
    types = [*reading.column_types(schema), *(f"{name} INTEGER" for name in grids)]
    connection.execute(f"CREATE TABLE t{place} ({commas(types)}, __u BIGINT, __h UBIGINT, __r BIGINT)").fetchall()
    passes = _passes(connection, schema, owned, memory)
    for number in range(passes):
        first, behind = owned.units * number // passes, owned.units * (number + 1) // passes
        owners = f"(SELECT * FROM {owned.owners} WHERE u >= {first} AND u < {behind})"
        rows = f"SELECT s.*, o.h, o.u FROM {owned.rows} AS s JOIN {owners} AS o ON s.{owned.column} = o.value"
        _one_pass(connection, f"t{place}", rows, names, grids, most=most, texts=_long_texts(schema))
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


def _one_pass(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    rows: str,
    names: list[str],
    grids: dict[str, str],
    *,
    most: int,
    texts: list[str],
) -> None:
    def run(statement: str) -> list[tuple[object, ...]]:
        return connection.execute(statement).fetchall()

    columns = commas(names)
    run(f"CREATE TEMP TABLE ranked AS SELECT *, {pseudorandom(columns)} AS p FROM ({rows}) ORDER BY u, p")
    run(f"CREATE TEMP TABLE marks AS {_MARKS}")
    disorder, beginnings = run("SELECT count(*) FILTER (disorder), count(*) FILTER (beginning) FROM marks")[0]
    if disorder != 0 or beginnings not in {0, 1}:
        raise Failed("The engine did not keep the order in which it had sorted rows.")
    tied = "(SELECT *, rowid AS id FROM ranked WHERE u IN (SELECT u FROM marks WHERE tie))"
    run(f"CREATE TEMP TABLE places AS {rank_by_formula(tied, columns, 'id')}")
    stored = commas([*names, *(f"{expression} AS {name}" for name, expression in grids.items())])
    firsts = "(SELECT u, id AS first FROM marks WHERE tie IS NOT TRUE)"
    joined = f"ranked AS s JOIN {firsts} AS f ON s.u = f.u LEFT JOIN places AS q ON q.id = s.rowid"
    placed = f"SELECT s.*, coalesce(q.r, s.rowid - f.first + 1) AS __r FROM {joined}"
    wordy = " OR ".join(f"sum(strlen({name})) > {UNIT_TEXT_BYTES}" for name in texts)
    if wordy and run(f"SELECT 1 FROM ranked GROUP BY u HAVING {wordy} LIMIT 1"):
        placed = _shorten_texts(placed, wordy, texts)
    kept = f"SELECT {stored}, u AS __u, h AS __h, __r FROM ({placed}) WHERE __r <= {most}"
    run(f"INSERT INTO {table} {kept} ORDER BY u, __r")
    for name in ("ranked", "marks", "places"):
        run(f"DROP TABLE {name}")


def _shorten_texts(placed: str, wordy: str, texts: list[str]) -> str:
    """Return the rows with the texts of a unit up to its limit: those of its first rows; NULL where they were left out.

    Claim   The texts of one unit in one column have at most UNIT_TEXT_BYTES bytes; which are kept depends on its rows alone.
    """
    units = f"(SELECT u FROM ranked GROUP BY u HAVING {wordy})"
    running = ", ".join(f"sum(strlen({name})) OVER (PARTITION BY u ORDER BY __r) AS n{name}" for name in texts)
    cut = ", ".join(f"CASE WHEN n{name} <= {UNIT_TEXT_BYTES} THEN {name} END AS {name}" for name in texts)
    counted = f"SELECT *, {running} FROM ({placed}) SEMI JOIN {units} USING (u)"
    short = f"SELECT * EXCLUDE ({', '.join(f'n{name}' for name in texts)}) REPLACE ({cut}) FROM ({counted})"
    return f"{short} UNION ALL BY NAME SELECT * FROM ({placed}) ANTI JOIN {units} USING (u)"


_MARKS = """
    SELECT id, u, before IS NULL AS beginning, u = before_u AND p = before_p AS tie,
           before <> id - 1 OR before_u > u OR (before_u = u AND before_p > p) AS disorder
    FROM (SELECT rowid AS id, u, p, lag(rowid) OVER () AS before, lag(u) OVER () AS before_u, lag(p) OVER () AS before_p
          FROM ranked)
    WHERE before IS NULL OR before <> id - 1 OR u <> before_u OR p <= before_p"""
"""The first row of every unit, and rows whose p equals that of the row before: one scan in the order in which rows lie.

Claim   If nothing is in disorder and there is one beginning at most, every row but that was compared with the row of the
        place before its own; so the rows lie in the order of (u, p), and no tie was missed.
Source  Each row's `before` is its place less one. A scan that gave rows in another order, or in several parts, would show.
"""


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
