"""How an answer leaves the command line: a table for people, CSV, JSON or Parquet for programs."""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.errors import InvalidParameter
from curador.study.values import number_text

if TYPE_CHECKING:
    from collections.abc import Generator

    from curador.curator.answer import Answer


class Format(enum.StrEnum):
    """What is written to standard output, or to the file of --out."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def check_output(shape: Format, out: Path | None, receipt: Path | None) -> None:
    """Refuse what could not be written, before anything is spent."""
    if shape is Format.PARQUET and out is None and sys.stdout.isatty():
        raise InvalidParameter.must_be("--out", "given for Parquet on a terminal", "nothing", "write --out answer.parquet")
    for name, path in (("--out", out), ("--receipt", receipt)):
        if path is not None:
            require_writable(name, path)


def require_writable(option: str, path: Path) -> None:
    """Refuse a file that cannot be written, by opening it; one that was not there is not there afterwards."""
    try:
        if not path.absolute().parent.is_dir():
            raise InvalidParameter.must_be(option, "a file in a folder that exists", str(path))
        there = path.exists()
        if there and not (path.is_file() or path.is_dir()):
            return  # a pipe or a device: opening it could wait, or be seen
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as problem:
        raise unwritable(option, path, problem) from None


def unwritable(option: str, path: Path, problem: OSError, more: str = "") -> InvalidParameter:
    """Return the refusal of a file that cannot be written."""
    hint = f"the system says: {problem.strerror}{more}"
    return InvalidParameter.must_be(option, "a file that can be written", str(path), hint)


def write_all(answer: Answer, shape: Format, out: Path | None, receipt: Path | None) -> None:
    """Write the answer, and the receipt where it is wanted. A disk that is full loses nothing: the answer is stored."""
    with _storing("--out", out):
        write_answer(answer, shape, out)
    with _storing("--receipt", receipt):
        if receipt is not None:
            receipt.write_text(answer.receipt.to_json(), encoding="utf-8")


@contextlib.contextmanager
def _storing(option: str, path: Path | None) -> Generator[None]:
    try:
        yield
    except OSError as problem:
        if path is None:
            raise
        hint = "; the answer is stored: the same question again is free"
        raise unwritable(option, path, problem, hint) from None


def write_answer(answer: Answer, shape: Format, out: Path | None) -> None:
    """Write the answer to the file, or to standard output."""
    if shape is Format.TABLE and out is None:
        from rich.console import Console

        terminal = sys.stdout.isatty()
        Console(file=sys.stdout, width=None if terminal else 112, highlight=False).print(answer)
        return
    content = _content(answer, shape)
    if out is not None:
        out.write_bytes(content)
        print(f"wrote {out}", file=sys.stderr)
    elif shape is Format.PARQUET:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    else:
        sys.stdout.write(content.decode())


def _content(answer: Answer, shape: Format) -> bytes:
    if shape is Format.TABLE:
        return f"{answer}\n".encode()
    if shape is Format.JSON:
        return (json.dumps(_record(answer), ensure_ascii=False, allow_nan=False, default=_plain) + "\n").encode()
    stream = io.BytesIO()
    if shape is Format.CSV:
        from pyarrow import csv

        csv.write_csv(_marked_rows(answer), stream)
    else:
        from pyarrow import parquet

        parquet.write_table(answer.to_arrow(), stream)
    return stream.getvalue()


def _marked_rows(answer: Answer) -> Any:
    """Return the rows for a file that has no place for a mark: of a made-up answer every row says so in a last column."""
    found = answer.to_arrow()
    if not answer.made_up:
        return found
    name = "made_up"
    while name in found.column_names:
        name += "_"
    return found.append_column(name, [["made up"] * len(found)])


def _record(answer: Answer) -> dict[str, Any]:
    from curador.curator.answer import MADE_UP

    return {
        **({"made_up": MADE_UP} if answer.made_up else {}),
        "columns": list(answer.columns),
        "rows": answer.rows,
        "confidence": number_text(answer.confidence),
        "cost": answer.cost.record(),
        "stored": answer.stored,
        "notes": list(answer.notes),
        "bias": {
            part.name: {"share": part.values[0], "low": part.low and part.low[0], "high": part.high and part.high[0]}
            for part in answer.bias
        },
    }


def _plain(value: object) -> Any:
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()  # type: ignore[attr-defined]  # a number of numpy's
    raise TypeError(f"{type(value).__name__} has no JSON form")
