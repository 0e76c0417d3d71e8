"""Releases of additive mechanisms and randomized response: right answers, right types, clear refusals."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest

import curador as cu
from curador.mechanisms import additive
from curador.mechanisms.grid import array_steps, to_steps, vector_squares, vector_steps
from curador.mechanisms.seam import Diverged, recording, replaying
from curador.randomness.injected import Seeded

REAL = {
    "laplace": cu.Laplace(scale=1, sensitivity=1),
    "gaussian": cu.Gaussian(sigma=1, sensitivity=1),
    "staircase": cu.Staircase(epsilon=1, sensitivity=1),
    "truncated": cu.TruncatedLaplace.calibrate(epsilon=1, delta="1e-6", sensitivity=1),
}
WHOLE = {
    "discrete laplace": cu.DiscreteLaplace(scale=1, sensitivity=1),
    "discrete gaussian": cu.DiscreteGaussian(sigma=1, sensitivity=1),
}
EVERY = pytest.mark.parametrize("mechanism", [*REAL.values(), *WHOLE.values()], ids=[*REAL, *WHOLE])
EACH_REAL = pytest.mark.parametrize("mechanism", REAL.values(), ids=REAL)
EACH_WHOLE = pytest.mark.parametrize("mechanism", WHOLE.values(), ids=WHOLE)

# noise of scale 1 beyond 60 has a probability below e^-59 < 1e-25
FAR = 60


@EVERY
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.nan, np.float32("inf"), decimal.Decimal("NaN")])
def test_what_is_not_finite_is_refused(mechanism, value):
    """NaN and infinities get one sentence, and nothing is drawn."""
    with pytest.raises(cu.InvalidParameter, match="must be"), recording() as calls:
        mechanism.release(value)
    assert calls == []


@EVERY
@pytest.mark.parametrize("value", [True, np.True_, "7", None, b"7", 1j, [True, False], ["a"], [], [[1, 2], [3]], {"a": 1}])
def test_what_is_no_number_is_refused(mechanism, value):
    """Booleans, words, nothing, complex numbers and ragged or empty arrays are refused."""
    with pytest.raises(cu.InvalidParameter, match="must be"):
        mechanism.release(value)


@pytest.mark.parametrize("value", [1234567.5, np.array([1234567.5, 1.0])])
def test_a_refusal_never_repeats_the_value(value):
    """A value is what the noise protects: no error tells it."""
    with pytest.raises(cu.InvalidParameter) as refusal:
        cu.DiscreteLaplace(scale=1, sensitivity=1).release(value)
    assert "1234567" not in str(refusal.value)


@EACH_REAL
@pytest.mark.parametrize("value", [42, 42.0, Fraction(42), decimal.Decimal(42), np.int64(42), np.float32(42), np.uint8(42)])
def test_every_kind_of_number_is_taken(mechanism, value):
    """Python's and NumPy's numbers give a float near them."""
    released = mechanism.release(value)
    assert type(released) is float
    assert abs(released - 42) < FAR


@EACH_REAL
def test_released_floats_are_on_the_grid(mechanism):
    """Every released number is a whole multiple of the public grid, whatever the value's low bits are."""
    values = mechanism.release_many(0.1 + 1e-13, 2000)
    scaled = [Fraction(*float(one).as_integer_ratio()) / mechanism.grid for one in values]
    assert all(one.denominator == 1 for one in scaled)
    assert {int(one) % 4 for one in scaled} == {0, 1, 2, 3}  # all of it, not a sublattice: fails with odds 2000·(3/4)^2000


@EACH_WHOLE
@pytest.mark.parametrize("value", [0, 2**63, -(2**63) - 1, 10**40, -(10**40)])
def test_integers_of_any_size(mechanism, value):
    """Python integers never overflow."""
    released = mechanism.release(value)
    assert type(released) is int
    assert abs(released - value) < FAR
    assert all(abs(int(one) - value) < FAR for one in mechanism.release_many(value, 50))


def test_machine_integers_saturate():
    """64-bit arrays stay 64-bit: sums beyond their ends stop there, with the right sign."""
    mechanism = cu.DiscreteLaplace(scale=1000, sensitivity=1)
    ends = np.array([2**63 - 1, -(2**63)])
    released = mechanism.release_many(ends, 500)
    assert released.dtype == np.int64
    assert (released[:, 0] > 0).all()
    assert (released[:, 1] < 0).all()
    assert (released[:, 0] == 2**63 - 1).any()
    assert (released[:, 1] == -(2**63)).any()


def test_unsigned_and_object_arrays_stay_exact():
    """What does not fit 64 signed bits is answered in Python integers."""
    mechanism = cu.DiscreteLaplace(scale=1, sensitivity=1)
    unsigned = mechanism.release(np.array([2**64 - 1], np.uint64))
    assert abs(unsigned[0] - (2**64 - 1)) < FAR
    big = mechanism.release([10**30, 1])
    assert abs(big[0] - 10**30) < FAR


@pytest.mark.parametrize("make", [cu.Laplace, cu.Gaussian])
def test_large_values_keep_their_size(make):
    """Values far beyond the grid's 64 bits are right to the last digit of a float, as scalars and in arrays."""
    name = "scale" if make is cu.Laplace else "sigma"
    mechanism = make(**{name: 1}, sensitivity=1, dimension=4)
    values = np.array([1e9, -1e15, 1e100, 3.0])
    released = mechanism.release(values)
    assert released.shape == (4,)
    assert np.abs(released - values)[[0, 3]].max() < FAR
    assert abs(released[1] - values[1]) < FAR
    assert released[2] == 1e100
    assert make(**{name: 1}, sensitivity=1).release(1e300) == 1e300


@pytest.mark.parametrize("value", [2**2000, Fraction(10) ** 400, 1.7976931348623157e308])
def test_beyond_the_floats_is_the_largest_float(value):
    """A sum beyond the floats becomes the largest one, as a scalar and in a list: never an error after drawing."""
    mechanism = cu.Laplace(scale=1, sensitivity=1)
    largest = math.nextafter(math.inf, 0)
    assert mechanism.release(value) == largest
    assert mechanism.release([value])[0] == largest
    assert mechanism.release(-value) == -largest
    assert cu.Laplace(scale=1, sensitivity=1).release(np.array([1e300]))[0] == 1e300


def test_the_number_of_values_must_be_declared():
    """Rounding a vector costs a step for each coordinate, so a vector of another length is refused."""
    mechanism = cu.Laplace(scale=1, sensitivity=1, dimension=3)
    assert mechanism.release(np.zeros(3)).shape == (3,)
    assert mechanism.release(np.zeros((3, 1))).shape == (3, 1)
    assert mechanism.release_many(np.zeros(3), 5).shape == (5, 3)
    with pytest.raises(cu.InvalidParameter, match="dimension=2"):
        mechanism.release([1.0, 2.0])
    with pytest.raises(cu.InvalidParameter, match="dimension=1"):
        mechanism.release(1.0)


class TestTypesDecide:
    """What comes back, and whether anything does, follows from types, never from a value."""

    @pytest.mark.parametrize("small", [2**53, 2**60 + 128, 2**63 - 1])
    @pytest.mark.parametrize("other", [0.5, -1, Fraction(1, 3), np.float64(2), np.int64(7), np.uint64(3)])
    @pytest.mark.parametrize("make", [cu.Laplace, cu.Gaussian])
    def test_mixed_lists_keep_their_integers(self, make, small, other):
        """Integers beside floats are never rounded to floats first: neighbours stay as near as they were."""
        mechanism = make(**{"scale" if make is cu.Laplace else "sigma": 1}, sensitivity=1, dimension=2)
        with recording() as calls:
            mechanism.release([small, other])
            mechanism.release([small + 1, other])
        assert mechanism.within(calls[0].value, calls[1].value)

    def test_numpy_would_have_rounded_them(self):
        """The test above can fail: left to NumPy, the two lists of neighbours are 256 apart."""
        one, two = (np.asarray([2**60 + 128 + more, 0.5])[0] for more in (0, 1))
        assert two - one == 256

    @pytest.mark.parametrize("value", [np.longdouble(1), np.array([1, 2], np.longdouble)])
    @pytest.mark.skipif(np.dtype(np.longdouble).itemsize <= 8, reason="long doubles are doubles here")
    def test_wide_floats_are_refused(self, value):
        """A wider float would be rounded before it reaches the grid."""
        with pytest.raises(cu.InvalidParameter):
            cu.Laplace(scale=1, sensitivity=1, dimension=np.size(value)).release(value)

    @pytest.mark.parametrize("value", [2**62 - 1, 2**62, 2**63 - 100, -(2**62), 2**63 - 1])
    @EACH_WHOLE
    def test_the_result_s_type_follows_from_the_result(self, mechanism, value):
        """Many releases of one integer are 64-bit ones if all of them fit, wherever the value lies."""
        released = mechanism.release_many(value, 20)
        fits = all(-(2**63) <= int(one) < 2**63 for one in released)
        assert released.dtype == (np.int64 if fits else object)
        assert mechanism.release([value]).shape == (1,)

    @pytest.mark.parametrize("value", [5, 2**62 - 1, 2**62, 2**63 - 1, -(2**63)])
    def test_an_array_without_dimensions_is_a_number(self, value):
        """np.array(5) is released like 5."""
        assert type(cu.DiscreteLaplace(scale=1, sensitivity=1).release(np.array(value))) is int
        assert type(cu.Laplace(scale=1, sensitivity=1).release(np.array(float(value)))) is float

    @pytest.mark.parametrize("value", [5.0, 5.5, Fraction(5), decimal.Decimal(5), [5.0], np.array([Fraction(5)], object)])
    @EACH_WHOLE
    def test_integers_are_integers_by_type(self, mechanism, value):
        """A float or a fraction is refused by a mechanism for integers, whole or not."""
        with pytest.raises(cu.InvalidParameter):
            mechanism.release(value)

    @pytest.mark.parametrize("text", ["0", "1E-4999", "1E-6000", "0E-6000", "-1E-9000", "0E+9000"])
    def test_tiny_decimals_are_numbers(self, text):
        """However small a decimal is, it is released."""
        assert abs(cu.Laplace(scale=1, sensitivity=1).release(decimal.Decimal(text))) < FAR

    @pytest.mark.parametrize(
        "value",
        [np.timedelta64(5, "s"), np.timedelta64("NaT"), np.array(["x" * 37]), np.ma.array([1.0], mask=[True]), [[1], 2]],
        ids=["duration", "no duration", "text", "masked", "ragged"],
    )
    def test_other_types_are_refused_without_details(self, value):
        """Durations, text, masks and ragged lists: one sentence that says nothing of their contents."""
        with pytest.raises(cu.InvalidParameter) as refusal:
            cu.Laplace(scale=1, sensitivity=1).release(value)
        assert "37" not in str(refusal.value)

    def test_a_table_is_refused(self):
        """Columns of different types would be rounded to a common one."""

        class Table:
            columns = ("a", "b")

            def __array__(self, dtype=None, copy=None):
                return np.zeros(2)

        with pytest.raises(cu.InvalidParameter, match="a table"):
            cu.Laplace(scale=1, sensitivity=1, dimension=2).release(Table())

    def test_the_caller_s_error_state_does_not_reach_the_data(self):
        """np.seterr(all="raise") does not turn a tiny value into an error."""
        with np.errstate(all="raise"):
            mechanism = cu.Laplace(scale=10**15, sensitivity=10**15)
            assert np.isfinite(mechanism.release(np.array([5e-324])))
            assert np.isfinite(mechanism.release_many(5e-324, 3)).all()


class TestRounding:
    """What says that it rounds up does."""

    @pytest.mark.parametrize(
        "gamma", ["0.5000001", "1/2", Fraction(1, 2) + Fraction(1, 10**17), "0.75", Fraction(10**400 - 1, 10**400)]
    )
    def test_epsilon_of_gamma(self, gamma):
        """ε of randomized response by γ is at least log(γ/(1 − γ)), and close."""
        mpmath = pytest.importorskip("mpmath")
        with mpmath.workdps(500):
            exact = Fraction(gamma)
            truth = mpmath.log(mpmath.mpf(exact.numerator) / (exact.denominator - exact.numerator))
            got = cu.RandomizedResponse(gamma=gamma).epsilon
            got = mpmath.mpf(got.numerator) / got.denominator
            assert got >= truth
            assert got <= truth * (1 + mpmath.mpf(10) ** -13) + mpmath.mpf(10) ** -300

    @pytest.mark.parametrize("epsilon", ["1e-15", "1e-12", "1e-9", "0.1", "3"])
    @pytest.mark.parametrize("categories", [2, 10, 10**6])
    def test_error_bars_of_responses(self, epsilon, categories):
        """Interval and variance are not below the truth, however little is told."""
        mpmath = pytest.importorskip("mpmath")
        mechanism = cu.RandomizedResponse(epsilon=epsilon, categories=categories)
        with mpmath.workdps(60):
            grown = mpmath.exp(mpmath.mpf(epsilon))
            spread = mpmath.expm1(mpmath.mpf(epsilon)) / (grown + categories - 1)
            half = mpmath.sqrt(mpmath.log(40) / 2) / spread
            assert half <= mechanism.interval("0.95").upper <= half * (1 + mpmath.mpf("1e-10"))
            gamma = grown / (grown + categories - 1)
            other = 1 / (grown + categories - 1)
            variance = max(gamma * (1 - gamma), other * (1 - other)) / spread**2
            assert variance * (1 - mpmath.mpf("1e-13")) <= mechanism.variance <= variance * (1 + mpmath.mpf("1e-10"))

    @pytest.mark.parametrize("scale", ["1e-3", "0.01", "0.1", "0.37", "0.9", "3", "1000"])
    def test_discrete_variance(self, scale):
        """The variance of discrete noise is not below the sum that defines it."""
        mpmath = pytest.importorskip("mpmath")
        with mpmath.workdps(700):
            t = mpmath.mpf(scale)
            r = mpmath.exp(-1 / t)
            truth = 2 * r / (1 - r) ** 2
            got = cu.DiscreteLaplace(scale=scale, sensitivity=1).variance
            assert truth <= got <= max(truth * (1 + mpmath.mpf("1e-11")), mpmath.mpf("5e-324"))
            if t <= 3:
                weights = [mpmath.exp(-mpmath.mpf(k * k) / (2 * t * t)) for k in range(200)]
                truth = 2 * sum(k * k * w for k, w in enumerate(weights)) / (2 * sum(weights) - 1)
                got = cu.DiscreteGaussian(sigma=scale, sensitivity=1).variance
                assert truth <= got * (1 + mpmath.mpf("1e-16"))
                assert got <= max(truth * (1 + mpmath.mpf("1e-8")), mpmath.mpf("5e-324"))

    @pytest.mark.parametrize("scale", ["1e-150", "1", "1e150"])
    def test_real_variance(self, scale):
        """The variance of Laplace noise is 2 scale² rounded up, and infinite where no float holds it."""
        got = Fraction(cu.Laplace(scale=scale, sensitivity=1).variance)
        assert 2 * Fraction(scale) ** 2 <= got <= 2 * Fraction(scale) ** 2 * (1 + Fraction(1, 10**15))
        assert cu.Laplace(scale="1e160", sensitivity=1).variance == math.inf

    def test_intervals_of_wide_noise(self):
        """Both ends are rounded outward."""
        interval = cu.DiscreteLaplace(scale=10**20 + 7, sensitivity=1).interval("0.95")
        assert interval.lower == -interval.upper

    @pytest.mark.parametrize("confidence", ["0.01", "1e-6", "1e-12", "0.1", "0.95"])
    @pytest.mark.parametrize("make", [cu.Laplace, cu.Gaussian])
    def test_accuracy_is_kept(self, make, confidence):
        """The mechanism's own interval is within the accuracy that it was calibrated to."""
        mechanism = make.calibrate(accuracy=10, confidence=confidence, sensitivity=1)
        assert mechanism.interval(confidence).upper <= 10

    @pytest.mark.parametrize("dimension", [1, 1000])
    def test_rho_is_reached_in_few_steps(self, dimension):
        """Calibration to a tiny ρ ends, and reaches it closely."""
        mechanism = cu.Gaussian.calibrate(rho="1e-12", sensitivity="1/3", count=7, dimension=dimension)
        spent = 7 * mechanism.loss.rho
        assert Fraction("0.99e-12") < spent <= Fraction("1e-12")

    @pytest.mark.parametrize("sensitivity", ["1e170", "1e-170"])
    @pytest.mark.parametrize("make", [cu.Laplace, cu.Gaussian, cu.DiscreteLaplace, cu.DiscreteGaussian])
    def test_absurd_sensitivities_are_refused(self, make, sensitivity):
        """Beyond 1e±100 nothing is promised, and it is said at once."""
        with pytest.raises(cu.InvalidParameter, match="sensitivity"):
            make.calibrate(rho=1, sensitivity=sensitivity)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "many"])
def test_size_must_be_whole(size):
    """release_many wants a whole number of releases."""
    with pytest.raises(cu.InvalidParameter):
        cu.Laplace(scale=1, sensitivity=1).release_many(0, size)


@pytest.mark.parametrize("epsilon", ["1e-12", "1e6"])
@pytest.mark.parametrize("make", [cu.Laplace, cu.DiscreteLaplace])
def test_extreme_epsilon(make, epsilon):
    """The smallest and largest ε are met exactly, and released."""
    mechanism = make.calibrate(epsilon=epsilon, sensitivity=1)
    assert mechanism.loss.pure_epsilon == Fraction(epsilon)
    released = mechanism.release(10)
    assert abs(released - 10) <= 60 / float(epsilon) + 1
    assert len(mechanism.release_many(10, 7)) == 7


def test_wider_than_64_bits():
    """Noise beyond 64 bits is drawn in Python's integers."""
    mechanism = cu.DiscreteLaplace(scale=10**25, sensitivity=1)
    drawn = mechanism.release_many(0, 200)
    assert drawn.dtype == object
    assert max(abs(one) for one in drawn) > 2**64  # fails with odds (1 − e^(−2e-6))^200
    assert isinstance(mechanism.release(5), int)
    smooth = cu.Gaussian(sigma=10**25, sensitivity="1e-5")
    assert smooth.release_many(0.0, 3).dtype == np.float64


def test_sensitivity_zero_still_adds_noise():
    """Nothing to hide: no loss, and noise of the scale that was asked for."""
    mechanism = cu.Laplace(scale=5, sensitivity=0)
    assert mechanism.loss.pure_epsilon == 0
    assert mechanism.release(3) != mechanism.release(3)  # equal with odds 1e-13


@pytest.mark.parametrize("dimension", [1, 2, 7, 1000])
def test_rounding_a_vector_is_charged(dimension):
    """No rounding of two vectors within the sensitivity moves them further than the steps that are charged."""
    rng = np.random.default_rng(7)
    mechanism = cu.Laplace(scale=1, sensitivity=1, dimension=dimension)
    for _ in range(200):
        base = rng.uniform(-5, 5, dimension)
        move = rng.uniform(-1, 1, dimension) * (rng.random(dimension) < 3 / dimension)
        total = np.abs(move).sum()
        move /= max(total, 1.0) * (1 + 1e-9)
        one, other = (array_steps(x, -40) for x in (base, base + move))
        assert mechanism.within(one, other)
        assert np.abs(one - other).sum() <= vector_steps(Fraction(1), -40, dimension)
        length = np.sqrt((move**2).sum())
        squared = Fraction(float(length)) ** 2
        assert sum(int(d) ** 2 for d in one - other) <= vector_squares(squared * (1 + Fraction(1, 10**9)), -40, dimension)


def test_the_charge_of_a_vector_is_needed():
    """Rounding can move a vector by more than the scalar's charge: without the dimension the claim would be false."""
    step = Fraction(1, 2**40)
    one = [Fraction(1, 2) * step - Fraction(1, 2**60)] * 4
    other = [Fraction(1, 2) * step] * 4
    moved = sum(to_steps(b, -40) - to_steps(a, -40) for a, b in zip(one, other, strict=True))
    assert sum(b - a for a, b in zip(one, other, strict=True)) < step
    assert moved == 4 == vector_steps(step * step, -40, 4)


@pytest.mark.parametrize("exponent", [-60, -40, -3, 0, 5])
def test_arrays_and_numbers_round_alike(exponent):
    """⌊x/g + 1/2⌋ of an array equals that of its numbers, at halves, large values and tiny ones too."""
    g = 2.0**exponent
    values = np.array(
        [0.0, 0.5 * g, -0.5 * g, 1.5 * g, -1.5 * g, 0.49999999999999994 * g, 1e9 * g, 2.0**55 * g, -3.3, 1e-300]
    )
    assert array_steps(values, exponent).tolist() == [to_steps(v, exponent) for v in values.tolist()]


@pytest.mark.parametrize("whole", [0.0, 1.0, -1.0, 2.0**31, -(2.0**52), 2.0**53 + 2, 2.0**62, -(2.0**70), 2.0**84, 2.0**90])
def test_large_sums_are_rounded_once(whole):
    """Sums in two limbs equal the exact sum rounded to a float, below 2^85."""
    noise = np.array([0, 1, -1, 2**40 + 1, -(2**40) - 1, 2**61, -(2**61)])
    total = additive._float_sum(np.full(len(noise), whole), noise)  # noqa: SLF001
    exact = [float(int(whole) + int(n)) for n in noise]
    if abs(whole) < 2.0**85:
        assert total.tolist() == exact
    else:
        assert np.allclose(total, exact, rtol=1e-15)


@pytest.mark.parametrize("dimension", [1, 3])
def test_scalar_and_vector_draws_have_one_law(dimension):
    """The same stream gives a vector the noises that it gives many scalars."""
    mechanism = cu.Laplace(scale=1, sensitivity=1, dimension=dimension)
    value = 0 if dimension == 1 else np.zeros(3)
    first = mechanism.draw(value, Seeded(1), 4)
    again = mechanism.draw(value, Seeded(1), 4)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, mechanism.draw(value, Seeded(2), 4))


def test_a_record_cannot_be_rewritten():
    """Writing into a released array changes neither the record nor what a replay gives."""
    mechanism = cu.DiscreteLaplace(scale=10, sensitivity=1)
    with recording() as calls:
        released = mechanism.release(np.zeros(2, int))
        kept = released.copy()
        released[:] = 99
    with replaying(calls):
        again = mechanism.release(np.zeros(2, int))
    assert np.array_equal(again, kept)


def test_recorded_outputs_come_back():
    """A replay gives the recorded outputs in order and sees the new inputs."""
    mechanism = cu.DiscreteLaplace(scale=10, sensitivity=1)
    with recording() as calls:
        first = [mechanism.release(5), mechanism.release_many([1, 2], 3)]
    with replaying(calls) as seen:
        second = [mechanism.release(6), mechanism.release_many([1, 3], 3)]
    assert first[0] == second[0]
    assert np.array_equal(first[1], second[1])
    assert seen[0].value == 6
    with pytest.raises(Diverged), replaying(calls):
        cu.DiscreteLaplace(scale=11, sensitivity=1).release(5)
    with pytest.raises(Diverged), replaying([]):
        mechanism.release(5)


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
@pytest.mark.parametrize("name", ["laplace", "gaussian", "discrete laplace", "discrete gaussian", "staircase", "truncated"])
def test_intervals_hold_and_are_tight(name, confidence):
    """The mass within the interval is at least the confidence, and one step less would not do (integers)."""
    mechanism = {**REAL, **WHOLE}[name]
    interval = mechanism.interval(confidence)
    assert interval.lower == -interval.upper == -mechanism.half_width(confidence)
    if name in WHOLE:
        reach = int(interval.upper)
        mass = math.fsum(mechanism.probability(k) for k in range(-reach, reach + 1))
        less = math.fsum(mechanism.probability(k) for k in range(-reach + 1, reach))
        assert mass >= float(confidence) - 1e-12
        assert less < float(confidence)
    elif name == "laplace":
        assert interval.upper == pytest.approx(-math.log(1 - float(confidence)), rel=1e-9)
    elif name == "gaussian":
        assert math.erf(interval.upper / math.sqrt(2)) == pytest.approx(float(confidence), rel=1e-9)
    else:
        draws = np.abs(mechanism.release_many(0.0, 40_000))
        share = float((draws <= interval.upper).mean())
        # Hoeffding: off by 0.016 with probability below 2 exp(-2·40000·0.016²) < 3e-9
        assert share >= float(confidence) - 0.016
        if confidence == "0.5":
            assert share <= 0.55


def test_intervals_together():
    """Ten numbers all lie within theirs: the exact quantile of the largest of ten, not the union bound."""
    mechanism = cu.Laplace(scale=1, sensitivity=1)
    assert mechanism.half_width("0.95", together=10) == pytest.approx(5.275343910504974, rel=1e-12)
    assert mechanism.interval("0.95", together=10).upper == pytest.approx(5.275343910504974, rel=1e-12)


class TestTextbook:
    """The worked examples of the sources, with the right numbers."""

    def test_two_counts(self):
        """Two counts that one person can move both have sensitivity 2 in l1: scale 2 at ε = 1."""
        moved = cu.sensitivity.counts(2, adjacency="add_or_remove_one", norm="l1")
        mechanism = cu.DiscreteLaplace.calibrate(epsilon=1, sensitivity=moved)
        assert mechanism.scale == 2
        assert mechanism.loss.pure_epsilon == 1
        assert mechanism.release([120, 10]).shape == (2,)

    def test_ten_films(self):
        """Replacing one participant moves two cells: the 95 % error is 10.55/ε exactly, 10.6/ε by the union bound."""
        moved = cu.sensitivity.histogram("replace_one", "l1")
        mechanism = cu.Laplace.calibrate(epsilon=1, sensitivity=moved, dimension=10)
        assert mechanism.interval("0.95", together=10).upper == pytest.approx(2 * 5.275343910504974, rel=1e-10)
        assert mechanism.interval("0.95", together=10).upper < 2 * math.log(10 / 0.05)

    def test_response_with_three_quarters(self):
        """γ = 3/4 is log 3-private, and tells the truth three times in four."""
        mechanism = cu.RandomizedResponse(gamma="3/4")
        assert float(mechanism.loss.pure_epsilon) == pytest.approx(math.log(3), rel=1e-15)
        share = mechanism.release_many(1, 100_000).mean()
        assert abs(share - 0.75) < 0.0101  # Hoeffding: 2 exp(-2·1e5·0.0101²) < 3e-9


class TestRandomizedResponse:
    """Types, shapes and the exact law."""

    def test_types(self):
        """Booleans give booleans, integers integers, arrays arrays."""
        mechanism = cu.RandomizedResponse(epsilon=1)
        assert type(mechanism.release(True)) is bool
        assert type(mechanism.release(1)) is int
        assert mechanism.release(np.array([True, False])).dtype == np.bool_
        assert mechanism.release_many([0, 1, 1], 4).shape == (4, 3)

    @pytest.mark.parametrize("value", [2, -1, 0.5, "yes", None, [], [0, 3]])
    def test_other_answers_are_refused(self, value):
        """What is no answer is refused without repeating it."""
        with pytest.raises(cu.InvalidParameter, match="value must be"):
            cu.RandomizedResponse(epsilon=1).release(value)

    def test_bits_of_one_person_add_up(self):
        """A vector of eight answers costs eight times one."""
        mechanism = cu.RandomizedResponse(epsilon="1/8", answers=8)
        assert mechanism.loss.pure_epsilon == 1
        assert mechanism.release(np.zeros((5, 8), int)).shape == (5, 8)
        with pytest.raises(cu.InvalidParameter, match="8 answers"):
            mechanism.release([0, 1])
        assert cu.RandomizedResponse.calibrate(epsilon=1, answers=8) == mechanism

    @pytest.mark.parametrize("categories", [2, 3, 20])
    def test_law(self, categories):
        """The truth comes with probability γ, the others evenly: Hoeffding at 1e-9 for each."""
        mechanism = cu.RandomizedResponse(epsilon=1, categories=categories)
        counts = np.bincount(mechanism.release_many(1, 200_000), minlength=categories) / 200_000
        expected = np.full(categories, (1 - mechanism.gamma) / (categories - 1))
        expected[1] = mechanism.gamma
        assert np.abs(counts - expected).max() < 0.0075  # 2 exp(-2·2e5·0.0075²) < 4e-10

    def test_neighbours_differ_in_one_person(self):
        """Answers of one person are within, of two are not."""
        mechanism = cu.RandomizedResponse(epsilon=1, answers=2)
        zero = np.zeros((3, 2), np.int64)
        one = zero.copy()
        one[0] = 1
        two = one.copy()
        two[1, 0] = 1
        assert mechanism.within(zero, one)
        assert not mechanism.within(zero, two)

    def test_interval(self):
        """Hoeffding's bar shrinks with the root of the people, and is infinite where nothing is said."""
        mechanism = cu.RandomizedResponse(epsilon=1)
        assert mechanism.interval(people=400).upper == pytest.approx(mechanism.interval(people=100).upper / 2)
        assert cu.RandomizedResponse(epsilon=0).interval().upper == math.inf
