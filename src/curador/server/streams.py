"""An answer as a file: CSV for people and for programs, Arrow, and names under which a browser keeps it."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from curador.server.jobs import Outcome

CSV: Final = "text/csv"
ARROW: Final = "application/vnd.apache.arrow.stream"
_BEGINNINGS: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_bytes(table: Any, *, raw: bool = False) -> bytes:
    """Return a table as CSV, with a line of names.

    raw  texts as they are, for programs; else what a spreadsheet would compute begins with an apostrophe

    Claim   Unless raw, no cell that a spreadsheet reads as a text of the table begins with = + - @, tab or return. Numbers
            stay numbers.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_MINIMAL)
    writer.writerow(table.column_names if raw else [_harmless(name) for name in table.column_names])
    columns: list[list[Any]] = []
    for column in table.columns:
        values = column.to_pylist()
        if str(column.type) in {"string", "large_string"} and not raw:
            values = [value if value is None else _harmless(value) for value in values]
        columns.append(["" if value is None else _cell(value) for value in values])
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue().encode("utf-8", "replace")


def _harmless(text: str) -> str:
    return "'" + text if text.startswith(_BEGINNINGS) else text


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else repr(value) if isinstance(value, float) else str(value)


def file_name(outcome: Outcome, ending: str) -> str:
    """Return the name of a download: made of the id alone."""
    return f"answer-{outcome.id[:12]}.{ending}"
