"""However a statement is spelled that touches a table: the curator answers it or it is refused; the shadow never reads.

The shadow's tables secretly hold a row here, by the hand of its superuser; whatever comes back is searched for it. The second
round switches our own reading off, so that every statement goes to the shadow: then its rights alone must hold. A seeded bug,
which grants SELECT, must be caught by that round, by what a door tries before it opens, and must show the row.
"""

import psycopg
import pytest
from doors import CANARY, open_door
from spellings import spellings, touching

from curador.door import session, shadow
from curador.door.shadow_schema import tables_text
from curador.door.statements import Statement, StatementKind

SPELLINGS = spellings()


def planted_text(grant=""):
    def text(tables, unit):
        return f"{tables_text(tables, unit)}; INSERT INTO visits (user_id, city, spent) VALUES (7, '{CANARY}', 1){grant}"

    return text


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A door whose shadow holds the canary."""
    with pytest.MonkeyPatch.context() as patch, open_door(tmp_path_factory.mktemp("planted")) as door:
        patch.setattr(shadow, "tables_text", planted_text())
        door.connect().close()
        yield door


def everything_said(connection, text):
    """Return all bytes that a statement brings: rows of every result, the tag, errors and notices."""
    said = []
    connection.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
    try:
        cursor = connection.execute(text)
        while True:
            said.append(str(cursor.statusmessage))
            if cursor.description:
                said += [str(cursor.description), str(cursor.fetchall())]
            if not cursor.nextset():
                break
    except psycopg.Error as problem:
        said += [str(problem), str(problem.sqlstate)]
    if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        connection.execute("ROLLBACK")
    return " ".join(said)


def reads(door, texts, **said):
    """Return the statements that show the canary."""
    found, connection = [], door.connect(**said)
    for text in texts:
        if connection.closed:  # the door ends a connection that gets into a COPY
            connection = door.connect(**said)
        if CANARY in everything_said(connection, text):
            found.append(text)
    connection.close()
    return found


def test_there_are_enough():
    assert len(SPELLINGS) >= 1_000


def test_no_spelling_reads_the_shadow(planted):
    before = planted.entries()
    assert reads(planted, SPELLINGS) == []
    assert planted.entries() == before


def test_no_spelling_reads_the_shadow_in_the_extended_protocol(planted):
    assert reads(planted, SPELLINGS[::5], prepare_threshold=0) == []


def test_what_touches_a_table_has_no_empty_answer(planted):
    """No result without a row, no 0: of those statements that touch the table every one is refused without a price.

    The curator answers none without a price, so whatever is answered came from the shadow.
    """
    assert answered(planted, touching()) == []
    assert answered(planted, touching()[::7], prepare=True) == []


def answered(door, texts, **said):
    """Return the statements that are answered."""
    found, connection = [], door.connect()
    for text in texts:
        if connection.closed:
            connection = door.connect()
        try:
            connection.execute(text, **said)
        except psycopg.Error:
            if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        else:
            found.append(text)
    connection.close()
    return found


def to_shadow(text, tables):
    """WRONG: takes every statement for one about catalogues."""
    return [Statement(StatementKind.SHADOW, text)]


def test_the_rights_alone_hold_where_our_reading_errs(planted, monkeypatch):
    monkeypatch.setattr(session, "read_statements", to_shadow)
    assert reads(planted, SPELLINGS) == []
    with planted.connect() as connection:
        assert "must be a question that the curator can read" in everything_said(connection, "SELECT count(*) FROM visits")


def test_a_right_to_read_is_caught(tmp_path, monkeypatch):
    with open_door(tmp_path) as door:
        monkeypatch.setattr(shadow, "tables_text", planted_text("; GRANT SELECT ON visits TO analyst"))
        with pytest.raises(psycopg.OperationalError, match="Something on our side went wrong"):
            door.connect()  # what a door tries before it opens
        monkeypatch.setattr(shadow, "require_unreadable", lambda _: None)
        assert reads(door, ["SELECT city FROM visits"]) == []  # our own reading still holds
        monkeypatch.setattr(session, "read_statements", to_shadow)
        assert len(reads(door, SPELLINGS[:400])) > 10
