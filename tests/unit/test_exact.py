from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.errors import InvalidParameter
from curador.mechanisms.grid import in_steps
from curador.numerics.exact import (
    at_least_zero,
    open_probability,
    positive,
    probability,
    rational,
    root_down,
    root_up,
    square,
    whole,
    whole_root_up,
)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (1e-6, Fraction(1, 10**6)),
        (1e300, Fraction(10**300)),
        (5e-324, Fraction(5, 10**324)),
        (-0.0, Fraction(0)),
        (3, Fraction(3)),
        (10**50, Fraction(10**50)),
        ("0.1", Fraction(1, 10)),
        (" 1/3 ", Fraction(1, 3)),
        ("1e-6", Fraction(1, 10**6)),
        ("-2.50", Fraction(-5, 2)),
        (Decimal("0.30"), Fraction(3, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.int64(7), Fraction(7)),
    ],
)
def test_a_number_is_what_it_shows(value, meant):
    """Floats, text, decimals and NumPy's numbers become the rational that their text shows."""
    assert rational(value, "x") == meant
    assert type(rational(value, "x")) is Fraction


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back(value):
    """The rational of a float rounds to that float."""
    assert float(rational(value, "x")) == value
    assert rational(value, "x") == rational(repr(value), "x")


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.fractions(), st.integers(-70, 70))
def test_what_is_known_to_be_coprime_is_in_lowest_terms(value, exponent):
    """Squares, and shares of a power of two, are the rationals that ordinary arithmetic makes, in lowest terms."""
    for found, meant in ((square(value), value * value), (in_steps(value, exponent), value / Fraction(2) ** exponent)):
        assert found.as_integer_ratio() == meant.as_integer_ratio()
        assert type(found) is Fraction
        assert hash(found) == hash(meant)


WRONG = [
    math.nan,
    math.inf,
    -math.inf,
    np.float64("nan"),
    np.float32("inf"),
    Decimal("NaN"),
    Decimal("Infinity"),
    True,
    False,
    np.True_,
    None,
    1j,
    "",
    " ",
    "abc",
    "nan",
    "inf",
    "1/0",
    "e5",
    "1e99999",
    "1" * 401,
    b"1",
    [1],
    (1,),
    {},
    ...,
    np.array([0.1, 0.2]),
    np.array(0.1),
]


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize("parse", [rational, positive, at_least_zero, probability, open_probability, whole])
def test_what_is_no_number_is_refused(parse, value):
    """NaN, infinities, booleans, words and containers are refused at the border, in one sentence with the name."""
    with pytest.raises(InvalidParameter, match=r"^epsilon must be .*; got (.|\n)*\.(\nHint: .*)?$"):
        parse(value, "epsilon")


@pytest.mark.parametrize(
    ("parse", "good", "bad"),
    [
        (positive, ["1e-300", 1, "1e300"], [0, "-1e-300", -1, "0/5"]),
        (at_least_zero, [0, "0", "1e-300", -0.0], ["-1e-300", -1]),
        (probability, [0, "0.5", "0.999999999999999999999999"], [1, 1.0, 2, -0.1, "1.000000000000000000001"]),
        (open_probability, ["1e-300", 0.5, "0.999999999999999999999999"], [0, 1, 2, -0.1]),
        (whole, [1, 2.0, "3", Fraction(4), 10**30, "4/2"], [0, -1, 1.5, "1/2"]),
    ],
)
def test_ranges_are_exact(parse, good, bad):
    """The ends of each range are decided on rationals, not on floats."""
    for value in good:
        assert parse(value, "x") == Fraction(str(value))
    for value in bad:
        with pytest.raises(InvalidParameter, match=r"^x must be "):
            parse(value, "x")


def test_whole_numbers_from_another_start():
    """The least whole number is the caller's."""
    assert whole(0, "x", least=0) == 0
    assert type(whole(2.0, "x")) is int
    with pytest.raises(InvalidParameter, match="a whole number of at least 5; got 4"):
        whole(4, "x", least=5)


def test_a_long_value_is_cut_in_the_message():
    """A message stays one readable line."""
    with pytest.raises(InvalidParameter) as caught:
        rational("x" * 1000, "epsilon")
    assert len(str(caught.value).splitlines()[0]) < 140


@given(top=st.integers(0, 10**40), over=st.integers(1, 10**20), digits=st.integers(1, 10**12))
def test_roots_round_as_they_say(top, over, digits):
    """The least root at or above, and the one at or below within a part of it, by squares of integers alone."""
    root = whole_root_up(top, over)
    assert root * root * over >= top
    assert root == 0 or (root - 1) ** 2 * over < top
    exact = Fraction(top, over)
    upper, lower = root_up(exact, digits), root_down(exact, digits)
    assert lower**2 <= exact <= upper**2
    assert upper - lower <= Fraction(1, digits)
    assert digits % upper.denominator == digits % lower.denominator == 0
