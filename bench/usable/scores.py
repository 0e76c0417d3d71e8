"""What an error is, for every tool alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


def squared(truth: Mapping[Hashable, float], answer: Mapping[Hashable, float]) -> float:
    """Return the mean over groups of squared errors; a group that is not shown counts as 0."""
    names = truth.keys() | answer.keys()
    return sum((answer.get(name, 0.0) - truth.get(name, 0.0)) ** 2 for name in names) / len(names)
