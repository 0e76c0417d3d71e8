"""What was spent of a budget, charge by charge and by whom: from a curator, or from the lines of its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from curador.errors import InvalidParameter
from curador.ledger.amounts import Amounts
from curador.plots.style import CYCLE, DARK, HATCHES, PATTERNS, figure, key_beside, style

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.curator.curator import Asker
    from curador.numerics.rounding import FloatArray

Lines = Sequence[Mapping[str, Any]]

OWNER = "owner"
_WORDS = {"epsilon": "ε spent", "rho": "ρ spent", "delta": "δ of private keys spent"}
_RULE = "a curator, or the lines of its log"


@dataclass(frozen=True, slots=True)
class Spending:
    """What each asker had spent after each charge, exactly: a row of sums an asker, which starts at 0.

    A charge that was given back, because no engine had started for it, is a step down.
    """

    askers: tuple[str, ...]
    sums: Mapping[str, tuple[tuple[Fraction, ...], ...]]
    charges: int
    returned: int


def spending(lines: Lines) -> Spending:
    """Return who had spent how much after each charge, from the lines of a log (`Curator.log`)."""
    steps: list[tuple[str, dict[str, Fraction]]] = []
    charged: dict[object, tuple[str, dict[str, Fraction]]] = {}
    try:
        for line in lines:
            who = cast("str", line["analyst"] or OWNER)
            if line["kind"] == "reserved":
                cost = {str(name): Fraction(value) for name, value in line["cost"].items()}
                charged[line["id"]] = (who, cost)
                steps.append((who, cost))
            elif line["kind"] == "voided" and line["refers"] in charged:
                who, cost = charged[line["refers"]]
                steps.append((who, {name: -value for name, value in cost.items()}))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidParameter.must_be("source", _RULE, type(lines).__name__) from None
    askers = tuple(dict.fromkeys(who for who, _ in steps))
    charges = len(charged)
    names = [name for name in _WORDS if any(cost.get(name) for _, cost in steps)]
    sums = {name: tuple(_sums(steps, who, name) for who in askers) for name in names}
    return Spending(askers, sums, charges, len(steps) - charges)


def _sums(steps: Sequence[tuple[str, Mapping[str, Fraction]]], who: str, name: str) -> tuple[Fraction, ...]:
    out = [Fraction(0)]
    for asker, cost in steps:
        out.append(out[-1] + (cost.get(name, Fraction(0)) if asker == who else 0))
    return tuple(out)


def budget(source: Asker | Lines, *, limit: Amounts | None = None) -> Figure:
    """Return what was spent after each charge, one asker's on top of another's, below the limit: ε, or ρ and the δ of keys.

    source  a curator, or one analyst of it, who sees his own charges and his own limit; or the lines of a log
    limit   with lines: the limit to draw
    """
    ask: Callable[[], Lines] | None = getattr(source, "log", None)
    lines = cast("Lines", source) if ask is None else ask()
    whole: Amounts | None = limit if ask is None else cast("Any", source).budget.limit
    found = spending(lines)
    if not found.sums:
        raise InvalidParameter.must_be("source", "a log with a charge in it", "none")
    with style():
        drawn, panels = figure(len(found.sums), height=1.2 + 2.2 * len(found.sums))
        for axes, (name, rows) in zip(panels, found.sums.items(), strict=True):
            _stack(axes, found.askers, rows)
            most = 0.0 if whole is None else float(getattr(whole, name))
            if most > 0:
                axes.axhline(most, color=DARK, linestyle=PATTERNS[1], linewidth=1.6, label=f"limit {most:.4g}")
            top = max(most, *(float(sum(column)) for column in zip(*rows, strict=True)))
            axes.set_ylim(0.0, 1.08 * top)
            axes.set_ylabel(_WORDS[name])
        panels[0].set_title(_spending_words(found, whole), fontsize=10)
        panels[-1].set_xlabel("charges, in the order of the ledger")
        panels[-1].set_xlim(0, found.charges + found.returned)
        _whole_numbers(panels[-1])
        key_beside(panels[0])
    return drawn


def _stack(axes: Axes, askers: Sequence[str], rows: Sequence[Sequence[Fraction]]) -> None:
    places = np.arange(len(rows[0]), dtype=np.float64)
    below: FloatArray = np.zeros(len(rows[0]))
    for place, (who, sums) in enumerate(zip(askers, rows, strict=True)):
        above = below + np.array([float(one) for one in sums])
        colour, hatch = CYCLE[place % len(CYCLE)], HATCHES[place % len(HATCHES)]
        axes.fill_between(
            places,
            below,
            above,
            step="pre",
            facecolor=colour,
            alpha=0.55,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=who,
        )
        axes.step(places, above, where="pre", color=DARK, linewidth=0.8)
        below = above


def _spending_words(found: Spending, limit: Amounts | None) -> str:
    name, rows = next(iter(found.sums.items()))
    spent = sum((row[-1] for row in rows), Fraction(0))
    whole = Fraction(0) if limit is None else getattr(limit, name)
    share = f", {100 * float(spent / whole):.3g} % of the limit spent" if whole else ""
    many = found.charges
    returned = f", {found.returned} given back" if found.returned else ""
    return f"{many} charge{'' if many == 1 else 's'}{returned}{share}"


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
