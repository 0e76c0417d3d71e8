"""Amplification by shuffling: what a person's report costs once it is one of n that nobody can tell apart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NotPrivate, require
from curador.numerics.exact import open_probability
from curador.plots.style import CYCLE, GREY, figure, key_beside, powers, stroke, style
from curador.privacy.shuffle import closed_form, shuffled_epsilon

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from curador.numerics.exact import Number
    from curador.numerics.rounding import FloatArray

EPSILONS = ("0.5", "1", "2", "4")
REPORTS = tuple(round(10 ** (step / 2)) for step in range(2, 13))
"""From 10 to a million, two a decade."""


def amplified(epsilon: Number, reports: Sequence[int], delta: Number) -> FloatArray:
    """Return the proved ε of shuffled reports, for each number of them."""
    return np.array([shuffled_epsilon(epsilon, many, delta) for many in reports])


def published(epsilon: Number, reports: Sequence[int], delta: Number) -> FloatArray:
    """Return the closed form of [FMT21] for each number of reports; not a number where it is not proved."""

    def one(many: int) -> float:
        try:
            return closed_form(epsilon, many, delta)
        except NotPrivate:
            return math.nan

    return np.array([one(many) for many in reports])


def shuffle(epsilons: Sequence[Number] = EPSILONS, *, reports: Sequence[int] = REPORTS, delta: Number = "1e-6") -> Figure:
    """Return ε of shuffled reports against their number, a line for each ε of the reports themselves.

    Thin lines are the published closed form, drawn where it is proved and better than not shuffling.
    """
    require(0 < len(epsilons) <= len(CYCLE), "epsilons", f"1 to {len(CYCLE)} numbers", epsilons)
    require(len(reports) > 1 and min(reports) >= 2, "reports", "two or more, each at least 2", reports)
    many = sorted(reports)
    places = np.array(many, np.float64)
    said = f"{float(open_probability(delta, 'delta')):g}".replace("e-0", "e-")
    with style():
        drawn, (axes,) = figure(height=4.0)
        for place, epsilon in enumerate(epsilons):
            look = stroke(place)
            axes.plot(places, amplified(epsilon, many, delta), label=f"ε = {epsilon} each", linewidth=1.9, **look)
            form = published(epsilon, many, delta)
            useful = np.where(form < float(str(epsilon)), form, np.nan)
            axes.plot(places, useful, linewidth=0.9, **look)
        axes.plot([], [], color=GREY, linewidth=0.9, label="closed form")
        axes.set_xscale("log")
        axes.set_yscale("log")
        powers(axes, "x", range(math.ceil(math.log10(places[0])), math.floor(math.log10(places[-1])) + 1))
        axes.set_xlabel("shuffled reports n")
        axes.set_ylabel(f"privacy loss ε of a person at δ = {said}")
        axes.set_title("A report among many costs less than it says", fontsize=10)
        key_beside(axes)
    return drawn
