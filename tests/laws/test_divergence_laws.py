"""What every divergence must obey, on all four families."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from curador.privacy.divergence import (
    Bernoulli,
    Finite,
    Laplace,
    Normal,
    hockey_stick,
    kl,
    max_divergence,
    probability_preservation,
    renyi,
    weak_triangle,
)

LAST_PLACE = 1 + 2.0**-50  # values are rounded to nearest, so an equality may be off by a place
ORDERS = (1, Fraction(1_000_000_001, 10**9), 1.25, 2, 7, 100, 10_000, math.inf)

law = settings(max_examples=60, deadline=None)
orders = st.sampled_from(ORDERS)
orders_above_one = st.sampled_from(ORDERS[1:])
epsilons = st.sampled_from((-20, -1, -0.1, -1e-9, 0, 1e-9, 0.1, 0.7, 2, 20))
probabilities = st.one_of(st.just(0), st.just(1), st.just(1e-300), st.fractions(0, 1, max_denominator=10**6))
places = st.one_of(st.sampled_from((0, 1e-8, 1000)), st.fractions(-5, 5, max_denominator=1000))
scales = st.one_of(st.sampled_from((1, "1.00000001")), st.fractions("1/10", 10, max_denominator=100))


def finite(size: int, least: int = 0):
    """Distributions on `size` points with small rational probabilities."""
    weights = st.lists(st.integers(least, 50), min_size=size, max_size=size).filter(any)
    return weights.map(lambda w: Finite([Fraction(x, sum(w)) for x in w]))


def family(member):
    """Triples of distributions of one family."""
    return st.tuples(member, member, member)


sizes = st.integers(2, 5)
triples = st.one_of(
    family(probabilities.map(Bernoulli)),
    sizes.flatmap(lambda size: family(finite(size))),
    family(st.builds(Normal, places, scales)),
    family(st.builds(Laplace, places, scales)),
)
pairs = triples.map(lambda triple: triple[:2])
finite_pairs = sizes.flatmap(lambda size: st.tuples(finite(size), finite(size)))
positive_pairs = sizes.flatmap(lambda size: st.tuples(finite(size, 1), finite(size, 1)))
channels = st.integers(1, 4).flatmap(lambda width: st.lists(finite(width), min_size=5, max_size=5))


def mixed(weight: Fraction, one: Finite, other: Finite) -> Finite:
    """The distribution `one` with probability weight, else `other`."""
    both = zip(one.probabilities, other.probabilities, strict=True)
    return Finite([weight * x + (1 - weight) * y for x, y in both])


def through(channel: list[Finite], source: Finite) -> Finite:
    """What comes out of the channel: row i is the law of the output for the input i."""
    width = len(channel[0].probabilities)
    out = [Fraction(0)] * width
    for weight, row in zip(source.probabilities, channel, strict=False):
        out = [x + weight * y for x, y in zip(out, row.probabilities, strict=True)]
    return Finite(out)


@law
@given(pairs, orders)
def test_divergence_is_positive_unless_equal(pair, alpha):
    """D_α(P, Q) >= 0, with 0 for P = Q only; never NaN."""
    value = renyi(*pair, alpha=alpha)
    assert value > 0 or (value == 0 and pair[0] == pair[1])


@law
@given(pairs)
def test_divergence_grows_with_the_order(pair):
    """D_α is monotone in α from KL to the maximum."""
    curve = [renyi(*pair, alpha=alpha) for alpha in ORDERS]
    assert all(x <= y * LAST_PLACE for x, y in itertools.pairwise(curve))


@law
@given(positive_pairs, st.sampled_from((1e-3, 1e-6, 1e-9, 1e-12)))
def test_order_near_one_tends_to_kl(pair, step):
    """0 <= D_{1+h} - KL <= h max|loss|², so the limit is KL."""
    gap = renyi(*pair, alpha=1 + Fraction(repr(step))) - kl(*pair)
    largest = max(max_divergence(*pair), max_divergence(*reversed(pair)))
    assert -1e-15 <= gap <= step * largest**2 + 1e-15


@law
@given(positive_pairs, st.sampled_from((10, 1000, 1e6, 1e300)))
def test_large_orders_tend_to_the_maximum(pair, alpha):
    """The likeliest loss alone keeps D_α within log(1/p)/(α-1) of the maximum."""
    first, second = (distribution.probabilities for distribution in pair)
    rarest = min(p for p, q in zip(first, second, strict=True) if p > 0)
    top, value = max_divergence(*pair), renyi(*pair, alpha=alpha)
    assert value <= top * LAST_PLACE
    assert value >= top / LAST_PLACE + math.log(rarest) / (alpha - 1) - 1e-15


@law
@given(finite_pairs, channels, orders, epsilons)
def test_no_channel_increases_a_divergence(pair, channel, alpha, epsilon):
    """Data processing: what comes out of a channel is not easier to tell apart than what went in."""
    after = [through(channel, distribution) for distribution in pair]
    assert renyi(*after, alpha=alpha) <= renyi(*pair, alpha=alpha) * LAST_PLACE
    assert hockey_stick(*after, epsilon=epsilon) <= hockey_stick(*pair, epsilon=epsilon) * LAST_PLACE


@law
@given(sizes.flatmap(lambda size: st.tuples(*[finite(size)] * 4)), st.fractions(0, 1, max_denominator=100))
def test_kl_is_jointly_convex(four, weight):
    """Mixing two pairs alike brings them no farther apart than the mixture of their divergences."""
    first, second, third, fourth = four
    together = kl(mixed(weight, first, third), mixed(weight, second, fourth))
    parts = [(weight, kl(first, second)), (1 - weight, kl(third, fourth))]
    assert together <= sum(float(share) * value for share, value in parts if share > 0) * LAST_PLACE


@law
@given(pairs, epsilons)
def test_hockey_stick_is_within_its_bounds(pair, epsilon):
    """(1 - e^ε)₊ <= δ <= 1."""
    value = hockey_stick(*pair, epsilon=epsilon)
    assert max(0.0, -math.expm1(epsilon)) <= value * LAST_PLACE
    assert value <= 1


@law
@given(pairs, epsilons, epsilons)
def test_hockey_stick_falls_and_is_convex_in_exp_epsilon(pair, one, other):
    """δ decreases in e^ε and lies below its chords."""
    low, high = sorted((one, other))
    middle = math.log((math.exp(low) + math.exp(high)) / 2)
    ends = [hockey_stick(*pair, epsilon=epsilon) for epsilon in (low, high)]
    between = hockey_stick(*pair, epsilon=middle)
    assert ends[1] <= between * LAST_PLACE + 1e-15
    assert between <= ends[0] * LAST_PLACE + 1e-15
    assert between <= (ends[0] + ends[1]) / 2 + 1e-14


@law
@given(pairs, epsilons)
def test_hockey_stick_of_the_reversed_pair(pair, epsilon):
    """H_ε(P, Q) = 1 - e^ε + e^ε H_{-ε}(Q, P): what the best event gains, its complement tells."""
    forward, backward = hockey_stick(*pair, epsilon=epsilon), hockey_stick(*reversed(pair), epsilon=-epsilon)
    # Multiplied by the smaller of 1 and e^-ε, so that the comparison is of numbers up to 1.
    weight = min(1.0, math.exp(-epsilon))
    assert weight * forward == pytest.approx(weight * -math.expm1(epsilon) + weight * math.exp(epsilon) * backward, abs=1e-15)


@law
@given(pairs, epsilons)
def test_hockey_stick_vanishes_where_the_loss_is_bounded(pair, epsilon):
    """δ(ε) = 0 if and only if ε is at least the max divergence."""
    top = max_divergence(*pair)
    assume(abs(top - epsilon) > 1e-14 * abs(epsilon))
    assert (hockey_stick(*pair, epsilon=epsilon) == 0) == (epsilon >= top)


@law
@given(pairs, st.sampled_from((1.5, 2, 5)), epsilons)
def test_delta_of_a_renyi_divergence(pair, alpha, epsilon):
    """δ(ε) <= e^((α-1)(D_α - ε)): Markov's inequality for the loss."""
    exponent = (alpha - 1) * (renyi(*pair, alpha=alpha) - epsilon)
    assert hockey_stick(*pair, epsilon=epsilon) <= math.exp(min(0, exponent)) * (1 + 1e-12)


@law
@given(triples, orders_above_one, st.sampled_from((1, Fraction(3, 2), 2, 4, math.inf)))
def test_weak_triangle_is_an_upper_bound(triple, alpha, p):
    """No detour is shorter, whatever the split, in all its special cases."""
    first, second, via = triple
    assert renyi(first, second, alpha=alpha) <= weak_triangle(first, second, via, alpha=alpha, p=p)


def test_the_plain_triangle_is_false():
    """Without its factor and its higher order the triangle inequality fails: the law above can fail."""
    first, second, via = Normal(0, 1), Normal(2, 1), Normal(1, 1)
    detour = renyi(first, via, alpha=2) + renyi(via, second, alpha=2)
    assert renyi(first, second, alpha=2) > detour
    assert renyi(first, second, alpha=2) <= weak_triangle(first, second, via, alpha=2)


@law
@given(finite_pairs, orders_above_one, st.sets(st.integers(0, 4)))
def test_probabilities_of_events_are_preserved(pair, alpha, event):
    """Every event keeps its probability within the two bounds."""
    first, second = pair
    losses = [renyi(first, second, alpha=alpha), renyi(second, first, alpha=alpha)]
    p, q = (sum(x for i, x in enumerate(d.probabilities) if i in event) for d in pair)
    _, upper = probability_preservation(q, alpha=alpha, zeta=losses[0] * LAST_PLACE)
    lower, _ = probability_preservation(q, alpha=alpha, zeta=losses[1] * LAST_PLACE)
    assert lower <= p <= upper


def test_swapped_exponents_would_not_preserve():
    """The upper bound with the lower bound's exponent is broken by a fair coin against a biased one."""
    zeta = renyi(Bernoulli(0.5), Bernoulli(0.1), alpha=2)
    swapped = math.exp(zeta) * 0.1**2
    assert swapped < 0.5 <= probability_preservation(0.1, alpha=2, zeta=zeta)[1]


@law
@given(positive_pairs, st.sampled_from((1, 1.5, 2, 10, 100)))
def test_pure_loss_bounds_the_curve(pair, alpha):
    """Losses within ±ε give D_α <= α ε²/2, a quarter of the older bound 2 α ε²."""
    epsilon = max(max_divergence(*pair), max_divergence(*reversed(pair)))
    assert renyi(*pair, alpha=alpha) <= alpha * epsilon**2 / 2 * LAST_PLACE


@law
@given(st.floats(0, 1))
def test_exponential_is_below_its_parabola(x):
    """e^±x <= 1 ± x + x² on [0, 1]."""
    for sign in (-1, 1):
        assert math.expm1(sign * x) <= (sign * x + x * x) * (1 + math.copysign(1e-15, sign * x + x * x))


def test_exponential_leaves_its_parabola():
    """Beyond x = 1.8 the inequality is false, and x² cannot be halved on the interval."""
    assert math.exp(1.8) > 1 + 1.8 + 1.8**2
    assert math.exp(1) > 1 + 1 + 1 / 2
