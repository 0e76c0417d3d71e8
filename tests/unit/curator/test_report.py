"""The report of a study: every claim is recomputed from study and ledger; what is broken is said first."""

import json
import re
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from html.parser import HTMLParser

import pytest
from curator_studies import BY_CITY, COUNT, make_study, open_curator
from typer.testing import CliRunner

import curador as cu
from curador.canonical import canonical_text
from curador.cli.app import app
from curador.curator.promise import belief_words, odds_of
from curador.curator.report.record import StudyReport, make_report
from curador.curator.report.words import alarms, concerns
from curador.errors import InvalidParameter
from curador.ledger.limits import epsilon_of
from curador.study.file import read_study

WHEN = datetime(2031, 4, 5, 6, 7, 8, tzinfo=UTC)
AUDIT = {
    "passed": True,
    "when": "2031-04-01T10:00:00+00:00",
    "questions_asked": 3,
    "purchases_not_replayed": 1,
    "neighbours": 3,
    "canaries": 1000,
    "real_rows": {"replay_holds": True, "canaries_hold": True},
    "made_up_rows": {"replay_holds": True, "canaries_hold": True, "replays": []},
}


def audit_of(study, **changes):
    settings = {"fingerprint of the study": study.digest, "data version": "1", "versions": "curador 1"}
    return {**AUDIT, "settings": settings, **changes}


@pytest.fixture(scope="module")
def spent(tmp_path_factory):
    """A study whose owner and two analysts asked, and one that was taken out of the study afterwards."""
    folder = tmp_path_factory.mktemp("spent")
    with open_curator(folder) as curator:
        curator.ask(COUNT, spend="5%")
        curator.analyst("ana").ask(BY_CITY, spend="10%")
        curator.analyst("leo").ask(COUNT + " WHERE spent > 3", spend="20%")
    whole = make_study(folder)
    return make_study(folder, analysts=[one for one in whole.analysts if one.name != "leo"])


@pytest.fixture(scope="module")
def report(spent):
    return make_report(spent, when=WHEN)


# ---- claims --------------------------------------------------------------------------------------------------------


def test_what_was_spent_is_what_the_ledger_says(spent, report):
    """Percent first, by whom, and the rows add up: whoever is declared no more has one, too."""
    from curador.curator.opening import existing_ledger

    with existing_ledger(spent) as ledger:
        total, limits = ledger.spent(), ledger.limits
        head = ledger.head
    said = report["spent"]
    assert Fraction(said["amounts"]["rho"]) == total.rho == sum(Fraction(one["amounts"]["rho"]) for one in said["by"])
    assert Fraction(said["amounts"]["delta"]) == total.delta
    assert Fraction(said["limit"]["rho"]) == limits.rho_limit
    assert Fraction(said["left"]["rho"]) == limits.rho_limit - total.rho
    part = 100 * total.rho / limits.rho_limit
    assert 0 <= Fraction(said["percent"].removesuffix(" %")) - part < Fraction(1, 100)
    assert 0 <= (100 - part) - Fraction(said["percent_left"].removesuffix(" %")) < Fraction(1, 10)
    assert float(said["epsilon_so_far"]) >= epsilon_of(limits, total)
    assert [(one["name"], one["declared"]) for one in said["by"]] == [
        (None, True),
        ("ana", True),
        ("eva", True),
        ("leo", False),
    ]
    assert (report["ledger"]["head"]["sequence"], report["ledger"]["head"]["hash"]) == head
    assert report["verification"] == {"chain": "agrees", "witness": "agrees", "whole": True}
    assert report.whole
    assert alarms(report.record) == []


def test_the_promise_is_that_of_the_study(spent, report):
    """ε, δ, the words and the digest; the page says them first."""
    promise = report["promise"]
    assert (promise["epsilon"]["exact"], promise["delta"]["exact"]) == ("3", "1/1000000")
    assert promise["belief_words"] == belief_words(spent, odds_of(spent).even)
    assert report["study"] == {"name": "visits", "digest": spent.digest}
    assert report["made"] == "2031-04-05T06:07:08Z"
    page = report.to_html()
    assert promise["belief_words"][0] in page.partition("<main>")[0].replace("\u00a0", " ")
    assert spent.digest in page


def test_every_cap_and_bound_says_where_it_came_from(spent, report):
    """Declared ones; and columns that only the source has."""
    visits, salaries = report["tables"]
    own = {"rows": 5, "groups": 5, "rows_per_group": 5}
    assert visits["caps"] == {**own, "survey": None, "highest_of_a_question": None, "origin": "declared"}
    columns = {one["name"]: one for one in visits["columns"]}
    assert columns["spent"]["bounds"] == {"lower": "0", "upper": "500", "origin": "declared"}
    assert columns["city"]["values"] == {"number": 3, "listed": ["Cuzco", "Lima", "Quito"]}
    assert not columns["shop"]["declared"]
    assert [one["name"] for one in salaries["columns"]] == ["user_id", "pay"]
    assert report["promise"]["least_spend_origin"] == report["protected"]["most_units_origin"] == "default"
    assert [(one["name"], one["share"], one["tables"]) for one in report["analysts"]] == [
        ("ana", "20%", None),
        ("eva", "100%", ["visits"]),
    ]


def test_the_highest_caps_of_a_question_are_told(tmp_path):
    """What an analyst may ask for, beside what counts where nothing is asked for."""
    study = make_study(tmp_path)
    visits = replace(study.tables[0], caps_max=cu.Caps(rows=50))
    made = make_report(replace(study, tables=(visits, study.tables[1])))
    assert made["tables"][0]["caps"]["highest_of_a_question"] == {"rows": 50, "groups": 50, "rows_per_group": 50}
    assert "a question may ask for up to 50 rows" in made.to_html()


def test_caps_that_nobody_declared_are_missing_until_a_survey(tmp_path):
    """And the page says that analysts are refused."""
    study = make_study(tmp_path)
    made = make_report(replace(study, tables=tuple(replace(table, caps=None) for table in study.tables)))
    assert {one["caps"]["origin"] for one in made["tables"]} == {"not known yet"}
    assert "no survey was bought" in " ".join(concerns(made.record))


def test_a_report_writes_nothing(tmp_path):
    """No ledger, no prepared copy, no register: of a study that was never opened."""
    study = make_study(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    made = make_report(study)
    assert sorted(tmp_path.rglob("*")) == before
    assert made["ledger"] is made["spent"] is made["verification"] is None
    assert made.whole
    assert "no ledger yet" in str(made)


def test_sources_that_are_away_are_told(tmp_path):
    """What can be said is said: declared columns, the ledger, what was spent."""
    with open_curator(tmp_path) as curator:
        curator.ask(COUNT, spend="5%")
    for one in tmp_path.glob("*.parquet"):
        one.unlink()
    made = make_report(make_study_again(tmp_path))
    assert made["other_ledgers"] is None
    assert made["spent"]["percent"] == "5 %"
    assert [one["name"] for one in made["tables"][0]["columns"]] == ["spent", "city"]
    assert any("could not be looked at" in one for one in made["not_looked_at"])
    assert made["not_looked_at"][0] in made.to_html()


def make_study_again(folder):
    """The study, without making files for it."""
    for name in ("visits", "salaries"):
        (folder / f"{name}.parquet").touch()
    study = make_study(folder)
    for name in ("visits", "salaries"):
        (folder / f"{name}.parquet").unlink()
    return study


@pytest.mark.slow
def test_another_ledger_of_the_same_rows_is_told_and_added(tmp_path):
    """With what both promise together."""
    with open_curator(tmp_path) as curator:
        curator.ask(COUNT, spend="5%")
    other = make_study(tmp_path, name="second", budget=cu.Budget(epsilon=1, delta="1e-7"))
    from curador.curator.opening import ledger_of

    ledger_of(other, new_ledger="another office", verify=True).close()
    made = make_report(other)
    (row,) = made["other_ledgers"]["ledgers"]
    assert (row["study"], row["epsilon"]["exact"], row["percent"], row["reason_was_given"]) == ("visits", "3", "5 %", True)
    assert made["other_ledgers"]["together"]["epsilon"]["exact"] == "4"
    assert Fraction(made["other_ledgers"]["together"]["delta"]["exact"]) == Fraction("1e-6") + Fraction("1e-7")
    assert "adds up" in " ".join(concerns(made.record))


# ---- broken ledgers ------------------------------------------------------------------------------------------------


def broken(folder, script):
    """A ledger of five entries that somebody changed."""
    with open_curator(folder) as curator:
        curator.ask(COUNT, spend="5%")
        curator.analyst("ana").ask(BY_CITY, spend="10%")
    study = make_study(folder)
    with sqlite3.connect(study.ledger_path) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        saved = [
            row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")
        ]  # the tables must be those that the ledger was made with
        for name in names:
            connection.execute(f"DROP TRIGGER {name}")
        connection.executescript(script)
        for one in saved:
            connection.execute(one)
    connection.close()
    return study


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "UPDATE entry SET body = replace(body, 'COUNT', 'CoUNT') WHERE sequence = 1",
        "UPDATE entry SET body = 'x' WHERE sequence = 2",
        "UPDATE answer SET content = x'00'",
        "UPDATE entry SET body = body || ' ' WHERE sequence = 0",
        "DELETE FROM answer; DELETE FROM entry WHERE sequence = 4",
    ],
)
def test_a_broken_chain_is_said_first(tmp_path, script):
    """On the page before anything else, in the text, and by the exit code; the report is written all the same."""
    study = broken(tmp_path, script)
    file = tmp_path / "study.toml"
    file.write_text(study.to_toml(), encoding="utf-8")
    result = CliRunner().invoke(app, ["report", str(file), "-o", str(tmp_path / "page.html")])

    assert result.exit_code == 1, result.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.index("Do not sign yet") < page.index("To be signed")
    made = make_report(study)
    assert not made.whole
    assert str(made).splitlines()[1].startswith("! ")
    assert "Whole: every entry" not in page


@pytest.mark.slow
def test_a_ledger_that_is_gone_is_said_first(tmp_path):
    """The rows had one: a study without it is not a new study."""
    with open_curator(tmp_path) as curator:
        curator.ask(COUNT, spend="5%")
    study = make_study(tmp_path)
    study.ledger_path.rename(tmp_path / "away")
    made = make_report(study)
    assert not made.whole
    assert "could not be opened" in str(made).splitlines()[1]
    assert "no ledger yet" not in str(made)


# ---- audit ---------------------------------------------------------------------------------------------------------


def test_no_audit_on_record_is_said(report):
    assert report["audit"] is None
    assert "No audit on record" in report.to_html()


def test_the_last_audit_is_told_with_its_size(spent):
    made = make_report(spent, audit=audit_of(spent))
    assert made["audit"]["of_this_study"]
    assert "3 questions of the ledger replayed, with 3 neighbours" in made.to_html()
    assert "Nothing protects that file" in made.to_html()


def test_an_audit_of_something_else_or_a_failed_one_is_noticed(spent):
    other = audit_of(spent, settings={"fingerprint of the study": "0" * 64})
    assert "other declarations" in " ".join(concerns(make_report(spent, audit=other).record))
    failed = make_report(spent, audit=audit_of(spent, passed=False))
    assert alarms(failed.record) == ["The last audit on record was not passed."]
    assert "Do not sign yet" in failed.to_html()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"passed": true}', "{" * 100_000])
def test_a_file_that_is_no_audit_is_refused(spent, tmp_path, text):
    (tmp_path / "audit.json").write_text(text, encoding="utf-8")
    file = tmp_path / "study.toml"
    file.write_text(spent.to_toml(), encoding="utf-8")
    result = CliRunner().invoke(app, ["report", str(file), "--audit", str(tmp_path / "audit.json")])
    assert result.exit_code != 0
    assert isinstance(result.exception, InvalidParameter)


# ---- page, JSON, registry ------------------------------------------------------------------------------------------


class Seen(HTMLParser):
    """Tags, none of which has a script in an attribute or loads anything."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name == "src"]


def test_the_page_stands_alone_and_escapes_names(tmp_path):
    """No script, no picture from elsewhere, and a name that is markup is a text."""
    bad = "<img src=x onerror=pwned()>"
    study = make_study(tmp_path, name="visits", unit_name=bad)
    page = make_report(study).to_html()
    assert {"script", "img", "iframe", "link", "object"}.isdisjoint(Seen(page).tags)
    assert "&lt;img src=x" in page
    assert "<img" not in page
    assert "default-src &#x27;none&#x27;" in page


def test_no_name_moves_a_terminal(tmp_path):
    """What is printed has codes in the place of signs that a terminal obeys."""
    study = make_study(tmp_path, unit_name="per\x1b[31mson\u202e")
    assert not {"\x1b", "\u202e"} & set(str(make_report(study)))
    assert "\\x1b[31m" in str(make_report(study))


def test_the_json_is_canonical_and_makes_the_same_page(report):
    """A stored report is the whole of it."""
    text = report.to_json()
    assert text == canonical_text(json.loads(text)) + "\n"
    again = StudyReport.from_json(text)
    assert again.to_html() == report.to_html()
    for other in ('{"version": 2}', '{"version": 1}', "[]", ""):
        with pytest.raises(InvalidParameter, match="a report of version 1"):
            StudyReport.from_json(other)


def test_sentences_are_short(spent):
    """At most 25 words, in all that is no table."""
    page = make_report(spent, audit=audit_of(spent)).to_html()
    found = [re.sub(r"<[^>]+>", " ", inside) for inside in re.findall(r"<(?:p|li)[ >].*?</(?:p|li)>", page, re.DOTALL)]
    assert len(found) > 40
    assert [one for words in found for one in re.split(r"(?<=[.:;!?])\s+", words) if len(one.split()) > 25] == []


REGISTRY = """
basic.name basic.data_curators basic.intended_use basic.data_product_type basic.data_product_region basic.description
basic.publication_date basic.data_product_sector dp_variant.variant_name dp_variant.data_domain
dp_variant.unprotected_quantities privacy_loss.privacy_unit privacy_loss.privacy_unit_details
privacy_loss.privacy_parameters.epsilon privacy_loss.privacy_parameters.delta privacy_loss.privacy_parameters.rho
privacy_loss.privacy_parameters_details deployment_model.model_name deployment_model.model_name_details
deployment_model.actors deployment_model.release_type deployment_model.release_type_details
deployment_model.data_source_type deployment_model.data_source_type_details deployment_model.access_type
deployment_model.access_type_details accounting.post_processing accounting.composition
implementation.preprocessing_and_hyperparameter_tuning implementation.mechanisms implementation.justification
administrative.sources administrative.notes administrative.registry_authors
"""
"""The fields of a deployment in the registry's schema of July 2026."""


def test_the_registrys_record_has_its_fields_and_lists_its_gaps(report):
    """All of the schema and no other; what a study cannot know is empty and named."""
    made = report.registry()

    def leaves(value, path=()):
        if isinstance(value, dict):
            for name, inside in value.items():
                yield from leaves(inside, (*path, name))
        else:
            yield ".".join(path)

    assert list(made) == ["url_slug", "status", "tier", "deployment"]
    assert sorted(leaves(made["deployment"])) == sorted(REGISTRY.split())
    loss = made["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"]["epsilon"] == 3.0
    assert Fraction(loss["privacy_parameters"]["delta"]) >= Fraction(1, 10**6)
    assert made["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    missing = report.registry_missing()
    assert {"url_slug", "deployment.basic.data_curators", "deployment.basic.publication_date"} <= set(missing)
    assert "deployment.basic.name" not in missing


def test_the_guideline_is_answered_or_left_to_the_owner(report):
    """Every question has a section, and what a study cannot know has no answer."""
    rows = report["guideline"]["questions"]
    assert all(re.fullmatch(r"[234]\.\d(\.\d)?", one["section"]) for one in rows)
    assert [one["question"] for one in rows if one["answer"] is None][-1] == "Need these data be collected at all?"
    assert "50 % sure" in rows[0]["answer"]


# ---- doors ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_python_has_it_for_the_owner_alone(tmp_path):
    with open_curator(tmp_path) as curator:
        curator.ask(COUNT, spend="5%")
        made = curator.report()
        assert made["spent"]["percent"] == "5 %"
        assert made.write(tmp_path / "page.html").read_text(encoding="utf-8") == made.to_html()
        assert not hasattr(curator.analyst("ana"), "report")
        with pytest.raises(InvalidParameter, match=r"\.html or \.json"):
            made.write(tmp_path / "page.pdf")
        with pytest.raises(InvalidParameter, match="the record of an audit"):
            curator.report(audit={})


@pytest.mark.slow
def test_the_shell_writes_all_of_them(spent, tmp_path):
    """Page, JSON, text, registry; a wrong ending is refused before anything is read."""
    file = tmp_path / "study.toml"
    file.write_text(spent.to_toml(), encoding="utf-8")
    run = CliRunner().invoke
    assert run(app, ["report", str(file), "-o", str(tmp_path / "r.json")]).exit_code == 0
    stored = StudyReport.from_json((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert stored["study"]["digest"] == read_study(file).digest
    assert "of the budget is spent" in run(app, ["report", str(file)]).stdout
    assert json.loads(run(app, ["report", str(file), "--json"]).stdout)["version"] == 1
    found = run(app, ["report", str(file), "--registry"])
    assert json.loads(found.stdout)["deployment"]["basic"]["name"] == "visits"
    assert "deployment.basic.publication_date" in found.stderr
    for wrong in (["-o", str(tmp_path / "r.pdf")], ["--json", "--registry"], ["--registry", "-o", str(tmp_path / "r.html")]):
        assert run(app, ["report", str(file), *wrong]).exit_code != 0
