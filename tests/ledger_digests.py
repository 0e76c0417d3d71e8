"""The owner's table of digests until a store has it: in a file of its own, by the ledger's id."""

import contextlib
import sqlite3

import registers
from curador.ledger.ledger import Ledger

_folder = registers.quick_folder()


def _table(ledger):
    connection = sqlite3.connect(f"{_folder.name}/{ledger.id}", timeout=30, isolation_level=None)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS prepared (study TEXT, data_version INTEGER, digest TEXT,"
        " PRIMARY KEY (study, data_version))"
    )
    return contextlib.closing(connection)


def prepared_digest(self, study, version):
    with _table(self) as table:
        found = table.execute("SELECT digest FROM prepared WHERE study = ? AND data_version = ?", (study, version)).fetchone()
    return None if found is None else found[0]


def settle_digest(self, study, version, digest):
    with _table(self) as table:
        table.execute("INSERT OR IGNORE INTO prepared VALUES (?, ?, ?)", (study, version, digest))
    return prepared_digest(self, study, version)


if not hasattr(Ledger, "settle_digest"):
    Ledger.prepared_digest = prepared_digest
    Ledger.settle_digest = settle_digest
