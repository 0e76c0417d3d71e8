"""`curador init`: the draft of a study of one table or of several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from curador.errors import InvalidParameter, InvalidStudy
from curador.study.build import table_name
from curador.study.draft import DraftTable, draft_toml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.engines.base import EngineKind

_WILD = frozenset("*?[")


def draft_of(tables: Sequence[str], out: Path | None, *, look: bool) -> str:
    """Return the draft of a study of these tables. Rows are read only to look at them."""
    from curador.cli.study import tell
    from curador.engines.base import engine_kind
    from curador.engines.duckdb.prepare import Progress

    kind = engine_kind()
    with Progress(tell if look else None) as progress:
        progress.step("looking at rows")
        drafts = [_table(kind, table, out, look=look) for table in tables]
    names = [draft.name.casefold() for draft in drafts]
    twice = next((draft.name for place, draft in enumerate(drafts) if names[place] in names[:place]), None)
    if twice is not None:
        raise InvalidParameter.must_be("tables", "of different names", twice, "give one of the files another name")
    return draft_toml(drafts[0].name if len(drafts) == 1 else "study", drafts)


def _table(kind: EngineKind, table: str, out: Path | None, *, look: bool) -> DraftTable:
    if Path(table).is_dir():
        hint = f"name its files: curador init {Path(table) / '*.parquet'}"
        raise InvalidStudy.must_be("source", "a file", f"the folder {table}", hint)
    looked = kind.look(table) if look else None
    how = None if looked is None or not looked.format.said() else looked.format
    physical = kind.physical_types(table, how)
    if _WILD & set(table) and not Path(table).is_file():
        _require_one_table(kind, table, physical)
    source = table
    if out is not None and not Path(table).is_absolute() and out.absolute().parent != Path.cwd():
        source = str(Path(table).absolute())  # what a study names is relative to its own folder
    if looked is None:
        return DraftTable(table_name(table), source, physical)
    return DraftTable(table_name(table), source, physical, how, looked.types, looked.notes, looked=True)


def _require_one_table(kind: EngineKind, pattern: str, physical: Sequence[tuple[str, str, object]]) -> None:
    """Refuse a pattern of files that are different tables: they would be read as one, with holes."""
    from curador.engines.duckdb.sources import found_files

    if "#" in pattern:
        return
    files = found_files(pattern, Path())
    names = {name for name, _, _ in physical}
    for file in files:
        own = {name for name, _, _ in kind.physical_types(str(file))} if file.suffix in {".parquet", ".pq"} else names
        if own != names:
            listed = " ".join(one.name for one in files[:3])
            hint = f"name each table by itself: curador init {listed}{' …' if len(files) > 3 else ''}"
            raise InvalidStudy.must_be("source", "a pattern whose files have the same columns", pattern, hint)
