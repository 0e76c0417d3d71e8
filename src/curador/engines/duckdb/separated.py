# ruff: noqa: S608 -- names and texts pass through `quoting`, the rest is ours
"""Text files with separated values: the header is the schema, every field is text until the declared type reads it.

Types are never guessed from rows. The separator is read off the header: the one of , ; tab | that stands in it most often
outside quotes. Records are lines, also where a quote is open at the end of one: no line changes how another one is read.
A field is quoted if it begins and ends with ", those inside doubled; any other is the text up to the next separator, quotes
and all. An empty field is NULL, a quoted empty one is an empty text. A line with too few fields ends in NULLs, one with too
many is cut; an empty one, one with bytes that are no UTF-8 and one beyond 16 MiB are left out.
"""

from __future__ import annotations

import csv
import gzip
import re
from typing import TYPE_CHECKING

from curador.engines.duckdb.quoting import identifier, listed, text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_SEPARATORS = ",;\t|"
_LONGEST_HEADER = 1 << 20
_LONGEST_LINE = 16 << 20
_QUOTE = '"'
_QUOTED = '"(?:[^"]|"")*"'
_NOWHERE = "\x01\x02\x03\x01"
"""What would separate columns of lines, which are one column: should a line hold it, the line ends there."""


class HeaderError(ValueError):
    """The file does not begin with a line of different, non-empty names."""


def header(path: Path) -> tuple[str, list[str]]:
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


def scan(paths: Sequence[Path], separator: str, names: Sequence[str]) -> str:
    r"""Return the FROM item that reads the files as text.

    Claim   Every row is a function of one line alone: a file with one line more has that line's rows more, else the same.
    Needs   Records are lines: \n, \r\n or \r ends one, also inside quotes.
    Source  The reader knows no quotes, so lines end where their bytes say so. Fields are split by string_split and a regular
            expression, of which both are total.
    """
    lines = (
        f"read_csv([{listed(text(str(path)) for path in paths)}], columns = {{'line': 'VARCHAR'}},"
        f" auto_detect = false, header = true, delim = {text(_NOWHERE)}, quote = '', escape = '', comment = '',"
        f" new_line = '\\n', nullstr = '', null_padding = true, ignore_errors = true, strict_mode = false, parallel = false,"
        f" max_line_size = {_LONGEST_LINE})"
    )
    any_quote = f"contains(line, {text(_QUOTE)})"
    one = re.escape(separator)
    some = text(f"({_QUOTED}|[^{one}]*)(?:{one}|$)")
    fields = f"CASE WHEN {any_quote} THEN regexp_extract_all(line, {some}, 1) ELSE string_split(line, {text(separator)}) END"
    split = f"SELECT {any_quote} AS quotes, {fields} AS fields FROM {lines} WHERE line IS NOT NULL"
    columns = listed(f"{_field(f'fields[{place}]')} AS {identifier(name)}" for place, name in enumerate(names, 1))
    return f"(SELECT {columns} FROM ({split}))"


def _field(x: str) -> str:
    quote, doubled = text(_QUOTE), text(2 * _QUOTE)
    inside = f"replace(substr({x}, 2, length({x}) - 2), {doubled}, {quote})"
    return f"CASE WHEN {x} = '' THEN NULL WHEN quotes AND regexp_full_match({x}, {text(_QUOTED)}) THEN {inside} ELSE {x} END"


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])
