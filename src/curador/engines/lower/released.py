"""SQL over released rows, for the calculator: groups, windows, joins and orders of columns that were computed before.

Tables are `released` and, of a join, `other`. Their columns are c0, c1 … and `place`, the number of the row: it completes
every order, and says afterwards which rows a number was made of. Everything is total: a whole number that leaves 64 bits is
NULL, and so is a double that is not finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.engines.lower.dialect_duckdb import DUCKDB
from curador.engines.lower.expression import lower_text
from curador.engines.lower.sql import GeneratedSQL, commas, mark_generated, select
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.query.tree import Frame, JoinKind, Node, ReleasedWindowName

TABLE, OTHER, PLACE = "released", "other", "place"


def column(index: int) -> str:
    """Return the name of a column."""
    return f"c{index}"


def join_pairs(kind: JoinKind, on: Node | None, left: int, right: int) -> GeneratedSQL:
    """Return the pairs of rows that a join makes, by the rows' places; of a side that is absent, NULL."""
    names = [*(f"l.{column(index)}" for index in range(left)), *(f"r.{column(index)}" for index in range(right))]
    condition = "TRUE" if on is None else lower_text(on, names, DUCKDB, Type.BOOLEAN)
    if kind in {"semi", "anti"}:
        word = "EXISTS" if kind == "semi" else "NOT EXISTS"
        inner = f"SELECT 1 FROM {OTHER} AS r WHERE {condition}"  # noqa: S608 -- every part is ours
        text = select([f"l.{PLACE}"], f"{TABLE} AS l", when=[f"{word} ({inner})"])
        return mark_generated(f"{text} ORDER BY 1")
    source = f"{TABLE} AS l {kind.upper()} JOIN {OTHER} AS r ON {condition}"
    return mark_generated(f"{select([f'l.{PLACE}', f'r.{PLACE}'], source)} ORDER BY 1 NULLS LAST, 2 NULLS LAST")


def first_of_group(keys: Sequence[int]) -> GeneratedSQL:
    """Return for every row the first row that has the same keys."""
    by = f"PARTITION BY {commas(map(column, keys))}" if keys else ""
    return mark_generated(f"{select([f'MIN({PLACE}) OVER ({by})'], TABLE)} ORDER BY {PLACE}")


def aggregate_groups(calls: Sequence[tuple[str, int | None, int | None, Type]], keys: Sequence[int]) -> GeneratedSQL:
    """Return aggregates (function, argument, condition, type) of the groups, in the order of their first rows."""
    text = select([_aggregate(*call) for call in calls] or ["1"], TABLE, by=map(column, keys))
    return mark_generated(f"{text} ORDER BY MIN({PLACE})" if keys else text)


def _aggregate(function: str, argument: int | None, condition: int | None, kind: Type) -> str:
    of = "*" if argument is None else column(argument)
    where = "" if condition is None else f" FILTER (WHERE {column(condition)})"
    text = _WRITTEN.get(function, f"{function.upper()}({{}})").format(of) + where
    return _total(text, kind) if function in {"sum", "avg"} else text


_WRITTEN = {"count_distinct": "COUNT(DISTINCT {})"}
"""Aggregates that are not written as they are called."""


def _total(text: str, kind: Type) -> str:
    if kind is Type.INTEGER:
        return DUCKDB.whole(text)
    return f"CASE WHEN {DUCKDB.finite(f'CAST({text} AS DOUBLE)')} THEN CAST({text} AS DOUBLE) END"


def _sorted_by(order: Sequence[tuple[int, bool, bool]]) -> list[str]:
    """An order, by (column, descending, nulls first)."""
    return [
        f"{column(index)} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
        for index, descending, first in order
    ]


def order_rows(order: Sequence[tuple[int, bool, bool]]) -> GeneratedSQL:
    """Return the places of the rows in an order."""
    return mark_generated(f"{select([PLACE], TABLE)} ORDER BY {commas([*_sorted_by(order), PLACE])}")


def window_values(
    function: ReleasedWindowName,
    argument: int | None,
    partition: Sequence[int],
    order: Sequence[tuple[int, bool, bool]],
    frame: Frame | None,
    offset: int,
    kind: Type,
) -> GeneratedSQL:
    """Return what a window function gives in every row; then the row it was picked from, where it picks one.

    Besides: the first row of its partition, its place in it, and how far its peers reach.
    """
    by = f"PARTITION BY {commas(map(column, partition))} " if partition else ""
    sorts = _sorted_by(order)
    plain = f"{by}ORDER BY {commas(sorts)}" if sorts else by
    whole = f"{by}ORDER BY {commas([*sorts, PLACE])}"
    of = "*" if argument is None else column(argument)
    match function:
        case "rank" | "dense_rank":
            value, picked = f"{function.upper()}() OVER ({plain})", "NULL"
        case "row_number":
            value, picked = f"ROW_NUMBER() OVER ({whole})", "NULL"
        case "lag" | "lead":
            value = f"{function.upper()}({of}, {offset}) OVER ({whole})"
            picked = f"{function.upper()}({PLACE}, {offset}) OVER ({whole})"
        case _:
            over = _over(plain, whole, frame)
            value, picked = f"{function.upper()}({of}) OVER ({over})", "NULL"
            if function in {"sum", "avg"}:
                value = _total(value, kind)
            if function in {"first_value", "last_value"}:
                over = _over(whole, whole, frame)
                value, picked = f"{function.upper()}({of}) OVER ({over})", f"{function.upper()}({PLACE}) OVER ({over})"
    first = f"MIN({PLACE}) OVER ({by})"
    number = f"ROW_NUMBER() OVER ({whole})"
    peers = f"COUNT(*) OVER ({plain})"
    return mark_generated(f"{select([value, picked, first, number, peers], TABLE)} ORDER BY {PLACE}")


def _over(plain: str, whole: str, frame: Frame | None) -> str:
    if frame is None:
        return plain
    if not frame.rows:
        if frame.end is None:
            return f"{plain} RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        return f"{plain} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    start = "UNBOUNDED PRECEDING" if frame.start is None else _end(frame.start)
    end = "UNBOUNDED FOLLOWING" if frame.end is None else _end(frame.end)
    return f"{whole} ROWS BETWEEN {start} AND {end}"


def _end(steps: int) -> str:
    return "CURRENT ROW" if steps == 0 else f"{abs(steps)} {'PRECEDING' if steps < 0 else 'FOLLOWING'}"
