"""Discrete Gaussian noise: on an integer, on a vector of integers, and on the counts by which keys are shown.

Which integer vectors may be the difference of two neighbours: the worst of them where it is known, and one that occurs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from attrs import field, frozen

from curador.errors import NotPrivate
from curador.numerics.exact import POSITIVE, PROBABILITY, WHOLE, whole_from
from curador.numerics.rounding import float_up, up
from curador.privacy.adjacency import Adjacency, maybe_adjacency
from curador.privacy.kinds.promises import Concentrated, no_group, no_sample
from curador.privacy.laws.finite import FiniteLaw
from curador.privacy.laws.gaussian import SMALLEST, gaussian_atoms, sandwich
from curador.privacy.laws.resolve import doubt_of_sample
from curador.privacy.laws.side import Direction, Side, Sides
from curador.privacy.loss import Loss, Scheme
from curador.privacy.rules import (
    AmountPair,
    Traits,
    adjacency_word,
    basic_amounts,
    closed_tradeoff,
    cut_bound,
    describe,
    exact_rows,
    gaussian_squares,
    grouped,
    law,
    mean_loss,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
    say_nothing,
    single_concentrated,
    single_pure,
    store_as,
    two_faced,
    unsampled,
)

# ---- differences of neighbours ---------------------------------------------------------------------------------------------


ENOUGH = 4
"""Every natural number is a sum of four squares (Lagrange)."""


def worst_shift(squared: int, dimension: int) -> tuple[int, ...] | None:
    """Return the entries of an integer vector that dominates all those with |v|² ≤ `squared`; None where no one does so.

    Claim   With independent, equal, log-concave noise on the entries, every integer vector of `dimension` entries and
            |v|² ≤ `squared` has at every ε no larger a δ than the returned one, which is among them.
    Proof   Log-concave noise has a monotone likelihood ratio, so sup P(S) − e^ε Q(S) is taken by half-lines, and
            P[x ≤ c] − e^ε P[x ≤ c − a] grows with a: a longer shift of one entry dominates, and products keep that. One entry
            moves by at most ⌊√squared⌋. For squared ≤ 3 every entry moves by at most 1, and at most `squared` entries do.
    """
    if dimension == 1:
        root = math.isqrt(squared)
        return (root,) if root else ()
    return (1,) * min(squared, dimension) if squared < ENOUGH else None


def attained_shift(squared: int, dimension: int) -> tuple[int, ...]:
    """Return the non-zero entries of some integer vector with |v|² ≤ `squared`: each the largest that what is left allows."""
    entries: list[int] = []
    while squared and len(entries) < dimension:
        entries.append(math.isqrt(squared))
        squared -= entries[-1] ** 2
    return tuple(entries)


def attained_square(squared: int, dimension: int) -> int:
    """Return |v|² ≤ `squared` of some integer vector of `dimension` entries: all of it from four entries on."""
    if dimension >= ENOUGH:
        return squared
    return sum(entry * entry for entry in attained_shift(squared, dimension))


# ---- the records -----------------------------------------------------------------------------------------------------------


FINE = 2e-8
"""Largest relative doubt of μ² at which discrete Gaussian noise is accounted as a Gaussian, by the sandwich."""


# ---- an integer -----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class DiscreteGaussianLoss(Loss):
    """Discrete Gaussian noise, P[k] ∝ exp(−k²/2σ²), on an integer that moves by at most `sensitivity`.

    Source: [CKS20] for zCDP; the exact law for δ(ε).
    """

    sigma2: Fraction = field(converter=POSITIVE)
    sensitivity: int = field(converter=whole_from(0))
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)

    def __hash__(self) -> int:
        # a rational's own hash inverts its denominator modulo a prime: slow for sums of many records
        return hash((self.sigma2.as_integer_ratio(), self.sensitivity, self.adjacency))


store_as(
    "DiscreteGaussianLoss",
    DiscreteGaussianLoss,
    write=lambda loss: {
        "sigma2": str(loss.sigma2),
        "sensitivity": loss.sensitivity,
        "relation": adjacency_word(loss.adjacency),
    },
    read=lambda has: DiscreteGaussianLoss(
        sigma2=has.pop("sigma2"), sensitivity=has.pop("sensitivity"), adjacency=has.pop("relation", None)
    ),
)
describe(
    DiscreteGaussianLoss,
    Traits(
        directional=False,
        gaussian=True,
        attains_pure=True,
        attains_infinity=True,
        follows_a_line=False,
        long_rho=False,
        reads_itself=False,
    ),
)
say_nothing(
    DiscreteGaussianLoss,
    basic_amounts,
    closed_tradeoff,
    exact_rows,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
    unsampled,
)


@single_pure.of(DiscreteGaussianLoss)
def _(record: DiscreteGaussianLoss) -> Fraction | None:
    """Claim: pure only where nothing is spent."""
    return Fraction(0) if record.sensitivity == 0 else None


@single_concentrated.of(DiscreteGaussianLoss)
def _(record: DiscreteGaussianLoss) -> AmountPair | None:
    """Claim: Δ²/2σ², exactly. Source: [CKS20]."""
    return record.sensitivity**2 / (2 * record.sigma2), Fraction(0)


@two_faced.of(DiscreteGaussianLoss)
def _(record: DiscreteGaussianLoss, count: int) -> bool:
    """Claim: where the grid is very coarse its tail is cut off, upwards above and away below."""
    del count
    top, bottom = record.sigma2.as_integer_ratio()
    return top * SMALLEST.denominator < bottom * SMALLEST.numerator  # integers: comparing rationals is dear


@law.of(DiscreteGaussianLoss)
def _(record: DiscreteGaussianLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    add_discrete_gaussian(record.sigma2, record.sensitivity, count, out)


def add_discrete_gaussian(sigma2: Fraction, shift: int, count: int, out: Sides) -> None:
    """Add the laws of noise of σ² on integers that move by `shift`.

    Claim   A fine grid by the sandwich, a coarse one by the theta series, a very coarse one atom by atom.
    """
    if shift == 0:
        return
    top, bottom = sigma2.as_integer_ratio()
    near = top / bottom
    spread = sandwich(near, count, shift / math.sqrt(near))
    if spread <= FINE:
        mu2 = shift * shift * bottom / top  # integers: rounded once
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


def _gaussian_atoms(sigma2: Fraction, shift: int, count: int) -> tuple[FiniteLaw, float]:
    """Atoms of the discrete Gaussian loss, and a bound of the mass left out."""
    atoms, lost = gaussian_atoms(sigma2, shift)
    grid = (Fraction(shift * shift) / (2 * sigma2), Fraction(shift) / sigma2)
    return FiniteLaw(atoms.losses, atoms.masses, count, atoms.error, balanced=False, grid=grid), lost


@cut_bound.of(DiscreteGaussianLoss)
def _(record: DiscreteGaussianLoss) -> Callable[[float], float] | None:
    """Claim: D_α ≤ α Δ²/2σ², on coarse grids too. Rounds: up. Source: [CKS20, Thm. 7]."""
    if record.sigma2 >= SMALLEST:
        return None
    return lambda alpha: up(alpha * float_up(record.sensitivity**2 / (2 * record.sigma2)), 2)


@mean_loss.of(DiscreteGaussianLoss)
def _(record: DiscreteGaussianLoss) -> float | None:
    return float_up(record.sensitivity**2 / (2 * record.sigma2))


@grouped.of(DiscreteGaussianLoss)
def _(record: DiscreteGaussianLoss, size: int) -> Loss:
    """Claim: the shift grows to size · sensitivity."""
    return DiscreteGaussianLoss(sigma2=record.sigma2, sensitivity=record.sensitivity * size, adjacency=record.adjacency)


@gaussian_squares.of(DiscreteGaussianLoss)
def _(record: DiscreteGaussianLoss, count: int, rate: Fraction) -> tuple[Fraction, Fraction, float] | None:
    square = record.sensitivity**2 / record.sigma2
    return square, square, doubt_of_sample(record.sigma2, count, square, rate)


# ---- a vector -------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class DiscreteGaussianVectorLoss(Loss):
    """Discrete Gaussian noise, P[k] ∝ exp(−k²/2σ²), on each entry of a vector of integers that moves by at most √S in l2.

    Claim   Two neighbours' vectors of `dimension` integers differ by a vector v of integers with |v|² ≤ S =
            `sensitivity_squared`; each entry gets noise of its own. zCDP: S/2σ²; δ(ε): theorem 8.
    Source  [CKS20]; docs/explanation/accounting.md, theorem 8.
    """

    sigma2: Fraction = field(converter=POSITIVE)
    sensitivity_squared: int = field(converter=whole_from(0))
    dimension: int = field(converter=WHOLE)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)

    def __hash__(self) -> int:
        # a rational's own hash inverts its denominator modulo a prime: slow for sums of many records
        sigma2 = (self.sigma2.numerator, self.sigma2.denominator)
        return hash((sigma2, self.sensitivity_squared, self.dimension, self.adjacency))


store_as(
    "DiscreteGaussianVectorLoss",
    DiscreteGaussianVectorLoss,
    write=lambda loss: {
        "sigma2": str(loss.sigma2),
        "sensitivity_squared": loss.sensitivity_squared,
        "dimension": loss.dimension,
        "relation": adjacency_word(loss.adjacency),
    },
    read=lambda has: DiscreteGaussianVectorLoss(
        sigma2=has.pop("sigma2"),
        sensitivity_squared=has.pop("sensitivity_squared"),
        dimension=has.pop("dimension"),
        adjacency=has.pop("relation", None),
    ),
)
describe(
    DiscreteGaussianVectorLoss,
    Traits(
        directional=False,
        gaussian=True,
        attains_pure=True,
        attains_infinity=True,
        follows_a_line=False,
        long_rho=False,
        reads_itself=False,
    ),
)
say_nothing(
    DiscreteGaussianVectorLoss,
    basic_amounts,
    closed_tradeoff,
    cut_bound,
    exact_rows,
    noise_cells,
    own_curve,
    own_reading,
    unsampled,
)


@single_pure.of(DiscreteGaussianVectorLoss)
def _(record: DiscreteGaussianVectorLoss) -> Fraction | None:
    """Claim: pure only where nothing is spent."""
    return Fraction(0) if record.sensitivity_squared == 0 else None


@single_concentrated.of(DiscreteGaussianVectorLoss)
def _(record: DiscreteGaussianVectorLoss) -> AmountPair | None:
    """Claim: S/2σ², exactly: the entries are independent releases, and Σ v² ≤ S. Source: [CKS20]."""
    return record.sensitivity_squared / (2 * record.sigma2), Fraction(0)


@two_faced.of(DiscreteGaussianVectorLoss)
def _(record: DiscreteGaussianVectorLoss, count: int) -> bool:
    if worst_shift(record.sensitivity_squared, record.dimension) is not None:
        return record.sigma2 < SMALLEST
    fine = _vector_doubt(record, count) <= FINE
    return not fine or attained_square(record.sensitivity_squared, record.dimension) < record.sensitivity_squared


@law.of(DiscreteGaussianVectorLoss)
def _(record: DiscreteGaussianVectorLoss, count: int, direction: Direction, out: Sides) -> None:
    """Claim: the worst shift where it is known; else above by the sandwich alone, below by a shift that occurs.

    Where the grid is too coarse for the sandwich only ρ is known above: the Rényi reading speaks.
    """
    del direction
    sigma2, squared, dimension = record.sigma2, record.sensitivity_squared, record.dimension
    worst = worst_shift(squared, dimension)
    if worst is not None:
        for shift in set(worst):
            add_discrete_gaussian(sigma2, shift, count * worst.count(shift), out)
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
        add_discrete_gaussian(sigma2, shift, count, Sides(Side(), out.below))


def _vector_doubt(record: DiscreteGaussianVectorLoss, count: int) -> float:
    near = float(record.sigma2)
    return sandwich(near, count * record.dimension, math.sqrt(record.sensitivity_squared / near))


@renyi_stand_in.of(DiscreteGaussianVectorLoss)
def _(record: DiscreteGaussianVectorLoss) -> Loss | None:
    """Claim: its exact ρ; its law above may be a wider one. Source: [CKS20]."""
    return Concentrated(rho=record.sensitivity_squared / (2 * record.sigma2), adjacency=record.adjacency)


@mean_loss.of(DiscreteGaussianVectorLoss)
def _(record: DiscreteGaussianVectorLoss) -> float | None:
    return float_up(record.sensitivity_squared / (2 * record.sigma2))


@grouped.of(DiscreteGaussianVectorLoss)
def _(record: DiscreteGaussianVectorLoss, size: int) -> Loss:
    """Claim: the shift grows to size · sensitivity."""
    longer = record.sensitivity_squared * size * size
    return DiscreteGaussianVectorLoss(
        sigma2=record.sigma2, sensitivity_squared=longer, dimension=record.dimension, adjacency=record.adjacency
    )


@gaussian_squares.of(DiscreteGaussianVectorLoss)
def _(record: DiscreteGaussianVectorLoss, count: int, rate: Fraction) -> tuple[Fraction, Fraction, float] | None:
    sigma2, squared, dimension = record.sigma2, record.sensitivity_squared, record.dimension
    reached = attained_square(squared, dimension)
    most = squared if worst_shift(squared, dimension) is None else reached
    return most / sigma2, reached / sigma2, doubt_of_sample(sigma2, count * dimension, most / sigma2, rate)


# ---- keys of groups -------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class KeySelection(Loss):
    """Keys shown where a discrete-Gaussian noisy number of units passes a threshold; a unit touches at most `keys` keys.

    Claim   With probability at least 1 − δ no key held by one unit alone passes; given that, the output is a function of
            `keys` noisy counts, each moved by at most `sensitivity` grid steps: δ plus `keys` discrete Gaussian losses.
    Needs   δ ≥ 1 − (1 − P[N ≥ (τ − 1) sensitivity])^k by the exact tail, k the keys that one unit holds: `keys` where it
            comes or goes, half of them where it is replaced; counts of units, not of rows.
    """

    sigma2: Fraction = field(converter=POSITIVE)
    sensitivity: int = field(default=1, converter=whole_from(0))
    keys: int = field(converter=WHOLE)
    delta0: Fraction = field(alias="delta", converter=PROBABILITY)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)


store_as(
    "KeySelection",
    KeySelection,
    write=lambda loss: {
        "sigma2": str(loss.sigma2),
        "sensitivity": loss.sensitivity,
        "keys": loss.keys,
        "delta": str(loss.delta0),
        "relation": adjacency_word(loss.adjacency),
    },
    read=lambda has: KeySelection(
        sigma2=has.pop("sigma2"),
        sensitivity=has.pop("sensitivity", 1),
        keys=has.pop("keys"),
        delta=has.pop("delta"),
        adjacency=has.pop("relation", None),
    ),
)
describe(
    KeySelection,
    Traits(
        directional=False,
        gaussian=False,
        attains_pure=True,
        attains_infinity=False,
        follows_a_line=False,
        long_rho=False,
        reads_itself=False,
    ),
)
two_faced.is_always(True, KeySelection)
say_nothing(
    KeySelection,
    basic_amounts,
    closed_tradeoff,
    cut_bound,
    exact_rows,
    gaussian_squares,
    mean_loss,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
)


@single_pure.of(KeySelection)
def _(record: KeySelection) -> Fraction | None:
    """Claim: pure only where nothing is spent."""
    return Fraction(0) if record.sensitivity == 0 and record.delta0 == 0 else None


@single_concentrated.of(KeySelection)
def _(record: KeySelection) -> AmountPair | None:
    return record.keys * record.sensitivity**2 / (2 * record.sigma2), record.delta0


@law.of(KeySelection)
def _(record: KeySelection, count: int, direction: Direction, out: Sides) -> None:
    """Claim: δ and `keys` discrete Gaussian losses above; below, a release in which the person held no key at all."""
    del direction
    add_discrete_gaussian(record.sigma2, record.sensitivity, count * record.keys, Sides(out.above, Side()))
    out.above.infinite(Fraction(0), record.delta0, count)


@grouped.of(KeySelection)
def _(record: KeySelection, size: int) -> Loss:
    del size
    raise no_group(record)


@unsampled.of(KeySelection)
def _(record: KeySelection, scheme: Scheme) -> NotPrivate | None:
    del scheme
    return no_sample(record)
