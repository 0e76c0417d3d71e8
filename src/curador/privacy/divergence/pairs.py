"""Two distributions of one family, brought to the parameters that matter, and their divergences as closed forms of balls.

The hockey-stick divergence sup_S P(S) - e^ε Q(S) is attained on S = {loss > ε}, loss = log p/q. For the normal and the
Laplace family S is an interval, the outside of one, or a half-line; which of them is decided in rationals or by the sign of a
ball.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeAlias

from curador.numerics.balls import SMALLEST, ball, is_positive, near

if TYPE_CHECKING:
    from flint import arb

    Ends: TypeAlias = tuple[arb, arb]
    Tail: TypeAlias = Callable[[arb], arb]


_FAR = 1000
"""From here on the radius of Arb's erfc(x) is right but coarse, and that of e^(-x²) U(1/2, 1/2, x²)/√π, its equal, is not."""


class DivergencePair(Protocol):
    """What every family answers; P and Q are known to differ but for the hockey-stick."""

    def kl(self) -> float: ...

    def renyi(self, order: Fraction) -> float: ...

    def supremum(self) -> float: ...

    def hockey_stick(self, epsilon: Fraction) -> float: ...


# ---- finitely many points ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AtomPair:
    """Points with their probabilities (under P, under Q).

    Claim   The values are those of the defining sums, enclosed, with 0 log 0 = 0 and a log(a/0) = +∞; in particular
            the supremum of the loss is over the support of P, +∞ where Q misses a part of it.
    Needs   The probabilities of each side add up to 1; P is not Q, but for the hockey-stick.
    Rounds  Near.
    Source  [Mir17]
    """

    atoms: tuple[tuple[Fraction, Fraction], ...]

    def kl(self) -> float:
        """Return Σ p log(p/q)."""
        weighted = self._weighted()
        if weighted is None:
            return math.inf
        return near(lambda: sum((ball(p) * ball(r).log() for p, r in weighted), ball(0)))

    def renyi(self, order: Fraction) -> float:
        """Return log Σ p (p/q)^(α-1) / (α-1), for α above 1; the largest p/q is taken out."""
        weighted = self._weighted()
        if weighted is None:
            return math.inf
        top = max(ratio for _, ratio in weighted)
        scaled = [(p, ratio / top) for p, ratio in weighted]

        def compute() -> arb:
            power = ball(order - 1)
            total = sum((ball(p) * (power * ball(r).log()).exp() for p, r in scaled), ball(0))
            return ball(top).log() + total.log() / power

        return near(compute)

    def supremum(self) -> float:
        """Return the largest log(p/q) over the support of P."""
        weighted = self._weighted()
        if weighted is None:
            return math.inf
        largest = max(ratio for _, ratio in weighted)
        return near(lambda: ball(largest).log())

    def hockey_stick(self, epsilon: Fraction) -> float:
        """Return Σ (p - e^ε q)₊; which terms are positive is decided without error."""
        above = [(p, q) for p, q in self.atoms if p > 0 and (q == 0 or _exceeds(p / q, epsilon))]
        first = sum((p for p, _ in above), Fraction(0))
        second = sum((q for _, q in above), Fraction(0))
        if not above:
            return 0.0
        if second == 0 or epsilon == 0:
            return near(lambda: ball(first - second))
        return near(lambda: ball(first) - ball(epsilon).exp() * ball(second))

    def _weighted(self) -> list[tuple[Fraction, Fraction]] | None:
        """Return (p, p/q) over the support of P; None if Q misses a part of it."""
        support = [(p, q) for p, q in self.atoms if p > 0]
        return None if any(q == 0 for _, q in support) else [(p, p / q) for p, q in support]


def _exceeds(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether ratio > e^epsilon. Never a tie unless epsilon is 0: e to a rational is irrational."""
    return ratio > 1 if epsilon == 0 else is_positive(lambda: ball(ratio).log() - ball(epsilon))


# ---- regions of the real line -----------------------------------------------------------------------------------------


def _excess(tail: Tail, first: Ends, second: Ends, epsilon: Fraction, *, inside: bool) -> arb:
    """Return P(S) - e^ε Q(S) of what is between the ends, or outside; the ends in standard units of P, and of Q.

    Claim   The ball holds the value. Where P(S) is below every float the ball is that of P(S) instead, which is above the
            value, and the value is positive: both are next to the same float.
    Needs   S = {loss > ε}, not empty; `tail` is that of both distributions in standard units, symmetric.
    Rounds  Nothing: a ball.
    """
    mass = _between if inside else _outside
    probability = mass(tail, *first)
    return probability if probability.upper() <= SMALLEST else probability - ball(epsilon).exp() * mass(tail, *second)


def _between(tail: Tail, low: arb, high: arb) -> arb:
    # Both are right everywhere; on its own side of the centre each cancels less.
    return tail(low) - tail(high) if low.mid() >= 0 else tail(-high) - tail(-low)


def _outside(tail: Tail, low: arb, high: arb) -> arb:
    return tail(-low) + tail(high)


def _normal_tail(place: arb) -> arb:
    if place > _FAR:
        half, square = ball(Fraction(1, 2)), place**2 / 2
        return (-square).exp() * square.hypgeom_u(half, half) / (2 * place.pi().sqrt())
    return (place / ball(2).sqrt()).erfc() / 2


def _laplace_tail(place: arb) -> arb:
    if place >= 0:
        return (-place).exp() / 2
    if place <= 0:
        return 1 - place.exp() / 2
    if not place.is_finite():
        return place  # nothing is known
    return _laplace_tail(place.lower()).union(_laplace_tail(place.upper()))  # it falls


# ---- normal -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NormalPair:
    """P = N(shift, first²) against Q = N(0, second²).

    Claim   Rényi: α d²/(2 s) + log(second/first) + log(second²/s)/(2(α-1)) with s = (1-α) first² + α second²,
            +∞ where s <= 0. Hockey-stick: the integral of (p - e^ε q)₊. Each enclosed.
    Needs   P is not Q, but for the hockey-stick.
    Rounds  Near.
    Source  [Mir17, Prop. 7] equal variances; [BW18, Thm. 8] hockey-stick with equal variances
    """

    shift: Fraction
    first: Fraction
    second: Fraction

    def kl(self) -> float:
        """Return log(second/first) + (first² + d²)/(2 second²) - 1/2."""
        rest = (self.first**2 + self.shift**2) / (2 * self.second**2) - Fraction(1, 2)
        return near(lambda: self._log_ratio() + ball(rest))

    def renyi(self, order: Fraction) -> float:
        """Return the divergence of an order above 1."""
        blend = (1 - order) * self.first**2 + order * self.second**2
        if blend <= 0:
            return math.inf
        quadratic, relative = order * self.shift**2 / (2 * blend), self.second**2 / blend
        return near(lambda: ball(quadratic) + self._log_ratio() + ball(relative).log() / ball(2 * (order - 1)))

    def supremum(self) -> float:
        """Return the maximum of the loss, a parabola that opens downwards only if P is the narrower."""
        if self.first >= self.second:
            return math.inf
        quadratic = self.shift**2 / (2 * (self.second**2 - self.first**2))
        return near(lambda: ball(quadratic) + self._log_ratio())

    def hockey_stick(self, epsilon: Fraction) -> float:
        """Return P(S) - e^ε Q(S) of S = {loss > ε}."""
        if self.first == self.second:
            return self._hockey_stick_of_equals(epsilon)
        narrow = self.first < self.second
        # The discriminant is never 0: it is a rational plus a rational multiple of log(second/first).
        if not is_positive(lambda: self._discriminant(epsilon)):  # loss > ε nowhere, or everywhere
            return 0.0 if narrow else near(lambda: -ball(epsilon).expm1())
        return near(lambda: _excess(_normal_tail, *self._crossings(epsilon), epsilon, inside=narrow))

    def _hockey_stick_of_equals(self, epsilon: Fraction) -> float:
        if self.shift == 0:
            return near(lambda: -ball(epsilon).expm1()) if epsilon < 0 else 0.0
        distance = abs(self.shift) / self.first
        start = epsilon / distance - distance / 2

        def compute() -> arb:
            probability = _normal_tail(ball(start))
            if probability.upper() <= SMALLEST:
                return probability  # as in `_excess`
            return probability - ball(epsilon).exp() * _normal_tail(ball(start + distance))

        return near(compute)

    def _log_ratio(self) -> arb:
        return ball(self.second / self.first).log()

    def _discriminant(self, epsilon: Fraction) -> arb:
        """Return b² - a c of loss - ε = a u² + 2 b u + c, u in standard units of P."""
        leading, middle = self._coefficients()
        constant = ball(self.shift**2 / (2 * self.second**2) - epsilon) + self._log_ratio()
        return ball(middle**2) - ball(leading) * constant

    def _coefficients(self) -> tuple[Fraction, Fraction]:
        return (self.first**2 / self.second**2 - 1) / 2, self.first * self.shift / (2 * self.second**2)

    def _crossings(self, epsilon: Fraction) -> tuple[Ends, Ends]:
        """Return the two points where the loss is ε, the lower one first, in standard units of P and of Q."""
        leading, middle = self._coefficients()
        reach, centre = self._discriminant(epsilon).sqrt() / ball(abs(leading)), ball(-middle / leading)
        low, high = centre - reach, centre + reach
        ratio, offset = ball(self.first / self.second), ball(self.shift / self.second)
        return (low, high), (low * ratio + offset, high * ratio + offset)


# ---- Laplace ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaplacePair:
    """P = Lap(0, first) against Q = Lap(shift, second), shift at least 0.

    The densities are exponentials on x < 0, 0 < x < shift and shift < x; the loss is linear on each.

    Claim   The values are the defining integrals over the three pieces, enclosed; +∞ where a tail diverges.
    Needs   P is not Q, but for the hockey-stick.
    Rounds  Near.
    Source  [Mir17, Prop. 6] equal scales
    """

    shift: Fraction
    first: Fraction
    second: Fraction

    def kl(self) -> float:
        """Return log(second/first) - 1 + (shift + first e^(-shift/first)) / second."""

        def compute() -> arb:
            decay = ball(-self.shift / self.first).exp()
            return self._log_ratio() + ball(self.shift / self.second - 1) + ball(self.first / self.second) * decay

        return near(compute)

    def renyi(self, order: Fraction) -> float:
        """Return the divergence of an order above 1.

        The integrand decays at rate `tail` on the outer pieces and at rate `middle` between the locations;
        e^((α-1) shift/second) (second/first)^(α-1), its height at 0, is taken out.
        """
        tail = order / self.first - (order - 1) / self.second
        middle = order / self.first + (order - 1) / self.second
        if tail <= 0:
            return math.inf

        def compute() -> arb:
            decay = ball(-middle * self.shift).exp()
            pieces = (1 + decay) / ball(tail) + (1 - decay) / ball(middle)
            inner = (pieces / ball(2 * self.first)).log() / ball(order - 1)
            return self._log_ratio() + ball(self.shift / self.second) + inner

        return near(compute)

    def supremum(self) -> float:
        """Return the loss at the location of P, its peak; +∞ where P has the heavier tails."""
        return math.inf if self.first > self.second else near(self._loss_at_first)

    def hockey_stick(self, epsilon: Fraction) -> float:
        """Return P(S) - e^ε Q(S) of S = {loss > ε}."""
        if self.first == self.second:
            return self._hockey_stick_of_equals(epsilon)
        narrow = self.first < self.second
        # Never a tie: log(second/first) is irrational.
        first_above = is_positive(lambda: self._loss_at_first() - ball(epsilon))
        second_above = is_positive(lambda: self._loss_at_second() - ball(epsilon))
        if narrow and not first_above:  # the peak of the loss is below ε
            return 0.0
        if not narrow and second_above:  # the bottom of the loss is above ε
            return near(lambda: -ball(epsilon).expm1())

        def compute() -> arb:
            left, middle, right = self._crossings(epsilon)
            if narrow:
                low, high = left, (right if second_above else middle)
            else:
                low, high = (middle if first_above else left), right
            return _excess(_laplace_tail, (low[0], high[0]), (low[1], high[1]), epsilon, inside=narrow)

        return near(compute)

    def _hockey_stick_of_equals(self, epsilon: Fraction) -> float:
        distance = self.shift / self.first
        if epsilon >= distance:
            return 0.0
        exponent = (epsilon - distance) / 2 if epsilon > -distance else epsilon
        return near(lambda: -ball(exponent).expm1())

    def _log_ratio(self) -> arb:
        return ball(self.second / self.first).log()

    def _loss_at_first(self) -> arb:
        return self._log_ratio() + ball(self.shift / self.second)

    def _loss_at_second(self) -> arb:
        return self._log_ratio() - ball(self.shift / self.first)

    def _crossings(self, epsilon: Fraction) -> tuple[Ends, Ends, Ends]:
        """Return where the line of each piece is ε, in standard units of P and of Q.

        The loss has slopes flat, -steep, -flat on the three pieces. Each place is measured from the location
        that it does not cancel against.
        """
        flat = ball(1 / self.first - 1 / self.second)
        steep = ball(1 / self.first + 1 / self.second)
        shift, first, second = ball(self.shift), ball(self.first), ball(self.second)
        at_first = self._loss_at_first() - ball(epsilon)
        at_second = self._loss_at_second() - ball(epsilon)
        left = (-at_first / flat / first, (-at_first / flat - shift) / second)
        middle = (at_first / steep / first, at_second / steep / second)
        right = ((shift + at_second / flat) / first, at_second / flat / second)
        return left, middle, right
