"""The page to sign in a real browser: light and dark, on a desk and on a phone; hostile names stand there, no more."""

import itertools
from types import SimpleNamespace

import hostile_texts
import pytest
from console_pages import LOOKS, watched

import curador as cu
from curador.curator.report.record import StudyReport, make_report
from curador.study.file import read_study

pytestmark = pytest.mark.slow

ON_DISK = SimpleNamespace(url="file://")


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    """A study with analysts, three tables and some spending."""
    folder = tmp_path_factory.mktemp("ordinary")
    (folder / "stays.csv").write_text(
        "patient,ward,hours\n" + "".join(f"{one % 40},{'ABC'[one % 3]},{one % 90}\n" for one in range(200)), encoding="utf-8"
    )
    (folder / "visits.csv").write_text(
        "patient,note\n" + "".join(f"{one % 40},n{one}\n" for one in range(120)), encoding="utf-8"
    )
    (folder / "wards.csv").write_text("ward,floor\nA,1\nB,2\nC,3\n", encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    with cu.open(folder / "study.toml") as curator:
        curator.survey()
        curator.ask("SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward", spend="5%")
        curator.analyst("ana").ask("SELECT AVG(hours) AS m FROM stays", spend="20%")
        report = curator.report()
    page = folder / "report.html"
    page.write_text(report.to_html(), encoding="utf-8")
    return page


STUDY = """\
version = 1
name = "hospital"
budget = { epsilon = "2", delta = "1e-7" }
max_units = 100_000
ledger = "hospital.ledger"

[unit]
name = "patient"

[engine]
worker = "inline"

[tables.stays]
source = "stays.csv"
unit = "patient"
caps = { rows = 5, groups = 3 }

[tables.stays.columns]
patient = { type = "integer" }
ward = { type = "string", values = ["A", "B", "C"] }
hours = { type = "integer", bounds = [0, 720] }

[tables.visits]
source = "visits.csv"
unit = "patient"

[tables.visits.columns]
patient = { type = "integer" }

[tables.wards]
source = "wards.csv"
public = true

[analysts]
ana = { share = "40%" }
"bruno maría de la torre" = { share = "30%", tables = ["stays"], train = true }
"""


def hostile(value, texts):
    """The same record with a hostile text in the place of every name and sentence."""
    if isinstance(value, dict):
        return {name: one if name in KEPT else hostile(one, texts) for name, one in value.items()}
    if isinstance(value, list):
        return [hostile(one, texts) for one in value]
    return next(texts) if isinstance(value, str) and not any(sign.isdigit() for sign in value) else value


KEPT = {
    "made",
    "origin",
    "most_units_origin",
    "least_spend_origin",
    "chain",
    "witness",
    "epsilon",
    "delta",
    "rho",
    "odds",
    "percent",
    "percent_left",
    "time",
    "section",
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_page_reads_well(chromium, ordinary, look):
    """Nothing serious by axe, nothing wider than the screen, no request, no hidden sign."""
    with watched(chromium, ON_DISK, look) as seen:
        seen.page.goto(ordinary.as_uri())
        seen.page.get_by_role("heading", level=1).wait_for()
        assert seen.faults() == []
        assert seen.requests == 1
        seen.shoot(f"report-{look}")
        if look == "desktop-light":
            seen.page.emulate_media(media="print")
            height = seen.page.evaluate(
                "() => document.querySelector('header').offsetHeight + document.querySelector('#statement').offsetHeight"
            )
            seen.shoot("report-print")
            assert height < 1_000, "what is signed is one page"


@pytest.mark.parametrize("look", ["desktop-light", "phone-dark"])
def test_no_text_is_obeyed(chromium, ordinary, tmp_path, look):
    """Every name and sentence of a record is a hostile text."""
    record = make_report(read_study(ordinary.parent / "study.toml")).record
    made = StudyReport(hostile(record, itertools.cycle(hostile_texts.ALL)))
    page = tmp_path / "hostile.html"
    page.write_text(made.to_html(), encoding="utf-8")
    with watched(chromium, ON_DISK, look) as seen:
        seen.page.goto(page.as_uri())
        seen.page.get_by_role("heading", level=1).wait_for()
        assert seen.faults() == []
        assert seen.page.locator("img, script, iframe, svg, main style, header a").count() == 0
        assert "<img src=x onerror=pwned()>" in seen.page.locator("body").inner_text()
