"""Discrete Gaussian noise on vectors: the record, its rules, and where its two sides part."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import curador as cu
from curador.errors import InvalidParameter, NotPrivate
from curador.privacy.kinds.discrete_gaussian import attained_shift, attained_square, worst_shift
from curador.privacy.laws.gaussian import sandwich
from curador.privacy.laws.resolve import Direction, gaussian_shift, sides
from curador.privacy.losses import (
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    GaussianLoss,
    Pure,
    loss_from_record,
)

HUGE = 2**80


def vector(sigma2, squared, dimension, adjacency=None):
    return DiscreteGaussianVectorLoss(sigma2=sigma2, sensitivity_squared=squared, dimension=dimension, adjacency=adjacency)


# ---- the record -------------------------------------------------------------------------------------------------------


def test_the_record_survives_storage():
    """Written as plain values and read back it is the same record, with the same hash; its neighbours are kept."""
    loss = vector("7.5", 5, 3, "replace_one")
    record = loss.to_record()
    assert record == {
        "version": 1,
        "kind": "DiscreteGaussianVectorLoss",
        "sigma2": "15/2",
        "sensitivity_squared": 5,
        "dimension": 3,
        "relation": "replace_one",
    }
    assert loss_from_record(record) == loss
    assert hash(loss_from_record(record)) == hash(loss)
    assert loss.adjacency is cu.REPLACE_ONE
    assert len({loss, vector("7.5", 5, 4, "replace_one"), vector("7.5", 6, 3, "replace_one"), vector("7.5", 5, 3)}) == 4


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("sigma2", bad) for bad in (0, -1, math.nan, math.inf, True, "x", None)),
        *(("sensitivity_squared", bad) for bad in (-1, "1/2", 0.5, math.nan, True, "x", None)),
        *(("dimension", bad) for bad in (0, -1, "1/2", 1.5, math.inf, True, "x", None)),
    ],
)
def test_bad_parameters_are_refused_by_name(field, value):
    """Each parameter is checked when the record is made, and the sentence names it."""
    with pytest.raises(InvalidParameter, match=rf"^{field} must be"):
        DiscreteGaussianVectorLoss(**{"sigma2": 1, "sensitivity_squared": 1, "dimension": 1, field: value})


# ---- the exact scalars ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma2", ["0.3", "9", "1e12"])
def test_rho_and_the_renyi_curve(sigma2):
    """ρ is S/2σ², exactly; the divergence is αρ at every order, the mean loss is ρ, and there is no pure ε."""
    loss = vector(sigma2, 7, 5)
    rho = Fraction(7) / (2 * Fraction(sigma2))
    assert loss.rho == rho
    assert (3 * loss).concentrated == (3 * rho, 0)
    assert loss.pure_epsilon is None
    for alpha in (1, "1.5", 2, 40):
        exact = Fraction(alpha) * rho
        assert exact <= Fraction(loss.renyi(alpha)) <= exact * (1 + Fraction(1, 10**13))
    assert loss.renyi(math.inf) == math.inf


def test_the_renyi_curve_adds_up():
    """In a sum with other records the vector enters with its ρ."""
    total = vector("0.3", 7, 5) + 2 * vector(100, 4, 2) + Concentrated(rho="0.5")
    rho = Fraction(7) / Fraction("0.6") + Fraction(4, 100) + Fraction(1, 2)
    assert total.renyi(3) == pytest.approx(float(3 * rho), rel=1e-13)
    pure = vector("0.3", 7, 5) + Pure(epsilon="0.1")
    assert pure.renyi(2) == pytest.approx(float(2 * Fraction(7) / Fraction("0.6")) + Pure(epsilon="0.1").renyi(2), rel=1e-13)


def test_groups_multiply_the_length():
    """k people move the vector k times as far: S grows by k²."""
    assert vector(9, 5, 3, "replace_one").group(4) == vector(9, 80, 3, "replace_one")
    assert (2 * vector(9, 5, 3)).group(2).rho == 4 * (2 * vector(9, 5, 3)).rho


@pytest.mark.parametrize("sigma2", ["0.3", "9", "1e12"])
def test_a_vector_that_does_not_move_costs_nothing(sigma2):
    """S = 0 is a loss of nothing in every reading, and adds nothing to another loss."""
    zero = vector(sigma2, 0, 10)
    assert zero.pure_epsilon == 0
    assert zero.rho == 0
    assert zero.epsilon("1e-9") == 0
    assert zero.delta("0.1") == 0
    assert zero.renyi(3) == 0
    assert zero.tradeoff("0.25") == pytest.approx(0.75, abs=1e-9)
    assert zero.subsample(rate="0.1").epsilon("1e-9") == 0
    other = GaussianLoss(mu=1)
    assert (zero + other).epsilon("1e-6") == pytest.approx(other.epsilon("1e-6"), rel=1e-9)


def test_at_delta_zero_there_is_no_epsilon():
    """The noise has no largest loss, from above or from below."""
    assert vector(9, 5, 3).epsilon_interval(0) == (math.inf, math.inf)


# ---- shifts -----------------------------------------------------------------------------------------------------------


def test_the_worst_shift_where_it_is_known():
    """One entry moves as far as it may; of squared length 3 or less as many entries as may move by 1."""
    assert worst_shift(0, 1) == worst_shift(0, 9) == ()
    assert worst_shift(8, 1) == (2,)
    assert worst_shift(9, 1) == (3,)
    assert worst_shift(3, 2) == (1, 1)
    assert worst_shift(3, 99) == (1, 1, 1)
    assert worst_shift(4, 2) is None


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 7, 60])
def test_a_shift_that_occurs_is_no_longer_than_allowed(dimension):
    """Its squared length never exceeds S nor its entries the dimension, and it leaves little of a large S."""
    for squared in (*range(40), 10**9 + 7, HUGE - 1):
        shift = attained_shift(squared, dimension)
        assert len(shift) <= dimension
        assert sum(entry * entry for entry in shift) <= squared
        assert all(entry > 0 for entry in shift)
        assert sum(entry * entry for entry in shift) <= attained_square(squared, dimension) <= squared
        if squared > 10**6:
            assert sum(entry * entry for entry in shift) >= squared - 2 * math.isqrt(squared)


def test_every_square_length_occurs_from_four_entries_on():
    """Lagrange's theorem, by search: what `attained_square` takes for granted."""
    squares = [entry * entry for entry in range(13)]
    two = {a + b for a in squares for b in squares}
    assert all(any(total - pair in two for pair in two) for total in range(145))
    assert attained_square(7, 4) == 7
    assert attained_square(7, 3) == 6


# ---- the law ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sigma2", ["0.3", "2", "9", "1000", "1e12"])
@pytest.mark.parametrize("shift", [1, 3])
def test_one_entry_is_the_scalar_record(sigma2, shift):
    """A vector of one entry is accounted as the integer that it is, also where S is not a square."""
    scalar = DiscreteGaussianLoss(sigma2=sigma2, sensitivity=shift)
    for squared in (shift**2, (shift + 1) ** 2 - 1):
        loss = vector(sigma2, squared, 1)
        assert loss.epsilon_interval("1e-6") == scalar.epsilon_interval("1e-6")
        assert (3 * loss).delta_interval("0.2") == (3 * scalar).delta_interval("0.2")


@pytest.mark.parametrize("sigma2", ["0.3", "9", "1000"])
def test_one_cell_of_a_histogram_is_one_integer(sigma2):
    """Of S = 1 the dimension does not matter, and S = 2 is two releases of an integer that moves by 1."""
    scalar = DiscreteGaussianLoss(sigma2=sigma2, sensitivity=1)
    assert vector(sigma2, 1, 10**6).epsilon_interval("1e-6") == scalar.epsilon_interval("1e-6")
    assert vector(sigma2, 2, 10**6).epsilon_interval("1e-6") == (2 * scalar).epsilon_interval("1e-6")


def test_a_fine_grid_is_gaussian_noise():
    """On the grids that real-valued noise uses the interval is that of μ² = S/σ², whatever the dimension."""
    exact = GaussianLoss(mu=1).epsilon("1e-6")
    for dimension in (2, 4, 10**6):
        lower, upper = vector(HUGE, HUGE, dimension).epsilon_interval("1e-6")
        assert lower == pytest.approx(exact, rel=1e-9)
        assert upper == pytest.approx(exact, rel=1e-9)
        assert lower <= exact <= upper


def test_a_square_length_that_cannot_occur_parts_the_sides():
    """Where S is no sum of two squares the lower end takes the sum next to it; the upper end keeps S."""
    squared, sigma2 = 10**12 + 10**6, 10**13
    above, below = sides(vector(sigma2, squared, 2), Direction.LEAVES)
    assert above.gaussians == [squared / sigma2]
    assert below is above  # (10⁶)² + (10³)²
    odd = squared + 3
    above, below = sides(vector(sigma2, odd, 2), Direction.LEAVES)
    assert above.gaussians == [odd / sigma2]
    assert below.gaussians == [attained_square(odd, 2) / sigma2]
    assert below.gaussians < above.gaussians
    assert sides(vector(sigma2, odd, 4), Direction.LEAVES)[1].gaussians == [odd / sigma2]


def test_a_coarse_grid_has_a_narrower_gaussian_above():
    """Above stands μ² = S/(σ² − t) with t for count · dimension factors; below the shift that occurs."""
    above, below = sides(5 * vector(50, 6, 3), Direction.LEAVES)
    assert above.gaussians == [pytest.approx(5 * 6 / 50 * (1 + sandwich(50.0, 15, math.sqrt(6 / 50))), rel=1e-15)]
    assert above.missing is None
    assert sorted(below.thetas) == [(50, 1, 5), (50, 1, 5), (50, 2, 5)]


def test_a_very_coarse_grid_is_known_by_rho_above():
    """There the Rényi reading alone speaks, as for any mechanism of that ρ, and the interval is finite."""
    loss = vector("0.3", 4, 2)
    assert sides(loss, Direction.LEAVES)[0].missing == "DiscreteGaussianVectorLoss"
    readings = loss.readings("1e-6")
    assert readings["numerical"] == readings["basic"] == math.inf
    assert readings["renyi"] == Concentrated(rho=loss.rho).epsilon("1e-6")
    assert loss.epsilon_interval("1e-6").upper == readings["renyi"]


def test_the_dimension_costs_next_to_nothing():
    """A million entries widen the doubt by its logarithm: ε grows with the dimension, and by less than a part in 50."""
    answers = [vector(100, 5, dimension).epsilon("1e-6") for dimension in (2, 100, 10**6)]
    assert answers == sorted(answers)
    assert answers[0] < answers[2] < answers[0] * 1.02


@pytest.mark.parametrize("sigma2", ["0.3", "9", "1000"])
def test_a_longer_shift_costs_more(sigma2):
    """The certified ε grows with S."""
    answers = [vector(sigma2, squared, 3).epsilon("1e-6") for squared in (4, 5, 9, 30)]
    assert answers == sorted(set(answers))


@pytest.mark.slow
def test_the_answers_can_be_verified():
    """With 50 digits every node behind both sides lies within its stated round-off."""
    loss = 2 * vector(50, 6, 3)
    assert loss.epsilon_interval("1e-6", verify=True) == loss.epsilon_interval("1e-6")


# ---- trade-off and subsampling ----------------------------------------------------------------------------------------


def test_the_tradeoff_of_a_fine_vector_is_the_gaussian_one():
    """A closed form, from below."""
    got, exact = vector(HUGE, HUGE, 4).tradeoff("0.05"), GaussianLoss(mu=1).tradeoff("0.05")
    assert got == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
def test_the_tradeoff_does_not_forget_a_vector_without_a_law():
    """A sum of Gaussian noise and a vector of which only ρ is known is no safer than the vector alone."""
    coarse = vector("0.3", 4, 2)
    assert coarse.tradeoff("0.05") < 1e-3
    assert (GaussianLoss(mu="0.1") + coarse).tradeoff("0.05") <= coarse.tradeoff("0.05")


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add_or_remove_one", pytest.param("replace_one", marks=pytest.mark.slow)])
def test_a_sampled_fine_vector_is_sampled_gaussian_noise(adjacency):
    """Poisson samples of a vector on a fine grid cost what those of Gaussian noise of the same length cost."""
    sampled = vector(HUGE, HUGE, 4).subsample(rate="0.1", adjacency=adjacency)
    exact = GaussianLoss(mu=1).subsample(rate="0.1", adjacency=adjacency)
    assert sampled.epsilon("1e-5") == pytest.approx(exact.epsilon("1e-5"), rel=1e-9)


@pytest.mark.slow
def test_a_sampled_group_of_vectors_is_one_of_gaussian_noise():
    """Groups in a Poisson sample go by the same mixture."""
    sampled = vector(HUGE, HUGE, 4).subsample(rate="0.1").group(2)
    assert sampled.epsilon("1e-5") == pytest.approx(
        GaussianLoss(mu=1).subsample(rate="0.1").group(2).epsilon("1e-5"), rel=1e-9
    )


@pytest.mark.slow
def test_a_sample_without_replacement_of_a_fine_vector():
    """The folded pair is that of Gaussian noise too, and the Rényi bound is finite."""
    sampled = vector(HUGE, HUGE, 4).subsample(rate="0.1", scheme="without_replacement")
    exact = GaussianLoss(mu=1).subsample(rate="0.1", scheme="without_replacement")
    assert sampled.epsilon_interval("1e-5").upper == pytest.approx(exact.epsilon_interval("1e-5").upper, rel=1e-9)
    assert sampled.renyi(4) == pytest.approx(exact.renyi(4), rel=1e-12)


@pytest.mark.slow
def test_a_sampled_length_that_cannot_occur_parts_the_sides():
    """No two squares add up to 6: the lower end of a sample is that of 5, the upper end that of 6."""
    five, six = (vector(6000, squared, 2).subsample(rate="0.1").delta_interval(0) for squared in (5, 6))
    assert six.lower == pytest.approx(five.lower, rel=1e-6)  # the doubt of the grid is that of each length
    assert six.upper > 1.05 * five.upper


def test_every_entry_of_a_sample_is_rounded():
    """The doubt of a sampled vector counts steps, repetitions and entries."""
    shape = gaussian_shift(3 * vector(10**6, 700, 50) + GaussianLoss(mu=1), 20, Fraction(1, 3))
    assert shape is not None
    assert shape.doubt == pytest.approx(sandwich(1e6, 20 * 3 * 50, math.sqrt(700 / 10**6) / 3), rel=1e-9)
    assert shape.above == shape.below == pytest.approx(math.sqrt(1 + 3 * 700 / 10**6), rel=1e-15)


def test_a_sampled_coarse_vector_is_refused():
    """On a coarse grid no rule is proved, and the refusal says so."""
    with pytest.raises(NotPrivate, match="no subsampling rule is proved"):
        vector(50, 6, 3).subsample(rate="0.1").epsilon("1e-6")
    with pytest.raises(NotPrivate, match="Gaussian noise only"):
        vector(50, 6, 3).subsample(rate="0.1", adjacency="replace_one").epsilon("1e-6")
