"""Stochastic Frank–Wolfe, one pass, with the noise of a whole run correlated [FM22, Alg. 2, with the noise of ladder.py].

    D_0 = mean gradient of half the records at X_0 = 0;   then, record by record (or batch by batch),
    D_t = (1−η) (D_(t−1) + ∇f(X_t) − ∇f(X_(t−1))) + η ∇f(X_t) = (1−η) D_(t−1) + g_t,   g_t = ∇f(X_t) − (1−η) ∇f(X_(t−1)),
    X_(t+1) = (1−η) X_t + η · argmin_V ⟨D̃_t, V⟩

A record is in one g_t only: |g_t| ≤ η L₀ + (1−η) min(2 L₀, 2 η R L₁) for a record of the second half (its coefficient is
clipped to that), and L₀/h in the mean over the h records of D_0. So the whole run is one release C g + Z of ladder.py, of
which all X_t are made.

Claim   A run costs one release of the plan's part, of Gaussian noise with the length of `Stochastic.length`.
Needs   g_t on a grid of whole numbers, exactly: coefficients are whole numbers of one record and of public X's (records.py).
        A neighbour puts its records into the same slots (`in_slots`; of a stream: their places).
Proof   Given what was released before t, X_t and X_(t−1) are fixed, so neighbours whose records differ in slot s have the
        same g_t for t ≠ s; ladder.py bounds what they release at each t ≥ s by numbers that depend on t − s only, with the
        sum of squares said there; noise.py composes them. The inverse map is applied to what was released.
        What is exact: the integers of C g, the noise, their sum. What is floating point: everything made of that sum.

Why no noise is drawn ahead and added to D_t: D_t + (C Z)_t, both rounded, is no function of C g + Z, and two neighbours
could reach different floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import require
from curador.learn.nuclear.ball import linear_minimiser, linear_minimiser_near
from curador.learn.nuclear.ladder import Ladder, Sums, Undone, ladder_for
from curador.learn.nuclear.noise import Sequence
from curador.learn.nuclear.records import coefficient_bits, require_room, whole_coefficients
from curador.learn.nuclear.slots import in_slots
from curador.learn.nuclear.task import Fitted, History
from curador.learn.plan import Part

if TYPE_CHECKING:
    from curador.learn.nuclear.records import Records
    from curador.learn.nuclear.task import Task
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers

_EXACT_EVERY = 16
_ROUNDS = 3
_SMALL = 6


@dataclass(frozen=True)
class Stochastic:
    """The schedule of one pass; a function of public numbers.

    head    records of D_0
    batch   records of each later step
    steps   after the first
    limit   the largest |a| |b| in grid steps
    """

    task: Task
    head: int
    batch: int
    steps: int
    ladder: Ladder
    limit: int

    parts = (Part("gradients"),)

    @property
    def decay(self) -> float:
        """η."""
        return self.ladder.decay

    @property
    def bound(self) -> float:
        """The largest coefficient of a record in any g: one grid for all of them."""
        loss = self.task.loss
        moved = 2 * self.decay * self.task.radius * loss.bend * loss.left_norm * loss.right_norm
        fresh = self.decay * loss.slope + (1 - self.decay) * min(2 * loss.slope, moved)
        return max(fresh / self.batch, loss.slope / self.head)

    @cached_property
    def bits(self) -> int:
        """Of a coefficient: 2⁴² grid steps a record, so that what shifts round is little against it."""
        return coefficient_bits(self.task.count, self.limit, most=42 - math.ceil(math.log2(self.limit)))

    @property
    def unit(self) -> float:
        """What a grid step of g stands for, but for the last digits. To display."""
        loss = self.task.loss
        return loss.left_norm * loss.right_norm * self.bound / (self.limit << self.bits)

    @cached_property
    def length(self) -> int:
        """How far a neighbour moves the whole sequence, in grid steps, in l2."""
        numbers = self.task.shape[0] * self.task.shape[1]
        return self.ladder.length(self.task.factor * (self.limit << self.bits), self.steps + 1, numbers)


def stochastic_schedule(task: Task, limit: int, *, batch: int = 1, correlated: bool = True) -> Stochastic:
    """Return the schedule: half of the records first, then batches of the others, η = log 2m/2m for m steps (log n/n)."""
    require(task.count >= 4 * batch, "the number of records", f"at least {4 * batch} for one pass", task.count)
    steps = task.count // (2 * batch)
    decay = min(0.5, math.log(2 * steps) / (2 * steps))
    return Stochastic(task, task.count - steps * batch, batch, steps, ladder_for(decay, root=correlated), limit)


class Pass:
    """A run, step by step: the head, then batches. What is private stays in `_sums`."""

    def __init__(self, schedule: Stochastic, releaser: Releaser) -> None:
        shape = schedule.task.shape
        self.schedule = schedule
        self.model = np.zeros(shape)
        self.before = np.zeros(shape)
        self.step = 0
        self.history = History(schedule.steps + 1)
        self._sums = Sums(schedule.ladder, shape)
        self._undone = Undone(schedule.ladder, shape)
        self._noise = Sequence(
            releaser, "gradients", schedule.length, (schedule.steps + 1) * shape[0] * shape[1], schedule.unit
        )
        self._right = np.ones(shape[1]) / math.sqrt(shape[1])
        floor = releaser.plan.deviation("gradients", float(schedule.length))
        self._floor = floor * schedule.ladder.noise_norm(schedule.steps + 1)

    def head(self, records: Records) -> Integers:
        """Return what some of the first half's records add to g_0."""
        schedule = self.schedule
        slopes = self._slopes(records, self.before * 0.0) / schedule.head
        return records.sums(whole_coefficients(records, slopes, bound=schedule.bound, bits=schedule.bits))

    def batch(self, records: Records) -> Integers:
        """Return g_t of a batch at the present step."""
        schedule = self.schedule
        fresh, old = self._slopes(records, self.model), self._slopes(records, self.before)
        change = (fresh - (1.0 - schedule.decay) * old) / schedule.batch
        return records.sums(whole_coefficients(records, change, bound=schedule.bound, bits=schedule.bits))

    def advance(self, matrix: Integers, grid: float) -> None:
        """Release after g_t, and step. `grid`: what a grid step of g stands for."""
        schedule, radius = self.schedule, self.schedule.task.radius
        exact = self._sums.add(matrix)
        released = self._noise.noisy(exact).astype(np.float64) * grid
        gradient = self._undone.add(released)
        if min(exact.shape) <= _SMALL or self.step % _EXACT_EVERY == 0:
            left, right = linear_minimiser(gradient, radius)
        else:
            left, right = linear_minimiser_near(gradient, radius, self._right, _ROUNDS)
        self._right = right
        self.before = self.model
        self.model = (1.0 - schedule.decay) * self.model + (schedule.decay * left)[:, None] * right
        self.history.note(self.step, gradient, self.model, self._floor * grid)
        self.step += 1

    def grid(self, records: Records) -> float:
        """Return what a grid step of g stands for."""
        empty = records.take(slice(0, 0))
        return records.step * whole_coefficients(empty, np.zeros(0), bound=self.schedule.bound, bits=self.schedule.bits).step

    def _slopes(self, records: Records, model: Floats) -> Floats:
        return self.schedule.task.loss.slopes(records.margins(model, self.schedule.task.radius), records.targets)


def run_stochastic(schedule: Stochastic, records: Records, releaser: Releaser) -> Fitted:
    """Return the model after one pass over all records."""
    sizes = [schedule.head, *[schedule.batch] * schedule.steps]
    order, ends = in_slots(records, sizes, schedule.task.adjacency)
    require_room(records, schedule.task.count)
    sorted_records = records.take(order)
    run = Pass(schedule, releaser)
    grid = run.grid(records)
    run.advance(run.head(sorted_records.take(slice(0, int(ends[0])))), grid)
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        run.advance(run.batch(sorted_records.take(slice(first, last))), grid)
    return Fitted(run.model, run.history.arrays())
