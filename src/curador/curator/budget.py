"""What may be spent, what was, and what is left, for the study and for each who asks; and the ledger as a log.

All of the log is for the owner, an analyst's own entries are for the analyst. Nothing in an analyst's log tells how long an
engine took, or what was ready before what: what settles a question stands beside it, with the time at which the question
arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.ledger.amounts import Amounts, amounts_text
from curador.ledger.entry import EntryKind, shown_id
from curador.ledger.ledger import ALL
from curador.ledger.limits import epsilon_of
from curador.text import make_table, percent_text, plain_text, rounded_text, verbatim, with_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.ledger.entry import Entry
    from curador.ledger.ledger import Ledger
    from curador.study.model import Study


@dataclass(frozen=True, slots=True)
class Account:
    """One holder's limit, what was spent of it, and what may still be: of the share, and of the study."""

    name: str
    share: Fraction
    limit: Amounts
    spent: Amounts
    left: Amounts


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A moment of the budget. Amounts are exact; ε is a conversion for display and decides nothing.

    limit, spent, left   of the one who looks: of the study for the owner, of the share for an analyst
    epsilon_spent        the ε, at the study's δ, that everything released so far converts into; epsilon_limit is the promise
    accounts             the owner and every analyst; empty for an analyst, who sees nobody else's
    """

    pure: bool
    epsilon_limit: Fraction
    delta_limit: Fraction
    epsilon_spent: float
    limit: Amounts
    spent: Amounts
    left: Amounts
    analyst: str | None = None
    accounts: tuple[Account, ...] = ()
    data_version: int = 1
    closed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; exact rationals as strings."""
        body: dict[str, Any] = {
            "kind": "pure" if self.pure else "concentrated",
            "analyst": self.analyst,
            "guarantee": {"epsilon": str(self.epsilon_limit), "delta": str(self.delta_limit)},
            "epsilon_spent": self.epsilon_spent,
            "limit": self._named(self.limit),
            "spent": self._named(self.spent),
            "left": self._named(self.left),
            "data_version": self.data_version,
            "closed": self.closed,
        }
        if self.analyst is None:
            body["by_analyst"] = [
                {
                    "name": account.name,
                    "share": str(account.share),
                    "limit": self._named(account.limit),
                    "spent": self._named(account.spent),
                    "left": self._named(account.left),
                }
                for account in self.accounts
            ]
        return body

    def _named(self, amounts: Amounts) -> dict[str, str]:
        names = ("epsilon",) if self.pure else ("rho", "delta")
        return {name: value for name, value in amounts.record().items() if name in names}

    def by_analyst(self) -> Any:
        """Return a table of the owner and every analyst."""
        made = make_table("who", "share", "spent", "of the share", "left")
        for account in self.accounts:
            spent, whole = _main(account.spent, self.pure), _main(account.limit, self.pure)
            shares = [
                percent_text(account.share, Fraction(1), up=False),
                amounts_text(account.spent, pure=self.pure, up=True),
            ]
            left = amounts_text(account.left, pure=self.pure, up=False)
            made.add_row(verbatim(account.name), *shares, percent_text(spent, whole, up=True), left)
        return made

    def __rich__(self) -> Any:
        made = make_table("", "ε" if self.pure else "ρ, δ of private keys", "")
        whole = _main(self.limit, self.pure)
        for name, amounts, up in (("limit", self.limit, False), ("spent", self.spent, True), ("left", self.left, False)):
            part = "" if name == "limit" else percent_text(_main(amounts, self.pure), whole, up=up)
            made.add_row(name, amounts_text(amounts, pure=self.pure, up=up), part)
        return with_lines(made, [self._sentence()])

    def _sentence(self) -> str:
        delta = "" if self.pure else f", δ = {rounded_text(self.delta_limit, up=True)}"
        guarantee = f"guarantee of the study: ε = {rounded_text(self.epsilon_limit, up=True)}{delta}, for ever"
        so_far = f"; spent so far, for information: ε = {self.epsilon_spent:.4g}{delta}"
        return f"{guarantee}{so_far}{'; closed to analysts' if self.closed else ''}"

    def __str__(self) -> str:
        parts = [self] if len(self.accounts) < 2 else [self, "", self.by_analyst()]
        return plain_text(*parts)


def budget_view(ledger: Ledger, study: Study, analyst: str | None) -> BudgetView:
    """Return the budget as the owner (None) or one analyst may see it."""
    limits, spent = ledger.limits, ledger.spent()
    share = _share(study, analyst)
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
        spent=spent if analyst is None else ledger.spent(analyst),
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


def _main(amounts: Amounts, pure: bool) -> Fraction:  # noqa: FBT001 -- one of two amounts
    return amounts.epsilon if pure else amounts.rho


# ---- the log


LONGEST = 60
"""Characters of a question in the printed log."""
LONGEST_NOTE = 400
"""Characters of what changed, which a log is read for."""
_TOLD_WHOLE = frozenset({EntryKind.DECLARED.value, EntryKind.JOINED.value})

_SIGNS = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}


def log_lines(ledger: Ledger, analyst: str | None) -> list[dict[str, Any]]:
    """Return the entries as plain values; None: the owner, who sees all of them."""
    given = ledger.given_again()
    if analyst is None:
        return [_line(entry, owner=True, times=given.get(entry.id, 1)) for entry in ledger.entries(analyst=ALL)]
    asked: dict[str, list[Entry]] = {}
    for entry in ledger.entries(analyst=analyst):
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


def log_table(lines: Sequence[dict[str, Any]]) -> Any:
    """Return the log as a table."""
    made = make_table("time", "entry", "who", "data version", "cost", "question or note", left=3)
    made.columns[-1].justify = "left"
    for line in lines:
        costs = [f"{_SIGNS[name]} {rounded_text(Fraction(value), up=True)}" for name, value in line["cost"].items()]
        who = line["analyst"] or "owner"
        text = " ".join(str(line["note"] or line["question"] or "").split())
        kind = line["kind"] if line.get("times", 1) == 1 else f"{line['kind']} {line['times']:,} times"
        most = LONGEST if line["kind"] not in _TOLD_WHOLE else LONGEST_NOTE
        short = text if len(text) <= most else text[: most - 1] + "…"
        cost = ", ".join(costs)
        made.add_row(*map(verbatim, (line["time"], kind, who, str(line["data_version"]), cost, short)))
    return made
