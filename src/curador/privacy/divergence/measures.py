"""The divergences themselves: two distributions of one family in, one float out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from curador.errors import InvalidParameter, require
from curador.numerics.exact import Number, rational
from curador.privacy.divergence.atoms import AtomPair
from curador.privacy.divergence.distributions import Bernoulli, Distribution, Finite, Laplace, Normal
from curador.privacy.divergence.laplace import LaplacePair
from curador.privacy.divergence.normal import NormalPair

if TYPE_CHECKING:
    from fractions import Fraction


def kl(first: Distribution, second: Distribution, /) -> float:
    """Return the Kullback-Leibler divergence E_P[log p/q] of P = first from Q = second.

    Claim   The exact value, 0 only for P = Q, +∞ where P is not absolutely continuous with respect to Q.
    Rounds  Near.
    """
    return renyi(first, second, alpha=1)


def renyi(first: Distribution, second: Distribution, /, *, alpha: Number) -> float:
    """Return the Rényi divergence of order alpha of P = first from Q = second, alpha in [1, "inf"].

    Claim   The exact value of log E_P[(p/q)^(α-1)] / (α-1), with its limits at 1 and ∞; 0 only for P = Q.
    Rounds  Near.
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
    Rounds  Near.
    """
    return renyi(first, second, alpha=math.inf)


def hockey_stick(first: Distribution, second: Distribution, /, *, epsilon: Number) -> float:
    """Return sup_S P(S) - e^ε Q(S) of P = first and Q = second, for every real ε.

    Claim   The exact value; a pair is (ε, δ)-indistinguishable if and only if δ is at least the value of the
            pair and that of the pair reversed.
    Rounds  Near.
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


class _Pair(Protocol):
    """Two distributions of one family, brought to the parameters that matter."""

    def kl(self) -> float: ...

    def renyi(self, order: Fraction) -> float: ...

    def supremum(self) -> float: ...

    def hockey_stick(self, epsilon: Fraction) -> float: ...


def _pair(first: Distribution, second: Distribution) -> _Pair:
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
                "the pair must be two distributions of one family, Bernoulli, Finite, Normal or Laplace; "
                f"got {type(first).__name__} and {type(second).__name__}."
            )


def _require_same_length(first: Finite, second: Finite) -> None:
    lengths = (len(first.probabilities), len(second.probabilities))
    hint = "give the points that one of them never takes the probability 0"
    require(lengths[0] == lengths[1], "the lengths of the two Finite distributions", "equal", lengths, hint)
