"""What an audit tries, and one trial of it: a mechanism with two worlds; at one ε its promise, bounds and law.

An entry is a mechanism, two worlds, and how its outputs are looked at.

A trial is one entry at one ε: its promise, lower bounds of ε against its claims, and its law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.audit.bounds import detectable, lower_bound
from curador.audit.fit import LawCells, goodness
from curador.privacy.loss import Loss

if TYPE_CHECKING:
    from numpy.typing import NDArray


# ---- entry -----------------------------------------------------------------------------------------------------------------


EPSILONS = ("0.1", "1", "4")
SMALL = "1e-5"
"""The δ of Gaussian noise."""

LARGE = "1e-3"
"""The δ of mechanisms whose δ is an event of its own: large enough to be seen."""

ALONE = "0.05"
"""The δ of keys held by one unit alone, where δ is all there is to see."""

HALFWAY = "halfway"
"""Also audit where δ is half of the total variation: there Gaussian curves can be seen with few samples."""

Worlds: TypeAlias = Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class AuditedMechanism:
    """A mechanism under audit: how to make it for an ε, its worlds, its outputs as scores, and the claims to test.

    `law` gives the cells of its law in the first world, where the law has a closed form; `real` marks releases of floats on
    a public grid, whose bits are looked at.
    """

    name: str
    make: Callable[[str], Any]
    worlds: Worlds
    score: Callable[[Any], NDArray[Any]]
    deltas: tuple[str, ...] = ("0",)
    law: Callable[[Any, Any], LawCells] | None = None
    real: bool = False
    many: str = "release_many"

    @property
    def goal(self) -> Fraction:
        """The δ that the mechanism is made for: the first that `deltas` gives as a number, else 0."""
        return Fraction(next((word for word in self.deltas if word != HALFWAY), "0"))

    def draw(self, mechanism: Any, world: Any, size: int) -> NDArray[Any]:
        """Return scores of `size` releases in a world."""
        arguments = world if isinstance(world, tuple) else (world,)
        return self.score(getattr(mechanism, self.many)(*arguments, size=size))


def delta_of(word: str, loss: Loss) -> Fraction:
    """Return the δ that an entry names."""
    return Fraction(loss.delta(0)) / 2 if word == HALFWAY else Fraction(word)


# ---- trial -----------------------------------------------------------------------------------------------------------------


LIMIT = 3.0
"""A row has power if it would flag a mechanism this many times too telling, nearly always."""

SLACK = 1e-9
"""By what part the ε of a loss may be above the ε asked: it is rounded up."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A lower bound of ε against a claim, and what was promised at the δ of the goal against what was asked."""

    mechanism: str
    asked: str
    promised: float
    delta: float
    claim: float
    bound: float
    detectable: float
    event: str

    @property
    def ratio(self) -> float:
        """The bound over the claim: at most 1, and near it where the pair of worlds is the worst one."""
        return self.bound / self.claim if self.claim > 0 else math.nan

    @property
    def kept(self) -> bool:
        """Whether the loss promises the ε that was asked for, or less."""
        return self.promised <= float(self.asked) * (1 + SLACK)

    @property
    def holds(self) -> bool:
        """Whether the bound leaves the claim standing, and the claim is what was asked for."""
        return self.bound <= self.claim and self.kept

    @property
    def power(self) -> bool:
        """Whether a mechanism LIMIT times too telling would be flagged."""
        return self.detectable < LIMIT

    @property
    def violation(self) -> str | None:
        """What is wrong, in a sentence."""
        if not self.kept:
            return f"{self.mechanism} at ε = {self.asked}: its loss says ε = {self.promised:.6g}"
        claim = f"claimed {self.claim:.6g} at δ = {self.delta:.3g}, by {self.event}"
        return None if self.holds else f"{self.mechanism} at ε = {self.asked}: ε ≥ {self.bound:.6g}, {claim}"


@dataclass(frozen=True, slots=True)
class FitRow:
    """The p-value of the claimed law."""

    mechanism: str
    asked: str
    p: float
    least: float

    @property
    def holds(self) -> bool:
        """Whether the law stands."""
        return self.p >= self.least


def run_trial(
    entry: AuditedMechanism, asked: str, *, size: int, alpha: float, alpha_fit: float
) -> tuple[list[TrialRow], list[FitRow]]:
    """Return the rows of an entry made for an ε, from `size` releases in each of its worlds.

    Claim   Each bound is false with probability at most alpha, a fit rejects a right law with about alpha_fit.
    """
    mechanism = entry.make(asked)
    worlds = entry.worlds(mechanism)
    promised = float(mechanism.loss.epsilon(entry.goal))
    one, other = (entry.draw(mechanism, world, size) for world in worlds)
    rows: list[TrialRow] = []
    for word in entry.deltas:
        exact = delta_of(word, mechanism.loss)
        delta, claim = float(exact), float(mechanism.loss.epsilon(exact))
        bound = lower_bound(one, other, delta=delta, alpha=alpha)
        least = detectable(bound, claim, delta=delta, alpha=alpha)
        rows.append(TrialRow(entry.name, asked, promised, delta, claim, bound.epsilon, least, bound.event))
    if entry.law is None:
        return rows, []
    cells = entry.law(mechanism, worlds[0])
    places = np.rint(one / float(mechanism.grid)) if entry.real else one
    fit = goodness(cells.counts(places), cells.probabilities)
    return rows, [FitRow(entry.name, asked, fit.p, alpha_fit)]
