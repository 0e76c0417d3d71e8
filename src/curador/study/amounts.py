"""Sizes ("4GB"), durations ("60s") and shares ("20%"): read exactly, written so that they read back as the same."""

from __future__ import annotations

from fractions import Fraction

from curador.errors import InvalidParameter
from curador.numerics.exact import rational
from curador.study.spelling import number_text, writable

SIZE = 'a size such as "4GB"'
DURATION = 'a duration such as "60s"'
TICK = 'a duration such as "2s", or "off"'
SHARE = 'a share above 0 % and at most 100 %, such as "20%"'
LEAST = 'a share from 0 % to 100 %, such as "0.01%"'

_SIZES = {
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "b": 1,
}
_DURATIONS = {
    "min": Fraction(60),
    "us": Fraction(1, 1_000_000),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "h": Fraction(3600),
}


def read_size(value: object) -> int | None:
    """Return the number of bytes, None if the value is no size. A bare whole number is bytes."""
    exact = Fraction(value) if type(value) is int else _measured(value, _SIZES)
    return int(exact) if exact is not None and exact.denominator == 1 and 1 <= exact <= 2**62 else None


def size_text(size: int) -> str:
    """Return the size in the largest decimal unit in which it is whole."""
    unit = next(name for name in ("tb", "gb", "mb", "kb", "b") if size % _SIZES[name] == 0)
    return f"{size // _SIZES[unit]}{unit.upper()}"


def read_duration(value: object) -> Fraction | None:
    """Return the number of seconds, None if the value is no duration. A bare number is seconds."""
    exact = _measured(value, _DURATIONS) if isinstance(value, str) else _number(value)
    return exact if exact is not None and exact > 0 and writable(exact) else None


def read_tick(value: object) -> Fraction | None:
    """Return the number of seconds, 0 for "off", None if the value is neither."""
    off = value == "off" or (type(value) in {int, Fraction} and value == 0)
    return Fraction(0) if off else read_duration(value)


def tick_text(seconds: Fraction) -> str:
    """Return the duration in seconds, "off" for none."""
    return duration_text(seconds) if seconds else "off"


def duration_text(seconds: Fraction) -> str:
    """Return the duration in seconds."""
    return f"{number_text(seconds)}s"


def read_share(value: object) -> Fraction | None:
    """Return the part of the whole, None if the value is no percentage in (0, 100]."""
    percent = _measured(value, {"%": Fraction(1)})
    return percent / 100 if percent is not None and 0 < percent <= 100 else None


def read_least(value: object) -> Fraction | None:
    """Return the part of the whole, None if the value is no percentage from 0 to 100."""
    percent = Fraction(0) if type(value) is int and value == 0 else _measured(value, {"%": Fraction(1)})
    return percent / 100 if percent is not None and 0 <= percent <= 100 else None


def share_text(share: Fraction) -> str:
    """Return the share as a percentage."""
    return f"{number_text(100 * share)}%"


def _measured(value: object, units: dict[str, int] | dict[str, Fraction]) -> Fraction | None:
    """Return number times unit; the units are tried in their order, longer endings first."""
    text = value.strip().lower() if isinstance(value, str) else ""
    for unit, factor in units.items():
        if text.endswith(unit):
            number = _number(text[: -len(unit)].strip())
            return None if number is None else number * factor
    return None


def _number(value: object) -> Fraction | None:
    try:
        return rational(value, "")
    except InvalidParameter:
        return None
