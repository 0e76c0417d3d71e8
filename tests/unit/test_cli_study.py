"""The verbs of a study on the command line, with an engine that holds no data."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent / "curator"))

from curator_studies import BY_CITY, COUNT, FakeEngine, make_study

from curador.cli import main
from curador.cli.app import app
from curador.engines.base import EngineFailed

QUESTION = BY_CITY


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study file whose engine answers without data."""
    file = tmp_path / "study.toml"
    file.write_text(make_study(tmp_path).to_toml(), encoding="utf-8")

    def engine_of(study, ledger, **_):
        return FakeEngine(study, version=ledger.data_version)

    monkeypatch.setattr("curador.curator.curator.engine_of", engine_of)
    monkeypatch.setattr("curador.curator.opening.engine_of", engine_of)
    return file


@pytest.fixture
def run(monkeypatch, capsys):
    """The whole program, exit code included."""

    def call(*arguments, text=None):
        monkeypatch.setattr(sys, "argv", ["curador", *(str(one) for one in arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(text or ""))
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call


# ---- ask -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ask_prints_the_answer_and_nothing_else(study, run):
    """The table goes to standard output, cost and new ledger to standard error."""
    code, out, err = run("ask", study, QUESTION, "--spend", "5%")
    assert code == 0
    assert "Lima" in out
    assert "± noise only, after at most 5 rows a person" in out
    assert "cost ρ" in err
    assert "new ledger" in err
    assert "ledger" not in out


@pytest.mark.slow
def test_the_same_question_is_free(study, run):
    """The second answer is the first one."""
    first = run("ask", study, QUESTION, "--spend", "5%", "--format", "csv")
    second = run("ask", study, QUESTION, "--spend", "5%", "--format", "csv")
    assert first[1] == second[1]
    assert "free" in second[2]
    fresh = run("ask", study, QUESTION, "--spend", "5%", "--format", "csv", "--fresh")
    assert fresh[1] != first[1]


@pytest.mark.slow
def test_csv_json_and_parquet(study, run, tmp_path):
    """All formats hold the same numbers."""
    ask = ("ask", study, QUESTION, "--spend", "5%", "--format")
    rows = list(csv.DictReader(io.StringIO(run(*ask, "csv")[1])))
    body = json.loads(run(*ask, "json")[1])
    code, out, err = run(*ask, "parquet", "--out", tmp_path / "a.parquet")
    assert (code, out) == (0, "")
    assert "wrote" in err
    table = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert [row["city"] for row in rows] == [row["city"] for row in body["rows"]] == [row["city"] for row in table]
    assert [int(row["n"]) for row in rows] == [row["n"] for row in body["rows"]] == [row["n"] for row in table]
    assert body["confidence"] == "0.95"
    assert body["stored"]
    assert run(*ask, "table", "--out", tmp_path / "a.txt")[0] == 0
    assert "Lima" in (tmp_path / "a.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_receipt_is_written(study, run, tmp_path):
    """--receipt writes the JSON."""
    assert run("ask", study, COUNT, "--rho", "0.001", "--receipt", tmp_path / "r.json")[0] == 0
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["question"] == COUNT


@pytest.mark.slow
def test_an_answer_that_could_not_be_written_is_not_asked(study, run, tmp_path):
    """A wrong folder is noticed before anything is spent."""
    for option in ("--out", "--receipt"):
        assert run("ask", study, COUNT, "--spend", "5%", option, tmp_path / "no" / "x")[0] == 2
    assert not (tmp_path / "visits.ledger").exists()


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--out", "--receipt"])
@pytest.mark.parametrize("place", [".", "/proc/x", "study.toml/x", "x" * 300])
def test_a_file_that_cannot_be_written_is_refused_before_the_charge(study, run, monkeypatch, tmp_path, option, place):
    """A folder, a place where nothing can be made, a name that is too long: one sentence, code 2, no ledger."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run("ask", study, COUNT, "--spend", "5%", option, place)
    assert (code, out) == (2, "")
    assert f"{option} must be a file" in err
    assert not (tmp_path / "visits.ledger").exists()


@pytest.mark.slow
def test_looking_whether_a_file_can_be_written_changes_nothing(study, run, tmp_path):
    """A refused question leaves no file behind, and an older answer as it was."""
    (tmp_path / "old.csv").write_text("kept", encoding="utf-8")
    assert run("ask", study, "SELECT", "--spend", "5%", "--out", tmp_path / "old.csv", "--receipt", tmp_path / "new")[0] == 2
    assert (tmp_path / "old.csv").read_text(encoding="utf-8") == "kept"
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_after_the_charge_is_a_sentence(study, run):
    """The answer is stored, and the sentence says so; standard output that is full is one too."""
    for option in ("--out", "--receipt"):
        code, _, err = run("ask", study, COUNT, "--spend", "5%", option, "/dev/full")
        assert code == 2
        assert "the same question again is free" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_draft_that_cannot_be_written_is_a_sentence(study, run, tmp_path):
    """No folder, or a folder itself."""
    for place in (tmp_path / "no" / "x.toml", tmp_path):
        code, out, err = run("init", tmp_path / "visits.parquet", "-o", place)
        assert (code, out) == (2, "")
        assert "--out must be a file" in err


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly(study, run):
    """`curador log | head` prints no trace, also where the output is small enough to be held back until the end."""
    run("ask", study, COUNT, "--spend", "5%")
    for options in (["--json"], []):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-c", "from curador.cli import main; main()", "log", str(study), *options]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        os.close(writer)
        assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
def test_a_question_from_standard_input(study, run):
    """A dash reads it."""
    assert run("ask", study, "-", "--spend", "5%", "--format", "csv", text=COUNT)[1].startswith('"n"')


@pytest.mark.slow
def test_costs_are_given_in_four_ways(study, run):
    """--spend, --rho, --epsilon, and --accuracy as often as needed."""
    for options in (
        ["--rho", "0.001"],
        ["--epsilon", "0.1"],
        ["--accuracy", "n=500", "--accuracy", "mean=90", "--at", "1000"],
    ):
        assert run("ask", study, QUESTION, *options)[0] == 0
    assert run("ask", study, QUESTION, "--spend", "1%", "--weight", "n=3", "--bias", "--confidence", "0.9")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--spend", "5"], 2, "percentage"),
        ([], 2, "would give"),
        (["--spend", "5%", "--rho", "1"], 2, "one of spend"),
        (["--accuracy", "n"], 2, "--accuracy must be"),
        (["--accuracy", "n=1", "--accuracy", "n=2"], 2, "each column once"),
        (["--spend", "5%", "--as", "bob"], 3, "one whom the study declares"),
        (["--rho", "1"], 4, "what is left"),
        (["--spend", "100%", "--format", "yaml"], 2, "yaml"),
    ],
    ids=str,
)
def test_exit_codes(study, run, arguments, code, words):
    """2 refused, 3 not allowed, 4 budget exceeded; one sentence on standard error, nothing on standard output."""
    found, out, err = run("ask", study, COUNT, *arguments)
    assert (found, out) == (code, "")
    assert words in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_table_of_somebody_else_is_refused_like_one_that_does_not_exist(study, run):
    """Exit code 2, and the same words but for the name."""
    told = []
    for name in ("salaries", "salarics"):
        code, _, err = run("ask", study, f"SELECT COUNT(*) AS n FROM {name}", "--spend", "5%", "--as", "eva")
        assert code == 2
        told.append(err.replace(name, "…").splitlines()[-2:])
    assert told[0] == told[1]


@pytest.mark.slow
def test_a_failure_tells_an_id(study, run, monkeypatch):
    """Exit code 5; the charge is kept."""
    monkeypatch.setattr(FakeEngine, "tally", _raise(EngineFailed("beef")))
    code, out, err = run("ask", study, COUNT, "--spend", "5%")
    assert (code, out) == (5, "")
    assert "Incident beef" in err
    assert "failed" in run("log", study)[1]


@pytest.mark.slow
def test_an_interrupt_after_the_charge_says_so(study, run, monkeypatch):
    """Exit code 130, and the charge is kept."""
    monkeypatch.setattr(FakeEngine, "tally", _raise(KeyboardInterrupt()))
    code, out, err = run("ask", study, COUNT, "--spend", "5%")
    assert (code, out) == (130, "")
    assert "the charge is kept" in err


@pytest.mark.slow
def test_an_interrupt_before_the_charge_claims_nothing(study, run, monkeypatch):
    """Exit code 130 as well; the command line does not know what was spent, so it does not say."""
    monkeypatch.setattr("curador.curator.price.plan_question", _raise(KeyboardInterrupt()))
    code, _, err = run("ask", study, COUNT, "--spend", "5%")
    assert code == 130
    assert err.endswith("\ninterrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("curador.curator.asking.release", "the charge is kept and nothing was released"),
        ("curador.ledger.ledger.Ledger.commit", "asking again is free"),
        ("curador.ledger.ledger.Ledger.reserve", "the charge may be kept"),
        ("curador.cli.study.write_all", "interrupted"),
    ],
)
def test_no_interrupt_after_the_charge_is_told_as_free(study, run, monkeypatch, where, said):
    """Whatever was under way."""
    monkeypatch.setattr(where, _raise(KeyboardInterrupt()))
    code, out, err = run("ask", study, COUNT, "--spend", "5%")
    assert (code, out) == (130, "")
    assert said in err
    assert "nothing was spent" not in err


def _raise(problem):
    def raising(*_, **__):
        raise problem

    return raising


# ---- on a terminal -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_on_a_terminal_it_asks_before_it_spends(study):
    """Cost and question go to the terminal; no is no, and yes is an answer on standard output."""
    program = (
        "import sys; sys.path.insert(0, {folder!r})\n"
        "import curador.curator.curator as c\n"
        "from curator_studies import FakeEngine\n"
        "c.engine_of = lambda study, ledger, **_: FakeEngine(study, version=ledger.data_version)\n"
        "from curador.cli import main; main()"
    ).format(folder=str(Path(__file__).parent / "curator"))
    command = [sys.executable, "-c", program, "ask", str(study), COUNT, "--spend", "5%", "--format", "csv"]
    for said, code in (("n\n", 2), ("y\n", 0)):
        keyboard, screen = pty.openpty()
        process = subprocess.Popen(command, stdin=screen, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.write(keyboard, said.encode())
        out, err = process.communicate(timeout=60)
        os.close(screen)
        os.close(keyboard)
        assert process.returncode == code, err
        assert "Spend it?" in err
        assert "this question fits" in err
        assert bool(out) is (code == 0)


# ---- preview, budget, log ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_preview_spends_nothing(study, run):
    """Errors and cost, as a table or as JSON."""
    code, out, _ = run("preview", study, QUESTION, "--spend", "5%")
    assert code == 0
    assert "this question fits 20 more times" in out
    body = json.loads(run("preview", study, QUESTION, "--spend", "5%", "--as", "ana", "--json")[1])
    assert body["fits"] == 20
    assert len(json.loads(run("log", study, "--json")[1])) == 1


@pytest.mark.slow
def test_budget_of_the_study_and_by_analyst(study, run):
    """What is left, for each who asks."""
    assert run("budget", study)[0] == 2  # no ledger yet
    run("ask", study, COUNT, "--spend", "50%", "--as", "ana")
    assert "left" in run("budget", study)[1]
    assert "ana" in run("budget", study, "--by", "analyst")[1]
    body = json.loads(run("budget", study, "--json")[1])
    assert body["by_analyst"][1]["spent"]["rho"] != "0"
    assert "by_analyst" not in json.loads(run("budget", study, "--as", "ana", "--json")[1])
    assert run("budget", study, "--by", "day")[0] == 2
    assert run("budget", study, "--as", "nobody")[0] == 3


@pytest.mark.slow
def test_log_and_its_verification(study, run):
    """Entries as lines or JSON; the chain is checked where asked."""
    run("ask", study, COUNT, "--spend", "5%")
    code, out, err = run("log", study, "--verify")
    assert code == 0
    assert "committed" in out
    assert "agree" in err
    lines = json.loads(run("log", study, "--json")[1])
    assert [line["kind"] for line in lines] == ["created", "reserved", "committed"]
    assert [bool(line["cost"]) for line in lines] == [False, True, False]


# ---- the owner's ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_refresh_reopen_and_prepare(study, run):
    """A data version is an owner's act."""
    run("ask", study, COUNT, "--spend", "5%")
    assert run("refresh", study, "--note", "monthly")[1] == "data version 2\n"
    assert run("reopen", study)[0] == 0
    assert run("prepare", study)[0] == 0
    assert "nothing was prepared" in run("prepare", study, "--drop")[2]
    notes = [line["note"] for line in json.loads(run("log", study, "--json")[1])]
    assert "monthly" in notes


@pytest.mark.slow
def test_a_new_ledger_needs_a_reason(study, run, tmp_path):
    """A study that had a ledger does not start with an empty one in silence."""
    run("ask", study, COUNT, "--spend", "5%")
    for file in tmp_path.glob("visits.ledger*"):
        file.unlink()
    code, _, err = run("ask", study, COUNT, "--spend", "5%")
    assert code == 2
    assert "reason" in err
    assert run("ask", study, COUNT, "--spend", "5%", "--new-ledger", "the disk burnt")[0] == 0


@pytest.mark.slow
def test_a_missing_study_is_refused(run, tmp_path):
    """Every verb says which file it wanted."""
    for verb in (["check"], ["budget"], ["log"], ["refresh"], ["prepare"], ["ask", "SELECT 1"]):
        code, out, err = run(verb[0], tmp_path / "no.toml", *verb[1:])
        assert (code, out) == (2, "")
        assert "no.toml" in err


def test_help_names_every_verb():
    """The list of commands is complete."""
    shown = CliRunner().invoke(app, ["--help"]).output
    for verb in ("init", "check", "refresh", "reopen", "prepare", "preview", "ask", "budget", "log", "account", "audit"):
        assert verb in shown
