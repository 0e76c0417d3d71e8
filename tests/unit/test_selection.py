"""Choosing mechanisms: what they return, what they refuse, what they cost, and the numbers of the literature."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from curador.errors import InvalidParameter
from curador.mechanisms.exponential import CELLS, Exponential, PermuteAndFlip, Pieces
from curador.mechanisms.noisy_max import NoisyMax, Selection
from curador.mechanisms.quantile import UNIT_WEIGHT, Quantile
from curador.mechanisms.scores import are_near, choose_evenly, deficits_of, draw_below_each, score_steps
from curador.mechanisms.seam import recording, replaying
from curador.privacy.adjacency import Adjacency
from curador.privacy.losses import BoundedRange, DiscreteLaplaceLoss, Pure
from curador.randomness.injected import Scripted, Seeded

KINDS = [Exponential, PermuteAndFlip, NoisyMax]
EACH = pytest.mark.parametrize("kind", KINDS)


def median(**change):
    return Quantile(**({"q": 0.5, "epsilon": 1, "lower": 0, "upper": 10, "adjacency": "add_or_remove_one"} | change))


# ---- numbers of the literature ----------------------------------------------------------------------------------------


def test_exponential_probabilities_of_the_textbook():
    """Scores 0, 1, 3, 3.5 at ε = 1, to 1e-12."""
    expected = [0.07760954518844713, 0.12795650796155558, 0.3478218504249717, 0.4466120964250256]
    assert np.abs(Exponential(epsilon=1, sensitivity=1).probabilities([0, 1, 3, 3.5]) - expected).max() < 1e-12


def test_expected_error_of_permute_and_flip():
    """0.62636… for the same scores, below the exponential mechanism's. Source: [MS20]."""
    scores = np.array([0, 1, 3, 3.5])
    flip, exponential = (kind(epsilon=1, sensitivity=1).probabilities(scores) for kind in (PermuteAndFlip, Exponential))
    assert abs(flip @ (3.5 - scores) - 0.6263626181903966) < 1e-12
    assert flip @ (3.5 - scores) < exponential @ (3.5 - scores)


def test_noisy_max_of_two():
    """P[the first wins] when it is ahead by 2 and the noise has scale 2, to 1e-12."""
    assert abs(NoisyMax(epsilon=1, sensitivity=1).probabilities([2, 0])[0] - 0.7240904191214182) < 1e-12


def test_median_by_intervals():
    """The continuous interval form for the data 1, 2, 2, 5, 9 in [0, 10], to 1e-12; a piece of no length has none."""
    edges, scores = [0, 1, 2, 2, 5, 9, 10], [-abs(i - 2.5) for i in range(6)]
    expected = [0.054352399253881765, 0.08961195676346063, 0.0, 0.4432354176749333, 0.35844782705384254, 0.054352399253881765]
    drawn_law = Exponential(epsilon=1, sensitivity=1).probabilities_between(edges, scores)
    assert np.abs(drawn_law - expected).max() < 1e-12
    assert drawn_law[2] == 0


@pytest.mark.parametrize(("x", "y", "z", "epsilon"), [(1, 1, 1, 1.3862943611198906), (1023, 10, 4, 0.007816317182612902)])
def test_base_two_weights_are_an_exponential_mechanism(x, y, z, epsilon):
    """Weights (x/2^y)^(z·u) for penalties u are those of Exponential at ε = 2 log 2 · η, η = −z log₂(x/2^y)."""
    eta = -z * math.log2(x / 2**y)
    assert math.isclose(2 * math.log(2) * eta, epsilon, rel_tol=1e-12)
    penalties = np.arange(6.0)
    weights = (x / 2**y) ** (z * penalties)
    chosen = Exponential(epsilon=epsilon, sensitivity=1).probabilities(-penalties)
    assert np.allclose(chosen, weights / weights.sum(), rtol=1e-12)


def test_noisy_max_needs_twice_the_noise_unless_scores_are_monotone():
    """Scores −10 and 0 against −8 and 0 or −9 and 0: log-ratios 1.8177 > ε with Δ/ε, 0.8458 with 2Δ/ε, 0.9130 monotone."""
    usual, less = NoisyMax(epsilon=1, sensitivity=1), NoisyMax(epsilon=1, sensitivity=1, monotone=True)

    def log_ratio(mechanism, behind, other):
        return math.log(mechanism.probabilities([-other, 0])[0] / mechanism.probabilities([-behind, 0])[0])

    assert abs(log_ratio(less, 10, 8) - 1.8176784432060453) < 1e-9
    assert abs(log_ratio(usual, 10, 8) - 0.8458) < 1e-4
    assert abs(log_ratio(less, 10, 9) - 0.9130) < 1e-4


def test_noisy_value_of_the_maximum_is_not_free():
    """Ten equal counts that all rise by 1: P[max of the noisy ones ≤ 0] falls by e^10 at ε = 1, so a value is charged."""
    below_zero = 0.5**10
    below_zero_of_ones = (math.exp(-1) / 2) ** 10
    assert math.isclose(math.log(below_zero / below_zero_of_ones), 10)
    with_value = NoisyMax(epsilon=1, sensitivity=1, monotone=True, value_epsilon=1)
    assert with_value.loss.pure_epsilon == 2
    shown = NoisyMax(epsilon=1, sensitivity=1, monotone=True, gap=True).release([0] * 10)
    assert shown.values is None


def test_noisy_max_values_are_fresh():
    """The value of the winner is its score plus noise that is not the winner's luck: unbiased over 20,000 draws (1e-9)."""
    mechanism = NoisyMax(epsilon=1, sensitivity=1, value_epsilon=1, gap=True)
    drawn = mechanism.release_many([5.0] * 10, 20_000)
    assert abs(drawn.values.mean() - 5) < 6.2 * math.sqrt(2 / 20_000)
    assert abs(np.corrcoef(drawn.gaps[:, 0], drawn.values[:, 0])[0, 1]) < 6.2 / math.sqrt(20_000)


# ---- what a choice returns --------------------------------------------------------------------------------------------


@EACH
def test_sure_choice(kind):
    """A score far ahead wins; one release is an int, many are an array of int64."""
    mechanism = kind(epsilon=1, sensitivity=1)
    assert mechanism.release([0, 1e6, 3]) == 1
    assert type(mechanism.release([0, 1e6, 3])) is int
    many = mechanism.release_many(np.array([0, 10**6, 3]), 7)
    assert many.dtype == np.int64
    assert many.tolist() == [1] * 7


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_candidates_are_returned_where_given(kind):
    """The candidate itself, whatever it is."""
    assert kind(epsilon=1, sensitivity=1).release([0, 1e6], candidates=["no", ("yes", 1)]) == ("yes", 1)


@EACH
@pytest.mark.parametrize(
    "scores",
    [[1e300, -1e300], [10**400, 0], [2**62, 2**62 - 10**7], [Fraction(10**30), Decimal(10**30) - 10**7], [1e18, 1e18 - 1e7]],
)
def test_scores_of_any_size_are_told_apart(kind, scores):
    """Nothing saturates: scores far from 0 keep their differences, and huge differences are a sure choice."""
    assert set(kind(epsilon=1, sensitivity=1).release_many(scores, 20).tolist()) == {0}


@EACH
def test_single_candidate_is_chosen(kind):
    """And its regret is 0."""
    mechanism = kind(epsilon=1, sensitivity=1)
    assert mechanism.release([3.5]) == 0
    assert mechanism.interval("0.95", candidates=1) == (0.0, 0.0)


@EACH
def test_zero_epsilon_would_be_even(kind):
    """At ε = 1e-12 all candidates are as likely to within a millionth."""
    mechanism = kind(epsilon="1e-12", sensitivity=1)
    assert np.allclose(mechanism.probabilities([0, 1, 100]), 1 / 3, atol=1e-6)


@pytest.mark.slow
def test_a_million_candidates():
    """A choice among 10⁶ works for floats and integers, and finds the one that stands out."""
    scores = np.zeros(10**6)
    scores[123_456] = 1e3
    for array in (scores, scores.astype(np.int64), scores.astype(np.float32)):
        assert Exponential(epsilon=1, sensitivity=1).release(array) == 123_456
    assert PermuteAndFlip(epsilon=1, sensitivity=1).release(scores) == 123_456


def test_selection_of_several():
    """Winners best first, gaps to the next one, values near the scores."""
    mechanism = NoisyMax(epsilon=1000, sensitivity=1, top=2, gap=True, value_epsilon=1000)
    shown = mechanism.release([5, 100, 70, 0])
    assert isinstance(shown, Selection)
    assert shown.indices.tolist() == [1, 2]
    assert np.abs(shown.gaps - [30, 65]).max() < 1
    assert np.abs(shown.values - [100, 70]).max() < 1
    many = mechanism.release_many([5, 100, 70, 0], 3)
    assert many.indices.shape == many.gaps.shape == many.values.shape == (3, 2)


def test_top_of_many_candidates():
    """The two ways to find the leaders agree: few of many by repeated maximum, many by sorting."""
    scores = np.arange(1000) * 1e6
    assert NoisyMax(epsilon=1, sensitivity=1, top=3).release(scores).indices.tolist() == [999, 998, 997]
    assert NoisyMax(epsilon=1, sensitivity=1, top=400).release(scores).indices.tolist() == list(range(999, 599, -1))
    assert NoisyMax(epsilon=1, sensitivity=1, top=4).release(scores[:4]).indices.tolist() == [3, 2, 1, 0]


def test_ties_go_to_the_smaller_index():
    """With next to no noise equal scores give the first."""
    mechanism = NoisyMax(epsilon=2**40, sensitivity=1)
    assert set(mechanism.release_many([1.0, 2.0, 2.0, 2.0], 100).tolist()) == {1}


def test_large_values_are_released_where_they_are():
    """Scores of 10¹² with a sensitivity of 1 come back as such, not clamped."""
    shown = NoisyMax(epsilon=1, sensitivity=1, value_epsilon=1).release([1e12, 1e12 + 1e4])
    assert shown.indices.tolist() == [1]
    assert abs(shown.values[0] - 1e12 - 1e4) < 100


# ---- between edges ----------------------------------------------------------------------------------------------------


def test_numbers_stay_between_the_outer_edges():
    """Also where the span is a few floats wide, and pieces of no length are never drawn."""
    mechanism = Exponential(epsilon=1, sensitivity=1)
    for edges in ([0.0, 0.0, 1.0, 1.0], [1.0, 1.0 + 2**-52, 1.0 + 2**-51, 1.0 + 2**-50], [-1e299, 0.0, 1.0, 8e299]):
        drawn = mechanism.release_between_many(edges, [1e9, 0, 1e9], 1000)
        assert drawn.min() >= edges[0]
        assert drawn.max() <= edges[-1]
    assert type(mechanism.release_between([0, 1, 2], [0, 1])) is float
    sure = mechanism.release_between_many([0.0, 0.0, 1.0, 1.0, 2.0], [1e9, 0, 1e9, -1e9], 1000)
    assert (sure < 1).all()


def test_pieces_of_neighbours_are_compared_cell_by_cell():
    """Moving an inner edge moves the score between; within says by how much at the worst cell."""
    mechanism = Exponential(epsilon=1, sensitivity=1)

    def inner(edges, scores):
        with recording() as calls:
            mechanism.release_between(edges, scores)
        return calls[0].value

    base = inner([0, 3, 10], [0, -1])
    assert isinstance(base, Pieces)
    assert base.ends[-1] == CELLS
    assert mechanism.within(base, inner([0, 5, 10], [0, -1]))
    assert mechanism.within(base, inner([0, 3, 5, 10], [0, -1, -2]))
    assert not mechanism.within(base, inner([0, 3, 5, 10], [0, -1, -2.1]))
    assert not mechanism.within(base, inner([0, 3, 3 + 1e-9, 10], [0, -3, -1]))
    assert not mechanism.within(base, score_steps([0, 0], -30))


@pytest.mark.parametrize(
    ("edges", "scores"),
    [
        ([0, 1], [1, 2]),
        ([0, 2, 1], [1, 2]),
        ([1, 1], [1]),
        ([0, math.nan, 1], [1, 2]),
        ([0, math.inf], [1]),
        ([-1.7e308, 1.7e308], [1]),
        (["a", "b"], [1]),
        ([False, True], [1]),
        ([[0, 1]], [1]),
    ],
)
def test_bad_edges_are_refused(edges, scores):
    """Without repeating one of them."""
    with pytest.raises(InvalidParameter, match=r"^edges must be"):
        Exponential(epsilon=1, sensitivity=1).release_between(edges, scores)


# ---- costs, neighbours, replay ----------------------------------------------------------------------------------------


def test_losses():
    """Bounded range for the exponential mechanism and quantiles; pure for the others, values added in full."""
    assert Exponential(epsilon=1, sensitivity=5, monotone=True).loss == BoundedRange(epsilon=1)
    assert PermuteAndFlip(epsilon=1, sensitivity=5).loss == Pure(epsilon=1)
    assert NoisyMax(epsilon=1, sensitivity=5, top=3, gap=True).loss == Pure(epsilon=1)
    assert median().loss == BoundedRange(epsilon=1, adjacency="add_or_remove_one")
    both = NoisyMax(epsilon=1, sensitivity=5, top=3, value_epsilon="0.3")
    assert both.loss == Pure(epsilon=1) + 3 * DiscreteLaplaceLoss(scale=both.value_scale, sensitivity=both.steps)
    assert both.loss.pure_epsilon == Fraction(13, 10)


@EACH
@pytest.mark.parametrize("sensitivity", ["1", "1/3", "1e-9", "12345678.9"])
@pytest.mark.parametrize("monotone", [False, True])
def test_epsilon_is_exact_on_the_grid(kind, sensitivity, monotone):
    """The sensitivity is rounded up to the grid by less than a thousandth, and the noise follows it."""
    mechanism = kind(epsilon="0.7", sensitivity=sensitivity, monotone=monotone)
    on_grid = mechanism.steps * mechanism.grid
    assert Fraction(sensitivity) <= on_grid < Fraction(sensitivity) * Fraction(1001, 1000)
    moved = mechanism.steps * (1 if monotone else 2)
    spent = moved / mechanism.noise_scale if kind is NoisyMax else moved * mechanism.rate
    assert spent == Fraction(7, 10)


def test_several_winners_share_epsilon():
    """The noise grows with `top`, so that all winners together cost ε."""
    mechanism = NoisyMax(epsilon=1, sensitivity=1, top=5)
    assert 5 * 2 * mechanism.steps / mechanism.noise_scale == 1


@EACH
def test_within_is_the_declared_sensitivity(kind):
    """Scores that move by the sensitivity are neighbours, further is not; monotone ones must move the same way."""
    usual, monotone = kind(epsilon=1, sensitivity=1), kind(epsilon=1, sensitivity=1, monotone=True)
    for mechanism in (usual, monotone):
        step = mechanism.steps
        base = np.array([0, 5, 7], np.int64)
        assert mechanism.within(base, base + step)
        assert not mechanism.within(base, base + step + 1)
        assert not mechanism.within(base, base[:2])
        assert mechanism.within(base, base + np.array([step, 0, -step])) is (mechanism is usual)


@EACH
def test_replay_shows_the_other_world(kind):
    """Replayed with other scores a release gives the recorded choice and the inputs of the other world."""
    mechanism = kind(epsilon=1, sensitivity=1)
    with recording() as calls:
        first = mechanism.release([1, 2, 3])
    with replaying(calls) as seen:
        assert mechanism.release([2, 1, 4]) == first
    assert mechanism.within(calls[0].value, seen[0].value)


@pytest.mark.slow
@EACH
def test_calibration_meets_its_goal(kind):
    """A pure goal is met exactly, (ε, δ) and ρ goals by what the loss says, and well above ε/count."""
    assert kind.calibrate(sensitivity=2, epsilon=1, count=4).epsilon == Fraction(1, 4)
    approximate = kind.calibrate(sensitivity=2, epsilon=1, delta="1e-6", count=50, monotone=True)
    assert approximate.monotone
    assert (50 * approximate.loss).epsilon("1e-6") <= 1
    assert approximate.epsilon > Fraction(1, 50)
    assert (3 * kind.calibrate(sensitivity=2, rho="0.1", count=3).loss).rho <= Fraction(1, 10)
    with pytest.raises(InvalidParameter, match="exactly one"):
        kind.calibrate(sensitivity=2)


@pytest.mark.slow
def test_bounded_range_composes_better_than_pure():
    """After 100 choices at (1, 1e-6) the exponential mechanism may spend more on each than permute-and-flip."""
    goal = {"sensitivity": 1, "epsilon": 1, "delta": "1e-6", "count": 100}
    assert Exponential.calibrate(**goal).epsilon > Fraction(3, 2) * PermuteAndFlip.calibrate(**goal).epsilon


@EACH
def test_records_are_values(kind):
    """Equal parameters, equal mechanisms; the repr rebuilds it."""
    mechanism = kind(epsilon="0.1", sensitivity="1/3", monotone=True)
    assert mechanism == kind(epsilon=0.1, sensitivity=Fraction(1, 3), monotone=True)
    assert hash(mechanism) == hash(kind(epsilon=0.1, sensitivity=Fraction(1, 3), monotone=True))
    assert repr(mechanism) == f"{kind.__name__}(epsilon=0.1, sensitivity=1/3, monotone=True)"


# ---- refusals -----------------------------------------------------------------------------------------------------------


BAD_SCORES = [[], [[1.0, 2.0]], [1.0, math.nan], [math.inf, 1], [True, False], "12", 5.0, None, [123456.5, None], ["123456"]]


@EACH
@pytest.mark.parametrize("scores", BAD_SCORES, ids=repr)
def test_bad_scores_are_refused_without_repeating_one(kind, scores):
    """One sentence about the kind of thing it got."""
    for call in (kind(epsilon=1, sensitivity=1).release, lambda x: kind(epsilon=1, sensitivity=1).release_many(x, 2)):
        with pytest.raises(InvalidParameter, match=r"^scores must be") as refusal:
            call(scores)
        assert "123456" not in str(refusal.value)


@EACH
@pytest.mark.parametrize("name", ["epsilon", "sensitivity"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "x", None])
def test_bad_parameters_are_refused(kind, name, value):
    """By the name of the parameter."""
    with pytest.raises(InvalidParameter, match=rf"^{name} must be"):
        kind(**({"epsilon": 1, "sensitivity": 1} | {name: value}))


@EACH
def test_other_bad_arguments_are_refused(kind):
    """Flags that are not booleans, sizes that are not whole, confidences outside (0, 1)."""
    mechanism = kind(epsilon=1, sensitivity=1)
    for call in (
        lambda: kind(epsilon=1, sensitivity=1, monotone="no"),
        lambda: mechanism.release_many([1, 2], 0),
        lambda: mechanism.release_many([1, 2], 1.5),
        lambda: mechanism.interval(1, candidates=3),
        lambda: mechanism.interval("0.9", candidates=0),
    ):
        with pytest.raises(InvalidParameter, match="must be"):
            call()


def test_bad_arguments_of_one_kind():
    """Too few candidates for the winners, noise beyond all scores, more candidates than scores."""
    for call in (
        lambda: NoisyMax(epsilon=1, sensitivity=1, top=3).release([1, 2]),
        lambda: NoisyMax(epsilon=1, sensitivity=1, gap=True).release([1]),
        lambda: NoisyMax(epsilon=1, sensitivity=1, top=0),
        lambda: NoisyMax(epsilon=1, sensitivity=1, gap=1),
        lambda: NoisyMax(epsilon=1, sensitivity=1, value_epsilon=0),
        lambda: NoisyMax(epsilon="1e-16", sensitivity=1),
        lambda: NoisyMax(epsilon=1, sensitivity=1, value_epsilon="1e-16"),
        lambda: NoisyMax(epsilon=1, sensitivity=1, top=3).interval("0.9", candidates=2),
        lambda: Exponential(epsilon=1, sensitivity=1).release([1, 2], ["a"]),
        lambda: PermuteAndFlip(epsilon=1, sensitivity=1).probabilities(range(1001)),
    ):
        with pytest.raises(InvalidParameter, match="must be"):
            call()


# ---- the small parts ----------------------------------------------------------------------------------------------------


def test_deficits_are_capped_without_overflow():
    """Best minus score for the extremes of the machine's range and beyond."""
    assert deficits_of(np.array([-(1 << 61), 1 << 61])).tolist() == [1 << 62, 0]
    assert deficits_of(np.array([-(1 << 61), 1 << 61]), 5).tolist() == [5, 0]
    assert deficits_of(np.array([-(1 << 90), 1 << 90, (1 << 90) - 3], object)).tolist() == [1 << 62, 0, 3]


def test_scores_are_rounded_half_up():
    """⌊x/g + 1/2⌋ for floats, integers and fractions, in 64 bits where they fit."""
    assert score_steps([0.5, -0.5, 1.5, 2.49], 0).tolist() == [1, 0, 2, 2]
    assert score_steps([1, -1], -3).tolist() == [8, -8]
    assert score_steps([2**60, 1], 0).dtype == np.int64
    assert score_steps([2**63 - 1, -1], 0).tolist() == [2**63 - 1, -1]
    assert score_steps([Fraction(1, 2), Fraction(-1, 3)], 0).tolist() == [1, 0]
    assert score_steps([1e30, 1.0], 0).tolist() == [int(1e30), 1]


def test_near_compares_integers_of_any_size():
    """Differences beyond 64 bits are seen."""
    one, other = np.array([-(1 << 62)]), np.array([1 << 62])
    assert are_near(one, other, 1 << 63)
    assert not are_near(one, other, (1 << 63) - 1)
    assert not are_near(np.array([1 << 70], object), np.array([0], object), 1 << 69)


def test_below_each_is_uniform_for_scripted_words():
    """Every 3-bit word once: limits 1 to 8 get each value equally often, words that do not fit are drawn again."""
    for limit in range(1, 9):
        counts = np.zeros(limit, int)
        for word in range(8):
            source = Scripted(word.to_bytes(8, "little"), Seeded(1))
            value = int(draw_below_each(np.array([limit]), source)[0])
            first = word & ((1 << (limit - 1).bit_length()) - 1)
            if first < limit:
                assert value == first
                counts[value] += 1
        assert len(set(counts.tolist())) == 1
    large = draw_below_each(np.full(1000, 1 << 53), Seeded(2))
    assert large.max() < 1 << 53
    assert large.max() > 1 << 52


def test_evenly_returns_true_places():
    """Only heads are chosen, and all of them are."""
    heads = np.array([[True, False, True, False], [False, False, False, True]] * 200)
    chosen = choose_evenly(heads, Seeded(3))
    assert set(chosen[::2].tolist()) == {0, 2}
    assert set(chosen[1::2].tolist()) == {3}


# ---- quantiles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", ["0", "1/4", "1/2", "2/3", "1"])
@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_sensitivity_of_scores_is_what_brute_force_finds(q, adjacency):
    """Over all histograms of up to three values on four points: exactly the declared one, and of ends no wider span."""
    mechanism = median(q=q, adjacency=adjacency, cells=4)
    largest = 0
    for size in range(4):
        for database in itertools.combinations_with_replacement(range(4), size):
            one = np.bincount(np.array(database, int), minlength=4)
            if adjacency == "add_or_remove_one":
                others = [one + np.eye(4, dtype=int)[x] for x in range(4)]
            else:
                others = [one - np.eye(4, dtype=int)[database[0]] + np.eye(4, dtype=int)[x] for x in range(4) if size]
            for other in others:
                moves = mechanism.scores(one) - mechanism.scores(other)
                largest = max(largest, int(np.abs(moves).max()))
                assert not mechanism.extreme or moves.max() - moves.min() <= 1
    assert largest == mechanism.sensitivity
    assert mechanism.extreme is (q in {"0", "1"})


def test_quantiles_of_much_data():
    """10,000 values: the rank of the result is off by less than the bound, for all q; 0 and 1 give about the ends."""
    values = np.linspace(20, 80, 10_000)
    for q in ("0.1", "0.5", "0.9"):
        mechanism = median(q=q, upper=100)
        bound = mechanism.interval("0.999999999").upper + 1
        released = mechanism.release(values)
        assert abs((values < released).sum() - float(q) * 10_000) <= bound
    assert median(q=0, upper=100).release(values) < 20.5
    assert median(q=1, upper=100).release(values) > 79.5


def test_outputs_are_points_of_the_grid():
    """Integers come out as integers where the grid is made of them."""
    drawn = median(cells=11).release_many([3, 3, 3], 100)
    assert set(drawn.tolist()) <= set(range(11))
    assert median(cells=11).points.tolist() == list(range(11))


def test_nothing_in_the_data_is_an_error():
    """NaN, nulls and text are dropped; infinities and values outside are clamped; no data gives an even draw."""
    mechanism = median(cells=3)
    assert mechanism.histogram([math.nan, 1, 100, -math.inf, 10**400]).tolist() == [2, 0, 2]
    assert mechanism.histogram([None, "7", True, Decimal("5.2"), Fraction(1, 3), 10**400]).tolist() == [1, 1, 1]
    assert mechanism.histogram(np.array([], float)).tolist() == [0, 0, 0]
    assert np.allclose(mechanism.probabilities([]), 1 / 3)
    assert mechanism.release([]) in {0, 5, 10}
    assert mechanism.release([math.nan]) in {0, 5, 10}


@pytest.mark.slow
def test_a_unit_weighs_once():
    """However many rows: rows weigh ⌊2¹⁶/rows⌋, rows that are NaN or of nobody do not count."""
    mechanism = median(cells=3)
    assert mechanism.histogram([0, 5, 10, 10], ["a", "a", "a", "b"]).tolist() == [21845, 21845, 21845 + 65536]
    assert mechanism.histogram([0, math.nan, 10], [1, 1, 1]).tolist() == [32768, 0, 32768]
    assert mechanism.histogram([0, 5, 10], [1.0, math.nan, 2.0]).tolist() == [65536, 0, 65536]
    assert mechanism.histogram([0, 5, 10], ["a", None, math.nan]).tolist() == [65536, 0, 0]
    assert mechanism.histogram([0.0] * 70_000, [7] * 70_000).sum() == 0
    assert mechanism.histogram([], []).tolist() == [0, 0, 0]


def test_units_of_one_row_are_values():
    """The law is the same with and without labels."""
    values = [1, 4, 4, 9]
    mechanism = median(cells=11)
    assert np.allclose(mechanism.probabilities(values), mechanism.probabilities(values, units=list("abcd")), rtol=1e-12)


def test_histograms_are_data():
    """A histogram gives the law of the values it counts; weights are told."""
    mechanism = median(cells=11, epsilon=1000)
    counts = mechanism.histogram([2, 7, 7, 7, 9])
    assert mechanism.release_histogram(counts) == mechanism.release([2, 7, 7, 7, 9]) == 7
    weights = mechanism.histogram([2, 7, 7, 7, 9], units=[1, 2, 3, 4, 5])
    assert mechanism.release_histogram(weights, unit_weight=UNIT_WEIGHT) == 7


def test_large_counts_do_not_overflow():
    """Counts near 2⁶² and a fine q: scores beyond 64 bits are exact, and the right point wins."""
    counts = np.zeros(11, np.int64)
    counts[[1, 7]] = 1 << 60, 1 << 61
    mechanism = median(cells=11, q="0.123456789")
    assert mechanism.scores(counts)[0] == -123456789 * 3 * (1 << 60)
    assert mechanism.release_histogram(counts) == 1
    counts[9] = 1 << 60
    assert median(cells=11).release_histogram(counts) == 7


def test_quantile_neighbours():
    """within is about what one unit can do: a value more is, two values more are not; nor is another weight."""
    mechanism = median(cells=11)

    def inner(*arguments):
        with recording() as calls:
            mechanism.release(*arguments)
        return calls[0].value

    assert mechanism.within(inner([1, 2]), inner([1, 2, 9]))
    assert not mechanism.within(inner([1, 2]), inner([1, 2, 9, 9]))
    assert not mechanism.within(inner([1, 2]), inner([1, 2], [1, 2]))
    assert mechanism.within(inner([1, 2], [1, 2]), inner([1, 2, 9, 9, 0], [1, 2, 3, 3, 3]))


def test_quantile_rates():
    """ε/(2 max(a, b − a)), ε/(2b) when replaced, and no 2 for the ends."""
    assert median(q="1/4").rate == Fraction(1, 6)
    assert median(q="1/4", adjacency="replace_one").rate == Fraction(1, 8)
    assert median(q=0).rate == median(q=1).rate == 1
    assert median(q=0, adjacency="replace_one").rate == 1


def test_quantile_calibration_and_record():
    """The goal is met, the adjacency is on the loss, and the repr says all."""
    mechanism = Quantile.calibrate(q=0.5, lower=0, upper=10, adjacency="replace_one", epsilon=1, count=4)
    assert mechanism.epsilon == Fraction(1, 4)
    assert mechanism.loss.adjacency is Adjacency.REPLACE_ONE
    assert repr(mechanism) == "Quantile(q=0.5, epsilon=0.25, lower=0, upper=10, adjacency=replace_one, cells=65536)"


class _Null:
    """A null as data frames have it: equal to nothing, not even by a truth value."""

    def __eq__(self, other):
        return self

    def __bool__(self):
        raise TypeError("no truth value")

    __hash__ = object.__hash__


ODD_LABELS = {
    "nan": [math.nan, 0.5],
    "text": ["x", "2"],
    "nothing": [None],
    "null": [_Null()],
    "nul": ["a\0", b"a"],
    "no time": [np.datetime64("NaT"), np.timedelta64("NaT")],
    "tuples": [(1, 2), (3,)],
    "big": [2**60 + 999, Decimal("1.5")],
}


@pytest.mark.parametrize("odd", ODD_LABELS.values(), ids=ODD_LABELS)
@pytest.mark.parametrize(
    "people", [[2**60 + k for k in range(40)], [1, 2, 3, 1, math.nan, math.nan], ["a", "b", "a", None, "1"]], ids=str
)
def test_one_label_never_renames_another(people, odd):
    """Adding one person's row moves the histogram by one unit at most, whatever his or her label is."""
    mechanism = median(cells=11)
    before = mechanism.histogram([1.0] * len(people), units=people)
    for label in odd:
        after = mechanism.histogram([1.0] * len(people) + [7.0], units=[*people, label])
        assert np.abs(after - before).sum() <= 65536
        assert after[1] == before[1]


def test_labels_of_other_kinds_are_other_people():
    """1 and "1", a text and one with a trailing zero are apart; 1 and 1.0 are one; nobody's rows are dropped."""
    mechanism = median(cells=11)
    for labels, people in [([1, "1"], 2), (["a", "a\0"], 2), ([1, 1.0], 1), ([None, math.nan], 0), ([np.int64(5), 5], 1)]:
        assert mechanism.histogram([1.0, 1.0], units=labels)[1] == people * 65536


def test_what_is_no_number_is_dropped_wherever_it_stands():
    """A word, a boolean or a null in a list weighs nothing, alone or beside others."""
    mechanism = median(cells=11)
    for odd in ("a", True, None, b"1", 1j):
        assert mechanism.histogram([1.0, odd]).sum() == 1
        assert mechanism.histogram([1.0, odd, None]).sum() == 1
        assert mechanism.histogram([odd]).sum() == 0


def test_an_inner_edge_may_lie_on_the_upper_one():
    """Data at the clamp make an empty last piece; neighbours are compared all the same."""
    mechanism = Exponential(epsilon=1, sensitivity=1)
    with recording() as calls:
        mechanism.release_between([0, 5, 10, 10], [0, 1, 0])
        mechanism.release_between([0, 5, 9, 10], [0, 1, 0])
    assert mechanism.within(calls[0].value, calls[1].value)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"q": -0.1}, "q"),
        ({"q": 1.1}, "q"),
        ({"q": math.nan}, "q"),
        ({"epsilon": 0}, "epsilon"),
        ({"lower": 10}, "upper"),
        ({"upper": math.inf}, "upper"),
        ({"upper": "1e301"}, "upper"),
        ({"lower": 1, "upper": "1.00000000000000000001"}, "upper"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"cells": 1}, "cells"),
        ({"cells": 1 << 25}, "cells"),
    ],
)
def test_bad_quantiles_are_refused(change, name):
    """By the name of the parameter."""
    with pytest.raises(InvalidParameter, match=rf"^{name} must be"):
        median(**change)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("12345678",), "values"),
        ((None,), "values"),
        (([[1.0, 2.0]],), "values"),
        (([[1.0], [2.0, 3.0]],), "values"),
        ((np.array([True]),), "values"),
        ((np.ma.array([1.0], mask=[True]),), "values"),
        (([12345678.5, 1], [1]), "units"),
        (([12345678.5], [[1]]), "units"),
        (([12345678.5], [{}]), "units"),
    ],
)
def test_bad_data_types_are_refused(arguments, name):
    """By type and shape alone, without repeating a value."""
    with pytest.raises(InvalidParameter, match=rf"^{name} must be") as refusal:
        median().release(*arguments)
    assert "12345678" not in str(refusal.value)


@pytest.mark.parametrize("counts", [[1] * 4, [-12345678, 0, 0], [0.5, 1, 2], [[1, 2, 3]], "abc"])
def test_bad_histograms_are_refused(counts):
    """Wrong length, negative, not whole."""
    with pytest.raises(InvalidParameter, match=r"^counts must be") as refusal:
        median(cells=3).release_histogram(counts)
    assert "12345678" not in str(refusal.value)


def test_a_rank_of_many_digits_fails_on_no_histogram():
    """An empty group and a full one go the same way: whether a question fails must not tell which it was."""
    mechanism = median(q="1e-300", cells=4)
    for counts in ([0, 0, 0, 0], [0, 3, 0, 1]):
        scores = mechanism.scores(np.array(counts, np.int64), 1)
        assert [type(one) for one in scores.tolist()] == [int] * 4
    assert mechanism.scores(np.zeros(4, np.int64), 1).tolist() == [0] * 4
