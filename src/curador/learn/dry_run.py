"""What a fit can be expected to give, from declared numbers only: asked before anything is spent, with no data at hand.

Every estimator is asked in one order: how many records, then how many features (or their shape). What a parameter declares
already may be left out. The orders and names of before are understood, with a warning.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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
