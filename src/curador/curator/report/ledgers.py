"""What a report says of ledgers: is the chain whole, what was spent and by whom, which ledgers the data set has.

Of entries it takes who was charged how much, and nothing of what was asked or answered.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from curador.curator.budget import amounts_named, main_amount
from curador.curator.dataset import acknowledged_by, ledgers_of_data
from curador.curator.declarations import is_declared_otherwise
from curador.curator.report.declared import amount
from curador.errors import CuradorError
from curador.ledger.entry import EntryKind
from curador.ledger.ledger import Ledger
from curador.ledger.limits import epsilon_of
from curador.ledger.register import KnownLedger
from curador.text import percent_text, rounded_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.ledger.amounts import Amounts
    from curador.ledger.limits import Limits
    from curador.study.model import Study

AGREES: Final = "agrees"


# ---- the chain -------------------------------------------------------------------------------------------------------------


def verification_body(ledger: Ledger) -> dict[str, Any]:
    """Read every entry, sum and stored answer again, ask the witness, and say what was found."""
    chain, witness = AGREES, AGREES
    try:
        ledger.verify(witness=False)
    except CuradorError as problem:
        chain = problem.sentence
    try:
        ledger.ask_witness()
    except CuradorError as problem:
        witness = problem.sentence
    return {"chain": chain, "witness": witness, "whole": (chain, witness) == (AGREES, AGREES)}


def ledger_body(ledger: Ledger, study: Study) -> dict[str, Any]:
    """Return which ledger it is, where its chain ends, and which studies spend from it."""
    last, first = ledger.last, ledger.first
    begun = (first.creation or {}).get("study_name")
    joined = [str(one.details.get("study")) for one in ledger.joined() if one.details and one.details.get("ledger") is None]
    known = ledger.declared(study.name)
    said = known if known is not None else first if begun == study.name else None
    otherwise = said is not None and said.details is not None and is_declared_otherwise(study, said)
    return {
        "id": ledger.id,
        "place": str(ledger.path),
        "server": study.server,
        "made": first.time,
        "entries": last.sequence + 1,
        "head": {"sequence": last.sequence, "hash": last.hash},
        "data_version": last.after.data_version,
        "closed_to_analysts": ledger.closed,
        "studies": list(dict.fromkeys([str(begun), *reversed(joined)])),
        "changes": [{"time": one.time, "note": one.note} for one in reversed(ledger.declarations())],
        "declared_otherwise_now": otherwise,
    }


# ---- what was spent --------------------------------------------------------------------------------------------------------


TRIES: Final = 10


def spent_body(ledger: Ledger, study: Study) -> dict[str, Any]:
    """Return what was spent, in percent of everything first, and by whom.

    Claim   The rows add up to the whole: whoever was ever charged has one, also analysts who are declared no more.
    Needs   Nobody spends while it is read; it is read again where somebody did, a few times.
    Rounds  What was spent, up; what is left, down.
    """
    for _ in range(TRIES):
        before = ledger.head
        found = _spent_now(ledger, study)
        if ledger.head == before:
            break
    return found


def _spent_now(ledger: Ledger, study: Study) -> dict[str, Any]:
    limits, whole = ledger.limits, ledger.spent()
    shares = {analyst.name: analyst.share for analyst in study.analysts}
    charged = {entry.analyst for entry in ledger.entries() if entry.kind is EntryKind.RESERVED and entry.analyst is not None}
    rows = [_row(None, ledger, Fraction(1))]
    rows += [_row(name, ledger, share) for name, share in shares.items()]
    rows += [_row(name, ledger, None) for name in sorted(charged - set(shares))]
    left = whole.room_below(limits.total)
    return {
        "percent": percent_of(whole, limits, up=True),
        "percent_left": percent_of(left, limits, up=False),
        "percent_for_unlisted_groups": (
            None if limits.kind == "pure" else percent_text(whole.delta, limits.total.delta, up=True)
        ),
        "amounts": amounts_named(whole, pure=limits.kind == "pure"),
        "limit": amounts_named(limits.total, pure=limits.kind == "pure"),
        "left": amounts_named(left, pure=limits.kind == "pure"),
        "epsilon_so_far": rounded_text(Fraction(epsilon_of(limits, whole)), up=True),
        "by": rows,
    }


def _row(name: str | None, ledger: Ledger, share: Fraction | None) -> dict[str, Any]:
    limits, spent = ledger.limits, ledger.spent(name)
    pure = limits.kind == "pure"
    own = None if share is None or name is None else main_amount(limits.share(share), pure=pure)
    return {
        "who": "owner" if name is None else "analyst",
        "name": name,
        "declared": name is None or share is not None,
        "percent": percent_of(spent, limits, up=True),
        "percent_of_share": None if own is None else percent_text(main_amount(spent, pure=pure), own, up=True),
        "amounts": amounts_named(spent, pure=pure),
    }


def percent_of(spent: Amounts, limits: Limits, *, up: bool) -> str:
    """Return the part of everything, in per cent. Rounds: as said."""
    pure = limits.kind == "pure"
    return percent_text(main_amount(spent, pure=pure), main_amount(limits.total, pure=pure), up=up)


# ---- other ledgers of the same rows ----------------------------------------------------------------------------------------


def others_body(study: Study, own: Ledger | None) -> dict[str, Any] | None:
    """Return every other ledger that is known to be about rows of the study, and what all promise together.

    None where the sources are not there, so that nobody can tell. No contents are read and nothing is made.
    """
    try:
        known = [one for one in ledgers_of_data(study) if own is None or one.id != own.id]
    except (CuradorError, OSError):
        return None
    rows = [_other(one, own) for one in known]
    return {"ledgers": rows, "together": _together(rows, known, own)}


def _other(one: KnownLedger, own: Ledger | None) -> dict[str, Any]:
    acknowledged = own is not None and one.id in acknowledged_by(own)
    row: dict[str, Any] = {
        "id": one.id,
        "place": str(one.path),
        "study": one.study,
        "reason_was_given": acknowledged,
        "epsilon": None,
        "delta": None,
        "percent": None,
        "same_neighbours": None,
    }
    try:
        if not one.path.is_file():
            return row
        with Ledger.reach(one.path) as ledger:
            if ledger.id != one.id:
                return row
            limits = ledger.limits
            same = own is not None and (limits.adjacency, limits.unit) == (own.limits.adjacency, own.limits.unit)
            return {
                **row,
                "epsilon": amount(limits.epsilon, up=True),
                "delta": amount(limits.delta, up=True),
                "percent": percent_of(ledger.spent(), limits, up=True),
                "same_neighbours": same,
            }
    except (CuradorError, OSError):
        return row


def _together(rows: Sequence[dict[str, Any]], known: Sequence[KnownLedger], own: Ledger | None) -> dict[str, Any] | None:
    """Return what all ledgers promise together to somebody who is in the rows of all of them.

    Claim   ε and δ of all add up.
    Needs   The same unit of the same rows and the same neighbours in each; else None: they cannot be added.
    Rounds  Exact; decimals up.
    Source  [DMNS06], basic composition
    """
    addable = all(one["same_neighbours"] for one in rows) and all(
        there == here for ledger in known for there, here in ledger.owners
    )
    if own is None or not rows or not addable:
        return None
    epsilon = own.limits.epsilon + sum((Fraction(one["epsilon"]["exact"]) for one in rows), Fraction(0))
    delta = own.limits.delta + sum((Fraction(one["delta"]["exact"]) for one in rows), Fraction(0))
    return {"epsilon": amount(epsilon, up=True), "delta": amount(delta, up=True)}
