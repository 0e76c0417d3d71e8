"""Randomized response."""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen

from curador.numerics.exact import AT_LEAST_ZERO, whole_from
from curador.privacy.adjacency import Adjacency, maybe_adjacency
from curador.privacy.convert import pure_to_rho
from curador.privacy.kinds.promises import Pure, basic_of_pure, response_mean
from curador.privacy.laws.resolve import response_rows
from curador.privacy.laws.side import Direction, Sides
from curador.privacy.loss import Loss
from curador.privacy.rules import (
    AmountPair,
    Rows,
    Traits,
    adjacency_word,
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
    store_as,
    two_faced,
    unsampled,
)


@frozen(kw_only=True)
class RandomizedResponseLoss(Loss):
    """One of k answers: the true one with probability e^ε/(e^ε + k − 1), else another, uniformly. Source: [War65]."""

    epsilon0: Fraction = field(alias="epsilon", converter=AT_LEAST_ZERO)
    categories: int = field(default=2, converter=whole_from(2))
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)

    def __hash__(self) -> int:
        # a rational's own hash inverts its denominator modulo a prime: slow for sums of many records
        return hash((self.epsilon0.as_integer_ratio(), self.categories, self.adjacency))


store_as(
    "RandomizedResponseLoss",
    RandomizedResponseLoss,
    write=lambda loss: {
        "epsilon": str(loss.epsilon0),
        "categories": loss.categories,
        "relation": adjacency_word(loss.adjacency),
    },
    read=lambda has: RandomizedResponseLoss(
        epsilon=has.pop("epsilon"), categories=has.pop("categories", 2), adjacency=has.pop("relation", None)
    ),
)
describe(
    RandomizedResponseLoss,
    Traits(
        directional=False,
        gaussian=False,
        attains_pure=True,
        attains_infinity=True,
        follows_a_line=False,
        long_rho=False,
        reads_itself=False,
    ),
)
two_faced.is_always(False, RandomizedResponseLoss)
say_nothing(
    RandomizedResponseLoss,
    closed_tradeoff,
    cut_bound,
    gaussian_squares,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
    unsampled,
)


@single_pure.of(RandomizedResponseLoss)
def _(record: RandomizedResponseLoss) -> Fraction | None:
    """Claim: ε, by definition."""
    return record.epsilon0


@single_concentrated.of(RandomizedResponseLoss)
def _(record: RandomizedResponseLoss) -> AmountPair | None:
    """Claim: ε tanh(ε/2): it is the worst of all ε-private mechanisms."""
    return pure_to_rho(record.epsilon0), Fraction(0)


basic_amounts.of(RandomizedResponseLoss)(basic_of_pure)


@law.of(RandomizedResponseLoss)
def _(record: RandomizedResponseLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    if record.epsilon0 > 0:
        for side in out.both:
            side.points.append((record.epsilon0, record.categories, count))


@mean_loss.of(RandomizedResponseLoss)
def _(record: RandomizedResponseLoss) -> float | None:
    return response_mean(record.epsilon0, record.categories)


@grouped.of(RandomizedResponseLoss)
def _(record: RandomizedResponseLoss, size: int) -> Loss:
    """Claim: ratios multiply."""
    return Pure(epsilon=record.epsilon0 * size, adjacency=record.adjacency)


@exact_rows.of(RandomizedResponseLoss)
def _(record: RandomizedResponseLoss) -> Rows | None:
    return response_rows(record.epsilon0, record.categories, Fraction(0))
