from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curador.errors import InvalidParameter
from curador.mechanisms.clipping import clamp, clip_l1, clip_l2

LARGEST = sys.float_info.max
TINY = 5e-324
ANY = st.floats(allow_nan=True, allow_infinity=True)
BOUNDS = st.sampled_from(["1", "0.1", "1/3", "1e-310", "1e308", "7.5", "5e-324"])
HOSTILE = [
    [3.0, 4.0],
    [LARGEST, LARGEST, -LARGEST],
    [1e200] * 7,
    [TINY] * 9,
    [1e-310, -2e-310],
    [LARGEST, TINY],
    [1.0, 1e-200, 1e-320],
    [0.6, 0.8],
    [1.0, 1e-8],
    [0.0, 0.0],
    [0.1] * 10,
    [1.0],
    [math.nextafter(1.0, 2.0)],
]


def length_l2_squared(row):
    return sum((Fraction(x) ** 2 for x in row), Fraction(0))


def length_l1(row):
    return sum((abs(Fraction(x)) for x in row), Fraction(0))


def within(clip, row, bound):
    """Whether the exact norm of the floats is at most the exact bound."""
    if clip is clip_l2:
        return length_l2_squared(row) <= Fraction(bound) ** 2
    return length_l1(row) <= Fraction(bound)


BOTH = pytest.mark.parametrize("clip", [clip_l1, clip_l2])


@BOTH
@pytest.mark.parametrize("bound", ["1", "0.1", "1e-310", "1e308", "1e-5", "5e-324", "1e-330"])
def test_the_exact_norm_of_hostile_rows_is_bounded(clip, bound):
    """Overflowing squares, subnormals, rows a hair outside: the rational norm of what comes back is at most the bound."""
    for row in HOSTILE:
        assert within(clip, clip(row, bound).tolist(), bound)


@pytest.mark.slow
@BOTH
@given(row=st.lists(ANY, min_size=1, max_size=12), bound=BOUNDS)
def test_the_exact_norm_of_any_row_is_bounded(clip, row, bound):
    """Whatever the floats are, NaN and infinities included, a row within the bound comes back."""
    assert within(clip, clip(row, bound).tolist(), bound)


@BOTH
@pytest.mark.slow
def test_the_exact_norm_of_random_rows_is_bounded_and_tight(clip):
    """3,000 rows of 1 to 60 numbers: never outside, and those clipped lose less than a relative 1e-13."""
    generator = np.random.default_rng()
    for width in (1, 2, 3, 10, 60):
        rows = generator.normal(size=(600, width)) * 2.0 ** generator.integers(-40, 40, size=(600, 1))
        out = clip(rows, "0.1")
        for before, after in zip(rows.tolist(), out.tolist(), strict=True):
            assert within(clip, after, "0.1")
            if not within(clip, before, "0.1"):
                assert not within(clip, [x * (1 + 1e-13) for x in after], "0.1")


@pytest.mark.slow
@BOTH
def test_the_exact_norm_is_bounded_where_floats_have_few_digits(clip):
    """Bounds of 1 to 40 times the smallest float, one large number among small ones: rounding never adds up."""
    generator = np.random.default_rng()
    for steps in range(1, 41):
        bound = Fraction(steps) * Fraction(TINY)
        rows = generator.uniform(0.02, 1.0, size=(60, 6)) * 10.0 ** generator.integers(-3, 3, size=(60, 1))
        for after in clip(rows, bound).tolist():
            assert within(clip, after, bound)
    for small in np.linspace(0.001, 0.3, 40).tolist():
        assert within(clip, clip([1.0, *[small] * 200], "1e-320").tolist(), "1e-320")


@BOTH
def test_the_plain_formula_leaves_the_ball(clip):
    """The seeded error x · bound/norm(x) is caught by the same exact check, often."""
    generator = np.random.default_rng()
    rows = generator.normal(size=(400, 5)) * 100
    order = 1 if clip is clip_l1 else 2
    plain = rows * (0.1 / np.linalg.norm(rows, ord=order, axis=1))[:, None]
    assert sum(not within(clip, row, "0.1") for row in plain.tolist()) > 20


@BOTH
def test_rows_certainly_inside_are_unchanged(clip):
    """What is inside by more than rounding comes back bit by bit; the direction of the rest is kept."""
    rows = np.array([[0.25, -0.25], [3e-320, 0.0], [30.0, -40.0]])
    out = clip(rows, 1)
    assert np.array_equal(out[:2], rows[:2])
    assert out[2, 0] / out[2, 1] == pytest.approx(-0.75, rel=1e-15)
    assert np.array_equal(rows[2], [30.0, -40.0])  # the caller's array is not written to


@BOTH
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_row_that_is_not_finite_becomes_zeros(clip, bad):
    """Only that row; no error tells that it was there."""
    out = clip([[0.5, bad], [0.25, 0.25]], 1)
    assert out.tolist() == [[0.0, 0.0], [0.25, 0.25]]


@BOTH
@pytest.mark.parametrize("bad", [None, "a", True, 1j, Decimal("NaN"), 2**2000, object()])
def test_what_is_no_number_in_a_list_is_no_error(clip, bad):
    """A null, a word or an integer beyond the floats makes its row zeros, like a NaN."""
    assert clip([[bad, 0.5], [0.25, 0.25]], 1).tolist() == [[0.0, 0.0], [0.25, 0.25]]


def test_clamping_is_total():
    """Nulls take the place of missing values, integers of any size stop at the bounds."""
    assert clamp([None, 2**2000, -(2**2000), 0.25, "x"], 0, 1).tolist() == [0.5, 1.0, 0.0, 0.25, 0.5]


@BOTH
def test_shapes_and_types(clip):
    """A vector gives a vector, rows give rows, integers and narrow floats give doubles, nothing gives nothing."""
    assert clip([3, 4], 100).dtype == np.float64
    assert clip(np.ones((2, 3), np.float32), 1).shape == (2, 3)
    assert clip(np.empty((0, 3)), 1).shape == (0, 3)
    for bad in ("ab", None, [[1.0], [1.0, 2.0]], np.ones((2, 2, 2)), np.array([True]), np.ma.array([1.0], mask=[True])):
        with pytest.raises(InvalidParameter, match="vectors must be"):
            clip(bad, 1)
    for bound in (0, -1, math.nan, "x", True):
        with pytest.raises(InvalidParameter, match="bound must be"):
            clip([1.0], bound)


@pytest.mark.slow
@given(values=st.lists(ANY, min_size=1), ends=st.tuples(st.fractions(-100, 100), st.fractions(-100, 100)))
def test_clamped_values_lie_between_the_exact_bounds(values, ends):
    """Every float returned lies in [lower, upper] as a rational, also where the bounds are no floats."""
    lower, upper = min(ends), max(ends)
    if upper - lower < Fraction(1, 10**6):
        upper += 1
    out = clamp(values, lower, upper)
    assert all(lower <= Fraction(x) <= upper for x in out.tolist())
    for before, after in zip(values, out.tolist(), strict=True):
        assert after == before or not lower <= (Fraction(before) if math.isfinite(before) else upper + 1) <= upper


def test_clamped_nan_and_infinities():
    """NaN goes to the middle or to what is given for it, infinities to the ends."""
    hostile = [math.nan, math.inf, -math.inf, 0.25]
    assert clamp(hostile, 0, 1).tolist() == [0.5, 1.0, 0.0, 0.25]
    assert clamp(hostile, "-1e400", 1).tolist()[1:] == [1.0, -LARGEST, 0.25]
    assert clamp(hostile, 0, 1, missing=0).tolist() == [0.0, 1.0, 0.0, 0.25]


def test_a_clamp_by_the_nearest_float_would_leave_the_bounds():
    """The float nearest to 1/10 lies above it: the end used is the one below."""
    assert Fraction(0.1) > Fraction(1, 10)
    assert Fraction(clamp([5.0], 0, "0.1").tolist()[0]) <= Fraction(1, 10)


@pytest.mark.parametrize(
    ("lower", "upper", "missing"),
    [(1, 0, None), (0, 1, 2), (math.nan, 1, None), ("1/3", "1/3", None), ("1e400", "1e401", None)],
)
def test_bounds_without_sense_are_refused(lower, upper, missing):
    """Crossed ends, a stand-in outside, ends with no float between them."""
    with pytest.raises(InvalidParameter):
        clamp([0.5], lower, upper, missing=missing)
