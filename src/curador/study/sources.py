"""Where tables given from Python come from: files (made relative to one folder) or data frames."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curador.study.consistency import FRAME
from curador.study.rules import Where, broken

_FRAMES = {("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch")}
_ENDINGS = {".parquet", ".pq", ".csv", ".tsv", ".txt", ".gz", ".zst", ".duckdb", ".ddb", ".db"}
_DATABASES = (".duckdb", ".ddb", ".db")
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Sources:
    """The folder that relative sources are relative to, the text of each source, and the frames."""

    folder: Path
    texts: Mapping[str, str]
    frames: Mapping[str, Any]


def is_frame(value: object) -> bool:
    """Whether the value is a whole table in memory; what can be read only once, or later, is not."""
    return any((kind.__module__.partition(".")[0], kind.__name__) in _FRAMES for kind in type(value).__mro__)


def gather(sources: Mapping[str, Any]) -> Sources:
    """Return the sources by table name. A path is relative to the working folder, as everywhere in Python."""
    frames = {name: value for name, value in sources.items() if is_frame(value)}
    files = {name: _path(("tables", name, "source"), value) for name, value in sources.items() if name not in frames}
    folders = {_still_part(file) for file in files.values()}
    folder = folders.pop() if len(folders) == 1 else Path.cwd()
    texts = {name: FRAME if name in frames else relative(files[name], folder).as_posix() for name in sources}
    return Sources(folder, texts, frames)


def relative(path: Path, folder: Path) -> Path:
    """Return the path as seen from the folder if it lies below it, else whole."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def table_name(path: str | Path) -> str:
    """Return what a file's table is called unless something else is said: file name, DuckDB table, or folder of a glob."""
    text = os.fspath(path)
    before, mark, table = text.rpartition("#")
    if mark and before.endswith(_DATABASES):
        return table
    file = Path(text)
    return _still_part(file.absolute()).name if _WILD & set(file.name) else _stem(file)


def ledger_beside(path: str | Path) -> Path:
    """Return the default ledger of a file: beside it, under its name."""
    before, mark, _ = os.fspath(path).rpartition("#")
    file = Path(os.path.normpath(Path(before if mark and before.endswith(_DATABASES) else path).absolute()))
    folder = _still_part(file)
    return folder / f"{folder.name if _WILD & set(file.name) else _stem(file)}.ledger"


def _path(where: Where, value: object) -> Path:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        kind = value if isinstance(value, str) else f"{type(value).__module__}.{type(value).__qualname__}"
        raise broken(where, "a path, or a pandas, Polars or Arrow table", kind, _hint(value))
    return Path(os.path.normpath(Path(value).absolute()))  # type: ignore[arg-type]


def _hint(value: object) -> str | None:
    if type(value).__name__ == "LazyFrame":
        return "collect() it first"
    return "several tables are given as { name: source }" if isinstance(value, (list, tuple)) else None


def _stem(file: Path) -> str:
    while file.suffix.lower() in _ENDINGS:
        file = file.with_suffix("")
    return file.name


def _still_part(path: Path) -> Path:
    """Return the deepest folder above every wildcard."""
    folder = path.parent
    while _WILD & set(str(folder)):
        folder = folder.parent
    return folder
