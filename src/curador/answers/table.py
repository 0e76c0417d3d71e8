"""From released numbers to the table that is shown: expressions, error bars, HAVING, ORDER BY, LIMIT.

Everything here is a function of what was released. Rows come by ORDER BY on released values, then by key with NULL last,
never in an engine's order.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curador.answers.column import AnswerColumn
from curador.answers.computed import LEAST, MOST, Vector, compute, evaluate, own_type, settle_types, wholes
from curador.answers.enclosures import Sight, enclose, estimate_value
from curador.answers.release import key_order, ranks
from curador.numerics.exact import Number, confidence_level
from curador.plan.aggregates import Linear, linear_reach
from curador.plan.model import estimates_of
from curador.query.tree import Call, Estimated, Key, Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.answers.release import ReleasedBlock
    from curador.plan.above import AbovePlan
    from curador.plan.model import BlockPlan, ItemPlan, OrderPlan
    from curador.plan.price import Noise, Priced
    from curador.query.tree import Node


def answer_columns(
    priced: Priced, released: Sequence[ReleasedBlock], confidence: Number = Fraction(19, 20)
) -> list[AnswerColumn]:
    """Return the whole answer: the blocks' rows one after the other, chosen, ordered and cut.

    Claim   An interval covers its number before noise, of that row, with at least this probability; a NULL end has no bound.
    """
    level = confidence_level(confidence)
    plan = priced.plan
    sights = [sight_of(*one) for one in zip(plan.blocks, priced.noises, released, strict=True)]
    if plan.above is not None:
        return _columns_above(plan.above, sights, level)
    for sight in sights:
        compute(_wanted_expressions(sight, plan.order), sight)
    columns = [_join_column(place, sights, level) for place in range(len(plan.blocks[0].items))]
    places, start = list[NDArray[np.int64]](), 0
    for sight in sights:
        places.append(_kept_places(sight) + start)
        start += sight.rows
    shown = np.concatenate(places)
    order = [_order(one, columns, sights)[shown] for one in plan.order]
    if order:
        shown = shown[np.lexsort([np.arange(len(shown)), *order[::-1]])]
    last = None if plan.limit is None else plan.offset + plan.limit
    shown = shown[plan.offset : last]
    if np.array_equal(shown, np.arange(start)):
        return columns
    chosen: list[int] = shown.tolist()
    return [
        AnswerColumn(
            column.name,
            column.type,
            _pick(column.values, chosen) or [],
            _pick(column.low, chosen),
            _pick(column.high, chosen),
        )
        for column in columns
    ]


def _columns_above(plan: AbovePlan, sights: Sequence[Sight], confidence: Fraction) -> list[AnswerColumn]:
    """The answer of a question that computes from released rows."""
    from curador.answers.above import compute_above
    from curador.answers.bars import enclose_bar, is_proved

    rows = compute_above(plan, sights)
    found: list[AnswerColumn] = []
    for out, kind, values, bar, noisy in zip(plan.tree.columns, rows.kinds, rows.columns, rows.bars, rows.noisy, strict=True):
        if not (noisy and kind.numeric):
            found.append(AnswerColumn(out.name, kind, values.listed()))
        elif not is_proved(bar):
            found.append(AnswerColumn(out.name, kind, values.listed(), unproved=True))
        else:
            where = enclose_bar(bar, 1 - confidence)
            none = where.empty | values.null
            ends = _low(where.low, none, kind), _high(where.high, none, kind)
            found.append(AnswerColumn(out.name, kind, values.listed(), *ends))
    return found


def _kept_places(sight: Sight) -> NDArray[np.int64]:
    """The places of a block's rows that HAVING keeps, by key."""
    released, having = sight.released, sight.block.having
    places = key_order(released.keys, released.rows)
    if having is None:
        return places
    kept = evaluate(having, sight, Type.BOOLEAN)
    return places[(kept.values & ~kept.null)[places]]


def sight_of(block: BlockPlan, noises: Sequence[Noise], released: ReleasedBlock) -> Sight:
    """Return what a block's expressions and intervals are computed from."""
    estimates = tuple(
        wholes(estimate.integers(released))
        if isinstance(estimate, Linear) and estimate.whole
        else estimate_value(estimate, released)
        for estimate in block.estimates
    )
    kinds = tuple(key.type for key in block.keys)
    return Sight(released.rows, released.keys, kinds, estimates, block, noises, released)


def _wanted_expressions(sight: Sight, order: Sequence[OrderPlan]) -> list[tuple[Node, Type]]:
    """All that a block's rows are computed for, so that it is computed at once."""
    block = sight.block
    found = [(item.expression, _kind(item)) for item in block.items]
    found += [] if block.having is None else [(block.having, Type.BOOLEAN)]
    found += [(one.expression, own_type(one.expression, sight)) for one in order if one.expression is not None]
    barred = [settle_types(item.expression, sight) for item in block.items if item.released]
    return [*found, *((one, own_type(one, sight)) for node in barred for one in _without_release(node))]


def _without_release(node: Node) -> list[Node]:
    """The largest parts of an expression that are computed from keys alone: intervals need them by themselves."""
    if not isinstance(node, Call):
        return []
    if not estimates_of(node):
        return [node]
    return [found for argument in node.arguments for found in _without_release(argument)]


def item_column(item: ItemPlan, sight: Sight, confidence: Fraction) -> AnswerColumn:
    """Return one item in every row, in the released order."""
    node = item.expression
    kind = _kind(item)
    if isinstance(node, Key):
        return AnswerColumn(item.name, kind, list(sight.released.keys[node.index]))
    if isinstance(node, Estimated):
        estimate = sight.block.estimates[node.index]
        if isinstance(estimate, Linear) and estimate.whole and kind is Type.INTEGER:
            return _count(item, estimate, sight, confidence)
    values = evaluate(node, sight, kind).listed()
    if item.released and kind is Type.DATE and isinstance(node, Call) and node.function == DATE_OF_DAYS:
        where = enclose(node.arguments[0], sight, confidence)
        return AnswerColumn(item.name, kind, values, _days(where.low, where.empty), _days(where.high, where.empty))
    if not (item.released and kind.numeric):
        return AnswerColumn(item.name, kind, values)
    where = enclose(node, sight, confidence)
    return AnswerColumn(item.name, kind, values, _low(where.low, where.empty, kind), _high(where.high, where.empty, kind))


def _kind(item: ItemPlan) -> Type:
    """The type of a column: the plan's, but dates stay dates."""
    own = item.expression.type
    return own if own is not None and not own.numeric else item.type


def _count(item: ItemPlan, estimate: Linear, sight: Sight, confidence: Fraction) -> AnswerColumn:
    """A count: integers, and so are the ends, as the number before noise is one."""
    reach = int(linear_reach(estimate, sight.noises, confidence))
    values = estimate.integers(sight.released)
    value, low, high = (wholes(values + move).listed() for move in (0, -reach, reach))
    return AnswerColumn(item.name, Type.INTEGER, value, low, high)


def _low(ends: NDArray[Any], none: NDArray[Any], kind: Type) -> list[Any]:
    return _end(np.ceil(ends) if kind is Type.INTEGER else ends, none, kind)


def _high(ends: NDArray[Any], none: NDArray[Any], kind: Type) -> list[Any]:
    return _end(np.floor(ends) if kind is Type.INTEGER else ends, none, kind)


def _days(ends: NDArray[Any], none: NDArray[Any]) -> list[Any]:
    """Ends in days since 1970-01-01 as dates, rounded down: the number before noise is whole. NULL: no bound."""
    inside = np.isfinite(ends) & ~none & (np.abs(ends) < _MOST_DAYS)
    begin = dt.date(1970, 1, 1)
    return [begin + dt.timedelta(days=int(np.floor(end))) if there else None for end, there in zip(ends, inside, strict=True)]


DATE_OF_DAYS = "from_days"
_MOST_DAYS = 700_000
"""Days to the year 54 and to the year 3886: what is further is no date that anybody declared."""


def _end(ends: NDArray[Any], none: NDArray[Any], kind: Type) -> list[Any]:
    """Ends as Python's numbers, NULL where there is no bound."""
    found = Vector(np.where(np.isfinite(ends), ends, 0.0) + 0.0, none | ~np.isfinite(ends)).listed()
    if kind is not Type.INTEGER:
        return found
    return [None if value is None else min(max(round(value), LEAST), MOST) for value in found]


# ---- all blocks together -------------------------------------------------------------------------------------------


def _join_column(place: int, sights: Sequence[Sight], confidence: Fraction) -> AnswerColumn:
    """One column of all blocks: of the first type that is not a written NULL's, floats where integers meet them."""
    items = [sight.block.items[place] for sight in sights]
    parts = [item_column(item, sight, confidence) for item, sight in zip(items, sights, strict=True)]
    if len(parts) == 1:
        return parts[0]
    kinds = [part.type for part, item in zip(parts, items, strict=True) if not _is_null(item.expression)] or [parts[0].type]
    kind = Type.FLOAT if len(set(kinds)) > 1 and all(one.numeric for one in kinds) else kinds[0]
    barred = any(part.low is not None for part in parts)

    def join(of: str) -> list[Any]:
        found: list[Any] = []
        for part in parts:
            held: list[Any] | None = getattr(part, of)
            found += [None] * len(part.values) if held is None else held
        return [float(one) if kind is Type.FLOAT and type(one) is int else one for one in found]

    return AnswerColumn(parts[0].name, kind, join("values"), *((join("low"), join("high")) if barred else (None, None)))


def _is_null(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is None


def _order(one: OrderPlan, columns: Sequence[AnswerColumn], sights: Sequence[Sight]) -> NDArray[np.int64]:
    """The ranks of all rows by one expression of ORDER BY."""
    if one.column is not None:
        values = columns[one.column].values
    elif one.expression is not None and len(sights) == 1:
        values = evaluate(one.expression, sights[0]).listed()
    else:
        raise TypeError("an order names a column, or an expression over the one block")
    return ranks(values, descending=one.descending, nulls_first=one.nulls_first)


def _pick(values: list[Any] | None, places: Sequence[int]) -> list[Any] | None:
    return None if values is None else [values[place] for place in places]
