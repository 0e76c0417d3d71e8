"""Finite outputs, known by their probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from attrs import field, frozen

from curador.errors import NotPrivate, require
from curador.numerics.exact import Number, rational
from curador.numerics.rounding import UNIT, log_up, up
from curador.privacy.adjacency import Adjacency, maybe_adjacency
from curador.privacy.kinds.promises import Pure, basic_of_pure, concentrated_of_pure
from curador.privacy.laws.finite import FiniteLaw
from curador.privacy.laws.side import Direction, Sides
from curador.privacy.loss import Loss, Scheme
from curador.privacy.rules import (
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


def _distribution(values: Sequence[Number], name: str) -> tuple[Fraction, ...]:
    require(not isinstance(values, str) and hasattr(values, "__len__") and len(values) > 0, name, "a list", values)
    exact = tuple(rational(value, f"{name}[{place}]") for place, value in enumerate(values))
    require(min(exact) >= 0 and sum(exact) == 1, name, "probabilities that add up to exactly 1", values)
    return exact


def _p(values: Sequence[Number]) -> tuple[Fraction, ...]:
    return _distribution(values, "p")


def _q(values: Sequence[Number]) -> tuple[Fraction, ...]:
    return _distribution(values, "q")


@frozen(kw_only=True)
class Finite(Loss):
    """A finite output with probabilities p where the person is present and q where not (or on two neighbours)."""

    p: tuple[Fraction, ...] = field(converter=_p)
    q: tuple[Fraction, ...] = field(converter=_q)
    adjacency: Adjacency | None = field(default=None, converter=maybe_adjacency)

    def __attrs_post_init__(self) -> None:
        require(len(self.p) == len(self.q), "q", f"as long as p ({len(self.p)})", len(self.q))


store_as(
    "Finite",
    Finite,
    write=lambda loss: {
        "p": [str(one) for one in loss.p],
        "q": [str(one) for one in loss.q],
        "relation": adjacency_word(loss.adjacency),
    },
    read=lambda has: Finite(p=has.pop("p"), q=has.pop("q"), adjacency=has.pop("relation", None)),
)
describe(
    Finite,
    Traits(
        directional=True,
        gaussian=False,
        attains_pure=False,
        attains_infinity=True,
        follows_a_line=False,
        long_rho=False,
        reads_itself=False,
    ),
)
two_faced.is_always(False, Finite)
say_nothing(
    Finite,
    closed_tradeoff,
    cut_bound,
    gaussian_squares,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
)


@single_pure.of(Finite)
def _(record: Finite) -> Fraction | None:
    """Claim: the largest |log p/q|, +∞ where one of them is 0. Rounds: up."""
    rows = [(p, q) for p, q in zip(record.p, record.q, strict=True) if (p, q) != (0, 0)]
    if any(p == 0 or q == 0 for p, q in rows):
        return None
    worst = max(max(p / q, q / p) for p, q in rows)
    return Fraction(0) if worst == 1 else Fraction(log_up(worst))


single_concentrated.of(Finite)(concentrated_of_pure)


basic_amounts.of(Finite)(basic_of_pure)


@law.of(Finite)
def _(record: Finite, count: int, direction: Direction, out: Sides) -> None:
    """Claim: the pair itself, atom by atom."""
    p, q = (record.p, record.q) if direction is Direction.LEAVES else (record.q, record.p)
    add_rows(list(zip(p, q, strict=True)), count, out)


def add_rows(rows: Rows, count: int, out: Sides) -> None:
    """Add the laws of `count` releases of a finite pair, row by row (p, q)."""
    alone = sum((p for p, q in rows if q == 0), Fraction(0))
    shared = [(p, q) for p, q in rows if p > 0 and q > 0]
    for side in out.both:
        side.infinite(alone, alone, count)
    if alone < 1:
        losses = np.array([_log_ratio(p, q) for p, q in shared])
        masses = np.array([float(p / (1 - alone)) for p, _ in shared])
        balanced = alone == 0 and sum(q for _, q in shared) == 1
        digits = max(math.log(max(p.numerator * q.denominator, p.denominator * q.numerator)) for p, q in shared)
        finite = FiniteLaw(losses, masses, count, 32 * UNIT, balanced=balanced, doubt=4 * UNIT * digits)
        for side in out.both:
            side.others.append(finite)


def _log_ratio(p: Fraction, q: Fraction) -> float:
    ratio = p / q
    return (
        math.log1p(float(ratio - 1))
        if Fraction(1, 2) < ratio < 2
        else math.log(ratio.numerator) - math.log(ratio.denominator)
    )


@mean_loss.of(Finite)
def _(record: Finite) -> float | None:
    """Σ p log p/q, exact masses."""
    worst = 0.0
    for first, second in ((record.p, record.q), (record.q, record.p)):
        terms = [(p, q) for p, q in zip(first, second, strict=True) if p > 0]
        if any(q == 0 for _, q in terms):
            return math.inf
        # g(x) = x − 1 − log x ≥ 0 with x = q/p: Σ p g(q/p) = Σ p log p/q + (Σ q − 1), and no terms cancel
        values = [float(p) * _gap(float(q / p - 1)) for p, q in terms]
        missing = float(1 - sum((q for _, q in terms), Fraction(0)))
        worst = max(worst, up((math.fsum(values) + missing) * (1 + 16 * UNIT), 8))
    return worst


def _gap(y: float) -> float:
    """y − log(1 + y) without cancellation."""
    if abs(y) > 0.05:
        return y - math.log1p(y)
    return math.fsum((-1.0) ** k * y**k / k for k in range(2, 16))


@grouped.of(Finite)
def _(record: Finite, size: int) -> Loss:
    """Claim: ratios multiply where there is a pure ε."""
    epsilon = single_pure(record)
    if epsilon is None:
        raise NotPrivate("no group rule is proved for this Finite loss: it is neither pure nor Gaussian")
    return Pure(epsilon=size * epsilon, adjacency=record.adjacency)


@exact_rows.of(Finite)
def _(record: Finite) -> Rows | None:
    return list(zip(record.p, record.q, strict=True))


@unsampled.of(Finite)
def _(record: Finite, scheme: Scheme) -> NotPrivate | None:
    if scheme == "without_replacement" and _is_lopsided(record):
        return NotPrivate(
            "sampling without replacement is proved for pairs that look alike in both directions; this Finite does not"
        )
    return None


def _is_lopsided(record: Finite) -> bool:
    pairs = list(zip(record.p, record.q, strict=True))
    return sorted(pairs) != sorted((q, p) for p, q in pairs)
