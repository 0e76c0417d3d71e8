"""Every source that a claim cites is in the bibliography, and every public rule states its claim."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "curador"
CITATION = re.compile(r"\[([A-Z][A-Za-z+]*\d\d)[^\]]*\](?!\()")  # and no link


def known():
    return set(
        re.findall(r"^\*\*\[([^\]]+)\]\*\*", (ROOT / "docs" / "references.md").read_text(encoding="utf-8"), re.MULTILINE)
    )


def cited():
    paths = [*SOURCE.rglob("*.py"), *(ROOT / "docs" / "explanation").glob("*.md"), *(ROOT / "docs" / "figures").glob("*.py")]
    return {key for path in paths for key in CITATION.findall(path.read_text(encoding="utf-8"))}


def test_every_citation_is_in_the_bibliography():
    """No claim cites a paper that nobody can find."""
    assert cited() - known() == set()


def test_bibliography_has_no_dead_entries():
    """What is listed is used."""
    assert known() - cited() == set()


def rules():
    for name in ("convert.py", "compose.py", "gaussian.py", "odds.py"):
        tree = ast.parse((SOURCE / "privacy" / name).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                overload = any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)
                if not overload and node.name != "roc":
                    yield pytest.param(node, id=f"{name}:{node.name}")


@pytest.mark.parametrize("node", list(rules()))
def test_every_rule_states_its_claim(node):
    """A function that a guarantee rests on says what it claims and which way it rounds."""
    text = ast.get_docstring(node) or ""

    assert "Claim" in text or "Returns" in text or "Rounds" in text


def test_explanations_that_the_code_points_to_exist():
    """Every docs/ path named in the sources is a file."""
    named = {
        path for file in SOURCE.rglob("*.py") for path in re.findall(r"docs/[\w/.-]+\.md", file.read_text(encoding="utf-8"))
    }

    assert named
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_tests_that_the_documents_point_to_exist():
    """Every folder or file of tests that a document names is there."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {path for page in pages for path in re.findall(r"`(tests/[\w/.-]+)", page.read_text(encoding="utf-8"))}

    assert named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_modules_that_the_architecture_points_to_exist():
    """Every file or room of the sources that the page names is there."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = "|".join(sorted(path.name for path in SOURCE.iterdir() if path.is_dir()))
    named = set(re.findall(rf"`((?:{rooms})/[\w/]*(?:\.py)?)", text))

    assert named
    assert [path for path in sorted(named) if not (SOURCE / path).exists()] == []


def test_links_between_documents_hold():
    """Every relative link of every document leads to a file."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md", ROOT / "bench" / "README.md"]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]

    assert broken == []
