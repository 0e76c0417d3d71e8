"""One line of the ledger, version 1. A contract: the meaning of a field never changes, an unknown version is refused.

An entry is stored as the text of its canonical JSON; its hash is SHA-256 over that text, which holds the hash of the entry
before it. `after` is the state of the whole study after the entry, so that the last entry alone says what was spent.

created     the limits, and why there is a new ledger where an old one was
reserved    the charge, durable before any data is read
committed   the reservation's answer was stored and may be released; costs nothing more
failed      the engine failed after the reservation; the charge stays
voided      the engine was never started; the charge is given back
served      a stored answer was given again, for nothing
refreshed   the owner declared a new data version
reopened    the owner opened the study again after engine failures
"""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, cast

from curador.canonical import canonical_text
from curador.errors import CuradorError
from curador.ledger.amounts import NOTHING, Amounts

VERSION: Final = 1
BEFORE_ALL: Final = "0" * 64
"""What the first entry holds as the hash of the one before it."""

_FIELDS: Final = (
    *("version", "ledger", "sequence", "previous", "time", "kind", "id", "study", "data_version", "analyst", "share"),
    *("amounts", "losses", "key", "question", "plan", "tables", "answer", "content", "refers", "note", "after", "creation"),
)


class EntryKind(enum.StrEnum):
    """What an entry says happened."""

    CREATED = "created"
    RESERVED = "reserved"
    COMMITTED = "committed"
    FAILED = "failed"
    VOIDED = "voided"
    SERVED = "served"
    REFRESHED = "refreshed"
    REOPENED = "reopened"

    @property
    def settles(self) -> bool:
        """Whether it ends a reservation."""
        return self in {EntryKind.COMMITTED, EntryKind.FAILED, EntryKind.VOIDED}


LATER: Final = ("recalled", "surveyed")
"""Kinds that come with a later version. A file can never let in what its tables refuse, so those made now admit them; whoever
reads version 1 refuses them. See docs/reference/stored-formats.md."""


@dataclass(frozen=True, slots=True)
class State:
    """The whole study after an entry: open reservations count as spent.

    failures   engine failures since the study was opened or last reopened
    """

    spent: Amounts
    data_version: int
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger.

    sequence        0, 1, 2, …: the owner's
    time            UTC, whole seconds: when its question arrived, also of what settles it; nothing is decided by it
    id              random and never shown; whoever may know of the entry sees `shown`, so that nobody else can compute a hash
    analyst         None: the owner
    share           the analyst's share of the limits when the question was asked
    question_key    what makes two questions identical, and a retry the same question
    answer_digest   the digest of the answer that the receipt shows
    content_digest  SHA-256 of the stored bytes
    refers          the id of the reservation that this settles, or of the commit that this served
    hash            SHA-256 of the entry's text
    """

    ledger: str
    sequence: int
    previous: str
    time: str
    kind: EntryKind
    id: str
    study_digest: str
    data_version: int
    after: State
    analyst: str | None = None
    share: Fraction | None = None
    amounts: Amounts = NOTHING
    losses: tuple[Mapping[str, Any], ...] = ()
    question_key: str | None = None
    question: str | None = None
    plan_digest: str | None = None
    tables: tuple[str, ...] = ()
    answer_digest: str | None = None
    content_digest: str | None = None
    refers: str | None = None
    note: str | None = None
    creation: Mapping[str, Any] | None = None
    hash: str = ""

    @property
    def shown(self) -> str:
        """The id for everybody."""
        return shown_id(self.id)

    @classmethod
    def from_text(cls, text: str) -> Entry:
        """Read what `sealed` wrote; ValueError where it did not."""
        try:
            body = cast("dict[str, Any]", json.loads(text))
            if sorted(body) != sorted(_FIELDS) or body["version"] != VERSION:
                body = {}  # unknown fields are refused, never guessed
            after = body["after"]
            return cls(
                ledger=body["ledger"],
                sequence=body["sequence"],
                previous=body["previous"],
                time=body["time"],
                kind=EntryKind(body["kind"]),
                id=body["id"],
                study_digest=body["study"],
                data_version=body["data_version"],
                after=State(Amounts.from_record(after["spent"]), after["data_version"], after["failures"]),
                analyst=body["analyst"],
                share=None if body["share"] is None else Fraction(body["share"]),
                amounts=Amounts.from_record(body["amounts"]),
                losses=tuple(body["losses"]),
                question_key=body["key"],
                question=body["question"],
                plan_digest=body["plan"],
                tables=tuple(body["tables"]),
                answer_digest=body["answer"],
                content_digest=body["content"],
                refers=body["refers"],
                note=body["note"],
                creation=body["creation"],
                hash=hash_of(text),
            )
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, RecursionError, CuradorError) as error:
            raise ValueError("the text is not that of an entry") from error


def next_entry(head: Entry, kind: EntryKind) -> Entry:
    """Return an entry that follows another, with the state of the study as it was; `replace` fills in what happened."""
    return Entry(
        ledger=head.ledger,
        sequence=head.sequence + 1,
        previous=head.hash,
        time=now(),
        kind=kind,
        id=new_id(),
        study_digest=head.study_digest,
        data_version=head.after.data_version,
        after=head.after,
    )


def now() -> str:
    """Return the time for people to read, in whole seconds; taken after data were read it would tell how long that took."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def new_id() -> str:
    """Return a random id: it says nothing about how many others there are."""
    return secrets.token_hex(16)


def shown_id(own: str) -> str:
    """Return the id that is shown instead of an entry's own: it does not lead to it.

    Claim   Who knows everything that is shown of an entry cannot compute its hash: 128 random bits are missing. So the hash
            in a receipt tells neither which entry came before it nor when another was settled.
    """
    return hashlib.sha256(b"shown id\0" + own.encode()).hexdigest()[:32]


def seal(entry: Entry) -> tuple[Entry, str]:
    """Return the entry with its hash, and the text that is stored."""
    text = canonical_text(entry_fields(entry))
    return replace(entry, hash=hash_of(text)), text


def entry_fields(entry: Entry) -> dict[str, object]:
    """Return the fields of an entry under the names that `from_text` reads; all of them are always there."""
    return {
        "version": VERSION,
        "ledger": entry.ledger,
        "sequence": entry.sequence,
        "previous": entry.previous,
        "time": entry.time,
        "kind": entry.kind.value,
        "id": entry.id,
        "study": entry.study_digest,
        "data_version": entry.data_version,
        "analyst": entry.analyst,
        "share": None if entry.share is None else str(entry.share),
        "amounts": entry.amounts.record(),
        "losses": entry.losses,
        "key": entry.question_key,
        "question": entry.question,
        "plan": entry.plan_digest,
        "tables": entry.tables,
        "answer": entry.answer_digest,
        "content": entry.content_digest,
        "refers": entry.refers,
        "note": entry.note,
        "after": {
            "spent": entry.after.spent.record(),
            "data_version": entry.after.data_version,
            "failures": entry.after.failures,
        },
        "creation": entry.creation,
    }


def hash_of(text: str) -> str:
    """Return the hash of an entry's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
