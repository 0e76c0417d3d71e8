"""Figures: values in, a matplotlib figure out. Nothing is shown or saved unless the caller does.

`CATALOGUE` has every figure by name, each with something to draw where nothing is given: `curador plot` lists it.
"""

from curador.plots.audit_report import write_html
from curador.plots.budget import budget
from curador.plots.catalogue import CATALOGUE, NAMES
from curador.plots.compositions import composed_deltas, compositions
from curador.plots.epsilon_delta import epsilon_delta
from curador.plots.game import game
from curador.plots.key_curves import key_curves
from curador.plots.laplace_bits import reachable_floats
from curador.plots.laplace_laws import laplace_laws
from curador.plots.law import law
from curador.plots.learning import convergence, lost_variance, spectrum
from curador.plots.local_errors import local_errors
from curador.plots.noise_widths import noise_widths
from curador.plots.posteriors import posteriors
from curador.plots.properties import properties, property_table
from curador.plots.renyi_budgets import renyi_budgets
from curador.plots.shuffle import shuffle
from curador.plots.tradeoffs import tradeoffs

__all__ = [
    "CATALOGUE",
    "NAMES",
    "budget",
    "composed_deltas",
    "compositions",
    "convergence",
    "epsilon_delta",
    "game",
    "key_curves",
    "laplace_laws",
    "law",
    "local_errors",
    "lost_variance",
    "noise_widths",
    "posteriors",
    "properties",
    "property_table",
    "reachable_floats",
    "renyi_budgets",
    "shuffle",
    "spectrum",
    "tradeoffs",
    "write_html",
]
