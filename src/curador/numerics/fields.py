"""Fields of frozen classes that read what a person writes: each check speaks under the name that he used.

    epsilon0: Fraction = field(alias="epsilon", converter=AT_LEAST_ZERO)

makes `epsilon=-1` say *epsilon must be at least 0; got -1.*
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from attrs import Converter

from curador.errors import require
from curador.numerics.exact import Number, at_least_zero, open_probability, positive, probability, rational, whole

Kept = TypeVar("Kept")


def reads(check: Callable[[Any, str], Kept]) -> Callable[[Number], Kept]:
    """Return the converter of a field that has to pass the check; the check is told the argument's name."""

    def convert(value: Number, place: Any) -> Kept:
        return check(value, place.alias)

    # attrs hands over the field as well; who checks types must see a function of what is given to the constructor
    return cast("Any", Converter(convert, takes_field=True))


def reads_maybe(check: Callable[[Any, str], Kept]) -> Callable[[Number | None], Kept | None]:
    """Return the converter of a field that may be absent."""

    def convert(value: Number | None, place: Any) -> Kept | None:
        return None if value is None else check(value, place.alias)

    return cast("Any", Converter(convert, takes_field=True))


def read_flag(value: object, name: str) -> bool:
    """Return the truth value, refused if it is anything else: monotone="no" would be true."""
    require(isinstance(value, bool), name, "True or False", value)
    return value is True


def _flag(value: bool, place: Any) -> bool:  # noqa: FBT001 -- attrs gives the constructor its type
    return read_flag(value, place.alias)


FLAG: Callable[[bool], bool] = cast("Any", Converter(_flag, takes_field=True))


def whole_from(least: int) -> Callable[[Number], int]:
    """Return the converter of a whole number of at least `least`."""

    def convert(value: Number, place: Any) -> int:  # most are given as they should be: mixtures have thousands of records
        return value if type(value) is int and value >= least else whole(value, place.alias, least=least)

    return cast("Any", Converter(convert, takes_field=True))


RATIONAL = reads(rational)
POSITIVE = reads(positive)
AT_LEAST_ZERO = reads(at_least_zero)
PROBABILITY = reads(probability)
OPEN_PROBABILITY = reads(open_probability)
WHOLE = whole_from(1)
"""A whole number of at least 1."""
