"""Composition, parallel composition, groups and subsamples of plain numbers: values, conditions and refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.errors import InvalidParameter, NotPrivate
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE
from curador.privacy.compose import (
    advanced,
    advanced_kov,
    basic,
    drv_epsilon,
    group_epsilon_delta,
    group_mu,
    group_renyi,
    group_rho,
    kov_epsilon,
    laplace_delta,
    mironov_corollary,
    mironov_factor,
    optimal_delta,
    optimal_epsilon,
    parallel,
    per_step,
    subsample_epsilon_delta,
)


def assert_near(got, value, *, relative=1e-12) -> None:
    """The value to within a relative tolerance."""
    assert abs(float(got) - value) <= relative * abs(value)


laws = settings(deadline=None, max_examples=60)

# ---- sums ------------------------------------------------------------------------------------------------------


def test_basic_composition_is_exact():
    """Ten times 0.1 is 1, and deltas add up."""
    assert basic([0.1] * 10) == (1, 0)
    assert basic([0.1, "1/3"], [1e-6, 0]) == (Fraction(13, 30), Fraction(1, 10**6))
    assert basic([]) == (0, 0)
    with pytest.raises(InvalidParameter, match="as many as epsilons"):
        basic([1, 2], [0.1])
    with pytest.raises(NotPrivate, match="no guarantee is left"):
        basic([1, 1], [0.5, 0.5])


@pytest.mark.parametrize(
    ("count", "epsilon", "delta", "drv", "plain"),
    [
        (100, 0.1, 1e-6, 6.308230950513408, 5.756105519335732),
        (1000, 0.01, 1e-6, 1.7627598071107906, 1.7122577196066098),
        (20, 0.5, 1e-5, 17.217042838448016, 13.179016755483827),
        (1000, 1.0, 1e-5, 1870.02454139756, None),
    ],
)
def test_closed_forms_have_their_known_values(count, epsilon, delta, drv, plain):
    """DRV and KOV have their known values from above; `advanced` never exceeds the plain sum."""
    assert_near(drv_epsilon(epsilon, count=count, delta_prime=delta), drv)
    assert drv_epsilon(epsilon, count=count, delta_prime=delta) >= drv
    if plain:
        assert_near(kov_epsilon(epsilon, count=count, delta_prime=delta), plain)
    bound, total = advanced(epsilon, count=count, delta=0, delta_prime=delta)
    assert bound == min(drv_epsilon(epsilon, count=count, delta_prime=delta), count * epsilon)
    assert total == Fraction(str(delta))


def test_kov_takes_the_least_of_three():
    """The sharp forms have their known values; the delta is that of independent failures."""
    assert_near(kov_epsilon(0.1, count=100, delta_prime=1e-6, form="sharp"), 5.756106036460576)
    assert_near(kov_epsilon(1, count=1000, delta_prime=1e-5, form="sharp"), 635.1304744587567)
    bound, total = advanced_kov(0.1, count=100, delta=1e-8, delta_prime=1e-6)
    assert_near(bound, 5.756105519335732)
    assert_near(total, 1 - (1 - 1e-8) ** 100 * (1 - 1e-6), relative=1e-8)
    assert total < 100 * 1e-8 + 1e-6
    assert advanced_kov(3, count=2, delta=0, delta_prime=1e-6)[0] == 6


def test_the_step_of_the_textbook_is_checked():
    """The textbook's step has its known value where it is proved, and is refused where it would be false."""
    step = per_step(1, count=100, delta_prime=1e-6)
    assert_near(step, 0.00951199332754063)
    assert drv_epsilon(Fraction(step), count=100, delta_prime=1e-6) <= 1
    # ε √(8k ln(1/δ')) with 1000 steps of 1 claims 303; the optimum there has delta 0.99999998.
    claim = math.sqrt(8 * 1000 * math.log(1e5))
    assert optimal_delta(1, count=1000, epsilon=claim)[0] > 0.9999999
    with pytest.raises(NotPrivate, match="textbook's step"):
        per_step(claim, count=1000, delta_prime=1e-5)


def test_the_corollary_of_mironov_has_a_condition():
    """4 ε √(2k ln(1/δ)) has its known values where ln(1/δ) ≥ k ε², and is refused elsewhere."""
    assert_near(mironov_corollary(0.01, count=1000, delta=1e-6), 6.64903254507644)
    assert_near(mironov_corollary(0.5, count=20, delta=1e-5), 42.919320525786944)
    with pytest.raises(NotPrivate, match="at most log"):
        mironov_corollary(1, count=1000, delta=1e-5)


def test_the_factor_on_probabilities_holds_for_randomised_response():
    """Both forms have their known values, and bound the likelihood ratios of k randomised responses."""
    assert_near(mironov_factor(0.1, count=100, probability=1e-6), 116.34056207181175)
    assert_near(mironov_factor(0.1, count=10, probability=1e-6), 5.014121022037024)
    assert_near(mironov_factor(0.1, count=10, probability=1e-6, form="printed"), 10.493835615005194)
    count, epsilon = 12, 0.4
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    tails = [
        math.fsum(math.comb(count, j) * p**j * (1 - p) ** (count - j) for j in range(i, count + 1))
        for p in (keep, 1 - keep)
        for i in range(1, count + 1)
    ]
    for high, low in zip(tails[:count], tails[count:], strict=True):
        improved = mironov_factor(epsilon, count=count, probability=low)
        assert high <= improved * low * (1 + 1e-12)
        assert improved <= mironov_factor(epsilon, count=count, probability=low, form="printed") * (1 + 1e-12)
    # The exponent without the factor 2 of √(2k L) would be false.
    assert any(
        high > low * math.exp(epsilon * math.sqrt(0.2 * count * -math.log(low)))
        for high, low in zip(tails[:count], tails[count:], strict=True)
    )


# ---- the exact optimum -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon0", "count", "delta", "epsilon"),
    [
        (0.1, 100, 1e-6, 4.7745675881079865),
        (0.5, 20, 1e-5, 9.859411024115124),
        (0.01, 1000, 1e-6, 1.365446709993756),
        (0.1, 30, 1e-6, 2.3458876930080366),
    ],
)
def test_optimal_epsilon_has_its_known_values(epsilon0, count, delta, epsilon):
    """The exact composition of pure mechanisms is enclosed within 1e-12; lattice points alone would give 4.8."""
    lower, upper = optimal_epsilon(epsilon0, count=count, delta=delta)
    assert lower <= epsilon <= upper
    assert upper - lower <= 1e-12 * upper


@pytest.mark.parametrize(
    ("epsilon0", "count", "epsilon", "delta0", "delta"),
    [
        (0.1, 100, 4, 0, 3.4223123191967736e-05),
        (0.5, 20, 5, 0, 0.0544203925793461),
        (0.5, 4, 1, 0, 0.09489511194634484),
        (0.1, 100, 4, 1e-8, 3.5223088473861644e-05),
    ],
)
def test_optimal_delta_has_its_known_values(epsilon0, count, epsilon, delta0, delta):
    """The exact delta is enclosed within 1e-12, also for approximate mechanisms."""
    lower, upper = optimal_delta(epsilon0, count=count, epsilon=epsilon, delta0=delta0)
    assert lower <= delta <= upper
    assert_near(upper, delta)


def test_the_optimum_at_its_poles():
    """Nothing composed, everything spent, one mechanism, and deltas that cannot be met."""
    assert optimal_delta(0, count=5, epsilon=0) == (0, 0)
    assert optimal_delta(1, count=5, epsilon=5) == (0, 0)
    assert optimal_epsilon(0, count=5, delta=0) == (0, 0)
    assert optimal_epsilon(0.5, count=4, delta=0) == (2, 2)
    assert optimal_epsilon(0.5, count=4, delta=0.9) == (0, 0)
    lower, upper = optimal_delta(1, count=1, epsilon=0.99)
    assert lower <= (math.e - math.exp(0.99)) / (1 + math.e) <= upper
    assert optimal_epsilon(0.1, count=100, delta=1e-6, delta0=1e-7) == (math.inf, math.inf)
    assert optimal_delta(0, count=10, epsilon=1, delta0=0.1)[1] == pytest.approx(1 - 0.9**10, rel=1e-14)
    assert optimal_delta(2000, count=3, epsilon=5999)[1] == pytest.approx(-math.expm1(-1), rel=1e-12)


@pytest.mark.slow
@laws
@given(st.floats(1e-4, 3), st.integers(1, 400), st.floats(1e-12, 0.4), st.sampled_from([0, 1e-9, 1e-4]))
def test_optimum_is_monotone_and_inverse(epsilon0, count, delta, delta0):
    """epsilon falls as delta grows, costs at most the sum, and its delta is the one asked for."""
    lower, upper = optimal_epsilon(epsilon0, count=count, delta=delta, delta0=delta0)
    if 1 - (1 - delta0) ** count > delta * (1 + 1e-9):
        assert upper == math.inf
        return
    assert lower <= upper <= count * epsilon0 * (1 + 1e-12)
    assert optimal_epsilon(epsilon0, count=count, delta=delta * 1.5, delta0=delta0)[0] <= upper
    if upper < count * epsilon0:
        at = optimal_delta(epsilon0, count=count, epsilon=Fraction(upper), delta0=delta0)
        assert at[0] <= delta
        assert upper - lower <= 1e-9 * upper
        assert upper == 0 or at[1] >= delta * (1 - 1e-6) - 1e-14 * count * epsilon0


@laws
@given(st.floats(0, 3), st.floats(0, 3))
def test_one_laplace_is_exact(epsilon0, epsilon):
    """delta is 1 − e^((ε−ε0)/2) below ε0 and 0 beyond, never above one pure mechanism of the same ε0 at its best."""
    got = laplace_delta(epsilon0, epsilon=epsilon)
    assert got == pytest.approx(max(0.0, 1 - math.exp((epsilon - epsilon0) / 2)), rel=1e-9, abs=1e-15)
    assert (got == 0) == (epsilon >= epsilon0)
    if epsilon0 > 1e-100:
        assert got <= optimal_delta(epsilon0, count=1, epsilon=epsilon)[1] * (1 + 1e-12)


# ---- parallel, groups, subsamples ------------------------------------------------------------------------------


def test_parallel_composition_depends_on_the_neighbours():
    """Adding or removing one costs the largest; replacing one twice the largest unless cells say what it costs inside."""
    assert parallel([0.1, 0.5, 0.4], adjacency=ADD_OR_REMOVE_ONE) == Fraction(1, 2)
    assert parallel([0.1, 0.5, 0.4], adjacency=REPLACE_ONE) == 1
    assert parallel([0.1, 0.5, 0.4], adjacency=REPLACE_ONE, within=[0.1, 0.5, 0.4]) == Fraction(9, 10)
    assert parallel([0.1, 0.5, 0.4], adjacency="replace_one", within=[2, 0.5, 0.4]) == 2
    assert parallel([3], adjacency=REPLACE_ONE, within=[3]) == 3
    with pytest.raises(InvalidParameter, match="at least one"):
        parallel([], adjacency=REPLACE_ONE)
    with pytest.raises(InvalidParameter, match="as many as epsilons"):
        parallel([1, 2], adjacency=REPLACE_ONE, within=[1])


def test_two_cells_lose_both_epsilons_when_a_record_moves():
    """Counts (5, 5) and (4, 6) with Laplace noise of scale 1/ε: the loss at (10, 0) is 2 ε, not the largest ε."""
    epsilon = 0.7

    def log_density(counts):
        return -sum(abs(x - c) for x, c in zip((10, 0), counts, strict=True)) * epsilon

    loss = log_density((5, 5)) - log_density((4, 6))
    assert loss == pytest.approx(2 * epsilon)
    assert loss > parallel([epsilon, epsilon], adjacency=ADD_OR_REMOVE_ONE)
    assert loss <= parallel([epsilon, epsilon], adjacency=REPLACE_ONE) + 1e-12


def test_a_record_changed_inside_the_costliest_cell_can_cost_twice_its_epsilon():
    """A mechanism on one cell that is ε-private for adding or removing loses 2 ε on a replacement: not ε1 + ε2."""
    large, small = 1.0, 0.1
    # The cell's answer is a fair sign of (records of kind A) − (records of kind B), with randomised response of ε a step:
    # databases {A}, {}, {B} have probabilities e^ε, 1, e^−ε over a common total for the first output.
    total = math.exp(large) + 1
    first = {"A": math.exp(large) / total, "": 1 / total, "B": math.exp(-large) / total}
    for one, other in (("A", ""), ("", "B")):
        for get in (lambda p: p, lambda p: 1 - p):
            ratio = math.log(get(first[one]) / get(first[other]))
            assert abs(ratio) <= large + 1e-12
    loss = math.log(first["A"] / first["B"])
    assert loss == pytest.approx(2 * large)
    assert loss > large + small
    assert loss <= parallel([large, small], adjacency=REPLACE_ONE) + 1e-12


def test_groups_have_their_tight_delta():
    """The geometric sum has its known values and is attained; k e^k δ would be false."""
    epsilon, delta = group_epsilon_delta(3, 0.001, size=2)
    assert epsilon == 6
    assert_near(delta, 0.021085536923187667)
    assert_near(group_epsilon_delta(1, 1e-9, size=10)[1], 1.2818308050524605e-05)
    assert_near(group_epsilon_delta(0.1, 1e-6, size=5)[1], 6.168257181e-6, relative=1e-9)
    # P(1) = δ(1 + e³), δ, 0 on three inputs: each neighbouring pair is (3, δ)-private.
    first, second, third = 0.001 * (1 + math.exp(3)), 0.001, 0.0
    assert first - math.exp(3) * second <= 0.001 + 1e-15
    assert first - math.exp(6) * third == pytest.approx(delta)
    assert first > 2 * math.exp(2) * 0.001
    assert group_epsilon_delta(0, 1e-3, size=7)[1] == pytest.approx(7e-3, rel=1e-13)
    assert group_epsilon_delta(5, 0, size=1000) == (5000, 0)
    for size in (9, 10**6):
        with pytest.raises(NotPrivate, match="no guarantee left"):
            group_epsilon_delta(3, 0.001, size=size)


def test_groups_under_renyi_need_a_large_order():
    """(32, 0.1) with three doublings is (4, 2.7); the resulting order must be at least 3/2."""
    assert group_renyi(32, 0.1, doublings=3) == (4, Fraction(27, 10))
    assert group_renyi(12, 1, doublings=3) == (Fraction(3, 2), 27)
    assert group_renyi(1.2, 1, doublings=0) == (Fraction(6, 5), 1)
    with pytest.raises(NotPrivate, match="alpha must be at least"):
        group_renyi(11.99, 1, doublings=3)
    for bad in (1, 0.5, math.nan, "abc"):
        with pytest.raises(InvalidParameter, match="alpha must be"):
            group_renyi(bad, 1, doublings=1)


@laws
@given(st.floats(1e-3, 0.3), st.floats(1e-3, 0.3), st.floats(3, 20))
def test_the_doubling_holds_for_chains_of_bernoullis(start, step, alpha):
    """D at half the order over two steps is at most 3 times the worst single step, in both directions."""

    def divergence(p, q, order):
        moment = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
        return math.log(moment) / (order - 1)

    chain = (start, start + step, min(0.95, start + 2.5 * step))
    worst = max(divergence(chain[i], chain[j], alpha) for i, j in ((0, 1), (1, 0), (1, 2), (2, 1)))
    order, bound = group_renyi(alpha, worst, doublings=1)
    assert max(divergence(chain[0], chain[2], float(order)), divergence(chain[2], chain[0], float(order))) <= bound


def test_groups_of_concentrated_and_gaussian_privacy_are_exact():
    """rho grows with the square of the group, mu with its size."""
    assert group_rho(0.1, size=3) == Fraction(9, 10)
    assert group_mu("0.1", size=3) == Fraction(3, 10)


def test_subsampling_amplifies():
    """log(1 + q (e^ε − 1)) has its known value; rate 1 changes nothing; rates are probabilities above 0."""
    epsilon, delta = subsample_epsilon_delta(1, 1e-5, rate=0.01)
    assert_near(epsilon, 0.01703686323617655)
    assert delta == Fraction(1, 10**7)
    assert subsample_epsilon_delta(1.25, 0, rate=1) == (1.25, 0)
    assert subsample_epsilon_delta(900, 0, rate=0.5)[0] == pytest.approx(900 - math.log(2), rel=1e-14)
    assert subsample_epsilon_delta(0, 0.5, rate=0.5) == (0, Fraction(1, 4))
    for bad in (0, 1.01, -0.1, math.nan, "abc", True):
        with pytest.raises(InvalidParameter, match="rate must be"):
            subsample_epsilon_delta(1, 0, rate=bad)


# ---- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, True, -1, "abc", None])
def test_bad_numbers_are_refused(bad):
    """NaN, infinities, booleans, negatives and words are refused in the one sentence form."""
    for call in (
        lambda: basic([bad]),
        lambda: advanced(bad, count=2, delta=0, delta_prime=0.1),
        lambda: advanced_kov(1, count=2, delta=0, delta_prime=bad),
        lambda: per_step(bad, count=2, delta_prime=0.1),
        lambda: mironov_corollary(bad, count=2, delta=0.1),
        lambda: mironov_factor(1, count=2, probability=bad),
        lambda: optimal_delta(bad, count=2, epsilon=1),
        lambda: optimal_epsilon(1, count=2, delta=bad),
        lambda: optimal_epsilon(1, count=bad, delta=0.1),
        lambda: laplace_delta(1, epsilon=bad),
        lambda: parallel([bad], adjacency=REPLACE_ONE),
        lambda: group_epsilon_delta(bad, 0, size=2),
        lambda: group_epsilon_delta(1, 0, size=bad),
        lambda: group_rho(bad, size=2),
        lambda: group_mu(1, size=bad),
    ):
        with pytest.raises(InvalidParameter, match=r" must be .*; got "):
            call()


def test_bad_options_are_refused():
    """Fractions of a count, unknown forms, deltas of 0 and unknown neighbours are refused."""
    for call in (
        lambda: optimal_delta(1, count=2.5, epsilon=1),
        lambda: optimal_delta(1, count=0, epsilon=1),
        lambda: optimal_delta(1e7, count=2, epsilon=1),
        lambda: drv_epsilon(1, count=2, delta_prime=0),
        lambda: kov_epsilon(1, count=2, delta_prime=0.1, form="best"),  # type: ignore[arg-type] -- on purpose
        lambda: mironov_factor(1, count=2, probability=0.1, form="best"),  # type: ignore[arg-type] -- on purpose
        lambda: parallel([1], adjacency="bounded"),
    ):
        with pytest.raises(InvalidParameter):
            call()
