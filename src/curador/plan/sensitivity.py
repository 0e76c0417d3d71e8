"""How far one unit moves a measurement, from what it contributes at most. The only place where sensitivities come from.

A unit's rows in the groups are counts c with Σ c ≤ rows, c ≤ in_group, at most `groups` of them positive. With integers a ≤ v
≤ b on each row, its contribution to a group of c rows lies between c·min(a, 0) and c·max(b, 0).

                  add or remove                replace, no keys          replace, keys
l1                M · l1(c)                    W · rows                  2M · l1(c)
l2²               M² · l2²(c)                  (W · rows)²               2WM · l2²(c)

M = max(|a|, |b|), W = max(b, 0) − min(a, 0), l1(c) = min(rows, groups · in_group), and l2²(c) = q in_group² + s²,
q = min(⌊rows/in_group⌋, groups), s = rows mod in_group if ⌊rows/in_group⌋ < groups, else 0.

A unit's own aggregate, clamped in each group. An inner GROUP BY the unit and the key leaves one row of a unit in a group,
with an exact aggregate of its rows there, and the clamp stands after it: in_group = 1, so c is 0 or 1, and l1(c) = l2²(c) =
min(rows, groups). The sum of the clamped aggregates moves by at most M in each of at most `groups` groups: by groups · M in
l1, by √groups · M in l2, however many rows the unit has below. Needs: the caps on rows and groups are executed, and the clamp
is that of the aggregate, not of the rows below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from curador.plan.model import Contribution


def count_norms(contribution: Contribution) -> tuple[int, int]:
    """Return (max ‖c‖₁, max ‖c‖₂²) over the counts of one unit's rows.

    Claim   A sum of squares is convex, so its maximum over the counts is at a vertex: as many groups filled to `in_group`
            as rows and groups allow, the rest in one more.
    """
    rows, groups, most = contribution.rows, contribution.groups, contribution.in_group
    full = min(rows // most, groups)
    rest = rows % most if rows // most < groups else 0
    return min(rows, groups * most), full * most * most + rest * rest


def moves(contribution: Contribution, lowest: int, highest: int, adjacency: Adjacency) -> tuple[int, int]:
    """Return (l1, l2²) of a sum, over all groups, of integers between lowest and highest on each kept row.

    Claim   l1 ≥ ‖x − y‖₁ and l2² ≥ ‖x − y‖₂² for all contributions x, y that neighbours can have (y = 0 where a unit is
            added or removed). Replaced, in groups where x and y have opposite signs, with c and d rows,
            (ca + db)² = c²a² + d²b² + 2abcd ≤ (a + b)(ac² + bd²) ≤ WM(c² + d²); where not, (x − y)² ≤ x² + y² ≤
            M²(c² + d²) ≤ WM(c² + d²). Summed: ≤ 2WM max ‖c‖₂².
    Needs   The caps of `contribution` are executed, and every row's integer is clamped to [lowest, highest].
    Rounds  Exact integers.
    """
    one, two = count_norms(contribution)
    size = max(abs(lowest), abs(highest))
    if adjacency is Adjacency.ADD_OR_REMOVE_ONE:
        return size * one, size * size * two
    width = max(highest, 0) - min(lowest, 0)
    if not contribution.keyed:
        return width * contribution.rows, (width * contribution.rows) ** 2
    return 2 * size * one, 2 * width * size * two


def presence_moves(contribution: Contribution, most: int, adjacency: Adjacency) -> tuple[int, int]:
    """Return (l1, l2²) of counts of different things, of which a unit has at most `most` in one group.

    For units: most = 1, it is there or not. For distinct values: as many as it keeps.

    Claim   A count of different things changes by at most the number of things that only this unit has, so the unit acts
            like one with at most `most` rows in a group, no more than it has rows. Replaced, as both have one sign:
            (x − y)² ≤ x² + y².
    """
    from dataclasses import replace

    inside = min(most, contribution.in_group, contribution.rows)
    one, two = count_norms(replace(contribution, in_group=inside))
    if adjacency is Adjacency.ADD_OR_REMOVE_ONE:
        return one, two
    return (2 * one, 2 * two) if contribution.keyed else (one, two)
