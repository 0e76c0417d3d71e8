"""Privacy amplification by shuffling: what n local reports lose once nobody knows who sent which.

n people send one report each through the same ε₀-private randomizer; a shuffler forgets the senders. Towards one person
(who is replaced; n is public) the reports are at most as telling as two counts (a, b): C ~ Bin(n−1, p) others leave a fair
sign each, the person leaves + with probability e^ε₀/(e^ε₀+1) in one world and − in the other; a counts +, b counts −.

    shuffled_delta, shuffled_epsilon    p = 2/(e^ε₀ + 1): the record `Shuffled`; docs/explanation/shuffling.md, theorem 1
    clones_delta, clones_epsilon        p = e^(−ε₀): the older pair, for comparison [FMT21]
    closed_form                         its published closed form, for comparison; the accountant never uses it

With x = e^ε, y = e^(ε−ε₀), f = e^(−ε₀), b_c the largest b whose loss at c+1 = a+b signs is above ε, and m_c, F_c the masses
and the distribution function of Bin(c, 1/2),

    δ(ε) = Σ_c P[C = c] (m_c(b_c) (1−y)/(1+f) − (x−1) F_c(b_c − 1)).

F is carried from one c to the next, downwards, by half a mass: no tail is summed twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from curador.errors import NotPrivate, require
from curador.numerics.exact import Number, at_least_zero, open_probability, whole
from curador.numerics.roots import secant
from curador.numerics.rounding import UNIT, FloatArray, Interval, float_down, float_up, up
from curador.privacy.laws.shuffled import binomial_window, sign_masses

MOST_REPORTS = 10**10
"""More reports than that are not accounted: pretending there were so few is safe."""

_STEEPEST = 600.0  # e^ε beyond the floats: only the pure bound speaks


@dataclass(frozen=True, slots=True)
class Lottery:
    """The pair above: ε₀, how many others there are, and the chance that one of them leaves a sign (and its complement)."""

    epsilon0: float
    others: int
    share: float
    rest: float


def stronger_lottery(epsilon0: float, reports: int) -> Lottery:
    """p = 2/(e^ε₀ + 1). Source: docs/explanation/shuffling.md, theorem 1.

    The pair is that of [FMT22], which by its erratum proves it for a class of randomizers; the theorem, for all that n share.
    """
    fall = math.exp(-epsilon0)
    return Lottery(epsilon0, reports - 1, 2.0 * fall / (1.0 + fall), math.tanh(0.5 * epsilon0))


def clones_lottery(epsilon0: float, reports: int) -> Lottery:
    """p = e^(−ε₀). Source: [FMT21, Thm. 3.2]."""
    return Lottery(epsilon0, reports - 1, math.exp(-epsilon0), -math.expm1(-epsilon0))


def hockey_stick(pair: Lottery, epsilon: float) -> Interval:
    """Return bounds of δ(ε) of the pair.

    Claim   lower ≤ δ(ε) ≤ upper for the pair as given, ε₀ and ε as the floats that they are.
    Needs   ε ≥ 0.
    Rounds  Outward.
    """
    if epsilon >= pair.epsilon0:
        return Interval(0.0, 0.0)
    fall = math.exp(-pair.epsilon0)
    gap = -math.expm1(epsilon - pair.epsilon0)
    height = gap / (1.0 + fall)  # δ of a single report: no number of others makes it larger
    if epsilon > _STEEPEST:
        return Interval(0.0, up(height, 16))
    rise = math.expm1(epsilon)
    minus = gap / (gap + rise - math.expm1(-pair.epsilon0))  # the loss is above ε while the share of b is below this
    first, weights, doubts, outside = binomial_window(pair.others, pair.share, pair.rest)
    c = np.arange(first, first + len(weights), dtype=np.float64)
    b = np.maximum(np.ceil((c + 1.0) * minus) - 1.0, 0.0)
    mass, error = sign_masses(np.maximum(c, 1.0), b)
    mass = np.where(c == 0.0, 1.0, mass)  # nobody else: b = 0 for certain
    tail, tail_error = _below(c, b - 1.0)
    gain, cost = height * mass, rise * tail
    total = float((weights * (gain - cost)).sum())
    wrong = weights * (gain * (error + doubts + 48 * UNIT) + rise * tail_error + cost * (doubts + 48 * UNIT))
    slack = float(wrong.sum()) * (1.0 + 1e-9) + 4 * UNIT * float((weights * (gain + cost)).sum())
    return Interval(max(0.0, total - slack), min(up(height, 16), up(total + slack + outside * height, 16)))


def _below(c: FloatArray, j: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P[Bin(c, 1/2) ≤ j] for consecutive c and j that rise by 0 or 1, and bounds of the absolute errors.

    From c+1 to c: F_c(j) = F_{c+1}(j) + m_c(j)/2 = F_{c+1}(j+1) − m_c(j+1)/2. The sums start where F is smallest.
    """
    start, doubt = _single_tail(float(c[-1]), float(j[-1]))
    stepped = np.diff(j) > 0.0
    counts = np.maximum(c[:-1], 1.0)
    masses, errors = sign_masses(counts, j[:-1] + stepped)
    masses = np.where(c[:-1] == 0.0, (j[:-1] + stepped) == 0.0, masses)
    change = np.where(stepped, -0.5, 0.5) * masses
    value = np.concatenate([[start], start + np.cumsum(change[::-1])])[::-1]
    value = np.where(j < 0.0, 0.0, np.maximum(value, 0.0))
    steps = np.concatenate([[doubt], np.cumsum((np.abs(change) * errors)[::-1]) + doubt])[::-1]
    rounding = 2 * UNIT * np.cumsum((value + 0.5 * np.concatenate([masses, [0.0]]))[::-1])[::-1]
    return value, np.where(j < 0.0, 0.0, (steps + rounding) * (1.0 + 1e-6))


def _single_tail(c: float, j: float) -> tuple[float, float]:
    """P[Bin(c, 1/2) ≤ j] for j ≤ c/2 by its largest terms, and a bound of the absolute error."""
    if j < 0.0:
        return 0.0, 0.0
    if c == 0.0:
        return 1.0, 0.0
    last = max(0.0, math.floor(j - 12.0 * math.sqrt(c) - 60.0))
    index = np.arange(last, j + 1.0)
    masses, errors = sign_masses(np.full_like(index, c), index)
    ratio = last / (c - last + 1.0)
    rest = float(masses[0]) * ratio / (1.0 - ratio) * (1.0 + 1e-9) if last > 0.0 else 0.0
    return float(masses.sum()), float((masses * (errors + UNIT * len(index))).sum()) + rest


# ---- the questions ----------------------------------------------------------------------------------------------------


Maker = Callable[[float, int], Lottery]


def delta_bounds(make: Maker, epsilon0: Fraction, reports: int, epsilon: Fraction) -> Interval:
    """Return bounds of δ(ε) for exact parameters. Rounds: outward; δ rises with ε₀ and falls with ε."""
    if epsilon >= epsilon0:
        return Interval(0.0, 0.0)
    upper = hockey_stick(make(float_up(epsilon0), reports), float_down(epsilon)).upper
    return Interval(hockey_stick(make(float_down(epsilon0), reports), float_up(epsilon)).lower, upper)


def epsilon_bounds(make: Maker, epsilon0: Fraction, reports: int, delta: Fraction) -> Interval:
    """Return bounds of the least ε ≥ 0 with δ(ε) ≤ δ, for every δ within an ulp of the one given. Rounds: outward."""
    if delta == 0 or epsilon0 == 0:
        return Interval(float_down(epsilon0), float_up(epsilon0))
    most, least = make(float_up(epsilon0), reports), make(float_down(epsilon0), reports)
    low_goal, high_goal = float_down(delta) * (1.0 - 1e-15), float_up(delta) * (1.0 + 1e-15)
    if hockey_stick(most, 0.0).upper <= low_goal:
        return Interval(0.0, 0.0)
    goal, top = math.log(float(delta)), most.epsilon0

    def distance(epsilon: float) -> float:
        bounds = hockey_stick(most, epsilon)
        return math.log(max(0.5 * (bounds.lower + bounds.upper), 1e-300)) - goal

    sigma = 2.0 * math.tanh(0.5 * top) / math.sqrt(1.0 + most.others * most.share)  # of the loss, roughly
    start = min(0.5 * top, sigma * math.sqrt(2.0 * max(-goal, 1.0)))
    near = secant(distance, start=start, slope=-math.sqrt(2.0 * max(-goal, 1.0)) / sigma, lower=0.0, upper=top)
    return Interval(
        _walk(lambda e: hockey_stick(least, e).lower >= high_goal, near, -1.0, 0.0),
        min(_walk(lambda e: hockey_stick(most, e).upper <= low_goal, near, 1.0, top), top),
    )


def _walk(holds: Callable[[float], bool], start: float, direction: float, end: float) -> float:
    """The first of a few points, further and further from the start, at which the certificate holds; else the end."""
    step = 1e-13 * start
    point = start
    while (end - point) * direction > 0.0:
        if holds(point):
            return point
        point, step = point + direction * step, 4.0 * step
    return end


def shuffled_delta(epsilon0: Number, reports: Number, epsilon: Number) -> float:
    """Return δ at ε of n shuffled reports of an ε₀-private randomizer.

    Claim   The shuffled reports of n people who use the same ε₀-private randomizer are (ε, δ)-private, replace-one.
    Needs   One report a person; n is public; the shuffler is trusted to be uniform and to tell nothing else.
    Rounds  Up.
    Source  docs/explanation/shuffling.md, theorem 1
    """
    return delta_bounds(stronger_lottery, *_parameters(epsilon0, reports), at_least_zero(epsilon, "epsilon")).upper


def shuffled_epsilon(epsilon0: Number, reports: Number, delta: Number) -> float:
    """Return the least ε at which `shuffled_delta` is at most δ. Rounds: up."""
    return epsilon_bounds(stronger_lottery, *_parameters(epsilon0, reports), open_probability(delta, "delta")).upper


def clones_delta(epsilon0: Number, reports: Number, epsilon: Number) -> float:
    """Return δ at ε by the pair of [FMT21, Thm. 3.2], which `shuffled_delta` never exceeds. Needs, Rounds: as there."""
    return delta_bounds(clones_lottery, *_parameters(epsilon0, reports), at_least_zero(epsilon, "epsilon")).upper


def clones_epsilon(epsilon0: Number, reports: Number, delta: Number) -> float:
    """Return the least ε at which `clones_delta` is at most δ. Rounds: up."""
    return epsilon_bounds(clones_lottery, *_parameters(epsilon0, reports), open_probability(delta, "delta")).upper


def closed_form(epsilon0: Number, reports: Number, delta: Number) -> float:
    """Return ε by the closed form of [FMT21], for comparison: several times `shuffled_epsilon`.

    Claim   log(1 + (e^ε₀ − 1)/(e^ε₀ + 1) (8 √(e^ε₀ log(4/δ)/n) + 8 e^ε₀/n)).
    Needs   ε₀ ≤ log(n/(16 log(4/δ))); refused elsewhere (the paper's condition has log(2/δ), a little weaker).
    Rounds  Up.
    Source  [FMT21, Thm. 3.1]
    """
    exact, count = _parameters(epsilon0, reports)
    small = open_probability(delta, "delta")
    logarithm = up(math.log(4.0) - math.log(small.numerator) + math.log(small.denominator), 16)
    local = float_up(exact)
    if local > math.log(count) - math.log(16.0 * logarithm):
        raise NotPrivate(
            f"the closed form is proved for ε0 ≤ log(n/(16 log(4/δ))) only; got ε0 = {local:g} and n = {count}.",
            hint="shuffled_epsilon holds everywhere, and is smaller.",
        )
    rise = math.exp(local)
    value = math.log1p(math.tanh(0.5 * local) * (8.0 * math.sqrt(rise * logarithm / count) + 8.0 * rise / count))
    return up(value, 64)


def _parameters(epsilon0: Number, reports: Number) -> tuple[Fraction, int]:
    exact, count = at_least_zero(epsilon0, "epsilon0"), whole(reports, "reports")
    require(count <= MOST_REPORTS, "reports", f"at most {MOST_REPORTS:,}", count)
    return exact, count
