"""Losses between Gaussian mixtures on one axis: Poisson-subsampled Gaussian noise, in every direction and for groups.

In units of the sensitivity, with noise N(0, σ²) and weights a_j, b_j on the shifts 0 … k,

    P has density N(x; 0, σ²) A(x),   A(x) = Σ_j a_j exp((2jx − j²)/2σ²),
    Q has density N(x; 0, σ²) B(x),   B(x) = Σ_j b_j exp((±2jx − j²)/2σ²),
    M(s) = ∫ N(x; 0, σ²) A^(s+1) B^(−s) dx,   L(x) = log A(x) − log B(x), monotone in x.

The integral is a trapezoid sum, whose error on an analytic integrand is explicit.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.logspace import expm1_minus
from curador.numerics.rounding import UNIT
from curador.numerics.tilted.moments import Transform
from curador.privacy.laws.chunks import safe_log
from curador.privacy.laws.finite import characteristic

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import Atoms, Lattice

_REACH = 9.3  # standard deviations kept beyond the outermost centre: e^(−9.3²/2) = 1.7e-19
_MOST_NODES = 40_000
_MANY = 12
_STRIPS = np.geomspace(1e-3, 0.98, 32)  # half-widths tried, as shares of the widest strip
_MOST_PAIRS = 2_000_000  # nodes times tilts evaluated at once
_QUADRATURE = 1e-17


@dataclass(frozen=True, slots=True)
class MixtureLaw:
    """The pair above, `count` times; `sign` is the direction of Q's shifts, `spread` a relative doubt of 1/σ².

    Claim   transform is within its stated errors of M(s)/M(θ); log_moment is an upper bound.
    Needs   Weights are probabilities; P's shifts point up.
    Source  docs/explanation/accounting.md, theorem 5 (quadrature) and 2 (layers).
    """

    sigma: float
    above: tuple[float, ...]
    below: tuple[float, ...]
    sign: int
    count: int
    spread: float = 0.0

    @property
    def horizon(self) -> float:
        """The decay holds at every frequency."""
        return math.inf

    @property
    def top(self) -> float:
        """Finite only where P itself has no shift: L = −log B is at most −log b₀."""
        if len(self.above) > 1 or self.sign < 0 or self.below[0] <= 0.0:
            return math.inf
        return -math.log(self.below[0]) * self.count * (1.0 + 16 * UNIT)

    @property
    def records(self) -> int:
        """One; a handful of steps decays slowly, and its quadrature needs as many nodes as frequencies."""
        return 1 if self.count >= _MANY else 3_000

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """Count times log M(θ). Rounds: up; +∞ where the quadrature cannot be trusted or would be too long."""
        theta = np.asarray(theta, dtype=np.float64)
        out = np.full(theta.shape, np.inf)
        order = np.argsort(theta)
        start = 0
        while start < len(order):  # tilts of one size share a grid
            first = float(theta[order[start]])
            stop = max(start + 1, int(np.searchsorted(theta[order], max(4.0 * first, 4.0), side="right")))
            low, high, step = integration_range(self, float(theta[order[stop - 1]]), 0.0)
            stop = min(stop, start + max(1, int(_MOST_PAIRS * step / (high - low))))
            low, high, step = integration_range(self, float(theta[order[stop - 1]]), 0.0)
            if (high - low) / step > _MOST_NODES - 2:
                if stop == start + 1:
                    break  # larger tilts need even more
                stop = start + 1
            out[order[start:stop]] = self._log_moments(theta[order[start:stop]])
            start = stop
        return out

    def _log_moments(self, theta: FloatArray) -> FloatArray:
        grid = _grid(self, float(theta.max()), 0.0)
        log_f = grid.log_f(theta)
        peak = log_f.max(axis=0)
        shape = np.exp(log_f - peak)
        total = shape.sum(axis=0)
        cut = grid.error(theta, np.zeros(1))[:, 0] + grid.lost(log_f, theta) / total
        error = cut + self._round_off(grid, shape, theta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = peak + np.log(total * grid.step) + 2.0 * error
            excess = grid.excess(theta) * (1.0 + 4.0 * error) + 4.0 * cut
            value = np.where(excess < 0.5, np.minimum(np.log1p(excess), value), value)
        return self.count * np.where(error < 0.4, np.maximum(value, 0.0), np.inf)

    def _round_off(self, grid: _Grid, shape: FloatArray, theta: FloatArray) -> FloatArray:
        size = (shape * grid.scale[:, None]).sum(axis=0) / shape.sum(axis=0)
        return (6 * UNIT + 2.0 * self.spread) * (theta + 1.0) * size + UNIT * (24.0 + 8.0 * math.sqrt(len(grid.x)))

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """A trapezoid sum at every frequency, as one matrix product."""
        grid = _grid(self, theta, step * size)
        tilt = np.array([theta])
        log_f = grid.log_f(tilt)
        shape = np.exp(log_f - log_f.max())
        total = float(shape.sum())
        weights = shape[:, 0] / total
        phi = characteristic(weights, grid.loss, step, size)
        frequency = step * np.arange(size)
        spread = float((weights * grid.scale).sum())
        floor = float(self._round_off(grid, shape, tilt)[0]) + 2.0 * float(grid.lost(log_f, tilt)[0]) / total
        quadrature = grid.error(tilt, frequency)[0]
        error = 2.0 * floor + 2.0 * quadrature + (6 * UNIT + 2.0 * self.spread) * frequency * spread
        with np.errstate(divide="ignore"):
            logs = safe_log(phi)
            bound = self.count * (np.log(np.abs(phi) + error) + 4 * UNIT * np.minimum(np.abs(logs), 1e3))
        log_scale = float(log_f.max()) + math.log(total * grid.step)
        return Transform(
            self.count * logs,
            bound,
            self.count * log_scale,
            self.count * 2.0 * (floor + float(quadrature[0])),
        )

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """Count times log(1 − Σ layers' masses (1 − sinc)): theorem 2."""
        masses, lengths = _layers(self, theta)
        half = 0.5 * np.multiply.outer(frequency, lengths)
        kept = 1.0 - (masses * (1.0 - _sinc_ceiling(half))).sum(axis=-1)
        return self.count * np.log(np.clip(kept * (1 + 1e-10), 1e-300, 1.0))

    @property
    def happens_once(self) -> bool:
        """Whether `one_step` speaks of the whole family."""
        return self.count == 1

    def one_step(self, epsilon: float) -> tuple[float, float]:
        """Return (lower, upper) bounds of D(ε) of a single step: P(x > x*) − e^ε Q(x > x*) where L(x*) = ε.

        Claim   Any threshold gives a lower bound and the best one is x*, where the derivative vanishes, so the error of the
                root is of second order; what is left is round-off relative to the two tails.
        """
        from scipy.special import ndtr

        sigma, flip = self.sigma, -1.0 if len(self.above) == 1 and self.sign > 0 else 1.0

        def loss_at(x: float) -> float:
            point = np.array([x])
            return float(_mixture(self, self.above, 1, point)[0][0] - _mixture(self, self.below, self.sign, point)[0][0])

        k = max(len(self.above), len(self.below)) - 1
        far = sigma * sigma * (abs(epsilon) + 750.0) + k + 60.0 * sigma
        low, high = -far, far
        for _ in range(120):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if flip * (loss_at(middle) - epsilon) < 0 else (low, middle)
        at = 0.5 * (low + high)
        p_places = [(a, flip * (j - at) / sigma) for j, a in enumerate(self.above)]
        if epsilon > 600.0:  # e^ε leaves the floats: only the trivial lower end, and P's own tail above
            tail = math.fsum(a * float(ndtr(z)) for a, z in p_places)
            return 0.0, tail * (1 + 1e-9) + 5e-324
        q_places = [(b * math.exp(epsilon), flip * (self.sign * j - at) / sigma) for j, b in enumerate(self.below)]
        p = math.fsum(a * float(ndtr(z)) for a, z in p_places)
        q = math.fsum(b * float(ndtr(z)) for b, z in q_places)
        # a normal tail at z < 0 magnifies relative errors of z by up to 1 + z²
        doubt = 4 * UNIT + self.spread
        error = math.fsum(a * float(ndtr(z)) * (12 * UNIT + doubt * (1.0 + min(z, 0.0) ** 2)) for a, z in p_places + q_places)
        error += 4 * UNIT * (1.0 + abs(epsilon)) * q
        return max(p - q - error, 0.0), max(p - q, 0.0) + error + (5e-324 if p > 0.0 or epsilon < self.top else 0.0)

    def atoms(self, limit: int) -> list[Atoms] | None:
        """None: the law is continuous."""
        del limit

    def lattice(self) -> Lattice | None:
        """None: the law is continuous."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """Equally spaced nodes with the logarithms and log-slopes of A and B."""

    law: MixtureLaw
    x: FloatArray
    step: float
    log_a: FloatArray
    slope_a: FloatArray
    log_b: FloatArray
    slope_b: FloatArray

    @property
    def loss(self) -> FloatArray:
        return self.log_a - self.log_b

    @property
    def scale(self) -> FloatArray:
        """Size of the terms that round-off in log A and log B is relative to."""
        k = max(len(self.law.above), len(self.law.below)) - 1
        return (np.abs(self.x) * k + k * k) / self.law.sigma**2 + np.abs(self.log_a) + np.abs(self.log_b) + 1.0

    def log_f(self, theta: FloatArray) -> FloatArray:
        """log of the tilted integrand, shape (nodes, tilts)."""
        sigma = self.law.sigma
        base = -0.5 * (self.x / sigma) ** 2 - math.log(sigma * math.sqrt(2.0 * math.pi)) + self.log_a
        return base[:, None] + np.multiply.outer(self.loss, theta)

    def excess(self, theta: FloatArray) -> FloatArray:
        """M(θ) − 1 = E_Q[g(αL) − α g(L)], g(x) = eˣ − 1 − x: positive terms, because E_Q[e^L] = 1."""
        sigma = self.law.sigma
        weight = np.exp(-0.5 * (self.x / sigma) ** 2 + self.log_b) * (self.step / (sigma * math.sqrt(2.0 * math.pi)))
        alpha = theta + 1.0
        bend = expm1_minus(np.multiply.outer(self.loss, alpha)) - np.multiply.outer(expm1_minus(self.loss), alpha)
        return (weight[:, None] * np.maximum(bend, 0.0)).sum(axis=0)

    def lost(self, log_f: FloatArray, theta: FloatArray) -> FloatArray:
        """Integrand's mass beyond both ends, relative to e^max, in units of the step (Mills' ratio of a steeper Gaussian)."""
        s2, peak = self.law.sigma**2, log_f.max(axis=0)
        right = -self.x[-1] / s2 + (theta + 1.0) * (len(self.law.above) - 1) / s2 - theta * self.slope_b[-1]
        left = self.x[0] / s2 + theta * self.slope_b[0]
        with np.errstate(divide="ignore", over="ignore"):
            high = np.where(right < 0, np.exp(log_f[-1] - peak) / -right, np.inf)
            low = np.where(left < 0, np.exp(log_f[0] - peak) / -left, np.inf)
        return (high + low) / self.step

    def error(self, theta: FloatArray, frequency: FloatArray) -> FloatArray:
        """Relative error of the infinite trapezoid sum, shape (tilts, frequencies): the best of 32 strips."""
        law, s2 = self.law, self.law.sigma**2
        up, down = len(law.above) - 1, len(law.below) - 1
        strip = math.pi * s2 / max(up, down, 1) * _STRIPS
        turns = 2.0 * math.pi / self.step * strip
        fixed = strip**2 / (2.0 * s2) - turns - np.log(-np.expm1(-turns))
        swing = (up + down) / s2 * strip
        if down:
            bend = -np.log(np.cos(np.minimum(down / (2.0 * s2) * strip, 1.57)))
            fixed = fixed + np.multiply.outer(theta, bend)
        else:
            fixed = np.broadcast_to(fixed, (len(theta), len(strip)))
        if len(frequency) * len(theta) <= 4_096:
            best = (fixed[:, :, None] + np.multiply.outer(swing, frequency)).min(axis=1)
        else:  # one strip at a time
            best = np.minimum.reduce([fixed[:, i, None] + swing[i] * frequency for i in range(0, len(strip), 2)])
        return 2.0 * np.exp(np.minimum(best, math.log(2.0)))


def _mixture(law: MixtureLaw, weights: tuple[float, ...], sign: int, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log Σ_j w_j exp((2 sign j x − j²)/2σ²) and its derivative in x."""
    if len(weights) == 1:
        return np.zeros_like(x), np.zeros_like(x)
    s2 = law.sigma**2
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(weights))
    j = np.arange(len(weights))
    terms = logs[:, None] + (2.0 * sign * np.multiply.outer(j, x) - (j * j)[:, None]) / (2.0 * s2)
    peak = terms.max(axis=0)
    share = np.exp(terms - peak)
    total = share.sum(axis=0)
    return peak + np.log(total), sign * (share * j[:, None]).sum(axis=0) / total / s2


def _window(law: MixtureLaw, theta: float) -> tuple[float, float]:
    """Ends beyond which the tilted integrand falls faster than a Gaussian tail of 9.3 standard deviations."""
    sigma, up, down = law.sigma, len(law.above) - 1, len(law.below) - 1
    reach = _REACH * sigma
    low, high = -reach, (theta + 1.0) * up + reach
    if down and law.sign > 0:
        low = _push(law, theta, start=-reach, far=-reach - theta * down)
    if down and law.sign < 0:
        high = _push(law, theta, start=high, far=high + theta * down)
    return low, high


def _push(law: MixtureLaw, theta: float, *, start: float, far: float) -> float:
    """Bisect for the nearest end whose own pull θσ²|B'/B| is paid for."""
    origin = -_REACH * law.sigma if law.sign > 0 else (theta + 1.0) * (len(law.above) - 1) + _REACH * law.sigma
    for _ in range(24):
        middle = 0.5 * (start + far)
        if abs(middle - origin) >= theta * _mean_shift(law, middle):
            far = middle
        else:
            start = middle
    return far


def _mean_shift(law: MixtureLaw, x: float) -> float:
    """σ² |B'/B| at x: the mean shift under the weights of B there."""
    logs = [
        (math.log(weight) + (2.0 * law.sign * j * x - j * j) / (2.0 * law.sigma**2), j)
        for j, weight in enumerate(law.below)
        if weight > 0.0
    ]
    peak = max(value for value, _ in logs)
    shares = [(math.exp(value - peak), j) for value, j in logs]
    return sum(share * j for share, j in shares) / sum(share for share, _ in shares)


@functools.lru_cache(maxsize=256)
def integration_range(law: MixtureLaw, theta: float, frequency: float) -> tuple[float, float, float]:
    """Return (low, high, step) of the nodes that serve tilts up to θ and frequencies up to the given one."""
    low, high = _window(law, theta)
    k = max(len(law.above), len(law.below)) - 1
    step = min(0.2 * law.sigma, 0.3 * law.sigma**2 / max(k, 1))
    probe = np.empty(0)
    for _ in range(40):
        trial = _Grid(law, probe, step, probe, probe, probe, probe)
        if float(trial.error(np.array([theta]), np.array([frequency]))[0, 0]) <= _QUADRATURE:
            break
        step *= 0.8
    return low, min(high, low + _MOST_NODES * step), step


@functools.lru_cache(maxsize=64)
def _grid(law: MixtureLaw, theta: float, frequency: float) -> _Grid:
    low, high, step = integration_range(law, theta, frequency)
    x = low + step * np.arange(int((high - low) / step) + 2)
    log_a, slope_a = _mixture(law, law.above, 1, x)
    log_b, slope_b = _mixture(law, law.below, law.sign, x)
    return _Grid(law, x, step, log_a, slope_a, log_b, slope_b)


@functools.lru_cache(maxsize=64)
def _layers(law: MixtureLaw, theta: float) -> tuple[FloatArray, FloatArray]:
    """Masses and lengths of intervals whose stacked uniform layers lie below the tilted density of the loss.

    Claim   Σ mass/length · 1_interval ≤ density. Any minorant will do; this one takes each cell's lowest value, then the
            monotone envelope on both sides of the peak, then 96 geometric levels of it.
    """
    low, high = _window(law, theta)
    x = np.linspace(low, high, 1000)
    log_a, slope_a = _mixture(law, law.above, 1, x)
    log_b, slope_b = _mixture(law, law.below, law.sign, x)
    grid = _Grid(law, x, x[1] - x[0], log_a, slope_a, log_b, slope_b)
    log_f = grid.log_f(np.array([theta]))[:, 0]
    up = len(law.above) - 1
    dip = grid.step**2 / 8.0 * (theta + 1.0) * up * up / (4.0 * law.sigma**4)
    steepest = np.maximum(slope_a[1:] - slope_b[:-1], slope_b[1:] - slope_a[:-1])
    top = float(law.log_moment(np.array([theta]))[0]) / law.count
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        height = np.exp(np.minimum(log_f[:-1], log_f[1:]) - dip - top) / np.maximum(steepest, 1e-300)
    height = np.where(np.isfinite(height), height, 0.0)
    loss = np.minimum.accumulate(grid.loss[::-1])[::-1] if grid.loss[-1] > grid.loss[0] else grid.loss
    edges = np.sort(loss)
    height = height if loss[-1] >= loss[0] else height[::-1]
    peak = int(np.argmax(height * np.diff(edges) > 0)) if not height.any() else int(np.argmax(height))
    envelope = np.concatenate([np.minimum.accumulate(height[peak::-1])[::-1], np.minimum.accumulate(height[peak + 1 :])])
    if peak + 1 < len(height):
        envelope[peak + 1 :] = np.minimum(envelope[peak + 1 :], height[peak])
    levels = height[peak] * np.geomspace(1.0, 1e-6, 96) if height[peak] > 0 else np.zeros(96)
    first = np.searchsorted(envelope[: peak + 1], levels, side="left")
    last = peak + 1 + np.searchsorted(-envelope[peak + 1 :], -levels, side="right")
    lengths = (edges[last] - edges[first]) * (1 - 1e-12)
    rises = levels - np.append(levels[1:], 0.0)
    return rises * lengths * (1 - 1e-9), np.maximum(lengths, 0.0)


def _sinc_ceiling(u: FloatArray) -> FloatArray:
    """sup over v ≥ u of |sin v / v|, from above."""
    safe = np.maximum(u, 1e-8)
    return np.where(
        u <= 2.0,
        np.minimum(np.sin(np.minimum(safe, 2.0)) / np.minimum(safe, 2.0) + 4 * UNIT, 1.0),
        np.minimum(1.0 / safe, 0.4547),
    )
