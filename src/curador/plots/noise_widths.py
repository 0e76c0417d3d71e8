"""How far off an answer may be, against what it costs: the 95 % error bar of each kind of noise, by ε."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import require
from curador.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Staircase, TruncatedLaplace
from curador.numerics.exact import open_probability
from curador.plots.style import MARKS, figure, key_beside, stroke, style

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from curador.numerics.exact import Number
    from curador.numerics.rounding import FloatArray

EPSILONS = ("0.1", "0.15", "0.25", "0.4", "0.6", "1", "1.5", "2.5", "4", "6")

_EPSILON_TICKS = (0.1, 0.2, 0.5, 1, 2, 5)
_HEIGHTS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


def kinds(delta: Number) -> dict[str, Callable[[str], Any]]:
    """Return, by name, what makes the mechanism of an ε, for an answer that one person moves by at most 1."""
    said = f"δ = {float(open_probability(delta, 'delta')):g}".replace("e-0", "e-")
    return {
        "Laplace": lambda epsilon: Laplace.calibrate(epsilon=epsilon, sensitivity=1),
        f"Gaussian, {said}": lambda epsilon: Gaussian.calibrate(epsilon=epsilon, delta=delta, sensitivity=1),
        "staircase": lambda epsilon: Staircase(epsilon=epsilon, sensitivity=1),
        f"truncated Laplace, {said}": lambda epsilon: TruncatedLaplace.calibrate(epsilon=epsilon, delta=delta, sensitivity=1),
        "discrete Laplace": lambda epsilon: DiscreteLaplace.calibrate(epsilon=epsilon, sensitivity=1),
        f"discrete Gaussian, {said}": lambda epsilon: DiscreteGaussian.calibrate(epsilon=epsilon, delta=delta, sensitivity=1),
    }


def widths(make: Callable[[str], Any], epsilons: Sequence[str], confidence: Number = "0.95") -> FloatArray:
    """Return the half width of the error bar at each ε."""
    return np.array([float(make(one).interval(confidence).upper) for one in epsilons])


def noise_widths(epsilons: Sequence[str] = EPSILONS, *, delta: Number = "1e-6", confidence: Number = "0.95") -> Figure:
    """Return the half width of the error bar of one release against ε by kind of noise, above; relative to Laplace's, below.

    Whole numbers stand where noise is whole; 0 of them is off the logarithmic axis and not drawn.
    """
    require(len(epsilons) > 1, "epsilons", "two or more", epsilons)
    share = f"{100 * float(open_probability(confidence, 'confidence')):.6g} %"
    places = np.array([float(one) for one in epsilons])
    with style():
        drawn, (above, below) = figure(2, height=5.2, ratios=(1.6, 1.0))
        rows = {name: widths(make, epsilons, confidence) for name, make in kinds(delta).items()}
        first = next(iter(rows.values()))
        for place, (name, reach) in enumerate(rows.items()):
            shown = np.where(reach > 0, reach, np.nan)
            look: dict[str, Any] = {"marker": MARKS[place], "markersize": 3.5, "linewidth": 1.4, **stroke(place)}
            above.plot(places, shown, label=name, **look)
            below.plot(places, shown / first, **look)
        above.set_yscale("log")
        _ticks(above.yaxis, _HEIGHTS)
        above.set_ylabel(f"± of {share} of releases")
        above.set_title("The error bar of one answer that a person moves by 1", fontsize=10)
        below.set_ylim(bottom=0.0)
        below.set_ylabel("times Laplace’s")
        below.set_xscale("log")
        _ticks(below.xaxis, [one for one in _EPSILON_TICKS if places.min() <= one <= places.max()])
        below.set_xlabel("privacy loss ε of the release")
        key_beside(above)
    return drawn


def _ticks(axis: Axis, places: Sequence[float]) -> None:
    axis.set_ticks(list(places), [f"{one:g}" for one in places])
    axis.set_ticks([], minor=True)
