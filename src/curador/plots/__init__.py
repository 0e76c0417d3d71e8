"""Figures of your losses, study, fits and audits: values in, a matplotlib figure out; nothing is shown or saved.

`CATALOGUE` has every figure by name: `curador plot` lists it, and draws what needs no value of Python's. Figures of papers
are beside the documents that show them, in docs/figures.
"""

from curador.plots.audit_report import write_html
from curador.plots.budget import budget
from curador.plots.catalogue import CATALOGUE, NAMES
from curador.plots.game import game
from curador.plots.law import law
from curador.plots.learning import convergence, lost_variance, spectrum
from curador.plots.local import local_errors, shuffle
from curador.plots.losses import composed_deltas, compositions, epsilon_delta, tradeoffs
from curador.plots.mechanisms import key_curves, noise_widths

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
