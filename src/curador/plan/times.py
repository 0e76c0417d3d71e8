"""Calendar arithmetic on moments known without data. Times have no zone: they are UTC everywhere."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

EARLIEST, LATEST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001 -- UTC without zone

_SECONDS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


def moment_of(value: dt.date) -> dt.datetime:
    """Return the first moment of a date, or the moment itself."""
    return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001


def last_moment(value: dt.date) -> dt.datetime:
    """Return the last second of a date, or the moment itself."""
    if isinstance(value, dt.datetime):
        return value
    return dt.datetime(value.year, value.month, value.day, 23, 59, 59)  # noqa: DTZ001


def apart(start: dt.datetime, end: dt.datetime, unit: str) -> int:
    """Return how many whole units of time lie between two moments, rounded down."""
    if unit in _MONTHS:
        months = (end.year - start.year) * 12 + end.month - start.month
        return math.floor(months / _MONTHS[unit])
    return math.floor((end - start).total_seconds() / _SECONDS[unit])


def truncated(moment: dt.datetime, unit: str) -> dt.datetime:
    """Return the beginning of the unit of time in which a moment lies."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=3 * ((moment.month - 1) // 3) + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            back = day.weekday()
            return day - dt.timedelta(days=back) if day.toordinal() > back else EARLIEST
        case "day":
            return day
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case _:
            return moment.replace(microsecond=0)


def starts(first: dt.datetime, last: dt.datetime, unit: str, most: int) -> tuple[dt.datetime, ...] | None:
    """Return the beginnings of all units of time from one moment to another; None if there are more than `most`."""
    if apart(first, last, unit) > most:
        return None
    found = tuple(_walk(truncated(first, unit), last, unit))
    return found if len(found) <= most else None


def _walk(start: dt.datetime, last: dt.datetime, unit: str) -> Iterator[dt.datetime]:
    moment = start
    while moment <= last:
        yield moment
        if unit in _MONTHS:
            months = moment.year * 12 + moment.month - 1 + _MONTHS[unit]
            if months // 12 > LATEST.year:
                return
            moment = moment.replace(year=months // 12, month=months % 12 + 1)
        else:
            if (LATEST - moment).total_seconds() < _SECONDS[unit]:
                return
            moment += dt.timedelta(seconds=_SECONDS[unit])
