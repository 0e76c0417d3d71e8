"""What is served of the console is what its sources say, and the sources trust no text."""

import hashlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "console"
BUILT = ROOT / "src" / "curador" / "server" / "console"
TEXTS = SOURCES / "src" / "texts"

TRUSTING = re.compile(
    r"\{@html|innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|new Function|setHTML"
    r"|createContextualFragment|\bstyle=|<style[^>]*>\s*\{|javascript:"
)
"""Ways by which a text becomes markup or code, or a style that the page's policy forbids."""

ADDRESSES = re.compile(r"https?://[^\s\"'`)]+")


def source_files():
    return sorted(path for path in (SOURCES / "src").rglob("*") if path.suffix in {".svelte", ".js"})


def trusting(text):
    return TRUSTING.findall(text)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def built_of(folder):
    names = ["index.html", "package-lock.json", "package.json", "vite.config.js"]
    below = [path.relative_to(folder).as_posix() for path in (folder / "src").rglob("*") if path.is_file()]
    return {name: digest(folder / name) for name in sorted([*names, *below])}


def test_what_is_served_was_built_from_these_sources():
    """A change of the console's sources without `make console` fails here."""
    manifest = json.loads((BUILT / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["sources"] == built_of(SOURCES), "run `make console`, and commit what it builds"
    served = {path.relative_to(BUILT).as_posix(): digest(path) for path in BUILT.rglob("*") if path.is_file()}
    served.pop("manifest.json")
    assert manifest["files"] == served, "the built files were changed by hand"


def test_a_stale_build_would_be_found(tmp_path):
    """One letter more in one source is another digest."""
    import shutil

    shutil.copytree(SOURCES, tmp_path / "console", ignore=shutil.ignore_patterns("node_modules"))
    before = built_of(tmp_path / "console")
    with (tmp_path / "console" / "src" / "main.js").open("a", encoding="utf-8") as file:
        file.write(" ")
    assert before != built_of(tmp_path / "console")


@pytest.mark.parametrize("path", source_files(), ids=lambda path: path.name)
def test_no_source_trusts_a_text(path):
    """No raw HTML, no code made of texts, no inline style, no address of another host."""
    text = path.read_text(encoding="utf-8")
    assert trusting(text) == []
    assert [found for found in ADDRESSES.findall(text) if not found.startswith("http://www.w3.org/")] == []


@pytest.mark.parametrize(
    "bug",
    [
        "<p>{@html row.city}</p>",
        "{@html  answer.notes[0]}",
        "node.innerHTML = text;",
        'node.insertAdjacentHTML("beforeend", text);',
        "<iframe srcdoc={text}></iframe>",
        "new Function(text)()",
        '<span style="width: {width}%"></span>',
        "<a href={`javascript:${text}`}>x</a>",
    ],
)
def test_a_seeded_trust_is_found(bug):
    """Each way of trusting is caught."""
    assert trusting(bug)


def test_every_text_is_in_the_catalogue_and_is_used():
    """What the pages say, they say by keys; every key has its text, and no text lies unused."""
    texts = json.loads((TEXTS / "en.json").read_text(encoding="utf-8"))
    sources = "".join(path.read_text(encoding="utf-8") for path in source_files())
    plain = set(re.findall(r"\bt\(\s*\"([^\"]+)\"", sources))
    made = [re.escape(one) for one in re.findall(r"\bt\(\s*`([^`]+)`", sources)]
    patterns = [re.compile(re.sub(r"\\\$\\\{.*?\\\}", r"[\\w]+", one)) for one in made]
    said = {re.sub(r"\.(one|other)$", "", key) if key.endswith((".one", ".other")) else key for key in texts}
    assert plain <= said
    assert {key for key in said - plain if not any(one.fullmatch(key) for one in patterns)} == set()
    for key in texts:
        if key.endswith(".one"):
            assert key.removesuffix(".one") + ".other" in texts


def test_every_language_says_everything():
    """A catalogue has the keys of the English one, with the same names to be filled in."""
    first = json.loads((TEXTS / "en.json").read_text(encoding="utf-8"))
    for path in sorted(TEXTS.glob("*.json")):
        other = json.loads(path.read_text(encoding="utf-8"))
        assert other.keys() == first.keys(), path.name
        for key, text in first.items():
            assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", other[key])), (path.name, key)


def test_the_pages_speak_without_jargon():
    """No label of the catalogue needs a word that an analyst never heard of; Greek stands under exact numbers only."""
    texts = json.loads((TEXTS / "en.json").read_text(encoding="utf-8"))
    greek = {key for key, text in texts.items() if re.search(r"[εδρ]|epsilon|zCDP|sensitivity", text)}
    assert greek == {"budget.epsilon", "budget.epsilonSpent", "promise.exact"}


def test_no_lock_file_names_a_host():
    """Packages come from wherever whoever builds gets packages, held by their digests."""
    for path in (SOURCES / "package-lock.json", ROOT / "tests" / "browser" / "package-lock.json"):
        lock = json.loads(path.read_text(encoding="utf-8"))
        packages = {name: one for name, one in lock["packages"].items() if name}
        assert not [name for name, one in packages.items() if "resolved" in one]
        assert [name for name, one in packages.items() if "integrity" not in one and not one.get("inBundle")] == []


def test_the_page_begins_without_inline_code():
    """One script and one sheet, both files of this server."""
    page = (BUILT / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert "<style" not in page
    assert "style=" not in page
    assert re.findall(r"(?:src|href)=\"(?!\./)", page) == []


def test_licences_of_what_is_shipped_are_shipped():
    """Every library in the built files, and the font."""
    text = (BUILT / "licences.md").read_text(encoding="utf-8")
    for name in ("svelte", "@codemirror/view", "@observablehq/plot", "@fontsource-variable/inter", "d3-scale"):
        assert name in text
