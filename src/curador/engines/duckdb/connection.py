"""Connections to DuckDB: one shape for looking at sources, one for preparing, one for questions (closed on all sides)."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from curador.engines.duckdb.spelling import commas, text

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb

    from curador.study.model import EngineSettings

_ALWAYS: Mapping[str, str | int] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
}
"""Nothing is fetched, no variable of the host program is a table."""


_IN_ORDER = (
    "build_side_probe_side",
    "join_elimination",
    "join_filter_pushdown",
    "join_order",
    "late_materialization",
    "row_group_pruner",
    "statistics_propagation",
    "top_n_window_elimination",
    "window_self_join",
)
"""What DuckDB must not do with a question: look at the data's statistics to decide what to read, or change the order and the
sides of joins. A question whose rows would lie outside the smallest and largest values of a column takes no time then, one
person's value outside them takes a scan of everybody's rows; a join that finds one side empty does not read the other. Each
tells about one person, by the clock, what no noise covers. `plan/work.py` counts on the order in which joins are written."""


def run_in_order(connection: duckdb.DuckDBPyConnection) -> None:
    """Let questions on this connection run as they are written; before `close_doors`."""
    if _is_locked(connection):
        return
    connection.execute(f"SET disabled_optimizers = {text(','.join(_IN_ORDER))}").fetchall()


def limits(settings: EngineSettings, spill: Path) -> dict[str, str | int]:
    """Return what bounds a connection's use of the machine."""
    return {
        "threads": settings.threads,
        "memory_limit": f"{settings.memory}B",
        "temp_directory": str(spill),
        "max_temp_directory_size": f"{settings.spill}B",
    }


def look() -> duckdb.DuckDBPyConnection:
    """Return a connection for looking at sources and at public tables; it holds nothing."""
    return connect(":memory:", {"threads": 1})


def connect(database: str, config: Mapping[str, str | int], *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Return a connection with times in UTC. It can read files until `close_doors`."""
    import duckdb

    connection = duckdb.connect(database, read_only=read_only, config={**_ALWAYS, **config})
    if connection.execute("SELECT current_setting('TimeZone')").fetchall() != [("UTC",)]:
        # for all connections to this file: a second one cannot set it any more once the doors are closed
        connection.execute("SET GLOBAL TimeZone = 'UTC'").fetchall()
    return connection


def close_doors(connection: duckdb.DuckDBPyConnection, allowed: Sequence[str] = ()) -> None:
    """Leave no way to a file but the allowed ones and the spill folder, and no way to change a setting."""
    if _is_locked(connection):
        return  # a second connection to a file of this process: its doors are closed already
    if allowed:
        connection.execute(f"SET allowed_paths = [{commas(text(path) for path in allowed)}]").fetchall()
    connection.execute("SET enable_external_access = false").fetchall()
    connection.execute("SET lock_configuration = true").fetchall()


def _is_locked(connection: duckdb.DuckDBPyConnection) -> bool:
    return connection.execute("SELECT current_setting('lock_configuration')").fetchall() == [(True,)]


class _Umask:
    """The process's umask while some thread makes private files: the first sets it, the last one sets it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = os.umask(0o077)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                os.umask(self._before)


_UMASK = _Umask()


def private_files() -> contextlib.AbstractContextManager[None]:
    """Let every file made meanwhile be the owner's alone: database, log and spill of DuckDB hold raw rows."""
    return _UMASK
