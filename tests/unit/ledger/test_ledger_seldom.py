"""Ways of the ledger that are seldom gone: what stands in the way, comes twice, or is not there."""
# ruff: noqa: SLF001 -- what a person cannot do by hand

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from dataclasses import replace
from fractions import Fraction

import pytest
from ledgers import BOTH, ask, create, key_of, reopen, request

from curador.errors import BudgetExceeded, Failed, InvalidParameter, InvalidStudy, LedgerBusy
from curador.ledger import migration, opening, sqlite, witness
from curador.ledger.acts import Reserve, Serve
from curador.ledger.entry import AlreadyReserved, EntryKind, incident_of, new_id
from curador.ledger.ledger import Ledger
from curador.ledger.opening import LedgerPlaces, claim, read_marker
from curador.ledger.store import ChangeUndone, Page
from curador.ledger.witness import SLOT, Head, WitnessedHead, WitnessSlots, recall, slot_of, witness_of

NONE = "the charge is kept and nothing was released"


@pytest.fixture
def path(tmp_path):
    create(tmp_path / "a.ledger").close()
    return tmp_path / "a.ledger"


@pytest.fixture
def ledger(path):
    with reopen(path) as opened:
        yield opened


@contextlib.contextmanager
def tampering(path):
    """A bare connection to the file, whose triggers and foreign keys are away for as long."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as own:
        triggers = own.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            own.execute(f"DROP TRIGGER {name}")
        yield own
        for _, text in triggers:
            own.execute(text)


# ---- acts ----------------------------------------------------------------------------------------------------------------


def test_an_id_that_is_handed_over_twice_at_once_is_charged_once(ledger):
    """Nobody said that it came before: the second one is told whose it is, and computes nothing."""
    asked, own = request(epsilon="0.1"), new_id()
    first = ledger.reserve(asked, id=own, again=False)
    with pytest.raises(AlreadyReserved) as second:
        ledger.reserve(asked, id=own, again=False)

    assert second.value.entry == first.entry
    assert ledger.spent() == asked.amounts


def test_only_an_answer_is_counted_as_given_again(ledger):
    """A line about anything else is not written, whoever counted it; who is written beside it is."""
    reserved = ledger.reserve(request(epsilon="0.1")).entry
    ledger._own_writer.count(Serve(reserved, "ana", reserved.time, None, None))
    other = ledger.reserve(request(epsilon="0.1")).entry

    assert [one.kind for one in ledger.entries()] == [EntryKind.CREATED, EntryKind.RESERVED, EntryKind.RESERVED]
    assert ledger.last == other
    assert not ledger.given_again()
    ledger.verify()


def test_the_digest_of_a_copy_is_said_once(ledger):
    """Who says another one is told which stands; another version or study has its own."""
    one, other = ("a" * 64, "b" * 64)

    assert ledger.prepared_digest("visits", 1) is None
    assert ledger.settle_digest("visits", 1, one) == one
    assert ledger.settle_digest("visits", 1, other) == one
    assert ledger.settle_digest("visits", 2, other) == other
    assert [ledger.prepared_digest("visits", version) for version in (1, 2, 3)] == [one, other, None]
    with pytest.raises(InvalidParameter, match="digest must be a digest"):
        ledger.settle_digest("visits", 4, "")


def test_a_share_that_was_lowered_below_what_was_spent_has_no_room(tmp_path):
    """Also for a question that costs nothing of the amount which is beyond it."""
    with create(tmp_path / "a.ledger", BOTH) as ledger:
        whole = ledger.limits.total
        ledger.reserve(request(rho=whole.rho / 1000, delta=whole.delta / 2, analyst="ana"))
        before = ledger.spent()
        with pytest.raises(BudgetExceeded, match="the charge must fit into what is left of the budget"):
            ledger.reserve(request(rho=whole.rho / 1000, analyst="ana", share=Fraction(1, 10)))
        assert ledger.spent() == before


# ---- questions about the ledger ------------------------------------------------------------------------------------------


def test_how_a_charge_ended(ledger):
    """Open, answered, failed: the end has its own answer and incident, and a changed answer is refused."""
    opened, failed, answered = (ledger.reserve(request(epsilon="0.1")) for _ in range(3))
    ledger.fail(failed, incident="f00")
    ledger.commit(answered, answer=b"one", answer_digest=hashlib.sha256(b"one").hexdigest())

    assert ledger.end(opened.id) is None
    assert ledger.settled(opened.id) is None
    assert incident_of(ledger.end(failed.id)[0]) == "f00"
    assert ledger.end(failed.id)[1] is None
    assert (ledger.end(answered.id)[0].kind, ledger.end(answered.id)[1]) == (EntryKind.COMMITTED, b"one")
    assert incident_of(ledger.end(answered.id)[0]) is None
    assert incident_of(replace(ledger.end(failed.id)[0], note="another note")) is None
    with tampering(ledger.path) as own:
        own.execute("UPDATE answer SET content = ?", [b"two"])
    with pytest.raises(InvalidStudy, match="must have the answer that its digest says"):
        ledger.end(answered.id)


def test_an_answer_that_is_away_is_no_end(ledger):
    """Its entry says that there is one; that of a later question is not taken for it."""
    first = ledger.reserve(request(epsilon="0.1"))
    ledger.commit(first, answer=b"one", answer_digest="d")
    ask(ledger, request(epsilon="0.1"), b"later")
    with tampering(ledger.path) as own:
        own.execute("DELETE FROM answer WHERE content = ?", [b"one"])
    with pytest.raises(InvalidStudy, match="must have the answer that its digest says"):
        ledger.end(first.id)
    with tampering(ledger.path) as own:
        own.execute("DELETE FROM answer WHERE true")
    with pytest.raises(InvalidStudy, match="must have the answer that its digest says"):
        ledger.end(first.id)


def test_what_was_counted_is_a_commit_of_this_ledger(ledger, tmp_path):
    """And what is looked for was answered."""
    with create(tmp_path / "b.ledger") as other, pytest.raises(InvalidParameter, match="commit must be an entry of this"):
        ledger.remember(ask(other, request(epsilon="0.1")), {"rows": {"n": 1}})
    with pytest.raises(InvalidParameter, match="question_key must be of an answer of this ledger"):
        ledger.committed(key_of("never asked"), 1)
    made = ask(ledger, request(epsilon="0.1"))
    assert ledger.committed(made.question_key, 1) == made
    ledger.remember(made, {"rows": {"n": 1}})
    assert ledger.counted("rows") == {"n": 1}


def test_a_reading_without_the_witness(ledger, path):
    """Every entry is read; who keeps the witness elsewhere asks it there."""
    ask(ledger, request(epsilon="0.1"))
    witness_of(path).unlink()
    ledger.verify(witness=False)
    with pytest.raises(InvalidStudy, match="the ledger's witness must be a file that exists"):
        ledger.verify()


def test_a_ledger_is_reached_only_with_its_witness(path):
    """To be told of another one; where that is refused nothing stays open."""
    with Ledger.reach(path) as ledger:
        own = ledger.id
    witness_of(path).unlink()
    with pytest.raises(InvalidStudy, match="the ledger's witness must be a file that exists"):
        Ledger.reach(path)
    assert own
    assert not path.with_name("a.ledger-wal").exists()


def test_a_charge_claims_no_finite_divergence():
    """A filter that asked for one would let nothing in."""
    assert request(epsilon="0.1").renyi(2) == float("inf")


# ---- beginning and opening -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError("no links"), (InvalidStudy, "where it can be written")),
        (FileExistsError(), (InvalidStudy, "where no file is")),
        (KeyboardInterrupt("stop"), (KeyboardInterrupt, "stop")),
    ],
    ids=["no links", "somebody faster", "interrupt"],
)
@pytest.mark.parametrize("before", [False, True], ids=["new", "after another"])
def test_a_beginning_that_fails_when_the_witness_stands(error, told, before, tmp_path, monkeypatch):
    """The witness comes first: it goes again, or says again what it said of the ledger before."""
    place, real = tmp_path / "a.ledger", os.link
    if before:
        with create(place) as old:
            ask(old, request(epsilon="0.1"))
        place.unlink()
    stood = recall(witness_of(place))

    def link(source, target, **named):
        if str(target) == str(place):
            assert recall(witness_of(place)) != stood, "the witness of the new one stands already"
            raise error
        real(source, target, **named)

    with monkeypatch.context() as patch:
        patch.setattr("os.link", link)
        with pytest.raises(told[0], match=told[1]):
            create(place, reason="lost" if before else None)
    assert recall(witness_of(place)) == stood
    assert [one.name for one in tmp_path.iterdir()] == (["a.ledger.head"] if before else [])
    create(place, reason="lost" if before else None).close()


def test_a_marker_that_somebody_else_leaves_first(tmp_path, monkeypatch):
    """Of two who begin at once the second is refused, unless both mean the same ledger."""
    monkeypatch.setattr(opening, "write_private", lambda *_, **__: (_ for _ in ()).throw(FileExistsError))
    for other, refused in (("one", False), ("two", True)):
        (tmp_path / ".visits.ledger-id").unlink(missing_ok=True)
        real = opening.read_marker
        looks = iter([None, other])
        monkeypatch.setattr(opening, "read_marker", lambda *_, looks=looks: next(looks))
        with pytest.raises(InvalidStudy, match="the one that these data had") if refused else contextlib.nullcontext():
            claim(tmp_path, "visits", "one")
        monkeypatch.setattr(opening, "read_marker", real)
    assert read_marker(tmp_path, "visits") is None


def test_a_ledger_that_ends_as_another_one_is_none(path, tmp_path):
    """Nor one without its beginning, whatever else stands in it."""
    for place in (path, tmp_path / "b.ledger"):
        with contextlib.nullcontext() if place.exists() else create(place):
            pass
        with reopen(place) as ledger:
            ask(ledger, request(epsilon="0.1"))
    with contextlib.closing(sqlite3.connect(tmp_path / "b.ledger")) as other:
        last = other.execute("SELECT * FROM entry WHERE sequence = 2").fetchone()
    with tampering(path) as own:
        own.execute("DELETE FROM answer WHERE true")
        own.execute("DELETE FROM entry WHERE sequence = 2")
        own.execute(f"INSERT INTO entry VALUES ({', '.join('?' * len(last))})", last)
    with pytest.raises(InvalidStudy, match="ledger entry 0 must be of the same ledger as the last"):
        reopen(path, verify=False)
    with tampering(path) as own:
        own.execute("DELETE FROM entry WHERE sequence = 0")
    with pytest.raises(InvalidStudy, match="ledger entry 0 must be there"):
        reopen(path, verify=False)


def test_rows_of_another_ledger_are_not_read_as_this_one(ledger, path):
    """As where a file is replaced while it is open."""
    with pytest.raises(InvalidStudy, match="ledger entry 0 must be of this ledger"):
        opening.read_whole(ledger._store, LedgerPlaces.of(path, None, None), "another")


# ---- the file ------------------------------------------------------------------------------------------------------------


def test_a_file_that_another_process_brought_up_to_date_meanwhile(ledger, monkeypatch):
    """Who waited for the lock finds nothing left to do, and changes nothing."""
    seen = []
    monkeypatch.setattr(ledger._store, "schema", lambda: migration.SCHEMAS[0])
    monkeypatch.setattr(sqlite, "renew_tables", lambda *given: seen.append(given))
    ledger._store.admit_all_kinds()
    assert not seen


def test_two_who_open_a_store_keep_one_connection(ledger, monkeypatch):
    """The second waited for the first and finds that it is there."""
    keeper = ledger._store._keeper
    monkeypatch.setattr(sqlite, "_connect", lambda _: pytest.fail("opened once more"))
    ledger._store._keep()
    assert ledger._store._keeper is keeper


def test_where_there_is_no_log_there_is_nothing_to_sync(tmp_path):
    """As on a system whose SQLite makes it later."""
    sqlite._sync_log(tmp_path / "a.ledger")
    assert not list(tmp_path.iterdir())


class Stuck:
    """A cursor that says something else than that it is busy."""

    def execute(self, _statement):
        raise sqlite3.OperationalError("disk I/O error")


def test_what_is_no_lock_is_not_waited_for():
    """A change that cannot be begun is told at once."""
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        sqlite._begin(Stuck(), "BEGIN", 1e12)


def test_a_lock_of_somebody_else_is_waited_for(tmp_path):
    """Whoever meets a lock tries again, and goes on when it is let go of."""
    with (
        contextlib.closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as holder,
        contextlib.closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None, timeout=0)) as waiter,
    ):
        holder.execute("BEGIN EXCLUSIVE")
        tries = []

        class Waiting:
            def execute(self, statement):
                try:
                    return waiter.execute(statement)
                except sqlite3.OperationalError:
                    tries.append(statement)
                    holder.execute("ROLLBACK")
                    raise

        sqlite._patiently(Waiting(), "SELECT COUNT(*) FROM sqlite_master")
    assert len(tries) == 1


def test_names_of_a_damaged_file_are_told_as_damage(path):
    """Bytes that are no text come from no ledger of ours."""
    with pytest.raises(InvalidStudy, match="ledger must be a whole ledger file"), sqlite._translating_errors(path, None):
        b"\xff".decode()


def test_who_waits_with_a_charge_is_told_that_it_stands(ledger):
    """Another thread writes for too long."""
    store = ledger._store
    with store._alone(0.0):
        with pytest.raises(LedgerBusy, match="nothing was spent"), store.writing(patience=0.0):
            pytest.fail("let in")
        with pytest.raises(Failed, match=f"busy for too long; {NONE}"), store.writing(patience=0.0, charged=NONE):
            pytest.fail("let in")


class Lost:
    """A cursor whose transaction the database has ended."""

    def execute(self, statement, *_):
        if statement != "SAVEPOINT one":
            raise sqlite3.OperationalError("no such savepoint: one")


@pytest.mark.parametrize(("raised", "told"), [(KeyboardInterrupt, KeyboardInterrupt), (ValueError, ChangeUndone)])
def test_a_part_whose_change_is_gone(raised, told):
    """An interrupt stays one; anything else says that nothing of the change is left."""
    with pytest.raises(told), Page(Lost(), {}).savepoint():
        raise raised


# ---- the witness ---------------------------------------------------------------------------------------------------------


def test_a_witness_that_is_replaced_while_it_is_opened(tmp_path, monkeypatch):
    """It is seen under the lock, and what is remembered goes into the file that has the name."""
    place = tmp_path / "a.head"
    witness.make(place, "one", 0, "a", replace=False)
    slots, real = WitnessSlots(place, "one"), WitnessSlots._open

    def late(own):
        handle = real(own)
        if not late.done:
            late.done = True
            witness.make(place, "one", 3, "c", replace=True)
        return handle

    late.done = False
    monkeypatch.setattr(WitnessSlots, "_open", late)
    slots.remember(4, "d")
    slots.close()

    assert recall(place) == WitnessedHead("one", Head(4, "d"))
    assert {witness.read_slot(place.read_bytes()[at:][:SLOT]).head.sequence for at in (0, SLOT)} == {3, 4}


def test_a_witness_of_version_1_that_another_process_renewed(tmp_path, monkeypatch):
    """Who waited for the lock finds two slots, and does not write over them."""
    place = tmp_path / "a.head"
    place.write_bytes(b'{"version": 1, "ledger": "one", "sequence": 3, "hash": "abc"}\n')
    real, done = witness._locked, []

    @contextlib.contextmanager
    def late(handle):
        with real(handle):
            if not done:
                done.append(True)
                witness.make(place, "one", 5, "def", replace=True)
            yield

    monkeypatch.setattr(witness, "_locked", late)
    slots = WitnessSlots(place, "one")
    slots.remember(4, "abd")
    slots.close()

    assert recall(place) == WitnessedHead("one", Head(5, "def"))


def test_what_is_no_file_is_no_witness(tmp_path):
    """It is refused where it is read, and says nothing where it is looked at."""
    place = tmp_path / "a.head"
    place.mkdir()
    with pytest.raises(InvalidStudy, match="the ledger's witness must be a readable file"):
        recall(place)
    assert WitnessSlots(place, "one").look() is None


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (slot_of("one", 3, "a") + slot_of("one", 4, "b"), Head(4, "b")),
        (slot_of("one", 5, "a") + b"?" * SLOT, Head(5, "a")),
        (slot_of("one", 5, "a") + slot_of("two", 9, "b"), Head(5, "a")),
        (b"?" * 2 * SLOT, None),
        (2 * slot_of("one", -1, ""), None),
    ],
    ids=["newer", "torn", "another's", "both torn", "made anew"],
)
def test_what_is_seen_at_a_look(content, seen, tmp_path):
    """The newest of what can be read, and of no other ledger; a look makes no file."""
    place = tmp_path / "a.head"
    slots = WitnessSlots(place, "one")
    assert slots.look() is None
    assert not place.exists()
    place.write_bytes(content)
    assert slots.look() == seen
    slots.close()


def test_what_the_witness_saw_of_others_stands_in_the_ledger(path, monkeypatch):
    """Two who write by turns: each looks for what the other one brought to the witness, and finds it."""
    with reopen(path) as first, reopen(path) as second:
        for turn in range(6):
            (first, second)[turn % 2].reserve(request(epsilon="0.1"))
        assert first.head.sequence == 6
        looked = []
        monkeypatch.setattr(Page, "at", lambda *given: looked.append(given))
        second._own_writer.do(Reserve(request(epsilon="0.1")))
        assert not looked, "what is last is known without another look"
