"""Laws of shuffled reports: monotone in every parameter, and above every randomizer that chance invents."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import shuffle_truth as truth
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.numerics.rounding import log_up
from curador.privacy.losses import Shuffled

law = settings(max_examples=25, deadline=None)

locals_ = st.sampled_from(("0.01", "0.3", "1", "2.5", "6"))
people = st.sampled_from((1, 2, 5, 30, 2000, 10**5))
shares = st.fractions(0, Fraction(99, 100), max_denominator=100)
"""ε as a share of ε₀."""


def bounds(epsilon0, reports, epsilon, variation=None):
    return Shuffled(epsilon=epsilon0, reports=reports, variation=variation).delta_interval(epsilon)


@law
@given(locals_, people, shares, shares)
def test_delta_falls_with_epsilon(epsilon0, reports, one, other):
    """A larger ε never needs a larger δ."""
    less, more = sorted((one, other))
    exact = Fraction(epsilon0)
    assert bounds(exact, reports, less * exact).upper >= bounds(exact, reports, more * exact).lower


@law
@given(locals_, people, people, shares)
def test_more_people_hide_better(epsilon0, one, other, share):
    """More reports never cost more."""
    fewer, more = sorted((one, other))
    epsilon = share * Fraction(epsilon0)
    assert bounds(epsilon0, fewer, epsilon).upper >= bounds(epsilon0, more, epsilon).lower


@law
@given(locals_, locals_, people, shares)
def test_a_larger_local_epsilon_costs_more(one, other, reports, share):
    """δ at a given ε rises with ε₀."""
    less, more = sorted((Fraction(one), Fraction(other)))
    assert bounds(less, reports, share * less).lower <= bounds(more, reports, share * less).upper


@law
@given(
    locals_,
    st.sampled_from((1, 2, 5, 16)),
    shares,
    st.lists(st.fractions("1/20", 1, max_denominator=20), min_size=2, max_size=2),
)
def test_a_larger_variation_costs_more(epsilon0, reports, share, variations):
    """δ rises with the variation, up to that of no variation at all."""
    less, more = sorted(variations)
    epsilon = share * Fraction(epsilon0)
    low, high = (bounds(epsilon0, reports, epsilon, variation) for variation in (less, more))
    assert low.lower <= high.upper
    assert high.lower <= bounds(epsilon0, reports, epsilon).upper


@st.composite
def randomizers(draw):
    """An exact randomizer of three values with ratios of at most 3: patterns of odds, each with its rotations."""
    patterns = draw(st.lists(st.tuples(*[st.sampled_from((1, 2, 3))] * 3), min_size=1, max_size=2))
    weights = draw(st.lists(st.integers(1, 5), min_size=len(patterns), max_size=len(patterns)))
    columns = [
        [weight * odds[(value + turn) % 3] for value in range(3)]
        for odds, weight in zip(patterns, weights, strict=True)
        for turn in range(3)
    ]
    total = sum(column[0] for column in columns)  # the same for every value: all rotations are there
    return [[Fraction(column[value], total) for column in columns] for value in range(3)]


@law
@given(randomizers(), st.integers(1, 3), st.fractions(1, Fraction(29, 10), max_denominator=20))
def test_no_randomizer_loses_more_than_the_record(rows, reports, tau):
    """The exact δ over all neighbouring inputs is at most the record's, with its own variation and without."""
    variation = truth.variation_of(rows)
    want = float(truth.true_delta(rows, reports, tau))
    epsilon0, epsilon = Fraction(log_up(Fraction(3))), Fraction(math.log(tau) * (1 - 1e-15))
    with_variation, without = (bounds(epsilon0, reports, epsilon, beta).upper for beta in (variation, None))
    assert want <= with_variation * (1 + 1e-12)
    assert want <= without * (1 + 1e-12)


def test_rotations_make_a_randomizer():
    """The strategy's rows are distributions whose ratios are at most 3."""
    rows = [[Fraction(column[value], 5) for column in ([3, 1, 1], [1, 1, 3], [1, 3, 1])] for value in range(3)]
    assert all(sum(row) == 1 for row in rows)
    assert all(x <= 3 * y for one, two in itertools.permutations(rows, 2) for x, y in zip(one, two, strict=True))
