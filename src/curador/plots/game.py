"""The adversary's game, played: what he got, against what is proved that he can get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter
from curador.plots.style import BLUE, DARK, GREY, PATTERNS, RED, key_below, side_by_side, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.audit.game import Game

_CELLS = 24
_RATES = 201
_PROVED = 51  # an exact composition is asked once for each


def game(played: Game) -> Figure:
    """Return two panels of a game (`curador.audit.game`): the ROC with its band and the proved bound, and his beliefs.

    A band that rises above the bound refutes the claim; the place is marked. Beliefs are those in world 1,
    one for each release that was tested.
    """
    if not all(hasattr(played, one) for one in ("roc", "posterior", "proved", "refuted")):
        raise InvalidParameter.must_be("played", "a game of curador.audit", type(played).__name__)
    with style():
        drawn, (left, right) = side_by_side(2, height=4.7)
        _roc(left, played)
        _beliefs(right, played)
        drawn.suptitle(_game_words(played), fontsize=10, x=0.01, ha="left", color=DARK)
    return drawn


def _game_words(played: Game) -> str:
    verdict = "REFUTED" if played.refuted else "not refuted"
    name = played.name if len(played.name) <= 60 else played.name[:59] + "…"
    return f"{name}: {verdict} by {played.samples:,} releases a world ({played.attack})"


def _roc(axes: Axes, played: Game) -> None:
    rates = np.linspace(0.0, 1.0, _RATES)
    roc: Any = played.roc
    ends = np.sin(np.linspace(0.0, 0.5 * np.pi, _PROVED)) ** 2  # denser at both ends
    ends[-1] = 1.0
    axes.plot(ends, played.proved(ends), color=RED, linestyle=PATTERNS[1], label="proved: nobody gets above")
    # between two thresholds one may toss a coin, so that ends of the intervals are joined by straight lines
    low, high = np.interp(rates, roc.fpr_high, roc.tpr_low), np.interp(rates, roc.fpr_low, roc.tpr_high)
    level = f"{100 * played.confidence:.6g} %"
    axes.fill_between(rates, low, high, color=BLUE, alpha=0.22, linewidth=0, label=f"band, {level} for all together")
    axes.plot(roc.fpr, roc.tpr, color=BLUE, linewidth=1.6, label="the adversary")
    axes.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=1.0, label="guessing blindly")
    if played.crossing is not None:
        place, height = played.crossing
        axes.plot([place], [height], marker="X", color=DARK, markersize=9, linestyle="none", label="above the bound")
    axes.set_aspect("equal")
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.005)
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    axes.set_title(f"advantage {played.advantage:.3f} of {played.proved_advantage:.3f} proved", fontsize=10)
    key_below(axes)


def _beliefs(axes: Axes, played: Game) -> None:
    beliefs: Any = played.posterior
    edges = np.linspace(0.0, 1.0, _CELLS + 1).tolist()
    looks = ((beliefs.beliefs0, RED, "releases of world 0", "///"), (beliefs.beliefs1, BLUE, "releases of world 1", ""))
    for values, colour, name, hatch in looks:
        share = np.ones(len(values)) / max(len(values), 1)
        axes.hist(
            values,
            bins=edges,
            weights=share,
            color=colour,
            alpha=0.5,
            label=name,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.5,
        )
    for end, name in ((beliefs.low, "proved bounds"), (beliefs.high, "")):
        if end is not None:
            axes.axvline(end, color=DARK, linestyle=PATTERNS[3], linewidth=1.6, label=name or None)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("his belief in world 1")
    axes.set_ylabel("share of releases")
    axes.set_title(
        f"belief in the truth: {beliefs.mean:.3f} on average, from {max(beliefs.prior, 1 - beliefs.prior):.3g}", fontsize=10
    )
    key_below(axes)
