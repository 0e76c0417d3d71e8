"""Who is a neighbour of whom.

The textbooks disagree, and a sensitivity or a loss means nothing without it, so adjacency is a type.
"""

from __future__ import annotations

import enum

from curador.errors import InvalidParameter


class Adjacency(enum.Enum):
    """The relation between two databases that must look alike.

    ADD_OR_REMOVE_ONE   one record is present in one and absent in the other; their sizes differ by one
    REPLACE_ONE         one record has another value; both have the same, public size
    """

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ONE = "replace_one"

    def __str__(self) -> str:
        return self.value


ADD_OR_REMOVE_ONE = Adjacency.ADD_OR_REMOVE_ONE
REPLACE_ONE = Adjacency.REPLACE_ONE


def as_adjacency(adjacency: Adjacency | str, name: str = "adjacency") -> Adjacency:
    """Return the adjacency that the value names."""
    if isinstance(adjacency, Adjacency):
        return adjacency
    for known in Adjacency:
        if adjacency == known.value:
            return known
    raise InvalidParameter.must_be(name, '"add_or_remove_one" or "replace_one"', adjacency)


def maybe_adjacency(adjacency: Adjacency | str | None) -> Adjacency | None:
    """Return the neighbours that a maker named, None where none were."""
    return None if adjacency is None else as_adjacency(adjacency)
