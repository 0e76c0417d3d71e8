"""ε against δ: what is proved from above, what is attained from below, and what each reading proves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import require
from curador.plots.style import BLUE, DARK, GREEN, ORANGE, PATTERNS, RED, key_below, powers, side_by_side, style
from curador.plots.subjects import Losses, named
from curador.privacy.losses import BoundedRange, LaplaceLoss

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.numerics.rounding import FloatArray
    from curador.privacy.loss import Loss

_VISIBLE = 0.005
"""Share of ε from which the two ends of the band are two lines."""

EXPONENTS = tuple(range(-12, 0))
"""The δ of the horizontal axis are these powers of ten."""

_READINGS = (("renyi", "Rényi", RED, PATTERNS[1]), ("basic", "sum of ε", ORANGE, PATTERNS[3]))


@dataclass(frozen=True, slots=True)
class Curves:
    """ε at each δ: certified ends, and every reading that speaks."""

    deltas: FloatArray
    lower: FloatArray
    upper: FloatArray
    readings: Mapping[str, FloatArray]


def examples() -> dict[str, Loss]:
    """Return two losses: one whose ε is known to nine digits, and one known between two bounds only."""
    return {
        "100 Laplace releases, ε = 0.1 each": 100 * LaplaceLoss(epsilon="0.1"),
        "50 exponential mechanisms, ε = 0.5 each": 50 * BoundedRange(epsilon="0.5"),
    }


def deltas(exponents: Sequence[int] = EXPONENTS) -> list[str]:
    """Return δ from small to large, as decimals that mean what they show."""
    return [f"1e{power}" for power in exponents]


def curves(loss: Loss, at: Sequence[str]) -> Curves:
    """Return certified bounds and readings of ε at each δ. Ends where nothing is proved are infinite."""
    found = [loss.epsilon_interval(one) for one in at]
    read = [loss.readings(one) for one in at]
    names = tuple(read[0])
    return Curves(
        np.array([float(one) for one in at]),
        np.array([one.lower for one in found]),
        np.array([one.upper for one in found]),
        {name: np.array([one[name] for one in read]) for name in names},
    )


def epsilon_delta(losses: Losses = None, *, exponents: Sequence[int] = EXPONENTS) -> Figure:
    """Return a panel for each loss: the certified band of ε against δ, and the readings that lie above it.

    losses  one, or several by the title of their panel; those of `examples` without. Where the two ends agree to more digits
            than a line has width the band is that line.
    """
    shown = named(losses, examples)
    require(len(exponents) >= 2 and max(exponents) < 0, "exponents", "two or more, below 0", exponents)
    at = deltas(sorted(exponents))
    with style():
        drawn, panels = side_by_side(len(shown), height=3.9, width=7.0 if len(shown) == 1 else 9.6)
        for axes, (title, loss) in zip(panels, shown.items(), strict=True):
            _panel(axes, curves(loss, at))
            axes.set_title(title, fontsize=9)
            axes.set_xscale("log")
            powers(axes, "x", sorted(exponents)[::2])
            axes.set_xlabel("probability δ")
            axes.set_ylabel("privacy loss ε")
        for axes in panels:
            key_below(axes)
    return drawn


def _panel(axes: Axes, found: Curves) -> None:
    known = np.isfinite(found.upper)
    places, low, high = found.deltas[known], found.lower[known], found.upper[known]
    if bool((high - low > _VISIBLE * high).any()):
        axes.fill_between(places, low, high, color=BLUE, alpha=0.22, linewidth=0, label="the truth is in here")
        axes.plot(places, high, color=BLUE, label="proved")
        axes.plot(places, low, color=GREEN, linestyle=PATTERNS[2], linewidth=1.4, label="attained")
    elif known.any():
        axes.plot(places, high, color=BLUE, label="proved and attained")
    top = float(found.upper[known].max()) if known.any() else 0.0
    for name, words, colour, pattern in _READINGS:
        values = found.readings.get(name)
        if values is None or not np.isfinite(values).any():
            continue
        finite = np.isfinite(values)
        if top and float(values[finite].min()) > 2.2 * top:  # it would flatten all the others
            axes.plot(
                [], [], color=colour, linestyle=pattern, linewidth=1.4, label=f"{words}: {values[finite].min():.3g} and more"
            )
            continue
        axes.plot(found.deltas[finite], values[finite], color=colour, linestyle=pattern, linewidth=1.4, label=words)
    if not known.all():
        gap = float(found.deltas[~known].max())
        axes.axvspan(float(found.deltas[0]), gap, color="#D9D9D9", linewidth=0, alpha=0.6)
        axes.annotate(
            "no ε",
            (math.sqrt(float(found.deltas[0]) * gap), 0.02),
            xycoords=("data", "axes fraction"),
            color=DARK,
            fontsize=8,
        )
    axes.set_ylim(bottom=0.0)
