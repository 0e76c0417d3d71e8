"""The answer: a released table with its error bars, its cost and its receipt.

Its figure shows every released number with its error bar; matplotlib is imported when it is drawn.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from curador.answers.column import arrow_type
from curador.answers.lost import advice, estimate_sentence
from curador.canonical import canonical_digest
from curador.errors import InvalidParameter, NotAllowed
from curador.ledger.amounts import Amounts
from curador.numerics.exact import Number, confidence_level
from curador.study.frames import ARROW, FrameKind, of_kind
from curador.study.values import Type
from curador.text import key_text, level_text, make_table, plain_text, reach_text, released_text, verbatim, with_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.answers.column import AnswerColumn
    from curador.curator.receipt import Receipt


# ---- answer plot -----------------------------------------------------------------------------------------------------------


MOST_ROWS = 40
"""Rows in one figure: more cannot be read."""

_INK, _GRID = "#0072B2", "#E6E6E6"


def answer_figure(answer: Answer) -> Figure:
    """Return a figure with one panel a released column: a dot and its interval for each of the first rows."""
    from matplotlib.figure import Figure

    released = [part for part in answer.parts if part.low is not None and part.type.numeric]
    if not released:
        raise InvalidParameter(subject="an answer", rule="must have a released number to be drawn", got="keys only")
    labels = _labels(answer)
    wide = min(3.6 * len(released) + 1.4, 16.0)
    made = Figure(figsize=(wide, 1.3 + 0.26 * max(len(labels), 2)), layout="constrained")
    panels = made.subplots(1, len(released), sharey=True, squeeze=False)[0]
    for panel, part in zip(panels, released, strict=True):
        _panel(panel, part, len(labels))
    panels[0].set_yticks(range(len(labels)), labels, parse_math=False)  # a key's $ is a $
    panels[0].invert_yaxis()
    title = f"{level_text(answer.confidence)} intervals: noise only"
    if answer.made_up:
        title = f"{MADE_UP}\n{title}" if wide > 6 else f"MADE UP: invented rows\n{title}"
        made.text(0.5, 0.5, "made up", ha="center", va="center", rotation=20, fontsize=44, color="#D55E00", alpha=0.18)
    made.suptitle(title, x=0.01, ha="left", fontsize=9, color="#606060")
    return made


def _labels(answer: Answer) -> list[str]:
    keys = [part for part in answer.parts if part.low is None]
    rows = min(len(answer), MOST_ROWS)
    return [", ".join(key_text(part.values[row]) for part in keys) or "all" for row in range(rows)]


def _panel(panel: Axes, part: AnswerColumn, rows: int) -> None:
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


# ---- answer ----------------------------------------------------------------------------------------------------------------


SHOWN_ROWS = 60
"""Rows of a printed table; all of them are in `rows`, `to_arrow` and the others."""

LOW, HIGH = "_low", "_high"

MADE_UP = "MADE UP: these numbers are about invented rows; they say nothing about the data"
"""The mark of everything that comes out of a sandbox."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was released, in the order of the SELECT list; a released number x is followed by x_low and x_high.

    An interval covers the noise of that number after caps, clamps and dropped rows, before HAVING, ORDER BY, LIMIT or key
    selection chose what is shown.

    cost        what this answer cost; nothing if it was given before
    held_receipt  what `receipt` returns, or what fetches it; None of an answer about made-up rows, and of no other
    stored      whether it was given before
    confidence  of each interval
    notes       what bounding did: caps and bounds that were used
    bias        private estimates of what caps and bounds took away, where they were asked for
    came_as     which kind of data frame `to_frame` makes
    """

    parts: tuple[AnswerColumn, ...] = field(repr=False)
    cost: Amounts
    held_receipt: Receipt | Callable[[], Receipt] | None = field(repr=False)
    stored: bool
    confidence: Fraction
    notes: tuple[str, ...] = ()
    bias: tuple[AnswerColumn, ...] = ()
    again: Callable[[Fraction], tuple[AnswerColumn, ...]] = field(repr=False, compare=False, kw_only=True)
    came_as: FrameKind = field(default=ARROW, repr=False, compare=False, kw_only=True)

    @property
    def made_up(self) -> bool:
        """Whether it is about rows that a sandbox made up: then nothing was released, and there is no receipt."""
        return self.held_receipt is None

    @property
    def receipt(self) -> Receipt:
        """The proof of what was released, and at what cost; refused where the rows are made up."""
        if self.held_receipt is None:
            hint = "a receipt is of rows that exist: ask the study itself"
            raise NotAllowed("an answer about made-up rows has no receipt.", hint=f"{hint}.")
        return self.held_receipt() if callable(self.held_receipt) else self.held_receipt

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, intervals included."""
        return tuple(name for name, _, _ in self._flat())

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        flat = self._flat()
        names = [name for name, _, _ in flat]
        return [dict(zip(names, row, strict=True)) for row in zip(*(values for _, _, values in flat), strict=True)]

    def __len__(self) -> int:
        return len(self.parts[0].values) if self.parts else 0

    def with_confidence(self, confidence: Number) -> Answer:
        """Return the same answer with intervals of another confidence; that costs nothing."""
        level = confidence_level(confidence)
        return replace(self, parts=self.again(level), confidence=level)

    # ---- to other programs ------------------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """Return a data frame of the kind that the question's tables were given as; of files and services an Arrow table."""
        match self.came_as.library:
            case "pandas":
                found = self.to_pandas()
            case "polars":
                found = self.to_polars()
            case _:
                found = self.to_arrow()
        return of_kind(found, self.came_as)

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table. Types depend on the question only: counts int64, other numbers float64."""
        import pyarrow as pa

        flat = self._flat()
        arrays = [pa.array(_list_values(values), type=arrow_type(kind)) for _, kind, values in flat]
        marked = {"made_up": MADE_UP} if self.made_up else None
        return pa.Table.from_arrays(arrays, names=[name for name, _, _ in flat], metadata=marked)

    def to_pandas(self) -> Any:
        """Return a pandas data frame. Whole numbers and truths with a NULL among them are of pandas' types that have one."""
        table = self.to_arrow()
        found = table.to_pandas()
        for place, column in enumerate(table.columns):
            if column.null_count and (nullable := _nullable(column.type)) is not None:
                found.isetitem(place, column.to_pandas(types_mapper=lambda _, kind=nullable: kind))
        if self.made_up:
            found.attrs["made_up"] = MADE_UP
        return found

    def to_polars(self) -> Any:
        """Return a Polars data frame."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def plot(self) -> Any:
        """Return a matplotlib figure: every released number with its error bar, one panel a column."""
        return answer_figure(self)

    # ---- to people --------------------------------------------------------------------------------------------------

    def __rich__(self) -> Any:
        made = make_table(*self._headings(), left=_words(self.parts))
        for row in self._cells():
            made.add_row(*(verbatim(cell) for cell in row))
        return with_lines(made, self._footer(), above=[MADE_UP] if self.made_up else [])

    def __str__(self) -> str:
        return plain_text(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self._headings())
        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self._cells())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        below = "<br>".join(escape(line) for line in self._footer())
        above = f"<p><strong>{escape(MADE_UP)}</strong></p>" if self.made_up else ""
        return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{below}</p>"

    def _headings(self) -> list[str]:
        level = f"± {level_text(self.confidence)}"
        return [name for part in self.parts for name in ([part.name] if part.low is None else [part.name, level])]

    def _cells(self) -> list[list[str]]:
        columns: list[list[str]] = []
        for part in self.parts:
            values = part.values[:SHOWN_ROWS]
            if part.low is None or part.high is None:
                columns.append([key_text(value) for value in values])
                continue
            ends = list(zip(part.low[:SHOWN_ROWS], part.high[:SHOWN_ROWS], strict=True))
            dates = part.type is Type.DATE
            columns.append(
                [
                    key_text(value) if dates else released_text(value, _width(*pair))
                    for value, pair in zip(values, ends, strict=True)
                ]
            )
            columns.append([_interval(value, *pair) for value, pair in zip(values, ends, strict=True)])
        return [list(row) for row in zip(*columns, strict=True)]

    def _footer(self) -> list[str]:
        hidden = len(self) - SHOWN_ROWS
        lines = [f"… {hidden:,} more rows"] if hidden > 0 else []
        lines += [estimate_sentence(part) for part in self.bias]
        advised = advice(self.bias)
        return [*lines, *([] if advised is None else [advised]), *self.notes]

    def _flat(self) -> list[tuple[str, Type, Sequence[Any]]]:
        flat: list[tuple[str, Type, Sequence[Any]]] = []
        for part in self.parts:
            flat.append((part.name, part.type, part.values))
            if part.low is not None and part.high is not None:
                flat += [(part.name + LOW, part.type, part.low), (part.name + HIGH, part.type, part.high)]
        return flat


def as_made_up(answer: Answer, notes: Sequence[str]) -> Answer:
    """Return the answer as one about made-up rows: without its receipt, so that it can never pass for a release."""
    return replace(answer, held_receipt=None, notes=(*notes, *answer.notes))


def table_digest(parts: Sequence[AnswerColumn]) -> str:
    """Return SHA-256 of the released table: names, types and values; intervals follow from them and the receipt."""
    from curador.answers.identity import plain

    def exact(value: Any) -> Any:
        return {"is": "float", "of": value.hex()} if isinstance(value, float) else plain(value)

    body = [[part.name, str(part.type), [exact(value) for value in part.values]] for part in parts]
    return canonical_digest({"version": 1, "columns": body})


def _nullable(kind: Any) -> Any:
    """Return pandas' type for this one that has NULLs, where its usual one would make another type of the column."""
    import pandas as pd
    import pyarrow as pa

    return pd.Int64Dtype() if pa.types.is_integer(kind) else pd.BooleanDtype() if pa.types.is_boolean(kind) else None


def _list_values(values: Sequence[Any]) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values  # type: ignore[attr-defined]


def _words(parts: Sequence[AnswerColumn]) -> int:
    """How many columns stand before the first released number."""
    return next((place for place, part in enumerate(parts) if part.low is not None), len(parts))


def _width(low: Any, high: Any) -> float | None:
    return None if low is None or high is None else float(high - low) / 2


def _interval(value: Any, low: Any, high: Any) -> str:
    """Return ± where the interval is symmetric about the value, its ends where it is not."""
    if isinstance(low, dt.date) or isinstance(high, dt.date):
        return f"{'−∞' if low is None else low} … {'∞' if high is None else high}"
    width = _width(low, high)
    if value is None or width is None or abs((high - value) - (value - low)) > 1e-9 * max(width, 1e-300):
        return f"{released_text(low, width)} … {released_text(high, width)}"
    return f"± {width:,.0f}" if isinstance(value, int) else reach_text(width)
