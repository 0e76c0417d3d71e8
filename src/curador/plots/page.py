"""Figures as inline SVG, for pages that stand alone: every figure is described in words, and its ids are its own."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from curador.markup import text
from curador.plots.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def drawing(made: Figure, *, key: str, title: str, told: str, caption: str) -> str:
    """Return a figure as inline SVG with a name and a description in words; `key` keeps its ids apart from others'."""
    label = f'role="img" aria-labelledby="{key}-name {key}-told"'
    names = f'<title id="{key}-name">{text(title)}</title><desc id="{key}-told">{text(" ".join(told.split()))}</desc>'
    head, _, rest = _svg(made, key).partition(">")
    inside = f"{head} {label}>{names}{rest}"
    scrolled = f'<div class="scroll" tabindex="0" role="region" aria-label="{text(title)}">{inside}</div>'
    return f"<figure>{scrolled}<figcaption>{text(' '.join(caption.split()))}</figcaption></figure>"


def _svg(made: Figure, key: str) -> str:
    """The figure without its prologue and its metadata, every id and every reference to one prefixed."""
    held = io.StringIO()
    with style():
        made.savefig(held, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    found = held.getvalue()
    found = found[found.index("<svg") :]
    for unwanted in (r"<metadata>.*?</metadata>", r"<!--.*?-->", r"<style.*?</style>"):  # that style is for every element
        found = re.sub(unwanted, "", found, flags=re.DOTALL)
    found = re.sub(r'\bid="', f'id="{key}-', found)
    found = re.sub(r'href="#', f'href="#{key}-', found)
    return re.sub(r"url\(#", f"url(#{key}-", found)
