"""Every page on a mechanism has its picture, every picture can be made, and none shows what is no longer so."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from pictures import DOCS, EXPLANATION, FOLDER, PICTURES, TUTORIAL, description, folder_of, write

from curador import mechanisms

pytestmark = pytest.mark.slow

OTHERS = {
    "README.md",
    "ask-a-table.md",
    "clipping.md",
    "learn.md",
    "ledger-on-postgres.md",
    "tables-on-postgres.md",
    "local.md",
    "play-the-game.md",
    "run-a-ledger.md",
    "sandbox.md",
    "several-analysts.md",
    "several-machines.md",
    "sql.md",
    "test-your-own-parts.md",
    "write-a-study.md",
    "agents.md",
    "answer-a-regulator.md",
    "ask-from-python.md",
    "connect-postgres-clients.md",
    "console.md",
    "data-frames.md",
    "deploy.md",
    "operate.md",
    "spark.md",
}
"""Pages that are about no mechanism."""

PAGES = sorted(page for page in FOLDER.parent.glob("*.md") if page.name not in OTHERS)
LINKED = [page for folder in ("how-to", "explanation", "tutorial") for page in sorted((DOCS / folder).glob("*.md"))]
LARGEST = 150_000
DRAWN_APART = 0.02
"""Two shares of 200,000 draws differ by more with a probability below 4 exp(-40): each is within 0.01 of the truth."""


def said(path):
    """The description in the metadata of a picture."""
    found = re.search(r"<dc:description>(.*?)</dc:description>", path.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"{path.name} has no description; run make pictures"
    return json.loads(unescape(found.group(1)))


def pictures_on(page):
    return [Path(target) for target in re.findall(r"!\[[^\]]+\]\(([^)]+\.svg)\)", page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_has_its_picture(page):
    """A page shows the law of its mechanism, with words for those who cannot see it."""
    assert pictures_on(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_has_the_same_parts(page):
    """When, how, how far off, for how much, and what goes wrong."""
    text = page.read_text(encoding="utf-8")
    opening = text.split("\n\n")[1]

    assert opening.startswith("Take ")
    for part in ("## Use it\n", "## Error bars\n", "## What it costs\n", "## What goes wrong"):
        assert text.count(part) == 1, part
    assert ">>> import curador as cu\n" in text


def test_every_mechanism_has_a_page():
    """Each public mechanism is used in an example of some page."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)

    assert [name for name in mechanisms.__all__ if name != "Selection" and f"cu.{name}" not in text] == []


def test_every_page_is_in_the_index():
    """The table of the how-to folder links to every page of it."""
    index = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in FOLDER.parent.glob("*.md")} - {"README.md"}

    assert pages == set(re.findall(r"\]\(([\w-]+\.md)\)", index))


def test_committed_pictures_are_those_listed_and_linked():
    """No picture is left over, missing, or shown nowhere."""
    committed = {path for folder in (FOLDER, TUTORIAL, EXPLANATION) for path in folder.glob("*")}
    photographed = {path for path in committed if path.suffix == ".png"}
    committed -= photographed

    assert committed == {folder_of(name) / f"{name}.svg" for name in PICTURES}
    assert committed == {(page.parent / target).resolve() for page in LINKED for target in pictures_on(page)}
    assert photographed == {
        (page.parent / target).resolve()
        for page in LINKED
        for target in re.findall(r"!\[[^\]]+\]\(([^)]+\.png)\)", page.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("name", PICTURES)
def test_committed_pictures_are_not_stale(name):
    """A picture says which mechanism and inputs it shows, where the laws lay and how high; that is so still."""
    committed, now = said(folder_of(name) / f"{name}.svg"), json.loads(description(name))
    apart = DRAWN_APART if PICTURES[name].drawn else 1e-6

    assert committed["shows"] == now["shows"], "run make pictures"
    for before, after in zip(committed["numbers"], now["numbers"], strict=True):
        assert before == pytest.approx(after, abs=apart), "run make pictures"


def test_a_stale_picture_is_noticed(tmp_path):
    """A picture made for another scale says something else."""
    path = write("laplace", tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("scale=1,", "scale=2,"), encoding="utf-8")

    assert said(path)["shows"] != json.loads(description("laplace"))["shows"]


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_small(name):
    """A page loads on a slow line."""
    assert (folder_of(name) / f"{name}.svg").stat().st_size < LARGEST


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_can_be_made(name, tmp_path):
    """The list is enough to draw them again."""
    path = write(name, tmp_path)

    assert path.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert said(path)["shows"] == str(PICTURES[name])
