"""Caps that follow from noisy numbers of units by doubling steps: the ones that looking would choose, or near them."""

import math
from fractions import Fraction

import pytest

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.plan.counting import (
    SELDOM,
    Steps,
    choose_groups,
    choose_in_group,
    choose_rows,
    doubling_tops,
    lost_rows,
)
from curador.privacy.adjacency import Adjacency
from curador.privacy.sensitivity import Norm, Sensitivity

ADJACENCY = Adjacency.ADD_OR_REMOVE_ONE
GAUSSIAN = DiscreteGaussian(sigma=10, sensitivity=Sensitivity(Fraction(1), Norm.L2, ADJACENCY))
LAPLACE = DiscreteLaplace(scale=10, sensitivity=Sensitivity(Fraction(1), Norm.L1, ADJACENCY))


TOPS = doubling_tops(1024)


def steps(units, tops=TOPS, noise=GAUSSIAN):
    """Steps with these numbers of units, by the rows they have, and no noise in them."""
    blank = Steps(tops, (0,) * (len(tops) + 1), noise)
    counts = [0] * len(blank.lows)
    for rows, number in units.items():
        counts[max(place for place, low in enumerate(blank.lows) if low <= rows)] += number
    return Steps(tops, tuple(counts), noise)


def test_steps_lie_side_by_side():
    """Every number of rows is in one step; the last one has no end."""
    one = steps({})
    assert one.lows == (1, 2, 3, 5, 9, 17, 33, 65, 129, 257, 513, 1024)
    assert one.highs == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1023, 1024)
    assert steps({}, doubling_tops(2)).lows == (1, 2)
    assert sum(steps({1: 1, 1023: 1, 1024: 1, 5_000: 1}).counts[-2:]) == 3


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_a_step_is_occupied_where_noise_would_fill_it_once_in_ten_thousand(noise):
    """The limit is the noise's own, on one side."""
    reach = math.ceil(noise.half_width(1 - 2 * SELDOM))
    assert steps({4: reach}, noise=noise).occupied[2] == (reach > noise.half_width(1 - 2 * SELDOM))
    assert steps({4: reach + 1}, noise=noise).occupied[2]
    assert not any(steps({4: reach - 1}, noise=noise).occupied)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_what_is_recorded_is_read_again(noise):
    """Both noises, as the ledger keeps them."""
    one = steps({1: 100, 40: 7}, noise=noise)
    assert Steps.from_record(one.record(), ADJACENCY) == one


def test_the_cap_on_rows_is_where_noise_and_loss_are_smallest():
    """By hand: one row each needs no more than 1; many with many rows are worth their noise; few are not."""
    assert choose_rows(steps({1: 5_000}), 10.0) == 1
    assert choose_rows(steps({64: 5_000}), 10.0) == 64
    assert choose_rows(steps({1: 5_000, 1_024: 40}), 10.0) == 1024
    assert choose_rows(steps({1: 5_000, 1_024: 40}), 10_000.0) == 1
    assert choose_rows(steps({1: 5_000, 1_024: 5}), 10.0) == 1, "five units are fewer than noise hides"


@pytest.mark.parametrize("spread", [1.0, 14.0, 200.0])
@pytest.mark.parametrize("units", [{1: 900, 7: 400, 100: 200}, {20: 3_000}, {3: 100, 600: 100}])
def test_no_other_cap_is_better(units, spread):
    """All caps, by the same sum of squares."""
    one = steps(units)
    errors = {cap: math.hypot(cap * spread, lost_rows(one, cap)) for cap in one.tops}
    assert errors[choose_rows(one, spread)] == min(errors.values())


def test_where_nothing_is_seen_the_cap_is_between_few_and_the_whole_tables():
    """As many times above the cap for what noise hides as it is below that of the table."""
    none = steps({50: 20})
    hidden = GAUSSIAN.half_width(1 - 2 * SELDOM) / 10.0
    assert choose_rows(none, 10.0) == 2 ** round(math.log2(hidden))
    assert choose_rows(none, 10.0, whole=256) == 2 ** round(math.log2(math.sqrt(hidden * 256)))
    assert choose_rows(none, 10.0, whole=1) == choose_rows(none, 10.0)
    assert choose_rows(steps({64: 5_000}), 10.0, whole=1) == 64, "what is seen decides"


def test_the_cap_on_groups():
    """One group each needs one; the more memberships lie beyond a cap, the higher it is."""
    assert choose_groups(steps({})) == 1
    assert choose_groups(steps({1: 5_000})) == 1
    assert choose_groups(steps({16: 5_000})) >= 8
    assert choose_groups(steps({1: 5_000, 16: 100})) <= choose_groups(steps({1: 100, 16: 5_000}))


def test_the_cap_on_rows_of_one_group():
    """Within the cap on rows; as low as what units have in their largest group."""
    assert choose_in_group(steps({1: 5_000}), 64, 8, 10.0, parts=8) == 1
    assert choose_in_group(steps({64: 5_000}), 64, 2, 10.0, parts=2) == 64
    assert choose_in_group(steps({1_024: 5_000}), 16, 4, 10.0, parts=4) <= 16


def test_neighbours_are_occupied_together():
    """Each below the limit, together above √2 of it: they count; with a third part of them they do not."""
    limit = GAUSSIAN.half_width(1 - 2 * SELDOM)
    each = math.floor(limit)
    assert 2 * each * 60 < lost_rows(steps({100: each, 200: each}), 1) < 2 * each * 128
    assert lost_rows(steps({100: each // 3, 200: each // 3}), 1) == 0
    assert lost_rows(steps({100: each, 1_000: each}), 1) == 0, "no neighbours"
