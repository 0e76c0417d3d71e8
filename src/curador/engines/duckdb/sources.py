# ruff: noqa: S608 -- names and texts pass through `quoting`
"""Where a table's rows come from: Parquet files, separated text, a table of a DuckDB file, a frame given from Python.

Everything here is visible without a row: whether files exist, which columns they have, of which physical types.
"""

from __future__ import annotations

import glob
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

from curador.engines.duckdb import separated
from curador.engines.duckdb.frames import SameNamesError, to_arrow
from curador.engines.duckdb.quoting import identifier, listed, text
from curador.query.context import WIDEST
from curador.study.rules import Where, broken
from curador.study.spelling import Plain

if TYPE_CHECKING:
    import duckdb

    from curador.study.model import Study, Table

FRAME = "frame"
_PARQUET = (".parquet", ".pq", ".parq")
_DATABASES = (".duckdb", ".ddb", ".db")
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Source:
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


def find(study: Study, table: Table, alias: str) -> Source:
    """Return the source of a table of the study. Raises InvalidStudy for what is missing."""
    where: Where = ("tables", table.name, "source")
    if table.source == FRAME:
        if table.name not in study.frames:
            raise broken(where, "a file, or a frame given from Python", table.source, "give the frame to open()")
        return from_frame(study.frames[table.name], alias, where)
    return from_path(table.source, study.folder, alias, where)


def from_frame(frame: Any, alias: str, where: Where = ("source",)) -> Source:
    """Return the source of a table given from Python."""
    try:
        return Source(where, "frame", alias, (), identifier(alias), frame=to_arrow(frame))
    except SameNamesError:
        raise broken(where, "a table whose columns have different names", Plain("two of one name")) from None


def from_path(source: str, folder: Path, alias: str, where: Where = ("source",)) -> Source:
    """Return the source of a path, a glob or a DuckDB file with #table; relative paths start from the folder."""
    if "://" in source:
        raise broken(where, "a file on this machine", source)
    before, mark, inside = source.rpartition("#")
    if mark and before.lower().endswith(_DATABASES):
        return _database(before, inside, folder, where)
    if source.lower().endswith(_DATABASES):
        raise broken(where, "a DuckDB file with the table behind a #", source, f"write {source}#<table>")
    files = _files(source, folder, where)
    endings = {_ending(file) for file in files}
    if endings <= set(_PARQUET):
        names = listed(text(str(file)) for file in files)
        scan = f"read_parquet([{names}], union_by_name = true, hive_partitioning = false)"
        return Source(where, "parquet", alias, files, scan)
    if endings <= set(separated.ENDINGS):
        return _separated(files, alias, where)
    rule = "Parquet (.parquet), separated text (.csv, .tsv, .txt, also .gz) or a DuckDB file (.duckdb#table)"
    raise broken(where, rule, source)


def bind(connection: duckdb.DuckDBPyConnection, source: Source) -> None:
    """Make the source's scan readable on this connection."""
    import duckdb

    if source.kind == "database":
        try:
            connection.execute(attach(source)).fetchall()
        except duckdb.Error:
            hint = "close the program that writes to it"
            raise broken(source.where, "a DuckDB file that can be opened", source.files[0].name, hint) from None
    elif source.kind == "frame":
        connection.register(source.alias, source.frame)


def attach(source: Source) -> str:
    """Return the statement that opens a DuckDB file; several tables of one file open it once."""
    return f"ATTACH IF NOT EXISTS {text(str(source.files[0]))} AS {identifier(source.alias)} (READ_ONLY)"


def columns(connection: duckdb.DuckDBPyConnection, source: Source) -> list[SourceColumn]:
    """Return the columns of a bound source, in order; reads footers, headers and catalogues, no row."""
    import duckdb

    try:
        found = connection.execute(f"DESCRIBE SELECT * FROM {source.scan}").fetchall()
    except duckdb.Error:
        kinds = {"database": "a table of that DuckDB file", "frame": "a frame that Arrow can hold"}
        given = source.table if source.kind == "database" else Plain(source.files[0].name if source.files else source.kind)
        raise broken(source.where, kinds.get(source.kind, "files of one schema that can be read"), given) from None
    _require_few(source.where, len(found))
    return [SourceColumn(str(row[0]), str(row[1])) for row in found]


def _require_few(where: Where, number: int) -> None:
    """Refuse a table that no question could be planned on, before it is read: that takes time as columns squared."""
    if number > WIDEST:
        hint = "leave out what nobody asks about: write the other columns to a file, or name a view of a DuckDB file"
        raise broken(where, f"a table of at most {WIDEST:,} columns", Plain(f"{number:,}"), hint)


def _files(source: str, folder: Path, where: Where) -> tuple[Path, ...]:
    path = (folder / source).absolute()
    if path.is_file():
        return (path,)
    if not _WILD & set(source):
        raise broken(where, "a file that exists", source, f"looked in {path.parent}")
    pattern = os.path.join(glob.escape(str(folder.absolute())), source)  # noqa: PTH118 -- a pattern is no path
    found = sorted(Path(one) for one in glob.glob(pattern, recursive=True) if Path(one).is_file())  # noqa: PTH207 -- idem
    if not found:
        raise broken(where, "a pattern that some file matches", source, f"looked in {folder.absolute()}")
    return tuple(found)


def _ending(file: Path) -> str:
    name = file.name.lower()
    return next((ending for ending in (*_PARQUET, *separated.ENDINGS) if name.endswith(ending)), file.suffix)


def _separated(files: tuple[Path, ...], alias: str, where: Where) -> Source:
    heads: list[tuple[str, list[str]]] = []
    for file in files:
        try:
            heads.append(separated.header(file))
        except (separated.HeaderError, OSError):
            rule = "separated text whose first line names every column, each once, in UTF-8"
            raise broken(where, rule, file.name) from None
    _require_few(where, max(len(names) for _, names in heads))  # counted in the first line: to describe them takes long
    if any(head != heads[0] for head in heads):
        raise broken(where, "files with the same first line", Plain("different ones"))
    return Source(where, "text", alias, files, separated.scan(files, *heads[0]))


def _database(file: str, inside: str, folder: Path, where: Where) -> Source:
    if not inside:
        raise broken(where, "a DuckDB file with the table behind a #", f"{file}#", f"write {file}#<table>")
    files = _files(file, folder, where)
    if len(files) != 1:
        raise broken(where, "one DuckDB file", file)
    schema, dot, table = inside.rpartition(".")
    name = f"{identifier(schema)}.{identifier(table)}" if dot else f"main.{identifier(inside)}"
    log = files[0].with_name(f"{files[0].name}.wal")  # what was written last may stand there alone
    logs = (log,) if log.is_file() else ()
    alias = f"file_{hashlib.sha256(str(files[0]).encode()).hexdigest()[:16]}"
    return Source(where, "database", alias, (*files, *logs), f"{identifier(alias)}.{name}", inside)
