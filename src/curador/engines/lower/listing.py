"""A listing of keys as one statement over small tables: the expressions mean what they mean over rows.

The tables are named s0, s1, … after the listing's sources, with columns c0, c1, …
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.engines.lower.dialect_duckdb import DUCKDB
from curador.engines.lower.expression import lower_text
from curador.engines.lower.sql import commas, mark_generated, rows_of, select, too_deep
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.engines.lower.sql import Dialect, GeneratedSQL
    from curador.plan.listing import Listing, PublicMatch


def lower_listing(listing: Listing, most: int, *, dialect: Dialect = DUCKDB) -> GeneratedSQL:
    """Return the statement of all tuples k0, k1, … with the number n of rows that have each; at most `most` + 1 together."""
    names = [f"s{source}.c{column}" for source, column in listing.cells]
    tables = [f"s{place}" for place in range(len(listing.sources)) if place not in listing.beside]
    try:
        keys = [f"{lower_text(one, names, dialect)} AS k{place}" for place, one in enumerate(listing.expressions)]
        conditions = [lower_text(one, names, dialect, Type.BOOLEAN) for one in listing.conditions]
        conditions += [_lower_match(one, names, dialect) for one in listing.matches]
        source = commas(tables) if tables else rows_of("SELECT 1")
        rows = f"{select(keys, source, when=conditions)} LIMIT {most + 1:d}"
    except RecursionError:
        raise too_deep() from None
    shown = [f"k{place}" for place in range(len(keys))]
    return mark_generated(select([*shown, "COUNT(*) AS n"], rows_of(rows), by=shown))


def _lower_match(match: PublicMatch, names: list[str], dialect: Dialect) -> str:
    conditions = [lower_text(one, names, dialect, Type.BOOLEAN) for one in match.conditions]
    found = select(["1"], commas(f"s{source}" for source in match.sources), when=conditions)
    return f"{'NOT ' if match.none else ''}EXISTS ({found})"
