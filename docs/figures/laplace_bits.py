"""Which floats a noisy answer can be: with noise added in floating point, and on a public grid."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curador.plots.style import BLUE, DARK, RED, figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.numerics.rounding import FloatArray

_PLACE = 0.1
_FLOATS = 120
_STEPS = 12


def reachable_floats() -> Figure:
    """Return two panels around 0.1: the outputs that the answers 0 and 1 can give with Laplace noise of scale 1.

    Above, noise is added in floats as NumPy and SciPy draw it: each mark is a float that some draw gives. Below, the noise is
    a whole number of steps of a public grid: both answers give every step.
    """
    with style():
        drawn, (floats, steps) = figure(2, height=3.6, shared=False)
        unit = math.ulp(_PLACE)
        for row, (value, colour) in enumerate(((0, BLUE), (1, RED))):
            found = (in_floats(value, _PLACE, _FLOATS * unit) - _PLACE) / unit
            _marks(floats, found, row, colour)
            _marks(steps, np.arange(-_STEPS, _STEPS + 1.0), row, colour)
        floats.set_title("Laplace noise in floating point: most outputs tell the worlds apart", fontsize=9)
        floats.set_xlabel(f"floats away from {_PLACE}")
        steps.set_title("on a grid of 2⁻⁴⁰: both worlds give the same outputs", fontsize=9)
        steps.set_xlabel(f"grid steps away from {_PLACE}")
    return drawn


def _marks(axes: Axes, places: FloatArray, row: int, colour: str) -> None:
    axes.vlines(places, row - 0.36, row + 0.36, color=colour, linewidth=1.6)
    axes.set_yticks([0, 1], ["answer 0", "answer 1"], color=DARK)
    axes.set_ylim(1.6, -0.6)
    axes.grid(visible=False)


def in_floats(value: float, place: float, reach: float) -> FloatArray:
    """Return the floats within `reach` of `place` that NumPy's Laplace noise of scale 1 gives when it is added to `value`.

    Noise is log(2u) for u < 1/2 and −log(2 − u − u) above, in floats, u a multiple of 2⁻⁵³.
    """
    away = abs(place - value)
    middle = 0.5 * math.exp(-away) if place < value else 1.0 - 0.5 * math.exp(-away)
    many = math.ceil(reach * math.exp(-away) * 2.0**53) + 4
    uniform = np.ldexp(np.floor(np.ldexp(middle, 53)) + np.arange(-many, many + 1.0), -53)
    uniform = uniform[(uniform > 0.0) & (uniform < 1.0)]
    low, high = uniform[uniform < 0.5], uniform[uniform >= 0.5]
    out = np.unique(np.concatenate([value + np.log(low + low), value - np.log(2.0 - high - high)]))
    return out[np.abs(out - place) <= reach]
