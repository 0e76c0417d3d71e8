# ruff: noqa: S608 -- names pass through `quoting`, the rest is ours

"""What an owner should know of the rows before anybody asks: each fact with a conclusion. For the owner's eyes only.

Nothing is made or mended: sources are read, no copy is kept, no ledger is opened.

A fact is a word, never a number to copy: shares are "a few", "about a quarter", "most". Where a cap or a bound is bad the
conclusion is to survey, which measures it privately; a number taken over from here would be a leak that nobody charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curador.engines.base import OwnerFact
from curador.engines.duckdb import reading, sources
from curador.engines.duckdb.connection import look
from curador.engines.duckdb.readable import has_lines, readable_hint
from curador.engines.duckdb.schema import owners_first
from curador.engines.duckdb.spelling import commas, double, text
from curador.engines.duckdb.streams import open_bytes
from curador.study.formats import BLANKS
from curador.study.model import UnitColumn, UnitPath, UnitRow
from curador.study.rules import dotted_path
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from curador.engines.duckdb.sources import TableSource
    from curador.study.model import Field, Schema, TableSchema

MUCH = 0.1
"""The share from which something is told as much."""

_FAR_TOO_WIDE = 20
"""How many times wider than nearly all values bounds are, to be told."""


def share_words(part: float, whole: float) -> str:
    """Return a share in words, so coarse that no number can be copied from them."""
    share = part / whole if whole else 0.0
    steps = ((0.0, "no"), (0.02, "a few"), (0.15, "some"), (0.35, "about a quarter of the"), (0.65, "about half of the"))
    if share >= 1:
        return "all"
    if share > 0.95:
        return "nearly all"
    return next((words for most, words in steps if share <= most), "most")


def owner_facts(schema: Schema, called: str) -> Iterator[OwnerFact]:
    """Yield what rows show, table by table. Reads every row. `called` is what a command calls the study."""
    import duckdb

    connection = look()
    try:
        for place, table in enumerate(schema.tables):
            source = sources.find(schema.study, table.table, f"source{place}")
            try:
                yield from _table_facts(connection, place, source, schema, called)
            except duckdb.Error:
                problems = [] if source.stream is None else source.stream.problems
                fact = problems[-1].sentence if problems else "some rows stop the reader"
                yield OwnerFact(
                    table.table.name, fact, f"run `curador prepare {called}`, which reads in another way or says why not"
                )
                return
        for place in owners_first(schema.study):
            yield from _unit_facts(connection, place, schema, called)
    finally:
        connection.close()


# ---- tables and columns --------------------------------------------------------------------------------------------


def _table_facts(
    connection: duckdb.DuckDBPyConnection, place: int, source: TableSource, schema: Schema, called: str
) -> Iterator[OwnerFact]:
    table = schema.tables[place]
    name = table.table.name
    sources.bind(connection, source)
    cleaned = reading.select_cleaned(connection, source, table)
    kind = "VIEW" if source.stream is None else "TABLE"  # a stream is read once
    connection.execute(f"CREATE TEMP {kind} s{place} AS {cleaned}").fetchall()
    sources.bind(connection, source)
    filled = reading.select_filled(connection, source, table)
    width = range(len(table.fields))
    counts = commas(f"count(*) FILTER (f{column})" for column in width)
    rows, *stands = _numbers(connection, f"SELECT count(*), {counts} FROM ({filled})")
    kept = _numbers(connection, f"SELECT {commas(f'count(c{column})' for column in width)} FROM s{place}")
    if not rows:
        told = "lines that cannot be decoded" if source.kind == "text" and has_lines(source) else "no rows"
        conclusion = "answers would be noise alone: look at the source, and at separator and encoding in format"
        yield OwnerFact(name, told, conclusion)
        return
    left_out = _left_out(source)
    if left_out:
        conclusion = (
            f'they are left out: below {_header(table)} say format = {{ encoding = "windows-1252" }}, or mend the file'
        )
        yield OwnerFact(name, f"{left_out} lines are no UTF-8", conclusion)
    for column in width:
        seen = _SeenColumn(connection, place, column, rows, stands[column], kept[column])
        yield from _column_facts(seen, source, schema, called)


@dataclass(frozen=True, slots=True)
class _SeenColumn:
    """A column: its place, the rows of its table, the cells in which something stands, and those that can be read."""

    connection: duckdb.DuckDBPyConnection
    place: int
    column: int
    rows: int
    stands: int
    kept: int


def _column_facts(seen: _SeenColumn, source: TableSource, schema: Schema, called: str) -> Iterator[OwnerFact]:
    table = schema.tables[seen.place]
    field = table.fields[seen.column]
    about = dotted_path((table.table.name, field.name))
    lost = seen.stands - seen.kept
    values = None if field.declared is None else field.declared.values
    if not seen.stands:
        fact = "all NULL: nothing stands in the source"
        yield OwnerFact(about, fact, "whatever is asked of it is noise alone: leave the column out, or mend the source")
    elif not seen.kept:
        fact = (
            f"all NULL: no value can be read as {field.type}"
            if values is None
            else "all NULL: no declared value stands there"
        )
        stops = f"preparation stops here: {readable_hint(source, table, field, schema.study)}"
        yield OwnerFact(about, fact, stops if values is None else f"whatever is asked of it is noise alone: {_VALUES}")
    elif lost > 0 and field.declared is not None:
        share = share_words(lost, seen.stands)
        fact = f"{share} values cannot be read as {field.type}" if values is None else f"{share} values are not declared ones"
        hint = "they become NULL: say in format how they are written, or which words mean NULL (nulls)"
        yield OwnerFact(about, fact, hint if values is None else f"they become NULL: {_VALUES}")
    if seen.kept and not table.table.public:
        yield from _bounds_facts(seen, about, field, called)


_VALUES = "write the values as the source does, letter by letter"


def _bounds_facts(seen: _SeenColumn, about: str, field: Field, called: str) -> Iterator[OwnerFact]:
    bounds = None if field.declared is None else field.declared.bounds
    if bounds is None or not field.type.numeric:
        return
    low, high = (float(end) for end in bounds)  # type: ignore[arg-type]  # numbers, by the column's type
    x = f"CAST(c{seen.column} AS DOUBLE)"
    outside = f"count(*) FILTER ({x} < {double(low)} OR {x} > {double(high)})"
    ends = f"approx_quantile({x}, 0.005), approx_quantile({x}, 0.995)"
    found = seen.connection.execute(f"SELECT {outside}, {ends} FROM s{seen.place}").fetchone() or (0, None, None)
    beyond, first, last = found
    survey = f"leave these bounds out, and run `curador survey {called} --columns`, which then measures them privately"
    if beyond > MUCH * seen.kept:
        yield OwnerFact(about, f"{share_words(beyond, seen.kept)} values lie beyond the bounds and are clamped", survey)
    elif first is not None and last is not None and (last - first) * _FAR_TOO_WIDE < high - low:
        fact = "the bounds are far too wide: nearly all values lie in a small part of them"
        yield OwnerFact(about, fact, f"noise is many times what it could be; {survey}")


def _left_out(source: TableSource) -> str | None:
    """How many lines of a text cannot be decoded, in words; None where all can be."""
    if source.kind != "text":
        return None
    lines = broken = 0
    for file in source.files:
        with open_bytes(file) as content:
            for line in content:
                lines += 1
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    broken += 1
    return share_words(broken, lines) if broken else None


# ---- units ---------------------------------------------------------------------------------------------------------


def _unit_facts(connection: duckdb.DuckDBPyConnection, place: int, schema: Schema, called: str) -> Iterator[OwnerFact]:
    table = schema.tables[place]
    unit, name = table.table.unit, table.table.name
    if unit is None:
        return
    connection.execute(f"CREATE TEMP VIEW w{place} AS {_owned(place, schema)}").fetchall()
    if isinstance(unit, UnitRow):
        return
    rows, owned = _numbers(connection, f"SELECT (SELECT count(*) FROM s{place}), count(*) FROM w{place}")
    word = schema.study.unit_name
    if rows and not owned:
        yield OwnerFact(
            name, f"no row belongs to a {word}", "nothing can be counted: look at unit, its type and its references"
        )
        return
    if rows - owned > 0.02 * rows:
        fact = f"{share_words(rows - owned, rows)} rows belong to no {word}"
        yield OwnerFact(name, fact, "they are never counted: that is right only if they are about nobody")
    if isinstance(unit, UnitColumn):
        yield from _id_facts(connection, place, unit, schema)
    yield from _row_facts(connection, place, owned, schema, called)


def _owned(place: int, schema: Schema) -> str:
    """The rows of a table with their unit u; those of nobody are left out."""
    table = schema.tables[place]
    unit = table.table.unit
    if not isinstance(unit, (UnitColumn, UnitPath)):
        return f"SELECT *, row_number() OVER () AS u FROM s{place}"
    column = f"c{table.index(unit.column)}"
    if isinstance(unit, UnitColumn):
        return f"SELECT *, {column} AS u FROM s{place} WHERE {column} IS NOT NULL"
    other = next(number for number, one in enumerate(schema.tables) if one.table.name == unit.table)
    key = "u" if unit.key is None else f"c{schema.tables[other].index(unit.key)}"
    return f"SELECT s.*, o.u FROM s{place} AS s JOIN (SELECT DISTINCT {key} AS k, u FROM w{other}) AS o ON s.{column} = o.k"


def _id_facts(connection: duckdb.DuckDBPyConnection, place: int, unit: UnitColumn, schema: Schema) -> Iterator[OwnerFact]:
    """Ids that a person would take for one, and a computer takes for several."""
    table = schema.tables[place]
    column = table.index(unit.column)
    if column is None or table.fields[column].type is not Type.STRING:
        return
    bare = f"trim(u, {text(BLANKS)})"
    alike = {
        "blanks": bare,
        "letter case": "lower(u)",
        '".0" at the end': "regexp_replace(u, '[.]0+$', '')",
        "": f"regexp_replace(lower({bare}), '[.]0+$', '')",
    }
    counts = commas(f"count(DISTINCT {one})" for one in alike.values())
    ids, *distinct = _numbers(connection, f"SELECT count(*), {counts} FROM (SELECT DISTINCT u FROM w{place})")
    fewer = distinct[-1]
    if fewer == ids:
        return
    by = [name for name, number in zip(alike, distinct, strict=True) if name and number < ids]
    about = dotted_path((table.table.name, unit.column))
    fact = (
        f"{share_words(ids - fewer, ids)} ids differ from another only by {' and '.join(by or ['blanks, letter case or .0'])}"
    )
    whole = f"SELECT count(*) FILTER (NOT regexp_full_match({bare}, '[0-9]+([.]0+)?')) FROM (SELECT DISTINCT u FROM w{place})"
    (others,) = _numbers(connection, whole)
    mend = 'declare the column with type = "integer"' if others <= MUCH * ids else _MEND
    word = schema.study.unit_name
    yield OwnerFact(about, fact, f"one {word} counts as several, and is protected as each by itself: {mend}")


_MEND = "say format = { trim = true } for blanks, else mend the file, so that each has one spelling"


def _row_facts(
    connection: duckdb.DuckDBPyConnection, place: int, rows: int, schema: Schema, called: str
) -> Iterator[OwnerFact]:
    table = schema.tables[place].table
    word = schema.study.unit_name
    cap = schema.study.engine.unit_rows if table.caps is None else table.caps.rows
    counted = f"SELECT count(*) AS n FROM w{place} GROUP BY u"
    most, beyond = _numbers(
        connection, f"SELECT coalesce(max(n), 0), coalesce(sum(greatest(n - {cap}, 0)), 0) FROM ({counted})"
    )
    if most == 1 and not table.unique:
        fact = f"every {word} has one row"
        conclusion = f"if that is so by nature say unique = true; if not, the unit column numbers rows and names no {word}"
        yield OwnerFact(table.name, fact, conclusion)
    if table.unique and beyond > 0:
        fact = f"unique = true, and {share_words(beyond, rows)} rows are further ones of their {word}"
        yield OwnerFact(table.name, fact, f"only one row of each {word} is kept: is unique meant?")
    elif beyond > MUCH * rows:
        fact = f"{share_words(beyond, rows)} rows lie beyond the cap of rows"
        survey = f"leave `caps` of this table out, and run `curador survey {called}`, which then finds a cap privately"
        limit = "a table keeps no more of one (engine.unit_rows): is the unit column what you mean?"
        yield OwnerFact(table.name, fact, f"answers leave them out: {limit if table.caps is None else survey}")


def _numbers(connection: duckdb.DuckDBPyConnection, statement: str) -> list[int]:
    found: tuple[Any, ...] = connection.execute(statement).fetchone() or ()
    return [int(one) for one in found]


def _header(table: TableSchema) -> str:
    return f"[{dotted_path(('tables', table.table.name))}]"
