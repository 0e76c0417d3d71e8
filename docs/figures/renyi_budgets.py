"""Rényi budgets ζ(α) of randomized response, Laplace and Gaussian noise.

The three pictures with which a text on Rényi privacy compares its mechanisms ([Mir17], [FL23, Fig. 5.1 to 5.3]), with
parameters of our own: answers true with probability 0.6, 0.7, 0.8 and 0.9; scales 1, 2, 3 and 5; deviations 1, 2, 3 and 5;
sensitivity 1; orders 1 to 40.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.mechanisms.randomized_response import RandomizedResponse
from curador.plots.style import key_below, side_by_side, stroke, style
from curador.privacy.losses import GaussianLoss, LaplaceLoss

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from matplotlib.figure import Figure

    from curador.numerics.exact import Number
    from curador.numerics.rounding import FloatArray
    from curador.privacy.loss import Loss

TRUTHS = ("0.6", "0.7", "0.8", "0.9")
SCALES = ("1", "2", "3", "5")
DEVIATIONS = ("1", "2", "3", "5")
LAST_ORDER = 40.0

_POINTS = 160


@dataclass(frozen=True, slots=True)
class Family:
    """A panel: losses by the name of their parameter."""

    title: str
    losses: tuple[tuple[str, Loss], ...]


def families(
    truths: Sequence[Number] = TRUTHS, scales: Sequence[Number] = SCALES, deviations: Sequence[Number] = DEVIATIONS
) -> tuple[Family, Family, Family]:
    """Return randomized response by its probability of truth, Laplace noise by scale, Gaussian noise by deviation."""
    from curador.numerics.exact import positive

    def one_over(value: Number, name: str) -> Fraction:
        return 1 / positive(value, name)

    return (
        Family(
            "randomized response",
            tuple((f"p = {truth}", RandomizedResponse(gamma=truth).loss) for truth in truths),
        ),
        Family("Laplace noise", tuple((f"b = {one}", LaplaceLoss(epsilon=one_over(one, "scales"))) for one in scales)),
        Family("Gaussian noise", tuple((f"σ = {one}", GaussianLoss(mu=one_over(one, "deviations"))) for one in deviations)),
    )


def orders(last: float = LAST_ORDER) -> FloatArray:
    """Return orders from 1 to the last, closer where curves bend."""
    return 1.0 + (last - 1.0) * np.linspace(0.0, 1.0, _POINTS) ** 2


def renyi_budgets(
    truths: Sequence[Number] = TRUTHS, scales: Sequence[Number] = SCALES, deviations: Sequence[Number] = DEVIATIONS
) -> Figure:
    """Return three panels: ζ(α) of randomized response, Laplace and Gaussian noise, each for several parameters.

    The first two rise to their pure ε, a thin line of the same colour; Gaussian noise has none, and its ζ is a straight line.
    """
    alpha = orders()
    with style():
        drawn, panels = side_by_side(3, height=3.7)
        for axes, family in zip(panels, families(truths, scales, deviations), strict=True):
            for place, (name, loss) in enumerate(family.losses):
                look = stroke(place)
                axes.plot(alpha, loss.renyi(alpha), label=name, linewidth=1.8, **look)
                pure = loss.pure_epsilon
                if pure is not None:
                    axes.axhline(float(pure), color=look["color"], linewidth=0.8, alpha=0.7)
            axes.set_title(family.title, fontsize=10)
            axes.set_xlabel("order α")
            axes.set_ylabel("Rényi divergence ζ(α)")
            axes.set_xlim(1.0, LAST_ORDER)
            axes.set_ylim(bottom=0.0)
            key_below(axes)
    return drawn
