r"""Sources that DuckDB does not read by itself, as Arrow streams: text of other encodings, quoted newlines, sheets.

Each stream is opened anew for every reading, and reads nothing before its first batch is pulled.

Encoded text: one column, `line`. Bytes of a one-byte encoding are characters one by one, and those of UTF-16 two by two, so a
line is a function of its own bytes; \n, \r\n or \r ends one. One beyond 16 MiB is left out, as in UTF-8.

Quoted newlines: a column for each name. The owner says that quotes are balanced; it is verified, and a file in which they are
not, or in which a record has another number of fields than the first line, is refused to the owner.
    Claim   A file that is accepted is a row of records, each read from the same state: with one record less it is accepted,
            and the others are the same.
    Needs   What one unit owns is whole records.
    Source  The reader's state behind a record is that before it; nothing but this state is carried on.

Sheets: a column for each name of the first row. A cell becomes text by its own value and the declared format alone: a whole
number its digits, a time ISO 8601, an error nothing.
"""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import gzip
import io
import re
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from curador.errors import InvalidStudy
from curador.study.formats import UTF_8, UTF_16, FileFormat, decode_bytes
from curador.study.rules import Where, broken_rule
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    import pyarrow as pa

LONGEST_LINE = 16 << 20
_BLOCK = 1 << 22
_BATCH = 1 << 15
_ENDS = re.compile("\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class SourceStream:
    """Rows as Arrow batches of text columns, which can be opened as often as one likes.

    problems  what stopped a reading, for the owner: an engine would tell it in words of its own
    """

    names: tuple[str, ...]
    rows: Callable[[], Iterator[Sequence[Sequence[str | None]]]]
    problems: list[InvalidStudy] = field(default_factory=list[InvalidStudy], compare=False)

    def open(self) -> pa.RecordBatchReader:
        """Return the rows once more, from the first; reads nothing yet."""
        import pyarrow as pa

        schema = pa.schema([(name, pa.string()) for name in self.names])
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            for columns in self.rows():
                yield pa.RecordBatch.from_arrays([pa.array(one, pa.string()) for one in columns], schema=schema)
        except InvalidStudy as problem:
            self.problems.append(problem)
            raise


def open_bytes(path: Path) -> BinaryIO:
    """Return the bytes of a file, unpacked."""
    return cast("BinaryIO", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


# ---- encoded text --------------------------------------------------------------------------------------------------


def stream_lines(files: Sequence[Path], encoding: str) -> SourceStream:
    """Return the lines of files, each without its first one: column `line`."""

    def batches() -> Iterator[Sequence[Sequence[str | None]]]:
        for file in files:
            waiting: list[str | None] = []
            for place, line in enumerate(read_lines(file, encoding)):
                if place and line:
                    waiting.append(line)
                if len(waiting) == _BATCH:
                    yield [waiting]
                    waiting = []
            if waiting:
                yield [waiting]

    return SourceStream(("line",), batches)


def read_lines(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a text, without what ends them; one that is too long is an empty one."""
    rest, too_long = "", False
    with closing(open_bytes(path)) as file:
        for text in _decoded(file, encoding):
            first, *others = _ENDS.split(rest + text[:-1])  # the last character waits: it may be half of \r\n
            last = text[-1:]
            for line in ([first, *others])[:-1]:
                yield "" if too_long or len(line) > LONGEST_LINE else line
                too_long = False
            rest = ([first, *others])[-1] + last
            if len(rest) > LONGEST_LINE:
                rest, too_long = last, True
    *whole, end = _ENDS.split(rest)
    for line in [*whole, *([end] if end else [])]:
        yield "" if too_long or len(line) > LONGEST_LINE else line
        too_long = False


def _decoded(file: BinaryIO, encoding: str) -> Iterator[str]:
    if encoding == UTF_16:
        return _decoded_pairs(file)
    return (decode_bytes(block, encoding) for block in iter(lambda: file.read(_BLOCK), b""))


def _decoded_pairs(file: BinaryIO) -> Iterator[str]:
    """UTF-16 by the mark at its beginning, else with the low byte first; half a pair is told by U+FFFD."""
    first = file.read(2)
    name = "utf-16-be" if first == codecs.BOM_UTF16_BE else "utf-16-le"
    decoder = codecs.getincrementaldecoder(name)("replace")
    block = b"" if first in {codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE} else first
    while block := block + file.read(_BLOCK):
        if text := decoder.decode(block):
            yield text
        block = b""


# ---- quoted newlines -----------------------------------------------------------------------------------------------


def stream_records(files: Sequence[Path], separator: str, names: Sequence[str], encoding: str, where: Where) -> SourceStream:
    """Return the records of files in which a newline may stand inside quotes."""

    def batches() -> Iterator[Sequence[Sequence[str | None]]]:
        for file in files:
            waiting: list[list[str]] = []
            for record in _records(file, separator, len(names), encoding, where):
                waiting.append(record)
                if len(waiting) == _BATCH:
                    yield _columns(waiting)
                    waiting = []
            if waiting:
                yield _columns(waiting)

    return SourceStream(tuple(names), batches)


def _columns(rows: list[list[str]]) -> Sequence[Sequence[str | None]]:
    return [[value or None for value in column] for column in zip(*rows, strict=True)]


def _records(path: Path, separator: str, width: int, encoding: str, where: Where) -> Iterator[list[str]]:
    codec = "utf-8-sig" if encoding == UTF_8 else encoding
    rule = "separated text in which quotes are balanced and every record has as many fields as the first line names"
    hint = "mend the file; without newlines = true each line is a record of its own"
    with closing(open_bytes(path)) as file:
        reader = csv.reader(io.TextIOWrapper(file, codec, newline=""), delimiter=separator, strict=True)
        try:
            next(reader, None)
            for record in reader:
                if len(record) != width and record:
                    raise broken_rule(where, rule, Plain(f"a record of another length in {path.name}"), hint)
                if record:
                    yield record
        except csv.Error:
            raise broken_rule(where, rule, Plain(f"a quote in {path.name} that nothing closes"), hint) from None
        except UnicodeDecodeError:
            told = 'say how it is written: format = { encoding = "windows-1252" }'
            raise broken_rule(where, f"text in {encoding}", Plain(f"other bytes in {path.name}"), told) from None


# ---- sheets --------------------------------------------------------------------------------------------------------


SHEET_ENDINGS = (".xlsx",)


def sheet_head(path: Path, sheet: str, where: Where) -> tuple[str, int, list[str]]:
    """Return the sheet's name, the place of its first column, and the names in its first row."""
    stat = path.stat()
    name, offset, first = _first_row(path, sheet, where, stat.st_size, stat.st_mtime_ns)
    named = [place for place, cell in enumerate(first) if cell]
    if not named:
        raise broken_rule(where, "a sheet whose first row names the columns", Plain("an empty row"))
    return name, offset + named[0], list(first[named[0] : named[-1] + 1])


@lru_cache(maxsize=64)
def _first_row(path: Path, sheet: str, where: Where, *_: int) -> tuple[str, int, tuple[str, ...]]:
    """The first row that is not empty; remembered as long as the file's size and time stay, as all of it is read for it."""
    with closing(_workbook(path, where)) as book:
        name = sheet or _only_sheet(book, path, where)
        if name not in book.sheet_names:
            raise broken_rule(where, f"a sheet of {path.name}", name, f"it has {', '.join(map(repr, book.sheet_names[:5]))}")
        found = book.get_sheet_by_name(name)
        start = (found.start or (0, 0))[1]
        for row in found.iter_rows():
            cells = [_spell_cell(cell, FileFormat()) or "" for cell in row]
            if any(cells):
                return name, start, tuple(cells)
    return name, 0, ()


def _only_sheet(book: Any, path: Path, where: Where) -> str:
    names = book.sheet_names
    if len(names) != 1:
        hint = f"write {path.name}#{names[0]}" if names else None
        raise broken_rule(where, "a workbook with the sheet behind a #", path.name, hint)
    return names[0]


def stream_sheet(path: Path, sheet: str, offset: int, names: Sequence[str], how: FileFormat, where: Where) -> SourceStream:
    """Return the rows below the first one; a row without a value in any column is left out."""

    def batches() -> Iterator[Sequence[Sequence[str | None]]]:
        with closing(_workbook(path, where)) as book:
            found = book.get_sheet_by_name(sheet)
            begin = offset - (found.start or (0, 0))[1]
            rows = ([_spell_cell(cell, how) for cell in row[begin : begin + len(names)]] for row in found.iter_rows())
            filled = (row for row in rows if any(cell is not None for cell in row))
            next(filled, None)
            yield from _in_batches(filled, len(names))

    return SourceStream(tuple(names), batches)


def _in_batches(rows: Iterable[list[str | None]], width: int) -> Iterator[Sequence[Sequence[str | None]]]:
    waiting: list[list[str | None]] = []
    for row in rows:
        waiting.append(row + [None] * (width - len(row)))
        if len(waiting) == _BATCH:
            yield list(zip(*waiting, strict=True))
            waiting = []
    if waiting:
        yield list(zip(*waiting, strict=True))


def _workbook(path: Path, where: Where) -> Any:
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        hint = "pip install 'curador[excel]'"
        raise broken_rule(where, "readable: sheets need python-calamine", Plain("no such package"), hint) from None
    try:
        return CalamineWorkbook.from_path(path)
    except (CalamineError, OSError):
        hint = "save it as .xlsx without a password"
        raise broken_rule(where, "a workbook that can be opened", path.name, hint) from None


def _spell_cell(cell: Any, how: FileFormat) -> str | None:
    """A cell as text: as a file in this format would have it."""
    if isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, (int, float)):
        whole = isinstance(cell, int) or cell.is_integer()
        return str(int(cell)) if whole and abs(cell) < 2**63 else repr(cell).replace(".", how.decimal)
    if isinstance(cell, (dt.datetime, dt.date)):
        return cell.isoformat(sep=" ") if isinstance(cell, dt.datetime) else cell.isoformat()
    return str(cell) if isinstance(cell, (dt.time, dt.timedelta)) else None
