"""The checks of the site can fail, notebooks are read as meant, and pages that belong together agree."""

import inspect
import re
import sys
from pathlib import Path

import pytest
import site_checks

from curador import errors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_site"))

import notebooks  # noqa: E402
import pages as site_pages  # noqa: E402

GLOSSARIES = {"English": "glossary.md", "español": "glossary.es.md", "français": "glossary.fr.md"}


def written(folder, **files):
    """Write pages and return what they hold."""
    for name, text in files.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return site_checks.read(folder)


# The checks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["nowhere.html", "other.html#nowhere", "#nowhere", "sub/../nowhere.html"])
def test_a_broken_link_is_noticed(link, tmp_path):
    """A page or an anchor that is not there."""
    pages = written(tmp_path, index=f'<p id="here"><a href="{link}">x</a></p>', other='<p id="place"></p>')

    assert site_checks.broken_links(tmp_path, pages) == [f"index.html: {link}"]


def test_good_links_pass(tmp_path):
    """Anchors, other pages, other sites and escaped letters."""
    links = ["#here", "other.html#place", "https://example.org/x", "other.html#%CE%B5"]
    text = "".join(f'<a href="{link}">x</a>' for link in links)
    pages = written(tmp_path, index=f'<p id="here">{text}</p>', other='<p id="place"></p><p id="ε"></p>')

    assert site_checks.broken_links(tmp_path, pages) == []
    assert site_checks.unreachable(pages) == set()


@pytest.mark.parametrize(
    "picture",
    ['<img src="p.svg">', '<img src="p.svg" alt="">', '<img src="p.svg" alt="p">', '<img src="q.svg" alt="A long word">'],
)
def test_a_picture_without_words_or_file_is_noticed(picture, tmp_path):
    """One word does not describe a picture."""
    (tmp_path / "p.svg").write_text("<svg/>", encoding="utf-8")

    assert len(site_checks.bad_pictures(tmp_path, written(tmp_path, index=picture))) == 1
    good = written(tmp_path, index='<img src="p.svg" alt="Two laws side by side">')
    assert site_checks.bad_pictures(tmp_path, good) == []


@pytest.mark.parametrize(
    "part",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/x.css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="http://example.org/x.png" alt="A picture from elsewhere">',
    ],
)
def test_what_comes_from_elsewhere_is_noticed(part, tmp_path):
    """Scripts, styles, fonts and pictures of other machines."""
    assert len(site_checks.loaded_from_elsewhere(tmp_path, written(tmp_path, index=part))) == 1


def test_a_style_that_loads_from_elsewhere_is_noticed(tmp_path):
    """A font inside a style sheet."""
    (tmp_path / "x.css").write_text('@font-face { src: url("https://fonts.example/x.woff2") }', encoding="utf-8")

    assert len(site_checks.loaded_from_elsewhere(tmp_path, {})) == 1


def test_a_page_without_a_way_to_it_is_noticed(tmp_path):
    """It exists, and nobody would find it."""
    pages = written(tmp_path, index='<a href="one.html">x</a>', one='<a href="index.html">x</a>', lost="<p></p>")

    assert site_checks.unreachable(pages) == {"lost.html"}


# Notebooks ------------------------------------------------------------------------------------------------------

NOTEBOOK = """\
# %% [markdown]
# # Title
#
# Words.

# %%
x = 3
print(x)

# %%
# Figure: A picture of
# three points.
draw()
"""


def test_a_notebook_is_its_cells():
    """Text without its signs of comment, code as it stands, and where it stands."""
    text, first, second = notebooks.cells(NOTEBOOK)

    assert (text.text, text.source) == (True, "# Title\n\nWords.")
    assert (first.text, first.source, first.line) == (False, "x = 3\nprint(x)", 7)
    assert notebooks.without_words(second.source) == ("draw()", "A picture of three points.")


def test_a_notebook_becomes_a_page():
    """Code, what it printed, and the figure with its words."""
    outputs = [notebooks.Output("3\n"), notebooks.Output("", "a-1.svg")]
    page = notebooks.page(NOTEBOOK, outputs, name="a.py", figures="../_notebooks")

    assert page.startswith("# Title\n")
    assert ":class: output\n\n3\n" in page
    assert '<img class="figure" src="../_notebooks/a-1.svg" alt="A picture of three points.">' in page


def test_a_figure_without_words_is_refused():
    """The site cannot be built without them."""
    with pytest.raises(ValueError, match="words for its figure"):
        notebooks.page("# %%\ndraw()\n", [notebooks.Output("", "a-0.svg")], name="a.py", figures=".")


def test_a_notebook_that_warns_is_refused(tmp_path):
    """As is one that fails: the reason is told with its line."""
    notebook = tmp_path / "bad.py"
    notebook.write_text("# %%\nimport warnings\n\nwarnings.warn('old')\n", encoding="utf-8")

    with pytest.raises(RuntimeError, match=r"(?s)bad\.py.*line 4.*UserWarning: old"):
        notebooks.run(notebook, tmp_path)


# Pages that belong together -------------------------------------------------------------------------------------


def test_contents_name_pages_that_exist():
    """And a page stands in the side bar once."""
    entries = [site_pages.page_of(one) for parts in site_pages.CONTENTS.values() for some in parts.values() for one in some]
    named = [one for one in entries if "*" not in one]

    assert [one for one in named if not ((ROOT / f"{one}.md").is_file() or (ROOT / f"{one}.py").is_file())] == []
    assert len(set(named)) == len(named)


def test_every_decision_is_in_its_index():
    """With its title."""
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(.+)\]\((\d{4}-[\w-]+\.md)\)$", index, re.MULTILINE)
    found = {path.name: path.read_text(encoding="utf-8").splitlines()[0] for path in (DOCS / "decisions").glob("0*.md")}

    assert {name: f"# {title}" for title, name in listed} == found


def test_every_notebook_is_in_its_index():
    """The table of the folder names each."""
    index = (DOCS / "notebooks" / "README.md").read_text(encoding="utf-8")

    assert set(re.findall(r"\]\((\d\d-[\w-]+\.py)\)", index)) == {path.name for path in (DOCS / "notebooks").glob("*.py")}


def test_every_error_has_its_section():
    """What it means and what to do, and the tree as the sources draw it."""
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    kinds = {name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, errors.CuradorError)}
    tree = re.findall(r"[├└]─ (\w+)", text)

    assert set(re.findall(r"^## (\w+)$", text, re.MULTILINE)) == kinds - {"CuradorError", "Refused"}
    assert tree == re.findall(r"[├└]─ (\w+)", errors.__doc__)


def glossary(name):
    """Rows of the table, entries by term with their translations, and definitions."""
    text = (DOCS / name).read_text(encoding="utf-8")
    rows = [tuple(re.findall(r"\[([^\]]+)\]\(", line)) for line in text.splitlines() if line.startswith("| [")]
    entries = re.findall(r"^### (.+)\n\n\*(\S+):\* (.+) · \*(\S+):\* (.+)\n\n((?:.+\n)+)", text, re.MULTILINE)
    return rows, entries, text.count("\n### ")


def test_the_glossaries_have_the_same_terms():
    """English, Spanish and French name the same things, in tables and in entries, each with a sentence."""
    languages = list(GLOSSARIES)
    seen = {}
    for language, name in GLOSSARIES.items():
        others = [one for one in languages if one != language]
        rows, entries, headings = glossary(name)
        assert len(rows) == len(entries) == headings >= 60
        assert len({term for term, *_ in entries}) == len(entries)
        triples = {(term, first, second) for term, one, first, other, second, _ in entries if [one, other] == others}
        assert triples == set(rows)
        assert all(len(words.split()) >= 4 for *_, words in entries)
        order = [languages.index(one) for one in (language, *others)]
        seen[language] = {tuple(triple[order.index(place)] for place in range(3)) for triple in triples}
    assert seen["English"] == seen["español"] == seen["français"]


# What the site adds to pages ------------------------------------------------------------------------------------


def test_examples_end_where_they_end():
    """The empty line that ends an output in doctest is not shown; others are."""
    text = ["```python", ">>> x", "1", "", "2", "", "```", "", "words"]

    assert list(site_pages.trimmed(text)) == ["```python", ">>> x", "1", "", "2", "```", "", "words"]


def test_keys_of_the_bibliography_are_links():
    """In words, not in code, not where they are links already."""
    text = ["By [DR14] and [MT07](x.md).", "```", "a[DR14]", "```", "[XX99]"]
    link = "[\\[DR14\\]](../../docs/references.md#ref-dr14)"

    assert list(site_pages.cited(text, "docs/explanation/zcdp")) == [f"By {link} and [MT07](x.md).", *text[1:]]
    assert next(iter(site_pages.cited(["**[DR14]** C. Dwork"], "docs/references"))) == "(ref-dr14)=\n**[DR14]** C. Dwork"


def test_a_folder_is_its_page():
    """A link to a folder leads to the folder's README, if it has one."""
    text = "[a](docs/decisions) [b](docs/how-to/pictures) [c](docs/README.md)"

    assert site_pages.linked_to_pages(text, ROOT) == text.replace("docs/decisions", "docs/decisions/README.md")


def test_a_program_is_a_file_and_a_notebook_a_page():
    """A link to a source leads to a copy of it."""
    text = "[a](src/curador/errors.py) [b](docs/notebooks/02-accounting.py)"

    assert site_pages.linked_to_pages(text, ROOT) == text.replace("src/", "path:src/")


def test_a_pattern_stands_for_what_is_not_named():
    """Named pages keep their order, a new page comes after them by itself."""
    found = ["docs/how-to/README", "docs/how-to/sql", "docs/how-to/new", "docs/how-to/laplace"]

    assert site_pages.listed(["docs/how-to/sql", "docs/how-to/*"], found) == ["/docs/how-to/sql", "/docs/how-to/new"]
    assert site_pages.listed(["Use <docs/how-to/README>"], found) == ["Use </docs/how-to/README>"]
