"""Losses between Gaussian mixtures on one axis: Poisson-subsampled Gaussian noise, in every direction and for groups.

The pairs themselves are in normal_mixtures.py. Their moment functions are integrals over the whole axis, which is what Rényi
readings and closed forms ask for; the sum over frequencies asks for the pairs cut off at two ends, far outputs set apart.
Inside the ends of each pair the moment function is an integral over a finite interval, finite for every tilt, and the losses
are bounded; what lies outside has a chance that is known in closed form and goes to +∞ above and to nothing below.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.rounding import UNIT
from curador.numerics.tilted.moments import Transform
from curador.privacy.laws.normal_mixtures import Mixture, MixturePairs, Nodes, gather, place_nodes

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import Atoms, ComplexArray, Lattice


# ---- pairs between two ends ------------------------------------------------------------------------------------------------


_MOST_CUT_PAIRS = 1_000_000  # numbers held at once
_HELD = 100_000  # complex numbers in one table of turns
_SMALL = 600.0  # exponents up to which e^x − 1 is taken as it is
_LEVELS = 96
_LOOKS = np.linspace(0.0, 1.0, 49)
_SIZES, _FEW_SIZES = (-1.0, 200.0, 800.0, 5000.0), (-1.0, 800.0, 5000.0)
"""Tilts times the largest loss of a step, in groups that share nodes; beyond the last no moment is of any use. Of a few pairs
placing the nodes takes longer than using them."""


@dataclass(frozen=True, eq=False)
class CutMixtureLaw:
    """Pairs of one shape, each on x in [low, high] only.

    Claim   transform is within its stated errors of M(s)/M(θ), M(s) = ∏ (∫_low^high N A^(s+1) B^(−s) dx)^n; log_moment is an
            upper bound; log_decay bounds |M(θ + iu)|/M(θ) for all u beyond. `outside` bounds the chance, over all
            steps, of the outputs left out that matter, from above.
    Rounds  Outward. All errors are relative to φ − 1 and M − 1, so that they do not grow with the number of steps.
    Source  docs/explanation/accounting.md, theorem 5 (panels), 2 (layers) and 10 (cutting).
    """

    pairs: MixturePairs
    low: FloatArray
    high: FloatArray
    outside: float

    @property
    def horizon(self) -> float:
        """The decay holds at every frequency."""
        return math.inf

    @cached_property
    def top(self) -> float:
        """The loss at the end where it is largest. Rounds: up."""
        end = self.high if self.pairs.rising else self.low
        loss = (self.pairs.log_a(end)[0] - self.pairs.log_b(end)[0])[:, 0]
        return float((self.pairs.count * (loss + 1e-12 * np.abs(loss))).sum())

    @property
    def records(self) -> int:
        """As many as let frequencies times nodes, which grow alike, stay within a tenth of a second."""
        most = max(math.sqrt(1600.0 + 1.2e7 / len(self.pairs)) - 40.0, 600.0)
        return max(1, round(6e6 / most))

    @cached_property
    def steepest(self) -> float:
        """The largest loss of a single step, in modulus."""
        ends = np.concatenate([self.low, self.high], axis=1)
        return float(np.abs(self.pairs.log_a(ends)[0] - self.pairs.log_b(ends)[0]).max())

    @cached_property
    def _survival(self) -> FloatArray:
        """P(x outside) of each pair."""
        return _tails(self.pairs.above, 1, self.pairs.sigma, self.low, self.high)[:, 0]

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """Upper bounds of log M(θ)."""
        return self.pairs.count @ self._log_moments(np.asarray(theta, dtype=np.float64))

    def _log_moments(self, theta: FloatArray) -> FloatArray:
        """Upper bounds of log ∫ N A^(θ+1) B^(−θ), one row a pair. Rounds: up."""
        out = np.full((len(self.pairs), len(theta)), np.inf)
        steep = theta * self.steepest
        for least, most in itertools.pairwise(
            _FEW_SIZES if len(self.pairs) < 8 else _SIZES
        ):  # tilts of one size share their nodes
            some = np.flatnonzero((steep > least) & (steep <= most))
            width = max(1, _MOST_CUT_PAIRS // (600 * max(1, len(some))))
            for first in range(0, len(self.pairs) if some.size else 0, width):
                rows = (first, min(first + width, len(self.pairs)))
                out[first : first + width, some] = self._moments_of(
                    self._nodes_for(most, *rows), theta[some], self._survival[slice(*rows)]
                )
            if some.size > 8:  # where Chernoff's bound has long passed its best, larger tilts are of no use
                reached = (self.pairs.count @ out[:, some] + 700.0) / theta[some]
                if reached[int(np.argmax(theta[some]))] > 2.0 * reached.min():
                    break
        return out

    @cached_property
    def _kept_nodes(self) -> dict[tuple[float, int, int], Nodes]:
        return {}

    def _nodes_for(self, steep: float, first: int, last: int) -> Nodes:
        """Nodes that serve all tilts up to a size, kept: several tables of tilts are asked for."""
        key = (steep, first, last)
        if key not in self._kept_nodes:
            self._kept_nodes[key] = self._nodes(first, last, steep / self.steepest, 0.0)[0]
        return self._kept_nodes[key]

    def _moments_of(self, found: Nodes, theta: FloatArray, lost: FloatArray) -> FloatArray:
        """Return log M(θ) from above, for some pairs: M(θ) = ∫ P (e^(θL) − 1) + 1 − P(x outside)."""
        exponent = np.multiply.outer(found.loss, theta)
        mass = np.exp(found.log_p)[:, None, :]
        grown = np.expm1(np.minimum(exponent, _SMALL))
        small = exponent.max(axis=1) < _SMALL
        gain = np.matmul(mass, grown)[:, 0, :]
        wrong = np.matmul(mass * (found.doubt + _adding(found))[:, None, :], np.abs(grown))[:, 0, :]
        wrong += theta * np.matmul(mass * found.wobble[:, None, :], grown + 1.0)[:, 0, :]
        log_missed = found.missed(np.append(theta, 0.0), 0.0)
        missed = np.exp(np.minimum(log_missed, _SMALL))
        missed = missed[:, :-1] + missed[:, -1:]  # of e^(θL) and of 1
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log1p(gain + 2.0 * wrong + missed - (1 - 1e-9) * lost[:, None])
            if not small.all():
                value = np.where(small, value, self._large(found, theta, log_missed[:, :-1]))
        return np.where(np.isnan(value), np.inf, value)

    @staticmethod
    def _large(found: Nodes, theta: FloatArray, log_missed: FloatArray) -> FloatArray:
        """log M(θ) where e^(θL) leaves the floats. Rounds: up."""
        logs = found.log_p[..., None] + np.multiply.outer(found.loss, theta)
        error = (found.doubt[..., None] + np.multiply.outer(found.wobble, theta)).max(axis=1)
        peak = logs.max(axis=1)
        value = peak + np.log(np.exp(logs - peak[:, None, :]).sum(axis=1))
        missed = np.exp(np.minimum(log_missed - value, 1.0))
        return np.where((error < 0.1) & (missed < 0.1), value + 2.0 * error + 2.0 * missed, np.inf)

    def _nodes(self, first: int, last: int, theta: float, frequency: float) -> tuple[Nodes, FloatArray]:
        part = self.pairs.rows(first, last)
        return place_nodes(part, self.low[first:last], self.high[first:last], theta=theta, frequency=frequency)

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """A sum over the nodes at every frequency, less 1."""
        value = np.zeros(size, dtype=np.complex128)
        bound = np.zeros(size)
        scales: list[float] = []
        errors: list[float] = []
        width = max(1, _MOST_CUT_PAIRS // (400 * min(size, 64)))
        for first in range(0, len(self.pairs), width):
            rows = slice(first, first + width)
            found, log_missed = self._nodes(first, first + width, theta, step * size)
            count = self.pairs.count[rows, None]
            logs, slack, scale, error = self._transformed(found, log_missed, theta, step, size, self._survival[rows])
            value += (count * logs).sum(axis=0)
            bound += (count * (logs.real + slack + 4 * UNIT * np.minimum(np.abs(logs), 1e3))).sum(axis=0)
            scales.extend((count[:, 0] * scale).tolist())
            errors.extend((count[:, 0] * error + 2 * UNIT * np.abs(count[:, 0] * scale)).tolist())
        return Transform(value, bound, math.fsum(scales), math.fsum(errors))

    @staticmethod
    def _transformed(
        found: Nodes, log_missed: FloatArray, theta: float, step: float, size: int, lost: FloatArray
    ) -> tuple[ComplexArray, FloatArray, FloatArray, FloatArray]:
        """log φ and log((|φ| + w)/|φ|) on the line, log M(θ) and its error, one row a pair."""
        exponent = found.log_p + theta * found.loss
        peak = exponent.max(axis=1, keepdims=True)
        weights = np.exp(exponent - peak)
        total = weights.sum(axis=1, keepdims=True)
        weights /= total
        rough = found.doubt + theta * found.wobble + _adding(found) + 8 * UNIT * (_block(size) + 1)
        log_scale = (peak + np.log(total))[:, 0]
        missed = np.exp(np.minimum(log_missed - log_scale[:, None], 1.0)).sum(axis=1)  # at every frequency, and at 0
        log_error = 2.0 * ((weights * rough).sum(axis=1) + missed) + 8 * UNIT * np.abs(log_scale)
        if theta * float(np.abs(found.loss).max()) < _SMALL:  # M − 1 has the smaller error where it is small
            mass = np.exp(found.log_p)
            grown = np.expm1(theta * found.loss)
            gain = (mass * grown).sum(axis=1) - lost
            wrong = (mass * (np.abs(grown) * rough + theta * found.wobble * (grown + 1.0))).sum(axis=1)
            wrong = 2.0 * wrong + missed * np.exp(log_scale) + 1e-9 * lost
            fine = np.isfinite(gain) & (gain > -0.5) & (wrong < 0.2 * (1.0 + gain))
            with np.errstate(invalid="ignore", divide="ignore"):
                wrong = 1.5 * wrong / (1.0 + gain) + 4 * UNIT * np.abs(np.log1p(gain))
                better = fine & (wrong < log_error)
                log_scale = np.where(better, np.log1p(gain), log_scale)
                log_error = np.where(better, wrong, log_error)
        psi = _less_one(weights, found.loss, step, size)
        frequency = step * np.arange(size)
        share = weights * (rough + (weights * rough).sum(axis=1, keepdims=True))
        size_of_loss = (share * np.abs(found.loss)).sum(axis=1, keepdims=True)
        moved = (weights * (found.wobble + 6 * UNIT * np.abs(found.loss))).sum(axis=1, keepdims=True)
        error = np.minimum(4.0 * share.sum(axis=1, keepdims=True), 3.0 * frequency * size_of_loss)
        error = error + 2.0 * frequency * moved + 4.0 * missed[:, None]
        squared = 2.0 * psi.real + psi.real**2 + psi.imag**2
        with np.errstate(divide="ignore", over="ignore"):
            plain = np.log(np.maximum(np.hypot(1.0 + psi.real, psi.imag), 1e-300))
            modulus = np.where(squared > -0.5, 0.5 * np.log1p(np.maximum(squared, -0.5)), plain)
            logs = modulus + 1j * np.arctan2(psi.imag, 1.0 + psi.real)
            slack = np.log1p(error * np.exp(-modulus))
        return logs, slack, log_scale, log_error

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """Σ n log(1 − Σ layers' masses (1 − sinc)): theorem 2."""
        masses, lengths = self._layers(theta)
        out = np.zeros(len(frequency))
        block = max(1, _MOST_CUT_PAIRS // masses.size)
        for first in range(0, len(frequency), block):
            t = frequency[first : first + block, None, None]
            kept = 1.0 - (masses * (1.0 - _sinc_ceiling(0.5 * t * lengths))).sum(axis=2)
            out[first : first + block] = np.log(np.clip(kept * (1 + 1e-10), 1e-300, 1.0)) @ self.pairs.count
        return out

    @cached_property
    def _kept_layers(self) -> dict[float, tuple[FloatArray, FloatArray]]:
        return {}

    def _layers(self, theta: float) -> tuple[FloatArray, FloatArray]:
        if theta not in self._kept_layers:
            self._kept_layers[theta] = self._new_layers(theta)
        return self._kept_layers[theta]

    def _new_layers(self, theta: float) -> tuple[FloatArray, FloatArray]:
        """Masses and lengths of intervals whose stacked uniform layers lie below the tilted density of the loss.

        Claim   Σ mass/length · 1_interval ≤ density. Any minorant will do; this one takes each cell's lowest value, then the
                monotone envelope on both sides of the peak, then geometric levels of it.
        """
        pairs = self.pairs
        x = self.low + (self.high - self.low) * np.linspace(0.0, 1.0, 1000 if len(pairs) < 8 else 300)
        width = (self.high - self.low) / (x.shape[1] - 1)
        log_a, slope_a = pairs.log_a(x)
        log_b, slope_b = pairs.log_b(x)
        loss = log_a - log_b
        log_f = pairs.log_normal(x) + log_a + theta * loss
        up = pairs.shifts[0]
        dip = width**2 / 8.0 * (theta + 1.0) * up * up / (4.0 * pairs.sigma**4)
        steepest = np.maximum(slope_a[:, 1:] - slope_b[:, :-1], slope_b[:, 1:] - slope_a[:, :-1])
        most = self._log_moments(np.array([theta]))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            height = np.exp(np.minimum(log_f[:, :-1], log_f[:, 1:]) - dip - most) / np.maximum(steepest, 1e-300)
        height = np.where(np.isfinite(height), height, 0.0)
        if not pairs.rising:
            loss, height = loss[:, ::-1], height[:, ::-1]
        edges = np.maximum.accumulate(loss, axis=1)
        peak = np.argmax(height, axis=1)
        envelope = _envelope(height, peak)
        levels = height[np.arange(len(pairs)), peak][:, None] * np.geomspace(1.0, 1e-6, _LEVELS)
        lengths = np.empty_like(levels)
        for row, at in enumerate(peak):  # the cells on which the envelope reaches a level are neighbours
            first = np.searchsorted(envelope[row, : at + 1], levels[row], side="left")
            last = at + 1 + np.searchsorted(-envelope[row, at + 1 :], -levels[row], side="right")
            lengths[row] = edges[row, last] - edges[row, first]
        lengths = np.maximum(lengths * (1 - 1e-12) - 8 * UNIT * np.abs(edges).max(axis=1, keepdims=True), 0.0)
        rises = levels - np.concatenate([levels[:, 1:], np.zeros((len(pairs), 1))], axis=1)
        return rises * lengths * (1 - 1e-9), lengths

    def atoms(self, limit: int) -> list[Atoms] | None:
        """None: the law is continuous."""
        del limit

    def lattice(self) -> Lattice | None:
        """None: the law is continuous."""


def _adding(found: Nodes) -> float:
    """Relative error of a sum over the nodes, beside that of its terms.

    Claim   n terms, added in any order, are off by at most n − 1 units of the sum of their moduli; a dozen more are for the
            products, and twice that for complex ones.
    """
    return UNIT * (24.0 + found.x.shape[1])


def _envelope(height: FloatArray, peak: FloatArray) -> FloatArray:
    """The largest function below that rises up to the peak and falls from there."""
    place = np.arange(height.shape[1])
    left = np.where(place <= peak[:, None], height, np.inf)
    right = np.where(place >= peak[:, None], height, np.inf)
    rising = np.minimum.accumulate(left[:, ::-1], axis=1)[:, ::-1]
    falling = np.minimum.accumulate(right, axis=1)
    return np.where(place <= peak[:, None], rising, falling)


def _less_one(weights: FloatArray, loss: FloatArray, step: float, size: int) -> ComplexArray:
    """Return Σ_j weight_j (exp(i k step loss_j) − 1), k = 0 … size − 1, one row a pair.

    e^(i(u+v)) − 1 = (e^(iu) − 1)(e^(iv) − 1) + (e^(iu) − 1) + (e^(iv) − 1), so two small tables and one matrix product serve
    all frequencies, and every error stays relative to what is small.
    """
    block = _block(size)
    rows = -(-size // block)
    both = np.zeros((len(weights), rows, block), dtype=np.complex128)
    some = max(64, _HELD // (block * len(weights)))
    for first in range(0, weights.shape[1], some):  # tables that stay near the processor
        weight, angle = weights[:, first : first + some], step * loss[:, first : first + some]
        fine = _powers(angle, block)
        coarse = _powers(block * angle, rows)
        coarse *= weight[:, None, :]
        both += np.matmul(coarse, fine.transpose(0, 2, 1))
        both += coarse.sum(axis=2)[:, :, None]
        both += np.matmul(fine, weight[:, :, None]).transpose(0, 2, 1)
    return both.reshape(len(weights), -1)[:, :size]


def _block(size: int) -> int:
    return math.isqrt(max(size - 1, 1)) + 1


def _powers(angle: FloatArray, size: int) -> ComplexArray:
    """e^(ik angle) − 1, k < size, each within 4k ulps of min(2, k angle): one turn after the other, from the sines of one."""
    half = np.sin(0.5 * angle)
    turn = -2.0 * half * half + 1j * np.sin(angle)
    out = np.zeros((len(angle), size, angle.shape[1]), dtype=np.complex128)
    for k in range(1, size):
        np.multiply(out[:, k - 1], turn, out=out[:, k])
        out[:, k] += out[:, k - 1]
        out[:, k] += turn
    return out


def _tails(weights: tuple[FloatArray, ...], sign: int, sigma: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The mass of a mixture outside [low, high]. Rounds: up."""
    from scipy.special import ndtr

    places = [(weight, sign * j) for j, weight in enumerate(weights)]
    masses = [weight * (ndtr((low - centre) / sigma) + ndtr((centre - high) / sigma)) for weight, centre in places]
    return np.sum(masses, axis=0) * (1 + 1e-11)


def cut_pairs(pairs: MixturePairs, mass: float, least: float) -> CutMixtureLaw:
    """Set apart outputs of at most that chance in all, and outputs of losses below `least`, whose chance does not count.

    Claim   `outside` ≥ Σ n P(x outside and L(x) ≥ least). The ends are chosen, their chance is computed: any ends are valid.
    """
    from scipy.special import ndtri

    each = max(0.5 * mass / float(pairs.count.sum()), 1e-300)
    right, left = (1.8 * each, 0.2 * each) if pairs.rising else (each, each)
    kinds = len(pairs.above)
    low, high = np.full_like(pairs.sigma, np.inf), np.full_like(pairs.sigma, -np.inf)
    for j, weight in enumerate(pairs.above):
        with np.errstate(divide="ignore"):
            ends = [-ndtri(np.minimum(share / (kinds * np.maximum(weight, 1e-300)), 0.5)) for share in (left, right)]
        low = np.minimum(low, j - pairs.sigma * ends[0])
        high = np.maximum(high, j + pairs.sigma * ends[1])
    counted = high
    if not pairs.rising and least > -math.inf:  # the loss falls with x: far to the right nothing matters
        end = _falls_to(pairs, least, low, high)
        counted = np.where(end < high, np.inf, high)
        high = np.minimum(end, high)
    lost = _tails(pairs.above, 1, pairs.sigma, low, counted)[:, 0]
    return CutMixtureLaw(pairs, low, high, float((pairs.count * lost).sum()) * (1 + 1e-12))


def _falls_to(pairs: MixturePairs, least: float, low: FloatArray, high: FloatArray) -> FloatArray:
    """Where a falling loss is below `least`, within a 2,000th of the way to the first such place, or the right end."""
    start, end = low, high
    for _ in range(2):  # a few wide looks are sooner done than many narrow ones
        places = start + (end - start) * _LOOKS
        below = pairs.log_a(places)[0] - pairs.log_b(places)[0] < least
        first = np.where(below.any(axis=1), np.maximum(np.argmax(below, axis=1), 1), len(_LOOKS) - 1)[:, None]
        start, end = (np.take_along_axis(places, first - back, axis=1) for back in (1, 0))
    return np.where(pairs.log_a(end)[0] - pairs.log_b(end)[0] < least, end, high)


def _sinc_ceiling(u: FloatArray) -> FloatArray:
    """sup over v ≥ u of |sin v / v|, from above."""
    safe = np.maximum(u, 1e-8)
    return np.where(
        u <= 2.0,
        np.minimum(np.sin(np.minimum(safe, 2.0)) / np.minimum(safe, 2.0) + 4 * UNIT, 1.0),
        np.minimum(1.0 / safe, 0.4547),
    )


# ---- pairs on the whole axis -----------------------------------------------------------------------------------------------


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
    def pairs(self) -> MixturePairs:
        """The members as arrays."""
        return gather(self.members)

    @property
    def horizon(self) -> float:
        """The decay holds at every frequency."""
        return math.inf

    @property
    def top(self) -> float:
        """Finite only where P itself has no shift: L = −log B is at most −log b₀."""
        if any(len(member.above) > 1 or member.sign < 0 or member.below[0] <= 0.0 for member in self.members):
            return math.inf
        return math.fsum(-math.log(member.below[0]) * member.count for member in self.members) * (1.0 + 16 * UNIT)

    @property
    def records(self) -> int:
        """How many pairs."""
        return len(self.members)

    def cut(self, mass: float, least: float) -> CutMixtureLaw:
        """Return the law without outputs of at most that chance in all, and without those of losses below `least`."""
        return cut_pairs(self.pairs, mass, least)

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
        return peak + math.log(math.fsum(math.exp(log - peak) for log in logs))

    for _ in range(120):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        loss = log_mixture(law.above, 1, middle) - log_mixture(law.below, law.sign, middle)
        low, high = (middle, high) if flip * (loss - epsilon) < 0 else (low, middle)
    return 0.5 * (low + high)


def _log_moments(pairs: MixturePairs, theta: FloatArray) -> FloatArray:
    """log M(θ) over the whole axis, one row a pair. Rounds: up."""
    low, high = _window(pairs, float(theta.max()))
    found, _ = place_nodes(pairs, low, high, theta=float(theta.max()), frequency=0.0, ends=False, most=_MOST_NODES)
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


def _window(pairs: MixturePairs, theta: float) -> tuple[FloatArray, FloatArray]:
    """Ends beyond which the tilted integrand falls faster than a Gaussian tail of 9.3 standard deviations."""
    up, down = pairs.shifts
    reach = _REACH * pairs.sigma
    low, high = -reach, (theta + 1.0) * up + reach
    if down and pairs.sign > 0:
        low = _push(pairs, theta, origin=low, far=low - theta * down)
    if down and pairs.sign < 0:
        high = _push(pairs, theta, origin=high, far=high + theta * down)
    return low, high


def _push(pairs: MixturePairs, theta: float, *, origin: FloatArray, far: FloatArray) -> FloatArray:
    """Bisect for the nearest end whose own pull θσ²|B'/B| is paid for."""
    start = origin
    for _ in range(24):
        middle = 0.5 * (start + far)
        paid = np.abs(middle - origin) >= theta * pairs.sigma**2 * np.abs(pairs.log_b(middle)[1])
        far, start = np.where(paid, middle, far), np.where(paid, start, middle)
    return far
