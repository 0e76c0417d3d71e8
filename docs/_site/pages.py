"""Which files are pages, in which order, and the little that Markdown for a code host lacks: tables of contents."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
REFERENCES = ROOT / "docs" / "references.md"

INCLUDED = ("*.md", "docs/**.md", "docs/notebooks/*.py", "bench/README.md", "bench/results/*.md", "tests/README.md")
EXCLUDED = (".*", "build", "demo", "dist", "src", "docs/_site", "docs/conf.py", "**/__pycache__")

CONTENTS: dict[str, dict[str, list[str]]] = {
    "docs/README": {
        "Tutorials": ["docs/tutorial/first-study", "docs/tutorial/*"],
        "How to": [
            "docs/how-to/ask-a-table",
            "docs/how-to/data-frames",
            "docs/how-to/write-a-study",
            "docs/how-to/sql",
            "docs/how-to/several-analysts",
            "docs/how-to/run-a-ledger",
            "docs/how-to/tables-on-postgres",
            "docs/how-to/ledger-on-postgres",
            "docs/how-to/several-machines",
            "docs/how-to/spark",
            "docs/how-to/connect-postgres-clients",
            "docs/how-to/deploy",
            "docs/how-to/operate",
            "docs/how-to/ask-from-python",
            "docs/how-to/agents",
            "docs/how-to/answer-a-regulator",
            "docs/how-to/sandbox",
            "docs/how-to/console",
            "docs/how-to/learn",
            "docs/how-to/local",
            "docs/how-to/play-the-game",
            "Use each mechanism <docs/how-to/README>",
            "docs/how-to/*",
        ],
        "Explanations": [
            "docs/explanation/figures",
            "docs/explanation/threat-model",
            "docs/explanation/gdpr",
            "docs/explanation/queries",
            "docs/explanation/a-questions-way",
            "docs/explanation/ledger",
            "docs/explanation/zcdp",
            "docs/explanation/accounting",
            "docs/explanation/exact-noise",
            "docs/explanation/why-not-scipy",
            "docs/explanation/learning",
            "docs/explanation/shuffling",
            "docs/explanation/textbook-corrected",
            "docs/explanation/*",
        ],
        "Notebooks": ["docs/notebooks/README", "docs/notebooks/*"],
        "Look up": [
            "docs/reference/README",
            "docs/reference/command-line",
            "docs/reference/errors",
            "docs/reference/stored-formats",
            "docs/reference/stability",
            "docs/reference/*",
            "docs/glossary",
            "docs/glossary.es",
            "docs/glossary.fr",
            "docs/references",
        ],
        "The project": [
            "Read me <README>",
            "CHANGELOG",
            "ARCHITECTURE",
            "docs/decisions/README",
            "CONTRIBUTING",
            "tests/README",
            "SECURITY",
            "bench/README",
        ],
    },
    "docs/how-to/README": {
        "": [
            f"docs/how-to/{name}"
            for name in (
                "laplace",
                "gaussian",
                "discrete-noise",
                "staircase",
                "truncated-laplace",
                "randomized-response",
                "permute-and-flip",
                "exponential",
                "noisy-max",
                "above-threshold",
                "quantile",
                "keys",
                "clipping",
            )
        ]
    },
    "docs/decisions/README": {"": ["docs/decisions/*"]},
    "bench/README": {"": ["bench/results/*"]},
}
"""By page: headings of the side bar, and what stands below them. A pattern stands for what was not named before it."""


def connect(app: Sphinx) -> None:
    """Let Sphinx ask this module while it reads."""
    app.connect("source-read", on_source)
    app.connect("build-finished", on_finished)


def on_source(app: Sphinx, name: str, source: list[str]) -> None:
    """Give a page its contents, end its examples where they end, and let a link to a folder lead to the folder's README."""
    if app.env.doc2path(name).suffix != ".md":
        return
    found = app.env.found_docs
    contents = (table_of_contents(caption, listed(entries, found)) for caption, entries in CONTENTS.get(name, {}).items())
    text = linked_to_pages(source[0], ROOT / Path(name).parent)
    source[0] = "\n".join(cited(trimmed(text.splitlines()), name)) + "\n" + "".join(contents)


def table_of_contents(caption: str, entries: list[str]) -> str:
    """Return a directive that only the side bar shows."""
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n\n```{toctree}\n" + "\n".join([*options, "", *entries]) + "\n```\n"


def listed(entries: list[str], found: Iterable[str]) -> list[str]:
    """Return the entries from the root of the repository; a pattern becomes the pages that no page lists by name."""
    named = {page_of(entry) for parts in CONTENTS.values() for one in parts.values() for entry in one} | set(CONTENTS)
    return [
        entry.replace("<", "</") if "<" in entry else f"/{page}"
        for entry in entries
        for page in (sorted(fnmatch.filter(set(found) - named, entry)) if "*" in entry else [entry])
    ]


def page_of(entry: str) -> str:
    """Return the page that an entry names, with or without a title of its own."""
    return entry.partition("<")[2].rstrip(">") or entry


def linked_to_pages(text: str, folder: Path) -> str:
    """Return the text with links to folders made links to their README, and links to program files links to the files."""

    def target(match: re.Match[str]) -> str:
        path = folder / match[1]
        if (path / "README.md").is_file():
            return f"]({match[1]}/README.md)"
        return f"](path:{match[1]})" if path.suffix == ".py" and path.parent.name != "notebooks" else match[0]

    return re.sub(r"\]\(([\w./-]+)\)", target, text)


def trimmed(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without empty ones at the end of code; doctest wants them there."""
    inside, held = False, 0
    for line in lines:
        if line.startswith("```"):
            inside, held = not inside, 0
        elif inside and not line:
            held += 1
            continue
        yield from [""] * held
        held = 0
        yield line


def cited(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yield the lines with every key of the bibliography a link to its entry; code stays as it is."""
    keys = "|".join(
        re.escape(key) for key in re.findall(r"^\*\*\[(\S+)\]\*\*", REFERENCES.read_text(encoding="utf-8"), re.MULTILINE)
    )
    here = "/".join([*[".."] * name.count("/"), "docs/references.md"])
    inside = False
    for line in lines:
        inside ^= line.startswith("```")
        if inside:
            yield line
        elif name == "docs/references":
            yield re.sub(rf"^(?=\*\*\[({keys})\])", lambda found: f"({anchor(found[1])})=\n", line)
        else:
            yield re.sub(rf"\[({keys})\](?![(\]])", lambda found: f"[\\[{found[1]}\\]]({here}#{anchor(found[1])})", line)


def anchor(key: str) -> str:
    """Return the name of an entry's place on the page of references."""
    return f"ref-{re.sub(r'[^a-z0-9]', '-', key.lower())}"


def on_finished(app: Sphinx, error: Exception | None) -> None:
    """Make the folder itself open at the first page."""
    if error is None and app.builder.format == "html":
        first = f"{app.config.root_doc}.html"
        head = f'<meta charset="utf-8"><title>curador</title><meta http-equiv="refresh" content="0; url={first}">'
        page = f'<!doctype html><html lang="en"><head>{head}</head><body><p><a href="{first}">curador</a></p></body></html>\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")
