"""Figures of your losses, study, fits and audits: values in, a matplotlib figure out; nothing is shown or saved.

`CATALOGUE` has every figure by name: `curador plot` lists it, and draws what needs no value of Python's. Figures of papers
are beside the documents that show them, in docs/figures.
"""

from curador.plots.audit_report import write_html
from curador.plots.budget import budget
from curador.plots.catalogue import CATALOGUE, NAMES
from curador.plots.compositions import composed_deltas, compositions
from curador.plots.epsilon_delta import epsilon_delta
from curador.plots.game import game
from curador.plots.key_curves import key_curves
from curador.plots.law import law
from curador.plots.learning import convergence, lost_variance, spectrum
from curador.plots.local_errors import local_errors
from curador.plots.noise_widths import noise_widths
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
    "law",
    "local_errors",
    "lost_variance",
    "noise_widths",
    "shuffle",
    "spectrum",
    "tradeoffs",
    "write_html",
]
