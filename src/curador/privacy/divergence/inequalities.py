"""Inequalities between divergences and probabilities, as the bounds they give."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.errors import require
from curador.numerics.exact import Number, at_least_zero, rational
from curador.numerics.rounding import down, float_up, up
from curador.privacy.divergence.digits import decimal_of, settle
from curador.privacy.divergence.measures import order_of, renyi

if TYPE_CHECKING:
    from decimal import Decimal

    from curador.privacy.divergence.distributions import Distribution


def weak_triangle(first: Distribution, second: Distribution, via: Distribution, /, *, alpha: Number, p: Number = 2) -> float:
    """Return an upper bound of renyi(first, second, alpha) by a detour.

    With 1/p + 1/q = 1: (α - 1/p)/(α - 1) · D_{pα}(first, via) + D_{q(α - 1/p)}(via, second). Three cases:

    p = 2      (α - 1/2)/(α - 1) · D_{2α}(first, via) + D_{2α - 1}(via, second)
    p = "inf"  α/(α - 1) · D_∞(first, via) + D_α(via, second)
    p = 1      D_α(first, via) + D_∞(via, second)

    Claim   The divergence of order α from `first` to `second` is at most the result.
    Needs   An order above 1; p in [1, ∞].
    Rounds  Up.
    Source  [Mir17, Prop. 11]
    """
    order, split = order_of(alpha), order_of(p, "p")
    require(order is None or order > 1, "alpha", 'a number above 1 or "inf"', alpha)
    share = Fraction(0) if split is None else 1 / split
    if order is None:
        factor, outward, inward = Fraction(1), None, None
    else:
        factor = (order - share) / (order - 1)
        outward = None if split is None else split * order
        inward = None if share == 1 else (order - share) / (1 - share)
    detour = [renyi(first, via, alpha=_written(outward)), renyi(via, second, alpha=_written(inward))]
    if math.inf in detour:
        return math.inf
    there = up(float_up(factor) * up(detour[0])) if detour[0] > 0 else 0.0
    return up(there + up(detour[1])) if there + detour[1] > 0 else 0.0


def probability_preservation(q: Number, *, alpha: Number, zeta: Number) -> tuple[float, float]:
    """Return bounds of P(A) for an event with Q(A) = q: e^-ζ q^(α/(α-1)) <= P(A) <= (e^ζ q)^((α-1)/α).

    Claim   Every event of probability q under Q has a probability within the bounds under P.
    Needs   The divergence of order α is at most ζ from P to Q (upper bound) and from Q to P (lower bound).
    Rounds  Outward; never outside [0, 1]. Order 1 or ζ = ∞ leave nothing but (0, 1).
    Source  [Mir17, Prop. 10]
    """
    exact, order = rational(q, "q"), order_of(alpha)
    require(0 <= exact <= 1, "q", "at least 0 and at most 1", q)
    loss = None if isinstance(zeta, float) and zeta == math.inf else at_least_zero(zeta, "zeta")
    if order == 1 or loss is None:
        return 0.0, 1.0
    if exact == 0:
        return 0.0, 0.0
    power = Fraction(1) if order is None else (order - 1) / order
    return _rarest(exact, power, loss), _likeliest(exact, power, loss)


def _rarest(q: Fraction, power: Fraction, loss: Fraction) -> float:
    if q == 1 and loss == 0:
        return 1.0

    def log_lower() -> Decimal:
        return decimal_of(q).ln() / decimal_of(power) - decimal_of(loss)

    # Below e^-800 there is no float but 0, a lower bound all the same.
    log = settle(log_lower)
    return 0.0 if log < -800 else max(0.0, down(float(settle(lambda: log_lower().exp())), 2))


def _likeliest(q: Fraction, power: Fraction, loss: Fraction) -> float:
    if q == 1:
        return 1.0

    def log_upper() -> Decimal:
        return (decimal_of(q).ln() + decimal_of(loss)) * decimal_of(power)

    log = settle(log_upper)
    if log >= 0:
        return 1.0
    return min(1.0, up(0.0 if log < -800 else float(settle(lambda: log_upper().exp())), 2))


def _written(order: Fraction | None) -> Fraction | float:
    return math.inf if order is None else order
