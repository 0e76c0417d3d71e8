# ruff: noqa: S608 -- names and texts pass through `quoting`

# ruff: noqa: S608 -- names and texts pass through `quoting`, the rest is ours

"""Where a table's rows come from: Parquet files, separated text, a table of a DuckDB file, a frame given from Python.

Everything here is visible without a row: whether files exist, which columns they have, of which physical types.

Separated text: the header is the schema, every field is text until the declared type reads it.
Types are never guessed from rows. The separator is read off the header: the one of , ; tab | that stands in it most often
outside quotes. Records are lines, also where a quote is open at the end of one: no line changes how another one is read.
A field is quoted if it begins and ends with ", those inside doubled; any other is the text up to the next separator, quotes
and all. An empty field is NULL, a quoted empty one is an empty text. A line with too few fields ends in NULLs, one with too
many is cut; an empty one, one with bytes that are no UTF-8 and one beyond 16 MiB are left out.
"""

from __future__ import annotations

import csv
import glob
import gzip
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

from curador.engines.duckdb.arrow import SameNamesError, to_arrow
from curador.engines.duckdb.spelling import commas, identifier, text
from curador.query.context import WIDEST
from curador.study.rules import Where, broken_rule
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from curador.study.model import Study, Table


# ---- separated -------------------------------------------------------------------------------------------------------------


TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_SEPARATORS = ",;\t|"
_LONGEST_HEADER = 1 << 20
_LONGEST_LINE = 16 << 20
_QUOTE = '"'
_QUOTED = '"(?:[^"]|"")*"'
_NOWHERE = "\x01\x02\x03\x01"
"""What would separate columns of lines, which are one column: should a line hold it, the line ends there."""


class HeaderError(ValueError):
    """The file does not begin with a line of different, non-empty names."""


def read_header(path: Path) -> tuple[str, list[str]]:
    """Return the separator and the names of the columns; reads the first line only."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        line = file.readline(_LONGEST_HEADER)
    try:
        first = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise HeaderError from None
    if "\r" in first:  # ends a line, as everywhere
        raise HeaderError
    separator = max(_SEPARATORS, key=lambda one: _outside_quotes(first).count(one))
    names = next(csv.reader([first], delimiter=separator), [])
    folded = {name.casefold() for name in names}
    if not names or "" in folded or len(folded) < len(names) or first.count('"') % 2:
        raise HeaderError
    return separator, names


def scan_separated(paths: Sequence[Path], separator: str, names: Sequence[str]) -> str:
    r"""Return the FROM item that reads the files as text.

    Claim   Every row is a function of one line alone: a file with one line more has that line's rows more, else the same.
    Needs   Records are lines: \n, \r\n or \r ends one, also inside quotes.
    Source  The reader knows no quotes, so lines end where their bytes say so. Fields are split by string_split and a regular
            expression, of which both are total.
    """
    lines = (
        f"read_csv([{commas(text(str(path)) for path in paths)}], columns = {{'line': 'VARCHAR'}},"
        f" auto_detect = false, header = true, delim = {text(_NOWHERE)}, quote = '', escape = '', comment = '',"
        f" new_line = '\\n', nullstr = '', null_padding = true, ignore_errors = true, strict_mode = false, parallel = false,"
        f" max_line_size = {_LONGEST_LINE})"
    )
    any_quote = f"contains(line, {text(_QUOTE)})"
    one = re.escape(separator)
    some = text(f"({_QUOTED}|[^{one}]*)(?:{one}|$)")
    fields = f"CASE WHEN {any_quote} THEN regexp_extract_all(line, {some}, 1) ELSE string_split(line, {text(separator)}) END"
    split = f"SELECT {any_quote} AS quotes, {fields} AS fields FROM {lines} WHERE line IS NOT NULL"
    columns = commas(f"{_field(f'fields[{place}]')} AS {identifier(name)}" for place, name in enumerate(names, 1))
    return f"(SELECT {columns} FROM ({split}))"


def _field(x: str) -> str:
    quote, doubled = text(_QUOTE), text(2 * _QUOTE)
    inside = f"replace(substr({x}, 2, length({x}) - 2), {doubled}, {quote})"
    return f"CASE WHEN {x} = '' THEN NULL WHEN quotes AND regexp_full_match({x}, {text(_QUOTED)}) THEN {inside} ELSE {x} END"


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


# ---- sources ---------------------------------------------------------------------------------------------------------------


FRAME = "frame"
_PARQUET = (".parquet", ".pq", ".parq")
_DATABASES = (".duckdb", ".ddb", ".db")
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class TableSource:
    """One table's source, found. `scan` is the FROM item that reads it once `bind` has been called.

    files   what it is read from; none for a frame
    table   of a DuckDB file: the table's quoted name inside it
    """

    where: Where
    kind: OneOf["parquet", "text", "database", "frame"]
    alias: str
    files: tuple[Path, ...]
    scan: str
    table: str = ""
    frame: Any = None


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One column of a source: its name, and its physical type as DuckDB writes it."""

    name: str
    physical: str


def find(study: Study, table: Table, alias: str) -> TableSource:
    """Return the source of a table of the study. Raises InvalidStudy for what is missing."""
    where: Where = ("tables", table.name, "source")
    if table.source == FRAME:
        if table.name not in study.frames:
            raise broken_rule(where, "a file, or a frame given from Python", table.source, "give the frame to open()")
        return from_frame(study.frames[table.name], alias, where)
    return from_path(table.source, study.folder, alias, where)


def from_frame(frame: Any, alias: str, where: Where = ("source",)) -> TableSource:
    """Return the source of a table given from Python."""
    try:
        return TableSource(where, "frame", alias, (), identifier(alias), frame=to_arrow(frame))
    except SameNamesError:
        raise broken_rule(where, "a table whose columns have different names", Plain("two of one name")) from None


def from_path(source: str, folder: Path, alias: str, where: Where = ("source",)) -> TableSource:
    """Return the source of a path, a glob or a DuckDB file with #table; relative paths start from the folder."""
    if "://" in source:
        raise broken_rule(where, "a file on this machine", source)
    before, mark, inside = source.rpartition("#")
    if mark and before.lower().endswith(_DATABASES):
        return _database(before, inside, folder, where)
    if source.lower().endswith(_DATABASES):
        raise broken_rule(where, "a DuckDB file with the table behind a #", source, f"write {source}#<table>")
    files = _files(source, folder, where)
    endings = {_ending(file) for file in files}
    if endings <= set(_PARQUET):
        names = commas(text(str(file)) for file in files)
        scan = f"read_parquet([{names}], union_by_name = true, hive_partitioning = false)"
        return TableSource(where, "parquet", alias, files, scan)
    if endings <= set(TEXT_ENDINGS):
        return _separated_source(files, alias, where)
    rule = "Parquet (.parquet), separated text (.csv, .tsv, .txt, also .gz) or a DuckDB file (.duckdb#table)"
    raise broken_rule(where, rule, source)


def bind(connection: duckdb.DuckDBPyConnection, source: TableSource) -> None:
    """Make the source's scan readable on this connection."""
    import duckdb

    if source.kind == "database":
        try:
            connection.execute(attach(source)).fetchall()
        except duckdb.Error:
            hint = "close the program that writes to it"
            raise broken_rule(source.where, "a DuckDB file that can be opened", source.files[0].name, hint) from None
    elif source.kind == "frame":
        connection.register(source.alias, source.frame)


def attach(source: TableSource) -> str:
    """Return the statement that opens a DuckDB file; several tables of one file open it once."""
    return f"ATTACH IF NOT EXISTS {text(str(source.files[0]))} AS {identifier(source.alias)} (READ_ONLY)"


def columns(connection: duckdb.DuckDBPyConnection, source: TableSource) -> list[SourceColumn]:
    """Return the columns of a bound source, in order; reads footers, headers and catalogues, no row."""
    import duckdb

    try:
        found = connection.execute(f"DESCRIBE SELECT * FROM {source.scan}").fetchall()
    except duckdb.Error:
        kinds = {"database": "a table of that DuckDB file", "frame": "a frame that Arrow can hold"}
        given = source.table if source.kind == "database" else Plain(source.files[0].name if source.files else source.kind)
        raise broken_rule(source.where, kinds.get(source.kind, "files of one schema that can be read"), given) from None
    _require_few(source.where, len(found))
    return [SourceColumn(str(row[0]), str(row[1])) for row in found]


def _require_few(where: Where, number: int) -> None:
    """Refuse a table that no question could be planned on, before it is read: that takes time as columns squared."""
    if number > WIDEST:
        hint = "leave out what nobody asks about: write the other columns to a file, or name a view of a DuckDB file"
        raise broken_rule(where, f"a table of at most {WIDEST:,} columns", Plain(f"{number:,}"), hint)


def _files(source: str, folder: Path, where: Where) -> tuple[Path, ...]:
    path = (folder / source).absolute()
    if path.is_file():
        return (path,)
    if not _WILD & set(source):
        raise broken_rule(where, "a file that exists", source, f"looked in {path.parent}")
    pattern = os.path.join(glob.escape(str(folder.absolute())), source)  # noqa: PTH118 -- a pattern is no path
    found = sorted(Path(one) for one in glob.glob(pattern, recursive=True) if Path(one).is_file())  # noqa: PTH207 -- idem
    if not found:
        raise broken_rule(where, "a pattern that some file matches", source, f"looked in {folder.absolute()}")
    return tuple(found)


def _ending(file: Path) -> str:
    name = file.name.lower()
    return next((ending for ending in (*_PARQUET, *TEXT_ENDINGS) if name.endswith(ending)), file.suffix)


def _separated_source(files: tuple[Path, ...], alias: str, where: Where) -> TableSource:
    heads: list[tuple[str, list[str]]] = []
    for file in files:
        try:
            heads.append(read_header(file))
        except (HeaderError, OSError):
            rule = "separated text whose first line names every column, each once, in UTF-8"
            raise broken_rule(where, rule, file.name) from None
    _require_few(where, max(len(names) for _, names in heads))  # counted in the first line: to describe them takes long
    if any(head != heads[0] for head in heads):
        raise broken_rule(where, "files with the same first line", Plain("different ones"))
    return TableSource(where, "text", alias, files, scan_separated(files, *heads[0]))


def _database(file: str, inside: str, folder: Path, where: Where) -> TableSource:
    if not inside:
        raise broken_rule(where, "a DuckDB file with the table behind a #", f"{file}#", f"write {file}#<table>")
    files = _files(file, folder, where)
    if len(files) != 1:
        raise broken_rule(where, "one DuckDB file", file)
    schema, dot, table = inside.rpartition(".")
    name = f"{identifier(schema)}.{identifier(table)}" if dot else f"main.{identifier(inside)}"
    log = files[0].with_name(f"{files[0].name}.wal")  # what was written last may stand there alone
    logs = (log,) if log.is_file() else ()
    alias = f"file_{hashlib.sha256(str(files[0]).encode()).hexdigest()[:16]}"
    return TableSource(where, "database", alias, (*files, *logs), f"{identifier(alias)}.{name}", inside)
