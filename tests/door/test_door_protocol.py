"""What the protocol promises beside answers: names that are free again, versions, formats, errors that end no connection."""

import json
import struct

import psycopg
import pytest
from raw_client import RawClient

from curador.door import session
from curador.server.logs import write_log


def prepare(raw, name, text):
    """Prepare a statement; return the SQLSTATE of its refusal, or none."""
    raw.send(b"P", name + b"\0" + text.encode() + b"\0\0\0")
    raw.send(b"S")
    return state_of(raw.until_ready())


def state_of(told):
    """Return the SQLSTATE among messages, or none."""
    return next((body.split(b"\0C")[1][:5].decode() for kind, body in told if kind == b"E"), None)


def run(raw, text, protocol):
    """Execute a statement; return the SQLSTATE of its refusal, or none."""
    if protocol == "simple":
        return state_of(raw.query(text))
    raw.send(b"P", b"\0" + text.encode() + b"\0\0\0")
    raw.send(b"B", b"\0\0\0\0\0\0\0\0")
    raw.send(b"E", b"\0\0\0\0\0")
    raw.send(b"S")
    return state_of(raw.until_ready())


@pytest.mark.parametrize("protocol", ["simple", "extended"])
@pytest.mark.parametrize("text", ["SELECT 1", "SELECT count(*) AS n FROM visits"])
@pytest.mark.parametrize("forget", ["DEALLOCATE p", "DEALLOCATE PREPARE p", "DEALLOCATE ALL", "DISCARD ALL"])
def test_a_name_that_was_given_back_is_free(unspent, protocol, text, forget):
    """Whoever answers the statement, the door or the shadow."""
    with RawClient(unspent) as raw:
        for _ in range(2):
            assert prepare(raw, b"p", text) is None
            assert prepare(raw, b"p", text) == "42P05"
            assert run(raw, forget, protocol) is None


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_names_that_were_given_back_do_not_count(unspent, monkeypatch, protocol):
    monkeypatch.setattr(session, "MOST_HELD", 3)
    with RawClient(unspent) as raw:
        for number in range(6):
            assert prepare(raw, b"p%d" % number, "SELECT 1") is None
            assert run(raw, f"DEALLOCATE p{number}", protocol) is None


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_a_name_that_nobody_has_is_refused(unspent, protocol):
    """As PostgreSQL does; a transaction fails by it."""
    with RawClient(unspent) as raw:
        assert run(raw, "DEALLOCATE nothing", protocol) == "26000"
        assert run(raw, "SELECT 1", protocol) is None
        raw.query("BEGIN")
        assert run(raw, "DEALLOCATE nothing", protocol) == "26000"
        assert run(raw, "SELECT 1", protocol) == "25P02"


def test_the_version_that_is_spoken_is_said(door):
    """To whoever asks for a newer one: 3.0 as the protocol writes it, and the options that are not known."""
    with RawClient(door, login=False) as raw:
        body = b"user\0ana\0_pq_.new\x001\0\0"
        raw.socket.sendall(struct.pack("!ii", len(body) + 8, (3 << 16) + 2) + body)
        kind, told = raw.read()
    assert (kind, told) == (b"v", struct.pack("!ii", 3 << 16, 1) + b"_pq_.new\0")


def test_formats_that_do_not_fit_are_refused_before_the_charge(unspent):
    """Two formats for three columns; what was described is refused, too, and so is a message that names no portal before."""
    with RawClient(unspent) as raw:
        raw.query("SET curador.spend = '1%'")
        for described in (False, True):
            raw.send(b"P", b"\0SELECT city, paid, count(*) AS n FROM visits GROUP BY city, paid\0\0\0")
            raw.send(b"B", b"\0\0\0\0\0\0" + struct.pack("!HHH", 2, 0, 0))
            if described:
                raw.send(b"D", b"P\0")
            raw.send(b"E", b"\0\0\0\0\0")
            raw.send(b"S")
            assert state_of(raw.until_ready()) == "08P01"


def test_formats_that_fit_are_answered(door):
    with RawClient(door) as raw:
        raw.query("SET curador.spend = '1%'; SET curador.intervals = 'columns'")
        raw.send(b"P", b"\0SELECT city, count(*) AS n FROM visits GROUP BY city\0\0\0")
        raw.send(b"B", b"\0\0\0\0\0\0" + struct.pack("!HHHHH", 4, 0, 0, 1, 0))
        raw.send(b"E", b"\0\0\0\0\0")
        raw.send(b"S")
        assert raw.kinds_until(b"Z").replace(b"N", b"") == b"12DDDCZ"


NAMED = "SELECT count(*) AS n FROM public.visits WHERE "
"""By its schema: the tree is written again, which goes down as deep as it is."""

DEEP = [
    (NAMED + "rating = 1" + "::int" * 600, "54001"),
    (NAMED + "rating = a" + ".b" * 600, "54001"),
    ("EXPLAIN " * 1_000 + "SELECT 1", "54001"),
    (NAMED + "rating = 1" + " + 1" * 1_500, None),
    (NAMED + "NOT " * 1_500 + "paid", None),
]


@pytest.mark.parametrize("protocol", ["simple", "extended"])
@pytest.mark.parametrize(("text", "wanted"), DEEP)
def test_what_is_nested_too_deeply_is_refused_and_the_connection_stays(unspent, protocol, text, wanted):
    """By the door, or by the curator in its own words; never as an error of ours."""
    with RawClient(unspent) as raw:
        state = run(raw, text, protocol)
        assert state is not None
        assert state == wanted or (wanted is None and not state.startswith("XX"))
        assert run(raw, "SELECT 1", protocol) is None
    assert unspent.log == []


# ---- what is written down --------------------------------------------------------------------------------------------------


def test_what_is_refused_is_noted_without_its_text(unspent, capsys):
    """Whose token and which SQLSTATE, by the door, the curator or the shadow; that is a line of the service's log."""
    user, _ = unspent.user()
    token = user.split(".")[1]
    unspent.noted.clear()
    with unspent.connect() as connection:
        for text in ("DROP TABLE visits", "SELECT count(*) FROM visit", "SELECT no_such_column FROM pg_class"):
            with pytest.raises(psycopg.Error):
                connection.execute(text)
    states = ["0A000", "42601", "42703"]
    assert unspent.noted == [("door: statement refused", {"error": state, "token": token}) for state in states]
    for event, said in unspent.noted:
        write_log("warning", event, **said)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["error"] for line in lines] == states


def test_a_failed_login_is_noted(unspent, monkeypatch):
    """Without what was said: nobody proved a token."""
    monkeypatch.setattr(unspent.service, "fail_login", lambda **_: 0.0)
    unspent.noted.clear()
    with pytest.raises(psycopg.OperationalError):
        unspent.connect(password="wrong")  # noqa: S106 -- a wrong one
    with pytest.raises(psycopg.OperationalError):
        unspent.connect(dbname="other")
    own = unspent.user()[0].split(".")[1]
    assert unspent.noted == [
        ("door: login refused", {"error": "28P01"}),
        ("door: connection ended", {"error": "3D000", "token": own}),
    ]


# ---- transactions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["simple", "extended"])
@pytest.mark.parametrize(
    "text",
    [
        "BEGIN READ WRITE", "BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN WORK ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        "START TRANSACTION READ WRITE", "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE, NOT DEFERRABLE",
    ],
)  # fmt: skip
def test_a_transaction_begins_in_whatever_mode_is_said(unspent, protocol, text):
    """A standby refuses some modes, and where nobody writes they are all alike."""
    with RawClient(unspent) as raw:
        assert run(raw, text, protocol) is None
        assert run(raw, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", protocol) is None
        assert raw.query("SELECT 1")[-1] == (b"Z", b"T")
        assert raw.query("COMMIT")[-1] == (b"Z", b"I")


def test_a_mode_that_is_none_is_refused(unspent):
    with RawClient(unspent) as raw:
        assert run(raw, "BEGIN SLOWLY", "simple") == "42601"
        assert run(raw, "SET TRANSACTION SNAPSHOT 'x'", "simple") is not None


def test_every_rollback_of_a_charge_says_that_it_stays(door):
    """Also the one of the whole transaction, behind one to a savepoint."""
    with door.connect(options="-c curador.spend=1%") as connection:
        found = []
        connection.add_notice_handler(lambda notice: found.append(notice.message_primary))
        for text in ("BEGIN", "SAVEPOINT a", "SELECT count(*) AS twice FROM visits WHERE spent > 17"):
            connection.execute(text)
        for text in ("ROLLBACK TO a", "ROLLBACK"):
            found.clear()
            connection.execute(text)
            assert [line for line in found if "gives nothing back" in line]
        found.clear()
        connection.execute("BEGIN")
        connection.execute("ROLLBACK")
        assert found == []
