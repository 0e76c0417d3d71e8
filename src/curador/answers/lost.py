"""What caps and bounds took away, in words. Light: whoever only shows answers needs nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.answers.column import AnswerColumn

MANY = 0.05
"""The share of rows from which on their loss is worth a word."""

ROWS_BEYOND, OUTSIDE = "rows beyond ", " outside "
"""How the names of estimates begin, or what stands in them."""


def is_lower_bound(name: str) -> bool:
    """Whether the estimate of this name is of something that is at least as large."""
    return name.startswith(ROWS_BEYOND)


def estimate_sentence(part: AnswerColumn) -> str:
    """Return an estimate in words that claim no more than was measured."""
    value, least = part.values[0], part.low[0] if part.low else None
    if value is None:
        return f"{part.name}: too little to say"
    share, ends = _percent(value), "" if least is None or part.high is None else _ends(least, part.high[0])
    if not is_lower_bound(part.name):
        kept = " of the rows that were kept" if OUTSIDE in part.name else ""
        return f"{part.name}: about {share} %{kept}{ends}"
    if not least:
        return f"{part.name}: perhaps none, perhaps many; a larger spend would tell"
    return f"{part.name}: at least about {share} %{ends}"


def advice(parts: Sequence[AnswerColumn]) -> str | None:
    """Return what to do where many rows were left out; None where it is not known that many were."""
    if any(is_lower_bound(part.name) and part.low and (part.low[0] or 0) > MANY for part in parts):
        return "a larger cap on rows, which the owner sets in the study, would leave out fewer of them, with more noise"
    return None


def _percent(share: Any) -> str:
    return f"{100 * float(share):.3g}"


def _ends(low: Any, high: Any) -> str:
    return "" if high is None else f" ({_percent(low)} … {_percent(high)} %)"
