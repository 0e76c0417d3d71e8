"""Does the ledger say what it said when it was written? Every entry is read again, and every sum added again.

The chain shows that no entry was changed, left out, added or moved, as far as its head is known: whoever can write to the
file can write a whole new chain, which only the witness (`witness.py`) or a receipt shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple, Protocol

from curador.errors import CuradorError
from curador.ledger.amounts import NOTHING, Amounts
from curador.ledger.entry import BEFORE_ALL, STUDY, ChainRow, Entry, EntryKind, State, entry_of, holder_of, refuse_entry
from curador.ledger.limits import Limits
from curador.ledger.witness import Head

DETAILED: Final = frozenset({EntryKind.DECLARED, EntryKind.JOINED})
"""Kinds that say nothing without their details."""


class Content(NamedTuple):
    """What the stored bytes of a committed entry must be."""

    question_key: str | None
    data_version: int
    digest: str | None


class Earlier(Protocol):
    """Entries before a checkpoint, looked up one at a time."""

    def at(self, sequence: int) -> Entry | None:
        """Return one entry."""
        ...

    def named(self, id_: str) -> Entry | None:
        """Return the entry of an id."""
        ...


@dataclass(slots=True)
class ChainReplay:
    """Everything that the entries read so far add up to.

    waiting   open reservations before a checkpoint, with their hashes; `earlier` finds them
    """

    limits: Limits | None = None
    ledger: str = ""
    first: str = ""
    schema: str = ""
    count: int = 0
    hash: str = BEFORE_ALL
    state: State = field(default_factory=lambda: State(NOTHING, 1, 0))
    totals: dict[str, Amounts] = field(default_factory=lambda: {STUDY: NOTHING})
    reserved: dict[str, Entry] = field(default_factory=dict[str, Entry])
    contents: dict[int, Content] = field(default_factory=dict[int, Content])
    committed: set[str] = field(default_factory=set[str])
    waiting: dict[str, Head] = field(default_factory=dict[str, Head])
    earlier: Earlier | None = None

    def read(self, rows: Iterable[ChainRow]) -> None:
        """Read the entries in order; the first that breaks a rule is named."""
        for row in rows:
            if row.sequence != self.count:
                refuse_entry(self.count, "must follow the one before it")
            entry = entry_of(row)
            if entry.previous != self.hash:
                refuse_entry(row.sequence, "must hold the hash of the one before it")
            self._add(entry)
            self.count, self.hash, self.state = self.count + 1, entry.hash, entry.after
        if self.limits is None:
            refuse_entry(0, "must be there")

    def _add(self, entry: Entry) -> None:
        first = entry.sequence == 0
        if first is not (entry.kind is EntryKind.CREATED):
            refuse_entry(entry.sequence, "must be the first, if it creates the ledger")
        if first:
            self._create(entry)
        elif entry.ledger != self.ledger:
            refuse_entry(entry.sequence, "must be of this ledger")
        if entry.after != self._after(entry):
            refuse_entry(entry.sequence, "must add up")

    def _create(self, entry: Entry) -> None:
        try:
            creation = entry.creation or {}
            self.limits = Limits.from_record(creation["limits"])
            self.ledger, self.first, self.schema = entry.ledger, entry.hash, str(creation["schema"])
        except (KeyError, TypeError, ValueError, ZeroDivisionError, CuradorError):
            refuse_entry(0, "must state limits that keep the budget")

    def _after(self, entry: Entry) -> State:
        """Return the state that the entry must leave behind."""
        spent, version, failures = self.state.spent, self.state.data_version, self.state.failures
        if entry.kind.settles:
            spent = self._settle(entry)
            failures += entry.kind is EntryKind.FAILED
        elif entry.kind is EntryKind.RESERVED:
            spent = self._reserve(entry)
        elif entry.amounts:
            refuse_entry(entry.sequence, "must cost nothing")
        elif entry.kind is EntryKind.SERVED and not self._committed(entry.refers or ""):
            refuse_entry(entry.sequence, "must serve an answer of this ledger")
        elif entry.kind is EntryKind.SURVEYED and not self._surveys(entry):
            refuse_entry(entry.sequence, "must refer to the commit that paid for its survey")
        elif entry.kind in DETAILED and entry.details is None:
            refuse_entry(entry.sequence, "must say what changed")
        if entry.kind is EntryKind.REFRESHED:
            version += 1
        elif entry.kind is EntryKind.REOPENED:
            failures = 0
        return State(spent, version, failures)

    def _reserve(self, entry: Entry) -> Amounts:
        limits, holder = self.limits, holder_of(entry.analyst)
        spent = self.state.spent + entry.amounts
        own = self.totals.get(holder, NOTHING) + entry.amounts
        share = Fraction(1) if entry.share is None else entry.share
        if limits is None or not spent.within(limits.total) or not own.within(limits.share(share)):
            refuse_entry(entry.sequence, "must fit into the limits")
        if entry.data_version != self.state.data_version:
            refuse_entry(entry.sequence, "must be about the data version of its time")
        self.totals[STUDY], self.totals[holder] = spent, own
        self.reserved[entry.id] = entry
        return spent

    def _committed(self, id_: str) -> bool:
        """Whether an answer was stored under this id, among what was read or before it."""
        if id_ in self.committed or self.earlier is None:
            return id_ in self.committed
        found = self.earlier.named(id_)
        return found is not None and found.kind is EntryKind.COMMITTED and found.sequence < self.count

    def _surveys(self, entry: Entry) -> bool:
        """Whether the owner lets hold what a commit of this ledger found."""
        paid = entry.survey is not None and entry.survey.get("commit") == entry.refers
        return paid and entry.analyst is None and self._committed(entry.refers or "")

    def _reserved(self, id_: str) -> Entry | None:
        """Return an open reservation, among what was read or before it, and close it."""
        found, head = self.reserved.pop(id_, None), self.waiting.pop(id_, None)
        if found is not None or head is None or self.earlier is None:
            return found
        before = self.earlier.at(head.sequence)
        return before if before is not None and (before.id, before.hash) == (id_, head.hash) else None

    def _settle(self, entry: Entry) -> Amounts:
        own = self._reserved(entry.refers or "")
        same = own is not None and (own.amounts, own.analyst, own.data_version, own.question_key) == (
            (entry.amounts, entry.analyst, entry.data_version, entry.question_key)
        )
        if not same:
            refuse_entry(entry.sequence, "must settle an open reservation")
        if entry.kind is EntryKind.COMMITTED:
            self.committed.add(entry.id)
            self.contents[entry.sequence] = Content(entry.question_key, entry.data_version, entry.content_digest)
        if entry.kind is not EntryKind.VOIDED:
            return self.state.spent
        holder = holder_of(entry.analyst)
        self.totals[holder] -= entry.amounts
        self.totals[STUDY] -= entry.amounts
        return self.totals[STUDY]
