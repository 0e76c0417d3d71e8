"""The law of shuffled reports: V = dP/dM − 1 under the mean M of the two worlds, and two finite twins of it.

The pair of docs/explanation/shuffling.md has mirror worlds, so that P = (1+V)M, Q = (1−V)M, L = log (1+V)/(1−V) and

    δ(ε) = (1 + e^ε) E_M[(V − tanh(ε/2))₊],      V = (1−f) D/((1+f) t + 2c),      f = e^(−ε₀),

where t people leave a fair sign each (D is their sum) and c a mark that says nothing; unless a variation is known c = 0.
What is larger in convex order dominates. *Above*, V in a cell goes to the two ends of the cell so that its mean is kept;
*below*, to its mean in the cell. Few outcomes are kept one by one; many are gathered in cells, t and c in blocks:
at fixed t a mean-preserving spread of c is above and a merge below; D_t/t falls and D_t rises with t in convex order.

**High Rényi orders**, where a law with a cut tail has nothing to say.
With mirror worlds E_P[e^((α−1)L)] = E_M[cosh(κL)/cosh(L/2)], κ = α − ½. Given that t people leave a fair sign each, V = ηX,
η = tanh(ε₀/2) and X the mean of t signs, and |L| = 2 artanh|V| ≤ ε₀|X| because artanh is convex; the quotient rises with |L|,
and E cosh(κε₀X) = cosh(κε₀/t)^t ≤ e^(κ²ε₀²/2t). So with t = 1 + C

    (α−1) D_α ≤ log E[e^(min(κ²ε₀²/2t, (α−1)ε₀))],      C ~ Bin(n−1, p).

The expectation is taken over a grid of t: the function falls with t, and P[C ≤ c] ≤ e^(−N KL(c/N ‖ p)).

**Probabilities** of binomial counts and of sums of fair signs, in floats, with stated relative errors:

    P[Bin(N, p) = c] = √(N/2πc(N−c)) e^(r(N) − r(c) − r(N−c)) e^(−d),   r(n) = log n! − log(√2πn (n/e)ⁿ),
    d = Np φ((c−Np)/Np) + Nq φ(−(c−Np)/Nq),   φ(y) = (1+y) log(1+y) − y;   for p = 1/2: d = N f(x), x = (2c−N)/N,
    f(x) = x artanh x + log(1−x²)/2.

Each factor is taken by itself, so that the error grows with the deviance d, which is what the masses are e^(−d) of, and not
with log N!. Source: [Loa00].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.rounding import UNIT, float_down, float_up, up
from curador.privacy.laws.finite import FiniteLaw
from curador.privacy.laws.side import SMALLEST

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray


# ---- binomial counts and sums of signs -------------------------------------------------------------------------------------


_SMALL = 16
_TABLE = np.array(
    [0.0, *(math.log(math.factorial(n)) - 0.5 * math.log(2.0 * math.pi * n) - n * math.log(n) + n for n in range(1, _SMALL))]
)
_TERMS = 24
REACH = 100.0
"""What is left out of a window has a probability of about e^(−REACH) at most; its bound is returned."""


def _stirling(n: FloatArray) -> FloatArray:
    """r(n): a table below 16, six terms of Stirling's series above. Absolute error: 40 UNIT."""
    large = np.maximum(n, float(_SMALL))
    inverse = 1.0 / (large * large)
    series = 1 / 1260 + inverse * (-1 / 1680 + inverse * (1 / 1188 - inverse * (691 / 360360)))
    rest = (1 / 12 + inverse * (-1 / 360 + inverse * series)) / large
    return np.where(n < _SMALL, _TABLE[np.minimum(n, _SMALL - 1).astype(np.intp)], rest)


def _front(whole: FloatArray, part: FloatArray) -> FloatArray:
    """√(N/2πc(N−c)) e^(r(N) − r(c) − r(N−c)) for 0 < c < N, and 1 at the ends."""
    inside = (part > 0.0) & (part < whole)
    share = np.where(inside, part, 1.0)
    rest = np.where(inside, whole - part, 1.0)
    root = np.sqrt(whole / (2.0 * math.pi) / share / rest)
    return np.where(inside, root * np.exp(_stirling(whole) - _stirling(share) - _stirling(rest)), 1.0)


def sign_masses(count: FloatArray, ups: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P[`ups` of `count` fair signs are +], elementwise, and bounds of the relative errors; 0 outside 0 … count."""
    inside = (ups >= 0.0) & (ups <= count)
    part = np.where(inside, ups, count)
    x = np.abs(2.0 * part - count) / count
    near = np.minimum(x, 0.5)
    small = 0.5 * near * np.log1p(2.0 * near / (1.0 - near)) + 0.5 * np.log1p(-near * near)
    far = np.minimum(1.0 - x, 0.5)  # exact by Sterbenz's lemma where x is at least 1/2
    logarithm = np.log(np.where(far > 0.0, far, 1.0))
    large = 0.5 * ((1.0 + x) * np.log1p(np.maximum(x, 0.5)) + far * logarithm)
    deviance = count * np.where(x < 0.5, small, large)
    mass = np.where(inside, _front(count, part) * np.exp(-deviance), 0.0)
    return mass, UNIT * (200.0 + 48.0 * deviance)


def binomial_window(trials: int, share: float, rest: float) -> tuple[int, FloatArray, FloatArray, float]:
    """Return the first count of a window of Bin(trials, share), its masses, their relative errors and the mass outside.

    Needs   share + rest = 1, each within 16 UNIT of its own size.
    Rounds  The mass outside: up.
    """
    if trials == 0 or share == 0.0:
        return 0, np.ones(1), np.full(1, UNIT), 0.0
    if rest == 0.0:
        return trials, np.ones(1), np.full(1, UNIT), 0.0
    variance = trials * share * rest
    width = math.sqrt(2.0 * REACH * variance) + REACH  # Bernstein: e^(−w²/(2 var + 2w/3)), with room
    low = max(0, math.floor(trials * share - width))
    high = min(trials, math.ceil(trials * share + width))
    counts = np.arange(low, high + 1, dtype=np.float64)
    n = float(trials)
    gap = counts - n * share if share <= rest else n * rest - (n - counts)
    ends = (counts == 0.0) | (counts == n)
    with np.errstate(over="ignore", invalid="ignore"):  # shares near the smallest float: masses there are nothing
        middle = n * share * _phi(gap / (n * share)) + n * rest * _phi(-gap / (n * rest))
    middle = np.where(np.isnan(middle), np.inf, middle)
    deviance = np.where(ends, -n * np.where(counts == 0.0, _log(rest, share), _log(share, rest)), middle)
    masses = _front(np.full_like(counts, n), counts) * np.exp(-deviance)
    heavy = np.flatnonzero(masses >= math.exp(-1.05 * REACH))  # a run: the masses rise to the mode and fall
    kept = slice(int(heavy[0]), int(heavy[-1]) + 1)
    low, high = low + kept.start, low + kept.stop - 1
    masses, deviance, gap = masses[kept], deviance[kept], gap[kept]
    errors = UNIT * (240.0 + 48.0 * deviance + 48.0 * np.abs(gap))
    outside = _outside(n, share, rest, low, float(masses[0])) + _outside(n, rest, share, trials - high, float(masses[-1]))
    return low, masses, errors, outside


def _log(part: float, other: float) -> float:
    """log(part) where part + other = 1, from the one that keeps its digits."""
    return math.log1p(-other) if other < 0.5 else math.log(part)


def _outside(trials: float, share: float, rest: float, first: int, mass: float) -> float:
    """The probability below the first count, by a geometric series: the ratios of neighbours fall away from the mode."""
    if first == 0:
        return 0.0
    below = (trials + 1.0) * share - first  # of the mode, give or take one: above 0 as a window holds the mode
    return 1.01 * mass * first * rest / below if below > 0.0 else 1.0


def _phi(y: FloatArray) -> FloatArray:
    """(1 + y) log(1 + y) − y for y ≥ −1, by its series near 0: Σ_{j≥2} (−y)^j/(j(j−1)). Relative error: 48 UNIT."""
    near = np.abs(y) < 0.15
    z = np.where(near, y, 0.0)
    series = np.zeros_like(z)
    for j in range(_TERMS, 1, -1):
        series = (1.0 / (j * (j - 1))) - z * series
    safe = np.where(y > -1.0, y, 0.0)
    direct = np.where(y > -1.0, (1.0 + safe) * np.log1p(safe) - safe, 1.0)
    return np.where(near, z * z * series, direct)


# ---- high Rényi orders -----------------------------------------------------------------------------------------------------


_POINTS_NEAR_MEAN, _POINTS_IN_ALL = (
    200,
    600,
)  # points of the grid of t within thirty standard deviations of the mean, and in all
_LEAST = 4.0
"""Orders below this are left to the law's own sum."""


def high_orders(epsilon0: float, lottery: tuple[int, float, float], alpha: FloatArray) -> FloatArray:
    """Return upper bounds of (α−1) D_α of one shuffle; +∞ below the least order. Rounds: up."""
    signs, log_tails = _grid(*lottery)
    orders = np.maximum(alpha, _LEAST)[:, None]
    with np.errstate(over="ignore"):
        exponent = (orders - 0.5) ** 2 * epsilon0**2 / (2.0 * signs) * (1.0 + 16 * UNIT)
    exponent = np.minimum(exponent, (orders - 1.0) * epsilon0 * (1.0 + 16 * UNIT))
    base = exponent[:, -1]  # from the last point of the grid on
    gain = exponent[:, :-1] - exponent[:, 1:]  # Σ (h_i − h_(i+1)) P[t < t_(i+1)], h = e^exponent, over e^base
    with np.errstate(divide="ignore"):
        steps = exponent[:, 1:] - base[:, None] + np.log(np.expm1(np.minimum(gain, 700.0))) + log_tails
        steps = np.where(gain > 700.0, exponent[:, :-1] - base[:, None] + log_tails, steps)
    peak = np.maximum(steps.max(axis=1, initial=-np.inf), 0.0)
    rest = np.exp(steps - peak[:, None]).sum(axis=1) * (1.0 + 1e-12)
    extra = np.where(peak > 0.0, peak + np.log(np.exp(-peak) + rest), np.log1p(rest))
    return np.where(alpha >= _LEAST, (base + extra) * (1.0 + 1e-13), np.inf)


@lru_cache(maxsize=256)
def _grid(others: int, share: float, rest: float) -> tuple[FloatArray, FloatArray]:
    """Numbers of signs t from 1 up to a little below the mean, and upper bounds of log P[1 + C < t] from the second on."""
    mean = others * share
    near = mean - math.sqrt(mean) * np.linspace(5.0, 30.0, _POINTS_NEAR_MEAN)
    far = np.geomspace(1.0, max(1.0, mean - 5.0 * math.sqrt(mean)), _POINTS_IN_ALL)
    signs = np.unique(np.concatenate([[1.0], np.floor(near[near >= 1.0]), np.floor(far)]))
    counts = np.maximum(signs[1:] - 2.0, 0.0)  # 1 + C < t: C ≤ t − 2
    part = counts / max(others, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(counts > 0.0, counts * np.log(part / share), 0.0)
        second = (others - counts) * np.log1p((share - part) / rest)
    divergence = np.where(part < share, first + second, 0.0)
    return signs, np.minimum(1e-9 * (np.abs(first) + 1.0) - divergence * (1.0 - 1e-9), 0.0)


# ---- the law and its twins -------------------------------------------------------------------------------------------------


_EVEN, _FAR = 1_200, 200
_CELLS = _EVEN + _FAR
_REACH = 13.0  # standard deviations of V up to which cells are even; beyond, they grow: where signs are rare a few lie there
_BLOCKS, _SUMS = 1_700, 10_000_000  # of t at most, and of their signs' sums in all
_FEW = 160  # numbers of marks that are all kept
_MARKS = 1_500_000  # numbers of marks looked at in all: as many groups of t share a law of c as that allows
_PLACES = np.concatenate([np.arange(-14.0, -4.0), np.arange(-4.0, 4.0, 0.25), np.arange(4.0, 15.0)])  # of c, in deviations
_NEAR_ONE, _RATIO, _ORDERS = 0.01, 1.005, 256  # of the orders at which ρ is looked for
MOST_ALONE, MOST_COMPOSED = 20_000, 3_000
"""Outcomes kept one by one: of a single record, of one that is composed."""


@dataclass(frozen=True, slots=True)
class ShuffledPair:
    """The pair: ε₀, the number of people, and the chance that the person's report says nothing."""

    epsilon0: float
    reports: int
    silent: float

    @property
    def fall(self) -> float:
        """e^(−ε₀)."""
        return math.exp(-self.epsilon0)

    @property
    def rise(self) -> float:
        """1 − e^(−ε₀)."""
        return -math.expm1(-self.epsilon0)

    @property
    def signs(self) -> tuple[float, float]:
        """The chance that another one leaves a sign, and its complement."""
        f, w = self.fall, self.silent
        return 2.0 * f * (1.0 - w) / (1.0 + f), (self.rise + 2.0 * f * w) / (1.0 + f)

    @property
    def marks(self) -> tuple[float, float]:
        """The chance that another one who leaves no sign leaves the mark, and its complement."""
        f, w = self.fall, self.silent
        bottom = self.rise + 2.0 * f * w
        return w * f * (1.0 + f) / bottom, self.rise * (1.0 + w * f) / bottom

    def score(self, signs: FloatArray | float, marks: FloatArray | float) -> FloatArray:
        """(1+f) t + 2c."""
        return np.asarray((1.0 + self.fall) * signs + 2.0 * marks, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Twins:
    """A law above with the P-mass beyond its losses, and a law below."""

    above: FiniteLaw
    beyond: float
    below: FiniteLaw


@lru_cache(maxsize=128)
def twins(epsilon0: Fraction, reports: int, variation: Fraction | None, most: int) -> Twins:
    """Return a law above and a law below the record's, once; one and the same where they agree.

    Claim   For every ε and after any composition, δ of `above`, with the mass `beyond` put anywhere above all of its losses,
            is at least and δ of `below` at most the pair's. The pair has no loss above ε₀, so `beyond` may be put there.
    Needs   A variation above 0; ε₀ above 1e-100, as other losses: an underflow to 0 would be a claim.
    Source  docs/explanation/shuffling.md, theorems 1 and 2.
    """
    if float(epsilon0) <= SMALLEST:
        raise NumericalFailure(
            subject="epsilon of Shuffled",
            rule=f"must be above {SMALLEST:g} for a certified answer",
            got=f"{float(epsilon0):g}",
        )
    upper = _shuffled_pair(float_up(epsilon0), reports, variation, -1)
    lower = _shuffled_pair(float_down(epsilon0), reports, variation, +1)
    if _outcomes(upper) <= most:
        above, beyond = _one_by_one(upper)
        return Twins(above, beyond, above if lower == upper else _one_by_one(lower)[0])
    return Twins(*_cells(upper, above=True), _cells(lower, above=False)[0])


def log_moments(epsilon0: Fraction, reports: int, variation: Fraction | None, theta: FloatArray) -> FloatArray:
    """Return upper bounds of log E_P[e^(θL)] of one shuffle: (α−1) D_α at α = 1 + θ. Rounds: up.

    What lies beyond the law is put at ε₀. At high orders that little outweighs all, and theorem 3 speaks; there without a
    variation, which only lowers the loss.
    """
    both, top = twins(epsilon0, reports, variation, MOST_COMPOSED), float_up(epsilon0)
    theta = np.asarray(theta, dtype=np.float64)
    beyond = math.log(both.beyond) if both.beyond > 0.0 else -math.inf
    own = np.logaddexp(both.above.log_moment(theta), beyond + theta * top * (1.0 + 8 * UNIT)) * (1.0 + 8 * UNIT)
    return np.minimum(own, high_orders(top, (reports - 1, *ShuffledPair(top, reports, 0.0).signs), theta + 1.0))


def _shuffled_pair(epsilon0: float, reports: int, variation: Fraction | None, side: int) -> ShuffledPair:
    """Silence is 1 − β/tanh(ε₀/2): less of it dominates, so its round-off goes to the safe side."""
    if variation is None:
        return ShuffledPair(epsilon0, reports, 0.0)
    told = float(variation) / math.tanh(0.5 * epsilon0)
    return ShuffledPair(epsilon0, reports, min(max(1.0 - told + side * 16 * UNIT, 0.0), 1.0))


@lru_cache(maxsize=256)
def rho_bound(epsilon0: Fraction, reports: int, variation: Fraction | None) -> float:
    """Return an upper bound of D_α/α over all orders α > 1.

    D_α rises with α, so that D_α/α on [α₁, α₂] is at most D_(α₂)/α₁; from some order on ε₀/α is smaller. Rounds: up.
    """
    theta, top = _NEAR_ONE, float_up(epsilon0)
    if float(epsilon0) <= SMALLEST:  # no twins; ε₀ itself is a bound, and the ρ of any ε₀-private mechanism a smaller one
        return top
    best = float(log_moments(epsilon0, reports, variation, np.array([theta]))[0]) / theta
    alpha = 1.0 + theta
    while best * alpha < top:
        ends = alpha * _RATIO ** np.arange(1.0, _ORDERS + 1.0)
        bounds = np.minimum(log_moments(epsilon0, reports, variation, ends - 1.0) / (ends - 1.0), top)
        best = max(best, float((bounds * _RATIO / ends).max()))
        alpha = float(ends[-1])
    return up(best, 32)


# ---- one by one -------------------------------------------------------------------------------------------------------


def _spread(trials: int, share: float, rest: float) -> float:
    return min(float(trials), 2.0 * (math.sqrt(2.0 * REACH * trials * share * rest) + REACH))


def _outcomes(shape: ShuffledPair) -> float:
    """How many (D, t, c) the windows hold, from above."""
    others = shape.reports - 1
    if others * min(shape.signs) > MOST_ALONE or others * min(shape.marks) > MOST_ALONE:
        return math.inf
    first, weights, _, _ = binomial_window(others, *shape.signs)
    marks = len(binomial_window(others, *shape.marks)[1])
    t = np.arange(first, first + len(weights), dtype=np.float64) + 2.0
    return float((t * np.minimum(marks, others - t + 3.0)).sum())


def _one_by_one(shape: ShuffledPair) -> tuple[FiniteLaw, float]:
    losses: list[FloatArray] = [np.zeros(0)]
    masses: list[FloatArray] = [np.zeros(0)]
    others, speaks = shape.reports - 1, 1.0 - shape.silent
    first, weights, doubts, lost = binomial_window(others, *shape.signs)
    error, missing = float(doubts.max()), lost
    for signs, weight in zip(range(first, first + len(weights)), weights.tolist(), strict=True):
        low, marks, worse, outside = binomial_window(others - signs, *shape.marks)
        error, missing = max(error, float(doubts.max()) + float(worse.max())), missing + weight * outside
        count = np.arange(low, low + len(marks), dtype=np.float64)
        for t, c, mass in ((signs + 1, count, speaks * weight * marks), (signs, count + 1.0, shape.silent * weight * marks)):
            if mass.any():
                for rows, out in zip(_outcome_rows(shape, t, c, mass), (losses, masses), strict=True):
                    out.append(rows.ravel())
    loss, mass = np.concatenate(losses), np.concatenate(masses)
    loss, mass = _merge_outcomes(loss[mass > 0.0], mass[mass > 0.0])
    round_off = UNIT * (512.0 + 48.0 * 750.0)  # of masses of signs, whose deviance is below 750 unless they underflow
    doubt = 64 * UNIT * shape.epsilon0
    return FiniteLaw(loss, mass, 1, error + round_off, balanced=True, doubt=doubt), missing + 1e-290


def _outcome_rows(shape: ShuffledPair, t: int, c: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Losses and P-masses of every sum of t signs beside every number of marks."""
    plus = np.arange(t + 1, dtype=np.float64)
    fair = sign_masses(np.full(t + 1, float(max(t, 1))), plus)[0] if t > 0 else np.ones(1)
    minus, f = t - plus, shape.fall
    high = (plus + f * minus)[:, None] + c
    low = (f * plus + minus)[:, None] + c
    difference = shape.rise * (plus - minus)[:, None]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # log high/low, from the side that adds
        loss = np.sign(difference) * np.log1p(np.abs(difference) / np.minimum(high, low))
    alone = (c == 0.0) & (t > 0)  # nothing but signs: if they agree the loss is ε₀ itself
    loss = np.where(alone & (minus == 0.0)[:, None], shape.epsilon0, loss)
    loss = np.where(alone & (plus == 0.0)[:, None], -shape.epsilon0, loss)
    return loss, fair[:, None] * mass * (2.0 * high / (high + low))


def _merge_outcomes(losses: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Outcomes of the same loss, to a few ulps, are one."""
    order = np.argsort(losses)
    losses, masses = losses[order], masses[order]
    starts = np.concatenate([[True], np.diff(losses) > 8 * UNIT * np.abs(losses[1:])])
    return losses[starts], np.add.reduceat(masses, np.flatnonzero(starts))


# ---- in cells ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Gathered:
    """M-masses of cells of V > 0 and E_M of V beyond their left ends; what V = 0 holds, and what no window does."""

    mass: FloatArray
    moment: FloatArray
    zero: float = 0.0
    outside: float = 0.0
    error: float = 0.0  # relative, of the weights of t and c, and of quotients of masses
    round_off: float = 0.0  # relative, of the central masses


@dataclass(frozen=True, slots=True)
class _Rows:
    """A number of signs, with M-masses and what V is a unit of their sum."""

    signs: int
    scale: FloatArray
    mass: FloatArray


@lru_cache(maxsize=64)
def _cells(shape: ShuffledPair, *, above: bool) -> tuple[FiniteLaw, float]:
    highest = math.tanh(0.5 * shape.epsilon0)
    found = _Gathered(np.zeros(_CELLS + 1), np.zeros(_CELLS + 1))
    rows = list(_plain_rows(shape, found, above=above) if shape.silent == 0.0 else _marked_rows(shape, found, above=above))
    width = math.sqrt(math.fsum(float((row.mass * row.scale**2).sum()) * row.signs for row in rows))
    if _REACH * width < 0.9 * highest:
        step = _REACH * width / _EVEN
        near = step * np.arange(_EVEN + 1.0)
        far = near[-1] * (highest / near[-1]) ** (np.arange(1.0, _FAR + 2.0) / (_FAR + 1.0))
        edges = np.concatenate([near, far[:-1], [highest]])
    else:  # few people: cells of one length in L up to ε₀, not in V
        step = 0.0
        edges = np.tanh(0.5 * shape.epsilon0 * np.linspace(0.0, 1.0, _CELLS + 2))
    t = np.array([float(row.signs) for row in rows])
    centres, doubts = sign_masses(np.maximum(t, 1.0), np.ceil(t / 2.0))
    found.round_off = float(doubts.max())
    for row, centre in zip(rows, centres.tolist(), strict=True):
        _gather(row, centre, (edges, step), found)
    return _dots(shape, edges, found) if above else _means(shape, edges, found), found.outside


def _gather(row: _Rows, centre: float, grid: tuple[FloatArray, float], found: _Gathered) -> None:
    """Add the positive sums of t signs, from the mass of the central one outwards, to the cells of a grid (0: not even).

    Beyond the window Hoeffding's bound of what is left out is kept.
    """
    t, (edges, step) = row.signs, grid
    total = float(row.mass.sum())
    if t == 0:
        found.zero += total
        return
    last = min(t, _last(t))
    sums = np.arange(t % 2, last + 1, 2, dtype=np.float64)
    masses = centre * np.concatenate([[1.0], np.cumprod((t - sums[:-1]) / (t + sums[:-1] + 2.0))])
    found.error = max(found.error, 4 * UNIT * len(sums))
    if t % 2 == 0:
        found.zero += total * float(masses[0])
        sums, masses = sums[1:], masses[1:]
    if last < t:
        found.outside += 2.0 * math.exp(-REACH) * total
    for scale, mass in zip(row.scale.tolist(), row.mass.tolist(), strict=True):
        value = scale * sums
        cell = np.clip(_places(value, edges, step), 0, _CELLS)
        held = mass * masses
        found.mass += _sums(cell, held, _CELLS + 1)
        found.moment += _sums(cell, held * np.maximum(value - edges[cell], 0.0), _CELLS + 1)


def _places(value: FloatArray, edges: FloatArray, step: float) -> NDArray[np.intp]:
    """The cell of each value; values rise."""
    if step <= 0.0:
        return np.searchsorted(edges, value, side="right") - 1
    even = (value / step).astype(np.intp)
    beyond = int(np.searchsorted(value, edges[_EVEN]))  # few or none, as a rule
    even[:beyond] = np.minimum(even[:beyond], _EVEN - 1)
    even[beyond:] = np.searchsorted(edges, value[beyond:], side="right") - 1
    return even


def _sums(places: NDArray[np.intp], weights: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(places, weights, minlength=size), dtype=np.float64)


def _last(signs: float) -> int:
    return math.ceil(math.sqrt(2.0 * REACH * signs)) + 2


def _blocks(signs: float) -> int:
    """How many blocks of about so many signs are affordable."""
    return min(_BLOCKS, max(48, 2 * _SUMS // _last(signs)))


def _dots(shape: ShuffledPair, edges: FloatArray, found: _Gathered) -> FiniteLaw:
    """Each cell to its two ends, the mean kept; round-off goes up."""
    width = np.diff(edges)
    share = np.where(width > 0.0, found.moment / np.where(width > 0.0, width, 1.0), found.mass)
    doubt = 2e-12 + 4 * UNIT * edges[1:] / np.maximum(width, 1e-300)
    right = np.clip(share + doubt * found.mass, 0.0, found.mass)
    values = np.zeros(len(edges))
    values[1:] += right
    values[:-1] += found.mass - right
    zero = found.zero + 2.0 * values[0]
    return _law(shape, edges[1:], values[1:], zero, 1.0 + 2.0 * found.error + found.round_off + 1e-12, slack=24 * UNIT)


def _means(shape: ShuffledPair, edges: FloatArray, found: _Gathered) -> FiniteLaw:
    """Each cell to its mean: outputs are merged."""
    keep = found.mass > 0.0
    values = edges[:-1][keep] + found.moment[keep] / found.mass[keep]
    factor = 1.0 - 2.0 * found.error - found.round_off - 1e-12
    return _law(shape, values, found.mass[keep], found.zero, factor, slack=-4e-12)


def _law(
    shape: ShuffledPair, values: FloatArray, masses: FloatArray, zero: float, factor: float, *, slack: float
) -> FiniteLaw:
    """The symmetric law with M-masses at ±values and at 0, all times a factor; losses move by the slack of their values."""
    last = math.tanh(0.5 * shape.epsilon0)
    inner = np.minimum(values, math.nextafter(1.0, 0.0))
    odds = inner / (1.0 - inner)
    losses = np.minimum(np.where(values >= last, shape.epsilon0, np.log1p(2.0 * odds)), shape.epsilon0)
    p, q = masses / (1.0 + np.exp(-losses)), masses / (1.0 + np.exp(losses))
    moved = slack * (losses + np.where(values >= last, 0.0, odds))
    all_losses = np.concatenate([moved[::-1] - losses[::-1], [0.0], losses + moved])
    all_masses = np.concatenate([2.0 * q[::-1], [zero], 2.0 * p]) * factor
    keep = all_masses > 0.0
    return FiniteLaw(all_losses[keep], all_masses[keep], 1, 64 * UNIT, balanced=True)


def _plain_rows(shape: ShuffledPair, found: _Gathered, *, above: bool) -> Iterator[_Rows]:
    """Blocks of t with no marks: D_t/t falls in convex order, so a block is above at its first t and below at its last."""
    first, weights, doubts, found.outside = binomial_window(shape.reports - 1, *shape.signs)
    found.error = float(doubts.max())
    size = -(-len(weights) // _blocks(first + len(weights)))
    spread = math.tanh(0.5 * shape.epsilon0)
    for start in range(0, len(weights), size):
        stop = min(start + size, len(weights))
        t = first + 1 + (start if above else stop - 1)
        yield _Rows(t, np.array([spread / t]), np.array([float(weights[start:stop].sum())]))


def _marked_rows(shape: ShuffledPair, found: _Gathered, *, above: bool) -> Iterator[_Rows]:
    """Blocks of t, in groups that share a law of c.

    Among n people who all draw as the others do, (t, c) weighs its score over 2nf. Above, a block takes D from its last t,
    the score from its first, c from the group's last, and what the weights then lack is put at V = 0; below it is the other
    way round, and what the weights have too much is scaled down.
    """
    n = shape.reports
    first, weights, doubts, lost = binomial_window(n, *shape.signs)
    share, rest = shape.marks
    groups = min(len(weights), max(16, int(_MARKS / (_spread(n, share, rest) + 50.0))))
    group = max(-(-len(weights) // groups), -(-len(weights) * len(_PLACES) // (12 * _BLOCKS)))
    rows: list[_Rows] = []
    for start in range(0, len(weights), group):
        stop = min(start + group, len(weights))
        c, marks, worse, missing = _thin_marks(shape, n - (first + (stop - 1 if above else start)), above=above)
        found.error = max(found.error, float(doubts.max()) + worse)
        lost += missing
        size = max(1, len(weights) * len(c) // (20 * _blocks(first + stop)))
        for low in range(start, stop, size):
            high = min(low + size, stop)
            scored, signs = (low, high - 1) if above else (high - 1, low)
            score = shape.score(float(first + scored), c)
            mass = float(weights[low:high].sum()) * marks * score / (2.0 * n * shape.fall)
            rows.append(_Rows(first + signs, shape.rise / np.where(score > 0.0, score, 1.0), mass))
    found.outside = lost / shape.fall  # a score is at most 2n
    total = math.fsum(float(row.mass.sum()) for row in rows)
    if above:
        found.zero += max(0.0, 1.0 - total) + 2.0 * found.error
        yield from rows
    else:
        factor = min(1.0, 1.0 / total)
        yield from (_Rows(row.signs, row.scale, row.mass * factor) for row in rows)


def _thin_marks(shape: ShuffledPair, trials: int, *, above: bool) -> tuple[FloatArray, FloatArray, float, float]:
    """A few numbers of marks with their masses, the masses' relative error and what was left out.

    Above, each number goes to its two neighbours among those kept, its mean unchanged; below, runs go to their means.
    """
    first, masses, doubts, lost = binomial_window(trials, *shape.marks)
    c = np.arange(first, first + len(masses), dtype=np.float64)
    share, rest = shape.marks
    places = trials * share + math.sqrt(trials * share * rest) * _PLACES
    kept = c if len(c) <= _FEW else np.unique(np.concatenate([c[:1], np.clip(np.round(places), c[0], c[-1]), c[-1:]]))
    run = np.clip(np.searchsorted(kept, c, side="right") - 1, 0, max(len(kept) - 2, 0))
    if above:
        gap = np.diff(kept, append=kept[-1] + 1.0)
        right = masses * (c - kept[run]) / gap[run]
        values, held = kept, _sums(run, masses - right, len(kept))
        held = held + _sums(np.minimum(run + 1, len(kept) - 1), right, len(kept))
    else:
        held = _sums(run, masses, len(kept))
        values = _sums(run, masses * c, len(kept)) / np.where(held > 0.0, held, 1.0)
    keep = held > 0.0
    return values[keep], held[keep], float(doubts.max()), lost
