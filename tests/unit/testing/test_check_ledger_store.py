# ruff: noqa: D101 -- a seeded bug is named by its class, and uses less than it is given
"""The SQLite store keeps the rules that ship for others, and each rule is broken by a store that it catches."""

import contextlib
import sqlite3

import pytest

from curador.ledger import sqlite
from curador.ledger.sqlite import SQLiteStore
from curador.ledger.store import Page, tables
from curador.testing import NonconformingError, check_ledger_store


def opener(folder, kind=SQLiteStore):
    """Return a function that opens one new ledger, as the suite wants it: tables, and no entry."""
    path = folder / "new.ledger"
    sqlite3.connect(path).close()
    store = SQLiteStore(path)
    with store.writing() as page:
        for statement in tables(sqlite._dialect()):  # noqa: SLF001 -- the statements of the very database
            page.cursor.execute(statement)
    store.close()
    return lambda: kind(path)


def test_the_sqlite_store_keeps_the_rules(tmp_path):
    """Every one of them, on a real file."""
    check_ledger_store(opener(tmp_path))


class CommitsWhatFailed(SQLiteStore):
    @contextlib.contextmanager
    def writing(self, **options):
        failed = None
        with super().writing(**options) as page:
            try:
                yield page
            except Exception as error:  # noqa: BLE001
                failed = error
        if failed is not None:
            raise failed


class ReadsManyMoments(SQLiteStore):
    @contextlib.contextmanager
    def reading(self):
        with self._page() as page:
            yield page


class CountsPastLimits(SQLiteStore):
    @contextlib.contextmanager
    def writing(self, **options):
        with super().writing(**options) as page:

            class Lax(Page):
                def put_total(self, holder, spent, limit):
                    super().put_total(holder, spent, spent.most(limit))

            yield Lax(page.cursor, self._statements)


class ForgetsAnswers(SQLiteStore):
    @contextlib.contextmanager
    def writing(self, **options):
        with super().writing(**options) as page:

            class Forgetful(Page):
                def keep(self, entry, content):
                    pass

            yield Forgetful(page.cursor, self._statements)


class ForgetsWhatIsBought(SQLiteStore):
    @contextlib.contextmanager
    def writing(self, **options):
        with super().writing(**options) as page:

            class Oblivious(Page):
                def standing(self, *_, **__):
                    return None

            yield Oblivious(page.cursor, self._statements)


class KeepsNothing(SQLiteStore):
    """Loses its answers when it is closed, if nobody is writing."""

    def close(self):
        super().close()
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=0)
        with contextlib.suppress(sqlite3.OperationalError):
            connection.executescript("DROP TRIGGER IF EXISTS answer_no_delete; DELETE FROM answer")
        connection.close()


BUGS = {
    CommitsWhatFailed: "leave nothing behind",
    ReadsManyMoments: "must be one moment",
    CountsPastLimits: "above its limit must be impossible",
    ForgetsAnswers: "an answer by its question and version",
    ForgetsWhatIsBought: "a reservation stands while it is open",
    KeepsNothing: "after closing and opening again",
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_caught(bug, tmp_path):
    """Each by the rule that it breaks."""
    with pytest.raises(NonconformingError, match=BUGS[bug]):
        check_ledger_store(opener(tmp_path, bug))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DROP TRIGGER entry_no_update", "UPDATE entry SET kind = 'voided' was possible"),
        ("DROP TRIGGER answer_no_delete", "DELETE FROM answer was possible"),
    ],
)
def test_tables_that_can_be_written_over_are_caught(change, told, tmp_path):
    """Where the database itself does not refuse it."""
    open_store = opener(tmp_path)
    connection = sqlite3.connect(tmp_path / "new.ledger", isolation_level=None)
    connection.execute(change)
    connection.close()

    with pytest.raises(NonconformingError, match=told):
        check_ledger_store(open_store)


def test_tables_that_refuse_a_kind_are_caught(tmp_path):
    """As those of files that were made before the kind."""
    path = tmp_path / "new.ledger"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in tables(sqlite._dialect()):  # noqa: SLF001 -- the statements of the very database
            connection.execute(statement.replace(", 'declared'", ""))

    with pytest.raises(NonconformingError, match="every kind of entry must be let in: declared was not"):
        check_ledger_store(lambda: SQLiteStore(path))


def test_a_second_writer_is_caught(tmp_path, monkeypatch):
    """A transaction that takes its lock only with its first write lets two begin."""
    begin = sqlite._begin  # noqa: SLF001 -- where the lock is taken
    monkeypatch.setattr(sqlite, "_begin", lambda cursor, _, deadline: begin(cursor, "BEGIN", deadline))

    with pytest.raises(NonconformingError, match="two writers at once"):
        check_ledger_store(opener(tmp_path))
