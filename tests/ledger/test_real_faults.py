"""Faults at every named step of a question, in real processes on real files: what was told is so, and nothing is lost."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from faulty_askers import FAULTS, POINTS, SERVICE_POINTS, SOCKET_POINTS, Nursery
from ledgers import ask, create, request
from ledgers import reopen as reopen_small

from curador.errors import CuradorError, Failed, InvalidStudy, LedgerBusy
from curador.ledger import witness
from curador.ledger.acts import Reserve
from curador.ledger.entry import EntryKind
from curador.ledger.ledger import Ledger
from curador.ledger.witness import witness_of
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.study.model import Budget

HERE = Path(__file__).parent
BUDGET = Budget(epsilon=3, delta="1e-6")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not hasattr(signal, "SIGSTOP") or not hasattr(os, "fork"), reason="this system does not stop processes"
    ),
]


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    made = Nursery(tmp_path_factory.mktemp("nursery") / "study")
    yield made
    made.close()


@pytest.fixture
def impatient(monkeypatch):
    """Nobody in this process waits long for one who stands still."""
    monkeypatch.setattr(witness, "PATIENCE", 0.5)


def reopen(folder):
    owners = tuple((table, "column user_id") for table in ("salaries", "visits"))
    return Ledger.open(folder / "visits.ledger", budget=BUDGET, adjacency=ADD_OR_REMOVE_ONE, unit="person", owners=owners)


def heard(folder):
    """What an asker wrote down."""
    file = folder / "heard"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def require_true(folder, *, first=True):
    """Compare what askers were told, charged and given with what the ledger holds; return the entries and the seconds.

    first   whether only one of them asked, so that what it was told of the charge is about every charge
    """
    began = time.monotonic()
    with reopen(folder) as ledger:
        took = time.monotonic() - began
        ledger.verify()
        entries = [one for one in ledger.entries() if one.kind in {EntryKind.RESERVED, EntryKind.COMMITTED, EntryKind.FAILED}]
        reserved = {one.id: one for one in entries if one.kind is EntryKind.RESERVED}
        spent = ledger.spent()
    committed = {one.answer_digest: one for one in entries if one.kind is EntryKind.COMMITTED}
    lines = heard(folder)
    assert spent.rho == sum(one.amounts.rho for one in reserved.values())
    assert {line["charged"] for line in lines if "charged" in line} <= set(reserved), "a charge was lost"
    assert {line["released"] for line in lines if "released" in line} <= set(committed), "released and not recorded"
    for told in [line.get("told", "") for line in lines] if first else ():
        assert not ("nothing was spent" in told or "nothing was charged" in told) or not reserved, told
        assert "charge is kept" not in told or reserved, told
        assert "nothing was released" not in told or not any("released" in one for one in lines)
    return entries, took


def goes_on(nursery, folder):
    """Another process asks the same: it is answered, and no question is charged twice that somebody lives to answer."""
    _, ended = nursery.run("ask", folder)
    assert ended == "exited"
    assert "released" in heard(folder)[-1], heard(folder)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", POINTS)
def test_a_fault_at_a_step(point, fault, nursery, impatient, tmp_path, record_property):
    """Raised, killed or stopped there: nothing released without its entry, no charge lost, nothing false said."""
    process, ended = nursery.run("ask", tmp_path, point, fault)
    assert ended == {"raise": "exited", "kill": "killed", "hang": "stopped"}[fault]
    try:
        if fault == "hang":
            another_goes_on(tmp_path, holds="inside" in point or "half" in point)
    finally:
        if fault == "hang":
            os.kill(process, signal.SIGCONT)
    if fault == "hang":
        wait_for(lambda: any("told" in line or "released" in line for line in heard(tmp_path)))
        assert any("released" in line for line in heard(tmp_path)) or "inside" in point
    entries, took = require_true(tmp_path)
    record_property("reopened", f"{took:.3f}")
    if fault == "kill":
        after = point.startswith(("compute", "answer")) or "committed" in point or "half" in point or "on disk" in point
        assert sum(one.kind is EntryKind.RESERVED for one in entries) == after
        stored = point.startswith("answer") and ("committed" in point or "half" in point or "on disk" in point)
        assert sum(one.kind is EntryKind.COMMITTED for one in entries) == stored
    goes_on(nursery, tmp_path)
    entries, _ = require_true(tmp_path, first=False)
    assert sum(one.kind is EntryKind.RESERVED for one in entries) <= 2


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    assert condition()


def another_goes_on(folder, *, holds):
    """While one stands still: whoever else asks is answered, or told that the ledger is busy, and that is so."""
    try:
        with reopen(folder) as ledger:
            before = ledger.head.sequence
            asked = request(rho="1e-4", question="another", study_digest=ledger.first.study_digest)
            act, said = Reserve(asked), ""
            try:
                ledger._writer.do(act, patience=0.5)  # noqa: SLF001 -- with little patience
            except LedgerBusy:
                assert holds
                assert ledger.outcome(act.id) is None
                assert ledger.head.sequence == before
            except Failed as told:
                assert holds
                said = str(told)
            if said:
                assert "the charge is kept" in said
                assert ledger.outcome(act.id) is not None
    except LedgerBusy:
        assert holds


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", SOCKET_POINTS)
def test_a_fault_at_the_socket(point, fault, nursery, impatient, tmp_path):
    """The asker's end: what was handed over has one outcome."""
    service, _ = nursery.run("serve", tmp_path)
    try:
        process, ended = nursery.run("ask", tmp_path, point, fault)
        assert ended == {"raise": "exited", "kill": "killed", "hang": "stopped"}[fault]
        if fault == "hang":
            another_goes_on(tmp_path, holds=False)
            os.kill(process, signal.SIGCONT)
            wait_for(lambda: any("released" in line for line in heard(tmp_path)))
        require_true(tmp_path)
        goes_on(nursery, tmp_path)
        entries, _ = require_true(tmp_path, first=False)
        assert sum(one.kind is EntryKind.RESERVED for one in entries) <= 2
    finally:
        os.kill(service, signal.SIGKILL)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", SERVICE_POINTS)
def test_a_fault_of_the_service(point, fault, nursery, tmp_path):
    """The other end: the asker finds its charge by the id, pays once, and is answered."""
    service, _ = nursery.run("serve", tmp_path, point, fault)
    try:
        _, ended = nursery.run("ask", tmp_path)
        assert ended == "exited"
        entries, _ = require_true(tmp_path)
        told = heard(tmp_path)[-1].get("told", "")
        if "may be kept" in told or "is kept" in told:  # its own patience is half a second, and the machine may be slow
            assert fault == "hang"
            assert sum(one.kind is EntryKind.RESERVED for one in entries) <= 1
            return
        assert [one.kind.value for one in entries] == ["reserved", "committed"], heard(tmp_path)
        assert "released" in heard(tmp_path)[-1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(service, signal.SIGKILL)


def test_a_release_before_its_commit_is_caught(nursery, tmp_path):
    """The seeded bug: what was heard without its entry is found by the comparison above."""
    nursery.run("ask", tmp_path, "answer: before it is handed over", "kill")
    (tmp_path / "heard").write_text(json.dumps({"released": "early"}) + "\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="released and not recorded"):
        require_true(tmp_path)
    (tmp_path / "heard").write_text(json.dumps({"told": "nothing was spent"}) + "\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="nothing was spent"):
        require_true(tmp_path)


# ---- disks ---------------------------------------------------------------------------------------------------------------


FILLED = """
import json, resource, signal, sys
sys.path.insert(0, {here!r})
from ledgers import ask, reopen, request
from curador.errors import CuradorError
out = []
with reopen({path!r}) as ledger:
    for number in range(40):
        try:
            {limit}
            ask(ledger, request(epsilon="1/1000", question=str(number)))
            out.append("answered")
        except CuradorError as told:
            out.append(str(told))
        {free}
print(json.dumps(out))
"""


def filled(path, limit="pass", free="pass"):
    code = FILLED.format(here=str(HERE), path=str(path), limit=limit, free=free)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


def require_honest(path, told, *, most):
    """What was answered is there; what was refused says nothing that is false."""
    with reopen_small(path) as ledger:
        ledger.verify()
        committed = sum(one.kind is EntryKind.COMMITTED for one in ledger.entries())
        reserved = sum(one.kind is EntryKind.RESERVED for one in ledger.entries())
    failed = [one for one in told if one != "answered"]
    assert told.count("answered") == committed < most
    assert failed
    assert all("could not be written" in one for one in failed), failed
    assert sum("charge is kept" in one for one in failed) <= reserved
    with reopen_small(path) as ledger:  # there is room again
        ask(ledger, request(epsilon="1/1000"))


def test_a_file_that_may_grow_no_further(tmp_path):
    """RLIMIT_FSIZE, as a quota: what does not fit is told so, the ledger is whole, and goes on where there is room."""
    path = tmp_path / "a.ledger"
    create(path).close()
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, ({}, resource.RLIM_INFINITY))"
    small = limit.format("60_000") + "; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    told = filled(path, small, limit.format("resource.RLIM_INFINITY"))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    require_honest(path, told, most=40)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte, where we may have one."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=False, capture_output=True)
    if done.returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def test_a_full_disk(small_disk):
    """No byte is left: nothing is answered that is not recorded; with room again it goes on."""
    path = small_disk / "a.ledger"
    create(path).close()
    free = shutil.disk_usage(small_disk).free
    (small_disk / "ballast").write_bytes(b"x" * (free - 60_000))
    told = filled(path)
    (small_disk / "ballast").unlink()
    require_honest(path, told, most=40)


def test_a_disk_that_cannot_be_written(small_disk):
    """Mounted read-only: refused in one sentence when it is opened, and when it is opened already."""
    path = small_disk / "a.ledger"
    ledger = create(path)
    ask(ledger, request(epsilon="1/10"))
    done = subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=False, capture_output=True)
    if done.returncode:  # files that are open for writing keep it busy
        ledger.close()
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(CuradorError, match="ledger"), reopen_small(path) as opened:
        opened.reserve(request(epsilon="1/10"))
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    with reopen_small(path) as opened:
        assert opened.spent().epsilon == request(epsilon="1/10").amounts.epsilon
        ask(opened, request(epsilon="1/10"))


@pytest.fixture
def open_folder():
    """A folder of our own that everybody may enter: those of pytest are the owner's alone, and stay so."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        place.chmod(0o777)
        yield place


@pytest.mark.parametrize(
    ("closed", "told", "spends"),
    [("ledger", "ledger must be a file that can be read and written", False), ("witness", "the charge is kept", True)],
)
def test_a_file_that_cannot_be_written(closed, told, spends, open_folder):
    """The file itself, or its witness: told by name, and whether anything was spent is told truly."""
    path = open_folder / "a.ledger"
    create(path).close()
    code = f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
from ledgers import reopen, request
from curador.errors import CuradorError
if os.geteuid() == 0:  # who may do everything finds no file closed
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    with reopen({str(path)!r}, verify=False) as ledger:
        ledger.reserve(request(epsilon="1/10"))
    print("answered")
except CuradorError as told:
    print(told)
"""
    for one in open_folder.iterdir():
        one.chmod(0o666)
    (path if closed == "ledger" else witness_of(path)).chmod(0o444)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip("another user may not run our Python here")
    assert done.returncode == 0, done.stderr
    assert told in done.stdout
    for one in open_folder.iterdir():
        one.chmod(0o600)
    with reopen_small(path) as ledger:
        assert (ledger.spent().epsilon > 0) is spends


# ---- two of everything ---------------------------------------------------------------------------------------------------


def test_two_curators_on_one_folder(nursery, tmp_path):
    """Two processes open the same study, stand in each other's way, and both are right: one charge, one free answer."""
    first, ended = nursery.run("ask", tmp_path, "compute: rows are read", "hang")
    assert ended == "stopped"
    os.kill(first, signal.SIGCONT)
    _, ended = nursery.run("ask", tmp_path)
    wait_for(lambda: sum("released" in line for line in heard(tmp_path)) == 2)
    entries, _ = require_true(tmp_path)
    assert [one.kind.value for one in entries] == ["reserved", "committed"]
    assert len({line["released"] for line in heard(tmp_path) if "released" in line}) == 1


def test_a_holder_that_stands_still_for_ever(tmp_path, monkeypatch):
    """It holds the file, or the witness, and never goes on: others are told so in time, and find the truth afterwards."""
    monkeypatch.setattr(witness, "PATIENCE", 0.2)
    path = tmp_path / "a.ledger"
    create(path).close()
    code = f"import fcntl, time; held = open({str(witness_of(path))!r}, 'r+b'); fcntl.flock(held, 2)"
    code += "; print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder, reopen_small(path) as ledger:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Failed, match="witness could not be written; the charge is kept and nothing was released"):
            ledger.reserve(request(epsilon="1/10"))
        with pytest.raises(LedgerBusy, match="another process holds its witness"):
            reopen_small(path)
        holder.kill()
        holder.wait()
        assert ledger.spent() == request(epsilon="1/10").amounts
        ask(ledger, request(epsilon="1/10"))
        ledger.verify()
    with pytest.raises(InvalidStudy, match="witness must be a file that can be written"):
        refuse_witness(path, monkeypatch)


def refuse_witness(path, monkeypatch):
    """Open a ledger that is ahead of a witness on a disk that broke."""
    with reopen_small(path) as ledger, monkeypatch.context() as patch:
        patch.setattr(ledger._own_writer, "_mirror", lambda *_: None)  # noqa: SLF001 -- killed before the witness
        ledger.reserve(request(epsilon="1/10"))
    monkeypatch.setattr(witness.WitnessSlots, "remember", lambda *_: (_ for _ in ()).throw(OSError(5, "broken")))
    reopen_small(path)
