"""What an expression can be, known without data: the interval it lies in, all values of a key, whether it is NULL.

Ranges. Which interval an expression lies in, and where that is known from: the owner's bounds, literals, WHERE, arithmetic.
Nothing is assumed of the data: whatever is measured is clamped to its interval, so a wrong value costs accuracy and never
privacy. A range is what the clamp's literals and the noise are computed from.

Keys. Which keys a GROUP BY can have; what is not known is selected privately.

They are the image of their expressions over what columns can be (`plan/listing.py`). Numbers outside of a list that bounds
gave are moved to its ends.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.plan import intervals
from curador.plan.aggregates import PLANNED
from curador.plan.functions import RANGES, text_of
from curador.plan.intervals import (
    EVERYTHING,
    last_moment,
    moment_of,
    narrow_range,
    narrow_times,
    number_of,
    truncate_moment,
    written_range,
)
from curador.plan.keys import list_keys
from curador.plan.listing import MOST_PUBLIC, MOST_TIMES, MOST_WHOLE
from curador.plan.model import KeyTuples, Range
from curador.query.tree import (
    Aggregate,
    Call,
    Distinct,
    Filter,
    Join,
    Literal,
    Project,
    Ref,
    Scan,
    UnionAll,
    UnitGroup,
    Window,
)
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.plan.keys import ListedKey
    from curador.query.tree import Expression, Node, Relation, WindowCall
    from curador.study.model import Schema
    from curador.study.values import Value


# ---- ranges ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ranges:
    """Answers for one study. `rows` is the cap that bounds what a unit's inner aggregates can be."""

    schema: Schema
    rows: int
    known: dict[tuple[int, int], tuple[object, object, Range]] = field(
        default_factory=dict[tuple[int, int], tuple[object, object, Range]], compare=False, repr=False
    )
    """By identity, with the objects themselves so that no other can take their place: each is looked at once."""

    def of(self, expression: Node, relation: Relation) -> Range:
        """Return the range of a numeric expression over a relation's rows."""
        return self._once(expression, relation, lambda: self._of(expression, relation))

    def _once(self, first: object, second: object, find: Callable[[], Range]) -> Range:
        key = (id(first), id(second))
        if key not in self.known:
            self.known[key] = (first, second, intervals.tame(find()))
        return self.known[key][2]

    def _of(self, expression: Node, relation: Relation) -> Range:
        match expression:
            case Literal():
                return written_range(expression)
            case Ref():
                return self.column(relation, expression.index)
            case Call():
                return self._narrowed(expression, relation)
            case _:
                return EVERYTHING

    def _narrowed(self, call: Call, relation: Relation) -> Range:
        """The range of a function where the filters below hold, which may be about the very expression."""
        found = self._call(call, relation)
        while isinstance(relation, Filter) and call.type.numeric and not self.schema.older:
            found, relation = narrow_range(found, call, relation.predicate), relation.input
        return found

    # ---- columns ---------------------------------------------------------------------------------------------------

    def column(self, relation: Relation, index: int) -> Range:
        """Return the range of a relation's column."""
        match relation:
            case Scan():
                return self._declared(relation, index)
            case Filter():
                column = Ref(index, relation.columns[index].type)
                known, older = self.column(relation.input, index), self.schema.older
                return narrow_range(known, column, relation.predicate, strict=not older)
            case Project():
                return self.of(relation.expressions[index], relation.input)
            case Distinct():
                return self.column(relation.input, index)
            case Join():
                width = len(relation.left.columns)
                if index < width:
                    return self.column(relation.left, index)
                return self.column(relation.right, index - width)
            case UnionAll():
                return intervals.hull([self.column(branch, index) for branch in relation.inputs])
            case UnitGroup():
                if index < len(relation.keys):
                    return self.of(relation.keys[index], relation.input)
                return self._inside(relation.aggregates[index - len(relation.keys)], relation.input)
            case Window():
                width = len(relation.input.columns)
                if index < width:
                    return self.column(relation.input, index)
                return self._window(relation.calls[index - width], relation.input)

    def _declared(self, scan: Scan, index: int) -> Range:
        column = scan.columns[index]
        table = self.schema.table(scan.table)
        declared = None if table is None else table.fields[index].declared
        if declared is None or not column.type.numeric:
            return Range(None, None, column.type is Type.INTEGER)
        ends = declared.bounds or (_extremes(declared.values) if declared.values else None)
        if ends is None:
            return Range(None, None, column.type is Type.INTEGER)
        why = f"{scan.table}.{column.name} is declared"
        return Range(number_of(ends[0]), number_of(ends[1]), column.type is Type.INTEGER, why)

    def _inside(self, aggregate: Aggregate, relation: Relation) -> Range:
        """What an exact aggregate inside one unit is clamped to: as if the unit had at most `rows` rows."""
        argument = EVERYTHING if aggregate.argument is None else self.of(aggregate.argument, relation)
        found = PLANNED[aggregate.function].inside
        return EVERYTHING if found is None else found(argument, self.rows)

    def _window(self, call: WindowCall, relation: Relation) -> Range:
        many, zero = Fraction(self.rows), Fraction(0)
        argument = EVERYTHING if call.argument is None else self.of(call.argument, relation)
        match call.function:
            case "row_number" | "rank" | "dense_rank":
                return Range(Fraction(1), many, integer=True, why=f"at most {self.rows} rows a unit")
            case "count":
                return Range(zero, many, integer=True, why=f"at most {self.rows} rows a unit")
            case "sum":
                return self._inside(Aggregate("sum", call.argument, call.type), relation)
            case "avg":
                return replace(argument, integer=False)
            case _:
                return argument

    # ---- functions -------------------------------------------------------------------------------------------------

    def _call(self, call: Call, relation: Relation) -> Range:
        found = RANGES[call.function](call, self, relation)
        if not call.type.numeric:
            return EVERYTHING
        reasons = dict.fromkeys(
            reason for argument in call.arguments for reason in self.of(argument, relation).why.split("; ") if reason
        )
        return replace(found, integer=found.integer or call.type is Type.INTEGER, why=found.why or "; ".join(reasons))

    # ---- times -----------------------------------------------------------------------------------------------------

    def times(self, expression: Node, relation: Relation) -> tuple[dt.datetime, dt.datetime] | None:
        """Return the earliest and latest time a date or timestamp is declared to be; None where nothing is declared."""
        match expression:
            case Literal(value=dt.date() as value):
                moment = moment_of(value)
                return moment, moment
            case Ref():
                return self._column_times(relation, expression.index)
            case Call(function="date_trunc", arguments=(_, inner)):
                below = self.times(inner, relation)
                return None if below is None else (truncate_moment(below[0], text_of(expression.arguments[0])), below[1])
            case Call(function="cast", arguments=(inner,)) if expression.type.temporal:
                return self.times(inner, relation)
            case _:
                return None

    def _column_times(self, relation: Relation, index: int) -> tuple[dt.datetime, dt.datetime] | None:
        match relation:
            case Scan():
                table = self.schema.table(relation.table)
                declared = None if table is None else table.fields[index].declared
                if declared is None or declared.bounds is None or not declared.type.temporal:
                    return None
                lower, upper = declared.bounds
                return (
                    (moment_of(lower), last_moment(upper))
                    if isinstance(lower, dt.date) and isinstance(upper, dt.date)
                    else None
                )
            case Filter():
                daily = relation.columns[index].type is Type.DATE
                known = self._column_times(relation.input, index)
                return narrow_times(known, index, relation.predicate, daily=daily, strict=not self.schema.older)
            case Project():
                return self.times(relation.expressions[index], relation.input)
            case Distinct():
                return self._column_times(relation.input, index)
            case Join():
                width = len(relation.left.columns)
                side, place = (relation.left, index) if index < width else (relation.right, index - width)
                return self._column_times(side, place)
            case Window():
                return self._times_of_window(relation, index)
            case UnitGroup() if index < len(relation.keys):
                return self.times(relation.keys[index], relation.input)
            case UnitGroup():
                return self._times_among(relation.aggregates[index - len(relation.keys)], relation.input)
            case _:
                return None

    def _times_of_window(self, relation: Window, index: int) -> tuple[dt.datetime, dt.datetime] | None:
        width = len(relation.input.columns)
        if index < width:
            return self._column_times(relation.input, index)
        return self._times_among(relation.calls[index - width], relation.input)

    def _times_among(self, one: Aggregate | WindowCall, relation: Relation) -> tuple[dt.datetime, dt.datetime] | None:
        """The first, the last or another of some rows' times lies where each of them does."""
        if one.function not in {"min", "max", "lag", "lead", "first_value", "last_value"} or one.argument is None:
            return None
        return self.times(one.argument, relation)


def _extremes(values: Sequence[Value]) -> tuple[Value, Value] | None:
    numbers = [Fraction(value) for value in values if isinstance(value, (int, Fraction)) and not isinstance(value, bool)]
    return (min(numbers), max(numbers)) if numbers else None


# ---- keys -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyDomain:
    """All values a key can have, NULL among them as None, and where that is known from; `expression` clamps where needed."""

    values: tuple[Value | None, ...]
    why: str
    expression: Expression


def domains_of(
    keys: Sequence[Expression], relation: Relation, ranges: Ranges
) -> tuple[tuple[KeyDomain | None, ...], tuple[KeyTuples, ...]]:
    """Return all values of keys over a relation's rows, None where they are not known, and the combinations there are."""
    lists = list_keys(keys, relation, ranges, _most_values)
    domains = tuple(
        None if found is None else KeyDomain(found.values, found.why, _within(key, found, relation, ranges))
        for key, found in zip(keys, lists.keys, strict=True)
    )
    return domains, tuple(KeyTuples(places, rows) for places, rows in lists.joint)


def image_range(expression: Expression, relation: Relation, ranges: Ranges) -> Range | None:
    """Return the range of numbers that are made of finite columns, such as CAST of declared texts; None of all others."""
    (domain,), _ = domains_of((expression,), relation, ranges)
    numbers = [] if domain is None else [Fraction(value) for value in domain.values if isinstance(value, (int, Fraction))]
    if domain is None or not numbers:
        return None
    return Range(min(numbers), max(numbers), expression.type is Type.INTEGER, domain.why)


def _most_values(key: Expression, promised: bool) -> int:  # noqa: FBT001 -- one of two things that decide
    if key.type is not None and key.type.temporal:
        return MOST_TIMES
    return MOST_WHOLE if promised else MOST_PUBLIC


def _within(key: Expression, found: ListedKey, relation: Relation, ranges: Ranges) -> Expression:
    """The key with numbers outside of its list moved to the ends: bounds are promises. Parts of dates cannot leave theirs.

    Of a text or a fraction that whole numbers were made into, these are moved.
    """
    part = isinstance(key, Call) and key.function == "extract" and text_of(key.arguments[0]) != "year"
    if not found.promised or part or key.type is Type.BOOLEAN:
        return key
    if key.type is Type.INTEGER:
        numbers = [value for value in found.values if isinstance(value, int)]
        return _clamp(key, min(numbers), max(numbers)) if numbers else key
    return _clamp_columns(key, relation, ranges)


def _clamp_columns(key: Expression, relation: Relation, ranges: Ranges) -> Expression:
    match key:
        case Ref(type=Type.INTEGER):
            known = ranges.of(key, relation)
            if known.lower is None or known.upper is None:
                return key
            return _clamp(key, math.ceil(known.lower), math.floor(known.upper))
        case Call():
            held = [_clamp_columns(one, relation, ranges) for one in key.arguments if isinstance(one, (Literal, Ref, Call))]
            return replace(key, arguments=tuple(held))
        case _:
            return key


def _clamp(expression: Expression, lowest: int, highest: int) -> Expression:
    """The expression with values outside moved to the ends; NULL stays NULL."""
    kind = Type.INTEGER
    low, high = Literal(lowest, kind), Literal(highest, kind)
    below, above = Call("<", (expression, low), Type.BOOLEAN), Call(">", (expression, high), Type.BOOLEAN)
    return Call("case", (below, low, above, high, expression), kind)
