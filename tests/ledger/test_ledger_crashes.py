"""Killed and cut off at random: every answer that got out has its entry, and nothing that was charged is forgotten."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_workers import answer_until_killed
from ledgers import create, request
from ledgers import reopen as reopen_small

from curador.errors import Failed, InvalidStudy
from curador.ledger import sqlite
from curador.ledger.amounts import Amounts
from curador.ledger.witness import WitnessSlots, witness_of
from curador.study.model import Budget

LARGE = Budget(epsilon=1_000_000)
HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL") or not hasattr(os, "fork"), reason="this system does not kill"),
]


def reopen(path, **options):
    return reopen_small(path, LARGE, **options)


def killed(path, releases, kills, *, careful, stop=lambda: False):
    """Let a process answer, kill it somewhere in its work, and again."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["curador.ledger.ledger"])
    chance = random.Random()
    releases.touch()
    for _ in range(kills):
        before = releases.stat().st_size
        worker = context.Process(target=answer_until_killed, args=(path, releases), kwargs={"careful": careful})
        worker.start()
        deadline = time.monotonic() + 30
        while releases.stat().st_size == before and time.monotonic() < deadline:
            time.sleep(0.0001)
        time.sleep(chance.choice((0, chance.uniform(0, 0.04))))  # at once after a release, or anywhere
        worker.kill()
        worker.join()
        worker.close()
        assert releases.stat().st_size > before
        if stop():
            return


def unrecorded(path, releases):
    """Return the releases that the ledger does not know."""
    released = releases.read_text(encoding="ascii").splitlines()
    with reopen(path) as ledger:
        committed = {one.refers: one for one in ledger.entries() if one.kind == "committed"}
        reserved = [one for one in ledger.entries() if one.kind == "reserved"]
        assert ledger.spent() == Amounts(len(reserved) * Fraction(1, 1000))
        known = {
            one
            for one in released
            if one in committed and ledger.stored(committed[one].question_key, 1).answer == f"{one}\n".encode()
        }
    return set(released) - known


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.long)])
def test_every_release_is_recorded(kills, tmp_path, record_property):
    """Killed at random: no release without its committed entry, every charge kept, the ledger whole."""
    path, releases = tmp_path / "a.ledger", tmp_path / "releases"
    create(path, LARGE).close()
    killed(path, releases, kills, careful=True)

    began = time.monotonic()
    reopen(path).close()
    record_property("restart_s", f"{time.monotonic() - began:.2f}")
    record_property("kills", kills)
    record_property("releases", len(releases.read_text(encoding="ascii").splitlines()))
    assert unrecorded(path, releases) == set()
    assert len(releases.read_text(encoding="ascii").splitlines()) >= kills
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".head")] == ["a.ledger.head"]


def test_releasing_before_the_commit_is_caught(tmp_path):
    """The seeded bug: the same kills find a release that the ledger does not know."""
    path, releases = tmp_path / "a.ledger", tmp_path / "releases"
    create(path, LARGE).close()
    killed(path, releases, 100, careful=False, stop=lambda: bool(unrecorded(path, releases)))

    assert unrecorded(path, releases)


def test_a_forked_child_has_connections_of_its_own(tmp_path):
    """A ledger that was open when a process forked works in both, and both charges count."""
    code = f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
from ledgers import create, request
with create({str(tmp_path / "a.ledger")!r}) as ledger:
    ledger.reserve(request(epsilon="0.1"))
    child = os.fork()
    if child == 0:
        ledger.reserve(request(epsilon="0.2"))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    ledger.reserve(request(epsilon="0.3"))
    assert ledger.spent().epsilon == sum(map(ledger.limits.epsilon.__class__, ("0.1", "0.2", "0.3")))
    ledger.verify()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with reopen_small(tmp_path / "a.ledger") as ledger:
        assert ledger.head.sequence == 3


# ---- a power cut --------------------------------------------------------------------------------------------------------

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a disk would still hold after a power cut: a file as it was when it was last synced. */
static void keep(int handle) {
    char link[64], path[4096], copy[4400], block[65536];
    const char *folder = getenv("DISK");
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!folder || length <= 0) return;
    path[length] = 0;
    const char *name = strrchr(path, '/') + 1;
    snprintf(copy, sizeof copy, "%s/%s", folder, name);
    int out = open(copy, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (out < 0) return;
    off_t place = 0;
    ssize_t got;
    while ((got = pread(handle, block, sizeof block, place)) > 0) {
        if (write(out, block, got) != got) abort();
        place += got;
    }
    close(out);
}

int fsync(int handle) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    int result = real(handle);
    keep(handle);
    return result;
}

int fdatasync(int handle) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    int result = real(handle);
    keep(handle);
    return result;
}
"""


def power_cut(tmp_path, mutant=""):
    """Answer 20 questions, cut the power, and return how many of the releases the disk's ledger does not know."""
    shim, disk, work = tmp_path / "shim.so", tmp_path / "disk", tmp_path / "work"
    (tmp_path / "shim.c").write_text(SHIM, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, tmp_path / "shim.c", "-ldl"], check=True)
    disk.mkdir()
    work.mkdir()
    create(work / "a.ledger", LARGE).close()
    for name in ("a.ledger", "a.ledger.head"):
        shutil.copy(work / name, disk / name)
    shutil.copy(work / "a.ledger.head", tmp_path / "first.head")
    code = f"import sys; sys.path.insert(0, {str(HERE)!r})\n{mutant}\nimport ledger_workers\n"
    code += f"ledger_workers.answer_some({str(work / 'a.ledger')!r}, {str(tmp_path / 'releases')!r}, 20)"
    environment = {**os.environ, "LD_PRELOAD": str(shim), "DISK": str(disk)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as worker:
        releases = tmp_path / "releases"
        deadline = time.monotonic() + 60
        while not (releases.exists() and "done" in releases.read_text(encoding="ascii")) and time.monotonic() < deadline:
            time.sleep(0.01)
        worker.kill()
    return forgotten(tmp_path)


def forgotten(tmp_path):
    """Return how many of the releases the disk's ledger does not know."""
    released = (tmp_path / "releases").read_text(encoding="ascii").splitlines()[:-1]
    assert len(released) == 20
    with reopen(tmp_path / "disk" / "a.ledger") as ledger:
        known = {one.refers for one in ledger.entries() if one.kind == "committed"}
    return len(set(released) - known)


needs_compiler = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not shutil.which("cc"), reason="needs Linux and cc"
)


@needs_compiler
def test_a_power_cut_forgets_nothing(tmp_path):
    """With only what was synced, every release still has its entry."""
    assert power_cut(tmp_path) == 0


@needs_compiler
def test_a_power_cut_shows_a_fast_setting(tmp_path):
    """The seeded bug: synchronous=NORMAL, unnoticed, forgets releases; and the witness, which is synced by itself, tells."""
    mutant = (
        "from curador.ledger import sqlite\nsqlite.SETTINGS['synchronous'] = 'NORMAL'\nsqlite.REQUIRED['synchronous'] = 1"
    )

    with pytest.raises(InvalidStudy, match="behind its witness by 40 entries"):
        power_cut(tmp_path, mutant)
    shutil.copy(tmp_path / "first.head", tmp_path / "disk" / "a.ledger.head")
    assert forgotten(tmp_path) > 0


def test_a_charge_before_the_kill_is_there_after_it(tmp_path):
    """Killed between reserve and commit: the charge stays, no answer is stored, and work goes on."""
    path = tmp_path / "a.ledger"
    create(path).close()
    code = f"""
import os, signal, sys
sys.path.insert(0, {str(HERE)!r})
from ledgers import reopen, request
ledger = reopen({str(path)!r})
ledger.reserve(request(epsilon="0.25", question="q"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == -signal.SIGKILL
    with reopen_small(path) as ledger:
        assert ledger.spent() == Amounts(Fraction(1, 4))
        ledger.reserve(request(epsilon="0.75"))
        assert [one.kind.value for one in ledger.entries()] == ["created", "reserved", "reserved"]


# ---- what a killed writer left in the log ------------------------------------------------------------------------------


def charge_and_end(path):
    """Charge something, and end without closing anything: the log stays beside the file."""
    ledger = reopen(path)
    ledger.reserve(request(epsilon="0.1"))
    ledger._store.tip()  # noqa: SLF001 -- it is there
    os._exit(0)


def test_what_was_left_in_the_log_is_synced_before_anybody_sees_it(tmp_path, monkeypatch):
    """A log whose last commit may not be on disk: it is synced before the first page is read, and before the witness is."""
    path = tmp_path / "a.ledger"
    create(path, LARGE).close()
    before = witness_of(path).read_bytes()
    worker = multiprocessing.get_context("fork").Process(target=charge_and_end, args=(path,))
    worker.start()
    worker.join()
    log = path.with_name(path.name + "-wal")
    assert log.stat().st_size > 0
    done, sync, begin, remember = [], os.fsync, sqlite._begin, WitnessSlots.remember  # noqa: SLF001 -- watched

    def watched(handle):
        done.append(("sync", Path(f"/proc/self/fd/{handle}").readlink().name))
        sync(handle)

    monkeypatch.setattr(sqlite.os, "fsync", watched)
    monkeypatch.setattr(sqlite, "_begin", lambda *given: (done.append(("begin", given[1])), begin(*given)))
    monkeypatch.setattr(
        WitnessSlots, "remember", lambda own, *head: (done.append(("witness", head[0])), remember(own, *head))
    )
    witness_of(path).write_bytes(before)  # the charge was not witnessed

    with reopen(path, verify=False):
        pass

    assert done.index(("sync", log.name)) < done.index(("begin", "BEGIN"))
    assert done.index(("sync", log.name)) < done.index(("witness", 1))
    assert [one for one in done if one == ("sync", log.name)] == [("sync", log.name)]  # once, however many look


def test_a_log_that_cannot_be_synced_is_not_looked_at(tmp_path, monkeypatch):
    """Nobody knows what of it would last: refused, and opened when the disk is well."""
    path = tmp_path / "a.ledger"
    create(path, LARGE).close()

    def broken(handle):
        raise OSError(errno.EIO, "simulated")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite.os, "fsync", broken)
        with pytest.raises(Failed, match=r"^the ledger could not be written; nothing was released\.$"):
            reopen(path)

    with reopen(path) as ledger:
        assert ledger.head.sequence == 0
