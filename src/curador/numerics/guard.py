"""Where arithmetic leaves the floats: a reading falls silent, and a question that no reading answers is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from curador.errors import CuradorError, NumericalFailure

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

OUT_OF_RANGE = "parameters must be moderate for a certified answer; got some that leave the range of floats."


def certified(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run a question about a loss with every overflow quiet and every arithmetic error told in one sentence.

    Claim   What overflows inside is +∞ or NaN, and every enclosure turns both into the trivial bound (0, 1 or +∞).
    """

    @functools.wraps(function)
    def guarded(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            with np.errstate(all="ignore"):
                return function(*arguments, **named)
        except CuradorError:
            raise
        except (ArithmeticError, ValueError):
            raise NumericalFailure(OUT_OF_RANGE) from None

    return guarded


def attempt(reading: Callable[[], Result]) -> Result | None:
    """Return what one of several readings says; None where it fails, so that the others are heard.

    Claim   Only failures of arithmetic are silenced. A refusal (no rule, a bad parameter) is an answer and is passed on.
    """
    try:
        return reading()
    except NumericalFailure:
        return None
    except CuradorError:
        raise
    except (ArithmeticError, ValueError):
        return None
