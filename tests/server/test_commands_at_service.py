"""The verbs of the command line with --server: the same words as with a study file, and the same refusals."""

import json

import pytest
import visits_served as served
from typer.testing import CliRunner

from curador.cli.app import app


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    file = served.write_study(tmp_path_factory.mktemp("commands"))
    with served.serving(file) as (url, opened):
        yield file, url, opened


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def token(service, tmp_path):
    """A file with eva's token, hers alone."""
    place = tmp_path / "token"
    place.write_text(served.token_of(service[2]), encoding="ascii")
    place.chmod(0o600)
    return place


@pytest.mark.slow
def test_verbs_say_there_what_they_say_here(service, token):
    """Preview, answer, budget and log of eva, at the service and on the machine of the ledger, letter by letter."""
    file, url, _ = service
    there, here = ("--server", url, "--token-file", token), (file,)
    asked = run("ask", served.BY_CITY, "--spend", "2%", "--format", "csv", "--yes", *there)
    assert asked.exit_code == 0, asked.output
    assert asked.stdout.startswith('"city","n",')
    for verb, *words in (
        ("preview", served.COUNT, "--spend", "2%"),
        ("preview", served.COUNT, "--spend", "2%", "--json"),
        ("ask", served.BY_CITY, "--spend", "2%", "--format", "csv", "--yes"),
        ("budget", "--json"),
    ):
        remote, local = run(verb, *words, *there), run(verb, *here, *words, "--as", "eva")
        assert (remote.exit_code, local.exit_code) == (0, 0), (remote.output, local.output)
        assert remote.stdout == local.stdout, verb
    remote, local = (json.loads(run("log", "--json", *where).stdout) for where in (there, (file, "--as", "eva")))
    assert [{name: line[name] for name in line if name != "answer"} for line in remote] == local
    assert any(line["answer"] for line in remote), "at the service each has its answer's id beside it"
    spent = json.loads(run("budget", "--json", *there).stdout)["spent"]
    again = run("ask", served.BY_CITY, "--spend", "2%", "--format", "csv", *there)
    assert again.stdout == asked.stdout
    assert json.loads(run("budget", "--json", *there).stdout)["spent"] == spent


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ask", "SELECT * FROM visits", "--spend", "1%", "--yes"), "*"),
        (("ask", served.COUNT, "--spend", "0.0001%", "--yes"), "at least"),
        (("log", "--verify"), "the service verifies its own ledger"),
        (("budget", "--as", "eva"), "the token says who asks"),
    ],
)
def test_refusals_are_told_and_nothing_is_spent(service, token, words, told):
    ledger = service[2].curator.ledger
    before = ledger.last.sequence
    done = run(*words, "--server", service[1], "--token-file", token)
    assert done.exit_code != 0
    assert told in str(done.exception)
    assert ledger.last.sequence == before


def test_a_wrong_token_is_refused(service, tmp_path):
    place = tmp_path / "wrong"
    place.write_text("curador_" + "0" * 16 + "_" + "A" * 43, encoding="ascii")
    place.chmod(0o600)
    done = run("budget", "--server", service[1], "--token-file", place)
    assert done.exit_code != 0
    assert "the token must be one that is in force" in str(done.exception)
