from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.errors import NumericalFailure
from curador.numerics import rounding
from curador.numerics.logspace import expm1_minus, log1mexp, log_chernoff, sinh_minus
from curador.numerics.roots import bisect
from curador.numerics.rounding import LIBM_ULPS, UNIT, down, float_down, float_up, log_of, log_up, near_float, up, ups

LARGEST = math.nextafter(math.inf, 0)
fractions = st.builds(
    lambda top, bottom, power: Fraction(top, bottom) * Fraction(2) ** power,
    st.integers(-(10**40), 10**40),
    st.integers(1, 10**40),
    st.integers(-1100, 1000),
)


@settings(max_examples=300, deadline=None)
@given(fractions)
def test_floats_next_to_a_rational(exact):
    """float_up and float_down are the nearest floats on their sides."""
    above, below = float_up(exact), float_down(exact)
    assert below == -math.inf or Fraction(below) <= exact
    assert above == math.inf or exact <= Fraction(above)
    assert above == below or above == math.nextafter(below, math.inf)
    assert below < math.inf
    assert above > -math.inf


@pytest.mark.parametrize(
    ("exact", "below", "above"),
    [
        (Fraction(0), 0.0, 0.0),
        (Fraction(1), 1.0, 1.0),
        (Fraction(10) ** 400, LARGEST, math.inf),
        (-(Fraction(10) ** 400), -math.inf, -LARGEST),
        (Fraction(1, 10**400), 0.0, 5e-324),
        (-Fraction(1, 10**400), -5e-324, 0.0),
        (Fraction(LARGEST), LARGEST, LARGEST),
        (Fraction(LARGEST) + 1, LARGEST, math.inf),
        (Fraction(2) ** 1024, LARGEST, math.inf),
        (-(Fraction(2) ** 1024), -math.inf, -LARGEST),
    ],
)
def test_floats_at_the_ends(exact, below, above):
    """Beyond the largest float up is infinite and down is the largest; below the smallest, the other way round."""
    assert float_up(exact) == above
    assert float_down(exact) == below or (below == -math.inf and float_down(exact) == -math.inf)


def test_doubt_is_infinite():
    """NaN is rounded to +∞ upwards and to −∞ downwards, never to 0."""
    assert up(math.nan) == math.inf
    assert down(math.nan) == -math.inf
    assert up(math.inf) == math.inf
    got = ups(np.array([1.0, math.nan, math.inf, -math.inf]))
    assert got[0] > 1.0
    assert got[1] == got[2] == got[3] == math.inf


@pytest.mark.parametrize("of", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("x", [0.0, 1.0, -1e300, math.inf, -math.inf, math.nan])
def test_nothing_is_known_beside_an_infinite_intermediate_result(x, of):
    """A number computed through an infinity may be anything: its bounds are infinite, as an array's are."""
    for ulps in (0.0, 1.0, 8.0):
        assert up(x, ulps, of) == math.inf
        assert down(x, ulps, of) == -math.inf
        assert ups(np.array([x]), ulps, np.array([of]))[0] == math.inf


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e300, 1e300), st.integers(0, 100))
def test_up_moves_at_least_as_many_ulps(x, ulps):
    """`up` is above by the stated number of ulps, and not by much more."""
    assert Fraction(up(x, ulps)) >= Fraction(x) + ulps * Fraction(math.ulp(x))
    assert Fraction(up(x, ulps)) <= Fraction(x) + (ulps + 3) * Fraction(math.ulp(x)) * 2
    assert down(x, ulps) == -up(-x, ulps)
    assert ups(np.array([x]), ulps)[0] == pytest.approx(up(x, ulps), rel=4 * UNIT)


@settings(max_examples=100, deadline=None)
@given(st.floats(1, 1e6), st.floats(1, 1e6))
def test_a_difference_is_padded_by_its_terms(a, b):
    """Errors are counted in ulps of the largest term: a difference that cancels is still bounded."""
    exact = Fraction(math.sqrt(a)) - Fraction(math.sqrt(b))
    assert up(math.sqrt(a) - math.sqrt(b), 2, of=max(a, b)) >= exact


FUNCTIONS = {
    "exp": (np.exp, mpmath.exp, (-700, 700)),
    "expm1": (np.expm1, mpmath.expm1, (-30, 700)),
    "log": (np.log, mpmath.log, (1e-300, 1e300)),
    "log1p": (np.log1p, mpmath.log1p, (-0.999, 1e10)),
    "sin": (np.sin, mpmath.sin, (-2000, 2000)),
    "cos": (np.cos, mpmath.cos, (-2000, 2000)),
    "sinh": (np.sinh, mpmath.sinh, (-700, 700)),
    "cosh": (np.cosh, mpmath.cosh, (-700, 700)),
    "tanh": (np.tanh, mpmath.tanh, (-20, 20)),
    "math.exp": (np.vectorize(math.exp), mpmath.exp, (-700, 700)),
    "math.log1p": (np.vectorize(math.log1p), mpmath.log1p, (-0.999, 1e10)),
    "math.expm1": (np.vectorize(math.expm1), mpmath.expm1, (-30, 700)),
    "math.tanh": (np.vectorize(math.tanh), mpmath.tanh, (-20, 20)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions_keep_their_ulps(name):
    """Each function that bounds rest on is within LIBM_ULPS of 40-digit values over the range in use."""
    function, truth, (low, high) = FUNCTIONS[name]
    random = np.random.default_rng(sum(name.encode()))
    points = np.concatenate(
        [random.uniform(low, high, 400), random.uniform(max(low, -1), min(high, 1), 300), 10.0 ** random.uniform(-12, 0, 100)]
    )
    points = points[(points >= low) & (points <= high)]
    with mpmath.workdps(40):
        for x, got in zip(points.tolist(), function(points).tolist(), strict=True):
            exact = truth(mpmath.mpf(x))
            assert abs(mpmath.mpf(got) - exact) <= LIBM_ULPS * max(math.ulp(got), 5e-324), x


@settings(max_examples=150, deadline=None)
@given(st.floats(-40, 300))
def test_exponential_without_its_line(x):
    """eˣ − 1 − x keeps its digits through the cancellation at 0."""
    with mpmath.workdps(700):
        exact = mpmath.expm1(mpmath.mpf(x)) - mpmath.mpf(x)
    got = float(expm1_minus(np.array([x]))[0])
    assert got >= 0
    assert abs(got - exact) <= 8 * math.ulp(float(exact))


@settings(max_examples=150, deadline=None)
@given(st.floats(0, 300))
def test_hyperbolic_sine_without_its_line(x):
    """sinh x − x keeps its digits."""
    with mpmath.workdps(700):
        exact = mpmath.sinh(mpmath.mpf(x)) - mpmath.mpf(x)
    assert abs(float(sinh_minus(np.array([x]))[0]) - exact) <= 8 * math.ulp(float(exact))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.floats(1e-300, 700))
def test_log_of_one_minus_exponential(x):
    """log(1 − e⁻ˣ) keeps its digits at both ends; at 0 it is −∞."""
    with mpmath.workdps(400):
        exact = mpmath.log(-mpmath.expm1(-mpmath.mpf(x)))
    assert abs(log1mexp(x) - exact) <= 8 * math.ulp(float(exact)) + 5e-324
    assert log1mexp(0.0) == -math.inf
    assert log1mexp(-1.0) == -math.inf


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(-5, 50))
def test_chernoff_constant(theta, y):
    """(1 − e⁻ʸ)₊ ≤ c(θ) e^(θy), with equality at y = log(1 + 1/θ)."""
    log_c = float(log_chernoff(np.array([theta]))[0])
    gain = -math.expm1(-y) if y > 0 else 0.0
    if gain > 0:
        assert math.log(gain) <= log_c + theta * y + 1e-12 * (1 + abs(log_c) + theta * abs(y))
    best = math.log1p(1 / theta)
    assert log_c + theta * best == pytest.approx(math.log(-math.expm1(-best)), abs=1e-11)


def test_bisection_says_which_side_it_returns():
    """The first point fails the predicate and the second holds it, next to one another."""
    fails, holds = bisect(lambda x: x * x >= 2, fails_at=0.0, holds_at=2.0)
    assert fails * fails < 2 <= holds * holds
    assert holds - fails <= 1e-14
    fails, holds = bisect(lambda x: x <= 1, fails_at=5.0, holds_at=0.0)
    assert holds <= 1 < fails


def test_arrays_move_as_numbers_do():
    """`ups` is `up`, number by number: by default one ulp of the number itself, else ulps of what is given."""
    given = np.array([0.0, 1.0, -3.5, 1e300, 5e-324, math.inf, math.nan])
    larger = np.array([1.0, 64.0, 1e6, 1e307, 1.0, 1.0, 1.0])

    assert ups(given).tolist() == [up(one) for one in given.tolist()]
    assert ups(given, 3.0, larger).tolist() == [
        up(one, 3.0, of) for one, of in zip(given.tolist(), larger.tolist(), strict=True)
    ]


def test_down_is_up_from_the_other_side():
    """By default one ulp of the number itself, else as many ulps of what is given: no fewer, and one step more."""
    assert down(3.5) == math.nextafter(3.5 - math.ulp(3.5), 0.0)
    assert down(3.5, 5.0) == math.nextafter(3.5 - 5 * math.ulp(3.5), 0.0)
    assert down(3.5, 5.0, of=1e6) == math.nextafter(3.5 - 5 * math.ulp(1e6), 0.0)
    assert down(3.5, of=1e6) == math.nextafter(3.5 - math.ulp(1e6), 0.0)


RATIOS = [
    *(1 + sign * Fraction(1, 2**power) for power in (2, 10, 53, 80, 1000) for sign in (1, -1)),
    *(Fraction(top, 10) for top in (1, 4, 5, 6, 9, 11, 14, 19, 20, 21, 29, 30, 31, 70)),
    *(Fraction(10) ** power for power in (-400, -300, -20, 20, 300, 400)),
    Fraction(10**30 + 1, 3 * 10**30),
    Fraction(3 * 10**30, 10**30 + 1),
]


@pytest.mark.parametrize(
    "ratio", RATIOS, ids=lambda ratio: f"{float(mpmath.log(ratio.numerator) - mpmath.log(ratio.denominator)):.3g}"
)
def test_a_logarithm_from_above(ratio):
    """Above the truth, by a few ulps: of itself near 1, where the logarithms would cancel, else of the larger logarithm."""
    with mpmath.workdps(400):
        top, bottom = mpmath.log(ratio.numerator), mpmath.log(ratio.denominator)
        truth = top - bottom  # 99 digits of it are left for the ratio nearest to 1
        near = Fraction(1, 2) < ratio < 2
        scale = abs(truth) if near else max(top, bottom)
        assert truth < log_up(ratio) <= truth + (2 * LIBM_ULPS + 4) * math.ulp(float(scale))


class WorstLibrary:
    """The module `math`, its logarithms as wrong as `ulps` allow: down for what is divided, up for what divides."""

    def __init__(self, ratio, ulps):
        self.ratio, self.ulps = ratio, ulps

    def log(self, number):
        return self.off(mpmath.log(number), down=number == self.ratio.numerator)

    def log1p(self, number):
        return self.off(mpmath.log1p(mpmath.mpf(number)), down=True)

    def off(self, truth, *, down):
        """Return the float furthest from the truth among those within the ulps."""
        ulp = mpmath.mpf(math.ulp(float(truth)))
        steps = mpmath.ceil((truth - self.ulps * ulp) / ulp) if down else mpmath.floor((truth + self.ulps * ulp) / ulp)
        return float(steps * ulp)

    def __getattr__(self, name):
        return getattr(math, name)


@pytest.mark.parametrize("parts", [(3, 1), (1, 3), (5, 4), (4, 5), (3 * 10**20, 10**20), (10**20, 3 * 10**20), (10**20, 7)])
def test_a_logarithm_of_a_library_that_is_as_wrong_as_it_may_be(parts, monkeypatch):
    """Each logarithm is wrong by LIBM_ULPS, one down and one up, and the bound still holds; at four times that it breaks."""
    with mpmath.workdps(60):
        for step in range(0, 60, 3):
            ratio = Fraction(parts[0] * 10**9 + step, parts[1] * 10**9 + 1)
            truth = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
            monkeypatch.setattr(rounding, "math", WorstLibrary(ratio, LIBM_ULPS))
            assert log_up(ratio) > truth
            monkeypatch.setattr(rounding, "math", WorstLibrary(ratio, 4 * LIBM_ULPS))
            assert log_up(ratio) < truth


@settings(max_examples=150, deadline=None)
@given(fractions.filter(lambda value: value > 0))
def test_logarithms_lie_within_their_doubt(value):
    """However large or small the rational is, and close to 1."""
    for ratio in (value, 1 + value / (1 + value) / 10**20, value**5):
        near, doubt = log_of(ratio)
        with mpmath.workdps(700):
            exact = mpmath.log(mpmath.mpf(ratio.numerator) / mpmath.mpf(ratio.denominator))
        assert abs(near - exact) <= doubt
        assert doubt <= 1e-11 * (1 + abs(near))


@pytest.mark.parametrize(
    ("ratio", "near", "units"),
    [
        (Fraction(3, 4), math.log1p(-0.25), -12 * math.log1p(-0.25)),
        (Fraction(1, 2), math.log(0.5), 2 - 8 * math.log(0.5)),
        (Fraction(2), math.log(2), 2 + 8 * math.log(2)),
        (Fraction(10) ** 299, math.log(1e299), 2 + 8 * math.log(1e299)),
        (Fraction(1, 10**250), math.log(1e-250), 2 - 8 * math.log(1e-250)),
        (Fraction(10) ** 300, math.log(10**300), 16 * (1 + math.log(10**300))),
        (Fraction(1, 10**300), -math.log(10**300), 16 * (1 + math.log(10**300))),
        (Fraction(3**1000, 7), math.log(3**1000) - math.log(7), 16 * (1 + math.log(3**1000) + math.log(7))),
    ],
)
def test_doubts_of_logarithms(ratio, near, units):
    """Each of the three ways has its own, and is taken where it is the best one."""
    assert log_of(ratio) == (near, UNIT * units)


def test_parameters_become_floats_up_to_a_limit():
    """The float above; beyond 1e300 nothing is certified."""
    assert near_float(Fraction(1, 10)) == float_up(Fraction(1, 10))
    assert near_float(Fraction(10**300)) == float_up(10**300)
    with pytest.raises(NumericalFailure, match=r"^no bound is certified for parameters beyond 1e300$"):
        near_float(Fraction(10**300 + 1))


@pytest.mark.parametrize("power", [300, 308, 309, 322, 323, 324, 400])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_logarithm_next_to_one_has_an_absolute_error(power, sign):
    """Where logarithms are subnormal, or 0, a relative bound would claim too much; that of 1 is exact."""
    ratio = 1 + sign * Fraction(7, 3 * 10**power)
    near, doubt = log_of(ratio)
    with mpmath.workdps(900):
        exact = mpmath.log(mpmath.mpf(ratio.numerator) / mpmath.mpf(ratio.denominator))
        assert abs(exact - mpmath.mpf(near)) <= mpmath.mpf(doubt)
    assert log_of(Fraction(1)) == (0.0, 0.0)
