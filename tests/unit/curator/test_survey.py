"""The survey: who buys it, once, what it fixes, and until when."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from surveyed_studies import BY_SHOP, COUNT, FILTERED, JOINED, charges, kinds, opened, session_of, write_rows, write_study
from typer.testing import CliRunner

import curador as cu
from curador.cli.app import app
from curador.curator import curator as curator_module
from curador.curator import survey
from curador.curator.options import QuestionOptions
from curador.curator.price import price_question
from curador.curator.spending import spend
from curador.curator.survey import SURVEY_SHARE, buy_survey, price_survey, trial_session
from curador.curator.survey_columns import buy_columns
from curador.errors import BudgetExceeded, InvalidParameter, InvalidStudy, NotAllowed, Refused
from curador.ledger.entry import AlreadyReserved
from registers import another_register


def in_force(curator):
    """The id of the survey in force."""
    return session_of(curator).survey.id


# ---- who buys -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_owner_buys_it_for_a_hundredth(tmp_path):
    """One charge of 1 %, one entry that says what was found, nothing else; the log shows both."""
    with opened(tmp_path) as curator:
        report = curator.survey()
        assert kinds(curator) == ["created", "reserved", "committed", "surveyed"]
        total = curator.ledger.limits.total.rho
        assert 0 < report.cost.rho <= total * SURVEY_SHARE
        assert report.cost == curator.ledger.spent()
        (reserved,) = charges(curator)
        assert reserved.question.startswith("SURVEY rows of visits")
        cap = report.tables["visits"].cap
        assert cap & (cap - 1) == 0
        assert f"at most {cap:,} rows per customer are counted" in str(report)
        assert [line["kind"] for line in curator.log()] == kinds(curator)
        assert curator.schema.table("visits").table.caps.rows == cap


def test_the_owners_first_question_buys_it_and_says_so(tmp_path, capsys):
    """On standard error, with what it cost; the second question does not."""
    with opened(tmp_path) as curator:
        first = curator.ask(COUNT, spend="2%")
        told = capsys.readouterr().err
        assert "this question needs caps that nobody declared" in told
        assert "survey: cost ρ = " in told
        assert kinds(curator) == ["created", "reserved", "committed", "surveyed", "reserved", "committed"]
        assert first.receipt["version"] == 3
        assert first.receipt["survey"] == {"id": in_force(curator), "caps": {"visits": first.receipt["caps"][0]["rows"]}}
        curator.ask(COUNT, spend="3%")
        assert capsys.readouterr().err == ""
        assert kinds(curator).count("surveyed") == 1


@pytest.mark.slow
def test_the_command_line_buys_it(tmp_path):
    """`curador survey` prints what was found; `--columns` proposes lines and changes nothing."""
    path = write_study(tmp_path)
    done = CliRunner().invoke(app, ["survey", str(path)])
    assert done.exit_code == 0, done.output
    assert "rows per customer are counted" in done.stdout
    before = path.read_bytes()
    columns = CliRunner().invoke(app, ["survey", str(path), "--columns", "--yes"])
    assert columns.exit_code != 0  # every number of this study has bounds
    assert path.read_bytes() == before
    with opened(tmp_path) as curator:
        assert kinds(curator).count("surveyed") == 1
        assert len(charges(curator)) == 1


@pytest.mark.parametrize(
    "text", [COUNT, *(pytest.param(text, marks=pytest.mark.slow) for text in (FILTERED, JOINED, BY_SHOP))]
)
def test_an_analyst_is_refused_with_the_hint_and_buys_nothing(text, tmp_path):
    """Whatever the verb and the options."""
    with opened(tmp_path) as curator:
        ana = curator.analyst("ana")
        before = curator.ledger.head
        for options in ({"spend": "2%"}, {"accuracy": {"n": 50}, "caps": "find"}, {"spend": "2%", "caps": {"rows": 3}}):
            with pytest.raises(InvalidStudy, match="found by the survey") as refused:
                ana.ask(text, **options)
            assert "curador survey study.toml" in str(refused.value)
        with pytest.raises(NotAllowed, match="the owner's to buy"):
            buy_survey(session_of(ana), None)
        with pytest.raises(NotAllowed, match="the owner's to buy"):
            buy_columns(session_of(ana))
        assert not hasattr(ana, "survey")
        assert curator.ledger.head == before


@pytest.mark.slow
def test_what_is_wrong_with_the_first_question_is_found_before_the_survey_is_bought(tmp_path):
    """Bad input loses nothing."""
    with opened(tmp_path) as curator:
        for text, options in (
            ("SELECT COUNT(*) AS n FROM nowhere", {"spend": "2%"}),
            ("SELECT SUM(shop) AS n FROM visits", {"spend": "2%"}),
            (COUNT, {}),
            (COUNT, {"spend": "0.00001%"}),
            (COUNT, {"accuracy": {"m": 5}}),
            (COUNT, {"spend": "2%", "caps": {"colour": 3}}),
            (COUNT, {"spend": "100%"}),  # a hundredth less is left, once the survey is bought
            (COUNT, {"accuracy": {"n": "0.001"}}),
        ):
            with pytest.raises(Refused):
                curator.ask(text, **options)
        assert kinds(curator) == ["created"]
        with pytest.raises(BudgetExceeded, match="question and survey must be within what is left") as refused:
            curator.ask(COUNT, spend="99.5%")
        assert "costs 1 % of the budget" in str(refused.value)
        curator.ask(COUNT, spend="98.9%")
        assert kinds(curator).count("reserved") == 2


@pytest.mark.slow
def test_tables_with_one_row_a_unit_or_declared_caps_need_none(tmp_path, capsys):
    """A question about them buys nothing, and its receipt is of version 2; a study of nothing else refuses a survey."""
    with opened(tmp_path) as curator:
        answer = curator.ask("SELECT COUNT(*) AS n FROM people", spend="2%")
        assert (answer.receipt["version"], "survey" in answer.receipt.record) == (2, False)
        assert kinds(curator) == ["created", "reserved", "committed"]
    (tmp_path / "declared").mkdir()
    another_register()
    with opened(tmp_path / "declared", caps="caps = { rows = 5 }") as curator:
        assert curator.ask(FILTERED, spend="2%").receipt["version"] == 2
        with pytest.raises(InvalidStudy, match="something to find"):
            curator.survey()
        assert kinds(curator) == ["created", "reserved", "committed"]
    assert "survey" not in capsys.readouterr().err


# ---- before it ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_previews_before_the_survey_give_the_error_for_four_caps(tmp_path):
    """Owner and analysts see ± for 1, 16, 256 and 4,096 rows, sixteen times as much each; nothing is written."""
    with opened(tmp_path) as curator:
        for asker in (curator, curator.analyst("ana")):
            shown = asker.preview(COUNT, spend="4%")
            assert [cap for cap, _ in shown.by_cap] == [1, 16, 256, 4096]
            reaches = [float(errors[0].reach) for _, errors in shown.by_cap]
            for one, other in itertools.pairwise(reaches):
                assert other == pytest.approx(16 * one, rel=0.1)
            assert "the survey finds it privately, for 1 % of the budget" in str(shown)
            assert shown.cost.rho > 0
        assert kinds(curator) == ["created"]


@pytest.mark.slow
def test_a_trial_is_never_charged(tmp_path):
    """The caps that previews are shown for reach no charge, also where somebody hands the trial to the door."""
    with opened(tmp_path) as curator:
        trial = trial_session(session_of(curator), 16)
        priced = price_question(trial, COUNT, cu_options(spend="2%"))
        with pytest.raises(AssertionError, match="never charged"):
            spend(trial, priced)
        assert kinds(curator) == ["created"]
        curator.survey()
        assert trial.survey is None
        assert price_question(trial, COUNT, cu_options(spend="2%")).key == priced.key
        assert price_question(session_of(curator), COUNT, cu_options(spend="2%")).key != priced.key


def cu_options(**given):
    """Options of a question, as the verbs make them."""
    return QuestionOptions(**given)


# ---- until when -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_new_survey_makes_every_question_about_its_tables_another(tmp_path):
    """Its id is part of a question's identity, also where the cap is the same."""
    with opened(tmp_path) as curator:
        curator.survey()
        first = curator.ask(COUNT, spend="1%")
        people = curator.ask("SELECT COUNT(*) AS n FROM people", spend="1%")
        key = price_question(session_of(curator), COUNT, cu_options(spend="1%")).key
        assert curator.ask(COUNT, spend="1%").stored
        curator.survey()
        assert kinds(curator).count("surveyed") == 2
        assert price_question(session_of(curator), COUNT, cu_options(spend="1%")).key != key
        again = curator.ask(COUNT, spend="1%")
        assert not again.stored
        assert again.receipt["survey"]["id"] == in_force(curator) != first.receipt["survey"]["id"]
        assert curator.ask("SELECT COUNT(*) AS n FROM people", spend="1%").stored
        assert people.receipt["version"] == 2


@pytest.mark.slow
def test_it_holds_over_data_versions_and_after_reopening(tmp_path):
    """A refresh keeps caps and survey; so does the next process."""
    with opened(tmp_path) as curator:
        cap, own = curator.survey().tables["visits"].cap, in_force(curator)
        write_rows(tmp_path, most=2, seed=5)
        curator.refresh("new rows")
        assert (curator.schema.table("visits").table.caps.rows, in_force(curator)) == (cap, own)
        assert curator.analyst("ana").ask(COUNT, spend="2%").receipt["survey"]["id"] == own
    with opened(tmp_path) as curator:
        assert curator.data_version == 2
        assert in_force(curator) == own
        assert kinds(curator).count("surveyed") == 1


@pytest.mark.slow
def test_answers_across_a_new_survey_say_that_the_cap_changed(tmp_path, monkeypatch):
    """From 4 to 16, with the day; the report says what it was."""
    with opened(tmp_path) as curator:
        _choose(monkeypatch, 4)
        curator.survey()
        assert not any("changed the cap" in note for note in curator.ask(COUNT, spend="1%").notes)
        _choose(monkeypatch, 16)
        report = curator.survey()
        assert "at most 16 rows per customer are counted (was 4)" in str(report)
        (note,) = [note for note in curator.ask(COUNT, spend="1%").notes if "changed the cap" in note]
        assert "changed the cap on visits from 4 to 16 rows per customer: answers before it are of other rows" in note
        assert curator.ask(COUNT, spend="1%", caps={"rows": 2}).receipt["caps"][0]["rows"] == 2


def _choose(monkeypatch, cap):
    monkeypatch.setattr(survey, "choose_rows", lambda *_given, **_named: cap)


@pytest.mark.slow
def test_a_table_that_came_after_the_survey_needs_the_next_one(tmp_path, capsys):
    """Analysts are refused, the owner's question buys it, and the caps of the first are in force until then."""
    path = write_study(tmp_path)
    with cu.open(path) as curator:
        curator.survey()
    text = path.read_text(encoding="utf-8")
    more = '\n[tables.others]\nsource = "visits.parquet"\nunit = "user_id"\n'
    path.write_text(text + more, encoding="utf-8")
    with cu.open(path, refresh=True) as curator:
        with pytest.raises(InvalidStudy, match="count in others must be declared"):
            curator.analyst("ana").ask("SELECT COUNT(*) AS n FROM others", spend="2%")
        curator.analyst("ana").ask(COUNT, spend="2%")
        assert kinds(curator).count("surveyed") == 1
        capsys.readouterr()
        curator.ask("SELECT COUNT(*) AS n FROM others", spend="2%")
        assert "this question needs caps" in capsys.readouterr().err
        assert kinds(curator).count("surveyed") == 2


# ---- once -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_that_ask_at_once_buy_one_survey(tmp_path, monkeypatch):
    """All have seen that there is none; the last one prices its survey when the first has long been entered."""
    with opened(tmp_path) as curator:
        gate, late = threading.Barrier(3), threading.Event()
        plain = curator_module.buy_survey

        def together(session, before, **named):
            place = gate.wait()
            if place == 0:
                late.wait(60)
            try:
                return plain(session, before, **named)
            finally:
                if place:
                    late.set()

        monkeypatch.setattr(curator_module, "buy_survey", together)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(curator.ask(COUNT, spend="2%"))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({str(answer.rows) for answer in answers}) == 1
        assert kinds(curator).count("surveyed") == 1
        assert [entry.question for entry in charges(curator)].count(COUNT) == 1
        assert len(charges(curator)) == 2


@pytest.mark.slow
def test_a_survey_that_follows_another_than_was_seen_is_found_by_the_same_test(tmp_path):
    """The seeded bug: who looks again when the price is made buys a second one."""
    with opened(tmp_path) as curator:
        seen = session_of(curator).survey
        buy_survey(session_of(curator), seen)
        buy_survey(session_of(curator), seen)
        assert len(charges(curator)) == 1
        buy_survey(session_of(curator), session_of(curator).survey)  # as the bug would
        assert len(charges(curator)) == 2


PROGRAM = """
import pathlib, sys, time
import curador as cu
from curador.curator import asking
folder, role = pathlib.Path(sys.argv[1]), sys.argv[2]
plain = asking.PricedQuestion.compute
def slow(self, *, rehearsal):
    if not rehearsal and self.text.startswith("SURVEY"):
        (folder / f"at-work-{role}").touch()
        time.sleep(float(sys.argv[3]))
    return plain(self, rehearsal=rehearsal)
asking.PricedQuestion.compute = slow
with cu.open(folder / "study.toml") as curator:
    (folder / f"open-{role}").touch()
    while not (folder / "go").exists():
        time.sleep(0.005)
    print(curator.ask("SELECT COUNT(*) AS n FROM visits", spend="2%").receipt["survey"]["id"])
"""


def _start(folder, role, seconds):
    command = [sys.executable, "-c", PROGRAM, str(folder), role, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _await(path, process=None):
    until = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < until, path.name
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.mark.slow
def test_two_processes_that_ask_at_once_buy_one_survey(tmp_path):
    """One file, two processes: the second waits for what the first buys, and both answer with the same survey."""
    path = write_study(tmp_path)
    with cu.open(path):
        pass
    buyers = [_start(tmp_path, role, 1.0) for role in ("one", "two")]
    for role, buyer in zip(("one", "two"), buyers, strict=True):
        _await(tmp_path / f"open-{role}", buyer)
    (tmp_path / "go").touch()
    said = [buyer.communicate(timeout=120) for buyer in buyers]
    assert [buyer.returncode for buyer in buyers] == [0, 0], said
    assert len({out for out, _ in said}) == 1
    with cu.open(path) as curator:
        assert kinds(curator).count("surveyed") == 1
        assert sum(entry.question.startswith("SURVEY") for entry in charges(curator)) == 1


@pytest.mark.slow
def test_a_killed_buyer_keeps_its_charge_and_blocks_nobody(tmp_path):
    """Who waited for a whole deadline buys anew: two charges, one survey."""
    path = write_study(tmp_path, deadline="2s")
    with cu.open(path):
        pass
    buyer = _start(tmp_path, "killed", 600)
    (tmp_path / "go").touch()
    _await(tmp_path / "at-work-killed", buyer)
    os.kill(buyer.pid, signal.SIGKILL)
    buyer.communicate(timeout=60)
    with cu.open(path) as curator:
        assert kinds(curator) == ["created", "reserved"]
        curator.ask(COUNT, spend="2%")
        assert kinds(curator)[1:] == ["reserved", "reserved", "committed", "surveyed", "reserved", "committed"]
        first, second, _ = charges(curator)
        assert first.question_key == second.question_key
        curator.ledger.verify()


@pytest.mark.slow
def test_a_buyer_who_is_killed_before_the_entry_has_bought_it(tmp_path, monkeypatch):
    """The numbers are stored with the charge: the next one enters them and pays nothing."""
    with opened(tmp_path) as curator:
        with monkeypatch.context() as patch:
            patch.setattr(curator.ledger, "survey", lambda *_given, **_named: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                curator.survey()
        assert kinds(curator) == ["created", "reserved", "committed"]
        with pytest.raises(InvalidStudy, match="found by the survey"):
            curator.analyst("ana").ask(COUNT, spend="2%")
    with opened(tmp_path) as curator:
        report = curator.survey()
        assert kinds(curator) == ["created", "reserved", "committed", "surveyed", "served"]
        assert not report.cost.rho


# ---- one question, one survey ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_question_keeps_to_the_survey_by_which_it_was_priced(tmp_path, monkeypatch):
    """Another process buys the next one between price and measurement: caps, receipt and key are of the first."""
    with opened(tmp_path) as curator:
        _choose(monkeypatch, 4)
        curator.survey()
        own = in_force(curator)
        priced = price_question(session_of(curator), FILTERED, cu_options(spend="2%"))
        _choose(monkeypatch, 16)
        curator.survey()
        assert in_force(curator) != own
        answer = spend(priced.session, priced)
        assert answer.receipt["survey"] == {"id": own, "caps": {"visits": 4}}
        assert not curator.ask(FILTERED, spend="2%").stored


@pytest.mark.slow
def test_the_survey_is_a_function_of_what_was_released(tmp_path):
    """What the entry holds is what everything follows from: read again, it gives the same caps and schema."""
    with opened(tmp_path) as curator:
        tables = curator.survey().tables
        again = session_of(curator).survey
        assert {name: one.cap for name, one in again.tables.items()} == {name: one.cap for name, one in tables.items()}
        for name, one in tables.items():
            read = again.tables[name]
            assert (read.rows.counts, read.rows.tops, read.rows.occupied) == (
                one.rows.counts,
                one.rows.tops,
                one.rows.occupied,
            )
        entry = curator.ledger.surveyed("shops")
        assert json.loads(json.dumps(entry.survey))["tables"]["visits"]["cap"] == tables["visits"].cap


@pytest.mark.slow
def test_pure_budgets_and_replaced_units_are_surveyed_too(tmp_path):
    """A pure one with Laplace noise, whose cost is ε; a replaced unit moves two numbers."""
    for place, changes in enumerate(({"budget": '{ epsilon = "3" }'}, {"adjacency": "replace_one"})):
        folder = tmp_path / str(place)
        folder.mkdir()
        another_register()
        with opened(folder, **changes) as curator:
            report = curator.survey()
            purchase, _ = price_survey(session_of(curator), None)
            for priced in purchase.question.priced:
                (measured,) = priced.plan.blocks[0].measurements
                assert (measured.l1, measured.l2_squared) == ((1, 1) if place == 0 else (2, 2))
            assert (report.cost.epsilon > 0) == (place == 0)
            curator.analyst("ana").ask(FILTERED, spend="5%")
            curator.ledger.verify()


@pytest.mark.slow
def test_a_survey_that_does_not_fit_is_refused(tmp_path):
    """Like any other question; nothing is charged."""
    with opened(tmp_path) as curator:
        for part in ("60%", "39.5%"):
            curator.ask("SELECT COUNT(*) AS n FROM people", spend=part)
        before = curator.ledger.head
        with pytest.raises(Refused, match="left of the study"):
            curator.survey()
        assert curator.ledger.head == before


@pytest.mark.slow
def test_a_reservation_that_is_not_dead_stands_in_the_way(tmp_path):
    """The ledger's part: `dead` names reservations, and no others; one that is dead hides none before it."""
    with opened(tmp_path) as curator:
        purchase, _ = price_survey(session_of(curator), None)
        first = curator.ledger.reserve(purchase.request, once=True)
        with pytest.raises(AlreadyReserved):
            curator.ledger.reserve(purchase.request, once=True)
        with pytest.raises(AlreadyReserved):
            curator.ledger.reserve(purchase.request, once=True, dead=("another",))
        second = curator.ledger.reserve(purchase.request, once=True, dead=(first.entry.id,))
        with pytest.raises(AlreadyReserved) as other:
            curator.ledger.reserve(purchase.request, once=True, dead=(first.entry.id,))
        assert other.value.entry.id == second.entry.id
        with pytest.raises(AlreadyReserved) as other:
            curator.ledger.reserve(purchase.request, once=True, dead=(second.entry.id,))
        assert other.value.entry.id == first.entry.id


@pytest.mark.slow
def test_an_entry_of_a_survey_must_follow_what_the_owner_paid_for(tmp_path):
    """What an analyst bought holds for nobody."""
    with opened(tmp_path) as curator:
        curator.survey()
        curator.analyst("ana").ask(FILTERED, spend="2%")
        commit = next(entry for entry in curator.ledger.entries() if str(entry.kind) == "committed" and entry.analyst)
        with pytest.raises(InvalidParameter, match="the owner bought"):
            curator.ledger.survey(commit, {"study": "shops", "tables": {}, "before": {}})
        forged = replace(commit, analyst=None)
        with pytest.raises(InvalidParameter, match="of this ledger"):
            curator.ledger.survey(forged, {"study": "shops", "tables": {}, "before": {}})


@pytest.mark.slow
def test_nothing_else_writes_the_file(tmp_path):
    """A survey leaves the study file as it is: what is found stands in the ledger alone."""
    path = write_study(tmp_path)
    before = path.read_bytes()
    with cu.open(path) as curator:
        curator.survey()
    assert Path(path).read_bytes() == before
