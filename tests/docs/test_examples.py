"""Every example in the documents runs and prints what it says."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


def examples_of(text):
    """The examples of the ```python blocks; a fence ends an expected output."""
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return "\n".join(block for block in blocks if ">>> " in block)


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_run(page):
    """The page's examples give the output that is printed there."""
    parser = doctest.DocTestParser()
    test = parser.get_doctest(examples_of(page.read_text(encoding="utf-8")), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report = []
    runner.run(test, out=report.append)

    assert test.examples
    assert runner.failures == 0, "".join(report)


def test_readme_has_examples():
    """The five lines are there."""
    assert ROOT / "README.md" in WITH_EXAMPLES
