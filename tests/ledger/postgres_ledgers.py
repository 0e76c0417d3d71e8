"""Whole ledgers on a real PostgreSQL: made, opened and raced for as those in files are."""

import threading
import time

import ledgers

from curador.errors import BudgetExceeded
from curador.ledger.pointer import read_pointer, write_pointer
from curador.study.model import Budget


def create(url, folder, **changes):
    """Return a new ledger on a server; its witness is in the folder."""
    return ledgers.create(folder / "visits.ledger", server=url, **changes)


def reopen(url, folder, **changes):
    """Return that ledger, opened again, wherever its server is now: a standby that was promoted has another address."""
    place = folder / "visits.ledger"
    if read_pointer(place) != url:
        place.unlink()
        write_pointer(place, url, "the same")
    return ledgers.reopen(place, **changes)


class OnPostgres:
    """The ledger itself: a charge of an n-th, then its answer."""

    def __init__(self, place, limit):
        self.ledger, self.limit = reopen(*place, budget=Budget(epsilon=1), verify=False), limit

    def spend(self):
        """Take one."""
        name = threading.current_thread().name
        amount = self.ledger.limits.share(1 / self.limit).epsilon
        ledgers.ask(self.ledger, ledgers.request(epsilon=amount, analyst=name))


class CheckThenInsertOnPostgres:
    """WRONG: looks first and writes then, each in a transaction of its own."""

    def __init__(self, place, limit):
        self.place, self.limit = place, limit

    def spend(self):
        """Take one, if there seems to be one left."""
        with self.place.connect("writer") as connection:
            (spent,) = connection.execute("SELECT count(*) FROM spend").fetchone()
            time.sleep(0.002)
            if spent >= self.limit:
                raise BudgetExceeded("nothing left")
            connection.execute("INSERT INTO spend DEFAULT VALUES")
