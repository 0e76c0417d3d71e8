"""Every example in the documents runs and prints what it says, in a folder with the files that the documents speak of."""

import doctest
import re
import shutil
from pathlib import Path

import example_data
import example_pages
import pytest

from curador.study.file import parse_study

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = re.compile(r"```(python\n(?:.*\n)*?>>> |console\n)")
SLOW = re.compile(r"cu\.open\(|```console|curador\.learn|audit\.game\(|Shuffled\(")
WITH_EXAMPLES = [page for page in PAGES if EXAMPLE.search(page.read_text(encoding="utf-8"))]


def marked(page):
    """A page that opens a study, learns, plays or shuffles takes seconds."""
    slow = SLOW.search(page.read_text(encoding="utf-8")) is not None
    return pytest.param(page, id=page.name, marks=[pytest.mark.slow] if slow else [])


STUDIES = [
    pytest.param(text, id=f"{page.name}-{place}")
    for page in PAGES
    for place, text in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The files, written once."""
    folder = tmp_path_factory.mktemp("data")
    example_data.write(folder)
    return folder


def run(text, name="page"):
    """Return how many examples there are, how many fail, and the report."""
    test = example_pages.doctest_of(text, name, name)
    runner = doctest.DocTestRunner(checker=example_pages.Checker(), optionflags=doctest.ELLIPSIS)
    report = []
    runner.run(test, out=report.append)
    return len(test.examples), runner.failures, "".join(report)


@pytest.mark.parametrize("page", [marked(page) for page in WITH_EXAMPLES])
def test_examples_run(page, data, tmp_path, monkeypatch):
    """The page's examples give the output that is printed there."""
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    count, failures, report = run(page.read_text(encoding="utf-8"), page.name)

    assert count
    assert failures == 0, report


@pytest.mark.parametrize("text", STUDIES)
def test_studies_can_be_read(text, tmp_path):
    """A study that a page shows whole is one; a part of one is TOML."""
    if text.startswith("version"):
        assert parse_study(text, folder=tmp_path).tables
    else:
        import tomllib

        assert tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "```python\n>>> 1 + 1\n3\n\n```",
        "```python\n>>> print('a', 7)  # noisy\nb 7\n\n```",
        "```python\n>>> print('a'); print(); print('b')\na\n\nc\n```",
        "```console\n$ curador budget nothing.toml\nall is well\n```",
        "```python\n>>> print('± 3')\n± 4\n```",
    ],
)
def test_a_wrong_output_is_noticed(text):
    """Digits are left out only where a line says so, words never."""
    assert run(text)[1] == 1


def test_readme_has_examples():
    """The five lines are there, and the same in a shell."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "cu.open(" in text
    assert "$ curador ask" in text
    assert ROOT / "README.md" in WITH_EXAMPLES
