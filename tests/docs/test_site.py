"""The documentation site builds without a warning, and what was built holds together without a network."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
import site_checks
from site_checks import ROOT

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory, worker_id):
    """The site, built once for all processes that test it; or the one that `make docs` has just built."""
    if "CURADOR_SITE" in os.environ:
        return Path(os.environ["CURADOR_SITE"])
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    folder, report = shared / "site", shared / "site.report"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not report.exists():
            done = site_checks.build(folder, shared / "site.trees")
            report.write_text(f"{done.returncode}\n{done.stdout}{done.stderr}", encoding="utf-8")
    code, _, words = report.read_text(encoding="utf-8").partition("\n")
    assert code == "0", words
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """What every page holds."""
    return site_checks.read(site)


def test_every_link_and_anchor_resolves(site, pages):
    """No link inside the site leads nowhere, nor to a place of a page that is not there."""
    assert site_checks.broken_links(site, pages) == []
    assert sum(len(page.links) for page in pages.values()) > 1000


def test_every_picture_is_there_with_words(site, pages):
    """Somebody who cannot see a picture is told what it shows."""
    assert site_checks.bad_pictures(site, pages) == []
    assert sum(len(page.pictures) for page in pages.values()) > 20


def test_nothing_comes_from_elsewhere(site, pages):
    """No font, style, script or picture is fetched from another machine, and none is missing."""
    assert site_checks.loaded_from_elsewhere(site, pages) == []
    assert site_checks.missing_files(site, pages) == []
    assert not [name for name, page in pages.items() for address in page.loaded if "mathjax" in address.lower()]


@pytest.mark.parametrize(("page", "language"), [("glossary", "en"), ("glossary.es", "es"), ("glossary.fr", "fr")])
def test_a_page_says_its_language(site, page, language):
    """For voices and dictionaries of readers."""
    assert f'lang="{language}"' in (site / "docs" / f"{page}.html").read_text(encoding="utf-8")[:200]


def test_the_search_knows_the_pages(site):
    """Search works without a server: its index is a script that pages load from the folder."""
    index = (site / "searchindex.js").read_text(encoding="utf-8")

    for name in ("docs/tutorial/first-study", "docs/glossary.fr", "docs/notebooks/01-first-questions", "ARCHITECTURE"):
        assert f'"{name}"' in index
    for word in ("laplac", "ledger", "budgetexceed", "sensibilidad"):
        assert word in index


def test_every_page_can_be_reached(pages):
    """Links lead from the first page to every other one."""
    assert site_checks.unreachable(pages) == set()


def test_every_document_is_a_page(pages):
    """Whatever lies in docs, and what stands beside the README, is on the site."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *NOTEBOOKS]

    assert {path.relative_to(ROOT).with_suffix(".html").as_posix() for path in documents} <= set(pages)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_ran(notebook, site, pages):
    """Its page shows what it printed and at least one figure."""
    name = notebook.relative_to(ROOT).with_suffix(".html").as_posix()
    text = (site / name).read_text(encoding="utf-8")

    assert 'class="output' in text
    assert any("_notebooks/" in source for source, _ in pages[name].pictures)


@pytest.mark.parametrize(
    "notebook",
    [NOTEBOOKS[0], *(pytest.param(one, marks=pytest.mark.long) for one in NOTEBOOKS[1:])],
    ids=lambda path: path.stem,
)
def test_every_notebook_is_a_script(notebook, tmp_path):
    """It runs from an empty folder without a warning, as its cells do for the site, whose build has run them all once."""
    done = subprocess.run(
        [sys.executable, "-W", "error", notebook],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
