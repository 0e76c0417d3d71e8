"""A checkpoint spares reading and decides nothing: what opens with it is what a whole reading would open."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sqlite3
import stat
from dataclasses import replace

import pytest
from ledgers import BOTH, ask, create, everything, reopen, request

from curador.errors import InvalidStudy
from curador.ledger import checkpoint, entry, opening, witness
from curador.ledger.amounts import NOTHING
from curador.ledger.chain import ChainReplay
from curador.ledger.checkpoint import Checkpoint, checkpoint_of
from curador.ledger.entry import Spent
from curador.ledger.sqlite import SQLiteStore
from curador.ledger.witness import Head, witness_of

LITTLE = 10
ENDS = 8
"""Entries that every opening reads: the first, the last, the checkpoint's and the witness's, some of them twice."""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """A checkpoint after a few entries already."""
    monkeypatch.setattr(checkpoint, "EVERY", LITTLE)


def work(ledger, questions):
    """Leave entries of every kind; some reservations stay open, some are settled much later."""
    late, served = [], []
    for number in range(questions):
        asked = request(rho="1e-7", delta="1e-12", analyst=("ana", "eva", None)[number % 3], data_version=ledger.data_version)
        match number % 9:
            case 2:
                late.append(ledger.reserve(asked))
            case 3:
                ledger.void(ledger.reserve(asked))
            case 4:
                ledger.fail(ledger.reserve(asked), incident="f")
                ledger.reopen("looked into it")
            case 6 if late:
                ledger.void(late.pop(0)) if number % 2 else ledger.commit(late.pop(0), answer=b"late", answer_digest="d")
            case 7 if served:
                ledger.served(served[0], "eva")
            case _:
                done = ask(ledger, asked, bytes([number % 256] * 50))
                served.append(ledger.stored(done.question_key, done.data_version))
    ledger.refresh("new rows")


@pytest.fixture(scope="module")
def grown(memory):
    """A closed ledger with sixty entries."""
    folder = memory()
    with create(folder / "a.ledger", BOTH) as ledger:
        work(ledger, 40)
    return folder


@pytest.fixture
def path(grown, tmp_path):
    for suffix in ("", ".head"):
        shutil.copy(grown / f"a.ledger{suffix}", tmp_path / f"a.ledger{suffix}")
    return tmp_path / "a.ledger"


def quickly(path, **changes):
    return reopen(path, BOTH, checkpoint=True, **changes)


@pytest.fixture
def counted(monkeypatch):
    """Count the entries that are read, and the checks of the whole file."""
    found = {"entries": 0, "files": 0}
    hash_of, integrity = entry.hash_of, SQLiteStore.integrity

    def hashed(text):
        found["entries"] += 1
        return hash_of(text)

    def checked(store):
        found["files"] += 1
        integrity(store)

    monkeypatch.setattr(entry, "hash_of", hashed)
    monkeypatch.setattr("curador.ledger.store.recent_entry", entry.entry_of)  # nothing is remembered from before
    monkeypatch.setattr(SQLiteStore, "integrity", checked)

    def take(act):
        found.update(entries=0, files=0)
        act()
        return found["entries"], found["files"]

    return take


def opening_reads(counted, path, **changes):
    return counted(lambda: quickly(path, **changes).close())


# ---- what is read --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_second_opening_reads_what_came_since(counted, path):
    """Every entry once, then only the ends, then what was added; no reading of the whole file."""
    with reopen(path, BOTH, verify=False) as ledger:
        entries = ledger.head.sequence + 1
    first, files = opening_reads(counted, path)
    assert first >= entries
    assert files == 1
    ends, files = opening_reads(counted, path)
    assert ends <= ENDS
    assert files == 0
    with quickly(path) as ledger:
        for _ in range(3):
            ask(ledger, request(rho="1e-7", data_version=2))
    assert opening_reads(counted, path) == (ends + 6, 0)
    with quickly(path) as ledger:
        for _ in range(LITTLE):
            ask(ledger, request(rho="1e-7", data_version=2))
    assert opening_reads(counted, path) == (ends + 6 + 2 * LITTLE, 0)
    assert opening_reads(counted, path) == (ends, 0)  # the checkpoint moved on


@pytest.mark.slow
def test_the_cost_of_opening_does_not_grow(counted, memory, monkeypatch):
    """Ten times the entries: the same entries are read, and the database does as many steps."""
    steps = [0]
    connect = sqlite3.connect

    def counting(*arguments, **options):
        made = connect(*arguments, **options)
        made.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 1)
        return made

    monkeypatch.setattr(sqlite3, "connect", counting)
    found = []
    for questions in (20, 200):
        path = memory() / "a.ledger"
        with create(path, BOTH) as ledger:
            for _ in range(questions):
                ask(ledger, request(rho="1e-9"))
        quickly(path).close()
        steps[0] = 0
        found.append((*opening_reads(counted, path), steps[0]))
    small, large = found
    assert large[:2] == small[:2]
    assert large[2] <= 1.05 * small[2]


def test_a_short_ledger_has_no_checkpoint(memory):
    """Where there is nothing to spare, no file is left."""
    path = memory() / "a.ledger"
    create(path, BOTH).close()
    quickly(path).close()
    assert sorted(one.name for one in path.parent.iterdir()) == ["a.ledger", "a.ledger.head"]


def test_it_is_the_owners_to_read(path):
    """0600, written in one step, and nothing else is left."""
    quickly(path).close()
    assert stat.S_IMODE(checkpoint_of(path).stat().st_mode) == 0o600
    assert sorted(one.name for one in path.parent.iterdir()) == ["a.ledger", "a.ledger.checkpoint", "a.ledger.head"]


def test_a_whole_reading_never_asks_it(counted, path, monkeypatch):
    """verify, and every opening that does not say checkpoint, read everything."""
    quickly(path).close()
    monkeypatch.setattr(checkpoint, "recall", lambda _: pytest.fail("asked"))
    with reopen(path, BOTH) as ledger:
        entries = ledger.head.sequence + 1
        read, files = counted(ledger.verify)
    assert read >= entries
    assert files == 1


# ---- the same as a whole reading -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_from_every_entry_on_it_adds_up_to_the_same(path):
    """A checkpoint at each entry: the rest added to it is what the whole adds up to, reservations of long ago included."""
    with reopen(path, BOTH, verify=False) as ledger:
        store, limits = ledger._store, ledger.limits  # noqa: SLF001 -- what the opening reads
        places = opening.LedgerPlaces.of(path, None, None)
        whole = opening.read_whole(store, places, ledger.id)
        with store.reading() as page:
            rows = list(page.all_rows())
        whole_one = checkpoint.make_checkpoint(whole, file=store.file, witness=places.witness)
        settled_late = 0
        for count in range(1, len(rows) + 1):
            part = ChainReplay()
            part.read(rows[:count])
            here = checkpoint.make_checkpoint(part, file=store.file, witness=places.witness)
            checkpoint.keep(checkpoint_of(path), here)
            found = opening.read_since(store, places, ledger.id, limits)
            assert found is not None
            replay, since = found
            assert since == count - 1
            assert checkpoint.make_checkpoint(replay, file=store.file, witness=places.witness) == whole_one
            assert replay.state == whole.state
            settled_late += len(set(here.waiting) - set(whole_one.waiting))
    assert settled_late > LITTLE  # the power of it: reservations before a checkpoint were settled after it
    assert whole_one.waiting


# ---- what it must fit ----------------------------------------------------------------------------------------------------


def changed(**changes):
    return lambda path: checkpoint.keep(checkpoint_of(path), replace(checkpoint.recall(checkpoint_of(path)), **changes))


def head_of(path):
    return checkpoint.recall(checkpoint_of(path)).head


def behind(path):
    """The witness forgot the last entries; the ledger is ahead of it, as after a crash."""
    seen = witness.recall(witness_of(path))
    with reopen(path, BOTH, verify=False) as ledger:
        early = next(iter(ledger.entries(5)))
    witness.make(witness_of(path), seen.ledger, early.sequence, early.hash, replace=True)


def copied(path):
    """The file has another number on the disk."""
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def without(key):
    def change(path):
        body = json.loads(checkpoint_of(path).read_bytes())
        del body[key]
        checkpoint_of(path).write_text(json.dumps(body))

    return change


def of_version_1(path):
    body = json.loads(checkpoint_of(path).read_bytes())
    del body["seal"]
    body["version"] = 1
    checkpoint_of(path).write_text(json.dumps({**body, "seal": checkpoint._seal(body)}))  # noqa: SLF001


def linked(path):
    checkpoint_of(path).rename(path.with_name("elsewhere"))
    checkpoint_of(path).symlink_to(path.with_name("elsewhere"))


MISFITS = {
    "absent": lambda path: checkpoint_of(path).unlink(),
    "empty": lambda path: checkpoint_of(path).write_bytes(b""),
    "no object": lambda path: checkpoint_of(path).write_text("[1]"),
    "deep": lambda path: checkpoint_of(path).write_text("[" * 100_000),
    "cut": lambda path: checkpoint_of(path).write_bytes(checkpoint_of(path).read_bytes()[:-9]),
    "a folder": lambda path: (checkpoint_of(path).unlink(), checkpoint_of(path).mkdir()),
    "a link": linked,
    "another version": of_version_1,
    "no seal": without("seal"),
    "no totals": without("totals"),
    "another ledger": changed(ledger="0" * 32),
    "another file": changed(file=(0, 0)),
    "another witness": changed(witness="/elsewhere.head"),
    "another first entry": changed(first="0" * 64),
    "another history": lambda path: changed(head=Head(head_of(path).sequence, "0" * 64))(path),
    "an older hash": lambda path: changed(head=Head(head_of(path).sequence - 1, head_of(path).hash))(path),
    "ahead of the ledger": changed(head=Head(10**6, "0" * 64)),
    "no sums": changed(totals={}),
    "a witness behind it": behind,
    "a copied file": copied,
}


@pytest.mark.slow
@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_left_aside(misfit, counted, path):
    """Everything is read, the same is said, and the next opening is short again."""
    quickly(path).close()
    with quickly(path) as ledger:
        said, entries = everything(ledger), ledger.head.sequence + 1
    MISFITS[misfit](path)
    read, files = opening_reads(counted, path)
    assert read >= entries
    assert files == 1
    with contextlib.suppress(OSError):
        checkpoint_of(path).rmdir()
    quickly(path).close()
    assert opening_reads(counted, path)[0] <= ENDS
    with quickly(path) as ledger:
        assert everything(ledger) == said


def test_sums_that_do_not_add_up_are_read_again(counted, path):
    """A checkpoint whose sums are wrong by one holder's share refuses nothing: a whole reading decides."""
    quickly(path).close()
    held = checkpoint.recall(checkpoint_of(path))
    checkpoint.keep(checkpoint_of(path), replace(held, totals={**held.totals, "analyst:ana": held.totals["analyst:eva"]}))
    assert held.totals["analyst:ana"] != held.totals["analyst:eva"]
    assert opening_reads(counted, path)[1] == 1


def test_a_full_disk_only_spares_less(path, monkeypatch):
    """Where it cannot be written, the ledger opens all the same."""

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_private", full)
    quickly(path).close()
    assert not checkpoint_of(path).exists()


def test_too_many_open_reservations_are_not_kept(path, monkeypatch):
    """A checkpoint stays small."""
    monkeypatch.setattr(checkpoint, "MOST_WAITING", 0)
    quickly(path).close()
    assert not checkpoint_of(path).exists()


# ---- tampering -----------------------------------------------------------------------------------------------------------


def tamper(path, script):
    """Change the file past the triggers that refuse it, and put them back as they were."""
    connection = sqlite3.connect(path)
    try:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.executescript(script)
        for _, text in triggers:
            connection.execute(text)
        connection.commit()
    finally:
        connection.close()


LOWER = "UPDATE total SET rho = printf('%040d', 0) WHERE holder = '{}'"
AFTER = {
    "the sum of the study": LOWER.format("study"),
    "the sum of an analyst": LOWER.format("analyst:ana"),
    "a sum that is gone": "DELETE FROM total WHERE holder = 'analyst:eva'",
    "a sum too many": "INSERT INTO total SELECT 'analyst:new', epsilon, rho, delta, epsilon_limit, rho_limit, delta_limit "
    "FROM total LIMIT 1",
    "a charge that is gone": "DELETE FROM entry WHERE sequence = (SELECT max(sequence) - 3 FROM entry)",
    "a changed charge": "UPDATE entry SET body = replace(body, '1/10000000', '1/20000000') "
    "WHERE sequence = (SELECT max(sequence) - 1 FROM entry)",
    "an answer that is gone": "DELETE FROM answer WHERE sequence = (SELECT max(sequence) FROM entry)",
    "a changed answer": "UPDATE answer SET content = x'00' WHERE sequence = (SELECT max(sequence) FROM entry)",
    "an answer too many": "INSERT INTO answer SELECT max(sequence) - 1, 'k', 1, x'00' FROM entry",
    "the first entry": "UPDATE entry SET body = body || ' ' WHERE sequence = 0",
    "the checkpoint's entry": "UPDATE entry SET body = body || ' ' WHERE sequence = (SELECT max(sequence) - 6 FROM entry)",
}
BEFORE = {
    "a changed charge": "UPDATE entry SET body = body || ' ' WHERE sequence = 7",
    "an entry that is gone": "PRAGMA foreign_keys=OFF; DELETE FROM entry WHERE sequence = 9",
    "a changed answer": "UPDATE answer SET content = x'00' WHERE sequence < 9",
}


@pytest.fixture
def halfway(path):
    """A checkpoint, and six entries after it."""
    quickly(path).close()
    with quickly(path) as ledger:
        for _ in range(3):
            ask(ledger, request(rho="1e-7", data_version=2, analyst="ana"))
    assert head_of(path).sequence == ledger_tip(path) - 6
    return path


def ledger_tip(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT max(sequence) FROM entry").fetchone()[0]
    finally:
        connection.close()


def opens(path):
    try:
        quickly(path).close()
    except InvalidStudy:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("change", AFTER)
def test_what_was_changed_after_it_is_refused(change, halfway):
    """Sums, entries and answers since the checkpoint, and its two ends."""
    assert opens(halfway)
    tamper(halfway, AFTER[change])
    assert not opens(halfway)


@pytest.mark.parametrize("change", BEFORE)
def test_what_was_changed_before_it_is_found_by_a_whole_reading(change, halfway):
    """An opening does not look there. A whole reading does, and what it refused is not opened again."""
    tamper(halfway, BEFORE[change])
    assert opens(halfway)
    with pytest.raises(InvalidStudy), quickly(halfway) as ledger:
        ledger.verify()
    assert not checkpoint_of(halfway).exists()
    assert not opens(halfway)


def test_sums_changed_before_it_are_seen(halfway):
    """Entry and sum lowered together, long ago: the checkpoint remembers the sum."""
    tamper(halfway, "UPDATE total SET rho = printf('%040d', CAST(rho AS INTEGER) - 1) WHERE holder != 'study'")
    assert not opens(halfway)


def test_a_changed_reservation_of_long_ago_gives_nothing_back(halfway):
    """Its hash stands in the checkpoint: a settlement of another text is no settlement, and everything is read."""
    held = checkpoint.recall(checkpoint_of(halfway))
    sequence = min(head.sequence for head in held.waiting.values())
    with quickly(halfway) as ledger:
        entry = next(iter(ledger.entries(sequence)))
        own = Spent(entry=entry, limit=NOTHING, before=NOTHING, after=NOTHING)
        ledger.fail(own, incident="late")  # what a session left that was killed
    assert opens(halfway)
    fresh = replace(held, waiting={**held.waiting, entry.id: Head(sequence, "0" * 64)})
    checkpoint.keep(checkpoint_of(halfway), fresh)
    with reopen(halfway, BOTH, verify=False) as ledger:
        places = opening.LedgerPlaces.of(halfway, None, None)
        assert opening.read_since(ledger._store, places, ledger.id, ledger.limits) is None  # noqa: SLF001


@pytest.mark.slow
def test_no_byte_of_it_changes_what_is_accepted(halfway):
    """150 flips, on a ledger that is whole and on one whose sums were lowered: as a whole reading says, each time."""
    chance = random.Random(7)
    content = checkpoint_of(halfway).read_bytes()
    for wrong in (False, True):
        if wrong:
            tamper(halfway, AFTER["the sum of an analyst"])
        for _ in range(75):
            flipped = bytearray(content)
            flipped[chance.randrange(len(flipped))] ^= chance.randrange(1, 256)
            checkpoint_of(halfway).write_bytes(flipped)
            assert opens(halfway) is not wrong


# ---- seeded bugs ---------------------------------------------------------------------------------------------------------


def no_sums(monkeypatch):
    compare = opening.compare

    def skipping(replay, page, ledger_id, *, after=-1):
        if after == -1:
            compare(replay, page, ledger_id)

    monkeypatch.setattr(opening, "compare", skipping)


def no_chain(monkeypatch):
    read = ChainReplay.read
    monkeypatch.setattr(ChainReplay, "read", lambda self, rows: None if self.count > 1 else read(self, rows))
    no_sums(monkeypatch)


@pytest.mark.parametrize(
    ("bug", "finds"),
    [(no_sums, {"the sum of an analyst", "a sum too many", "a changed answer"}), (no_chain, {"a charge that is gone"})],
)
def test_the_tampering_above_catches_a_reading_that_leaves_something_out(bug, finds, halfway, monkeypatch):
    """With the sums not compared, or the new entries not chained, a changed ledger opens: so the tests above can fail."""
    bug(monkeypatch)
    accepted = set()
    for name in finds:
        copy = {one: one.read_bytes() for one in halfway.parent.iterdir()}
        tamper(halfway, AFTER[name])
        accepted |= {name} if opens(halfway) else set()
        for file, content in copy.items():
            file.write_bytes(content)
    assert accepted == finds


@pytest.mark.parametrize("bound", [True, False])
def test_a_file_that_was_put_in_its_place_is_read_whole(bound, halfway, monkeypatch):
    """It is refused; with the seeded bug, a checkpoint that is believed for any file, it would have passed."""
    if not bound:
        monkeypatch.setattr(Checkpoint, "fits", lambda *_, **__: True)
    copied(halfway)
    tamper(halfway, BEFORE["a changed charge"])
    assert opens(halfway) is not bound
