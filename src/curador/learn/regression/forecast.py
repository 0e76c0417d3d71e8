"""What a regression can be expected to give, from declared numbers only."""

from __future__ import annotations

import math
from typing import Any

from curador.errors import InvalidParameter, sentence
from curador.learn.dry_run import DryRun
from curador.numerics.exact import whole

TYPICAL = 0.2
"""The standard deviation, of its half range, that a forecast takes a feature to have."""


def expected(estimator: Any, n_records: object, n_features: object) -> tuple[int, int]:
    """Return how many records and features a forecast is for: as given, else as parameters declare them."""
    records = estimator.n_nominal if n_records is None else n_records
    if records is None:
        raise InvalidParameter(sentence("n_records", "given, here or as n_nominal", "nothing"))
    features = estimator._columns() if n_features is None else n_features  # noqa: SLF001 -- what its bounds are of
    if features is None:
        raise InvalidParameter(sentence("n_features", "given, here or by bounds of each column", "nothing"))
    return whole(records, "n_records", least=1), whole(features, "n_features", least=1)


def forecast(records: int, features: int, noise: tuple[float, float], more: dict[str, float]) -> DryRun:
    """Return whether second moments of so many records stand above noise of this size, and what would be enough."""
    edge = 2 * noise[0] * math.sqrt(features)
    needed = math.ceil(edge / TYPICAL**2)
    numbers = {
        "noise of a second moment": noise[0],
        "noise of a cross moment": noise[1],
        "eigenvalues lost in noise": edge,
        "eigenvalues expected": records * TYPICAL**2,
        "records needed": float(needed),
        **more,
    }
    enough = records >= needed
    verdict = (
        f"{records} records are enough: features that spread over a fifth of their range stand above the noise."
        if enough
        else f"Noise hides features that spread over a fifth of their range: take {needed} records or a larger epsilon."
    )
    return DryRun(enough, verdict, numbers)
