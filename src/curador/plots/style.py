"""The look that all figures share: quiet axes, a palette that colour-blind people can tell apart, error bars visible.

A series is a colour and a pattern of the line together (`stroke`), so that a print in grey tells as much. Words about series
stand beside the axes or below them (`key_beside`, `key_below`), never on the data.
"""

from __future__ import annotations

from collections.abc import Sequence
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
PATTERNS: tuple[Any, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (6, 1.6, 1.2, 1.6)),
    (0, (1.2, 1.2)),
    (0, (9, 2)),
    (0, (3, 1.2, 1, 1.2, 1, 1.2)),
)
MARKS = ("o", "s", "^", "D", "v", "P")
HATCHES = ("", "///", "xx", "|||", "---", "++")

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


def side_by_side(columns: int, *, height: float = 3.2, width: float = 9.6, shared: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels in one row, which share their vertical axis if asked to."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    axes = made.subplots(1, columns, sharey=shared, squeeze=False)
    return made, list(axes[0])


def stroke(place: int) -> dict[str, Any]:
    """Return the colour and the pattern of the line of a series: no two of the first six share either."""
    return {"color": CYCLE[place % len(CYCLE)], "linestyle": PATTERNS[place % len(PATTERNS)]}


def key_beside(axes: Axes, *, title: str | None = None) -> None:
    """Explain the series to the right of the axes."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), fontsize=9, title=title, title_fontsize=9, alignment="left")


def key_below(axes: Axes, *, columns: int = 2) -> None:
    """Explain the series below the axes and their label."""
    from matplotlib.transforms import ScaledTranslation

    if not axes.get_legend_handles_labels()[1]:
        return
    drawn: Any = axes.get_figure(root=True)
    inches = ScaledTranslation(0.0, -0.48, drawn.dpi_scale_trans)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=axes.transAxes + inches,
        borderaxespad=0.0,
        fontsize=8.5,
        ncols=columns,
        columnspacing=1.2,
        handlelength=2.6,
    )


def key_above(axes: Axes, *, columns: int = 4) -> None:
    """Explain the series in a row between the title and the axes."""
    _, names = axes.get_legend_handles_labels()
    rows = -(-len(names) // columns)
    axes.set_title(axes.get_title(loc="left"), pad=6.0 + 15.0 * rows, fontsize=9)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.15,
        borderpad=0.1,
        fontsize=8.5,
        ncols=columns,
        columnspacing=1.4,
        handlelength=2.4,
    )


def powers(axes: Axes, which: str, exponents: Sequence[int]) -> None:
    """Put ticks at these powers of ten of an axis "x" or "y"."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_ticks([10.0**exponent for exponent in exponents], [f"$10^{{{exponent}}}$" for exponent in exponents])
    axis.set_ticks([], minor=True)
