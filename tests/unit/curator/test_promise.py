"""What a study promises, in words: every number is that of `privacy/odds`, rounded so that the sentence stays true."""

import math
from fractions import Fraction

import pytest
from curator_studies import make_study

from curador.curator.promise import belief_words, odds_of, odds_record, odds_words, one_in, per_cent
from curador.privacy import odds
from curador.privacy.adjacency import REPLACE_ONE
from curador.study.model import Budget


def study_of(folder, epsilon, delta=None, **changes):
    return make_study(folder, budget=Budget(epsilon=epsilon, delta=delta), **changes)


def test_the_sentences_of_a_study(tmp_path):
    """ε = 2, δ = one in ten million: 88 % on average, 89.2 % but for one in a million."""
    study = study_of(tmp_path, 2, "1e-7", unit_name="patient")
    found = odds_of(study)

    assert belief_words(study, found.even) == [
        "Somebody who was 50 % sure that one patient is in the data can become at most 89.2 % sure.",
        "The chance that this fails is at most one in a million, over the whole life of the study.",
    ]
    assert odds_words(study, found)[1] == "The guess is right at most 88.1 % of the time; a coin is right 50 %."


def test_a_pure_study_has_no_exception(tmp_path):
    study = study_of(tmp_path, 1)

    (said,) = belief_words(study, odds_of(study).even)
    assert said.endswith("is in the data can become at most 73.2 % sure, over the whole life of the study.")


def test_where_one_is_replaced_nobody_is_in_or_out(tmp_path):
    study = study_of(tmp_path, 1, adjacency=REPLACE_ONE)
    words = " ".join([*belief_words(study, odds_of(study).even), *odds_words(study, odds_of(study))])

    assert "in the data" not in words
    assert "which of two sets of rows it has" in words


@pytest.mark.parametrize(("epsilon", "delta", "said"), [(30, "1e-9", "all but certain"), (3, "0.3", "no limit holds")])
def test_what_cannot_be_promised_is_not(tmp_path, epsilon, delta, said):
    """A large ε or δ is said to be one."""
    study = study_of(tmp_path, epsilon, delta, allow_large_delta=True)

    assert said in belief_words(study, odds_of(study).even)[0]


def test_the_record_has_the_numbers_of_odds_rounded_up(tmp_path):
    study = study_of(tmp_path, 2, "1e-7")
    record = odds_record(odds_of(study))

    assert 0 <= float(record["right_at_most"]) - odds.accuracy(2, "1e-7") < 1e-5
    for row in record["beliefs"]:
        after, chance = odds.belief_after(2, "1e-7", prior=row["sure_before"])
        assert 0 <= float(row["sure_after_at_most"]) - after < 1e-5
        assert chance <= float(row["except_with_chance"]) < 1.0001 * chance


@pytest.mark.parametrize(
    ("chance", "said"), [(9.9964e-7, "a million"), (9.99e-4, "a thousand"), (8.3e-6, "120,000"), (0.4, "2")]
)
def test_one_in_never_says_too_rare(chance, said):
    assert one_in(chance) == said


def test_per_cent_never_says_too_little():
    assert per_cent(Fraction(1, 3)) == "33.4 %"


# ---- the theorem ---------------------------------------------------------------------------------------------------


def gaussian_delta(epsilon, mu):
    """δ of Gaussian noise at ε, exact but for rounding of the last digits."""

    def below(x):
        return math.erfc(-x / math.sqrt(2)) / 2

    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.2, 0.5), (0.2, 1.0), (0.5, 1.0), (0.5, 3.0), (1.0, 3.0), (2.0, 8.0)])
def test_gaussian_noise_keeps_what_is_said(mu, epsilon):
    """The true chance that the belief passes the bound is at most the one that is said; without going beyond ε it is not."""
    delta = gaussian_delta(epsilon, mu)
    assert 1e-12 < delta < 0.05
    after, chance = odds.belief_after(epsilon, delta)

    assert odds.gaussian_posterior_tail(mu, threshold=after) <= chance
    naive = odds.posterior_bounds(epsilon)[1]
    assert odds.gaussian_posterior_tail(mu, threshold=naive) > delta, "the sentence with ε and δ themselves would be false"


def test_the_worst_pair_keeps_what_is_said():
    """Four outcomes that reach (ε, δ) exactly: with probability δ the truth is plain."""
    epsilon, delta = 1.0, 1e-3
    kept = (1 - delta) / (1 + math.exp(epsilon))
    true = [delta, kept * math.exp(epsilon), kept, 0.0]
    other = [0.0, kept, kept * math.exp(epsilon), delta]
    after, chance = odds.belief_after(epsilon, delta)
    surer = sum(p for p, q in zip(true, other, strict=True) if p > after * (p + q))

    assert surer == delta
    assert surer <= chance
