"""Ledgers of many different records: every kind is accounted, and a reading that fails never silences the others."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from truth import MP

import curador as cu
from curador.errors import NotPrivate, NumericalFailure
from curador.numerics.exact import exact_sum
from curador.numerics.tilted import moments
from curador.numerics.tilted.enclosure import Enclosure
from curador.numerics.tilted.moments import FINEST, common_step, rational_gcd
from curador.numerics.tilted.plan import MOST_PAIRS
from curador.privacy import account
from curador.privacy.convert import rho_to_epsilon
from curador.privacy.laws import finite, laplace
from curador.privacy.laws.cells import dominating_law, gaussian_cells, laplace_cells, sample_poisson
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    DiscreteGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
)

# ---- one kind at a time -------------------------------------------------------------------------------------------------


def _spread(draw, low, high):
    return Fraction(draw.randint(low * 100, high * 100), 100)


KINDS = {
    "Laplace": lambda draw: LaplaceLoss(epsilon=1 / _spread(draw, 20, 999)),
    "Laplace on its grid": lambda draw: cu.Laplace(scale=_spread(draw, 20, 999), sensitivity=1).loss,
    "discrete Laplace": lambda draw: cu.DiscreteLaplace(scale=_spread(draw, 20, 999), sensitivity=1).loss,
    "discrete Laplace, far": lambda draw: cu.DiscreteLaplace(scale=_spread(draw, 90, 999), sensitivity=7).loss,
    "Gaussian": lambda draw: cu.Gaussian(sigma=_spread(draw, 20, 999), sensitivity=1).loss,
    "discrete Gaussian": lambda draw: DiscreteGaussianLoss(sigma2=_spread(draw, 400, 99_999), sensitivity=1),
    "discrete Gaussian on coarse grids": lambda draw: DiscreteGaussianLoss(sigma2=_spread(draw, 1, 8) / 2, sensitivity=1),
    "discrete Gaussian, very coarse": lambda draw: DiscreteGaussianLoss(sigma2=_spread(draw, 1, 5) / 16, sensitivity=2),
    "randomized response": lambda draw: RandomizedResponseLoss(epsilon=1 / _spread(draw, 20, 999)),
    "k-ary response": lambda draw: RandomizedResponseLoss(epsilon=1 / _spread(draw, 20, 999), categories=draw.randint(3, 9)),
    "staircase": lambda draw: cu.Staircase(epsilon=1 / _spread(draw, 20, 999), sensitivity=1).loss,
    "truncated Laplace": lambda draw: Approx(epsilon=1 / _spread(draw, 20, 999), delta=Fraction(draw.randint(1, 99), 10**11)),
    "bounded range": lambda draw: BoundedRange(epsilon=1 / _spread(draw, 20, 999)),
}


def _ledger(kind, size):
    draw = random.Random(2)
    if kind == "mixed":
        return [KINDS[draw.choice(sorted(KINDS))](draw) for _ in range(size)]
    return [KINDS[kind](draw) for _ in range(size)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "mixed"])
def test_sixty_different_records(kind):
    """The interval is finite, no wider than what its records leave open, and below what ρ alone converts into."""
    loss = cu.compose(_ledger(kind, 60))
    low, high = loss.epsilon_interval("1e-6")
    open_kind = kind in ("bounded range", "mixed")  # their lower end is a milder mechanism
    assert low > 0
    assert (0.7 if open_kind else 0.999) * high <= low <= high
    rho, delta = loss.concentrated
    assert high <= rho_to_epsilon(rho, delta=Fraction("1e-6") - delta)
    assert loss.delta_interval(high).lower <= 1.001e-6


@pytest.mark.slow
@pytest.mark.parametrize("make", [cu.DiscreteLaplace, cu.Laplace])
def test_a_hundred_noise_scales_of_five_digits_are_accounted(make):
    """Their joint lattice has a step below every float."""
    draw = random.Random(2)
    scales = [Fraction(draw.randint(100, 99_999), 100) for _ in range(100)]
    loss = cu.compose([make(scale=scale, sensitivity=1).loss for scale in scales])
    low, high = loss.epsilon_interval("1e-6")
    assert 0.179 < low <= high < 0.1795
    assert high - low < 1e-5 * high


@pytest.mark.slow
def test_the_work_is_bounded_however_many_records(monkeypatch):
    """Frequencies times records of one answer stay within their budget: a law of growth without a clock."""
    for law in (laplace, finite):
        monkeypatch.setattr(law, "in_chunks", _counted := _Counter())
        records = _ledger("Laplace" if law is laplace else "randomized response", 500)
        cu.compose(records).epsilon_interval("1e-6")
        assert 0 < _counted.pairs <= MOST_PAIRS


class _Counter:
    def __init__(self):
        self.pairs = 0

    def __call__(self, block, step, size, records):
        self.pairs += size * records
        return moments.in_chunks(block, step, size, records)


def test_the_joint_step_is_exact_or_left_alone():
    """The greatest common divisor where it is of use, None where it is too fine, and its numbers stay short."""
    assert common_step([Fraction(2, 3), Fraction(1, 2)]) == Fraction(1, 6)
    assert common_step([Fraction(7, 5)]) == Fraction(7, 5)
    assert common_step([]) is None
    assert common_step([Fraction(1), Fraction(1, FINEST)]) == Fraction(1, FINEST)
    assert common_step([Fraction(1), Fraction(1, FINEST + 1)]) is None
    primes = [p for p in range(2, 400) if all(p % d for d in range(2, p))]
    assert common_step(Fraction(1, p) for p in primes) is None
    assert rational_gcd(Fraction(0), Fraction(3, 7)) == Fraction(3, 7)


def test_exact_sums_by_halves():
    """The same rational as one by one."""
    terms = [Fraction(1, n) for n in range(1, 60)]
    for size in (0, 1, 2, 3, 58, 59):
        assert exact_sum(terms[:size]) == sum(terms[:size], Fraction(0))


# ---- one reading fails --------------------------------------------------------------------------------------------------

FAILURES = (NumericalFailure("no"), OverflowError("no"), ZeroDivisionError("no"), ValueError("no"))


def _raising(error):
    def reading(*_arguments, **_named):
        raise error

    return reading


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("broken", ["numerical", "renyi", "basic"])
def test_a_reading_that_fails_is_silent_and_the_others_answer(monkeypatch, broken, error):
    """+∞ for the broken one, 0 below if it is the numerical one, and the other two as before."""
    loss = 30 * LaplaceLoss(epsilon="0.1") + Pure(epsilon="0.2")
    before, interval, delta = loss.readings("1e-6"), loss.epsilon_interval("1e-6"), loss.delta_interval("2")
    names = {"numerical": ["_numerical"], "renyi": ["_renyi_epsilon", "_renyi_delta"], "basic": ["_basic"]}[broken]
    for name in names:
        monkeypatch.setattr(account, name, _raising(error))
    assert loss.readings("1e-6") == before | {broken: math.inf}
    least = min(value for name, value in before.items() if name != broken)
    assert loss.epsilon("1e-6") == least
    low, high = loss.epsilon_interval("1e-6")
    if broken == "numerical":
        assert (low, high) == (0.0, least)
        assert loss.delta_interval("2").lower == 0.0
        assert delta.upper <= loss.delta_interval("2").upper < 1e-3
    else:
        assert (low, high) == interval
        assert loss.delta_interval("2") == delta
    assert delta.upper <= loss.delta("2") < 1e-3
    if isinstance(error, OverflowError) and broken == "numerical":
        assert 0 < loss.tradeoff("0.1") < 0.9


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_only_if_every_reading_fails_is_the_question_refused(monkeypatch, error):
    """Gaussian noise has no basic reading: without the other two nothing is left. A pure loss keeps Σ ε."""
    for name in ("_numerical", "_renyi_epsilon", "_renyi_delta"):
        monkeypatch.setattr(account, name, _raising(error))
    for ask in ("epsilon", "epsilon_interval", "readings", "delta", "delta_interval"):
        with pytest.raises(NumericalFailure, match="moderate"):
            getattr(GaussianLoss(mu=1), ask)("0.001")
    assert (3 * Pure(epsilon=1)).epsilon("1e-6") == pytest.approx(3)
    assert (3 * Pure(epsilon=1)).delta("3") == 0.0


@pytest.mark.parametrize("broken", ["above", "below"])
def test_one_side_of_the_numerical_reading_may_fail(monkeypatch, broken):
    """A bounded range has two laws. Without the one above the upper end is +∞, without the one below the lower end is 0."""
    reading = account.enclosure(20 * BoundedRange(epsilon="0.1"))
    whole = reading.epsilon(1e-6)
    side = getattr(reading, broken)[0]
    real = Enclosure.epsilon

    def half(one, delta):
        return _raising(OverflowError("no"))() if one is side else real(one, delta)

    monkeypatch.setattr(Enclosure, "epsilon", half)
    got = reading.epsilon(1e-6)
    assert got == ((whole.lower, math.inf) if broken == "above" else (0.0, whole.upper))


def test_a_refusal_is_never_silenced(monkeypatch):
    """No rule for a record is an answer, not a failure of arithmetic."""
    monkeypatch.setattr(account, "_renyi_epsilon", _raising(NotPrivate("no rule")))
    with pytest.raises(NotPrivate):
        LaplaceLoss(epsilon=1).epsilon("1e-6")


# ---- nothing to spend ---------------------------------------------------------------------------------------------------


def test_where_delta_at_zero_suffices_epsilon_is_zero():
    """A sample of one in a thousand, whatever is done with it, has δ(0) = 0.001; no tilt has a moment there."""
    loss = GaussianLoss(mu=1000).subsample(rate="0.001")
    assert loss.delta_interval(0).upper <= 0.01
    assert loss.epsilon_interval("0.01") == (0.0, 0.0)


# ---- cells --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-3, 1.0, 100.0, 1000.0])
def test_masses_of_gaussian_cells_are_within_their_doubt(mu):
    """Each mass against 60 digits: z = μ/2 − l/μ cancels, and more so for larger μ."""
    pair = gaussian_cells(mu)
    with MP.workdps(60):
        m = MP.mpf(mu)
        tails = [MP.ncdf(m / 2 - MP.mpf(float(edge)) / m) for edge in pair.edges]
        exact = [first - second for first, second in pairwise(tails)]
        for got, mass, doubt in zip(pair.p, exact, pair.doubts(), strict=True):
            assert abs(MP.mpf(float(got)) - mass) <= doubt
        assert tails[-1] <= pair.beyond
        assert MP.ncdf(-m / 2 + MP.mpf(float(pair.edges[0])) / m) <= pair.under  # of Q, below the lowest edge


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 10)])
def test_a_reversed_pair_keeps_the_mass_outside_of_its_cells(rate):
    """What Q has below the lowest edge is what the reversed pair has above its highest one: infinite loss, above."""
    pair = gaussian_cells(0.5)
    turned = sample_poisson(pair, rate, leaves=False)
    assert turned.beyond == pair.under > 0
    assert turned.under == pair.beyond
    assert turned.reversed().beyond == pair.beyond
    law, infinite = dominating_law(turned, 1)
    assert infinite == pair.under
    assert float(law.masses.sum()) + infinite >= 1 - 1e-12
    bounded = sample_poisson(laplace_cells(1.0), rate, leaves=False)
    assert bounded.beyond == bounded.under == 0.0
    assert np.all(bounded.p >= 0)


# ---- moment functions beside their textbook forms ------------------------------------------------------------------------


def _laplace_moment(epsilon, scale, s):
    """Atoms and body, as the law's module writes them; no scale: continuous noise."""
    turn = MP.exp(-(2 * s + 1) * epsilon)
    if scale is None:
        return MP.exp(s * epsilon) * ((1 + turn) / 2 + (1 - turn) / (2 * (2 * s + 1)))
    rate, w = MP.exp(-1 / scale), MP.exp(-(2 * s + 1) / scale)
    body = (w - turn) * (1 - rate) / ((1 + rate) * (1 - w))
    return MP.exp(s * epsilon) * ((1 + turn) / (1 + rate) + body)


def _response_moment(epsilon, categories, s):
    weights = MP.exp(epsilon * (s + 1)) + categories - 2 + MP.exp(-s * epsilon)
    return weights / (MP.exp(epsilon) + categories - 1)


def _within_its_bound(law, moment, theta, step, size):
    found = law.transform(theta, step, size)
    for k in range(size):
        exact = moment(MP.mpf(theta) + 1j * MP.mpf(step) * k) / moment(MP.mpf(theta))
        value, bound = MP.exp(MP.mpc(complex(found.value[k]))), MP.exp(MP.mpf(float(found.bound[k])))
        assert abs(value - exact) <= bound - abs(value) + 8 * 2.0**-53 * bound, k


@pytest.mark.parametrize("theta", [0.01, 3.5, 80.0])
@pytest.mark.parametrize("epsilon", [0.001, 0.2, 3.0])
@pytest.mark.parametrize("grid", [None, 1e-1, 1e-6, 1e-8, 3e-11, 1e-12])
def test_the_moments_of_laplace_noise_are_within_their_doubt(theta, epsilon, grid):
    """On coarse grids, on fine ones where the continuous form serves, and around the change from one to the other."""
    shift = 0 if grid is None else max(1, round(epsilon / grid))
    scale = None if grid is None else MP.mpf(shift) / MP.mpf(epsilon)
    law = laplace.LaplaceLaw(
        np.array([epsilon]), np.array([0.0 if scale is None else float(1 / scale)]), np.zeros(1), np.ones(1)
    )
    _within_its_bound(law, lambda s: _laplace_moment(MP.mpf(epsilon), scale, s), theta, 0.64, 46)


@pytest.mark.parametrize("theta", [0.01, 3.5, 80.0])
@pytest.mark.parametrize("categories", [2, 3, 40])
def test_the_moments_of_randomized_response_are_within_their_doubt(theta, categories):
    """Binary and k-ary: three exponentials in real arithmetic."""
    law = finite.ThreePointLaw(np.array([0.3]), np.array([float(categories)]), np.ones(1), (Fraction(3, 10),))
    _within_its_bound(law, lambda s: _response_moment(MP.mpf(0.3), categories, s), theta, 0.64, 46)
