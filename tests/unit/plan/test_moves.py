"""Sensitivities of capped contributions against brute force over everything a unit can contribute."""

import itertools

import pytest

from curador.plan.model import Contribution
from curador.plan.sensitivity import count_norms, moves, presence_moves
from curador.privacy.adjacency import Adjacency

GROUPS = 3


def counts(contribution):
    """All counts of one unit's rows over three groups that the caps allow."""
    width = GROUPS if contribution.keyed else 1
    for found in itertools.product(range(contribution.in_group + 1), repeat=width):
        if sum(found) <= contribution.rows and sum(one > 0 for one in found) <= contribution.groups:
            yield found


def contributions(contribution, lowest, highest):
    """The extreme contributions: in each group every row at one end or at 0, which is where a norm is largest."""
    ends = {0, lowest, highest}
    for found in counts(contribution):
        choices = [{count * end for end in ends} for count in found]
        yield from itertools.product(*choices)


def brute_force(contribution, lowest, highest, adjacency):
    held = set(contributions(contribution, lowest, highest))
    others = held if adjacency is Adjacency.REPLACE_ONE else {(0,) * len(next(iter(held)))}
    pairs = list(itertools.product(held, others))
    one = max(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x, y in pairs)
    two = max(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x, y in pairs)
    return one, two


CAPS = [
    Contribution(rows, groups, in_group, keyed)
    for rows, groups, in_group in [(1, 1, 1), (2, 1, 2), (2, 2, 1), (3, 2, 2), (3, 3, 3), (4, 2, 3), (5, 3, 2)]
    for keyed in (True,)
] + [Contribution(rows, 1, rows, keyed=False) for rows in (1, 2, 4)]
ENDS = [(0, 1), (-1, 1), (2, 5), (-3, 7), (-5, -2), (0, 0), (-4, 0)]


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("contribution", CAPS, ids=str)
def test_moves_cover_every_pair_of_neighbours(contribution, adjacency):
    """No contribution that the caps allow moves the groups further; adding or removing, the bound is reached."""
    for lowest, highest in ENDS:
        one, two = moves(contribution, lowest, highest, adjacency)
        true_one, true_two = brute_force(contribution, lowest, highest, adjacency)

        assert one >= true_one
        assert two >= true_two
        if adjacency is Adjacency.ADD_OR_REMOVE_ONE:
            assert (one, two) == (true_one, true_two)


def test_replacing_is_tight_where_all_rows_have_one_sign_or_the_ends_are_symmetric():
    """Where a bare row cap has one group a unit, the square is exact for [0, b] and [-b, b]."""
    contribution = Contribution(3, 3, 3, keyed=True)

    for lowest, highest in [(0, 1), (-1, 1), (-4, 0)]:
        assert (
            moves(contribution, lowest, highest, Adjacency.REPLACE_ONE)[1]
            == (brute_force(contribution, lowest, highest, Adjacency.REPLACE_ONE)[1])
        )


def test_the_square_root_of_two_is_no_rule():
    """A signed sum can flip inside one group: 2, where √2 times the other adjacency's number would say 1.414."""
    contribution = Contribution(1, 1, 1, keyed=True)

    assert moves(contribution, -1, 1, Adjacency.ADD_OR_REMOVE_ONE)[1] == 1
    assert moves(contribution, -1, 1, Adjacency.REPLACE_ONE)[1] == 4


@pytest.mark.parametrize(
    ("rows", "groups", "in_group", "squared"),
    [(6, 4, 2, 12), (5, 3, 5, 25), (10, 4, 10, 100), (10, 10, 1, 10), (7, 2, 3, 18)],
)
def test_the_length_of_capped_counts(rows, groups, in_group, squared):
    """√(q r² + s²), and m for a bare row cap, never √m."""
    assert count_norms(Contribution(rows, groups, in_group, keyed=True))[1] == squared


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("contribution", CAPS, ids=str)
@pytest.mark.parametrize("most", [1, 2])
def test_counts_of_different_things(contribution, adjacency, most):
    """A unit adds at most `most` things to a group, and no more than it has rows there."""
    held = {tuple(min(one, most) for one in found) for found in counts(contribution)}
    others = held if adjacency is Adjacency.REPLACE_ONE else {(0,) * len(next(iter(held)))}
    pairs = list(itertools.product(held, others))
    one, two = presence_moves(contribution, most, adjacency)

    assert one >= max(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x, y in pairs)
    assert two >= max(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x, y in pairs)


@pytest.mark.parametrize("contribution", CAPS, ids=str)
def test_replacing_is_not_overcharged(contribution):
    """Without keys the bounds are reached; with keys the length in l1 is that of two units with nothing in common."""
    for lowest, highest in ENDS:
        found = moves(contribution, lowest, highest, Adjacency.REPLACE_ONE)
        alone = moves(contribution, lowest, highest, Adjacency.ADD_OR_REMOVE_ONE)

        if contribution.keyed:
            assert found[0] == 2 * alone[0]
        else:
            assert found == brute_force(contribution, lowest, highest, Adjacency.REPLACE_ONE)


def spread(rows, most, groups):
    """All ways to have at most `most` things in each of `groups` groups, and no more than rows."""
    return [found for found in itertools.product(range(most + 1), repeat=groups) if sum(found) <= rows]


@pytest.mark.parametrize("most", [1, 2, 3, 5])
@pytest.mark.parametrize("contribution", CAPS, ids=str)
def test_counts_of_different_things_are_not_overcharged(contribution, most):
    """The bounds are reached: with keys by two units that have nothing in common, without by one that has nothing."""
    inside = min(most, contribution.in_group, contribution.rows)
    held = spread(contribution.rows, inside, contribution.groups)
    alone = max(map(sum, held)), max(sum(one * one for one in found) for found in held)
    twice = 2 if contribution.keyed else 1

    assert presence_moves(contribution, most, Adjacency.ADD_OR_REMOVE_ONE) == alone
    assert presence_moves(contribution, most, Adjacency.REPLACE_ONE) == (twice * alone[0], twice * alone[1])


def test_the_brute_force_can_fail():
    """A sensitivity of the upper bound alone is caught."""
    contribution = Contribution(2, 2, 1, keyed=True)

    assert brute_force(contribution, -3, 1, Adjacency.ADD_OR_REMOVE_ONE)[0] > 1 * 2
