# ruff: noqa: S608 -- names and texts pass through `name_of` and the dialect, the rest is ours

"""Where a table's rows come from on a Spark server, and how they are read: totally, as `duckdb/reading.py` reads them.

A source is a table of the server's catalogue (`visits`, `hospital.visits`), or Parquet files by a path that the server sees:
what holds a slash, or ends in .parquet. A relative path starts from the study's folder, for servers on this machine.

type       carried by                                        NULL                                   changed
boolean    booleans, whole numbers 0 and 1                   other numbers
integer    whole numbers, decimals, floats                   fractions, beyond 64 bits, NaN
numbers    booleans, all numbers                             NaN                                    -0.0 becomes 0.0
string     texts, whole numbers, booleans, dates             texts that are no UTF-8                cut to 4,096 characters
date       dates, moments                                                                           years outside 1 to 9999
timestamp  dates, moments; with a zone they become UTC                                              are clamped

Texts become no numbers or times here: engines read them differently, and a view on the server says how. Columns of CHAR(n),
which a server fills up with blanks, and of a collation, which calls different texts equal, cannot be selected: a unit must be
the same person on every engine. A text that names a unit and has more than 256 bytes is NULL, nobody.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.engines.duckdb.schema import check_units, fields
from curador.engines.duckdb.sources import FRAME, SourceColumn
from curador.engines.duckdb.spelling import TypeFamily, commas, family_of
from curador.engines.lower.dialect_spark import SPARK
from curador.errors import InvalidStudy
from curador.plan.work import NAME_BYTES, TEXT_CHARACTERS
from curador.study.model import TableSchema
from curador.study.rules import broken_rule
from curador.study.values import Plain, Type

if TYPE_CHECKING:
    import datetime as dt

    from curador.engines.spark.server import Session
    from curador.study.model import Field, Study, Table
    from curador.study.values import Value

_PHYSICAL = {
    "BooleanType": "BOOLEAN",
    "ByteType": "TINYINT",
    "ShortType": "SMALLINT",
    "IntegerType": "INTEGER",
    "LongType": "BIGINT",
    "FloatType": "FLOAT",
    "DoubleType": "DOUBLE",
    "VarcharType": "VARCHAR",
    "DateType": "DATE",
    "TimestampType": "TIMESTAMP WITH TIME ZONE",
    "TimestampNTZType": "TIMESTAMP",
}
"""Spark's types, by the names that the embedded engine has for them."""

_WHOLE = {TypeFamily.INTEGER, TypeFamily.WIDE}
_NUMBERS = {*_WHOLE, TypeFamily.DECIMAL, TypeFamily.FLOAT}
_TIMES = {TypeFamily.DATE, TypeFamily.TIMESTAMP, TypeFamily.ZONED}
_CARRIERS = {
    Type.BOOLEAN: {TypeFamily.BOOLEAN, *_WHOLE},
    Type.INTEGER: {TypeFamily.BOOLEAN, *_NUMBERS},
    Type.DECIMAL: {TypeFamily.BOOLEAN, *_NUMBERS},
    Type.FLOAT: {TypeFamily.BOOLEAN, *_NUMBERS},
    Type.STRING: {TypeFamily.TEXT, TypeFamily.BOOLEAN, TypeFamily.DATE, *_WHOLE},
    Type.DATE: _TIMES,
    Type.TIMESTAMP: _TIMES,
}
_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
_FIRST_TIME, _LAST_TIME = "TIMESTAMP_NTZ '0001-01-01 00:00:00'", "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
_LEAST, _MOST = f"CAST('{-(1 << 63)}' AS DECIMAL(38,0))", f"CAST('{(1 << 63) - 1}' AS DECIMAL(38,0))"


_OURS = re.compile(r"(?:t|s|source|seen)[0-9]+|units|found|curador_key")
"""Names that tables have for a while in sessions of ours: a table of the catalogue would be hidden behind them."""


@dataclass(frozen=True, slots=True)
class SparkSource:
    """One table's source: a path of Parquet files as the server sees it, or a table of its catalogue."""

    name: str
    is_path: bool

    def read(self, session: Session) -> Any:
        """Return the source as a data frame of the server's; no row is read."""
        return session.read.parquet(self.name) if self.is_path else session.table(self.name)


def find(study: Study, table: Table) -> SparkSource:
    """Return the source of a table, or refuse what no server can see."""
    where = ("tables", table.name, "source")
    if table.source == FRAME or table.name in study.frames:
        hint = 'leave kind = "spark" away: the embedded engine takes frames'
        raise broken_rule(where, "a table or a path that the server sees", Plain("a frame given from Python"), hint)
    if table.format is not None:
        hint = "leave it out: a table or Parquet file says by itself how its values are stored"
        raise broken_rule(("tables", table.name, "format"), "left out on this engine", Plain("a format"), hint)
    source = table.source
    if "://" in source or source.startswith("/"):
        return SparkSource(source, is_path=True)
    if "/" in source or source.lower().endswith(".parquet"):
        return SparkSource(str((study.folder / source).absolute()), is_path=True)
    if _OURS.fullmatch(source.lower()):
        hint = f'name its schema, too: "default.{source}"'
        raise broken_rule(where, "another name than those of a preparation's own tables", source, hint)
    if any(mark in source for mark in "`\"';*?") or source.count(".") > 2:
        raise broken_rule(where, "a table such as hospital.visits, or a path of Parquet files", source)
    return SparkSource(source, is_path=False)


def name_of(column: str) -> str:
    """Return the name in quotes."""
    return "`" + column.replace("`", "``") + "`"


# ---- columns ---------------------------------------------------------------------------------------------------------------


def columns_of(frame: Any) -> list[SourceColumn]:
    """Return the columns of a data frame of the server's."""
    return [SourceColumn(one.name, _physical(one)) for one in frame.schema.fields]


def _physical(field: Any) -> str:
    """Return the type as the embedded engine calls it; what cannot be selected has a name that it does not know."""
    kind, said = type(field.dataType).__name__, str((field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", ""))
    if kind == "DecimalType":
        return f"DECIMAL({field.dataType.precision},{field.dataType.scale})"
    if kind == "StringType":
        collation = str(getattr(field.dataType, "collation", "UTF8_BINARY"))
        return "VARCHAR" if collation == "UTF8_BINARY" and not said.startswith("char") else "CHAR OR COLLATED TEXT"
    return _PHYSICAL.get(kind, kind.upper())


def describe_tables(study: Study, session: Session) -> tuple[TableSchema, ...]:
    """Return every column of the sources that can be selected; refuse those that are not there or not as declared."""
    tables: list[TableSchema] = []
    for table in study.tables:
        columns = _columns(find(study, table), table, session)
        found = fields(table, columns)
        physical = {column.name: column.physical for column in columns}
        for field in found:
            _check_carried(table, field, physical[field.name])
        tables.append(TableSchema(table, found))
    check_units(tables)
    return tuple(tables)


def _columns(source: SparkSource, table: Table, session: Session) -> list[SourceColumn]:
    try:
        columns = columns_of(source.read(session))
    except InvalidStudy:
        raise
    except Exception:  # noqa: BLE001 -- a server's words may hold anything
        columns = []
    if not columns:
        what = "Parquet files that the server can read" if source.is_path else "a table that the server can read"
        raise broken_rule(("tables", table.name, "source"), what, table.source)
    return columns


def _check_carried(table: Table, field: Field, physical: str) -> None:
    family = family_of(physical)
    if family is None or family not in _CARRIERS[field.type]:
        where = ("tables", table.name, "columns", field.name, "type")
        hint = "make a view on the server that casts it, and name the view as the source"
        raise broken_rule(where, f"stored in a type that this engine reads as {field.type}", Plain(physical), hint)


# ---- cleaning --------------------------------------------------------------------------------------------------------------


def select_cleaned(source: str, columns: list[SourceColumn], schema: TableSchema) -> str:
    """Return the SELECT that reads a view of a source as c0, c1, … in the order of the schema's fields.

    Claim   Total, and each value is a function of the source's value alone.
    Needs   Families carry the declared types, as `describe_tables` has seen; the session's zone is UTC.
    """
    physical = {column.name: column.physical for column in columns}
    owner = getattr(schema.table.unit, "column", None)
    raw: list[str] = []
    kept: list[str] = []
    for place, field in enumerate(schema.fields):
        family = family_of(physical[field.name])
        if family is None:
            raise AssertionError(field.name)  # such columns are no fields
        raw.append(f"{_raw(name_of(field.name), family, field.type)} AS r{place}")
        text = _kept(f"r{place}", family, field.type, naming=field.name == owner)
        if field.declared is not None and field.declared.values is not None:
            values = commas(_literal(value) for value in field.declared.values)
            text = f"CASE WHEN ({text}) IN ({values}) THEN {text} END"
        kept.append(f"CAST({text} AS {SPARK.type(field.type)}) AS c{place}")
    return f"SELECT {commas(kept)} FROM (SELECT {commas(raw)} FROM {source}) AS s"


def _raw(x: str, family: TypeFamily, kind: Type) -> str:
    truth = family is TypeFamily.BOOLEAN
    match kind:
        case Type.INTEGER if truth:
            return f"CASE {x} WHEN TRUE THEN 1L WHEN FALSE THEN 0L END"
        case Type.INTEGER:
            return _whole(x, family)
        case Type.DECIMAL | Type.FLOAT:
            return f"CASE {x} WHEN TRUE THEN 1D WHEN FALSE THEN 0D END" if truth else f"CAST({x} AS DOUBLE)"
        case Type.BOOLEAN:
            return x if truth else f"CASE {x} WHEN 0 THEN FALSE WHEN 1 THEN TRUE END"
        case Type.STRING if truth:
            return f"CASE {x} WHEN TRUE THEN 'true' WHEN FALSE THEN 'false' END"
        case Type.STRING if family is TypeFamily.DATE:
            return f"CAST({_clamp(x, _FIRST_DAY, _LAST_DAY)} AS STRING)"
        case Type.STRING:
            return x if family is TypeFamily.TEXT else f"CAST({x} AS STRING)"
        case _:
            return x if family is TypeFamily.DATE and kind is Type.DATE else f"CAST({x} AS TIMESTAMP_NTZ)"


def _whole(x: str, family: TypeFamily) -> str:
    if family is TypeFamily.INTEGER:
        return f"CAST({x} AS BIGINT)"
    if family is TypeFamily.FLOAT:
        number = f"CAST({x} AS DOUBLE)"
        return f"CASE WHEN {number} % 1D = 0D THEN {SPARK.whole(number)} END"
    whole = "" if family is TypeFamily.WIDE else f"{x} % 1 = 0 AND "
    return f"CASE WHEN {whole}{x} >= {_LEAST} AND {x} <= {_MOST} THEN CAST({x} AS BIGINT) END"


def _kept(raw: str, family: TypeFamily, kind: Type, *, naming: bool) -> str:
    if kind in {Type.DECIMAL, Type.FLOAT}:
        return f"CASE WHEN isnan({raw}) THEN NULL WHEN {raw} = 0D THEN 0D ELSE {raw} END"
    if kind is Type.TIMESTAMP:
        return _clamp(raw, _FIRST_TIME, _LAST_TIME)
    if kind is Type.DATE:
        if family is TypeFamily.DATE:
            return _clamp(raw, _FIRST_DAY, _LAST_DAY)
        return f"CAST({_clamp(raw, _FIRST_TIME, _LAST_TIME)} AS DATE)"
    if kind is not Type.STRING or family is not TypeFamily.TEXT:
        return raw
    if naming:
        return f"CASE WHEN is_valid_utf8({raw}) AND octet_length({raw}) <= {NAME_BYTES} THEN {raw} END"
    return f"CASE WHEN is_valid_utf8({raw}) THEN substring({raw}, 1, {TEXT_CHARACTERS}) END"


def _clamp(x: str, lower: str, upper: str) -> str:
    return f"CASE WHEN {x} < {lower} THEN {lower} WHEN {x} > {upper} THEN {upper} ELSE {x} END"


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return SPARK.boolean(value)
    if isinstance(value, int):
        return SPARK.integer(value)
    if isinstance(value, Fraction):
        return SPARK.double(float(value))
    if isinstance(value, str):
        return SPARK.string(value)
    return _moment(value)


def _moment(value: dt.date) -> str:
    return SPARK.timestamp(value) if hasattr(value, "hour") else SPARK.date(value)  # type: ignore[arg-type]  # a moment


# ---- where rows lie --------------------------------------------------------------------------------------------------------


def files_here(source: SparkSource) -> list[Path]:
    """Return the Parquet files of a path that are on this machine; none where it is elsewhere, or a table."""
    path = source.name.removeprefix("file://")
    if not source.is_path or "://" in path or not os.path.exists(path):  # noqa: PTH110 -- as the register resolves paths
        return []
    return sorted(Path(path).rglob("*.parquet")) if Path(path).is_dir() else [Path(path)]
