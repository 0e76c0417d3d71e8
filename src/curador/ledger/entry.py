"""One line of the ledger, versions 1 and 2. A contract: the meaning of a field never changes, an unknown version is refused.

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
surveyed    the owner lets what a survey found hold from here on
declared    the study's declarations changed: caps, bounds, values, formats
joined      another study spends from this ledger, or another ledger is about the same rows, and why

The last three, `survey` and `details` came with version 2. An entry that has none of them is written as version 1, so that
whoever knows version 1 only reads everything that it can mean; both are read for ever.

Before it stands the request: what the curator asks the ledger to charge. After it stands what the ledger did: charged, or
gave again for nothing. In the file an entry is a row: its text, and the columns by which it is found.
"""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, cast

from curador.canonical import canonical_text
from curador.errors import CuradorError, InvalidParameter, InvalidStudy, LedgerBusy, require
from curador.ledger.amounts import NOTHING, Amounts
from curador.privacy.adjacency import Adjacency

BEFORE_ALL: Final = "0" * 64
"""What the first entry holds as the hash of the one before it."""
STUDY: Final = "study"
OWNER: Final = "owner"
ANOTHER: Final = 'start a ledger in another file, with the reason: new_ledger="…" in Python, --new-ledger "…" in a shell'
"""What an owner does who means to begin anew: the words of the options that do it."""
DAMAGED: Final = f"the file was changed from outside or is damaged; restore it, or {ANOTHER}"

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


# ---- names, times, ids -----------------------------------------------------------------------------------------------------


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


OUTSIDE: Final = "outside the guarantee: at most 1 bit"


def failure_note(incident: str) -> str:
    """Return what an entry says of a failure."""
    return f"incident {incident}; {OUTSIDE}"


def incident_of(entry: Entry) -> str | None:
    """Return the incident of a failed entry, as its note says it; None of any other."""
    note = entry.note or ""
    words = f"; {OUTSIDE}"
    if entry.kind is not EntryKind.FAILED or not (note.startswith("incident ") and note.endswith(words)):
        return None
    return note.removeprefix("incident ").removesuffix(words)


# ---- what is asked ---------------------------------------------------------------------------------------------------------


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


# ---- what is written -------------------------------------------------------------------------------------------------------


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
    SURVEYED = "surveyed"
    DECLARED = "declared"
    JOINED = "joined"

    @property
    def settles(self) -> bool:
        """Whether it ends a reservation."""
        return self in {EntryKind.COMMITTED, EntryKind.FAILED, EntryKind.VOIDED}


KINDS_SINCE_2: Final = frozenset({EntryKind.SURVEYED, EntryKind.DECLARED, EntryKind.JOINED})
LATER: Final = ("recalled",)
"""Kinds that come with a later version: tables made now admit them, so that they need not be made anew; whoever reads
versions 1 and 2 refuses them. See docs/reference/stored-formats.md."""


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
    survey          what a survey found for declarations: `commit`, the id of the commit that paid for it, `caps`, …
    details         of the first entry and of declared ones: what the study declares; of joined ones: the other side
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
    survey: Mapping[str, Any] | None = None
    details: Mapping[str, Any] | None = None
    hash: str = ""

    @property
    def version(self) -> int:
        """The version that it is written in: the first that has all of it."""
        return 2 if self.kind in KINDS_SINCE_2 or self.survey is not None or self.details is not None else 1

    @property
    def shown(self) -> str:
        """The id for everybody."""
        return shown_id(self.id)

    @classmethod
    def from_text(cls, text: str, own_hash: str | None = None) -> Entry:
        """Read what `seal` wrote; ValueError where it did not.

        own_hash   of the text, where it is known
        """
        try:
            body = cast("dict[str, Any]", json.loads(text))
            version = body["version"]
            made = _entry_of_fields(body, hash_of(text) if own_hash is None else own_hash)
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, RecursionError, CuradorError) as error:
            raise ValueError("the text is not that of an entry") from error
        if type(version) is not int or version != made.version or body.keys() != entry_fields(made).keys():
            raise ValueError("the text is not that of an entry")  # unknown fields, kinds and versions are never guessed
        return made


def _entry_of_fields(body: Mapping[str, Any], own_hash: str) -> Entry:
    after = body["after"]
    return Entry(
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
        survey=_object_or_none(body.get("survey")),
        details=_object_or_none(body.get("details")),
        hash=own_hash,
    )


def _object_or_none(value: object) -> Mapping[str, Any] | None:
    """Return a JSON object, or nothing where there is none; TypeError for anything else."""
    if value is None or type(value) is dict:
        return cast("Mapping[str, Any] | None", value)
    raise TypeError(value)


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


def seal(entry: Entry) -> tuple[Entry, str]:
    """Return the entry with its hash, and the text that is stored."""
    text = canonical_text(entry_fields(entry))
    return replace(entry, hash=hash_of(text)), text


def entry_fields(entry: Entry) -> dict[str, object]:
    """Return the fields of an entry under the names that `from_text` reads; all of its version are always there."""
    return {
        "version": entry.version,
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
        **({"survey": entry.survey, "details": entry.details} if entry.version > 1 else {}),
    }


def hash_of(text: str) -> str:
    """Return the hash of an entry's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# ---- how it lies in the file -----------------------------------------------------------------------------------------------


class ChainRow(NamedTuple):
    """An entry as it is stored: its text, and the columns by which it is found."""

    sequence: int
    hash: str
    kind: str
    id: str
    analyst: str | None
    question_key: str | None
    data_version: int
    settles: str | None
    body: str


def row_of(entry: Entry, text: str) -> ChainRow:
    """Return the columns of an entry."""
    settles = entry.refers if entry.kind.settles else None
    found_by = (entry.analyst, entry.question_key, entry.data_version, settles)
    return ChainRow(entry.sequence, entry.hash, entry.kind.value, entry.id, *found_by, text)


def entry_of(row: ChainRow) -> Entry:
    """Return the entry of a row, refused where text, hash and columns do not agree."""
    text: object = row.body  # a damaged file may give bytes or NULL
    if type(text) is not str or hash_of(text) != row.hash:
        refuse_entry(row.sequence, "must have the hash that stands beside it")
    try:
        entry = Entry.from_text(row.body, row.hash)
    except ValueError:
        refuse_entry(row.sequence, "must be an entry of a version that is known (1 or 2)")
    if row_of(entry, row.body) != row:
        refuse_entry(row.sequence, "must be found by what it says")
    return entry


@lru_cache(1024)
def recent_entry(row: ChainRow) -> Entry:
    """Return the entry of a row that is read several times by one question: its own, and the last."""
    return entry_of(row)


def holder_of(analyst: str | None) -> str:
    """Return the name under which the asker's total is kept."""
    return OWNER if analyst is None else f"analyst:{analyst}"


def refuse_entry(sequence: int, rule: str) -> NoReturn:
    """Refuse the ledger because of one entry."""
    raise InvalidStudy(f"ledger entry {sequence} {rule}; it does not.", hint=f"{DAMAGED}.")


# ---- what was done ---------------------------------------------------------------------------------------------------------


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


class AlreadyReserved(LedgerBusy):
    """What is bought once was bought already, or is being bought by somebody else; nothing was spent.

    entry   the reservation that stands
    """

    def __init__(self, entry: Entry) -> None:
        super().__init__("this is bought once, and was reserved already; nothing was spent.", hint="ask again.")
        self.entry = entry


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer that was released before: the entry that committed it, and its bytes."""

    entry: Entry
    answer: bytes

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that its plan read."""
        return self.entry.tables
