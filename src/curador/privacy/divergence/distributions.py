"""The distributions a divergence is taken between; every parameter is the exact rational its writer sees."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

from attrs import field, frozen

from curador.errors import InvalidParameter, require
from curador.numerics.balls import ball, near
from curador.numerics.exact import POSITIVE, RATIONAL, Number, at_least_zero, rational

_SLACK = Fraction(1, 10**12)  # how far written probabilities may be from summing to 1


def _share(p: Number) -> Fraction:
    exact = rational(p, "p")
    require(0 <= exact <= 1, "p", "at least 0 and at most 1", p)
    return exact


def _probabilities(probabilities: Iterable[Number]) -> tuple[Fraction, ...]:
    if isinstance(probabilities, (str, bytes)) or not isinstance(probabilities, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
        raise InvalidParameter.must_be("probabilities", "a sequence of numbers", probabilities)
    exact = tuple(at_least_zero(value, "probability") for value in probabilities)
    total = sum(exact, Fraction(0))
    require(abs(total - 1) <= _SLACK, "the sum of the probabilities", "1 (within 1e-12)", float(total))
    return exact if total == 1 else tuple(p / total for p in exact)


@frozen
class Bernoulli:
    """1 with probability p, 0 otherwise."""

    p: Fraction = field(converter=_share)


@frozen
class Finite:
    """The index i with the i-th probability; sums within 1e-12 of 1 are divided by, exactly."""

    probabilities: tuple[Fraction, ...] = field(converter=_probabilities)


@frozen
class Normal:
    """The normal distribution; `deviation` is the standard deviation, not its square."""

    mean: Fraction = field(converter=RATIONAL)
    deviation: Fraction = field(converter=POSITIVE)


@frozen
class Laplace:
    """The density e^(-|x - location| / scale) / (2 scale); its variance is 2 scale²."""

    location: Fraction = field(converter=RATIONAL)
    scale: Fraction = field(converter=POSITIVE)

    def density(self, x: Number) -> float:
        """Return the density at x. Rounds: near."""
        away = abs(self._standard(x))
        return near(lambda: ball(-away).exp() / ball(2 * self.scale))

    def distribution(self, x: Number) -> float:
        """Return P[X <= x]. Rounds: near."""
        standard = self._standard(x)
        if standard < 0:
            return near(lambda: ball(standard).exp() / 2)
        return near(lambda: 1 - ball(-standard).exp() / 2)

    def log_tail(self, x: Number) -> float:
        """Return the natural logarithm of P[X > x], finite even where P[X > x] is below every float, and never 0.

        Rounds: near.
        """
        standard = self._standard(x)
        if standard >= 0:
            return -near(lambda: ball(2).log() + ball(standard))
        return -near(lambda: -(-ball(standard).exp() / 2).log1p())

    def _standard(self, x: Number) -> Fraction:
        return (rational(x, "x") - self.location) / self.scale


Distribution: TypeAlias = Bernoulli | Finite | Normal | Laplace
