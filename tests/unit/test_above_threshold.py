"""The sparse vector: the right one is private by exact sums over its noise, six wrong ones are not."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from selection_laws import chi_squared_excess, laplace_mass, laplace_tail, largest_log_ratio, neighbours, sparse_law
from wrong_sparse_vectors import HITS, VARIANTS

from curador.audit.replay import replay
from curador.errors import BudgetExceeded, InvalidParameter
from curador.mechanisms.above_threshold import AboveThreshold, AskedValue, Crossing, Crossings
from curador.mechanisms.noisy_max import NoisyMax
from curador.mechanisms.seam import recording, replaying
from curador.privacy.losses import DiscreteLaplaceLoss, Pure
from curador.randomness.entropy import entropy

STEP = 2.0**-30
FALSE_ALARM = 1e-9


def small(**more):
    """A mechanism whose noise has a scale of a few grid steps: its law can be summed, and ties are common."""
    return AboveThreshold(epsilon=2**30, sensitivity=1, threshold=0, split="1/2", **more)


def in_steps(*values):
    return [value * STEP for value in values]


# ---- privacy, by exact sums -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("hits", [1, 2])
@pytest.mark.slow
def test_largest_log_ratio_over_all_neighbours_is_at_most_epsilon(hits, monotone):
    """With Δ = 1 step, all inputs of three values and all neighbours: never above ε, and above 0.4 ε somewhere."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, hits=hits, monotone=monotone)
    scales = {
        "threshold_scale": float(mechanism.threshold_scale / mechanism.steps),
        "query_scale": float(mechanism.query_scale / mechanism.steps),
    }
    worst = 0.0
    for values in itertools.product((-2, 0, 1), repeat=3):
        law = sparse_law(values, 0, hits=hits, **scales)
        for other in set(neighbours(values, monotone)):
            worst = max(worst, largest_log_ratio(law, sparse_law(other, 0, hits=hits, **scales)))
    assert 0.4 < worst <= 1 + 1e-12


@pytest.mark.slow
def test_gap_is_free():
    """The exact joint law of no, no, yes with each gap has log-ratios of at most ε between all neighbours."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, gap=True)
    first, second = (float(scale / mechanism.steps) for scale in (mechanism.threshold_scale, mechanism.query_scale))
    rho, gaps = np.arange(-200, 201)[:, None], np.arange(40)

    def law(values):
        noes = math.prod(1 - laplace_tail(rho - value, second) for value in values[:-1])
        return (laplace_mass(rho, first) * noes * laplace_mass(rho + gaps - values[-1], second)).sum(axis=0)

    worst = max(
        np.abs(np.log(law(values) / law(other))).max()
        for values in itertools.product((-1, 0, 1), repeat=3)
        for other in neighbours(values, monotone=False)
    )
    assert 0.7 < worst <= 1 + 1e-9


def exact_law(name, variant, values):
    """The probability of the variant's event, summed over its noise."""
    row, n = variant.row, np.arange(-400, 401)
    if name == "value released":
        level = np.where(n <= row[-1], laplace_mass(n, 2), 0.0)
        noes = math.prod(1 - laplace_tail(n - value, 4) for value in values[:-1])
        return float((level * noes).sum() * laplace_mass(row[-1] - values[-1], 4))
    if name == "threshold released":
        return float(laplace_mass(row[-1], 2) * math.prod(1 - laplace_tail(row[-1] - value, 4) for value in values))
    scales = {
        "noise not scaled": (4, 4 / 3, HITS),
        "no query noise": (1, None, HITS),
        "never stops": (2, 4, len(values)),
        "threshold without noise": (None, 2, 1),
    }
    threshold_scale, query_scale, hits = scales[name]
    law = sparse_law(values, 0, threshold_scale=threshold_scale, query_scale=query_scale, hits=hits)
    return law.get(row, 0.0)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.slow
def test_wrong_variant_breaks_its_claim(name):
    """Neighbouring inputs give one output probabilities whose ratio is beyond e^ε, by an exact sum."""
    variant = VARIANTS[name]
    assert max(abs(a - b) for a, b in zip(variant.one, variant.other, strict=True)) == 1
    one, other = exact_law(name, variant, variant.one), exact_law(name, variant, variant.other)
    assert one > math.exp(variant.epsilon + 0.3) * other


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.slow
def test_wrong_variant_draws_what_was_summed(name):
    """The sampled wrong variants have the summed frequency of their event (exact binomial, false alarm 1e-9)."""
    variant, size = VARIANTS[name], 200_000
    for values in (variant.one, variant.other):
        happened = int(variant.happened(variant.mechanism(values, variant.threshold, variant.epsilon, size, entropy())).sum())
        expected = exact_law(name, variant, values)
        if expected == 0:
            assert happened == 0
        else:
            assert stats.binomtest(happened, size, expected).pvalue > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in {"value released", "threshold released"}])
def test_right_mechanism_withstands_the_inputs_that_break_the_wrong_ones(name):
    """On every pair of inputs that refutes a wrong variant, all outputs of the right one stay within ε."""
    variant = VARIANTS[name]
    for hits in (1, 3):
        mechanism = AboveThreshold(epsilon=variant.epsilon, sensitivity=1, threshold=variant.threshold, hits=hits)
        first, second = (float(scale / mechanism.steps) for scale in (mechanism.threshold_scale, mechanism.query_scale))
        laws = [
            sparse_law(values, 0, threshold_scale=first, query_scale=second, hits=hits, reach=200)
            for values in (variant.one[:8], variant.other[:8])
        ]
        assert largest_log_ratio(*laws) <= variant.epsilon + 1e-9


# ---- the draws ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hits", [1, 2])
@pytest.mark.parametrize("monotone", [False, True])
def test_draws_follow_the_summed_law(hits, monotone):
    """Answers of 10⁵ runs at small scale, ties included: χ² at a false-alarm rate of 1e-9; without ties counted it fails."""
    mechanism = small(hits=hits, monotone=monotone)
    scales = {"threshold_scale": float(mechanism.threshold_scale), "query_scale": float(mechanism.query_scale)}
    assert scales["threshold_scale"] == 2.0
    values = (0, -3, 2, 1)
    drawn = mechanism.release_many(in_steps(*values), 100_000)
    law = sparse_law(values, 0, hits=hits, **scales)
    counts = [int((drawn == np.array(key)).all(axis=1).sum()) for key in law]
    assert sum(counts) == 100_000
    assert chi_squared_excess(counts, list(law.values())) < 1
    strict = sparse_law(values, 1, hits=hits, **scales)  # > instead of ≥ on integers
    assert chi_squared_excess(counts, [strict[key] for key in law]) > 1


@pytest.mark.slow
def test_session_follows_the_same_law():
    """Sessions, asked one by one, give the answers of `release_many` (2,000 sessions, false alarm 1e-9)."""
    mechanism = small(hits=2)
    values = (0, -3, 2)
    law = sparse_law(values, 0, hits=2, threshold_scale=2.0, query_scale=float(mechanism.query_scale))
    counts = dict.fromkeys(law, 0)
    for _ in range(2_000):
        session = mechanism.start()
        counts[tuple(int(session.ask(value)) if session.hits_left else -1 for value in in_steps(*values))] += 1
    assert chi_squared_excess(list(counts.values()), list(law.values())) < 1


def test_gaps_follow_their_law():
    """Gaps of first yeses at small scale (10⁵ runs, false alarm 1e-9)."""
    mechanism = small(gap=True)
    rho = np.arange(-200, 201)[:, None]
    law = (laplace_mass(rho, 2.0) * laplace_mass(rho + np.arange(60) - 1, float(mechanism.query_scale))).sum(axis=0)
    drawn = mechanism.release_many(in_steps(1), 100_000)
    hit = drawn.above[:, 0] == 1
    counts = np.bincount(np.rint(drawn.gaps[hit, 0] / STEP).astype(int), minlength=60)[:60]
    cells = np.append(counts, 100_000 - counts.sum())
    assert chi_squared_excess(cells, np.append(law, 1 - law.sum())) < 1


# ---- what it returns ------------------------------------------------------------------------------------------------------


def test_release_ends_at_the_last_hit():
    """Far values answer surely: the booleans end with the second yes."""
    answers = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, hits=2).release([-1e6, 1e6, -1e6, 1e6, 1e6, -1e6])
    assert answers.tolist() == [False, True, False, True]
    assert answers.dtype == np.bool_


def test_release_many_marks_what_was_not_asked():
    """Rows have one entry a value, −1 after the stop."""
    drawn = AboveThreshold(epsilon=1, sensitivity=1, threshold=0).release_many([-1e6, 1e6, 1e6], 5)
    assert drawn.dtype == np.int8
    assert (drawn == [[0, 1, -1]] * 5).all()


def test_gaps_and_values_come_with_hits_only():
    """NaN where the answer is no; near the truth where it is yes."""
    mechanism = AboveThreshold(epsilon=1000, sensitivity=1, threshold=10, gap=True, value_epsilon=1000)
    shown = mechanism.release([0, 50])
    assert isinstance(shown, Crossings)
    assert shown.above.tolist() == [False, True]
    assert np.isnan(shown.gaps).tolist() == np.isnan(shown.values).tolist() == [True, False]
    assert abs(shown.gaps[1] - 40) < 1
    assert abs(shown.values[1] - 50) < 1


def test_value_is_fresh_noise():
    """The released value does not come from the noise that decided: gap and value are uncorrelated."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=-1000, gap=True, value_epsilon=1)
    drawn = mechanism.release_many([0], 20_000)
    assert abs(np.corrcoef(drawn.gaps[:, 0], drawn.values[:, 0])[0, 1]) < 6.2 / math.sqrt(20_000)  # 1e-9, two-sided


def test_session_ends_after_its_hits():
    """Another question after the last yes is refused; before it, noes cost nothing."""
    session = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, hits=2).start()
    assert [session.ask(-1e9) for _ in range(5)] == [False] * 5
    assert session.ask(1e9) is True
    assert session.hits_left == 1
    assert session.ask(10**9) is True
    with pytest.raises(BudgetExceeded, match="2 yeses"):
        session.ask(0)


def test_session_with_gap_is_true_when_above():
    """A Crossing is as true as its answer."""
    session = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, gap=True, value_epsilon=1, hits=2).start()
    no, yes = session.ask(-1e9), session.ask(1e9)
    assert isinstance(no, Crossing)
    assert not no
    assert no.gap is None
    assert yes
    assert yes.gap > 1e6  # clamped, which is as good for so sure an answer
    assert abs(yes.value - 1e9) < 1e6


def test_session_cannot_be_copied():
    """A copy would be asked for more than was paid."""
    session = AboveThreshold(epsilon=1, sensitivity=1, threshold=0).start()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            duplicate(session)


@pytest.mark.slow
def test_threshold_noise_is_drawn_once_a_session():
    """Answers of one session share the threshold's noise, so that two answers to one value are correlated."""
    mechanism = AboveThreshold(epsilon=2, sensitivity=1, threshold=0, hits=2, split="1/100")
    pairs = []
    for _ in range(1000):
        session = mechanism.start()
        pairs.append((session.ask(0), session.ask(0)))
    assert np.corrcoef(np.array(pairs, float).T)[0, 1] > 0.5  # 0.9 in truth, 0 ± 0.032 with fresh noise


def test_session_replays():
    """Replayed on other values, a session gives the recorded answers and shows the inputs of the other world."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0)

    def world(value):
        session = mechanism.start()
        return [session.ask(value) for _ in range(3) if session.hits_left]

    with recording() as calls:
        recorded = world(0.0)
    with replaying(calls) as seen:
        assert world(1.0) == recorded
    assert all(now.mechanism.within(then.value, now.value) for then, now in zip(calls, seen, strict=True))
    assert not calls[0].mechanism.within(AskedValue(0, [], 0), AskedValue(mechanism.steps + 1, [], 0))


@pytest.mark.parametrize(("world", "wrong"), [((1, -1), 2), ((1, 0, 0, -1, 0), 4), ((-1, 1, 0), 2)])
def test_monotone_session_that_moves_both_ways_is_a_violation(world, wrong):
    """The first question that moves against an earlier one is pointed at; without monotone nothing is wrong."""

    def answers(mechanism):
        def ask(values):
            session = mechanism.start()
            return [session.ask(value) for value in values]

        return ask

    still = (0,) * len(world)
    free, bound = (answers(AboveThreshold(epsilon=1, sensitivity=1, threshold=0, hits=9, monotone=m)) for m in (False, True))
    for pair in ((still, world), (world, still)):
        assert replay(free, *pair).holds
        (violation,) = replay(bound, *pair).violations
        assert violation.startswith(f"release {wrong} ")


def test_monotone_sessions_are_compared_one_by_one():
    """Questions that all rise, or all fall, have no violation; a second session may move the other way."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, hits=9, monotone=True)

    def both(values):
        sessions = [mechanism.start(), mechanism.start()]
        return [session.ask(sign * value) for value in values for session, sign in zip(sessions, (1, -1), strict=True)]

    assert replay(both, (0, 0, 0), (1, 0, 1)).holds
    assert replay(both, (0, 0, 0), (-1, 0, -1)).holds


# ---- what leaves the seam -------------------------------------------------------------------------------------------------


def test_recorded_gaps_are_those_of_yeses():
    """At the seam, too, gaps and values are 0 where the answer is no or was not asked."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, gap=True, value_epsilon=1)
    with recording() as calls:
        mechanism.release([-1e6, 1e6, 1e6])
        mechanism.release_many([-1e6, 1e6, 1e6], 4)
        mechanism.start().ask(-1e6)
    for answers in (call.output for call in calls):
        hit = answers.above == 1
        assert (answers.gaps[~hit] == 0).all()
        assert (answers.values[~hit] == 0).all()
        assert (answers.gaps[hit] > 0).all()
    assert [int((call.output.above == 1).sum()) for call in calls] == [1, 4, 0]


@pytest.mark.parametrize("more", [{}, {"gap": True}, {"value_epsilon": 1}, {"gap": True, "value_epsilon": 1}])
def test_noisy_max_records_what_it_shows(more):
    """Winners, and their gaps and values where asked for: nothing of the losers leaves the seam."""
    with recording() as calls:
        shown = NoisyMax(epsilon=1, sensitivity=1, top=2, **more).release([1.0, 2.0, 3.0, 4.0])
    for part in ("indices", "gaps", "values"):
        inside, outside = getattr(calls[0].output, part), getattr(shown, part)
        assert (inside is None) == (outside is None)
        assert inside is None or inside.shape == outside.shape == (2,)


HUGE = [(1e300, 1e300), (-1e300, -1e300), (10**400, 1.7976931348623157e308), (-(10**400), -1.7976931348623157e308)]


@pytest.mark.parametrize(("score", "released"), HUGE)
def test_huge_values_are_released_as_floats(score, released):
    """A value beyond the floats is the largest float: an error after the hit would be one that depends on the data."""
    mechanism = AboveThreshold(epsilon=1, sensitivity="0.001", threshold=-(10**401), value_epsilon=1, gap=True)
    assert mechanism.release([score]).values.tolist() == [released]
    assert mechanism.release_many([score], 2).values.tolist() == [[released]] * 2
    assert mechanism.start().ask(score).value == released
    best = NoisyMax(epsilon=1, sensitivity="0.001", value_epsilon=1, gap=True)
    assert best.release([score, -(10**401)]).values.tolist() == [released]
    assert best.release_many([score, -(10**401)], 2).values.tolist() == [[released]] * 2


def test_a_wide_grid_has_no_infinities():
    """Gaps and values saturate where the grid is so wide that machine integers pass the floats."""
    mechanism = AboveThreshold(epsilon=1, sensitivity="1e300", threshold=-(10**320), value_epsilon=1, gap=True)
    shown = mechanism.release([10**320])
    assert shown.values.tolist() == shown.gaps.tolist() == [1.7976931348623157e308]


# ---- parameters -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hits", [1, 3, 1000])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("sensitivity", ["1", "1/3", "1e-6"])
def test_scales_cost_epsilon_exactly(hits, monotone, sensitivity):
    """Δ/scale₁ + hits · (2 or 1)Δ/scale₂ is ε as a rational, and the default split is within 1e-6 of the best."""
    mechanism = AboveThreshold(epsilon="0.7", sensitivity=sensitivity, threshold=3, hits=hits, monotone=monotone)
    moved = hits * (1 if monotone else 2)
    spent = mechanism.steps / mechanism.threshold_scale + moved * mechanism.steps / mechanism.query_scale
    assert spent == Fraction(7, 10)
    assert mechanism.steps * mechanism.grid >= Fraction(sensitivity)
    assert abs(float(mechanism.split) - 1 / (1 + moved ** (2 / 3))) < 1e-6


def test_loss_is_pure_and_values_are_charged_for_every_hit():
    """Without values Pure(ε); with them `hits` discrete Laplace losses that add up to value_epsilon."""
    assert AboveThreshold(epsilon=1, sensitivity=1, threshold=0, hits=4, gap=True).loss == Pure(epsilon=1)
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, hits=4, value_epsilon="0.5")
    expected = 4 * DiscreteLaplaceLoss(scale=mechanism.value_scale, sensitivity=mechanism.steps)
    assert mechanism.loss == Pure(epsilon=1) + expected
    assert mechanism.loss.pure_epsilon == Fraction(3, 2)


def test_calibration_meets_its_goal():
    """A pure goal exactly; an (ε, δ) goal by certified bounds."""
    pure = AboveThreshold.calibrate(sensitivity=1, threshold=0, epsilon=1, count=4, hits=2)
    assert (pure.epsilon, pure.hits) == (Fraction(1, 4), 2)
    approximate = AboveThreshold.calibrate(sensitivity=1, threshold=0, epsilon=1, delta="1e-6", count=30)
    assert (30 * approximate.loss).epsilon("1e-6") <= 1
    assert approximate.epsilon > Fraction(1, 30)


def test_interval_holds_and_is_not_loose():
    """Answers the bound away from the threshold are wrong in at most 5 % of 20,000 runs (false alarm 1e-9), and above 1 %."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0)
    bound = mechanism.interval("0.95", queries=50).upper
    drawn = mechanism.release_many([-bound] * 50, 20_000)
    wrong = int((drawn == 1).any(axis=1).sum())
    assert stats.binom.sf(wrong - 1, 20_000, 0.05) > FALSE_ALARM
    assert wrong > 200  # below 1 % would be a useless bound


def chance_of_a_wrong_answer(mechanism, queries, reach):
    """P[some answer is wrong], all of them this many steps below the threshold, or half below and half above; exact."""
    first, second = float(mechanism.threshold_scale), float(mechanism.query_scale)
    rho = np.arange(-math.ceil(40 * first), math.ceil(40 * first) + 1)
    yes, no = (np.log1p(-np.minimum(laplace_tail(at, second), 1 - 1e-16)) for at in (reach + rho, reach + 1 - rho))
    mass = laplace_mass(rho, first)
    return max(float(mass @ -np.expm1(logs)) for logs in (queries * yes, queries / 2 * (yes + no)))


@pytest.mark.parametrize(("epsilon", "split"), [("1e10", "0.002"), ("1e9", "0.003"), ("1e8", "0.05"), ("1e9", "0.5")])
@pytest.mark.parametrize("confidence", ["0.95", "0.999"])
@pytest.mark.parametrize("queries", [1, 100, 10**9])
def test_interval_holds_where_the_threshold_is_far_noisier(epsilon, split, confidence, queries):
    """By exact sums over the threshold's noise no more fails than was said, and no less than a fifth of it."""
    mechanism = AboveThreshold(epsilon=epsilon, sensitivity=1, threshold=0, split=split)
    reach = round(mechanism.interval(confidence, queries=queries).upper / mechanism.grid)
    allowed = 1 - float(confidence)
    assert allowed / 5 < chance_of_a_wrong_answer(mechanism, queries, reach) <= allowed * (1 + 1e-9)


@pytest.mark.parametrize("split", ["0.005", "0.001", "1e-6"])
def test_interval_of_an_uneven_split_is_that_of_the_threshold(split):
    """At 99.9 % and ε = 1 the bound is about log(1000) scales of the threshold's noise, however little ε that has."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, split=split)
    scale = float(mechanism.threshold_scale * mechanism.grid)
    assert 6.2 < mechanism.interval("0.999", queries=100).upper / scale < 7.6


def test_interval_has_no_extremes():
    """Noise far below a grid step, and more queries than floats can count, have a bound like any other."""
    assert AboveThreshold(epsilon="1e330", sensitivity=1, threshold=0).interval(queries=5).upper > 0
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0)
    few, many = (mechanism.interval(queries=10**n).upper for n in (200, 400))
    assert 1.9 < many / few < 2.1


@pytest.mark.parametrize("threshold", [1e9, "1e200"])
def test_large_values_keep_their_precision(threshold):
    """Answers are compared exactly however far from 0, and values are released where they are."""
    mechanism = AboveThreshold(epsilon=100, sensitivity=1, threshold=threshold, value_epsilon=1, gap=True)
    least = Fraction(threshold)
    shown = mechanism.release([least - 5, least + 5])
    assert shown.above.tolist() == [False, True]
    assert abs(shown.gaps[1] - 5) < 3
    assert abs(shown.values[1] - float(least)) <= max(60, 1e-15 * float(least))


def test_far_values_saturate():
    """Values of any size are answered; they count as 2⁶⁰ steps from the threshold at most."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0, hits=2)
    assert mechanism.release([-1e300, 1e300, 10**400, 5]).tolist() == [False, True, True]
    session = mechanism.start()
    assert [session.ask(-(10**400)), session.ask(10**400)] == [False, True]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "1e-15"}, "epsilon"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": True}, "sensitivity"),
        ({"threshold": float("nan")}, "threshold"),
        ({"hits": 0}, "hits"),
        ({"hits": 1.5}, "hits"),
        ({"monotone": "no"}, "monotone"),
        ({"gap": 1}, "gap"),
        ({"value_epsilon": -1}, "value_epsilon"),
        ({"value_epsilon": "1e-15"}, "value_epsilon"),
        ({"split": 0}, "split"),
        ({"split": 1}, "split"),
    ],
)
def test_bad_parameters_are_refused_by_name(change, word):
    """One sentence that begins with the name."""
    with pytest.raises(InvalidParameter, match=rf"^{word} must be"):
        AboveThreshold(**({"epsilon": 1, "sensitivity": 1, "threshold": 0} | change))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "3", None, [1.0]])
def test_bad_values_are_refused_and_spend_nothing(value):
    """A session refuses the value and can go on."""
    session = AboveThreshold(epsilon=1, sensitivity=1, threshold=0).start()
    with pytest.raises(InvalidParameter, match=r"^value must be"):
        session.ask(value)
    assert session.hits_left == 1


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], [1.0, float("nan")], [True], "12", 5.0, [123456.5, None]])
def test_bad_lists_are_refused_without_repeating_a_value(values):
    """The refusal says what kind of thing it got."""
    with pytest.raises(InvalidParameter, match="must be") as refusal:
        AboveThreshold(epsilon=1, sensitivity=1, threshold=0).release(values)
    assert "123456" not in str(refusal.value)
