"""A process that writes for others: everybody is served once, whoever is killed, and nobody else is let in."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import pwd
import secrets
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_workers import charge_through
from ledgers import ask, create, reopen, request

from curador.errors import BudgetExceeded, Failed, InvalidParameter, InvalidStudy, LedgerBusy
from curador.ledger import sharing
from curador.ledger.acts import Reserve, Settle
from curador.ledger.entry import AlreadyReserved, EntryKind
from curador.ledger.sharing import socket_of
from curador.study.model import Budget

SPAWN = multiprocessing.get_context("spawn")
LARGE = Budget(epsilon=1_000_000)
pytestmark = pytest.mark.slow


@contextlib.contextmanager
def serving(path, budget=LARGE):
    """A service in a thread of this process, with a ledger of its own."""
    with reopen(path, budget, verify=False) as own, own.write_for_others() as service:
        thread = threading.Thread(target=service.serve)
        thread.start()
        try:
            yield own
        finally:
            service.stop()
            thread.join()


@pytest.fixture
def path(tmp_path):
    create(tmp_path / "a.ledger", LARGE).close()
    return tmp_path / "a.ledger"


def counted(own, monkeypatch):
    """Return the acts that the service's own writer does."""
    seen, real = [], own._own_writer.do  # noqa: SLF001 -- whose writer it was
    monkeypatch.setattr(own._own_writer, "do", lambda act, **how: (seen.append(act), real(act, **how))[1])  # noqa: SLF001
    return seen


def test_charges_and_answers_go_through_it(path, monkeypatch):
    """Entries, sums, refusals and what stands are the same as without it."""
    with serving(path) as own, reopen(path, LARGE) as ledger:
        seen = counted(own, monkeypatch)
        asked = request(epsilon="1/4", analyst="ana", share=Fraction(1, 2))
        reserved = ledger.reserve(asked, once=True)
        with pytest.raises(AlreadyReserved) as other:
            ledger.reserve(asked, once=True)
        done = ledger.commit(reserved, answer=bytes(range(256)) * 50, answer_digest="d")
        with pytest.raises(InvalidParameter, match="reservation must be an open one"):
            ledger.commit(reserved, answer=b"", answer_digest="d")
        with pytest.raises(BudgetExceeded, match=r"epsilon must be at most .*\nHint: spend="):
            ledger.reserve(request(epsilon=999_999, analyst="ana", share=Fraction(1, 2)))
        ledger.fail(ledger.reserve(request(epsilon=1)), incident="f")
        ledger.void(ledger.reserve(request(epsilon=1)))

        assert other.value.entry == reserved.entry
        assert ledger.stored(asked.question_key, 1).answer == bytes(range(256)) * 50
        assert ledger.stored(asked.question_key, 1).entry == done
        assert (reserved.after, reserved.limit) == (asked.amounts, ledger.limits.share(Fraction(1, 2)))
        assert len(seen) == 9
        assert [one.kind.value for one in ledger.entries()][1:] == [
            *("reserved", "committed", "reserved", "failed", "reserved", "voided")
        ]
        ledger.verify()


def test_without_it_everybody_writes_alone(path):
    """Before it begins and after it has ended; a connection that it leaves behind is noticed."""
    with reopen(path, LARGE) as ledger:
        ask(ledger, request(epsilon=1))
        with serving(path):
            ask(ledger, request(epsilon=1))
        ask(ledger, request(epsilon=1))
        assert ledger.spent().epsilon == 3
        assert not socket_of(path).exists()
        ledger.verify()


def service_of(path):
    """A service as a process of its own."""
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from ledgers import reopen
from curador.study.model import Budget
with reopen({str(path)!r}, Budget(epsilon=1_000_000), verify=False) as own, own.write_for_others() as service:
    print("ready", flush=True)
    service.serve()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.long)])
def test_it_is_killed_and_nobody_pays_twice(kills, path, tmp_path):
    """Killed again and again under four processes: every request has one outcome, and what was told is so."""
    stop = tmp_path / "stop"
    told = [tmp_path / f"told{number}" for number in range(4)]
    workers = [SPAWN.Process(target=charge_through, args=(path, file, stop)) for file in told]
    service = service_of(path)
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + 60
    while not all(file.exists() and file.stat().st_size for file in told) and time.monotonic() < deadline:
        time.sleep(0.01)
    for _ in range(kills):
        time.sleep(0.05 + secrets.randbelow(100) / 1000)
        service.kill()
        service.wait()
        service = service_of(path)
    stop.touch()
    for worker in workers:
        worker.join()
    service.terminate()
    service.wait()
    lines = [json.loads(line) for file in told for line in file.read_text(encoding="ascii").splitlines()]

    assert [worker.exitcode for worker in workers] == [0] * 4
    assert len(lines) > kills
    with reopen(path, LARGE) as ledger:
        ledger.verify()
        entries = list(ledger.entries())
        reserved = {one.id: one for one in entries if one.kind is EntryKind.RESERVED}
        committed = {one.refers for one in entries if one.kind is EntryKind.COMMITTED}
        questions = [one.question for one in reserved.values()]
        assert len(set(questions)) == len(questions), "a question was charged twice"
        assert {line["id"] for line in lines if line["answered"]} <= committed
        assert not {line["question"] for line in lines if line["refused"]} & set(questions)


def test_a_request_that_was_handed_over_is_found_by_its_id(path, monkeypatch):
    """The service does it and dies before it says so: the asker finds the charge; it dies first: the asker charges itself."""
    for dies in ("after", "before"):
        with serving(path), reopen(path, LARGE) as ledger:
            real, seen = sharing.WriterService._done, []  # noqa: SLF001 -- what the process does with a request

            def done(self, body, content, real=real, seen=seen, dies=dies):
                seen.append(dies)
                if dies == "after":
                    real(self, body, content)
                raise OSError("killed")

            with monkeypatch.context() as patch:
                patch.setattr(sharing.WriterService, "_done", done)
                before = ledger.head.sequence
                spent = ledger.reserve(request(epsilon=1))
            assert seen == [dies]
            assert spent.entry.sequence == before + 1 == ledger.head.sequence


def test_retrying_without_the_id_is_caught(path, monkeypatch):
    """The seeded bug: an asker who tries again as if nothing had happened pays twice."""
    monkeypatch.setattr(
        sharing.SharedWriter, "_find", lambda self, act, patience, **_: self._own.do(Reserve(act.request), patience=patience)
    )
    real = sharing.WriterService._done  # noqa: SLF001 -- idem

    def done(self, body, content):
        real(self, body, content)
        raise OSError("killed")

    monkeypatch.setattr(sharing.WriterService, "_done", done)
    with serving(path), reopen(path, LARGE) as ledger:
        ledger.reserve(request(epsilon=1))
        assert ledger.spent().epsilon == 2


def test_what_is_refused_while_the_service_may_still_write_it_is_not_known(path, monkeypatch):
    """It stands still with a request; the asker does not fit now, and does when the service goes on: it may be charged."""
    monkeypatch.setattr(sharing, "SETTLING", 0.2)
    goes_on = threading.Event()
    with serving(path) as own, reopen(path, LARGE) as ledger:
        real = own._own_writer.do  # noqa: SLF001 -- idem
        held = own.reserve(request(epsilon=900_000))

        def stands_still(act, **how):
            assert goes_on.wait(60)
            return real(act, **how)

        with monkeypatch.context() as patch:
            service = ledger._writer  # noqa: SLF001 -- idem
            patch.setattr(own._own_writer, "do", stands_still)  # noqa: SLF001 -- idem
            asked = Reserve(request(epsilon=500_000))
            with pytest.raises(Failed, match="did not say what became of the request; the charge may be kept"):
                service.do(asked, patience=0.2)
        ledger._own_writer.do(Settle(EntryKind.VOIDED, held.entry))  # noqa: SLF001 -- idem
        goes_on.set()
        until = time.monotonic() + 60
        while ledger.outcome(asked.id) is None and time.monotonic() < until:
            time.sleep(0.01)
        assert ledger.spent().epsilon == 500_000


def test_a_service_that_hangs_with_the_file(path, monkeypatch):
    """Stopped in the middle of a transaction: nobody is told that nothing was spent, as nobody knows."""
    monkeypatch.setattr(sharing, "SETTLING", 0.2)
    service = service_of(path)
    try:
        with reopen(path, LARGE) as ledger:
            holder = reopen(path, LARGE, verify=False)
            with holder._store.writing():  # noqa: SLF001 -- stands for what the stopped process holds
                service.send_signal(signal.SIGSTOP)
                with pytest.raises((Failed, LedgerBusy)) as told:
                    ledger._writer.do(Reserve(request(epsilon=1)), patience=0.2)  # noqa: SLF001 -- idem
            assert "may be kept" in str(told.value)
            holder.close()
            service.send_signal(signal.SIGCONT)
    finally:
        service.kill()
        service.wait()


def test_the_socket_is_the_owners_alone(path):
    """Its mode, whatever the umask."""
    before = os.umask(0)
    try:
        with serving(path):
            assert socket_of(path).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def told_to(place, user):
    """Whether a process of some user is told anything at a socket. A fork: another user may not run our Python."""
    request = b'{"act": "nope"}'
    child = os.fork()
    if child == 0:
        told = 2
        with contextlib.suppress(Exception):
            os.seteuid(user)
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(10)
                one.connect(str(place))
                with contextlib.suppress(OSError):
                    told = 0
                    one.sendall(struct.pack(">Q", len(request)) + request + bytes(8))
                    told = len(one.recv(1))
        os.seteuid(0)
        os._exit(told)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, 1}
    return bool(code)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("asks_who", [True, False], ids=["product", "seeded bug"])
def test_somebody_else_is_sent_away_unheard(asks_who, monkeypatch):
    """Also where the mode of the socket was lost: the system says whose process it is."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "a.ledger"
        create(path, LARGE).close()
        if not asks_who:
            monkeypatch.setattr(sharing, "_require_owner", lambda _: None)
        with serving(path):
            socket_of(path).chmod(0o666)
            assert told_to(socket_of(path), 0)
            assert told_to(socket_of(path), pwd.getpwnam("nobody").pw_uid) == (not asks_who)


def test_an_asker_trusts_no_socket_of_somebody_else(path):
    """A socket that others may write to is not asked: the asker writes alone."""
    with serving(path) as own, reopen(path, LARGE) as ledger:
        socket_of(path).chmod(0o666)
        ledger.reserve(request(epsilon=1))
        assert ledger.head.sequence == own.head.sequence == 1
        assert not ledger._writer._idle  # noqa: SLF001 -- it was not asked


def test_a_second_service_is_refused(path):
    """And one that was killed leaves nothing in the way."""
    with serving(path), reopen(path, LARGE) as other, pytest.raises(InvalidStudy, match="writer must be the only one"):
        other.write_for_others()
    service = service_of(path)
    service.kill()
    service.wait()
    assert socket_of(path).exists()
    with serving(path), reopen(path, LARGE) as ledger:
        ledger.reserve(request(epsilon=1))
        assert len(ledger._writer._idle) == 1  # noqa: SLF001 -- it was asked


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 16,
        struct.pack(">Q", 2**40),
        struct.pack(">Q", 2) + b"[]" + struct.pack(">Q", 0),
        struct.pack(">Q", 2) + b"{}" + struct.pack(">Q", 0),
        struct.pack(">Q", 17) + b'{"act": "settle"}' + struct.pack(">Q", 0),
        struct.pack(">Q", 18) + b'{"act": "reserve"}' + struct.pack(">Q", 3) + b"abc",
        struct.pack(">Q", 15) + b'{"act": "nope"}' + struct.pack(">Q", 0),
        bytes(range(100, 200)),
    ],
    ids=lambda content: content[:16].hex() or "nothing",
)
def test_nonsense_harms_nobody(content, path):
    """It is told so or sent away; whoever comes next is served, and nothing was written."""
    with serving(path), reopen(path, LARGE) as ledger:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(10)
            one.connect(str(socket_of(path)))
            one.sendall(content)
            one.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                while one.recv(1000):
                    pass
        assert ledger.head.sequence == 0
        ledger.reserve(request(epsilon=1))


@pytest.mark.parametrize("patience", [float("nan"), "5", None, True])
def test_a_patience_that_no_clock_measures_is_its_own(patience, path, monkeypatch):
    """It would be judged by the clock of all who share its batch; they are written, and it is told so."""
    real = sharing._told  # noqa: SLF001 -- what no asker says
    with serving(path), reopen(path, LARGE) as ledger:
        monkeypatch.setattr(sharing, "_told", lambda act, _, **how: {**real(act, 5.0, **how), "patience": patience})
        monkeypatch.setattr(sharing.json, "dumps", lambda body, **_: DUMPS(body))
        with pytest.raises(Failed, match="could not do this: ValueError"):
            ledger.reserve(request(epsilon=1))
        assert ledger.head.sequence == 0


DUMPS = json.dumps


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "served"},
        {"kind": "reserved"},
        {"kind": "refreshed"},
        {"kind": "committed"},
        {"kind": "committed", "stores": True, "answer_digest": "d"},
        {"kind": "committed", "stores": True, "answer_digest": "d", "content_digest": "0" * 64},
        {"kind": "committed", "stores": True, "content_digest": hashlib.sha256(b"").hexdigest()},
        {"stores": True},
        {"answer_digest": "d"},
        {"content_digest": "0" * 64},
        {"id": ""},
    ],
    ids=str,
)
def test_an_end_that_no_reading_would_take_is_not_written(change, path, monkeypatch):
    """It would stand in the chain for ever, and nobody could open the ledger any more."""
    real = sharing._told  # noqa: SLF001 -- what no asker says
    with serving(path), reopen(path, LARGE) as ledger:
        reserved = ledger.reserve(request(epsilon=1))
        with monkeypatch.context() as patch:
            patch.setattr(sharing, "_told", lambda *given, **how: {**real(*given, **how), **change})
            with pytest.raises((InvalidParameter, Failed)):
                ledger.fail(reserved, incident="f")
        assert ledger.head.sequence == 1
        ledger.fail(reserved, incident="f")
        ledger.verify()


def test_who_is_interrupted_while_it_waits_leaves_no_connection(path, monkeypatch):
    """What was handed over may be charged; the next one does not read its reply."""
    with serving(path), reopen(path, LARGE) as ledger:
        ledger.reserve(request(epsilon=1))
        (held,) = ledger._writer._idle  # noqa: SLF001 -- what it asked with
        with monkeypatch.context() as patch:
            patch.setattr(sharing, "_receive", interrupt_once())
            with pytest.raises(KeyboardInterrupt):
                ledger.reserve(request(epsilon=1))
        assert held.fileno() == -1
        assert ledger.reserve(request(epsilon=3)).entry.amounts.epsilon == 3


def interrupt_once():
    """Return what is interrupted in this thread only: the service reads in others."""
    real, own = sharing._receive, threading.current_thread()  # noqa: SLF001 -- the asker's end

    def receive(connection):
        if threading.current_thread() is own:
            raise KeyboardInterrupt
        return real(connection)

    return receive


def test_more_connections_than_are_kept_are_closed(path, monkeypatch):
    """Where nothing is kept, every request has its own."""
    monkeypatch.setattr(sharing, "_IDLE", 0)
    with serving(path), reopen(path, LARGE) as ledger:
        for _ in range(3):
            ledger.reserve(request(epsilon=1))
        assert not ledger._writer._idle  # noqa: SLF001 -- what is kept
        assert ledger.head.sequence == 3


def lose_the_reply(monkeypatch):
    """Let the asker's end of every connection break when it has handed its request over and was not heard."""

    def lost(*_):
        raise ConnectionResetError

    monkeypatch.setattr(sharing, "_send", lost)


def test_whose_connection_is_lost_is_judged_like_any_other(path, monkeypatch):
    """The other end is gone: what is refused then is refused, and what somebody else bought is theirs."""
    with serving(path), reopen(path, LARGE) as ledger:
        asked = request(epsilon=1)
        bought = ledger.reserve(asked)
        lose_the_reply(monkeypatch)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(request(epsilon=1_000_000))
        with pytest.raises(AlreadyReserved) as other:
            ledger.reserve(asked, once=True)
        assert other.value.entry == bought.entry
        assert ledger.head.sequence == 1


def test_who_belongs_to_somebody_else_is_sent_away(monkeypatch):
    """By the number of its user, which the system says; both ends ask."""
    one, other = socket.socketpair()
    with one, other:
        sharing._require_owner(one)  # noqa: SLF001 -- our own
        monkeypatch.setattr(sharing.os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(ConnectionRefusedError, match="somebody else"):
            sharing._require_owner(one)  # noqa: SLF001 -- idem


def test_a_forked_child_stops_nothing(path):
    """It lets go of the lock and of the socket; the parent serves on, and ends when its block is left."""
    with reopen(path, LARGE, verify=False) as own:
        with own.write_for_others() as service:
            child = os.fork()
            if child == 0:
                gone = service._socket.fileno() == -1  # noqa: SLF001 -- what it would hold
                service.stop()
                os._exit(0 if gone and socket_of(path).exists() else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert socket_of(path).exists()
            thread = threading.Thread(target=service.serve)
            thread.start()
            with reopen(path, LARGE) as ledger:
                ledger.reserve(request(epsilon=1))
                assert len(ledger._writer._idle) == 1  # noqa: SLF001 -- it was asked
            service.interrupt()
            thread.join()
        assert not socket_of(path).exists()
        with pytest.raises(OSError, match="Bad file"):
            service._socket.getsockname()  # noqa: SLF001 -- closed when the block was left


def test_a_long_path_has_a_socket_too(tmp_path):
    """A socket's name has a most; a folder's handle is short."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    create(folder / "a.ledger", LARGE).close()
    with serving(folder / "a.ledger"), reopen(folder / "a.ledger", LARGE) as ledger:
        ledger.reserve(request(epsilon=1))
        assert len(ledger._writer._idle) == 1  # noqa: SLF001 -- it was asked
