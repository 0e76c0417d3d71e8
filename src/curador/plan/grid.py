"""Public grids: which power of two a value is rounded to. A function of bounds, so of the study and the question alone.

Sums use about 2³⁰ steps between the bounds: one row fits 32 bits, rounding errs by a billionth of the range, far below any
noise, and the sum of 2³⁰ units' rows stays below 2¹²⁶. Histograms for quantiles use at most 2¹⁶ cells.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.plan.model import Grid
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.study.model import Column

SUM_STEPS = 1 << 30
CELL_STEPS = (1 << 16) - 1


def grid_between(lower: Fraction, upper: Fraction, *, integer: bool, most: int = SUM_STEPS) -> Grid:
    """Return the finest grid with at most `most` steps between the bounds; whole numbers never need one below 1.

    Claim   Every x in [lower, upper] has its v in 0 … steps, and 2^exponent (start + v) is within half a step of x; equal
            to x for whole numbers where the exponent is 0.
    """
    width = upper - lower
    exponent = 0 if integer else _exponent(width or abs(lower), most)
    if integer and width > most:
        exponent = _exponent(width, most)
    while True:
        step = Fraction(2) ** exponent
        start, end = math.floor(lower / step), math.ceil(upper / step)
        if end - start <= most:
            return Grid(exponent, start, end - start)
        exponent += 1


def column_grid(column: Column) -> Grid | None:
    """Return the grid on which a bounded numeric column is stored by preparation; None where it has no bounds."""
    if column.bounds is None or not column.type.numeric:
        return None
    lower, upper = column.bounds
    if isinstance(lower, (int, Fraction)) and isinstance(upper, (int, Fraction)):
        return grid_between(Fraction(lower), Fraction(upper), integer=column.type is Type.INTEGER)
    return None


def _exponent(width: Fraction, most: int) -> int:
    """The smallest e with width/2^e ≤ most, for width > 0; 0 for width 0."""
    if width == 0:
        return 0
    exponent = width.numerator.bit_length() - width.denominator.bit_length() - most.bit_length() - 1
    while width > most * Fraction(2) ** exponent:
        exponent += 1
    return exponent
