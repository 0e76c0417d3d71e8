"""The Laplace density: alone, moved, and widened.

The three pictures of a first lesson on Laplace noise [Nav22]: Lap(0, 1) on [−10, 10], locations −3, 0, 3 and 6 at scale 1,
and scales 1 to 4 at location 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import require
from curador.plots.style import key_below, side_by_side, stroke, style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from curador.numerics.rounding import FloatArray

_POINTS = 1000


def laplace_density(places: FloatArray, *, location: float = 0.0, scale: float = 1.0) -> FloatArray:
    """Return exp(−|x − μ|/b)/2b. Source: [Nav22]."""
    require(math.isfinite(location), "location", "a number", location)
    require(0.0 < scale < math.inf, "scale", "above 0", scale)
    return np.exp(-np.abs(places - location) / scale) / (2.0 * scale)


def laplace_laws(locations: Sequence[float] = (-3, 0, 3, 6), scales: Sequence[float] = (1, 2, 3, 4)) -> Figure:
    """Return three panels: the density of Lap(0, 1), densities of several locations, and of several scales.

    A neighbour moves the location; its evidence is the ratio of two of the curves in the middle. A larger scale is more
    noise and less evidence.
    """
    places = np.linspace(-10.0, 10.0, _POINTS)
    drawings = (
        ("Lap(0, 1)", [("μ = 0, b = 1", 0.0, 1.0)]),
        ("moved: b = 1", [(f"μ = {one:g}".replace("-", "−"), float(one), 1.0) for one in locations]),
        ("widened: μ = 0", [(f"b = {one:g}", 0.0, float(one)) for one in scales]),
    )
    with style():
        drawn, panels = side_by_side(len(drawings), height=3.5, shared=True)
        for axes, (title, curves) in zip(panels, drawings, strict=True):
            for place, (name, location, scale) in enumerate(curves):
                density = laplace_density(places, location=location, scale=scale)
                axes.plot(places, density, label=name, linewidth=1.7, **stroke(place))
            axes.set_title(title, fontsize=10)
            axes.set_xlabel("value x")
            axes.set_ylim(0.0, 0.55)
            axes.set_xlim(-10.0, 10.0)
            key_below(axes)
        panels[0].set_ylabel("probability density")
    return drawn
