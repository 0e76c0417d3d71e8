from __future__ import annotations

import copy
import datetime as dt
import enum
import itertools
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from curador.audit.replay import replay
from curador.errors import InvalidParameter
from curador.mechanisms.keys import HIDDEN, GaussianKeys, LaplaceKeys, from_mapping, sort_key, sorted_places
from curador.mechanisms.optimal_keys import LONGEST, ONE, OptimalKeys
from curador.mechanisms.seam import recording, replaying
from curador.mechanisms.tails import (
    any_of,
    delta_for_record,
    exponential,
    first_whole,
    gaussian_tail,
    laplace_tail,
    round_up_digits,
    share_of,
)
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import Approx, KeySelection, loss_from_record
from curador.privacy.rules import to_record
from curador.randomness.injected import Scripted, Seeded

FALSE_ALARM = 1e-9
RUNS = 100_000
MILLI = Fraction(1, 1000)


def gaussian(keys=1, delta="1e-3", **others):
    return GaussianKeys.calibrate(rho="0.5", delta_keys=delta, keys=keys, **others)


def laplace(keys=1, delta="1e-3", **others):
    return LaplaceKeys(epsilon=1, delta=delta, keys=keys, **others)


def optimal(keys=1, delta="1e-3", **others):
    return OptimalKeys(epsilon=1, delta=delta, keys=keys, **others)


ALL = pytest.mark.parametrize("make", [gaussian, laplace, optimal])
NOISY = pytest.mark.parametrize("make", [gaussian, laplace])


def shown(mechanism, counts, size):
    """Which keys are shown in each of `size` releases."""
    released = mechanism.release_many(counts, size)
    return released if released.dtype == bool else ~np.isnan(released)


# ---- what is shown ----------------------------------------------------------------------------------------------------


@ALL
def test_keys_held_by_many_are_shown_and_absent_ones_never(make):
    """A key with 10,000 units passes, one with 0 units never does, in a mapping and in an array."""
    mechanism = make()
    assert list(mechanism.release({"b": 10_000, "a": 10_000, "nobody": 0})) == ["a", "b"]
    rows = shown(mechanism, [0, 10_000, 0], 20_000)
    assert rows[:, 1].all()
    assert not rows[:, [0, 2]].any()


@NOISY
def test_absent_keys_stay_hidden_under_the_largest_noise(make):
    """Noise beyond the threshold shows a key with one unit and not a key with none."""
    drawn = fixed_noise(make(), lambda line: line)
    assert drawn[1, 0] != HIDDEN
    assert drawn[0].tolist() == [HIDDEN, 0]


def fixed_noise(mechanism, noise_of, counts=(0, 1)):
    """Draw with noise of a chosen number of steps, given the threshold in steps."""

    class Stub:
        def several(self, size, _source):
            return np.full(size, noise_of(int(mechanism.threshold / mechanism.grid)), np.int64)

    class Fixed(type(mechanism)):
        __slots__ = ()

        def _noise(self):
            return Stub()

    double = object.__new__(Fixed)
    for name in type(mechanism).__slots__:
        object.__setattr__(double, name, getattr(mechanism, name))
    return double.draw(np.array(counts), None)


@NOISY
def test_the_threshold_itself_passes_and_a_step_below_does_not(make):
    """units·G + N ≥ τ·G to the step, so that the tail P[N ≥ (τ − 1)G] is the chance of a lone key."""
    grain = int(1 / make().grid)
    assert fixed_noise(make(), lambda line: line - grain)[1, 0] != HIDDEN
    assert fixed_noise(make(), lambda line: line - grain - 1)[1, 0] == HIDDEN


def test_a_strict_comparison_on_whole_units_would_be_off_by_e_to_the_epsilon():
    """P[N ≥ m] is e^ε P[N > m] for discrete Laplace noise of scale 1/ε: 2.7 times at 1, 55 times at 4."""
    for epsilon, factor in ((1, 2.718281828), (4, 54.59815003)):
        scale = Fraction(1, epsilon)
        ratio = laplace_tail(scale, 9).upper / laplace_tail(scale, 10).upper
        assert float(ratio) == pytest.approx(factor, rel=1e-9)


@pytest.mark.slow
@NOISY
def test_noisy_counts_are_near_the_counts(make):
    """Errors of shown counts far above the threshold lie in the interval as often as it says (false alarm 1e-9)."""
    mechanism = make()
    errors = mechanism.release_many([5_000_000_000], RUNS)[:, 0] - 5_000_000_000
    inside = int((np.abs(errors) <= mechanism.interval("0.95").upper).sum())
    assert FALSE_ALARM / 2 < binom.cdf(inside, RUNS, 0.95) < 1 - FALSE_ALARM / 2
    spread = mechanism.variance / RUNS
    assert abs(errors.mean()) < 6.2 * spread**0.5
    assert np.var(errors) == pytest.approx(mechanism.variance, rel=0.06)  # 8 deviations of the variance of Laplace noise


def test_counts_too_large_for_the_grid_keep_their_last_unit():
    """2⁶¹ units on a grid of 2⁻³⁸ do not overflow."""
    mechanism = gaussian()
    drawn = mechanism.draw(np.array([1 << 61]), Seeded(1))
    assert abs(int(drawn[0, 0]) - (1 << 61)) < 100


@ALL
def test_releases_do_not_depend_on_the_order_of_the_data(make):
    """The same entropy gives the same answer whatever order the mapping is in."""
    counts = {f"city {i}": 3 + i for i in range(40)} | {None: 50, 3: 60, 2.5: 60, (1, "x"): 60, dt.date(2020, 1, 1): 60}
    pairs = list(counts.items())
    with recording() as calls:
        first = make().release(counts)
    random.shuffle(pairs)
    with replaying(calls) as again:
        second = make().release(dict(pairs))
    assert list(first) == list(second)
    assert again[0].value.keys == calls[0].value.keys
    assert again[0].value.numbers.tolist() == calls[0].value.numbers.tolist()


def test_keys_of_many_kinds_are_sorted():
    """Numbers by size whatever their type, texts by letter, tuples place by place, nothing first."""
    keys = [("b", None), ("a", 2), "z", "y", 2, Decimal("1.5"), Fraction(1, 3), float("nan"), None, b"x", np.str_("zz")]
    chosen = OptimalKeys(epsilon=1, delta="0.1").release(dict.fromkeys(keys, 1000))
    assert chosen[:4] == [None, Fraction(1, 3), Decimal("1.5"), 2]
    assert chosen[5:] == [b"x", "y", "z", "zz", ("a", 2), ("b", None)]


@ALL
def test_nothing_in_nothing_out(make):
    """No keys at all is an answer, not an error: an error would tell that nobody is there."""
    assert len(make().release({})) == 0
    assert len(make().release({"a": 0})) == 0
    assert make().release_many([], 3).shape == (3, 0)


class Column:
    """A column of a table: an array to NumPy, and none of its own."""

    def __init__(self, values, dtype):
        self.values = np.array(values, dtype)

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.slow
@ALL
@pytest.mark.parametrize("dtype", [np.int64, np.uint16, object])
def test_an_empty_column_is_an_answer_if_a_full_one_is(make, dtype):
    """A column of integers, an array or not, may lose its last row; whether floats are refused does not depend on rows."""
    for values in (np.array, Column):
        assert shown(make(), values([10_000], dtype), 2).tolist() == [[True]] * 2
        assert shown(make(), values([], dtype), 2).shape == (2, 0)
        for rows in ([], [10_000]):
            with pytest.raises(InvalidParameter):
                make().release(values(rows, np.float64))
            with pytest.raises(InvalidParameter):
                make().release(values(rows, np.int64).__array__().reshape(-1, 1))


class Colour(enum.Flag):
    """Members without a name of their own: none, and both."""

    RED = 1
    BLUE = 2


@ALL
def test_a_key_of_any_type_has_a_place(make):
    """Nobody can be told by a refusal that somebody holds a key of an unusual type; the order of the data stays hidden."""
    sizes = [2, np.int8(7), Fraction(1, 3), Decimal("1e400"), Decimal("1e-400"), 10**401, float("inf"), np.float32(0.5)]
    known = ["a", None, (1, "a"), np.longdouble("0.1"), Colour(0), Colour.RED, Colour.RED | Colour.BLUE, np.datetime64("NaT")]
    unknown = [frozenset({8, 0}), frozenset({1, "x"}), 1j, range(3), np.True_, object(), int, (frozenset(), 1j)]
    keys = sizes + known + unknown
    everyone = dict.fromkeys(keys, 10_000)
    assert len(everyone) == len(keys)
    orders = []
    for _ in range(5):
        random.shuffle(keys)
        orders.append([id(key) for key in make().release({key: everyone[key] for key in keys})])
    assert len(orders[0]) == len(keys)
    assert all(one == orders[0] for one in orders)


def test_equal_sets_have_one_place():
    """A set is ordered by its members, though the texts of two equal sets can differ."""
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert repr(one) != repr(other)
    between = frozenset([0, 9])
    for key in (one, other):
        assert from_mapping({between: 1, key: 1}).keys == (one, between)


NOON = dt.datetime(2024, 2, 3, 12)  # noqa: DTZ001 -- as keys are
PLAIN = {
    "int": lambda: random.choice([random.randint(-3, 3), 1 << 63, -(1 << 70), 1 << 53, (1 << 53) + 1]),
    "float": lambda: random.choice([0.0, -0.5, 1e300, float("-inf"), 2.0**53]),
    "str": lambda: random.choice(["", "a", "B", "ä", "a b", "ab", "\U0001f600"]),
    "bool": lambda: random.random() < 0.5,
    "date": lambda: dt.date(random.choice([1, 999, 2024, 9999]), 2, 3),
    "datetime": lambda: NOON.replace(year=random.choice([1, 2024]), microsecond=random.choice([0, 1, 500_000])),
}


@pytest.mark.parametrize("seed", range(300))
def test_plain_keys_are_in_the_order_of_all_keys(seed):
    """What is sorted column by column stands where every key has its place, NULLs and numbers of any size among them."""
    random.seed(seed)
    kinds = [random.choice(list(PLAIN)) for _ in range(random.randint(1, 3))]
    made = {tuple(None if random.random() < 0.2 else PLAIN[kind]() for kind in kinds) for _ in range(random.randint(0, 12))}
    for keys in (list(made), list({key[0] for key in made})):
        random.shuffle(keys)
        assert [keys[place] for place in sorted_places(keys)] == sorted(keys, key=sort_key)


@pytest.mark.parametrize("odd", [float("nan"), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), Decimal(1), 2, b"a"])
def test_keys_of_several_kinds_have_the_same_order(odd):
    """One key of another kind sends all of them the slow way."""
    keys = [(1.5,), (odd,), (None,), (0.5,)]
    assert [keys[place] for place in sorted_places(keys)] == sorted(keys, key=sort_key)


@NOISY
def test_keys_that_cannot_be_told_apart_come_by_their_noisy_counts(make):
    """Several NaNs say nothing about the order in which the data brought them: the smaller noisy count is first."""
    for units in itertools.permutations((10_000, 20_000, 30_000)):
        counts = list(make().release({float("nan"): held for held in units}).values())
        assert len(counts) == 3
        assert counts == sorted(counts)


# ---- replays ----------------------------------------------------------------------------------------------------------

NEIGHBOURS = [
    ({"a": 50}, {"a": 50, "b": 1}),
    ({}, {"a": 1}),
    ({"a": 50, "b": 0}, {"a": 50, "b": 1}),
    ({"b": 50, "a": 60}, {"a": 61, "b": 50}),
    ({float("nan"): 50, (float("nan"), 1): 7}, {float("nan"): 51, (float("nan"), 1): 7}),
    ({float("nan"): 50, "a": 3} | {float("nan"): 20}, {float("nan"): 20, "a": 3} | {float("nan"): 51}),
]

STRANGERS = [
    ({"a": 50}, {"a": 50, "b": 1, "c": 1}),
    ({"a": 50}, {"a": 51, "b": 1}),
    ({"a": 50}, {"b": 50}),
    ({"a": 1}, {"b": 1}),
    ({"a": 50}, {"a": 50, "b": 2}),
    ({1: 50}, {1.0: 51}),
    ({float("nan"): 50}, {float("nan"): 52}),
]


@ALL
@pytest.mark.parametrize(("one", "other"), NEIGHBOURS)
def test_neighbours_with_other_keys_replay(make, one, other):
    """A key that only one world has is one unit; what the first world showed is shown again, whatever the second holds."""
    mechanism = make()
    for pair in ((one, other), (other, one)):
        assert replay(mechanism.release, *pair).violations == ()


@ALL
@pytest.mark.parametrize(("one", "other"), STRANGERS)
def test_more_than_one_key_of_a_person_is_a_violation(make, one, other):
    """Two keys where one was declared, two units of a key, a key renamed, or a key of another type, in both directions."""
    mechanism = make()
    for pair in ((one, other), (other, one)):
        (violation,) = replay(mechanism.release, *pair).violations
        assert "further apart than its declared sensitivity" in violation


@ALL
def test_mappings_allow_what_was_declared(make):
    """Two keys where two were declared, and one lost for one won where a person is replaced; an array is no mapping."""
    assert replay(make(2).release, {"a": 50}, {"a": 51, "b": 1}).holds
    assert replay(make(1, adjacency="replace_one").release, {"a": 1}, {"b": 1}).holds
    assert not replay(make(2).release, {"a": 50}, {"a": 51, "b": 0, "c": 1, "d": 1}).holds
    assert not replay(lambda world: len(make().release(world)), {"a": 10_000}, [10_000]).holds


@ALL
def test_the_seam_gives_out_only_what_is_shown(make):
    """The recorded output names the keys that passed and no other; keys are not copied, numbers are."""
    alone = object()
    with recording() as calls:
        released = make().release({alone: 10_000, "hidden": 1})
    output = calls[0].output
    assert next(iter(released)) is output.keys[0] is alone
    assert "hidden" not in output.keys or len(released) == 2  # 1 in 1000 shows it
    assert len(output.keys) == len(output.numbers) == len(released)
    twin = copy.deepcopy(output)
    assert twin.keys[0] is alone
    assert not np.shares_memory(twin.numbers, output.numbers)


@ALL
@pytest.mark.parametrize("counts", [[1.5], [True], [-1], [[1, 2]], "ab", None, {"a": -1}, {"a": 1.5}])
def test_bad_counts_are_refused_without_repeating_them(make, counts):
    """Fractions, booleans, negative numbers, tables and texts are refused; no value of the data is in the sentence."""
    with pytest.raises(InvalidParameter, match=r"must be") as caught:
        make().release(counts)
    assert "1.5" not in str(caught.value)
    assert "-1" not in str(caught.value)


# ---- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@ALL
@pytest.mark.parametrize("keys", [1, 5])
def test_a_lone_person_shows_a_key_with_probability_delta(make, keys):
    """In 10⁵ runs a person alone with his keys is seen as often as δ says, not more, not less (false alarm 1e-9 each)."""
    mechanism = make(keys)
    seen = int(shown(mechanism, [1] * keys, RUNS).any(axis=1).sum())
    assert binom.sf(seen - 1, RUNS, float(MILLI)) > FALSE_ALARM
    assert binom.cdf(seen, RUNS, float(MILLI)) > FALSE_ALARM


@ALL
def test_a_threshold_for_one_key_is_caught_when_a_person_holds_five(make):
    """The same test sees the mutant that counts one key for a person with five: δ is five times too large."""
    mutant = make(1)
    seen = int(shown(mutant, [1] * 5, RUNS).any(axis=1).sum())
    assert binom.sf(seen - 1, RUNS, float(MILLI)) < FALSE_ALARM


@pytest.mark.parametrize(("rows", "chance"), [(1, 1e-6), (5, 5.46e-5), (10, 8.1e-3), (20, 0.9986)])
def test_rows_in_place_of_units_would_show_a_lone_person(rows, chance):
    """With ε = 1 and δ = 1e-6, counting a person's 20 rows as 20 units shows the key with probability 0.9986."""
    assert LaplaceKeys(epsilon=1, delta="1e-6", keys=1).pass_probability(rows) == pytest.approx(chance, rel=5e-3)


def test_the_loss_of_gaussian_keys_is_that_of_the_noise_drawn():
    """σ and one unit in grid steps, the person's keys, and the exact tail as δ, rounded up to 17 digits."""
    mechanism = GaussianKeys(sigma=3, threshold=20, keys=4)
    grain = int(1 / mechanism.grid)
    tail = gaussian_tail(Fraction(9 * grain**2), 19 * grain)
    loss = mechanism.loss
    assert isinstance(loss, KeySelection)
    assert (loss.sigma2, loss.sensitivity, loss.keys) == (9 * grain**2, grain, 4)
    assert any_of(tail.lower, 4) < loss.delta0 <= any_of(tail.upper, 4) * (1 + Fraction(1, 10**16))
    assert loss_from_record(to_record(loss)) == loss


def test_a_person_replaced_touches_twice_the_keys():
    """ρ doubles for replace_one; δ does not: only the keys of one of the two are alone in either world."""
    one, two = (GaussianKeys(sigma=3, threshold=20, keys=4, adjacency=a) for a in ("add_or_remove_one", "replace_one"))
    assert two.loss.keys == 2 * one.loss.keys
    assert two.loss.delta0 == one.loss.delta0
    assert laplace(3, adjacency=REPLACE_ONE).scale == 2 * laplace(3).scale
    assert laplace(3, adjacency=REPLACE_ONE).loss == Approx(
        epsilon=1, delta=laplace(3, adjacency=REPLACE_ONE).loss.delta0, adjacency="replace_one"
    )


@pytest.mark.parametrize("keys", [1, 3])
def test_gaussian_keys_calibrated_to_epsilon_meet_it(keys):
    """ε at δ is met by certified bounds, with δ/2 for the threshold, and missed with 0.1 % less noise."""
    mechanism = GaussianKeys.calibrate(epsilon=1, delta="1e-6", keys=keys)
    assert mechanism.loss.epsilon_interval("1e-6").upper <= 1
    assert Fraction(4999, 10**10) < mechanism.delta <= Fraction(5, 10**7)
    loss = mechanism.loss
    sigma2 = loss.sigma2 * Fraction(999, 1000) ** 2
    worse = KeySelection(sigma2=sigma2, sensitivity=loss.sensitivity, keys=keys, delta=loss.delta0)
    assert worse.epsilon_interval("1e-6").upper > 1


def test_gaussian_keys_calibrated_to_rho_have_the_smallest_threshold():
    """keys/2σ² ≤ ρ, and one grid step less than the threshold breaks delta_keys."""
    mechanism = GaussianKeys.calibrate(rho="0.1", delta_keys="1e-8", keys=3)
    assert 3 / (2 * mechanism.sigma**2) <= Fraction(1, 10) < 3 / (2 * mechanism.sigma**2) * (1 + Fraction(1, 10**10))
    lower = GaussianKeys(sigma=mechanism.sigma, threshold=mechanism.threshold - mechanism.grid, keys=3)
    assert mechanism.delta <= Fraction(1, 10**8) < lower.delta


def test_laplace_keys_have_the_smallest_threshold():
    """One grid step below the threshold, the chance of a lone key exceeds δ."""
    mechanism = LaplaceKeys(epsilon="0.7", delta="1e-9", keys=4)
    reach = int((mechanism.threshold - 1) / mechanism.grid)
    scale = mechanism.scale / mechanism.grid
    assert any_of(laplace_tail(scale, reach).upper, 4) <= Fraction(1, 10**9) < any_of(laplace_tail(scale, reach - 1).lower, 4)


@ALL
def test_within_knows_neighbours(make):
    """One unit more in at most `keys` keys is a neighbour; two units, a key too many, or up and down at once is not."""
    mechanism, base = make(2), np.array([4, 5, 6])

    def moved(*steps):
        return base + np.array(steps)

    assert mechanism.within(base, moved(1, 1, 0))
    assert not mechanism.within(base, moved(1, 1, 1))
    assert not mechanism.within(base, moved(2, 0, 0))
    assert not mechanism.within(base, moved(1, -1, 0))
    assert make(2, adjacency="replace_one").within(base, moved(1, -1, 1))
    assert not mechanism.within(base, np.array([4, 5]))


@pytest.mark.parametrize(
    "arguments",
    [
        {"keys": 1},
        {"keys": 1, "epsilon": 1},
        {"keys": 1, "rho": 1},
        {"keys": 1, "rho": 1, "epsilon": 1, "delta": "1e-6"},
        {"keys": 0, "rho": 1, "delta_keys": "1e-6"},
        {"keys": 1, "epsilon": 1, "delta": "1e-6", "delta_keys": "1e-6"},
        {"keys": 1, "rho": "1e-30", "delta_keys": "1e-6"},
    ],
)
def test_goals_that_say_too_little_or_too_much_are_refused(arguments):
    """A goal needs ρ and delta_keys, or ε and δ with room for both parts."""
    with pytest.raises(InvalidParameter):
        GaussianKeys.calibrate(**arguments)


# ---- optimal selection ------------------------------------------------------------------------------------------------


def test_a_uniform_word_below_the_probability_shows_the_key():
    """The 128-bit word is compared to its last bit: equal is hidden, one less is shown."""
    mechanism = optimal()
    chance = mechanism.table()[3]
    for word, kept in ((chance, False), (chance - 1, True), (0, True), (ONE - 1, False)):
        script = (word >> 64).to_bytes(8, "little") + (word & ((1 << 64) - 1)).to_bytes(8, "little")
        assert mechanism.draw(np.array([3]), Scripted(script)).tolist() == [kept]


@pytest.mark.slow
def test_optimal_selection_that_needs_too_long_a_table_is_refused():
    """A tiny ε is refused when the mechanism is made, not when data is there."""
    with pytest.raises(InvalidParameter, match=str(LONGEST)):
        OptimalKeys(epsilon="1e-6", delta="1e-9", keys=1)
    with pytest.raises(InvalidParameter, match=r"2\^-100"):
        OptimalKeys(epsilon=1, delta="1e-40", keys=1)


@pytest.mark.slow
def test_optimal_selection_shows_more_than_the_laplace_threshold():
    """At the same ε and δ no number of units is shown with a smaller probability."""
    best, other = OptimalKeys(epsilon=1, delta="1e-5", keys=2), LaplaceKeys(epsilon=1, delta="1e-5", keys=2)
    assert all(best.pass_probability(n) >= other.pass_probability(n) * (1 - 1e-9) for n in range(1, 60))


# ---- tails ------------------------------------------------------------------------------------------------------------


def test_tails_are_symmetric_and_fall():
    """P[N ≥ m] + P[N ≥ 1 − m] = 1 and P[N ≥ m] falls in m, at every scale."""
    for tail, parameter in ((laplace_tail, Fraction(7, 3)), (gaussian_tail, Fraction(2)), (gaussian_tail, Fraction(1000))):
        for reach in (1, 2, 5, 40):
            here, there = tail(parameter, reach), tail(parameter, 1 - reach)
            assert here.lower + there.lower <= 1 <= here.upper + there.upper
            assert tail(parameter, reach + 1).upper < here.lower


@pytest.mark.slow
def test_tails_far_out_are_tiny_and_not_zero():
    """Where even e^(−2¹⁴) is passed the upper end stays positive and the lower end says nothing."""
    for far in (
        laplace_tail(Fraction(1), 1 << 20),
        gaussian_tail(Fraction(4), 1 << 20),
        gaussian_tail(Fraction(1 << 60), 1 << 50),
    ):
        assert far.lower == 0
        assert 0 < far.upper < Fraction(1, 10**300)
    assert exponential(Fraction(5000)).lower > 0


@pytest.mark.parametrize("count", [2, 3, 1000, 10**6])
@pytest.mark.parametrize("single", [Fraction(1, 3), Fraction(1, 10**9), Fraction(7, 10**400)])
def test_any_of_many_rounds_up_and_its_share_down(single, count):
    """1 − (1 − p)^k is never below the truth; the share of a δ gives back at most δ."""
    upper = any_of(single, count)
    bonferroni = count * single - Fraction(count * (count - 1), 2) * single**2
    assert bonferroni <= upper <= min(count * single, 1)
    if count < 10:
        assert 0 <= upper - (1 - (1 - single) ** count) < single / 10**30
    if upper < 1:
        share = share_of(upper, count)
        assert any_of(share, count) <= upper
        assert share * (1 + Fraction(1, 10**25)) > single


@pytest.mark.parametrize("guess", [0, 1, 36, 37, 38, 1000])
def test_first_whole_finds_the_first(guess):
    """Whatever the guess, the smallest integer at which the condition holds."""
    assert first_whole(lambda n: n >= 37, guess) == 37
    assert first_whole(lambda _: True, guess, least=-5) == -5


def test_recorded_deltas_are_short_decimals_from_above():
    """At most 17 digits, never below, at least 1e-300."""
    assert round_up_digits(Fraction(1, 3)) >= Fraction(1, 3) > round_up_digits(Fraction(1, 3)) - Fraction(1, 10**16)
    assert round_up_digits(Fraction(1, 8)) == Fraction(1, 8)
    assert delta_for_record(Fraction(1, 10**400)) == Fraction(1, 10**300)
    assert delta_for_record(Fraction(0)) == 0
