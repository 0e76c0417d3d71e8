"""Draws against their exact laws, and the same tests against laws that are wrong.

Every statistical assertion has a false-alarm rate of 1e-9 (χ² with at least 100 expected in each bin, normal and Kolmogorov
bounds); the entropy is the real one, nothing is seeded and nothing is tried again.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import chdtrc, erfc, log_ndtr, ndtr

from curador.randomness import noise as noises
from curador.randomness.choice import Choice, Weighted, below, below_one, bernoulli, bernoulli_exp
from curador.randomness.entropy import entropy
from curador.randomness.noise import LawKind, Strip, gaussian, geometric, laplace

ALARM = 1e-9
KOLMOGOROV = math.sqrt(-math.log(ALARM / 2) / 2)  # P[√n sup|F_n − F| > t] ≤ 2 e^(−2t²)
NORMAL = 6.2  # two-sided 5.6e-10
MANY = 1_000_000
SCALES = ("0.3", "1", "2.5", "10", "77", "1000", "1e5", "1e6", "1e9", "1e15")


def noise(kind, scale):
    """The noise of that scale; for a Gaussian the scale is σ."""
    scale = Fraction(scale)
    return {LawKind.LAPLACE: laplace, LawKind.GAUSSIAN: gaussian, LawKind.GEOMETRIC: geometric}[kind](
        scale**2 if kind is LawKind.GAUSSIAN else scale
    )


def masses(kind, scale, edges):
    """P[edges[i] ≤ X < edges[i + 1]] for integer edges, then both tails: closed forms, or sums where that is short."""
    scale = float(Fraction(scale))
    edges = np.asarray(edges, np.float64)
    if kind is LawKind.GAUSSIAN:
        if scale < 200:
            reach = np.arange(-math.ceil(40 * scale) - 2, math.ceil(40 * scale) + 3)
            weights = np.exp(-0.5 * (reach / scale) ** 2)
            weights /= weights.sum()
            inside = np.histogram(reach, np.append(edges[:-1], edges[-1]) - 0.5, weights=weights)[0]
            return inside, weights[reach < edges[0]].sum(), weights[reach >= edges[-1]].sum()
        z = (edges - 0.5) / scale  # midpoint rule: the error is below 1e-6 of each mass beyond σ = 200
        upper = np.where(z > 0, ndtr(-z), 0.0)
        inside = np.where(z[:-1] > 0, upper[:-1] - upper[1:], ndtr(z[1:]) - ndtr(z[:-1]))
        return inside, ndtr(z[0]), ndtr(-z[-1])
    ratio = math.exp(-1 / scale)
    if kind is LawKind.GEOMETRIC:
        above = np.where(edges > 0, np.exp(-edges / scale), 1.0)
    else:
        far = np.exp(-np.abs(edges) / scale) / (1 + ratio)
        above = np.where(edges > 0, far, 1 - ratio * far)  # P[X ≥ e] = q^e/(1+q), or 1 − P[X ≥ 1 − e]
        return _laplace_inside(edges, scale, ratio), ratio * far[0], above[-1]
    return above[:-1] - above[1:], 1 - above[0], above[-1]


def _laplace_inside(edges, scale, ratio):
    """Differences without cancellation: each bin lies on one side of 0."""
    right = np.maximum(edges, 0)
    left = np.maximum(1 - edges, 1)
    up = np.exp(-right / scale)
    down = np.exp(-left / scale)
    return np.where(edges[:-1] >= 0, up[:-1] - up[1:], down[1:] - down[:-1]) / (1 + ratio)


def p_value(observed, expected):
    """χ² of counts against expectations after joining neighbours until each bin expects 100."""
    total = expected.sum()
    assert abs(observed.sum() / total - 1) < 1e-9
    ends, waiting = [], 0.0
    for i, value in enumerate(expected.tolist()):
        waiting += value
        if waiting >= 100:
            ends.append(i + 1)
            waiting = 0.0
    if waiting and len(ends) > 1:
        ends[-1] = len(expected)
    starts = [0, *ends[:-1]]
    seen, due = np.add.reduceat(observed, starts), np.add.reduceat(expected, starts)
    if len(starts) == 1:
        return 1.0
    return float(chdtrc(len(starts) - 1, ((seen - due) ** 2 / due).sum()))


def fit(draws, kind, scale, *, parts=4):
    """p-value against the exact law: `parts` bins to a cell of the strip, single integers where cells are small."""
    k = noise(kind, scale).k
    shift = max(0, k - (parts.bit_length() - 1))
    reach = math.ceil(14 * float(Fraction(scale))) >> shift
    cells = np.arange(0 if kind is LawKind.GEOMETRIC else -reach - 1, reach + 2)
    inside, below_all, above_all = masses(kind, scale, cells << shift)
    bins = np.clip(draws >> shift, cells[0] - 1, cells[-1]) - (cells[0] - 1)
    observed = np.bincount(bins, minlength=len(cells) + 1)
    expected = np.concatenate([[below_all], inside, [above_all]]) * len(draws)
    return p_value(observed, expected)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", list(LawKind))
def test_draws_have_their_law_and_no_other(kind, scale):
    """A million draws of each mode fit the law; drawn with a scale five per cent too large they do not."""
    one, wrong = noise(kind, scale), noise(kind, Fraction(scale) * Fraction(21, 20))

    assert fit(one.draw(MANY, entropy()), kind, scale) > ALARM
    assert fit(one.draw(MANY, entropy(), level=True), kind, scale) > ALARM
    assert fit(wrong.draw(MANY, entropy()), kind, scale) < ALARM
    assert fit(wrong.draw(MANY, entropy(), level=True), kind, scale) < ALARM


@pytest.mark.parametrize("scale", ["1e6", "1e9", "1e15"])
@pytest.mark.parametrize("kind", list(LawKind))
def test_low_bits_are_uniform(kind, scale):
    """The last eight bits, and eight in the middle of a cell, are evenly spread (the law bends them by less than 1e-3)."""
    one = noise(kind, scale)
    draws = one.draw(MANY, entropy())
    for shift in {0, max(0, one.k // 2 - 4)}:
        if one.k - shift >= 12:
            counts = np.bincount((draws >> shift) & 255, minlength=256)
            assert p_value(counts, np.full(256, MANY / 256)) > ALARM


# ---- positions inside the cell ------------------------------------------------------------------------------------------


def lean(draws, kind, scale):
    """How many standard errors the mean place inside a cell, counted outwards, is away from the law's."""
    k = noise(kind, scale).k
    outward = np.where(draws >= 0, draws, ~draws) >> (k - 4)
    place = (outward & 15).astype(np.float64)
    reach = math.ceil(20 * float(Fraction(scale))) >> (k - 4)
    cells = np.arange(reach + 1)
    right, _, _ = masses(kind, scale, cells << (k - 4))
    weight = right.copy()
    if kind is not LawKind.GEOMETRIC:
        left, _, _ = masses(kind, scale, (-cells[::-1]) << (k - 4))
        weight += left[::-1]
    weight /= weight.sum()
    mean = float((weight * (cells[:-1] & 15)).sum())
    return abs(place.mean() - mean) / (place.std() / math.sqrt(len(draws)))


@pytest.mark.parametrize("scale", ["1040", "1e6", "1e15"])
@pytest.mark.parametrize("kind", list(LawKind))
def test_places_inside_a_cell_follow_the_slope(kind, scale):
    """Outer places of a cell are rarer by just as much as the law says, in both modes."""
    one = noise(kind, scale)

    assert lean(one.draw(4 * MANY, entropy()), kind, scale) < NORMAL
    assert lean(one.draw(MANY, entropy(), level=True), kind, scale) < NORMAL


@pytest.mark.parametrize("kind", list(LawKind))
def test_a_slope_ignored_inside_cells_is_seen(kind, monkeypatch):
    """A mutant that compares W with the law at the cell's inner end is caught."""
    plain = Strip.phi_float
    k = noise(kind, "1040").k

    def flat(self, x):
        return plain(self, np.where(x >= 0, (x >> k) << k, ((x >> k) << k) + (1 << k) - 1))

    one = noise(kind, "1040")
    monkeypatch.setattr(Strip, "phi_float", flat)

    assert lean(one.draw(4 * MANY, entropy()), kind, "1040") > NORMAL


@pytest.mark.parametrize("kind", list(LawKind))
def test_a_slope_ignored_by_level_draws_is_seen(kind, monkeypatch):
    """The same mutant of level mode."""
    plain = Strip._phi_into  # noqa: SLF001
    k = noise(kind, "1040").k

    def flat(self, out, x):
        plain(self, out, np.where(x >= 0, (x >> k) << k, ((x >> k) << k) + (1 << k) - 1))

    one = noise(kind, "1040")
    monkeypatch.setattr(Strip, "_phi_into", flat)

    assert lean(one.draw(4 * MANY, entropy(), level=True), kind, "1040") > NORMAL


@pytest.mark.parametrize("size", [10, 300, 1000])
@pytest.mark.parametrize("scale", ["2.5", "1000", "1e12"])
@pytest.mark.parametrize("kind", list(LawKind))
def test_vectors_from_the_pool_have_their_law_and_no_other(kind, scale, size):
    """300,000 numbers in vectors, as releases draw them, fit the law; with a scale five per cent too large they do not."""
    one, wrong = noise(kind, scale), noise(kind, Fraction(scale) * Fraction(21, 20))
    right, other = (np.concatenate([law.several(size, entropy()) for _ in range(300_000 // size)]) for law in (one, wrong))

    assert fit(right, kind, scale) > ALARM
    assert fit(other, kind, scale) < ALARM


@pytest.mark.parametrize("kind", list(LawKind))
def test_neighbours_in_a_pool_are_independent(kind):
    """Signs of deviations from the median of neighbours, also where holes were filled: as often equal as not."""
    one = noise(kind, "1e12")
    drawn = np.concatenate([one.several(1000, entropy()) for _ in range(1000)])
    middle = 0 if kind is not LawKind.GEOMETRIC else round(1e12 * math.log(2))
    above = drawn >= middle

    for apart in (1, 7, 1000):
        same = int((above[apart:] == above[:-apart]).sum())
        assert abs(same - (len(drawn) - apart) / 2) < NORMAL * math.sqrt(len(drawn)) / 2
    repeated = np.repeat(above[::2], 2)  # the seeded bug: every number twice
    assert abs(int((repeated[1:] == repeated[:-1]).sum()) - len(drawn) / 2) > NORMAL * math.sqrt(len(drawn)) / 2


def test_refused_proposals_in_a_pool_are_seen(monkeypatch):
    """A mutant that keeps the holes of refused proposals is caught by the fit."""

    def holey(self, size, source):
        out = np.empty(size, np.int64)
        return out[: size - len(self._try(out, source, level=True))]

    monkeypatch.setattr(Strip, "accepted", holey)
    one = Strip(LawKind.LAPLACE, Fraction(1, 1000))
    drawn = np.concatenate([one.several(1000, entropy()) for _ in range(1000)])

    assert fit(drawn, LawKind.LAPLACE, 1000) < ALARM


def test_missing_rejection_is_seen(monkeypatch):
    """A mutant that accepts every proposal is caught by the fit."""
    one = Strip(LawKind.LAPLACE, Fraction(1, 1000))
    one.table |= 0xFFFF

    assert fit(one.draw(MANY, entropy()), LawKind.LAPLACE, 1000) < ALARM


# ---- forced routes ------------------------------------------------------------------------------------------------------


@pytest.fixture
def never_sure(monkeypatch):
    """No decision is left to floats."""
    monkeypatch.setattr(noises, "_MARGIN", 4.0)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["0.3", "2.5", "1e6"])
@pytest.mark.parametrize("kind", list(LawKind))
def test_the_exact_route_alone_has_the_law(kind, scale, never_sure):
    """With every decision in integers the draws still fit, and a wrong scale still does not."""
    one, wrong = noise(kind, scale), noise(kind, Fraction(scale) * Fraction(5, 4))
    many = 30_000 if scale == "0.3" else 8_000

    assert fit(one.draw(200_000, entropy()), kind, scale) > ALARM  # what 16 bits do not accept
    assert fit(one.draw(many, entropy(), level=True), kind, scale) > ALARM  # every single draw
    assert fit(wrong.draw(many, entropy(), level=True), kind, scale) < ALARM


def tail_only(kind, scale):
    """The strip of that law with nothing but tail slots."""
    scale = Fraction(scale)
    strip = Strip(kind, 1 / (2 * scale**2) if kind is LawKind.GAUSSIAN else 1 / scale)
    strip.table[:] = strip.cells << 16
    return strip


def tail_fit(draws, strip, scale, wrong=1.0):
    """p-value of tail draws, both sides apart, against f restricted to the tail; bins of a sixteenth of a halving."""
    kind, start = strip.kind, strip.tail_start
    shift = max(0, strip.tail_bits - 4)
    scale = float(Fraction(scale)) * wrong
    far = 40 if shift == 0 else 16 * 40
    edges = start + (np.arange(far + 1) << shift)
    sides, expected = [], []
    for sign in (0, 1)[: 1 if kind is LawKind.GEOMETRIC else 2]:
        size = edges + sign  # the left tail is one step farther
        if kind is LawKind.GAUSSIAN:
            mass = _gaussian_tail(size, scale, small=shift == 0)
        else:
            above = np.exp(-(size - start) / scale)
            mass = np.append(above[:-1] - above[1:], above[-1])
        side = draws[draws >= 0] if sign == 0 else ~draws[draws < 0]
        assert (side >= start).all()
        sides.append(np.bincount(np.minimum((side - start) >> shift, far), minlength=far + 1))
        expected.append(mass)
    total = sum(mass.sum() for mass in expected)
    return p_value(np.concatenate(sides), np.concatenate(expected) / total * len(draws))


def _gaussian_tail(edges, scale, *, small):
    """Masses between the edges and beyond the last, up to a common factor."""
    if small:
        single = np.exp(-(np.arange(edges[0], edges[-1] + 60) ** 2) / (2 * scale**2))
        return np.append(single[: len(edges) - 1], single[len(edges) - 1 :].sum())
    log_above = log_ndtr(-(edges - 0.5) / scale)
    above = np.exp(log_above)
    return np.append(above[:-1] - above[1:], above[-1])


@pytest.mark.parametrize("scale", ["3", "40", "1000", "1e15"])
@pytest.mark.parametrize("kind", list(LawKind))
def test_tails_alone_have_the_law(kind, scale):
    """From a table of tail slots come the tails of the law: both sides, their shares and their decay."""
    strip = tail_only(kind, scale)
    draws = strip.draw(200_000, entropy())

    assert tail_fit(draws, strip, scale) > ALARM
    assert tail_fit(draws, strip, scale, wrong=0.9) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(LawKind))
def test_tails_by_the_exact_route_have_the_law(kind, never_sure):
    """The same with every decision in integers."""
    strip = tail_only(kind, 1000)
    draws = strip.draw(1_500 if kind is LawKind.GAUSSIAN else 10_000, entropy(), level=True)  # a Gaussian refuses most

    assert tail_fit(draws, strip, 1000) > ALARM
    assert tail_fit(draws, strip, 1000, wrong=0.7) < ALARM


# ---- wide scales --------------------------------------------------------------------------------------------------------


def distance(draws, kind, scale):
    """√n times the largest gap between the empirical and the continuous distribution function."""
    z = np.sort(np.array([float(Fraction(x) / scale) for x in draws.tolist()]))
    if kind is LawKind.GAUSSIAN:
        above = 0.5 * erfc(z / math.sqrt(2))
    elif kind is LawKind.LAPLACE:
        above = np.where(z > 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))
    else:
        above = np.exp(-z)
    rank = np.arange(len(z))
    return math.sqrt(len(z)) * max(np.max(1 - above - rank / len(z)), np.max((rank + 1) / len(z) - 1 + above))


@pytest.mark.parametrize("scale", [10**16, 5 * 10**18, 10**22 + 1, Fraction(10**31, 3)])
@pytest.mark.parametrize("kind", list(LawKind))
def test_wide_draws_have_the_continuous_law_and_even_bits(kind, scale):
    """Beyond 2⁵² the integers are Python's own; law, low bits and the bits where the two parts meet are right."""
    scale = Fraction(scale)
    one, wrong = noise(kind, scale), noise(kind, scale * Fraction(11, 10))
    draws = one.draw(40_000, entropy())

    assert one.wide
    assert all(type(x) is int for x in draws.tolist())
    assert distance(draws, kind, scale) < KOLMOGOROV
    assert distance(wrong.draw(40_000, entropy(), level=True), kind, scale) > KOLMOGOROV
    meeting = max(0, one._low_bits - 4)  # noqa: SLF001 -- half of these bits come from each part
    for shift in {0, meeting, 20}:
        counts = np.bincount([(x >> shift) & 255 for x in draws.tolist()], minlength=256)
        assert p_value(counts, np.full(256, len(draws) / 256)) > ALARM


# ---- the other laws -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "p", [Fraction(1, 3), Fraction(999, 1000), Fraction(1, 65537), Fraction(1, 2), Fraction(10**30 + 1, 10**31)], ids=str
)
def test_coins_have_their_probability(p):
    """Four million coins; and a coin off by two per cent would be seen."""
    coins = bernoulli(p, 4 * MANY, entropy())
    error = math.sqrt(4 * MANY * p * (1 - p))
    tight = Fraction(1, 50) * 4 * MANY * min(p, 1 - p) > 2 * NORMAL * error

    assert abs(int(coins.sum()) - 4 * MANY * p) < NORMAL * error + 20  # the 20 serves rare events, whose tails are Poisson's
    assert tight or min(p, 1 - p) < Fraction(1, 100)


def test_exponential_coins_have_their_probability():
    """e^(−steps · rate) for steps from 0 to far beyond what can be seen."""
    steps = np.array([0, 1, 2, 5, 10, 30, 1 << 62])
    rate, each = Fraction(1, 7), 300_000
    heads = bernoulli_exp(np.repeat(steps, each), rate, entropy()).reshape(len(steps), each).sum(axis=1)
    chance = np.exp(-steps * float(rate))

    assert heads[0] == each
    assert heads[-1] == 0
    error = np.sqrt(each * chance * (1 - chance))
    assert (np.abs(heads - each * chance)[1:-1] < NORMAL * error[1:-1]).all()
    assert not (np.abs(heads - each * chance**1.05)[1:-1] < NORMAL * error[1:-1]).all()


@pytest.mark.parametrize("limit", [2, 3, 7, 64, 1000, 2**31 - 1, 2**31, 2**31 + 1, 3 * 2**61, 2**62 + 1, 2**63 - 1, 2**63])
def test_integers_below_a_limit_are_uniform(limit):
    """Evenly over 64 pieces and over the remainders of small divisors; one piece too few would be seen."""
    size = 640_000
    draws = below(limit, size, entropy())
    pieces = min(limit, 64)
    edges = [-(-i * limit // pieces) for i in range(pieces + 1)]
    place = np.searchsorted(np.array(edges[1:-1], np.int64), draws, side="right")
    due = np.diff(np.array(edges, object)).astype(np.float64) / limit * size

    assert draws.min() >= 0
    assert int(draws.max()) < limit
    assert p_value(np.bincount(place, minlength=pieces), due) > ALARM
    if limit > 2:
        remainders = np.bincount(draws % 3, minlength=3)
        share = np.array([(limit - r + 2) // 3 / limit for r in range(3)])
        assert p_value(remainders, share * size) > ALARM


def test_a_biased_reduction_is_seen():
    """Words reduced modulo 3 · 2⁶¹ without drawing again are not uniform, and the test says so."""
    limit, size = 3 * 2**61, 640_000
    draws = (entropy().words(size, "<u8") % np.uint64(limit)).astype(np.int64)
    place = np.minimum(draws // (limit // 64), 63)

    assert p_value(np.bincount(place, minlength=64), np.full(64, size / 64)) < ALARM


@pytest.mark.parametrize("limit", [1, 2, 3, 10**6 + 3, 2**64 + 1, 10**40])
def test_one_integer_below_any_limit_is_uniform(limit):
    """The same without a bound on the limit."""
    draws = [below_one(limit, entropy()) for _ in range(12_800)]
    pieces = min(limit, 16)
    counts = np.bincount([x * pieces // limit for x in draws], minlength=pieces)
    due = np.diff([float(Fraction(-(-i * limit // pieces), limit)) for i in range(pieces + 1)]) * len(draws)

    assert all(0 <= x < limit for x in draws)
    assert limit == 1 or p_value(counts, due) > ALARM


CHOICES = {
    "plain": ([0, 1, 3, 3, 10], Fraction(1, 4), None),
    "rebased": ([50, 51, 53, 200], Fraction(1, 2), None),
    "multiplicities": ([0, 40, 41, 7], Fraction(1), [1, (1 << 53) - 1, 1 << 53 - 1, 0]),
    "absent best": ([0, 5, 9], Fraction(1, 3), [0, 3, 2]),
    "huge deficits": ([0, 1 << 62, 2], Fraction(1), None),
    "even": ([0, 10, 20], Fraction(0), None),
}


@pytest.mark.parametrize("exact", [False, True], ids=["floats", "integers"])
@pytest.mark.parametrize("name", CHOICES)
def test_choices_have_their_law(name, exact, monkeypatch):
    """One of k with exponential weights, decided by floats and by integers; weights of another rate do not fit."""
    deficits, rate, many = CHOICES[name]
    size = 6_000 if exact else 400_000
    if exact:
        monkeypatch.setattr(noises, "_MARGIN", 4.0)
    choice = Choice(np.array(deficits, np.int64), rate, None if many is None else np.array(many, np.int64))
    counts = np.bincount(choice.draw(size, entropy()), minlength=len(deficits))

    def due(factor):
        least = min(d for d, m in zip(deficits, many or [1] * len(deficits), strict=True) if m)
        weight = np.array([m * math.exp(-min(700.0, (d - least) * float(rate) * factor)) * (m > 0)
                           for d, m in zip(deficits, many or [1] * len(deficits), strict=True)])  # fmt: skip
        return weight / weight.sum() * size

    assert counts[due(1.0) == 0].sum() == 0
    assert p_value(counts, due(1.0)) > ALARM
    assert rate == 0 or p_value(counts, due(0.7)) < ALARM


HUGE = 1 << 61
WEIGHTS = (
    [1, 2, 3, 0, 4], [5], [0, 0, 1], [10**30, 3 * 10**30, 0, 1], [HUGE, HUGE], [HUGE + 1, HUGE], list(range(100)),
)  # fmt: skip


@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda w: f"{len(w)}-{max(w):.0e}")
def test_integer_weights_have_their_law(weights):
    """One of k with integer weights of any size; nothing of weight 0 is ever drawn."""
    size = 200_000 if sum(weights) <= 1 << 62 else 20_000
    counts = np.bincount(Weighted(weights).draw(size, entropy()), minlength=len(weights))
    share = np.array([float(Fraction(w, sum(weights))) for w in weights])

    assert counts[[w == 0 for w in weights]].sum() == 0
    assert p_value(counts, share * size) > ALARM
    if len(weights) > 4:
        assert p_value(counts, np.roll(share, 1) * size) < ALARM
