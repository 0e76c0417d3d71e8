"""From loss records to laws: a dominating one above and an attainable one below, per direction.

`above` bounds what the records allow (its pair dominates every mechanism that a record describes); `below` is the loss of
some mechanism that the records describe, so that no honest accounting can go lower. For noise the two are the same.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch

import numpy as np

from curador.errors import NotPrivate
from curador.numerics.rounding import UNIT, float_up
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.laws import cells, pairs
from curador.privacy.laws.discrete_gaussian import SMALLEST, gaussian_atoms
from curador.privacy.laws.finite import FiniteLaw
from curador.privacy.laws.gaussian import sandwich
from curador.privacy.laws.normal_mixtures import Mixture
from curador.privacy.laws.rows import directed_rows, dominating_rows, finite_rows, response_rows
from curador.privacy.laws.shapes import Shape, gaussian_shape
from curador.privacy.laws.shuffled import MOST_ALONE, MOST_COMPOSED, twins
from curador.privacy.laws.side import Side
from curador.privacy.laws.vectors import attained_shift, attained_square, worst_shift
from curador.privacy.loss import Loss, parts_of
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    Group,
    KeySelection,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
    Shuffled,
    Subsampled,
)

FINE = 2e-8
"""Largest relative doubt of μ² at which discrete Gaussian noise is accounted as a Gaussian, by the sandwich."""


class Direction(enum.Enum):
    """P is the world with the person, who leaves; or the world without, to which he or she comes."""

    LEAVES = "leaves"
    COMES = "comes"


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides being gathered: one and the same object where no record has two faces."""

    above: Side
    below: Side

    @property
    def both(self) -> tuple[Side, ...]:
        """Where a law goes that is its record's worst case and attained."""
        return (self.above,) if self.above is self.below else (self.above, self.below)


def sides(loss: Loss, direction: Direction) -> tuple[Side, Side]:
    """Return the laws above and below all records of the loss, in one direction. The same object where they agree."""
    parts = parts_of(loss)
    above = Side()
    out = Sides(above, Side() if any(_two_faced(record, count) for record, count in parts) else above)
    for record, count in parts:
        law(record, count, direction, out)
    return out.above, out.below


def _two_faced(record: Loss, count: int) -> bool:
    if isinstance(record, DiscreteGaussianVectorLoss):
        if worst_shift(record.sensitivity_squared, record.dimension) is not None:
            return record.sigma2 < SMALLEST
        fine = _vector_doubt(record, count) <= FINE
        return not fine or attained_square(record.sensitivity_squared, record.dimension) < record.sensitivity_squared
    if isinstance(record, DiscreteGaussianLoss):
        return record.sigma2 < SMALLEST  # its tail is cut off, upwards above and away below
    return isinstance(record, (BoundedRange, Concentrated, KeySelection, Shuffled, Subsampled, Group))


def one_sided(loss: Loss) -> bool:
    """Whether the two directions differ."""
    return any(isinstance(record, (Finite, Subsampled, Group)) for record, _ in parts_of(loss))


@singledispatch
def law(record: Loss, count: int, direction: Direction, out: Sides) -> None:
    """Add the laws of `count` such records to both sides."""
    del count, direction, out
    raise NotPrivate(f"no numerical rule for {type(record).__name__}")


@law.register
def _(record: GaussianLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    if record.mu > 0:
        mu2 = float(record.mu * record.mu)
        for side in out.both:
            side.gaussian(mu2, count)


@law.register
def _(record: DiscreteGaussianLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    _discrete_gaussian(record.sigma2, record.sensitivity, count, out)


def _discrete_gaussian(sigma2: Fraction, shift: int, count: int, out: Sides) -> None:
    """Claim: a fine grid by the sandwich, a coarse one by the theta series, a very coarse one atom by atom."""
    if shift == 0:
        return
    near = sigma2.numerator / sigma2.denominator
    spread = sandwich(near, count, shift / math.sqrt(near))
    if spread <= FINE:
        mu2 = shift * shift * sigma2.denominator / sigma2.numerator  # integers: rounded once
        for side in out.both:
            side.gaussian(mu2, count, spread)
    elif sigma2 >= SMALLEST:
        for side in out.both:
            side.thetas.append((sigma2, shift, count))
    else:
        finite, lost = _gaussian_atoms(sigma2, shift, count)
        for side in out.both:
            side.others.append(finite)
        out.above.infinite(Fraction(0), Fraction(lost), count)


@law.register
def _(record: DiscreteGaussianVectorLoss, count: int, direction: Direction, out: Sides) -> None:
    """Claim: the worst shift where it is known; else above by the sandwich alone, below by a shift that occurs.

    Where the grid is too coarse for the sandwich only ρ is known above: the Rényi reading speaks.
    """
    del direction
    sigma2, squared, dimension = record.sigma2, record.sensitivity_squared, record.dimension
    worst = worst_shift(squared, dimension)
    if worst is not None:
        for shift in set(worst):
            _discrete_gaussian(sigma2, shift, count * worst.count(shift), out)
        return
    spread = _vector_doubt(record, count)
    if spread <= FINE:
        out.above.gaussian(squared * sigma2.denominator / sigma2.numerator, count, spread)
        if out.below is not out.above:
            reached = attained_square(squared, dimension)
            out.below.gaussian(reached * sigma2.denominator / sigma2.numerator, count, spread)
        return
    if math.isinf(spread):
        out.above.missing = "DiscreteGaussianVectorLoss"
    else:
        out.above.gaussian(squared * sigma2.denominator / sigma2.numerator * (1.0 + spread), count)
    for shift in attained_shift(squared, dimension):
        _discrete_gaussian(sigma2, shift, count, Sides(Side(), out.below))


def _vector_doubt(record: DiscreteGaussianVectorLoss, count: int) -> float:
    near = float(record.sigma2)
    return sandwich(near, count * record.dimension, math.sqrt(record.sensitivity_squared / near))


def _gaussian_atoms(sigma2: Fraction, shift: int, count: int) -> tuple[FiniteLaw, float]:
    """Atoms of the discrete Gaussian loss, and a bound of the mass left out."""
    atoms, lost = gaussian_atoms(sigma2, shift)
    grid = (Fraction(shift * shift) / (2 * sigma2), Fraction(shift) / sigma2)
    return FiniteLaw(atoms.losses, atoms.masses, count, atoms.error, balanced=False, grid=grid), lost


@law.register
def _(record: LaplaceLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    if record.epsilon0 > 0:
        for side in out.both:
            side.laplaces.append((float(record.epsilon0), 0.0, 0.0, count))


@law.register
def _(record: DiscreteLaplaceLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    if record.sensitivity > 0:
        for side in out.both:
            side.discretes.append((record.scale, record.sensitivity, count))


@law.register
def _(record: RandomizedResponseLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    if record.epsilon0 > 0:
        for side in out.both:
            side.points.append((record.epsilon0, record.categories, count))


@law.register
def _(record: BoundedRange, count: int, direction: Direction, out: Sides) -> None:
    """Claim: above, the closed-form dominating pair; below, randomized response of ε/2, whose log-ratios span ε."""
    del direction
    if record.epsilon0 > 0:
        out.above.laplaces.append((float(record.epsilon0), 0.0, 1.0, count))
        out.below.points.append((record.epsilon0 / 2, 2, count))


@law.register
def _(record: Pure, count: int, direction: Direction, out: Sides) -> None:
    """Claim: randomized response is both the worst case and attained. Source: [KOV15, Thm. 3.3]."""
    del direction
    if record.epsilon0 > 0:
        for side in out.both:
            side.points.append((record.epsilon0, 2, count))


@law.register
def _(record: Approx, count: int, direction: Direction, out: Sides) -> None:
    """Claim: infinite loss with probability δ, else randomized response. Source: [KOV15, Thm. 3.3]."""
    del direction
    for side in out.both:
        side.infinite(record.delta0, record.delta0, count)
        if record.epsilon0 > 0:
            side.points.append((record.epsilon0, 2, count))


@law.register
def _(record: Concentrated, count: int, direction: Direction, out: Sides) -> None:
    """Claim: Gaussian noise of μ² = 2ρ is ρ-zCDP, so it bounds from below; above, only the Rényi reading speaks."""
    del direction
    out.above.missing = "Concentrated"
    if record.rho0 > 0:
        out.above.rhos.append(count * float_up(record.rho0))
        out.below.gaussian(float(2 * record.rho0), count)
    out.above.infinite(record.delta0, record.delta0, count)
    out.below.infinite(record.delta0, record.delta0, count)


@law.register
def _(record: KeySelection, count: int, direction: Direction, out: Sides) -> None:
    """Claim: δ and `keys` discrete Gaussian losses above; below, a release in which the person held no key at all."""
    del direction
    _discrete_gaussian(record.sigma2, record.sensitivity, count * record.keys, Sides(out.above, Side()))
    out.above.infinite(Fraction(0), record.delta0, count)


@law.register
def _(record: Finite, count: int, direction: Direction, out: Sides) -> None:
    """Claim: the pair itself, atom by atom."""
    p, q = (record.p, record.q) if direction is Direction.LEAVES else (record.q, record.p)
    _finite(list(zip(p, q, strict=True)), count, out)


@law.register
def _(record: Shuffled, count: int, direction: Direction, out: Sides) -> None:
    """Claim: twins of the pair that dominates, which has mirror worlds. Source: docs/explanation/shuffling.md."""
    del direction
    if record.tells_nothing:
        return
    most = MOST_ALONE if count == 1 else MOST_COMPOSED
    both = twins(record.epsilon0, record.reports, record.variation, most)
    out.above.others.append(both.above if count == 1 else replace(both.above, count=count))
    out.above.infinite(Fraction(0), Fraction(both.beyond), count)  # anywhere above all losses; at ε₀ it would drown the sum
    out.below.others.append(both.below if count == 1 else replace(both.below, count=count))


def _finite(rows: list[tuple[Fraction, Fraction]], count: int, out: Sides) -> None:
    alone = sum((p for p, q in rows if q == 0), Fraction(0))
    shared = [(p, q) for p, q in rows if p > 0 and q > 0]
    for side in out.both:
        side.infinite(alone, alone, count)
    if alone < 1:
        losses = np.array([_log_ratio(p, q) for p, q in shared])
        masses = np.array([float(p / (1 - alone)) for p, _ in shared])
        balanced = alone == 0 and sum(q for _, q in shared) == 1
        digits = max(math.log(max(p.numerator * q.denominator, p.denominator * q.numerator)) for p, q in shared)
        finite = FiniteLaw(losses, masses, count, 32 * UNIT, balanced=balanced, doubt=4 * UNIT * digits)
        for side in out.both:
            side.others.append(finite)


def _log_ratio(p: Fraction, q: Fraction) -> float:
    ratio = p / q
    return (
        math.log1p(float(ratio - 1))
        if Fraction(1, 2) < ratio < 2
        else math.log(ratio.numerator) - math.log(ratio.denominator)
    )


@law.register
def _(record: Group, count: int, direction: Direction, out: Sides) -> None:
    """Claim: under Poisson sampling a group of k enters as Binomial(k, q) shifts of the Gaussian. Source: [Gan24]."""
    base = record.base
    shape = gaussian_shape(base.base, count, base.rate) if isinstance(base, Subsampled) else None
    if shape is None or not isinstance(base, Subsampled):
        raise NotPrivate(f"no group rule is proved for {type(base).__name__} losses of this kind")
    rate, size = base.rate, record.size
    weights = tuple(float(math.comb(size, j) * rate**j * (1 - rate) ** (size - j)) for j in range(size + 1))
    _mixture(shape, weights, count, direction, out)


@law.register
def _(record: Subsampled, count: int, direction: Direction, out: Sides) -> None:
    shape = gaussian_shape(record.base, count, record.rate)
    weights = (float(1 - record.rate), float(record.rate))
    if record.scheme == "poisson" and record.relation is not ADD_OR_REMOVE_ONE:
        if shape is None:
            raise NotPrivate("poisson subsampling under replace_one is proved for Gaussian noise only")
        for side, mu, spread in _sided(shape, out):
            side.mixtures.append(Mixture(1.0 / mu, weights, weights, -1, count, spread))
    elif record.scheme == "poisson" and shape is not None:
        _mixture(shape, weights, count, direction, out)
    else:
        _cells(record, shape, count, direction, out)


def _mixture(
    shape: Shape,
    weights: tuple[float, ...],
    count: int,
    direction: Direction,
    out: Sides,
) -> None:
    p, q = (weights, (1.0,)) if direction is Direction.LEAVES else ((1.0,), weights)
    for side, mu, spread in _sided(shape, out):
        side.mixtures.append(Mixture(1.0 / mu, p, q, 1, count, spread))


def _sided(shape: Shape, out: Sides) -> list[tuple[Side, float, float]]:
    """Each side with its μ and what doubt of μ² is left: a fine grid's doubt is round-off, a coarser one parts the sides."""
    doubt = shape.doubt
    if doubt <= 1e-14:
        return [(out.above, shape.above, doubt), (out.below, shape.below, doubt)]
    up, down = math.sqrt(1 + doubt), math.sqrt(1 - doubt)
    return [(out.above, shape.above * up, 4 * UNIT), (out.below, shape.below * down, 4 * UNIT)]


def _cells(
    record: Subsampled,
    shape: Shape | None,
    count: int,
    direction: Direction,
    out: Sides,
) -> None:
    """Subsampling of everything else: exact where the base is finite, by the two twins of its cells otherwise.

    Claim   Without replacement the symmetric pair dominates and none has it: below stands the directed pair of the data set
            in which everybody else holds the other value, which is that of a Poisson sample of the same rate.
    Source  [BBG18, Thm. 9] above; docs/explanation/accounting.md, "What a reading is", below.
    """
    parts = parts_of(record.base)
    if not parts or record.base.pure_epsilon == 0:
        return
    leaves = direction is Direction.LEAVES
    rows = finite_rows(record.base) if shape is None else None
    if rows is not None:
        _finite(dominating_rows(rows, record, leaves=leaves), count, Sides(out.above, out.above))
        if out.below is not out.above:
            _finite(directed_rows(rows, record.rate, leaves=leaves), count, Sides(out.below, out.below))
        return
    upper, lower = _base_cells(record.base, shape)
    for pair, side, build in ((upper, out.above, cells.above), (lower, out.below, cells.below)):
        if pair is None:  # a bounded range: attained by randomized response of half its length
            base = next(part for part, _ in parts if isinstance(part, BoundedRange))
            rows = directed_rows(response_rows(base.epsilon0 / 2, 2, Fraction(0)), record.rate, leaves=leaves)
            _finite(rows, count, Sides(side, side))
            continue
        if record.scheme == "poisson" or side is out.below:
            mixed = cells.poisson(pair, record.rate, leaves=leaves)
        else:
            mixed = cells.without_replacement(pair, record.rate)
        built = build(mixed, count)
        finite, beyond = built if isinstance(built, tuple) else (built, 0.0)
        side.others.append(finite)
        side.infinite(Fraction(0), Fraction(beyond), count)


def _base_cells(base: Loss, shape: Shape | None) -> tuple[cells.CellPair | None, cells.CellPair | None]:
    parts = parts_of(base)
    if shape is not None:
        doubt = shape.doubt
        up, down = (1 + 1e-12, 1 - 1e-12) if doubt <= 1e-12 else (math.sqrt(1 + doubt), math.sqrt(1 - doubt))
        return pairs.gaussian_cells(shape.above * up), pairs.gaussian_cells(shape.below * down)
    if len(parts) == 1 and parts[0][1] == 1:
        match parts[0][0]:
            case LaplaceLoss(epsilon0=epsilon0):
                pair = pairs.laplace_cells(float(epsilon0))
                return pair, pair
            case DiscreteLaplaceLoss(scale=scale, sensitivity=shift):
                pair = pairs.laplace_cells(float(shift / scale), scale=float(scale), sensitivity=float(shift))
                return pair, pair
            case BoundedRange(epsilon0=epsilon0):
                return pairs.bounded_range_cells(float(epsilon0)), None
            case _:
                pass
    raise NotPrivate(
        "no subsampling rule is proved for this base: it is neither finite, nor Gaussian, nor a single noise record.\n"
        "Hint: subsample each mechanism by itself if each sees its own sample."
    )
