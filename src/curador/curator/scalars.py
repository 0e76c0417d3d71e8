"""Functions of single texts, dates and truths, and casts: keys after the release, one value at a time. All are total."""

from __future__ import annotations

import datetime as dt
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001 -- times are UTC, without zone

_SECONDS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_TRUE = frozenset({"true", "t", "yes", "y", "1", "on"})
_FALSE = frozenset({"false", "f", "no", "n", "0", "off"})


# ---- texts ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def pattern_of(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    """Return LIKE's pattern as a regular expression: % any text, _ one character, nothing escapes."""
    parts = (".*" if one == "%" else "." if one == "_" else re.escape(one) for one in pattern)
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def like(text: str, pattern: str) -> bool:
    """Whether the whole text is of the pattern."""
    return pattern_of(pattern, ignore_case=False).fullmatch(text) is not None


def ilike(text: str, pattern: str) -> bool:
    """Whether the whole text is of the pattern, letter case apart."""
    return pattern_of(pattern, ignore_case=True).fullmatch(text) is not None


def trim(text: str) -> str:
    """Return the text without spaces around it."""
    return text.strip(" ")


def length(text: str) -> float:
    """Return how many characters there are."""
    return float(len(text))


def concat(*texts: str) -> str:
    """Return the texts one after the other."""
    return "".join(texts)


def replace(text: str, old: str, new: str) -> str:
    """Return the text with every `old` replaced; nothing is found nowhere."""
    return text.replace(old, new) if old else text


def substring(text: str, start: float, length: float) -> str:
    """Return `length` characters from `start` on, counted from 1."""
    first = max(int(start), 1) - 1
    return text[first : first + max(int(length), 0)]


# ---- times ---------------------------------------------------------------------------------------------------------


def moment(value: dt.date) -> dt.datetime:
    """Return a date as the timestamp of its midnight."""
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())


def like_argument(result: dt.datetime, argument: dt.date) -> dt.date:
    """Return a timestamp as what the argument is."""
    return result if isinstance(argument, dt.datetime) else result.date()


def date_trunc(unit: str, value: dt.date) -> dt.date:
    """Return the beginning of the unit that the value lies in; weeks begin on Monday."""
    at = moment(value)
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year" | "quarter" | "month":
            size = _MONTHS[unit]
            found = midnight.replace(month=(at.month - 1) // size * size + 1, day=1)
        case "week":
            found = midnight - dt.timedelta(days=at.weekday())  # the first day of all is a Monday
        case "day":
            found = midnight
        case "hour":
            found = midnight.replace(hour=at.hour)
        case "minute":
            found = midnight.replace(hour=at.hour, minute=at.minute)
        case _:
            found = at.replace(microsecond=0)
    return like_argument(found, value)


def extract(part: str, value: dt.date) -> float:
    """Return a part of a date or timestamp as a number."""
    at = moment(value)
    match part:
        case "quarter":
            return float((at.month + 2) // 3)
        case "week":
            return float(at.isocalendar().week)
        case "dayofweek":
            return float(at.isoweekday() % 7)
        case "isodow":
            return float(at.isoweekday())
        case "dayofyear":
            return float(at.timetuple().tm_yday)
        case _:
            return float(getattr(at, part))


def date_diff(unit: str, start: dt.date, end: dt.date) -> float:
    """Return how many beginnings of the unit lie between two points in time, negative where the end comes first."""
    return float(_count(unit, moment(end)) - _count(unit, moment(start)))


def _count(unit: str, at: dt.datetime) -> int:
    """How many beginnings of the unit there were up to a point in time."""
    if unit in _MONTHS:
        return (12 * at.year + at.month - 1) // _MONTHS[unit]
    since = at - FIRST  # a Monday
    return (86_400 * since.days + since.seconds) // _SECONDS[unit]


def date_add(value: dt.date, count: float, unit: str) -> dt.date:
    """Return the value moved by so many units, in the months of a shorter month to its last day, within years 1 … 9999."""
    at, steps = moment(value), int(count)
    if unit in _MONTHS:
        months = 12 * at.year + at.month - 1 + steps * _MONTHS[unit]
        year, month = divmod(months, 12)
        if not 1 <= year <= 9999:
            return like_argument(LAST if year > 9999 else FIRST, value)
        after = dt.date(year + month // 11, (month + 1) % 12 + 1, 1) if (year, month) < (9999, 11) else None
        last = 31 if after is None else (after - dt.timedelta(days=1)).day
        return like_argument(at.replace(year=year, month=month + 1, day=min(at.day, last)), value)
    try:
        found = at + dt.timedelta(seconds=steps * _SECONDS[unit])
    except OverflowError:
        found = LAST if steps > 0 else FIRST
    return like_argument(found, value)


# ---- casts ---------------------------------------------------------------------------------------------------------


def cast_to(kind: Type) -> Callable[[Any], Any]:
    """Return the cast to a type: None where a value does not fit."""

    def cast(value: Any) -> Any:
        try:
            return _CASTS[kind](value)
        except (ValueError, TypeError, OverflowError, AttributeError):
            return None

    return cast


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return None if isinstance(value, dt.date) else bool(value)


def _whole(value: Any) -> float | None:
    number = _double(value)
    if number is None or not abs(number) < 2.0**63:
        return None
    return float(round(number))  # half to even


def _double(value: Any) -> float | None:
    if isinstance(value, dt.date):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value)


def _date(value: Any) -> dt.date | None:
    if isinstance(value, str):
        return dt.datetime.fromisoformat(value.strip()).date()
    return moment(value).date() if isinstance(value, dt.date) else None


def _timestamp(value: Any) -> dt.datetime | None:
    if isinstance(value, str):
        found = dt.datetime.fromisoformat(value.strip())
        return found if found.tzinfo is None else found.astimezone(dt.UTC).replace(tzinfo=None)
    return moment(value) if isinstance(value, dt.date) else None


_CASTS: dict[Type, Callable[[Any], Any]] = {
    Type.BOOLEAN: _truth,
    Type.INTEGER: _whole,
    Type.DECIMAL: _double,
    Type.FLOAT: _double,
    Type.STRING: _text,
    Type.DATE: _date,
    Type.TIMESTAMP: _timestamp,
}
