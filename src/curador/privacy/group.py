"""Group privacy: what a loss means for k people at once.

The tight rule of each record, where there is one; pure losses of any kind multiply; the rest is refused.
"""

from __future__ import annotations

import math
from fractions import Fraction

from curador.errors import NotPrivate
from curador.numerics.rounding import float_up, up
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.loss import Composed, Loss, parts_of
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

LARGEST_SAMPLED_GROUP = 200
"""A group in a Poisson sample is a mixture of size + 1 Gaussians."""


def group(loss: Loss, size: int) -> Loss:
    """Return the loss towards a group of `size`.

    Claim   If `loss` bounds every pair of neighbours, the result bounds every pair at distance `size`.
    Source  noise records: the shift grows to size · sensitivity; pure and bounded range: ratios multiply; zCDP: [BS16,
            Prop. 1.9]; approximate: δ (e^(kε) − 1)/(e^ε − 1), the tight geometric sum; independent releases: each by itself.
    """
    if size == 1:
        return loss
    match loss:
        case Composed():
            return Composed(tuple((group(record, size), count) for record, count in loss.parts))
        case Group():
            return Group(loss.base, loss.size * size)
        case GaussianLoss():
            return GaussianLoss(mu=loss.mu * size, relation=loss.relation)
        case DiscreteGaussianLoss():
            return DiscreteGaussianLoss(sigma2=loss.sigma2, sensitivity=loss.sensitivity * size, relation=loss.relation)
        case DiscreteGaussianVectorLoss():
            longer = loss.sensitivity_squared * size * size
            return DiscreteGaussianVectorLoss(
                sigma2=loss.sigma2, sensitivity_squared=longer, dimension=loss.dimension, relation=loss.relation
            )
        case LaplaceLoss():
            return LaplaceLoss(epsilon=loss.epsilon0 * size, relation=loss.relation)
        case DiscreteLaplaceLoss():
            return DiscreteLaplaceLoss(scale=loss.scale, sensitivity=loss.sensitivity * size, relation=loss.relation)
        case BoundedRange():
            return BoundedRange(epsilon=loss.epsilon0 * size, relation=loss.relation)
        case Pure() | RandomizedResponseLoss():
            return Pure(epsilon=loss.epsilon0 * size, relation=loss.relation)
        case Approx():
            return _approximate(loss, size)
        case Concentrated() if loss.delta0 == 0:
            return Concentrated(rho=loss.rho0 * size * size, relation=loss.relation)
        case Shuffled():  # each report is ε-private whatever becomes of the others
            return Pure(epsilon=0 if loss.tells_nothing else loss.epsilon0 * size, relation=loss.relation)
        case Subsampled() | Finite():
            return _sampled(loss, size)
        case Concentrated() | KeySelection():
            raise NotPrivate(
                f"no group rule is proved for {type(loss).__name__} with delta above 0.\n"
                "Hint: convert it to Approx(epsilon=, delta=) first; its group rule is exact."
            )
        case _:
            raise NotPrivate(f"no group rule for {type(loss).__name__}")


def _sampled(loss: Subsampled | Finite, size: int) -> Loss:
    """Poisson samples of Gaussian noise have a rule of their own; else only a pure ε multiplies."""
    if isinstance(loss, Subsampled) and loss.scheme == "poisson" and loss.relation is ADD_OR_REMOVE_ONE:
        parts = [record for record, _ in parts_of(loss.base)]
        if all(isinstance(record, (GaussianLoss, DiscreteGaussianLoss, DiscreteGaussianVectorLoss)) for record in parts):
            if size > LARGEST_SAMPLED_GROUP:
                raise NotPrivate(f"groups in a subsample are accounted up to {LARGEST_SAMPLED_GROUP} people; got {size}")
            return Group(loss, size)
    epsilon = loss.pure_epsilon
    if epsilon is None:
        raise NotPrivate(f"no group rule is proved for this {type(loss).__name__} loss: it is neither pure nor Gaussian")
    return Pure(epsilon=size * epsilon, relation=loss.adjacency)


def _approximate(loss: Approx, size: int) -> Loss:
    epsilon, delta = float_up(loss.epsilon0), float_up(loss.delta0)
    if epsilon * size < 690.0:
        ratio = float(size) if epsilon == 0.0 else up(math.expm1(size * epsilon), 8) / math.expm1(epsilon)
        total = up(delta * ratio, 16)
    else:  # (e^(kε) − 1)/(e^ε − 1) ≤ e^((k−1)ε)/(1 − e^(−ε)), in logarithms
        log_ratio = (size - 1) * epsilon - math.log(-math.expm1(-epsilon))
        log_total = log_ratio + math.log(delta) if delta > 0.0 else -math.inf
        total = up(math.exp(log_total + 1e-9), 8) if log_total < 0.0 else 1.0
    if total >= 1.0:
        raise NotPrivate(f"a group of {size} has no guarantee left: its delta would be at least 1")
    return Approx(epsilon=loss.epsilon0 * size, delta=Fraction(total), relation=loss.relation)
