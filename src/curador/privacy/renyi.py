"""The Rényi reading: D_α of a loss for every order α in [1, ∞], from above, both directions.

log E_P[e^((α−1)L)] = (α − 1) D_α, so the curve is the laws' moment function on the real line. At α = 1 closed forms of the
mean loss; at α = ∞ the pure ε. An infinite loss of any probability makes every order infinite; conversions to (ε, δ)
therefore use `curve`, which sets that probability apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, overload

import numpy as np

from curador.errors import InvalidParameter, require, sentence
from curador.numerics.exact import Number, rational
from curador.numerics.rounding import UNIT, float_up, up
from curador.numerics.tilted.moments import Total
from curador.privacy.amplify import without_replacement_renyi
from curador.privacy.laws.discrete_gaussian import SMALLEST
from curador.privacy.laws.ranges import range_log_moments, range_mean
from curador.privacy.laws.resolve import Direction, one_sided, sides
from curador.privacy.laws.shuffled import MOST_COMPOSED, log_moments, twins
from curador.privacy.laws.survival import SurvivalLaw
from curador.privacy.loss import Composed, Loss, parts_of
from curador.privacy.losses import (
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
    Shuffled,
    Subsampled,
)
from curador.privacy.zcdp import laplace_rho

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.numerics.rounding import FloatArray

_NEAR_ONE = 1e-7
_LARGEST_FOLDED = 256
_GAUSSIAN = (GaussianLoss, DiscreteGaussianLoss, DiscreteGaussianVectorLoss)


@dataclass(frozen=True, slots=True)
class Curve:
    """Order → divergence of the finite part, and the probability of an infinite loss (from above)."""

    divergence: Callable[[FloatArray], FloatArray]
    infinite: Fraction


def curve(loss: Loss) -> Curve:
    """Return the Rényi curve of the finite part of a loss.

    Claim   For α > 1: D_α(P given a finite loss ‖ Q) is at most divergence(α), in both directions; so δ(ε) is at most
            P[L = ∞] plus what the divergence converts into.
    Rounds  Up. Source: [Mir17, Prop. 1] for adaptive composition.
    """
    loss = _vectors_by_rho(loss)
    shuffles = [(record, count) for record, count in parts_of(loss) if isinstance(record, Shuffled)]
    if shuffles:
        return _with_shuffles(curve(Composed([part for part in parts_of(loss) if part not in shuffles])), shuffles)
    ranges = [(record, count) for record, count in parts_of(loss) if isinstance(record, BoundedRange)]
    if ranges:
        rest = [part for part in parts_of(loss) if not isinstance(part[0], BoundedRange)]
        return _with_ranges(curve(Composed(rest)), ranges)
    directions = tuple(Direction) if one_sided(loss) else (Direction.LEAVES,)
    gathered = [sides(loss, direction)[0] for direction in directions]
    totals = [side.total() for side in gathered]
    finite_parts = [_without_survival(total) for total, _ in totals]
    infinite = max(chance.upper for _, chance in totals)
    # given a finite loss, P's density is 1/(1 − P[∞]) times larger: the divergence is that of the law given so
    lift = -math.log1p(-infinite) * (1 + 8 * UNIT) if infinite < 1.0 else math.inf

    def divergence(alpha: FloatArray) -> FloatArray:
        theta = np.asarray(alpha, dtype=np.float64) - 1.0
        finite = np.isfinite(theta) & (theta > 0.0)
        safe = np.where(finite, theta, 1.0)
        worst = np.zeros_like(safe)
        for side, total in zip(gathered, finite_parts, strict=True):
            moment = total.log_moment(safe) if total.families else np.zeros_like(safe)
            moment = moment + side.rho * safe * (safe + 1.0) * (1.0 + 8 * UNIT)
            worst = np.maximum(worst, moment / safe * (1.0 + 4 * UNIT))
        known = all(side.rho == 0.0 for side in gathered)
        top = max(total.top if total.families else 0.0 for total in finite_parts) if known else math.inf
        return np.where(finite, np.minimum(worst, top), top) + lift

    return Curve(divergence, Fraction(infinite))


def _with_shuffles(rest: Curve, shuffles: list[tuple[Shuffled, int]]) -> Curve:
    """Shuffles by their own moments: their laws cut a tail off, which a curve would count as infinite."""

    def divergence(alpha: FloatArray) -> FloatArray:
        orders = np.asarray(alpha, dtype=np.float64)
        total = rest.divergence(orders)
        finite = np.isfinite(orders) & (orders > 1.0)
        theta = np.where(finite, orders - 1.0, 1.0)
        for record, count in shuffles:
            if not record.tells_nothing:
                top = float_up(record.epsilon0)
                one = log_moments(record.epsilon0, record.reports, record.variation, theta) / theta
                total = total + count * np.where(finite, np.minimum(one, top), top) * (1.0 + 8 * UNIT)
        return total

    return Curve(divergence, rest.infinite)


def _with_ranges(rest: Curve, ranges: list[tuple[BoundedRange, int]]) -> Curve:
    """Bounded ranges by the worst of all their pairs, an order at a time: no single pair is the worst at every order."""
    epsilon = np.array([float_up(record.epsilon0) for record, _ in ranges])
    count = np.array([float(count) for _, count in ranges])

    def divergence(alpha: FloatArray) -> FloatArray:
        orders = np.asarray(alpha, dtype=np.float64)
        flat = orders.ravel()
        finite = np.isfinite(flat) & (flat > 1.0)
        theta = np.where(finite, flat - 1.0, 1.0)
        top = float(count @ epsilon)
        own = count @ range_log_moments(epsilon, theta) / theta
        total = np.where(finite, np.minimum(own, top), top) * (1.0 + UNIT * (8 + len(ranges)))
        return rest.divergence(orders) + total.reshape(orders.shape)

    return Curve(divergence, rest.infinite)


def _vectors_by_rho(loss: Loss) -> Loss:
    """Vectors of discrete Gaussian noise by their exact ρ: their law above may be a wider one. Source: [CKS20]."""
    parts = parts_of(loss)
    if not any(isinstance(record, DiscreteGaussianVectorLoss) for record, _ in parts):
        return loss
    return Composed([(_by_rho(record), count) for record, count in parts])


def _by_rho(record: Loss) -> Loss:
    if not isinstance(record, DiscreteGaussianVectorLoss):
        return record
    return Concentrated(rho=record.sensitivity_squared / (2 * record.sigma2), relation=record.relation)


def _without_survival(total: Total) -> Total:
    return Total(tuple(family for family in total.families if not isinstance(family, SurvivalLaw)))


@overload
def renyi(loss: Loss, alpha: Number) -> float: ...
@overload
def renyi(loss: Loss, alpha: FloatArray) -> FloatArray: ...
def renyi(loss: Loss, alpha: Number | FloatArray) -> float | FloatArray:
    """Return an upper bound of D_α, one value an order. Rounds: up."""
    if isinstance(alpha, np.ndarray):
        orders = np.asarray(alpha, dtype=np.float64)
        require(bool(np.all(orders >= 1.0)), "alpha", "orders of at least 1", alpha)
        return np.array([_single(loss, float(order)) for order in orders.ravel()]).reshape(orders.shape)
    return _single(loss, order_of(alpha))


def order_of(alpha: object) -> float:
    """Return the order as a float; infinity may be given as math.inf or "inf"."""
    if alpha in (math.inf, "inf"):
        return math.inf
    exact = rational(alpha, "alpha")
    if exact < 1:
        raise InvalidParameter(sentence("alpha", "at least 1", alpha))
    return float(exact)


def _single(loss: Loss, alpha: float) -> float:
    pure = loss.pure_epsilon
    if math.isinf(alpha):
        return math.inf if pure is None else float_up(pure)
    cut = [(record, count) for record, count in parts_of(loss) if _is_cut(record)]
    if cut:  # their laws cut a tail off, which a curve would count as infinite: they have bounds of their own
        rest = Composed([(record, count) for record, count in parts_of(loss) if not _is_cut(record)])
        return up(_single(rest, alpha) + math.fsum(count * _cut_bound(record, alpha) for record, count in cut), 4)
    reading = curve(loss)
    if reading.infinite > 0:
        return math.inf
    if alpha == 1.0:
        return _mean(loss, reading)
    value = float(reading.divergence(np.array([alpha]))[0])
    return value if pure is None else min(value, float_up(pure))


def _is_cut(record: Loss) -> bool:
    if isinstance(record, DiscreteGaussianLoss):
        return record.sigma2 < SMALLEST
    base = record.base if isinstance(record, Subsampled) and record.scheme == "without_replacement" else None
    return base is not None and all(isinstance(r, _GAUSSIAN) for r, _ in parts_of(base))


def _cut_bound(record: Loss, alpha: float) -> float:
    """D_α of coarse discrete Gaussian noise, and of Gaussian noise on a sample without replacement. Rounds: up.

    Source: [CKS20, Thm. 7] for α Δ²/2σ²; [WBK19, Thm. 27].
    """
    if isinstance(record, DiscreteGaussianLoss):
        return up(alpha * float_up(record.sensitivity**2 / (2 * record.sigma2)), 2)
    order = max(2, math.ceil(alpha))
    rho = record.base.rho if isinstance(record, Subsampled) else math.inf
    if not isinstance(record, Subsampled) or not isinstance(rho, Fraction) or order > _LARGEST_FOLDED:
        return math.inf
    slope = float_up(rho)
    return without_replacement_renyi(
        lambda j: math.inf if j == 0 else j * slope, rate=record.rate, alpha=order, one_pair=True
    )


def _mean(loss: Loss, reading: Curve) -> float:
    total = 0.0
    for record, count in parts_of(loss):
        single = mean_loss(record)
        if single is None:  # D_1 ≤ D_α for every α > 1
            return float(reading.divergence(np.array([1.0 + _NEAR_ONE]))[0])
        total = up(total + up(count * single, 2))
    return total


@singledispatch
def mean_loss(record: Loss) -> float | None:
    """E_P[L] of one record, the larger direction, where a closed form exists. Rounds: up."""
    del record


@mean_loss.register
def _(record: GaussianLoss) -> float | None:
    return float_up(record.mu * record.mu / 2)


@mean_loss.register
def _(record: DiscreteGaussianLoss) -> float | None:
    return float_up(record.sensitivity**2 / (2 * record.sigma2))


@mean_loss.register
def _(record: DiscreteGaussianVectorLoss) -> float | None:
    return float_up(record.sensitivity_squared / (2 * record.sigma2))


@mean_loss.register
def _(record: LaplaceLoss) -> float | None:
    return float_up(laplace_rho(record.epsilon0, 0.0))


@mean_loss.register
def _(record: DiscreteLaplaceLoss) -> float | None:
    return float_up(laplace_rho(record.sensitivity / record.scale, float(1 / record.scale)))


@mean_loss.register
def _(record: BoundedRange) -> float | None:
    return min(range_mean(float_up(record.epsilon0)), float_up(record.epsilon0**2 / 8))


@mean_loss.register(RandomizedResponseLoss)
@mean_loss.register(Pure)
def _(record: RandomizedResponseLoss | Pure) -> float | None:
    """ε (e^ε − 1)/(e^ε + k − 1); for k = 2 ε tanh(ε/2)."""
    epsilon = float_up(record.epsilon0)
    k = record.categories if isinstance(record, RandomizedResponseLoss) else 2
    fall = math.exp(-epsilon)
    return up(epsilon * -math.expm1(-epsilon) / (1.0 + (k - 1) * fall), 12)


@mean_loss.register
def _(record: Shuffled) -> float | None:
    """E_P[L] = E_M[2 V artanh V], a convex function of V: that of the law above is no smaller."""
    if record.tells_nothing:
        return 0.0
    both = twins(record.epsilon0, record.reports, record.variation, MOST_COMPOSED)
    rising = both.above.losses > 0.0
    losses, masses = both.above.losses[rising], both.above.masses[rising]
    inside = float((masses * losses * -np.expm1(-losses)).sum()) * (1.0 + both.above.error + UNIT * len(losses))
    return up(inside + both.beyond * float_up(record.epsilon0), 16)


@mean_loss.register
def _(record: Finite) -> float | None:
    """Σ p log p/q, exact masses."""
    worst = 0.0
    for first, second in ((record.p, record.q), (record.q, record.p)):
        terms = [(p, q) for p, q in zip(first, second, strict=True) if p > 0]
        if any(q == 0 for _, q in terms):
            return math.inf
        # g(x) = x − 1 − log x ≥ 0 with x = q/p: Σ p g(q/p) = Σ p log p/q + (Σ q − 1), and no terms cancel
        values = [float(p) * _gap(float(q / p - 1)) for p, q in terms]
        missing = float(1 - sum((q for _, q in terms), Fraction(0)))
        worst = max(worst, up((math.fsum(values) + missing) * (1 + 16 * UNIT), 8))
    return worst


def _gap(y: float) -> float:
    """y − log(1 + y) without cancellation."""
    if abs(y) > 0.05:
        return y - math.log1p(y)
    return math.fsum((-1.0) ** k * y**k / k for k in range(2, 16))
