"""What is told beside an answer, and before anything is paid for: what caps and bounds do, and what no value fulfils.

All of it is of the question and the study, not of data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.plan.above import notes_above
from curador.plan.domains import Ranges
from curador.plan.intervals import compared_with, written_range
from curador.plan.ownership import conjuncts
from curador.plan.words import distinct_caps, expression_text, range_text
from curador.plan.work import rows_read
from curador.query.tree import Call, Filter, Join, Scan, UnionAll

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curador.plan.model import BlockPlan, Plan, Range
    from curador.query.tree import Expression, Relation
    from curador.study.model import Schema


def bounding_notes(plan: Plan, schema: Schema) -> tuple[str, ...]:
    """Return what caps and bounds do: an error bar says nothing about it. What no value fulfils stands first."""
    lines = [line for block in plan.blocks for line in impossible_notes(block, schema)]
    unit = schema.study.unit_name
    for block in plan.blocks:
        own = block.contribution
        groups = "" if block.cap.groups is None else f" in at most {block.cap.groups:,} groups"
        within = "" if block.cap.in_group is None else f", at most {block.cap.in_group:,} in one group"
        rows = f"{own.rows:,} row{'' if own.rows == 1 else 's'}"
        lines.append(f"± noise only, after at most {rows} a {unit}{groups}{within}")
        lines += [
            f"{', '.join(names)}: of at most {most:,} different value{'' if most == 1 else 's'} per {unit}"
            for most, names in distinct_caps(block).items()
        ]
        if (most := rows_read(block, schema)) is not None:
            lines.append(f"chosen from at most {most:,} rows per {unit} of a table")
        lines += [f"bounds: {note}" for note in block.notes]
    lines += [] if plan.above is None else notes_above(plan.above, plan.blocks)
    return tuple(dict.fromkeys(lines))


def impossible_notes(block: BlockPlan, schema: Schema) -> list[str]:
    """Return a line for each comparison with a number, in WHERE or in FILTER, that no value within its range fulfils.

    Values outside of declared bounds may, if there are any: they are clamped to be added up, and compared as they are.
    """
    ranges = Ranges(schema, block.contribution.rows)
    filters = [(one.predicate, one.input) for one in _filters(block.relation)]
    filters += [(tally.filter, block.relation) for tally in block.tallies if tally.filter is not None]
    found = dict.fromkeys(line for predicate, relation in filters for line in _impossible(predicate, relation, ranges))
    return list(found)


def _impossible(predicate: Expression, relation: Relation, ranges: Ranges) -> Iterator[str]:
    for conjunct in conjuncts(predicate):
        for function, what, literals in compared_with(conjunct) if isinstance(conjunct, Call) else ():
            numbers = [written_range(literal) for literal in literals]
            if any(number.lower is None for number in numbers) or what.type is None or not what.type.numeric:
                continue
            known = ranges.of(what, relation)
            if numbers and all(_never(function, known, number) for number in numbers):
                name = expression_text(what, relation)
                told = f"no value of {name} in {range_text(known)} fulfils {expression_text(conjunct, relation)}"
                yield f"{told}: rows beyond, if there are any, are counted, and added up as the nearer end"


def _never(function: str, known: Range, number: Range) -> bool:
    lower, upper, value = known.lower, known.upper, number.lower
    if value is None:
        return False
    below, above = upper is not None and upper < value, lower is not None and lower > value
    match function:
        case "<":
            return above or lower == value
        case "<=":
            return above
        case ">":
            return below or upper == value
        case ">=":
            return below
        case _:
            return below or above


def _filters(relation: Relation) -> Iterator[Filter]:
    match relation:
        case Scan():
            return
        case Join():
            yield from _filters(relation.left)
            yield from _filters(relation.right)
        case UnionAll():
            for part in relation.inputs:
                yield from _filters(part)
        case _:
            if isinstance(relation, Filter):
                yield relation
            yield from _filters(relation.input)
