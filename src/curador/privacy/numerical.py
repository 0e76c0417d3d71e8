"""The numerical reading: certified intervals of δ(ε) and ε(δ), by closed forms or by the tilted sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from curador.errors import NumericalFailure
from curador.numerics.rounding import Interval
from curador.numerics.tilted.enclosure import ALL_PATHS, Enclosure, Path, SumOptions
from curador.privacy.gaussian import gaussian_delta, gaussian_epsilon
from curador.privacy.laws.gaussian import GaussianLaw
from curador.privacy.laws.resolve import directions_of, sides
from curador.privacy.laws.side import Direction, Side
from curador.privacy.loss import OUT_OF_RANGE, Loss, attempt


@dataclass(frozen=True, slots=True)
class NumericalReading:
    """Certified intervals in both directions, taken at their maxima.

    Claim   epsilon(δ).upper is proved for everything the records describe; epsilon(δ).lower is attained by some mechanism
            that they describe. Where a record has no law above, upper is +∞ (or 1).
    """

    above: tuple[Enclosure | None, ...]
    below: tuple[Enclosure | None, ...]

    @property
    def sets_apart(self) -> bool:
        """Whether far outputs are set apart before the sum (theorem 10)."""
        return any(side is not None and side.total.uncut for side in self.above)

    def epsilon(self, delta: float) -> Interval:
        """Return the interval of ε at δ, over both directions."""
        delta = float(delta)
        found = Interval(0.0, 0.0)
        for above, below in zip(self.above, self.below, strict=True):
            if found.lower > 0.0 and above is not None and below is above and above.proves(delta, found.lower):
                continue  # this direction is proved to lie below the other
            one = _join_sides(above, below, lambda side: _epsilon(side, delta), math.inf)
            found = Interval(max(found.lower, one.lower), max(found.upper, one.upper))
        return found

    def delta(self, epsilon: float, last: float | None = None) -> Interval:
        """Return the interval of δ at ε, or of all δ between ε and `last`, over both directions."""
        ends = (float(epsilon), float(epsilon if last is None else last))
        pairs = [_join_sides(a, b, lambda e: _delta(e, *ends), 1.0) for a, b in zip(self.above, self.below, strict=True)]
        return Interval(max(pair.lower for pair in pairs), max(pair.upper for pair in pairs))


def _join_sides(
    above: Enclosure | None, below: Enclosure | None, ask: Callable[[Enclosure], Interval], nothing: float
) -> Interval:
    silent = Interval(0.0, nothing)
    upper = attempt(lambda: ask(above)) if above is not None else silent
    lower = upper if below is above else attempt(lambda: ask(below)) if below is not None else silent
    if upper is None and lower is None:
        raise NumericalFailure(OUT_OF_RANGE)
    upper, lower = upper or silent, lower or silent
    return Interval(min(lower.lower, upper.upper), upper.upper)


def _gaussian_only(enclosure: Enclosure) -> GaussianLaw | None:
    families = enclosure.total.families
    plain = len(families) == 1 and enclosure.infinite.upper == 0.0 and "direct" in enclosure.options.paths
    return families[0] if plain and isinstance(families[0], GaussianLaw) and families[0].spread <= 1e-12 else None


def _epsilon(enclosure: Enclosure, delta: float) -> Interval:
    law = _gaussian_only(enclosure)
    if law is None:
        return enclosure.epsilon(delta)
    low, high = min(delta * (1 + 4e-16), math.nextafter(1.0, 0.0)), delta * (1 - 4e-16)  # δ may be off by an ulp
    return Interval(gaussian_epsilon(_mu(law, -1), delta=low)[0], gaussian_epsilon(_mu(law, +1), delta=high)[1])


def _delta(enclosure: Enclosure, epsilon: float, last: float) -> Interval:
    law = _gaussian_only(enclosure)
    if law is None:
        return enclosure.delta(epsilon, last)
    return Interval(gaussian_delta(_mu(law, -1), epsilon=last)[0], gaussian_delta(_mu(law, +1), epsilon=epsilon)[1])


def _mu(law: GaussianLaw, side: int) -> float:
    """μ moved outward by the law's doubt and a few ulps."""
    return math.sqrt(law.mu2) * (1.0 + side * (law.spread + 2e-15))


def enclosure(loss: Loss, *, paths: tuple[Path, ...] = ALL_PATHS, nodes: int | None = None) -> NumericalReading:
    """Return the numerical reading of a loss, both directions where they differ."""
    return in_directions(loss, directions_of(loss), SumOptions(paths, nodes))


def in_directions(loss: Loss, directions: tuple[Direction, ...], options: SumOptions) -> NumericalReading:
    """Return the numerical reading of a loss in some directions only."""
    above: list[Enclosure | None] = []
    below: list[Enclosure | None] = []
    for direction in directions:
        upper, lower = sides(loss, direction)
        above.append(_enclose_side(upper, options))
        below.append(above[-1] if _same(upper, lower) else _enclose_side(lower, options))
    return NumericalReading(tuple(above), tuple(below))


def _same(upper: Side, lower: Side) -> bool:
    return upper is lower or upper == lower


def _enclose_side(side: Side, options: SumOptions) -> Enclosure | None:
    if side.missing is not None:
        return None
    total, infinite = side.total()
    return Enclosure(total, infinite, options)
