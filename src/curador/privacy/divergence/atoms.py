"""Divergences of two distributions on the same finitely many points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from curador.privacy.divergence.digits import decimal_of, near, settle


@dataclass(frozen=True, slots=True)
class AtomPair:
    """Points with their probabilities (under P, under Q).

    Claim   The values are those of the defining sums, with 0 log 0 = 0 and a log(a/0) = +∞; in particular
            the supremum of the loss is over the support of P, +∞ where Q misses a part of it.
    Rounds  Near.
    Source  [Mir17]
    """

    atoms: tuple[tuple[Fraction, Fraction], ...]

    def kl(self) -> float:
        """Return Σ p log(p/q)."""
        weighted = self._weighted()
        if weighted is None:
            return math.inf
        return near(settle(lambda: sum((decimal_of(p) * decimal_of(r).ln() for p, r in weighted), Decimal(0))))

    def renyi(self, order: Fraction) -> float:
        """Return log Σ p (p/q)^(α-1) / (α-1), for α above 1."""
        weighted = self._weighted()
        if weighted is None:
            return math.inf
        atoms = weighted

        def compute() -> Decimal:
            power = decimal_of(order - 1)
            losses = [decimal_of(ratio).ln() for _, ratio in atoms]
            top = max(losses)
            terms = (decimal_of(p) * (power * (x - top)).exp() for (p, _), x in zip(atoms, losses, strict=True))
            return top + sum(terms, Decimal(0)).ln() / power

        return near(settle(compute))

    def supremum(self) -> float:
        """Return the largest log(p/q) over the support of P."""
        weighted = self._weighted()
        if weighted is None:
            return math.inf
        largest = max(ratio for _, ratio in weighted)
        return near(settle(lambda: decimal_of(largest).ln()))

    def hockey_stick(self, epsilon: Fraction) -> float:
        """Return Σ (p - e^ε q)₊; which terms are positive is decided without error."""
        above = [(p, q) for p, q in self.atoms if p > 0 and (q == 0 or _exceeds(p / q, epsilon))]
        first = sum((p for p, _ in above), Fraction(0))
        second = sum((q for _, q in above), Fraction(0))
        if second == 0 or epsilon == 0:
            return near(settle(lambda: decimal_of(first - second))) if first > second else 0.0
        return near(settle(lambda: decimal_of(first) - decimal_of(epsilon).exp() * decimal_of(second)))

    def _weighted(self) -> list[tuple[Fraction, Fraction]] | None:
        """Return (p, p/q) over the support of P; None if Q misses a part of it."""
        support = [(p, q) for p, q in self.atoms if p > 0]
        return None if any(q == 0 for _, q in support) else [(p, p / q) for p, q in support]


def _exceeds(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether ratio > e^epsilon. Never a tie unless epsilon is 0: e to a rational is irrational."""
    if epsilon == 0 or ratio == 1:
        return ratio > 1 if epsilon == 0 else epsilon < 0
    log = math.log(ratio.numerator) - math.log(ratio.denominator)
    size = 1 + math.log(ratio.numerator) + math.log(ratio.denominator)
    if abs(epsilon) > 10 * size or abs(log - float(epsilon)) > 1e-9 * size:  # far beyond the floats' error
        return log > epsilon
    return settle(lambda: decimal_of(ratio).ln() - decimal_of(epsilon)) > 0
