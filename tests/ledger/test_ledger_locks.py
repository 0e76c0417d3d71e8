"""Locks that end too soon or outlive what they are for: openings side by side in one process, forks, who opens meanwhile."""
# ruff: noqa: SLF001 -- what a person cannot do by hand

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path

import pytest
from ledgers import PURE, ask, create, reopen, request

from curador.errors import BudgetExceeded, InvalidStudy
from curador.ledger import opening, pointer, witness
from curador.ledger.witness import WitnessSlots, witness_of

HERE = Path(__file__).parent


@pytest.fixture
def path(tmp_path):
    create(tmp_path / "a.ledger").close()
    return tmp_path / "a.ledger"


def with_ledger(code, path):
    """Return a program that opens the ledger and runs code, which is indented but for its first line."""
    begin = f"import sys; sys.path.insert(0, {str(HERE)!r})\nfrom ledgers import *"
    return f"{begin}\nwith reopen({str(path)!r}) as ledger:\n    {code}"


def elsewhere(code, path):
    """Run code in another process, with a ledger opened there; return what it printed."""
    done = subprocess.run([sys.executable, "-c", with_ledger(code, path)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def spend_all(ledger, epsilon="0.1"):
    """Charge until nothing is left; return how often it went."""
    number = 0
    with contextlib.suppress(BudgetExceeded):
        while True:
            ledger.reserve(request(epsilon=epsilon))
            number += 1
    return number


SPEND_ALL = """
    number = 0
    try:
        while True:
            ledger.reserve(request(epsilon="0.1"))
            number += 1
    except Exception as error:
        print(number)
"""


@pytest.mark.parametrize("again", ["open", "reach", "beside"])
def test_who_opens_a_ledger_twice_keeps_its_locks(path, again):
    """As a cell of a notebook that is run again: no other process takes itself for the last one, and one budget is spent."""
    with reopen(path) as first:
        ask(first, request(epsilon="0.1"))
        if again == "open":
            second = reopen(path)
        elif again == "reach":
            second = type(first).reach(path)
        else:
            second = contextlib.nullcontext()
            opening.store_at(path).close()
        with second:
            assert elsewhere("print(ledger.spent().epsilon)", path) == "1/10"
            assert path.with_name("a.ledger-wal").exists()
            here = spend_all(first, "0.2")
            there = int(elsewhere(SPEND_ALL, path))
    assert here * Fraction(1, 5) + there * Fraction(1, 10) + Fraction(1, 10) == PURE.epsilon
    with reopen(path) as ledger:
        ledger.verify()
        assert ledger.spent().epsilon == PURE.epsilon


def test_a_look_at_the_file_would_drop_them(path, monkeypatch):
    """The seeded bug: whoever opens the file by itself and closes it loses the locks; then the log's own name tells it."""

    def look(place):
        with place.open("rb") as file:
            file.read(1)

    monkeypatch.setattr(pointer, "require_regular", look)
    with reopen(path) as first:
        ask(first, request(epsilon="0.1"))
        opening.store_at(path).close()
        elsewhere("ledger.spent()", path)
        assert not path.with_name("a.ledger-wal").exists()
        with pytest.raises(InvalidStudy, match="the ledger's log must be the file that was opened"):
            first.reserve(request(epsilon="0.1"))
        assert elsewhere("print(ledger.spent().epsilon)", path) == "1/10"


def test_a_witness_of_another_history_is_not_written_over(path):
    """Two ledgers that charged different things at one place: who comes second is told so, and wrote nothing."""
    with reopen(path) as first:
        slots = WitnessSlots(witness_of(path), first.id)
        slots.remember(first.head.sequence + 1, "0" * 64)
        with pytest.raises(InvalidStudy, match="the same as its witness up to entry 1"):
            first.reserve(request(epsilon="0.1"))
        assert first.head.sequence == 0
        with pytest.raises(OSError, match="the witness saw another entry at this place"):
            slots.remember(first.head.sequence + 1, "1" * 64)
        slots.close()


@contextlib.contextmanager
def set_back(path):
    """Put back what a ledger's file held, in the file itself, as a copy over it does: those who have it open keep it."""
    tables = ("entry", "answer", "total")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as own:
        held = {table: own.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
        yield
        triggers = own.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        own.execute("BEGIN IMMEDIATE")
        for name, _ in triggers:
            own.execute(f"DROP TRIGGER {name}")
        for table, rows in held.items():
            own.execute(f"DELETE FROM {table} WHERE true")
            own.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        for _, text in triggers:
            own.execute(text)
        own.execute("COMMIT")


def spend_what_was_spent(path, tmp_path, *, others):
    """Set a ledger back under two who have it open; return what the one who was idle may charge once more.

    others   how many entries are written meanwhile, by a machine whose own witness knows of nothing that is missing
    """
    with reopen(path) as busy, reopen(path) as idle:
        ask(busy, request(epsilon="0.1"))
        elsewhere = tmp_path / "elsewhere.head"
        elsewhere.write_bytes(witness_of(path).read_bytes())
        with set_back(path):
            for _ in range(2):
                ask(busy, request(epsilon="0.4"))
        if others:
            with reopen(path, witness=elsewhere) as other:
                for _ in range(others):
                    other.refresh("simulated")
        return idle.reserve(request(epsilon="0.8", data_version=1 + others)).entry.sequence


@pytest.mark.parametrize("others", [0, 1, 4, 8])
def test_a_ledger_set_back_while_it_is_open_takes_no_charge(others, path, tmp_path):
    """Also from a process that was idle, and where others went on from there: the witness beside it knows."""
    with pytest.raises(InvalidStudy, match="ledger must be the same as its witness up to entry 6"):
        spend_what_was_spent(path, tmp_path, others=others)


@pytest.mark.parametrize("others", [0, 8])
def test_a_change_that_asks_no_witness_spends_twice(others, path, tmp_path, monkeypatch):
    """A seeded bug: what was forgotten is sold once more."""
    monkeypatch.setattr(WitnessSlots, "look", lambda _: None)
    assert spend_what_was_spent(path, tmp_path, others=others) == 3 + others


def test_the_witness_is_asked_before_the_moment_is_chosen(path, monkeypatch):
    """Somebody charges while another one opens: what the witness saw is in every moment that begins later."""
    real = witness.recall
    with reopen(path) as other, reopen(path) as ledger:
        ledger.ask_witness()
        reading, order = ledger._store.reading, []

        def recall(place):
            order.append("witness")
            other.reserve(request(epsilon="0.1"))
            return real(place)

        def moment():
            order.append("moment")
            return reading()

        monkeypatch.setattr(opening.mirror, "recall", recall)
        monkeypatch.setattr(ledger._store, "reading", moment)
        ledger.ask_witness()
        assert order == ["witness", "moment"]


FORKS = """
from curador.ledger import witness
from curador.ledger.acts import Reserve
import os, time
ledger.reserve(request(epsilon="0.1"))
service = ledger.write_for_others()
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
def stand_still(_handle):
    print(child, flush=True)
    time.sleep(60)
witness.os.fdatasync = stand_still
ledger._own_writer.do(Reserve(request(epsilon="0.1")))
"""


def test_a_forked_child_holds_nothing_of_its_parents(path):
    """It may live longer than a parent that was killed while it held the witness, and wrote for others."""
    code = textwrap.indent(FORKS, "    ")
    with subprocess.Popen([sys.executable, "-c", with_ledger(code, path)], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
        try:
            with reopen(path) as ledger:
                ask(ledger, request(epsilon="0.1"))
                ledger.write_for_others().stop()
                assert ledger.spent().epsilon == Fraction(3, 10)
        finally:
            os.kill(child, signal.SIGKILL)
