"""Amplification by subsampling: which losses have a proof under which scheme and neighbours."""

from __future__ import annotations

from curador.errors import InvalidParameter, NotPrivate, require, sentence
from curador.numerics.exact import Number, positive
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency, as_adjacency
from curador.privacy.loss import Loss, Scheme, parts_of
from curador.privacy.losses import (
    Concentrated,
    DiscreteGaussianLoss,
    Finite,
    GaussianLoss,
    Group,
    KeySelection,
    Subsampled,
)


def subsample(loss: Loss, *, rate: Number, scheme: Scheme, adjacency: Adjacency | str | None) -> Loss:
    """Return the loss of the mechanism run on a secret random subsample.

    Claim   poisson, add-or-remove-one: if (P, Q) dominates the mechanism, ((1−q)Q + qP, Q) dominates it when a record
            leaves, and its mirror when one comes. Source: [ZDW22, Thm. 11]
            poisson, replace-one: proved here for Gaussian noise, (1−q)N(0) + qN(±1). Source: [ZDW22, App. F]
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
    if isinstance(record, (Subsampled, Group)):
        raise NotPrivate(f"no subsampling rule is proved for a sum that holds a {type(record).__name__} loss")
    if isinstance(record, (Concentrated, KeySelection)):
        raise NotPrivate(
            f"no subsampling rule is proved for {type(record).__name__}.\n"
            "Hint: subsample the loss of the mechanism itself, or Approx(epsilon=, delta=)."
        )
    if scheme == "without_replacement" and isinstance(record, Finite) and _lopsided(record):
        raise NotPrivate(
            "sampling without replacement is proved for pairs that look alike in both directions; this Finite does not"
        )
    gaussian = isinstance(record, (GaussianLoss, DiscreteGaussianLoss))
    if scheme == "poisson" and relation is REPLACE_ONE and not gaussian:
        raise NotPrivate(
            "poisson subsampling under replace_one is proved for Gaussian noise only.\n"
            'Hint: use adjacency="add_or_remove_one", or scheme="without_replacement".'
        )


def _lopsided(record: Finite) -> bool:
    pairs = list(zip(record.p, record.q, strict=True))
    return sorted(pairs) != sorted((q, p) for p, q in pairs)
