"""The address of a ledger on a server: what it may say, and what is never in it. No server is asked."""

import runpy
import sys

import pytest

from curador.errors import Failed, InvalidParameter, InvalidStudy
from curador.ledger import postgres_schema
from curador.ledger.postgres import PostgresStore, read_address
from curador.ledger.postgres_schema import main, schema_text
from curador.study.values import is_address


@pytest.mark.parametrize(
    ("place", "is_one"),
    [
        ("postgresql://writer@db.example/studies", True),
        ("postgres:///studies", True),
        ("visits.ledger", False),
        ("/data/postgresql.ledger", False),
        ("sqlite:///visits.ledger", False),
        ("", False),
    ],
)
def test_an_address_is_told_from_a_file(place, is_one):
    """By how it begins."""
    assert is_address(place) is is_one


def test_the_schema_is_ours_and_the_rest_the_drivers():
    """Options of the driver stay, in their order; the address is shown as it was written."""
    url = "postgresql://writer@/studies?host=/run/postgresql&schema=visits&sslmode=verify-full"
    found = read_address(url)

    assert found.schema == "visits"
    assert found.name == url
    assert found.server == "postgresql://writer@/studies?host=%2Frun%2Fpostgresql&sslmode=verify-full"
    assert read_address("postgresql://writer@db.example/studies").schema == "curador"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://writer:hunter2@db.example/studies",
        "postgresql://writer:@db.example/studies",
        "postgresql://db.example/studies?user=writer&password=hunter2",
        "postgresql://db.example/studies?PassWord=hunter2",
        "postgresql://db.example/studies?sslpassword=hunter2",
        "postgresql://db.example/studies?options=-c%20fsync%3Doff",
    ],
)
def test_a_secret_in_an_address_is_refused(url):
    """It would stand in a study file; the refusal does not repeat it."""
    with pytest.raises(InvalidStudy, match="without a password and without settings") as refused:
        PostgresStore(url)

    assert "hunter2" not in str(refused.value)
    assert "pgpass" in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://[writer@db.example/studies",
        "postgresql://writer@db.example/studies?schema",
        "postgresql://writer@db.example/studies?schema=a&schema=b",
        "visits.ledger",
    ],
)
def test_what_is_no_address_is_refused(url):
    """With the form of one."""
    with pytest.raises(InvalidStudy, match="an address: postgresql://role@host/database"):
        read_address(url)


@pytest.mark.parametrize("schema", ["", "Visits", "pg_catalog", 'a"; DROP TABLE entry; --', "1st", "a" * 64, "año"])
def test_names_need_no_quoting(schema):
    """Of schemas and of roles."""
    with pytest.raises(InvalidParameter, match="schema must be at most 63 small letters"):
        schema_text(schema, "writer")
    with pytest.raises(InvalidParameter, match="writer must be at most 63 small letters"):
        schema_text("visits", schema)


def test_the_statements_are_printed_for_the_owner(capsys):
    """Whole, in one transaction; what is wrong is told."""
    assert main(["visits", "visits_writer"]) == 0
    text = capsys.readouterr().out
    assert text.startswith('BEGIN;\nCREATE SCHEMA "visits";')
    assert text.endswith("COMMIT;\n")
    assert "@" not in text
    assert main(["visits"]) == 2
    assert "SCHEMA WRITER" in capsys.readouterr().err
    assert main(["Visits", "writer"]) == 2
    assert "small letters" in capsys.readouterr().err


def test_it_is_a_program(capsys, monkeypatch):
    """As the page for owners runs it."""
    name = postgres_schema.__name__
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "argv", [name, "visits", "visits_writer"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(name, run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == schema_text("visits", "visits_writer")


def test_every_trigger_fires_always():
    """Also for a session that replays what another server decided: none is forgotten."""
    text = schema_text("visits", "writer")
    made = [line.split()[2] for line in text.splitlines() if line.startswith("CREATE TRIGGER")]
    always = [line.rstrip(";").split()[-1] for line in text.splitlines() if "ENABLE ALWAYS" in line]

    assert sorted(made) == sorted(always) == sorted(name for _, name in postgres_schema._TRIGGERS)  # noqa: SLF001


def test_without_the_driver_there_is_no_such_ledger(monkeypatch):
    """And what to install is told."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidStudy, match=r"pip install 'curador\[postgres\]'"):
        PostgresStore("postgresql://writer@/studies?host=/nowhere")


def test_a_server_that_is_not_there(tmp_path):
    """The address is told, and that nothing was spent."""
    with pytest.raises(Failed, match="could not be reached, and nothing was spent"):
        PostgresStore(f"postgresql://writer@/studies?host={tmp_path}")
