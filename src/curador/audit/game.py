"""The adversary's game, played: he sees one output, knows both worlds, and guesses which of them it came from.

What he reaches is compared with what is proved that nobody can reach: the curve of true against false alarms, his advantage,
his belief. Whatever crosses the proved bound beyond its confidence band refutes the claim; how near the curve comes to the
bound says how tight the claim is for this pair of worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.audit.attack import Attack, as_attack, drawn, likelihood, named
from curador.audit.bounds import Bound, clopper_pearson, lower_bound
from curador.audit.distinguisher import learned, parted
from curador.audit.posterior import Posterior, posterior_of
from curador.audit.roc import Roc, hits, measured, thresholds_of
from curador.errors import InvalidParameter, require, sentence, shown
from curador.numerics.exact import Number, open_probability, probability, whole
from curador.numerics.rounding import float_down, float_up
from curador.privacy.loss import Loss

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.numerics.rounding import FloatArray

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
    known = _known(attack, mechanism, world0, world1)
    one, other = drawn(mechanism, world0, size), drawn(mechanism, world1, size)
    kept = size
    if known is None:
        quarter = size // QUARTER
        (train0, one), (train1, other) = parted(one, quarter), parted(other, quarter)
        known, kept = learned(train0, train1), size - quarter
    scores0, scores1 = known.scores(one, kept), known.scores(other, kept)
    return _judged(
        _Played(named(mechanism), (shown(world0), shown(world1)), known, claim, size, scores0, scores1),
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


def _judged(played: _Played, *, alpha: float, confidence: float, prior: Fraction, delta: Fraction) -> Game:
    (choose0, test0), (choose1, test1) = (_split(scores) for scores in (played.scores0, played.scores1))
    thresholds = thresholds_of(choose0, choose1)
    roc = measured(thresholds, test0, test1, alpha=alpha / 2)
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
    gains = hits(thresholds, choose[1]) / len(choose[1]) - hits(thresholds, choose[0]) / len(choose[0])
    best = int(np.argmax(np.abs(gains)))
    true, false = (1, 0) if gains[best] >= 0 else (0, 1)
    count = [float(hits(thresholds[[best]], scores)[0]) for scores in test]
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
        raise InvalidParameter(sentence("loss", "what is proved of the mechanism", own, hint))
    return own


def _delta(loss: Loss, given: Number | None) -> Fraction:
    if given is not None:
        return probability(given, "delta")
    return Fraction(0) if loss.pure_epsilon is not None else Fraction(loss.delta(0)) / 2


def _known(attack: object, mechanism: Any, world0: Any, world1: Any) -> Attack | None:
    """The attack where it needs no learning."""
    if isinstance(attack, str):
        require(attack in {"auto", "likelihood", "learned"}, "attack", '"auto", "likelihood", "learned" or a score', attack)
        found = None if attack == "learned" else likelihood(mechanism, world0, world1)
        hint = 'take "learned", or give a score'
        require(found is not None or attack != "likelihood", "attack", "one that is known for the mechanism", attack, hint)
        return found
    if not callable(attack):
        raise InvalidParameter(sentence("attack", '"auto", "likelihood", "learned" or a score', attack))
    return as_attack(attack)
