"""What is known of every function of the catalogue without computing it: its range before data, its enclosure after noise.

ranges      where it lies if its arguments lie in given intervals, exactly; nothing where it gives no number
enclosures  which numbers it can give, NULL included, if its arguments are any of an interval's, over columns and outward
truths      the same of what is true or false

`query/functions.py` has an entry for each name here, and the other way round: a test holds both to it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from curador.plan import enclosure as on
from curador.plan import intervals
from curador.plan.enclosure import ColumnEnclosure, Truth
from curador.plan.intervals import EVERYTHING, units_apart, written_range
from curador.plan.model import Range, estimates_of
from curador.query.tree import Call, Filter, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.plan.domains import Ranges
    from curador.query.tree import Node, Relation
    from curador.study.model import Column

PARTS = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "dayofweek": (0, 6),
    "isodow": (1, 7),
    "dayofyear": (1, 366),
}


class EnclosureWalk(Protocol):
    """What an expression's parts can be, in every row."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        ...

    def number(self, node: Node) -> ColumnEnclosure:
        """Return where a number can lie."""
        ...

    def truth(self, node: Node) -> Truth:
        """Return what a condition can come to."""
        ...


RangeRule: TypeAlias = "Callable[[Call, Ranges, Relation], Range]"
NumberRule: TypeAlias = "Callable[[Call, EnclosureWalk], ColumnEnclosure]"
TruthRule: TypeAlias = "Callable[[Call, EnclosureWalk], Truth]"


# ---- ranges --------------------------------------------------------------------------------------------------------


def _anything(*_: object) -> Range:
    """Of what is no number, or any."""
    return EVERYTHING


def _of(function: Callable[..., Range]) -> RangeRule:
    """The range of arithmetic on the arguments' ranges."""
    return lambda call, ranges, relation: function(*(ranges.of(argument, relation) for argument in call.arguments))


def _of_first(function: Callable[[Range], Range]) -> RangeRule:
    return lambda call, ranges, relation: function(ranges.of(call.arguments[0], relation))


def _product(call: Call, ranges: Ranges, relation: Relation) -> Range:
    one, other = (ranges.of(argument, relation) for argument in call.arguments)
    return intervals.power(one, Fraction(2)) if call.arguments[0] == call.arguments[1] else intervals.multiply(one, other)


def _rounded(call: Call, ranges: Ranges, relation: Relation) -> Range:
    return intervals.round_range(ranges.of(call.arguments[0], relation), digits_of(call))


def _power(call: Call, ranges: Ranges, relation: Relation) -> Range:
    exponent = written_range(call.arguments[1])
    return EVERYTHING if exponent.lower is None else intervals.power(ranges.of(call.arguments[0], relation), exponent.lower)


def _chosen(places: Callable[[Call], list[int]]) -> RangeRule:
    """The hull of the values that a result may be, written NULLs apart."""

    def chosen(call: Call, ranges: Ranges, relation: Relation) -> Range:
        held = [call.arguments[place] for place in places(call)]
        return intervals.hull([ranges.of(one, relation) for one in held if not _null(one)])

    return chosen


def _case(call: Call, ranges: Ranges, relation: Relation) -> Range:
    """The hull of the arms, each where its condition is true and no condition before it is."""
    *pairs, last = call.arguments
    arms: list[tuple[Node, list[Node]]] = []
    denied: list[Node] = []
    for condition, arm in zip(pairs[::2], pairs[1::2], strict=True):
        arms.append((arm, [] if ranges.schema.older else [*denied, condition]))
        denied += [] if ranges.schema.older else intervals.denials(condition)
    arms.append((last, denied))
    return intervals.hull([ranges.of(arm, _where(relation, held)) for arm, held in arms if not _null(arm)])


def _where(relation: Relation, conditions: list[Node]) -> Relation:
    return Filter(relation, Call("and", tuple(conditions), Type.BOOLEAN)) if conditions else relation


def _extreme(call: Call, ranges: Ranges, relation: Relation) -> Range:
    """LEAST and GREATEST skip NULLs: the result is one of the arguments, and no further out than a written one."""
    held = [argument for argument in call.arguments if not _null(argument)]
    found = intervals.hull([ranges.of(one, relation) for one in held])
    for end in (written_range(one).lower for one in held):
        if end is not None:
            beyond = Range(None, end) if call.function == "least" else Range(end, None)
            found = replace(intervals.meet(found, beyond), integer=found.integer)
    return found


def _cast(call: Call, ranges: Ranges, relation: Relation) -> Range:
    inner = call.arguments[0]
    if inner.type is Type.BOOLEAN:
        return Range(Fraction(0), Fraction(1), integer=True)
    if inner.type is None or not inner.type.numeric:
        return EVERYTHING
    below = ranges.of(inner, relation)
    return intervals.round_range(below, 0) if call.type is Type.INTEGER else below


def _declared(column: Ref, ranges: Ranges, relation: Relation) -> Column | None:
    source = relation.columns[column.index].source
    table = None if source is None else ranges.schema.table(source[0])
    return None if table is None or source is None else table.table.column(source[1])


def _length(call: Call, ranges: Ranges, relation: Relation) -> Range:
    argument = call.arguments[0]
    declared = _declared(argument, ranges, relation) if isinstance(argument, Ref) else None
    if declared is not None and declared.length is not None:
        why = f"{declared.name} has a declared length"
        return Range(Fraction(0), Fraction(declared.length), integer=True, why=why)
    return Range(Fraction(0), None, integer=True)


def _part(call: Call, ranges: Ranges, relation: Relation) -> Range:
    part = text_of(call.arguments[0])
    if part == "year":
        known = ranges.times(call.arguments[1], relation)
        if known is None:
            return Range(None, None, integer=True)  # as below
        first, last = known[0].year, known[1].year
        return Range(Fraction(first), Fraction(last), integer=True, why="" if known is None else "declared dates")
    first, last = PARTS[part]
    return Range(Fraction(first), Fraction(last), integer=True, why=f"a {part}")


def _distance(call: Call, ranges: Ranges, relation: Relation) -> Range:
    unit = text_of(call.arguments[0])
    start, end = (ranges.times(argument, relation) for argument in call.arguments[1:])
    if start is None or end is None:
        return Range(None, None, integer=True)  # the years 1 to 9999 are no bounds: noise would drown every answer
    if unit == "day" and not ranges.schema.older:  # midnights between them are counted, no more and no fewer
        first, last = end[0].toordinal() - start[1].toordinal(), end[1].toordinal() - start[0].toordinal()
    else:
        first, last = units_apart(start[1], end[0], unit) - 1, units_apart(start[0], end[1], unit) + 1
    return Range(Fraction(first), Fraction(last), integer=True, why="dates")


def _null(expression: Node) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _all(call: Call) -> list[int]:
    return list(range(len(call.arguments)))


def digits_of(call: Call) -> int:
    """Return the digits that ROUND keeps."""
    number = written_range(call.arguments[1]).lower if len(call.arguments) > 1 else None
    return 0 if number is None else int(number)


def text_of(expression: Node) -> str:
    """Return a written text."""
    return str(expression.value) if isinstance(expression, Literal) else ""


def _difference(one: Range, other: Range) -> Range:
    return intervals.add(one, intervals.negate(other))


def _itself(one: Range) -> Range:
    return one


def _sign(_call: Call, _ranges: Ranges, _relation: Relation) -> Range:
    return Range(Fraction(-1), Fraction(1), integer=True)


def _floor(one: Range) -> Range:
    return intervals.monotone(one, lambda end: Fraction(math.floor(end)), integer=True)


def _ceiling(one: Range) -> Range:
    return intervals.monotone(one, lambda end: Fraction(math.ceil(end)), integer=True)


def _natural_logarithm(one: Range) -> Range:
    return intervals.logarithm(one, 1.0)


def _decimal_logarithm(one: Range) -> Range:
    return intervals.logarithm(one, math.log(10))


RANGES: dict[str, RangeRule] = {
    **dict.fromkeys(("and", "or", "not", "is_null", "=", "<>", "<", "<=", ">", ">=", "in"), _anything),
    **dict.fromkeys(("like", "ilike", "matches", "starts_with"), _anything),
    "case": _case,
    "coalesce": _chosen(_all),
    "nullif": _of_first(_itself),
    **dict.fromkeys(("least", "greatest"), _extreme),
    "cast": _cast,
    "+": _of(intervals.add),
    "-": _of(_difference),
    "*": _product,
    "/": _of(intervals.divide),
    "//": _of(intervals.whole_quotient),
    "%": _of(intervals.remainder),
    "neg": _of(intervals.negate),
    "abs": _of(intervals.magnitude),
    "sign": _sign,
    "round": _rounded,
    "floor": _of(_floor),
    "ceil": _of(_ceiling),
    "sqrt": _of(intervals.root),
    "ln": _of(_natural_logarithm),
    "log10": _of(_decimal_logarithm),
    "exp": _of(intervals.exponential),
    "power": _power,
    **dict.fromkeys(("lower", "upper", "trim", "concat", "substring", "replace"), _anything),
    "length": _length,
    **dict.fromkeys(("date_trunc", "date_add", "from_days"), _anything),
    "extract": _part,
    "date_diff": _distance,
}


# ---- enclosures of numbers -------------------------------------------------------------------------------------------


def _unknown(_: Call, walk: EnclosureWalk) -> ColumnEnclosure:
    """Of a text or a time nothing is enclosed."""
    return on.unknown(walk.rows)


def _image(function: Callable[..., ColumnEnclosure]) -> NumberRule:
    """The image of the arguments' enclosures."""

    def image(call: Call, walk: EnclosureWalk) -> ColumnEnclosure:
        return function(*map(walk.number, call.arguments)) if _numeric(call) else on.unknown(walk.rows)

    return image


def _quotient(function: Callable[[ColumnEnclosure, ColumnEnclosure], ColumnEnclosure]) -> NumberRule:
    """A quotient is NULL where its divisor is released and not above 0."""

    def image(call: Call, walk: EnclosureWalk) -> ColumnEnclosure:
        if not _numeric(call):
            return on.unknown(walk.rows)
        above, below = map(walk.number, call.arguments)
        found = function(above, below)
        return on.above_zero(found, below) if estimates_of(call.arguments[1]) else found

    return image


def _rounding(call: Call, walk: EnclosureWalk) -> ColumnEnclosure:
    held, digits = walk.number(call.arguments[0]), digits_of(call)
    return held if digits >= 0 and call.arguments[0].type is Type.INTEGER else on.round_digits(held, digits)


def _powers(call: Call, walk: EnclosureWalk) -> ColumnEnclosure:
    exponent = call.arguments[1]
    if estimates_of(exponent) or not _numeric(call) or not walk.rows:
        return on.unknown(walk.rows)
    known = np.unique(walk.number(exponent).low)
    return on.power(walk.number(call.arguments[0]), float(known[0])) if len(known) == 1 else on.unknown(walk.rows)


def _cases(call: Call, walk: EnclosureWalk) -> ColumnEnclosure:
    *pairs, last = call.arguments
    found, reached = on.nothing(walk.rows), np.ones(walk.rows, np.bool_)
    for condition, arm in zip(pairs[::2], pairs[1::2], strict=True):
        truth = walk.truth(condition)
        found = on.hull(found, walk.number(arm), reached & truth.true)
        reached = reached & (truth.false | truth.null)
    return on.hull(found, walk.number(last), reached)


def _coalesced(call: Call, walk: EnclosureWalk) -> ColumnEnclosure:
    found, reached = on.nothing(walk.rows), np.ones(walk.rows, np.bool_)
    for argument in call.arguments:
        held = walk.number(argument)
        sure = ColumnEnclosure(held.low, held.high, np.zeros(walk.rows, np.bool_))
        found = on.hull(found, sure, reached & ~held.empty)
        reached = reached & (held.null | held.empty)
    return ColumnEnclosure(found.low, found.high, found.null | reached)


def _nullif(call: Call, walk: EnclosureWalk) -> ColumnEnclosure:
    held, other = map(walk.number, call.arguments)
    return ColumnEnclosure(held.low, held.high, held.null | on.compare("=", held, other).true)


def _casts(call: Call, walk: EnclosureWalk) -> ColumnEnclosure:
    inner = call.arguments[0]
    if inner.type is Type.BOOLEAN:
        truth = walk.truth(inner)
        return ColumnEnclosure(
            np.where(truth.false, 0.0, np.where(truth.true, 1.0, np.inf)),
            np.where(truth.true, 1.0, np.where(truth.false, 0.0, -np.inf)),
            truth.null,
        )
    if not _numeric(call):
        return on.unknown(walk.rows)
    held = walk.number(inner)
    return on.monotone(on.round_to_whole)(held) if call.type is Type.INTEGER else held


def _numeric(call: Call) -> bool:
    return all(argument.type is None or argument.type.numeric for argument in call.arguments)


ENCLOSURES: dict[str, NumberRule] = {
    "case": _cases,
    "coalesce": _coalesced,
    "nullif": _nullif,
    "least": _image(lambda *held: on.least(held)),
    "greatest": _image(lambda *held: on.greatest(held)),
    "cast": _casts,
    "+": _image(on.add),
    "-": _image(on.subtract),
    "*": _image(on.multiply),
    "/": _quotient(on.divide),
    "//": _quotient(on.quotient),
    "%": _image(on.remainder),
    "neg": _image(on.negative),
    "abs": _image(on.absolute),
    "sign": _image(on.monotone(np.sign)),
    "round": _rounding,
    "floor": _image(on.monotone(np.floor)),
    "ceil": _image(on.monotone(np.ceil)),
    "sqrt": _image(on.root),
    "ln": _image(on.logarithm(np.log)),
    "log10": _image(on.logarithm(np.log10)),
    "exp": _image(on.exponential),
    "power": _powers,
    **dict.fromkeys(("lower", "upper", "trim", "length", "concat", "substring", "replace"), _unknown),
    **dict.fromkeys(("date_trunc", "extract", "date_diff", "date_add", "from_days"), _unknown),
}


# ---- enclosures of truths --------------------------------------------------------------------------------------------


def _doubtful(_: Call, walk: EnclosureWalk) -> Truth:
    return on.doubtful(walk.rows)


def _of_numbers(rule: TruthRule) -> TruthRule:
    """What is compared as numbers; of everything else nothing is known."""
    return lambda call, walk: rule(call, walk) if _numeric(call) else on.doubtful(walk.rows)


def _is_null(call: Call, walk: EnclosureWalk) -> Truth:
    held = walk.number(call.arguments[0])
    return Truth(held.null | held.empty, ~held.empty, np.zeros(walk.rows, np.bool_))


def _compared(call: Call, walk: EnclosureWalk) -> Truth:
    return on.compare(call.function, *map(walk.number, call.arguments))


def _listed(call: Call, walk: EnclosureWalk) -> Truth:
    held = walk.number(call.arguments[0])
    return on.some([on.compare("=", held, walk.number(argument)) for argument in call.arguments[1:]])


TRUTHS: dict[str, TruthRule] = {
    "and": lambda call, walk: on.every([walk.truth(argument) for argument in call.arguments]),
    "or": lambda call, walk: on.some([walk.truth(argument) for argument in call.arguments]),
    "not": lambda call, walk: on.reverse(walk.truth(call.arguments[0])),
    "is_null": _of_numbers(_is_null),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _of_numbers(_compared)),
    "in": _of_numbers(_listed),
    **dict.fromkeys(("like", "ilike", "matches", "starts_with"), _doubtful),
    **dict.fromkeys(("case", "coalesce", "nullif", "least", "greatest", "cast"), _doubtful),
}
