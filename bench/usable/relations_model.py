"""A question as the peers get it: a file of its rows, and what is wanted of them."""

from __future__ import annotations

from dataclasses import dataclass

ROWS, SUM, MEAN, UNITS, VALUES = "rows", "sum", "mean", "units", "values"


@dataclass(frozen=True)
class Relation:
    """A question for a peer.

    file     its rows: unit, key (what is grouped by, or whose different values are counted), n (rows), counted (rows with a
             value), total
    what     which number is wanted: of rows, a sum, a mean, of units, of different values
    keyed    it is wanted for each key
    public   the keys, where they stand in a public table
    single   a unit has one row by declaration, so that nothing has to be capped
    truth    by key, as text
    """

    name: str
    file: str
    what: str
    keyed: bool
    public: list[str] | None
    single: bool
    truth: dict[str, float]
