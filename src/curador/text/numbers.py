"""Numbers as people read them. Amounts are rounded so that what is said stays true: costs up, rests down."""

from __future__ import annotations

import decimal
from fractions import Fraction

_NINE = decimal.Context(prec=9, rounding=decimal.ROUND_DOWN)

_SMALLEST, _LARGEST = decimal.Decimal("0.0001"), decimal.Decimal(1_000_000)


def rounded_text(value: Fraction, *, up: bool, digits: int = 4) -> str:
    """Return some digits of an amount. Rounds: as said."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_UP if up else decimal.ROUND_DOWN)
    short = context.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator)).normalize(context)
    return f"{short:f}" if not short or _SMALLEST <= abs(short) < _LARGEST else f"{short:e}".replace("e+", "e")


def percent_text(part: Fraction, whole: Fraction, *, up: bool) -> str:
    """Return the part of the whole in per cent."""
    return f"{rounded_text(100 * part / whole, up=up)} %" if whole else "0 %"


def released_text(value: object, width: float | None = None) -> str:
    """Return a released number: whole ones with commas, others with the digits that an error of this size leaves."""
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.{_places(width or abs(value) / 100)}f}"


def key_text(value: object) -> str:
    """Return a key as it is: all digits and no commas, so that different keys look different.

    What a terminal would obey instead of showing (escapes, ends of lines) is written as its code: keys come from data.
    """
    text = "NULL" if value is None else repr(value) if isinstance(value, float) else str(value)
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def level_text(confidence: Fraction) -> str:
    """Return a confidence in per cent. Rounds: down, so that no interval is said to be certain."""
    percents = 100 * confidence
    return f"{_NINE.divide(decimal.Decimal(percents.numerator), decimal.Decimal(percents.denominator)).normalize():f} %"


def reach_text(reach: float) -> str:
    """Return ± a half-width with two or three digits."""
    return f"± {reach:,.{_places(reach)}f}" if reach < 1e15 else f"± {reach:.3g}"


def _places(width: float) -> int:
    """Digits after the point so that an error of this size shows two of its own."""
    if not 0 < width < float("inf"):
        return 0
    return min(max(1 - decimal.Decimal(width).adjusted(), 0), 12)
