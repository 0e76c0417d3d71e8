"""The embedded engine as a kind: what can be said and done before one is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curador.engines.base import Sources
from curador.engines.duckdb import snapshot
from curador.engines.duckdb.engine import DuckDBEngine
from curador.engines.duckdb.folder import Folder, prepared_folder
from curador.engines.duckdb.schema import describe, physical

if TYPE_CHECKING:
    from curador.engines.base import Engine, EngineKind
    from curador.study.model import Study
    from curador.study.schema import Schema
    from curador.study.values import Type


class DuckDBKind:
    """DuckDB in a worker process or in this one, on files and frames, beside a prepared copy of them."""

    def describe(self, study: Study) -> Schema:
        """Return every column of the study's sources, or refuse them. No row is read."""
        return describe(study)

    def physical_types(self, source: Any) -> list[tuple[str, str, Type | None]]:
        """Return the columns of a file or frame: name, DuckDB's type, and ours. No row is read."""
        return physical(source)

    def open(self, study: Study, version: int) -> Engine:
        """Return the engine on a data version."""
        return DuckDBEngine(study, version)

    def sources(self, study: Study, version: int) -> Sources:
        """Compare the sources with the manifest of the prepared folder."""
        folder = Folder(prepared_folder(study))
        manifest = snapshot.read(folder)
        if manifest is None or manifest.version != version:
            return Sources.UNKNOWN
        return Sources.CHANGED if snapshot.changed(study, folder) else Sources.SAME

    def drop_prepared(self, study: Study) -> str:
        """Remove the prepared copy of the data, and say so. What it was made from stays known: it can be made again."""
        folder = Folder(prepared_folder(study))
        if not folder.path.is_dir():
            return "nothing was prepared"
        before = folder.size()
        folder.remove_versions()
        return f"removed {before - folder.size():,} bytes from {folder.path}"


KIND: EngineKind = DuckDBKind()
