"""The text an engine is given: how it is told from any other text, put together, and spelled by each engine.

Nothing of a question's text reaches an engine: identifiers are ours (`t0`, `c3`, `__u`), functions come from a dialect, and
only literals are an analyst's, quoted. A worker runs `GeneratedSQL` and refuses every other string.

names of a relation's columns
c0 …       its columns, in order
__u        the unit: for equality, partitions and grouping
__h        a keyed hash of the original unit: what everything random is drawn from
__o0 …     a total order of a unit's rows; public relations: of all rows
g0 …       column number so on its declared grid, where a plan wants it

`Dialect` is what differs between engines: how a literal is written and how a total function is spelled. Every snippet is
total on what it is documented to get: no value of a row may raise. An engine's dialect is one module; the tests run the
whole catalogue of functions against a reference on edge values for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from curador.errors import InvalidQuery

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Sequence
    from fractions import Fraction

    from curador.study.values import Type

MOST_TEXT = 1_000_000
"""Characters of one statement: guards repeat their operand, so nested ones grow fast."""

MOST_DEPTH = 80
"""Nested calls of one expression."""


EVERY_ROW = (1 << 62) - 1
"""A limit that nothing reaches. Engines do not look below it for what stands above: it is a wall between two parts."""


class GeneratedSQL(str):
    """SQL that curador wrote. Made in this package only."""

    __slots__ = ()


def mark_generated(text: str) -> GeneratedSQL:
    """Return the text as ours; refuse one that grew too long. Nothing has been read or spent by then."""
    return GeneratedSQL(require_short(text))


def require_short(text: str) -> str:
    """Return the text if an engine can be given it."""
    if len(text) > MOST_TEXT:
        raise too_deep()
    return text


def too_deep() -> InvalidQuery:
    """Return the refusal of an expression that is nested too deeply."""
    return InvalidQuery("an expression must be nested less deeply.", hint="write fewer functions inside one another.")


def commas(names: Iterable[str]) -> str:
    """Return a list as SQL writes it."""
    return ", ".join(names)


def every(conditions: Iterable[str]) -> str:
    """Return the conjunction of conditions; empty where there are none."""
    return " AND ".join(f"({condition})" for condition in conditions)


def select(
    columns: Iterable[str], source: str, *, when: Iterable[str] = (), by: Iterable[str] = (), distinct: bool = False
) -> str:
    """Return a SELECT. The source is a name, a FROM clause, or what `rows_of` gives."""
    conditions, groups = every(when), commas(by)
    text = f"SELECT {'DISTINCT ' if distinct else ''}{commas(columns)} FROM {source}"  # noqa: S608 -- every part is ours
    text += f" WHERE {conditions}" if conditions else ""
    return text + (f" GROUP BY {groups}" if groups else "")


def rows_of(query: str) -> str:
    """Return a query as the source of another."""
    return f"({query}) AS s"


# ---- what engines spell differently ----------------------------------------------------------------------------------


class Dialect(Protocol):
    """Snippets of one engine. Arguments and results are SQL texts; a double may be NaN or infinite where it says so."""

    # ---- literals and types ----------------------------------------------------------------------------------------

    def type(self, type_: Type) -> str:
        """Return the physical type: whole numbers have 64 bits, decimals and floats are doubles."""
        ...

    def boolean(self, value: bool) -> str:  # noqa: FBT001
        """Return a boolean literal."""
        ...

    def integer(self, value: int) -> str:
        """Return a 64-bit literal."""
        ...

    def double(self, value: float) -> str:
        """Return a literal of exactly this double; infinities too."""
        ...

    def string(self, value: str) -> str:
        """Return a string literal."""
        ...

    def date(self, value: dt.date) -> str:
        """Return a date literal."""
        ...

    def timestamp(self, value: dt.datetime) -> str:
        """Return a literal of a point in time without zone."""
        ...

    # ---- what an engine has ----------------------------------------------------------------------------------------

    def missing(self, function: str, types: Sequence[Type | None], result: Type | None) -> str | None:
        """Return what of a call an engine cannot do for every row, in words that begin with its name; None: it can all.

        A call of the catalogue is lowered only where nothing is missing: a question that needs it is refused before any
        charge.
        """
        ...

    # ---- numbers: doubles in, doubles out, never raising; NaN and infinities may go in and come out -----------------

    def arithmetic(self, operator: str, x: str, y: str) -> str:
        """Return x + y, x - y, x * y or x / y of doubles, without parentheses around it; NaN or NULL for x / 0.

        NULL where one of them is, also for NULL / 0: a mean of no value is no number. The left side may be what this returned
        for * and /; both sides bind tighter than + and - else.
        """
        ...

    def finite(self, x: str) -> str:
        """Return the condition that a double is neither NaN nor infinite; NULL for NULL."""
        ...

    def whole(self, x: str) -> str:
        """Return a whole double (or a wide integer) as a 64-bit integer; NULL where it does not fit, NaN included."""
        ...

    def wide(self, x: str) -> str:
        """Return a 64-bit integer in a type that cannot overflow when a 64-bit number is added to it."""
        ...

    def shifted(self, x: str, bits: int) -> str:
        """Return a 64-bit or wide integer of at least 0, without its lowest bits."""
        ...

    def total(self, x: str, over: str = "") -> str:
        """Return the exact SUM of 64-bit or wide integers, wide: NULL where there are none.

        over  what follows it: " FILTER (…)" or " OVER (…)"; "" for all rows of the group
        """
        ...

    def quotient(self, x: str, y: str) -> str:
        """Return the quotient of wide integers, y at least 1, without its fraction."""
        ...

    def truncated(self, x: str) -> str:
        """Return a double rounded towards 0."""
        ...

    def nearest(self, x: str) -> str:
        """Return a double rounded to a whole one, halves away from 0."""
        ...

    def remainder(self, x: str, y: str) -> str:
        """Return x − y·trunc(x/y), with the sign of x; NaN or NULL at y = 0."""
        ...

    def function(self, name: str, *arguments: str) -> str:
        """Return sqrt, ln, log10, exp, abs, floor, ceil, sign or another function of doubles in its domain."""
        ...

    def power(self, x: str, exponent: str) -> str:
        """Return a power of doubles."""
        ...

    def extreme(self, name: str, arguments: Sequence[str]) -> str:
        """Return least or greatest of the arguments that are not NULL."""
        ...

    # ---- strings ---------------------------------------------------------------------------------------------------

    def like(self, x: str, pattern: str, *, fold: bool) -> str:
        """Return whether a string matches a literal pattern of % and _ without escape; fold: in any letter case."""
        ...

    def starts_with(self, x: str, start: str) -> str:
        """Return whether a string starts with a literal."""
        ...

    def matches(self, x: str, pattern: str) -> str:
        """Return whether a whole string matches one of our regular expressions."""
        ...

    def day(self, x: str) -> str:
        """Return the date that is so many days after 1970-01-01, of a whole double that is one of the years 1 to 9999."""
        ...

    def searches(self, x: str, pattern: str) -> str:
        """Return whether a part of a string matches a regular expression of `query/patterns.py`, in linear time."""
        ...

    def text(self, name: str, x: str) -> str:
        """Return lower, upper, length (in code points) or trim (of blanks) of a string."""
        ...

    def substring(self, x: str, start: int, length: int) -> str:
        """Return code points from the start ≥ 1 on."""
        ...

    def replaced(self, x: str, old: str, new: str) -> str:
        """Return a string with every `old`, a literal that is not empty, replaced."""
        ...

    def try_cast(self, x: str, type_: Type) -> str:
        """Return a string in another type, a value as a string, a date as midnight or back; NULL where it does not fit."""
        ...

    # ---- times: years 1 to 9999 go in --------------------------------------------------------------------------------

    def date_trunc(self, unit: str, x: str, type_: Type) -> str:
        """Return the beginning of the unit of time that x lies in, in x's type; weeks begin on Monday."""
        ...

    def part(self, part: str, x: str) -> str:
        """Return a part of a time as a 64-bit integer."""
        ...

    def date_diff(self, unit: str, start: str, end: str) -> str:
        """Return how many beginnings of a unit of time lie after start, up to and including end; negative backwards."""
        ...

    def moved(self, x: str, amount: int, unit: str) -> str:
        """Return a point in time moved by at most 10,000 years; the last day of a month is not left."""
        ...

    # ---- relations -------------------------------------------------------------------------------------------------

    def hash(self, values: Sequence[str]) -> str:
        """Return an integer that depends on the values alone, NULLs included, and not on where a row stands."""
        ...

    def quantile(self, x: str, q: Fraction, over: str = "") -> str:
        """Return the aggregate: the smallest value that at least a share q of the values do not exceed.

        over  what follows it: " FILTER (…)"; "" for all rows of the group
        """
        ...

    def wall(self) -> str:
        """Return what ends a SELECT below which an engine must not look for what stands above it; "" where it has none."""
        ...

    def limbs(self, total: str) -> tuple[str, str]:
        """Return a wide integer in 0 … 2¹²⁶ − 1 as two 64-bit ones: total >> 63, and the lower 63 bits."""
        ...

    def semi_join(self, left: str, right: str, on: str, *, anti: bool) -> str:
        """Return the FROM clause of l's rows for which some row of r (anti: none) makes the condition true."""
        ...

    def named(self, name: str, query: str, *, once: bool | None) -> str:
        """Return a part of a WITH clause; once: computed once and kept, or not, or as the engine likes."""
        ...

    def first_rows(self, sources: Sequence[str], most: int) -> str | None:
        """Return the SELECT of every unit's first rows of sources, in the order in which they lie in their table.

        Each source is of whole units and has `__r` and `__o0`, the row's place in its table. None where an engine
        cannot do it in one go. The statement stops, and has no result, where the rows of a source were met in another order
        than that of their places.
        """
        ...

    def parts_of_units(self, parts: int) -> list[str | None]:
        """Return conditions on `__b` of which each holds of whole units, and one of every unit: one for each thread."""
        ...

    def place(self) -> str | None:
        """Return the place of a row in its table; None where it has none."""
        ...
