"""The judge: the same question on two neighbouring worlds, compared integer by integer before any noise."""

import itertools
import os

from replay_work import Eye, work_violations

from curador.engines.duckdb.engine import DuckDBEngine
from curador.engines.duckdb.versions import prepared_folder
from curador.errors import Refused
from curador.plan.build import build_plan
from curador.plan.price import moved_entries
from curador.privacy.adjacency import Adjacency
from curador.query.sql import parse
from curador.query.tree import Ref


def opened(world, folder, key=bytes(range(32))):
    """Write a world and open an eye on its engine, with one key for all worlds: neighbours are two histories of one study."""
    study = world.written(folder)
    prepared = prepared_folder(study)
    prepared.mkdir(mode=0o700)
    with open(os.open(prepared / "key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:  # noqa: PTH123
        file.write(key)
    engine = DuckDBEngine(study, 1)
    engine.prepare(1)
    return Eye(engine)


def planned(question, schema):
    """Return the plan, or None where the question is refused."""
    try:
        return build_plan(parse(question, schema), schema)
    except Refused:
        return None


def judged(question, one, other):
    """Return None for a refused question, else the violations, of sensitivities and of work."""
    plan, again = planned(question, one.engine.schema), planned(question, other.engine.schema)
    if plan is None or again is None:
        return None if plan is again else ["one world refuses what the other plans"]
    if plan != again:
        return ["the plan depends on the data"]
    found = compare(plan, tallied(one, plan), tallied(other, plan))
    return found or [*work_violations(plan, one, other), *one.long_texts]


def tallied(eye, plan):
    """Return the exact integers, or the name of the error."""
    try:
        return eye.tally(plan.blocks)
    except Exception as error:  # noqa: BLE001 -- success or failure is itself an output
        return type(error).__name__


def compare(plan, ours, theirs):
    """Return what one unit moves further than the plan declares."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return [f"a run failed: {ours if isinstance(ours, str) else theirs}"]
    found = []
    for block, one, other in zip(plan.blocks, ours, theirs, strict=True):
        found += _measurements(block, one, other)
        found += _unlisted(block, one)
        found += _selection(block, plan.adjacency, one, other)
    return found


def _measurements(block, one, other):
    for place, measurement in enumerate(block.measurements):
        if measurement.kind == "quantile":
            yield from _histogram(place, measurement, block, one, other)
            continue
        moved = _difference(_values(block, measurement, one), _values(block, measurement, other))
        length, squares = sum(map(abs, moved)), sum(step * step for step in moved)
        if length > measurement.l1 or squares > measurement.l2_squared:
            declared = f"declared {measurement.l1} and {measurement.l2_squared}"
            yield f"measurement {place} ({measurement.text}) moves by {length} (l1) and {squares} (l2²); {declared}"


def _values(block, measurement, tallied):
    """The measured integer of every group that can be released."""
    groups = list(zip(*tallied.keys, strict=True)) if block.keys else [()]
    out = {}
    for place, group in enumerate(groups):
        if _is_listed(block, group):
            assert group not in out, "a group came twice"
            out[group] = sum(
                coefficient * int(tallied.tallies[index][place]) for index, coefficient in measurement.combination
            )
    return out


def _is_listed(block, group):
    """Whether a group can be released."""
    return all(key.values is None or _known(value, key.values) for key, value in zip(block.keys, group, strict=True)) and all(
        tuple(group[place] for place in one.places) in one.rows for one in block.joint
    )


def _unlisted(block, one):
    """Groups of public rows that the plan does not list: people in no group. Their own columns may hold anything."""
    columns = [block.relation.columns[key.expression.index] for key in block.keys if isinstance(key.expression, Ref)]
    public = len(columns) == len(block.keys) and all(
        column.source is not None and column.source[0] == "regions" for column in columns
    )
    if public and not all(_is_listed(block, group) for group in zip(*one.keys, strict=True)):
        yield "a group of public rows is not listed"


def _known(value, values):
    return any((value is None and one is None) or (one is not None and value == one) for one in values)


def _difference(one, other):
    return [one.get(group, 0) - other.get(group, 0) for group in {*one, *other}]


def _histogram(place, measurement, block, one, other):
    index = measurement.combination[0][0]
    held = [_cells(block, tallied, index) for tallied in (one, other)]
    moved = _difference(*held)
    plus, minus = sum(step for step in moved if step > 0), -sum(step for step in moved if step < 0)
    beyond = {cell for *_, cell in itertools.chain(*held) if not 0 <= cell <= measurement.grid.steps}
    if max(plus, minus) > block.contribution.rows or beyond:
        declared = f"declared {block.contribution.rows}"
        yield f"measurement {place} ({measurement.text}): the histogram moves by {plus} and {minus} rows; {declared}"


def _cells(block, tallied, index):
    groups = list(zip(*tallied.keys, strict=True)) if block.keys else [()]
    cells = tallied.cells[index]
    return {
        (*groups[int(group)], int(cell)): int(count)
        for group, cell, count in zip(cells.groups, cells.cells, cells.counts, strict=True)
    }


def _selection(block, adjacency, one, other):
    if not block.private_keys:
        return
    held = [
        dict(zip(zip(*keys, strict=True), map(int, units), strict=True)) for keys, units in (one.selection, other.selection)
    ]
    moved = [step for step in _difference(*held) if step]
    most = block.contribution.groups * (2 if adjacency is Adjacency.REPLACE_ONE else 1)
    if len(moved) > most or any(abs(step) > 1 for step in moved):
        yield f"key selection: {len(moved)} keys change (declared {most}), by {sorted(set(moved))}"
    if moved_entries(block, adjacency) < most:
        yield "key selection touches more keys than the loss is recorded for"
