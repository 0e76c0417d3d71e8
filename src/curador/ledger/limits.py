"""The limits of a ledger: fixed when it is created, part of its first entry, never moved.

Is there room? The filter of the limits decides for the study, the share for the asker; a refusal says what would fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, cast

from curador.errors import BudgetExceeded, InvalidParameter, InvalidStudy, NotPrivate, require
from curador.ledger.amounts import DELTA_TICK, ZERO, Amounts, down_to_tick
from curador.ledger.entry import ANOTHER, Request
from curador.privacy.adjacency import Adjacency, as_adjacency
from curador.privacy.filters import ConcentratedFilter, PureFilter
from curador.privacy.loss import Loss, compose
from curador.privacy.losses import loss_from_record
from curador.study.model import PUBLIC, ROW, Budget
from curador.text import rounded_text

LARGEST_EPSILON = 1_000_000  # a public bound, so that a total always fits its column


@dataclass(frozen=True, slots=True)
class Limits:
    """What all questions together may cost, and whom that protects.

    Claim   A ledger whose entries add up to at most `total` is ε-differentially private (pure), or delta_keys-approximately
            rho_limit-zCDP and so (ε, δ)-differentially private (concentrated), for neighbours of `adjacency` that differ in
            one `unit`, over all data versions.
    Needs   They never change. Moving δ between keys and conversion as one goes is not private.
    Rounds  rho_limit, delta_keys and every share down to the tick; epsilon and delta are as declared.
    Source  [RRUV16] pure; [WRRW23] concentrated, [CKS20, Prop. 12] for its conversion
    """

    kind: Literal["pure", "concentrated"]
    epsilon: Fraction
    delta: Fraction
    delta_keys: Fraction
    rho_limit: Fraction
    adjacency: Adjacency
    unit: str
    max_units: int
    owners: tuple[tuple[str, str], ...] = ()
    """(table, who owns its rows): what the unit *is*, not only what it is called."""

    def __post_init__(self) -> None:
        require(0 < self.epsilon <= LARGEST_EPSILON, "budget.epsilon", "above 0 and at most 1,000,000", self.epsilon)
        named = type(self.unit) is str and 0 < len(self.unit) <= 200
        require(named, "unit", "the word for who is protected, at most 200 letters", self.unit)
        require(type(self.max_units) is int and self.max_units >= 1, "max_units", "a whole number above 0", self.max_units)
        hint = "the budget is below the ledger's smallest step"
        require(bool(self.total.epsilon or self.total.rho), "budget.epsilon", "large enough to be spent", self.epsilon, hint)
        self.judge(Amounts())  # proves that rho_limit converts into (ε, δ)

    @classmethod
    def create(
        cls, budget: Budget, *, adjacency: Adjacency, unit: str, max_units: int, owners: tuple[tuple[str, str], ...] = ()
    ) -> Limits:
        """Return the limits of a new ledger.

        Claim   As the class.
        Rounds  rho_limit and delta_keys down to the tick.
        Source  [CKS20, Prop. 12]
        """
        if budget.delta is None or budget.delta_keys is None:
            pure = ("pure", budget.epsilon, ZERO, ZERO, ZERO)
            return cls(*pure, as_adjacency(adjacency), unit, max_units, owners)
        require(budget.epsilon <= LARGEST_EPSILON, "budget.epsilon", "at most 1,000,000", budget.epsilon)
        keys = down_to_tick(budget.delta_keys, DELTA_TICK)
        whole = ConcentratedFilter.create(epsilon=budget.epsilon, delta=budget.delta, delta_keys=keys)
        rho = down_to_tick(whole.rho_limit)
        limits = (budget.epsilon, budget.delta, keys, rho)
        return cls("concentrated", *limits, as_adjacency(adjacency), unit, max_units, owners)

    @property
    def total(self) -> Amounts:
        """The limit of everything. Rounds: down."""
        return self.share(Fraction(1))

    def share(self, share: Fraction) -> Amounts:
        """Return the limit of somebody's share: of ε, or of ρ and of delta_keys.

        Claim   n questions that each cost at most share(s/n) cost together at most share(s).
        Rounds  Down to the tick.
        """
        if self.kind == "pure":
            return Amounts.grant(epsilon=share * self.epsilon)
        return Amounts.grant(rho=share * self.rho_limit, delta=share * self.delta_keys)

    def judge(self, spent: Amounts) -> PureFilter | ConcentratedFilter:
        """Return the filter that decides, after what was spent."""
        if self.kind == "pure":
            limit = down_to_tick(self.epsilon)
            return PureFilter(limit, spent=spent.epsilon, adjacency=self.adjacency)
        return ConcentratedFilter(
            epsilon_limit=self.epsilon,
            delta_limit=self.delta,
            delta_keys=self.delta_keys,
            rho_limit=self.rho_limit,
            spent=(spent.rho, spent.delta),
            adjacency=self.adjacency,
        )

    def require_same(
        self, budget: Budget, *, adjacency: Adjacency, unit: str, owners: tuple[tuple[str, str], ...] = ()
    ) -> None:
        """Refuse a study whose budget, neighbours or unit are not those that the ledger was created with.

        A table that the ledger knows keeps its owner: with another, "one unit" would mean something else in each answer.
        A study may gain tables; those of units that are rows and those of named units do not mix.
        """
        hint = f"limits are fixed when a ledger is created; undo the change, or {ANOTHER}"
        keys = ZERO if budget.delta_keys is None else down_to_tick(budget.delta_keys, DELTA_TICK)
        for name, asked, own in (
            ("budget.epsilon", budget.epsilon, self.epsilon),
            ("budget.delta", budget.delta, self.delta if self.kind == "concentrated" else None),
            ("budget.delta_keys", keys, self.delta_keys),
            ("adjacency", as_adjacency(adjacency), self.adjacency),
            ("unit", unit, self.unit),
        ):
            if asked != own:
                raise InvalidStudy.must_be(name, f"that of the ledger ({own})", asked, hint)
        known = dict(self.owners)
        for table, owner in owners:
            if table in known and known[table] != owner:
                raise InvalidStudy.must_be(f"tables.{table}.unit", f"that of the ledger ({known[table]})", owner, hint)
        private = [[owner for _, owner in some if owner != PUBLIC] for some in (self.owners, owners)]
        if all(private) and (ROW in private[0]) != (ROW in private[1]):
            raise InvalidStudy.must_be("unit", f"of the ledger's kind ({private[0][0]})", private[1][0], hint)

    def record(self) -> dict[str, object]:
        """Return the limits as plain values; rationals as strings."""
        rationals = {name: str(getattr(self, name)) for name in ("epsilon", "delta", "delta_keys", "rho_limit")}
        return {
            "kind": self.kind,
            **rationals,
            "adjacency": str(self.adjacency),
            "unit": self.unit,
            "max_units": self.max_units,
            "owners": [list(owner) for owner in self.owners],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, object]) -> Limits:
        """Read what `record` wrote, and prove it again."""
        kind = record["kind"]
        if kind not in ("pure", "concentrated"):
            raise InvalidParameter.must_be("limits.kind", '"pure" or "concentrated"', kind)
        epsilon, delta, keys, rho = (Fraction(str(record[name])) for name in ("epsilon", "delta", "delta_keys", "rho_limit"))
        unit, units = record["unit"], record["max_units"]
        if type(unit) is not str or type(units) is not int:
            raise InvalidParameter.must_be("limits", "those of a ledger", record)
        require(kind != "pure" or not (delta or keys or rho), "limits", "without delta and rho where they are pure", record)
        owners = tuple((str(table), str(owner)) for table, owner in cast("list[list[object]]", record.get("owners", [])))
        return cls(kind, epsilon, delta, keys, rho, as_adjacency(str(record["adjacency"])), unit, units, owners)


def least_of(limits: Limits, share: Fraction, least_spend: Fraction) -> Amounts:
    """Return what one question or fit of this asker costs at least.

    Claim   ⌊1/least_spend⌋ questions of exactly that much fit into the asker's whole limit.
    Rounds  Down to the tick, as a spend of the same part is.
    """
    whole = limits.share(least_spend * share)
    return Amounts(epsilon=whole.epsilon, rho=whole.rho)


@lru_cache(256)  # of what one question found and what it left: the next one finds the same
def epsilon_of(limits: Limits, spent: Amounts) -> float:
    """Return the ε that amounts convert into, at the δ that is kept for conversion. For display. Rounds: up."""
    judge = limits.judge(spent)
    return judge.epsilon() if isinstance(judge, PureFilter) or spent.rho else 0.0


# ---- is there room? --------------------------------------------------------------------------------------------------------


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


@lru_cache(256)
def _loss_of(text: str) -> Loss:
    return loss_from_record(json.loads(text))


@lru_cache(256)
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
