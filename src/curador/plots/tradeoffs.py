"""Trade-off functions: of the wrong alarms that an adversary allows himself, how many true ones he gets at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.exact import whole
from curador.plots.style import DARK, GREY, figure, key_beside, stroke, style
from curador.plots.subjects import Losses, named
from curador.privacy.losses import Approx, GaussianLoss, LaplaceLoss, Pure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from curador.numerics.rounding import FloatArray
    from curador.privacy.loss import Loss


def examples() -> dict[str, Loss]:
    """Return losses that all have ε = 1, at δ = 0 or at δ = 0.1: equal numbers, unequal curves."""
    from curador.privacy.gaussian import gaussian_mu

    return {
        "any ε = 1": Pure(epsilon=1),
        "Laplace, ε = 1": LaplaceLoss(epsilon=1),
        "any ε = 1, δ = 0.1": Approx(epsilon=1, delta="0.1"),
        "Gaussian, ε = 1, δ = 0.1": GaussianLoss(mu=gaussian_mu(epsilon=1, delta="0.1")),
        "10 Laplace, ε = 0.1 each": 10 * LaplaceLoss(epsilon="0.1"),
    }


def rates(points: int) -> FloatArray:
    """Return false positive rates over [0, 1], denser at both ends."""
    made = np.sin(np.linspace(0.0, 0.5 * np.pi, points)) ** 2
    made[-1] = 1.0
    return made


def tradeoffs(losses: Losses = None, *, points: int = 41) -> Figure:
    """Return the least false negative rate of any test against its false positive rate, a curve for each loss.

    losses  by the name that the figure gives them, or one loss; those of `examples` without
    points  rates at which each is computed: an exact composition is asked once for each
    """
    many = whole(points, "points", least=2)
    shown = named(losses, examples)
    rate = rates(many)
    with style():
        drawn, (axes,) = figure(height=4.2)
        for place, (name, loss) in enumerate(shown.items()):
            axes.plot(rate, loss.tradeoff(rate), label=name, linewidth=1.8, **stroke(place))
        axes.plot([0.0, 1.0], [1.0, 0.0], color=GREY, linewidth=1.0)
        axes.annotate(
            "guessing blindly", (0.55, 0.45), (6, 4), textcoords="offset points", rotation=-45, fontsize=8, color=DARK
        )
        axes.set_aspect("equal")
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel("false positive rate: says “present” wrongly")
        axes.set_ylabel("least false negative rate: misses")
        axes.set_title("No adversary gets below his curve", fontsize=10)
        key_beside(axes)
    return drawn
