"""One table, two prints: the terminal's and the page's."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as RichTable

if TYPE_CHECKING:
    from collections.abc import Sequence

CONSOLE = Console(width=None if os.isatty(1) else 150)


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the columns' names and rows of text; the first column is words, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def show(self) -> None:
        """Print to the terminal."""
        table = RichTable(title=self.title, title_justify="left", title_style="bold")
        for index, column in enumerate(self.columns):
            table.add_column(column, justify="right" if index else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*(_coloured(cell) for cell in row))
        CONSOLE.print(table)

    def markdown(self) -> str:
        """Return the table as Markdown."""
        ruler = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [self.columns, ruler, *self.rows]
        return f"## {self.title}\n\n" + "\n".join(_line(line) for line in lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _coloured(cell: str) -> str:
    colour = {"PASS": "green", "FAIL": "bold red", "not measured": "yellow"}.get(cell)
    return f"[{colour}]{cell}[/]" if colour else cell.replace("[", "\\[")


def page(heading: str, paragraphs: Sequence[str], tables: Sequence[Table]) -> str:
    """Return a whole page. It bears no date: only the times differ from run to run."""
    return "\n\n".join([f"# {heading}", *paragraphs, *(table.markdown().rstrip() for table in tables)]) + "\n"


def machine(threads: str = "one thread a tool") -> str:
    """Return what the times were taken on, in one sentence."""
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"Machine: {os.cpu_count()} cores, {system}; {threads}."


def seconds(value: float | None) -> str:
    """Return a time with three digits."""
    return "" if value is None else f"{value:.3g}" if value >= 0.001 else f"{value:.2e}"
