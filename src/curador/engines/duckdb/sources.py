# ruff: noqa: S608 -- names and texts pass through `quoting`

# ruff: noqa: S608 -- names and texts pass through `quoting`, the rest is ours

"""Where a table's rows come from: Parquet files, separated text, a sheet, a table of a DuckDB file, a frame from Python.

Everything here is visible without a row: whether files exist, which columns they have, of which physical types.

Separated text: the header is the schema, every field is text until the declared type reads it.
Types are never guessed from rows. The separator is declared, or read off the header: the one of , ; tab | that stands in it
most often outside quotes. Records are lines, also where a quote is open at the end of one: no line changes how another is
read.
A field is quoted if it begins and ends with ", those inside doubled; any other is the text up to the next separator, quotes
and all. An empty field is NULL, a quoted empty one is an empty text. A line with too few fields ends in NULLs, one with too
many is cut; an empty one, one with bytes that are no UTF-8 and one beyond 16 MiB are left out. Other encodings, quoted
newlines and sheets, all of which are declared, come as streams (`streams.py`).
"""

from __future__ import annotations

import codecs
import csv
import glob
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

from curador.engines.duckdb.arrow import SameNamesError, to_arrow
from curador.engines.duckdb.spelling import commas, identifier, text
from curador.engines.duckdb.streams import (
    LONGEST_LINE,
    SHEET_ENDINGS,
    SourceStream,
    open_bytes,
    sheet_head,
    stream_lines,
    stream_records,
    stream_sheet,
)
from curador.query.context import WIDEST
from curador.study.formats import SEPARATORS, UTF_8, UTF_16, FileFormat, decode_bytes
from curador.study.rules import Where, broken_rule
from curador.study.values import Plain, string_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from curador.study.model import Study, Table


# ---- separated -------------------------------------------------------------------------------------------------------------


TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_LONGEST_HEADER = 1 << 20
_QUOTE = '"'
_QUOTED = '"(?:[^"]|"")*"'
_NOWHERE = "\x01\x02\x03\x01"
"""What would separate columns of lines, which are one column: should a line hold it, the line ends there."""


class HeaderError(ValueError):
    """The file does not begin with a line of different, non-empty names; its text says why not, and its hint what to do."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.hint = hint


def read_header(path: Path, how: FileFormat | None = None) -> tuple[str, list[str]]:
    """Return the separator and the names of the columns; reads the first line only."""
    how = how or FileFormat()
    first = _first_line(path, how.encoding)
    if "\r" in first:  # ends a line, as everywhere
        raise HeaderError("lines that end in a carriage return alone")
    separator = how.separator or max(SEPARATORS, key=lambda one: _outside_quotes(first).count(one))
    if first.count(_QUOTE) % 2:
        raise HeaderError("a quote in the first line that nothing closes")
    names = next(csv.reader([first], delimiter=separator), [])
    check_names(names)
    return separator, names


def check_names(names: Sequence[str]) -> None:
    """Refuse names of columns that are not all there, or not all different, and say which."""
    if not names:
        raise HeaderError("an empty first line")
    if "" in names:
        raise HeaderError(f"no name for column {names.index('') + 1} of {len(names)}")
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise HeaderError(f"the column {string_text(name)} twice (letter case makes no difference)")
        seen.add(name.casefold())


def _first_line(path: Path, encoding: str) -> str:
    with open_bytes(path) as file:
        line = file.read(_LONGEST_HEADER) if encoding == UTF_16 else file.readline(_LONGEST_HEADER)
    if encoding == UTF_16:
        return line[: len(line) // 2 * 2].decode("utf-16", errors="replace").split("\n", 1)[0].rstrip("\r")
    if encoding != UTF_8:
        if line.startswith(codecs.BOM_UTF8):
            raise HeaderError("the mark of UTF-8 at its beginning", "leave encoding away: it is UTF-8")
        return decode_bytes(line, encoding).rstrip("\r\n")
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise HeaderError("text in UTF-16", 'say format = { encoding = "utf-16" }')
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        hint = 'say how it is written, such as format = { encoding = "windows-1252" }'
        raise HeaderError("a first line that is no UTF-8", hint) from None


def scan_separated(paths: Sequence[Path], separator: str, names: Sequence[str], lines: str | None = None) -> str:
    r"""Return the FROM item that reads the files as text; `lines` is another one with their lines, where they are no UTF-8.

    Claim   Every row is a function of one line alone: a file with one line more has that line's rows more, else the same.
    Needs   Records are lines: \n, \r\n or \r ends one, also inside quotes.
    Source  The reader knows no quotes, so lines end where their bytes say so. Fields are split by string_split and a regular
            expression, of which both are total.
    """
    lines = lines or (
        f"read_csv([{commas(text(str(path)) for path in paths)}], columns = {{'line': 'VARCHAR'}},"
        f" auto_detect = false, header = true, delim = {text(_NOWHERE)}, quote = '', escape = '', comment = '',"
        f" new_line = '\\n', nullstr = '', null_padding = true, ignore_errors = true, strict_mode = false, parallel = false,"
        f" max_line_size = {LONGEST_LINE})"
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
    stream  of what DuckDB does not read by itself: where its rows come from
    separator  of separated text
    """

    where: Where
    kind: OneOf["parquet", "text", "database", "frame", "stream"]
    alias: str
    files: tuple[Path, ...]
    scan: str
    table: str = ""
    frame: Any = None
    stream: SourceStream | None = None
    separator: str | None = None


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
    return from_path(table.source, study.folder, alias, where, table.format)


def is_streamed(table: Table) -> bool:
    """Whether DuckDB cannot read a table's source by itself: a worker is given a copy of it."""
    text_of_another_kind = table.format is not None and (table.format.encoding != UTF_8 or table.format.newlines)
    return table.source == FRAME or is_sheet(table.source) or text_of_another_kind


def is_sheet(source: str) -> bool:
    """Whether a source is a sheet of a workbook."""
    before, mark, _ = source.rpartition("#")
    return (before if mark else source).lower().endswith(SHEET_ENDINGS) or source.lower().endswith(SHEET_ENDINGS)


def from_frame(frame: Any, alias: str, where: Where = ("source",)) -> TableSource:
    """Return the source of a table given from Python."""
    try:
        return TableSource(where, "frame", alias, (), identifier(alias), frame=to_arrow(frame))
    except SameNamesError:
        raise broken_rule(where, "a table whose columns have different names", Plain("two of one name")) from None


def from_path(
    source: str, folder: Path, alias: str, where: Where = ("source",), how: FileFormat | None = None
) -> TableSource:
    """Return the source of a path, a glob, or a DuckDB file or workbook with #table; relative paths start from the folder."""
    if "://" in source:
        raise broken_rule(where, "a file on this machine", source)
    found = _from_path(source, folder, alias, where, how)
    of_file = None if how is None else how.of_file
    if of_file is not None and (found.kind not in {"text", "stream"} or is_sheet(source)):
        hint = "only separated text has one; how numbers, dates and NULLs are written may be said of every source"
        raise broken_rule((*where[:-1], "format", of_file), "absent for this source", getattr(how, of_file), hint)
    return found


def _from_path(source: str, folder: Path, alias: str, where: Where, how: FileFormat | None) -> TableSource:
    before, mark, inside = source.rpartition("#")
    if mark and before.lower().endswith(_DATABASES):
        return _database(before, inside, folder, where)
    if source.lower().endswith(_DATABASES):
        raise broken_rule(where, "a DuckDB file with the table behind a #", source, f"write {source}#<table>")
    if is_sheet(source):
        return _sheet(source, folder, alias, where, how or FileFormat())
    files = found_files(source, folder, where)
    endings = {_ending(file) for file in files}
    if endings <= set(_PARQUET):
        names = commas(text(str(file)) for file in files)
        scan = f"read_parquet([{names}], union_by_name = true, hive_partitioning = false)"
        return TableSource(where, "parquet", alias, files, scan)
    if endings <= set(TEXT_ENDINGS):
        return _separated_source(files, alias, where, how)
    rule = (
        "Parquet (.parquet), separated text (.csv, .tsv, .txt, also .gz), "
        "a sheet (.xlsx#sheet) or a DuckDB file (.duckdb#table)"
    )
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
    elif source.stream is not None:
        connection.register(source.alias, source.stream.open())


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


def found_files(source: str, folder: Path, where: Where = ("source",)) -> tuple[Path, ...]:
    """Return the files of a path or a glob."""
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


def _separated_source(files: tuple[Path, ...], alias: str, where: Where, how: FileFormat | None) -> TableSource:
    heads: list[tuple[str, list[str]]] = []
    for file in files:
        try:
            heads.append(read_header(file, how))
        except (HeaderError, OSError) as problem:
            encoding = (how or FileFormat()).encoding
            written = encoding.upper() if encoding in {UTF_8, UTF_16} else encoding
            rule = f"separated text whose first line names every column, each once, in {written}"
            hint = problem.hint if isinstance(problem, HeaderError) else None
            raise broken_rule(where, rule, Plain(f"{file.name!r} with {_reason(problem)}"), hint) from None
    _require_few(where, max(len(names) for _, names in heads))  # counted in the first line: to describe them takes long
    if any(head != heads[0] for head in heads):
        raise broken_rule(where, "files with the same first line", Plain("different ones"))
    separator, names = heads[0]
    if how is not None and how.newlines:
        stream = stream_records(files, separator, names, how.encoding, where)
        return TableSource(where, "stream", alias, files, identifier(alias), stream=stream, separator=separator)
    if how is not None and how.encoding != UTF_8:
        scan = scan_separated(files, separator, names, identifier(alias))
        stream = stream_lines(files, how.encoding)
        return TableSource(where, "stream", alias, files, scan, stream=stream, separator=separator)
    return TableSource(where, "text", alias, files, scan_separated(files, separator, names), separator=separator)


def _reason(problem: Exception) -> str:
    return str(problem) if isinstance(problem, HeaderError) else "bytes that cannot be read"


def _sheet(source: str, folder: Path, alias: str, where: Where, how: FileFormat) -> TableSource:
    before, _, inside = source.rpartition("#") if not source.lower().endswith(SHEET_ENDINGS) else (source, "", "")
    files = found_files(before, folder, where)
    if len(files) != 1:
        raise broken_rule(where, "one workbook", before)
    sheet, offset, names = sheet_head(files[0], inside, where)
    try:
        check_names(names)
    except HeaderError as problem:
        rule = "a sheet whose first row names every column, each once"
        raise broken_rule(where, rule, Plain(f"{source!r} with {problem}")) from None
    _require_few(where, len(names))
    stream = stream_sheet(files[0], sheet, offset, names, how, where)
    return TableSource(where, "stream", alias, files, identifier(alias), sheet, stream=stream)


def _database(file: str, inside: str, folder: Path, where: Where) -> TableSource:
    if not inside:
        raise broken_rule(where, "a DuckDB file with the table behind a #", f"{file}#", f"write {file}#<table>")
    files = found_files(file, folder, where)
    if len(files) != 1:
        raise broken_rule(where, "one DuckDB file", file)
    schema, dot, table = inside.rpartition(".")
    name = f"{identifier(schema)}.{identifier(table)}" if dot else f"main.{identifier(inside)}"
    log = files[0].with_name(f"{files[0].name}.wal")  # what was written last may stand there alone
    logs = (log,) if log.is_file() else ()
    alias = f"file_{hashlib.sha256(str(files[0]).encode()).hexdigest()[:16]}"
    return TableSource(where, "database", alias, (*files, *logs), f"{identifier(alias)}.{name}", inside)
