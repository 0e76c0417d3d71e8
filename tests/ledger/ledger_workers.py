"""What other processes do in the tests of the ledger: race for the last of a budget, be killed at work."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from pathlib import Path

from ledgers import ask, reopen, request

from curador.errors import BudgetExceeded, LedgerBusy
from curador.study.model import Budget


class CheckThenInsert:
    """WRONG: looks first and writes then, each in a transaction of its own."""

    def __init__(self, path, limit):
        self.path, self.limit = path, limit

    def spend(self):
        """Take one, if there seems to be one left."""
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            (spent,) = connection.execute("SELECT count(*) FROM spend").fetchone()
            time.sleep(0.002)
            if spent >= self.limit:
                raise BudgetExceeded("nothing left")
            connection.execute("INSERT INTO spend DEFAULT VALUES")
        finally:
            connection.close()


class Real:
    """The ledger itself: a charge of an n-th, then its answer."""

    def __init__(self, path, limit):
        self.ledger, self.limit = reopen(path, Budget(epsilon=1), verify=False), limit

    def spend(self):
        """Take one."""
        name = threading.current_thread().name
        ask(self.ledger, request(epsilon=self.ledger.limits.share(1 / self.limit).epsilon, analyst=name))


def race(kind, path, limit, names, attempts, barrier, accepted):
    """Let a thread for each name try for a while; count what was admitted."""
    ledger, lock, count = kind(path, limit), threading.Lock(), [0]

    def try_often():
        barrier.wait()
        done = 0
        while done < attempts:
            try:
                ledger.spend()
            except BudgetExceeded:
                done += 1
            except LedgerBusy:
                continue
            else:
                done += 1
                with lock:
                    count[0] += 1

    threads = [threading.Thread(target=try_often, name=name) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accepted.put(count[0])


def answer_until_killed(path, releases, *, careful):
    """Answer questions; a release is a line in a file, written after the commit (or, wrongly, before it)."""
    handle = os.open(releases, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    with reopen(path, Budget(epsilon=1_000_000), verify=False) as ledger:
        while True:
            reservation = ledger.reserve(request(epsilon="0.001", analyst="ana", question=secrets.token_hex(8)))
            release = f"{reservation.id}\n".encode()
            if not careful:
                os.write(handle, release)
            ledger.commit(reservation, answer=release, answer_digest="d")
            if careful:
                os.write(handle, release)


def answer_some(path, releases, count):
    """Answer a number of questions and release them; then wait to be killed."""
    with reopen(path, Budget(epsilon=1_000_000), verify=False) as ledger, Path(releases).open("w", encoding="ascii") as out:
        for _ in range(count):
            reservation = ledger.reserve(request(epsilon="0.001"))
            ledger.commit(reservation, answer=b"answer", answer_digest="d")
            print(reservation.id, file=out, flush=True)
        print("done", file=out, flush=True)
        time.sleep(60)


def open_and_ask(path, times, opened, barrier=None):
    """Open with the checkpoint, ask once, close, and again; a line for each charge that is on disk."""
    from curador.ledger import checkpoint

    checkpoint.EVERY = 4
    handle = os.open(opened, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    if barrier is not None:
        barrier.wait()
    for _ in range(times):
        with reopen(path, Budget(epsilon=1_000_000), checkpoint=True) as ledger:
            reservation = ledger.reserve(request(epsilon="0.001", question=secrets.token_hex(8)))
            os.write(handle, f"{reservation.id}\n".encode())
            ledger.commit(reservation, answer=b"answer", answer_digest="d")


def charge_through(path, told, stop):
    """Charge and answer until told to stop; a line for each, with what was heard of it."""
    import json

    from curador.errors import Failed

    with reopen(path, Budget(epsilon=1_000_000), verify=False) as ledger, Path(told).open("w", encoding="ascii") as out:
        while not Path(stop).exists():
            asked = request(epsilon="0.001", analyst="ana", question=secrets.token_hex(8))
            line = {"id": None, "question": asked.question, "answered": False, "refused": False}
            try:
                reserved = ledger.reserve(asked)
                line["id"] = reserved.id
                ledger.commit(reserved, answer=b"answer", answer_digest="d")
                line["answered"] = True
            except LedgerBusy:
                line["refused"] = line["id"] is None
            except Failed:
                pass
            print(json.dumps(line), file=out, flush=True)
