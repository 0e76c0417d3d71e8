"""One run with canaries: the theorems against brute force, exact error probabilities, drivers, and what is refused."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import curador as cu
from curador.audit import canaries, fit_run, histogram_run, one_run, one_run_bound, one_run_mu
from curador.audit.one_run import curve_of, exceeds, p_value
from curador.errors import InvalidParameter


def binomial(size, chance):
    """The probabilities of a binomial law, exact for fractions, else with 50 digits."""
    with mpmath.workdps(50):
        return [math.comb(size, k) * chance**k * (1 - chance) ** (size - k) for k in range(size + 1)]


def in_use(correct, guesses, number, chance, delta):
    """The formula with a δ-term that is in use elsewhere, term by term."""
    law = binomial(guesses, chance)
    shares = [sum(law[correct - i : correct]) / i for i in range(1, correct + 1)]
    return sum(law[correct:]) + 2 * number * delta * max(shares)


# ---- the theorem ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("correct", "guesses"), [(0, 5), (1, 1), (9, 10), (75, 100), (140, 150), (5, 90)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5, 8.0])
def test_the_pure_p_value_is_a_binomial_tail_rounded_up(correct, guesses, epsilon):
    """Above the value with 50 digits, by less than one part in 10⁸."""
    exact = min(mpmath.mpf(1), mpmath.fsum(binomial(guesses, 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon))))[correct:]))
    ours = p_value(correct, guesses=guesses, canaries=guesses, epsilon=epsilon)

    assert exact * (1 - mpmath.mpf("1e-40")) <= ours <= exact * mpmath.mpf("1.00000001")


def test_the_bound_is_near_the_one_in_print():
    """75 of 100 guesses on 1000 canaries, δ = 1e-4, 95 %: 0.673 is printed with the formula that does not always hold."""
    assert one_run_bound(75, guesses=100, canaries=1000, delta="1e-4") == pytest.approx(0.680, abs=1e-3)


def test_the_formula_in_use_does_not_cover_every_private_run():
    """Three canaries: 7^(k−1)/73 for guesses with k ≥ 1 right places is (log 7, 1/73)-private, and right once at least."""
    chances = {k: Fraction(7) ** (k - 1) / 73 for k in (1, 2, 3)} | {0: Fraction(0)}
    right = {t: sum(place == 1 for place in t) for t in itertools.product((-1, 1), repeat=3)}  # all coins are 1
    flipped = {t: right[-t[0], t[1], t[2]] for t in right}  # the first coin is −1
    forth = sum(max(Fraction(0), chances[right[t]] - 7 * chances[flipped[t]]) for t in right)
    back = sum(max(Fraction(0), chances[flipped[t]] - 7 * chances[right[t]]) for t in right)

    assert sum(chances[k] for k in right.values()) == 1
    assert (forth, back) == (Fraction(1, 73), Fraction(1, 73))
    assert in_use(1, 3, 3, Fraction(7, 8), Fraction(1, 73)) < Fraction(9983, 10_000)
    assert p_value(1, guesses=3, canaries=3, epsilon=math.log(7), delta=Fraction(1, 73)) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["0", "1e-5", "0.01", "0.3"])
@pytest.mark.parametrize("correct", [1, 3, 17, 20])
def test_the_p_value_grows_with_epsilon(correct, delta):
    """So that the bound found by halving is the first place where the p-value is too large."""
    found = [p_value(correct, guesses=20, canaries=30, epsilon=e, delta=delta) for e in np.linspace(0, 12, 50).tolist()]

    assert np.all(np.diff(found) >= 0)


@pytest.mark.parametrize("delta", ["0", "1e-4"])
def test_the_bound_is_where_the_p_value_meets_the_error(delta):
    """At the bound the p-value is at most 1 − confidence, a little further it is not."""
    bound = one_run_bound(90, guesses=100, canaries=200, delta=delta, confidence="0.999")
    at = {e: p_value(90, guesses=100, canaries=200, epsilon=e, delta=delta) for e in (bound, bound * (1 + 1e-6))}

    assert at[bound] <= 0.001 < at[bound * (1 + 1e-6)]


def most_likely(number, guesses, correct, epsilon, delta):
    """The largest P[right guesses ≥ correct] of all (ε, δ)-private ways to guess, by a linear programme."""
    from scipy.optimize import linprog
    from scipy.sparse import lil_matrix

    coins = list(itertools.product((-1, 1), repeat=number))
    outputs = [t for t in itertools.product((-1, 0, 1), repeat=number) if sum(map(abs, t)) == guesses]
    place = {(s, t): i for i, (s, t) in enumerate(itertools.product(coins, outputs))}
    pairs = [(s, (*s[:i], -s[i], *s[i + 1 :])) for s in coins for i in range(number)]
    size = len(place) + len(pairs) * len(outputs)
    excess, total, even = lil_matrix((len(pairs) * (len(outputs) + 1), size)), [], lil_matrix((len(coins), size))
    row = 0
    for pair, (s, other) in enumerate(pairs):
        first = len(place) + pair * len(outputs)
        for j, t in enumerate(outputs):  # P[t | s] − e^ε P[t | other] ≤ what counts towards δ
            excess[row, place[s, t]], excess[row, place[other, t]], excess[row, first + j] = 1.0, -math.exp(epsilon), -1.0
            total.append(0.0)
            row += 1
        excess[row, first : first + len(outputs)] = 1.0
        total.append(delta)
        row += 1
    for i, s in enumerate(coins):
        for t in outputs:
            even[i, place[s, t]] = 1.0
    gain = np.zeros(size)
    for (s, t), i in place.items():
        gain[i] = -(sum(a == b for a, b in zip(s, t, strict=True)) >= correct) / len(coins)
    found = linprog(gain, A_ub=excess.tocsr(), b_ub=total, A_eq=even.tocsr(), b_eq=np.ones(len(coins)), bounds=(0, 1))
    return -found.fun


CASES = [(n, r, v) for n in (1, 2, 3) for r in range(1, n + 1) for v in range(1, r + 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "guesses", "correct"), CASES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 0.01), (0.0, 0.05), (2.0, 0.1), (2.0, 0.013)])
def test_no_private_way_to_guess_is_beyond_the_theorems(number, guesses, correct, epsilon, delta):
    """The p-value is above the best of all private guessers, by a third at most; for δ = 0 it is reached."""
    best = most_likely(number, guesses, correct, epsilon, delta)
    stated = p_value(correct, guesses=guesses, canaries=number, epsilon=epsilon, delta=repr(delta))
    curve = curve_of(lambda rates: cu.odds.tradeoff_approximate(rates, epsilon=epsilon, delta=delta))

    assert best <= stated * (1 + 1e-6)
    assert stated <= best * (1.34 if delta else 1 + 1e-6)
    assert not exceeds(curve, correct, guesses=guesses, canaries=number, alpha=best * (1 - 1e-6))


def test_a_theorem_that_forgets_delta_is_caught_by_brute_force():
    """The check can fail: without its δ-term the p-value is below what a private guesser reaches."""
    assert most_likely(2, 2, 2, 0.5, 0.05) > p_value(2, guesses=2, canaries=2, epsilon=0.5) * 1.01


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("confidence", ["0.95", "0.999"])
def test_false_alarms_are_as_rare_as_stated(epsilon, confidence):
    """Exactly, for randomized response, the worst case: P[bound > ε] is at most 1 − confidence, and not far below."""
    size, alpha = 200, 1 - float(confidence)
    law = binomial(size, 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon))))
    first = next(v for v in range(size + 1) if one_run_bound(v, guesses=size, canaries=size, confidence=confidence) > epsilon)
    alarms = mpmath.fsum(law[first:])

    assert alarms <= alpha < mpmath.fsum(law[first - 1 :])
    assert all(
        one_run_bound(v, guesses=size, canaries=size, confidence=confidence) > epsilon for v in range(first, size + 1, 7)
    )


# ---- the whole curve ------------------------------------------------------------------------------------------------


def reached(correct, guesses, number, curve):
    """The largest alpha that the recursion allows."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if exceeds(curve, correct, guesses=guesses, canaries=number, alpha=middle) else (middle, high)
        )
    return high


@pytest.mark.slow
@pytest.mark.parametrize(("size", "correct"), [(5, 4), (20, 15), (60, 50)])
@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_independent_gaussian_canaries_are_within_the_curve(size, correct, mu):
    """The best guesses of canaries with Gaussian noise each follow a binomial law; its tail is within what is allowed."""
    chance = (1 + math.erf(mu / math.sqrt(8))) / 2
    tail = float(mpmath.fsum(binomial(size, mpmath.mpf(chance))[correct:]))

    assert tail <= reached(correct, size, size, curve_of(lambda rates: cu.odds.tradeoff_gaussian(rates, mu=mu)))


def test_the_curve_of_a_pure_loss_is_near_the_exact_theorem():
    """Within a hundredth of ε where the published theorem is exact."""
    bound = one_run_bound(990, guesses=1000, canaries=1000)

    def false(epsilon):
        curve = curve_of(lambda rates: cu.odds.tradeoff_approximate(rates, epsilon=epsilon))
        return exceeds(curve, 990, guesses=1000, canaries=1000, alpha=0.05)

    assert false(bound * 0.98)
    assert not false(bound * 1.001)


@pytest.mark.slow
def test_a_bound_of_mu():
    """Below the μ of which the guesses would be typical; nothing where they are no better than coins."""
    typical = 2.0
    right = round(1000 * (1 + math.erf(typical / math.sqrt(8))) / 2)

    assert 0.5 < one_run_mu(right, guesses=1000, canaries=1000) < typical
    assert one_run_mu(500, guesses=1000, canaries=1000) == 0.0


@pytest.mark.slow
def test_gaussian_noise_is_seen_better_by_its_curve():
    """31 of 31 guesses on 1000 canaries refute a μ whose ε at 1e-5 is above what the point (ε, δ) refutes."""
    mu = one_run_mu(31, guesses=31, canaries=1000)
    noise = cu.Gaussian(sigma=repr(1 / mu), sensitivity=1)

    assert noise.loss.epsilon("1e-5") > 1.2 * one_run_bound(31, guesses=31, canaries=1000, delta="1e-5")


# ---- guesses --------------------------------------------------------------------------------------------------------

IN = np.array([True, False, True, False, True, True, False, False])


def test_the_surest_canaries_are_guessed():
    """Those furthest from the middle, by the side they are on."""
    scores = np.array([9.0, -9.0, 8.0, -8.0, -1.0, 1.0, 0.5, -0.5])

    found = one_run(scores, IN, guesses=4)
    assert (found.guesses, found.correct, found.accuracy) == (4, 4, 1.0)
    found = one_run(scores, IN, guesses=8)
    assert (found.guesses, found.correct) == (8, 6)


def test_guesses_may_be_given_with_abstentions():
    """Above 0 in, below 0 out, 0 no guess; the bound is that of their numbers."""
    found = one_run([1, -1, 1, -1, 0, 0, 1, 0], IN, guesses="sign")

    assert (found.canaries, found.guesses, found.correct) == (8, 5, 4)
    assert found.epsilon == one_run_bound(4, guesses=5, canaries=8)


def test_several_numbers_of_guesses_share_the_error():
    """All, half, a quarter: each at a part of the error, and the best is told."""
    scores = np.where(np.tile(IN, 8), 1.0, 0.0)
    found = one_run(scores, np.tile(IN, 8), confidence="0.9")

    assert (found.guesses, found.correct) == (64, 64)
    assert found.epsilon == pytest.approx(one_run_bound(64, guesses=64, canaries=64, confidence=repr(1 - 0.1 / 4)), rel=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"included": np.ones(8)}, "included must be booleans"),
        ({"included": IN[:7]}, "scores must be one a canary"),
        ({"scores": np.full(8, np.nan)}, "scores must be without NaN"),
        ({"scores": np.zeros((8, 1))}, "scores must be 1 to 100000 numbers"),
        ({"guesses": 9}, "guesses must be at most 8"),
        ({"guesses": "all"}, "guesses must be a number"),
        ({"guesses": "sign", "delta": "1e-3"}, "guesses must be a number where delta is above 0"),
        ({"loss": 1}, "loss must be a loss"),
        ({"confidence": 0}, "confidence must be"),
        ({"delta": 2}, "delta must be"),
    ],
)
def test_what_proves_nothing_is_refused(change, words):
    """One sentence each."""
    arguments = {"scores": np.zeros(8), "included": IN, **change}

    with pytest.raises(InvalidParameter, match=words):
        one_run(arguments.pop("scores"), arguments.pop("included"), **arguments)


@pytest.mark.parametrize("numbers", [(5, 4, 9), (3, 5, 4), (1, 2, 100_001)])
def test_impossible_counts_are_refused(numbers):
    """More right than guesses, more guesses than canaries, too many canaries."""
    v, r, m = numbers

    with pytest.raises(InvalidParameter, match="correct must be at most guesses"):
        one_run_bound(v, guesses=r, canaries=m)


@pytest.mark.parametrize("scores", [np.zeros(8), np.full(8, np.inf), np.array([np.inf, -np.inf] * 4)])
def test_scores_without_a_middle_are_guessed_all_the_same(scores):
    """Equal or infinite scores give some guesses, whatever they are worth."""
    assert one_run(scores, IN, guesses=8).guesses == 8


# ---- drivers --------------------------------------------------------------------------------------------------------


def test_a_run_is_called_once_with_fair_coins():
    """The coins are fresh, about half are True, and what the run does to its copy changes nothing. False alarms: < 1e-9."""
    seen = []

    def run(included):
        seen.append(included.copy())
        scores = included * 1.0
        included[:] = False
        return scores

    found = [canaries(run, canaries=4000) for _ in range(2)]

    assert [one.correct for one in found] == [4000, 4000]
    assert len(seen) == 2
    assert 1700 < seen[0].sum() < 2300
    assert (seen[0] != seen[1]).any()


@pytest.mark.parametrize("change", [{"guesses": 9}, {"delta": 2}, {"confidence": 1}, {"loss": 1}, {"canaries": 0}])
def test_nothing_is_run_for_a_question_that_is_refused(change):
    """A run may take hours, and is a release."""
    with pytest.raises(InvalidParameter):
        canaries(lambda _: pytest.fail("it ran"), **{"canaries": 8, **change})


def test_a_fit_is_run_with_the_canaries_that_are_in():
    """Records and marked records go in together, and the marked ones are scored by what comes out."""
    marked = np.eye(16)
    run = fit_run(lambda rows: rows.sum(axis=0), np.zeros((3, 16)), marked, lambda total, ones: ones @ total)
    found = canaries(run, canaries=16)

    assert (found.correct, found.guesses) == (16, 16)
    with pytest.raises(InvalidParameter, match="canaries must be 16"):
        canaries(run, canaries=15)
    with pytest.raises(InvalidParameter, match="marked must be records of the same shape"):
        fit_run(sum, np.zeros((3, 2)), marked, max)


def test_noise_for_less_than_one_canary_is_refused():
    """The claim would not cover what a canary moves."""
    with pytest.raises(InvalidParameter, match="mechanism must be noise for a sensitivity of at least 1"):
        histogram_run(cu.Laplace(scale=1, sensitivity="0.5", dimension=9))


@pytest.mark.slow
def test_a_run_tells_its_story():
    """Numbers, bound and verdict in one line."""
    mechanism = cu.DiscreteLaplace(scale="0.05", sensitivity=1)
    found = canaries(histogram_run(mechanism), canaries=200, loss=cu.losses.Pure(epsilon=1), confidence="0.999")

    assert found.refuted
    assert found.claim == 1.0
    assert str(found).startswith("200 canaries, 200 of 200 guesses right: ε ≥ ")
    assert str(found).endswith("with confidence 0.999, proved at most 1: REFUTED")
