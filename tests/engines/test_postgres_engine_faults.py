"""What goes wrong on a server: charges are kept, one sentence is told, the curator goes on, and no row is seen by anybody."""

import contextlib
import os
import re
import signal
import threading

import psycopg
import pyarrow as pa
import pytest
from postgres_studies import VISITS, database
from real_postgres import MISSING, find_installation, private_server, until
from test_postgres_engine import ASKED, study_of

import curador as cu
from curador.cli.checking import check_study_file
from curador.engines.base import EngineFailed, engine_kind
from curador.engines.duckdb.rank_key import VARIABLE
from curador.engines.duckdb.versions import Folder, prepared_folder, unit_key
from curador.engines.lower.dialect_postgres import PostgreSQL
from curador.engines.lower.sql import GeneratedSQL
from curador.engines.postgres.server import PREPARER, READER
from curador.engines.postgres.versions import read_record
from curador.study.file import parse_study, read_study
from curador.study.values import Type

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_installation() is None, reason=MISSING)]
CANARY = "Xk7-canary"
"""A value that only rows have."""


@pytest.fixture
def made(monkeypatch):
    with database(monkeypatch) as found:
        yield found


def give(made):
    """Tables with the canary in every text."""
    towns = pa.array([CANARY if n % 3 else "Lima" for n in range(100)])
    made.give("visits", VISITS.set_column(3, "shop", towns))


@contextlib.contextmanager
def stuck(made, curator, asked=ASKED):
    """A question that waits for a table, and what became of it: charged, then held by a lock that somebody else has."""
    kept = read_record(Folder(prepared_folder(curator.study)))
    outcome = []

    def ask():
        try:
            outcome.append(curator.ask(asked, spend="5%", fresh=True))
        except Exception as problem:  # noqa: BLE001 -- what is told is what is tested
            outcome.append(problem)

    with made.connect() as holder:
        holder.execute(f"BEGIN; LOCK TABLE {kept.schema}.t0 IN ACCESS EXCLUSIVE MODE")
        asking = threading.Thread(target=ask)
        asking.start()
        waits = f"SELECT pid FROM pg_stat_activity WHERE usename = '{made.reader}' AND wait_event_type = 'Lock'"
        found = []
        until(lambda: found.extend(made.run(waits)) or found)
        yield found[0][0], outcome
        asking.join(60)
        assert not asking.is_alive()


def require_constant(outcome, curator, before):
    """One sentence with a random id, whatever happened; the charge is kept; the next question is answered."""
    (told,) = outcome
    said = r"the question could not be answered; the charge is kept and nothing was released. Incident [0-9a-f]{16}\."
    assert type(told) is cu.Failed
    assert re.fullmatch(said, str(told))
    assert curator.budget.spent.rho > before
    assert curator.ask("SELECT COUNT(*) AS n FROM visits", spend="5%", fresh=True).rows


def spent(curator):
    return curator.budget.spent.rho


def test_a_connection_that_is_lost(made, tmp_path):
    """Somebody ends the session in the middle of a question."""
    give(made)
    with cu.open(study_of(made, tmp_path)) as curator:
        before = spent(curator)
        with stuck(made, curator) as (process, outcome):
            made.run(f"SELECT pg_terminate_backend({process})")
            until(lambda: outcome)
        require_constant(outcome, curator, before)


def test_a_deadline(made, tmp_path):
    """The server ends the statement by itself, and nothing runs on there."""
    give(made)
    with cu.open(study_of(made, tmp_path, engine='deadline = "1s"')) as curator:
        before = spent(curator)
        with stuck(made, curator) as (_, outcome):
            until(lambda: outcome)
            running = f"SELECT 1 FROM pg_stat_activity WHERE usename = '{made.reader}' AND state = 'active'"
            assert not made.run(running)
        require_constant(outcome, curator, before)


def test_a_server_that_does_not_answer(made, tmp_path):
    """Its process is stopped: the question ends by the curator's own clock, not by the server's."""
    give(made)
    with cu.open(study_of(made, tmp_path, engine='deadline = "1s"')) as curator:
        before = spent(curator)
        with stuck(made, curator) as (process, outcome):
            os.kill(process, signal.SIGSTOP)
            try:
                until(lambda: outcome, 30)
            finally:
                os.kill(process, signal.SIGCONT)
        require_constant(outcome, curator, before)


def test_a_server_that_is_started_anew(tmp_path, monkeypatch):
    """In the middle of a question; what is prepared is there afterwards, and no secret stands in what the server logged."""
    monkeypatch.setenv(VARIABLE, "5a" * 32)
    settings = {"log_statement": "all", "log_min_messages": "debug1"}
    with private_server(find_installation(), settings=settings) as server, database(monkeypatch, on=server) as made:
        give(made)
        with cu.open(study_of(made, tmp_path)) as curator:
            before = spent(curator)
            first = curator.ask(ASKED, spend="5%")
            with contextlib.suppress(psycopg.OperationalError), stuck(made, curator) as (_, outcome):
                server.restart("immediate")
                until(lambda: outcome)
            require_constant(outcome, curator, before)
            assert curator.ask(ASKED, spend="5%").rows == first.rows
            key = unit_key(Folder(prepared_folder(curator.study)))
        log = (server.home / "log").read_text(encoding="utf-8")
    assert "COPY" in log
    assert key not in log
    assert "5a5a5a5a" not in log


@pytest.mark.parametrize("wrong", ["CAST(CAST(c3 AS TEXT) AS BIGINT)", "1 / (length(c3) - length(c3))"])
def test_no_row_is_told_of_what_fails(wrong, made, tmp_path, monkeypatch, capsys):
    """Errors of a server quote values. What everybody else sees has none: errors, receipts, the log, standard streams."""
    give(made)
    with cu.open(study_of(made, tmp_path)) as curator:
        answer = curator.ask(ASKED, spend="5%")
        monkeypatch.setattr(PostgreSQL, "date_trunc", lambda *_: f"(TIMESTAMP '2020-01-01' + make_interval(secs => {wrong}))")
        with pytest.raises(cu.Failed) as told:
            curator.ask("SELECT COUNT(DATE_TRUNC('day', CAST(shop AS TIMESTAMP))) AS n FROM visits", spend="5%")
        seen = [str(told.value), repr(told.value), str(told.value.__cause__), str(answer), str(answer.receipt)]
        seen += [str(answer.rows), str(curator.log()), *map(str, capsys.readouterr())]
        owners = Folder(prepared_folder(curator.study)).incidents.read_text(encoding="utf-8")
    assert not [one for one in seen if CANARY in one]
    assert "psycopg" in owners or "InvalidText" in owners or "DivisionByZero" in owners


def test_a_thousand_faults_leave_no_connection(made, tmp_path):
    """Statements that fail: connections are given back or closed, each of them."""
    give(made)
    with cu.open(study_of(made, tmp_path)) as curator:
        engine = curator._session.engine  # noqa: SLF001
        for number in range(200):
            with pytest.raises(EngineFailed):
                engine.run(
                    [("a", GeneratedSQL(f"SELECT 1 / (CAST({number} AS BIGINT) - {number}) AS a"), {"a": Type.INTEGER})]
                )
        open_ = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{made.reader}'"
        until(lambda: made.run(open_)[0][0] <= curator.study.engine.places)
        assert curator.ask(ASKED, spend="5%").rows


# ---- roles -------------------------------------------------------------------------------------------------------------


def opened(made, folder):
    with cu.open(study_of(made, folder)) as curator:
        return curator.ask(ASKED, spend="5%")


def test_the_reader_can_read_what_is_prepared_and_nothing_else(made, tmp_path):
    """It can change nothing, make nothing, and not look at the tables themselves."""
    give(made)
    opened(made, tmp_path)
    kept = read_record(Folder(prepared_folder(read_study(tmp_path / "study.toml")))).schema
    assert made.run(f"SELECT count(*) FROM {kept}.t0", user=made.reader) == [(100,)]
    for wrong in (
        "SELECT * FROM visits",
        f"DELETE FROM {kept}.t0",
        f"UPDATE {kept}.t0 SET c1 = 0",
        f"INSERT INTO {kept}.__about VALUES ('x')",
        f"CREATE TABLE {kept}.mine (x int)",
        f"DROP SCHEMA {kept} CASCADE",
        "CREATE SCHEMA mine",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            made.run(wrong, user=made.reader)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("GRANT SELECT ON visits TO {reader}", "cannot read the rows"),
        ("GRANT SELECT ON visits TO PUBLIC", "cannot read the rows"),
        ("ALTER ROLE {reader} SUPERUSER", "only read"),
        ("GRANT {preparer} TO {reader}", "only read"),
    ],
)
def test_a_reader_that_may_do_more_is_refused(statement, said, made, tmp_path):
    """Before anything is prepared."""
    give(made)
    made.run(statement.format(reader=made.reader, preparer=made.preparer))
    with pytest.raises(cu.InvalidStudy, match=said):
        opened(made, tmp_path)
    assert not made.run("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'curador%'")


@pytest.mark.parametrize(
    "statement",
    [
        "GRANT USAGE ON SCHEMA {schema} TO {other}; GRANT SELECT ON {schema}.t0 TO {other}",
        "GRANT USAGE ON SCHEMA {schema} TO PUBLIC; GRANT SELECT (c1) ON {schema}.t0 TO PUBLIC",
        "GRANT pg_read_all_data TO {other}",
        "GRANT pg_read_server_files TO {other}",
        "GRANT CREATE ON SCHEMA {schema} TO {other}",
    ],
)
def test_prepared_rows_that_others_can_read_are_refused(statement, made, tmp_path, capsys):
    """By `curador check`, and when the study is opened; without it the check names who sees sizes and counts."""
    give(made)
    opened(made, tmp_path)
    study, other = read_study(tmp_path / "study.toml"), f"other_{made.name}"
    made.run(f"CREATE ROLE {other} LOGIN; GRANT CONNECT ON DATABASE {made.name} TO {other}")
    try:
        check_study_file(study, facts=False, called="study.toml")
        told = capsys.readouterr().out
        assert "sizes, numbers of rows" in told
        assert other in told
        made.run(statement.format(schema=read_record(Folder(prepared_folder(study))).schema, other=other))
        with pytest.raises(cu.InvalidStudy, match="others who can read it"):
            check_study_file(study, facts=False, called="study.toml")
        with pytest.raises(cu.InvalidStudy, match="others who can read it"):
            cu.open(tmp_path / "study.toml")
    finally:
        made.run(f"DROP OWNED BY {other}", f"DROP ROLE {other}")


def test_one_role_for_both_is_refused(made, tmp_path, monkeypatch):
    """Who prepares can read everything that is named in the study."""
    give(made)
    monkeypatch.setenv(READER, made.preparer)
    with pytest.raises(cu.InvalidStudy, match=f"{READER} must be another role"):
        opened(made, tmp_path)
    monkeypatch.delenv(READER)
    with pytest.raises(cu.InvalidStudy, match=READER):
        opened(made, tmp_path)


SECRETS = ("postgresql://me:pa55word@db/shop", "postgresql://me@db/shop", "postgresql://db/shop?password=pa55word")


@pytest.mark.parametrize("url", SECRETS)
def test_no_password_stands_in_a_study_file(url, made, tmp_path):
    """It is refused, and not repeated; nor is one that the environment has, where a server lets nobody in."""
    text = study_of(made, tmp_path).read_text().replace(made.url, url)
    with pytest.raises(cu.InvalidStudy, match="without user, password") as told:
        parse_study(text, folder=tmp_path)
    assert "pa55word" not in str(told.value)


def test_a_server_that_is_not_there(made, tmp_path, monkeypatch):
    """One sentence, without the password of the environment."""
    give(made)
    study_of(made, tmp_path)
    monkeypatch.setenv(PREPARER, "nobody_here:pa55word")
    monkeypatch.setenv(READER, "nobody_there:pa55word")
    with pytest.raises(cu.InvalidStudy, match="let the role in") as told:
        engine_kind("postgres").describe(read_study(tmp_path / "study.toml"))
    assert "pa55word" not in f"{told.value}{told.value.__cause__}{told.value.__context__}"


# ---- time --------------------------------------------------------------------------------------------------------------


def test_one_persons_work_is_bounded_and_answers_leave_on_the_clock(made, tmp_path):
    """As on the embedded engine: what costs more is refused before any charge; questions are answered on ticks."""
    give(made)
    with cu.open(study_of(made, tmp_path, engine='unit_work = "70us"\ndeadline = "4s"\nanswer_every = "1s"')) as curator:
        before = spent(curator)
        with pytest.raises(cu.Refused, match="unit_work"):
            curator.ask("SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.user = b.user", spend="5%")
        assert spent(curator) == before
        assert curator.ask(ASKED, spend="5%").rows
