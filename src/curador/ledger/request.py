"""What the curator asks of the ledger, and what it gets back.

Is there room? The filter of the limits decides for the study, the share for the asker; a refusal says what would fit.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from curador.errors import BudgetExceeded, InvalidParameter, NotPrivate, require
from curador.ledger.amounts import Amounts
from curador.ledger.entry import Entry, EntryKind, now
from curador.ledger.limits import Limits
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import Loss, compose
from curador.privacy.losses import loss_from_record
from curador.text.numbers import rounded_text

# ---- request ---------------------------------------------------------------------------------------------------------------


_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question's charge, before any data is read.

    analyst       None: the owner
    share         the analyst's share of the limits; 1 for the owner
    losses        the records (`Loss.to_record`) of everything that will be released; `amounts` cover them
    question_key  SHA-256 in hex of what makes two questions identical
    tables        the tables that the plan reads
    asked         when the question arrived: before it waited for another, whose duration a later time would tell
    """

    amounts: Amounts
    losses: tuple[Mapping[str, Any], ...]
    study_digest: str
    data_version: int
    question_key: str
    question: str
    plan_digest: str
    adjacency: Adjacency
    tables: tuple[str, ...]
    analyst: str | None = None
    share: Fraction = Fraction(1)
    asked: str = field(default_factory=now, compare=False)

    def __post_init__(self) -> None:
        require(type(self.amounts) is Amounts, "amounts", "the Amounts of a question", self.amounts)
        require(self.analyst is None or is_label(self.analyst), "analyst", "a name of at most 200 letters", self.analyst)
        share = type(self.share) is Fraction and 0 < self.share <= 1
        require(share, "share", "a Fraction above 0 and at most 1", self.share)
        require(self.analyst is not None or self.share == 1, "share", "1 for the owner", self.share)
        require(type(self.losses) is tuple, "losses", "a tuple of loss records", self.losses)
        require(is_label(self.study_digest), "study_digest", "a digest", self.study_digest)
        require(is_label(self.plan_digest), "plan_digest", "a digest", self.plan_digest)
        require(is_sha256(self.question_key), "question_key", "SHA-256 in hex", self.question_key)
        require(type(self.question) is str, "question", "a text", self.question)
        require(type(self.data_version) is int and self.data_version >= 1, "data_version", "at least 1", self.data_version)
        require(type(self.adjacency) is Adjacency, "adjacency", "an Adjacency", self.adjacency)
        names = type(self.tables) is tuple and all(type(name) is str for name in self.tables)
        require(names, "tables", "a tuple of names", self.tables)
        require(is_label(self.asked), "asked", "a time as text", self.asked)

    # what a filter asks of whatever it charges

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What the ledger did with a question or a fit: the entry that reserved it, or that gave it again for nothing.

    It is on disk. What follows a reservation may fail, be killed or be forgotten: it counts as spent. Nothing in it was known
    after data were read.

    limit, before, after   of the asker: the share's for an analyst, the study's for the owner
    """

    entry: Entry
    limit: Amounts
    before: Amounts
    after: Amounts

    @property
    def id(self) -> str:
        """The random id by which the ledger knows it."""
        return self.entry.id

    @property
    def served(self) -> bool:
        """Whether it had been released before."""
        return self.entry.kind is EntryKind.SERVED

    @property
    def cost(self) -> Amounts:
        """What it cost; nothing if it had been released before."""
        return self.entry.amounts

    @property
    def study(self) -> tuple[Amounts, Amounts]:
        """What all askers together had spent before and after."""
        after = self.entry.after.spent
        return after - self.cost, after


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer that was released before: the entry that committed it, and its bytes."""

    entry: Entry
    answer: bytes

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that its plan read."""
        return self.entry.tables


def admit(request: Request, limits: Limits) -> None:
    """Refuse a request that no ledger of these limits can charge, whatever is left.

    Claim   What passes is about the ledger's neighbours, and its amounts are at least what its loss records cost.
    Rounds  Exact; a record's own cost is rounded up.
    """
    hint = "an add_or_remove_one loss becomes one for replace_one by .group(2)"
    one = request.adjacency is limits.adjacency
    require(one, "adjacency", f"that of the ledger ({limits.adjacency})", request.adjacency, hint)
    amounts = replace(request.amounts)  # checked once more: a frozen value can be forged
    if limits.kind == "pure":
        if amounts.delta:
            raise NotPrivate.must_be("amounts.delta", "0 under a pure budget", amounts.delta)
        require(not amounts.rho, "amounts.rho", "0 under a pure budget", amounts.rho)
    else:
        require(not amounts.epsilon, "amounts.epsilon", "0 under an (epsilon, delta) budget", amounts.epsilon)
    require(bool(amounts), "amounts", "above 0", "0")
    least = least_cost(request.losses, limits)
    require(
        least.within(amounts), "amounts", f"at least what the losses cost ({_list_amounts(least)})", _list_amounts(amounts)
    )


def least_cost(losses: tuple[Mapping[str, Any], ...], limits: Limits) -> Amounts:
    """Return what must at least be charged for these loss records. Rounds: up."""
    require(len(losses) > 0, "losses", "at least one loss record", "none")
    try:
        text = json.dumps(losses, allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidParameter.must_be("losses", "records of plain values", losses) from None
    return _least_cost(text, limits.adjacency, pure=limits.kind == "pure")


@functools.lru_cache(256)
def _loss_of(text: str) -> Loss:
    return loss_from_record(json.loads(text))


@functools.lru_cache(256)
def _least_cost(text: str, adjacency: Adjacency, *, pure: bool) -> Amounts:
    """What the records of this text cost: of what will be stored, as whoever reads the ledger finds it."""
    loss = compose([_loss_of(json.dumps(record)) for record in json.loads(text)])
    own = loss.adjacency
    require(own is None or own is adjacency, "losses", f"about the ledger's neighbours ({adjacency})", own)
    if pure:
        epsilon = loss.pure_epsilon
        if epsilon is None:
            raise NotPrivate(
                "the losses have no known epsilon of pure privacy.", hint="a pure budget pays for Laplace noise."
            )
        return Amounts.cost(epsilon=epsilon)
    pair = loss.concentrated
    if pair is None:
        raise NotPrivate("the losses have no known bound of zero-concentrated differential privacy.")
    return Amounts.cost(rho=pair[0], delta=pair[1])


def _list_amounts(amounts: Amounts) -> str:
    return ", ".join(f"{name} {value}" for name, value in amounts.record().items() if value != "0") or "0"


def is_label(value: object) -> bool:
    """Whether the value is a short, printable text: a name, a digest, an id."""
    return type(value) is str and 0 < len(value) <= 200 and value.isprintable()


def is_sha256(value: object) -> bool:
    """Whether the value is SHA-256 in hex."""
    return type(value) is str and _SHA256.fullmatch(value) is not None


def note_text(value: object, name: str) -> str:
    """Return an owner's note, refused unless it says something in at most 1,000 letters."""
    if type(value) is not str or not value.strip() or len(value) > 1000:
        raise InvalidParameter.must_be(name, "a sentence of at most 1,000 letters", value)
    return value


# ---- room ------------------------------------------------------------------------------------------------------------------


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
        raise _no_room(asked, own.room_below(limit), limit, "your share", own.room_below(limit), limit)
    if not limits.judge(total).fits(request):
        whole = limits.total
        room = total.room_below(whole)
        raise _no_room(asked, room, whole, "the study's budget", room.least(own.room_below(limit)), limit)


def _no_room(asked: Amounts, left: Amounts, limit: Amounts, whose: str, fits: Amounts, share: Amounts) -> BudgetExceeded:
    """Return the refusal: the first amount that does not fit, what is left of it, and what share would still fit."""
    for name in ("epsilon", "rho", "delta"):
        wanted, room, bound = (getattr(amounts, name) for amounts in (asked, left, limit))
        if wanted > room:
            rule = f"must be at most {_short(room, up=False)}, what is left of {whose} ({_short(bound, up=False)})"
            hint = f"{_hint(name, asked, fits, share)}."
            return BudgetExceeded(subject=name, rule=rule, got=_short(wanted, up=True), hint=hint)
    return BudgetExceeded("the charge must fit into what is left of the budget.")


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


def _short(amount: Fraction, *, up: bool) -> str:
    """Return six digits, rounded so that the sentence stays true."""
    return rounded_text(amount, up=up, digits=6)
