from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.errors import InvalidParameter, NotPrivate
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency
from curador.privacy.divergence import Laplace, max_divergence
from curador.privacy.sensitivity import (
    Norm,
    Sensitivity,
    bounded_mean,
    bounded_sum,
    brute_force,
    count,
    counts,
    distance,
    histogram,
    histogram_of,
    norm_squared,
)

BLOOD_GROUPS = ("A+", "A-", "B+", "B-", "AB+", "AB-", "O+", "O-")
BOTH = pytest.mark.parametrize("adjacency", list(Adjacency))
NORMS = pytest.mark.parametrize("norm", list(Norm))


def films(database):
    """The favourite-film histogram: every record names one film."""
    return database


def test_histogram_of_a_table():
    """Eight patients become how many have each blood group."""
    patients = ["O+", "A+", "AB-", "B+", "A+", "O+", "A-", "AB+"]
    table = histogram_of(patients, BLOOD_GROUPS)
    assert table == (2, 1, 1, 0, 1, 1, 2, 0)
    assert sum(table) == 8
    assert histogram_of([], BLOOD_GROUPS) == (0,) * 8


def test_a_replacement_is_at_distance_two():
    """A record that leaves is one step, a record that changes is two."""
    assert distance((2, 1, 1), (2, 1, 0)) == 1
    assert distance((2, 1, 1), (1, 2, 1)) == 2
    assert distance((2, 1, 1), (2, 1, 1)) == 0


def test_length_of_a_vector():
    """The L1 length of (2, 3, -4, 6) is 15; its L2 length is √65."""
    assert norm_squared((2, 3, -4, 6), norm=Norm.L1) == 15**2
    assert norm_squared((2, 3, -4, 6), norm="L2") == 65


@pytest.mark.parametrize(
    ("adjacency", "norm", "squared"),
    [
        (ADD_OR_REMOVE_ONE, Norm.L1, 1),
        (ADD_OR_REMOVE_ONE, Norm.L2, 1),
        (REPLACE_ONE, Norm.L1, 4),
        (REPLACE_ONE, Norm.L2, 2),
    ],
)
def test_histogram_sensitivity_is_that_of_brute_force(adjacency, norm, squared):
    """Disjoint cells: 1 and 1 for add or remove, 2 and √2 for replace."""
    declared = histogram(adjacency, norm)
    assert declared == brute_force(films, range(3), 4, adjacency=adjacency, norm=norm)
    assert declared.value_squared == squared


@BOTH
@NORMS
def test_count_sensitivity_is_that_of_brute_force(adjacency, norm):
    """Counting the records with a property moves by 1 under both adjacencies."""
    declared = count(adjacency, norm)
    assert declared == brute_force(lambda h: h[0] + h[2], range(4), 3, adjacency=adjacency, norm=norm)
    assert declared.exact == 1


@BOTH
@NORMS
def test_counts_of_overlapping_properties(adjacency, norm):
    """Two counts that one record may hit both, adults and readers of a book: 2 in L1, √2 in L2."""
    # values of a record: neither, adult, reader, adult and reader
    both = brute_force(lambda h: (h[1] + h[3], h[2] + h[3]), range(4), 3, adjacency=adjacency, norm=norm)
    assert counts(2, adjacency=adjacency, norm=norm) == both
    assert both.exact == (2 if norm is Norm.L1 else None)
    assert both.value == (2 if norm is Norm.L1 else 1.4142135623730951)  # √2 = 1.41421356237309504…


@BOTH
@NORMS
@pytest.mark.parametrize("values", [(0, 1, 5), (-3, 0, 2), (-4, -2), (Fraction(1, 3), Fraction(1, 2)), (0.1, 0.3)])
def test_sum_sensitivity_is_that_of_brute_force(values, adjacency, norm):
    """A sum moves by its largest absolute value, or by its range where a record is replaced; exactly."""
    exact = [Fraction(str(value)) for value in values]
    declared = bounded_sum(min(values), max(values), adjacency=adjacency, norm=norm)
    assert declared == brute_force(
        lambda h: sum(n * x for n, x in zip(h, exact, strict=True)), values, 3, adjacency=adjacency, norm=norm
    )


def test_mean_sensitivity_is_that_of_brute_force():
    """The mean of n public records moves by (upper - lower)/n where one is replaced."""
    declared = bounded_mean(-1, 6, 4, adjacency=REPLACE_ONE, norm=Norm.L1)
    assert declared.exact == Fraction(7, 4)
    assert declared == brute_force(lambda h: Fraction(-h[0] + 6 * h[1], 4), (-1, 6), 4, adjacency=REPLACE_ONE, norm=Norm.L1)


def test_mean_under_add_or_remove_is_refused():
    """Where records come and go the size is not public: no sensitivity, but a way out is named."""
    with pytest.raises(NotPrivate, match=r"replace_one only(.|\n)*Hint: .*sum.*count"):
        bounded_mean(0, 1, 10, adjacency=ADD_OR_REMOVE_ONE, norm=Norm.L1)


def test_wrong_declared_sensitivity_of_the_film_histogram_is_caught():
    """Declared 1 for replace-one, a film histogram really moves by 2, and Laplace noise of 1/ε loses 2ε."""
    declared = Sensitivity(1, Norm.L1, REPLACE_ONE)
    found = brute_force(films, ("Alien", "Brazil"), 10, adjacency=REPLACE_ONE, norm=Norm.L1)
    assert found.exact == 2
    assert found.value > declared.value
    epsilon = Fraction(1, 2)
    noise = 1 / epsilon  # what the declared sensitivity asks for
    # Counts (5, 5) and (4, 6) are neighbours; independent noise on two cells adds the losses of the cells.
    loss = sum(max_divergence(Laplace(x, noise), Laplace(y, noise)) for x, y in ((5, 4), (5, 6)))
    assert loss == 2 * epsilon


def test_parallel_cells_are_not_parallel_under_replacement():
    """A changed record moves each of two disjoint cells by 1, and both together by 2."""
    for cell in (0, 1):
        alone = brute_force(lambda h, cell=cell: h[cell], range(2), 5, adjacency=REPLACE_ONE, norm=Norm.L1)
        assert alone.exact == 1
    together = {a: brute_force(films, range(2), 5, adjacency=a, norm=Norm.L1).exact for a in Adjacency}
    assert together == {ADD_OR_REMOVE_ONE: 1, REPLACE_ONE: 2}


def test_duplication_is_seen():
    """A query over records repeated a hundred times moves a hundred times as far."""
    repeated = brute_force(lambda h: 100 * h[0], range(2), 3, adjacency=ADD_OR_REMOVE_ONE, norm=Norm.L1)
    assert repeated.exact == 100


def test_brute_force_covers_all_sizes_for_add_or_remove():
    """A jump between the empty database and the first record is found, and only where sizes may differ."""

    def not_empty(database):
        return 7 if sum(database) else 0

    assert brute_force(not_empty, range(2), 3, adjacency=ADD_OR_REMOVE_ONE, norm=Norm.L1).exact == 7
    assert brute_force(not_empty, range(2), 3, adjacency=REPLACE_ONE, norm=Norm.L1).exact == 0


def test_brute_force_visits_every_pair_of_neighbours():
    """The databases evaluated are all multisets of the sizes in question."""
    seen = set()
    brute_force(lambda h: seen.add(h) or 0, range(3), 4, adjacency=ADD_OR_REMOVE_ONE, norm=Norm.L1)
    assert len(seen) == math.comb(4 + 3, 3)
    seen.clear()
    brute_force(lambda h: seen.add(h) or 0, range(3), 4, adjacency=REPLACE_ONE, norm=Norm.L1)
    assert {sum(database) for database in seen} == {4}
    assert len(seen) == math.comb(4 + 2, 2)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.fractions(min_value=0, max_value=10**12))
def test_value_is_the_root_rounded_up(square):
    """The float is at least the root and at most one float above it."""
    value = Sensitivity(square, Norm.L2, REPLACE_ONE).value
    assert Fraction(value) ** 2 >= square
    assert value == 0 or Fraction(math.nextafter(value, 0)) ** 2 < square


@pytest.mark.parametrize("square", ["1e-600", "1e-800", "2e-617", "2e300", "2e608"])
def test_value_at_the_ends_of_the_floats(square):
    """Squares far outside the floats have roots inside; what is below every float is not 0."""
    value = Sensitivity(Fraction(square), Norm.L2, REPLACE_ONE).value
    assert 0 < value < math.inf
    assert Fraction(value) ** 2 >= Fraction(square)


def test_value_is_above_a_root_just_above_a_float():
    """The root of 1 + 1e-60 is not 1, and rounding to nearest would say so."""
    assert Sensitivity(1 + Fraction(1, 10**60), Norm.L2, REPLACE_ONE).value == math.nextafter(1, 2)


def test_exact_is_given_where_the_root_is_rational():
    """9/4 has the root 3/2; 2 has none."""
    assert Sensitivity("9/4", "l2", "replace_one").exact == Fraction(3, 2)
    assert Sensitivity(2, Norm.L2, REPLACE_ONE).exact is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: count("somebody", Norm.L1),
        lambda: count(REPLACE_ONE, "l3"),
        lambda: counts(0, adjacency=REPLACE_ONE, norm=Norm.L1),
        lambda: counts(1.5, adjacency=REPLACE_ONE, norm=Norm.L1),
        lambda: bounded_sum(1, 0, adjacency=REPLACE_ONE, norm=Norm.L1),
        lambda: bounded_sum(0, math.inf, adjacency=REPLACE_ONE, norm=Norm.L1),
        lambda: bounded_mean(0, 1, 0, adjacency=REPLACE_ONE, norm=Norm.L1),
        lambda: Sensitivity(-1, Norm.L1, REPLACE_ONE),
        lambda: Sensitivity(math.nan, Norm.L1, REPLACE_ONE),
        lambda: Sensitivity(True, Norm.L1, REPLACE_ONE),
        lambda: histogram_of(["C+"], BLOOD_GROUPS),
        lambda: histogram_of([], ("A", "A")),
        lambda: distance((1,), (1, 2)),
        lambda: brute_force(films, range(40), 40, adjacency=REPLACE_ONE, norm=Norm.L1),
        lambda: brute_force(films, (), 2, adjacency=REPLACE_ONE, norm=Norm.L1),
        lambda: brute_force(lambda _: math.nan, range(2), 2, adjacency=REPLACE_ONE, norm=Norm.L1),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make):
    """Unknown names, empty or reversed bounds, NaN and searches without end are refused with their rule."""
    with pytest.raises(InvalidParameter, match=r"^.+ must be .+; got .+\."):
        make()


def test_adjacency_has_no_default():
    """Nobody gets a sensitivity without saying who is a neighbour of whom."""
    with pytest.raises(TypeError, match="adjacency"):
        bounded_sum(0, 1, norm=Norm.L1)  # pyright: ignore[reportCallIssue]
