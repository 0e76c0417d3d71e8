"""A report holds nothing that was read from rows without noise: values and sizes are marked, and every byte is searched."""

import hashlib
import re

import pytest

import curador as cu
from curador.curator.report import kept, record
from curador.curator.report.record import make_report
from curador.study.file import read_study

pytestmark = pytest.mark.slow

MARK = "zq7marked"
ROWS, PEOPLE, MOST = 3571, 787, 1459
"""Rows of the table, persons, and rows of one of them: each number stands nowhere else."""

STUDY = """\
version = 1
name = "shop"
budget = { epsilon = "3", delta = "1e-6" }
max_units = 10_000
ledger = "shop.ledger"
[engine]
worker = "inline"
[tables.visits]
source = "visits.csv"
unit = "person"
[tables.visits.columns]
person = { type = "integer" }
spent = { type = "decimal", bounds = [0, 500] }
[tables.people]
source = "people.csv"
unit = "person"
unique = true
columns = { person = { type = "integer" } }
[analysts]
ana = { share = "40%" }
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study of marked rows: opened, surveyed, asked, and once failed."""
    folder = tmp_path_factory.mktemp("shop")
    who = [7] * MOST + [one % PEOPLE + 100_000 for one in range(ROWS - MOST)]
    rows = [f"{one},417.26{place % 3},{MARK}-{place}" for place, one in enumerate(who)]
    (folder / "visits.csv").write_text("\n".join(["person,spent,note", *rows]) + "\n", encoding="utf-8")
    people = [f"{one},{MARK}" for one in sorted(set(who))]
    (folder / "people.csv").write_text("\n".join(["person,name", *people]) + "\n", encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    with cu.open(folder / "study.toml") as curator:
        curator.survey()
        curator.analyst("ana").ask(f"SELECT COUNT(*) AS n FROM visits WHERE note = '{MARK}-1'", spend="5%")
        curator.ask("SELECT AVG(spent) AS m FROM visits", spend="5%")
    return read_study(folder / "study.toml")


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def found_canaries(text, folder):
    """Marked values, and numbers that are a number of rows or the size of a file, with or without commas.

    Digests and ids are drawn, so that digits in them mean nothing.
    """
    plain = re.sub(r"[0-9a-f]{16,}", "", text)
    numbers = {one.replace(",", "") for one in re.findall(r"\d[\d,]*", plain)}
    sizes = {str(path.stat().st_size) for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 1_000}
    counted = {str(one) for one in (ROWS, PEOPLE, PEOPLE + 1, MOST, ROWS - MOST, ROWS + 1)}
    return sorted([*(numbers & (counted | sizes)), *([MARK] if MARK in text else []), *re.findall(r"417\.26", text)])


def test_nothing_of_rows_is_in_page_or_json_and_nothing_changes(study):
    """The caps that the survey found are there, and neither counts nor questions are."""
    before = digests(study.folder)
    made = make_report(study)

    assert digests(study.folder) == before
    assert made["tables"][0]["caps"]["origin"] == "found by a survey"
    assert made["verification"]["whole"]
    for text in (made.to_html(), made.to_json(), str(made), str(made.registry())):
        assert found_canaries(text, study.folder) == []


def test_the_search_finds_what_it_is_for(study, monkeypatch):
    """Sizes of places, texts of questions and numbers of rows would be noticed."""

    def with_size(what, path, holds, removed, *, personal=None):
        size = f"{path.stat().st_size:,} bytes" if path.is_file() else ""
        return kept._place(what, str(path), f"{holds} {size}", removed, there=True, personal=personal)  # noqa: SLF001

    def with_questions(ledger, study):
        return {**told(ledger, study), "studies": [str(one.question) for one in ledger.entries()]}

    told = record.ledger_body
    with monkeypatch.context() as patch:
        patch.setattr(kept, "_file", with_size)
        assert found_canaries(make_report(study).to_html(), study.folder) != []
    with monkeypatch.context() as patch:
        patch.setattr(record, "ledger_body", with_questions)
        assert found_canaries(make_report(study).to_html(), study.folder) == [MARK]
    assert found_canaries(f"<p>{ROWS:,} rows of {PEOPLE} people</p>", study.folder) == [str(ROWS), str(PEOPLE)]
