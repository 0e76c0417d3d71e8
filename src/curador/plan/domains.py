"""What an expression can be, known without data: the interval it lies in, all values of a key, whether it is NULL.

Ranges. Which interval an expression lies in, and where that is known from: the owner's bounds, literals, WHERE, arithmetic.
Nothing is assumed of the data: whatever is measured is clamped to its interval, so a wrong value costs accuracy and never
privacy. A range is what the clamp's literals and the noise are computed from.

Keys. Which keys a GROUP BY can have; what is not known is selected privately.

known                                    from
declared values, NULL if nullable        the study
values of a column of a public table     that table
TRUE, FALSE, NULL                        conditions and booleans
arms of a CASE, literals, COALESCE       the question
whole numbers in a short range           bounds, WHERE, parts of dates; values outside are clamped to the ends
beginnings of years, months, days …      declared bounds of a date, or WHERE
x IN (literals), x = literal             WHERE
"""

from __future__ import annotations

import datetime as dt
import sys
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
    unit_starts,
    written_range,
)
from curador.plan.model import Range
from curador.plan.ownership import conjuncts
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
                return self._call(expression, relation)
            case _:
                return EVERYTHING

    # ---- columns ---------------------------------------------------------------------------------------------------

    def column(self, relation: Relation, index: int) -> Range:
        """Return the range of a relation's column."""
        match relation:
            case Scan():
                return self._declared(relation, index)
            case Filter():
                return narrow_range(self.column(relation.input, index), index, relation.predicate)
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
                return narrow_times(self._column_times(relation.input, index), index, relation.predicate)
            case Project():
                return self.times(relation.expressions[index], relation.input)
            case Distinct():
                return self._column_times(relation.input, index)
            case Join():
                width = len(relation.left.columns)
                side, place = (relation.left, index) if index < width else (relation.right, index - width)
                return self._column_times(side, place)
            case Window() if index < len(relation.input.columns):
                return self._column_times(relation.input, index)
            case UnitGroup() if index < len(relation.keys):
                return self.times(relation.keys[index], relation.input)
            case _:
                return None


def _extremes(values: Sequence[Value]) -> tuple[Value, Value] | None:
    numbers = [Fraction(value) for value in values if isinstance(value, (int, Fraction)) and not isinstance(value, bool)]
    return (min(numbers), max(numbers)) if numbers else None


# ---- keys -----------------------------------------------------------------------------------------------------------------


MOST_WHOLE = 1_000
MOST_TIMES = 10_000
MOST_PUBLIC = 100_000
_TRUTHS: tuple[bool, ...] = (False, True)
_MOST_INTEGER = 1 << 63
_MOST_DOUBLE = Fraction(sys.float_info.max)


@dataclass(frozen=True, slots=True)
class KeyDomain:
    """All values a key can have, NULL apart, and where that is known from; `expression` clamps to them where needed."""

    values: tuple[Value, ...]
    null: bool
    why: str
    expression: Expression


def domain_of(expression: Expression, relation: Relation, ranges: Ranges) -> KeyDomain | None:
    """Return all values of a key over a relation's rows; None where they are not known without data."""
    match expression:
        case Literal():
            held = () if expression.value is None else (expression.value,)
            return KeyDomain(held, expression.value is None, "written in the question", expression)
        case Ref():
            found = _column(relation, expression.index, ranges)
            if found is not None:
                values, null, why = found
                return KeyDomain(values, null, why, expression)
        case Call():
            found = _call(expression, relation, ranges)
            if found is not None:
                return found
    return _whole_numbers(expression, relation, ranges)


def _column(relation: Relation, index: int, ranges: Ranges) -> tuple[tuple[Value, ...], bool, str] | None:
    match relation:
        case Scan():
            return _declared(relation, index, ranges)
        case Filter():
            return _restrict_values(_column(relation.input, index, ranges), index, relation)
        case Project():
            below = domain_of(relation.expressions[index], relation.input, ranges)
            if below is None or below.expression != relation.expressions[index]:
                return None
            return below.values, below.null, below.why
        case Distinct():
            return _column(relation.input, index, ranges)
        case Join():
            width = len(relation.left.columns)
            left = index < width
            found = _column(relation.left, index, ranges) if left else _column(relation.right, index - width, ranges)
            absent = relation.kind in ({"right", "full"} if left else {"left", "full"})
            return found if found is None or not absent else (found[0], True, found[2])
        case UnionAll():
            parts = [_column(branch, index, ranges) for branch in relation.inputs]
            if any(part is None for part in parts):
                return None
            known = [part for part in parts if part is not None]
            values = dict.fromkeys(value for part in known for value in part[0])
            return _sort_values(values), any(part[1] for part in known), known[0][2]
        case UnitGroup() if index < len(relation.keys):
            key = relation.keys[index]
            return _column(relation.input, key.index, ranges) if isinstance(key, Ref) else None
        case Window() if index < len(relation.input.columns):
            return _column(relation.input, index, ranges)
        case _:
            return None


def _declared(scan: Scan, index: int, ranges: Ranges) -> tuple[tuple[Value, ...], bool, str] | None:
    table = ranges.schema.table(scan.table)
    if table is None:
        return None
    own = table.fields[index]
    if table.table.public:
        found = ranges.schema.public.distinct(scan.table, own.name, MOST_PUBLIC)
        if found is None:
            return None
        held = tuple(value for value in found if value is not None)
        return held, len(held) < len(found), f"the values of the public column {scan.table}.{own.name}"
    if own.declared is not None and own.declared.values is not None:
        return own.declared.values, own.declared.nullable, f"{scan.table}.{own.name} has declared values"
    if own.type is Type.BOOLEAN:
        return _TRUTHS, own.nullable, "a boolean"
    return None


def _call(call: Call, relation: Relation, ranges: Ranges) -> KeyDomain | None:
    if call.type is Type.BOOLEAN:
        return KeyDomain(_TRUTHS, call.function != "is_null", "a condition", call)
    match call.function:
        case "case":
            places = [*range(1, len(call.arguments) - 1, 2), len(call.arguments) - 1]
            return _chosen(call, [call.arguments[place] for place in places], relation, ranges)
        case "coalesce":
            found = _chosen(call, list(call.arguments), relation, ranges)
            last = _arm(call.arguments[-1], relation, ranges)
            return found if found is None or last is None else KeyDomain(found.values, last.null, found.why, call)
        case "date_trunc":
            return _times(call, relation, ranges)
        case _:
            return None


def _chosen(call: Call, arms: list[Node], relation: Relation, ranges: Ranges) -> KeyDomain | None:
    """What one of several expressions can be: each must be known, unclamped."""
    domains = [_arm(arm, relation, ranges) for arm in arms]
    if any(domain is None for domain in domains):
        return None
    known = [domain for domain in domains if domain is not None]
    values = dict.fromkeys(_as_value(value, call.type) for domain in known for value in domain.values)
    return KeyDomain(_sort_values(values), any(domain.null for domain in known), "written in the question", call)


def _arm(arm: Node, relation: Relation, ranges: Ranges) -> KeyDomain | None:
    if not isinstance(arm, (Literal, Ref, Call)):
        return None
    found = domain_of(arm, relation, ranges)
    return None if found is None or found.expression != arm else found


def _times(call: Call, relation: Relation, ranges: Ranges) -> KeyDomain | None:
    unit, inner = call.arguments
    known = ranges.times(inner, relation)
    if known is None or not isinstance(unit, Literal) or not isinstance(inner, (Ref, Call)):
        return None
    found = unit_starts(known[0], known[1], str(unit.value), MOST_TIMES)
    if found is None:
        return None
    values = tuple(moment.date() if call.type is Type.DATE else moment for moment in found)
    return KeyDomain(values, can_be_null(inner, relation), "declared bounds of the date, or WHERE", call)


def _whole_numbers(expression: Expression, relation: Relation, ranges: Ranges) -> KeyDomain | None:
    if expression.type is not Type.INTEGER:
        return None
    known = ranges.of(expression, relation)
    if known.lower is None or known.upper is None or known.upper - known.lower >= MOST_WHOLE:
        return None
    first, last = -(-known.lower.numerator // known.lower.denominator), known.upper.numerator // known.upper.denominator
    values = tuple(range(first, max(first, last) + 1))
    clamped = _clamp(expression, first, max(first, last)) if _needs_clamp(expression, known) else expression
    return KeyDomain(values, can_be_null(expression, relation), f"whole numbers: {known.why or 'its range'}", clamped)


# ---- what a predicate says of a key --------------------------------------------------------------------------------


def _restrict_values(
    known: tuple[tuple[Value, ...], bool, str] | None, index: int, relation: Filter
) -> tuple[tuple[Value, ...], bool, str] | None:
    """Restrict a column's values to those for which the conjuncts of a filter can be true."""
    for conjunct in conjuncts(relation.predicate):
        if not isinstance(conjunct, Call):
            continue
        inner = conjunct.arguments[0]
        if conjunct.function == "not" and isinstance(inner, Call) and inner.function == "is_null":
            if known is not None and _reads(inner.arguments[0], index):
                known = (known[0], False, known[2])
            continue
        if conjunct.function not in {"=", "in"} or not _reads(inner, index):
            continue
        literals = [argument for argument in conjunct.arguments[1:] if isinstance(argument, Literal)]
        if len(literals) != len(conjunct.arguments) - 1:
            continue
        kind = relation.columns[index].type
        read = [_as_value(literal.value, kind) for literal in literals if literal.value is not None]
        written = dict.fromkeys(value for value in read if _can_be(value, kind))  # others match no row
        if known is None:
            known = (_sort_values(written), False, "WHERE")
        else:
            known = (tuple(value for value in known[0] if _as_value(value, kind) in written), False, known[2])
    return known


def _reads(expression: Node, index: int) -> bool:
    return isinstance(expression, Ref) and expression.index == index


def can_be_null(expression: Node, relation: Relation) -> bool:
    """Return whether an expression can be NULL; when in doubt, it can."""
    match expression:
        case Literal():
            return expression.value is None
        case Ref():
            return column_can_be_null(relation, expression.index)
        case Call(function="is_null"):
            return False
        case Call(function="coalesce"):
            return all(can_be_null(argument, relation) for argument in expression.arguments)
        case Call(
            function="extract" | "date_trunc" | "neg" | "abs" | "floor" | "ceil" | "round" | "length" | "and" | "or" | "not"
        ):
            return any(can_be_null(argument, relation) for argument in expression.arguments)
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=" | "in" | "like" | "ilike" | "starts_with"):
            return any(can_be_null(argument, relation) for argument in expression.arguments)
        case Call(function="case"):
            places = [*range(1, len(expression.arguments) - 1, 2), len(expression.arguments) - 1]
            return any(can_be_null(expression.arguments[place], relation) for place in places)
        case _:
            return True


def column_can_be_null(relation: Relation, index: int) -> bool:
    """Return whether a column can be NULL where the filters below hold."""
    if not relation.columns[index].nullable:
        return False
    if isinstance(relation, Filter):
        for conjunct in conjuncts(relation.predicate):
            if not isinstance(conjunct, Call):
                continue
            inner = conjunct.arguments[0]
            denied = conjunct.function == "not" and isinstance(inner, Call) and inner.function == "is_null"
            if denied and isinstance(inner, Call) and _reads(inner.arguments[0], index):
                return False
            if conjunct.function in {"=", "<", "<=", ">", ">=", "in"} and any(
                _reads(argument, index) for argument in conjunct.arguments
            ):
                return False
        return column_can_be_null(relation.input, index)
    if isinstance(relation, Distinct):
        return column_can_be_null(relation.input, index)
    return True


# ---- values --------------------------------------------------------------------------------------------------------


def _as_value(value: Value | None, kind: Type) -> Value:
    """A literal as a value of the key's type, so that equal keys are equal."""
    if isinstance(value, bool) or value is None:
        return bool(value)
    if kind is Type.INTEGER and isinstance(value, Fraction) and value.denominator == 1:
        return int(value)
    if kind in {Type.FLOAT, Type.DECIMAL} and isinstance(value, int):
        return Fraction(value)
    if kind is Type.TIMESTAMP and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001
    if kind is Type.DATE and isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date()
    return value


def _can_be(value: Value, kind: Type) -> bool:
    """Whether a value of `_as` is one that a column of this type can have."""
    match kind:
        case Type.BOOLEAN:
            return isinstance(value, bool)
        case Type.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool) and -_MOST_INTEGER <= value < _MOST_INTEGER
        case Type.DECIMAL | Type.FLOAT:
            return isinstance(value, Fraction) and abs(value) <= _MOST_DOUBLE
        case Type.STRING:
            return isinstance(value, str)
        case Type.DATE:
            return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        case Type.TIMESTAMP:
            return isinstance(value, dt.datetime)


def _sort_values(values: dict[Value, None]) -> tuple[Value, ...]:
    kinds = {type(value) for value in values}
    if len(kinds) == 1 or kinds <= {int, Fraction}:
        return tuple(sorted(values))  # type: ignore[type-var]
    return tuple(sorted(values, key=str))


def _needs_clamp(expression: Node, known: Range) -> bool:
    """Parts of dates cannot leave their range; declared bounds are only promises."""
    return not (isinstance(expression, Call) and expression.function == "extract" and known.why.startswith("a "))


def _clamp(expression: Expression, lowest: int, highest: int) -> Expression:
    """The expression with values outside moved to the ends; NULL stays NULL."""
    kind = Type.INTEGER
    low, high = Literal(lowest, kind), Literal(highest, kind)
    below, above = Call("<", (expression, low), Type.BOOLEAN), Call(">", (expression, high), Type.BOOLEAN)
    return Call("case", (below, low, above, high, expression), kind)
