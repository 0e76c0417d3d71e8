"""Tables and texts as a terminal shows them, letter by letter."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


WIDTH = 112
"""Columns of a table that is printed where no terminal says how wide it is."""


def plain_text(*parts: Any, width: int = WIDTH) -> str:
    """Return rich tables and texts as plain text."""
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, force_terminal=False, force_jupyter=False, highlight=False)
    for part in parts:
        console.print(part)
    return stream.getvalue().rstrip("\n")


def make_table(*columns: str, title: str | None = None, left: int = 1) -> Any:
    """Return an empty rich table; the first `left` columns are words, the others numbers."""
    from rich import box
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, name in enumerate(columns):
        made.add_column(verbatim(name), justify="left" if place < left else "right", overflow="fold")
    return made


def with_lines(made: Any, lines: Iterable[str]) -> Any:
    """Return a table with lines of text below it."""
    from rich.console import Group

    return Group(made, "", *(verbatim(line) for line in lines))


def verbatim(text: str) -> Any:
    """Return the text as rich prints it letter by letter: no markup, no emoji, nothing that moves a terminal's cursor."""
    from rich.text import Text

    return Text("".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text))
