"""The look that all figures share: quiet axes, a palette that colour-blind people can tell apart, error bars visible."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours: distinct under the common forms of colour blindness, and in grey by their lightness
BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#6E6E6E",
)
DARK = "#303030"
CYCLE = (BLUE, RED, GREEN, ORANGE, PINK, SKY)

_SETTINGS: Any = {
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.edgecolor": "#9A9A9A",
    "axes.labelcolor": DARK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlecolor": DARK,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "figure.dpi": 120,
    "font.size": 10,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "savefig.bbox": "tight",
    "svg.hashsalt": "curador",  # the same figure gives the same file
    "xtick.color": "#606060",
    "ytick.color": "#606060",
}


@contextmanager
def style() -> Generator[None]:
    """Draw inside this block; the caller's own settings come back afterwards."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        yield


def figure(
    rows: int = 1, *, height: float = 3.2, ratios: tuple[float, ...] | None = None, shared: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure of stacked axes, which share their horizontal axis if asked to. No window system is asked for."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(7.0, height), layout="constrained")
    axes = made.subplots(rows, 1, sharex=shared, squeeze=False, height_ratios=ratios)
    return made, [row[0] for row in axes]
