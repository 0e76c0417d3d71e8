"""Pieces of a page that stands alone: escaped text, paragraphs, tables; no scripts, nothing from the network.

Figures in such a page are those of `plots/page.py`.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from curador.text import cut_text

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for the page: nothing; its own style is inside."""

STYLE = """
:root { color-scheme: light; --ink: #1f2328; --soft: #4a5058; --line: #c9ced6; --pale: #f4f6f8; }
:root { --good: #0a5c36; --bad: #9b1c1c; --link: #0a4fae; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: var(--ink); font: 1rem/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
p, li, dd { max-width: 46rem; }
.soft { color: var(--soft); }
.verdict { border-left: .4rem solid; padding: .7rem 1rem; background: var(--pale); margin: 1rem 0; }
.verdict p { margin: .2rem 0; }
.verdict .word { font-size: 1.25rem; font-weight: 700; }
.verdict.good { border-color: var(--good); } .good .word, td.good { color: var(--good); }
.verdict.bad { border-color: var(--bad); } .bad .word, td.bad { color: var(--bad); font-weight: 700; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
figure { margin: 1rem 0; }
figure svg { display: block; width: 100%; min-width: 34rem; height: auto; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { color: var(--soft); font-size: .92rem; max-width: 46rem; margin-top: .4rem; }
table { border-collapse: collapse; font-size: .9rem; margin: .6rem 0; min-width: 100%; }
caption { text-align: left; color: var(--soft); padding: .2rem 0 .4rem; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { border-bottom: 2px solid var(--soft); white-space: nowrap; }
tbody th { font-weight: 600; min-width: 7rem; }
td:last-child:not(.number) { min-width: 9rem; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0 0 0 1rem; }
nav ol { columns: 18rem; padding-left: 1.3rem; } nav a { color: var(--link); }
footer { margin: 3rem auto 2rem; padding-top: .8rem; border-top: 1px solid var(--line); }
footer p { color: var(--soft); font-size: .9rem; }
@media print {
  body { font-size: 10pt; }
  main, header, footer { max-width: none; padding: 0; }
  nav { display: none; }
  .scroll { overflow: visible; }
  figure svg { min-width: 0; max-height: 23cm; }
  figure, tr, .verdict { break-inside: avoid; } h2, h3 { break-after: avoid; }
  table { font-size: 8pt; min-width: 0; }
}
"""


def text(value: object) -> str:
    """Return words that cannot be mistaken for markup, in an element or in a quoted attribute."""
    return html.escape(str(value), quote=True)


def paragraph(words: str) -> str:
    """Return one paragraph of plain words; how they are broken into lines does not matter."""
    return f"<p>{text(' '.join(words.split()))}</p>"


def items(lines: Sequence[str]) -> str:
    """Return a list of plain words; nothing where there are none."""
    inside = "".join(f"<li>{text(' '.join(line.split()))}</li>" for line in lines)
    return f"<ul>{inside}</ul>" if inside else ""


@dataclass(frozen=True, slots=True)
class TableCell:
    """A value in a table; `good` says in colour, beside its words, whether it is as it should be."""

    words: str
    number: bool = False
    good: bool | None = None

    def markup(self, label: str = "") -> str:
        """Return the cell. label: the head of its column, for pages that show rows as cards where they are narrow."""
        said = f' data-label="{text(label)}"' if label else ""
        kinds = [*(["number"] if self.number else []), *([] if self.good is None else ["good" if self.good else "bad"])]
        return f"<td{_kinds(kinds)}{said}>{text(self.words)}</td>"


def number(words: str) -> TableCell:
    """Return a cell whose words are digits."""
    return TableCell(words, number=True)


def _kinds(kinds: Sequence[str]) -> str:
    return f' class="{" ".join(kinds)}"' if kinds else ""


def table(caption: str, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[TableCell]]], *, cards: bool = False) -> str:
    """Return a table whose first column names its rows; everything is escaped here and nowhere else.

    cards   whether the page shows each row as a card where it is narrow: its style must say so
    """
    numbers = [bool(rows) and all(row[1][place].number for row in rows) for place in range(len(heads) - 1)]
    top = [f'<th scope="col">{text(heads[0])}</th>']
    top += [
        f'<th scope="col"{_kinds(["number"] if n else [])}>{text(head)}</th>'
        for head, n in zip(heads[1:], numbers, strict=True)
    ]
    body = "\n".join(
        f'<tr><th scope="row">{text(name)}</th>{"".join(_cells(cells, heads[1:] if cards else ()))}</tr>'
        for name, cells in rows
    )
    inside = f"<caption>{text(caption)}</caption>\n<thead><tr>{''.join(top)}</tr></thead>\n<tbody>\n{body}\n</tbody>"
    kind = ' class="cards"' if cards else ""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}"><table{kind}>{inside}</table></div>'


def _cells(cells: Sequence[TableCell], labels: Sequence[str]) -> list[str]:
    return [cell.markup(label) for cell, label in zip(cells, labels or [""] * len(cells), strict=True)]


def page(title: str, *, header: str, main: str, footer: str, style: str = "") -> str:
    """Return the whole document; what is given is markup already. style: rules after those that all pages share."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{text(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{text(title)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
<header>
{header}
</header>
<main>
{main}
</main>
<footer>
{footer}
</footer>
</body>
</html>
"""


LONGEST = 2_000
"""Letters of one text that somebody else wrote, on a page."""


def visible(value: object) -> object:
    """Return plain values whose texts hold no sign that is unseen or turns others around; each is cut to LONGEST letters."""
    if isinstance(value, str):
        return cut_text(value, LONGEST)
    if isinstance(value, Mapping):
        inside = cast("Mapping[str, object]", value)
        return {name: visible(one) for name, one in inside.items()}
    if isinstance(value, (list, tuple)):
        return [visible(one) for one in cast("Sequence[object]", value)]
    return value
