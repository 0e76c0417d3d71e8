"""The last line: arithmetic that leaves the floats becomes a refusal to certify, never a number and never a trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from curador.errors import CuradorError, NumericalFailure

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


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
            raise NumericalFailure(
                "parameters must be moderate for a certified answer; got some that leave the range of floats."
            ) from None

    return guarded
