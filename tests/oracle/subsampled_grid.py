"""Values of ε for Poisson-subsampled Gaussian noise, computed with 34 digits and kept in subsampled_grid.json.

    python tests/oracle/subsampled_grid.py            every cell that the file does not hold yet (an hour of CPU in all)
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
"""

from __future__ import annotations

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


def epsilon_of(sigma, q, steps, delta):
    """Return (ε, doubt relative to δ) of a cell."""
    sigma, q, delta = mp.mpf(sigma), mp.mpf(q), mp.mpf(delta)
    if steps == 1:
        return closed_epsilon(sigma, q, delta), mp.mpf("1e-25")
    found, doubt = _laddered(sigma, q, steps, delta, adds=False)
    other = Line(float(sigma), float(q), steps, float(delta), adds=True, epsilon=float(found))
    bound = float(np.nanmin(other.chernoff - other.theta * float(found)))
    top = -steps * mp.log1p(-q)
    if bound > math.log(float(delta)) and top > found:
        added, doubted = _laddered(sigma, q, steps, delta, adds=True, epsilon=float(found))
        if added > found:
            found, doubt = added, doubted
    return found, doubt


LADDER = (("1e-12", 110, 3e-12), ("1e-11", 320, 1e-10), ("1e-9", 700, 5e-8), ("1e-7", 1300, 1.0))
"""Share of δ that is cut off, frequencies, and the doubt that is good enough: longer sums where shorter ones fail."""


def _laddered(sigma, q, steps, delta, *, adds, epsilon=None):
    best = None
    for share, size, enough in LADDER:
        try:
            curve = Curve(sigma, q, steps, delta, adds=adds, epsilon=epsilon, size=size, share=share)
            found, doubt = curve.solve(delta)
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        if mp.isfinite(doubt) and (best is None or doubt < best[1]):
            best = (found, doubt)
            epsilon = float(found) if doubt < 0.1 else epsilon
        if best is not None and best[1] < enough:
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
