"""Testers of divergences: exact error probabilities, exact formulas, and what they say."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

import curador as cu
from curador.audit import renyi_tester
from curador.audit.bounds import Counts, lower_bound
from curador.audit.hockey_stick import DeltaBound, _excess, hockey_stick, learn_event
from curador.audit.partition import Parted, Partition, part_scores, partition
from curador.audit.renyi_tester import RenyiBound, renyi
from curador.audit.testers import compare_divergences, divergences
from curador.errors import InvalidParameter

PAIRS = [(0.5, 0.3), (0.05, 0.01), (0.9, 0.2), (0.31, 0.31)]


# ---- means by one bet -----------------------------------------------------------------------------------------------


def wrong_of_coins(p, size, bet, error):
    """P[bound > p] of coins, outcome by outcome."""
    values = np.array([0.0, 1.0])
    hits = [
        k for k in range(size + 1) if renyi_tester.mean_at_least(values, np.array([size - k, k]), bet=bet, error=error) > p
    ]
    return float(binom.pmf(hits, size, p).sum())


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("error", [0.2, 0.01])
def test_the_bound_of_a_mean_is_wrong_as_rarely_as_it_says(p, error):
    """Of coins, for a good bet and two bad ones, by summing every outcome."""
    size = 60
    good, _ = renyi_tester.good_bet(np.array([0.0, 1.0]), np.array([1 - p, p]), size, error=error)

    for bet in (good, good / 5, min(5 * good, 3.0)):
        assert wrong_of_coins(p, size, bet, error) <= error


@pytest.mark.slow
def test_the_bound_of_a_mean_is_not_wrong_much_more_rarely(monkeypatch):
    """It errs within a factor of sixteen of what it may, and a bar that is too low by e³ is caught by the sum above."""
    p, size, error = 0.3, 60, 0.05
    bet, _ = renyi_tester.good_bet(np.array([0.0, 1.0]), np.array([1 - p, p]), size, error=error)

    assert error / 16 < wrong_of_coins(p, size, bet, error) <= error
    monkeypatch.setattr(renyi_tester, "_SLACK", -3.0)
    assert wrong_of_coins(p, size, bet, error) > error


@pytest.mark.slow
def test_the_bound_of_a_mean_of_three_values_is_wrong_as_rarely_as_it_says():
    """By summing the multinomial law of twelve draws, from below and from above."""
    values, law, size, error = np.array([-2.0, 0.5, 1.0]), np.array([0.2, 0.3, 0.5]), 12, 0.1
    mean = float(values @ law)
    below, above = 0.0, 0.0
    for first, second in itertools.product(range(size + 1), repeat=2):
        if first + second <= size:
            counts = np.array([first, second, size - first - second])
            ways = math.factorial(size) / math.prod(math.factorial(int(count)) for count in counts)
            chance = ways * float(np.prod(law**counts))
            below += chance * (renyi_tester.mean_at_least(values, counts, bet=0.35, error=error) > mean)
            above += chance * (renyi_tester.mean_at_most(values, counts, bet=0.8, error=error) < mean)

    assert 0 < below <= error
    assert 0 < above <= error


def test_the_bound_of_a_mean_is_near_the_narrowest():
    """With many samples it is Chernoff's bound for the law, 5.3 deviations at 1e-6; Clopper–Pearson's has 4.8."""
    size, error = 750_000, 1e-6
    bet, predicted = renyi_tester.good_bet(np.array([0.0, 1.0]), np.array([0.7, 0.3]), size, error=error)
    found = renyi_tester.mean_at_least(np.array([0.0, 1.0]), np.array([525_000, 225_000]), bet=bet, error=error)
    deviation = math.sqrt(0.3 * 0.7 / size)

    assert found == pytest.approx(predicted)
    assert 5.0 < (0.3 - found) / deviation < 5.4


def test_a_bound_of_a_mean_is_refuted_with_forty_digits():
    """The capital at the bound is at least 1/error, so that no rounding has helped; 1e-5 further it is not."""
    values, counts, error = np.array([0.1, 0.4, 1.0]), np.array([300_000, 200_000, 100_000]), 1e-6
    bet, _ = renyi_tester.good_bet(values, counts / counts.sum(), int(counts.sum()), error=error)
    bound = renyi_tester.mean_at_least(values, counts, bet=bet, error=error)

    def capital(mean):
        with mpmath.workdps(40):
            pairs = zip(values.tolist(), counts.tolist(), strict=True)
            return mpmath.fsum(n * mpmath.log1p(mpmath.mpf(bet) * (mpmath.mpf(x) - mpmath.mpf(mean))) for x, n in pairs)

    assert capital(bound) >= math.log(1 / error)
    assert capital(bound * 1.00001) < math.log(1 / error)


def test_one_value_only_is_its_own_bound():
    """Nothing to bet on."""
    values = np.array([0.25])
    bet, bound = renyi_tester.good_bet(values, np.array([1.0]), 100, error=0.01)

    assert bound == 0.25
    assert renyi_tester.mean_at_least(values, np.array([100]), bet=bet, error=0.01) == pytest.approx(0.25, abs=1e-9)
    assert renyi_tester.mean_at_least(values, np.array([100]), bet=bet, error=0.01) <= 0.25


# ---- δ --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "q"), PAIRS)
@pytest.mark.parametrize("epsilon", [0, 1])
def test_the_bound_of_delta_is_wrong_as_rarely_as_it_says(p, q, epsilon):
    """Of an event with known probabilities, by summing every pair of counts; the plain estimate errs far more often."""
    size, error, factor = 80, 0.05, math.exp(epsilon)
    one, other = np.meshgrid(np.arange(size + 1), np.arange(size + 1), indexing="ij")
    chance = binom.pmf(one, size, p) * binom.pmf(other, size, q)
    truth = p - factor * q
    proved = _excess(one, other, (size, size), factor, error)

    assert chance[proved > truth].sum() <= error
    assert chance[(one - factor * other) / size > truth].sum() > 4 * error


def test_delta_of_worlds_apart_is_nearly_one():
    """Outputs that never meet: δ at least the Clopper–Pearson bounds of certain counts, at every ε that matters."""
    zeros, ones = np.zeros(4000), np.ones(4000)

    for epsilon in (0, 1, 3):
        found = hockey_stick(zeros, ones, epsilon=epsilon, confidence="0.99")
        assert found.delta == pytest.approx(0.005 ** (1 / 3000) - math.exp(epsilon) * (1 - 0.005 ** (1 / 3000)), rel=1e-6)
        assert found.counts in (Counts(3000, 3000, 0, 3000), Counts(0, 3000, 3000, 3000))


def test_equal_outputs_prove_nothing():
    """One output only: no event, no ratio."""
    same = np.zeros(1000)

    assert hockey_stick(same, same, epsilon=0).delta == 0.0
    assert hockey_stick(same, same, epsilon=0).event in {"nothing", "everything"}
    for alpha in (1, 2, "inf"):
        assert renyi(same, same, alpha=alpha).divergence == 0.0


def alternating(shares, size):
    """Outputs 0, 1, … in these shares, evenly in every stretch: samples without luck."""
    pattern = np.repeat(np.arange(len(shares)), shares)
    return np.tile(pattern, size // len(pattern) + 1)[:size]


@pytest.mark.parametrize("swapped", [False, True])
def test_both_directions_are_looked_at(swapped):
    """A mark that only one world shows proves δ whichever world it is, and says which."""
    worlds = [alternating([10, 10], 40_000), alternating([10, 9, 1], 40_000)]
    found = hockey_stick(*(reversed(worlds) if swapped else worlds), epsilon=2)

    assert found.likelier == (0 if swapped else 1)
    assert 0.04 < found.delta < 0.05
    assert found.event == "score ≥ 2"


def test_an_event_of_cells_that_do_not_touch_is_found():
    """Odd outputs are likelier: no threshold shows it, the ranked cells do."""
    even, odd = alternating([1] * 8, 80_000), alternating([1, 3] * 4, 80_000)
    found = hockey_stick(even, odd, epsilon=0)

    assert 0.22 < found.delta < 0.25
    assert found.event == "4 of 8 cells of the score"


def test_a_refuted_claim_is_told_in_a_sentence():
    """The claim of a loss at that ε, the bound, the event, the counts."""
    loss = cu.Pure(epsilon=1)
    found = hockey_stick(np.zeros(1000), np.ones(1000), epsilon="0.5")

    assert found.refutes(loss)
    assert found.refutes("0.3")
    assert not found.refutes("0.999999")
    told = found.verdict(loss)
    assert told.startswith(
        f"the claim (ε, δ) = (0.5, {loss.delta('0.5'):.4g}) is refuted: δ ≥ {found.delta:.4g} with confidence 0.999999"
    )
    assert "750 of 750 times" in told
    assert "0 of 750" in told


def test_a_claim_that_stands_is_told_in_a_sentence():
    """Not refuted is all that can be said."""
    found = hockey_stick(np.zeros(1000), np.zeros(1000), epsilon=1)

    assert not found.refutes(cu.Pure(epsilon=1))
    assert found.verdict(0) == "the claim (ε, δ) = (1, 0) is not refuted: the samples prove no more than δ ≥ 0"


# ---- Rényi ----------------------------------------------------------------------------------------------------------


def guess_of(order, ratio):
    return renyi_tester._Guess(order, Partition(np.arange(1, len(ratio))), np.log(ratio) - np.log(ratio).max(), 0.0, 0)  # noqa: SLF001


LAWS = (np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.2, 0.3, 0.1, 0.4]))


def divergence_of(order, p, q):
    if order == 1.0:
        return float((p * np.log(p / q)).sum())
    return float(np.log((p**order * q ** (1 - order)).sum()) / (order - 1))


@pytest.mark.parametrize("order", [1.0, 1.25, 2.0, 7.5, 40.0])
def test_the_right_ratio_gives_the_divergence_itself(order):
    """With the exact means of the exact likelihood ratio the bound is D_α, whatever factor the ratio has."""
    p, q = LAWS
    guess = guess_of(order, p / q)

    assert guess.divergence(float(guess.first @ p), float(guess.second @ q)) == pytest.approx(
        divergence_of(order, p, q), rel=1e-9
    )


@pytest.mark.parametrize("order", [1.0, 1.25, 2.0, 7.5, 40.0])
def test_no_ratio_gives_more_than_the_divergence(order):
    """Hölder's inequality for two hundred guesses; with the worlds' means exchanged it would fail."""
    p, q = LAWS
    exact = divergence_of(order, p, q)
    guesses = [guess_of(order, ratio) for ratio in np.exp(np.random.default_rng(7).normal(size=(200, 4)))]

    assert max(g.divergence(float(g.first @ p), float(g.second @ q)) for g in guesses) <= exact
    assert (
        max(g.divergence(float(g.first @ q), float(g.second @ p)) for g in guesses) > exact
    )  # the other divergence is larger


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1, "1.5", 2, 16])
@pytest.mark.parametrize("swapped", [False, True])
def test_the_larger_direction_is_found(alpha, swapped):
    """D_α differs by direction: the bound comes near the larger one, and not above it, from samples without luck."""
    p, q = np.array([18, 2]) / 20, np.array([10, 10]) / 20
    worlds = [alternating([18, 2], 400_000), alternating([10, 10], 400_000)]
    found = renyi(*(reversed(worlds) if swapped else worlds), alpha=alpha)
    larger = max((divergence_of(found.alpha, p, q), 0), (divergence_of(found.alpha, q, p), 1))

    assert 0.9 * larger[0] < found.divergence <= larger[0]
    assert found.likelier == (1 - larger[1] if swapped else larger[1])


@pytest.mark.slow
def test_a_lower_order_serves_where_the_one_asked_has_no_bound():
    """At order 64 few samples of a heavy tail bound no mean; the divergence of a lower order is a bound all the same."""
    one, other = alternating([64, 32, 16, 8, 4, 2, 1], 6000), alternating([1, 2, 4, 8, 16, 32, 64], 6000)
    lower, higher = (renyi(one, other, alpha=alpha).divergence for alpha in (1, 64))

    assert higher > lower > 1.0
    assert renyi_tester._orders(64.0) == [64.0, 32.0, 16.0, 8.0, 1.0]  # noqa: SLF001


def test_order_infinity_is_the_lower_bound_of_epsilon():
    """The same split, the same event, the same number."""
    one, other = alternating([18, 2], 4000), alternating([10, 10], 4000)
    found = renyi(one, other, alpha="inf", confidence="0.999")

    assert found.divergence == lower_bound(one, other, alpha=0.001).epsilon > 1.0
    assert found.alpha == math.inf


def test_a_refuted_divergence_is_told_in_a_sentence():
    """The claim of a loss at that order, the bound, and by what."""
    found = renyi(alternating([18, 2], 40_000), alternating([10, 10], 40_000), alpha=2)

    assert found.refutes(cu.Pure(epsilon="0.1"))
    assert not found.refutes(cu.Pure(epsilon=4))
    assert not found.refutes(4)
    assert found.verdict(cu.Pure(epsilon="0.1")).startswith("the claim of a Rényi divergence of 0.009")
    assert "is refuted: at least" in found.verdict(cu.Pure(epsilon="0.1"))
    assert "a likelihood ratio of 2 steps" in found.verdict("0.1")
    assert "is not refuted" in found.verdict(4)


# ---- cells and parts ------------------------------------------------------------------------------------------------


def test_the_tested_part_has_no_part_in_choosing():
    """Whatever the last three quarters are, event and direction stay."""
    one, other = alternating([18, 2], 8000), alternating([10, 10], 8000)
    turned = [np.concatenate([world[:2000], 1 - world[2000:]]) for world in (one, other)]
    events = [learn_event(part_scores(*pair), 1.0, 1e-6) for pair in ((one, other), turned)]

    assert events[0].likelier == events[1].likelier
    assert np.array_equal(events[0].member, events[1].member)


@pytest.mark.slow
def test_what_only_the_chosen_part_shows_is_not_proved():
    """Worlds that differ in the first quarter and nowhere else: nothing is proved, whatever was chosen."""
    one = alternating([18, 2], 8000)
    other = np.concatenate([alternating([2, 18], 2000), one[2000:]])

    assert hockey_stick(one, other, epsilon=0).delta == 0.0
    for alpha in (1, 2, 8, "inf"):
        assert renyi(one, other, alpha=alpha).divergence == 0.0


def test_a_score_is_learned_on_the_first_eighth(monkeypatch):
    """And on nothing else."""
    seen = []

    class Score:
        def score(self, rows):
            return rows[:, 0]

    def train(*worlds):
        seen.extend(worlds)
        return Score()

    monkeypatch.setattr("curador.audit.partition.train", train)
    rows = np.arange(3200).reshape(1600, 2)
    part_scores(rows, -rows)

    assert np.array_equal(seen[0], rows[:200])
    assert np.array_equal(seen[1], -rows[:200])


def test_parts_are_an_eighth_an_eighth_and_the_rest():
    """In the order drawn."""
    parts = part_scores(np.arange(800), np.arange(1600))

    assert [len(part[0]) for part in (parts.learned, parts.compared, parts.tested)] == [100, 100, 600]
    assert [len(part[1]) for part in (parts.learned, parts.compared, parts.tested)] == [200, 200, 1200]
    assert np.array_equal(np.concatenate([parts.chosen[1], parts.tested[1]]), np.arange(1600))


def test_cells_of_many_values_are_finer_at_the_ends():
    """Equal shares inside, halves of halves outside, and every score in one of them."""
    scores = np.arange(100_000)
    cells = partition(scores, scores, 16)
    counts = cells.counts(scores)

    assert counts.sum() == len(scores)
    assert 16 <= counts.min() < 40
    assert counts.max() <= 6400
    assert cells.size == len(counts) > 16


@pytest.mark.parametrize(
    ("member", "words"),
    [
        ([1, 0, 0, 0], "score < 1"),
        ([0, 1, 0, 0], "1 ≤ score < 2"),
        ([0, 0, 0, 1], "score ≥ 3"),
        ([1, 0, 1, 0], "score < 1 or 2 ≤ score < 3"),
        ([0, 0, 0, 0], "nothing"),
        ([1, 1, 1, 1], "everything"),
    ],
)
def test_a_union_of_cells_is_said_as_intervals(member, words):
    """What an analyst would check by hand."""
    assert Partition(np.array([1, 2, 3])).words(np.array(member, bool)) == words


def steps_of_noise(size):
    """Two worlds of two coordinates, three quarters apart in each, in steps of 1/64: no bit below tells anything."""
    noise = np.round(np.random.default_rng(3).normal(size=(2, size, 2)) * 64) / 64
    return noise[0], noise[1] + 0.75


TRUTH = math.erf(0.75 / 2)
"""δ at ε = 0 of normal noise with means (0, 0) and (3/4, 3/4): 2Φ(μ/2) − 1 with μ = 0.75 √2."""


def test_rows_of_numbers_are_scored_by_what_is_learned():
    """The sum of two coordinates tells the worlds apart; a single one does less."""
    one, other = steps_of_noise(16_000)

    assert 0.8 * TRUTH < hockey_stick(one, other, epsilon=0).delta < TRUTH
    assert hockey_stick(one[:, 0], other[:, 0], epsilon=0).delta < 0.75 * TRUTH


def test_rows_of_floats_are_also_told_apart_by_their_bits():
    """Floats that 0.7 was added to have fewer bits: as a row of one number the bound is above what values can show."""
    noise = np.random.default_rng(3).normal(size=(2, 16_000))
    one, other = noise[0], noise[1] + 0.7
    values = math.erf(0.7 / 2 / math.sqrt(2))

    assert hockey_stick(one, other, epsilon=0).delta < values < hockey_stick(one[:, None], other[:, None], epsilon=0).delta


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros(10), "samples0 must be at least 64 samples; got 10"),
        (np.zeros((100, 2)), "samples0 must be at least 512 samples; got 100"),
        (np.zeros((100, 2, 2)), "samples0 must be an array of one or two dimensions; got 3"),
        (np.full(100, np.nan), "samples0 must be free of NaN"),
        (["a"] * 100, "samples0 must be an array of numbers"),
        ([[1], [1, 2]], "samples0 must be an array of numbers"),
        (np.zeros(100, complex), "samples0 must be an array of numbers"),
    ],
)
def test_samples_that_are_none_are_refused(samples, words):
    """One sentence, before any work."""
    with pytest.raises(InvalidParameter, match=words):
        hockey_stick(samples, np.zeros(100), epsilon=1)


def test_worlds_of_different_widths_are_refused():
    """Numbers and rows, or rows of two lengths."""
    with pytest.raises(InvalidParameter, match="samples of both worlds must be of one width"):
        renyi(np.zeros((600, 2)), np.zeros((600, 3)), alpha=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": -1}, "epsilon must be at least 0"),
        ({"epsilon": 1000}, "epsilon must be at most 700"),
        ({"epsilon": 1, "confidence": 1}, "confidence must be strictly between 0 and 1"),
    ],
)
def test_numbers_out_of_range_are_refused(options, words):
    """ε is not negative, confidence is a probability."""
    with pytest.raises(InvalidParameter, match=words):
        hockey_stick(np.zeros(100), np.zeros(100), **options)


def test_an_order_below_one_is_refused():
    """As in the losses."""
    with pytest.raises(InvalidParameter, match="alpha must be at least 1"):
        renyi(np.zeros(100), np.zeros(100), alpha="0.5")


# ---- whole curves ---------------------------------------------------------------------------------------------------


def test_curves_are_compared_point_by_point():
    """Claims of the loss, bounds below them, one confidence for all; false alarms: 1e-6."""
    mechanism = cu.RandomizedResponse(epsilon=1)
    found = divergences(mechanism, 0, 1, 20_000, epsilons=("0", "0.5"), orders=(1, 2))

    assert found.holds
    assert found.violations == ()
    assert [point.at for point in found.deltas] == [0.0, 0.5]
    assert [point.claimed for point in found.deltas] == [mechanism.loss.delta(0), mechanism.loss.delta("0.5")]
    assert [point.claimed for point in found.renyi] == [mechanism.loss.renyi(1), mechanism.loss.renyi(2)]
    assert all(0.5 < point.ratio <= 1.0 for point in (*found.deltas, *found.renyi))
    assert found.confidence == pytest.approx(0.999999, abs=1e-12)
    assert str(found).count("\n") == 6
    assert "REFUTED" not in str(found)


def test_every_point_has_its_share_of_the_error():
    """Four points of 1e-6 together are bounds of 2.5e-7 each."""
    one, other = alternating([18, 2], 4000), alternating([10, 10], 4000)
    found = compare_divergences("it", cu.Pure(epsilon=3), one, other, epsilons=(0, 1), orders=(1, 2))
    alone = hockey_stick(one, other, epsilon=1, confidence=1 - Fraction(1, 4_000_000))

    assert found.deltas[1].bound == pytest.approx(alone.delta, rel=1e-9)
    assert found.renyi[1].bound == pytest.approx(renyi(one, other, alpha=2, confidence=1 - Fraction(1, 4_000_000)).divergence)


def test_a_wrong_curve_is_told_by_its_points():
    """A claim of ε = 0.1 for worlds apart by 1.6: every point is refuted, in a sentence and in the table."""
    found = compare_divergences(
        "it", cu.Pure(epsilon="0.1"), alternating([18, 2], 40_000), alternating([10, 10], 40_000), orders=(2,)
    )

    assert not found.holds
    assert len(found.violations) == len(found.deltas) + 1
    assert found.violations[0].startswith("it: δ ≥ 0.3")
    assert "it: Rényi divergence ≥ " in found.violations[-1]
    assert str(found).count("REFUTED") == len(found.violations)


def test_a_claim_of_infinity_is_never_refuted_and_has_no_ratio():
    """Where the loss has no finite divergence every bound stands."""
    found = compare_divergences(
        "it", cu.Approx(epsilon=1, delta="0.3"), alternating([18, 2], 4000), alternating([10, 10], 4000), orders=(2,)
    )

    assert found.renyi[0].claimed == math.inf
    assert found.renyi[0].holds
    assert math.isnan(found.renyi[0].ratio)


@pytest.mark.slow
def test_a_score_makes_numbers_of_outputs():
    """Winners of a noisy maximum, and by how much."""
    mechanism = cu.NoisyMax.calibrate(epsilon=4, sensitivity=1, gap=True)
    found = divergences(mechanism, [0] * 3, [1, -1, -1], 8000, score=lambda out: out.indices[:, 0] == 0, orders=(2,))

    assert found.holds
    assert found.deltas[0].bound > 0.1


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((object(), 0, 1), {}, "mechanism must be one with a loss and release_many; got 'object'"),
        ((cu.RandomizedResponse(epsilon=1), 0, 1, 10), {}, "samples must be a whole number of at least 64"),
        (
            (cu.RandomizedResponse(epsilon=1), 0, 1, 100),
            {"epsilons": (), "orders": ()},
            "epsilons and orders must be at least one together",
        ),
    ],
)
def test_curves_of_nothing_are_refused(arguments, options, words):
    """A mechanism, enough samples, something to look at."""
    with pytest.raises(InvalidParameter, match=words):
        divergences(*arguments, **options)


def test_results_are_frozen():
    """Findings do not change."""
    for found in (DeltaBound(0.0, 0.0, 0.9, "", 0, Counts(0, 1, 0, 1)), RenyiBound(1.0, 0.0, 0.9, "", 0)):
        with pytest.raises(AttributeError):
            found.confidence = 1.0


def test_parts_hold_scores_only():
    """What is tested is never more than was given."""
    parts = Parted((np.zeros(1), np.zeros(1)), (np.ones(1), np.ones(1)), (np.zeros(2), np.zeros(2)))

    assert [len(world) for world in parts.chosen] == [2, 2]
