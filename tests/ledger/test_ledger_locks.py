"""Locks that end too soon or outlive what they are for: openings side by side in one process, forks, who opens meanwhile."""
# ruff: noqa: SLF001 -- what a person cannot do by hand

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path

import pytest
from ledgers import PURE, ask, create, reopen, request

from curador.errors import BudgetExceeded, Failed, InvalidStudy
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
    """Two ledgers that charged different things at one place: who comes second is told so."""
    first = reopen(path)
    slots = WitnessSlots(witness_of(path), first.id)
    sequence, hash_ = first.head
    slots.remember(sequence + 1, "0" * 64)
    with pytest.raises(Failed, match="witness could not be written"):
        first.reserve(request(epsilon="0.1"))
    slots.close()
    first.close()
    assert hash_ != "0" * 64


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
