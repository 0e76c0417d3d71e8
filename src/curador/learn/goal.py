"""What a fit may cost: ε, δ and between which tables they hold."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from curador.errors import InvalidParameter, sentence
from curador.numerics.exact import Number, positive, rational
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency

Neighbours: TypeAlias = Literal["add_remove", "replace_one"]

_WORDS = {"add_remove": ADD_OR_REMOVE_ONE, "replace_one": REPLACE_ONE}


@dataclass(frozen=True, slots=True)
class Goal:
    """(ε, δ) for tables that differ by one record. δ = 0: pure."""

    epsilon: Fraction
    delta: Fraction
    adjacency: Adjacency

    @property
    def pure(self) -> bool:
        """Whether no δ may be spent."""
        return self.delta == 0


def goal_of(epsilon: Number | None, delta: Number | None, neighbours: str) -> Goal:
    """Return the goal that an estimator's parameters state, or refuse: nothing about privacy has a default."""
    if epsilon is None:
        raise InvalidParameter(sentence("epsilon", "given", "nothing", "how much one record may change what is released"))
    if delta is None:
        raise InvalidParameter(
            sentence("delta", "given", "nothing", "0 for pure privacy, else far below one in the number of records")
        )
    spent = rational(delta, "delta")
    if not 0 <= spent < 1:
        raise InvalidParameter(sentence("delta", "at least 0 and below 1", delta))
    return Goal(positive(epsilon, "epsilon"), spent, neighbours_of(neighbours))


def neighbours_of(word: object) -> Adjacency:
    """Return the adjacency that a parameter names."""
    if not isinstance(word, str) or word not in _WORDS:
        raise InvalidParameter(sentence("neighbours", "'add_remove' or 'replace_one'", word))
    return _WORDS[word]
