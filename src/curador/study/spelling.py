"""How numbers, values and names are written in a study file; every spelling reads back as the same value."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import cast

LONGEST_NUMBER = 400
"""Characters of a number's text: what the reader accepts (`numerics.exact`)."""

_MOST_BITS = 13_000  # 3,914 digits: Python writes no longer integer than 4,300
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def number_text(value: Fraction | int) -> str | None:
    """Return the exact decimal, else the ratio; None if neither can be written in LONGEST_NUMBER characters.

    Claim   `rational(number_text(x))` equals x.
    Rounds  Exact.
    """
    exact = Fraction(value)
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MOST_BITS:
        return None
    twos, rest = _multiplicity(exact.denominator, 2)
    fives, rest = _multiplicity(rest, 5)
    places = max(twos, fives)
    if rest == 1 and places <= 2 * LONGEST_NUMBER:
        text = _decimal_text(exact.numerator * 10**places // exact.denominator, -places)
        if len(text) <= LONGEST_NUMBER:
            return text
    text = f"{exact.numerator}/{exact.denominator}"
    return text if len(text) <= LONGEST_NUMBER else None


def writable(value: Fraction) -> bool:
    """Whether `number_text` has a spelling for the value."""
    short = max(value.numerator.bit_length(), value.denominator.bit_length()) <= 600  # a ratio of at most 363 characters
    return short or number_text(value) is not None


def _multiplicity(number: int, prime: int) -> tuple[int, int]:
    count = 0
    while number % prime == 0:
        number, count = number // prime, count + 1
    return count, number


def _decimal_text(whole: int, exponent: int) -> str:
    if whole == 0:
        return "0"
    zeros, whole = _multiplicity(whole, 10)
    exponent += zeros
    sign, digits = ("-" if whole < 0 else ""), str(abs(whole))
    first = len(digits) - 1 + exponent  # the power of ten of the first digit
    if exponent >= 0 and first < 16:
        return f"{sign}{digits}{'0' * exponent}"
    if exponent < 0 <= first:
        return f"{sign}{digits[: first + 1]}.{digits[first + 1 :]}"
    if -5 < first < 0:
        return f"{sign}0.{'0' * (-first - 1)}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{first}"


def key_text(name: str) -> str:
    """Return the name as a TOML key."""
    return name if _BARE.fullmatch(name) else string_text(name)


def string_text(text: str) -> str:
    """Return the text as a TOML string on one line."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if code < 32 or 127 <= code < 160 or code in {0x2028, 0x2029} or 0xD800 <= code <= 0xDFFF:
        return f"\\u{code:04X}"  # also what other programs take for the end of a line
    return character


def value_text(value: object) -> str:
    """Return the value as TOML: a scalar, an array or an inline table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, (int, Fraction)):
        plain = isinstance(value, int) and value.bit_length() <= 128
        text = str(value) if plain else number_text(value)
        if text is None:
            return "a very long number"  # only ever part of a refusal: no study holds one
        return string_text(text) if "/" in text else text
    if isinstance(value, Decimal):
        return str(value).lower().replace("infinity", "inf")
    if isinstance(value, (dt.date, dt.datetime)):
        return string_text(value.isoformat())
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return "{ " + ", ".join(f"{key_text(str(key))} = {value_text(item)}" for key, item in pairs) + " }" if pairs else "{}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(value_text(item) for item in cast("Sequence[object]", value)) + "]"
    return str(value)


class Plain:
    """Words that stand for a value in a sentence, without quotes: nothing, none."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


NOTHING = Plain("nothing")


class Written:
    """A value that a sentence shows as its writer wrote it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __str__(self) -> str:
        if isinstance(self.value, (list, tuple)) and len(cast("Sequence[object]", self.value)) > 20:
            return f"a list of {len(cast('Sequence[object]', self.value)):,}"
        return value_text(self.value)
