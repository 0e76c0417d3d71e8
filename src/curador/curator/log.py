"""The ledger as people and programs read it: all of it for the owner, an analyst's own entries for an analyst.

Nothing in an analyst's log tells how long an engine took, or what was ready before what: what settles a question stands
beside it, with the time at which the question arrived.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.ledger.entry import EntryKind, shown_id
from curador.ledger.ledger import ALL
from curador.text import make_table, rounded_text, verbatim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.ledger.entry import Entry
    from curador.ledger.ledger import Ledger

LONGEST = 60
"""Characters of a question in the printed log."""

_SIGNS = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}


def log_lines(ledger: Ledger, analyst: str | None) -> list[dict[str, Any]]:
    """Return the entries as plain values; None: the owner, who sees all of them."""
    if analyst is None:
        return [_line(entry, owner=True) for entry in ledger.entries(analyst=ALL)]
    asked: dict[str, list[Entry]] = {}
    for entry in ledger.entries(analyst=analyst):
        begun = asked.get(entry.refers or "") if entry.kind.settles else None
        if begun is None:
            asked[entry.id] = [entry]
        else:  # entries of older ledgers have times of their own
            begun.append(replace(entry, time=begun[0].time))
    return [_line(entry, owner=False) for begun in asked.values() for entry in begun]


def _line(entry: Entry, *, owner: bool) -> dict[str, Any]:
    """An entry has the text its own asker wrote, also of an answer that was stored. Counters are the owner's to see.

    The cost stands where it was charged and nowhere else, so that adding it up counts nothing twice.
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
        short = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        cost = ", ".join(costs)
        made.add_row(*map(verbatim, (line["time"], line["kind"], who, str(line["data_version"]), cost, short)))
    return made
