"""What may be spent, what was, and what is left, as it is shown; and the ledger as a table.

Light: `accounts.py` makes a view of a ledger, and a client one of what a service wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from curador.ledger.amounts import Amounts, amounts_text
from curador.ledger.entry import EntryKind
from curador.text import make_table, percent_text, plain_text, rounded_text, verbatim, with_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
    epsilon_spent        the ε, at the study's δ, that everything released so far converts into; to an analyst that of the own
                         share; epsilon_limit is the promise
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

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the budget that `to_dict` wrote."""
        accounts = tuple(
            Account(
                account["name"],
                Fraction(account["share"]),
                *(_whole_amounts(account[name]) for name in ("limit", "spent", "left")),
            )
            for account in plain.get("by_analyst", ())
        )
        return cls(
            pure=plain["kind"] == "pure",
            epsilon_limit=Fraction(plain["guarantee"]["epsilon"]),
            delta_limit=Fraction(plain["guarantee"]["delta"]),
            epsilon_spent=plain["epsilon_spent"],
            limit=_whole_amounts(plain["limit"]),
            spent=_whole_amounts(plain["spent"]),
            left=_whole_amounts(plain["left"]),
            analyst=plain["analyst"],
            accounts=accounts,
            data_version=plain["data_version"],
            closed=plain["closed"],
        )

    def _named(self, amounts: Amounts) -> dict[str, str]:
        return amounts_named(amounts, pure=self.pure)

    def by_analyst(self) -> Any:
        """Return a table of the owner and every analyst."""
        made = make_table("who", "share", "spent", "of the share", "left")
        for account in self.accounts:
            spent, whole = (main_amount(one, pure=self.pure) for one in (account.spent, account.limit))
            shares = [
                percent_text(account.share, Fraction(1), up=False),
                amounts_text(account.spent, pure=self.pure, up=True),
            ]
            left = amounts_text(account.left, pure=self.pure, up=False)
            made.add_row(verbatim(account.name), *shares, percent_text(spent, whole, up=True), left)
        return made

    def __rich__(self) -> Any:
        made = make_table("", "ε" if self.pure else "ρ, δ of private keys", "")
        whole = main_amount(self.limit, pure=self.pure)
        for name, amounts, up in (("limit", self.limit, False), ("spent", self.spent, True), ("left", self.left, False)):
            part = "" if name == "limit" else percent_text(main_amount(amounts, pure=self.pure), whole, up=up)
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


def _whole_amounts(plain: Mapping[str, str]) -> Amounts:
    """Read the amounts that count under the study's kind of budget; the others are 0."""
    return Amounts.from_record(
        {"epsilon": "0", "rho": "0", "delta": "0"} | {name: plain[name] for name in plain if name in _SIGNS}
    )


def amounts_named(amounts: Amounts, *, pure: bool) -> dict[str, str]:
    """Return the amounts that count under a kind of budget, exact, by name."""
    names = ("epsilon",) if pure else ("rho", "delta")
    return {name: value for name, value in amounts.record().items() if name in names}


def main_amount(amounts: Amounts, *, pure: bool) -> Fraction:
    """Return the amount that a percentage of the budget is taken of."""
    return amounts.epsilon if pure else amounts.rho


# ---- the log


LONGEST = 60
"""Characters of a question in the printed log."""
LONGEST_NOTE = 400
"""Characters of what changed, which a log is read for."""
_TOLD_WHOLE = frozenset({EntryKind.DECLARED.value, EntryKind.JOINED.value})

_SIGNS = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}


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
