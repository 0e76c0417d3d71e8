"""How much work one unit's rows can cause, whoever asks what: W, a proved maximum, and the height that keeps it small.

How long an answer takes is seen by whoever waits for it. If a condition picks one person, and what follows multiplies or
grinds that person's rows, the time tells whether the condition holds: an attribute is read without any noise. So every plan
carries W: over all steps, the most rows of one unit that pass it, times what is computed with a row there. A plan whose W is
above the study's limit is refused before any charge.

The rows of a unit are bounded below every step by the *height*: base tables give rows of rank up to it, the rank that is
stored. It bounds work, never noise, and is far above the caps; it is the largest power of two with which W fits. Which rows
it leaves out is a matter of units with more rows than it, and is said.

step                            rows of one unit
table                           the height; and a comparison of ranks for every row that is stored
filter, projection, window      those below
join                            both sides, pairs that are compared, what comes out (`ownership.py`)
caps, groups, what is returned  those kept

Costs. What computing with one row costs, in nanoseconds: measured once, rounded up, the same for everybody.

The numbers were taken on DuckDB 2.0, one thread, for the expressions as they are lowered; `make attack-clock` takes them
again and prints them beside these. They need not be those of your machine: what matters is that a logarithm is charged as a
logarithm and a long text as a long text, so that one limit stops every way of making one person's rows expensive.

A cost has two parts: for every row, and for every byte of the texts that are looked at; both stand in the catalogue of
`query/functions.py`. `like`, `matches` and `replace` look for their pattern at every place: their cost a byte grows with what
is looked for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

from curador.errors import NotPrivate
from curador.plan.model import Step
from curador.plan.ownership import Owners, conjuncts, public_matches, refs_of, scans_of
from curador.query.functions import AGGREGATES, FUNCTIONS
from curador.query.patterns import count_steps
from curador.query.tree import Call, Distinct, Filter, Join, Literal, Project, Ref, Scan, UnionAll, UnitGroup, Window
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.plan.model import BlockPlan, Cap, Contribution
    from curador.query.tree import Expression, Node, Out, Place, Relation
    from curador.study.model import Schema, Study, Table


# ---- costs -----------------------------------------------------------------------------------------------------------------


TEXT_CHARACTERS = 4_096
"""Texts are cut to so many characters when a version is prepared, and no function makes a longer one."""

TEXT_BYTES = 4 * TEXT_CHARACTERS
UNIT_TEXT_BYTES = 65_536
"""Bytes of one unit's texts in one column, all its rows together: of rows beyond that, the text is not kept."""

NAME_BYTES = 256
"""Bytes of a text that says who somebody is, or leads there. A longer one is nobody."""

_WRITTEN_BYTES = 32
"""A number or a time, written out."""

_LISTED = 3.0
"""Nanoseconds for one value of an IN list."""

_GUARD = 4.0
"""A check that a number is finite. What is guarded stands twice in the text: a filter computes it twice."""


def cost_of(node: Node | None, rows: int, held: Sequence[int]) -> float:
    """Return the nanoseconds that an expression takes on all of a unit's rows.

    held  bytes of text that the rows have in each column together

    Claim   Not below the sum over its calls of the measured cost of each, every call as often as a filter computes it.
    Needs   The measured costs; texts as long as `held` says at most.
    """
    match node:
        case Ref():
            return 0.1 * bytes_of(node, rows, held)
        case Call():
            return _call(node, rows, held)
        case _:
            return 0.0


def bytes_of(node: Node | None, rows: int, held: Sequence[int]) -> int:
    """Return how many bytes of text come out of an expression on all of a unit's rows, at most."""
    match node:
        case Ref():
            return held[node.index] if node.type is Type.STRING and node.index < len(held) else 0
        case Literal():
            return rows * len(str(node.value).encode()) if node.type is Type.STRING else 0
        case Call() if node.type is Type.STRING:
            return _made(node, rows, sum(bytes_of(argument, rows, held) for argument in node.arguments))
        case _:
            return 0


def total_cost(nodes: Sequence[Node | None], rows: int, held: Sequence[int]) -> float:
    """Return what several expressions take together."""
    return sum(cost_of(node, rows, held) for node in nodes)


def _call(call: Call, rows: int, held: Sequence[int]) -> float:
    name, function = call.function, FUNCTIONS[call.function]
    below = sum(
        cost_of(argument, rows, held)
        if not function.guarded or not _is_computed(argument)
        else 2 * cost_of(argument, rows, held) + _GUARD * rows
        for argument in call.arguments
    )
    if name == "in":
        listed = call.arguments[1:]
        letters = sum(_length(one) for one in listed)
        each = function.row + _LISTED * len(listed) + function.byte * letters
        return below + rows * each + function.byte * bytes_of(call.arguments[0], rows, held)
    if name in {"like", "ilike"}:
        searched = _search_cost(_text(call.arguments[1])) + (10.0 if name == "ilike" else 0)
        return below + rows * function.row + bytes_of(call.arguments[0], rows, held) * searched
    if name == "matches":
        return below + rows * function.row + bytes_of(call.arguments[0], rows, held) * _match_cost(_text(call.arguments[1]))
    if name == "replace":
        searched = 16.0 + 0.01 * _length(call.arguments[1])
        return below + rows * function.row + bytes_of(call.arguments[0], rows, held) * searched
    looked = sum(bytes_of(argument, rows, held) for argument in call.arguments)
    own = rows * function.row + looked * function.byte
    if name == "cast" and looked:
        own += rows * 100.0  # read by patterns
    return below + own


def _is_computed(node: Node) -> bool:
    """Whether a node is a number that could have become none on the way."""
    return isinstance(node, Call) and FUNCTIONS[node.function].number


def _made(call: Call, rows: int, looked: int) -> int:
    """Bytes of a text that is made of so many."""
    longest = rows * TEXT_BYTES
    match call.function:
        case "replace":
            return longest
        case "cast":
            return looked or rows * _WRITTEN_BYTES
        case "substring":
            return min(looked, rows * 4 * max(_whole(call.arguments[-1]), 0))
        case "lower" | "upper":
            return min(2 * looked, longest)  # a small letter may take more bytes than its capital
        case _:
            return min(looked, longest)


def _search_cost(pattern: str) -> float:
    """Nanoseconds a byte of looking for a LIKE pattern.

    Without `_` each part between % is looked for as a whole. With it, parts that float are compared at every place, letter
    by letter: their cost a byte is that of the longest one.
    """
    if "_" not in pattern:
        return 0.3 + 0.01 * len(pattern)
    floating = pattern.split("%")[1:]
    return 1.0 + 1.5 * max(map(len, floating), default=0)


def _match_cost(pattern: str) -> float:
    """Nanoseconds a byte of matching a regular expression.

    Engines walk a table of what may come next; where it would grow without end they follow every place of the pattern.
    """
    steps = count_steps(pattern)
    return 12.0 if steps == 1 else 12.0 + 250.0 * steps


def _text(node: Node) -> str:
    return str(node.value) if isinstance(node, Literal) else "_" * TEXT_CHARACTERS


def _length(node: Node) -> int:
    return len(str(node.value).encode()) if isinstance(node, Literal) and isinstance(node.value, str) else 0


def _whole(node: Node) -> int:
    value = node.value if isinstance(node, Literal) else None
    return int(value) if isinstance(value, int) else TEXT_CHARACTERS


# ---- work ------------------------------------------------------------------------------------------------------------------


LEAST_HEIGHT = 8
"""Below this a height would leave out rows of ordinary people: such a plan is refused instead."""

_SCAN, _RANK, _COLUMN = 8.0, 1.5, 1.0
_FILTER, _COMPUTE, _UNION = 2.0, 1.0, 2.0
_PROBE, _BUILD, _PAIR, _JOINED = 30.0, 40.0, 4.0, 10.0
_GROUP, _AGGREGATE, _ORDERED_AGGREGATE = 100.0, 10.0, 120.0
_SORTED, _WHOLE, _DISTINCT = 400.0, 60.0, 150.0
_CROWDED, _CAPPED, _CHOSEN, _ORIGIN = 260.0, 400.0, 480.0, 110.0
_GRID, _TALLY, _UNITS, _VALUES, _CELLS = 30.0, 6.0, 60.0, 500.0, 80.0
_SORTED_BYTE, _GROUPED_BYTE, _MOVED_BYTE = 3.0, 1.0, 0.5
_RETURNED = 4_000.0
"""Nanoseconds for a row, or a byte of text, in each kind of step; measured like the functions.

Rows are chosen in an order that names a row of every table they come from: _ORIGIN for each beyond two. A group that is
returned goes through Python. What setting up an operator takes is not counted: up to half a millisecond for a window,
whoever's row is its first."""


def stored_rows(table: Table, study: Study) -> int:
    """Return how many rows of one unit a prepared table holds at most."""
    if table.single:
        return 1
    declared = [caps.rows for caps in (table.caps, table.caps_max) if caps is not None]
    return max([study.engine.unit_rows, *declared])


def fit_height(
    block: BlockPlan,
    schema: Schema,
    bounded: Callable[[Owners], tuple[Cap, Contribution]],
    place: Place | None,
    *,
    most: int,
    blocks: int,
) -> tuple[int, tuple[Step, ...]]:
    """Return the largest height at which a block's work fits the study's limit, and that work; refuse the block if none does.

    bounded  the caps and contributions at a height
    most     rows of one unit that its tables hold
    blocks   of the question: the limit is for all of them together

    Claim   The work that one unit's rows cause, at this height, is at most the limit.
    Needs   As `work_of`; the engine executes the height on every private table.
    """
    limit = schema.study.engine.unit_work * 1_000_000_000 / blocks
    height = most
    while True:
        owners = Owners(schema, height)
        cap, contribution = bounded(owners)
        steps = work_of(block, owners, cap, contribution.groups, place)
        if nanoseconds_of(steps) <= limit:
            return height, steps
        if height <= min(LEAST_HEIGHT, most):
            raise _too_much_work(steps, schema.study, block.relation, blocks)
        height = (1 << (height - 1).bit_length()) // 2


def rows_read(block: BlockPlan, schema: Schema) -> int | None:
    """Return how many rows of one unit a table gives at most, where that can leave some out; None where the cap says it."""
    found = [one.table for scan in scans_of(block.relation) if (one := schema.table(scan.table)) is not None]
    stored = [stored_rows(one, schema.study) for one in found if not one.public]
    if block.cap.by == "rank" or max(stored, default=1) == 1:
        return None
    return max(stored) if block.cap.height is None else block.cap.height


def cutting_height(height: int, most: int, study: Study) -> int | None:
    """Return the height if a table stores more rows of a unit than it, up to `most`; None where nothing is cut.

    Where nothing is prepared nothing was cut before either.
    """
    return height if height < most or (most > 1 and study.engine.prepare == "never") else None


def most_stored(relation: Relation, schema: Schema) -> int:
    """Return how many rows of one unit the tables of a relation hold at most."""
    tables = [found.table for scan in scans_of(relation) if (found := schema.table(scan.table)) is not None]
    return max((stored_rows(table, schema.study) for table in tables if not table.public), default=1)


def nanoseconds_of(steps: Sequence[Step]) -> int:
    """Return W: all steps together."""
    return sum(step.nanoseconds for step in steps)


def _too_much_work(steps: Sequence[Step], study: Study, relation: Relation, blocks: int) -> NotPrivate:
    dearest = max(steps, key=lambda step: step.nanoseconds)
    unit, limit = study.unit_name, float(study.engine.unit_work * 1000)
    needed = f"{blocks * nanoseconds_of(steps) / 1_000_000:,.3g}"
    rule = f"the rows of one {unit} must cause at most {limit:g} ms of work; this question could make them cause {needed} ms."
    part = f"most of it by {dearest.what}, on up to {dearest.rows:,} rows"
    why = f"how long an answer takes would tell about one {unit}"
    hint = "join fewer tables, or on keys; compute less with each row; the owner can raise engine.unit_work"
    read = {scan.table for scan in scans_of(relation)}
    several = [table.name for table in study.tables if table.name in read and not table.public and not table.unique]
    if len(several) > 1:
        hint += f", and say unique = true of {' or '.join(several)} if nobody has two rows there"
    return NotPrivate(f"{rule}\n{part}: {why}.", hint=f"{hint}.", place=dearest.place or relation.place)


def work_of(block: BlockPlan, owners: Owners, cap: Cap, returned: int, place: Place | None = None) -> tuple[Step, ...]:
    """Return the most work of one unit's rows in a block whose base tables are cut at the owners' height, under this cap.

    returned  groups of one unit at most

    Claim   Over all operators of the engine, Σ rows of one unit · cost of a row is at most the sum of the steps; no operator
            gives more rows of one unit than the largest step says.
    Needs   Joins run in the order and on the sides in which they are lowered, and no side is skipped because another is
            empty (`engines/lower/relation.py`); tables as preparation leaves them: `stored_rows` of a unit, texts cut.
    Source  Every relation's R (`ownership.py`); texts by how often a row can be repeated.
    """
    if cap.by == "rank" and cap.rows < (owners.height or 0):
        owners = Owners(owners.schema, cap.rows)
    used = [*(key.expression for key in block.keys)]
    for tally in block.tallies:
        used += [one for one in (tally.argument, tally.filter) if one is not None]
    steps: list[Step] = []
    rows, held = _walk(block.relation, frozenset(index for one in used for index in refs_of(one)), owners, steps)
    for tally in block.tallies:
        grid = _GRID if tally.grid is not None else 0.0
        _note(steps, "computing what is summed or counted", place, rows, rows * (grid + _COMPUTE))
    distinct = list(dict.fromkeys(used))
    _note(steps, "computing keys and arguments", _first(distinct, place), rows, total_cost(distinct, rows, held))
    parts = 2 + sum(tally.kind in {"distinct", "cells"} for tally in block.tallies)
    if cap.by != "window" and _sorts_no_groups(cap) and cap.in_group is None and is_table(block.relation):
        steps = [replace(step, nanoseconds=parts * step.nanoseconds) for step in steps]  # read again for each
    text = sum(bytes_of(key.expression, rows, held) for key in block.keys)
    _walk_caps(block, cap, rows, text, place, steps)
    kept = min(rows, cap.rows)
    _note(steps, "grouping", place, kept, kept * _GROUP + _GROUPED_BYTE * text)
    each = {"units": _UNITS, "distinct": _VALUES, "cells": _CELLS}
    for tally in block.tallies:
        own = bytes_of(tally.argument, rows, held) if tally.kind == "distinct" else 0
        _note(steps, "tallying", place, kept, kept * each.get(tally.kind, _TALLY) + _SORTED_BYTE * own)
    _note(steps, "returning groups", place, min(kept, returned) * parts, returned * _RETURNED)
    return tuple(steps)


def _note(steps: list[Step], what: str, place: Place | None, rows: int, nanoseconds: float) -> None:
    steps.append(Step(what, rows, math.ceil(nanoseconds), place))


def _walk_caps(block: BlockPlan, cap: Cap, rows: int, text: int, place: Place | None, steps: list[Step]) -> None:
    """Note what choosing the rows that count takes. text: bytes of the keys of all rows together."""
    origins = _ORIGIN * max(len(list(scans_of(block.relation))) - 2, 0)
    if cap.by == "window":
        each = _CROWDED if is_table(block.relation) else _CAPPED + origins
        _note(steps, "choosing the rows that count", place, rows, rows * each + _MOVED_BYTE * text)
        rows = min(rows, cap.rows)
    if not _sorts_no_groups(cap):
        _note(steps, "choosing the groups that count", place, rows, rows * (_CHOSEN + origins) + _SORTED_BYTE * text)
    if cap.in_group is not None:
        _note(steps, "choosing the rows of a group", place, rows, rows * (_CAPPED + origins) + _GROUPED_BYTE * text)


def _sorts_no_groups(cap: Cap) -> bool:
    """Whether groups are not capped, or by a stored number that is compared where rows are read."""
    return cap.groups is None or cap.groups_by == "first"


# ---- relations, from their tables upwards --------------------------------------------------------------------------


_RowTexts: TypeAlias = tuple[int, tuple[int, ...]]
"""A unit's rows at one place of a plan: how many, and how many bytes of text they hold in each column together."""


def _walk(relation: Relation, wanted: frozenset[int], owners: Owners, steps: list[Step]) -> _RowTexts:
    """Note the steps of a relation of which these columns are used; return a unit's rows, of public ones a row's longest."""
    match relation:
        case Scan():
            return _scan(relation, wanted, owners, steps)
        case Filter():
            rows, held = _walk(relation.input, wanted | refs_of(relation.predicate), owners, steps)
            if owners.private(relation):
                spent = rows * _FILTER + cost_of(relation.predicate, rows, held)
                _note(steps, "a filter", _place(relation.predicate, relation.place), rows, spent)
            return rows, held
        case Project():
            return _project(relation, wanted, owners, steps)
        case Join():
            return _join(relation, wanted, owners, steps)
        case UnionAll():
            branches = [_walk(one, wanted, owners, steps) for one in relation.inputs]
            rows = sum(row for row, _ in branches)
            if owners.private(relation):
                _note(steps, "a union", relation.place, rows, rows * _UNION)
            return rows, tuple(sum(column) for column in zip(*(held for _, held in branches), strict=True))
        case UnitGroup():
            return _group(relation, owners, steps)
        case Window():
            return _window(relation, wanted, owners, steps)
        case Distinct():
            rows, held = _walk(relation.input, frozenset(range(len(relation.columns))), owners, steps)
            if owners.private(relation):
                _note(steps, "DISTINCT", relation.place, rows, rows * _DISTINCT + _GROUPED_BYTE * sum(held))
            return rows, held
        case _:
            assert_never(relation)


# A step is noted over rows of people; public tables alone are the same work whoever is in the data.


def _scan(scan: Scan, wanted: frozenset[int], owners: Owners, steps: list[Step]) -> _RowTexts:
    schema = owners.schema
    found = schema.table(scan.table)
    if found is None or found.table.public:
        longest = schema.public.longest
        return 1, tuple(longest(scan.table, column.name) if column.type is Type.STRING else 0 for column in scan.columns)
    stored = stored_rows(found.table, schema.study)
    rows = min(owners.height or 0, stored)
    read = [index for index in wanted if index < len(scan.columns)]
    held = tuple(_most_bytes(found.table, column, rows) for column in scan.columns)
    spent = rows * (_SCAN + _COLUMN * len(read)) + stored * _RANK + 0.5 * sum(held[index] for index in read)
    _note(steps, f"reading {scan.table}", scan.place, rows, spent)
    return rows, held


def _project(project: Project, wanted: frozenset[int], owners: Owners, steps: list[Step]) -> _RowTexts:
    kept = [place for place in range(len(project.columns)) if place in wanted]
    expressions = [project.expressions[place] for place in kept]
    used = frozenset(index for expression in expressions for index in refs_of(expression))
    rows, held = _walk(project.input, used, owners, steps)
    computed = [expression for expression in expressions if not isinstance(expression, Ref)]
    if owners.private(project):
        spent = rows * _COMPUTE * len(computed) + total_cost(computed, rows, held)
        _note(steps, "a computed column", _first(computed, project.place), rows, spent)
    return rows, tuple(bytes_of(expression, rows, held) for expression in project.expressions)


def _group(group: UnitGroup, owners: Owners, steps: list[Step]) -> _RowTexts:
    parts: list[Expression] = list(group.keys)
    for aggregate in group.aggregates:
        parts += [part for part in (aggregate.argument, aggregate.filter) if part is not None]
    rows, held = _walk(group.input, frozenset(index for part in parts for index in refs_of(part)), owners, steps)
    if owners.private(group):
        inside = sum(cost_of(part, rows, held) + _SORTED_BYTE * bytes_of(part, rows, held) for part in parts)
        dear = sum(AGGREGATES[aggregate.function].sorts for aggregate in group.aggregates)
        each = _GROUP + _AGGREGATE * len(group.aggregates) + _ORDERED_AGGREGATE * dear
        _note(steps, "GROUP BY inside a unit", group.place, rows, rows * each + inside)
    arguments = [*group.keys, *(aggregate.argument for aggregate in group.aggregates)]
    made = tuple(
        bytes_of(argument, rows, held) if out.type is Type.STRING else 0
        for argument, out in zip(arguments, group.columns, strict=True)
    )
    return min(owners.rows(group) or 0, rows), made


def _window(window: Window, wanted: frozenset[int], owners: Owners, steps: list[Step]) -> _RowTexts:
    parts: list[Expression] = []
    for call in window.calls:
        parts += [*call.partition, *(one for one, _, _ in call.order)]
        parts += [] if call.argument is None else [call.argument]
    width = len(window.input.columns)
    used = frozenset(index for index in wanted if index < width) | {index for part in parts for index in refs_of(part)}
    rows, held = _walk(window.input, used, owners, steps)
    if owners.private(window):
        carried = sum(each for index, each in enumerate(held) if index in wanted)
        for call in window.calls:
            own = [*call.partition, *(one for one, _, _ in call.order), *([] if call.argument is None else [call.argument])]
            computed = sum(cost_of(one, rows, held) + _SORTED_BYTE * bytes_of(one, rows, held) for one in own)
            each = _WHOLE if call.whole and not call.order else _SORTED
            spent = rows * each + computed + _MOVED_BYTE * carried
            _note(steps, f"{call.function.upper()} OVER …", call.place or window.place, rows, spent)
    longest = rows * TEXT_BYTES  # one text may stand beside every row
    return rows, held + tuple(longest if call.type is Type.STRING else 0 for call in window.calls)


def _join(join: Join, wanted: frozenset[int], owners: Owners, steps: list[Step]) -> _RowTexts:
    width = len(join.left.columns)
    used = wanted | ({index for conjunct in conjuncts(join.on) for index in refs_of(conjunct)})
    left_rows, left = _walk(join.left, frozenset(index for index in used if index < width), owners, steps)
    right_rows, right = _walk(join.right, frozenset(index - width for index in used if index >= width), owners, steps)
    private = owners.private(join.left), owners.private(join.right)
    if not any(private):
        return 1, left + right
    left_fan, right_fan = _fans(join, left_rows, right_rows, owners)
    own = (left_rows if private[0] else 0), (right_rows if private[1] else 0)
    pairs = min(own[0] * right_fan or own[1] * left_fan, own[1] * left_fan or own[0] * right_fan)
    rows = owners.rows(join) or 0
    every = list(conjuncts(join.on))
    residual = [one for one in every if not _is_hashed(one, width) and len({index < width for index in refs_of(one)}) > 1]
    if join.kind in {"semi", "anti"} and not residual:
        pairs = own[0]  # the first match decides
    repeated = tuple(held * max(right_fan if private[0] else pairs, 1) for held in left)
    repeated += tuple(held * max(left_fan if private[1] else pairs, 1) for held in right)
    alone = tuple(held if private[0] else 0 for held in left) + tuple(held if private[1] else 0 for held in right)
    spent = own[0] * _PROBE + own[1] * _BUILD + rows * _JOINED + pairs * _PAIR
    spent += total_cost([one for one in every if one not in residual], sum(own), alone)
    spent += total_cost(residual, pairs, repeated)
    what = f"{'an' if join.kind in {'inner', 'anti'} else 'a'} {join.kind} join"
    _note(steps, what, join.place, max(rows, *own), spent)
    return (left_rows, left) if join.kind in {"semi", "anti"} else (rows, repeated)


def _fans(join: Join, left: int, right: int, owners: Owners) -> tuple[int, int]:
    """How many rows of each side can match one row of the other, those of one unit where they have owners."""
    private = owners.private(join.left), owners.private(join.right)
    if all(private):
        found = owners.fans(join)
        return found[0] or 0, found[1] or 0
    matches = public_matches(join, join.right if private[0] else join.left, owners.schema) or 0
    return (left, matches) if private[0] else (matches, right)


def _most_bytes(table: Table, column: Out, rows: int) -> int:
    """Bytes of so many texts of one unit in a column: names of units are kept whole in every row, others are cut together."""
    if column.type is not Type.STRING:
        return 0
    declared = table.column(column.name)
    names = getattr(table.unit, "column", None) == column.name
    if declared is not None and declared.values is not None:
        longest = max((len(str(value).encode()) for value in declared.values), default=0)
    else:
        longest = NAME_BYTES if names else TEXT_BYTES
    return min(rows * longest, rows * NAME_BYTES if names else UNIT_TEXT_BYTES)


def _is_hashed(node: Node, width: int) -> bool:
    """Whether a condition is an equality of the two sides, by which a hash finds the matches."""
    if not (isinstance(node, Call) and node.function == "="):
        return False
    sides = [{index < width for index in refs_of(argument)} for argument in node.arguments]
    return all(len(side) == 1 for side in sides) and sides[0] != sides[1]


def is_table(relation: Relation) -> bool:
    """Whether a relation is one table's rows, filtered and computed with: at most one row for each of the table's."""
    match relation:
        case Scan():
            return True
        case Filter() | Project():
            return is_table(relation.input)
        case _:
            return False


def _place(node: Node, otherwise: Place | None) -> Place | None:
    return getattr(node, "place", None) or otherwise


def _first(nodes: Sequence[Node], otherwise: Place | None) -> Place | None:
    return next((found for node in nodes if (found := _place(node, None)) is not None), otherwise)
