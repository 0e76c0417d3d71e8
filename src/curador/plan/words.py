"""A plan and its expressions in words that the analyst would recognise: for messages and `explain`.

`explain` tells a plan to a person: which rows count, what is measured with how much noise, and why.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.plan.above import steps_text
from curador.plan.model import Plan, measurements_of
from curador.plan.ownership import Owners, scans_of
from curador.plan.work import nanoseconds_of, rows_read
from curador.query.functions import FUNCTIONS
from curador.query.tree import (
    Aggregate,
    Call,
    Distinct,
    Estimated,
    Filter,
    Join,
    Key,
    Literal,
    Project,
    Ref,
    Scan,
    UnionAll,
    UnitGroup,
    Window,
)

if TYPE_CHECKING:
    from curador.plan.model import BlockPlan, KeyPlan, Measurement, Range
    from curador.plan.price import KeyNoise, Noise, Priced
    from curador.query.tree import Block, Node, Relation
    from curador.study.model import Schema


# ---- words -----------------------------------------------------------------------------------------------------------------


def expression_text(node: Node, relation: Relation) -> str:
    """Return an expression over a relation's rows as text."""
    match node:
        case Literal():
            return _literal_text(node)
        case Ref():
            return relation.columns[node.index].name
        case Key():
            return f"key {node.index + 1}"
        case Estimated():
            return f"estimate {node.index + 1}"
        case Aggregate():
            inner = "*" if node.argument is None else expression_text(node.argument, relation)
            return f"{node.function}({inner})"
        case Call():
            held = [expression_text(argument, relation) for argument in node.arguments]
            chain, name = f" {node.function.upper()} ".join(held), node.function
            listed = {"all": ", ".join(held), "rest": ", ".join(held[1:]), "chain": chain}
            return FUNCTIONS[name].words.format(*held, name=name, type=node.type, **listed)


def _literal_text(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, Fraction):
        return f"{float(value):g}"
    return f"'{value}'" if isinstance(value, str) else str(value)


def key_names(block: Block) -> list[str]:
    """Return what the keys of a block are called: their column of the answer, or their place."""
    names = [f"key {place + 1}" for place in range(len(block.keys))]
    for item in block.items:
        if isinstance(item.expression, Key):
            names[item.expression.index] = item.name
    return names


def range_text(known: Range) -> str:
    """Return a range as a person reads it."""
    lower = "-∞" if known.lower is None else f"{float(known.lower):g}"
    upper = "∞" if known.upper is None else f"{float(known.upper):g}"
    return f"[{lower}, {upper}]"


# ---- explain ---------------------------------------------------------------------------------------------------------------


_MOST_SHOWN = 6


def explain(planned: Plan | Priced, schema: Schema) -> str:
    """Return the plan as text: a function of the question and the study, as the plan itself is."""
    plan = planned if isinstance(planned, Plan) else planned.plan
    unit = schema.study.unit_name
    lines: list[str] = []
    for number, block in enumerate(plan.blocks):
        if len(plan.blocks) > 1:
            lines.append(f"part {number + 1} of {len(plan.blocks)}")
        noises = None if isinstance(planned, Plan) else planned.noises[number]
        selection = None if isinstance(planned, Plan) else planned.selections[number]
        lines += _rows(block, schema, unit)
        lines += [_key(key) for key in block.keys]
        if block.private_keys:
            lines.append(_selection(block, selection, unit))
        lines += [
            _measurement(measurement, None if noises is None else noises[place])
            for place, measurement in enumerate(block.measurements)
        ]
        lines += [f"range      {note}; clamped to it" for note in block.notes]
        if block.having is not None:
            lines.append("having     on released values")
    if plan.order or plan.limit is not None:
        lines.append("order      on released values" + ("" if plan.limit is None else f", the first {plan.limit}"))
    if plan.above is not None:
        lines.append(f"then       over released rows: {steps_text(plan.above)}")
    lines.append(f"neighbours {str(plan.adjacency).replace('_', ' ')} {unit}, with all its rows in all tables")
    return "\n".join(lines)


def _rows(block: BlockPlan, schema: Schema, unit: str) -> list[str]:
    read = ", ".join(dict.fromkeys(_table(scan, schema) for scan in scans_of(block.relation)))
    reach = Owners(schema).rows(block.relation)
    most = f"at most {block.cap.rows} rows of one {unit}"
    how = {
        "rank": f"{most}: the prepared random rank (no filter and no join before it)",
        "window": f"{most}, chosen at random from the {unit}'s own rows after joins and filters",
        "none": f"{most}: proved, nothing to cut" if reach else most,
    }[block.cap.by]
    if (most := rows_read(block, schema)) is not None:
        read += f"; at most {most:,} rows per {unit} of a table, picked at random once"
    lines = [f"reads      {read}", *(_step(step, schema) for step in _steps(block.relation)), f"rows       {how}"]
    if block.cap.groups is not None:
        lines.append(f"groups     at most {block.cap.groups} groups of one {unit}")
    if block.cap.in_group is not None:
        lines.append(f"in a group at most {block.cap.in_group} rows of one {unit}")
    if block.work:
        cost = f"{nanoseconds_of(block.work) / 1_000_000:,.2g} ms"
        lines.append(f"work       the rows of one {unit} cause at most about {cost}, so that time does not tell about one")
    return lines


def _table(scan: Scan, schema: Schema) -> str:
    found = schema.table(scan.table)
    return f"{scan.table} (public)" if found is not None and found.table.public else scan.table


def _steps(relation: Relation) -> list[Relation]:
    match relation:
        case Scan():
            return []
        case Join():
            return [*_steps(relation.left), *_steps(relation.right), relation]
        case UnionAll():
            return [relation]
        case _:
            return [*_steps(relation.input), relation]


def _step(relation: Relation, schema: Schema) -> str:
    match relation:
        case Filter():
            return f"where      {expression_text(relation.predicate, relation.input)}"
        case Join():
            owners = Owners(schema)
            both = owners.private(relation.left) and owners.private(relation.right)
            added = ", and of one unit" if both else ""
            nulls = "; NULL never matches" if relation.kind in {"semi", "anti"} else ""
            return f"join       {relation.kind}{added}{nulls}"
        case UnionAll():
            return f"union      of {len(relation.inputs)} relations, rows of one unit added up"
        case UnitGroup():
            return "by unit    exact aggregates inside each unit, never shown"
        case Window():
            return "window     inside each unit, order completed by the unit's own rows"
        case Distinct():
            return "distinct   inside each unit"
        case Project():
            return f"computes   {', '.join(column.name for column in relation.columns)}"
        case Scan():
            return f"reads      {relation.table}"


def _key(key: KeyPlan) -> str:
    if key.values is None:
        return f"key        {key.name}: private"
    shown = ", ".join("NULL" if value is None else str(value) for value in key.values[:_MOST_SHOWN])
    more = "" if len(key.values) <= _MOST_SHOWN else f", … ({len(key.values):,} in all)"
    return f"key        {key.name}: {shown}{more} ({key.why})"


def _selection(block: BlockPlan, selection: KeyNoise | None, unit: str) -> str:
    touched = f"one {unit} is in at most {block.contribution.groups} of them"
    if selection is None:
        return f"selection  of keys by a noisy number of {unit}s; {touched}"
    spread = float(selection.sigma if hasattr(selection, "sigma") else selection.scale)  # type: ignore[union-attr]
    return (
        f"selection  keys with at least {_threshold(selection)} {unit}s, noise {spread:.3g} added before comparing; {touched}"
    )


def _threshold(selection: KeyNoise) -> str:
    """Rounds: up."""
    return f"{math.ceil(float(selection.threshold) * 10) / 10:,}"


def selection_note(selection: KeyNoise, unit: str, *, empty: bool) -> str:
    """Return why groups may be missing, or that none is there: of others than those that are shown nothing is said."""
    reached = f"noisy number of {unit}s"
    if empty:
        return f"no group is shown: none had a {reached} of {_threshold(selection)} or more"
    return f"groups are shown only if their {reached} reached {_threshold(selection)}"


def _measurement(one: Measurement, noise: Noise | None) -> str:
    if one.kind == "quantile":
        weight = f"a unit weighs at most {one.unit_weight} rows"
        return f"measures   {one.text}, {weight}; drawn by the exponential mechanism, its error bar by tests"
    step = 1.0 if one.grid is None else float(one.grid.step)
    moved = f"one unit moves it by at most {_moved_words(one, noise, step)}"
    match noise:
        case DiscreteGaussian():
            return f"measures   {one.text}; {moved}; Gaussian noise of {float(noise.sigma) * step:,.4g}"
        case DiscreteLaplace():
            return f"measures   {one.text}; {moved}; Laplace noise of scale {float(noise.scale) * step:,.4g}"
        case _:
            return f"measures   {one.text}; {moved}"


def _moved_words(one: Measurement, noise: Noise | None, step: float) -> str:
    first, second = f"{one.l1 * step:,.6g} (l1)", f"{math.sqrt(one.l2_squared) * step:,.6g} (l2)"
    if isinstance(noise, DiscreteLaplace):
        return first
    return second if isinstance(noise, DiscreteGaussian) else f"{first} and {second}"


def distinct_caps(block: BlockPlan) -> dict[int, list[str]]:
    """Return by each cap on a unit's different values which columns it cuts; not where its rows are no more than that."""
    found: dict[int, list[str]] = {}
    for item in block.items:
        for index in sorted(measurements_of(block, item.expression)):
            for tally, _ in block.measurements[index].combination:
                most = block.tallies[tally].most
                if 0 < most < block.contribution.rows and item.name not in found.get(most, []):
                    found.setdefault(most, []).append(item.name)
    return found
