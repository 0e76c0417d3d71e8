"""What a ledger says of a budget, for the study and for each who asks; and its entries as plain values.

All of the log is for the owner, an analyst's own entries are for the analyst. Nothing in an analyst's log tells how long an
engine took, or what was ready before what: what settles a question stands beside it, with the time at which the question
arrived.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.curator.budget import Account, BudgetView
from curador.ledger.entry import EntryKind, shown_id
from curador.ledger.ledger import ALL
from curador.ledger.limits import epsilon_of

if TYPE_CHECKING:
    from curador.ledger.entry import Entry
    from curador.ledger.ledger import Ledger
    from curador.study.model import Study


def budget_view(ledger: Ledger, study: Study, analyst: str | None) -> BudgetView:
    """Return the budget as the owner (None) or one analyst may see it."""
    limits, share = ledger.limits, _share(study, analyst)
    spent = ledger.spent() if analyst is None else ledger.spent(analyst)  # what others spend is nobody else's to see
    accounts: tuple[Account, ...] = ()
    if analyst is None:
        names = [None, *(one.name for one in study.analysts)]
        accounts = tuple(_account(ledger, name, _share(study, name)) for name in names)
    return BudgetView(
        pure=limits.kind == "pure",
        epsilon_limit=limits.epsilon,
        delta_limit=limits.delta,
        epsilon_spent=epsilon_of(limits, spent),
        limit=limits.share(share),
        spent=spent,
        left=ledger.left(analyst, share),
        analyst=analyst,
        accounts=accounts,
        data_version=ledger.data_version,
        closed=ledger.closed,
    )


def _account(ledger: Ledger, analyst: str | None, share: Fraction) -> Account:
    spent, limit = ledger.spent(analyst), ledger.limits.share(share)
    return Account("owner" if analyst is None else analyst, share, limit, spent, ledger.left(analyst, share))


def _share(study: Study, analyst: str | None) -> Fraction:
    found = None if analyst is None else study.analyst(analyst)
    return Fraction(1) if found is None else found.share


def log_lines(ledger: Ledger, analyst: str | None) -> list[dict[str, Any]]:
    """Return the entries as plain values; None: the owner, who sees all of them."""
    entries = list(ledger.entries(analyst=ALL if analyst is None else analyst))
    given = ledger.given_again()  # after the entries, which write down what was counted and waits
    if analyst is None:
        return [_line(entry, owner=True, times=given.get(entry.id, 1)) for entry in entries]
    asked: dict[str, list[Entry]] = {}
    for entry in entries:
        begun = asked.get(entry.refers or "") if entry.kind.settles else None
        if begun is None:
            asked[entry.id] = [entry]
        else:  # entries of older ledgers have times of their own
            begun.append(replace(entry, time=begun[0].time))
    return [_line(entry, owner=False, times=given.get(entry.id, 1)) for begun in asked.values() for entry in begun]


def _line(entry: Entry, *, owner: bool, times: int) -> dict[str, Any]:
    """An entry has the text its own asker wrote, also of an answer that was stored. Counters are the owner's to see.

    The cost stands where it was charged and nowhere else, so that adding it up counts nothing twice.

    times   how often that day, of an answer that was given again
    """
    charged = entry.kind is EntryKind.RESERVED
    body: dict[str, Any] = {
        "time": entry.time,
        "kind": entry.kind.value,
        "id": entry.shown,
        "analyst": entry.analyst,
        "question": entry.question,
        "cost": {name: value for name, value in entry.amounts.record().items() if charged and Fraction(value)},
        "data_version": entry.data_version,
        "refers": None if entry.refers is None else shown_id(entry.refers),
        "note": entry.note,
        **({"times": times} if entry.kind is EntryKind.SERVED else {}),
    }
    return {**body, "sequence": entry.sequence, "hash": entry.hash} if owner else body
