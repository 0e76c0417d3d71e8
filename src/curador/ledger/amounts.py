"""What a question costs, counted in whole ticks.

A ledger adds amounts for years. So they are exact rationals, multiples of one smallest step each: sums stay short, fit a
column of fixed width, and nothing is ever lost below the last digit. Costs are rounded up to the tick, limits and grants
down; twenty times 5 % therefore fit, whatever the limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from curador.errors import InvalidParameter
from curador.text import rounded_text

ZERO: Final = Fraction(0)
TICK: Final = Fraction(1, 10**18)
"""The smallest step of ε and of ρ."""
DELTA_TICK: Final = Fraction(1, 10**30)
"""The smallest step of δ, whose whole budget may be a billionth of a billionth."""

_EXACT: Final = re.compile(r"[0-9]{1,60}(/[1-9][0-9]{0,40})?")
DIGITS: Final = 40
"""Width of an amount in ticks where it is stored as text; equal widths compare as numbers do."""


def up_to_tick(amount: Fraction, tick: Fraction = TICK) -> Fraction:
    """Return the least multiple of the tick that is not below the amount. Rounds: up."""
    return -((-amount) // tick) * tick


def down_to_tick(amount: Fraction, tick: Fraction = TICK) -> Fraction:
    """Return the largest multiple of the tick that is not above the amount. Rounds: down."""
    return (amount // tick) * tick


@dataclass(frozen=True, slots=True)
class Amounts:
    """The cost of one question, or a sum of them.

    epsilon   what counts under a pure budget; 0 under an (ε, δ) budget
    rho       what counts under an (ε, δ) budget, with
    delta     what private keys cost of it
    """

    epsilon: Fraction = ZERO
    rho: Fraction = ZERO
    delta: Fraction = ZERO

    def __post_init__(self) -> None:
        _exact(self.epsilon, "amounts.epsilon", TICK)
        _exact(self.rho, "amounts.rho", TICK)
        _exact(self.delta, "amounts.delta", DELTA_TICK)

    @classmethod
    def cost(cls, *, epsilon: Fraction = ZERO, rho: Fraction = ZERO, delta: Fraction = ZERO) -> Amounts:
        """Return what must be charged for these exact amounts. Rounds: up."""
        return cls(up_to_tick(epsilon), up_to_tick(rho), up_to_tick(delta, DELTA_TICK))

    @classmethod
    def grant(cls, *, epsilon: Fraction = ZERO, rho: Fraction = ZERO, delta: Fraction = ZERO) -> Amounts:
        """Return what these exact amounts allow one to charge. Rounds: down."""
        return cls(down_to_tick(epsilon), down_to_tick(rho), down_to_tick(delta, DELTA_TICK))

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.epsilon + other.epsilon, self.rho + other.rho, self.delta + other.delta)

    def __sub__(self, other: Amounts) -> Amounts:
        """Refused where something would become negative."""
        return Amounts(self.epsilon - other.epsilon, self.rho - other.rho, self.delta - other.delta)

    def __bool__(self) -> bool:
        return bool(self.epsilon or self.rho or self.delta)

    def within(self, limit: Amounts) -> bool:
        """Whether no amount passes its limit."""
        return self.epsilon <= limit.epsilon and self.rho <= limit.rho and self.delta <= limit.delta

    def room_below(self, limit: Amounts) -> Amounts:
        """Return limit − self, 0 where the limit was passed (a share that its owner made smaller)."""
        return Amounts(
            max(limit.epsilon - self.epsilon, ZERO),
            max(limit.rho - self.rho, ZERO),
            max(limit.delta - self.delta, ZERO),
        )

    def most(self, other: Amounts) -> Amounts:
        """Return the larger of each amount."""
        return Amounts(max(self.epsilon, other.epsilon), max(self.rho, other.rho), max(self.delta, other.delta))

    def least(self, other: Amounts) -> Amounts:
        """Return the smaller of each amount."""
        return Amounts(min(self.epsilon, other.epsilon), min(self.rho, other.rho), min(self.delta, other.delta))

    def record(self) -> dict[str, str]:
        """Return exact rationals as strings."""
        return {"epsilon": str(self.epsilon), "rho": str(self.rho), "delta": str(self.delta)}

    @classmethod
    def from_record(cls, record: Mapping[str, str]) -> Amounts:
        """Read what `record` wrote; anything else is refused."""
        texts = [record.get(name) for name in ("epsilon", "rho", "delta")]
        if len(record) != 3 or not all(type(text) is str and _EXACT.fullmatch(text) for text in texts):
            raise InvalidParameter.must_be("amounts", "an epsilon, a rho and a delta, exact rationals as texts", record)
        return _read(*map(str, texts))

    def digits(self) -> tuple[str, str, str]:
        """Return the amounts in ticks as text of one width, so that comparing texts compares amounts."""
        return _digits(self.epsilon, TICK), _digits(self.rho, TICK), _digits(self.delta, DELTA_TICK)

    @classmethod
    def from_digits(cls, epsilon: str, rho: str, delta: str) -> Amounts:
        """Read what `digits` wrote; ValueError or TypeError where it did not."""
        return cls(int(epsilon) * TICK, int(rho) * TICK, int(delta) * DELTA_TICK)


def _exact(amount: object, name: str, tick: Fraction) -> None:
    """Refuse what is no exact amount: a float, a boolean, a text or a negative one would spend less than it should."""
    if type(amount) is not Fraction or amount.numerator < 0 or tick.denominator % amount.denominator:
        rule = f"a Fraction of at least 0 and a multiple of {tick}"
        raise InvalidParameter.must_be(name, rule, amount, "Amounts.cost rounds what must be charged up to the tick")


@lru_cache(maxsize=4096)
def _read(epsilon: str, rho: str, delta: str) -> Amounts:
    return Amounts(Fraction(epsilon), Fraction(rho), Fraction(delta))


def _digits(amount: Fraction, tick: Fraction) -> str:
    text = f"{amount.numerator * (tick.denominator // amount.denominator):0{DIGITS}d}"
    if len(text) > DIGITS:
        raise InvalidParameter.must_be("amounts", f"of at most {DIGITS} digits in ticks", amount)
    return text


NOTHING: Final = Amounts()


def amounts_text(amounts: Amounts, *, pure: bool, up: bool) -> str:
    """Return "ε = 0.15", or "ρ = 0.0123, δ = 5e-9"."""
    if pure:
        return f"ε = {rounded_text(amounts.epsilon, up=up)}"
    text = f"ρ = {rounded_text(amounts.rho, up=up)}"
    return f"{text}, δ = {rounded_text(amounts.delta, up=up)}" if amounts.delta else text
