"""Every figure that the documents can show, by name: those of the package, each of something to show, and those of papers.

The package draws what it is given; what it is given here is made up (`examples`, `example_ledger`). What illustrates a paper
or the thesis, and is of nobody's own numbers, is no part of the package: it is a file of this folder.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import thesis
from example_ledger import example_log
from examples import EPSILONS, excesses, fitted_components, fitted_regressor, lost_variances, played_game
from laplace_bits import reachable_floats
from laplace_laws import laplace_laws
from posteriors import posteriors
from properties import properties
from renyi_budgets import renyi_budgets

import curador as cu
from curador.plots.catalogue import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.figure import Figure


def _budget() -> Figure:
    lines, limit = example_log()
    return cu.plots.budget(lines, limit=limit)


def _excess() -> Figure:
    found, nothing = excesses()
    return thesis.excess(found, trivial=nothing)


_OF_VALUES: dict[str, Callable[[], Figure]] = {
    "law": lambda: cu.plots.law(cu.Laplace(scale=1, sensitivity=1), 42, 43),
    "game": lambda: cu.plots.game(played_game()),
    "budget": _budget,
    "convergence": lambda: cu.plots.convergence(fitted_regressor()),
    "spectrum": lambda: cu.plots.spectrum(fitted_components()),
    "lost-variance": lambda: cu.plots.lost_variance(EPSILONS, lost_variances()),
}
"""Figures of the package that must be given something."""

_OF_PAPERS: dict[str, Callable[[], Figure]] = {
    "laplace-laws": laplace_laws,
    "reachable-floats": reachable_floats,
    "renyi-budgets": renyi_budgets,
    "properties": properties,
    "posteriors": posteriors,
    "phases": thesis.phases,
    "ceiling": thesis.ceiling,
    "needs": thesis.needs,
    "factors": thesis.factors,
    "excess": _excess,
}

_ALONE: dict[str, Any] = {name: entry.draw for name, entry in CATALOGUE.items() if entry.alone}

GALLERY: Final[Mapping[str, Callable[[], Figure]]] = MappingProxyType(_ALONE | _OF_VALUES | _OF_PAPERS)
"""What draws each figure."""
