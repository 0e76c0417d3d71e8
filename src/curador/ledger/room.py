"""Is there room? The filter of the limits decides for the study, the share for the asker; a refusal says what would fit."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from fractions import Fraction

from curador.errors import BudgetExceeded
from curador.ledger.amounts import Amounts
from curador.ledger.limits import Limits
from curador.ledger.request import Request
from curador.privacy.adjacency import Adjacency

_MOST = decimal.Context(prec=6, rounding=decimal.ROUND_DOWN)
_LEAST = decimal.Context(prec=6, rounding=decimal.ROUND_UP)


@dataclass(frozen=True, slots=True)
class Charge:
    """Amounts in the form that a filter charges."""

    amounts: Amounts
    adjacency: Adjacency

    @property
    def pure_epsilon(self) -> Fraction:
        """ε under a pure budget."""
        return self.amounts.epsilon

    @property
    def concentrated(self) -> tuple[Fraction, Fraction]:
        """(ρ, δ) under an (ε, δ) budget."""
        return self.amounts.rho, self.amounts.delta

    def renyi(self, alpha: object) -> float:  # noqa: ARG002 -- no ledger decides by it
        """No finite divergence is claimed."""
        return float("inf")


def refuse_what_does_not_fit(limits: Limits, request: Request, *, total: Amounts, own: Amounts, limit: Amounts) -> None:
    """Refuse a charge that the study or the asker's share has no room for.

    total, own   spent by everybody, and by the asker
    limit        of the asker's share

    Claim   What passes leaves Σ ≤ the limits of the study, and of the share.
    Rounds  Exact.
    Source  [RRUV16] pure; [WRRW23] concentrated
    """
    asked = request.amounts
    if request.analyst is not None and not (own + asked).within(limit):
        raise BudgetExceeded(_told(asked, own.room_below(limit), limit, "your share", own.room_below(limit), limit))
    if not limits.judge(total).fits(Charge(asked, request.adjacency)):
        whole = limits.total
        room = total.room_below(whole)
        raise BudgetExceeded(_told(asked, room, whole, "the study's budget", room.least(own.room_below(limit)), limit))


def _told(asked: Amounts, left: Amounts, limit: Amounts, whose: str, fits: Amounts, share: Amounts) -> str:
    """Return the sentence: the first amount that does not fit, what is left of it, and what share would still fit."""
    for name in ("epsilon", "rho", "delta"):
        wanted, room, bound = (getattr(amounts, name) for amounts in (asked, left, limit))
        if wanted > room:
            text = f"{name} must be at most {_short(room, _MOST)}, what is left of {whose} ({_short(bound, _MOST)}); "
            return f"{text}got {_short(wanted, _LEAST)}.\nHint: {_hint(name, asked, fits, share)}."
    return "the charge must fit into what is left of the budget."


def _hint(name: str, asked: Amounts, fits: Amounts, share: Amounts) -> str:
    names = [one for one in ("epsilon", "rho", "delta") if getattr(asked, one) and getattr(share, one)]
    ratio = min((Fraction(getattr(fits, one), getattr(share, one)) for one in names), default=Fraction(0))
    percent = Fraction(int(ratio * 10_000), 100)
    if percent:
        text = f'spend="{float(percent):.4g}%" or less would fit'
        return f"{text}; keys with declared values cost no delta" if name == "delta" else text
    if name == "delta":
        return "keys with declared values cost no delta"
    return "too little is left for another question; answers that were given before stay free"


def _short(amount: Fraction, context: decimal.Context) -> str:
    """Return six digits, rounded so that the sentence stays true."""
    value = context.divide(decimal.Decimal(amount.numerator), decimal.Decimal(amount.denominator))
    return f"{value.normalize(context):g}" if value else "0"
