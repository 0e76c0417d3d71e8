"""Whole ledgers on a real PostgreSQL: made, opened and raced for as those in files are."""

import contextlib
import threading
import time
from unittest import mock

import ledgers

from curador.errors import BudgetExceeded
from curador.ledger import opening
from curador.ledger.postgres import PostgresStore, create_ledger
from curador.study.model import Budget


@contextlib.contextmanager
def in_place_of_a_file(url, path):
    """Let a ledger whose witness lies beside a path have its rows on a server."""

    class Placed(PostgresStore):
        pass

    Placed.path = path
    changes = {
        "SQLiteStore": lambda _: Placed(url),
        "create_file": lambda _, fill, announce: create_ledger(url, fill, announce),
        "schema_of": lambda page: PostgresStore.schema_of(Placed.last, page),
    }
    Placed.last = PostgresStore(url)
    try:
        with mock.patch.multiple(opening, **changes):
            yield
    finally:
        Placed.last.close()


def create(url, folder, **changes):
    """Return a new ledger on a server; its witness is in the folder."""
    with in_place_of_a_file(url, folder / "visits.ledger"):
        return ledgers.create(folder / "visits.ledger", **changes)


def reopen(url, folder, **changes):
    """Return that ledger, opened again."""
    with in_place_of_a_file(url, folder / "visits.ledger"):
        return ledgers.reopen(folder / "visits.ledger", **changes)


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
