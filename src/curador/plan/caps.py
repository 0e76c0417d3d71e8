"""How one unit's rows are bounded, and what it then contributes at most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from curador.errors import InvalidParameter, NotPrivate
from curador.plan.model import Cap, Contribution
from curador.plan.ownership import ownership_of, scans_of
from curador.query.tree import Distinct, Project, Scan, Window
from curador.study.model import Caps

if TYPE_CHECKING:
    from curador.query.tree import Relation
    from curador.study.model import Schema


@dataclass(frozen=True, slots=True)
class RequestedCaps:
    """What an analyst wants of the caps: other numbers, or the prepared rank under a filter (`prepared`)."""

    rows: int | None = None
    groups: int | None = None
    rows_per_group: int | None = None
    prepared: bool = False


AS_DECLARED = RequestedCaps()
"""The owner's own caps."""


def caps_of(relation: Relation, schema: Schema, asked: RequestedCaps) -> Caps:
    """Return the caps of a question: the largest of its private tables', changed as the analyst may.

    An analyst may lower a cap, or raise it up to the owner's caps_max.
    """
    tables = [found.table for scan in scans_of(relation) if (found := schema.table(scan.table)) is not None]
    private = [table for table in tables if not table.public]
    if len(private) == 1 and asked == AS_DECLARED:
        return private[0].caps
    rows = max(table.caps.rows for table in private)
    own = Caps(
        rows=rows,
        groups=max(table.caps.most_groups for table in private),
        rows_per_group=max(table.caps.most_in_group for table in private),
    )
    ceilings = [table.caps_max or table.caps for table in private]
    wanted = {
        "rows": (asked.rows, max(ceiling.rows for ceiling in ceilings)),
        "groups": (
            asked.groups,
            max(max(ceiling.most_groups, ceiling.rows) if ceiling.groups is None else ceiling.groups for ceiling in ceilings),
        ),
        "rows_per_group": (asked.rows_per_group, max(ceiling.most_in_group for ceiling in ceilings)),
    }
    for name, (value, most) in wanted.items():
        if value is not None:
            if not 1 <= value <= most:
                raise InvalidParameter.must_be(f"caps.{name}", f"from 1 to {most}, what the owner allows", value)
            own = replace(own, **{name: value})
    if asked.rows is not None and asked.rows_per_group is None:
        own = replace(own, rows_per_group=min(own.most_in_group, asked.rows))
    return own


def bound_contribution(
    relation: Relation,
    schema: Schema,
    caps: Caps,
    asked: RequestedCaps,
    *,
    keyed: bool,
    private_keys: bool,
    known_groups: int | None,
    counts_units: bool,
    height: int | None = None,
) -> tuple[Cap, Contribution]:
    """Return which caps are executed, and what they prove.

    known_groups  how many combinations of keys there can be; None: nobody knows
    counts_units  whether units, or different values, are counted by group: then a cap on groups is worth its time
    height        rows of a unit that private tables give at most

    Claim   After the cap a unit has at most contribution.rows rows, in at most contribution.groups groups, at most
            contribution.in_group of them in one group.
    Needs   As `owned`; the caps are executed in the order rows, groups, rows in a group, on the filtered relation.
    """
    reach = ownership_of(relation, schema, cap=height)
    if not reach.private:
        raise NotPrivate(
            "a question must be about a private table; this one reads public tables only.",
            hint="public tables are no secret: read them directly.",
        )
    cap = replace(_row_cap(relation, schema, caps.rows, asked, reach.rows), height=height)
    if not keyed:
        return cap, Contribution(cap.rows, 1, cap.rows, keyed=False)
    in_group = min(caps.most_in_group, cap.rows)
    possible = cap.rows if known_groups is None else min(cap.rows, max(known_groups, 1))
    groups = min(caps.most_groups, possible)
    worth = private_keys or counts_units or in_group < cap.rows
    cap = replace(
        cap,
        groups=groups if worth and groups < possible else None,
        in_group=in_group if in_group < cap.rows else None,
    )
    return cap, Contribution(cap.rows, groups if cap.groups is not None else possible, in_group, keyed=True)


def _row_cap(relation: Relation, schema: Schema, rows: int, asked: RequestedCaps, reach: int | None) -> Cap:
    if reach is not None and reach <= rows:
        return Cap(max(reach, 1), "none")
    if _is_unfiltered(relation):
        return Cap(rows, "rank")
    ranked = ownership_of(relation, schema, cap=rows).rows
    if asked.prepared and ranked is not None and ranked <= rows and sum(1 for _ in scans_of(relation)) == 1:
        return Cap(rows, "rank")
    return Cap(rows, "window")


def _is_unfiltered(relation: Relation) -> bool:
    """Whether every row of the one base table counts, so that the prepared rank is the cap."""
    match relation:
        case Scan():
            return True
        case Project():
            return _is_unfiltered(relation.input)
        case Window() | Distinct():
            return False
        case _:
            return False
