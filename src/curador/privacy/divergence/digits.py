"""Decimal arithmetic with as many digits as a formula needs.

A closed form such as t + e^-t - 1 loses digits to cancellation; how many depends on the numbers put in.
`settle` evaluates it with 34 digits, then with twice as many and so on, until two evaluations agree in 22
places. What cancels completely is noise that shrinks with the digits, so it never agrees with itself, and an
exact 0 is never accepted: callers decide beforehand, in rationals, where the value is 0 or infinite.

Noise that passes through exp, max or a comparison can come out as a constant and agree with itself. A number
that is used so, and may have lost digits, goes through `refine` first.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from typing import TYPE_CHECKING

from curador.errors import NumericalFailure

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

FEWEST = 34
MOST = 20_000
PLACES = 22

ONE = Decimal(1)
HALF = Decimal("0.5")
TINY = Decimal("1e-400")
"""Stands for every positive number below the smallest float."""


def settle(compute: Callable[[], Decimal]) -> Decimal:
    """Return the nonzero real number that `compute` evaluates with the digits of the current context.

    Claim   The result is within 1e-22, relatively, of what `compute` tends to as the digits grow.
    Needs   The limit is finite and not 0; noise reaches no function that flattens it, see above.
    Rounds  Near.
    """
    return _agreed(lambda: (compute(),), FEWEST, PLACES)[0]


def refine(compute: Callable[[], tuple[Decimal, ...]]) -> tuple[Decimal, ...]:
    """Return the nonzero numbers of `compute` with all the digits of the current context right."""
    places = decimal.getcontext().prec
    return _agreed(compute, places + 10, places)


def near(value: Decimal) -> float:
    """Return the nearest float; a positive number never becomes 0, an overflow becomes +∞. Rounds: near."""
    rounded = float(value)
    return math.nextafter(0.0, 1.0) if rounded == 0 and value > 0 else rounded


def decimal_of(exact: Fraction | int) -> Decimal:
    """Return the rational, rounded once to the digits of the current context."""
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def fresh_context(digits: int) -> decimal.Context:
    """Return a context with room for every exponent, whatever the caller's settings are."""
    return decimal.Context(
        prec=digits,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
    )


def _agreed(compute: Callable[[], tuple[Decimal, ...]], digits: int, places: int) -> tuple[Decimal, ...]:
    before: tuple[Decimal, ...] | None = None
    while digits <= MOST:
        with decimal.localcontext(fresh_context(digits)):
            now = compute()
            if before is not None and all(_alike(x, y, places) for x, y in zip(before, now, strict=True)):
                return now
        digits, before = 2 * digits, now
    raise NumericalFailure(f"the value did not settle within {MOST} digits.")


def _alike(before: Decimal, now: Decimal, places: int) -> bool:
    return now != 0 and abs(now - before) <= abs(now).scaleb(-places)
