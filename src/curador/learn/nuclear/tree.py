"""Frank–Wolfe on binary trees of gradients, one pass, with noise on the vertices.

Phase t = 1, …, T has 2^(t−1) leaves, one step each, below a root with b records; a left child has its parent's gradient, a
right child at depth j has b/2^j records of its own and adds their mean of ∇f(X_now) − ∇f(X_parent). The gradient of a leaf
is the sum on its way. Noise is on every sum of records, where it falls with the distance of the two X's: at most min(2 L₀,
L₁ |X_now − X_parent|_op).

Claim   A run costs one release of the plan's part. A record is in one vertex, and every vertex is on a grid of its own on
        which one record's limit is the same number of steps: so one record moves the sequence of all integers by one length,
        in one vertex.
Needs   The grid of a vertex is a function of what was released before (the X's); neighbours fill slots alike (`in_slots`).
Source  The trees are of [AFKT21]; noise on the leaves' minimisation, as there, costs √d in this geometry, not log d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import require
from curador.learn.nuclear.noise import ReleaseSequence
from curador.learn.nuclear.records import coefficient_bits, in_slots, require_room, whole_coefficients
from curador.learn.nuclear.task import FittedMatrix, History, linear_minimiser, operator_norm
from curador.learn.plan import PlannedRelease

if TYPE_CHECKING:
    from curador.learn.nuclear.records import Records
    from curador.learn.nuclear.task import Task
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats

_LEAST_BATCH = 4


@dataclass(frozen=True)
class TreeSchedule:
    """The schedule of a run; a function of public numbers. root: records of a root."""

    task: Task
    phases: int
    root: int
    limit: int

    parts = (PlannedRelease("vertices"),)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The records of every vertex that has some, in the order in which they are met."""
        out: list[int] = []
        for phase in range(1, self.phases + 1):
            out.append(self.root)
            out += [self.root >> depth for leaf in range(1, 1 << (phase - 1)) for depth in [phase - 1 - _zeros(leaf)]]
        return tuple(out)

    @property
    def bits(self) -> int:
        """Of a coefficient."""
        return coefficient_bits(self.task.count, self.limit)

    @property
    def length(self) -> int:
        """How far a neighbour moves the sequence, in grid steps, in l2."""
        return self.task.factor * (self.limit << self.bits)


def tree_schedule(task: Task, limit: int, strength: float, *, phases: int | None = None) -> TreeSchedule:
    """Return the schedule: 2^T about x^0.4, and batches that use up the records."""
    count = max(2, round(0.4 * math.log2(max(strength, 2.0)))) if phases is None else phases
    while count > 1 and _root(task.count, count) >> (count - 1) < _LEAST_BATCH:
        count -= 1
    root = _root(task.count, count)
    require(root >= 1, "the number of records", "at least 1 for a tree", task.count)
    return TreeSchedule(task, count, root, limit)


def run_tree(schedule: TreeSchedule, records: Records, releaser: Releaser) -> FittedMatrix:
    """Return the model after all phases."""
    task = schedule.task
    order, ends = in_slots(records, [*schedule.sizes, _spare(schedule)], task.adjacency)
    require_room(records, task.count)
    placed = records.take(order)
    step = task.loss.lipschitz / (schedule.limit << schedule.bits)  # of a root's sum
    noise = ReleaseSequence(releaser, "vertices", schedule.length, len(schedule.sizes) * task.shape[0] * task.shape[1], step)
    starts = [0, *ends.tolist()]
    slot, model = 0, np.zeros(task.shape)
    history = History((1 << schedule.phases) - 1)
    deviation = releaser.plan.deviation("vertices", float(schedule.length)) * records.step / (1 << schedule.bits)
    for phase in range(1, schedule.phases + 1):
        path: list[tuple[Floats, Floats]] = []  # of X and gradient, from the root down; left children are their parents
        for leaf in range(1 << (phase - 1)):
            mine = placed.take(slice(starts[slot], starts[slot + 1]))
            depth = phase - 1 - _zeros(leaf) if leaf else 0
            if leaf:
                parent_model, parent = path[depth - 1]
                gradient, bound = _difference(schedule, mine, model, parent_model, slot, noise)
                gradient = parent + gradient
            else:
                gradient, bound = _difference(schedule, mine, model, None, slot, noise)
            path[depth:] = [(model, gradient)] * (phase - depth)
            left, right = linear_minimiser(gradient, task.radius)
            share = 2.0 / ((1 << (phase - 1)) + leaf + 1)
            model = (1.0 - share) * model + (share * left)[:, None] * right
            history.note((1 << (phase - 1)) - 1 + leaf, gradient, model, deviation * bound / schedule.sizes[slot])
            slot += 1
    return FittedMatrix(model, history.arrays())


def _difference(
    schedule: TreeSchedule, records: Records, model: Floats, parent: Floats | None, slot: int, noise: ReleaseSequence
) -> tuple[Floats, float]:
    """The noisy mean over a vertex of gradients (a root), or of how they differ from those at the parent's X."""
    loss, radius = schedule.task.loss, schedule.task.radius
    change = loss.slopes(records.margins(model, radius), records.targets)
    bound = loss.slope
    if parent is not None:
        change = change - loss.slopes(records.margins(parent, radius), records.targets)
        reach = loss.bend * loss.left_norm * loss.right_norm * operator_norm(model - parent)
        bound = max(min(2 * loss.slope, reach), 1e-6 * loss.slope)
    coefficients = whole_coefficients(records, change, bound=bound, bits=schedule.bits)
    exact = records.sums(coefficients)
    return noise.noisy(exact).astype(np.float64) * (records.step * coefficients.step / schedule.sizes[slot]), bound


def _zeros(leaf: int) -> int:
    """How often 2 divides a leaf's number: so far below the leaf's depth begins its way that is not shared."""
    return (leaf & -leaf).bit_length() - 1


def _root(records: int, phases: int) -> int:
    """The records of a root such that all phases use what there is: b (T + T(T−1)/4)."""
    return int(records // (phases + phases * (phases - 1) / 4))


def _spare(schedule: TreeSchedule) -> int:
    """The records that no vertex takes."""
    return max(schedule.task.count - sum(schedule.sizes), 0)
