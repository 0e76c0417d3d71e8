"""Which mechanism a word names, and which goals it understands."""

from __future__ import annotations

from typing import Any

from curador.errors import InvalidParameter
from curador.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    RandomizedResponse,
)

_NOISE = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "discrete_gaussian": DiscreteGaussian,
    "discrete_laplace": DiscreteLaplace,
}


def calibrated(
    mechanism: str,
    *,
    accuracy: str | None,
    confidence: str,
    sensitivity: str,
    rate: str | None,
    scheme: str,
    **goal: Any,
) -> Any:
    """Return the calibrated mechanism; a goal that it has no meaning for is refused."""
    if mechanism in _NOISE:
        noise: Any = _NOISE[mechanism]
        return noise.calibrate(
            sensitivity=sensitivity,
            accuracy=accuracy,
            confidence=confidence,
            rate=rate,
            scheme=scheme,
            **goal,
        )
    if accuracy is not None or rate is not None:
        raise InvalidParameter(f"accuracy and rate must be given for noise mechanisms only; got {mechanism}.")
    if mechanism == "rr":
        return RandomizedResponse.calibrate(**goal)
    if mechanism == "exponential":
        return Exponential.calibrate(sensitivity=sensitivity, **goal)
    names = ", ".join([*_NOISE, "rr", "exponential"])
    raise InvalidParameter(f"mechanism must be one of {names}; got {mechanism}.")
