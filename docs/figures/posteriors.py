"""What an answer can make an adversary believe, against what he believed before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import require
from curador.plots.style import CYCLE, GREY, PATTERNS, key_below, side_by_side, stroke, style
from curador.privacy.odds import gaussian_posterior_tail, posterior_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.numerics.exact import Number
    from curador.numerics.rounding import FloatArray

EPSILONS = ("0.1", "0.5", "1", "2", "5")
DEVIATIONS = ("4", "2", "1", "0.5")
"""Standard deviations of Gaussian noise, for an answer that one person moves by 1."""

_POINTS = 61


def beliefs(epsilon: Number, priors: Sequence[Number]) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest belief that any output of an ε-private mechanism leaves, for each prior."""
    ends = [posterior_bounds(epsilon, prior=one) for one in priors]
    return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def certainties(deviation: Number, levels: Sequence[Number]) -> FloatArray:
    """Return how often, from an even prior, the belief in the truth passes each level under Gaussian noise."""
    from curador.numerics.exact import positive

    mu = 1 / positive(deviation, "deviation")
    return np.array([gaussian_posterior_tail(mu, threshold=one) for one in levels])


def posteriors(epsilons: Sequence[Number] = EPSILONS, deviations: Sequence[Number] = DEVIATIONS) -> Figure:
    """Return two panels: bounds of the belief after an answer against that before, by ε; and how often a belief is passed.

    Pure ε bounds the belief for every output. Gaussian noise bounds it for none, and says instead how often it is how sure.
    """
    require(0 < len(epsilons) <= len(CYCLE), "epsilons", f"1 to {len(CYCLE)} numbers", epsilons)
    require(0 < len(deviations) <= len(CYCLE), "deviations", f"1 to {len(CYCLE)} numbers", deviations)
    inner = [f"{one:.6f}" for one in np.sin(np.linspace(0.02, 0.5 * np.pi - 0.02, _POINTS)) ** 2]  # denser at the ends
    with style():
        drawn, (left, right) = side_by_side(2, height=4.6)
        _bounds(left, epsilons, inner)
        _tails(right, deviations, [f"{one:.4f}" for one in np.linspace(0.5, 0.999, _POINTS)])
        for axes in (left, right):
            axes.set_ylim(0.0, 1.0)
    return drawn


def _bounds(axes: Axes, epsilons: Sequence[Number], priors: list[str]) -> None:
    places = np.array([float(one) for one in priors])
    for place, epsilon in reversed(list(enumerate(epsilons))):
        low, high = beliefs(epsilon, priors)
        look = stroke(place)
        axes.plot(places, high, label=f"ε = {epsilon}", linewidth=1.7, **look)
        axes.plot(places, low, linewidth=1.7, **look)
    axes.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=1.0, label="nothing learned")
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("belief that she is in the data, before")
    axes.set_ylabel("lowest and highest belief after")
    axes.set_title("pure ε: bounds for every answer", fontsize=10)
    key_below(axes, columns=3)


def _tails(axes: Axes, deviations: Sequence[Number], levels: list[str]) -> None:
    places = np.array([float(one) for one in levels])
    for place, deviation in enumerate(deviations):
        look: dict[str, Any] = {"color": CYCLE[place], "linestyle": PATTERNS[place]}
        axes.plot(
            places,
            certainties(deviation, levels),
            label=f"σ = {deviation}, μ = {1 / float(str(deviation)):g}",
            linewidth=1.7,
            **look,
        )
    axes.set_xlim(0.5, 1.0)
    axes.set_xlabel("belief in the truth, from one half before")
    axes.set_ylabel("probability of being at least so sure")
    axes.set_title("Gaussian noise: how often he is how sure", fontsize=10)
    key_below(axes)
