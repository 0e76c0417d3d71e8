"""Mechanisms known by a promise alone: pure, approximate, concentrated, of bounded range.

Rényi orders of bounded-range mechanisms are those of the worst pair of each order, in closed form.
L lies in some [a, a + ε], so y = e^(−L) lies in [e^(−a−ε), e^(−a)] and has mean 1 under P. y^(−θ) is convex: its mean is
largest on the two ends, where P[L = a + ε] = (1 − e^a)/(1 − e^(−ε)). With v = e^a and c = (e^(θε) − 1)/(1 − e^(−ε))

    E_P[e^(θL)] ≤ v^θ (1 + c (1 − v)) ≤ (1 + c)/(1 + θ) · (θ (1 + c)/((1 + θ) c))^θ,

the last by the best v = θ(1 + c)/((1 + θ)c). At order 1 it is log((1 − e^(−ε))/ε) + ε/(1 − e^(−ε)) − 1.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from attrs import field, frozen

from curador.errors import NotPrivate
from curador.numerics.exact import AT_LEAST_ZERO, PROBABILITY
from curador.numerics.logspace import expm1_minus
from curador.numerics.rounding import UNIT, FloatArray, float_up, up
from curador.privacy.adjacency import Adjacency, maybe_adjacency
from curador.privacy.convert import pure_to_rho
from curador.privacy.laws.cells import CellPair, bounded_range_cells
from curador.privacy.laws.resolve import response_rows
from curador.privacy.laws.side import Direction, Sides
from curador.privacy.loss import Loss, Scheme
from curador.privacy.rules import (
    AddsToCurve,
    AmountPair,
    Curve,
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

# ---- what a pure ε alone says ----------------------------------------------------------------------------------------------


def basic_of_pure(record: Loss) -> AmountPair | None:
    """Return (ε, 0) of a record that is pure: what basic composition adds up."""
    pure = single_pure(record)
    return None if pure is None else (pure, Fraction(0))


def concentrated_of_pure(record: Loss) -> AmountPair | None:
    """Return (ρ, 0) of a record that is known by its pure ε alone.

    Claim   ε tanh(ε/2): randomized response is the worst case.
    """
    pure = single_pure(record)
    return None if pure is None else (pure_to_rho(pure), Fraction(0))


# ---- bounded ranges, an order at a time ------------------------------------------------------------------------------------


def range_log_moments(epsilon: FloatArray, theta: FloatArray) -> FloatArray:
    """Return upper bounds of log E_P[e^(θL)] of ε-bounded-range mechanisms, one row a record, one column a tilt θ > 0.

    Claim   The lesser of the bound above and of θ(θ + 1) ε²/8, which has no cancellation where ε is small.
    Rounds  Up. Source: the proof above; [CR21] for ε²/8.
    """
    wide, tilt = epsilon[:, None], theta[None, :]
    with np.errstate(all="ignore"):
        log_c = tilt * wide + np.log(-np.expm1(-tilt * wide)) - np.log(-np.expm1(-wide))
        rise, fall = np.logaddexp(0.0, log_c), np.log1p(1.0 / tilt) - np.logaddexp(0.0, -log_c)
        worst = rise - np.log1p(tilt) - tilt * fall
        # log c is known within 16 units of its terms; the slopes of rise and θ · fall in it are at most 1 and θ
        doubt = (1.0 + tilt) * (32.0 + 16.0 * (np.abs(log_c) + tilt * wide + np.abs(np.log(wide)) + np.abs(np.log(tilt))))
        exact = worst + UNIT * doubt
        quadratic = tilt * (tilt + 1.0) * wide * wide / 8.0 * (1.0 + 16 * UNIT)
    return np.fmin(np.where(np.isnan(exact), np.inf, exact), quadratic)


def range_mean(epsilon: float) -> float:
    """Return an upper bound of E_P[L] of every ε-bounded-range mechanism. Rounds: up."""
    if epsilon == 0.0:
        return 0.0
    share = -math.expm1(-epsilon)
    # log(s/ε) + ε/s − 1 = g(x), g(x) = eˣ − 1 − x, x = log(ε/s) ≥ 0
    stretch = float(expm1_minus(np.array(-epsilon))) / share  # ε/s − 1
    log_stretch = math.log1p(stretch)
    return up(float(expm1_minus(np.array(log_stretch))), 64)


# ---- the records -----------------------------------------------------------------------------------------------------------


# ---- pure -----------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Pure(Loss):
    """Any ε-differentially private mechanism."""

    epsilon0: Fraction = field(alias="epsilon", converter=AT_LEAST_ZERO)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)


store_as(
    "Pure",
    Pure,
    write=lambda loss: {"epsilon": str(loss.epsilon0), "relation": adjacency_word(loss.adjacency)},
    read=lambda has: Pure(epsilon=has.pop("epsilon"), adjacency=has.pop("relation", None)),
)
describe(
    Pure,
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
two_faced.is_always(False, Pure)
say_nothing(
    Pure,
    closed_tradeoff,
    cut_bound,
    gaussian_squares,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
    unsampled,
)


@single_pure.of(Pure)
def _(record: Pure) -> Fraction | None:
    """Claim: ε, by definition."""
    return record.epsilon0


@single_concentrated.of(Pure)
def _(record: Pure) -> AmountPair | None:
    """Claim: ε tanh(ε/2). Source: randomized response is the worst case."""
    return pure_to_rho(record.epsilon0), Fraction(0)


basic_amounts.of(Pure)(basic_of_pure)


@law.of(Pure)
def _(record: Pure, count: int, direction: Direction, out: Sides) -> None:
    """Claim: randomized response is both the worst case and attained. Source: [KOV15, Thm. 3.3]."""
    del direction
    if record.epsilon0 > 0:
        for side in out.both:
            side.points.append((record.epsilon0, 2, count))


@mean_loss.of(Pure)
def _(record: Pure) -> float | None:
    return response_mean(record.epsilon0, 2)


def response_mean(exact: Fraction, categories: int) -> float:
    """Return ε (e^ε − 1)/(e^ε + k − 1), the mean loss of randomized response; for k = 2 ε tanh(ε/2). Rounds: up."""
    epsilon = float_up(exact)
    fall = math.exp(-epsilon)
    return up(epsilon * -math.expm1(-epsilon) / (1.0 + (categories - 1) * fall), 12)


@grouped.of(Pure)
def _(record: Pure, size: int) -> Loss:
    """Claim: ratios multiply."""
    return Pure(epsilon=record.epsilon0 * size, adjacency=record.adjacency)


@exact_rows.of(Pure)
def _(record: Pure) -> Rows | None:
    return response_rows(record.epsilon0, 2, Fraction(0))


# ---- approximate ----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Approx(Loss):
    """Any (ε, δ)-differentially private mechanism. Source: [KOV15, Thm. 3.3] for its worst case."""

    epsilon0: Fraction = field(alias="epsilon", converter=AT_LEAST_ZERO)
    delta0: Fraction = field(alias="delta", converter=PROBABILITY)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)


store_as(
    "Approx",
    Approx,
    write=lambda loss: {"epsilon": str(loss.epsilon0), "delta": str(loss.delta0), "relation": adjacency_word(loss.adjacency)},
    read=lambda has: Approx(epsilon=has.pop("epsilon"), delta=has.pop("delta"), adjacency=has.pop("relation", None)),
)
describe(
    Approx,
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
two_faced.is_always(False, Approx)
say_nothing(
    Approx,
    closed_tradeoff,
    cut_bound,
    gaussian_squares,
    mean_loss,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
    unsampled,
)


@single_pure.of(Approx)
def _(record: Approx) -> Fraction | None:
    """Claim: pure only where δ = 0."""
    return record.epsilon0 if record.delta0 == 0 else None


@single_concentrated.of(Approx)
def _(record: Approx) -> AmountPair | None:
    """Claim: δ-approximately ε tanh(ε/2)-zCDP, by the four-point worst case. Source: [KOV15, Thm. 3.3]."""
    return pure_to_rho(record.epsilon0), record.delta0


@basic_amounts.of(Approx)
def _(record: Approx) -> AmountPair | None:
    return record.epsilon0, record.delta0


@law.of(Approx)
def _(record: Approx, count: int, direction: Direction, out: Sides) -> None:
    """Claim: infinite loss with probability δ, else randomized response. Source: [KOV15, Thm. 3.3]."""
    del direction
    for side in out.both:
        side.infinite(record.delta0, record.delta0, count)
        if record.epsilon0 > 0:
            side.points.append((record.epsilon0, 2, count))


@grouped.of(Approx)
def _(record: Approx, size: int) -> Loss:
    """Claim: δ (e^(kε) − 1)/(e^ε − 1), the tight geometric sum. Rounds: up."""
    epsilon, delta = float_up(record.epsilon0), float_up(record.delta0)
    if epsilon * size < 690.0:
        ratio = float(size) if epsilon == 0.0 else up(math.expm1(size * epsilon), 8) / math.expm1(epsilon)
        total = up(delta * ratio, 16)
    else:  # (e^(kε) − 1)/(e^ε − 1) ≤ e^((k−1)ε)/(1 − e^(−ε)), in logarithms
        log_ratio = (size - 1) * epsilon - math.log(-math.expm1(-epsilon))
        log_total = log_ratio + math.log(delta) if delta > 0.0 else -math.inf
        total = up(math.exp(log_total + 1e-9), 8) if log_total < 0.0 else 1.0
    if total >= 1.0:
        raise NotPrivate(f"a group of {size} has no guarantee left: its delta would be at least 1")
    return Approx(epsilon=record.epsilon0 * size, delta=Fraction(total), adjacency=record.adjacency)


@exact_rows.of(Approx)
def _(record: Approx) -> Rows | None:
    return response_rows(record.epsilon0, 2, record.delta0)


# ---- concentrated ---------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Concentrated(Loss):
    """Any mechanism that is δ-approximately ρ-zCDP. Source: [BS16]."""

    rho0: Fraction = field(alias="rho", converter=AT_LEAST_ZERO)
    delta0: Fraction = field(alias="delta", default=Fraction(0), converter=PROBABILITY)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)


store_as(
    "Concentrated",
    Concentrated,
    write=lambda loss: {"rho": str(loss.rho0), "delta": str(loss.delta0), "relation": adjacency_word(loss.adjacency)},
    read=lambda has: Concentrated(rho=has.pop("rho"), delta=has.pop("delta", 0), adjacency=has.pop("relation", None)),
)
describe(
    Concentrated,
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
two_faced.is_always(True, Concentrated)
say_nothing(
    Concentrated,
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


@single_pure.of(Concentrated)
def _(record: Concentrated) -> Fraction | None:
    """Claim: pure only where nothing is spent."""
    return Fraction(0) if record.rho0 == 0 and record.delta0 == 0 else None


@single_concentrated.of(Concentrated)
def _(record: Concentrated) -> AmountPair | None:
    return record.rho0, record.delta0


@law.of(Concentrated)
def _(record: Concentrated, count: int, direction: Direction, out: Sides) -> None:
    """Claim: Gaussian noise of μ² = 2ρ is ρ-zCDP, so it bounds from below; above, only the Rényi reading speaks."""
    del direction
    out.above.missing = "Concentrated"
    if record.rho0 > 0:
        out.above.rhos.append(count * float_up(record.rho0))
        out.below.gaussian(float(2 * record.rho0), count)
    out.above.infinite(record.delta0, record.delta0, count)
    out.below.infinite(record.delta0, record.delta0, count)


@grouped.of(Concentrated)
def _(record: Concentrated, size: int) -> Loss:
    """Claim: ρ grows with the square of the size where δ = 0. Source: [BS16, Prop. 1.9]."""
    if record.delta0 > 0:
        raise no_group(record)
    return Concentrated(rho=record.rho0 * size * size, adjacency=record.adjacency)


def no_group(record: Loss) -> NotPrivate:
    """Return the refusal of a group rule for what is concentrated, or a selection of keys, only approximately."""
    return NotPrivate(
        f"no group rule is proved for {type(record).__name__} with delta above 0.",
        hint="convert it to Approx(epsilon=, delta=) first; its group rule is exact.",
    )


@unsampled.of(Concentrated)
def _(record: Concentrated, scheme: Scheme) -> NotPrivate | None:
    del scheme
    return no_sample(record)


def no_sample(record: Loss) -> NotPrivate:
    """Return the refusal of samples of what is known by its ρ, or of a selection of keys."""
    return NotPrivate(
        f"no subsampling rule is proved for {type(record).__name__}.",
        hint="subsample the loss of the mechanism itself, or Approx(epsilon=, delta=).",
    )


# ---- bounded range --------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class BoundedRange(Loss):
    """Log-probability ratios that lie in some interval of length ε: the exponential mechanism. Source: [DDR20]."""

    epsilon0: Fraction = field(alias="epsilon", converter=AT_LEAST_ZERO)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)


store_as(
    "BoundedRange",
    BoundedRange,
    write=lambda loss: {"epsilon": str(loss.epsilon0), "relation": adjacency_word(loss.adjacency)},
    read=lambda has: BoundedRange(epsilon=has.pop("epsilon"), adjacency=has.pop("relation", None)),
)
describe(
    BoundedRange,
    Traits(
        directional=False,
        gaussian=False,
        attains_pure=False,
        attains_infinity=True,
        follows_a_line=True,
        long_rho=False,
        reads_itself=False,
    ),
)
two_faced.is_always(True, BoundedRange)
say_nothing(
    BoundedRange,
    closed_tradeoff,
    cut_bound,
    exact_rows,
    gaussian_squares,
    own_reading,
    renyi_stand_in,
    unsampled,
)


@single_pure.of(BoundedRange)
def _(record: BoundedRange) -> Fraction | None:
    """Claim: a bounded range of ε is ε-private. Source: [DDR20]."""
    return record.epsilon0


@single_concentrated.of(BoundedRange)
def _(record: BoundedRange) -> AmountPair | None:
    """Claim: ε²/8, and never more than any ε-private mechanism. Source: [CR21]; also [DDR20]."""
    return min(record.epsilon0**2 / 8, pure_to_rho(record.epsilon0)), Fraction(0)


basic_amounts.of(BoundedRange)(basic_of_pure)


@law.of(BoundedRange)
def _(record: BoundedRange, count: int, direction: Direction, out: Sides) -> None:
    """Claim: above, the closed-form dominating pair; below, randomized response of ε/2, whose log-ratios span ε."""
    del direction
    if record.epsilon0 > 0:
        out.above.laplaces.append((float(record.epsilon0), 0.0, 1.0, count))
        out.below.points.append((record.epsilon0 / 2, 2, count))


@own_curve.of(BoundedRange)
def _(record: BoundedRange) -> AddsToCurve | None:
    del record
    return _with_ranges


def _with_ranges(rest: Curve, ranges: list[tuple[BoundedRange, int]]) -> Curve:
    """Bounded ranges by the worst of all their pairs, an order at a time: no single pair is the worst at every order."""
    epsilon = np.array([float_up(record.epsilon0) for record, _ in ranges])
    count = np.array([float(count) for _, count in ranges])

    def divergence(alpha: FloatArray) -> FloatArray:
        orders = np.asarray(alpha, dtype=np.float64)
        flat = orders.ravel()
        finite = np.isfinite(flat) & (flat > 1.0)
        theta = np.where(finite, flat - 1.0, 1.0)
        top = float(count @ epsilon)
        own = count @ range_log_moments(epsilon, theta) / theta
        total = np.where(finite, np.minimum(own, top), top) * (1.0 + UNIT * (8 + len(ranges)))
        return rest.divergence(orders) + total.reshape(orders.shape)

    return Curve(divergence, rest.infinite)


@mean_loss.of(BoundedRange)
def _(record: BoundedRange) -> float | None:
    return min(range_mean(float_up(record.epsilon0)), float_up(record.epsilon0**2 / 8))


@grouped.of(BoundedRange)
def _(record: BoundedRange, size: int) -> Loss:
    """Claim: ratios multiply."""
    return BoundedRange(epsilon=record.epsilon0 * size, adjacency=record.adjacency)


@noise_cells.of(BoundedRange)
def _(record: BoundedRange) -> tuple[CellPair, CellPair | Rows] | None:
    """Claim: below, randomized response of half its length attains it."""
    return bounded_range_cells(float(record.epsilon0)), response_rows(record.epsilon0 / 2, 2, Fraction(0))
