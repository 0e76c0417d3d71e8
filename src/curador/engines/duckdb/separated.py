"""Text files with separated values: the header is the schema, every field is text until the declared type reads it.

Types are never guessed from rows. The separator is read off the header: the one of , ; tab | that stands in it most often
outside quotes. Fields may be quoted by ", doubled inside. An empty field is NULL, a quoted empty one is an empty text. A row
with too few fields ends in NULLs, one with too many is cut; a row with bytes that are no UTF-8 is left out.
"""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING

from curador.engines.duckdb.quoting import listed, text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_SEPARATORS = ",;\t|"
_LONGEST_HEADER = 1 << 20
_LONGEST_LINE = 16 << 20


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
    separator = max(_SEPARATORS, key=lambda one: _outside_quotes(first).count(one))
    names = next(csv.reader([first], delimiter=separator), [])
    folded = {name.casefold() for name in names}
    if not names or "" in folded or len(folded) < len(names) or first.count('"') % 2:
        raise HeaderError
    return separator, names


def scan(paths: Sequence[Path], separator: str, names: Sequence[str]) -> str:
    """Return the FROM item that reads the files as text.

    One thread reads: where a row begins then never depends on how the file was cut into parts for several.
    """
    columns = listed(f"{text(name)}: 'VARCHAR'" for name in names)
    files = listed(text(str(path)) for path in paths)
    quote = text('"')
    return (
        f"read_csv([{files}], auto_detect = false, header = true, delim = {text(separator)}, quote = {quote},"
        f" escape = {quote},"
        f" columns = {{{columns}}}, nullstr = '', allow_quoted_nulls = false, null_padding = true, ignore_errors = true,"
        f" strict_mode = false, parallel = false, max_line_size = {_LONGEST_LINE})"
    )


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])
