"""What the mechanisms that choose one of k by their scores share: the grid of the scores, the rate, the releases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from curador.errors import InvalidParameter, sentence
from curador.mechanisms.grid import score_exponent
from curador.mechanisms.parameters import decimal, power_of_two, steps_of
from curador.mechanisms.scores import Steps, also, calibrated_epsilon, flag, score_steps
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, positive, whole
from curador.privacy.loss import Loss

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from curador.randomness.entropy import Entropy, IntArray

T = TypeVar("T")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Chooser(ABC):
    """A choice of one candidate, sharper with a larger ε. Scores are rounded to a grid of about sensitivity/2³⁰."""

    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(self, *, epsilon: Number, sensitivity: Number, monotone: bool = False) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))
        object.__setattr__(self, "monotone", flag(monotone, "monotone"))

    def __repr__(self) -> str:
        numbers = f"epsilon={decimal(self.epsilon)}, sensitivity={decimal(self.sensitivity)}"
        return f"{type(self).__name__}({numbers}{also(self.monotone)})"

    @staticmethod
    @abstractmethod
    def _loss_of(epsilon: Fraction) -> Loss: ...

    @abstractmethod
    def draw(self, value: Any, source: Entropy, size: int | None = None) -> IntArray:
        """Return the place chosen for integer scores; `size` independent ones if given."""

    @abstractmethod
    def within(self, one: Any, other: Any) -> bool:
        """Whether no score moves by more than the sensitivity (all the same way, if monotone)."""

    @property
    def loss(self) -> Loss:
        """What one choice costs."""
        return self._loss_of(self.epsilon)

    @property
    def grid(self) -> Fraction:
        """The step of the grid that scores are rounded to."""
        return power_of_two(score_exponent(self.sensitivity))

    @property
    def steps(self) -> int:
        """The sensitivity in grid steps, rounded up."""
        return steps_of(self.sensitivity**2, score_exponent(self.sensitivity))

    @property
    def rate(self) -> Fraction:
        """What one grid step of score is worth in log-probability."""
        return self.epsilon / ((1 if self.monotone else 2) * self.steps)

    @overload
    def release(self, scores: ArrayLike) -> int: ...
    @overload
    def release(self, scores: ArrayLike, candidates: Sequence[T]) -> T: ...
    def release(self, scores: ArrayLike, candidates: Sequence[T] | None = None) -> T | int:
        """Return the index of the candidate chosen, or the candidate itself where the candidates are given."""
        exact = self._on_grid(scores)
        if candidates is not None and len(candidates) != len(exact):
            raise InvalidParameter(sentence("candidates", f"as many as the scores ({len(exact)})", len(candidates)))
        place = int(perform(self, exact))
        return place if candidates is None else candidates[place]

    def release_many(self, scores: ArrayLike, size: int) -> IntArray:
        """Return `size` independent choices, as indices. Each is a release and costs `loss`."""
        return perform(self, self._on_grid(scores), whole(size, "size"))

    def _on_grid(self, scores: ArrayLike) -> Steps:
        return score_steps(scores, score_exponent(self.sensitivity))

    @classmethod
    def calibrate(
        cls,
        *,
        sensitivity: Number,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        count: Number = 1,
        monotone: bool = False,
    ) -> Self:
        """Return the sharpest mechanism within the privacy goal after `count` choices."""
        one = calibrated_epsilon(cls._loss_of, epsilon=epsilon, delta=delta, rho=rho, count=count)
        return cls(epsilon=one, sensitivity=sensitivity, monotone=monotone)
