"""What a figure of losses is of: one loss, several by name, or an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from curador.errors import InvalidParameter, sentence
from curador.privacy.loss import Loss

Losses: TypeAlias = Mapping[str, Loss] | Loss | None

_LONGEST = 60


def named(losses: object, example: Callable[[], Mapping[str, Loss]]) -> Mapping[str, Loss]:
    """Return losses by name: those given, one under its own words, or the example for None; all else is refused."""
    if losses is None:
        return example()
    if isinstance(losses, Loss):
        words = repr(losses)
        return {words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…": losses}
    if isinstance(losses, Mapping):
        found = cast("Mapping[Any, Any]", losses)
        if found and all(isinstance(one, Loss) for one in found.values()):
            return {str(name): one for name, one in found.items()}
    raise InvalidParameter(sentence("losses", "a loss, or losses by name", losses))
