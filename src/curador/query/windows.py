"""Window functions. Over people's rows they stay inside a unit, their partition; over released rows they are free."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp

from curador.query import typed_terms
from curador.query.context import UNIT, Reading, take_arguments
from curador.query.messages import invalid, not_private
from curador.query.replacements import replace_window
from curador.query.text import name_node
from curador.query.tree import Frame, Order, Out, ReleasedCall, WindowCall
from curador.query.typed_terms import TypedTerm, call_term, column_term, literal_term, unify_types
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.query.context import Windows
    from curador.query.tree import Expression, Place, ReleasedWindowName, WindowName

_WINDOW_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.Avg: "avg",
    exp.Lag: "lag",
    exp.Lead: "lead",
}
_RANKS = {"row_number", "rank", "dense_rank"}
_MOST_OFFSET = 1_000

_IN_FROM = "SELECT … FROM (SELECT *, row_number() OVER (PARTITION BY … ORDER BY x) AS r FROM t) WHERE r = 1."
_INSTEAD = {
    "HAVING": "QUALIFY is about windows, after aggregates.",
    "a window": "put the inner one into a subquery in FROM.",
}

Ordering = tuple[tuple["Expression", bool, bool], ...]


def read_window(node: exp.Window, reading: Reading) -> TypedTerm:
    """Return the column that a window function makes, and note the function for the relation below."""
    place = reading.place(node)
    if reading.windows is not None and reading.windows.released:
        return _read_released_window(node, reading, reading.windows)
    if reading.windows is None:
        raise not_private(
            place,
            f"a window function must stand in the SELECT list of a subquery in FROM, not in {reading.clause}",
            _INSTEAD.get(reading.clause, _IN_FROM),
        )
    this, partition, order, spec = take_arguments(
        node, reading.context, "this", "partition_by", "order", "spec", ignored=("over",)
    )
    function = _WINDOW_FUNCTIONS.get(type(this))
    if function is None:
        raise invalid(
            place,
            f"{name_node(this, reading.context.text)} must not stand before OVER",
            f"{', '.join(_WINDOW_FUNCTIONS.values())}.",
        )
    rows = reading.inside("a window")
    others = _partition(partition or [], rows, place)
    ordering = _read_order(order, rows)
    argument, offset = _argument(this, function, rows)
    whole = _frame(spec, function, ordered=bool(ordering), reading=rows, place=place)
    type_ = _type(function, argument)
    asked = WindowCall(
        cast("WindowName", function),
        None if argument is None else argument.row,
        others,
        ordering,
        type_,
        whole,
        offset,
        place,
    )
    if asked not in reading.windows.calls:
        reading.windows.calls.append(asked)
    index = reading.windows.width + reading.windows.calls.index(asked)
    return column_term(index, Out(function, type_, nullable=function not in _RANKS | {"count"}), place)


def _partition(nodes: list[exp.Expr], rows: Reading, place: Place | None) -> tuple[Expression, ...]:
    """Return what the partition has besides the unit."""
    terms = [rows.of(node) for node in nodes]
    identities = [rows.context.identity(one.column) for one in terms]
    certain = any(one.column is not None and one.column.unit for one in terms)
    if not certain and not any(identity is not None and identity != UNIT for identity in identities):
        raise not_private(
            place,
            "a window must be partitioned by the unit: rows of one person must not depend on another's",
            f"PARTITION BY {rows.context.unit}",
        )
    others: list[Expression] = []
    for term in terms:
        if term.column is not None and term.column.unit:
            continue
        if term.unit:
            raise not_private(term.place, "a partition must have the unit as a bare column")
        others.append(term.row)
    return tuple(others)


def _read_order(order: exp.Order | None, rows: Reading) -> Ordering:
    if order is None:
        return ()
    found: list[tuple[Expression, bool, bool]] = []
    for sort in take_arguments(order, rows.context, "expressions")[0]:
        this, descending, first = take_arguments(sort, rows.context, "this", "desc", "nulls_first")
        term = rows.of(this)
        if typed_terms.value_of(term) is not None or term.is_null:
            raise invalid(term.place, "a window must be ordered by columns")
        if term.unit:
            raise not_private(term.place, "a window must not be ordered by the unit, which is the same in all its rows")
        found.append((term.row, bool(descending), bool(first)))
    return tuple(found)


def _argument(this: exp.Expr, function: str, rows: Reading) -> tuple[TypedTerm | None, int]:
    place = rows.place(this)
    if function in _RANKS:
        take_arguments(this, rows.context)
        return None, 1
    if function in {"lag", "lead"}:
        inner, offset = take_arguments(this, rows.context, "this", "offset")
        step = 1 if offset is None else typed_terms.value_of(rows.of(offset))
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= _MOST_OFFSET:
            raise invalid(place, f"the offset of {function} must be a whole number from 0 to {_MOST_OFFSET:,}")
        return _row_term(inner, rows), step
    inner: Any = take_arguments(this, rows.context, "this", ignored=("big_int",))[0]
    if function == "count" and (inner is None or isinstance(inner, exp.Star)):
        return None, 1
    if isinstance(inner, exp.Distinct):
        raise invalid(place, "DISTINCT must not stand in a window")
    term = _row_term(inner, rows)
    if function == "count":
        return (None if typed_terms.value_of(term) is not None else term), 1
    if function in {"sum", "avg"}:
        return typed_terms.require_number(term, f"what {function}() is of"), 1
    if term.type is None or not (term.type.numeric or term.type.temporal):
        raise invalid(place, f"what {function}() is of must be a number or a date")
    return term, 1


def _row_term(node: exp.Expr, rows: Reading) -> TypedTerm:
    term = rows.of(node)
    if term.unit:
        raise not_private(term.place, "a window must not be computed over the unit")
    if term.type is None:
        raise invalid(term.place, "a window must be computed over a column")
    return term


def _frame(spec: exp.WindowSpec | None, function: str, *, ordered: bool, reading: Reading, place: Place | None) -> bool:
    """Return whether an aggregate is over the whole partition; False for one that runs up to its row."""
    if function in _RANKS | {"lag", "lead"}:
        _require_no_frame(spec, function, reading, place)
        return False
    if spec is None:
        return not ordered
    kind, *rest = take_arguments(spec, reading.context, "kind", "start", "start_side", "end", "end_side")
    start, start_side, end, end_side = (str(one or "").upper() for one in rest)
    if str(kind).upper() in {"ROWS", "RANGE"} and (start, start_side) == ("UNBOUNDED", "PRECEDING"):
        if end in {"CURRENT ROW", ""} and ordered:
            return False
        if (end, end_side) == ("UNBOUNDED", "FOLLOWING"):
            return True
    raise invalid(
        place,
        "a frame must run from the first row to this one or to the last",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, with ORDER BY.",
    )


def _require_no_frame(spec: exp.WindowSpec | None, function: str, reading: Reading, place: Place | None) -> None:
    """Refuse a frame where it means nothing, but for the whole partition, which programs write there."""
    if spec is None:
        return
    kind, *ends = take_arguments(spec, reading.context, "kind", "start", "start_side", "end", "end_side")
    whole = ["UNBOUNDED", "PRECEDING", "UNBOUNDED", "FOLLOWING"]
    if str(kind).upper() not in {"ROWS", "RANGE"} or [str(end or "").upper() for end in ends] != whole:
        raise invalid(place, f"{function} must have no frame")


def _type(function: str, argument: TypedTerm | None) -> Type:
    if argument is None or function == "count":
        return Type.INTEGER
    if function == "avg":
        return Type.FLOAT
    return argument.type or Type.FLOAT


# ---- over released rows ------------------------------------------------------------------------------------------------


_RELEASED_FUNCTIONS = {**_WINDOW_FUNCTIONS, exp.FirstValue: "first_value", exp.LastValue: "last_value"}
_PICKING = {"lag", "lead"}
_MOST_FRAME = 10_000


def _read_released_window(node: exp.Window, reading: Reading, windows: Windows) -> TypedTerm:
    """Return the column of a window function over released rows, or over the aggregates of the same SELECT."""
    place, context = reading.place(node), reading.context
    this, partition, order, spec = take_arguments(node, context, "this", "partition_by", "order", "spec", ignored=("over",))
    function = _RELEASED_FUNCTIONS.get(type(this))
    if function is None:
        raise invalid(
            place,
            f"{name_node(this, context.text)} must not stand before OVER",
            replace_window(name_node(this, context.text)) or f"{', '.join(_RELEASED_FUNCTIONS.values())}.",
        )
    rows = replace(reading, clause="a window", windows=None, first="never")
    argument, offset = _released_argument(this, function, rows)
    ordering = _released_order(order, rows)
    if function in _RANKS | _PICKING:
        _require_no_frame(spec, function, rows, place)
        if not ordering and function != "row_number":
            raise invalid(place, f"{function} must have an order", f"{function.upper()}(…) OVER (ORDER BY …).")
        frame = None
    else:
        frame = _released_frame(spec, ordered=bool(ordering), rows=rows, place=place)
    parts = [rows.of(one) for one in partition or []]
    held = [*parts, *ordering, *([argument] if argument is not None else [])]
    for term in held:
        if any(index >= windows.width for index in typed_terms.columns_in(term.node)):
            raise invalid(
                place, "a window function must not stand inside another", "put the inner one into a subquery in FROM."
            )
    type_ = _type(function, argument)
    call = ReleasedCall(
        cast("ReleasedWindowName", function),
        None if argument is None else argument.node,  # type: ignore[arg-type]
        tuple(term.node for term in parts),  # type: ignore[arg-type]
        tuple(_orders(order, ordering)),
        type_,
        frame,
        offset,
        place,
    )
    if call not in windows.calls:
        windows.calls.append(call)
    index = windows.width + windows.calls.index(call)
    found = column_term(index, Out(function, type_, nullable=True), place)
    default = this.args.get("default")
    return found if default is None else _with_default(found, rows.of(default), call, windows)


def _with_default(found: TypedTerm, default: TypedTerm, call: ReleasedCall, windows: Windows) -> TypedTerm:
    """Return LAG with what it is where there is no such row: the first rows, as many as it looks back."""
    if call.function != "lag":
        raise invalid(call.place, f"{call.function} must have no default", "COALESCE(…, 0) gives one.")
    number = replace(call, function="row_number", argument=None, type=Type.INTEGER, offset=1)
    if number not in windows.calls:
        windows.calls.append(number)
    index = windows.width + windows.calls.index(number)
    first = column_term(index, Out("row_number", Type.INTEGER, nullable=False), call.place)
    condition = call_term("<=", Type.BOOLEAN, (first, literal_term(call.offset, Type.INTEGER)))
    type_, (value, lagged) = unify_types([default, found], "LAG and its default", call.place)
    return call_term("case", type_, (condition, value, lagged), nullable=True, place=call.place)


def _released_order(order: exp.Order | None, rows: Reading) -> list[TypedTerm]:
    if order is None:
        return []
    sorts = take_arguments(order, rows.context, "expressions")[0]
    terms = [rows.of(take_arguments(sort, rows.context, "this", "desc", "nulls_first")[0]) for sort in sorts]
    for term in terms:
        if typed_terms.value_of(term) is not None or term.is_null:
            raise invalid(term.place, "a window must be ordered by columns")
    return terms


def _orders(order: exp.Order | None, terms: list[TypedTerm]) -> list[Order]:
    sorts: list[Any] = [] if order is None else order.expressions
    return [
        Order(term.node, bool(sort.args.get("desc")), bool(sort.args.get("nulls_first")))
        for sort, term in zip(sorts, terms, strict=True)
    ]


def _released_argument(this: exp.Expr, function: str, rows: Reading) -> tuple[TypedTerm | None, int]:
    """Return what a window function is of: an expression over released rows, or one that aggregates are in."""
    place = rows.place(this)
    if function in _RANKS:
        take_arguments(this, rows.context)
        return None, 1
    if function in _PICKING:
        inner, offset = take_arguments(this, rows.context, "this", "offset", ignored=("default",))
        step = 1 if offset is None else typed_terms.value_of(rows.of(offset))
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= _MOST_OFFSET:
            raise invalid(place, f"the offset of {function} must be a whole number from 0 to {_MOST_OFFSET:,}")
        return _typed(rows.of(inner)), step
    inner = take_arguments(this, rows.context, "this", ignored=("big_int",))[0]
    if function == "count" and (inner is None or isinstance(inner, exp.Star)):
        return None, 1
    if isinstance(inner, exp.Distinct):
        raise invalid(place, "DISTINCT must not stand in a window")
    term = _typed(rows.of(inner))
    if function in {"sum", "avg"}:
        return typed_terms.require_number(term, f"what {function}() is of"), 1
    return term, 1


def _typed(term: TypedTerm) -> TypedTerm:
    if term.type is None:
        raise invalid(term.place, "a window must be computed over a column")
    return term


def _released_frame(spec: exp.WindowSpec | None, *, ordered: bool, rows: Reading, place: Place | None) -> Frame:
    if spec is None:
        return Frame(rows=False, start=None, end=0 if ordered else None)
    kind, *rest = take_arguments(spec, rows.context, "kind", "start", "start_side", "end", "end_side")
    by_rows = str(kind).upper() == "ROWS"
    start = _frame_end(rest[0], rest[1], rows, place)
    end = _frame_end(rest[2], rest[3], rows, place) if rest[2] is not None else 0
    known = by_rows or (str(kind).upper() == "RANGE" and start is None and end in {None, 0})
    if not known or (start is not None and end is not None and start > end):
        raise invalid(
            place,
            "a frame must be of ROWS between two ends in order, or run from the first row",
            "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW, with ORDER BY.",
        )
    if not ordered and (start is not None or end is not None):
        raise invalid(place, "a frame must have an order", "OVER (ORDER BY …).")
    return Frame(by_rows, start, end)


def _frame_end(value: Any, side: Any, rows: Reading, place: Place | None) -> int | None:
    """An end of a frame, counted from the row; None where it has none."""
    text, where = str(value or "").upper(), str(side or "").upper()
    if text == "CURRENT ROW":
        return 0
    if text == "UNBOUNDED":
        return None
    step = typed_terms.value_of(rows.of(value)) if isinstance(value, exp.Expr) else None
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= _MOST_FRAME:
        raise invalid(place, f"an end of a frame must be a whole number from 0 to {_MOST_FRAME:,}")
    return -step if where == "PRECEDING" else step
