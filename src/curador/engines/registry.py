"""Which kinds of engines there are. A second one is a folder beside `duckdb/` and a line here, and no edit of the curator."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curador.engines.base import EngineKind

EMBEDDED = "duckdb"
"""The kind of every study: none names another one."""

_KINDS = {EMBEDDED: "curador.engines.duckdb.kind"}
"""Modules whose `KIND` it is, imported when first used: a driver is not needed to import a study."""


def engine_kind(name: str = EMBEDDED) -> EngineKind:
    """Return the kind of engine of this name."""
    kind: EngineKind = import_module(_KINDS[name]).KIND
    return kind
