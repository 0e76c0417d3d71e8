"""A number as a number: one near it more often than any other. And the mixture of that with one bit."""

from __future__ import annotations

from fractions import Fraction

from .base import Client
from .chance import WHOLE, below, coin, epsilon_of, exp_below, share_of_truth
from .duchi import DuchiMeanClient
from .number import STEPS, bounds_of, large_enough, position_of, round_by_chance, roundings, steps_of


class PiecewiseMeanClient(Client):
    """One of N = steps + 1 outputs −steps/2 … steps/2: from the `window` of W around the number with probability share/2⁶⁴.

    Inside the window and outside of it all outputs are equally likely. W/N ≈ 1/(e^(ε/2) + 1), and a window fits between the
    first and the last output wherever the number lies: the place of a number is that of its window, from 0 to N − W.

    Claim   ε-private: an output inside a window is at most e^ε times as likely as outside, by `share_of_truth`.
    Source  [WXY+19], on a grid.
    """

    kind = "piecewise mean"
    __slots__ = ("epsilon", "lower", "share", "steps", "upper", "window")

    def __init__(self, *, epsilon: object, lower: object, upper: object, steps: object = STEPS) -> None:
        self.epsilon = large_enough(epsilon_of(epsilon))
        self.lower, self.upper = bounds_of(lower, upper)
        self.steps = steps_of(steps)
        self.window = window_of(self.epsilon, self.steps)
        self.share = share_of_truth(self.epsilon, truths=self.window, others=self.outside)

    @property
    def outside(self) -> int:
        """How many outputs lie outside of a window; also the last place of a window."""
        return self.steps + 1 - self.window

    def report(self, value: object) -> int:
        """Return what to send. Both outputs are drawn, one is needed."""
        start = round_by_chance(position_of(value, self.lower, self.upper, self.outside))
        near, inside, outside = coin(self.share), below(self.window), below(self.outside)
        place = start + inside if near else outside + (self.window if outside >= start else 0)
        return place - self.steps // 2

    def law(self, value: object) -> dict[int, Fraction]:
        """Return the probability of every report, exactly."""
        near = Fraction(self.share, WHOLE * self.window)
        far = Fraction(WHOLE - self.share, WHOLE * self.outside)
        law = dict.fromkeys(range(-(self.steps // 2), self.steps // 2 + 1), far)
        for start, chance in roundings(position_of(value, self.lower, self.upper, self.outside)).items():
            for place in range(start, start + self.window):
                law[place - self.steps // 2] += chance * (near - far)
        return law

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {"epsilon": str(self.epsilon), "lower": str(self.lower), "upper": str(self.upper), "steps": self.steps}


class HybridMeanClient(Client):
    """The piecewise report with probability 1 − e^(−ε/2), else the one bit; and which of the two it is.

    Claim   ε-private: which of the two is drawn without a look at the number, and each is ε-private.
    Source  [WXY+19]
    """

    kind = "hybrid mean"
    __slots__ = ("bit", "epsilon", "lower", "piece", "share", "steps", "upper")

    def __init__(self, *, epsilon: object, lower: object, upper: object, steps: object = STEPS) -> None:
        self.piece = PiecewiseMeanClient(epsilon=epsilon, lower=lower, upper=upper, steps=steps)
        self.bit = DuchiMeanClient(epsilon=epsilon, lower=lower, upper=upper, steps=steps)
        self.epsilon, self.lower, self.upper, self.steps = self.bit.epsilon, self.bit.lower, self.bit.upper, self.bit.steps
        self.share = int(WHOLE * (1 - 1 / exp_below(self.epsilon / 2)))

    def report(self, value: object) -> tuple[int, int]:
        """Return what to send: (1, a piecewise report) or (0, a bit). Both are drawn, one is sent."""
        piece, bit = self.piece.report(value), self.bit.report(value)
        return (1, piece) if coin(self.share) else (0, bit)

    def law(self, value: object) -> dict[tuple[int, int], Fraction]:
        """Return the probability of every report, exactly."""
        part = Fraction(self.share, WHOLE)
        pieces = {(1, output): part * chance for output, chance in self.piece.law(value).items()}
        return pieces | {(0, output): (1 - part) * chance for output, chance in self.bit.law(value).items()}

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {"epsilon": str(self.epsilon), "lower": str(self.lower), "upper": str(self.upper), "steps": self.steps}


def window_of(epsilon: Fraction, steps: int) -> int:
    """Return the odd number of outputs in a window nearest to N/(e^(ε/2) + 1), at most half of all. Any such is private."""
    wanted = (steps + 1) / (exp_below(epsilon / 2) + 1)
    half = round((wanted - 1) / 2)
    return 2 * min(max(half, 0), (steps // 2 - 1) // 2) + 1
