"""A person's number on a public grid: clamped to the bounds, rounded up or down by chance so that its mean stays exact."""

from __future__ import annotations

from fractions import Fraction

from .chance import below
from .refusal import Refusal, exact, require

STEPS = 1 << 20
"""How many steps lie between the bounds. More add nothing: the noise is far wider than a step."""

MOST_STEPS = STEPS
LEAST_EPSILON = Fraction(1, 10**6)
"""The smallest ε of a mean: below it a million million people would not be enough."""


def bounds_of(lower: object, upper: object) -> tuple[Fraction, Fraction]:
    """Return the bounds exactly: the decimals that a person sees, for floats too."""
    low, high = exact(lower, "lower"), exact(upper, "upper")
    require(low < high, "lower", "below upper", lower)
    return low, high


def steps_of(value: object) -> int:
    """Return the number of steps, refused unless it is even and in [2, 2²⁰]."""
    require(
        type(value) is int and 2 <= value <= MOST_STEPS and value % 2 == 0, "steps", "an even number from 2 to 2^20", value
    )
    return value  # type: ignore[return-value]


def large_enough(epsilon: Fraction) -> Fraction:
    """Return ε, refused where a mean would be lost in the noise."""
    require(epsilon >= LEAST_EPSILON, "epsilon", "at least 1e-6 for a mean", str(epsilon))
    return epsilon


def exact_number(value: object) -> Fraction:
    """Return the number that the value is, a float by its binary value. A refusal does not repeat it: it is a secret."""
    try:
        if hasattr(value, "__index__") and not isinstance(value, bool):
            return Fraction(value.__index__())  # type: ignore[attr-defined]
        if hasattr(value, "as_integer_ratio") and not isinstance(value, bool):
            return Fraction(*value.as_integer_ratio())  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):  # a NaN or an infinity; an array
        pass
    raise Refusal(f"value must be a finite number; got a {type(value).__name__} that is none.")


def position_of(value: object, lower: Fraction, upper: Fraction, steps: int) -> Fraction:
    """Return where the clamped number lies, in steps from the lower bound."""
    clamped = min(max(exact_number(value), lower), upper)
    return (clamped - lower) * steps / (upper - lower)


def round_by_chance(position: Fraction) -> int:
    """Return one of the two places around a position, by chance: its mean is the position, exactly."""
    down, part = divmod(position.numerator, position.denominator)
    return down + (below(position.denominator) < part)


def roundings(position: Fraction) -> dict[int, Fraction]:
    """Return the places that `rounded` may give, with their probabilities."""
    down, part = divmod(position.numerator, position.denominator)
    up = Fraction(part, position.denominator)
    return {down: 1 - up, down + 1: up} if part else {down: Fraction(1)}
