"""The rows of a private table with their units, for learners: what nobody but an estimator of ours sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.engines.lower.sql import GeneratedSQL, Statement, generated, select
from curador.study.model import UnitRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.study.schema import Schema

STATEMENT = "rows"


def lower_rows(schema: Schema, table: str, columns: Sequence[str]) -> Statement:
    """Return the statement that reads columns v0, v1, … and the unit `u` of a table.

    Claim   The rows of one unit depend on its own rows only; those of no unit are left out.
    """
    place = next(number for number, one in enumerate(schema.tables) if one.table.name == table)
    one = schema.tables[place]
    if one.table.public:
        raise AssertionError(table)  # nobody's rows
    named = [f"c{one.index(name)} AS v{number}" for number, name in enumerate(columns)]
    conditions = [] if isinstance(one.table.unit, UnitRow) else ["__u IS NOT NULL"]
    sql: GeneratedSQL = generated(select([*named, "__u AS u"], f"t{place}", when=conditions))
    return Statement(STATEMENT, sql)
