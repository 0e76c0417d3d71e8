"""The adversary's game, played: he sees one output, knows both worlds, and guesses which of them it came from.

Roc   the curve of true against false alarms, with a band that holds for all thresholds at once.

The thresholds are chosen on other samples. At each, both rates get Clopper–Pearson bounds; the error probability is shared
among all of them, so the band is exact at every sample size and narrow where alarms are rare.

Posterior   what an adversary believes after he saw an output, by the rule of Bayes.

What he reaches is compared with what is proved that nobody can reach: the curve of true against false alarms, his advantage,
his belief. Whatever crosses the proved bound beyond its confidence band refutes the claim; how near the curve comes to the
bound says how tight the claim is for this pair of worlds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.audit.attack import Attack, as_attack, draw_outputs, likelihood, name_of
from curador.audit.bounds import Bound, clopper_pearson, lower_bound
from curador.audit.distinguisher import learn_attack, split_outputs
from curador.errors import InvalidParameter, require, shown
from curador.numerics.exact import Number, open_probability, probability, whole
from curador.numerics.rounding import float_down, float_up
from curador.privacy.loss import Loss
from curador.privacy.odds import posterior_bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray

    Tradeoff: TypeAlias = Callable[[FloatArray], FloatArray]

# ---- roc -------------------------------------------------------------------------------------------------------------------


THRESHOLDS = 127
"""Most thresholds of a curve."""


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """Rates of *score ≥ threshold*: false alarms in the first world, true ones in the second; by growing false alarms.

    The first point is *never*, the last one *always*: both are certain.
    """

    thresholds: FloatArray
    fpr: FloatArray
    tpr: FloatArray
    fpr_low: FloatArray
    fpr_high: FloatArray
    tpr_low: FloatArray
    tpr_high: FloatArray

    def lower(self, fpr: FloatArray) -> FloatArray:
        """Return the lower edge of the band: rates that some test, a mixture of two thresholds, does reach."""
        return np.interp(fpr, self.fpr_high, self.tpr_low)

    def upper(self, fpr: FloatArray) -> FloatArray:
        """Return the upper edge of the band: rates that no threshold of this score exceeds."""
        place = np.searchsorted(self.fpr_low, fpr, side="right")  # thresholds before it have a rate of at most fpr
        return self.tpr_high[np.minimum(place, len(self.tpr_high) - 1)]

    @property
    def area(self) -> float:
        """The area under the curve: how often a release of the second world scores above one of the first."""
        return float(np.trapezoid(self.tpr, self.fpr))

    def excess(self, tradeoff: Tradeoff) -> FloatArray:
        """Return, for each threshold, by how much the rectangle of its bounds lies beyond the proved region; ≤ 0: not at all.

        Claim   With f(x) the least rate of misses, in either order of the worlds, every event has TPR ≤ 1 − f(FPR) and
                FPR ≤ 1 − f(TPR), and so has its complement. The four are tested at the corner that is kindest to the claim.
        """
        rates = np.concatenate([self.fpr_high, 1.0 - self.tpr_low, 1.0 - self.fpr_low, self.tpr_high])
        misses = tradeoff(rates).reshape(4, -1)  # in one call: some losses prepare a lot for it
        return np.max(
            [
                self.tpr_low - (1.0 - misses[0]),
                misses[1] - self.fpr_high,
                misses[2] - self.tpr_high,
                self.fpr_low - (1.0 - misses[3]),
            ],
            axis=0,
        )


def thresholds_of(scores0: FloatArray, scores1: FloatArray) -> FloatArray:
    """Return thresholds for other samples, falling: every value where there are few, else quantiles, dense at both ends."""
    values, counts = np.unique(np.concatenate([scores0, scores1]), return_counts=True)
    if len(values) <= THRESHOLDS + 1:
        return values[1:][::-1]
    ends = np.cumsum(counts)
    shares = np.sin(np.linspace(0.0, math.pi / 2, THRESHOLDS + 2)[1:-1]) ** 2
    places = np.searchsorted(ends, shares * ends[-1], side="left")
    return values[np.unique(np.clip(places, 1, len(values) - 1))][::-1]


def count_hits(thresholds: FloatArray, scores: FloatArray) -> FloatArray:
    """Return how many scores are at or above each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left").astype(np.float64)


def measure_roc(thresholds: FloatArray, scores0: FloatArray, scores1: FloatArray, *, alpha: float) -> Roc:
    """Return the curve of the scores at thresholds that were chosen without them.

    Claim   All rates lie within their bounds at once with probability at least 1 − alpha: each of the four bounds of a
            threshold gets alpha / (4 · thresholds).
    Needs   Independent releases; thresholds that do not depend on them.
    Source  [CP34]
    """
    share = alpha / (4 * max(len(thresholds), 1))
    false, true = count_hits(thresholds, scores0), count_hits(thresholds, scores1)
    fpr_low, fpr_high = clopper_pearson(false, len(scores0), share)
    tpr_low, tpr_high = clopper_pearson(true, len(scores1), share)
    return Roc(
        np.concatenate([[math.inf], thresholds, [-math.inf]]),
        _add_ends(false / len(scores0)),
        _add_ends(true / len(scores1)),
        _add_ends(fpr_low),
        _add_ends(fpr_high),
        _add_ends(tpr_low),
        _add_ends(tpr_high),
    )


def _add_ends(rates: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], rates, [1.0]])


# ---- posterior -------------------------------------------------------------------------------------------------------------


CELLS = 16
"""Cells of a score that is no likelihood ratio by itself: few, or rare ones would show beliefs that are only noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The belief in the second world after each tested release of the first (beliefs0) and of the second (beliefs1).

    posterior odds = prior odds · likelihood ratio. Where the attack knows the law, the ratio is that of the claimed law; else
    it is estimated by how often a cell of the score is seen in each world, on other releases.

    low, high   between which every belief lies under pure ε; None where the loss is not pure: then a rare output may convince
                him of anything
    exact       whether the ratios are those of the claimed law; estimated ones may leave the bounds a little
    """

    prior: float
    beliefs0: FloatArray
    beliefs1: FloatArray
    low: float | None
    high: float | None
    exact: bool = True

    @property
    def mean(self) -> float:
        """The average belief in the world that was true."""
        return float(self.prior * self.beliefs1.mean() + (1 - self.prior) * (1 - self.beliefs0).mean())

    @property
    def largest(self) -> float:
        """The largest belief in the second world that was seen."""
        return float(max(self.beliefs0.max(), self.beliefs1.max()))

    @property
    def least(self) -> float:
        """The smallest belief in the second world that was seen."""
        return float(min(self.beliefs0.min(), self.beliefs1.min()))

    @property
    def right(self) -> float:
        """How often the world that he believes in more is the true one."""
        ahead, behind = _majority(self.beliefs1), 1 - _majority(self.beliefs0)
        return float(self.prior * ahead + (1 - self.prior) * behind)

    def calibration(self, cells: int = 10) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """Return mean belief, share of the second world by the prior, and number of releases, for equal steps of belief.

        Beliefs are right if the first two agree. Steps without a release are left out.
        """
        count = whole(cells, "cells")
        places = [np.minimum((beliefs * count).astype(np.int64), count - 1) for beliefs in (self.beliefs0, self.beliefs1)]
        weights = ((1 - self.prior) / len(self.beliefs0), self.prior / len(self.beliefs1))
        mass = [np.bincount(place, minlength=count) * weight for place, weight in zip(places, weights, strict=True)]
        sums = [
            np.bincount(place, beliefs, minlength=count) * weight
            for place, beliefs, weight in zip(places, (self.beliefs0, self.beliefs1), weights, strict=True)
        ]
        seen = np.bincount(np.concatenate(places), minlength=count)
        kept = seen > 0
        total = (mass[0] + mass[1])[kept]
        return (sums[0] + sums[1])[kept] / total, mass[1][kept] / total, seen[kept].astype(np.int64)


def posterior_of(
    choose: tuple[FloatArray, FloatArray],
    test: tuple[FloatArray, FloatArray],
    prior: Fraction,
    pure: Fraction | None,
    *,
    exact: bool,
) -> Posterior:
    """Return the beliefs after the tested releases; scores that are no likelihood ratios are made ones by the others."""
    low, high = (None, None) if pure is None else posterior_bounds(pure, prior=prior)
    ratios = test if exact else _estimate_rates(choose, test)
    odds = float(prior / (1 - prior))
    beliefs = [_belief(ratio, odds) for ratio in ratios]
    return Posterior(float(prior), beliefs[0], beliefs[1], low, high, exact)


def _belief(log_ratios: FloatArray, odds: float) -> FloatArray:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-log_ratios) / odds)


def _majority(beliefs: FloatArray) -> float:
    """How often he says *second world*; half of the time where he is undecided."""
    return float(np.mean((beliefs > 0.5) + 0.5 * (beliefs == 0.5)))


def _estimate_rates(
    choose: tuple[FloatArray, FloatArray], test: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    values, counts = np.unique(np.concatenate(choose), return_counts=True)
    ends = np.cumsum(counts)
    places = np.searchsorted(ends, np.linspace(0, ends[-1], CELLS + 1)[1:-1], side="left") + 1
    edges = values[np.unique(places[places < len(values)])]
    seen = [np.bincount(np.searchsorted(edges, one, side="right"), minlength=len(edges) + 1) + 0.5 for one in choose]
    ratios = np.log(seen[1] / len(choose[1])) - np.log(seen[0] / len(choose[0]))
    one, other = (ratios[np.searchsorted(edges, scores, side="right")] for scores in test)
    return one, other


# ---- game ------------------------------------------------------------------------------------------------------------------


QUARTER = 4
"""One release in four is for choosing: a threshold, an event, and before that for learning where the attack is learned."""

LEAST_SAMPLES = 400


@dataclass(frozen=True, slots=True, eq=False)
class Game:
    """How a game ended.

    ratio           advantage / proved_advantage: near 1, the claim is tight for this pair of worlds
    area_ratio      the same of the areas between curve and diagonal
    epsilon_lower   no ε below it is true at delta; proved_epsilon is what the loss proves there
    crosses         whether the band of the curve lies beyond the proved bound somewhere; `crossing` is the worst such point
    refuted         whether it crosses, or epsilon_lower is above proved_epsilon

    Claim   If the mechanism is as private as the loss says, refuted is True with probability at most false_alarm: half of it
            is for the band, half for epsilon_lower. The interval of the advantage holds with the confidence by itself.
    Needs   Neighbouring worlds, and independent releases.
    """

    name: str
    worlds: tuple[str, str]
    attack: str
    loss: Loss
    samples: int
    tested: int
    confidence: float
    roc: Roc
    advantage: float
    advantage_low: float
    advantage_high: float
    proved_advantage: float
    proved_area: float
    delta: float
    bound: Bound
    proved_epsilon: float
    posterior: Posterior
    excess: float
    crossing: tuple[float, float] | None

    @property
    def false_alarm(self) -> float:
        """The probability that a true claim is refuted, at most."""
        return 1.0 - self.confidence

    @property
    def area(self) -> float:
        """The area under the curve."""
        return self.roc.area

    @property
    def ratio(self) -> float:
        """The advantage as a share of the proved one; 0 where nothing at all can be gained."""
        return self.advantage / self.proved_advantage if self.proved_advantage > 0 else 0.0

    @property
    def area_ratio(self) -> float:
        """The area between curve and diagonal as a share of the proved one."""
        return (self.area - 0.5) / (self.proved_area - 0.5) if self.proved_area > 0.5 + 1e-12 else 0.0

    @property
    def epsilon_lower(self) -> float:
        """The ε that the releases prove at delta, at least."""
        return self.bound.epsilon

    @property
    def crosses(self) -> bool:
        """Whether the curve is certainly beyond the proved bound somewhere."""
        return self.crossing is not None

    @property
    def refuted(self) -> bool:
        """Whether the claim is."""
        return self.crosses or self.epsilon_lower > self.proved_epsilon

    def proved(self, fpr: FloatArray) -> FloatArray:
        """Return the largest rate of true alarms that any adversary has at these rates of false ones."""
        return 1.0 - np.asarray(self.loss.tradeoff(np.asarray(fpr, np.float64)))

    def __str__(self) -> str:
        belief = self.posterior
        most = "" if belief.high is None else f", proved at most {belief.high:.4f}"
        largest = f"{'' if belief.exact else 'about '}{belief.largest:.4f}"
        claimed = f"{self.proved_epsilon:.4g}"
        interval = f"[{self.advantage_low:.4f}, {self.advantage_high:.4f}]"
        lines = [
            f"{self.name}: {self.worlds[0]} or {self.worlds[1]}, {self.samples:,} releases each, attack: {self.attack}",
            f"  advantage  {self.advantage:.4f} {interval}, proved at most {self.proved_advantage:.4f}",
            f"  ratio      {self.ratio:.3f} of the proved advantage, {self.area_ratio:.3f} of the proved area",
            f"  ε          at least {self.epsilon_lower:.4g} at δ = {self.delta:.3g}, proved at most {claimed}",
            f"  belief     from {belief.prior:.4g} to {largest}{most}; right {belief.right:.1%} of the time",
            f"  verdict    {self._verdict}; false alarms: at most {self.false_alarm:.3g}",
        ]
        return "\n".join(lines)

    @property
    def _verdict(self) -> str:
        if self.crossing is not None:
            fpr, tpr = self.crossing
            return f"REFUTED: {tpr:.4g} true alarms at {fpr:.4g} false ones are beyond the proved bound"
        return f"REFUTED: by {self.bound.event}" if self.refuted else "nothing is beyond the proved bound"


def game(
    mechanism: Any,
    world0: Any,
    world1: Any,
    *,
    samples: int = 100_000,
    confidence: Number = "0.95",
    attack: str | Callable[[Any], Any] = "auto",
    loss: Loss | None = None,
    prior: Number = "0.5",
    delta: Number | None = None,
) -> Game:
    """Play the game `samples` times in each of two neighbouring worlds, and compare with what is proved.

    mechanism   with release_many(value, size) or privatise(values), or any function of a world that returns numbers, such as
                one that fits an estimator
    attack      "likelihood": the logarithm of the likelihood ratio, where the claimed law is known; "learned": a small
                distinguisher that sees values and bits, trained on the first quarter of the releases; "auto": the first where
                it is known, else the second; or a function that gives one number a release for all outputs at once
    loss        what is proved of it, where the mechanism has no loss of its own, or another claim to be tested
    prior       the adversary's belief in the second world beforehand
    delta       where ε is bounded from below: 0 for pure losses, else half of the proved advantage

    See Game for what the result claims. That nothing is refuted proves nothing beyond these worlds and this attack.
    """
    size = whole(samples, "samples", least=LEAST_SAMPLES)
    level, belief = open_probability(confidence, "confidence"), open_probability(prior, "prior")
    require(float(belief) > 1e-300, "prior", "above 1e-300", prior)
    claim = _claim(mechanism, loss)
    failure = _delta(claim, delta)
    known = _known_attack(attack, mechanism, world0, world1)
    one, other = draw_outputs(mechanism, world0, size), draw_outputs(mechanism, world1, size)
    kept = size
    if known is None:
        quarter = size // QUARTER
        (train0, one), (train1, other) = split_outputs(one, quarter), split_outputs(other, quarter)
        known, kept = learn_attack(train0, train1), size - quarter
    scores0, scores1 = known.scores(one, kept), known.scores(other, kept)
    return _judge_game(
        _Played(name_of(mechanism), (shown(world0), shown(world1)), known, claim, size, scores0, scores1),
        alpha=float_down(1 - level),
        confidence=float_up(level),
        prior=belief,
        delta=failure,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Played:
    """What was attacked, how, and the scores of both worlds."""

    name: str
    worlds: tuple[str, str]
    attack: Attack
    loss: Loss
    samples: int
    scores0: FloatArray
    scores1: FloatArray


def _judge_game(played: _Played, *, alpha: float, confidence: float, prior: Fraction, delta: Fraction) -> Game:
    (choose0, test0), (choose1, test1) = (_split(scores) for scores in (played.scores0, played.scores1))
    thresholds = thresholds_of(choose0, choose1)
    roc = measure_roc(thresholds, test0, test1, alpha=alpha / 2)
    excess = roc.excess(lambda rates: np.asarray(played.loss.tradeoff(rates)))
    worst = int(np.argmax(excess))
    advantage, low, high = _advantage(thresholds, (choose0, choose1), (test0, test1), alpha)
    return Game(
        name=played.name,
        worlds=played.worlds,
        attack=played.attack.name,
        loss=played.loss,
        samples=played.samples,
        tested=len(test0),
        confidence=confidence,
        roc=roc,
        advantage=advantage,
        advantage_low=low,
        advantage_high=high,
        proved_advantage=played.loss.delta(0),
        proved_area=_proved_area(played.loss),
        delta=float_up(delta),
        bound=lower_bound(played.scores0, played.scores1, delta=float_up(delta), alpha=alpha / 2),
        proved_epsilon=played.loss.epsilon(delta),
        posterior=posterior_of(
            (choose0, choose1), (test0, test1), prior, played.loss.pure_epsilon, exact=played.attack.exact
        ),
        excess=float(excess[worst]),
        crossing=(float(roc.fpr[worst]), float(roc.tpr[worst])) if excess[worst] > 0 else None,
    )


def _split(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    quarter = len(scores) // QUARTER  # the same quarter that `lower_bound` chooses on
    return scores[:quarter], scores[quarter:]


def _advantage(
    thresholds: FloatArray, choose: tuple[FloatArray, FloatArray], test: tuple[FloatArray, FloatArray], alpha: float
) -> tuple[float, float, float]:
    """Of the threshold, and its side, that are best on the samples for choosing: estimate and interval on the others."""
    if not len(thresholds):
        return 0.0, 0.0, 0.0
    gains = count_hits(thresholds, choose[1]) / len(choose[1]) - count_hits(thresholds, choose[0]) / len(choose[0])
    best = int(np.argmax(np.abs(gains)))
    true, false = (1, 0) if gains[best] >= 0 else (0, 1)
    count = [float(count_hits(thresholds[[best]], scores)[0]) for scores in test]
    low, high = zip(*(clopper_pearson(count[world], len(test[world]), alpha / 4) for world in (0, 1)), strict=True)
    estimate = count[true] / len(test[true]) - count[false] / len(test[false])
    return estimate, float(low[true] - high[false]), float(high[true] - low[false])


def _proved_area(loss: Loss) -> float:
    rates = np.sin(np.linspace(0.0, np.pi / 2, 801)) ** 2
    rates[-1] = 1.0
    return float(np.trapezoid(1.0 - np.asarray(loss.tradeoff(rates)), rates))


def _claim(mechanism: Any, loss: object) -> Loss:
    own = getattr(mechanism, "loss", None) if loss is None else loss
    if not isinstance(own, Loss):
        hint = "give loss=, such as curador.losses.Pure(epsilon=1): a game needs a bound to be compared with"
        raise InvalidParameter.must_be("loss", "what is proved of the mechanism", own, hint)
    return own


def _delta(loss: Loss, given: Number | None) -> Fraction:
    if given is not None:
        return probability(given, "delta")
    return Fraction(0) if loss.pure_epsilon is not None else Fraction(loss.delta(0)) / 2


def _known_attack(attack: object, mechanism: Any, world0: Any, world1: Any) -> Attack | None:
    """The attack where it needs no learning."""
    if isinstance(attack, str):
        require(attack in {"auto", "likelihood", "learned"}, "attack", '"auto", "likelihood", "learned" or a score', attack)
        found = None if attack == "learned" else likelihood(mechanism, world0, world1)
        hint = 'take "learned", or give a score'
        require(found is not None or attack != "likelihood", "attack", "one that is known for the mechanism", attack, hint)
        return found
    if not callable(attack):
        raise InvalidParameter.must_be("attack", '"auto", "likelihood", "learned" or a score', attack)
    return as_attack(attack)
