"""The figure of an answer: every released number with its error bar."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from curador.curator.show import key_text, level_text
from curador.errors import InvalidParameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.curator.answer import Answer
    from curador.curator.post import Column

MOST_ROWS = 40
"""Rows in one figure: more cannot be read."""

_INK, _GRID = "#0072B2", "#E6E6E6"


def answer_figure(answer: Answer) -> Figure:
    """Return a figure with one panel a released column: a dot and its interval for each of the first rows."""
    from matplotlib.figure import Figure

    released = [part for part in answer.parts if part.low is not None]
    if not released:
        raise InvalidParameter("an answer must have a released number to be drawn; got keys only.")
    labels = _labels(answer)
    wide = min(3.6 * len(released) + 1.4, 16.0)
    made = Figure(figsize=(wide, 1.3 + 0.26 * max(len(labels), 2)), layout="constrained")
    panels = made.subplots(1, len(released), sharey=True, squeeze=False)[0]
    for panel, part in zip(panels, released, strict=True):
        _panel(panel, part, len(labels))
    panels[0].set_yticks(range(len(labels)), labels, parse_math=False)  # a key's $ is a $
    panels[0].invert_yaxis()
    title = f"{level_text(answer.confidence)} intervals: noise only"
    made.suptitle(title, x=0.01, ha="left", fontsize=9, color="#606060")
    return made


def _labels(answer: Answer) -> list[str]:
    keys = [part for part in answer.parts if part.low is None]
    rows = min(len(answer), MOST_ROWS)
    return [", ".join(key_text(part.values[row]) for part in keys) or "all" for row in range(rows)]


def _panel(panel: Axes, part: Column, rows: int) -> None:
    for row in range(rows):
        value, low, high = part.values[row], _end(part.low, row), _end(part.high, row)
        if value is None:
            continue
        panel.hlines(row, low, high, color=_INK, alpha=0.45, linewidth=3)
        panel.plot([value], [row], "o", color=_INK, markersize=4)
    panel.set_title(part.name, loc="left", fontsize=10, parse_math=False)
    panel.grid(axis="x", color=_GRID)
    panel.locator_params(axis="x", nbins=4)  # large counts beside each other would run together
    panel.set_axisbelow(True)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.tick_params(axis="y", length=0)
    panel.tick_params(axis="x", labelsize=8)


def _end(ends: Any, row: int) -> float:
    value = ends[row]
    return math.nan if value is None else float(value)
