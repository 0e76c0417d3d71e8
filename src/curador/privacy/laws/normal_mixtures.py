"""Pairs of Gaussian mixtures as arrays, and integrals over them by Gauss's rule on panels.

One row a pair. In units of the sensitivity, with noise N(0, σ²) and weights a_j, b_j on the shifts 0 … k,

    P has density N(x; 0, σ²) A(x),   A(x) = Σ_j a_j exp((2jx − j²)/2σ²),
    Q has density N(x; 0, σ²) B(x),   B(x) = Σ_j b_j exp((±2jx − j²)/2σ²),   L(x) = log A(x) − log B(x), monotone in x.

Everything is computed from A − 1 and B − 1, so that a loss of size q is known to within q units of 2⁻⁵³, not one unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.rounding import UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.numerics.rounding import FloatArray

POINTS = 24
MOST_NODES = 120_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(POINTS)  # within 8 units of 2^-53 of the true ones, relative
_ELLIPSES = (2.2, 3.3, 5.0, 8.0, 13.0)  # r of the Bernstein ellipses tried: half-axes h(r ± 1/r)/2
_WANTED = 1e-17
_LARGEST = 700.0  # exponents beyond leave the floats


MixtureKind = tuple[float, tuple[float, ...], tuple[float, ...], int, float]
"""A pair, however often it comes."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """One pair, `count` times; `sign` is the direction of Q's shifts, `spread` a relative doubt of 1/σ².

    Needs   Weights are probabilities; P's shifts point up.
    """

    sigma: float
    above: tuple[float, ...]
    below: tuple[float, ...]
    sign: int
    count: int
    spread: float = 0.0

    @property
    def shape(self) -> tuple[int, int, int]:
        """What pairs must share to be rows of one array."""
        return len(self.above), len(self.below), self.sign

    @property
    def kind(self) -> MixtureKind:
        """Everything but how often."""
        return self.sigma, self.above, self.below, self.sign, self.spread


@dataclass(frozen=True, eq=False)
class MixturePairs:
    """Many pairs of one shape; the arrays have a column for each pair's number."""

    sigma: FloatArray
    above: tuple[FloatArray, ...]
    below: tuple[FloatArray, ...]
    sign: int
    count: FloatArray
    doubt: FloatArray  # relative, of 1/σ²: the pair's own and a few ulps

    def __len__(self) -> int:
        return len(self.count)

    @property
    def shifts(self) -> tuple[int, int]:
        """The largest shift of P and of Q."""
        return len(self.above) - 1, len(self.below) - 1

    @cached_property
    def rising(self) -> bool:
        """Whether the loss rises with x."""
        return len(self.above) > 1 or self.sign < 0

    def rows(self, start: int, stop: int) -> MixturePairs:
        """Some of the pairs."""
        if start == 0 and stop >= len(self):
            return self
        part = slice(start, stop)
        return MixturePairs(
            self.sigma[part],
            tuple(one[part] for one in self.above),
            tuple(one[part] for one in self.below),
            self.sign,
            self.count[part],
            self.doubt[part],
        )

    def log_a(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log A and its slope."""
        return _log_mixture(self.above, 1, self.sigma, x)

    def log_b(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log B and its slope."""
        return _log_mixture(self.below, self.sign, self.sigma, x)

    def log_normal(self, x: FloatArray) -> FloatArray:
        """Return log N(x; 0, σ²)."""
        return -0.5 * (x / self.sigma) ** 2 - np.log(self.sigma * math.sqrt(2.0 * math.pi))


def gather(pairs: Sequence[Mixture]) -> MixturePairs:
    """Return the pairs as arrays."""
    column = [np.array([value]).T for value in zip(*(pair.above for pair in pairs), strict=True)]
    row = [np.array([value]).T for value in zip(*(pair.below for pair in pairs), strict=True)]
    return MixturePairs(
        np.array([[float(pair.sigma)] for pair in pairs]),
        tuple(column),
        tuple(row),
        pairs[0].sign,
        np.array([float(pair.count) for pair in pairs]),
        np.array([[pair.spread + 4 * UNIT] for pair in pairs]),
    )


def _log_mixture(
    weights: tuple[FloatArray, ...], sign: int, sigma: FloatArray, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """log Σ_j w_j exp((2 sign j x − j²)/2σ²) and its derivative in x, from the sum less 1."""
    if len(weights) == 1:
        zero = np.zeros_like(x)
        return zero, zero
    s2 = sigma * sigma
    less_one = np.zeros_like(x)
    pull = np.zeros_like(x)
    top = np.full_like(x, -np.inf)
    for j in range(1, len(weights)):
        exponent = (sign * j * x - 0.5 * j * j) / s2
        top = np.maximum(top, exponent)
        grown = np.expm1(np.minimum(exponent, _LARGEST))
        less_one += weights[j] * grown
        pull += (j * weights[j]) * (grown + 1.0)
    value = np.log1p(np.maximum(less_one, -0.5))
    total = 1.0 + less_one
    if np.any(less_one < -0.5):  # the first weight is the small one: no cancellation, add all terms
        plain = weights[0] + sum(
            weights[j] * np.exp(np.minimum((sign * j * x - 0.5 * j * j) / s2, 0.0)) for j in range(1, len(weights))
        )
        total = np.where(less_one < -0.5, np.maximum(plain, 5e-324), total)
        value = np.where(less_one < -0.5, np.log(total), value)
    slope = pull / total / s2
    if np.any(top > _LARGEST):
        j = np.arange(len(weights))[:, None, None]
        with np.errstate(divide="ignore"):
            terms = np.log(np.stack([np.broadcast_to(weight, x.shape) for weight in weights]))
        terms = terms + (sign * j * x - 0.5 * j * j) / s2
        peak = terms.max(axis=0)
        share = np.exp(terms - peak)
        value = np.where(top > _LARGEST, peak + np.log(share.sum(axis=0)), value)
        slope = np.where(top > _LARGEST, (share * j).sum(axis=0) / share.sum(axis=0) / s2, slope)
    return value, sign * slope


@dataclass(frozen=True, eq=False)
class Nodes:
    """Gauss's nodes on panels between two ends, a row a pair, and what round-off can do to the integrand there."""

    pairs: MixturePairs
    middle: FloatArray  # of the panels
    half: FloatArray
    x: FloatArray
    log_p: FloatArray  # log of (density of P times weight of the node)
    loss: FloatArray
    wobble: FloatArray  # absolute error of the loss
    doubt: FloatArray  # relative error of the P-mass of the node

    def missed(self, theta: FloatArray, frequency: float) -> FloatArray:
        """Return log of what the rule misses of ∫ N A^(s+1) B^(−s), |Im s| ≤ frequency; shape (pairs, tilts).

        Claim   On a panel of half-length h about c Gauss's rule with m points misses (64/15) h W r^(−2m)/(1 − r^(−2)),
                W the largest modulus on the ellipse with half-axes e, b = h(r ± 1/r)/2. There, with α = b/σ² and z = x + iy:
                |N(z)| ≤ N(x) e^(b²/2σ²); |A(z)| ≤ A(x); |B(z)| ≥ B(x) cos(k_B α/2) and, taking real parts,
                ≥ B(x)(1 − k_B α² σ² (log B)'/2); |arg A| ≤ k_A α and ≤ b (log A)'/cos(k_A α), B alike; the slopes are
                monotone, so their ends bound them, and log f changes by at most e times its steepest slope.
        Source  docs/explanation/accounting.md, theorem 5; the rule's error: Trefethen, ATAP, Thm. 19.3.
        """
        found = self._ellipses
        fixed = found.fixed + frequency * found.swing if frequency else found.fixed
        tilts = theta[:, None, None, None]
        rise = found.rise + found.rise_tilted * tilts
        fall = found.fall + found.fall_tilted * tilts
        size = fixed + found.tilted * tilts + np.maximum(np.abs(rise), np.abs(fall))
        best = np.where(np.isnan(size), np.inf, size).min(axis=2)  # (tilts, pairs, panels)
        peak = best.max(axis=2, keepdims=True)
        with np.errstate(invalid="ignore"):
            total = peak[..., 0] + np.log(np.exp(best - peak).sum(axis=2))
        return np.where(np.isnan(total), np.inf, total).T + 1e-6

    @cached_property
    def _ellipses(self) -> _Ellipses:
        """What `missed` knows of every ellipse, whatever the tilt and the frequency."""
        pairs = self.pairs
        up, down = pairs.shifts
        panels = self.middle.shape[1]
        r = np.array(_ELLIPSES)[:, None]
        e, b = (0.5 * self.half[:, None, :] * (r + sign / r) for sign in (1.0, -1.0))  # (pairs, ellipses, panels)
        left, right = self.middle[:, None, :] - e, self.middle[:, None, :] + e
        places = np.concatenate([self.middle[:, None, :], left, right], axis=1).reshape(len(pairs), -1)
        log_a, slope_a = (one.reshape(len(pairs), -1, panels) for one in pairs.log_a(places))
        log_b, slope_b = (one.reshape(len(pairs), -1, panels) for one in pairs.log_b(places))
        kinds = len(_ELLIPSES)
        a_low, a_high = slope_a[:, 1 : kinds + 1], slope_a[:, kinds + 1 :]
        b_low, b_high = slope_b[:, 1 : kinds + 1], slope_b[:, kinds + 1 :]
        b_most = np.maximum(np.abs(b_low), np.abs(b_high))
        s2 = (pairs.sigma**2)[:, None]
        alpha = b / s2
        fixed = 0.5 * b * alpha + np.log(64.0 / 15.0 * self.half)[:, None, :]
        fixed += -2 * POINTS * np.log(r) - np.log1p(-(r**-2.0))
        fixed += (pairs.log_normal(self.middle) + log_a[:, 0])[:, None, :]
        fixed = np.where(max(up, down, 1) * alpha < 0.98 * math.pi, fixed, np.inf)
        bend = np.maximum(np.cos(np.minimum(0.5 * down * alpha, 1.57)), 1.0 - 0.5 * down * alpha**2 * s2 * b_most)
        return _Ellipses(
            fixed=fixed,
            swing=_turn(up, alpha, b, a_high) + _turn(down, alpha, b, b_most),
            tilted=(log_a[:, 0] - log_b[:, 0])[:, None, :] - np.log(bend),
            rise=e * (a_high - left / s2),
            rise_tilted=e * (a_high - b_low),
            fall=e * (right / s2 - a_low),
            fall_tilted=e * (b_high - a_low),
        )


@dataclass(frozen=True, slots=True)
class _Ellipses:
    """Logarithms on every ellipse of every panel: what stands fast, and what grows with the tilt or the frequency."""

    fixed: FloatArray
    swing: FloatArray
    tilted: FloatArray
    rise: FloatArray
    rise_tilted: FloatArray
    fall: FloatArray
    fall_tilted: FloatArray


def _turn(shifts: int, alpha: FloatArray, height: FloatArray, slope: FloatArray) -> FloatArray:
    """|arg| of a mixture at a height above x: at most the largest shift's, about its slope's."""
    if shifts == 0:
        return np.zeros_like(alpha)
    angle = shifts * alpha
    return np.where(angle < 1.4, np.minimum(angle, height * slope / np.cos(np.minimum(angle, 1.4))), angle)


def place_nodes(
    pairs: MixturePairs,
    low: FloatArray,
    high: FloatArray,
    *,
    theta: float,
    frequency: float,
    ends: bool = True,
    most: int = MOST_NODES,
) -> tuple[Nodes, FloatArray]:
    """Return nodes that serve tilts up to θ and frequencies up to the given one, and log of what they miss at θ and at 0.

    With `ends` the tilted integrand may be steep at an end. No choice here has to be right: `missed` is evaluated for it.
    """
    share = 1.0
    while True:
        found = _place_panels(pairs, low, high, (theta if ends else 0.0) + frequency, share, most)
        missed = found.missed(np.array([theta, 0.0]), frequency)
        share *= 0.75
        if share < 0.15 or (missed[:, 0] - _log_sum(found, theta)).max() <= math.log(_WANTED):
            return found, missed


def _log_sum(found: Nodes, theta: float) -> FloatArray:
    logs = found.log_p + theta * found.loss
    peak = logs.max(axis=1)
    return peak + np.log(np.exp(logs - peak[:, None]).sum(axis=1))


def _place_panels(pairs: MixturePairs, low: FloatArray, high: FloatArray, turning: float, share: float, most: int) -> Nodes:
    """Panels of at most 2 σ (2.2 σ² over the largest shift) whose loss moves by at most 22 over θ + t."""
    widest = np.minimum(2.0 * pairs.sigma, 2.2 * pairs.sigma**2 / max(*pairs.shifts, 1)) * share
    reach = high - low
    if float((reach / widest).max()) * POINTS > most:
        raise NumericalFailure("the quadrature of a mixture would take too many nodes")
    probe = low + reach * np.linspace(0.0, 1.0, 129)
    slope = np.abs(pairs.log_a(probe)[1] - pairs.log_b(probe)[1])
    density = reach / widest + (turning / (22.0 * share)) * reach * np.maximum(slope[:, 1:], slope[:, :-1])
    needed = np.concatenate([np.zeros((len(pairs), 1)), np.cumsum(density, axis=1) / 128.0], axis=1)
    panels = math.ceil(float(needed[:, -1].max()))
    if panels * POINTS > most:
        raise NumericalFailure("the quadrature of a mixture would take too many nodes")
    levels = np.linspace(0.0, 1.0, panels + 1)
    edges = np.stack([np.interp(levels * row[-1], row, place) for row, place in zip(needed, probe, strict=True)])
    edges[:, 0], edges[:, -1] = low[:, 0], high[:, 0]
    middle, half = 0.5 * (edges[:, 1:] + edges[:, :-1]), 0.5 * np.diff(edges, axis=1)
    x = (middle[..., None] + half[..., None] * _NODES).reshape(len(pairs), -1)
    weight = (half[..., None] * _WEIGHTS).reshape(len(pairs), -1)
    return _evaluate_nodes(pairs, middle, half, x, weight)


def _evaluate_nodes(pairs: MixturePairs, middle: FloatArray, half: FloatArray, x: FloatArray, weight: FloatArray) -> Nodes:
    """Claim: the exponents carry a relative error of 1/σ² (doubt) and 4 ulps; the slopes turn that into one of the loss."""
    up, down = pairs.shifts
    s2 = pairs.sigma**2
    log_a, slope_a = pairs.log_a(x)
    log_b, slope_b = pairs.log_b(x)
    reach = np.abs(x)
    wobble_a = pairs.doubt * slope_a * (reach + 0.5 * up) + 6 * UNIT * np.abs(log_a)
    wobble_b = pairs.doubt * np.abs(slope_b) * (reach + 0.5 * down) + 6 * UNIT * np.abs(log_b)
    # nodes and weights of Gauss's rule: 8 units, the nodes' relative to the panel and to x
    moved = 8 * UNIT * (np.repeat(half, POINTS, axis=1) + reach)
    own = pairs.doubt * (0.5 * x * x / s2 + 1.0) + moved * (reach / s2 + slope_a) + 24 * UNIT
    return Nodes(
        pairs,
        middle,
        half,
        x,
        pairs.log_normal(x) + log_a + np.log(weight),
        log_a - log_b,
        wobble_a + wobble_b + moved * (slope_a + np.abs(slope_b)),
        own + wobble_a,
    )
