"""How a ledger begins and is opened: the files around it, what they must say, what is compared.

The marker is the name of the ledger, left beside the data: a study that had a ledger does not start without it.
`.<study>.ledger-id` holds the random id of the ledger. An empty ledger for data that were asked about before would open the
spent budget again; so another or a missing one is refused, unless the owner gives a reason, which becomes an entry.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from curador.errors import InvalidStudy, LedgerBusy, require
from curador.ledger import checkpoint as points
from curador.ledger import witness as mirror
from curador.ledger.amounts import NOTHING
from curador.ledger.chain import ChainReplay
from curador.ledger.entry import (
    ANOTHER,
    BEFORE_ALL,
    DAMAGED,
    STUDY,
    Entry,
    EntryKind,
    State,
    is_label,
    new_id,
    note_text,
    now,
    refuse_entry,
    row_of,
    seal,
)
from curador.ledger.limits import Limits
from curador.ledger.migration import may_become, refuses_kinds
from curador.ledger.pointer import store_at, write_pointer
from curador.ledger.sqlite import create_file, require_local, resolve_path
from curador.ledger.store import Page, Store
from curador.ledger.witness import Head, WitnessedHead, sync_folder, write_private

# ---- marker ----------------------------------------------------------------------------------------------------------------


def marker_of(folder: Path, study_name: str) -> Path:
    """Return the place of a study's marker."""
    if not is_label(study_name) or any(one in study_name for one in "/\\\0"):
        raise InvalidStudy.must_be("name", "one that a file can have", study_name)
    return folder / f".{study_name}.ledger-id"


def read_marker(folder: Path, study_name: str) -> str | None:
    """Return the id of the ledger that the data had; None where they had none."""
    path = marker_of(folder, study_name)
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        text = ""
    if not is_label(text):
        hint = "restore the file: it says which ledger these data belong to"
        raise InvalidStudy.must_be("the marker beside the data", "a readable file", str(path), hint)
    return text


def claim(folder: Path, study_name: str, ledger_id: str, *, instead_of: str | None = None) -> None:
    """Leave the ledger's id beside the data; refused where another ledger's stands, but the one it takes the place of."""
    path, own = marker_of(folder, study_name), read_marker(folder, study_name)
    if own == ledger_id:
        return
    if own is not None and own != instead_of:
        refuse_other(own, ledger_id)
    try:
        write_private(path, f"{ledger_id}\n".encode("ascii"), replace=own is not None)
    except FileExistsError:  # somebody else was faster
        refuse_other(read_marker(folder, study_name), ledger_id)
    except OSError:
        hint = "the ledger's id is left beside the data, so that they never start again with an empty one"
        raise InvalidStudy.must_be("the folder of the data", "one that can be written to", str(folder), hint) from None
    sync_folder(folder)


def refuse_other(own: str | None, ledger_id: str | None) -> None:
    """Refuse a ledger that is not the one which the data belong to."""
    if own is not None and own != ledger_id:
        hint = f"use the ledger that the data had, or {ANOTHER}: it becomes an entry"
        raise InvalidStudy.must_be("ledger", f"the one that these data had ({own})", ledger_id or "none", hint)


# ---- opening ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LedgerPlaces:
    """Where a ledger lies, where its head is mirrored, and where its data lie."""

    ledger: Path
    witness: Path
    folder: Path | None

    @classmethod
    def of(cls, ledger: Path | str, witness: Path | str | None, folder: Path | str | None) -> LedgerPlaces:
        """Return the places, the witness beside the ledger where none is given."""
        place = resolve_path(ledger)
        head = mirror.witness_of(place) if witness is None else resolve_path(witness)
        return cls(place, head, None if folder is None else Path(folder).resolve())


def create(
    places: LedgerPlaces,
    limits: Limits,
    *,
    study_name: str,
    study_digest: str,
    reason: str | None,
    details: Mapping[str, Any] | None = None,
    server: str | None = None,
) -> None:
    """Make the file, its witness and its marker, in an order that a crash leaves nothing open which was spent.

    The witness comes first: a ledger without one is always refused, however short it is.

    server   the address of the schema in which it is kept; None: in the file itself
    """
    require(is_label(study_name), "study_name", "a name", study_name)
    require(is_label(study_digest), "study_digest", "a digest", study_digest)
    why = None if reason is None else note_text(reason, "reason")
    require_local(places.ledger)
    for folder, name in ((places.ledger.parent, "the folder of the ledger"), (places.folder, "the folder of the data")):
        if folder is not None and not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise InvalidStudy.must_be(name, "one that can be written to", str(folder))
    if places.ledger.exists() or places.ledger.is_symlink():
        raise refusal_of_taken_place(places.ledger)
    seen = mirror.recall(places.witness)
    other = None if places.folder is None else read_marker(places.folder, study_name)
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
        kind=EntryKind.CREATED,
        id=new_id(),
        study_digest=study_digest,
        data_version=1,
        after=State(NOTHING, 1, 0),
        creation=creation,
        details=details,
    )
    _make_files(places, first, limits, seen, server)
    if places.folder is not None:
        claim(places.folder, study_name, first.ledger, instead_of=other)


def _make_files(places: LedgerPlaces, first: Entry, limits: Limits, seen: WitnessedHead | None, server: str | None) -> None:
    announced: list[Head] = []

    def fill(page: Page, schema: str) -> Head:
        made, text = seal(replace(first, creation={**(first.creation or {}), "schema": schema}))
        page.append(row_of(made, text))
        page.put_total(STUDY, NOTHING, limits.total)
        return Head(made.sequence, made.hash)

    def announce(head: Head) -> None:
        mirror.make(places.witness, first.ledger, *head, replace=seen is not None)
        announced.append(head)

    try:
        if server is None:
            create_file(places.ledger, fill, announce)
        else:
            from curador.ledger.postgres import create_ledger

            create_ledger(server, fill, announce)
            write_pointer(places.ledger, server, first.ledger)
    except BaseException as error:
        if announced and seen is None:
            places.witness.unlink(missing_ok=True)
        elif announced and seen is not None:
            mirror.make(places.witness, seen.ledger, *seen.head, replace=True)
        if isinstance(error, FileExistsError) and server is not None:
            hint = "a machine that comes to a ledger that is there runs `curador attach`, with its reason"
            raise InvalidStudy.must_be("a new ledger", "in a schema that has none", str(error), hint) from None
        if isinstance(error, FileExistsError):  # somebody else was faster
            raise refusal_of_taken_place(places.ledger) from None
        if isinstance(error, OSError):
            hint = "its file system must know hard links and have room"
            raise InvalidStudy.must_be("a new ledger", "where it can be written", str(places.ledger), hint) from error
        raise


def attach(places: LedgerPlaces, server: str) -> None:
    """Let this machine know a ledger that is kept on a server: its file says where, its witness begins at its last entry.

    Needs   The owner says that nothing was forgotten: a machine that never saw the ledger cannot know. Every entry is read.
    """
    from curador.ledger.postgres import PostgresStore

    if places.ledger.exists() or places.ledger.is_symlink():
        raise refusal_of_taken_place(places.ledger)
    seen = mirror.recall(places.witness)
    store = PostgresStore(server)
    try:
        with store.reading() as page:
            first, head = page.at(0) or refuse_entry(0, "must be there"), page.head()
            refuse_other(None if seen is None else seen.ledger, first.ledger)
        read_whole(store, places, first.ledger)
        if seen is None:
            mirror.make(places.witness, first.ledger, head.sequence, head.hash, replace=False)
        write_pointer(places.ledger, server, first.ledger)
    finally:
        store.close()


def refusal_of_taken_place(ledger: Path) -> InvalidStudy:
    """Return the refusal of a new ledger where one is."""
    hint = f"open it, without a reason; or {ANOTHER}"
    return InvalidStudy.must_be("a new ledger", "where no file is", str(ledger), hint)


def open_store(places: LedgerPlaces) -> tuple[Store, Entry, Limits, LedgerPlaces, int]:
    """Open the file, and prove its limits again from its first entry; the rest is compared by the caller.

    Returns last the sequence up to which no entry is of a kind that came with version 2: −1 where some may be.
    """
    store = store_at(places.ledger)
    try:
        first, limits, plain = _first(store)
    except BaseException:
        store.close()
        raise
    return store, first, limits, places, plain


def _first(store: Store) -> tuple[Entry, Limits, int]:
    replay = ChainReplay()
    with store.reading() as page:
        row = page.row(0)
        replay.read([] if row is None else [row])
        first, head, spent = page.at(0), page.head(), page.total(STUDY)
    schema = store.schema()
    if first is None or replay.limits is None or head.ledger != first.ledger:
        refuse_entry(0, "must be of the same ledger as the last")
    if spent != head.after.spent:
        refuse_entry(head.sequence, "must agree with the running total")
    if not may_become(replay.schema, schema):
        raise InvalidStudy.must_be("ledger", "with the tables that it was created with", store.name, DAMAGED)
    return first, replay.limits, head.sequence if refuses_kinds(schema) else -1


def ask_the_witness(store: Store, places: LedgerPlaces, ledger_id: str, *, excused: bool) -> int | None:
    """Refuse a ledger that is behind its witness, or has another history; return the entry it saw, None if it is excused.

    The witness is asked before the ledger's moment is chosen: others write meanwhile, and what it saw was written by then.
    """
    seen = mirror.recall(places.witness)
    with store.reading() as page:
        return _compare_with(seen, page, places, ledger_id, excused=excused)


def _compare_with(
    seen: WitnessedHead | None, page: Page, places: LedgerPlaces, ledger_id: str, *, excused: bool
) -> int | None:
    (last, _), name = page.tip(), str(places.ledger)
    if seen is None:
        hint = "restore the file; or, as the owner, open the ledger once with the reason why it is lost"
        if not excused:
            raise InvalidStudy.must_be("the ledger's witness", "a file that exists", str(places.witness), hint)
        return None
    hint = f"it was restored from a backup or replaced, and forgot charges; find the right one, or {ANOTHER}"
    if seen.ledger != ledger_id:
        raise InvalidStudy.must_be("ledger", f"the one that its witness saw ({seen.ledger})", f"{ledger_id} in {name}", hint)
    behind = seen.head.sequence - last
    if behind == 0 and seen.torn:
        told = "the ledger must be ahead of what is left of its witness, whose last write was torn; it is not"
        raise InvalidStudy(f"{told}: {name}.", hint=f"{hint}.")
    if behind > 0:
        entries = "1 entry" if behind == 1 else f"{behind} entries"
        raise InvalidStudy(f"the ledger is behind its witness by {entries}: {name}.", hint=f"{hint}.")
    entry = page.at(seen.head.sequence)
    if entry is None or entry.hash != seen.head.hash:
        rule = f"the same as its witness up to entry {seen.head.sequence}"
        raise InvalidStudy.must_be("ledger", rule, name, hint)
    return seen.head.sequence


def bring_witness_up(witness: mirror.WitnessSlots, head: Head) -> None:
    """Let the witness see what a crash kept from it; refused where that cannot be written: nothing may be spent then."""
    try:
        witness.remember(*head)
    except TimeoutError:
        told = "the ledger must be free; another process holds its witness for too long, nothing was spent"
        raise LedgerBusy(f"{told}.", hint="open it again.") from None
    except OSError as error:
        rule = "a file that can be written"
        raise InvalidStudy.must_be("the ledger's witness", rule, str(witness.path)) from error


def ask_the_marker(page: Page, places: LedgerPlaces, study_name: str | None, ledger_id: str) -> None:
    """Refuse a ledger that is not the one which the data had; leave its id where they had none."""
    if places.folder is not None:
        first = page.at(0)
        creation = {} if first is None else first.creation or {}
        claim(places.folder, study_name or str(creation["study_name"]), ledger_id)


def read(store: Store, places: LedgerPlaces, ledger_id: str, limits: Limits, *, since: bool) -> tuple[ChainReplay, int]:
    """Return what the ledger adds up to, and after which entry it was read: −1 where all of it was.

    since   read what came after the checkpoint only, where it fits
    """
    found = read_since(store, places, ledger_id, limits) if since else None
    return (read_whole(store, places, ledger_id), -1) if found is None else found


def read_whole(store: Store, places: LedgerPlaces, ledger_id: str) -> ChainReplay:
    """Read every page, entry, sum and answer; what is refused is not opened by its checkpoint either."""
    replay = ChainReplay()
    try:
        store.integrity()
        with store.reading() as page:
            replay.read(page.all_rows())
            compare(replay, page, ledger_id)
    except InvalidStudy:
        points.forget(points.checkpoint_of(places.ledger))
        raise
    return replay


def read_since(store: Store, places: LedgerPlaces, ledger_id: str, limits: Limits) -> tuple[ChainReplay, int] | None:
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
            replay = ChainReplay(
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


def keep_checkpoint(store: Store, places: LedgerPlaces, found: tuple[ChainReplay, int] | None) -> None:
    """Remember how far the ledger was read, where that was far enough."""
    if found is not None and store.file is not None and found[0].count - 1 - found[1] >= points.EVERY:
        made = points.make_checkpoint(found[0], file=store.file, witness=places.witness)
        points.keep(points.checkpoint_of(places.ledger), made)


def compare(replay: ChainReplay, page: Page, ledger_id: str, *, after: int = -1) -> None:
    """Refuse a ledger whose sums, or answers after a sequence, are not those that its entries say."""
    if replay.ledger != ledger_id:
        refuse_entry(0, "must be of this ledger")
    if page.totals() != replay.totals:
        refuse_entry(replay.count - 1, "must agree with the running totals")
    waiting = dict(replay.contents)
    for sequence, key, version, content in page.answers(after):
        said = waiting.pop(sequence, None)
        if said != (key, version, hashlib.sha256(content).hexdigest()):
            refuse_entry(sequence, "must have the answer that its digest says")
    if waiting:
        refuse_entry(min(waiting), "must have its answer")


def sweep(places: LedgerPlaces) -> None:
    """Remove what killed processes left behind."""
    mirror.sweep(places.ledger)
    mirror.sweep(places.witness)
    mirror.sweep(points.checkpoint_of(places.ledger))
