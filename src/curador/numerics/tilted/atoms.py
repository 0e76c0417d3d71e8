"""D(ε) of a law with few atoms, by summing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.rounding import UNIT

if TYPE_CHECKING:
    from curador.numerics.tilted.moments import Atoms

MOST_ATOMS = 40_000


@dataclass(frozen=True, slots=True)
class AtomSum:
    """D(ε) = Σ over losses l > ε of P(l) (1 − e^(ε−l)).

    Claim   D(ε) lies in enclose(ε).
    Rounds  Outward: losses are taken a few ulps of the largest to the unfavourable side, masses by their stated error.
    """

    law: Atoms

    def _sum(self, epsilon: float) -> float:
        start = int(np.searchsorted(self.law.losses, epsilon, side="right"))
        return float((self.law.masses[start:] * -np.expm1(epsilon - self.law.losses[start:])).sum())

    def middle(self, epsilon: float) -> float:
        """Return the sum itself, with no claim."""
        return self._sum(epsilon)

    def enclose(self, epsilon: float) -> tuple[float, float]:
        """Return (lower, upper) bounds of D(ε)."""
        size = len(self.law.losses)
        wobble = self.law.wobble + 4 * UNIT * abs(epsilon)
        error = self.law.error + UNIT * (16.0 + size / 8)
        return (
            max(0.0, self._sum(epsilon + wobble) * (1.0 - error)),
            self._sum(epsilon - wobble) * (1.0 + 2.0 * error) + 1e-140,  # laws with tails leave less than that out
        )
