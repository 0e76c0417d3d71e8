"""The page for PostgreSQL, from nothing to a first answer, on a server of its own; and `curador check-engine` there."""

import re
import tomllib
from pathlib import Path

import psycopg
import pytest
from postgres_studies import VISITS, Database, database
from real_postgres import MISSING, find_installation, private_server
from typer.testing import CliRunner

import curador as cu
from curador.cli.app import app
from curador.engines.lower.dialect_postgres import PostgreSQL
from curador.engines.postgres.server import PREPARER, READER
from curador.study.file import parse_study
from curador.testing import NonconformingError, check_engine_at

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_installation() is None, reason=MISSING)]
PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "tables-on-postgres.md").read_text(encoding="utf-8")


def block(kind):
    """The page's block of a language."""
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return found


def test_the_page_leads_to_an_answer(tmp_path, monkeypatch):
    """Its SQL, its study and its commands, word for word but for the address; afterwards the reader is locked down."""
    with private_server(find_installation()) as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE shop")
        made = Database(server, "shop", "postgres", "curador_reader")
        made.give("visits", VISITS.rename_columns(["customer_id", "spent", "city", "shop"]))
        made.run(block("sql"))
        text = block("toml")
        assert tomllib.loads(text)["engine"]["kind"] == "postgres"
        parse_study(text, folder=tmp_path)
        (tmp_path / "study.toml").write_text(text.replace(tomllib.loads(text)["engine"]["url"], made.url), encoding="utf-8")
        said = dict(re.findall(r"^export (\w+)=(\w+)$", block("text"), re.MULTILINE))
        assert set(said) == {PREPARER, READER}
        for name, value in said.items():
            monkeypatch.setenv(name, value)
        commands = re.findall(r"^curador (.*)$", block("text"), re.MULTILINE)
        assert len(commands) == 3
        for command in commands:
            words = [one.strip('"') for one in re.findall(r'"[^"]*"|\S+', command)]
            told = CliRunner().invoke(app, [word.replace("study.toml", str(tmp_path / "study.toml")) for word in words])
            assert told.exit_code == 0, (command, told.output)
        assert "Lima" in told.output
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            made.run("SELECT * FROM public.visits", user="curador_reader")
        with pytest.raises(psycopg.Error):
            made.run("CREATE TEMPORARY TABLE mine (x int)", user="curador_reader")


def test_an_audit_of_the_study_is_refused(monkeypatch, tmp_path):
    """Its worlds are files, which this engine does not read."""
    from curador.testing.running import audit_study

    study = parse_study(block("toml"), folder=tmp_path)
    with pytest.raises(cu.InvalidStudy, match="duckdb"):
        audit_study(study)


@pytest.fixture
def made(monkeypatch):
    with database(monkeypatch) as found:
        yield found


def left(made):
    return made.run("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'curador%'")


def test_a_server_is_checked_by_its_address(made):
    """Everything is compared, nothing is lacking, and nothing stays there; a table of somebody's is not looked at."""
    made.run("CREATE TABLE visits (x int)", "INSERT INTO visits VALUES (1)")
    told = CliRunner().invoke(app, ["check-engine", made.url])
    assert told.exit_code == 0, told.output
    assert "20 questions and 68 functions have the integers of the embedded engine" in told.output
    assert not left(made)
    assert made.run("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'visits'") == [(0,)]


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("nearest", lambda _, x: f"round({x})"),
        pytest.param(
            "date_diff",
            lambda _, *ends: f"CAST({ends[2]} AS DATE) - CAST({ends[1]} AS DATE) + 0::BIGINT",
            marks=pytest.mark.long,
        ),
    ],
)
def test_an_engine_that_is_wrong_is_named_with_its_questions(method, wrong, made, monkeypatch):
    """Seeded bugs of the dialect: halves to even numbers, and weeks that are days."""
    monkeypatch.setattr(PostgreSQL, method, wrong)
    with pytest.raises(NonconformingError, match=r"ROUND|DATE_DIFF"):
        check_engine_at(made.url)
    assert not left(made)


@pytest.mark.parametrize("url", ["mysql://db/shop", "nowhere", "postgresql://me:secret@db/shop"])
def test_other_addresses_are_refused(url):
    """An engine that is not there; a secret, which is not repeated."""
    with pytest.raises(cu.Refused) as told:
        check_engine_at(url)
    assert "secret" not in str(told.value)
