"""The divergences themselves, two distributions of one family in and one float out, and the inequalities between them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.errors import InvalidParameter, require
from curador.numerics.balls import ball, is_positive, outward
from curador.numerics.exact import Number, at_least_zero, rational
from curador.numerics.rounding import float_up, up
from curador.privacy.divergence.distributions import Bernoulli, Distribution, Finite, Laplace, Normal
from curador.privacy.divergence.pairs import AtomPair, DivergencePair, LaplacePair, NormalPair

if TYPE_CHECKING:
    from flint import arb


def kl(first: Distribution, second: Distribution, /) -> float:
    """Return the Kullback-Leibler divergence E_P[log p/q] of P = first from Q = second.

    Claim   The exact value, 0 only for P = Q, +∞ where P is not absolutely continuous with respect to Q.
    Needs   Two distributions of one family.
    Rounds  Near, from a ball that holds the value.
    """
    return renyi(first, second, alpha=1)


def renyi(first: Distribution, second: Distribution, /, *, alpha: Number) -> float:
    """Return the Rényi divergence of order alpha of P = first from Q = second, alpha in [1, "inf"].

    Claim   The exact value of log E_P[(p/q)^(α-1)] / (α-1), with its limits at 1 and ∞; 0 only for P = Q.
    Needs   Two distributions of one family; an order of at least 1.
    Rounds  Near, from a ball that holds the value.
    Source  [Mir17]
    """
    order = order_of(alpha)
    pair = _pair(first, second)
    if first == second:
        return 0.0
    if order is None:
        return pair.supremum()
    return pair.kl() if order == 1 else pair.renyi(order)


def max_divergence(first: Distribution, second: Distribution, /) -> float:
    """Return the supremum of log p/q over the support of P = first, +∞ if Q misses a part of it.

    Claim   P = first has P(S) <= e^ε Q(S) for every event S if and only if ε is at least this value.
    Needs   Two distributions of one family.
    Rounds  Near, from a ball that holds the value.
    """
    return renyi(first, second, alpha=math.inf)


def hockey_stick(first: Distribution, second: Distribution, /, *, epsilon: Number) -> float:
    """Return sup_S P(S) - e^ε Q(S) of P = first and Q = second, for every real ε.

    Claim   The exact value; a pair is (ε, δ)-indistinguishable if and only if δ is at least the value of the
            pair and that of the pair reversed.
    Needs   Two distributions of one family.
    Rounds  Near, from a ball that holds the value.
    Source  [BW18]
    """
    return _pair(first, second).hockey_stick(rational(epsilon, "epsilon"))


def order_of(alpha: object, name: str = "alpha") -> Fraction | None:
    """Return the order as a rational of at least 1; None is ∞."""
    if (isinstance(alpha, float) and alpha == math.inf) or (isinstance(alpha, str) and alpha == "inf"):
        return None
    order = rational(alpha, name)
    require(order >= 1, name, 'a number of at least 1 or "inf"', alpha)
    return order


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
    detour = [renyi(first, via, alpha=_order_text(outward)), renyi(via, second, alpha=_order_text(inward))]
    if math.inf in detour:
        return math.inf
    there = up(float_up(factor) * up(detour[0])) if detour[0] > 0 else 0.0
    return up(there + up(detour[1])) if there + detour[1] > 0 else 0.0


def probability_preservation(q: Number, *, alpha: Number, zeta: Number) -> tuple[float, float]:
    """Return bounds of P(A) for an event with Q(A) = q: e^-ζ q^(α/(α-1)) <= P(A) <= (e^ζ q)^((α-1)/α).

    Claim   Every event of probability q under Q has a probability within the bounds under P.
    Needs   The divergence of order α is at most ζ from P to Q (upper bound) and from Q to P (lower bound).
    Rounds  Outward, from the ends of a ball; never outside [0, 1]. Order 1 or ζ = ∞ leave nothing but (0, 1).
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

    def lower() -> arb:
        return (ball(q).log() / ball(power) - ball(loss)).exp()

    return outward(lower)[0]


def _likeliest(q: Fraction, power: Fraction, loss: Fraction) -> float:
    if q == 1:
        return 1.0

    def log_upper() -> arb:
        return (ball(q).log() + ball(loss)) * ball(power)

    # Never a tie: q is below 1, and the logarithm of a rational is irrational.
    return 1.0 if is_positive(log_upper) else outward(lambda: log_upper().exp())[1]


def _order_text(order: Fraction | None) -> Fraction | float:
    return math.inf if order is None else order


def _pair(first: Distribution, second: Distribution) -> DivergencePair:
    match first, second:
        case Bernoulli(), Bernoulli():
            return AtomPair(((first.p, second.p), (1 - first.p, 1 - second.p)))
        case Finite(), Finite():
            _require_same_length(first, second)
            return AtomPair(tuple(zip(first.probabilities, second.probabilities, strict=True)))
        case Normal(), Normal():
            return NormalPair(first.mean - second.mean, first.deviation, second.deviation)
        case Laplace(), Laplace():
            return LaplacePair(abs(first.location - second.location), first.scale, second.scale)
        case _:
            raise InvalidParameter(
                subject="the pair",
                rule="must be two distributions of one family, Bernoulli, Finite, Normal or Laplace",
                got=f"{type(first).__name__} and {type(second).__name__}",
            )


def _require_same_length(first: Finite, second: Finite) -> None:
    lengths = (len(first.probabilities), len(second.probabilities))
    hint = "give the points that one of them never takes the probability 0"
    require(lengths[0] == lengths[1], "the lengths of the two Finite distributions", "equal", lengths, hint)
