"""Divergences of two Laplace distributions, of equal or unequal scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from curador.privacy.divergence.digits import ONE, decimal_of, near, refine, settle
from curador.privacy.divergence.regions import LAPLACE, Crossing, crossing, excess_inside, excess_outside

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction


@dataclass(frozen=True, slots=True)
class LaplacePair:
    """P = Lap(0, first) against Q = Lap(shift, second), shift at least 0.

    The densities are exponentials on x < 0, 0 < x < shift and shift < x; the loss is linear on each.

    Claim   The values are the defining integrals over the three pieces, +∞ where a tail diverges.
    Rounds  Near.
    Source  [Mir17, Prop. 6] equal scales
    """

    shift: Fraction
    first: Fraction
    second: Fraction

    def kl(self) -> float:
        """Return log(second/first) - 1 + (shift + first e^(-shift/first)) / second."""

        def compute() -> Decimal:
            decay = (-decimal_of(self.shift / self.first)).exp()
            linear = decimal_of(self.shift / self.second - 1)
            return self._log_ratio() + linear + decimal_of(self.first / self.second) * decay

        return near(settle(compute))

    def renyi(self, order: Fraction) -> float:
        """Return the divergence of an order above 1.

        The integrand decays at rate `tail` on the outer pieces and at rate `middle` between the locations;
        e^((α-1) shift/second) (second/first)^(α-1), its height at 0, is taken out.
        """
        tail = order / self.first - (order - 1) / self.second
        middle = order / self.first + (order - 1) / self.second
        if tail <= 0:
            return math.inf

        def compute() -> Decimal:
            decay = (-decimal_of(middle * self.shift)).exp()
            pieces = (ONE + decay) / decimal_of(tail) + (ONE - decay) / decimal_of(middle)
            inner = (pieces / decimal_of(2 * self.first)).ln() / decimal_of(order - 1)
            return self._log_ratio() + decimal_of(self.shift / self.second) + inner

        return near(settle(compute))

    def supremum(self) -> float:
        """Return the loss at the location of P, its peak; +∞ where P has the heavier tails."""
        return math.inf if self.first > self.second else near(settle(self._loss_at_first))

    def hockey_stick(self, epsilon: Fraction) -> float:
        """Return P(S) - e^ε Q(S) of S = {loss > ε}."""
        if self.first == self.second:
            return self._hockey_stick_of_equals(epsilon)
        narrow = self.first < self.second
        extreme = self._loss_at_first if narrow else self._loss_at_second
        # Never a tie: log(second/first) is irrational.
        room = settle(lambda: extreme() - decimal_of(epsilon))
        if narrow and room < 0:  # the peak of the loss is below ε
            return 0.0
        if not narrow and room > 0:  # the bottom of the loss is above ε
            return near(settle(lambda: ONE - decimal_of(epsilon).exp()))
        excess = excess_inside if narrow else excess_outside
        return near(settle(lambda: excess(*self._crossings(epsilon), decimal_of(epsilon))))

    def _hockey_stick_of_equals(self, epsilon: Fraction) -> float:
        distance = self.shift / self.first
        if epsilon >= distance:
            return 0.0
        exponent = (epsilon - distance) / 2 if epsilon > -distance else epsilon
        return near(settle(lambda: ONE - decimal_of(exponent).exp()))

    def _log_ratio(self) -> Decimal:
        return decimal_of(self.second / self.first).ln()

    def _loss_at_first(self) -> Decimal:
        return self._log_ratio() + decimal_of(self.shift / self.second)

    def _loss_at_second(self) -> Decimal:
        return self._log_ratio() - decimal_of(self.shift / self.first)

    def _crossings(self, epsilon: Fraction) -> tuple[Crossing, Crossing]:
        """Return the two points where the loss is ε, the lower one first.

        The loss has slopes flat, -steep, -flat on the three pieces. Each place is measured from the location
        that it does not cancel against.
        """
        flat = decimal_of(1 / self.first - 1 / self.second)
        steep = decimal_of(1 / self.first + 1 / self.second)
        shift = decimal_of(self.shift)
        at_first, at_second = refine(
            lambda: (
                self._loss_at_first() - decimal_of(epsilon),
                self._loss_at_second() - decimal_of(epsilon),
            )
        )
        left = (-at_first / flat, -at_first / flat - shift)
        middle = (at_first / steep, at_second / steep)
        right = (shift + at_second / flat, at_second / flat)
        if self.first < self.second:
            low, high = left, (right if at_second > 0 else middle)
        else:
            low, high = (left if at_first < 0 else middle), right
        return self._crossing(*low), self._crossing(*high)

    def _crossing(self, from_first: Decimal, from_second: Decimal) -> Crossing:
        first, second = decimal_of(self.first), decimal_of(self.second)
        return crossing(LAPLACE, from_first / first, from_second / second, second / first)
