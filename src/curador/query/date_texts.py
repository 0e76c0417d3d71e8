"""Dates and points in time as texts: STRFTIME, TO_CHAR, FORMAT_DATE, DATE_FORMAT, DAYNAME, MONTHNAME.

A format is taken apart into parts of time and plain letters, whatever the dialect calls them, and becomes an expression of
functions that are there already: what a date is as a text, cut; and names by CASE. So nothing more is to be known of it.

All parts are taken of the beginning of the finest unit that the format shows, date_trunc('month', x) for '%Y-%m': with x in
bounds its values are known, and so are the texts. Names are English, as engines without a locale have them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from curador.query import typed_terms
from curador.query.functions import UNITS
from curador.query.messages import invalid, quote_name
from curador.query.typed_terms import TypedTerm, call_term, literal_term
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.query.tree import Place

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_SHAPE = "YYYY-MM-DD HH:MM:SS"
"""A point in time as a text; a date is its beginning."""

_CUTS = {"%Y": (1, 4), "%y": (3, 2), "%m": (6, 2), "%d": (9, 2), "%H": (12, 2), "%M": (15, 2), "%S": (18, 2)}
_UNITS = {
    "%Y": "year", "%y": "year", "%G": "week", "%q": "quarter", "%m": "month", "%-m": "month", "%B": "month", "%b": "month",
    "%V": "week", "%d": "day", "%-d": "day", "%j": "day", "%A": "day", "%a": "day", "%u": "day", "%w": "day", "%H": "hour",
    "%I": "hour", "%p": "hour", "%M": "minute", "%S": "second",
}  # fmt: skip
_ALIASES = {"%h": "%b", "%Q": "%q"}
_SEVERAL = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y"}
_OF_ONE = {"%B", "%b", "%A", "%a", "%q", "%u", "%w", "%m", "%-m", "%-d", "%j", "%V", "%I", "%p"}
"""Codes that EXTRACT gives by itself: alone in a format they are known without bounds of the date."""

# ---- formats -----------------------------------------------------------------------------------------------------------


_WORDS: dict[str, str] = {
    "YYYY": "%Y", "YY": "%y", "IYYY": "%G", "MMMM": "%B", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "HH12": "%I",
    "HH": "%I", "MI": "%M", "SS": "%S", "AM": "%p", "PM": "%p", "IW": "%V", "ID": "%u", "Q": "%q",
}  # fmt: skip
_NAMES: dict[str, str] = {"MONTH": "%B", "MON": "%b", "DAY": "%A", "DY": "%a"}
_RUNS: dict[str, str] = {
    "yyyy": "%Y", "y": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m", "dd": "%d", "d": "%-d", "D": "%j",
    "EEEE": "%A", "EEE": "%a", "EE": "%a", "E": "%a", "HH": "%H", "hh": "%I", "mm": "%M", "ss": "%S", "a": "%p", "q": "%q",
    "Q": "%q",
}  # fmt: skip
_PERCENT = re.compile(r"%%|%-?[A-Za-z]|%")
_TEMPLATE = re.compile(
    '"[^"]*"|FM(?=[A-Z])|' + "|".join(sorted({*_WORDS, *_NAMES}, key=len, reverse=True)) + "|[A-Z]+", re.IGNORECASE
)
_PATTERN = re.compile(r"'[^']*'|([A-Za-z])\1*")

Piece = tuple[str, "Callable[[str], str] | None"]
"""A code, with what is done to each of its names; or plain letters, which begin with no %."""


def read_format(text: str, function: str, dialect: str, place: Place | None) -> list[Piece]:
    """Return the parts and plain letters of a format; refuse one that is not known, with those that are."""
    if function in {"to_char", "to_varchar"}:
        return _read_template(text, dialect, place)
    if function == "date_format" and "%" not in text:
        return _read_runs(text, place)
    pieces: list[Piece] = []
    _walk_format(
        _PERCENT, text, lambda found: pieces.extend(_percent_code(found, place)), lambda plain: _plain(pieces, plain)
    )
    return pieces


def _walk_format(pattern: re.Pattern[str], text: str, code: Callable[[str], Any], plain: Callable[[str], Any]) -> None:
    start = 0
    for found in pattern.finditer(text):
        plain(text[start : found.start()])
        code(found[0])
        start = found.end()
    plain(text[start:])


def _plain(pieces: list[Piece], letters: str) -> None:
    if letters:
        pieces.append((letters, None))


def _percent_code(code: str, place: Place | None) -> list[Piece]:
    if code == "%%":
        raise invalid(place, "a format must have no %%")
    if code in _SEVERAL:
        return read_format(_SEVERAL[code], "strftime", "", place)
    known = _ALIASES.get(code, code)
    if known not in _UNITS:
        raise _unknown_refusal(code, (*_UNITS, *_SEVERAL), place)
    return [(known, None)]


def _read_template(text: str, dialect: str, place: Place | None) -> list[Piece]:
    """TO_CHAR's format: the case of a name's word is that of the name; PostgreSQL fills names up to nine letters."""
    pieces: list[Piece] = []
    bare = False

    def code(found: str) -> None:
        nonlocal bare
        word = found.upper()
        if found.startswith('"'):
            _plain(pieces, found[1:-1])
        elif word == "FM":
            bare = True
            return
        elif word in _NAMES:
            fill = dialect == "postgres" and not bare and word in {"MONTH", "DAY"}
            pieces.append((_NAMES[word], _spelled(str if dialect == "snowflake" else _case_of(found), fill=fill)))
        elif word in _WORDS:
            known = _WORDS[word]
            pieces.append((f"%-{known[1]}" if bare and known in {"%m", "%d"} else known, None))
        else:
            raise _unknown_refusal(found, (*_WORDS, *(one.title() for one in _NAMES)), place)
        bare = False

    _walk_format(_TEMPLATE, text, code, lambda plain: _plain(pieces, plain))
    return pieces


def _case_of(word: str) -> Callable[[str], str]:
    if word.islower():
        return str.lower
    return str.upper if word.isupper() else str


def _spelled(case: Callable[[str], str], *, fill: bool) -> Callable[[str], str]:
    return lambda name: case(name).ljust(9) if fill else case(name)


def _read_runs(text: str, place: Place | None) -> list[Piece]:
    pieces: list[Piece] = []

    def code(found: str) -> None:
        if found.startswith("'"):
            _plain(pieces, found[1:-1])
        elif found in _RUNS:
            pieces.append((_RUNS[found], None))
        else:
            raise _unknown_refusal(found, tuple(_RUNS), place)

    _walk_format(_PATTERN, text, code, lambda plain: _plain(pieces, plain))
    return pieces


def _unknown_refusal(code: str, known: Sequence[str], place: Place | None) -> Exception:
    return invalid(place, f"{quote_name(code)} in a format is not known", f"the parts are {', '.join(known)}.")


# ---- texts -------------------------------------------------------------------------------------------------------------


def format_time(moment: TypedTerm, pieces: Sequence[Piece], place: Place | None) -> TypedTerm:
    """Return a date or point in time as the text that a format makes of it."""
    codes = [code for code, _ in pieces if code in _UNITS]
    if not codes:
        raise invalid(place, "a format must show a part of the date", "'%Y-%m'")
    if len(pieces) == 1 and codes[0] in _OF_ONE:
        return _part_text(codes[0], pieces[0][1], moment, place)
    unit = _finest(codes)
    if unit in {"hour", "minute", "second"} and moment.type is Type.DATE:
        raise invalid(place, f"a date has no {unit}", "CAST(x AS TIMESTAMP) is the date at midnight.")
    start = call_term("date_trunc", moment.type or Type.DATE, (literal_term(unit, Type.STRING), moment), place=place)
    parts = [_cut_text(start, *one) if isinstance(one, tuple) else one for one in _merge_cuts(pieces, start, place)]
    return parts[0] if len(parts) == 1 else call_term("concat", Type.STRING, parts, place=place)


def _finest(codes: Sequence[str]) -> str:
    units = {_UNITS[code] for code in codes}
    if "week" in units and len(units) > 1:
        units = (units - {"week"}) | {"day"}  # a week lies in two months
    return max(units, key=UNITS.index)


def _merge_cuts(pieces: Sequence[Piece], start: TypedTerm, place: Place | None) -> list[TypedTerm | tuple[int, int]]:
    """Return the terms of a format, with neighbouring parts of a date's text as one cut (first letter, how many)."""
    found: list[TypedTerm | tuple[int, int]] = []
    for code, change in pieces:
        if code in _CUTS:
            first, length = _CUTS[code]
            between = found[-1] if found else None
            before = found[-2] if len(found) > 1 else None
            gap = typed_terms.value_of(between) if isinstance(between, TypedTerm) else None
            if isinstance(before, tuple) and isinstance(gap, str) and gap == _SHAPE[sum(before) - 1 : first - 1]:
                found[-2:] = [(before[0], first + length - before[0])]
            else:
                found.append((first, length))
        elif code in _UNITS:
            found.append(_part_text(code, change, start, place))
        else:
            found.append(literal_term(code, Type.STRING, place))
    return found


def _cut_text(start: TypedTerm, first: int, length: int) -> TypedTerm:
    text = call_term("cast", Type.STRING, (start,))
    return call_term("substring", Type.STRING, (text, literal_term(first, Type.INTEGER), literal_term(length, Type.INTEGER)))


def _part_text(code: str, change: Callable[[str], str] | None, moment: TypedTerm, place: Place | None) -> TypedTerm:
    match code:
        case "%B" | "%b" | "%A" | "%a":
            names = MONTHS if code in {"%B", "%b"} else DAYS
            short = 3 if code in {"%b", "%a"} else None
            part = _extract("month" if names is MONTHS else "isodow", moment, place)
            return _name([(change or str)(name[:short]) for name in names], part, place)
        case "%q" | "%u" | "%w" | "%-m" | "%-d":
            part = {"%q": "quarter", "%u": "isodow", "%w": "dayofweek", "%-m": "month", "%-d": "day"}[code]
            return call_term("cast", Type.STRING, (_extract(part, moment, place),))
        case "%p":
            after = call_term(">=", Type.BOOLEAN, (_extract("hour", moment, place), literal_term(12, Type.INTEGER)))
            before = call_term("not", Type.BOOLEAN, (after,))
            arms = [before, literal_term("AM", Type.STRING), after, literal_term("PM", Type.STRING)]
            return _choose(arms, place)
        case "%I":
            hour = _compute("%", _compute("+", _extract("hour", moment, place), 11), 12)
            return _padded(_compute("+", hour, 1), 2)
        case "%G":  # the year in which the week's Thursday lies
            monday = call_term("date_trunc", moment.type or Type.DATE, (literal_term("week", Type.STRING), moment))
            days = (literal_term(3, Type.INTEGER), literal_term("day", Type.STRING))
            return _padded(_extract("year", call_term("date_add", moment.type or Type.DATE, (monday, *days)), place), 4)
        case _:
            part = {"%m": "month", "%V": "week", "%j": "dayofyear"}[code]
            return _padded(_extract(part, moment, place), 3 if code == "%j" else 2)


def _name(names: Sequence[str], part: TypedTerm, place: Place | None) -> TypedTerm:
    """Return the name of a part that is counted from 1."""
    arms: list[TypedTerm] = []
    for number, name in enumerate(names, 1):
        arms += [call_term("=", Type.BOOLEAN, (part, literal_term(number, Type.INTEGER))), literal_term(name, Type.STRING)]
    return _choose(arms, place)


def _choose(arms: Sequence[TypedTerm], place: Place | None) -> TypedTerm:
    """Return a CASE whose conditions cover all but NULL, of which it makes NULL."""
    otherwise = literal_term(None, Type.STRING)
    return call_term("case", Type.STRING, [*arms, otherwise], nullable=arms[0].nullable, place=place)


def _extract(part: str, moment: TypedTerm, place: Place | None) -> TypedTerm:
    if part == "hour" and moment.type is Type.DATE:
        raise invalid(place, "a date has no hour", "CAST(x AS TIMESTAMP) is the date at midnight.")
    return call_term("extract", Type.INTEGER, (literal_term(part, Type.STRING), moment), place=place)


def _compute(function: str, term: TypedTerm, number: int) -> TypedTerm:
    return call_term(function, Type.INTEGER, (term, literal_term(number, Type.INTEGER)))


def _padded(number: TypedTerm, digits: int) -> TypedTerm:
    """Return a number below 10^digits with zeros in front."""
    text = call_term("cast", Type.STRING, (_compute("+", number, 10**digits),))
    return call_term("substring", Type.STRING, (text, literal_term(2, Type.INTEGER), literal_term(digits, Type.INTEGER)))


def name_part(moment: TypedTerm, what: str, *, short: bool, place: Place | None) -> TypedTerm:
    """Return the name of a day of the week or of a month."""
    code = {"day": "%a" if short else "%A", "month": "%b" if short else "%B"}[what]
    return _part_text(code, None, moment, place)
