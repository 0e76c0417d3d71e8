"""Numbers, names and tables as people read them. Imports numerics at most, so that every room above may use it.

Amounts are rounded so that what is said stays true: costs up, rests down. Names that were probably meant are what *did you
mean …?* is made of. Tables and texts are what a terminal shows, letter by letter.
"""

from __future__ import annotations

import decimal
import difflib
import io
import re
from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from typing import Any

# ---- numbers ---------------------------------------------------------------------------------------------------------------


_NINE = decimal.Context(prec=9, rounding=decimal.ROUND_DOWN)

_SMALLEST, _LARGEST = decimal.Decimal("0.0001"), decimal.Decimal(1_000_000)


def rounded_text(value: Fraction, *, up: bool, digits: int = 4) -> str:
    """Return some digits of an amount. Rounds: as said."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_UP if up else decimal.ROUND_DOWN)
    short = context.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator)).normalize(context)
    return f"{short:f}" if not short or _SMALLEST <= abs(short) < _LARGEST else f"{short:e}".replace("e+", "e")


def percent_text(part: Fraction, whole: Fraction, *, up: bool) -> str:
    """Return the part of the whole in per cent."""
    return f"{rounded_text(100 * part / whole, up=up)} %" if whole else "0 %"


def released_text(value: object, width: float | None = None) -> str:
    """Return a released number: whole ones with commas, others with the digits that an error of this size leaves."""
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.{_places(width or abs(value) / 100)}f}"


def key_text(value: object) -> str:
    """Return a key as it is: all digits and no commas, so that different keys look different.

    What a terminal would obey instead of showing (escapes, ends of lines) is written as its code: keys come from data.
    """
    return escaped_text("NULL" if value is None else repr(value) if isinstance(value, float) else str(value))


def escaped_text(text: str) -> str:
    """Return the text with every sign that is not shown (controls, directions, ends of lines, no width) as its code."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def level_text(confidence: Fraction) -> str:
    """Return a confidence in per cent. Rounds: down, so that no interval is said to be certain."""
    percents = 100 * confidence
    return f"{_NINE.divide(decimal.Decimal(percents.numerator), decimal.Decimal(percents.denominator)).normalize():f} %"


def reach_text(reach: float) -> str:
    """Return ± a half-width with two or three digits."""
    return f"± {reach:,.{_places(reach)}f}" if reach < 1e15 else f"± {reach:.3g}"


def _places(width: float) -> int:
    """Digits after the point so that an error of this size shows two of its own."""
    if not 0 < width < float("inf"):
        return 0
    return min(max(1 - decimal.Decimal(width).adjusted(), 0), 12)


# ---- texts that programs read -----------------------------------------------------------------------------------------


_UNSEEN = re.compile(  # signs that are shown as nothing although they count as printable: fillers, joiners, selectors
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


def cut_text(text: str, most: int) -> str:
    """Return a text that somebody else wrote for a program that may take texts for orders: all of it visible, and no longer.

    Controls, directions, ends of lines, what has no width and what is never drawn are written as their codes. A text that was
    cut ends in …
    """
    shown = _UNSEEN.sub(lambda one: ascii(one[0])[1:-1], escaped_text(text[: most + 1]))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


# ---- names -----------------------------------------------------------------------------------------------------------------


_LONGEST, _MOST = 60, 400  # comparing takes the product of two lengths a name: what an asker writes has no say in it


def nearest_names(word: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Return the known names that look like the word, whatever its case, the nearest first; none where none does."""
    known = {one.lower(): one for one in islice(dict.fromkeys(names), _MOST)}
    return [known[match] for match in difflib.get_close_matches(word.lower()[:_LONGEST], known, n=most, cutoff=0.6)]


# ---- tables ----------------------------------------------------------------------------------------------------------------


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


def with_lines(made: Any, lines: Iterable[str], above: Iterable[str] = ()) -> Any:
    """Return a table with lines of text below it, and others above it."""
    from rich.console import Group

    before = [verbatim(line) for line in above]
    return Group(*([*before, ""] if before else []), made, "", *(verbatim(line) for line in lines))


def verbatim(text: str) -> Any:
    """Return the text as rich prints it letter by letter: no markup, no emoji, nothing that moves a terminal's cursor."""
    from rich.text import Text

    return Text("".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text))
