"""One entry at one ε: its promise, lower bounds of ε against its claims, and its law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curador.audit.bounds import detectable, lower_bound
from curador.audit.entry import Entry, delta_of
from curador.audit.fit import goodness

LIMIT = 3.0
"""A row has power if it would flag a mechanism this many times too telling, nearly always."""

SLACK = 1e-9
"""By what part the ε of a loss may be above the ε asked: it is rounded up."""


@dataclass(frozen=True, slots=True)
class Row:
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


def tried(entry: Entry, asked: str, *, size: int, alpha: float, alpha_fit: float) -> tuple[list[Row], list[FitRow]]:
    """Return the rows of an entry made for an ε, from `size` releases in each of its worlds.

    Claim   Each bound is false with probability at most alpha, a fit rejects a right law with about alpha_fit.
    """
    mechanism = entry.make(asked)
    worlds = entry.worlds(mechanism)
    promised = float(mechanism.loss.epsilon(entry.goal))
    one, other = (entry.draw(mechanism, world, size) for world in worlds)
    rows: list[Row] = []
    for word in entry.deltas:
        exact = delta_of(word, mechanism.loss)
        delta, claim = float(exact), float(mechanism.loss.epsilon(exact))
        bound = lower_bound(one, other, delta=delta, alpha=alpha)
        least = detectable(bound, claim, delta=delta, alpha=alpha)
        rows.append(Row(entry.name, asked, promised, delta, claim, bound.epsilon, least, bound.event))
    if entry.law is None:
        return rows, []
    cells = entry.law(mechanism, worlds[0])
    places = np.rint(one / float(mechanism.grid)) if entry.real else one
    fit = goodness(cells.counts(places), cells.probabilities)
    return rows, [FitRow(entry.name, asked, fit.p, alpha_fit)]
