"""Group privacy: what a loss means for k people at once.

The tight rule of each record, where there is one; pure losses of any kind multiply; the rest is refused.
"""

from __future__ import annotations

from fractions import Fraction

from curador.errors import NotPrivate
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.loss import Composed, Loss, parts_of
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    Group,
    KeySelection,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
    Subsampled,
)


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
        if all(isinstance(record, (GaussianLoss, DiscreteGaussianLoss)) for record in parts):
            return Group(loss, size)
    epsilon = loss.pure_epsilon
    if epsilon is None:
        raise NotPrivate(f"no group rule is proved for this {type(loss).__name__} loss: it is neither pure nor Gaussian")
    return Pure(epsilon=size * epsilon, relation=loss.adjacency)


def _approximate(loss: Approx, size: int) -> Loss:
    import math

    from curador.numerics.rounding import float_up, up

    epsilon = float_up(loss.epsilon0)
    ratio = float(size) if epsilon == 0 else up(math.expm1(min(size * epsilon, 700.0)), 8) / math.expm1(epsilon)
    delta = Fraction(up(float_up(loss.delta0) * ratio, 16))
    if delta >= 1:
        raise NotPrivate(f"a group of {size} has no guarantee left: its delta would be {float(delta):g}")
    return Approx(epsilon=loss.epsilon0 * size, delta=delta, relation=loss.relation)
