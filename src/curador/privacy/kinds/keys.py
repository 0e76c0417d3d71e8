"""Keys of groups, shown where a noisy number of units passes a threshold."""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen

from curador.errors import NotPrivate
from curador.numerics.exact import POSITIVE, PROBABILITY, WHOLE, whole_from
from curador.privacy.adjacency import Adjacency, maybe_adjacency
from curador.privacy.kinds.discrete_gaussian import add_discrete_gaussian
from curador.privacy.kinds.promises import no_group, no_sample
from curador.privacy.laws.side import Direction, Side, Sides
from curador.privacy.loss import Loss, Scheme
from curador.privacy.rules import (
    AmountPair,
    Traits,
    basic_amounts,
    closed_tradeoff,
    cut_bound,
    describe,
    exact_rows,
    gaussian_squares,
    grouped,
    law,
    mean_loss,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
    say_nothing,
    single_concentrated,
    single_pure,
    two_faced,
    unsampled,
)
from curador.privacy.stored import adjacency_word, store_as


@frozen(kw_only=True)
class KeySelection(Loss):
    """Keys shown where a discrete-Gaussian noisy number of units passes a threshold; a unit touches at most `keys` keys.

    Claim   With probability at least 1 − δ no key held by one unit alone passes; given that, the output is a function of
            `keys` noisy counts, each moved by at most `sensitivity` grid steps: δ plus `keys` discrete Gaussian losses.
    Needs   δ ≥ 1 − (1 − P[N ≥ (τ − 1) sensitivity])^k by the exact tail, k the keys that one unit holds: `keys` where it
            comes or goes, half of them where it is replaced; counts of units, not of rows.
    """

    sigma2: Fraction = field(converter=POSITIVE)
    sensitivity: int = field(default=1, converter=whole_from(0))
    keys: int = field(converter=WHOLE)
    delta0: Fraction = field(alias="delta", converter=PROBABILITY)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)


store_as(
    "KeySelection",
    KeySelection,
    write=lambda loss: {
        "sigma2": str(loss.sigma2),
        "sensitivity": loss.sensitivity,
        "keys": loss.keys,
        "delta": str(loss.delta0),
        "relation": adjacency_word(loss.adjacency),
    },
    read=lambda has: KeySelection(
        sigma2=has.pop("sigma2"),
        sensitivity=has.pop("sensitivity", 1),
        keys=has.pop("keys"),
        delta=has.pop("delta"),
        adjacency=has.pop("relation", None),
    ),
)
describe(
    KeySelection,
    Traits(
        directional=False,
        gaussian=False,
        attains_pure=True,
        attains_infinity=False,
        follows_a_line=False,
        long_rho=False,
        reads_itself=False,
    ),
)
two_faced.is_always(True, KeySelection)
say_nothing(
    KeySelection,
    basic_amounts,
    closed_tradeoff,
    cut_bound,
    exact_rows,
    gaussian_squares,
    mean_loss,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
)


@single_pure.of(KeySelection)
def _(record: KeySelection) -> Fraction | None:
    """Claim: pure only where nothing is spent."""
    return Fraction(0) if record.sensitivity == 0 and record.delta0 == 0 else None


@single_concentrated.of(KeySelection)
def _(record: KeySelection) -> AmountPair | None:
    return record.keys * record.sensitivity**2 / (2 * record.sigma2), record.delta0


@law.of(KeySelection)
def _(record: KeySelection, count: int, direction: Direction, out: Sides) -> None:
    """Claim: δ and `keys` discrete Gaussian losses above; below, a release in which the person held no key at all."""
    del direction
    add_discrete_gaussian(record.sigma2, record.sensitivity, count * record.keys, Sides(out.above, Side()))
    out.above.infinite(Fraction(0), record.delta0, count)


@grouped.of(KeySelection)
def _(record: KeySelection, size: int) -> Loss:
    del size
    raise no_group(record)


@unsampled.of(KeySelection)
def _(record: KeySelection, scheme: Scheme) -> NotPrivate | None:
    del scheme
    return no_sample(record)
