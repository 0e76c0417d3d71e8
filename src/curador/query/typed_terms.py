"""Typed terms: a node with what has to be known of it while the question is read: type, size, what of the unit is in it.

Sizes count a shared part once for each use, because whoever walks the tree later will meet it that often: `b` as `a + a`,
`c` as `b + b`, … doubles at every step.

Literals are values written in a question: numbers, dates, and arithmetic that can be done before anything is asked.

Which types go together is strict: what an engine would have to convert row by row is refused here, where no row is seen.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.query.messages import invalid, quote_name
from curador.query.tree import Call, Estimated, Expression, Literal, Node, Out, Place, Ref
from curador.study.values import Type, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


# ---- terms -----------------------------------------------------------------------------------------------------------------


MOST_DEEP = 100
MOST_NODES = 20_000


@dataclass(frozen=True, slots=True)
class TypedTerm:
    """A node and what is known of it.

    type        None for a NULL that has no type yet
    unit        a column that holds the unit is somewhere in it
    aggregated  an aggregate or a released value is somewhere in it
    column      what is known of the column, where the node is one column and nothing else
    """

    node: Node
    type: Type | None
    nullable: bool = True
    size: int = 1
    depth: int = 1
    unit: bool = False
    aggregated: bool = False
    column: Out | None = None

    @property
    def place(self) -> Place | None:
        """Where it begins."""
        return None if isinstance(self.node, Estimated) else self.node.place

    @property
    def is_null(self) -> bool:
        """Whether it is a NULL written in the question."""
        return isinstance(self.node, Literal) and self.node.value is None

    @property
    def row(self) -> Expression:
        """The node, which must be about one row: no aggregate is in it."""
        if isinstance(self.node, Literal | Ref | Call):
            return self.node
        raise invalid(self.place, "an aggregate cannot stand here")


def literal_term(value: Value | None, type_: Type | None, place: Place | None = None) -> TypedTerm:
    """Return a value written in the question."""
    return TypedTerm(Literal(value, type_, place), type_, nullable=value is None)


def column_term(index: int, out: Out, place: Place | None = None) -> TypedTerm:
    """Return the column at this place of the relation below."""
    return TypedTerm(Ref(index, out.type, place), out.type, out.nullable, unit=out.unit or out.unit_or_null, column=out)


def call_term(
    function: str, type_: Type, arguments: Sequence[TypedTerm], *, nullable: bool | None = None, place: Place | None = None
) -> TypedTerm:
    """Return a function applied to arguments. It may be NULL if one of them may, unless said otherwise."""
    size = 1 + sum(argument.size for argument in arguments)
    depth = 1 + max((argument.depth for argument in arguments), default=0)
    at = place or next((argument.place for argument in arguments if argument.place is not None), None)
    if depth > MOST_DEEP:
        raise invalid(at, f"an expression must be at most {MOST_DEEP} deep", "split it over a subquery in FROM.")
    if size > MOST_NODES:
        raise invalid(at, f"an expression must have at most {MOST_NODES:,} parts", "split it over a subquery in FROM.")
    return TypedTerm(
        Call(function, tuple(argument.node for argument in arguments), type_, at),
        type_,
        any(argument.nullable for argument in arguments) if nullable is None else nullable,
        size,
        depth,
        any(argument.unit for argument in arguments),
        any(argument.aggregated for argument in arguments),
    )


def connect(function: str, terms: Iterable[TypedTerm]) -> TypedTerm:
    """Return the AND or the OR of one or more booleans, flat."""
    flat: list[TypedTerm] = []
    for term in terms:
        node = term.node
        if isinstance(node, Call) and node.function == function:
            share = term.size // len(node.arguments)  # an upper bound of what matters: the sum stays the same
            flat.extend(
                replace(term, node=argument, type=Type.BOOLEAN, size=share, depth=term.depth - 1)
                for argument in node.arguments
            )
        else:
            flat.append(term)
    return flat[0] if len(flat) == 1 else call_term(function, Type.BOOLEAN, flat)


def conjoin(terms: Iterable[TypedTerm]) -> TypedTerm:
    """Return the AND of one or more booleans."""
    return connect("and", terms)


def negate_term(term: TypedTerm) -> TypedTerm:
    """Return NOT of a boolean."""
    return call_term("not", Type.BOOLEAN, (term,))


def equate(left: TypedTerm, right: TypedTerm) -> TypedTerm:
    """Return the equality of two terms whose types agree already."""
    return call_term("=", Type.BOOLEAN, (left, right))


def not_null(term: TypedTerm) -> TypedTerm:
    """Return IS NOT NULL."""
    return negate_term(call_term("is_null", Type.BOOLEAN, (term,), nullable=False))


def replace_nodes(node: Node, leaf: Callable[[Node], Node | None]) -> Node:
    """Return the node with its parts replaced, from above, wherever `leaf` says by what."""
    new = leaf(node)
    if new is not None:
        return new
    if isinstance(node, Call):
        return Call(node.function, tuple(replace_nodes(argument, leaf) for argument in node.arguments), node.type, node.place)
    return node


def renumber_columns(term: TypedTerm, places: Callable[[int], int]) -> TypedTerm:
    """Return the term with every column moved to its new place."""

    def moved(node: Node) -> Node | None:
        return Ref(places(node.index), node.type, node.place) if isinstance(node, Ref) else None

    return replace(term, node=replace_nodes(term.node, moved))


def columns_in(node: Node, found: set[int] | None = None) -> set[int]:
    """Return the places of all columns in an expression over rows."""
    places: set[int] = set() if found is None else found
    if isinstance(node, Ref):
        places.add(node.index)
    elif isinstance(node, Call):
        for argument in node.arguments:
            columns_in(argument, places)
    return places


# ---- literals --------------------------------------------------------------------------------------------------------------


MOST_DIGITS = 100
MOST_EXPONENT = 400
LARGEST = Fraction(2**1024 - 2**970)
"""The largest double: what is beyond it is no number an engine could compare with."""

_SHORT = 18
"""Digits of an integer that fits 64 bits whatever they are."""

_FINEST = 600
"""Bits of a denominator beyond which arithmetic is left to the engine."""

_NUMBER = re.compile(r"(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?\s*(?:Z|UTC|([+-])(\d{2}):?(\d{2})?)?)?"
)


def parse_number(text: str, place: Place | None) -> TypedTerm:
    """Return the number a text spells: an integer, a decimal where it has a point, a float where it has an exponent."""
    if text.isdecimal() and text.isascii() and len(text) <= _SHORT:
        return literal_term(int(text), Type.INTEGER, place)
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        raise invalid(place, f"{quote_name(text)} must be a number in decimal digits")
    whole, part, exponent = match.groups()
    if len(whole) + len(part or "") > MOST_DIGITS:
        raise invalid(place, f"a number must have at most {MOST_DIGITS} digits")
    power = int(exponent or 0)
    if abs(power) > MOST_EXPONENT:
        raise invalid(place, "a number must lie within the range of a double, ±1.8e308")
    digits = int((whole + (part or "")) or "0")
    value = Fraction(digits) * Fraction(10) ** (power - len(part or ""))
    if exponent is not None:
        return number_term(value, Type.FLOAT, place)
    if part is not None:
        return number_term(value, Type.DECIMAL, place)
    return number_term(value, Type.INTEGER, place)


def number_term(value: Fraction, type_: Type, place: Place | None) -> TypedTerm:
    """Return the number as a literal; an integer beyond 64 bits becomes a decimal, a number beyond doubles is refused."""
    if abs(value) > LARGEST:
        raise invalid(place, "a number must lie within the range of a double, ±1.8e308")
    if type_ is Type.INTEGER:
        if -(2**63) <= value < 2**63:
            return literal_term(int(value), Type.INTEGER, place)
        return literal_term(value, Type.DECIMAL, place)
    return literal_term(value, type_, place)


def parse_date(text: str, place: Place | None) -> dt.date:
    """Return the date a string spells as YYYY-MM-DD."""
    match = _DATE.fullmatch(text.strip())
    try:
        if match is not None:
            return dt.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        pass
    raise invalid(place, f"{quote_name(text)} must be a date", "write it as DATE '2024-12-31'.")


def parse_timestamp(text: str, place: Place | None) -> dt.datetime:
    """Return the point in time a string spells as YYYY-MM-DD[ HH:MM[:SS[.ffffff]]][zone], in UTC."""
    match = _TIMESTAMP.fullmatch(text.strip())
    try:
        if match is not None:
            year, month, day, hour, minute, second, part, sign, hours, minutes = match.groups()
            micro = int((part or "").ljust(6, "0"))
            clock = (int(hour or 0), int(minute or 0), int(second or 0), micro)
            value = dt.datetime(int(year), int(month), int(day), *clock)  # noqa: DTZ001 -- values have no zone: all are UTC
            shift = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
            return value - shift if sign == "+" else value + shift
    except (ValueError, OverflowError):
        pass
    raise invalid(place, f"{quote_name(text)} must be a point in time", "write it as TIMESTAMP '2024-12-31 23:59:00'.")


def value_of(term: TypedTerm) -> Value | None:
    """Return the value of a literal; None for anything else, and for NULL."""
    return term.node.value if isinstance(term.node, Literal) else None


def fraction_of(term: TypedTerm) -> Fraction | None:
    """Return the number of a literal as an exact one; None for anything else."""
    value = value_of(term)
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    return Fraction(value)


def fold_arithmetic(function: str, left: TypedTerm, right: TypedTerm, place: Place | None) -> TypedTerm | None:
    """Return + − × ÷ // % of two literals as one literal, exact; None where one is not."""
    first, second = fraction_of(left), fraction_of(right)
    if first is None or second is None:
        return None
    if max(first.denominator, second.denominator).bit_length() > _FINEST:
        return None
    if function in {"/", "//", "%"} and second == 0:
        raise invalid(place, "a division by zero is written here")
    integers = left.type is right.type is Type.INTEGER
    exact = Type.FLOAT if Type.FLOAT in {left.type, right.type} else Type.DECIMAL
    match function:
        case "+":
            value = first + second
        case "-":
            value = first - second
        case "*":
            value = first * second
        case "/":
            return number_term(first / second, Type.FLOAT, place)
        case _:
            quotient = Fraction(int(first / second))  # towards zero
            value = quotient if function == "//" else first - quotient * second
    return number_term(value, Type.INTEGER if integers else exact, place)


def shift_moment(moment: dt.date, count: int, unit: str, place: Place | None) -> dt.date:
    """Return a date or a point in time moved by a number of units; the day is cut to the month's last."""
    try:
        if unit in {"year", "quarter", "month"}:
            months = count * {"year": 12, "quarter": 3, "month": 1}[unit]
            year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
            day = min(moment.day, calendar.monthrange(year, month + 1)[1])
            return moment.replace(year=year, month=month + 1, day=day)
        return moment + dt.timedelta(**{f"{unit}s": count})
    except (ValueError, OverflowError, calendar.IllegalMonthError) as problem:
        raise invalid(place, "a date must lie in the years 1 to 9999") from problem


# ---- kinds -----------------------------------------------------------------------------------------------------------------


_WIDER = {Type.INTEGER: 0, Type.DECIMAL: 1, Type.FLOAT: 2}


def require_boolean(term: TypedTerm, what: str) -> TypedTerm:
    """Return the term if it is true or false."""
    if term.type is Type.BOOLEAN or term.is_null:
        return type_null(term, Type.BOOLEAN)
    raise invalid(term.place, f"{what} must be a condition; got {_describe(term)}", "compare it: x = 1, x IS NOT NULL.")


def require_number(term: TypedTerm, what: str) -> TypedTerm:
    """Return the term if it is a number."""
    if term.type is not None and term.type.numeric:
        return term
    if term.is_null:
        return type_null(term, Type.FLOAT)
    hint = {
        Type.BOOLEAN: "count the rows where it holds: COUNT_IF(x), or CASE WHEN x THEN 1 ELSE 0 END.",
        Type.STRING: "CAST(x AS DOUBLE) reads a number from a text.",
    }.get(term.type or Type.DATE)
    raise invalid(term.place, f"{what} must be a number; got {_describe(term)}", hint)


def require_text(term: TypedTerm, what: str) -> TypedTerm:
    """Return the term if it is a string."""
    if term.type is Type.STRING or term.is_null:
        return type_null(term, Type.STRING)
    raise invalid(term.place, f"{what} must be a string; got {_describe(term)}", "CAST(x AS VARCHAR) writes it as one.")


def require_time(term: TypedTerm, what: str) -> TypedTerm:
    """Return the term if it is a date or a point in time; a string literal is read as one."""
    if term.type is not None and term.type.temporal:
        return term
    value = value_of(term)
    if isinstance(value, str):
        return read_moment(term, Type.DATE if len(value.strip()) <= len("2024-12-31") else Type.TIMESTAMP)
    raise invalid(term.place, f"{what} must be a date or a timestamp; got {_describe(term)}", "CAST(x AS DATE) reads one.")


def type_null(term: TypedTerm, type_: Type) -> TypedTerm:
    """Return a NULL with a type; anything else as it is."""
    if term.type is None and isinstance(term.node, Literal):
        return replace(term, node=Literal(None, type_, term.place), type=type_)
    return term


def read_moment(term: TypedTerm, type_: Type) -> TypedTerm:
    """Return a string literal as the date or timestamp it spells."""
    value = str(value_of(term))
    if type_ is Type.DATE:
        return literal_term(parse_date(value, term.place), Type.DATE, term.place)
    return literal_term(parse_timestamp(value, term.place), Type.TIMESTAMP, term.place)


def to_midnight(term: TypedTerm) -> TypedTerm:
    """Return a date as the point in time at which it begins."""
    value = value_of(term)
    if isinstance(value, dt.date):
        return literal_term(dt.datetime(value.year, value.month, value.day), Type.TIMESTAMP, term.place)  # noqa: DTZ001 -- all are UTC
    return call_term("cast", Type.TIMESTAMP, (term,))


def align_types(left: TypedTerm, right: TypedTerm, what: str) -> tuple[TypedTerm, TypedTerm]:
    """Return two terms that can be compared, with literals read in the other's type."""
    if left.is_null or right.is_null:
        place = left.place if left.is_null else right.place
        raise invalid(place, f"{what} with NULL is never true", "x IS NULL, x IS NOT NULL, x IS DISTINCT FROM y.")
    if left.type is right.type:
        return left, right
    types = {left.type, right.type}
    if types <= set(_WIDER):
        return left, right
    if types == {Type.DATE, Type.TIMESTAMP}:
        return tuple(to_midnight(one) if one.type is Type.DATE else one for one in (left, right))  # type: ignore[return-value]
    for one, other in ((left, right), (right, left)):
        if isinstance(value_of(one), str) and other.type is not None and other.type.temporal:
            spelled = read_moment(one, other.type)
            return (spelled, right) if one is left else (left, spelled)
    raise invalid(
        right.place or left.place,
        f"{what} must be between two of one kind; got {_describe(left)} and {_describe(right)}",
        _conversion_hint(left, right),
    )


def unify_types(terms: Sequence[TypedTerm], what: str, place: Place | None) -> tuple[Type, list[TypedTerm]]:
    """Return the one type that several terms have together, and the terms with their literals in it."""
    types = {term.type for term in terms if term.type is not None}
    if not types:
        raise invalid(place, f"{what} must have a value besides NULL")
    if len(types) == 1:
        type_ = types.pop()
    elif types <= set(_WIDER):
        type_ = max(types, key=_WIDER.__getitem__)
    elif types <= {Type.DATE, Type.TIMESTAMP, Type.STRING} and types - {Type.STRING}:
        type_ = Type.TIMESTAMP if Type.TIMESTAMP in types else Type.DATE
    else:
        raise invalid(place, f"{what} must be of one kind; got {' and '.join(sorted(types))}", "CAST(x AS …) makes them one.")
    return type_, [_in_type(term, type_, what) for term in terms]


def _in_type(term: TypedTerm, type_: Type, what: str) -> TypedTerm:
    if term.type is type_:
        return term
    if term.is_null:
        return replace(term, node=Literal(None, type_, term.place), type=type_)
    number = fraction_of(term)
    if number is not None and type_.numeric:
        return literal_term(Fraction(number), type_, term.place)
    if type_.temporal and isinstance(value_of(term), str):
        return read_moment(term, type_)
    if type_ is Type.TIMESTAMP and term.type is Type.DATE:
        return to_midnight(term)
    if type_.numeric:
        return term
    raise invalid(term.place, f"{what} must be of one kind; got {_describe(term)} beside a {type_}")


def _describe(term: TypedTerm) -> str:
    value = value_of(term)
    if isinstance(value, str):
        return f"the string {quote_name(value)}"
    if term.is_null:
        return "NULL"
    article = "an" if term.type is Type.INTEGER else "a"
    return f"{article} {term.type}"


def _conversion_hint(left: TypedTerm, right: TypedTerm) -> str:
    kinds = {left.type, right.type}
    if Type.BOOLEAN in kinds:
        return "a condition needs no comparison: WHERE x, WHERE NOT x, x IS TRUE."
    for one, other in ((left, right), (right, left)):
        if isinstance(value_of(one), str) and other.type is not None and other.type.numeric:
            return "write the number without quotes."
        if fraction_of(one) is not None and other.type is Type.STRING:
            return "write the value in single quotes."
    return "CAST(x AS …) makes them one."
