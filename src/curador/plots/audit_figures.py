"""Figures of an audit: bounds against claims, whole curves against samples, and which tester catches which seeded bug."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from curador.audit.exhibits import METHODS
from curador.errors import require
from curador.plots.style import BLUE, CYCLE, DARK, GREEN, GREY, MARKS, PATTERNS, RED, key_below, side_by_side, style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.audit.exhibits import Catch
    from curador.audit.testers import Divergences, Point
    from curador.audit.trial import Row

_LINE = 0.21  # inches a line of names
_WIDTH = 8.8


def bounds_against_claims(rows: Sequence[Row]) -> Figure:
    """Return one line a mechanism, and on it every lower bound of ε as a share of the ε claimed; right of 1 is refuted."""
    require(len(rows) > 0, "rows", "at least one", "none")
    names = list(dict.fromkeys(row.mechanism for row in rows))
    asked = list(dict.fromkeys(row.asked for row in rows))
    with style():
        drawn, (axes,) = side_by_side(1, height=1.4 + _LINE * len(names), width=_WIDTH)
        for place, word in enumerate(asked):
            some = [row for row in rows if row.asked == word and not math.isnan(row.ratio)]
            heights = [names.index(row.mechanism) + 0.22 * (place - (len(asked) - 1) / 2) for row in some]
            axes.plot(
                [min(row.ratio, _MOST) for row in some],
                heights,
                linestyle="none",
                marker=MARKS[place % len(MARKS)],
                color=CYCLE[place % len(CYCLE)],
                markersize=4.5,
                label=f"made for ε = {word}",
            )
        _refuted(axes, rows, names)
        axes.axvline(1.0, color=RED, linestyle=PATTERNS[1], linewidth=1.6, label="the claim")
        axes.axvspan(1.0, _MOST + 0.05, color=RED, alpha=0.07, linewidth=0)
        axes.set_xlim(-0.02, _MOST + 0.05 if any(row.ratio > 1.0 for row in rows) else 1.12)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_yticks(range(len(names)), names, fontsize=8.5)
        axes.set_xlabel("lower bound of ε that the samples prove, as a share of the ε claimed")
        key_below(axes, columns=len(asked) + 1)
    return drawn


_MOST = 2.0  # larger ratios stand at the edge


def _refuted(axes: Axes, rows: Sequence[Row], names: list[str]) -> None:
    wrong = [row for row in rows if not row.holds]
    if wrong:
        places = [min(row.ratio, _MOST) if not math.isnan(row.ratio) else _MOST for row in wrong]
        heights = [names.index(row.mechanism) for row in wrong]
        axes.plot(
            places, heights, linestyle="none", marker="X", markersize=9, color=RED, markeredgecolor=DARK, label="refuted"
        )


def curves_against_samples(profile: Divergences) -> Figure:
    """Return the claimed δ at every ε and the claimed Rényi divergence at every order, with what samples prove of each."""
    with style():
        drawn, (left, right) = side_by_side(2, height=3.9)
        _curve(left, profile.deltas)
        left.set_xlabel("ε")
        left.set_ylabel("δ")
        left.set_title("δ at ε", fontsize=10)
        _curve(right, profile.renyi)
        right.set_xscale("log", base=2)
        shown = [point.at for point in profile.renyi if math.isfinite(point.at)]
        right.set_xticks(shown, [f"{at:g}" for at in shown])
        right.set_xticks([], minor=True)
        right.set_xlabel("order α")
        right.set_ylabel("Rényi divergence")
        right.set_title("Rényi divergence of order α", fontsize=10)
    return drawn


def _curve(axes: Axes, points: Sequence[Point]) -> None:
    some = [point for point in points if math.isfinite(point.at) and math.isfinite(point.claimed)]
    places = [point.at for point in some]
    axes.plot(places, [point.claimed for point in some], color=RED, linestyle=PATTERNS[1], label="claimed: no more than this")
    bounds = [point.bound for point in some]
    axes.vlines(places, 0.0, bounds, color=BLUE, linewidth=1.0, alpha=0.5)
    axes.plot(
        places, bounds, color=BLUE, linestyle="none", marker="o", markersize=5.5, label="proved by samples: at least this"
    )
    wrong = [point for point in some if not point.holds]
    if wrong:
        at, bound = [point.at for point in wrong], [point.bound for point in wrong]
        axes.plot(at, bound, color=RED, linestyle="none", marker="X", markersize=9, markeredgecolor=DARK, label="refuted")
    axes.set_ylim(bottom=0.0)
    key_below(axes, columns=1)


def caught_by(catches: Sequence[Catch]) -> Figure:
    """Return one line a seeded bug and one column a tester: full where it caught the bug, hollow where it did not."""
    require(len(catches) > 0, "catches", "at least one", "none")
    with style():
        drawn, (axes,) = side_by_side(1, height=1.3 + _LINE * len(catches), width=_WIDTH)
        for wanted, colour, inside, label in (
            (True, GREEN, GREEN, "caught"),
            (False, GREY, "white", "looked at, not caught"),
        ):
            places = [(x, y) for y, row in enumerate(catches) for x, by in enumerate(row.by) if by is wanted]
            axes.plot(
                [x for x, _ in places],
                [y for _, y in places],
                linestyle="none",
                marker="o",
                markersize=7.5,
                markerfacecolor=inside,
                markeredgecolor=colour,
                label=label,
            )
        missed = [y for y, row in enumerate(catches) if not row.caught]
        if missed:
            axes.plot([-0.62] * len(missed), missed, linestyle="none", marker="X", markersize=8, color=RED, label="survived")
        axes.set_xlim(-0.8, len(METHODS) - 0.4)
        axes.set_ylim(len(catches) - 0.4, -0.6)
        axes.set_xticks(range(len(METHODS)), METHODS, fontsize=8.5)
        axes.xaxis.tick_top()
        axes.set_yticks(range(len(catches)), [row.name for row in catches], fontsize=8.5)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3, fontsize=8.5)
    return drawn
