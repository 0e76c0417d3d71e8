"""How a ledger begins and is opened: the files around it, what they must say, what is compared."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from curador.errors import InvalidStudy, require, sentence
from curador.ledger import checkpoint as points
from curador.ledger import witness as mirror
from curador.ledger.amounts import NOTHING
from curador.ledger.chain import DAMAGED, STUDY, Replay, bad, row_of
from curador.ledger.entry import BEFORE_ALL, Entry, Kind, State, new_id, now, sealed
from curador.ledger.limits import Limits
from curador.ledger.marker import claim, claimed, refuse_other
from curador.ledger.places import require_local, settled_path
from curador.ledger.request import label, note_text
from curador.ledger.sqlite import SQLiteStore, create_file
from curador.ledger.store import Page
from curador.ledger.witness import Head, Seen


@dataclass(frozen=True, slots=True)
class Places:
    """Where a ledger lies, where its head is mirrored, and where its data lie."""

    ledger: Path
    witness: Path
    folder: Path | None

    @classmethod
    def of(cls, ledger: Path | str, witness: Path | str | None, folder: Path | str | None) -> Places:
        """Return the places, the witness beside the ledger where none is given."""
        place = settled_path(ledger)
        head = mirror.witness_of(place) if witness is None else settled_path(witness)
        return cls(place, head, None if folder is None else Path(folder).resolve())


def create(places: Places, limits: Limits, *, study_name: str, study_digest: str, reason: str | None) -> None:
    """Make the file, its witness and its marker, in an order that a crash leaves nothing open which was spent.

    The witness comes first: a ledger without one is always refused, however short it is.
    """
    require(label(study_name), "study_name", "a name", study_name)
    require(label(study_digest), "study_digest", "a digest", study_digest)
    why = None if reason is None else note_text(reason, "reason")
    require_local(places.ledger)
    for folder, name in ((places.ledger.parent, "the folder of the ledger"), (places.folder, "the folder of the data")):
        if folder is not None and not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise InvalidStudy(sentence(name, "one that can be written to", str(folder)))
    if places.ledger.exists() or places.ledger.is_symlink():
        raise _taken(places)
    seen = mirror.recall(places.witness)
    other = None if places.folder is None else claimed(places.folder, study_name)
    if why is None:
        refuse_other(other, None)
        refuse_other(None if seen is None else seen.ledger, None)
    had = None if seen is None else {"ledger": seen.ledger, "sequence": seen.head.sequence, "hash": seen.head.hash}
    creation = {"limits": limits.record(), "study_name": study_name, "reason": why, "instead_of": other, "witness_had": had}
    first = Entry(
        ledger=new_id(),
        sequence=0,
        previous=BEFORE_ALL,
        time=now(),
        kind=Kind.CREATED,
        id=new_id(),
        study_digest=study_digest,
        data_version=1,
        after=State(NOTHING, 1, 0),
        creation=creation,
    )
    _make_files(places, first, limits, seen)
    if places.folder is not None:
        claim(places.folder, study_name, first.ledger, instead_of=other)


def _make_files(places: Places, first: Entry, limits: Limits, seen: Seen | None) -> None:
    announced: list[Head] = []

    def fill(page: Page, schema: str) -> Head:
        made, text = sealed(replace(first, creation={**(first.creation or {}), "schema": schema}))
        page.append(row_of(made, text))
        page.put_total(STUDY, NOTHING, limits.total)
        return Head(made.sequence, made.hash)

    def announce(head: Head) -> None:
        mirror.remember(places.witness, Seen(first.ledger, head), anew=seen is None)
        mirror.sync_folder(places.witness.parent)
        announced.append(head)

    try:
        create_file(places.ledger, fill, announce)
    except BaseException as error:
        if announced and seen is None:
            places.witness.unlink(missing_ok=True)
        elif announced and seen is not None:
            mirror.remember(places.witness, seen)
        if isinstance(error, FileExistsError):  # somebody else was faster
            raise _taken(places) from None
        if isinstance(error, OSError):
            hint = "its file system must know hard links and have room"
            raise InvalidStudy(sentence("a new ledger", "where it can be written", str(places.ledger), hint)) from error
        raise


def _taken(places: Places) -> InvalidStudy:
    hint = "open it; to start again, give another name and the reason"
    return InvalidStudy(sentence("a new ledger", "where no file is", str(places.ledger), hint))


def opened(places: Places) -> tuple[SQLiteStore, Entry, Limits, Path]:
    """Open the file, and prove its limits again from its first entry; the rest is compared by the caller."""
    store = SQLiteStore(places.ledger)
    try:
        return store, *_first(store), places.witness
    except BaseException:
        store.close()
        raise


def _first(store: SQLiteStore) -> tuple[Entry, Limits]:
    replay = Replay()
    with store.reading() as page:
        row = page.row(0)
        replay.read([] if row is None else [row])
        first, head, spent = page.at(0), page.head(), page.total(STUDY)
    if first is None or replay.limits is None or head.ledger != first.ledger:
        bad(0, "must be of the same ledger as the last")
    if spent != head.after.spent:
        bad(head.sequence, "must agree with the running total")
    if store.schema() != replay.schema:
        raise InvalidStudy(sentence("ledger", "with the tables that it was created with", str(store.path), DAMAGED))
    return first, replay.limits


def ask_the_witness(page: Page, places: Places, ledger_id: str, *, excused: bool) -> int | None:
    """Refuse a ledger that is behind its witness, or has another history; return the entry it saw, None if it is excused."""
    seen, last = mirror.recall(places.witness), page.tip()
    name = str(places.ledger)
    if seen is None:
        hint = "restore the file; or, as the owner, open the ledger once with the reason why it is lost"
        if not excused:
            raise InvalidStudy(sentence("the ledger's witness", "a file that exists", str(places.witness), hint))
        return None
    hint = "it was restored from a backup or replaced, and forgot charges; find the right one, or start anew with a reason"
    if seen.ledger != ledger_id:
        raise InvalidStudy(
            sentence("ledger", f"the one that its witness saw ({seen.ledger})", f"{ledger_id} in {name}", hint)
        )
    behind = seen.head.sequence - last.sequence
    if behind > 0:
        entries = "1 entry" if behind == 1 else f"{behind} entries"
        raise InvalidStudy(f"the ledger is behind its witness by {entries}: {name}.\nHint: {hint}.")
    entry = page.at(seen.head.sequence)
    if entry is None or entry.hash != seen.head.hash:
        rule = f"the same as its witness up to entry {seen.head.sequence}"
        raise InvalidStudy(sentence("ledger", rule, name, hint))
    return seen.head.sequence


def ask_the_marker(page: Page, places: Places, study_name: str | None, ledger_id: str) -> None:
    """Refuse a ledger that is not the one which the data had; leave its id where they had none."""
    if places.folder is not None:
        first = page.at(0)
        creation = {} if first is None else first.creation or {}
        claim(places.folder, study_name or str(creation["study_name"]), ledger_id)


def read(store: SQLiteStore, places: Places, ledger_id: str, limits: Limits, *, since: bool) -> tuple[Replay, int]:
    """Return what the ledger adds up to, and after which entry it was read: −1 where all of it was.

    since   read what came after the checkpoint only, where it fits
    """
    found = read_since(store, places, ledger_id, limits) if since else None
    return (read_whole(store, ledger_id), -1) if found is None else found


def read_whole(store: SQLiteStore, ledger_id: str) -> Replay:
    """Read every page, entry, sum and answer; what is refused is not opened by its checkpoint either."""
    replay = Replay()
    try:
        store.integrity()
        with store.reading() as page:
            replay.read(page.all_rows())
            compare(replay, page, ledger_id)
    except InvalidStudy:
        points.forget(points.checkpoint_of(store.path))
        raise
    return replay


def read_since(store: SQLiteStore, places: Places, ledger_id: str, limits: Limits) -> tuple[Replay, int] | None:
    """Read what came after the checkpoint and add it to what stood there; None where only a whole reading can tell.

    Returns what it all adds up to, and the sequence of the checkpoint.

    Claim   The entries after the checkpoint follow it without a gap, obey every rule of `chain.py`, and add up to the
            running sums when they begin with the checkpoint's; their answers have their digests; the first entry and the
            one of the checkpoint are the same as when it was written.
    Needs   The checkpoint is one that a reading of this file wrote.
    """
    held = points.recall(points.checkpoint_of(places.ledger))
    if held is None:
        return None
    seen = mirror.recall(places.witness)
    if not held.fits(ledger=ledger_id, file=store.file, witness=places.witness, seen=seen):
        return None
    try:
        with store.reading() as page:
            first, last = page.at(0), page.at(held.head.sequence)
            if first is None or last is None or (first.hash, last.hash) != (held.first, held.head.hash):
                return None
            if held.totals.get(STUDY) != last.after.spent:
                return None
            replay = Replay(
                limits=limits,
                ledger=ledger_id,
                first=first.hash,
                count=last.sequence + 1,
                hash=last.hash,
                state=last.after,
                totals=dict(held.totals),
                waiting=dict(held.waiting),
                earlier=page,
            )
            replay.read(page.all_rows(replay.count))
            compare(replay, page, ledger_id, after=last.sequence)
            replay.earlier = None  # the page ends here
    except InvalidStudy:  # the ledger is wrong, or the checkpoint is: a whole reading tells, and says where
        return None
    return replay, held.head.sequence


def keep_checkpoint(store: SQLiteStore, places: Places, found: tuple[Replay, int] | None) -> None:
    """Remember how far the ledger was read, where that was far enough."""
    if found is not None and store.file is not None and found[0].count - 1 - found[1] >= points.EVERY:
        made = points.taken(found[0], file=store.file, witness=places.witness)
        points.keep(points.checkpoint_of(places.ledger), made)


def compare(replay: Replay, page: Page, ledger_id: str, *, after: int = -1) -> None:
    """Refuse a ledger whose sums, or answers after a sequence, are not those that its entries say."""
    if replay.ledger != ledger_id:
        bad(0, "must be of this ledger")
    if page.totals() != replay.totals:
        bad(replay.count - 1, "must agree with the running totals")
    waiting = dict(replay.contents)
    for sequence, key, version, content in page.answers(after):
        said = waiting.pop(sequence, None)
        if said != (key, version, hashlib.sha256(content).hexdigest()):
            bad(sequence, "must have the answer that its digest says")
    if waiting:
        bad(min(waiting), "must have its answer")


def sweep(places: Places) -> None:
    """Remove what killed processes left behind."""
    mirror.sweep(places.ledger)
    mirror.sweep(places.witness)
    mirror.sweep(points.checkpoint_of(places.ledger))
