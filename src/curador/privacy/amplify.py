"""Amplification by subsampling: which losses have a proof under which scheme and neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

from curador.errors import InvalidParameter, NotPrivate, require, sentence
from curador.numerics.exact import Number, positive, whole
from curador.numerics.rounding import up
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency, as_adjacency
from curador.privacy.loss import Loss, Scheme, parts_of
from curador.privacy.losses import (
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    Finite,
    GaussianLoss,
    Group,
    KeySelection,
    Shuffled,
    Subsampled,
)
from curador.privacy.zcdp import single_pure


def subsample(loss: Loss, *, rate: Number, scheme: Scheme, adjacency: Adjacency | str | None) -> Loss:
    """Return the loss of the mechanism run on a secret random subsample.

    Claim   poisson, add-or-remove-one: if (P, Q) dominates the mechanism, ((1−q)Q + qP, Q) dominates it when a record
            leaves, and its mirror when one comes. Source: [ZDW22]
            poisson, replace-one: proved here for Gaussian noise, (1−q)N(0) + qN(±1). Source: [ZDW22]; for vectors
            docs/explanation/accounting.md, theorem 8
            without replacement, replace-one: δ'(ε') = q δ(log(1 + (e^ε' − 1)/q)). Source: [BBG18, Thm. 9]
            The same scheme twice is that scheme with the product of the rates.
    Needs   The base loss is about the mechanism under the same neighbours (for poisson replace-one: its add-or-remove-one
            sensitivity), and the subsample stays secret.
    """
    exact = positive(rate, "rate")
    require(exact <= 1, "rate", "at most 1", rate)
    relation = _relation_of(scheme, adjacency)
    if loss.adjacency is not None and loss.adjacency is not relation:
        raise InvalidParameter(
            f"adjacency must be that of the loss ({loss.adjacency}); got {relation}.\n"
            "Hint: poisson goes with add_or_remove_one, without_replacement with replace_one."
        )
    records = [record for record, _ in parts_of(loss)]
    if len(records) == 1 and isinstance(loss, Subsampled):
        if loss.scheme != scheme:
            raise NotPrivate("no rule is proved for one subsampling scheme inside another")
        return Subsampled(loss.base, loss.rate * exact, scheme, relation)
    for record in records:
        _refuse_unproved(record, scheme, relation)
    return Subsampled(loss, exact, scheme, relation)


def _relation_of(scheme: str, adjacency: Adjacency | str | None) -> Adjacency:
    if scheme == "poisson":
        return ADD_OR_REMOVE_ONE if adjacency is None else as_adjacency(adjacency)
    if scheme == "without_replacement":
        relation = REPLACE_ONE if adjacency is None else as_adjacency(adjacency)
        if relation is not REPLACE_ONE:
            raise NotPrivate("sampling without replacement is proved for replace_one only: the sample's size is public")
        return relation
    raise InvalidParameter(sentence("scheme", '"poisson" or "without_replacement"', scheme))


def _refuse_unproved(record: Loss, scheme: Scheme, relation: Adjacency) -> None:
    single_pure(record)  # an unknown record is refused there
    if isinstance(record, (Subsampled, Group)):
        raise NotPrivate(f"no subsampling rule is proved for a sum that holds a {type(record).__name__} loss")
    if isinstance(record, Shuffled):
        raise NotPrivate(
            "no subsampling rule is proved for Shuffled: how many reports there are would depend on the sample.\n"
            "Hint: reports = the least number that takes part."
        )
    if isinstance(record, (Concentrated, KeySelection)):
        raise NotPrivate(
            f"no subsampling rule is proved for {type(record).__name__}.\n"
            "Hint: subsample the loss of the mechanism itself, or Approx(epsilon=, delta=)."
        )
    if scheme == "without_replacement" and isinstance(record, Finite) and _lopsided(record):
        raise NotPrivate(
            "sampling without replacement is proved for pairs that look alike in both directions; this Finite does not"
        )
    gaussian = isinstance(record, (GaussianLoss, DiscreteGaussianLoss, DiscreteGaussianVectorLoss))
    if scheme == "poisson" and relation is REPLACE_ONE and not gaussian:
        raise NotPrivate(
            "poisson subsampling under replace_one is proved for Gaussian noise only.\n"
            'Hint: use adjacency="add_or_remove_one", or scheme="without_replacement".'
        )


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


def _lopsided(record: Finite) -> bool:
    pairs = list(zip(record.p, record.q, strict=True))
    return sorted(pairs) != sorted((q, p) for p, q in pairs)
