"""What a question costs at the door and when; what is refused, ended, limited, and what a client is told."""

# ruff: noqa: E501 -- statements stand side by side

import asyncio
import contextlib
import os
import signal
import ssl
import struct
import threading
import time

import psycopg
import pytest
from doors import open_door
from psycopg import errors, pq
from raw_client import RawClient

from curador.door import describing
from curador.door.door import DoorLimits
from curador.door.link import open_link
from curador.door.problems import SqlProblem
from curador.server import tokens

COUNT = "SELECT count(*) AS n FROM visits WHERE rating = {}"


@pytest.fixture
def ana(door):
    with door.connect() as connection:
        connection.execute("SET curador.spend = '1%'")
        yield connection


def told(connection):
    """Return a list that fills with the notices of a connection."""
    found = []
    connection.add_notice_handler(lambda notice: found.append(notice.message_primary))
    return found


# ---- what costs, and when --------------------------------------------------------------------------------------------------


def test_without_a_price_a_question_is_refused_with_what_one_percent_gives(unspent):
    with unspent.connect() as connection, pytest.raises(errors.ObjectNotInPrerequisiteState) as refused:
        connection.execute(COUNT.format(1))
    assert "curador.spend must be set" in refused.value.diag.message_primary
    assert "SET curador.spend = '1%', which would give n ±" in refused.value.diag.message_hint


def described(raw, name, text):
    """Prepare a statement and return what is said of its parameters and columns."""
    raw.send(b"P", name + b"\0" + text.encode() + b"\0\0\0")
    raw.send(b"D", b"S" + name + b"\0")
    raw.send(b"S")
    said = dict(raw.until_ready())
    assert b"E" not in said, said
    parameters = struct.unpack(f"!{(len(said[b't']) - 2) // 4}I", said[b"t"][2:])
    return parameters, columns_of(said[b"T"])


def columns_of(body):
    """Return the names and types in a RowDescription."""
    found, at = [], 2
    for _ in range(int.from_bytes(body[:2], "big")):
        end = body.index(b"\0", at)
        found.append((body[at:end].decode(), int.from_bytes(body[end + 7 : end + 11], "big")))
        at = end + 19
    return found


def test_describing_and_explaining_spend_nothing(unspent):
    with RawClient(unspent) as raw:
        raw.query("SET curador.spend = '1%'")
        parameters, columns = described(raw, b"s", "SELECT city, count(*) AS n FROM visits WHERE rating > $1 GROUP BY city")
        assert parameters == (20,)
        assert columns == [("city", 25), ("n", 20)]
    with unspent.connect() as connection:
        lines = [line for (line,) in connection.execute(f"EXPLAIN {COUNT.format(1)}")]
        assert any("cost" in line for line in lines)
        with pytest.raises(errors.FeatureNotSupported, match="must not ANALYZE"):
            connection.execute(f"EXPLAIN ANALYZE {COUNT.format(1)}")


@pytest.mark.parametrize("intervals", ["notice", "columns", "off"])
def test_the_description_is_what_comes(door, intervals):
    asked = "SELECT city, paid, count(*) AS n, avg(spent) AS mean, sum(price) AS paid_in_all FROM visits GROUP BY city, paid"
    with RawClient(door) as raw:
        raw.query(f"SET curador.spend = '1%'; SET curador.intervals = {intervals}")
        _, wanted = described(raw, b"s", asked)
        given = columns_of(dict(raw.query(asked))[b"T"])
    assert given == wanted
    assert ("n_low" in dict(wanted)) == (intervals == "columns")


def test_a_portal_spends_once(door, ana):
    """Execute with a limit of rows, again and again: one charge."""
    with RawClient(door) as raw:
        raw.query("SET curador.spend = '1%'")
        before = door.entries()
        raw.send(b"P", b"\0SELECT rating, count(*) AS n FROM visits WHERE city = 'Bern' GROUP BY rating\0\0\0")
        raw.send(b"B", b"p\0\0\0\0\0\0\0\0")
        raw.send(b"D", b"Pp\0")
        raw.send(b"H")
        assert raw.kinds_until(b"T") == b"12T"
        assert door.entries() == before
        for _ in range(3):
            raw.send(b"E", b"p\0\0\0\0\2")
        raw.send(b"S")
        kinds = raw.kinds_until(b"Z").replace(b"N", b"")
    assert kinds == b"DDsDDsDDCZ"
    assert door.entries() == before + 2  # reserved and committed


def test_two_questions_in_a_message_are_refused_whole(unspent):
    with unspent.connect() as connection:
        connection.execute("SET curador.spend = '1%'")
        with pytest.raises(errors.FeatureNotSupported, match="at most one question; got 2"):
            connection.execute(f"{COUNT.format(1)}; SELECT 1; {COUNT.format(2)}")


def test_one_question_among_other_statements_is_answered(ana):
    cursor = ana.execute(f"SELECT 1 AS one; {COUNT.format(1)}; SELECT 2")
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    assert cursor.description[0].name == "n"
    assert cursor.nextset()
    assert cursor.fetchall() == [(2,)]


def test_a_rollback_gives_nothing_back_and_says_so(door, ana):
    found = told(ana)
    before = door.service.budget(door.service.admit(door.user()[1], door="test", peer=""))
    ana.execute("BEGIN")
    ana.execute("SELECT count(*) AS rolled_back FROM visits WHERE spent > 3")
    ana.execute("ROLLBACK")
    assert any(line.startswith("ROLLBACK gives nothing back") for line in found)
    after = door.service.budget(door.service.admit(door.user()[1], door="test", peer=""))
    assert after["left_share"] < before["left_share"]
    found.clear()
    ana.execute("BEGIN")
    ana.execute("SELECT 1")
    ana.execute("ROLLBACK")
    assert found == []


def test_a_refused_question_lets_its_transaction_fail(ana):
    ana.execute("BEGIN")
    with pytest.raises(errors.SyntaxError):
        ana.execute("SELECT count(*) FROM visit")
    assert ana.info.transaction_status == pq.TransactionStatus.INERROR
    for text in (COUNT.format(1), "SELECT 1", "SET curador.spend = '2%'"):
        with pytest.raises(errors.InFailedSqlTransaction):
            ana.execute(text)
    ana.execute("ROLLBACK")
    assert ana.execute("SHOW curador.spend").fetchone() == ("1%",)
    ana.execute("BEGIN; SAVEPOINT s")
    with pytest.raises(errors.SyntaxError):
        ana.execute("SELECT count(*) FROM visit", prepare=True)
    ana.execute("ROLLBACK TO s")
    assert ana.execute("SELECT 1").fetchone() == (1,)
    ana.execute("COMMIT")


def test_settings_follow_the_transaction(ana):
    ana.execute("BEGIN; SET curador.spend = '3%'; ROLLBACK")
    assert ana.execute("SHOW curador.spend").fetchone() == ("1%",)
    ana.execute("BEGIN; SET LOCAL curador.spend = '3%'")
    assert ana.execute("SHOW curador.spend").fetchone() == ("3%",)
    ana.execute("COMMIT")
    assert ana.execute("SHOW curador.spend").fetchone() == ("1%",)
    ana.execute("BEGIN; SET curador.spend = '3%'; COMMIT")
    assert ana.execute("SHOW curador.spend").fetchone() == ("3%",)
    ana.execute("RESET ALL")
    assert ana.execute("SHOW curador.spend").fetchone() == ("",)


def test_the_least_error_can_be_said_instead_of_a_price(door):
    with door.connect(options="-c curador.accuracy=n=40") as connection:
        found = told(connection)
        connection.execute("SELECT count(*) AS n FROM visits WHERE spent > 77")
        assert any("n ±" in line for line in found)


# ---- cursors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moves", "wanted"),
    [
        (["FETCH 2"], [1, 2]),
        (["FETCH NEXT", "FETCH NEXT"], [2]),
        (["FETCH ALL"], [1, 2, 3, 4, 5]),
        (["FETCH FORWARD 3", "FETCH BACKWARD 2"], [2, 1]),
        (["FETCH FORWARD ALL", "FETCH BACKWARD ALL"], [5, 4, 3, 2, 1]),
        (["FETCH LAST", "FETCH PRIOR"], [4]),
        (["MOVE 3", "FETCH RELATIVE -2"], [1]),
        (["MOVE FORWARD 2", "FETCH 1"], [3]),
        (["FETCH ABSOLUTE 4"], [4]),
        (["FETCH ABSOLUTE -1"], [5]),
        (["FETCH ABSOLUTE 0", "FETCH"], [1]),
        (["FETCH FIRST", "FETCH FORWARD 0"], [1]),
        (["FETCH ALL", "FETCH NEXT"], []),
        (["FETCH ALL", "FETCH PRIOR"], [5]),
        (["FETCH 1", "FETCH PRIOR", "FETCH NEXT"], [1]),
        (["FETCH 3", "MOVE BACKWARD ALL", "FETCH 2"], [1, 2]),
    ],
)
def test_a_cursor_over_an_answer_moves_as_postgresqls_does(door, ana, moves, wanted):
    """The same moves over the same rows in a cursor of the shadow, which is PostgreSQL's own."""
    question = "SELECT rating, count(*) AS n FROM visits WHERE rating IS NOT NULL AND paid GROUP BY rating ORDER BY rating"
    ana.execute("BEGIN")
    ana.execute(f"DECLARE ours SCROLL CURSOR FOR {question}")
    ana.execute("DECLARE theirs SCROLL CURSOR FOR SELECT generate_series(1, 5)")
    before = door.entries()
    for move in moves:
        ours = ana.execute(f"{move} FROM ours")
        theirs = ana.execute(f"{move} FROM theirs")
        assert ours.statusmessage == theirs.statusmessage
    found = [row[0] for row in ours if row[0] is not None]
    assert found == [row[0] for row in theirs] == wanted
    assert door.entries() == before
    ana.execute("CLOSE ours; COMMIT")


def test_cursors_are_of_their_transaction(ana):
    with pytest.raises(errors.NoActiveSqlTransaction):
        ana.execute(f"DECLARE c CURSOR FOR {COUNT.format(1)}")
    ana.execute(f"DECLARE held CURSOR WITH HOLD FOR {COUNT.format(1)}")
    assert len(ana.execute("FETCH ALL FROM held").fetchall()) == 1
    ana.execute("CLOSE held")
    with pytest.raises(errors.InvalidCursorName):
        ana.execute("FETCH ALL FROM held")
    ana.execute("BEGIN")
    ana.execute(f"DECLARE c CURSOR FOR {COUNT.format(1)}")
    with pytest.raises(errors.DuplicateCursor):
        ana.execute(f"DECLARE c CURSOR FOR {COUNT.format(1)}")
    ana.execute("ROLLBACK")
    ana.execute("BEGIN")
    with pytest.raises(errors.InvalidCursorName):
        ana.execute("FETCH c")


# ---- what is refused -------------------------------------------------------------------------------------------------------


REFUSED = [
    "CREATE TABLE x (a int)", "CREATE TEMP TABLE x (a int)", "DROP TABLE visits", "ALTER ROLE analyst SET work_mem = '1GB'",
    "DO $$ begin end $$", "LISTEN a", "NOTIFY a", "COPY visits TO STDOUT", "COPY (SELECT 1) TO STDOUT", "LOAD 'x'", "VACUUM",
    "SET ROLE postgres", "SET SESSION AUTHORIZATION postgres", "SELECT pg_sleep(1)", "SELECT pg_catalog.pg_sleep_for('1s')",
    "SELECT generate_series(1, 1000000000)", "SELECT * FROM generate_series(1, 10^9)", "SELECT repeat('a', 1000000000)",
    "SELECT lpad('', 1000000000)", "SELECT generate_series(1, (SELECT count(*) FROM pg_class) * 100000)", "SELECT lo_create(0)",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT * FROM x", "SELECT pg_advisory_lock(1)",
    "SELECT pg_terminate_backend(1)", "SELECT pg_cancel_backend(1)", "SELECT pg_notify('a', 'b')", "SELECT array_fill(1, ARRAY[9, 9])",
    "CHECKPOINT", "CREATE EXTENSION dblink", "SET client_encoding = 'LATIN1'", "SET DateStyle = 'German'", "SET curador.nonsense = 1",
    "SET curador.intervals = 'sometimes'", "SET standard_conforming_strings = off", "CALL x()", "REINDEX SYSTEM clinic",
    "PREPARE TRANSACTION 'x'", 'SELECT U&"pg_sl\\0065ep"(1)', "SELECT txid_current()", "LOCK pg_class", "SET curador.epsilon = 'x'",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_nobody_does_here_is_refused(unspent, text):
    with unspent.connect() as connection:
        for prepare in (False, True):
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(text, prepare=prepare)
            assert refused.value.sqlstate is not None
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "text",
    [
        "SET work_mem = '10GB'", "SET statement_timeout = 0", "SET temp_file_limit = -1", 'SET search_path = a, "B", public',
        "SET TIME ZONE 'Europe/Zurich'", "SET NAMES 'UTF8'", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "UNLISTEN *",
        "SET extra_float_digits = 3", "SET a.b = 'c'", "RESET work_mem", "DISCARD ALL", "SELECT pg_advisory_unlock_all()", "SET ROLE NONE",
        "SELECT set_config('work_mem', '10GB', false)", "SELECT pg_catalog.set_config('search_path', '', false)", "CLOSE ALL", "DEALLOCATE ALL",
    ],
)  # fmt: skip
def test_what_clients_say_is_answered_and_not_executed(unspent, text):
    with unspent.connect() as connection:
        connection.execute(text)
        assert connection.execute("SELECT setting FROM pg_settings WHERE name = 'work_mem'").fetchone() == ("4096",)


def test_a_statement_about_catalogues_ends(tmp_path_factory):
    limits = DoorLimits(statement=0.5)
    slow = "SELECT count(*) FROM pg_class a, pg_class b, pg_class c, pg_class d"
    with open_door(tmp_path_factory.mktemp("slow"), limits=limits) as door, door.connect() as connection:
        connection.execute("SET statement_timeout = 0")
        with pytest.raises(errors.QueryCanceled, match=r"must end within 0\.5 seconds"):
            connection.execute(slow)
        connection.execute("SET statement_timeout = '100ms'")
        with pytest.raises(errors.QueryCanceled, match=r"must end within 0\.1 seconds"):
            connection.execute(slow, prepare=True)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def _newest_session(door):
    return [guest.session for guest in door.door.guests.values() if guest.session][-1]


def _newest_link(door):
    return _newest_session(door).link


def test_a_session_that_does_not_heed_is_ended(door):
    with door.connect() as other, door.connect() as connection:
        link = _newest_link(door)
        door.run(link.shadow.end_statement(link.backend))
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        assert other.execute("SELECT 1").fetchone() == (1,)  # nobody else is thrown out
    with door.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_session_that_heeds_nothing_is_killed_and_the_next_finds_the_shadow_again(door):
    with door.connect("owner") as owner, door.connect() as connection:  # they see the same tables
        link = _newest_link(door)
        os.kill(link.backend, signal.SIGSTOP)  # no signal but SIGKILL reaches it
        door.run(link.shadow.end_statement(link.backend))
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        assert owner.execute("SELECT 1").fetchone() == (1,)  # another asker's shadow did not start anew
    with door.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def _parameters(raw):
    parameters, _ = described(raw, b"", "SELECT count(*) AS n FROM visits WHERE rating > $1")
    return parameters


def test_types_are_found_by_a_shadow_that_started_anew(unspent):
    """The describer's own session is gone then, and it opens another."""
    with RawClient(unspent) as raw:
        raw.query("SET curador.spend = '1%'")
        assert _parameters(raw) == (20,)
        describer = _newest_session(unspent).describer
        os.kill(describer._link.backend, signal.SIGTERM)  # noqa: SLF001 -- as when the shadow starts anew
        assert _parameters(raw) == (20,)


def test_types_that_cannot_be_found_are_not_taken_for_texts(unspent, monkeypatch):
    """The client is told to come again, and stays connected."""

    async def gone(shadow):
        raise SqlProblem("57P03", "it is away", fatal=True)

    with unspent.connect(options="-c curador.spend=1%") as connection:
        _newest_session(unspent).describer.close()
        with monkeypatch.context() as patch:
            patch.setattr(describing, "open_link", gone)
            with pytest.raises(errors.CannotConnectNow):
                connection.execute("SELECT count(*) AS n FROM visits WHERE rating > %s", ("3",), prepare=True)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_shadow_that_lets_nobody_in_for_a_moment_is_waited_for(door):
    with door.connect():
        shadow = _newest_link(door).shadow
    away = shadow.socket.with_name("away")
    shadow.socket.rename(away)
    try:
        opening = asyncio.run_coroutine_threadsafe(open_link(shadow), door.loop)
        with pytest.raises(TimeoutError):
            opening.result(0.3)  # it goes on trying
    finally:
        away.rename(shadow.socket)
    link = opening.result(60)
    assert link.backend
    door.loop.call_soon_threadsafe(link.close)


def test_memory_is_bounded(unspent):
    with unspent.connect() as connection:
        with pytest.raises(errors.OutOfMemory):
            connection.execute("SELECT length(string_agg(a.prosrc || b.prosrc, '')) FROM pg_proc a, pg_proc b")
        assert connection.execute("SELECT 1").fetchone() == (1,)


# ---- cancels ---------------------------------------------------------------------------------------------------------------


def test_a_cancel_ends_a_statement_about_catalogues(unspent):
    with unspent.connect() as connection:
        timer = threading.Timer(0.3, connection.cancel_safe)
        timer.start()
        with pytest.raises(errors.QueryCanceled):
            connection.execute("SELECT count(*) FROM pg_class a, pg_class b, pg_class c, pg_class d")
        timer.join()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_cancel_after_the_reservation_keeps_the_charge(door, ana, monkeypatch):
    reached, go_on = threading.Event(), threading.Event()
    whole = type(door.service).run

    def held(service, job, told=None):
        def tell(word):
            if word == "running":
                reached.set()
                go_on.wait(30)
            if told:
                told(word)

        return whole(service, job, tell)

    monkeypatch.setattr(type(door.service), "run", held)
    text = "SELECT count(*) AS cancelled FROM visits WHERE spent > 11"
    waiting = threading.Thread(target=lambda: (reached.wait(30), ana.cancel_safe()))
    waiting.start()
    with pytest.raises(errors.QueryCanceled) as cancelled:
        ana.execute(text)
    assert "what was charged stays charged" in cancelled.value.diag.message_hint
    go_on.set()
    waiting.join()
    monkeypatch.undo()
    found = told(ana)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found.clear()
        assert len(ana.execute(text).fetchall()) == 1
        if "this answer was given before, for nothing" in found:
            break
    assert "this answer was given before, for nothing" in found


# ---- who may stay ----------------------------------------------------------------------------------------------------------


def test_a_revoked_token_has_no_connection(door):
    user, password = door.token()
    with psycopg.connect(**door.words(), autocommit=True) as other:
        connection = psycopg.connect(**{**door.words(), "user": user, "password": password}, autocommit=True)
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert tokens.revoke(door.service.state, user.split(".")[1])
        deadline = time.monotonic() + 30
        with pytest.raises(errors.AdminShutdown, match="in force"):  # told by the door, not found at the next question
            ask_until(connection, deadline)
        assert other.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="the token must be one that is in force"):
        psycopg.connect(**{**door.words(), "user": user, "password": password})


def ask_until(connection, deadline):
    while time.monotonic() < deadline:
        time.sleep(0.1)
        connection.execute("SELECT 1")


def test_every_bad_login_is_one_sentence(door, monkeypatch):
    monkeypatch.setattr(door.service, "fail_login", lambda **_: 0.0)  # each would be told later than the one before
    user, password = door.user()
    ben, _ = door.user("ben")
    own = user.split(".")[1]
    wrong = [
        (user, "x"), (user, ""), (f"ana.{'0' * 16}", password), (f"ben.{own}", password), (ben, password), (own, password),
        (f"owner.{own}", password), (f".{own}", password), ("ana", password), (user, password[:-1]), (f"{user} ", password),
        (user.upper(), password), ("é.\u2028", "x"),
    ]  # fmt: skip
    said = set()
    for name, secret in wrong:
        with pytest.raises(psycopg.OperationalError) as refused:
            psycopg.connect(**{**door.words(), "user": name, "password": secret or "-"})
        said.add(str(refused.value).split("FATAL:")[1])
    assert len(said) == 1
    assert "the token must be one that is in force" in said.pop()


def test_connections_of_a_token_are_few(tmp_path_factory):
    with open_door(tmp_path_factory.mktemp("few"), limits=DoorLimits(each=2)) as door, contextlib.ExitStack() as stack:
        stack.enter_context(door.connect())
        stack.enter_context(door.connect())
        with pytest.raises(psycopg.OperationalError, match="at most 2 connections"):
            door.connect()
        stack.enter_context(door.connect("ben"))


def test_an_analyst_sees_no_table_that_is_hidden(unspent):
    with unspent.connect("ben") as connection:
        found = {name for (name,) in connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r'")}
        assert {"visits", "towns"} <= found
        assert "secrets" not in found
        connection.execute("SET curador.spend = '1%'")
        for text in ("SELECT count(*) FROM secrets", "SELECT 'secrets'::regclass"):
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(text)
            assert "kind" not in str(refused.value)
        names = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
        assert names == {"postgres", "template0", "template1", "clinic"}
        roles = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'")}
        assert roles == {"analyst", "keeper", "postgres"}


def test_another_database_is_not_there(door):
    with pytest.raises(psycopg.OperationalError, match="the database must be clinic"):
        door.connect(dbname="other")
    for name in ("clinic", "postgres", "curador", "ana"):
        door.connect(dbname=name).close()


def test_the_door_says_nothing_of_other_sessions(door):
    with door.connect() as one, door.connect(application_name="canary-name") as two:
        one.execute("SELECT 'canary-text'")
        for text in ("SELECT * FROM pg_stat_activity", "SELECT * FROM pg_locks", "SELECT pg_stat_get_activity(NULL)"):
            with pytest.raises(psycopg.Error):
                two.execute(text)


# ---- TLS -------------------------------------------------------------------------------------------------------------------


def test_tls_is_spoken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make_certificate(key, certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with open_door(folder, tls=context) as door:
        words = door.words(sslmode="verify-full", sslrootcert=str(certificate), host="localhost", hostaddr="127.0.0.1")
        with psycopg.connect(**words, autocommit=True) as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)


def make_certificate(key, certificate):
    import datetime as dt

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    made = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(made.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - dt.timedelta(1)).not_valid_after(now + dt.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(made, hashes.SHA256())
    )  # fmt: skip
    key.write_bytes(
        made.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("SELECT count(*) FROM visits WHERE citty = 'Bern'", "citty"),
        ("EXPLAIN SELECT count(*) FROM visits WHERE citty = 'Bern'", "citty"),
        ("SELECT 1; SELECT count(*) FROM visits\nWHERE citty = 'Bern'", "citty"),
        ("SELECT count(*) FROM public.visits WHERE citty = 'Bern'", None),
    ],
)
def test_a_refusal_says_where(ana, text, column):
    with pytest.raises(errors.SyntaxError, match='there is no column "citty"') as refused:
        ana.execute(text)
    place = refused.value.diag.statement_position
    assert place == (None if column is None else str(text.index(column) + 1))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spend", "1%"), ("accuracy", "n=50, mean=3"), ("epsilon", "0.5"), ("rho", "0.01"), ("intervals", "columns"),
        ("confidence", "0.9"), ("weights", "n=2"), ("caps", "rows=5"), ("at", "5000"), ("bias", "on"),
    ],
)  # fmt: skip
def test_every_setting_of_the_document_can_be_said(unspent, name, value):
    """By SET, in the connection's options and by set_config; a preview takes it."""
    with unspent.connect() as connection:
        connection.execute(f"SET curador.{name} = '{value}'")
        assert connection.execute(f"SHOW curador.{name}").fetchone() == (value,)
        connection.execute(f"RESET curador.{name}")
        assert connection.execute(f"SELECT set_config('curador.{name}', '{value}', false)").fetchone() == (value,)
    escaped = value.replace(" ", "\\ ")
    with unspent.connect(options=f"-c curador.{name}={escaped}") as connection:
        assert connection.execute(f"SHOW curador.{name}").fetchone() == (value,)


@pytest.mark.parametrize("said", ["epsilon=0.5", "rho=0.05", "epsilon=0.5 -c curador.confidence=0.9"])
def test_a_question_has_the_price_that_was_said(unspent, said):
    with unspent.connect(options=f"-c curador.{said}") as connection:
        lines = [line for (line,) in connection.execute(f"EXPLAIN {COUNT.format(1)}")]
    assert any("cost" in line for line in lines)
