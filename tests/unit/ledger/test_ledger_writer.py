"""One writer for many askers: whole batches, each judged by itself, told when they are on disk."""
# ruff: noqa: SLF001 -- a batch is put together by hand, where threads would do it by luck

from __future__ import annotations

import contextlib
import dis
import fcntl
import hashlib
import itertools
import sqlite3
import sys
import threading
import time
from fractions import Fraction

import pytest
from ledgers import ask, create, reopen, request

from curador.errors import BudgetExceeded, Failed, InvalidParameter, InvalidStudy, LedgerBusy
from curador.ledger import witness
from curador.ledger import writer as writing
from curador.ledger.acts import Act, Change, Reserve, Serve, Settle
from curador.ledger.amounts import NOTHING
from curador.ledger.entry import EntryKind, new_id
from curador.ledger.store import OutcomeUnknown
from curador.ledger.witness import recall, witness_of
from curador.ledger.writer import Waiter

LONG = 1e9  # seconds, by any clock


@pytest.fixture
def path(tmp_path):
    create(tmp_path / "a.ledger").close()
    return tmp_path / "a.ledger"


@pytest.fixture
def ledger(path):
    with reopen(path) as opened:
        yield opened


def test_a_free_answer_that_rides_with_a_refusal_charges_nobody(ledger):
    """The ledger is an entry longer, which costs nothing; sums, the state and the refusal are as without it."""
    asked = request(epsilon="0.1")
    ask(ledger, asked)
    before, spent = ledger.last, ledger.spent()
    ledger.served(ledger.stored(asked.question_key, 1), "ana")

    with pytest.raises(BudgetExceeded):
        ledger.reserve(request(epsilon="2", analyst="bob"))

    (line,) = ledger.entries(before.sequence + 1)
    assert (line.kind, line.analyst, line.amounts) == (EntryKind.SERVED, "ana", NOTHING)
    assert line.after == before.after
    assert ledger.spent() == spent
    assert ledger.spent("bob") == NOTHING
    assert recall(witness_of(ledger.path)).head == ledger.head
    ledger.verify()


def tickets(*acts):
    return [Waiter(act, LONG) for act in acts]


def write(ledger, *acts):
    """Write the acts as one batch; return what became of each."""
    batch = tickets(*acts)
    ledger._own_writer.write(batch)
    return [one.error or one.outcome for one in batch]


def steps(ledger, monkeypatch):
    """Return what happens at the disk, in its order."""
    seen, store, mirror = [], ledger._store, ledger._mirror.remember
    real = store.writing

    def watched(**options):
        class Block:
            def __enter__(self):
                self.block = real(**options)
                return self.block.__enter__()

            def __exit__(self, *error):
                self.block.__exit__(*error)
                seen.append("commit")

        return Block()

    monkeypatch.setattr(store, "writing", watched)
    monkeypatch.setattr(ledger._own_writer, "_mirror", lambda *head: (mirror(*head), seen.append("witness")))
    return seen


def test_a_batch_is_one_transaction_and_one_witness(ledger, path, monkeypatch):
    """Ten charges, ten entries, one commit, one witness, which is at the last of them."""
    seen = steps(ledger, monkeypatch)
    done = write(ledger, *(Reserve(request(epsilon="0.05")) for _ in range(10)))

    assert seen == ["commit", "witness"]
    assert [one.entry.sequence for one in done] == list(range(1, 11))
    assert recall(witness_of(path)).head == ledger.head
    ledger.verify()


def test_each_is_judged_after_the_other(ledger):
    """Of three thirds and a half, in one batch: the half does not fit any more, and only it is refused."""
    third = ledger.limits.share(Fraction(1, 3)).epsilon
    done = write(ledger, *(Reserve(request(epsilon=one)) for one in (third, third, "1/2", third)))

    assert [type(one).__name__ for one in done] == ["Spent", "Spent", "BudgetExceeded", "Spent"]
    assert isinstance(done[2], BudgetExceeded)
    assert ledger.spent().epsilon == 3 * third


class Poisoned(Act):
    """Writes something, and breaks."""

    id = "poison"

    def __init__(self, error):
        self.error = error

    def perform(self, page, head, limits, *, again):
        Reserve(request(epsilon="0.1")).perform(page, head, limits, again=again)
        if isinstance(self.error, str):
            page.cursor.execute(self.error)
        raise self.error


@pytest.mark.parametrize(
    "poison",
    [
        TypeError("a bug"),
        RecursionError(),
        InvalidParameter("refused."),
        "UPDATE total SET epsilon = epsilon_limit || '9'",
        "DELETE FROM entry",
        "SELECT nonsense",
    ],
    ids=str,
)
def test_what_one_breaks_is_its_own(poison, ledger):
    """A poisoned request leaves nothing behind and is told so; who stood before and behind it is served."""
    first, wrong, last = write(ledger, Reserve(request(epsilon="0.1")), Poisoned(poison), Reserve(request(epsilon="0.2")))

    assert isinstance(wrong, InvalidStudy if isinstance(poison, str) else type(poison))
    assert (first.entry.sequence, last.entry.sequence) == (1, 2)
    assert ledger.spent().epsilon == Fraction(3, 10)
    ledger.verify()


class OverTheEdge(Act):
    """Fails as a statement does for which the disk has no room: SQLite ends the whole transaction itself."""

    id = "edge"

    def perform(self, page, head, limits, *, again):
        Reserve(request(epsilon="0.1")).perform(page, head, limits, again=again)
        _no_room(self, page)


def test_what_takes_back_the_whole_change_is_its_own_too(ledger, monkeypatch):
    """Whoever stood in the same batch is judged anew, in one change: told and on disk are the same."""
    reserved = ledger.reserve(request(epsilon="0.1"))
    seen = steps(ledger, monkeypatch)
    settled, first, wrong, last = write(
        ledger,
        Settle(EntryKind.FAILED, reserved.entry, note="n"),
        Reserve(request(epsilon="0.1")),
        OverTheEdge(),
        Reserve(request(epsilon="0.2")),
    )

    assert isinstance(wrong, Failed)
    assert "could not be written; nothing was released" in str(wrong)
    assert [settled.sequence, first.entry.sequence, last.entry.sequence] == [2, 3, 4]
    assert seen.count("witness") == 1
    assert ledger.spent().epsilon == Fraction(4, 10)
    assert recall(witness_of(ledger.path)).head == ledger.head
    ledger.verify()


def test_a_count_that_takes_back_the_whole_change(ledger, monkeypatch):
    """Nobody's act did it: all are told that nothing was written, and it is tried again."""
    stored = ledger.stored(ask(ledger, request(epsilon="0.1")).question_key, 1)
    ledger.served(stored, "ana")
    with monkeypatch.context() as patch:
        patch.setattr(Serve, "perform", _no_room)
        (told,) = write(ledger, Reserve(request(epsilon="0.1")))
    assert isinstance(told, Failed)
    assert ledger.spent().epsilon == Fraction(1, 10)
    ledger.reserve(request(epsilon="0.1"))
    assert ledger.last.kind is EntryKind.SERVED


def _no_room(_, page, *__, **___):
    page.cursor.execute("ROLLBACK")
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    raise error


def test_settlements_come_first(ledger):
    """Whoever came earlier: a charge never waits in front of an answer."""
    reserved = ledger.reserve(request(epsilon="0.1"))
    batch = tickets(
        Reserve(request(epsilon="0.1")), Settle(EntryKind.FAILED, reserved.entry, note="n"), Reserve(request(epsilon="0.1"))
    )
    own = ledger._own_writer
    own._waiting.extend(batch)
    taken = own._take()
    own.write(taken)

    assert [one.act for one in taken] == [batch[1].act, batch[0].act, batch[2].act]
    assert [one.kind.value for one in ledger.entries(2)] == ["failed", "reserved", "reserved"]


def test_an_act_that_is_tried_again_is_done_once(ledger):
    """By its id: a charge, an answer and an owner's act have the outcome that they had."""
    asked = Reserve(request(epsilon="0.25", analyst="ana"))
    (first,) = write(ledger, asked)
    assert ledger.reserve(asked.request, id=asked.id) == first
    settle = Settle(EntryKind.COMMITTED, first.entry, b"42", "d", hashlib.sha256(b"42").hexdigest())
    (done,) = write(ledger, settle)
    again = Waiter(settle, LONG, again=True)
    ledger._own_writer.write([again])
    assert again.outcome == done
    version, act = ledger.data_version, Change(lambda _, head: _refreshed(head))
    for _ in range(2):
        ledger._own_writer.write([Waiter(act, LONG, again=True)])

    assert ledger.data_version == version + 1
    assert ledger.spent().epsilon == Fraction(1, 4)
    assert ledger.outcome(asked.id) == first.entry
    assert ledger.outcome(new_id()) is None


def _refreshed(head):
    from dataclasses import replace

    from curador.ledger.entry import State, next_entry

    after = State(head.after.spent, head.after.data_version + 1, 0)
    return replace(next_entry(head, EntryKind.REFRESHED), data_version=after.data_version, after=after, note="new")


def test_nothing_is_told_before_the_witness(ledger, monkeypatch):
    """Neither an outcome nor a refusal: when the witness is written, nobody knows anything."""
    batch = tickets(Reserve(request(epsilon="0.5")), Reserve(request(epsilon="0.6")))
    known = []
    mirror = ledger._mirror.remember
    monkeypatch.setattr(
        ledger._own_writer, "_mirror", lambda *head: (known.append([one.done for one in batch]), mirror(*head))
    )
    ledger._own_writer.write(batch)

    assert known == [[False, False]]
    assert isinstance(batch[1].error, BudgetExceeded)


def test_a_witness_that_cannot_be_written(ledger, monkeypatch):
    """Everybody whose charge is on disk is told that it is kept; who was refused is refused."""

    def broken(*_):
        raise OSError("no space")

    monkeypatch.setattr(ledger._own_writer, "_mirror", broken)
    first, second = write(ledger, Reserve(request(epsilon="0.5")), Reserve(request(epsilon="0.6")))

    assert isinstance(first, Failed)
    assert "the charge is kept and nothing was released" in str(first)
    assert isinstance(second, BudgetExceeded)
    assert ledger.spent().epsilon == Fraction(1, 2)


def test_a_commit_that_fails_is_told_to_all(ledger, monkeypatch):
    """Each its own error; a refusal that rested on what was rolled back is not told; nothing was charged."""
    reserved = ledger.reserve(request(epsilon="0.1"))
    real = ledger._store.writing

    def full(**options):
        class Block:
            def __enter__(self):
                self.block = real(**options)
                return self.block.__enter__()

            def __exit__(self, *_):
                error = Failed("the ledger could not be written; nothing was released.")
                self.block.__exit__(type(error), error, None)
                raise error

        return Block()

    with monkeypatch.context() as patch:
        patch.setattr(ledger._store, "writing", full)
        settled, first, second = write(
            ledger,
            Settle(EntryKind.FAILED, reserved.entry, note="n"),
            Reserve(request(epsilon="0.8")),
            Reserve(request(epsilon="0.7")),
        )
    assert {type(one) for one in (settled, first, second)} == {Failed}
    assert "the charge is kept" in str(settled)
    assert len({id(one) for one in (settled, first, second)}) == 3
    assert ledger.spent().epsilon == Fraction(1, 10)
    ledger.commit(reserved, answer=b"a", answer_digest="d")


def test_who_loses_patience_is_told_that_nothing_was_spent(ledger, path):
    """The file is held by somebody else: a charge is refused when its patience ends, a settlement waits longer."""
    reserved = ledger.reserve(request(epsilon="0.1"))
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    now = time.monotonic()
    batch = [
        Waiter(Settle(EntryKind.FAILED, reserved.entry, note="n"), now + 30),
        Waiter(Reserve(request(epsilon="0.1")), now + 0.05),
    ]
    let_go = threading.Timer(0.3, lambda: holder.execute("ROLLBACK"))
    let_go.start()
    ledger._own_writer.write(batch)
    let_go.join()
    holder.close()

    assert isinstance(batch[1].error, LedgerBusy)
    assert "nothing was spent" in str(batch[1].error)
    assert batch[0].outcome.kind is EntryKind.FAILED


def test_many_threads_share_few_commits(ledger, path, monkeypatch):
    """Whoever comes while another one writes is in the next batch; all are served, and none of them twice."""
    seen, barrier, done = steps(ledger, monkeypatch), threading.Barrier(16), []

    def spend():
        barrier.wait()
        done.extend([ask(ledger, request(epsilon="0.001")) for _ in range(10)])

    threads = [threading.Thread(target=spend) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({one.id for one in done}) == 160
    assert ledger.head.sequence == 320
    assert seen.count("commit") < 320
    assert ledger.spent().epsilon == Fraction(16, 100)
    ledger.verify()


def test_an_interrupt_is_nobody_elses(ledger, monkeypatch):
    """The one who leads is interrupted in the middle: the others are written by the next, once, and know it."""
    own = ledger._own_writer
    real, broken = own._write, []

    def interrupted(batch, patience):
        if not broken:
            broken.append(True)
            real(batch[:1], patience)  # the first is on disk, and nobody was told
            batch[0].done = False
            raise KeyboardInterrupt
        real(batch, patience)

    monkeypatch.setattr(own, "_write", interrupted)
    other = Waiter(Reserve(request(epsilon="0.1")), LONG)
    own._waiting.append(other)  # in front: what the one who leads wrote first was this one's
    with pytest.raises(KeyboardInterrupt):
        ledger.reserve(request(epsilon="0.2"))
    assert own._leader is other
    own._lead(other)
    own._leave(other)

    assert other.outcome.entry.sequence == 1
    assert ledger.spent().epsilon == Fraction(1, 10)
    assert own._leader is None


def _steps_of(code):
    """Where CPython looks for signals: after a call, at the beginning of a function, at a jump back."""
    found = list(dis.get_instructions(code))
    return {
        after.offset: before.opname.startswith(("CALL", "RESUME", "JUMP_BACKWARD"))
        for before, after in itertools.pairwise(found)
    }


class Interrupts:
    """Interrupts one thread at the n-th place where that can be; `came` says whether there was such a place."""

    def __init__(self, number):
        self.left, self.came, self.known = number, False, {}

    def __call__(self, frame, _event, _argument):
        if frame.f_code.co_filename != writing.__file__:
            return None
        frame.f_trace_opcodes = True
        return self.step

    def step(self, frame, event, _argument):
        steps = self.known.setdefault(frame.f_code, _steps_of(frame.f_code))
        if event == "opcode" and steps.get(frame.f_lasti):
            self.left -= 1
            if self.left == 0:
                self.came = True
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.step


def _asked_with_an_interrupt(own, number):
    """Ask, interrupted at a place; return whether there was such a place."""
    interrupts, before = Interrupts(number), sys.gettrace()
    sys.settrace(interrupts)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            own.do(writing._Nothing(), patience=1.0)
    finally:
        sys.settrace(before)
    return interrupts.came


@pytest.mark.slow
def test_an_interrupt_anywhere_leaves_nobody_waiting(ledger):
    """Wherever a Ctrl-C comes: nobody leads who is gone, no act is left behind, and the next one is served."""
    own, number = ledger._own_writer, 0
    while _asked_with_an_interrupt(own, number := number + 1):
        assert not own._lock.locked(), number
        assert own._leader is None, number
        assert not own._waiting, number
    assert number > 50, "it is a way of many steps"
    ledger.reserve(request(epsilon="0.1"))


class Interrupting:
    """A lock at which so many are interrupted, when they take it or when they have it."""

    def __init__(self, lock, places):
        self.lock, self.places, self.entered = lock, set(places), 0

    def __enter__(self):
        self.entered += 1
        if self.entered in self.places:
            raise KeyboardInterrupt
        return self.lock.__enter__()

    def __exit__(self, *error):
        return self.lock.__exit__(*error)


@pytest.mark.parametrize("inside", [False, True], ids=["before it lets go", "while it lets go"])
def test_who_is_interrupted_when_it_goes_is_gone(inside, ledger, monkeypatch):
    """What it does when it goes is done once more: who waits behind it leads."""
    own, real, times = ledger._own_writer, ledger._own_writer._let_go, []
    behind = Waiter(Reserve(request(epsilon="0.2")), LONG)

    def act(page, head, limits, *, again):  # while the first one is written
        own._waiting.append(behind)

    def let_go(ticket):
        times.append(ticket)
        if inside and len(times) == 1:
            raise KeyboardInterrupt
        real(ticket)

    monkeypatch.setattr(own, "_let_go", let_go)
    if not inside:
        monkeypatch.setattr(own, "_lock", Interrupting(own._lock, [4]))  # to wait, to take, to write; to go
    with pytest.raises(KeyboardInterrupt):
        own.do(Change(lambda page, head: act(page, head, None, again=False)))
    assert own._leader is behind
    assert behind.told.is_set()
    own._lead(behind)
    own._leave(behind)
    assert own._leader is None
    assert ledger.spent().epsilon == Fraction(1, 5)


def test_who_is_given_back_twice_waits_once(ledger):
    """Giving back may be interrupted, and is done again."""
    own, one = ledger._own_writer, Waiter(Reserve(request(epsilon="0.1")), LONG)
    own._put_back([one])
    own._put_back([one])
    assert list(own._waiting) == [one]
    assert one.again
    own._waiting.clear()


def test_who_loses_patience_with_an_outcome_that_nobody_knows(ledger, monkeypatch):
    """It is told so, and not that nothing was spent; who still waits finds what was written."""
    own, real, lost = ledger._own_writer, ledger._own_writer._write, []

    def write(batch, patience):
        real(batch, patience)
        if not lost:
            lost.append(True)
            for one in batch:
                one.done = False
            raise OutcomeUnknown("nobody knows.")

    monkeypatch.setattr(own, "_write", write)
    patient = Waiter(Reserve(request(epsilon="0.1")), LONG)
    hasty = Waiter(Reserve(request(epsilon="0.2")), 0.0)
    own.write([patient, hasty])

    assert isinstance(hasty.error, Failed)
    assert "nothing was spent" not in str(hasty.error)
    assert patient.again
    assert patient.outcome.entry.amounts.epsilon == Fraction(1, 10)
    assert ledger.head.sequence == 2


def test_who_is_interrupted_when_it_is_to_lead_lets_the_next_one(ledger, monkeypatch):
    """It waited, was handed the lead, and went away: who stands behind it leads."""
    own = ledger._own_writer
    own._leader = first = Waiter(Reserve(request(epsilon="0.1")), LONG)
    behind = Waiter(Reserve(request(epsilon="0.2")), LONG)

    def interrupted(ticket):
        own._waiting.append(behind)
        own._leave(first)
        assert own._leader is ticket
        raise KeyboardInterrupt

    monkeypatch.setattr(own, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        own.do(Reserve(request(epsilon="0.3")))
    assert own._leader is behind
    assert behind.told.is_set()
    own._lead(behind)
    own._leave(behind)
    assert own._leader is None
    assert ledger.spent().epsilon == Fraction(1, 5)


def test_an_id_of_another_request_has_no_outcome_for_this_one(ledger):
    """Neither its charge, which was another one, nor the end of one: what returns is on disk as it was asked."""
    asked = Reserve(request(epsilon="0.01"))
    first = ledger.reserve(asked.request, id=asked.id)
    done = ledger.commit(first, answer=b"a", answer_digest="d")
    for other in (asked.id, done.id):
        with pytest.raises(InvalidParameter, match="id must be that of the request it was first given with"):
            ledger.reserve(request(epsilon="0.9"), id=other)
    assert ledger.reserve(asked.request, id=asked.id).entry == first.entry
    assert ledger.spent().epsilon == Fraction(1, 100)


def test_who_gives_up_in_the_queue_has_spent_nothing(ledger):
    """Not taken by anybody when its patience ends: refused as busy, and never written."""
    own = ledger._own_writer
    own._leader = Waiter(Reserve(request(epsilon="0.1")), LONG)  # somebody leads, and hangs
    with pytest.raises(LedgerBusy, match="nothing was spent"):
        own.do(Reserve(request(epsilon="0.1")), patience=0.01)
    own._leader = None

    assert not own._waiting
    assert ledger.head.sequence == 0


def test_who_was_taken_and_hears_nothing_is_not_told_that_nothing_was_spent(ledger, monkeypatch):
    """The one who leads hangs with it: what became of it is not known, and that is what is said."""
    monkeypatch.setattr(writing, "SETTLING", 0.01)
    own = ledger._own_writer
    own._leader = Waiter(Reserve(request(epsilon="0.1")), LONG)
    taken = threading.Timer(0.02, own._take)
    taken.start()
    with pytest.raises(Failed, match="did not say what became of the request; the charge may be kept"):
        own.do(Reserve(request(epsilon="0.1")), patience=0.2)
    taken.join()
    own._leader = None


# ---- answers given again -------------------------------------------------------------------------------------------------


def given(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT holder, day, number FROM again ORDER BY line").fetchall()
    finally:
        connection.close()


def test_a_free_answer_is_not_waited_for(ledger, path, monkeypatch):
    """It leaves before its line is on disk; the line goes with the next write, whoever makes it."""
    stored = ledger.stored(ask(ledger, request(epsilon="0.1")).question_key, 1)
    seen = steps(ledger, monkeypatch)
    ledger.served(stored, "ana")
    assert seen == []
    assert ledger.head.sequence == 2
    ledger.reserve(request(epsilon="0.1"))

    assert seen == ["commit", "witness"]
    assert [one.kind.value for one in ledger.entries(3)] == ["reserved", "served"]


def test_a_line_has_a_number(ledger, path):
    """A thousand free answers of one question to one asker on one day: one entry, whatever was written in between."""
    stored = ledger.stored(ask(ledger, request(epsilon="0.1")).question_key, 1)
    for turn in range(1000):
        ledger.served(stored, "ana", asked="2026-01-01T00:00:00+00:00")
        if turn == 500:
            ledger.refresh("new")
    ledger.served(stored, None, asked="2026-01-01T00:00:00+00:00")
    ledger.served(stored, "ana", asked="2026-01-02T00:00:00+00:00")
    lines = [one for one in ledger.entries() if one.kind is EntryKind.SERVED]

    assert len(lines) == 3
    assert sorted(given(path)) == [
        ("analyst:ana", "2026-01-01", 1000),
        ("analyst:ana", "2026-01-02", 1),
        ("owner", "2026-01-01", 1),
    ]
    assert [ledger.given_again().get(one.id) for one in lines if one.analyst == "ana"] == [1000, None]
    ledger.verify()


def test_closing_writes_what_was_counted(path):
    """And a process that is killed loses nothing but the number."""
    with reopen(path) as ledger:
        stored = ledger.stored(ask(ledger, request(epsilon="0.1")).question_key, 1)
        for _ in range(3):
            ledger.served(stored, "ana")
    assert [number for *_, number in given(path)] == [3]


def test_many_lines_are_written_before_they_are_too_many(ledger, path, monkeypatch):
    """What waits in memory is bounded, in number and in time."""
    stored = ledger.stored(ask(ledger, request(epsilon="0.1")).question_key, 1)
    monkeypatch.setattr(writing, "MOST_COUNTED", 3)
    for name in "abc":
        ledger.served(stored, name)
    assert len(given(path)) == 3
    monkeypatch.setattr(writing, "LONGEST_COUNTED", -1.0)
    ledger.served(stored, "d")
    assert len(given(path)) == 4


def test_a_free_answer_waits_for_nobody(ledger, path, monkeypatch):
    """Its lines are late, and the ledger is busy: it leaves all the same, and asks no more often than before."""
    stored = ledger.stored(ask(ledger, request(epsilon="0.1")).question_key, 1)
    monkeypatch.setattr(writing, "LONGEST_COUNTED", -1.0)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    for _ in range(3):
        ledger.served(stored, "ana")
    holder.execute("ROLLBACK")
    holder.close()
    assert given(path) == []
    ledger.served(stored, "ana")
    assert [number for *_, number in given(path)] == [4]


def test_what_may_be_on_disk_is_not_counted_again(ledger, path, monkeypatch):
    """A commit of which nobody knows: a line that is lost is better than one that counts twice."""
    stored = ledger.stored(ask(ledger, request(epsilon="0.1")).question_key, 1)
    ledger.served(stored, "ana")
    real, lost = ledger._store.writing, []

    @contextlib.contextmanager
    def writes(**options):
        with real(**options) as page:
            yield page
        if not lost:
            lost.append(True)
            raise OutcomeUnknown("lost.")

    monkeypatch.setattr(ledger._store, "writing", writes)
    asked = Reserve(request(epsilon="0.1"))
    ledger.reserve(asked.request, id=asked.id)
    assert [number for *_, number in given(path)] == [1]
    assert ledger.spent().epsilon == Fraction(1, 5)


def test_what_was_counted_survives_a_write_that_fails(ledger, path, monkeypatch):
    """The number is counted again with the next write."""
    stored = ledger.stored(ask(ledger, request(epsilon="0.1")).question_key, 1)
    ledger.served(stored, "ana")
    with monkeypatch.context() as patch:
        patch.setattr(ledger._store, "tip", None)
        patch.setattr(
            "curador.ledger.store.Page.tip", lambda _: (_ for _ in ()).throw(sqlite3.OperationalError("disk I/O error"))
        )
        with pytest.raises((Failed, InvalidStudy)):
            ledger.reserve(request(epsilon="0.1"))
    ledger.served(stored, "ana")
    ledger.reserve(request(epsilon="0.1"))

    assert [number for *_, number in given(path)] == [2]


def test_a_witness_that_somebody_holds_is_given_up(path, monkeypatch):
    """Whoever stands still with it: the charge is kept and told; who opens is told that it is busy, or that it broke."""
    monkeypatch.setattr(witness, "PATIENCE", 0.0)
    with reopen(path) as ledger:
        with witness_of(path).open("r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(Failed, match="witness could not be written; the charge is kept"):
                ledger.reserve(request(epsilon="0.1"))
            with pytest.raises(LedgerBusy, match="another process holds its witness"):
                reopen(path)
        with monkeypatch.context() as patch:
            patch.setattr(witness.WitnessSlots, "remember", lambda *_: (_ for _ in ()).throw(OSError(5, "broken")))
            with pytest.raises(InvalidStudy, match="witness must be a file that can be written"):
                reopen(path)
        ledger.reserve(request(epsilon="0.1"))
        ledger.verify()
