"""Randomized response: one of k answers, the true one more often than any other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from curador.errors import InvalidParameter, require
from curador.mechanisms.calibration import find_largest, read_goal
from curador.mechanisms.grid import decimal_text, is_scalar, refusal_of_value, round_down
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, at_least_zero, open_probability, whole
from curador.numerics.rounding import Interval, float_down, log_up, up
from curador.privacy.loss import Loss
from curador.privacy.losses import RandomizedResponseLoss
from curador.randomness.choice import Choice, below, bernoulli

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from curador.randomness.entropy import BoolArray, Entropy, IntArray


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse:
    """The true answer with probability γ = e^ε/(e^ε + k − 1), else one of the k − 1 others, uniformly.

    Give epsilon, or the probability of truth gamma (then ε = log(γ(k − 1)/(1 − γ)), rounded up). An array holds the answers
    of as many people; where each gives several (`answers`, such as the bits of a vector), the last axis is one person's.

    Claim   ε-private for a person with one answer, `answers` times that for several, each of which may be any other.
    Source  [War65]; [KBR16] for k answers.
    """

    epsilon: Fraction
    categories: int
    answers: int
    truth: Fraction | None

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        gamma: Number | None = None,
        categories: Number = 2,
        answers: Number = 1,
    ) -> None:
        k = whole(categories, "categories", least=2)
        require(k <= 1 << 62, "categories", "at most 2^62", categories)
        if (epsilon is None) == (gamma is None):
            raise InvalidParameter("RandomizedResponse needs exactly one of epsilon and gamma.")
        truth = None
        if epsilon is not None:
            value = at_least_zero(epsilon, "epsilon")
        else:
            truth = open_probability(gamma, "gamma")
            require(
                truth * k >= 1,
                "gamma",
                f"at least 1/{k}",
                gamma,
                "below it the answer is truer when inverted",
            )
            odds = truth * (k - 1) / (1 - truth)
            value = Fraction(log_up(odds)) if odds > 1 else Fraction(0)
        object.__setattr__(self, "epsilon", value)
        object.__setattr__(self, "categories", k)
        object.__setattr__(self, "answers", whole(answers, "answers"))
        object.__setattr__(self, "truth", truth)

    def __repr__(self) -> str:
        several = f", answers={self.answers}" if self.answers > 1 else ""
        law = f"epsilon={decimal_text(self.epsilon)}" if self.truth is None else f"gamma={decimal_text(self.truth)}"
        return f"RandomizedResponse({law}, categories={self.categories}{several})"

    @property
    def gamma(self) -> float:
        """The probability of the true answer."""
        if self.truth is not None:
            return float(self.truth)
        return 1.0 / (1.0 + (self.categories - 1) * math.exp(-float(self.epsilon)))

    @property
    def loss(self) -> Loss:
        """What the answers of one person cost."""
        return self.answers * RandomizedResponseLoss(epsilon=self.epsilon, categories=self.categories)

    # ---- releases ---------------------------------------------------------------------------------------------------

    def release(self, value: bool | int | ArrayLike) -> Any:  # noqa: FBT001 -- an answer may be a boolean
        """Return the randomized answer or answers, of the type given: booleans for booleans, integers for integers."""
        return self._shown(perform(self, self._codes(value)), value)

    def release_many(self, value: bool | int | ArrayLike, size: int) -> NDArray[Any]:  # noqa: FBT001 -- idem
        """Return `size` independent releases along a first axis. Costs `size` times the loss."""
        return self._shown(perform(self, self._codes(value), whole(size, "size")), value)

    def _codes(self, value: object) -> IntArray:
        try:
            array = np.asarray(cast("ArrayLike", value))
        except (ValueError, OverflowError):
            raise refusal_of_value("value", "answers in a rectangular array", "rows of different lengths") from None
        if array.dtype.kind not in ("biu" if self.categories == 2 else "iu"):
            rule = "booleans or integers" if self.categories == 2 else "integers"
            raise refusal_of_value(
                "value", rule, f"a {type(value).__name__}" if array.ndim == 0 else f"an array of {array.dtype}"
            )
        if array.size == 0:
            raise refusal_of_value("value", "at least one answer", "an empty array")
        if self.answers > 1 and (array.ndim == 0 or array.shape[-1] != self.answers):
            raise refusal_of_value("value", f"{self.answers} answers on the last axis", f"a shape of {array.shape}")
        if not ((array >= 0) & (array < self.categories)).all():
            raise refusal_of_value("value", f"one of 0 … {self.categories - 1}", "something else")
        return array.astype(np.int64)

    def _shown(self, codes: NDArray[Any], value: object) -> Any:
        if np.asarray(cast("ArrayLike", value)).dtype.kind == "b":
            codes = codes.astype(np.bool_)
        return codes.item() if is_scalar(value) and codes.ndim == 0 else codes

    def draw(self, value: IntArray, source: Entropy, size: int | None = None) -> IntArray:
        """Keep or change each answer. The other answer is drawn whether it is needed or not."""
        shape = value.shape if size is None else (size, *value.shape)
        truth = np.broadcast_to(value, shape).ravel()
        kept = self._coins(truth.size, source)
        other = below(self.categories - 1, truth.size, source)
        other += other >= truth
        return np.where(kept, truth, other).reshape(shape)

    def _coins(self, size: int, source: Entropy) -> BoolArray:
        """True with probability γ, exactly."""
        if self.truth is not None:
            return bernoulli(self.truth, size, source)
        return _truth(self.epsilon, self.categories).draw(size, source) == 0

    def within(self, one: IntArray, other: IntArray) -> bool:
        """Whether two sets of answers differ in those of one person at most."""
        if one.shape != other.shape:
            return False
        differ = one != other
        if self.answers > 1:
            differ = differ.any(axis=-1)
        return int(np.sum(differ)) <= 1

    def interval(self, confidence: Number = "0.95", *, people: Number = 1) -> Interval:
        """Return the error bar of the estimated share of a category among that many people.

        Claim   The estimate (share of answers − q)/(γ − q), q = (1 − γ)/(k − 1), is a mean of `people` independent numbers in
                an interval of length 1/(γ − q): √(log(2/(1 − confidence))/(2 people)) times that, by Hoeffding's inequality.
        Rounds  Up.
        """
        chance = open_probability(confidence, "confidence")
        if self._spread == 0.0:
            return Interval(-math.inf, math.inf)
        half = up(math.sqrt(log_up(2 / (1 - chance)) / (2 * whole(people, "people"))) / self._spread * (1 + 1e-12))
        return Interval(-half, half)

    @property
    def _spread(self) -> float:
        """γ − q: how much likelier an answer is where it is the truth. Rounds: down."""
        others = self.categories - 1
        if self.truth is not None:
            return float_down(self.truth - (1 - self.truth) / others)
        fall = math.exp(-float(self.epsilon))
        return -math.expm1(-float(self.epsilon)) / (1.0 + others * fall) * (1 - 1e-14)

    @property
    def variance(self) -> float:
        """Of the unbiased estimate, from one answer, of whether the truth is a given category. Rounds: up.

        The estimate is (1[answer = c] − q)/(γ − q), q = (1 − γ)/(k − 1); the larger of its variances over both truths.
        """
        truth = self.gamma
        other = (1.0 - truth) / (self.categories - 1)
        if self._spread == 0.0:
            return math.inf
        return max(truth * (1 - truth), other * (1 - other)) / self._spread**2 * (1 + 1e-12)

    @classmethod
    def calibrate(
        cls,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        confidence: Number | None = None,
        count: Number = 1,
        categories: Number = 2,
        answers: Number = 1,
    ) -> Self:
        """Return the truest mechanism within the privacy goal after `count` answers; with confidence, the one with γ = it."""
        if confidence is not None:
            if epsilon is not None or rho is not None:
                raise InvalidParameter("calibrate needs exactly one of epsilon, rho and confidence; got two.")
            return cls(gamma=confidence, categories=categories, answers=answers)
        aim = read_goal(epsilon=epsilon, delta=delta, rho=rho, count=count)
        if aim.epsilon is not None and aim.delta == 0:
            return cls(epsilon=aim.epsilon / (aim.count * whole(answers, "answers")), categories=categories, answers=answers)

        def holds(epsilon: float) -> bool:
            return aim.reached(cls(epsilon=round_down(epsilon), categories=categories, answers=answers).loss)

        start = float_down((aim.epsilon or aim.rho or Fraction(1)) / (aim.count * whole(answers, "answers")))
        return cls(epsilon=round_down(find_largest(holds, start=start)), categories=categories, answers=answers)


@lru_cache(maxsize=64)
def _truth(epsilon: Fraction, categories: int) -> Choice:
    """Place 0 with probability 1/(1 + (k − 1)e^(−ε))."""
    if categories - 1 >= 1 << 53:
        raise InvalidParameter("categories must be below 2^53 where epsilon is given; give gamma instead.")
    return Choice(np.array([0, 1]), epsilon, np.array([1, categories - 1]))
