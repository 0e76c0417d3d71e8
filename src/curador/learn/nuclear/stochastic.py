"""Stochastic Frank–Wolfe as the thesis has it [FM22, Alg. 2 and 3]: n/2 steps, each with a top pair by Oja's iteration.

thesis   the noise that Algorithm 3 prints, after splitting ε and δ over the n/2 + 1 minimisations by advanced composition.
         It is here to be reproduced and compared with; at any number of records that a table has, its model is noise.
tight    the same estimator D_t with Gaussian noise on its entries, for the length of what one record moves over *all* steps:
         it acts on D_t, t ≥ s, by (1−η)^(t−s), so that √(1/(2η − η²)) lengths are enough. `stochastic_schedule(…,
         correlated=False)`.
What both miss is that noise may be shared between steps: toeplitz.py.

Claim   (thesis) A run costs at most the goal: each minimisation is one release of T products with the length √T · (|ΔD|
        |x|), and the plan composes them exactly. The printed σ is more than that by orders of magnitude; where it were less,
        the plan's is used.
Needs   D_t in integers: the decaying sum of ladder.py without rungs, cut to a coarser grid by shifts, whose rounding is
        charged.
Source  σ: [FM22, Alg. 3, line 1] (the lemma beside it prints η and ε where the proof has η² and ε²); its sensitivity is
        max(4 L₀/n, 2η (2L₁ + L₀)), the first term as it follows for a mean over n/2 records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter, require, sentence
from curador.learn.nuclear.ladder import Sums, ladder_for
from curador.learn.nuclear.records import whole_coefficients
from curador.learn.nuclear.slots import in_slots
from curador.learn.nuclear.task import Fitted, History
from curador.learn.nuclear.toeplitz import Stochastic
from curador.learn.oracles.bingham import normals
from curador.learn.oracles.oja import thesis_sigma
from curador.learn.plan import Part
from curador.mechanisms.seam import perform
from curador.privacy.adjacency import REPLACE_ONE

if TYPE_CHECKING:
    from curador.learn.goal import Goal
    from curador.learn.nuclear.records import Records
    from curador.learn.nuclear.task import Task
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers
    from curador.randomness.entropy import Entropy

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
    def parts(self) -> list[Part]:
        """What a run releases: a minimisation is one release, of all of its products."""
        return [Part("minimisation", count=self.steps + 1)]

    @property
    def oja_step(self) -> float:
        """1/(T σ √d), as printed."""
        return 1.0 / (self.products * self.sigma * math.sqrt(sum(self.task.shape)))


def thesis_schedule(task: Task, goal: Goal) -> ThesisSchedule:
    """Return the printed constants: η = log n/n, T = ⌈L₀ √(n/d)⌉ and Algorithm 3's σ.

    One minimisation gets ε/(2 √(n log 1/δ')) and δ' = δ/(n (T+1)) for each of its steps [FM22, Lemma 2.3.2].
    """
    if task.adjacency is not REPLACE_ONE or goal.pure:
        given = "no delta" if goal.pure else "add_remove"
        raise InvalidParameter(sentence("the thesis's algorithm", "run with delta and with records replaced", given))
    require(task.count >= 8, "the number of records", "at least 8", task.count)
    records, loss = task.count, task.loss
    decay = math.log(records) / records
    products = max(1, math.ceil(loss.lipschitz * math.sqrt(records / sum(task.shape))))
    sensitivity = max(4 * loss.lipschitz / records, 2 * decay * (2 * task.radius * loss.smoothness + loss.lipschitz))
    delta = float(goal.delta) / (records * (products + 1))
    epsilon = float(goal.epsilon) / (2 * math.sqrt(records * math.log(1 / delta)))
    sigma = thesis_sigma(epsilon, delta, products, sensitivity)
    return ThesisSchedule(task, records // 2, decay, products, sensitivity, sigma)


def run_thesis(schedule: ThesisSchedule, records: Records, releaser: Releaser) -> Fitted:
    """Return the model of the thesis's algorithm, with its noise."""
    task, radius = schedule.task, schedule.task.radius
    ladder = ladder_for(schedule.decay, root=False)
    grid_of = Stochastic(task, task.count - schedule.steps, 1, schedule.steps, ladder, records.limit)
    order, ends = in_slots(records, [grid_of.head, *[1] * schedule.steps], task.adjacency)
    placed, starts = records.take(order), [0, *ends.tolist()]
    sums = Sums(ladder, task.shape)
    model = before = np.zeros(task.shape)
    history = History(schedule.steps + 1)
    cut: Cut | None = None
    for step in range(schedule.steps + 1):
        mine = placed.take(slice(starts[step], starts[step + 1]))
        change = _change(grid_of, mine, model, before, first=step == 0)
        coefficients = whole_coefficients(mine, change, bound=grid_of.bound, bits=grid_of.bits)
        exact = sums.add(mine.sums(coefficients))
        cut = _cut(schedule, grid_of, releaser, records.step * coefficients.step) if cut is None else cut
        left, right, seen = _oja(schedule, exact >> cut.shift, cut, releaser)
        before, model = model, (1 - ladder.decay) * model + (ladder.decay * 2 * radius * left)[:, None] * right
        history.note(step, seen[:, None], model, schedule.sigma)
    return Fitted(model, history.arrays())


@dataclass(frozen=True, slots=True)
class Cut:
    """The grid of the products.

    shift   the places by which D_t is cut
    needed  how far a neighbour moves the products of one minimisation, in l2
    length  the same, made longer where the printed σ is larger
    """

    shift: int
    step: float
    needed: int
    length: int


def _cut(schedule: ThesisSchedule, grid: Stochastic, releaser: Releaser, step: float) -> Cut:
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
    return Cut(shift, step * (1 << shift) / (1 << _VECTOR_BITS), needed, max(needed, longer))


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


def _oja(schedule: ThesisSchedule, exact: Integers, cut: Cut, releaser: Releaser) -> tuple[Floats, Floats, Floats]:
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
