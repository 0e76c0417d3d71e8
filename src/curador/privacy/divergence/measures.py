"""Distributions, and the divergences between two of one family: one float out; and the inequalities between them.

Every parameter of a distribution is the exact rational that its writer sees.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from attrs import field, frozen

from curador.errors import InvalidParameter, require
from curador.numerics.balls import ball, is_positive, near, outward
from curador.numerics.exact import POSITIVE, RATIONAL, Number, at_least_zero, rational
from curador.numerics.rounding import float_up, up
from curador.privacy.divergence.pairs import AtomPair, DivergencePair, LaplacePair, NormalPair

if TYPE_CHECKING:
    from flint import arb


# ---- distributions ---------------------------------------------------------------------------------------------------------


_SLACK = Fraction(1, 10**12)  # how far written probabilities may be from summing to 1


def _share(p: Number) -> Fraction:
    exact = rational(p, "p")
    require(0 <= exact <= 1, "p", "at least 0 and at most 1", p)
    return exact


def _probabilities(probabilities: Iterable[Number]) -> tuple[Fraction, ...]:
    if isinstance(probabilities, (str, bytes)) or not isinstance(probabilities, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
        raise InvalidParameter.must_be("probabilities", "a sequence of numbers", probabilities)
    exact = tuple(at_least_zero(value, "probability") for value in probabilities)
    total = sum(exact, Fraction(0))
    require(abs(total - 1) <= _SLACK, "the sum of the probabilities", "1 (within 1e-12)", float(total))
    return exact if total == 1 else tuple(p / total for p in exact)


@frozen
class Bernoulli:
    """1 with probability p, 0 otherwise."""

    p: Fraction = field(converter=_share)


@frozen
class Finite:
    """The index i with the i-th probability; sums within 1e-12 of 1 are divided by, exactly."""

    probabilities: tuple[Fraction, ...] = field(converter=_probabilities)


@frozen
class Normal:
    """The normal distribution; `deviation` is the standard deviation, not its square."""

    mean: Fraction = field(converter=RATIONAL)
    deviation: Fraction = field(converter=POSITIVE)


@frozen
class Laplace:
    """The density e^(-|x - location| / scale) / (2 scale); its variance is 2 scale²."""

    location: Fraction = field(converter=RATIONAL)
    scale: Fraction = field(converter=POSITIVE)

    def density(self, x: Number) -> float:
        """Return the density at x. Rounds: near."""
        away = abs(self._standard(x))
        return near(lambda: ball(-away).exp() / ball(2 * self.scale))

    def distribution(self, x: Number) -> float:
        """Return P[X <= x]. Rounds: near."""
        standard = self._standard(x)
        if standard < 0:
            return near(lambda: ball(standard).exp() / 2)
        return near(lambda: 1 - ball(-standard).exp() / 2)

    def log_tail(self, x: Number) -> float:
        """Return the natural logarithm of P[X > x], finite even where P[X > x] is below every float, and never 0.

        Rounds: near.
        """
        standard = self._standard(x)
        if standard >= 0:
            return -near(lambda: ball(2).log() + ball(standard))
        return -near(lambda: -(-ball(standard).exp() / 2).log1p())

    def _standard(self, x: Number) -> Fraction:
        return (rational(x, "x") - self.location) / self.scale


Distribution: TypeAlias = Bernoulli | Finite | Normal | Laplace


# ---- divergences -----------------------------------------------------------------------------------------------------------


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
