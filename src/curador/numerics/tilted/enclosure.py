"""Certified δ(ε) and ε(δ) of a total of independent losses: picks the cheapest exact path, then certifies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from curador.errors import NumericalFailure
from curador.numerics.interval import Interval
from curador.numerics.roots import secant
from curador.numerics.rounding import up
from curador.numerics.tilted.atoms import MOST_ATOMS, AtomSum
from curador.numerics.tilted.fourier import fourier_sum
from curador.numerics.tilted.lattice import lattice_sum
from curador.numerics.tilted.plan import (
    FEW,
    FEWEST,
    MOST_NODES,
    Aim,
    Tilts,
    aim_at_delta,
    aim_at_epsilon,
    period,
    plan,
    tilts,
    tilts_at_delta,
)

if TYPE_CHECKING:
    from curador.numerics.tilted.moments import Total

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


_WIDE = 1e-3
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
class Options:
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
    options: Options = Options()

    def delta(self, epsilon: float, last: float | None = None) -> Interval:
        """Return the certified interval of δ(ε), or of all δ between ε and `last` if that is given, from one sum."""
        if not self.total.families:
            return self.infinite
        if self.asks_to_be_cut:
            from curador.numerics.tilted.cutting import cut_delta

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
            from curador.numerics.tilted.cutting import cut_epsilon

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
            if not (math.isfinite(high) and high - low > _WIDE * high):
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
        from curador.numerics.tilted.cutting import proved_below

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
            table = tilts(self.total, FEW if self.total.records < LABORIOUS else FEWEST)
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
        table = tilts(self.total)
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
            return closed, *_about(closed, target)
        table = tilts_at_delta(self.total, target) if self.total.records >= SEVERAL else tilts(self.total)
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
        return fourier_sum(self.total, table, plan(self.total, table, aim, nodes=self.options.nodes, smooth=smooth))


def _about(source: Sum, target: float) -> tuple[float, float]:
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
