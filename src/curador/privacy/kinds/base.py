"""What the records of all families share."""

from __future__ import annotations

from curador.privacy.adjacency import Adjacency, as_adjacency
from curador.privacy.loss import Loss


class Typed(Loss):
    """A record with an optional adjacency."""

    __slots__ = ()

    @property
    def adjacency(self) -> Adjacency | None:
        return getattr(self, "relation", None)


def relation_of(value: Adjacency | str | None) -> Adjacency | None:
    """Return the neighbours that a record's maker named, None where none were."""
    return None if value is None else as_adjacency(value)
