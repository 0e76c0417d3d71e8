"""Stochastic Frank–Wolfe in one pass over the records: with correlated noise, and as the thesis has it.

With the noise of a whole run correlated [FM22, Alg. 2, with the noise of noise.py].

    D_0 = mean gradient of half the records at X_0 = 0;   then, record by record (or batch by batch),
    D_t = (1−η) (D_(t−1) + ∇f(X_t) − ∇f(X_(t−1))) + η ∇f(X_t) = (1−η) D_(t−1) + g_t,   g_t = ∇f(X_t) − (1−η) ∇f(X_(t−1)),
    X_(t+1) = (1−η) X_t + η · argmin_V ⟨D̃_t, V⟩

A record is in one g_t only: |g_t| ≤ η L₀ + (1−η) min(2 L₀, 2 η R L₁) for a record of the second half (its coefficient is
clipped to that), and L₀/h in the mean over the h records of D_0. So the whole run is one release C g + Z of noise.py, of
which all X_t are made.

Claim   A run costs one release of the plan's part, of Gaussian noise with the length of `Stochastic.length`.
Needs   g_t on a grid of whole numbers, exactly: coefficients are whole numbers of one record and of public X's (records.py).
        A neighbour puts its records into the same slots (`in_slots`; of a stream: their places).
Proof   Given what was released before t, X_t and X_(t−1) are fixed, so neighbours whose records differ in slot s have the
        same g_t for t ≠ s; noise.py bounds what they release at each t ≥ s by numbers that depend on t − s only, with the
        sum of squares said there; `ReleaseSequence` composes them. The inverse map is applied to what was released.
        What is exact: the integers of C g, the noise, their sum. What is floating point: everything made of that sum.

Why no noise is drawn ahead and added to D_t: D_t + (C Z)_t, both rounded, is no function of C g + Z, and two neighbours
could reach different floats.

As the thesis has it [FM22, Alg. 2 and 3]: n/2 steps, each with a top pair by Oja's iteration.

thesis   the noise that Algorithm 3 prints, after splitting ε and δ over the n/2 + 1 minimisations by advanced composition.
         It is here to be reproduced and compared with; at any number of records that a table has, its model is noise.
tight    the same estimator D_t with Gaussian noise on its entries, for the length of what one record moves over *all* steps:
         it acts on D_t, t ≥ s, by (1−η)^(t−s), so that √(1/(2η − η²)) lengths are enough. `stochastic_schedule(…,
         correlated=False)`.
What both miss is that noise may be shared between steps: see above.

Claim   (thesis) A run costs at most the goal: each minimisation is one release of T products with the length √T · (|ΔD|
        |x|), and the plan composes them exactly. The printed σ is more than that by orders of magnitude; where it were less,
        the plan's is used.
Needs   D_t in integers: the decaying sum of noise.py without rungs, cut to a coarser grid by shifts, whose rounding is
        charged.
Source  σ: [FM22, Alg. 3, line 1] (the lemma beside it prints η and ε where the proof has η² and ε²); its sensitivity is
        max(4 L₀/n, 2η (2L₁ + L₀)), the first term as it follows for a mean over n/2 records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter, require
from curador.learn.nuclear.noise import Ladder, ReleaseSequence, Sums, Undone, ladder_for
from curador.learn.nuclear.records import coefficient_bits, in_slots, require_room, whole_coefficients
from curador.learn.nuclear.task import FittedMatrix, History, linear_minimiser, linear_minimiser_near
from curador.learn.oracles.bingham import normals
from curador.learn.oracles.oja import thesis_sigma
from curador.learn.plan import PlannedRelease
from curador.mechanisms.seam import perform
from curador.privacy.adjacency import REPLACE_ONE

if TYPE_CHECKING:
    from curador.learn.nuclear.records import Records
    from curador.learn.nuclear.task import Task
    from curador.learn.plan import FitGoal
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers
    from curador.randomness.entropy import Entropy


# ---- toeplitz --------------------------------------------------------------------------------------------------------------


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

    parts = (PlannedRelease("gradients"),)

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
        self._noise = ReleaseSequence(
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


def run_stochastic(schedule: Stochastic, records: Records, releaser: Releaser) -> FittedMatrix:
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
    return FittedMatrix(run.model, run.history.arrays())


# ---- stochastic ------------------------------------------------------------------------------------------------------------


_VECTOR_BITS = 10
_WIDEST = 50
"""Noise is kept below 2⁵⁰ grid steps, where it is drawn by the million."""


@dataclass(frozen=True, slots=True)
class ThesisSchedule:
    """The printed constants; a function of public numbers.

    steps      minimisations after the first: n/2
    products   T of Oja's iteration in each
    sigma      of its noise, in the units of the mean gradient
    """

    task: Task
    steps: int
    decay: float
    products: int
    sensitivity: float
    sigma: float

    @property
    def parts(self) -> list[PlannedRelease]:
        """What a run releases: a minimisation is one release, of all of its products."""
        return [PlannedRelease("minimisation", count=self.steps + 1)]

    @property
    def oja_step(self) -> float:
        """1/(T σ √d), as printed."""
        return 1.0 / (self.products * self.sigma * math.sqrt(sum(self.task.shape)))


def thesis_schedule(task: Task, goal: FitGoal) -> ThesisSchedule:
    """Return the printed constants: η = log n/n, T = ⌈L₀ √(n/d)⌉ and Algorithm 3's σ.

    One minimisation gets ε/(2 √(n log 1/δ')) and δ' = δ/(n (T+1)) for each of its steps [FM22, Lemma 2.3.2].
    """
    if task.adjacency is not REPLACE_ONE or goal.pure:
        given = "no delta" if goal.pure else str(task.adjacency)
        raise InvalidParameter.must_be("the thesis's algorithm", "run with delta and with records replaced", given)
    require(task.count >= 8, "the number of records", "at least 8", task.count)
    records, loss = task.count, task.loss
    decay = math.log(records) / records
    products = max(1, math.ceil(loss.lipschitz * math.sqrt(records / sum(task.shape))))
    sensitivity = max(4 * loss.lipschitz / records, 2 * decay * (2 * task.radius * loss.smoothness + loss.lipschitz))
    delta = float(goal.delta) / (records * (products + 1))
    epsilon = float(goal.epsilon) / (2 * math.sqrt(records * math.log(1 / delta)))
    sigma = thesis_sigma(epsilon, delta, products, sensitivity)
    return ThesisSchedule(task, records // 2, decay, products, sensitivity, sigma)


def run_thesis(schedule: ThesisSchedule, records: Records, releaser: Releaser) -> FittedMatrix:
    """Return the model of the thesis's algorithm, with its noise."""
    task, radius = schedule.task, schedule.task.radius
    ladder = ladder_for(schedule.decay, root=False)
    grid_of = Stochastic(task, task.count - schedule.steps, 1, schedule.steps, ladder, records.limit)
    order, ends = in_slots(records, [grid_of.head, *[1] * schedule.steps], task.adjacency)
    placed, starts = records.take(order), [0, *ends.tolist()]
    sums = Sums(ladder, task.shape)
    model = before = np.zeros(task.shape)
    history = History(schedule.steps + 1)
    cut: ProductGrid | None = None
    for step in range(schedule.steps + 1):
        mine = placed.take(slice(starts[step], starts[step + 1]))
        change = _change(grid_of, mine, model, before, first=step == 0)
        coefficients = whole_coefficients(mine, change, bound=grid_of.bound, bits=grid_of.bits)
        exact = sums.add(mine.sums(coefficients))
        cut = _choose_grid(schedule, grid_of, releaser, records.step * coefficients.step) if cut is None else cut
        left, right, seen = _oja(schedule, exact >> cut.shift, cut, releaser)
        before, model = model, (1 - ladder.decay) * model + (ladder.decay * 2 * radius * left)[:, None] * right
        history.note(step, seen[:, None], model, schedule.sigma)
    return FittedMatrix(model, history.arrays())


@dataclass(frozen=True, slots=True)
class ProductGrid:
    """The grid of the products.

    shift   the places by which D_t is cut
    needed  how far a neighbour moves the products of one minimisation, in l2
    length  the same, made longer where the printed σ is larger
    """

    shift: int
    step: float
    needed: int
    length: int


def _choose_grid(schedule: ThesisSchedule, grid: Stochastic, releaser: Releaser, step: float) -> ProductGrid:
    """Choose the grid, and the length at which the plan's noise is the printed one, or the needed one if longer."""
    multiplier = releaser.plan.multiplier("minimisation")
    wanted = schedule.sigma / step * (1 << _VECTOR_BITS)
    fine = grid.bits + math.ceil(math.log2(grid.limit))
    room = math.ceil(math.log2(schedule.task.count)) + fine + _VECTOR_BITS - 59  # of four times as many: below 2⁶²
    shift = max(0, room, min(math.ceil(math.log2(wanted)) - _WIDEST, fine - 12))
    numbers = schedule.task.shape[0] * schedule.task.shape[1]
    each = grid.ladder.numerator + 1  # by one step's rounding, in every entry; all steps, by a geometric sum
    moved = schedule.task.factor * (grid.limit << grid.bits) + math.sqrt(numbers) * each / grid.ladder.decay
    one = (moved / (1 << shift) + math.sqrt(numbers)) * (1 << _VECTOR_BITS)
    needed = math.ceil(one * math.sqrt(schedule.products) * (1 + 1e-9))
    longer = math.ceil(wanted / (1 << shift) / multiplier)
    return ProductGrid(shift, step * (1 << shift) / (1 << _VECTOR_BITS), needed, max(needed, longer))


@dataclass(frozen=True, slots=True)
class Start:
    """A direction to begin with: so many normal numbers, which know nothing of the data."""

    size: int

    def draw(self, value: None, source: Entropy, size: int | None = None) -> Floats:
        """Draw the numbers; they are made of nothing."""
        del value
        return normals(self.size, source) if size is None else normals(self.size * size, source).reshape(size, self.size)

    def within(self, one: Any, other: Any) -> bool:
        """Whether both were made of nothing."""
        return one is None and other is None


def _oja(schedule: ThesisSchedule, exact: Integers, cut: ProductGrid, releaser: Releaser) -> tuple[Floats, Floats, Floats]:
    """T steps x ← x + η (A x + L x + noise) with A = [0 −D; −D' 0]: of (u; v), 2 u v' is the minimiser."""
    first, second = schedule.task.shape
    loss, size = schedule.task.loss, first + second
    noisy = releaser.sequence("minimisation", length=cut.length, numbers=schedule.products * size, step=cut.step)
    shift = loss.lipschitz + 2 * schedule.task.radius * loss.smoothness
    place: Floats = perform(Start(size), None)
    place /= np.linalg.norm(place)
    seen = np.zeros(size)
    for _ in range(schedule.products):
        whole = np.trunc(place * (1 << _VECTOR_BITS)).astype(np.int64)  # no longer than 2¹⁰
        image = np.concatenate([exact @ whole[first:], exact.T @ whole[:first]])
        seen = noisy(-image).astype(np.float64) * cut.step
        place = place + schedule.oja_step * (seen + shift * place)
        place /= max(float(np.linalg.norm(place)), 1e-300)
    return place[:first], place[first:], seen


def _change(grid: Stochastic, records: Records, model: Floats, before: Floats, *, first: bool) -> Floats:
    """The coefficients of g_t: those of the mean at X_0, or what a record adds to the recursion."""
    loss, radius = grid.task.loss, grid.task.radius
    fresh = loss.slopes(records.margins(model, radius), records.targets)
    if first:
        return fresh / grid.head
    return fresh - (1 - grid.decay) * loss.slopes(records.margins(before, radius), records.targets)
