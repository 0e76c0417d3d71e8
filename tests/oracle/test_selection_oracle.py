"""Choices against laws that are summed over all noises: what is drawn, what is claimed, and mistakes that must be seen."""

import itertools
import math
import operator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from selection_laws import (
    FALSE_ALARM,
    chi_squared_excess,
    exponential_law,
    largest_log_ratio,
    neighbours,
    noisy_max_law,
    noisy_order_law,
    permute_and_flip_law,
)

from curador.mechanisms.exponential import Exponential, PermuteAndFlip, largest_heads
from curador.mechanisms.noisy_max import NoisyMax
from curador.mechanisms.quantile import Quantile
from curador.privacy.losses import BoundedRange, Pure

SCORES = [0.0, 1.0, 3.0, 3.5, 1.0]
SIZE = 100_000
STEP = 2.0**-30
"""The grid where ε = 2³⁰ and the sensitivity is 1: noise of a few steps, so that ties are common."""

LAWS = {Exponential: exponential_law, PermuteAndFlip: permute_and_flip_law}
BOTH = pytest.mark.parametrize("kind", LAWS)
WAYS = pytest.mark.parametrize("monotone", [False, True])


# ---- probabilities and draws ----------------------------------------------------------------------------------------


@BOTH
@WAYS
@pytest.mark.parametrize(("epsilon", "sensitivity"), [("1", "1"), ("0.3", "1/4"), ("20", "2")])
def test_probabilities_are_the_law(kind, monotone, epsilon, sensitivity):
    """To 1e-12, with rate ε/(2Δ), or ε/Δ where scores are monotone."""
    mechanism = kind(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone)
    rate = float(Fraction(epsilon) / Fraction(sensitivity)) / (1 if monotone else 2)
    assert np.allclose(mechanism.probabilities(SCORES), LAWS[kind](SCORES, rate), rtol=1e-12, atol=1e-15)


def test_permute_and_flip_is_the_integral():
    """P(i) = p_i ∫ Π (1 − p_j t) dt with 40 digits, and for 200 candidates the probabilities still add up to 1."""
    with mpmath.workdps(40):
        heads = [mpmath.exp((mpmath.mpf(score) - 3.5) / 2) for score in SCORES]
        exact = [
            float(p * mpmath.quad(lambda t, i=i: mpmath.fprod(1 - q * t for j, q in enumerate(heads) if j != i), [0, 1]))
            for i, p in enumerate(heads)
        ]
    mechanism = PermuteAndFlip(epsilon=1, sensitivity=1)
    assert np.allclose(mechanism.probabilities(SCORES), exact, rtol=1e-13)
    assert math.isclose(mechanism.probabilities(np.linspace(0, 20, 200)).sum(), 1, rel_tol=1e-12)


def test_permute_and_flip_is_noisy_max_with_exponential_noise():
    """The identity that its privacy proof rests on, by quadrature over the winner's noise."""
    law = permute_and_flip_law(SCORES, 0.5)
    n = np.linspace(0, 80, 400_001)
    for i, own in enumerate(SCORES):
        density = 0.5 * np.exp(-0.5 * n)
        for j, other in enumerate(SCORES):
            if j != i:
                density = density * np.maximum(-np.expm1(-0.5 * np.maximum(n + own - other, 0)), 0)
        assert math.isclose(np.trapezoid(density, n), law[i], rel_tol=1e-6)


@BOTH
@WAYS
def test_draws_follow_the_law(kind, monotone):
    """χ² of 10⁵ draws at a false-alarm rate of 1e-9; the law with the other factor of 2 is refused by the same test."""
    mechanism = kind(epsilon=1, sensitivity=1, monotone=monotone)
    counts = np.bincount(mechanism.release_many(SCORES, SIZE), minlength=len(SCORES))
    assert chi_squared_excess(counts, LAWS[kind](SCORES, 1.0 if monotone else 0.5)) < 1
    assert chi_squared_excess(counts, LAWS[kind](SCORES, 0.5 if monotone else 1.0)) > 1


def test_draws_tell_the_two_mechanisms_apart():
    """Permute-and-flip's draws do not pass for the exponential mechanism's, nor the reverse."""
    for kind, other in ((Exponential, permute_and_flip_law), (PermuteAndFlip, exponential_law)):
        counts = np.bincount(kind(epsilon=1, sensitivity=1).release_many(SCORES, SIZE), minlength=len(SCORES))
        assert chi_squared_excess(counts, other(SCORES, 0.5)) > 1


def test_single_releases_follow_the_law():
    """2000 single releases of each mechanism (false alarm 1e-9)."""
    for mechanism in (Exponential(epsilon=3, sensitivity=1), PermuteAndFlip(epsilon=3, sensitivity=1)):
        counts = np.bincount([mechanism.release(SCORES) for _ in range(2000)], minlength=len(SCORES))
        assert chi_squared_excess(counts, mechanism.probabilities(SCORES)) < 1


def test_draws_between_edges_follow_the_density():
    """Pieces by weight times length, and evenly inside a piece (false alarm 1e-9 each)."""
    mechanism = Exponential(epsilon=1, sensitivity=1)
    edges, scores = [0.0, 1.0, 2.0, 2.0, 5.0, 9.0, 10.0], [-2.5, -1.5, -0.5, -0.5, -1.5, -2.5]
    weight = np.diff(edges) * np.exp(0.5 * np.array(scores))
    law = weight / weight.sum()
    assert np.allclose(mechanism.probabilities_between(edges, scores), law, rtol=1e-12)
    drawn = mechanism.release_between_many(edges, scores, SIZE)
    piece = np.searchsorted(edges, drawn, side="right") - 1
    counts = np.bincount(piece, minlength=6)
    assert counts[2] == 0
    assert chi_squared_excess(np.delete(counts, 2), np.delete(law, 2)) < 1
    assert stats.kstest(drawn[piece == 3], "uniform", args=(2, 3)).pvalue > FALSE_ALARM
    unweighted = np.exp(0.5 * np.array(scores))  # a draw that forgets the lengths
    assert chi_squared_excess(np.delete(counts, 2), np.delete(unweighted, 2) / np.delete(unweighted, 2).sum()) > 1


# ---- privacy over all neighbours ------------------------------------------------------------------------------------


@BOTH
@WAYS
def test_largest_log_ratio_over_all_neighbours_is_at_most_epsilon(kind, monotone):
    """All scores of four candidates in 0 … 2, all neighbours within Δ = 1: never above ε, and above 0.6 ε somewhere."""
    rate = 1.0 if monotone else 0.5
    worst = 0.0
    for scores in itertools.product((0, 1, 2), repeat=4):
        law = LAWS[kind](scores, rate)
        for other in neighbours(scores, monotone):
            worst = max(worst, np.abs(np.log(law / LAWS[kind](other, rate))).max())
    assert 0.6 < worst <= 1 + 1e-12


def test_monotone_rate_is_not_private_for_scores_that_are_not():
    """The factor of 2 is needed: without it scores that move apart lose more than ε, in both mechanisms and in noisy max."""
    assert max(np.abs(np.log(exponential_law((0, 0), 1.0) / exponential_law((1, -1), 1.0)))) > 1.1
    assert max(np.abs(np.log(permute_and_flip_law((0, 0), 1.0) / permute_and_flip_law((1, -1), 1.0)))) > 1.1
    assert max(np.abs(np.log(noisy_max_law((-10, 0), 1.0) / noisy_max_law((-8, 0), 1.0)))) > 1.5


def test_exponential_is_bounded_range_and_permute_and_flip_is_not():
    """Log-ratios of the first span at most ε; those of the second span more, so that its loss may not say so."""
    spans = {Exponential: 0.0, PermuteAndFlip: 0.0}
    for scores in itertools.product((0, 3, 6), repeat=3):
        for other in neighbours(scores, monotone=False):
            for kind, law in LAWS.items():
                ratio = np.log(law(scores, 0.5) / law(other, 0.5))
                spans[kind] = max(spans[kind], ratio.max() - ratio.min())
    assert spans[Exponential] <= 1 + 1e-12
    assert spans[PermuteAndFlip] > 1.2
    assert Exponential(epsilon=1, sensitivity=1).loss == BoundedRange(epsilon=1)
    assert PermuteAndFlip(epsilon=1, sensitivity=1).loss == Pure(epsilon=1)


@WAYS
def test_noisy_max_is_private_over_all_neighbours(monotone):
    """The summed law of the index, ties included, for all scores of three and all neighbours: at most ε, above 0.6 ε."""
    mechanism = NoisyMax(epsilon=1, sensitivity=1, monotone=monotone)
    scale = float(mechanism.noise_scale / mechanism.steps)
    assert scale == (1.0 if monotone else 2.0)
    worst = 0.0
    for scores in itertools.product((0, 1, 4), repeat=3):
        law = noisy_max_law(scores, scale)
        for other in neighbours(scores, monotone):
            worst = max(worst, np.abs(np.log(law / noisy_max_law(other, scale))).max())
    assert 0.6 < worst <= 1 + 1e-12


@WAYS
@pytest.mark.parametrize(("top", "gap"), [(1, True), (2, False), (2, True)])
def test_winners_and_gaps_are_private_over_all_neighbours(top, gap, monotone):
    """The joint law of winners and gaps, by a sum over all noises of three candidates: at most ε for all neighbours."""
    epsilon = top * (1 if monotone else 2)
    mechanism = NoisyMax(epsilon=epsilon, sensitivity=1, monotone=monotone, top=top, gap=gap)
    assert mechanism.noise_scale == mechanism.steps
    worst = 0.0
    for scores in [(0, 0, 0), (0, 1, 2), (3, 0, 1)]:
        law = noisy_order_law(scores, 1.0, top=top, gap=gap)
        for other in set(neighbours(scores, monotone)):
            worst = max(worst, largest_log_ratio(law, noisy_order_law(other, 1.0, top=top, gap=gap), least=1e-5))
    assert 0.45 * epsilon < worst <= epsilon + 1e-3


def test_smallest_gap_does_not_tell_who_won():
    """The index order is counted in a gap, so that each candidate's smallest gap is 0."""
    law = noisy_order_law((0, 0, 0), 1.0, top=1, gap=True)
    assert {winner: min(gap for w, gap in law if w == winner) for winner in range(3)} == {0: 0, 1: 0, 2: 0}


# ---- noisy max: draws -----------------------------------------------------------------------------------------------


@WAYS
def test_noisy_max_draws_follow_the_summed_law(monotone):
    """Noise of two steps, ties common: χ² of 10⁵ draws (1e-9); the law with ties to the larger index is refused."""
    mechanism = NoisyMax(epsilon=2**30, sensitivity=1, monotone=monotone)
    scale = float(mechanism.noise_scale)
    assert scale == (1.0 if monotone else 2.0)
    scores = (0, 1, 1, 2)
    counts = np.bincount(mechanism.release_many([score * STEP for score in scores], SIZE), minlength=4)
    assert chi_squared_excess(counts, noisy_max_law(scores, scale)) < 1
    assert chi_squared_excess(counts, noisy_max_law(scores[::-1], scale)[::-1]) > 1


@pytest.mark.parametrize(("top", "gap"), [(1, True), (2, False), (2, True)])
def test_winners_and_gaps_follow_the_summed_law(top, gap):
    """Joint law of winners and gaps at noise of one step (10⁵ draws, false alarm 1e-9)."""
    mechanism = NoisyMax(epsilon=top * 2**31, sensitivity=1, top=top, gap=gap)
    assert mechanism.noise_scale == 1
    law = noisy_order_law((0, 1, 1), 1.0, top=top, gap=gap)
    drawn = mechanism.release_many([0, STEP, STEP], SIZE)
    rows = [drawn.indices] + ([np.rint(drawn.gaps / STEP).astype(int)] if gap else [])
    keys, counts = np.unique(np.concatenate(rows, axis=1), axis=0, return_counts=True)
    found = dict(zip(map(tuple, keys.tolist()), counts.tolist(), strict=True))
    assert set(found) <= set(law)
    assert chi_squared_excess([found.get(key, 0) for key in law], list(law.values())) < 1


def test_noisy_max_probabilities_are_the_fine_limit():
    """Quadrature over continuous noise agrees with the sum at a scale of 2000 steps, and is exact for two candidates."""
    mechanism = NoisyMax(epsilon=1, sensitivity=1)
    fine = noisy_max_law([score * 1000 for score in (0, 1, 3)], 2000.0, reach=80_000)
    assert np.allclose(mechanism.probabilities([0, 1, 3]), fine, atol=1e-3)
    for gap in (0.0, 0.5, 2.0, 30.0):
        other = 0.5 * math.exp(-gap / 2) * (1 + gap / 4)
        assert math.isclose(mechanism.probabilities([gap, 0])[1], other, rel_tol=1e-8)


def test_noisy_max_draws_follow_its_probabilities():
    """10⁵ draws on the usual grid against the displayed probabilities (1e-9)."""
    mechanism = NoisyMax(epsilon=1, sensitivity=1)
    counts = np.bincount(mechanism.release_many(SCORES, SIZE), minlength=len(SCORES))
    assert chi_squared_excess(counts, mechanism.probabilities(SCORES)) < 1
    assert chi_squared_excess(counts, NoisyMax(epsilon=1, sensitivity=1, monotone=True).probabilities(SCORES)) > 1


# ---- regret ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 10, 300])
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
@BOTH
def test_regret_bound_is_the_quantile_of_the_worst_scores(kind, k, confidence):
    """With k − 1 candidates exactly that far behind, the chance of one of them is 1 − confidence to a millionth."""
    mechanism = kind(epsilon=1, sensitivity=1)
    bound = mechanism.interval(confidence, candidates=k)
    assert bound.lower == 0
    missed = 1 - mechanism.probabilities([0.0] + [-bound.upper] * (k - 1))[0]
    aim = 1 - float(confidence)
    if bound.upper > mechanism.grid:  # one step: any candidate would do
        assert aim * (1 - 1e-6) < missed <= aim * (1 + 1e-9)
    else:
        assert missed <= aim


def test_regret_of_noisy_max_holds_and_is_close():
    """The bound's own worst case misses with at most β, and not less than a third of it."""
    for monotone, k in itertools.product((False, True), (2, 10, 100)):
        mechanism = NoisyMax(epsilon=1, sensitivity=1, monotone=monotone)
        bound = mechanism.interval("0.95", candidates=k).upper
        missed = 1 - mechanism.probabilities([0.0] + [-bound] * (k - 1))[0]
        assert 0.05 / 3 < missed <= 0.05


def test_regret_of_several_winners_holds():
    """A winner behind the third best score by more than the bound in at most 5 % of 20,000 draws (1e-9)."""
    mechanism = NoisyMax(epsilon=1, sensitivity=1, top=3)
    bound = mechanism.interval("0.95", candidates=10).upper
    drawn = mechanism.release_many([0.0] * 3 + [-bound] * 7, 20_000)
    missed = int((drawn.indices >= 3).any(axis=1).sum())
    assert stats.binom.sf(missed - 1, 20_000, 0.05) > FALSE_ALARM
    assert missed > 100


def test_largest_heads_is_safe_for_every_beta():
    """With 60 digits, the chance at the returned x is at most β, and above β/1.001."""
    for k, beta in itertools.product((2, 3, 50, 10**6), (0.4, 0.05, 1e-9, 1e-30)):
        x = largest_heads(k, beta)
        with mpmath.workdps(80):
            y = mpmath.mpf(x)
            chance = 1 - (1 - (1 - y) ** k) / (k * y)
            assert chance <= beta
            assert chance > mpmath.mpf(beta) / 1.001 or x == 1


# ---- quantiles ------------------------------------------------------------------------------------------------------


def test_quantile_probabilities_and_draws():
    """The median of five values on 11 points: the law by its definition, to 1e-12, and by χ² of 10⁵ draws (1e-9)."""
    values = [1, 2, 2, 5, 9]
    mechanism = Quantile(q=0.5, epsilon=1, lower=0, upper=10, adjacency="replace_one", cells=11)
    below, above = ([sum(f(v, x) for v in values) for x in range(11)] for f in (operator.lt, operator.gt))
    scores = [-max(0, low - (5 - low), high - (5 - high)) for low, high in zip(below, above, strict=True)]
    law = exponential_law(scores, 1 / 4)
    assert np.allclose(mechanism.probabilities(values), law, rtol=1e-12)
    counts = np.bincount(np.rint(mechanism.release_many(values, SIZE)).astype(int), minlength=11)
    assert chi_squared_excess(counts, law) < 1
    assert chi_squared_excess(counts, exponential_law(scores, 1 / 2)) > 1


def test_a_repeated_value_is_its_own_median():
    """Where two thirds of the people have one value, the median is that value, surely: not anything beside it."""
    mechanism = Quantile(q="1/2", epsilon=1, lower=0, upper=10, adjacency="replace_one", cells=11)
    law = mechanism.probabilities([1] * 300 + [7] * 600)
    assert law[7] > 1 - 1e-12


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("q", ["0", "1/4", "1/2", "0.9", "1"])
def test_quantile_is_private_over_all_small_databases(q, adjacency):
    """Units with one or two rows on four points: all databases of up to two units, all neighbours, at most ε in log-ratio."""
    mechanism = Quantile(q=q, epsilon=1, lower=0, upper=3, adjacency=adjacency, cells=4)
    rows = [(x,) for x in range(4)] + list(itertools.combinations_with_replacement(range(4), 2))

    def logs(database):
        values = [x for unit in database for x in unit]
        units = [place for place, unit in enumerate(database) for _ in unit]
        return np.log(mechanism.probabilities(np.array(values, float), units=np.array(units, int)))

    worst, span = 0.0, 0.0
    laws = {base: logs(base) for size in (0, 1, 2) for base in itertools.combinations_with_replacement(rows, size)}
    for base, law in laws.items():
        if adjacency == "add_or_remove_one":
            others = [base[:i] + base[i + 1 :] for i in range(len(base))]
        else:
            others = [(*base[1:], row) for row in rows] if base else []
        for other in others:
            ratio = law - laws[tuple(sorted(other, key=rows.index))]
            worst, span = max(worst, np.abs(ratio).max()), max(span, ratio.max() - ratio.min())
    assert 0.3 < worst <= 1 + 1e-9
    assert span <= 1 + 1e-9
