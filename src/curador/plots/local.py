"""Figures of local privacy: standard errors by protocol, and what shuffling gains.

local_errors   how exact an estimated share is, by how many values people choose from and by protocol.

shuffle   amplification by shuffling: what a person's report costs once it is one of n that nobody can tell apart.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import NotPrivate, require
from curador.local.choose import METHODS
from curador.local.protocol import domain_of, exact_epsilon
from curador.numerics.exact import open_probability, whole
from curador.plots.style import CYCLE, GREY, MARKS, figure, key_beside, powers, side_by_side, stroke, style
from curador.privacy.shuffle import closed_form, shuffled_epsilon

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from curador.numerics.exact import Number
    from curador.numerics.rounding import FloatArray


# ---- local errors ----------------------------------------------------------------------------------------------------------


SIZES = (2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024)
ERROR_EPSILONS = ("1", "4")

_WORDS = {
    "direct": "direct (k answers)",
    "optimal_unary": "optimal unary",
    "symmetric_unary": "symmetric unary",
    "hashing": "local hashing",
    "hadamard": "Hadamard",
    "subset": "subset",
}


def standard_errors(method: str, sizes: Sequence[int], *, epsilon: Number, reports: Number) -> FloatArray:
    """Return, for each number of values, the standard error of the share of one that 1 in so many people hold.

    The shares add up to 1 and variances are linear in them, so this is also the root mean square over all values.
    """
    exact, many = exact_epsilon(epsilon), whole(reports, "reports")
    made = [METHODS[method](domain_of(size), exact) for size in sizes]
    return np.array([one.standard_error(many, share=Fraction(1, one.size)) / many for one in made])


def local_errors(
    sizes: Sequence[int] = SIZES, *, epsilons: Sequence[Number] = ERROR_EPSILONS, reports: Number = 100_000
) -> Figure:
    """Return a panel for each ε: the standard error of an estimated share against the number of values, by protocol.

    It is the error that randomizing adds: about the share among those who reported, not about a population.
    """
    require(len(sizes) > 1 and min(sizes) >= 2, "sizes", "two or more, each at least 2", sizes)
    require(len(epsilons) > 0, "epsilons", "at least one", epsilons)
    many, places = whole(reports, "reports"), np.array(sorted(sizes), np.float64)
    ticks = [2.0**power for power in range(1, int(math.log2(places[-1])) + 1, 3)]
    with style():
        drawn, panels = side_by_side(len(epsilons), height=4.0, shared=True, width=max(7.0, 4.8 * len(epsilons)))
        for axes, epsilon in zip(panels, epsilons, strict=True):
            for place, method in enumerate(METHODS):
                errors = standard_errors(method, sorted(sizes), epsilon=epsilon, reports=many)
                look: dict[str, Any] = {**stroke(place), "marker": MARKS[place], "markersize": 3.5, "linewidth": 1.4}
                axes.plot(places, errors, label=_WORDS.get(method, method), **look)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xticks([], minor=True)
            axes.set_xlabel("values to choose from")
            axes.set_title(f"ε = {epsilon}", fontsize=10)
        panels[0].set_ylabel(f"standard error of a share, {many:,} reports")
        lines, names = panels[0].get_legend_handles_labels()
        drawn.legend(lines, names, loc="outside lower center", ncols=3, fontsize=9, handlelength=2.6)
    return drawn


# ---- shuffle ---------------------------------------------------------------------------------------------------------------


SHUFFLED_EPSILONS = ("0.5", "1", "2", "4")
REPORTS = tuple(round(10 ** (step / 2)) for step in range(2, 13))
"""From 10 to a million, two a decade."""


def shuffled_epsilons(epsilon: Number, reports: Sequence[int], delta: Number) -> FloatArray:
    """Return the proved ε of shuffled reports, for each number of them."""
    return np.array([shuffled_epsilon(epsilon, many, delta) for many in reports])


def published_epsilons(epsilon: Number, reports: Sequence[int], delta: Number) -> FloatArray:
    """Return the closed form of [FMT21] for each number of reports; not a number where it is not proved."""

    def one(many: int) -> float:
        try:
            return closed_form(epsilon, many, delta)
        except NotPrivate:
            return math.nan

    return np.array([one(many) for many in reports])


def shuffle(
    epsilons: Sequence[Number] = SHUFFLED_EPSILONS, *, reports: Sequence[int] = REPORTS, delta: Number = "1e-6"
) -> Figure:
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
            axes.plot(places, shuffled_epsilons(epsilon, many, delta), label=f"ε = {epsilon} each", linewidth=1.9, **look)
            form = published_epsilons(epsilon, many, delta)
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
