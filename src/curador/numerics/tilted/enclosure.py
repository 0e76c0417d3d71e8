"""Certified δ(ε) and ε(δ) of a total of independent losses: picks the cheapest exact path, then certifies.

Totals with far-reaching losses are summed without their far outputs (theorem 10). How much is set apart is a choice: little
where the sum is short anyway, more where the far losses would make it long. The chance of what was set apart is part of the
interval either way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.roots import secant
from curador.numerics.rounding import Interval, up
from curador.numerics.tilted.plan import (
    FEW,
    FEWER,
    FEWEST,
    MOST_NODES,
    TOLERANCE,
    Aim,
    FrequencyGrid,
    Tilts,
    aim_at_delta,
    aim_at_epsilon,
    choose_frequencies,
    period,
    tabulate_tilts,
    tilts_at_delta,
)
from curador.numerics.tilted.sums import MOST_ATOMS, AtomSum, fourier_sum, lattice_sum

if TYPE_CHECKING:
    from curador.numerics.tilted.moments import Total


# ---- every total -----------------------------------------------------------------------------------------------------------


Path = Literal["enumerated", "lattice", "direct", "smoothed"]
ALL_PATHS: tuple[Path, ...] = ("enumerated", "lattice", "direct", "smoothed")


class Sum(Protocol):
    """An enclosure of D(ε), the finite part of δ(ε)."""

    def middle(self, epsilon: float) -> float: ...
    def enclose(self, epsilon: float) -> tuple[float, float]: ...


@runtime_checkable
class OneStep(Protocol):
    """A family that knows D(ε) in closed form when it holds a single release."""

    @property
    def happens_once(self) -> bool: ...
    def one_step(self, epsilon: float) -> tuple[float, float]: ...


_WORTH_HALVING = 1e-3
"""Relative width of an interval of ε from which its middle is asked for its δ."""

_HALVINGS = 14

SEVERAL, LABORIOUS = 32, 5_000
"""Distinct records from which a long table of tilts is a good part of the work, and from which a short one is."""


@dataclass(frozen=True, slots=True)
class ClosedSum:
    """D(ε) from the family's own closed form."""

    family: OneStep

    def middle(self, epsilon: float) -> float:
        """Return the middle of the enclosure."""
        return 0.5 * sum(self.family.one_step(epsilon))

    def enclose(self, epsilon: float) -> tuple[float, float]:
        """Return (lower, upper) bounds of D(ε)."""
        return self.family.one_step(epsilon)


@dataclass(frozen=True, slots=True)
class SumOptions:
    """Which paths may be taken and how many frequencies; anything is valid, the default is best."""

    paths: tuple[Path, ...] = ALL_PATHS
    nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Enclosure:
    """δ(ε) = P[L = ∞] + D(ε) for a total of independent losses.

    Claim   delta(ε) and epsilon(δ) return intervals that hold the true values.
    Rounds  Outward; where no tilt has a finite moment, to [0, 1] and [0, ∞].
    """

    total: Total
    infinite: Interval
    options: SumOptions = SumOptions()

    def delta(self, epsilon: float, last: float | None = None) -> Interval:
        """Return the certified interval of δ(ε), or of all δ between ε and `last` if that is given, from one sum."""
        if not self.total.families:
            return self.infinite
        if self.asks_to_be_cut:
            found = cut_delta(self, epsilon)
            return found if last is None else Interval(cut_delta(self, last).lower, found.upper)
        try:
            source = self.sum_at_epsilon(epsilon)
            low, high = source.enclose(epsilon)
            low = low if last is None else source.enclose(last)[0]
        except NumericalFailure:
            low, high = 0.0, 1.0
        return Interval(max(low * (1 - 1e-15) + self.infinite.lower, 0.0), min(high + self.infinite.upper, 1.0))

    def epsilon(self, delta: float) -> Interval:
        """Return the certified interval of the smallest ε ≥ 0 with δ(ε) ≤ δ, for every δ within an ulp of the one given."""
        if not self.total.families:
            return Interval(
                math.inf if delta < self.infinite.lower else 0.0,
                0.0 if delta >= self.infinite.upper else math.inf,
            )
        if delta < self.infinite.lower:
            return Interval(math.inf, math.inf)
        if self.asks_to_be_cut:
            return cut_epsilon(self, delta)
        room, most = delta - self.infinite.upper, max(delta - self.infinite.lower, 1e-300)
        if room <= 0.0:  # δ cannot be told from P[L = ∞]
            return Interval(self._solve(most)[0].lower, math.inf)
        if most > 1.5 * room:  # too far apart for one sum to be sharp at both
            found = [*self._solve(room), *self._solve(most)]
        else:
            found = self._solve(room, most) if most > room else self._solve(room)
        return self.narrowed(Interval(min(found[-1].lower, found[0].upper), found[0].upper), delta)

    def narrowed(self, found: Interval, delta: float) -> Interval:
        """The same interval, or a narrower one: far atoms of a law can lead the search for ε astray, but not δ at a given ε.

        Claim   An end moves to a point only where the certified δ of that point says on which side of it ε lies.
        """
        low, high = found
        if low == 0.0 < high and self.delta(0.0).upper <= delta * (1 - 4e-16):  # no search: nothing has to be spent
            return Interval(0.0, 0.0)
        for _ in range(_HALVINGS):
            if not (math.isfinite(high) and high - low > _WORTH_HALVING * high):
                break
            middle = 0.5 * (low + high)
            there = self.delta(middle)
            if there.upper <= delta * (1 - 4e-16):
                high = middle
            elif there.lower >= delta * (1 + 4e-16):
                low = middle
            else:
                break
        return Interval(low, high)

    def proves(self, delta: float, epsilon: float) -> bool:
        """Return whether δ(ε) ≤ δ is proved by what costs less than an interval of ε; False says nothing."""
        if self.chernoff(delta) <= epsilon:
            return True
        if not self.asks_to_be_cut:
            return False

        return proved_below(self, delta, epsilon)

    def chernoff(self, delta: float) -> float:
        """Return a cheap upper bound of ε at δ: Chernoff's on a few tilts. Rounds: up."""
        room = (delta - self.infinite.upper) * (1 - 1e-15)
        if not self.total.families:
            return 0.0 if room >= 0.0 else math.inf
        if room <= 0.0:
            return math.inf
        if self.total.uncut:
            return min(self.cut(1e-3 * room).chernoff(delta), self.total.top)
        try:
            table = tabulate_tilts(self.total, FEW if self.total.records < LABORIOUS else FEWEST)
        except NumericalFailure:
            return math.inf
        bounds = (table.log_chernoff - math.log(room)) / table.theta
        return min(max(0.0, float(bounds.min()) * (1 + 1e-12) + 1e-12), self.total.top)

    def cut(self, mass: float, epsilon: float = 0.0) -> Enclosure:
        """Return the same without outputs of about that chance, which count as infinite losses above and not at all below.

        Needs   It is asked of no ε below the one given.
        """
        total, outside = self.total.cut(mass, epsilon)
        return replace(self, total=total, infinite=Interval(self.infinite.lower, up(self.infinite.upper + outside)))

    @property
    def asks_to_be_cut(self) -> bool:
        """Whether the sum needs a law without its far outputs."""
        return self.total.uncut and self._closed() is None

    def _solve(self, *targets: float) -> list[Interval]:
        """The intervals of ε with D(ε) = target, for targets so near that a sum made for the first serves them all."""
        try:
            source, start, slope = self.sum_at_delta(targets[0])
        except NumericalFailure:
            return [Interval(0.0, self.total.top) for _ in targets]
        return [invert(source, target, more=target, start=start, slope=slope, top=self.total.top) for target in targets]

    def sum_at_epsilon(self, epsilon: float) -> Sum:
        """Return the enclosure of D that is sharpest around ε."""
        closed = self._atoms() or self._closed()
        if closed is not None:
            return closed
        table = tabulate_tilts(self.total)
        aim, table = aim_at_epsilon(self.total, table, epsilon)
        return self._sum(table, aim)

    def sum_at_delta(self, target: float) -> tuple[Sum, float, float]:
        """Return the enclosure of D that is sharpest where D = target, about where that is, and the slope of log D there."""
        atoms = self._atoms()
        if atoms is not None:
            top = float(atoms.law.losses[-1])
            return atoms, 0.5 * max(top, 0.0), -1.0
        closed = self._closed()
        if closed is not None:
            return closed, *_guess_epsilon(closed, target)
        table = tilts_at_delta(self.total, target) if self.total.records >= SEVERAL else tabulate_tilts(self.total)
        aim, table = aim_at_delta(self.total, table, math.log(target))
        return self._sum(table, aim), max(aim.epsilon, 0.0), -aim.theta

    def _closed(self) -> Sum | None:
        if len(self.total.families) != 1 or "direct" not in self.options.paths:
            return None
        family = self.total.families[0]
        return ClosedSum(family) if isinstance(family, OneStep) and family.happens_once else None

    def _atoms(self) -> AtomSum | None:
        if "enumerated" not in self.options.paths:
            return None
        law = self.total.atoms(MOST_ATOMS)
        return None if law is None else AtomSum(law)

    def _sum(self, table: Tilts, aim: Aim) -> Sum:
        paths = self.options.paths
        lattice = self.total.lattice() if "lattice" in paths else None
        if lattice is not None:
            points = math.ceil(Fraction(period(table, aim, self.total.top)) / lattice.step) + 2  # a float step might be 0
            if points <= 2 * (self.options.nodes or MOST_NODES):
                return lattice_sum(self.total, table, lattice, theta=aim.theta, points=points)
        smooth = None if "direct" in paths else True
        return fourier_sum(
            self.total, table, choose_frequencies(self.total, table, aim, nodes=self.options.nodes, smooth=smooth)
        )


def _guess_epsilon(source: Sum, target: float) -> tuple[float, float]:
    """About where D = target, and the slope of log D there; a closed form is quicker asked than any tilt."""
    low, high = 0.0, 1e-6
    while source.middle(high) > target and high < 1e9:
        low, high = high, 2.0 * high
    first, second = (math.log(max(source.middle(end), 1e-300)) for end in (low, high))
    slope = min((second - first) / (high - low), -1e-9)
    return min(max(low + (math.log(target) - first) / slope, low), high), slope


def invert(source: Sum, target: float, *, more: float, start: float, slope: float, top: float) -> Interval:
    """Return [ε₋, ε₊] with certified lower(ε₋) ≥ more and upper(ε₊) ≤ target.

    Claim   D is non-increasing, so the smallest ε ≥ 0 with D(ε) ≤ target lies in the interval.
    """
    less, more = target * (1 - 1e-15), more * (1 + 1e-15)  # δ was rounded to a float on its way here
    if source.middle(0.0) <= less and source.enclose(0.0)[1] <= less:
        return Interval(0.0, 0.0)
    log_target = math.log(target)
    tiny = math.exp(max(log_target - 60.0, -740.0))
    ceiling = min(top, 1e9)

    def distance(epsilon: float) -> float:
        return math.log(max(source.middle(epsilon), tiny)) - log_target

    middle = secant(distance, start=min(max(start, 0.0), ceiling), slope=slope, lower=0.0, upper=ceiling)
    low, high = source.enclose(middle)
    smallest = 1e-15 * max(middle, 1e-3)
    gain = 0.3 / (target * max(abs(slope), 1e-300))
    back, ahead = max(min(gain * (target - low), middle), smallest), max(min(gain * (high - target), 1e9), smallest)
    return Interval(
        middle if low >= more else _walk_down(source, more, middle - back, 1.5 * back),
        middle if high <= less else _walk_up(source, less, middle + ahead, 1.5 * ahead, top),
    )


def _walk_up(source: Sum, target: float, point: float, step: float, top: float) -> float:
    for _ in range(200):
        if point >= top:
            return top
        if source.enclose(point)[1] <= target:
            return point
        point, step = point + step, 1.5 * step
    return top


def _walk_down(source: Sum, target: float, point: float, step: float) -> float:
    for _ in range(200):
        if point <= 0.0:
            return 0.0
        if source.enclose(point)[0] >= target:
            return point
        point, step = point - step, 1.5 * step
    return 0.0


# ---- totals that are cut ---------------------------------------------------------------------------------------------------


LITTLE, MORE, MOST = 1e-10, 2e-6, 1e-4
"""Shares of δ that are set apart."""

SHORT = 400
"""Frequencies up to which a sum is short."""

LEAST = 1e-300
"""The least chance that is set apart."""

LONG, LONGEST = 12_000, 20_000
"""Frequencies of a sum that must be long."""

ROUND_OFF = 3e-12
"""About what a sum of ten thousand steps is off by, relative to Chernoff's bound at its tilt."""

LAST = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
"""Shares of δ that may be set apart where far losses keep the longest sum too coarse. They cost their share for certain."""

FEW_RECORDS, MANY_RECORDS = 4, 100
"""Records up to which a long sum is affordable, and up to which a long table of tilts is."""

_WIDE, _VERY_WIDE = 3e-5, 3e-4
"""Width of an interval of ε, relative to it or to _SMALL, from which the sum is aimed again, at its middle; and made long and
cut anew."""

_SMALL = 1e-2


class Ready(NamedTuple):
    """A cut total and the parameters of its sum."""

    enclosure: Enclosure
    table: Tilts
    aim: Aim
    plan: FrequencyGrid

    @property
    def short(self) -> bool:
        """Whether nothing is to be won by cutting more."""
        return self.plan.smoothing == 0.0 and self.plan.size <= SHORT

    @property
    def cost(self) -> float:
        """How much was smoothed, and where nothing was, how long the sum is: both grow with the far losses."""
        return self.plan.smoothing + 1e-12 * self.plan.size

    def summed(self) -> Sum:
        """Evaluate the sum."""
        return fourier_sum(self.enclosure.total, self.table, self.plan)


def cut_epsilon(whole: Enclosure, delta: float) -> Interval:
    """Return the certified interval of ε at δ.

    Claim   D'(ε) ≤ D(ε) ≤ D'(ε) + P(E): the lower end is a point with D' ≥ δ − P[L = ∞], the upper one a point with D' ≤ that
            less P(E).
    Source  docs/explanation/accounting.md, theorem 10.
    """
    if not delta > whole.infinite.upper:
        return Interval(0.0, math.inf)
    ready = ready_at_delta(whole, delta)
    if ready is None:
        return Interval(0.0, whole.total.top)
    found, source = _solve_cut(ready, delta)
    log_delta = math.log(delta - whole.infinite.upper)
    if math.isinf(found.upper) or source is None or _width(found) <= _WIDE:
        return found
    again = _aim_again(ready, _middle(found), log_delta)
    if again is not None:
        ready, (one, source) = again, _solve_cut(again, delta)
        found = _intersect(found, one)
    if source is not None and math.isfinite(found.upper) and _width(found) > _VERY_WIDE:
        last = _last(whole, ready, found, delta, falls=_falls(source, _middle(found)))
        found = found if last is None else _intersect(found, _solve_cut(last, delta)[0])
    return found


def _last(whole: Enclosure, before: Ready, found: Interval, delta: float, *, falls: float) -> Ready | None:
    """The cut whose share of δ and whose smoothing together widen the interval least, as far as one can tell beforehand."""
    middle, room = _middle(found), delta - whole.infinite.upper
    width = (found.upper - found.lower) * (1.0 if found.lower > 0.0 else 20.0)  # how far it reaches below 0 is not seen
    aimed: list[tuple[float, Enclosure, Aim, Tilts]] = []
    for share in LAST:
        cut = whole.cut(share * room)
        try:
            aimed.append(
                (share, cut, *aim_at_epsilon(cut.total, tabulate_tilts(cut.total), middle, 0.1 * share, math.log(room)))
            )
        except NumericalFailure:
            continue
    best, least = None, math.inf
    few = whole.total.records <= FEW_RECORDS
    for nodes in (LONG, LONGEST) if few and whole.options.nodes is None else (whole.options.nodes,):
        for share, cut, aim, table in aimed:
            try:
                ready = _plan_cut(cut, table, aim, nodes)
            except NumericalFailure:
                continue
            coarse = ready.plan.smoothing / before.plan.smoothing if before.plan.smoothing > 0.0 else 0.0
            doubt = math.exp(min(_log_size(table, aim, middle) - math.log(delta), 300.0))  # round-off grows with it
            wide = (share + ROUND_OFF * doubt) / falls + width * coarse**2
            if wide < least:
                best, least = ready, wide
        if least < 0.3 * _VERY_WIDE * max(middle, _SMALL):
            break
    return best


def _log_size(table: Tilts, aim: Aim, epsilon: float) -> float:
    return float(np.interp(aim.theta, table.theta, table.log_chernoff)) - aim.theta * epsilon


def _middle(found: Interval) -> float:
    return 0.5 * (found.lower + found.upper)


def _falls(source: Sum, epsilon: float) -> float:
    """About how fast log D falls at ε."""
    step = 0.1 * epsilon + 1e-300
    first, second = source.middle(epsilon), source.middle(epsilon + step)
    return max(math.log(first / second) / step, 1e-300) if first > second > 0.0 else 1.0 / step


def _width(found: Interval) -> float:
    """Width of an interval of ε relative to ε, or to _SMALL where that is larger."""
    return (found.upper - found.lower) / max(found.upper, _SMALL)


def _intersect(one: Interval, other: Interval) -> Interval:
    return Interval(max(one.lower, other.lower), min(one.upper, other.upper))


def ready_at_delta(whole: Enclosure, delta: float) -> Ready | None:
    """Return the handiest cut for the question at which ε is D = δ, or nothing if no tilt has a finite moment."""

    def aimed(cut: Enclosure, table: Tilts, tolerance: float) -> tuple[Aim, Tilts]:
        return aim_at_delta(cut.total, table, math.log(delta - cut.infinite.upper), tolerance)

    return _choose_cut(whole, delta - whole.infinite.upper, aimed)


def ready_at_epsilon(whole: Enclosure, epsilon: float, size: float) -> Ready | None:
    """Return the handiest cut for the question what D(ε) is, where it is about `size`."""

    def aimed(cut: Enclosure, table: Tilts, tolerance: float) -> tuple[Aim, Tilts]:
        return aim_at_epsilon(cut.total, table, epsilon, tolerance, math.log(size))

    return _choose_cut(whole, size, aimed, epsilon)


def _choose_cut(
    whole: Enclosure, size: float, aimed: Callable[[Enclosure, Tilts, float], tuple[Aim, Tilts]], epsilon: float = 0.0
) -> Ready | None:
    best: Ready | None = None
    few = whole.total.records <= MANY_RECORDS
    for share in (LITTLE, MORE, MOST):
        cut = whole.cut(max(share * size, LEAST), epsilon)
        try:
            tolerance = max(TOLERANCE, 0.1 * share)
            table = tilts_at_delta(cut.total, size) if few else tabulate_tilts(cut.total, FEWER)
            aim, table = aimed(cut, table, tolerance)
            found = _plan_cut(cut, table, aim)
        except (NumericalFailure, ValueError):  # ValueError: nothing is left of δ, or no period is finite
            continue
        if best is None or found.cost < 0.8 * best.cost:
            best = found
        if best.short:
            break
    return best


def _plan_cut(cut: Enclosure, table: Tilts, aim: Aim, nodes: int | None = None) -> Ready:
    smooth = None if "direct" in cut.options.paths else True
    return Ready(cut, table, aim, choose_frequencies(cut.total, table, aim, nodes=nodes or cut.options.nodes, smooth=smooth))


def _aim_again(ready: Ready, epsilon: float, log_delta: float) -> Ready | None:
    try:
        aim, table = aim_at_epsilon(ready.enclosure.total, ready.table, epsilon, ready.aim.tolerance, log_delta)
        return _plan_cut(ready.enclosure, table, aim)
    except NumericalFailure:
        return None


def _solve_cut(ready: Ready, delta: float) -> tuple[Interval, Sum | None]:
    """The interval of ε at δ, and the sum it is from."""
    cut, aim = ready.enclosure, ready.aim
    try:
        source = ready.summed()
    except NumericalFailure:
        return Interval(0.0, cut.total.top), None
    target = delta - cut.infinite.upper
    found = invert(
        source,
        target,
        more=delta - cut.infinite.lower,
        start=max(aim.epsilon, 0.0),
        slope=-aim.theta,
        top=cut.total.top,
    )
    return found, source


def cut_delta(whole: Enclosure, epsilon: float) -> Interval:
    """Return the certified interval of δ(ε).

    Claim   Every cut gives a valid interval; they are intersected.
    """
    found = Interval(0.0, 1.0)
    for _ in range(3):
        known = found.lower - whole.infinite.upper
        size = _guess_size(whole, epsilon) if found.upper == 1.0 else known if known > 0.0 else 1e-3 * found.upper
        ready = ready_at_epsilon(whole, epsilon, size)
        if ready is None:
            break
        cut = ready.enclosure
        try:
            low, high = ready.summed().enclose(epsilon)
        except NumericalFailure:
            break
        low, high = low * (1 - 1e-15) + cut.infinite.lower, high + cut.infinite.upper
        found = Interval(max(found.lower, low, 0.0), min(found.upper, high))
        known = found.lower - whole.infinite.upper
        if found.upper - found.lower <= _WIDE * found.upper or (size < 4.0 * known and found.lower > 0.0):
            break
    return found


def proved_below(whole: Enclosure, delta: float, epsilon: float) -> bool:
    """Whether δ(ε) ≤ δ is proved by one sum.

    Claim   The sum alone is an upper bound of D' (theorem 1), and D ≤ D' + P(E) (theorem 10); False says nothing.
    """
    room = delta - whole.infinite.upper
    if not room > 0.0:
        return False
    cut = whole.cut(max(MORE * room, LEAST), epsilon)
    try:
        aim, table = aim_at_epsilon(cut.total, tabulate_tilts(cut.total, FEWEST), epsilon, MORE, math.log(room))
        found = _plan_cut(cut, table, aim).summed().enclose(epsilon)[1]
    except (NumericalFailure, ValueError):  # ValueError: no period is finite
        return False
    return found + cut.infinite.upper <= delta * (1 - 4e-16)


def _guess_size(whole: Enclosure, epsilon: float) -> float:
    """Chernoff's bound of D(ε), less what it usually exceeds D by."""
    size = 1e-9
    for _ in range(3):  # far losses that are set apart for a rough answer make room for a finer one
        cut = whole.cut(max(1e-4 * size, LEAST), epsilon)
        try:
            table = tabulate_tilts(cut.total)
        except NumericalFailure:
            return size
        bound = float((table.log_chernoff - table.theta * epsilon).min()) - 2.5
        last, size = size, math.exp(min(max(bound, -690.0), 0.0))
        if 1e-2 < size / last < 1e2:
            break
    return size
