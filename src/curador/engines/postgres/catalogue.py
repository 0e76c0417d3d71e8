"""The tables of a server that a study names: which columns they have and how each is read. No row is read.

type on the server            read as                         what changes
boolean, 2 to 8 bytes         itself
numeric(p, s), p ≤ 38         itself                          NaN becomes NULL
numeric without them          double                          beyond doubles: ±infinity, or 0
real, double precision        itself
text, varchar, uuid, enum     text, by its code points        a char(n) loses the blanks that fill it, and citext its rule
date, timestamp               itself                          ±infinity becomes NULL; years outside 1 to 9999 the nearest
timestamp with time zone      timestamp in UTC                idem
a domain                      what it is made of
other types                   nothing: they cannot be selected

What a column of the study's declared type becomes then is the same as of a file (`engines/duckdb/reading.py`), and a unit is
the same person as in a file with the same values.

Claim   Two values of a column that names units, or leads to them, are equal here iff the server holds them for equal.
Source  Whole numbers, numerics of one scale, UUIDs, labels and texts under a deterministic collation are equal iff what is
        read is. All others are refused where somebody is named by them: char(n) is equal whatever blanks follow, citext and
        texts under other collations whatever their case or form, numerics without a scale are cut to doubles, and texts of
        another encoding than UTF-8 are refused with the server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curador.engines.postgres.server import identifier
from curador.study.model import UnitPath, UnitRow
from curador.study.rules import Where, broken_rule, did_you_mean
from curador.study.values import Plain

if TYPE_CHECKING:
    from curador.engines.postgres.server import Cursor
    from curador.study.model import Study, Table

_NAME = re.compile(r"[^.\0]+(\.[^.\0]+)?")
_COLUMNS = """
SELECT a.attname, b.typname, b.typtype, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END,
       coalesce(c.collisdeterministic, true), n.nspname = 'pg_catalog'
FROM pg_catalog.pg_attribute a
     JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
     JOIN LATERAL (
         WITH RECURSIVE base(oid, depth) AS (
             SELECT t.oid, 0 UNION ALL
             SELECT d.typbasetype, depth + 1 FROM base JOIN pg_catalog.pg_type d ON d.oid = base.oid AND d.typtype = 'd'
         ) SELECT p.* FROM base JOIN pg_catalog.pg_type p ON p.oid = base.oid ORDER BY depth DESC LIMIT 1
     ) b ON true
     JOIN pg_catalog.pg_namespace n ON n.oid = b.typnamespace
     LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_FIND = """
SELECT c.oid::bigint, c.relkind::text,
       EXISTS (SELECT 1 FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent))
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
"""
_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
_TIMES = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
_ZONED = "TIMESTAMPTZ '0001-01-01 00:00:00+00'", "TIMESTAMPTZ '9999-12-31 23:59:59.999999+00'"
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column that can be selected: its name, how it is read, and Arrow's name of what comes.

    vague  why two values that are one to the server may be two here, or the other way round; "": they may not
    """

    name: str
    kind: str
    read: str
    arrow: Any
    vague: str


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A table or view of the server. plain: it is a table that shares its rows with no other one."""

    schema: str
    name: str
    number: int
    plain: bool
    columns: tuple[ServerColumn, ...]

    @property
    def written(self) -> str:
        """Its name in a statement."""
        return f"{identifier(self.schema)}.{identifier(self.name)}"

    @property
    def select(self) -> str:
        """The SELECT of its columns, in their order."""
        read = ", ".join(f"{column.read} AS {identifier(column.name)}" for column in self.columns)
        return f"SELECT {read} FROM {self.written}"  # noqa: S608 -- names are quoted


def find_table(cursor: Cursor, study: Study, table: Table) -> ServerTable:
    """Return the table that a table of the study names, or refuse it; reads the catalogue alone."""
    where: Where = ("tables", table.name, "source")
    if not _NAME.fullmatch(table.source):
        hint = "write schema.table, as the server spells them, without quotes"
        raise broken_rule(where, "a table or view of the server", table.source, hint)
    schema, _, name = table.source.rpartition(".")
    cursor.execute(_FIND, [schema or "public", name])
    found = cursor.fetchone()
    if found is None:
        cursor.execute("SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('r', 'v', 'm', 'p', 'f')")
        hint = did_you_mean(name, [str(row[0]) for row in cursor.fetchall()])
        raise broken_rule(where, "a table or view of the server, with its schema where it is not public", table.source, hint)
    number, kind, related = int(found[0]), str(found[1]), bool(found[2])
    cursor.execute(_COLUMNS, [number])
    rows = cursor.fetchall()
    _refuse_doubles(where, [str(row[0]) for row in rows])
    columns = tuple(one for row in rows if (one := _column(*row)) is not None)
    made = ServerTable(schema or "public", name, number, kind == "r" and not related, columns)
    if not columns:
        raise broken_rule(where, "a table with a column that can be selected", table.source)
    for column in _naming(study, table):
        _refuse_vague(table, made, column)
    return made


def _refuse_doubles(where: Where, names: list[str]) -> None:
    """Refuse columns that differ in letter case alone: a question, and a file, would not tell them apart."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            rule = "a table whose columns have different names (letter case makes no difference)"
            raise broken_rule(where, rule, Plain(f"{name!r} twice"), "name a view that gives one of them another name")
        seen.add(name.casefold())


def _naming(study: Study, table: Table) -> set[str]:
    """The columns of a table that say who owns a row, there or elsewhere, or lead there."""
    unit = table.unit
    own = set() if unit is None or isinstance(unit, UnitRow) else {unit.column}
    paths = (other.unit for other in study.tables if isinstance(other.unit, UnitPath))
    return own | {path.key for path in paths if path.table == table.name and path.key is not None}


def _refuse_vague(table: Table, found: ServerTable, name: str) -> None:
    for column in found.columns:
        if column.name == name and column.vague:
            where = ("tables", table.name, "columns", name)
            hint = "name a view with a column that says who it is in one way, such as an integer or a text"
            raise broken_rule(where, "a column in which equal is the same", Plain(f"{column.kind}, {column.vague}"), hint)


def _column(name: str, base: str, kind: str, modifier: int, certain: bool, system: bool) -> ServerColumn | None:  # noqa: FBT001
    """Return how a column is read; None where it cannot be selected."""
    import pyarrow as pa

    x = identifier(name)
    vague = "" if certain else "whose collation holds different texts for equal"
    if kind == "e":
        return ServerColumn(name, base, f"CAST({x} AS TEXT)", pa.string(), "")
    if base == "citext" and not system:
        return ServerColumn(name, base, f"CAST({x} AS TEXT)", pa.string(), "to which letter case makes no difference")
    if not system:
        return None
    if base == "numeric":
        return _numeric(name, x, modifier)
    plain = {
        "bool": (x, pa.bool_()),
        **dict.fromkeys(("int2", "int4", "int8"), (f"CAST({x} AS BIGINT)", pa.int64())),
        "float4": (f"NULLIF({x}, 'NaN')", pa.float32()),
        "float8": (f"NULLIF({x}, 'NaN')", pa.float64()),
        **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), (f"CAST({x} AS TEXT)", pa.string())),
        "date": (_clamped(x, _FIRST_DAY, _LAST_DAY), pa.date32()),
        "timestamp": (_clamped(x, *_TIMES), pa.timestamp("us")),
        "timestamptz": (f"({_clamped(x, *_ZONED)} AT TIME ZONE 'UTC')", pa.timestamp("us")),
    }
    if base not in plain:
        return None
    if base == "bpchar":
        vague = "which is equal whatever blanks follow it"
    return ServerColumn(name, base, *plain[base], vague)


def _numeric(name: str, x: str, modifier: int) -> ServerColumn:
    import pyarrow as pa

    digits, places = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    if modifier >= 4 and digits <= _MOST_DIGITS and places <= digits:
        return ServerColumn(name, "numeric", f"NULLIF({x}, 'NaN')", pa.decimal128(digits, places), "")
    most, least = "1.7e308", "1e-300"
    near = f"CASE WHEN abs({x}) < {least} THEN 0 ELSE {x} END"
    far = f"WHEN {x} > {most} THEN 'Infinity' WHEN {x} < -{most} THEN '-Infinity' ELSE {near} END"
    read = f"CAST(CASE WHEN {x} = 'NaN' THEN NULL {far} AS DOUBLE PRECISION)"
    return ServerColumn(name, "numeric", read, pa.float64(), "which may have more digits than a double")


def _clamped(x: str, first: str, last: str) -> str:
    return f"(CASE WHEN isfinite({x}) THEN LEAST(GREATEST({x}, {first}), {last}) END)"
