"""Values of ε for Poisson-subsampled Gaussian noise, computed with 34 digits and kept in subsampled_grid.json.

    python tests/oracle/subsampled_grid.py            every cell that the file does not hold yet (90 minutes of CPU in all)
    python tests/oracle/subsampled_grid.py 0.1 7      a tenth of the cells, drawn with seed 7, against the file

It knows nothing of curador. One step is the closed form. More steps: with one step's loss
L(x) = log(1 − q + q e^((2x−1)/2σ²)), x from the mixture P, and x kept within two ends beyond which P has at most 1e-12
to 1e-7 of δ (all steps together),

    M(s) = ∫ P(x) e^(sL(x)) dx        double-exponential rule between the ends, as fixed-point integers of 145 bits
    D(ε) = (1/T) Σ_k M(s_k)^n e^(−s_k ε) F(s_k(s_k+1)) / (s_k(s_k+1)),     s_k = θ + 2πik/T.

F(y) = e^z Σ_{j ≤ J} (−z)^j/j!, z = τ²y/2, is 1 up to (τθ)^(2J+2) at low frequencies and 0 at high ones: a filter that
removes what the sum could not reach, and nothing of a curve that is smooth on the scale τ. `doubt` adds up, relative to δ:
what was cut off, Chernoff's bound of the neighbouring periods, the last terms, and the difference between J = 12 and J = 9.
The first two are proved, the last two observed. The value is the larger of both directions'; the one that adds a record is
computed only where Chernoff's bound does not already show that it lies lower.

At few steps of a small rate the law is nearly an atom with a tail like a lognormal's, whose transform falls too slowly for
that sum. Where its doubt is above 1e-6 the densities themselves are added up. y = (sum of n losses) − n log(1 − q) is
positive and smooth on the scale t = log y; g_n(t) = y f_n(y) is in closed form for n = 1, and

    g_{m+n}(t) = ∫ g_m(t + log p) g_n(t + log(1 − p)) dw,     p = 1/(1 + e^(−w)),
    D(ε) = ∫ f_n(d + u) (1 − e^(−u)) du,                      d = ε − n log(1 − q)       a record removed
    D(ε) = ∫ f_n(d' − u) e^ε (e^u − 1) du,                    d' = −ε − n log(1 − q)     a record added

by the trapezoidal rule (in w; u = d e^w; u = d' p), whose integrands are analytic and die out at both ends. g_n is kept on
equidistant t as integers of 145 bits and read between them by Lagrange's formula of 36 to 40 points; its ends are cut where
it is below 1e-32. `doubt` adds up, relative to δ: the difference of D between two resolutions (points, taps, steps in w),
and by how much P's and Q's totals miss 1 in either, which is what all cuts have removed.
"""

from __future__ import annotations

import functools
import json
import math
import random
import sys
import time
from pathlib import Path

import mpmath
import numpy as np

PLACE = Path(__file__).with_suffix(".json")
SIGMAS = ("0.5", "1", "2", "4", "8")
RATES = ("1e-5", "1e-4", "1e-3", "1e-2", "0.1", "0.5")
STEPS = (1, 3, 10, 100, 1_000, 10_000, 1_000_000)
DELTAS = ("1e-5", "1e-8", "1e-12")
DIGITS = 34
BITS = 145
ORDERS = (12, 9)
ENOUGH = 1e-6
"""The largest doubt, relative to δ, of a value that is kept."""

FINEST = 10_000
"""Nodes per unit of the double-exponential rule: a sum that would need more is refused."""
MOST = 10_000
"""The most steps of which a density is made: the law of more is narrow, and the sums do it."""

mp = mpmath.mp


def cells():
    """Every (σ, q, steps, δ), as text and numbers."""
    return [(s, q, n, d) for s in SIGMAS for q in RATES for n in STEPS for d in DELTAS]


# ---- one step: closed form --------------------------------------------------------------------------------------------


def one_step(sigma, q, epsilon, adds):
    """δ(ε) of a single step: P(set) − e^ε Q(set) on the half-line where the loss exceeds ε."""
    e = mp.exp(epsilon)
    ratio = (1 / e if adds else e) - 1 + q  # q e^((2x−1)/2σ²) at the threshold
    if ratio <= 0:
        return mp.mpf(0) if adds else 1 - e
    x = sigma**2 * mp.log(ratio / q) + mp.mpf(1) / 2
    normal, moved = mp.ncdf(-x / sigma), mp.ncdf((1 - x) / sigma)
    if adds:
        return (1 - normal) - e * ((1 - q) * (1 - normal) + q * (1 - moved))
    return (1 - q) * normal + q * moved - e * normal


def closed_epsilon(sigma, q, delta):
    """ε of one step, by bisection."""

    def worst(epsilon):
        return max(one_step(sigma, q, epsilon, adds) for adds in (False, True))

    if worst(mp.mpf(0)) <= delta:
        return mp.mpf(0)
    low, high = mp.mpf(0), mp.mpf(1)
    while worst(high) > delta:
        high *= 2
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if worst(middle) > delta else (low, middle)
    return high


# ---- planning, in floats: nothing here is a value -----------------------------------------------------------------------


class Line:
    """The ends of x, the tilt and the period for one question."""

    def __init__(self, sigma, q, steps, delta, adds, epsilon=None, share=1e-12):
        from scipy.special import ndtri

        self.sigma, self.q, self.steps, self.adds = sigma, q, steps, adds
        each = share * delta / steps
        if adds:
            self.low, self.high = sigma * ndtri(each / 2), -sigma * ndtri(each / 2)
        else:
            self.low = sigma * ndtri(each / 20)
            self.high = max(-sigma * ndtri(each / 3), 1 - sigma * ndtri(min(each / (3 * q), 0.4)))
        x = np.linspace(self.low, self.high, 20001)
        loss = np.log1p(q * np.expm1((x - 0.5) / sigma**2))
        base = -0.5 * (x / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi)) + math.log(x[1] - x[0])
        self.loss = -loss if adds else loss
        self.log_p = base if adds else base + loss
        spread = math.sqrt(steps * float((np.exp(self.log_p) * self.loss**2).sum()))
        self.theta = np.geomspace(1e-4 / spread, 60 / spread, 260)
        with np.errstate(over="ignore"):
            self.k = np.array([self.log_m(t) for t in self.theta])
        self.chernoff = self.k + self.theta * np.log(self.theta) - (1 + self.theta) * np.log1p(self.theta)
        if epsilon is None:
            epsilon = (
                float(np.nanmin((self.chernoff - math.log(delta)) / self.theta))
                - 1.0 / self.theta[int(np.nanargmin((self.chernoff - math.log(delta)) / self.theta))]
            )
        self.epsilon = max(epsilon, 1e-9)
        self._choose(delta)

    def log_m(self, theta):
        logs = self.log_p + theta * self.loss
        peak = logs.max()
        if peak > 650 + math.log(1e6):
            return math.inf
        gain = float((np.exp(self.log_p) * np.expm1(np.minimum(theta * self.loss, 700.0))).sum())
        return self.steps * math.log1p(gain) if theta * self.loss.max() < 690 and gain > -0.5 else math.inf

    def aliasing(self, theta, period, epsilon):
        """Chernoff's bound of the neighbouring periods."""
        gap = np.abs(self.theta - theta) * period
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            size = np.exp(np.minimum(self.chernoff - self.theta * epsilon - gap, 300)) / -np.expm1(-gap)
        top = self.steps * float(self.loss.max())
        right = 0.0 if epsilon + period > top else float(np.nanmin(size[self.theta > theta * 1.0001], initial=math.inf))
        left = min(
            float(np.nanmin(size[self.theta < theta * 0.9999], initial=math.inf)),
            math.exp(-theta * period) / -math.expm1(-theta * period),
        )
        return left + right

    def _choose(self, delta):
        wanted = math.log(1e-13 * delta)
        top = self.steps * float(self.loss.max())
        reach = self.chernoff - self.theta * self.epsilon - wanted
        best = (math.inf, 0.0, 0.0)
        for row, theta in enumerate(self.theta[:-4]):
            if self.chernoff[row] - theta * self.epsilon - math.log(delta) > 25.0:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                lengths = reach / np.abs(self.theta - theta)
            right = min(float(np.nanmin(lengths[row + 1 :], initial=math.inf)), max(top - self.epsilon, 0.0) * 1.001 + 1e-12)
            left = min(float(np.nanmin(lengths[:row], initial=math.inf)), -wanted / theta)
            best = min(best, (max(right, left), theta, max(right, left)))
        self.tilt, self.period = best[1], best[2]


# ---- the sum, with 34 digits ----------------------------------------------------------------------------------------------


def nodes(line, sigma, q, frequency):
    """(P-mass, loss) by the double-exponential rule between the ends, with 34 digits."""
    low, high = mp.mpf(line.low), mp.mpf(line.high)
    steep = np.abs(np.diff(line.loss)).max() * 20000 / 4  # per unit of u, about
    fineness = int(40 + 0.35 * frequency * min(steep, np.ptp(line.loss) * 1.2))
    if fineness > FINEST:
        raise ValueError("more nodes than the sum is worth")
    s2, root = sigma**2, sigma * mp.sqrt(2 * mp.pi)
    found = []
    for k in range(-int(4.6 * fineness), int(4.6 * fineness) + 1):
        rough = line.low + (line.high - line.low) / (1 + math.exp(-math.sinh(k / fineness)))
        if rough * rough / (2 * line.sigma**2) + abs(math.sinh(k / fineness)) > 140:
            continue  # far below every digit
        u = mp.mpf(k) / fineness
        share = 1 / (1 + mp.exp(-mp.sinh(u)))
        x = low + (high - low) * share
        weight = (high - low) * share * (1 - share) * mp.cosh(u) / fineness * mp.exp(-x * x / (2 * s2)) / root
        if weight < mp.mpf(10) ** -60:
            continue
        ratio = q * mp.expm1((x - mp.mpf(1) / 2) / s2)
        loss = mp.log1p(ratio)
        found.append((weight, -loss) if line.adds else (weight * (1 + ratio), loss))
    return found


def moments(rows, theta, step, size, quiet):
    """M(θ), and M(θ + i k step)/M(θ) for k < size or until its n-th power is nothing: turns of the nodes, as integers."""
    tilted = [weight * mp.exp(theta * loss) for weight, loss in rows]
    total = mp.fsum(tilted)
    one = 1 << BITS
    keep = [(w / total, loss) for w, (_, loss) in zip(tilted, rows, strict=True) if w / total > mp.mpf(10) ** -34]
    weight = np.array([int(w * one) for w, _ in keep], dtype=object)
    cos = np.array([int(mp.cos(step * loss) * one) for _, loss in keep], dtype=object)
    sin = np.array([int(mp.sin(step * loss) * one) for _, loss in keep], dtype=object)
    real, imaginary = weight, weight * 0
    values = []
    for _ in range(size):
        values.append(mp.mpc(mp.mpf(int(real.sum())) / one, mp.mpf(int(imaginary.sum())) / one))
        if abs(values[-1]) < quiet:
            break
        real, imaginary = (real * cos - imaginary * sin) >> BITS, (real * sin + imaginary * cos) >> BITS
    return total, values


def filtered(y, order):
    """e^y Σ_{j ≤ order} (−y)^j/j!."""
    term, total = mp.mpf(1), mp.mpf(1)
    for j in range(1, order + 1):
        term = term * -y / j
        total += term
    return mp.exp(y) * total


class Curve:
    """D(ε) of one direction, as one sum for all ε near the one aimed at."""

    def __init__(self, sigma, q, steps, delta, *, adds, epsilon, size, share):
        self.line = line = Line(float(sigma), float(q), steps, float(delta), adds, epsilon, float(share))
        self.share = mp.mpf(share)
        theta, step = mp.mpf(line.tilt), 2 * mp.pi / mp.mpf(line.period)
        frequency = float(step) * size
        rows = nodes(line, sigma, q, frequency)
        total, values = moments(rows, theta, step, size, math.exp(-110.0 / steps))
        self.scale = steps * mp.log(total)
        tau2 = (mp.mpf("13.4") / (step * size)) ** 2 / 2
        self.theta = theta
        self.frequency = [step * k for k in range(size)]
        self.terms = {order: [] for order in ORDERS}
        for k, value in enumerate(values):
            s = mp.mpc(theta, step * k)
            size_of = mp.exp(steps * mp.log(value)) if value != 0 else mp.mpc(0)
            plain = (1 if k == 0 else 2) * step / (2 * mp.pi) * size_of / (s * (s + 1))
            for order in ORDERS:
                self.terms[order].append(plain * filtered(tau2 * s * (s + 1), order))
        self.last = max(abs(term) for term in self.terms[ORDERS[0]][-3:]) * 20

    def at(self, epsilon, order=ORDERS[0]):
        """The sum at ε."""
        turn = mp.expj(-self.frequency[1] * epsilon)
        wave, total = mp.mpc(1), mp.mpf(0)
        for term in self.terms[order]:
            total += mp.re(term * wave)
            wave *= turn
        return total * mp.exp(self.scale - self.theta * epsilon)

    def solve(self, delta):
        """The ε ≥ 0 at which the sum is δ, and its doubt relative to δ."""
        if self.at(mp.mpf(0)) <= delta:
            return mp.mpf(0), self.doubt(mp.mpf(0), delta)
        low, high, point = mp.mpf(0), None, mp.mpf(self.line.epsilon)
        for _ in range(80):
            value = self.at(point)
            if value > delta:
                low = point
            else:
                high = point
            slope = (self.at(point * (1 + mp.mpf(10) ** -9)) - value) / (point * mp.mpf(10) ** -9)
            step = mp.log(value / delta) * value / slope if value > 0 and slope < 0 else None
            new = point - step if step is not None else None
            if new is None or new <= low or (high is not None and new >= high):
                new = (low + high) / 2 if high is not None else 2 * point
            if abs(new - point) < mp.mpf(10) ** -20 * new:
                return new, self.doubt(new, delta)
            point = new
        return point, mp.inf

    def doubt(self, epsilon, delta):
        """What the value may be off by, relative to δ."""
        tail = self.last * mp.exp(self.scale - self.theta * epsilon) / delta
        order = abs(self.at(epsilon) - self.at(epsilon, ORDERS[1])) / delta
        alias = self.line.aliasing(float(self.theta), self.line.period, float(epsilon)) / float(delta)
        return self.share + tail + order + alias


# ---- densities, for the laws that the sum cannot do -----------------------------------------------------------------------


@functools.cache
def _products(taps):
    """What Lagrange's weights are divided by: the product of a tap's distances from the others."""
    return [(-1) ** (taps - 1 - j) * math.factorial(j) * math.factorial(taps - 1 - j) for j in range(taps)]


def weights(fraction, taps):
    """Lagrange's weights, as integers, for a point `fraction` of a step to the right of tap taps/2 − 1."""
    one, middle = 1 << BITS, taps // 2 - 1
    away = [int(fraction * one) + (middle - j) * one for j in range(taps)]
    far = one  # the product of all but the two near taps, whose distances may be tiny
    for j, distance in enumerate(away):
        far = far if middle <= j <= middle + 1 else far * distance >> BITS
    left, right = away[middle], away[middle + 1]
    whole = far * left * right >> BITS
    found = [whole // distance if distance else 0 for distance in away]
    found[middle], found[middle + 1] = far * right >> BITS, far * left >> BITS
    return np.array([value // product for value, product in zip(found, _products(taps), strict=True)], dtype=object)


class Density:
    """g(t) = y f(y), y = e^t, on the points t = m·step: f is the density of y = the steps' losses − steps·log(1 − q)."""

    def __init__(self, step, first, values, taps):
        large = np.flatnonzero(values > TINY)
        self.step, self.first, self.taps = step, first + int(large[0]), taps
        self.values = values[large[0] : large[-1] + 1]
        self.last = self.first + len(self.values) - 1
        with np.errstate(divide="ignore"):
            self.logs = np.log(np.maximum(self.values.astype(float) / 2.0**BITS, 1e-60))

    def moved(self, low, high, shift):
        """g at (m + shift)·step for low ≤ m ≤ high, as integers; 0 beyond the ends."""
        whole = int(mp.floor(shift))
        first = low + whole - self.taps // 2 + 1
        last = high + whole + self.taps // 2
        inside = self.values[max(first - self.first, 0) : max(last - self.first + 1, 0)]
        before = min(max(self.first - first, 0), last - first + 1)
        zeros = [np.zeros(n, dtype=object) for n in (before, last - first + 1 - before - len(inside))]
        row = np.concatenate([zeros[0], inside, zeros[1]])
        return np.correlate(row, weights(shift - whole, self.taps), "valid") >> BITS

    def refined(self, step):
        """The same on points that lie closer by a power of two."""
        here = self
        while here.step > step:
            values = np.zeros(2 * len(here.values) - 1, dtype=object)
            values[::2] = here.values
            values[1::2] = here.moved(here.first, here.last - 1, mp.mpf(1) / 2)
            here = Density(here.step / 2, 2 * here.first, values, here.taps)
        return here

    def plus(self, other, stride):
        """The density of the sum of both: ∫ g(t + log p) h(t + log(1 − p)) dw, p = 1/(1 + e^(−w)), by steps in w."""
        ends = [(d.first * float(d.step), d.last * float(d.step)) for d in (self, other)]
        step = float(self.step)
        low = math.floor(np.logaddexp(ends[0][0], ends[1][0]) / step) - 1
        high = math.ceil(np.logaddexp(ends[0][1], ends[1][1]) / step) + 1
        total = np.zeros(high - low + 1, dtype=object)
        rows = np.arange(low, high + 1)
        reach = int((max(ends[0][1], ends[1][1]) + 1 - min(ends[0][0], ends[1][0])) / float(stride)) + 1
        for k in range(0 if self is other else -reach, reach + 1):
            w = stride * k
            shifts = [-mp.log1p(mp.exp(-w)) / self.step, -mp.log1p(mp.exp(w)) / self.step]
            guess = sum(
                np.interp(rows + float(s), np.arange(d.first, d.last + 1), d.logs, left=-400.0, right=-400.0)
                for d, s in zip((self, other), shifts, strict=True)
            )
            kept = np.flatnonzero(guess > LOWEST)
            if len(kept) == 0:
                continue
            first, last = int(kept[0]), int(kept[-1])
            a, b = (d.moved(low + first, low + last, s) for d, s in zip((self, other), shifts, strict=True))
            total[first : last + 1] += a * b * (2 if self is other and k else 1)
        return Density(self.step, low, (total * int(stride * (1 << BITS))) >> 2 * BITS, self.taps)

    def at(self, t):
        """g at any t."""
        shift = t / self.step
        whole = int(mp.floor(shift))
        return mp.mpf(int(self.moved(whole, whole, shift - whole)[0])) / (1 << BITS)

    def total(self, tilt):
        """∫ f(y) e^(−tilt·y) dy."""
        points = (mp.exp((self.first + m) * self.step) for m in range(len(self.values)))
        return self.step * mp.fsum(int(v) * mp.exp(-tilt * y) for v, y in zip(self.values, points, strict=True)) / (1 << BITS)


TINY = int(mpmath.mpf(10) ** -32 * (1 << BITS))
"""What the ends of a density are cut at; what this removes shows in its total."""

LOWEST = math.log(1e-35)
"""Products below this add nothing to a density."""

WRITTEN = mpmath.mpf("1e-20")
"""Doubt of a value that is right to the digits which the file keeps; the secants stop at 1e-22 of δ."""

RESOLUTIONS = (("0.065", 36, "0.25"), ("0.055", 40, "0.21"))
"""The points' distance and the step in w, in units of the law's width on the scale of log y, and Lagrange's taps."""


class Steps:
    """The densities of 1, 2, … steps, each made from two smaller ones, at one resolution."""

    def __init__(self, sigma, q, resolution):
        self.sigma, self.q = sigma, q
        self.fine, self.taps, self.stride = mp.mpf(resolution[0]), resolution[1], mp.mpf(resolution[2])
        z = np.linspace(-12, 12 + 1 / float(sigma), 4001)
        y = np.log1p(float(q / (1 - q)) * np.exp(z / float(sigma) - 0.5 / float(sigma) ** 2))
        mass = np.exp(-z * z / 2 + y)
        mean = (mass * y).sum() / mass.sum()
        self.width = math.sqrt((mass * (y - mean) ** 2).sum() / mass.sum()) / mean
        self.made = {}

    def scale(self, steps):
        """A power of two below the width of the law of log y."""
        return mp.mpf(2) ** math.floor(math.log2(min(1.0, 1 / float(self.sigma), self.width / math.sqrt(steps))))

    def single(self):
        """One step's density, in closed form."""
        step, values = self.fine * self.scale(1), []
        root = self.sigma * mp.sqrt(2 * mp.pi)
        first = int(mp.floor((mp.log(self.q) - (14 + 1 / self.sigma) / self.sigma) / step))
        last = int(mp.ceil(mp.log(14 / self.sigma + 1 / self.sigma**2) / step))
        for m in range(first, last + 1):
            y = mp.exp(m * step)
            gain = mp.expm1(y)
            x = self.sigma**2 * mp.log((1 - self.q) * gain / self.q) + mp.mpf(1) / 2
            p = mp.exp(-x * x / (2 * self.sigma**2)) / root * (1 - self.q) * (1 + gain)
            values.append(int(y * p * self.sigma**2 * (1 + gain) / gain * (1 << BITS)))
        return Density(step, first, np.array(values, dtype=object), self.taps)

    def density(self, steps):
        """The density of that many steps."""
        if steps not in self.made:
            if steps == 1:
                self.made[1] = self.single()
            else:
                part = steps // 2 if steps % 2 == 0 else steps // 5 if steps % 5 == 0 else 1
                scale = self.scale(steps)
                a = self.density(part).refined(self.fine * scale)
                b = a if 2 * part == steps else self.density(steps - part).refined(self.fine * scale)
                self.made[steps] = a.plus(b, self.stride * scale)
        return self.made[steps]

    def delta(self, steps, epsilon, *, adds):
        """D(ε): the same density serves both directions, as Q has 1/e^loss of P."""
        g = self.density(steps)
        distance = epsilon - steps * mp.log1p(-self.q)  # of ε from the smallest loss
        stride, total = self.stride * self.scale(steps), mp.mpf(0)
        if not adds:  # ∫ f(distance + u) (1 − e^(−u)) du, u = distance·e^w
            start = int(-38 / stride)
            stop = int(max(g.last * g.step - mp.log(distance), 0) / stride) + 1
            for k in range(start, stop + 1):
                u = distance * mp.exp(k * stride)
                y = distance + u
                total -= g.at(mp.log(y)) / y * mp.expm1(-u) * u
            return total * stride
        distance -= 2 * epsilon
        if distance <= 0:
            return mp.mpf(0)
        for k in range(-int(90 / stride), int(90 / stride) + 1):  # ∫ f(distance − u) e^ε (e^u − 1) du, u = distance·p(w)
            w = k * stride
            t = mp.log(distance) - mp.log1p(mp.exp(w))
            if g.first * g.step <= t <= g.last * g.step:
                p = 1 / (1 + mp.exp(-w))
                total += g.at(t) * p * mp.expm1(distance * p)
        return total * stride * mp.exp(epsilon)

    def epsilon(self, steps, delta, *, adds):
        """The ε ≥ 0 at which D is δ: bisection in floats on the points alone, then secants with all digits."""
        if self.delta(steps, mp.mpf(0), adds=adds) <= delta:
            return mp.mpf(0)
        g = self.density(steps)
        mass = g.values.astype(float) / 2.0**BITS * float(g.step)
        loss = np.exp(np.arange(g.first, g.last + 1) * float(g.step)) + steps * math.log1p(-float(self.q))
        mass, loss = (mass * np.exp(-loss), -loss) if adds else (mass, loss)
        low, high = -30.0, 10.0  # of log ε
        for _ in range(60):
            middle = (low + high) / 2
            above = float((mass * -np.expm1(np.minimum(math.exp(middle) - loss, 0.0))).sum()) > delta
            low, high = (middle, high) if above else (low, middle)

        def apart(log):
            return mp.log(self.delta(steps, mp.exp(log), adds=adds) / delta)

        return mp.exp(mp.findroot(apart, (low, low + 1e-4), solver="secant", tol=mp.mpf(10) ** -44, maxsteps=30))

    def missing(self, steps):
        """What P and Q have outside the density, as far as their totals show it."""
        g = self.density(steps)
        return abs(1 - g.total(0)) + abs(1 - g.total(1) / (1 - self.q) ** steps)


@functools.cache
def _steps(sigma, q, resolution):
    return Steps(sigma, q, resolution)


def by_densities(sigma, q, steps, delta):
    """Return (ε, doubt relative to δ) of a cell, by the densities of the sum of losses."""
    one, two = (_steps(sigma, q, resolution) for resolution in RESOLUTIONS)
    adds, found = False, two.epsilon(steps, delta, adds=False)
    if two.delta(steps, found, adds=True) > delta * (1 + mp.mpf(10) ** -20):
        adds, found = True, two.epsilon(steps, delta, adds=True)
    apart = abs(one.delta(steps, found, adds=adds) - two.delta(steps, found, adds=adds))
    return found, (apart + one.missing(steps) + two.missing(steps)) / delta + WRITTEN


def epsilon_of(sigma, q, steps, delta):
    """Return (ε, doubt relative to δ) of a cell."""
    sigma, q, delta = mp.mpf(sigma), mp.mpf(q), mp.mpf(delta)
    if steps == 1:
        return closed_epsilon(sigma, q, delta), mp.mpf("1e-25")
    found, doubt = by_sums(sigma, q, steps, delta)
    if doubt > ENOUGH and steps <= MOST:
        return by_densities(sigma, q, steps, delta)
    return found, doubt


def by_sums(sigma, q, steps, delta):
    """Return (ε, doubt relative to δ) of a cell, by the filtered sums."""
    found, doubt = _laddered(sigma, q, steps, delta, adds=False)
    if doubt > ENOUGH:
        return found, doubt
    other = Line(float(sigma), float(q), steps, float(delta), adds=True, epsilon=float(found))
    bound = float(np.nanmin(other.chernoff - other.theta * float(found)))
    top = -steps * mp.log1p(-q)
    if bound > math.log(float(delta)) and top > found:
        added, doubted = _laddered(sigma, q, steps, delta, adds=True, epsilon=float(found))
        if added > found or doubted > ENOUGH:
            found, doubt = max(found, added), doubted
    return found, doubt


LADDER = (("1e-12", 110, 3e-12), ("1e-11", 320, 1e-10), ("1e-9", 700, 5e-8), ("1e-7", 1300, 1.0))
"""Share of δ that is cut off, frequencies, and the doubt that is good enough: longer sums where shorter ones fail."""


def _laddered(sigma, q, steps, delta, *, adds, epsilon=None):
    best = (mp.mpf(0), mp.inf)
    for share, size, enough in LADDER:
        try:
            curve = Curve(sigma, q, steps, delta, adds=adds, epsilon=epsilon, size=size, share=share)
            found, doubt = curve.solve(delta)
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        if doubt < best[1]:
            best = (found, doubt)
            epsilon = float(found) if doubt < 0.1 else epsilon
        if best[1] < enough:
            break
    return best


def main():
    """Compute every cell, or a share of them against the file."""
    mp.dps = DIGITS
    share, seed = (float(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (1.0, 0)
    kept = json.loads(PLACE.read_text()) if PLACE.exists() else {}
    chosen = cells()
    random.Random(1).shuffle(chosen)  # a file that is not yet whole is still a fair sample
    if share < 1.0:
        chosen = random.Random(seed).sample(chosen, round(share * len(chosen)))
    wrong = 0
    for cell in chosen:
        key = " ".join(str(one) for one in cell)
        if share == 1.0 and key in kept:
            continue
        began = time.process_time()
        found, doubt = epsilon_of(*cell)
        line = {"epsilon": mp.nstr(found, 22), "doubt": mp.nstr(doubt, 3)}
        if share < 1.0 and key in kept:
            apart = abs(found - mp.mpf(kept[key]["epsilon"])) / max(found, mp.mpf("1e-6"))
            allowed = 1e3 * (float(doubt) + float(kept[key]["doubt"]))
            wrong += apart > allowed
            print(
                f"{key}: {line['epsilon']}, {float(apart):.1e} from the file ({time.process_time() - began:.0f} s)",
                flush=True,
            )
            continue
        print(f"{key}: {line['epsilon']} doubt {line['doubt']} ({time.process_time() - began:.1f} s)", flush=True)
        if doubt > ENOUGH:
            continue  # no value is better than a doubtful one
        kept[key] = line
        PLACE.write_text(json.dumps(kept, indent=0) + "\n")
    print(f"{len(chosen)} cells, {wrong} away from the file")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
