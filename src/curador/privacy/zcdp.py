"""The exact scalars of a loss: ε of pure privacy, (ρ, δ) of approximate zero-concentrated privacy.

These are what the interactive ledger adds up, so they are rationals, rounded up where the truth is irrational.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

import numpy as np

from curador.errors import NotPrivate
from curador.numerics.exact import exact_sum
from curador.numerics.logspace import sinh_minus
from curador.numerics.rounding import float_up, log_up, up
from curador.privacy.convert import laplace_to_rho, pure_to_rho
from curador.privacy.laws.shuffled import rho_bound
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

Amounts = tuple[Fraction, Fraction]


def pure_epsilon(loss: Loss) -> Fraction | None:
    """Return Σ ε, None if a part is not pure. Rounds: up where irrational."""
    singles = [(single_pure(record), count) for record, count in parts_of(loss)]
    if any(single is None for single, _ in singles):
        return None
    return exact_sum(count * single for single, count in singles if single is not None)


def concentrated(loss: Loss) -> Amounts | None:
    """Return (Σ ρ, Σ δ): the whole is Σδ-approximately Σρ-zCDP. Source: [BS16]. Rounds: up."""
    amounts: list[Amounts] = []
    for record, count in parts_of(loss):
        single = single_concentrated(record)
        if single is None:
            return None
        amounts.append((count * single[0], count * single[1]))
    return exact_sum(rho for rho, _ in amounts), exact_sum(delta for _, delta in amounts)


def rho(loss: Loss) -> Fraction | float:
    """Return ρ where the loss is ρ-zCDP with δ = 0, else +∞."""
    amounts = concentrated(loss)
    return math.inf if amounts is None or amounts[1] > 0 else amounts[0]


@singledispatch
def single_pure(record: Loss) -> Fraction | None:
    """The ε of one record."""
    raise NotPrivate(f"no rule for {type(record).__name__}: it is not one of curador's loss records")


@single_pure.register(LaplaceLoss)
@single_pure.register(RandomizedResponseLoss)
@single_pure.register(BoundedRange)
@single_pure.register(Pure)
def _(record: LaplaceLoss | RandomizedResponseLoss | BoundedRange | Pure) -> Fraction | None:
    """Claim: ε, by definition; a bounded range of ε is ε-private. Source: [DDR20]."""
    return record.epsilon0


@single_pure.register
def _(record: Shuffled) -> Fraction | None:
    """Claim: ε, that of one report: shuffling is post-processing. The pair attains it, where every label is +."""
    return Fraction(0) if record.tells_nothing else record.epsilon0


@single_pure.register
def _(record: DiscreteLaplaceLoss) -> Fraction | None:
    return record.sensitivity / record.scale


@single_pure.register(Approx)
@single_pure.register(Concentrated)
@single_pure.register(KeySelection)
@single_pure.register(GaussianLoss)
@single_pure.register(DiscreteGaussianLoss)
@single_pure.register(DiscreteGaussianVectorLoss)
def _(
    record: Approx | Concentrated | KeySelection | GaussianLoss | DiscreteGaussianLoss | DiscreteGaussianVectorLoss,
) -> Fraction | None:
    """Claim: pure only where nothing is spent, or where δ = 0."""
    match record:
        case Approx():
            return record.epsilon0 if record.delta0 == 0 else None
        case Concentrated():
            return Fraction(0) if record.rho0 == 0 and record.delta0 == 0 else None
        case GaussianLoss():
            return Fraction(0) if record.mu == 0 else None
        case DiscreteGaussianLoss():
            return Fraction(0) if record.sensitivity == 0 else None
        case DiscreteGaussianVectorLoss():
            return Fraction(0) if record.sensitivity_squared == 0 else None
        case KeySelection():
            return Fraction(0) if record.sensitivity == 0 and record.delta0 == 0 else None


@single_pure.register
def _(record: Finite) -> Fraction | None:
    """Claim: the largest |log p/q|, +∞ where one of them is 0. Rounds: up."""
    rows = [(p, q) for p, q in zip(record.p, record.q, strict=True) if (p, q) != (0, 0)]
    if any(p == 0 or q == 0 for p, q in rows):
        return None
    worst = max(max(p / q, q / p) for p, q in rows)
    return Fraction(0) if worst == 1 else Fraction(log_up(worst))


@single_pure.register
def _(record: Subsampled) -> Fraction | None:
    """Claim: log(1 + q(e^ε − 1)) for either scheme. Source: [BBG18, Thm. 8, Thm. 9]. Rounds: up."""
    base = pure_epsilon(record.base)
    if base is None:
        return None
    epsilon = float_up(base)
    if epsilon > 700:
        return base
    return min(base, Fraction(up(math.log1p(up(float_up(record.rate) * up(math.expm1(epsilon), 4), 2)), 4)))


@single_pure.register
def _(record: Group) -> Fraction | None:
    base = pure_epsilon(record.base)
    return None if base is None else record.size * base


@singledispatch
def single_concentrated(record: Loss) -> Amounts | None:
    """(ρ, δ) of one record; by default from its pure ε, ρ = ε tanh(ε/2). Source: randomized response is the worst case."""
    epsilon = single_pure(record)
    return None if epsilon is None else (pure_to_rho(epsilon), Fraction(0))


@single_concentrated.register
def _(record: GaussianLoss) -> Amounts | None:
    return record.mu * record.mu / 2, Fraction(0)


@single_concentrated.register
def _(record: DiscreteGaussianLoss) -> Amounts | None:
    """Claim: Δ²/2σ², exactly. Source: [CKS20]."""
    return record.sensitivity**2 / (2 * record.sigma2), Fraction(0)


@single_concentrated.register
def _(record: DiscreteGaussianVectorLoss) -> Amounts | None:
    """Claim: S/2σ², exactly: the entries are independent releases, and Σ v² ≤ S. Source: [CKS20]."""
    return record.sensitivity_squared / (2 * record.sigma2), Fraction(0)


@single_concentrated.register
def _(record: KeySelection) -> Amounts | None:
    return record.keys * record.sensitivity**2 / (2 * record.sigma2), record.delta0


@single_concentrated.register
def _(record: Concentrated) -> Amounts | None:
    return record.rho0, record.delta0


@single_concentrated.register
def _(record: Approx) -> Amounts | None:
    """Claim: δ-approximately ε tanh(ε/2)-zCDP, by the four-point worst case. Source: [KOV15, Thm. 3.3]."""
    return pure_to_rho(record.epsilon0), record.delta0


@single_concentrated.register
def _(record: BoundedRange) -> Amounts | None:
    """Claim: ε²/8, and never more than any ε-private mechanism. Source: [CR21]; also [DDR20]."""
    return min(record.epsilon0**2 / 8, pure_to_rho(record.epsilon0)), Fraction(0)


@single_concentrated.register
def _(record: LaplaceLoss) -> Amounts | None:
    """Claim: ε − 1 + e^(−ε); proof in docs/explanation/zcdp.md. Rounds: up."""
    return laplace_rho(record.epsilon0, 0.0), Fraction(0)


@single_concentrated.register
def _(record: DiscreteLaplaceLoss) -> Amounts | None:
    """Claim: ε − (1 − e^(−ε)) x/sinh x with x = 1/scale; proof in docs/explanation/zcdp.md. Rounds: up."""
    return laplace_rho(record.sensitivity / record.scale, float(1 / record.scale)), Fraction(0)


@single_concentrated.register
def _(record: Shuffled) -> Amounts | None:
    """Claim: sup over α of D_α/α, from above on a grid of orders, and never more than ε tanh(ε/2). Rounds: up."""
    pure = pure_to_rho(Fraction(0) if record.tells_nothing else record.epsilon0)
    if record.tells_nothing or record.reports == 1:
        return pure, Fraction(0)
    return min(pure, Fraction(rho_bound(record.epsilon0, record.reports, record.variation))), Fraction(0)


def laplace_rho(epsilon: Fraction, inverse_scale: float) -> Fraction:
    """Return sup over α of D_α/α for Laplace noise on a grid of step 1/(inverse scale), 0 for none. Rounds: up.

    ε − 1 + e^(−ε) is the sum of a positive series for small ε; the grid's part (1 − e^(−ε))(1 − x/sinh x) is added.
    """
    grid = 0.0
    if inverse_scale > 0.0:
        step = min(inverse_scale, 700.0)
        shortfall = float(sinh_minus(np.array([step]))[0]) / math.sinh(step)
        grid = -math.expm1(-float_up(epsilon)) * shortfall
    return min(laplace_to_rho(epsilon) + Fraction(up(grid, 24)), pure_to_rho(epsilon))
