"""Where the rows of private tables come from, named so that another study over the same rows can be recognised."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from curador.engines.base import EVERYTHING, PrivateSource
from curador.engines.duckdb import sources
from curador.engines.duckdb.connection import look
from curador.study.model import owner_text

if TYPE_CHECKING:
    from curador.engines.duckdb.sources import TableSource
    from curador.study.model import Study


def private_sources(study: Study) -> tuple[PrivateSource, ...]:
    """Return the files of the study's private tables, resolved; of a DuckDB file, the table inside it.

    A view may read any table of its file, so it stands for all of them. Frames lie nowhere and are not here.
    """
    found: list[PrivateSource] = []
    for place, table in enumerate(study.tables):
        if table.public or table.source == sources.FRAME:
            continue
        source = sources.find(study, table, f"source{place}")
        files = source.files[:1] if source.kind == "database" else source.files  # a log beside it is part of it
        inside, owner = _inside(source), owner_text(table.unit)
        found += [PrivateSource(table.name, owner, os.path.realpath(file), inside, Path(file)) for file in files]
    return tuple(found)


def _inside(source: TableSource) -> str:
    """Return the table inside a file, as DuckDB compares names: main.visits and Visits are one."""
    if source.kind != "database":
        return source.table.casefold()
    schema, _, name = source.table.rpartition(".")
    schema = schema or "main"
    connection = look()
    try:
        sources.bind(connection, source)
        views = connection.execute(
            "SELECT count(*) FROM duckdb_views() WHERE database_name = ? AND lower(schema_name) = ? AND lower(view_name) = ?",
            [source.alias, schema.lower(), name.lower()],
        ).fetchall()
    finally:
        connection.close()
    return EVERYTHING if views != [(0,)] else f"{schema}.{name}".casefold()
