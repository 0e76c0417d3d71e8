"""Losses between Gaussian mixtures on one axis: Poisson-subsampled Gaussian noise, in every direction and for groups.

The pairs themselves are in normal_mixtures.py. Their moment functions are integrals over the whole axis, which is what Rényi
readings and closed forms ask for; the sum over frequencies asks for the pairs cut off at two ends (cut_mixture.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.rounding import UNIT
from curador.privacy.laws.cut_mixture import CutMixtureLaw, cut
from curador.privacy.laws.normal_mixtures import Mixture, Nodes, Pairs, gather, nodes

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import Atoms, Lattice, Transform

_REACH = 9.3  # standard deviations kept beyond the outermost centre: e^(−9.3²/2) = 1.7e-19
_MOST_PAIRS = 1_000_000  # numbers held at once
_MOST_NODES = 40_000


@dataclass(frozen=True)
class MixtureLaw:
    """Pairs of one shape, each `count` times.

    Claim   log_moment is an upper bound; what `cut` returns is the same law without outputs of a stated chance.
    Source  docs/explanation/accounting.md, theorem 5.
    """

    members: tuple[Mixture, ...]

    @cached_property
    def pairs(self) -> Pairs:
        """The members as arrays."""
        return gather(self.members)

    @property
    def horizon(self) -> float:
        """The decay holds at every frequency."""
        return math.inf

    @property
    def top(self) -> float:
        """Finite only where P itself has no shift: L = −log B is at most −log b₀."""
        if any(len(one.above) > 1 or one.sign < 0 or one.below[0] <= 0.0 for one in self.members):
            return math.inf
        return math.fsum(-math.log(one.below[0]) * one.count for one in self.members) * (1.0 + 16 * UNIT)

    @property
    def records(self) -> int:
        """How many pairs."""
        return len(self.members)

    def cut(self, mass: float, least: float) -> CutMixtureLaw:
        """Return the law without outputs of at most that chance in all, and without those of losses below `least`."""
        return cut(self.pairs, mass, least)

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """Σ count · log M(θ). Rounds: up; +∞ where the quadrature cannot be trusted or would be too long."""
        theta = np.asarray(theta, dtype=np.float64)
        out = np.full(theta.shape, np.inf)
        order = np.argsort(theta)
        start = 0
        while start < len(order):  # tilts of one size share their nodes
            first = float(theta[order[start]])
            stop = max(start + 1, int(np.searchsorted(theta[order], max(4.0 * first, 4.0), side="right")))
            found = self._of_one_size(theta[order[start:stop]])
            out[order[start:stop]] = found
            if not np.isfinite(found).all():
                break  # larger tilts need even more nodes
            start = stop
        return out

    def _of_one_size(self, theta: FloatArray) -> FloatArray:
        width = max(1, _MOST_PAIRS // (800 * len(theta)))
        try:
            parts = [_log_moments(self.pairs.rows(row, row + width), theta) for row in range(0, len(self.pairs), width)]
        except NumericalFailure:  # too many nodes: perhaps not for the smaller half
            half = len(theta) // 2
            return (
                np.append(self._of_one_size(theta[:half]), np.full(len(theta) - half, np.inf)) if half else np.array([np.inf])
            )
        return self.pairs.count @ np.concatenate(parts)

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """Refuse: the sum asks the cut law."""
        del theta, step, size
        raise NumericalFailure("a mixture is summed only where it was cut")

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """No decay is claimed of the law that was not cut."""
        del theta
        return np.zeros_like(frequency)

    @property
    def happens_once(self) -> bool:
        """Whether `one_step` speaks of the whole family."""
        return len(self.members) == 1 and self.members[0].count == 1

    def one_step(self, epsilon: float) -> tuple[float, float]:
        """Return (lower, upper) bounds of D(ε) of a single step."""
        return one_step(self.members[0], epsilon, self.top)

    def atoms(self, limit: int) -> list[Atoms] | None:
        """None: the law is continuous."""
        del limit

    def lattice(self) -> Lattice | None:
        """None: the law is continuous."""


def one_step(law: Mixture, epsilon: float, top: float) -> tuple[float, float]:
    """Return (lower, upper) bounds of D(ε) of one step: P(x > x*) − e^ε Q(x > x*) where L(x*) = ε.

    Claim   Any threshold gives a lower bound and the best one is x*, where the derivative vanishes, so the error of the
            root is of second order; what is left is round-off relative to the two tails.
    """
    from scipy.special import ndtr

    sigma, flip = law.sigma, -1.0 if len(law.above) == 1 and law.sign > 0 else 1.0
    at = _threshold(law, epsilon, flip)
    p_places = [(a, flip * (j - at) / sigma) for j, a in enumerate(law.above)]
    if epsilon > 600.0:  # e^ε leaves the floats: only the trivial lower end, and P's own tail above
        tail = math.fsum(a * float(ndtr(z)) for a, z in p_places)
        return 0.0, tail * (1 + 1e-9) + 5e-324
    q_places = [(b * math.exp(epsilon), flip * (law.sign * j - at) / sigma) for j, b in enumerate(law.below)]
    p = math.fsum(a * float(ndtr(z)) for a, z in p_places)
    q = math.fsum(b * float(ndtr(z)) for b, z in q_places)
    # a normal tail at z < 0 magnifies relative errors of z by up to 1 + z²
    doubt = 4 * UNIT + law.spread
    error = math.fsum(a * float(ndtr(z)) * (12 * UNIT + doubt * (1.0 + min(z, 0.0) ** 2)) for a, z in p_places + q_places)
    error += 4 * UNIT * (1.0 + abs(epsilon)) * q
    return max(p - q - error, 0.0), max(p - q, 0.0) + error + (5e-324 if p > 0.0 or epsilon < top else 0.0)


def _threshold(law: Mixture, epsilon: float, flip: float) -> float:
    """About where the loss is ε: bisection on the monotone loss."""
    k = max(len(law.above), len(law.below)) - 1
    s2 = law.sigma * law.sigma
    far = s2 * (abs(epsilon) + 750.0) + k + 60.0 * law.sigma
    low, high = -far, far

    def log_mixture(weights: tuple[float, ...], sign: int, x: float) -> float:
        logs = [math.log(w) + (2.0 * sign * j * x - j * j) / (2.0 * s2) for j, w in enumerate(weights) if w > 0.0]
        peak = max(logs)
        return peak + math.log(math.fsum(math.exp(one - peak) for one in logs))

    for _ in range(120):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        loss = log_mixture(law.above, 1, middle) - log_mixture(law.below, law.sign, middle)
        low, high = (middle, high) if flip * (loss - epsilon) < 0 else (low, middle)
    return 0.5 * (low + high)


def _log_moments(pairs: Pairs, theta: FloatArray) -> FloatArray:
    """log M(θ) over the whole axis, one row a pair. Rounds: up."""
    low, high = _window(pairs, float(theta.max()))
    found, _ = nodes(pairs, low, high, theta=float(theta.max()), frequency=0.0, ends=False, most=_MOST_NODES)
    exponent = np.multiply.outer(found.loss, theta)
    logs = found.log_p[..., None] + exponent
    peak = logs.max(axis=1)
    shape = np.exp(logs - peak[:, None, :])
    total = shape.sum(axis=1)
    value = peak + np.log(total)
    log_lost = np.logaddexp(found.missed(np.append(theta, 0.0), 0.0), _log_beyond(found, low, high, np.append(theta, 0.0)))
    lost = np.exp(np.minimum(log_lost, 600.0))
    adding = UNIT * (24.0 + 8.0 * math.sqrt(found.x.shape[1]))
    rough = found.doubt[..., None] + np.multiply.outer(found.wobble, theta) + adding
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        error = (shape * rough).sum(axis=1) / total + np.exp(np.minimum(log_lost[:, :-1] - value, 1.0))
        mass = np.exp(found.log_p)[..., None]
        grown = np.expm1(np.minimum(exponent, 600.0))
        gain = (mass * grown).sum(axis=1)  # M − 1 = E_P[e^(θL) − 1]
        wrong = (mass * (np.abs(grown) * rough + found.wobble[..., None] * theta * (grown + 1.0))).sum(axis=1)
        wrong = 2.0 * wrong + lost[:, :-1] + lost[:, -1:]
        small = (exponent.max(axis=1) < 600.0) & (gain < 0.5)
        value = np.where(small, np.minimum(np.log1p(gain + wrong), value + 2.0 * error), value + 2.0 * error)
    return np.where(error < 0.4, np.maximum(value, 0.0), np.inf)


def _log_beyond(found: Nodes, low: FloatArray, high: FloatArray, theta: FloatArray) -> FloatArray:
    """Log of the integrand's mass beyond both ends: at most f(end) over the slope of log f, which only steepens outwards."""
    pairs = found.pairs
    s2 = pairs.sigma**2

    def ends(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_a, _ = pairs.log_a(x)
        log_b, slope_b = pairs.log_b(x)
        return pairs.log_normal(x) + log_a + (log_a - log_b) * theta, slope_b

    right_log, right_slope = ends(high)
    left_log, left_slope = ends(low)
    right = -high / s2 + (theta + 1.0) * pairs.shifts[0] / s2 - theta * right_slope
    left = low / s2 + theta * left_slope
    with np.errstate(divide="ignore", invalid="ignore"):
        high_mass = np.where(right < 0, right_log - np.log(-right), np.inf)
        low_mass = np.where(left < 0, left_log - np.log(-left), np.inf)
    return np.logaddexp(high_mass, low_mass) + 1e-9


def _window(pairs: Pairs, theta: float) -> tuple[FloatArray, FloatArray]:
    """Ends beyond which the tilted integrand falls faster than a Gaussian tail of 9.3 standard deviations."""
    up, down = pairs.shifts
    reach = _REACH * pairs.sigma
    low, high = -reach, (theta + 1.0) * up + reach
    if down and pairs.sign > 0:
        low = _push(pairs, theta, origin=low, far=low - theta * down)
    if down and pairs.sign < 0:
        high = _push(pairs, theta, origin=high, far=high + theta * down)
    return low, high


def _push(pairs: Pairs, theta: float, *, origin: FloatArray, far: FloatArray) -> FloatArray:
    """Bisect for the nearest end whose own pull θσ²|B'/B| is paid for."""
    start = origin
    for _ in range(24):
        middle = 0.5 * (start + far)
        paid = np.abs(middle - origin) >= theta * pairs.sigma**2 * np.abs(pairs.log_b(middle)[1])
        far, start = np.where(paid, middle, far), np.where(paid, start, middle)
    return far
