"""Divergences of two normal distributions, of equal or unequal variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.privacy.divergence.digits import ONE, decimal_of, near, refine, settle
from curador.privacy.divergence.regions import (
    NORMAL,
    Crossing,
    crossing,
    excess_above,
    excess_inside,
    excess_outside,
)

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True, slots=True)
class NormalPair:
    """P = N(shift, first²) against Q = N(0, second²).

    Claim   Rényi: α d²/(2 s) + log(second/first) + log(second²/s)/(2(α-1)) with s = (1-α) first² + α second²,
            +∞ where s <= 0. Hockey-stick: the integral of (p - e^ε q)₊.
    Rounds  Near.
    Source  [Mir17, Prop. 7] equal variances; [BW18, Thm. 8] hockey-stick with equal variances
    """

    shift: Fraction
    first: Fraction
    second: Fraction

    def kl(self) -> float:
        """Return log(second/first) + (first² + d²)/(2 second²) - 1/2."""
        rest = (self.first**2 + self.shift**2) / (2 * self.second**2) - Fraction(1, 2)
        return near(settle(lambda: self._log_ratio() + decimal_of(rest)))

    def renyi(self, order: Fraction) -> float:
        """Return the divergence of an order above 1."""
        blend = (1 - order) * self.first**2 + order * self.second**2
        if blend <= 0:
            return math.inf
        quadratic, relative = order * self.shift**2 / (2 * blend), self.second**2 / blend
        return near(
            settle(
                lambda: decimal_of(quadratic) + self._log_ratio() + decimal_of(relative).ln() / decimal_of(2 * (order - 1))
            )
        )

    def supremum(self) -> float:
        """Return the maximum of the loss, a parabola that opens downwards only if P is the narrower."""
        if self.first >= self.second:
            return math.inf
        quadratic = self.shift**2 / (2 * (self.second**2 - self.first**2))
        return near(settle(lambda: decimal_of(quadratic) + self._log_ratio()))

    def hockey_stick(self, epsilon: Fraction) -> float:
        """Return P(S) - e^ε Q(S) of S = {loss > ε}."""
        if self.first == self.second:
            return self._hockey_stick_of_equals(epsilon)
        narrow = self.first < self.second
        # The discriminant is never 0: it is a rational plus a rational multiple of log(second/first).
        if settle(lambda: self._discriminant(epsilon)) < 0:  # loss > ε nowhere, or everywhere
            return 0.0 if narrow else near(settle(lambda: ONE - decimal_of(epsilon).exp()))
        excess = excess_inside if narrow else excess_outside
        return near(settle(lambda: excess(*self._crossings(epsilon), decimal_of(epsilon))))

    def _hockey_stick_of_equals(self, epsilon: Fraction) -> float:
        if self.shift == 0:
            return near(settle(lambda: ONE - decimal_of(epsilon).exp())) if epsilon < 0 else 0.0
        distance = abs(self.shift) / self.first
        start = epsilon / distance - distance / 2

        def compute() -> Decimal:
            place = crossing(NORMAL, decimal_of(start), decimal_of(start + distance), ONE)
            return excess_above(place, decimal_of(epsilon))

        return near(settle(compute))

    def _log_ratio(self) -> Decimal:
        return decimal_of(self.second / self.first).ln()

    def _discriminant(self, epsilon: Fraction) -> Decimal:
        """Return b² - a c of loss - ε = a u² + 2 b u + c, u in standard units of P."""
        leading, middle = self._coefficients()
        constant = decimal_of(self.shift**2 / (2 * self.second**2) - epsilon) + self._log_ratio()
        return decimal_of(middle**2) - decimal_of(leading) * constant

    def _coefficients(self) -> tuple[Fraction, Fraction]:
        return (self.first**2 / self.second**2 - 1) / 2, self.first * self.shift / (2 * self.second**2)

    def _crossings(self, epsilon: Fraction) -> tuple[Crossing, Crossing]:
        """Return the two points where the loss is ε, the lower one first."""
        leading, middle = self._coefficients()
        ratio, offset = self.second / self.first, self.shift / self.second

        def places() -> tuple[Decimal, ...]:
            root = refine(lambda: (self._discriminant(epsilon),))[0].sqrt()
            low, high = sorted((sign * root - decimal_of(middle)) / decimal_of(leading) for sign in (-1, 1))
            return low, high, *(place / decimal_of(ratio) + decimal_of(offset) for place in (low, high))

        low, high, second_low, second_high = refine(places)
        weight = decimal_of(ratio)
        return crossing(NORMAL, low, second_low, weight), crossing(NORMAL, high, second_high, weight)
