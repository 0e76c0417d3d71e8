"""Types of columns, and the values that bounds, declared values and literals may have.

type        Python value of a bound, a declared value or a literal
boolean     bool
integer     int
decimal     Fraction
float       Fraction (finite; the engine computes in doubles)
string      str
date        datetime.date
timestamp   datetime.datetime without zone (read as UTC)
"""

from __future__ import annotations

import datetime as dt
import enum
from fractions import Fraction
from typing import TypeAlias

Value: TypeAlias = bool | int | Fraction | str | dt.date | dt.datetime
"""A value that is known without data."""


class Type(enum.StrEnum):
    """What stands in a column."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"

    @property
    def numeric(self) -> bool:
        """Whether arithmetic is defined."""
        return self in {Type.INTEGER, Type.DECIMAL, Type.FLOAT}

    @property
    def temporal(self) -> bool:
        """Whether it is a point in time."""
        return self in {Type.DATE, Type.TIMESTAMP}
