"""What may be done to a ledger, one act at a time, on a page that somebody opened (`writer.py`).

Every act has an id, chosen by whoever wants it before it is handed over: the id of the entry that it writes. An act that is
tried again, since nobody knows what became of it, finds that entry and does nothing else. So a request that was handed over
has one outcome, whoever is killed in between, and its asker finds it by the id.

Claim   `perform` writes what the act says and nothing else, or raises and has to be undone; performed twice, with `again`,
        it is as if it had been performed once.
"""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from curador.errors import InvalidParameter, NotAllowed, require
from curador.ledger import entry as entries
from curador.ledger.entry import (
    STUDY,
    AlreadyReserved,
    Entry,
    EntryKind,
    Request,
    Spent,
    State,
    holder_of,
    is_label,
    next_entry,
    recent_entry,
    refuse_entry,
    row_of,
    seal,
)
from curador.ledger.limits import refuse_what_does_not_fit

if TYPE_CHECKING:
    from curador.ledger.amounts import Amounts
    from curador.ledger.limits import Limits
    from curador.ledger.store import Page

CLOSED_AFTER: Final = 3
"""Engine failures after which analysts are refused until the owner reopens the study."""
SETTLEMENTS: Final = (EntryKind.COMMITTED, EntryKind.FAILED, EntryKind.VOIDED)
CHARGED: Final = "the charge is kept and nothing was released"

Outcome = TypeVar("Outcome")


def _fresh_id() -> str:
    """Return a new id, by whatever makes them now."""
    return entries.new_id()


class Act(abc.ABC, Generic[Outcome]):
    """A change of the ledger.

    id          of the entry that it writes
    settles     whether it ends something that was begun: such acts go before all others
    charged     what is said of a charge that stands already if the act cannot be done
    new_tables  whether tables of an older file have no place for what it writes
    """

    __slots__ = ()

    @property
    @abc.abstractmethod
    def id(self) -> str: ...

    @property
    def settles(self) -> bool:
        """Whether it goes before all others."""
        return False

    @property
    def charged(self) -> str | None:
        """Nothing was charged yet, for most."""
        return None

    @property
    def new_tables(self) -> bool:
        """Most entries have a place in every file."""
        return False

    @abc.abstractmethod
    def perform(self, page: Page, head: Entry, limits: Limits, *, again: bool) -> Outcome:
        """Do it, after the last entry of the page; with `again`, only if it was not done before."""
        ...


def admits(head: Entry, analyst: str | None, version: int) -> None:
    """Refuse an analyst while the study is closed, and a question about data that are no longer current."""
    if analyst is not None and head.after.failures >= CLOSED_AFTER:
        hint = "the owner looks into the failures and reopens the study"
        told = f"the study must be open to analysts; it closed after {CLOSED_AFTER} engine failures"
        raise NotAllowed(f"{told}.", hint=f"{hint}.")
    current, hint = head.after.data_version, "the owner declared a new data version; open the study again"
    require(version == current, "data_version", f"the current one ({current})", version, hint)


@dataclass(frozen=True, slots=True)
class Reserve(Act[Spent]):
    """Charge a question before any data is read; see `Ledger.reserve`."""

    request: Request
    once: bool = False
    dead: tuple[str, ...] = ()
    id: str = field(default_factory=_fresh_id)

    def __post_init__(self) -> None:
        require(is_label(self.id), "id", "a text of at most 200 letters", self.id)

    def perform(self, page: Page, head: Entry, limits: Limits, *, again: bool) -> Spent:
        """Judge, and write the charge and the running sums."""
        request, limit = self.request, limits.share(self.request.share)
        if (found := page.named(self.id)) is not None:
            if not again:  # an id that somebody else hands over at the same time: theirs to compute
                raise AlreadyReserved(found)
            _require_same(found, request)
            return _spent_before(page, found, limit)
        admits(head, request.analyst, request.data_version)
        other = page.standing(request.question_key, request.data_version) if self.once else None
        while other is not None:  # a later one that is dead hides none before it
            if other.id not in self.dead or page.settled(other.id) is not None:  # it came to life again
                raise AlreadyReserved(other)
            other = page.standing(request.question_key, request.data_version, end=other.sequence)
        holder = holder_of(request.analyst)
        total, own = page.total(STUDY), page.total(holder)
        if total != head.after.spent:
            refuse_entry(head.sequence, "must agree with the running total")
        refuse_what_does_not_fit(limits, request, total=total, own=own, limit=limit)
        entry = append(
            page,
            replace(
                next_entry(head, EntryKind.RESERVED),
                id=self.id,
                time=request.asked,
                after=replace(head.after, spent=total + request.amounts),
                study_digest=request.study_digest,
                analyst=request.analyst,
                share=request.share,
                amounts=request.amounts,
                losses=request.losses,
                question_key=request.question_key,
                question=request.question,
                plan_digest=request.plan_digest,
                tables=request.tables,
            ),
        )
        page.put_total(STUDY, entry.after.spent, limits.total)
        page.put_total(holder, own + request.amounts, limit)
        before = total if request.analyst is None else own
        return Spent(entry=entry, limit=limit, before=before, after=before + request.amounts)


def _require_same(found: Entry, request: Request) -> None:
    """Refuse an id that another request was handed over with: its outcome is no answer to this one."""
    known = (found.kind, found.analyst, found.question_key, found.data_version, found.amounts)
    if known != (EntryKind.RESERVED, request.analyst, request.question_key, request.data_version, request.amounts):
        hint = "give a new request an id of its own"
        raise InvalidParameter.must_be("id", "that of the request it was first given with", found.shown, hint)


def _spent_before(page: Page, entry: Entry, limit: Amounts) -> Spent:
    """What a reservation that was written before did; what others did since counts as before it."""
    after = entry.after.spent if entry.analyst is None else page.total(holder_of(entry.analyst))
    return Spent(entry=entry, limit=limit, before=after - entry.amounts, after=after)


@dataclass(frozen=True, slots=True)
class Settle(Act[Entry]):
    """End a reservation: with its answer, with a failure, or by giving its charge back.

    What every later reading would refuse is refused here: another process may hand over anything, and it would shut all out.
    """

    kind: EntryKind
    own: Entry
    answer: bytes | None = None
    answer_digest: str | None = None
    content_digest: str | None = None
    note: str | None = None
    id: str = field(default_factory=_fresh_id)

    def __post_init__(self) -> None:
        require(is_label(self.id), "id", "a text of at most 200 letters", self.id)
        require(self.kind in SETTLEMENTS, "kind", "how a reservation ends", self.kind.value)
        parts = self.answer, self.content_digest, self.answer_digest
        if self.answer is None or self.kind is not EntryKind.COMMITTED:
            whole = parts == (None, None, None) and self.kind is not EntryKind.COMMITTED
        else:
            whole = self.content_digest == hashlib.sha256(self.answer).hexdigest() and is_label(self.answer_digest)
        require(whole, "answer", "there, with its digests, where a question was answered, and nowhere else", self.kind.value)

    @property
    def settles(self) -> bool:
        """It goes before all others."""
        return True

    @property
    def charged(self) -> str | None:
        """Its charge stands."""
        return CHARGED

    def perform(self, page: Page, head: Entry, limits: Limits, *, again: bool) -> Entry:  # noqa: ARG002 -- idem for all
        """Write the end, and the answer in the same stroke."""
        own = self.own
        if again and (before := page.named(self.id)) is not None:
            return before
        found = page.at(own.sequence)
        if found != own or own.kind is not EntryKind.RESERVED or page.settled(own.id) is not None:
            raise InvalidParameter.must_be("reservation", "an open one of this ledger", own.id)
        spent, failures = head.after.spent, head.after.failures + (self.kind is EntryKind.FAILED)
        if self.kind is EntryKind.VOIDED:
            spent -= own.amounts
            holder = holder_of(own.analyst)
            page.give_back(STUDY, spent)
            page.give_back(holder, page.total(holder) - own.amounts)
        entry = append(
            page,
            replace(
                own,
                sequence=head.sequence + 1,
                previous=head.hash,
                kind=self.kind,
                id=self.id,
                after=State(spent, head.after.data_version, failures),
                refers=own.id,
                answer_digest=self.answer_digest,
                content_digest=self.content_digest,
                note=self.note,
            ),
        )
        if self.answer is not None:
            page.keep(entry, self.answer)
        return entry


@dataclass(frozen=True, slots=True)
class Serve(Act["Entry | None"]):
    """Count that a stored answer was given again: one line for a question, an asker and a day, with a number.

    Needs   It is never tried again: that it was counted nobody could see, and twice is once too often.
    """

    own: Entry
    analyst: str | None
    asked: str
    question: str | None
    answer_digest: str | None
    number: int = 1
    id: str = field(default_factory=_fresh_id)

    @property
    def line(self) -> tuple[str, str, str]:
        """The commit, the asker and the day: those of one line."""
        return self.own.id, holder_of(self.analyst), self.asked[:10]

    def perform(self, page: Page, head: Entry, limits: Limits, *, again: bool) -> Entry | None:  # noqa: ARG002 -- idem
        """Count it in the line that is there, or begin one."""
        own = self.own
        found = page.line(*self.line)
        if found is not None:
            page.count_line(found, self.number)
            return None
        if page.at(own.sequence) != own or own.kind is not EntryKind.COMMITTED:
            raise InvalidParameter.must_be("stored", "an answer of this ledger", own.id)
        entry = append(
            page,
            replace(
                next_entry(head, EntryKind.SERVED),
                id=self.id,
                time=self.asked,
                study_digest=own.study_digest,
                data_version=own.data_version,
                analyst=self.analyst,
                question_key=own.question_key,
                question=own.question if self.question is None else self.question,
                plan_digest=own.plan_digest,
                tables=own.tables,
                answer_digest=self.answer_digest,
                content_digest=own.content_digest,
                refers=own.id,
            ),
        )
        page.add_line(self.id, *self.line, self.number)
        return entry


@dataclass(frozen=True, slots=True)
class Change(Act["Entry | None"]):
    """Something that the owner does: what follows the last entry is a function of the page; None where nothing does.

    late   whether its kind is one that tables of an older file refuse
    """

    follow: Callable[[Page, Entry], Entry | None]
    late: bool = False
    id: str = field(default_factory=_fresh_id)

    @property
    def new_tables(self) -> bool:
        """Whether tables of an older file refuse its kind."""
        return self.late

    def perform(self, page: Page, head: Entry, limits: Limits, *, again: bool) -> Entry | None:  # noqa: ARG002 -- idem
        """Write what follows."""
        if again and (before := page.named(self.id)) is not None:
            return before
        made = self.follow(page, head)
        return None if made is None else append(page, replace(made, id=self.id))


@dataclass(frozen=True, slots=True)
class Prepare(Act[str]):
    """Say what the prepared copy of a data version is, where nobody said it; return what stands."""

    study: str
    version: int
    digest: str
    id: str = field(default_factory=_fresh_id)

    @property
    def new_tables(self) -> bool:
        """Its table is a later one."""
        return True

    def perform(self, page: Page, head: Entry, limits: Limits, *, again: bool) -> str:  # noqa: ARG002 -- idem
        """Write it once."""
        found = page.prepared(self.study, self.version)
        if found is None:
            page.add_prepared(self.study, self.version, self.digest)
        return self.digest if found is None else found


def append(page: Page, entry: Entry) -> Entry:
    """Write an entry; return what everybody will read, not what was meant."""
    made, text = seal(entry)
    row = row_of(made, text)
    page.append(row)
    return recent_entry(row)
