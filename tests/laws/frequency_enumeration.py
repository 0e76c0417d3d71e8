"""The exact law of what a client of frequencies sends: `report` is run under every outcome of its chances."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import mpmath

from curador.local.client.base import Client
from curador.local.client.chance import WHOLE


class Chances:
    """Stands for the chances of a client: follows a script of outcomes, then takes the first of each new one."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.place = script, 0
        self.mass = Fraction(1)
        self.widths: list[int] = []

    def _outcome(self, width: int) -> int:
        if self.place == len(self.script):
            self.script.append(0)
        self.widths.append(width)
        self.place += 1
        return self.script[self.place - 1]

    def coin(self, share: int) -> bool:
        """One of two, of probability share/2⁶⁴ and the rest."""
        heads = self._outcome(2) == 1
        self.mass *= Fraction(share if heads else WHOLE - share, WHOLE)
        return heads

    def below(self, limit: int) -> int:
        """One of so many, all as likely."""
        self.mass /= limit
        return self._outcome(limit)

    def coins(self, share: int, size: int) -> int:
        """One of 2^size rows of bits."""
        bits = self._outcome(1 << size)
        ones = bits.bit_count()
        self.mass *= Fraction(share, WHOLE) ** ones * Fraction(WHOLE - share, WHOLE) ** (size - ones)
        return bits

    def subset(self, weight: int, limit: int) -> list[int]:
        """One of all sets of a size."""
        every = comb(limit, weight)
        self.mass /= every
        return list(list(combinations(range(limit), weight))[self._outcome(every)])


NAMES = ("coin", "below", "coins", "subset")


def outcomes(run: Callable[[Chances], Any]) -> dict[Any, Fraction]:
    """Return how likely `run` returns what, over every way in which its chances may fall."""
    law: dict[Any, Fraction] = {}
    script: list[int] = []
    while True:
        chances = Chances(script)
        answer = run(chances)
        if chances.mass:
            law[answer] = law.get(answer, Fraction(0)) + chances.mass
        while script and script[-1] == chances.widths[len(script) - 1] - 1:
            script.pop()
        if not script:
            return law
        script[-1] += 1


def exact_law(client: Client, value: Any) -> dict[Any, Fraction]:
    """Return the probability of everything that `client.report(value)` may return."""
    modules = [sys.modules[one.__module__] for one in type(client).__mro__ if issubclass(one, Client) and one is not Client]
    real = [(module, name, getattr(module, name)) for module in modules for name in NAMES if hasattr(module, name)]

    def run(chances: Chances) -> Any:
        for module, name, _ in real:
            setattr(module, name, getattr(chances, name))
        return client.report(value)

    try:
        return outcomes(run)
    finally:
        for module, name, function in real:
            setattr(module, name, function)


def worst_ratio(laws: list[dict[Any, Fraction]]) -> Fraction | None:
    """Return the largest ratio of the probabilities of one report under two values; None where it is infinite."""
    worst = Fraction(1)
    for report in {report for law in laws for report in law}:
        masses = [law.get(report, Fraction(0)) for law in laws]
        if not min(masses):
            return None
        worst = max(worst, max(masses) / min(masses))
    return worst


def within(ratio: Fraction | None, epsilon: Fraction) -> bool:
    """Whether the ratio is at most e^ε, by interval arithmetic of 60 digits: in doubt it is not."""
    if ratio is None:
        return False
    iv: Any = mpmath.iv
    before, iv.dps = iv.dps, 60
    try:
        bound = iv.exp(iv.mpf(epsilon.numerator) / iv.mpf(epsilon.denominator))
        return bool((iv.mpf(ratio.numerator) / iv.mpf(ratio.denominator)).b <= bound.a)
    finally:
        iv.dps = before


def hockey_stick(one: dict[Any, Fraction], other: dict[Any, Fraction], factor: Fraction) -> Fraction:
    """Return Σ max(0, P − factor Q)."""
    return sum(
        (max(Fraction(0), mass - factor * other.get(report, Fraction(0))) for report, mass in one.items()), Fraction(0)
    )
