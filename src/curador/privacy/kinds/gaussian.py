"""Gaussian noise on real numbers."""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen

from curador.numerics.exact import AT_LEAST_ZERO
from curador.numerics.rounding import float_up
from curador.privacy.adjacency import Adjacency, maybe_adjacency
from curador.privacy.laws.side import Direction, Sides
from curador.privacy.loss import Loss
from curador.privacy.rules import (
    AmountPair,
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
class GaussianLoss(Loss):
    """Gaussian noise of standard deviation sensitivity/μ on real numbers: μ-GDP, exactly. Source: [DRS19]."""

    mu: Fraction = field(converter=AT_LEAST_ZERO)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)


store_as(
    "GaussianLoss",
    GaussianLoss,
    write=lambda loss: {"mu": str(loss.mu), "relation": adjacency_word(loss.adjacency)},
    read=lambda has: GaussianLoss(mu=has.pop("mu"), adjacency=has.pop("relation", None)),
)
describe(
    GaussianLoss,
    Traits(
        directional=False,
        gaussian=True,
        attains_pure=True,
        attains_infinity=True,
        follows_a_line=False,
        long_rho=False,
        reads_itself=False,
    ),
)
two_faced.is_always(False, GaussianLoss)
say_nothing(
    GaussianLoss,
    basic_amounts,
    closed_tradeoff,
    cut_bound,
    exact_rows,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
    unsampled,
)


@single_pure.of(GaussianLoss)
def _(record: GaussianLoss) -> Fraction | None:
    """Claim: pure only where nothing is spent."""
    return Fraction(0) if record.mu == 0 else None


@single_concentrated.of(GaussianLoss)
def _(record: GaussianLoss) -> AmountPair | None:
    return record.mu * record.mu / 2, Fraction(0)


@law.of(GaussianLoss)
def _(record: GaussianLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    if record.mu > 0:
        mu2 = float(record.mu * record.mu)
        for side in out.both:
            side.gaussian(mu2, count)


@mean_loss.of(GaussianLoss)
def _(record: GaussianLoss) -> float | None:
    return float_up(record.mu * record.mu / 2)


@grouped.of(GaussianLoss)
def _(record: GaussianLoss, size: int) -> Loss:
    """Claim: the shift grows to size · sensitivity."""
    return GaussianLoss(mu=record.mu * size, adjacency=record.adjacency)


@gaussian_squares.of(GaussianLoss)
def _(record: GaussianLoss, count: int, rate: Fraction) -> tuple[Fraction, Fraction, float] | None:
    del count, rate
    square = record.mu * record.mu
    return square, square, 0.0
