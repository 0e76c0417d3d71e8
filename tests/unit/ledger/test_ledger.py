"""The ledger: charges before data, keeps what was charged, refuses what does not fit."""

from __future__ import annotations

import contextlib
import math
import shutil
import sqlite3
import stat
import threading
from fractions import Fraction

import pytest
from ledgers import BOTH, PURE, ask, create, everything, key_of, reopen, request

from curador.errors import (
    BudgetExceeded,
    Failed,
    InvalidParameter,
    InvalidStudy,
    LedgerBusy,
    NotAllowed,
    NotPrivate,
    Refused,
)
from curador.ledger import entry as entries
from curador.ledger import sqlite, witness
from curador.ledger.amounts import NOTHING, Amounts
from curador.ledger.opening import read_marker
from curador.ledger.sqlite import SQLiteStore
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE
from curador.privacy.losses import Concentrated, DiscreteGaussianLoss, Finite, Pure
from curador.study.model import Budget

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def eps(amount):
    return Amounts(Fraction(amount))


@pytest.fixture(scope="module")
def empty(memory):
    """An empty ledger of each kind, made once: copying is cheaper than making."""
    folder = memory()
    for name, budget in (("pure", PURE), ("both", BOTH)):
        create(folder / f"{name}.ledger", budget).close()
    return folder


def copy(source, target):
    for suffix in ("", ".head"):
        shutil.copy(f"{source}{suffix}", f"{target}{suffix}")


@pytest.fixture
def path(empty, tmp_path):
    copy(empty / "pure.ledger", tmp_path / "a.ledger")
    return tmp_path / "a.ledger"


@pytest.fixture
def ledger(path):
    with reopen(path) as opened:
        yield opened


@pytest.fixture
def both(empty, tmp_path):
    copy(empty / "both.ledger", tmp_path / "both.ledger")
    with reopen(tmp_path / "both.ledger", BOTH) as opened:
        yield opened


# ---- spending -----------------------------------------------------------------------------------------------------------


def test_the_way_of_one_question(ledger, path):
    """Reserved, committed, stored, served: one charge, four entries, all of it there after reopening."""
    asked = request(epsilon="1/4", analyst="ana", share=HALF)
    reservation = ledger.reserve(asked)
    assert (reservation.before, reservation.after, reservation.limit) == (NOTHING, eps("1/4"), eps("1/2"))
    assert ledger.spent() == ledger.spent("ana") == eps("1/4")
    assert ledger.stored(asked.question_key, 1) is None

    done = ledger.commit(reservation, answer=b"42", answer_digest="digest")
    stored = ledger.stored(asked.question_key, 1)
    again = ledger.served(stored, "eva")
    line = list(ledger.entries())[-1]

    assert (stored.answer, stored.entry, stored.tables) == (b"42", done, ("visits",))
    assert [one.kind.value for one in ledger.entries()] == ["created", "reserved", "committed", "served"]
    assert (done.refers, done.answer_digest, done.losses, done.question) == (
        reservation.id,
        "digest",
        asked.losses,
        asked.question,
    )
    assert (line.analyst, line.amounts, line.refers, line.answer_digest) == ("eva", NOTHING, done.id, "digest")
    assert (again.kind, again.analyst, again.amounts, again.id) == ("served", "eva", NOTHING, reservation.id)
    assert again.hash == reservation.entry.hash
    assert again.after == line.after
    assert ledger.spent() == eps("1/4")
    assert ledger.spent("eva") == ledger.spent(None) == NOTHING
    before = everything(ledger)
    ledger.close()
    with reopen(path) as opened:
        assert everything(opened) == before
        opened.verify()


def test_the_limit_holds_to_the_tick(ledger):
    """Three thirds fit exactly as grants; one tick more is refused, with what is left and what would fit."""
    third = ledger.limits.share(THIRD)
    for _ in range(3):
        ledger.reserve(request(epsilon=third.epsilon))
    left = ledger.left(None)
    assert left == ledger.limits.total - third - third - third
    with pytest.raises(BudgetExceeded, match=r"epsilon must be at most 1e-18, what is left of the study's budget \(1\)"):
        ledger.reserve(request(epsilon=2 * left.epsilon))
    ledger.reserve(request(epsilon=left.epsilon))
    with pytest.raises(BudgetExceeded, match=r"at most 0, .*\nHint: too little is left"):
        ledger.reserve(request(epsilon="1e-18"))
    assert ledger.left(None) == NOTHING


def test_twenty_times_five_percent(both):
    """Of ρ and of the δ of keys, by an analyst with a share: all twenty fit, a twenty-first does not."""
    grant, share = both.limits.share(Fraction(1, 7) / 20), Fraction(1, 7)
    cost = {"rho": grant.rho, "delta": grant.delta, "analyst": "ana", "share": share}
    for _ in range(20):
        both.reserve(request(**cost))
    with pytest.raises(BudgetExceeded, match="your share"):
        both.reserve(request(**cost))
    assert both.spent("ana").within(both.limits.share(share))


def test_what_would_fit_fits(ledger):
    """The share that a refusal names can be spent."""
    ledger.reserve(request(epsilon="0.4321"))
    with pytest.raises(BudgetExceeded, match=r'spend="56\.79%" or less would fit'):
        ledger.reserve(request(epsilon="0.6"))
    ledger.reserve(request(epsilon="0.5679"))


def test_shares_are_quotas_inside_one_budget(ledger):
    """Shares may add up to more than everything: the study's limit still holds; one analyst cannot take another's."""
    ledger.reserve(request(epsilon="0.8", analyst="ana", share=Fraction(8, 10)))
    with pytest.raises(BudgetExceeded, match=r"at most 0, what is left of your share \(0\.8\)"):
        ledger.reserve(request(epsilon="0.1", analyst="ana", share=Fraction(8, 10)))
    assert ledger.left("eva", Fraction(8, 10)) == eps("0.2")
    with pytest.raises(BudgetExceeded, match=r"what is left of the study's budget \(1\); got 0\.3.*\n.*25%"):
        ledger.reserve(request(epsilon="0.3", analyst="eva", share=Fraction(8, 10)))
    ledger.reserve(request(epsilon="0.2", analyst="eva", share=Fraction(8, 10)))
    assert ledger.spent() == eps(1)
    assert ledger.left("ana", HALF) == NOTHING  # a share that was made smaller since


def test_rho_and_delta_both_count(both):
    """ρ within its limit does not buy δ beyond its own, nor the reverse."""
    total = both.limits.total
    with pytest.raises(BudgetExceeded, match=r"delta must be at most 5e-7.*\n.*declared values cost no delta"):
        both.reserve(request(rho="1e-6", delta=total.delta + Fraction(1, 10**30)))
    with pytest.raises(BudgetExceeded, match=r"rho must be at most 0\.0229374, .* got 0\.0229375"):
        both.reserve(request(rho=total.rho + Fraction(1, 10**18)))
    both.reserve(request(rho=total.rho, delta=total.delta))
    assert both.left(None) == NOTHING
    assert both.spent() == total


def test_nothing_is_given_back_but_what_never_ran(ledger, path):
    """A failure keeps its charge; a void gives it back once, in the session that made it, never after a restart."""
    first, second, third = (ledger.reserve(request(epsilon="0.3", analyst="ana")) for _ in range(3))
    failed = ledger.fail(first, incident="f00")
    assert failed.note == "incident f00; outside the guarantee: at most 1 bit"
    ledger.void(second)
    assert ledger.spent() == ledger.spent("ana") == eps("0.6")
    for act in (
        ledger.void,
        lambda one: ledger.fail(one, incident="x"),
        lambda one: ledger.commit(one, answer=b"", answer_digest="d"),
    ):
        for settled in (first, second):
            with pytest.raises(InvalidParameter, match="reservation must be an open one"):
                act(settled)
    ledger.close()
    with reopen(path) as opened:
        with pytest.raises(InvalidParameter, match="this session"):
            opened.void(third)
        assert opened.spent() == eps("0.6")
        opened.commit(third, answer=b"", answer_digest="d")
        opened.verify()


def test_an_open_reservation_stays_charged(ledger, path):
    """A crash between reserve and commit: the charge is there on reopening, and no answer is."""
    asked = request(epsilon="0.3")
    ledger.reserve(asked)
    ledger.close()
    with reopen(path) as opened:
        assert opened.spent() == opened.spent(None) == eps("0.3")
        assert opened.stored(asked.question_key, 1) is None


def test_a_stored_answer_is_free_for_those_who_may_see_it(ledger):
    """The last answer of the same question and version; none for whom a table is hidden, none on a new version."""
    asked = request(epsilon="0.1", tables=("visits", "people"))
    ask(ledger, asked, b"old")
    ask(ledger, asked, b"new")
    assert ledger.spent() == eps("0.2")
    for visible, found in ((None, True), ({"people", "visits", "x"}, True), ({"visits"}, False), ((), False)):
        assert (ledger.stored(asked.question_key, 1, visible=visible) is not None) is found
    stored = ledger.stored(asked.question_key, 1)
    assert stored.answer == b"new"
    for _ in range(3):
        ledger.served(stored, "ana")
    assert ledger.spent() == eps("0.2")
    assert ledger.stored(key_of("another"), 1) is None
    assert ledger.refresh("new rows") == ledger.data_version == 2
    assert ledger.stored(asked.question_key, 2) is None
    with pytest.raises(InvalidParameter, match=r"data_version must be the current one \(2\); got 1"):
        ledger.reserve(request(epsilon="0.1"))
    ledger.reserve(request(epsilon="0.1", data_version=2))
    assert ledger.spent() == eps("0.3")  # one budget over all versions
    ledger.verify()


def test_three_engine_failures_close_the_study(ledger):
    """To analysts, not to the owner, until the owner reopens it."""
    for number in range(3):
        assert (ledger.failures, ledger.closed) == (number, False)
        ledger.fail(ledger.reserve(request(epsilon="0.1", analyst="ana")), incident="f")
    assert (ledger.failures, ledger.closed) == (3, True)
    with pytest.raises(NotAllowed, match="closed after 3 engine failures"):
        ledger.reserve(request(epsilon="0.1", analyst="eva"))
    ask(ledger, request(epsilon="0.1"))
    ledger.reopen("the disk was full")
    assert (ledger.failures, ledger.closed) == (0, False)
    ledger.reserve(request(epsilon="0.1", analyst="eva"))
    assert [one.kind.value for one in ledger.entries(analyst="eva")] == ["reserved"]
    assert [one.note for one in ledger.entries(8, analyst=None) if one.kind == "reopened"] == ["the disk was full"]


# ---- what is refused ----------------------------------------------------------------------------------------------------

LOSS = (Pure(epsilon="0.1").to_record(),)
MALFORMED = [
    *({"amounts": bad} for bad in (0.1, "0.1", None, Fraction(1, 10), True, math.nan, {"epsilon": "1"})),
    *({"analyst": bad} for bad in ("", 7, "a" * 201, "a\nb", "\ud800")),
    *({"analyst": "ana", "share": bad} for bad in (0, 1, 0.5, Fraction(0), Fraction(-1), Fraction(2), True, "1", math.nan)),
    {"share": HALF},
    *({"losses": bad} for bad in ((), [], ({},), ({"version": 1, "kind": "Gift"},), ("x",), (None,), list(LOSS))),
    {"losses": (Pure(epsilon="0.2").to_record(),)},  # costs more than the amounts
    {"losses": (*LOSS, *LOSS)},
    {"losses": (Concentrated(rho="0.001").to_record(),)},  # no pure ε
    {"losses": (Pure(epsilon="0.1", adjacency=REPLACE_ONE).to_record(),)},
    {"losses": ({**LOSS[0], "epsilon": math.nan},)},
    *({"data_version": bad} for bad in (0, -1, 2, True, 1.0, "1")),
    *({"question_key": bad} for bad in ("", "A" * 64, "g" * 64, b"a" * 64, None)),
    *({name: bad} for name in ("study_digest", "plan_digest") for bad in ("", None, 7)),
    {"question": None},
    *({"adjacency": bad} for bad in (REPLACE_ONE, "add_or_remove_one", None)),
    *({"tables": bad} for bad in ("visits", ["visits"], (1,))),
    {"amounts": NOTHING},
    {"amounts": NOTHING, "losses": (Pure(epsilon=0).to_record(),)},
    {"amounts": Amounts(Fraction(1, 10), Fraction(1, 10))},
    {"amounts": Amounts(Fraction(1, 10), delta=Fraction(1, 10))},
    {"amounts": Amounts(rho=Fraction(1, 10))},
]


@pytest.fixture(scope="module")
def untouched(empty, memory):
    """A ledger on which nothing ever succeeds."""
    path = memory() / "a.ledger"
    copy(empty / "pure.ledger", path)
    with reopen(path) as opened:
        yield opened


@pytest.mark.parametrize("change", MALFORMED, ids=str)
def test_malformed_requests_change_nothing(change, untouched):
    """Whatever is wrong with a request, it is one clear refusal and the ledger is as it was."""
    head = untouched.head
    with pytest.raises(Refused):
        untouched.reserve(request(epsilon="0.1", **change))
    assert untouched.head == head
    assert untouched.spent() == NOTHING


@pytest.mark.parametrize("bad", [-1, -0.0, 0.5, math.nan, math.inf, -math.inf, True, "0.5", "１", None, 10**400])
def test_amounts_forged_past_their_own_check(bad, untouched):
    """Amounts that nobody checked do not add up to anything either."""
    forged = Amounts(Fraction(1, 10))
    object.__setattr__(forged, "epsilon", bad)
    head = untouched.head
    with pytest.raises(Refused):
        untouched.reserve(request(epsilon="0.1", amounts=forged))
    assert untouched.head == head


def test_an_epsilon_delta_budget_does_not_take_epsilon(both):
    """Each kind of budget counts its own amounts; a loss without zCDP is not private here."""
    with pytest.raises(InvalidParameter, match=r"amounts\.epsilon must be 0"):
        both.reserve(request(epsilon="0.001"))
    with pytest.raises(InvalidParameter, match="amounts must be at least what the losses cost"):
        both.reserve(request(rho="1e-3", losses=(DiscreteGaussianLoss(sigma2=1, sensitivity=1).to_record(),)))
    with pytest.raises(NotPrivate):
        both.reserve(request(rho="1e-3", losses=(Finite(p=[1, 0], q=[0, 1]).to_record(),)))


def test_a_record_is_what_was_stored(ledger):
    """A loss record with tuples is stored as lists, and the reservation can still be settled."""
    record = {**Finite(p=["1/2", "1/2"], q=["11/20", "9/20"]).to_record(), "p": ("1/2", "1/2")}
    done = ask(ledger, request(epsilon="0.2", losses=(record,)))
    assert done.losses[0]["p"] == ["1/2", "1/2"]


def test_settling_wants_a_real_reservation(ledger, both):
    """Another ledger's reservation, an answer that is no bytes, a digest that is none."""
    foreign = both.reserve(request(rho="1e-6"))
    own = ledger.reserve(request(epsilon="0.1"))
    with pytest.raises(InvalidParameter, match="reservation must be"):
        ledger.commit(foreign, answer=b"", answer_digest="d")
    for bad in ({"answer": "text", "answer_digest": "d"}, {"answer": b"", "answer_digest": ""}):
        with pytest.raises(InvalidParameter):
            ledger.commit(own, **bad)
    with pytest.raises(InvalidParameter):
        ledger.fail(own, incident="")
    with pytest.raises(InvalidParameter):
        ledger.stored("short", 1)
    with pytest.raises(InvalidParameter):
        ledger.refresh(" ")
    done = ledger.commit(own, answer=b"", answer_digest="d")
    stored = ledger.stored(done.question_key, 1)
    with pytest.raises(InvalidParameter, match="stored must be"):
        both.served(stored, None)
    assert ledger.spent() == eps("0.1")


# ---- opening ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"budget": Budget(epsilon=2)}, {"budget": BOTH}, {"adjacency": REPLACE_ONE}, {"unit": "household"}], ids=str
)
def test_a_study_that_changed_does_not_open(change, path):
    """Budget, neighbours and unit are those of the creation."""
    with pytest.raises(InvalidStudy, match="must be that of the ledger"):
        reopen(path, **change)


def test_creation_is_private_and_whole(tmp_path):
    """All files are the owner's only; the marker names the ledger; a second creation there is refused."""
    path = tmp_path / "a.ledger"
    with create(path, BOTH, folder=tmp_path) as made:
        made.reserve(request(rho="1e-6"))
        modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()}
        names = {"a.ledger", "a.ledger-wal", "a.ledger-shm", "a.ledger.head", ".visits.ledger-id"}
        assert modes == dict.fromkeys(names, 0o600)
        assert read_marker(tmp_path, "visits") == made.id
        first = next(made.entries())
        assert (first.kind.value, first.creation["study_name"], first.creation["reason"]) == ("created", "visits", None)
    for again in ({}, {"reason": "I forgot"}):
        with pytest.raises(InvalidStudy, match="a new ledger must be where no file is"):
            create(path, folder=tmp_path, **again)


def test_a_creation_that_fails_leaves_nothing(tmp_path, monkeypatch):
    """No folder, no room, no links, somebody faster: one sentence, and no file, witness or marker stays behind."""
    for change in (
        {"path": tmp_path / "absent" / "a.ledger"},
        {"path": tmp_path / "a.ledger", "folder": tmp_path / "absent"},
    ):
        with pytest.raises(InvalidStudy, match=r"folder of the (ledger|data) must be one that can be written to"):
            create(**change)
    for error, told in ((OSError("no links"), "where it can be written"), (FileExistsError(), "where no file is")):

        def link(*_, error=error):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("os.link", link)
            with pytest.raises(InvalidStudy, match=told):
                create(tmp_path / "a.ledger", folder=tmp_path)
        assert list(tmp_path.iterdir()) == []
    create(tmp_path / "a.ledger", folder=tmp_path).close()


def test_a_deleted_ledger_is_missed(path, tmp_path):
    """Data or a witness that knew a ledger do not start with an empty one, unless the owner says why: an entry."""
    with reopen(path, folder=tmp_path, study_name="visits") as opened:
        ask(opened, request(epsilon="0.9"))
        old = opened.id
    path.unlink()
    with pytest.raises(InvalidStudy, match="ledger must be a file that exists"):
        reopen(path)
    for folder in (None, tmp_path):
        with pytest.raises(InvalidStudy, match=rf"ledger must be the one that these data had \({old}\)"):
            create(path, folder=folder)
        with pytest.raises(InvalidStudy, match="these data had" if folder else "these data had|exists"):
            create(tmp_path / ("b.ledger" if folder else "a.ledger"), folder=folder)
    with create(path, folder=tmp_path, reason="the disk burnt") as made:
        creation = next(made.entries()).creation
        assert (creation["reason"], creation["instead_of"]) == ("the disk burnt", old)
        assert creation["witness_had"]["sequence"] == 2
        assert read_marker(tmp_path, "visits") == made.id != old
    reopen(path, folder=tmp_path).close()


def test_another_ledger_for_the_same_data(empty, path, tmp_path):
    """The marker names one ledger; a second one is refused."""
    reopen(path, folder=tmp_path, study_name="visits").close()
    with create(tmp_path / "b.ledger", study_name="others", folder=tmp_path) as other:
        assert read_marker(tmp_path, "others") == other.id
    with pytest.raises(InvalidStudy, match="these data had"):
        reopen(tmp_path / "b.ledger", folder=tmp_path, study_name="visits")


def test_a_restored_backup_is_refused(ledger, path, tmp_path):
    """Ten entries that the witness saw and the ledger forgot."""
    for _ in range(2):
        ask(ledger, request(epsilon="0.01"))
    ledger.close()
    shutil.copy(path, tmp_path / "backup")
    with reopen(path) as opened:
        for _ in range(5):
            ask(opened, request(epsilon="0.01"))
    shutil.copy(tmp_path / "backup", path)
    for verify in (True, False):
        with pytest.raises(InvalidStudy, match="the ledger is behind its witness by 10 entries"):
            reopen(path, verify=verify)


def test_a_restored_backup_that_went_on_is_refused(ledger, path, tmp_path):
    """As many entries as the witness saw, but others: another history."""
    ledger.close()
    shutil.copy(path, tmp_path / "backup")
    head = witness.witness_of(path)
    with reopen(path) as opened:
        ask(opened, request(epsilon="0.5"))
    forked = head.read_bytes()
    shutil.copy(tmp_path / "backup", path)
    head.unlink()
    with reopen(path, witness_lost="forked") as opened:
        ask(opened, request(epsilon="0.5"))
    head.write_bytes(forked)
    with pytest.raises(InvalidStudy, match="ledger must be the same as its witness up to entry 2"):
        reopen(path)


def test_a_lost_witness_needs_a_reason(ledger, path):
    """Without it nobody knows what was forgotten; the owner may go on, and that is an entry."""
    ask(ledger, request(epsilon="0.1"))
    ledger.close()
    head = witness.witness_of(path)
    head.unlink()
    with pytest.raises(InvalidStudy, match="witness must be a file that exists"):
        reopen(path)
    with reopen(path, witness_lost="moved to a new disk") as opened:
        assert list(opened.entries())[-1].note == "without the witness: moved to a new disk"
        opened.verify()
    reopen(path).close()
    witness.make(head, "0" * 32, 1, "0" * 64, replace=True)
    with pytest.raises(InvalidStudy, match="ledger must be the one that its witness saw"):
        reopen(path)


def test_a_crash_before_the_witness_is_written(ledger, path, monkeypatch):
    """The charge is durable before its witness: the ledger is ahead, opens, and brings the witness up to date."""

    def killed(*_, **__):
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", killed)
        with pytest.raises(Failed, match="witness could not be written; the charge is kept"):
            ledger.reserve(request(epsilon="0.25"))
    ledger.close()
    assert witness.recall(witness.witness_of(path)).head.sequence == 0
    with reopen(path) as opened:
        assert opened.spent() == eps("0.25")
        assert witness.recall(witness.witness_of(path)).head == opened.head


def test_a_witness_elsewhere(path, tmp_path):
    """The head may be mirrored to another disk."""
    other = tmp_path / "disk"
    other.mkdir()
    with create(tmp_path / "c.ledger", witness=other / "c.head") as made:
        made.reserve(request(epsilon="0.1"))
        assert witness.recall(other / "c.head").head == made.head
    assert not witness.witness_of(tmp_path / "c.ledger").exists()


def test_two_curators_share_a_ledger(ledger, path):
    """Each sees what the other spent, and the witness follows both."""
    with reopen(path) as other:
        ledger.reserve(request(epsilon="0.6"))
        with pytest.raises(BudgetExceeded):
            other.reserve(request(epsilon="0.6"))
        other.reserve(request(epsilon="0.4"))
        assert ledger.left(None) == other.left(None) == NOTHING
        assert witness.recall(witness.witness_of(path)).head == ledger.head == other.head


def test_a_slow_writer_does_not_turn_the_witness_back(ledger, path, monkeypatch):
    """One writer is delayed between its commit and its witness; the witness ends at the last entry all the same."""
    with reopen(path) as other:
        real, delayed = ledger._mirror.remember, []  # noqa: SLF001 -- between the two writes of one act

        def slow(*head):
            if not delayed:
                delayed.append(True)
                other.reserve(request(epsilon="0.1"))  # overtakes: its head is mirrored first
            real(*head)

        monkeypatch.setattr(ledger._own_writer, "_mirror", slow)  # noqa: SLF001 -- idem
        ledger.reserve(request(epsilon="0.1"))
        assert witness.recall(witness.witness_of(path)).head == ledger.head
        assert ledger.head.sequence == 2


# ---- durability and damage ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [{"synchronous": "NORMAL"}, {"synchronous": "OFF"}, {"journal_mode": "DELETE"}, {"foreign_keys": "OFF"}], ids=str
)
def test_a_connection_that_would_forget_is_refused(wrong, path, monkeypatch):
    """The seeded bugs: faster settings that lose the last charges in a power cut are noticed by reading them back."""
    monkeypatch.setattr(sqlite, "SETTINGS", {**sqlite.SETTINGS, **wrong})
    with pytest.raises(InvalidStudy, match=f"{next(iter(wrong))} of the ledger's connection must be"):
        reopen(path)


def test_every_connection_is_durable(ledger):
    """FULL and WAL on each of several connections at once."""
    store = SQLiteStore(ledger.path)
    with store.reading() as one, store.reading() as other:
        assert one.cursor is not other.cursor
        for page in (one, other):
            for pragma, value in (("synchronous", 2), ("journal_mode", "wal")):
                page.cursor.execute(f"PRAGMA {pragma}")
                assert page.cursor.fetchone() == (value,)
    store.close()


def test_connections_are_used_again(ledger):
    """The last one first, five at most, and none whose transaction nobody ended: closing it gives up its locks."""
    store = SQLiteStore(ledger.path)
    with contextlib.ExitStack() as several:
        opened = [several.enter_context(store.reading()).cursor.connection for _ in range(8)]
    assert len({id(one) for one in opened}) == 8

    with contextlib.ExitStack() as several:
        again = [several.enter_context(store.reading()).cursor.connection for _ in range(8)]
    assert sum(one in opened for one in again) == 5

    with store._page() as page:  # noqa: SLF001 -- whoever forgets to end what it began
        page.cursor.execute("BEGIN IMMEDIATE")
        left = page.cursor.connection
    with store.writing() as page:
        assert page.cursor.connection is not left
    store.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        left.execute("SELECT 1")


@pytest.mark.slow
def test_a_writer_waits_and_then_is_told(ledger, path, monkeypatch):
    """Five seconds for another writer, then a refusal that spent nothing; readers do not wait at all."""
    assert sqlite.PATIENCE == 5.0
    monkeypatch.setattr(sqlite, "PATIENCE", 0.05)
    monkeypatch.setattr("curador.ledger.ledger.SETTLING", 0.05)
    reservation = ledger.reserve(request(epsilon="0.1"))
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerBusy, match="nothing was spent"):
            ledger.reserve(request(epsilon="0.1"))
        with pytest.raises(Failed, match="the charge is kept and nothing was released"):
            ledger.commit(reservation, answer=b"", answer_digest="d")
        assert ledger.spent() == eps("0.1")
        other.execute("ROLLBACK")
    finally:
        other.close()
    ledger.commit(reservation, answer=b"", answer_digest="d")


def test_a_writer_outlasts_another(ledger, path):
    """A short transaction of another process is waited for, not run into."""
    other, told = sqlite3.connect(path, isolation_level=None), []
    try:
        other.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=lambda: told.append(ledger.reserve(request(epsilon="0.1"))))
        thread.start()
        thread.join(timeout=0.1)
        assert thread.is_alive()
        other.execute("ROLLBACK")
        thread.join()
    finally:
        other.close()
    assert len(told) == 1


def test_threads_queue(ledger, monkeypatch):
    """A thread that holds the turn too long makes others give up, not pass."""
    monkeypatch.setattr(sqlite, "PATIENCE", 0.05)
    store, told = SQLiteStore(ledger.path), []

    def second():
        try:
            with store.writing():
                told.append("passed")
        except LedgerBusy as refusal:
            told.append(str(refusal))

    with store.writing():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    store.close()
    assert len(told) == 1
    assert "nothing was spent" in told[0]


def test_an_error_in_the_middle_changes_nothing(ledger, monkeypatch):
    """Fail-points inside the transaction: entry, totals and answer are written together or not at all."""
    reservation = ledger.reserve(request(epsilon="0.1"))
    before = everything(ledger)
    for name in ("append", "put_total", "total", "head"):
        with monkeypatch.context() as patch:
            patch.setattr(f"curador.ledger.store.Page.{name}", _raise)
            with pytest.raises(RuntimeError):
                ledger.reserve(request(epsilon="0.1"))
        assert everything(ledger) == before
    for name in ("append", "keep", "settled", "at"):
        with monkeypatch.context() as patch:
            patch.setattr(f"curador.ledger.store.Page.{name}", _raise)
            with pytest.raises(RuntimeError):
                ledger.commit(reservation, answer=b"1", answer_digest="d")
        assert everything(ledger) == before
    ledger.commit(reservation, answer=b"1", answer_digest="d")
    ledger.verify()


def _raise(*_, **__):
    raise RuntimeError("fail-point")


def test_the_clock_decides_nothing(ledger, monkeypatch):
    """A clock set back or forward gives nothing back and refuses nothing."""
    for time in ("1990-01-01T00:00:00+00:00", "2090-01-01T00:00:00+00:00", "1970-01-01T00:00:00+00:00"):
        monkeypatch.setattr(entries, "now", lambda time=time: time)
        ask(ledger, request(epsilon="0.1", asked=time))
    assert ledger.spent() == eps("0.3")
    assert [one.sequence for one in ledger.entries()] == list(range(7))
    assert next(reversed(list(ledger.entries()))).time.startswith("1970")
    ledger.verify()


def tamper(path, script):
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript(script)
    finally:
        connection.close()


def quietly(act, change):
    """Return a script that changes answers past the trigger that refuses it, and puts the trigger back as it was."""
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    return f"DROP TRIGGER answer_no_{act}; {change}; CREATE TRIGGER answer_no_{act} BEFORE {act} ON answer {refuse}"


def test_rows_cannot_be_changed(ledger, path):
    """The file itself refuses to update or delete what was written, or to count beyond a limit."""
    ask(ledger, request(epsilon="0.1"))
    for statement in (
        "UPDATE entry SET kind = 'voided'",
        "DELETE FROM entry",
        "UPDATE answer SET content = x''",
        "DELETE FROM answer",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            tamper(path, statement)
    with pytest.raises(sqlite3.IntegrityError, match=r"entry\.settles"):
        tamper(
            path,
            "INSERT INTO entry SELECT 3, hash, kind, 'x', NULL, question_key, 1, settles, body FROM entry WHERE sequence > 1",
        )
    for statement in ("UPDATE total SET epsilon = epsilon || '0'", "UPDATE total SET epsilon = '9' || substr(epsilon, 2)"):
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            tamper(path, statement)
    ledger.verify()


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE total SET epsilon = printf('%040d', 0) WHERE holder = 'study'", "must agree with the running total"),
        ("UPDATE total SET epsilon = printf('%040d', 0) WHERE holder = 'analyst:ana'", "must agree with the running totals"),
        (
            "UPDATE total SET epsilon = 'x' || substr(epsilon, 2), epsilon_limit = 'y' || substr(epsilon, 2)",
            "must be whole ticks",
        ),
        ("DELETE FROM total WHERE holder = 'analyst:ana'", "must agree with the running totals"),
        ("DROP TRIGGER entry_no_update", "with the tables that it was created with"),
        ("CREATE TABLE more (x)", "with the tables that it was created with"),
        ("INSERT INTO answer VALUES (1, 'k', 1, x'00')", "entry 1 must have the answer that its digest says"),
        (quietly("delete", "DELETE FROM answer"), "entry 2 must have its answer"),
        (quietly("update", "UPDATE answer SET content = x'00'"), "entry 2 must have the answer that its digest says"),
        (quietly("update", "UPDATE answer SET content = 'text'"), "entry 2 must have an answer of bytes"),
        (quietly("update", "UPDATE answer SET data_version = 2"), "entry 2 must have the answer that its digest says"),
        ("INSERT INTO entry SELECT 9, hash, kind, 'x', analyst, question_key, 1, NULL, body FROM entry LIMIT 1", "ledger"),
    ],
)
def test_changes_from_outside_are_noticed(statement, told, ledger, path):
    """Sums, answers, tables and entries that the chain does not know."""
    ask(ledger, request(epsilon="0.2", analyst="ana"))
    ledger.close()
    tamper(path, statement)
    with pytest.raises(InvalidStudy, match=told):
        reopen(path)


def test_a_total_that_was_lowered_lets_nothing_through(ledger, path):
    """While it is open too: the last entry, not the table, says what was spent."""
    ask(ledger, request(epsilon="0.9"))
    tamper(path, "UPDATE total SET epsilon = printf('%040d', 0)")
    with pytest.raises(InvalidStudy, match="must agree with the running total"):
        ledger.reserve(request(epsilon="0.5"))


def test_a_changed_answer_is_not_served(ledger, path):
    """Bytes that are not those of the chain are refused when they are asked for, too."""
    done = ask(ledger, request(epsilon="0.1"))
    for change in ("content = x'00'", "content = 7", "question_key = 'k'"):
        tamper(path, quietly("update", f"UPDATE answer SET {change}"))
        if change.startswith("content"):
            with pytest.raises(InvalidStudy, match="entry 2 must have"):
                ledger.stored(done.question_key, 1)
    assert ledger.stored(done.question_key, 1) is None


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"not a database " * 100, bytes(4096)], ids=len)
def test_a_file_that_is_no_ledger(content, tmp_path):
    """One clear sentence."""
    path = tmp_path / "a.ledger"
    path.write_bytes(content)
    with pytest.raises(InvalidStudy, match="ledger must be a whole ledger file"):
        reopen(path)
    assert path.read_bytes() == content or content == b""


def test_another_database_is_no_ledger(tmp_path):
    """A database of somebody else is left alone."""
    tamper(tmp_path / "a.ledger", "CREATE TABLE entry (x)")
    with pytest.raises(InvalidStudy, match="ledger must be a whole ledger file"):
        reopen(tmp_path / "a.ledger")


def test_a_file_that_vanishes_takes_no_charge(ledger, path, tmp_path):
    """Deleted or replaced while it is open: nothing more is charged to a file that nobody will find."""
    path.rename(tmp_path / "moved")
    with pytest.raises(InvalidStudy, match="ledger must be the file that was opened"):
        ledger.reserve(request(epsilon="0.1"))
    (tmp_path / "moved").rename(path)
    ledger.reserve(request(epsilon="0.1"))


def test_a_link_is_no_ledger(path, tmp_path):
    """One ledger, one name."""
    (tmp_path / "link.ledger").symlink_to(path)
    for act in (reopen, create):
        with pytest.raises(InvalidStudy, match=r"symbolic link|where no file is"):
            act(tmp_path / "link.ledger")


def test_entries_come_in_pages(ledger, monkeypatch):
    """From any sequence on, in order, of everybody or of one."""
    stored = ledger.stored(ask(ledger, request(epsilon="0.1")).question_key, 1)
    for name, day in (("ana", "2026-01-01"), ("eva", "2026-01-01"), ("ana", "2026-01-02"), (None, "2026-01-02")):
        ledger.served(stored, name, asked=f"{day}T12:00:00+00:00")
    assert [one.sequence for one in ledger.entries(3)] == [3, 4, 5, 6]
    assert [one.sequence for one in ledger.entries(analyst="ana")] == [3, 5]
    assert [one.sequence for one in ledger.entries(2, analyst=None)] == [2, 6]
    assert list(ledger.entries(99)) == []
    assert ledger.limits.adjacency is ADD_OR_REMOVE_ONE
