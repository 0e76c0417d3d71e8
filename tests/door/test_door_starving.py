"""What one analyst or a stranger does to the door is no other's loss: long texts, silent connections, much that is held."""

import asyncio
import contextlib
import socket
import threading
import time

import psycopg
import pytest
from doors import open_door
from raw_client import RawClient

from curador.door import session
from curador.door.door import DoorLimits, Guest
from curador.door.pools import SHORT
from curador.door.problems import SqlProblem
from curador.door.statements import read_statements
from curador.server import tokens

LONG = "SELECT " + ", ".join(["a"] * 20_000)


def test_long_texts_are_read_away_from_others(door, monkeypatch):
    """While ana's text is read ben is answered."""
    begun, goes_on = threading.Event(), threading.Event()

    def slow(text, tables):
        if len(text) > SHORT:
            begun.set()
            goes_on.wait(30)
        return read_statements(text, tables)

    monkeypatch.setattr(session, "read_statements", slow)
    with door.connect("ana") as ana, door.connect("ben") as ben:
        reading = threading.Thread(target=ana.pgconn.exec_, args=(LONG.encode(),))
        reading.start()
        try:
            assert begun.wait(30)
            assert ben.execute("SELECT 1").fetchone() == (1,)
        finally:
            goes_on.set()
            reading.join()


def _until(condition):
    """Wait until something is so; tell whether it came to be."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize(("write", "ended"), [(0.3, False), (2.0, True)])
def test_what_nobody_reads_is_let_go_of(tmp_path, write, ended):
    """Who asks for much and reads nothing is ended, by the limit or by the door, and what waited to leave is dropped."""
    with open_door(tmp_path, limits=DoorLimits(write=write)) as door, RawClient(door) as client:
        (guest,) = door.door.guests.values()
        transport = guest.writer.transport
        client.send(b"Q", b"SELECT a.prosrc, b.prosrc, c.prosrc FROM pg_proc a, pg_proc b, pg_proc c\0")
        assert _until(transport.get_write_buffer_size)
        if ended:
            door.run(door.door._end(guest, SqlProblem("57P01", "it was ended.", fatal=True)))  # noqa: SLF001 -- as by the watch
        assert _until(lambda: not door.door.guests)
        assert _until(lambda: not transport.get_write_buffer_size())
        assert door.log == []


def test_silent_strangers_keep_nobody_out(door):
    """Who has said nothing for longest makes room."""
    silent = [socket.create_connection(("127.0.0.1", door.port)) for _ in range(90)]
    try:
        time.sleep(0.5)
        with door.connect("ben") as ben:
            assert ben.execute("SELECT 1").fetchone() == (1,)
    finally:
        for one in silent:
            one.close()


def test_texts_that_are_held_have_a_bound(unspent):
    """A connection holds eight million letters of statements, and not a letter more for one that is refused."""
    with unspent.connect("ana") as ana:
        text = b"SELECT count(*) AS n /* " + b"x" * 3_000_000 + b" */ FROM visits"
        found = [ana.pgconn.prepare(b"p%d" % number, text) for number in range(6)]

        told = [one.error_field(psycopg.pq.DiagnosticField.SQLSTATE) for one in found]

    assert told == [None, None, *[b"53400"] * 4]


def test_statements_that_are_held_have_a_number(unspent, monkeypatch):
    """What is refused is not held, too."""
    monkeypatch.setattr(session, "MOST_HELD", 3)
    with unspent.connect("ana") as ana:
        told = [
            ana.pgconn.prepare(b"p%d" % number, b"SELECT count(*) AS n FROM visits").error_field(
                psycopg.pq.DiagnosticField.SQLSTATE
            )
            for number in range(6)
        ]
        ana.pgconn.exec_(b"DEALLOCATE p0")
        again = ana.pgconn.prepare(b"p9", b"SELECT count(*) AS n FROM visits")

    assert told == [None, None, None, *[b"53400"] * 3]
    assert again.status == psycopg.pq.ExecStatus.COMMAND_OK


def test_rollback_to_a_savepoint_takes_no_settings_back(unspent):
    """COMMIT keeps what was said in its transaction."""
    with unspent.connect("ana") as ana:
        ana.execute("SET curador.spend = '10%'")
        for text in ("BEGIN", "SAVEPOINT s", "ROLLBACK TO SAVEPOINT s", "SET curador.spend = '1%'", "COMMIT"):
            ana.execute(text)

        assert ana.execute("SHOW curador.spend").fetchone() == ("1%",)


@pytest.mark.parametrize(
    "view", ["pg_stat_io", "pg_stat_wal", "pg_stat_slru", "pg_stat_bgwriter", "pg_stat_activity", "pg_locks"]
)
def test_catalogues_tell_nothing_of_others_work(unspent, view):
    """What all together did in the shadow is nobody's to see."""
    with unspent.connect("ben") as ben, pytest.raises(psycopg.errors.InsufficientPrivilege):
        ben.execute(f"SELECT * FROM {view}")


@pytest.mark.parametrize("why", ["revoked", "closed"])
def test_connections_are_ended_side_by_side(tmp_path, monkeypatch, why):
    """Each waits here until the other three are being ended, too: none stands behind one that does not read."""
    ending, met = [], []

    async def end(guest, problem):
        ending.append(guest)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(20):
                while len(ending) < 4:  # noqa: ASYNC110 -- nobody tells us
                    await asyncio.sleep(0.02)
        met.append(len(ending))
        guest.writer.close()

    with contextlib.ExitStack() as stack:
        with open_door(tmp_path) as door:
            for _ in range(4):
                stack.enter_context(door.connect("ana"))
            monkeypatch.setattr(Guest, "end", end)
            if why == "revoked":
                assert tokens.revoke(door.service.state, door.user("ana")[0].split(".")[1])
                assert _until(lambda: len(met) == 4)
        assert met == [4] * 4
