"""Local privacy: how exact an estimated share is, by how many values people choose from and by protocol."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import require
from curador.local.choose import METHODS
from curador.local.domain import domain_of
from curador.local.protocol import exact_epsilon
from curador.numerics.exact import whole
from curador.plots.style import MARKS, side_by_side, stroke, style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from curador.numerics.exact import Number
    from curador.numerics.rounding import FloatArray

SIZES = (2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024)
EPSILONS = ("1", "4")

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


def local_errors(sizes: Sequence[int] = SIZES, *, epsilons: Sequence[Number] = EPSILONS, reports: Number = 100_000) -> Figure:
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
            axes.set_xticks(ticks, [f"{one:g}" for one in ticks])
            axes.set_xticks([], minor=True)
            axes.set_xlabel("values to choose from")
            axes.set_title(f"ε = {epsilon}", fontsize=10)
        panels[0].set_ylabel(f"standard error of a share, {many:,} reports")
        lines, names = panels[0].get_legend_handles_labels()
        drawn.legend(lines, names, loc="outside lower center", ncols=3, fontsize=9, handlelength=2.6)
    return drawn
