"""What a conformance suite found: a sentence for every rule that is broken, all of them at once."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class NonconformingError(AssertionError):
    """Something does not keep the rules of what it says it is; `broken` has one sentence a rule."""

    def __init__(self, subject: str, broken: Iterable[str]) -> None:
        self.broken = tuple(broken)
        super().__init__("\n".join((f"{subject} breaks {len(self.broken)} of the rules:", *self.broken)))


def require_conforming(subject: str, rules: Iterable[Callable[[], Iterator[str]]]) -> None:
    """Try every rule, each a function that yields what is wrong, and raise NonconformingError if anything is.

    A rule that fails with an error of its own is broken as well: a suite that stopped there would be silent about the rest.
    """
    broken: list[str] = []
    for rule in rules:
        try:
            broken.extend(rule())
        except Exception as error:  # noqa: BLE001 -- whatever a foreign part raises is a finding
            at = traceback.extract_tb(error.__traceback__)[-1]
            broken.append(f"{type(error).__name__} in {at.name}: {error}")
    if broken:
        raise NonconformingError(subject, broken)
