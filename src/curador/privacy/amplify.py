"""Amplification by subsampling of what is known by its Rényi curve alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

from curador.errors import require
from curador.numerics.exact import Number, positive, whole
from curador.numerics.rounding import up


def without_replacement_renyi(
    divergence: Callable[[int], float], *, rate: Number, alpha: Number, one_pair: bool = False
) -> float:
    """Return a bound of D_α of a subsample without replacement from the base curve at orders 2 … α and ∞.

    Claim   (α−1) D'_α ≤ log(1 + q² C(α,2) min(4(e^D₂ − 1), 2e^D₂) + Σ_{j=3..α} q^j C(α,j) T_j),
            T_j = e^((j−1) D_j) min(2, (e^D∞ − 1)^j), and with one_pair also T_j ≤ 4 √(B(2⌊j/2⌋) B(2⌈j/2⌉)),
            B(l) = Σ_i (−1)^i C(l,i) e^((i−1) D_i), the central moments.
    Needs   `divergence(j)` bounds the base under replace-one, divergence(0) standing for the order ∞; α whole. one_pair: the
            values are the divergences of one pair at all orders (as for Gaussian noise), not mere bounds.
            Looser than the loss's own `renyi`, which knows the pair; for bases known by their curve alone.
    Rounds  Up. Source: [WBK19, Thm. 27]
    """
    order = whole(alpha, "alpha", least=2)
    share = positive(rate, "rate")
    require(share <= 1, "rate", "at most 1", rate)
    curve = {j: divergence(j) for j in (0, *range(2, order + 2 + order % 2))}
    central = _central_moments(curve, order + order % 2) if one_pair else {}
    total = 0.0
    for j in range(2, order + 1):
        term = _wor_term(j, curve)
        if j == 2:
            term = min(term, 4.0 * math.expm1(min(curve[2], 700.0)))
        elif one_pair:
            term = min(term, 4.0 * math.sqrt(central[j - j % 2] * central[j + j % 2]))
        total += math.exp(j * math.log(share) + math.log(math.comb(order, j)) + math.log(term)) if term > 0.0 else 0.0
    return up(math.log1p(total * (1 + 1e-13 * order)) / (order - 1), 8) if math.isfinite(total) else math.inf


def _wor_term(j: int, curve: dict[int, float]) -> float:
    spread = math.expm1(min(curve[0], 300.0))  # only whether its power exceeds 2 matters
    last = 2.0 if spread > 2.0 ** (1 / j) else spread**j
    exponent = (j - 1) * curve[j]
    return math.inf if exponent > 690.0 else math.exp(exponent) * last


def _central_moments(curve: dict[int, float], largest: int) -> dict[int, float]:
    """B(l) for even l; the alternating sums cancel, so they are taken with 400 digits."""
    with localcontext() as context:
        context.prec = 400
        moments = [Decimal(1), Decimal(1), *((Decimal(curve[i]) * (i - 1)).exp() for i in range(2, largest + 1))]
        return {
            size: max(float(sum((-1) ** i * math.comb(size, i) * moments[i] for i in range(size + 1))) * (1 + 1e-15), 0.0)
            for size in range(2, largest + 1, 2)
        }
