"""What a fit can be expected to give, from declared numbers only: asked before anything is spent, with no data at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


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
