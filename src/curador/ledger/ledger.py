"""The ledger: every question is charged here, durably, before any data is read.

reserve ─► (engine, noise) ─► commit       the answer is stored with the same stroke
                           ─► fail         the charge stays, the failure is counted
        ─► void                            only where the engine was never started

An entry is on disk when a call returns. A crash at any point leaves the charge, never an uncharged answer.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Final, cast

from curador.canonical import canonical_text
from curador.errors import InvalidParameter, require
from curador.ledger import opening
from curador.ledger.acts import CLOSED_AFTER, Change, Prepare, Reserve, Serve, Settle, admits
from curador.ledger.amounts import NOTHING, Amounts
from curador.ledger.entry import (
    STUDY,
    Entry,
    EntryKind,
    Request,
    Spent,
    State,
    Stored,
    failure_note,
    holder_of,
    is_label,
    is_sha256,
    next_entry,
    note_text,
    now,
    refuse_entry,
)
from curador.ledger.limits import Limits, admit
from curador.ledger.migration import is_old
from curador.ledger.sharing import SharedWriter, WriterService, socket_of
from curador.ledger.store import Page, Store
from curador.ledger.witness import Head, WitnessSlots
from curador.ledger.writer import SETTLING, Writer
from curador.privacy.adjacency import Adjacency
from curador.study.model import Budget

LONGEST_DETAILS: Final = 1_000_000
"""Letters of what a survey found, or of declarations, in one entry."""


class Everyone(enum.Enum):
    """Stands for all askers together."""

    ALL = "all"


ALL: Final = Everyone.ALL


class Ledger:
    """A study's ledger, and the only judge of what may still be spent. Threads and processes may share one file.

    Claim   Everything released through it, to all analysts together and over all data versions, keeps the budget fixed at
            its creation, however each question is chosen: limit-differentially private (pure), or (ε, δ) by way of
            delta_keys-approximate rho_limit-zCDP. Shares are quotas inside that one guarantee, not guarantees of their own.
    Needs   A release is drawn after `reserve` returned and costs at most what was reserved; `void` only where the engine
            was never started; the disk keeps what it said it wrote; nothing else reads the data.
    Rounds  Amounts up and limits down to the tick; sums are exact.
    Source  [RRUV16] pure; [WRRW23] concentrated
    """

    def __init__(self, store: Store, first: Entry, limits: Limits, places: opening.LedgerPlaces, plain: int = -1) -> None:
        """Hold an opened store; `create` and `open` are the ways in.

        plain   up to this entry none is of a kind that came with version 2
        """
        self._store = store
        self._places = places
        self._mirror = WitnessSlots(places.witness, first.ledger)
        self._own_writer = Writer(store, limits, first.ledger, first.sequence, self._mirror)
        self._writer = SharedWriter(self._own_writer, socket_of(places.ledger))
        self._unsettled: set[str] = set()
        self._plain = plain
        self._counted: tuple[int, Mapping[str, Mapping[str, Any]]] = (plain, {})
        self._in_force: dict[tuple[EntryKind, str | None], tuple[int, Entry | None]] = {}
        self.first: Final = first
        self.limits: Final = limits
        self.id: Final = first.ledger
        self.path: Final = places.ledger
        self.name: Final = store.name

    # ---- ways in and out --------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: Path | str,
        *,
        study_name: str,
        study_digest: str,
        unit: str,
        adjacency: Adjacency,
        budget: Budget,
        max_units: int,
        owners: tuple[tuple[str, str], ...] = (),
        reason: str | None = None,
        folder: Path | str | None = None,
        witness: Path | str | None = None,
        details: Mapping[str, Any] | None = None,
        server: str | None = None,
    ) -> Ledger:
        """Make a new ledger; its limits hold for ever.

        details  what the study declares, for the first entry
        reason   why there is a new ledger where there was one (its witness is there, or the data name it); refused without
        folder   where the data lie: the ledger's id is left there
        witness  where the head is mirrored; `<ledger>.head` by default
        server   the address of the schema in which it is kept; the file then says so. None: in the file itself
        """
        limits = Limits.create(budget, adjacency=adjacency, unit=unit, max_units=max_units, owners=owners)
        places = opening.LedgerPlaces.of(path, witness, folder)
        held = None if details is None else _plain_object(details, "details")
        said = {"study_name": study_name, "study_digest": study_digest, "reason": reason, "details": held}
        opening.create(places, limits, **said, server=server)
        return cls(*opening.open_store(places))

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        budget: Budget,
        adjacency: Adjacency,
        unit: str,
        owners: tuple[tuple[str, str], ...] = (),
        study_name: str | None = None,
        folder: Path | str | None = None,
        witness: Path | str | None = None,
        witness_lost: str | None = None,
        verify: bool = True,
        checkpoint: bool = False,
    ) -> Ledger:
        """Open the ledger of a study whose budget, neighbours and unit are those that it was created with.

        study_name, folder   whose marker must name this ledger (made where there is none)
        witness_lost         the owner's reason for going on without the witness; becomes an entry
        verify               read every entry again; otherwise only the first, the last and the one that the witness saw
        checkpoint           with verify: read only what came after the last reading, where its checkpoint fits
        """
        places = opening.LedgerPlaces.of(path, witness, folder)
        ledger = cls(*opening.open_store(places))
        try:
            ledger.limits.require_same(budget, adjacency=adjacency, unit=unit, owners=owners)
            read = opening.read(ledger._store, places, ledger.id, ledger.limits, since=checkpoint) if verify else None
            seen = opening.ask_the_witness(ledger._store, places, ledger.id, excused=witness_lost is not None)
            with ledger._store.reading() as page:
                opening.ask_the_marker(page, places, study_name, ledger.id)
            head = ledger.head
            ledger._own_writer.saw(head.sequence)
            if seen is None:
                ledger._act(EntryKind.REOPENED, f"without the witness: {note_text(witness_lost, 'witness_lost')}")
            elif seen < head.sequence:
                opening.bring_witness_up(ledger._mirror, head)
            opening.keep_checkpoint(ledger._store, places, read)
        except BaseException:
            ledger.close()
            raise
        opening.sweep(places)
        return ledger

    @classmethod
    def attach(cls, path: Path | str, server: str, *, reason: str, **options: Any) -> Ledger:
        """Open, for the first time on this machine, a ledger that is kept on a server; the reason becomes an entry.

        options   of `open`
        """
        why = note_text(reason, "reason")
        opening.attach(opening.LedgerPlaces.of(path, options.get("witness"), options.get("folder")), server)
        ledger = cls.open(path, **options)
        ledger._act(EntryKind.REOPENED, f"attached on another machine: {why}"[:1000])  # noqa: SLF001 -- its own
        return ledger

    @classmethod
    def reach(cls, path: Path | str) -> Ledger:
        """Open a ledger without its study, to know which one it is and to tell it of another: `join`."""
        places = opening.LedgerPlaces.of(path, None, None)
        ledger = cls(*opening.open_store(places))
        try:
            opening.ask_the_witness(ledger._store, places, ledger.id, excused=False)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def close(self) -> None:
        """Write what was counted, and close the file. Open reservations stay charged."""
        try:
            self._writer.flush()
        finally:
            self._writer.close()
            self._mirror.close()
            self._store.close()

    def write_for_others(self) -> WriterService:
        """Return a service that writes to this ledger for other processes of the same user, at a socket beside it."""
        return WriterService(self._own_writer, self.limits, self.path)

    def __enter__(self) -> Ledger:  # noqa: PYI034 -- nobody derives from a ledger
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- spending ---------------------------------------------------------------------------------------------------

    def reserve(
        self,
        request: Request,
        *,
        once: bool = False,
        dead: tuple[str, ...] = (),
        id: str | None = None,  # noqa: A002 -- its name
        again: bool | None = None,
    ) -> Spent:
        """Charge a question before any data is read.

        once   refuse (AlreadyReserved, with the other entry) what is bought already on this data version: by a reservation of
               the same key that is open or committed. Whoever asks at the same time waits for that one instead.
        dead   ids of open reservations that will not be settled any more: with `once` they do not stand in the way
        id     by which the outcome is found; that of a request which was handed over before has the outcome that it had
        again  whether it was handed over before; None: if an id is given

        Claim   If this returns, the charge is on disk and all charges together are within the limits, whoever else writes at
                the same time. If it refuses, nothing was spent.
        Rounds  Exact.
        """
        admit(request, self.limits)
        act = Reserve(request, once, dead) if id is None else Reserve(request, once, dead, id)
        spent = self._writer.do(act, again=id is not None if again is None else again)
        self._unsettled.add(spent.id)
        return spent

    def commit(self, reservation: Spent, *, answer: bytes, answer_digest: str) -> Entry:
        """Store the answer of a reservation, in one stroke with the entry that allows its release.

        Claim   If this returns, entry and answer are on disk. If it does not, the answer must not be released.
        """
        require(type(answer) is bytes, "answer", "bytes", type(answer).__name__)
        require(is_label(answer_digest), "answer_digest", "a digest", answer_digest)
        content = hashlib.sha256(answer).hexdigest()
        return self._settle(Settle(EntryKind.COMMITTED, reservation.entry, answer, answer_digest, content_digest=content))

    def fail(self, reservation: Spent, *, incident: str) -> Entry:
        """Keep the charge of a reservation whose engine failed, and count the failure: that it failed was an answer too."""
        require(is_label(incident), "incident", "an id of at most 200 letters", incident)
        return self._settle(Settle(EntryKind.FAILED, reservation.entry, note=failure_note(incident)))

    def void(self, reservation: Spent) -> Entry:
        """Give back the charge of a reservation made by this very object.

        Needs   The engine was never started for it: nothing about the data was computed, nor timed.
        """
        if reservation.id not in self._unsettled:
            hint = "after a restart nobody knows whether an engine ran; the charge is kept"
            raise InvalidParameter.must_be("reservation", "an open one of this session", reservation.id, hint)
        return self._settle(Settle(EntryKind.VOIDED, reservation.entry))

    def _settle(self, act: Settle) -> Entry:
        entry = self._writer.do(act, patience=SETTLING)
        self._unsettled.discard(act.own.id)
        return entry

    def outcome(self, id: str) -> Entry | None:  # noqa: A002 -- its name
        """Return the entry that a request became, by the id it was handed over with; None where it became none.

        None is no promise while somebody may still be writing it.
        """
        with self._store.reading() as page:
            return page.named(id)

    def settled(self, reservation: str) -> EntryKind | None:
        """Return how a reservation ended; None while it is open."""
        with self._store.reading() as page:
            found = page.settled(reservation)
        return None if found is None else EntryKind(found)

    def end(self, reservation: str) -> tuple[Entry, bytes | None] | None:
        """Return the entry that settled a reservation, with its own answer if it has one; None while it is open."""
        with self._store.reading() as page:
            entry = page.end(reservation)
            if entry is None or entry.kind is not EntryKind.COMMITTED:
                return None if entry is None else (entry, None)
            found = next(page.answers(after=entry.sequence - 1), None)
        if found is None or found[0] != entry.sequence or entry.content_digest != hashlib.sha256(found[3]).hexdigest():
            refuse_entry(entry.sequence, "must have the answer that its digest says")
        return entry, found[3]

    # ---- answers that were given before -----------------------------------------------------------------------------

    def stored(self, question_key: str, data_version: int, *, visible: Collection[str] | None = None) -> Stored | None:
        """Return the last answer to an identical question on the same data version.

        visible   tables that the asker may see; None: all. An answer from a table beyond them is not there.
        """
        require(is_sha256(question_key), "question_key", "SHA-256 in hex", question_key)
        with self._store.reading() as page:
            found = page.stored(question_key, data_version)
            if found is None:
                return None
            entry = page.at(found[0])
        same = entry is not None and (entry.question_key, entry.data_version) == (question_key, data_version)
        if entry is None or not same or entry.content_digest != hashlib.sha256(found[1]).hexdigest():
            refuse_entry(found[0], "must have the answer that its digest says")
        allowed = visible is None or set(entry.tables) <= set(visible)
        return Stored(entry, found[1]) if allowed else None

    def served(
        self, stored: Stored, analyst: str | None, *, asked: str = "", question: str | None = None, answer_digest: str = ""
    ) -> Entry:
        """Count that a stored answer was given again, and return the entry that charged it, as one that charged nothing.

        It costs nothing: it is the same release, paid and on disk. So nobody waits for the line that says so. It is counted,
        one line for a question, an asker and a day, and written with the next thing that is; a crash can lose the last ones.

        question, answer_digest   what this asker wrote and was shown, where that is not what the first one was
        asked                     when the question arrived; it may have waited for the first one to be answered
        """
        require(analyst is None or is_label(analyst), "analyst", "a name of at most 200 letters", analyst)
        shown = answer_digest or stored.entry.answer_digest
        require(shown is None or is_label(shown), "answer_digest", "a text of at most 200 letters", shown)
        own, time = stored.entry, asked or now()
        with self._store.reading() as page:
            found, charged, head = page.at(own.sequence), page.named(own.refers or ""), page.head()
        if found != own or own.kind is not EntryKind.COMMITTED or charged is None:
            raise InvalidParameter.must_be("stored", "an answer of this ledger", own.id)
        self._writer.count(Serve(own, analyst, time, question, shown))
        return replace(
            charged,
            kind=EntryKind.SERVED,
            analyst=analyst,
            share=None,
            time=time,
            amounts=NOTHING,
            losses=(),
            after=head.after,
        )

    def given_again(self) -> Mapping[str, int]:
        """Return how often answers were given again, by the ids of the entries that say so, where it was more than once."""
        if is_old(self._store.schema()):
            return {}
        with self._store.reading() as page:
            return page.given()

    def prepared_digest(self, study: str, version: int) -> str | None:
        """Return the digest of the prepared copy of a data version, which no entry holds; None where none is said."""
        if is_old(self._store.schema()):
            return None
        with self._store.reading() as page:
            return page.prepared(study, version)

    def settle_digest(self, study: str, version: int, digest: str) -> str:
        """Say what the prepared copy of a data version is, where nobody did; return the digest that stands."""
        require(is_label(digest), "digest", "a digest", "something else")
        return self._writer.do(Prepare(study, version, digest))

    # ---- the owner's acts -------------------------------------------------------------------------------------------

    def refresh(self, note: str) -> int:
        """Declare a new data version, whether or not anything changed; one budget covers them all. Returns its number."""
        return self._act(EntryKind.REFRESHED, note_text(note, "note")).after.data_version

    def reopen(self, note: str) -> Entry:
        """Open the study to analysts again after engine failures."""
        return self._act(EntryKind.REOPENED, note_text(note, "note"))

    def survey(self, commit: Entry, survey: Mapping[str, Any], *, note: str | None = None) -> Entry:
        """Let what a survey found hold from here on, over all data versions, until the next. Costs nothing: it is paid.

        commit   the entry that stored what was found; the owner's
        survey   what holds: `caps`, …; where several studies share the ledger, `study` says whose. `commit` is added
        Nothing is written where one says the same of the same commit already; what is in force is returned.
        """
        paid = commit.kind is EntryKind.COMMITTED and commit.analyst is None
        require(paid, "commit", "the entry of an answer that the owner bought", commit.shown)
        held = _plain_object({**survey, "commit": commit.id}, "survey")
        why = None if note is None else note_text(note, "note")

        def follow(page: Page, head: Entry) -> Entry | None:
            if page.named(commit.id) != commit:
                raise InvalidParameter.must_be("commit", "an entry of this ledger", commit.shown)
            if any(one.survey == held for one in page.of_kind(EntryKind.SURVEYED)):
                return None  # who bought it together with others, and comes last, brings nothing back
            made = next_entry(head, EntryKind.SURVEYED)
            return replace(made, study_digest=commit.study_digest, refers=commit.id, survey=held, note=why)

        return self._say(EntryKind.SURVEYED, held.get("study"), follow)

    def remember(self, commit: Entry, counts: Mapping[str, Any]) -> None:
        """Keep what a question counted before it measured, by the names of what was counted. Costs nothing: it is paid.

        commit   the entry that stored it, whoever bought it
        """
        require(commit.kind is EntryKind.COMMITTED, "commit", "the entry of an answer", commit.shown)
        known = self._counts()
        fresh = {name: one for name, one in counts.items() if name not in known}
        held = _plain_object({"counts": fresh, "commit": commit.id}, "counts")

        def follow(page: Page, head: Entry) -> Entry | None:
            if page.named(commit.id) != commit:
                raise InvalidParameter.must_be("commit", "an entry of this ledger", commit.shown)
            made = next_entry(head, EntryKind.SURVEYED)
            return replace(
                made, study_digest=commit.study_digest, data_version=commit.data_version, refers=commit.id, survey=held
            )

        if fresh:
            self._append_new(follow)

    def counted(self, name: str) -> Mapping[str, Any] | None:
        """Return what was counted under a name, whoever bought it; None where nobody did."""
        return self._counts().get(name)

    def _counts(self) -> Mapping[str, Mapping[str, Any]]:
        seen, held = self._counted
        with self._store.reading() as page:
            last = page.tip()[0]
            if last == seen:
                return held
            newer = [(one.survey or {}).get("counts", {}) for one in page.of_kind(EntryKind.SURVEYED, after=seen)]
        merged = {name: one for counts in newer for name, one in counts.items()}  # of two who counted, the first holds
        self._counted = last, {**merged, **held}
        return self._counted[1]

    def committed(self, question_key: str, data_version: int) -> Entry:
        """Return the entry that stored the last answer to a question; refused where there is none."""
        stored = self.stored(question_key, data_version)
        if stored is None:
            raise InvalidParameter.must_be("question_key", "of an answer of this ledger", question_key)
        return stored.entry

    def declare(self, details: Mapping[str, Any], *, note: str, study_digest: str) -> Entry:
        """Record that the study's declarations are others from here on. Costs nothing.

        details        what is declared now and what changed; `study` says whose, where several share the ledger
        study_digest   the fingerprint of what is declared now
        Nothing is written where the last one of the study says the same; that one is returned.
        """
        require(is_label(study_digest), "study_digest", "a digest", study_digest)
        held, words = _plain_object(details, "details"), note_text(note, "note")

        def follow(page: Page, head: Entry) -> Entry | None:
            last = next((one for one in page.of_kind(EntryKind.DECLARED) if _study_of(one) == held.get("study")), None)
            if last is not None and (last.study_digest, last.details) == (study_digest, held):
                return None
            made = next_entry(head, EntryKind.DECLARED)
            return replace(made, study_digest=study_digest, details=held, note=words)

        return self._say(EntryKind.DECLARED, held.get("study"), follow)

    def join(self, details: Mapping[str, Any], *, note: str) -> Entry:
        """Record that another study spends from this ledger, or that another ledger is about the same rows. Costs nothing.

        Nothing is written where an entry says the same already; that one is returned.
        """
        held, words = _plain_object(details, "details"), note_text(note, "note")
        again: list[Entry] = []

        def follow(page: Page, head: Entry) -> Entry | None:
            again.extend(one for one in page.of_kind(EntryKind.JOINED) if one.details == held)
            return None if again else replace(next_entry(head, EntryKind.JOINED), details=held, note=words)

        made = self._append_new(follow)
        return again[0] if made is None else made

    def surveyed(self, study: str | None = None) -> Entry | None:
        """Return the survey in force: the last surveyed entry, whoever wrote it. An entry is read once, however often asked.

        study   of this study, where the entries say whose they are
        """
        return self._latest(EntryKind.SURVEYED, study)

    def declared(self, study: str | None = None) -> Entry | None:
        """Return the last declared entry, of one study where the entries say whose they are."""
        return self._latest(EntryKind.DECLARED, study)

    def declarations(self) -> list[Entry]:
        """Return all declared entries, the newest first."""
        with self._store.reading() as page:
            return list(page.of_kind(EntryKind.DECLARED, after=self._plain))

    def joined(self) -> list[Entry]:
        """Return all joined entries, the newest first."""
        with self._store.reading() as page:
            return list(page.of_kind(EntryKind.JOINED, after=self._plain))

    def _latest(self, kind: EntryKind, study: str | None) -> Entry | None:
        seen, held = self._in_force.get((kind, study), (self._plain, None))
        with self._store.reading() as page:
            last = page.tip()[0]
            if last == seen:
                return held
            held = next((one for one in page.of_kind(kind, after=seen) if _study_of(one) == study), held)
        self._in_force[kind, study] = last, held
        return held

    def _say(self, kind: EntryKind, study: str | None, follow: Callable[[Page, Entry], Entry | None]) -> Entry:
        """Append what follows, or return the last one of its kind where nothing does."""
        made = self._append_new(follow)
        last = self._latest(kind, study) if made is None else made
        return refuse_entry(0, "must be there") if last is None else last

    def _append_new(self, follow: Callable[[Page, Entry], Entry | None]) -> Entry | None:
        """Append an entry of a kind that older files refuse, which learn it first; None where there is nothing to say."""
        return self._writer.do(Change(follow, late=True))

    def _act(self, kind: EntryKind, note: str) -> Entry:
        def follow(_: Page, head: Entry) -> Entry:
            version = head.after.data_version + (kind is EntryKind.REFRESHED)
            failures = 0 if kind is EntryKind.REOPENED else head.after.failures
            after = State(head.after.spent, version, failures)
            return replace(next_entry(head, kind), data_version=version, after=after, note=note)

        made = self._writer.do(Change(follow))
        return refuse_entry(0, "must be there") if made is None else made

    # ---- questions about the ledger ---------------------------------------------------------------------------------

    @property
    def head(self) -> Head:
        """The last entry's sequence and hash."""
        last = self._last()
        return Head(last.sequence, last.hash)

    @property
    def last(self) -> Entry:
        """The last entry."""
        return self._last()

    @property
    def data_version(self) -> int:
        """The current data version; 1 at creation."""
        return self._last().after.data_version

    @property
    def failures(self) -> int:
        """Engine failures since the study was last reopened."""
        return self._last().after.failures

    @property
    def closed(self) -> bool:
        """Whether analysts are refused until the owner reopens the study."""
        return self.failures >= CLOSED_AFTER

    def require_admitted(self, analyst: str | None, version: int) -> None:
        """Refuse an analyst while the study is closed, and whoever holds a data version that is not the current one.

        Stored answers too: until the owner has looked into the failures, and for ever.

        analyst   None: the owner, and whoever spends nothing
        """
        admits(self._last(), analyst, version)

    def spent(self, analyst: str | Everyone | None = ALL) -> Amounts:
        """Return what was spent by everybody, by one analyst, or by the owner (None); open reservations count."""
        holder = STUDY if isinstance(analyst, Everyone) else holder_of(analyst)
        with self._store.reading() as page:
            return page.total(holder)

    def left(self, analyst: str | None, share: Fraction = Fraction(1)) -> Amounts:
        """Return what the asker may still spend: what is left of the share, and of the study. Rounds: down."""
        with self._store.reading() as page:
            total, own = page.total(STUDY), page.total(holder_of(analyst))
        study = total.room_below(self.limits.total)
        return study if analyst is None else study.least(own.room_below(self.limits.share(share)))

    def entries(self, start: int = 0, analyst: str | Everyone | None = ALL) -> Iterator[Entry]:
        """Yield entries in order, from a sequence on: all, those of one analyst, or those of the owner (None).

        What this object counted and did not write yet is written first.
        """
        self._writer.flush()
        place = start
        while True:
            with self._store.reading() as page:
                found = page.entries(place) if isinstance(analyst, Everyone) else page.entries_of(place, analyst)
            if not found:
                return
            yield from found
            place = found[-1].sequence + 1

    def verify(self, *, witness: bool = True) -> None:
        """Read every entry, sum and answer again; refuse the ledger by the first that is wrong. No checkpoint is asked.

        witness   whether the witness is asked too
        """
        opening.read_whole(self._store, self._places, self.id)
        if witness:
            self.ask_witness()

    def ask_witness(self) -> None:
        """Refuse a ledger that is behind what its witness saw."""
        opening.ask_the_witness(self._store, self._places, self.id, excused=False)

    # ---- one page ---------------------------------------------------------------------------------------------------

    def _last(self) -> Entry:
        with self._store.reading() as page:
            return page.head()


def _study_of(entry: Entry) -> str | None:
    """Return the study whose survey or declarations an entry is about; None where it does not say."""
    said = (entry.survey or entry.details or {}).get("study")
    return said if isinstance(said, str) else None


def _plain_object(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a copy of a JSON object as it will be read again; anything else is refused."""
    try:
        held = json.loads(canonical_text(dict(value)))
    except (TypeError, ValueError, RecursionError):
        held = None
    if type(held) is not dict or len(canonical_text(held)) > LONGEST_DETAILS:
        raise InvalidParameter.must_be(name, "a JSON object of at most a million letters", type(value).__name__)
    return cast("dict[str, Any]", held)
