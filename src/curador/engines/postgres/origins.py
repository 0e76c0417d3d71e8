"""Where the rows of private tables come from, by server, database and table: whoever asks, and by whatever address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.engines.base import EVERYTHING, PrivateSource
from curador.engines.duckdb.versions import SourceFingerprint
from curador.engines.postgres.catalogue import find_table
from curador.study.model import owner_text

if TYPE_CHECKING:
    from curador.engines.postgres.server import Cursor
    from curador.study.model import Study

_PLACE = """
SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()), (SELECT oid FROM pg_catalog.pg_database
        WHERE datname = current_database())::bigint, current_database()
"""


def place_of(cursor: Cursor) -> str:
    """Return what names the server and the database: the number that the cluster was made with, which its copies share."""
    cursor.execute(_PLACE)
    found = cursor.fetchone()
    if found is None:
        raise AssertionError  # one row, whatever there is
    return f"postgresql:{found[0]}/{found[1]}/{found[2]}"


def private_sources(cursor: Cursor, study: Study) -> tuple[PrivateSource, ...]:
    """Return the server's tables that private tables are read from.

    A view may read any table, and a partition or a child is part of another one: they stand for all of the database.
    """
    place = place_of(cursor)
    found: list[PrivateSource] = []
    for table in study.tables:
        if not table.public:
            read = find_table(cursor, study, table)
            inside = f"{read.schema}.{read.name}" if read.plain else EVERYTHING
            found.append(PrivateSource(table.name, owner_text(table.unit), place, inside))
    return tuple(found)


def sources_of(cursor: Cursor, study: Study) -> dict[str, tuple[SourceFingerprint, ...]]:
    """Return, by table, the place that a version was taken from: what rows were there before nobody can compare."""
    place = place_of(cursor)
    return {table.name: (SourceFingerprint(f"{place}#{table.source}", 0, 0, ""),) for table in study.tables}
