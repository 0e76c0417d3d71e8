"""Which rows count: the caps of a plan, executed in their fixed order on the rows of the relation that is aggregated.

    joins and filters → grid → row cap → group cap → cap inside a group

Claim   A unit keeps at most `cap.rows` rows, in at most `cap.groups` groups, `cap.in_group` in one; which ones depends on the
        unit's own rows and `__h` alone; the rows kept under a cap of m are among those kept under m + 1.
Needs   A relation as in `relation.py`; by = "rank": exactly one private table; by = "none": the plan's proof of `rows`.
Source  ROW_NUMBER and DENSE_RANK over a total order inside the unit. Where the order has several columns it is led by a hash
        with `__h`, or the first rows of one side of a join would always be kept; one column is `__r`, which is random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.engines.lower.sql import commas, rows_of, select
from curador.errors import NotPrivate
from curador.plan.ownership import scans_of
from curador.plan.work import is_table
from curador.query.tree import Scan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.engines.lower.dialect import Dialect
    from curador.engines.lower.relation import LoweredRelation
    from curador.plan.model import Cap
    from curador.query.tree import Relation
    from curador.study.model import Schema


NOBODY = -1
"""The number of a unit that nobody is: units are numbered from 0."""

CROWDED_FROM = 8
"""Row caps from here on look for the units that exceed them first: few do after a filter, and others need no sorting."""


def rank_of(cap: Cap, relation: Relation, schema: Schema) -> int | None:
    """Return the rank that base tables are cut at: the cap where it is a rank, else the height; None where nothing is cut."""
    if cap.by != "rank":
        return cap.height
    private = [scan for scan in scans_of(relation) if not _public(scan, schema)]
    if len(private) != 1:
        raise NotPrivate("a prepared rank must be of one table; this question reads several, so its cap must be a window.")
    return cap.rows if cap.height is None else min(cap.rows, cap.height)


def apply_caps(
    rows: str,
    cap: Cap,
    relation: Relation,
    shape: LoweredRelation,
    keys: Sequence[str],
    dialect: Dialect,
    *,
    numbered: bool = True,
) -> tuple[tuple[str, str], ...]:
    """Return the rows that count, of a SELECT whose columns include `__u`, `__h`, the orders and these keys.

    They are the last of the parts of a WITH clause, named `kept`.

    numbered  units are numbers from 0, as preparation makes them, so that nobody can be named
    """
    parts = [("owned", rows)]
    order = _order(shape, dialect)
    if cap.by == "window":
        sparse = cap.rows >= CROWDED_FROM and is_table(relation)
        parts += _fewer(cap.rows, order, dialect, numbered=numbered) if sparse else _first(cap.rows, order)
    if cap.groups is not None and keys and cap.groups < cap.rows:
        chosen = [dialect.hash(["__h", *keys]), *keys]
        number = f"DENSE_RANK() OVER (PARTITION BY __u ORDER BY {commas(chosen)})"
        parts.append(("grouped", _keep_first(parts[-1][0], number, cap.groups)))
    if cap.in_group is not None and cap.in_group < cap.rows:
        partition = commas(dict.fromkeys(["__u", *keys]))
        number = f"ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {commas(order)})"
        parts.append(("thinned", _keep_first(parts[-1][0], number, cap.in_group)))
    return (*parts[:-1], ("kept", parts[-1][1]))


def _order(shape: LoweredRelation, dialect: Dialect) -> list[str]:
    """A total order inside the unit, of two columns at least: an engine may turn one into an aggregate that cannot spill."""
    names = shape.order_names
    if len(names) > 1:
        return [dialect.hash(["__h", *names]), *names]
    return [*names, "__u"]


def _keep_first(source: str, number: str, most: int) -> str:
    numbered = select(["*", f"{number} AS __n_{source}"], source)
    return select(["*"], rows_of(numbered), when=[f"__n_{source} BETWEEN 1 AND {most:d}"])


def _first(most: int, order: list[str]) -> list[tuple[str, str]]:
    return [("capped", _keep_first("owned", f"ROW_NUMBER() OVER (PARTITION BY __u ORDER BY {commas(order)})", most))]


def _fewer(most: int, order: list[str], dialect: Dialect, *, numbered: bool) -> list[tuple[str, str]]:
    """The same rows as `_first`: only units that have too many rows are sorted.

    Nobody is among the crowded, or one crowded unit would decide whether the rows are read again.
    """
    crowded = select(["__u"], "owned", by=["__u"]) + f" HAVING COUNT(*) > {most:d}"
    crowded += f" UNION ALL SELECT {NOBODY} AS __u" if numbered else ""
    every, same = select(["*"], "owned"), "l.__u = r.__u"
    few = dialect.semi_join(every, select(["__u"], "crowded"), same, anti=True)
    many = dialect.semi_join(every, select(["__u"], "crowded"), same, anti=False)
    number = f"ROW_NUMBER() OVER (PARTITION BY __u ORDER BY {commas(order)}) AS __n_owned"
    sorted_ = select(["*", number], rows_of(select(["l.*"], many)))
    first = select(["*"], rows_of(sorted_), when=[f"__n_owned BETWEEN 1 AND {most:d}"])
    return [("crowded", crowded), ("capped", f"{select(['l.*', '0 AS __n_owned'], few)} UNION ALL {first}")]


def _public(scan: Scan, schema: Schema) -> bool:
    found = schema.table(scan.table)
    return found is None or found.table.public
