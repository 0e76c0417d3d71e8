"""Laplace noise, on real numbers and on integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from attrs import field, frozen

from curador.numerics.exact import AT_LEAST_ZERO, POSITIVE, whole_from
from curador.numerics.logspace import sinh_minus
from curador.numerics.rounding import FloatArray, float_up, up
from curador.privacy.adjacency import Adjacency, maybe_adjacency
from curador.privacy.convert import laplace_to_rho, pure_to_rho
from curador.privacy.kinds.promises import basic_of_pure
from curador.privacy.laws.cells import CellPair, laplace_cells
from curador.privacy.laws.side import Direction, Sides
from curador.privacy.loss import Loss
from curador.privacy.odds import tradeoff_laplace
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

# ---- real numbers ---------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class LaplaceLoss(Loss):
    """Laplace noise of scale sensitivity/ε on real numbers whose vector moves by at most `sensitivity` in l1.

    Source: [DMNS06]; for vectors docs/explanation/accounting.md, theorem 9.
    """

    epsilon0: Fraction = field(alias="epsilon", converter=AT_LEAST_ZERO)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)


store_as(
    "LaplaceLoss",
    LaplaceLoss,
    write=lambda loss: {"epsilon": str(loss.epsilon0), "relation": adjacency_word(loss.adjacency)},
    read=lambda has: LaplaceLoss(epsilon=has.pop("epsilon"), adjacency=has.pop("relation", None)),
)
describe(
    LaplaceLoss,
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
two_faced.is_always(False, LaplaceLoss)
say_nothing(
    LaplaceLoss,
    cut_bound,
    exact_rows,
    gaussian_squares,
    own_curve,
    own_reading,
    renyi_stand_in,
    unsampled,
)


@single_pure.of(LaplaceLoss)
def _(record: LaplaceLoss) -> Fraction | None:
    """Claim: ε, by definition."""
    return record.epsilon0


@single_concentrated.of(LaplaceLoss)
def _(record: LaplaceLoss) -> AmountPair | None:
    """Claim: ε − 1 + e^(−ε); proof in docs/explanation/zcdp.md. Rounds: up."""
    return laplace_rho(record.epsilon0, 0.0), Fraction(0)


basic_amounts.of(LaplaceLoss)(basic_of_pure)


@law.of(LaplaceLoss)
def _(record: LaplaceLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    if record.epsilon0 > 0:
        for side in out.both:
            side.laplaces.append((float(record.epsilon0), 0.0, 0.0, count))


@mean_loss.of(LaplaceLoss)
def _(record: LaplaceLoss) -> float | None:
    return float_up(laplace_rho(record.epsilon0, 0.0))


@closed_tradeoff.of(LaplaceLoss)
def _(record: LaplaceLoss, rates: FloatArray) -> FloatArray | None:
    return np.asarray(tradeoff_laplace(rates, epsilon=record.epsilon0))


@grouped.of(LaplaceLoss)
def _(record: LaplaceLoss, size: int) -> Loss:
    """Claim: the shift grows to size · sensitivity."""
    return LaplaceLoss(epsilon=record.epsilon0 * size, adjacency=record.adjacency)


@noise_cells.of(LaplaceLoss)
def _(record: LaplaceLoss) -> tuple[CellPair, CellPair | Rows] | None:
    pair = laplace_cells(float(record.epsilon0))
    return pair, pair


# ---- integers -------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class DiscreteLaplaceLoss(Loss):
    """Discrete Laplace noise, P[k] ∝ exp(−|k|/scale), on an integer or a vector of integers; `sensitivity` is in l1.

    Source: [GRS09]; for vectors docs/explanation/accounting.md, theorem 9.
    """

    scale: Fraction = field(converter=POSITIVE)
    sensitivity: int = field(converter=whole_from(0))
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)

    def __hash__(self) -> int:
        # a rational's own hash inverts its denominator modulo a prime: slow for sums of many records
        return hash((self.scale.as_integer_ratio(), self.sensitivity, self.adjacency))


store_as(
    "DiscreteLaplaceLoss",
    DiscreteLaplaceLoss,
    write=lambda loss: {
        "scale": str(loss.scale),
        "sensitivity": loss.sensitivity,
        "relation": adjacency_word(loss.adjacency),
    },
    read=lambda has: DiscreteLaplaceLoss(
        scale=has.pop("scale"), sensitivity=has.pop("sensitivity"), adjacency=has.pop("relation", None)
    ),
)
describe(
    DiscreteLaplaceLoss,
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
two_faced.is_always(False, DiscreteLaplaceLoss)
say_nothing(
    DiscreteLaplaceLoss,
    closed_tradeoff,
    cut_bound,
    exact_rows,
    gaussian_squares,
    own_curve,
    own_reading,
    renyi_stand_in,
    unsampled,
)


@single_pure.of(DiscreteLaplaceLoss)
def _(record: DiscreteLaplaceLoss) -> Fraction | None:
    return record.sensitivity / record.scale


@single_concentrated.of(DiscreteLaplaceLoss)
def _(record: DiscreteLaplaceLoss) -> AmountPair | None:
    """Claim: ε − (1 − e^(−ε)) x/sinh x with x = 1/scale; proof in docs/explanation/zcdp.md. Rounds: up."""
    return laplace_rho(record.sensitivity / record.scale, float(1 / record.scale)), Fraction(0)


basic_amounts.of(DiscreteLaplaceLoss)(basic_of_pure)


@law.of(DiscreteLaplaceLoss)
def _(record: DiscreteLaplaceLoss, count: int, direction: Direction, out: Sides) -> None:
    del direction
    if record.sensitivity > 0:
        for side in out.both:
            side.discretes.append((record.scale, record.sensitivity, count))


@mean_loss.of(DiscreteLaplaceLoss)
def _(record: DiscreteLaplaceLoss) -> float | None:
    return float_up(laplace_rho(record.sensitivity / record.scale, float(1 / record.scale)))


@grouped.of(DiscreteLaplaceLoss)
def _(record: DiscreteLaplaceLoss, size: int) -> Loss:
    """Claim: the shift grows to size · sensitivity."""
    return DiscreteLaplaceLoss(scale=record.scale, sensitivity=record.sensitivity * size, adjacency=record.adjacency)


@noise_cells.of(DiscreteLaplaceLoss)
def _(record: DiscreteLaplaceLoss) -> tuple[CellPair, CellPair | Rows] | None:
    scale, shift = record.scale, record.sensitivity
    pair = laplace_cells(float(shift / scale), scale=float(scale), sensitivity=float(shift))
    return pair, pair


def laplace_rho(epsilon: Fraction, inverse_scale: float) -> Fraction:
    """Return sup over α of D_α/α for Laplace noise on a grid of step 1/(inverse scale), 0 for none. Rounds: up.

    ε − 1 + e^(−ε) is the sum of a positive series for small ε; the grid's part (1 − e^(−ε))(1 − x/sinh x) is added.
    """
    grid = 0.0
    if inverse_scale > 0.0:
        step = min(inverse_scale, 700.0)
        shortfall = float(sinh_minus(np.array([step]))[0]) / math.sinh(step)
        grid = -math.expm1(-float_up(epsilon)) * shortfall
    return min(laplace_to_rho(epsilon) + Fraction(up(grid, 24)), pure_to_rho(epsilon))
