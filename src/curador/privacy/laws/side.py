"""Gathers the laws of many records, equal kinds in one array, in an order that does not depend on theirs."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.rounding import UNIT, Interval, float_down, float_up
from curador.numerics.tilted.moments import Moments, Total
from curador.privacy.laws.finite import FiniteLaw, SurvivalLaw, ThreePointLaw
from curador.privacy.laws.gaussian import DiscreteGaussianLaw, GaussianLaw
from curador.privacy.laws.laplace import LaplaceLaw
from curador.privacy.laws.mixture import MixtureLaw
from curador.privacy.laws.normal_mixtures import Mixture, MixtureKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from curador.numerics.rounding import FloatArray


SMALLEST, LARGEST = 1e-100, 1e100


class Direction(enum.Enum):
    """P is the world with the person, who leaves; or the world without, to which he or she comes."""

    LEAVES = "leaves"
    COMES = "comes"


@dataclass(slots=True)
class Side:
    """Laws being gathered."""

    gaussians: list[float] = field(default_factory=list[float])
    spread: float = 0.0
    laplaces: list[tuple[float, float, float, int]] = field(default_factory=list[tuple[float, float, float, int]])
    discretes: list[tuple[Fraction, int, int]] = field(default_factory=list[tuple[Fraction, int, int]])
    points: list[tuple[Fraction, int, int]] = field(default_factory=list[tuple[Fraction, int, int]])
    thetas: list[tuple[Fraction, int, int]] = field(default_factory=list[tuple[Fraction, int, int]])
    mixtures: list[Mixture] = field(default_factory=list[Mixture])
    others: list[Moments] = field(default_factory=list[Moments])
    log_finite: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    rhos: list[float] = field(default_factory=list[float])  # zCDP known by its ρ alone: only the Rényi reading can use it
    missing: str | None = None  # the name of a record that has no law on this side

    @property
    def rho(self) -> float:
        """Σ ρ of what is known by its ρ alone. Rounds: up."""
        return math.fsum(self.rhos) * (1 + 4 * UNIT)

    def gaussian(self, mu2: float, count: int, spread: float = 0.0) -> None:
        """Add `count` Gaussian losses of μ² known within a relative spread."""
        self.gaussians.append(mu2 * count)
        self.spread = max(self.spread, spread)

    def _require_moderate(self, laws: list[LaplaceLaw | ThreePointLaw]) -> None:
        """Refuse losses whose squares leave the floats: an underflow to 0 would be a claim."""
        sizes = [math.sqrt(mu2) for mu2 in (*self.gaussians, *self.rhos)]
        sizes += [float(end) for law in laws for end in (law.epsilon.min(), law.epsilon.max())]
        if not all(SMALLEST < size < LARGEST for size in sizes):
            raise NumericalFailure(
                subject="losses", rule=f"must be between {SMALLEST:g} and {LARGEST:g} for a certified answer", got="others"
            )

    def infinite(self, low: Fraction, high: Fraction, count: int) -> None:
        """Add `count` independent chances, between low and high, of an infinite loss."""
        if high > 0:
            self.log_finite.append((count * _log1m(float_up(high)), count * _log1m(float_down(low))))

    def total(self) -> tuple[Total, Interval]:
        """Return the families and the interval of P[L = ∞]."""
        laws: list[LaplaceLaw | ThreePointLaw] = []
        if self.laplaces:
            rows = sorted(self.laplaces)
            epsilon, inverse, ranged, count = (_floats(row[i] for row in rows) for i in range(4))
            laws.append(LaplaceLaw(epsilon, inverse, ranged, count))
        if self.discretes:
            laws.append(_discrete_laplace(self.discretes))
        if self.points:
            keyed = sorted((_float(row[0]), row[1], row[2], row[0]) for row in self.points)
            exact = tuple(row[3] for row in keyed)
            epsilon, categories, count = (_floats(row[i] for row in keyed) for i in range(3))
            laws.append(ThreePointLaw(epsilon, categories, count, exact))
        self._require_moderate(laws)
        families: list[Moments] = []
        if (mu2 := math.fsum(self.gaussians)) > 0.0:
            families.append(GaussianLaw(mu2, self.spread))
        families.extend(laws)
        sizes: dict[int, list[tuple[Fraction, int, int]]] = {}
        for row in sorted(self.thetas):  # coarser grids need more terms: a law for each size
            sizes.setdefault(min(math.frexp(_float(row[0]))[1], 5), []).append(row)
        families.extend(
            DiscreteGaussianLaw(tuple(r[0] for r in rows), tuple(r[1] for r in rows), _floats(r[2] for r in rows))
            for rows in sizes.values()
        )
        families.extend(_mixture_laws(self.mixtures))
        families.extend(sorted(self.others, key=_place))
        if not self.log_finite:
            return Total(tuple(families)), Interval(0.0, 0.0)
        worst, best = (math.fsum(pair[i] for pair in self.log_finite) for i in (0, 1))
        if best == -math.inf:  # the loss is infinite for certain: nothing else matters
            return Total(()), Interval(1.0, 1.0)
        if families:
            families.append(SurvivalLaw(best))
        return Total(tuple(families)), Interval(
            -math.expm1(best) * (1 - 16 * UNIT), min(1.0, -math.expm1(worst) * (1 + 16 * UNIT))
        )


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides being gathered: one and the same object where no record has two faces."""

    above: Side
    below: Side
    both: tuple[Side, ...] = field(init=False)  # where a law goes that is its record's worst case and attained

    def __post_init__(self) -> None:
        object.__setattr__(self, "both", (self.above,) if self.above is self.below else (self.above, self.below))


def _place(law: Moments) -> tuple[object, ...]:
    """A place for each law that does not depend on the order in which its record came."""
    match law:
        case FiniteLaw():
            return ("finite", law.count, float(law.losses @ law.masses), float(law.losses.sum()))
        case _:
            return (type(law).__name__,)


def _mixture_laws(mixtures: list[Mixture]) -> list[MixtureLaw]:
    """One law a shape; equal pairs are one pair with their counts added."""
    counts: dict[MixtureKind, int] = {}
    first: dict[MixtureKind, Mixture] = {}
    for pair in mixtures:
        key = pair.kind
        first.setdefault(key, pair)
        counts[key] = counts.get(key, 0) + pair.count
    shapes: dict[tuple[int, int, int], list[Mixture]] = {}
    for key in sorted(counts):
        pair = first[key]
        shapes.setdefault(pair.shape, []).append(pair if pair.count == counts[key] else replace(pair, count=counts[key]))
    return [MixtureLaw(tuple(shapes[shape])) for shape in sorted(shapes)]


def _log1m(mass: float) -> float:
    return math.log1p(-mass) if mass < 1.0 else -math.inf


def _discrete_laplace(records: list[tuple[Fraction, int, int]]) -> LaplaceLaw:
    rows = sorted((_float(scale), shift, count, scale) for scale, shift, count in records)
    return LaplaceLaw(
        epsilon=np.array([shift / scale for scale, shift, _, _ in rows]),
        inverse_scale=np.array([1.0 / scale for scale, _, _, _ in rows]),
        bounded_range=np.zeros(len(rows)),
        count=_floats(count for _, _, count, _ in rows),
        exact=tuple((scale, shift) for _, shift, _, scale in rows),
    )


def _float(exact: Fraction) -> float:
    """The nearest float; several times faster than float(), which asks the number tower."""
    top, bottom = exact.as_integer_ratio()
    return top / bottom


def _floats(values: Iterable[float | Fraction]) -> FloatArray:
    return np.array([float(value) for value in values])
