"""Builds the documentation site, and looks at what was built: links, pictures, what is loaded, what can be reached."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]
LOADED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
}
"""What a browser fetches by itself, by element; a `link` only if its relation says so."""

FETCHED = {"stylesheet", "icon", "shortcut", "preload", "prefetch", "modulepreload", "manifest", "preconnect", "dns-prefetch"}
GENERATED = {"genindex.html", "search.html"}
"""Pages that Sphinx makes of its own accord."""


@dataclass(slots=True)
class Page:
    """What one page holds."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str | None]] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    """Collects links, anchors, pictures and what is loaded."""

    def __init__(self):
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if given.get("id"):
            self.page.anchors.add(given["id"])
        if tag == "a" and given.get("href") is not None:
            self.page.links.append(given["href"])
        if tag == "meta" and given.get("http-equiv", "").lower() == "refresh":
            self.page.links.append(given["content"].partition("url=")[2])
        if tag == "img":
            self.page.pictures.append((given.get("src") or "", given.get("alt")))
        if given.get(LOADED.get(tag, "")):
            self.page.loaded.append(given[LOADED[tag]])
        if tag == "link" and set((given.get("rel") or "").split()) & FETCHED:
            self.page.loaded.append(given["href"])


def build(target: Path, trees: Path) -> subprocess.CompletedProcess[str]:
    """Build the whole site anew; warnings are errors."""
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-a", "-W", "--keep-going", "-b", "html"]
    return subprocess.run(
        [*command, "-c", str(ROOT / "docs"), "-d", str(trees), str(ROOT), str(target)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def read(site: Path) -> dict[str, Page]:
    """Every page of the site by its place in it."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        reader = Reader()
        reader.feed(path.read_text(encoding="utf-8"))
        found[path.relative_to(site).as_posix()] = reader.page
    return found


def outside(address: str) -> bool:
    """Whether an address leads out of the site."""
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc) and parts.scheme != "data"


def target(page: str, address: str) -> tuple[str, str]:
    """The file and the anchor that an address on a page leads to."""
    parts = urlsplit(address)
    path = unquote(parts.path)
    place = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page  # noqa: PTH118, PTH120 -- of the web
    return place, unquote(parts.fragment)


def broken_links(site: Path, pages: dict[str, Page]) -> list[str]:
    """Links inside the site that lead to no file or to no anchor."""
    wrong = []
    for name, page in pages.items():
        for address in page.links:
            if outside(address) or address.startswith("data:"):
                continue
            place, anchor = target(name, address)
            if not (site / place).is_file() or (anchor and place in pages and anchor not in pages[place].anchors):
                wrong.append(f"{name}: {address}")
    return sorted(set(wrong))


def bad_pictures(site: Path, pages: dict[str, Page]) -> list[str]:
    """Pictures that do not exist, and those without words for somebody who cannot see them."""
    return [
        f"{name}: {source}"
        for name, page in pages.items()
        for source, words in page.pictures
        if outside(source) or not (site / target(name, source)[0]).is_file() or len((words or "").split()) < 3
    ]


def loaded_from_elsewhere(site: Path, pages: dict[str, Page]) -> list[str]:
    """What a browser would fetch from another machine: by pages and by style sheets."""
    asked = [f"{name}: {address}" for name, page in pages.items() for address in page.loaded if outside(address)]
    styles = [
        f"{path.relative_to(site)}: {address}"
        for path in sorted(site.rglob("*.css"))
        for address in re.findall(r"(?:url\(|@import )\s*[\"']?([^\"')\s]+)", path.read_text(encoding="utf-8"))
        if outside(address)
    ]
    return asked + styles


def missing_files(site: Path, pages: dict[str, Page]) -> list[str]:
    """What pages load and the site lacks."""
    return [
        f"{name}: {address}"
        for name, page in pages.items()
        for address in page.loaded
        if not outside(address) and not address.startswith("data:") and not (site / target(name, address)[0]).is_file()
    ]


def unreachable(pages: dict[str, Page], start: str = "index.html") -> set[str]:
    """Pages to which no chain of links leads."""
    seen, waiting = {start}, [start]
    while waiting:
        page = waiting.pop()
        for address in pages[page].links:
            place = target(page, address)[0]
            if not outside(address) and place in pages and place not in seen:
                seen.add(place)
                waiting.append(place)
    return set(pages) - seen - GENERATED
