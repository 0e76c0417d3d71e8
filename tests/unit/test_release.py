"""Releases of additive mechanisms and randomized response: right answers, right types, clear refusals."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest

import curador as cu
from curador.mechanisms import additive
from curador.mechanisms.grid import array_steps, to_steps
from curador.mechanisms.parameters import vector_squares, vector_steps
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


@pytest.mark.parametrize("value", [2**2000, Fraction(10) ** 400])
def test_beyond_a_float_is_refused_for_real_values(value):
    """A real-valued mechanism cannot answer beyond the floats, and says which can."""
    with pytest.raises(cu.InvalidParameter, match="range of a float"):
        cu.Laplace(scale=1, sensitivity=1).release(value)


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
    assert interval.lower == -interval.upper
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
