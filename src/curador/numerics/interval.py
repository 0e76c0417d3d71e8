"""What a certified number is known by: two ends. Enclosures, readings and error bars of mechanisms all speak of it."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """A certified enclosure: the true number lies between the two ends."""

    lower: float
    upper: float
