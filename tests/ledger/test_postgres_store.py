# ruff: noqa: D101 -- a seeded bug is named by its class, and uses less than it is given
"""The store on PostgreSQL keeps the rules that ship for every store, and each rule is broken by a store that it catches."""

import contextlib

import pytest

from curador.ledger import postgres as store_on_postgres
from curador.ledger.postgres import PostgresPage, PostgresStore
from curador.testing import NonconformingError, check_ledger_store

pytestmark = pytest.mark.slow


def test_the_postgres_store_keeps_the_rules(place):
    """Every one of them, on a real server, as a role that may only add."""
    check_ledger_store(lambda: PostgresStore(place.url))


class CommitsWhatFailed(PostgresStore):
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


class ReadsManyMoments(PostgresStore):
    @contextlib.contextmanager
    def reading(self):
        with self._session("READ COMMITTED READ ONLY", None) as session:
            yield PostgresPage(session.cursor, self._statements)


class TakesNoTurn(PostgresStore):
    @contextlib.contextmanager
    def writing(self, **_):
        with self._session("READ COMMITTED READ WRITE", 0.1) as session:
            yield PostgresPage(session.cursor, self._statements)
            session.commit(None)


class ForgetsAnswers(PostgresStore):
    @contextlib.contextmanager
    def writing(self, **options):
        with super().writing(**options) as page:

            class Forgetful(PostgresPage):
                def keep(self, entry, content):
                    pass

            yield Forgetful(page.cursor, self._statements)


class GivesNothingBack(PostgresStore):
    @contextlib.contextmanager
    def writing(self, **options):
        with super().writing(**options) as page:

            class Stingy(PostgresPage):
                def give_back(self, holder, spent):
                    pass

            yield Stingy(page.cursor, self._statements)


BUGS = {
    CommitsWhatFailed: "leave nothing behind",
    ReadsManyMoments: "must be one moment",
    TakesNoTurn: "two writers at once",
    ForgetsAnswers: "an answer by its question and version",
    GivesNothingBack: "what is given back must be off the total",
}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_caught(bug, place):
    """Each by the rule that it breaks."""
    with pytest.raises(NonconformingError, match=BUGS[bug]):
        check_ledger_store(lambda: bug(place.url))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "DROP TRIGGER entry_stays ON entry; GRANT UPDATE ON entry TO writer",
            "UPDATE entry SET kind = 'voided' was possible",
        ),
        ("DROP TRIGGER answer_stays ON answer; GRANT DELETE ON answer TO writer", "DELETE FROM answer was possible"),
        ("ALTER TABLE total DROP CONSTRAINT epsilon_within", "a total above its limit must be impossible"),
        ("ALTER TABLE entry DROP CONSTRAINT settled_once", "a second end was written"),
    ],
)
def test_tables_that_let_too_much_in_are_caught(change, told, place, monkeypatch):
    """Where the server itself does not refuse it, and nobody looked at the role's rights."""
    monkeypatch.setattr(store_on_postgres, "_TOO_MUCH", "SELECT false")
    with place.connect() as owner:
        owner.execute(change)

    with pytest.raises(NonconformingError, match=told):
        check_ledger_store(lambda: PostgresStore(place.url))
