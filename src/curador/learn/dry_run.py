"""Forecasts of fits: what a fit can be expected to give, from declared numbers only.

A forecast is asked before anything is spent, with no data at hand.

Every estimator is asked in one order: how many records, then how many features (or their shape). What a parameter declares
already may be left out. The orders and names of before are understood, with a warning.

What a regression can be expected to give is said here, too: whether second moments stand above their noise.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from curador.errors import InvalidParameter
from curador.numerics.exact import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


# ---- dry run ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DryRun:
    """A forecast.

    worthwhile  whether the signal can be expected to beat the noise
    verdict     one sentence for a person, with what to change where it cannot
    numbers     what it rests on: noise, edge, steps, records needed, …
    """

    worthwhile: bool
    verdict: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])

    def __str__(self) -> str:
        lines = [f"  {name:<28}{value:.6g}" for name, value in self.numbers.items()]
        return "\n".join([self.verdict, *lines])


Asked = TypeVar("Asked", bound="Callable[..., DryRun]")


def records_first(method: Asked) -> Asked:
    """Understand `dry_run(n_features, n_records)` and `dry_run(n_features)`, as regressions and clusters were asked before.

    Two numbers of which the first is the smaller are read in that order: of fewer records than features nothing could be
    learned. A single number is the features where the records are declared, unless the features are, too, as another number.
    """

    @wraps(method)
    def asked(self: Any, *given: Any, **named: Any) -> DryRun:
        numbers = list(given)
        if numbers and "n_records" in named:
            _old("dry_run(n_features, …)")
            return method(self, n_features=numbers[0], **named)
        if len(numbers) >= 2 and _below(numbers[0], numbers[1]):
            _old("dry_run(n_features, n_records)")
            return method(self, numbers[1], numbers[0], *numbers[2:], **named)
        single = len(numbers) == 1 and "n_features" not in named and self.n_nominal is not None
        if single and self._columns() in {None, numbers[0]}:
            _old("dry_run(n_features)")
            return method(self, n_features=numbers[0], **named)
        return method(self, *numbers, **named)

    return cast("Asked", asked)


def once_called_n(method: Asked) -> Asked:
    """Understand `dry_run(n=…)`: what the number of records was called before."""

    @wraps(method)
    def asked(self: Any, *numbers: Any, **named: Any) -> DryRun:
        if "n" in named:
            _old("dry_run(n=…)")
            named["n_records"] = named.pop("n")
        return method(self, *numbers, **named)

    return cast("Asked", asked)


def _below(first: Any, second: Any) -> bool:
    return isinstance(first, int) and isinstance(second, int) and first < second


def _old(form: str) -> None:
    message = f"{form} is the old form: records come first now, dry_run(n_records, n_features)."
    warnings.warn(message, FutureWarning, stacklevel=3)


# ---- forecast --------------------------------------------------------------------------------------------------------------


TYPICAL = 0.2
"""The standard deviation, of its half range, that a forecast takes a feature to have."""


def sizes_of_forecast(estimator: Any, n_records: object, n_features: object) -> tuple[int, int]:
    """Return how many records and features a forecast is for: as given, else as parameters declare them."""
    records = estimator.n_nominal if n_records is None else n_records
    if records is None:
        raise InvalidParameter.must_be("n_records", "given, here or as n_nominal", "nothing")
    features = estimator._columns() if n_features is None else n_features  # noqa: SLF001 -- what its bounds are of
    if features is None:
        raise InvalidParameter.must_be("n_features", "given, here or by bounds of each column", "nothing")
    return whole(records, "n_records", least=1), whole(features, "n_features", least=1)


def forecast_moments(records: int, features: int, noise: tuple[float, float], more: dict[str, float]) -> DryRun:
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
